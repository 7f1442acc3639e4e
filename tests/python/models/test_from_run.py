"""The language model that `nsimplex lm train` wrote, loaded strictly."""

import copy
import json
import shutil
import struct
import subprocess
import sys

import pytest
import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions
from nsimplex.text import ByteTokenizer, SentencePieceTokenizer

NAMES = "checkpoint.safetensors", "model.safetensors"


@pytest.fixture(scope="module")
def old_run(root):
    """A run of version 0.1, whose files have no checksums."""
    return root / "tests" / "train" / "files" / "run-0.1"


@pytest.fixture(scope="module")
def run(executable, old_run, tmp_path_factory):
    """A run of this version."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    options = "--width 16 --heads 2 --layers 2 --every 2 --context 8 --batch 2 --steps 3"
    line = [executable, "lm", "train", "--text", old_run / "text.txt", "--out", folder]
    subprocess.run([*line, *options.split(), "--window", "4,8"], check=True, capture_output=True)
    return folder


def read(path):
    """(header, data) of a safetensors file."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(path, header, data):
    """The file without checksums, of the format that has none."""
    metadata = header["__metadata__"]
    for name in ("tensor_checksums", "header_checksum"):
        metadata.pop(name, None)
    metadata["format"] = metadata["format"].replace(" 2", " 1")
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def with_state(source, target, change):
    header, data = read(source)
    state = json.loads(header["__metadata__"]["state"])
    change(state)
    header["__metadata__"]["state"] = json.dumps(state)
    return write(target, header, data)


@pytest.mark.parametrize("which", ["old_run", "run"])
def test_folder_checkpoint_and_model_are_the_same(which, request):
    folder = request.getfixturevalue(which)
    models = [LanguageModel.from_run(path) for path in (folder, *(folder / n for n in NAMES))]
    tokens = torch.arange(16).view(2, 8)
    first = models[0](tokens)
    header, _ = read(folder / "model.safetensors")
    assert set(models[0].state_dict()) == set(header) - {"__metadata__"}
    for model in models:
        assert not model.training and isinstance(model.tokenizer, ByteTokenizer)
        assert all(p.requires_grad and p.dtype == torch.float32 for p in model.parameters())
        assert torch.equal(model(tokens), first)
        assert model.options == models[0].options
    models[0].loss(tokens, tokens).backward()  # it may be trained on


LIGHT = dict(indexer="light", indexer_loss=0.5)
KINDS = {
    "determinant": dict(form="determinant", rotary=True, normalizer="softmax_sink"),
    "augment": dict(normalizer="softmax_sink", augment=True, dropout=0.3),
    "chosen": dict(normalizer="softmax_sink", sparse="topk", topk=3, window=None),
    "orders": dict(orders=[1, 2], softcap=3.0, rotary_base=100.0),
    "chosen for orders": dict(orders=[1, 2], sparse="topk", topk=3, window=None, **LIGHT),
    "sinks": dict(sparse="window+sinks", sinks=2, window=[4], reduce="mlp"),
    "all parts": dict(sparse="window+sinks+topk", topk=2, window=[2], unit_layer=True),
    "face": dict(face=True, reduce="sum", head_dim=6, bias=True),
    "distinct": dict(distinct="with_query", reduce="mean"),
}
SMALL = dict(dim=24, heads=2, layers=2, every=2, context=8, window=[4, 8])


def flags(options):
    """Options of a model as flags of the command."""
    names = dict(dim="width", head_dim="head-width")
    for name, value in options.items():
        flag = "--" + names.get(name, name).replace("_", "-")
        if value is True:
            yield flag
        else:
            yield from (flag, ",".join(map(str, value)) if isinstance(value, list) else str(value))


def command(*words):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_the_command_and_of_python_are_the_same(executable, old_run, tmp_path, kind):
    text, options = old_run / "text.txt", SMALL | KINDS[kind]
    options = {name: value for name, value in options.items() if value is not None}
    training = "--batch 2 --steps 20 --lr 0.03".split()
    train = [executable, "lm", "train", "--text", text, "--out", tmp_path / "run", *training]
    command(*train, *flags(options))
    model = LanguageModel.from_run(tmp_path / "run")
    assert model.options.to_map() == LanguageModelOptions(**options).to_map()
    model.save(tmp_path / "saved", step=20)
    tokens = torch.tensor(list(text.read_bytes()))
    with torch.no_grad():  # without the loss of an indexer
        losses = [
            model.loss(part[None, :-1], part[None, 1:]).item() * (len(part) - 1)
            for part in (tokens[first : first + 9] for first in range(0, len(tokens) - 1, 8))
        ]
    for folder in (tmp_path / "run", tmp_path / "saved"):
        given = () if folder.name == "run" else ("--text", text)
        line = command(executable, "lm", "eval", folder, "--part", "all", "--json", *given)
        expected = json.loads(line)["val_loss"]
        assert sum(losses) / (len(tokens) - 1) == pytest.approx(expected, abs=1e-5)
        greedy = ["--prompt", "ab", "--temperature", 0, "--tokens", 5, "--json"]
        sampled = json.loads(command(executable, "lm", "sample", folder, *greedy))["text"]
        assert model.generate("ab", 5, temperature=0) == sampled


def test_what_cannot_be_saved_is_refused(run, tmp_path):
    model = LanguageModel(LanguageModelOptions(**SMALL | dict(vocabulary=9)))
    with pytest.raises(ValueError, match="folder: expected one without checkpoint.safetensors"):
        model.save(run)
    model.tokenizer = ByteTokenizer()
    with pytest.raises(ValueError, match="tokenizer: expected a ByteTokenizer, .* of 9 tokens"):
        model.save(tmp_path)
    model.tokenizer = None
    model.save(tmp_path)
    again = LanguageModel.from_run(tmp_path)
    assert again.tokenizer is None and again.options.to_map() == model.options.to_map()
    assert torch.equal(again(torch.arange(8)[None]), model.eval()(torch.arange(8)[None]))
    with pytest.raises(ValueError, match="step: expected at least 0, got -1"):
        model.save(tmp_path, step=-1)
    model.blocks[0].mlp.extra = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match="blocks: expected those of the options"):
        model.save(tmp_path)


def test_a_folder_with_a_model_alone(old_run, tmp_path):
    shutil.copy(old_run / "model.safetensors", tmp_path)
    assert LanguageModel.from_run(tmp_path).options.vocabulary == 256


def test_device_and_dtype(old_run):
    model = LanguageModel.from_run(str(old_run), device="cpu", dtype=torch.float64)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    again = copy.deepcopy(model)
    assert again.tokenizer.encode("ab") == [97, 98]


def test_loading_draws_no_random_numbers(old_run):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    LanguageModel.from_run(old_run)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_bit_that_flips_is_seen(run, tmp_path, name):
    content = bytearray((run / name).read_bytes())
    data = 8 + int.from_bytes(content[:8], "little")
    for place in (9, data // 2, data + 5, len(content) - 3):
        damaged = bytearray(content)
        damaged[place] ^= 4
        path = tmp_path / name
        path.write_bytes(damaged)
        with pytest.raises(ValueError) as error:
            LanguageModel.from_run(path)
        assert str(error.value).startswith(f"cannot read {path}: ")
        assert "checksum" in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_was_cut_is_refused(run, tmp_path):
    content = (run / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    for length in (0, 7, 8, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError) as error:
            LanguageModel.from_run(path)
        assert str(error.value).startswith(f"cannot read {path}: ")
        assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_files_of_others(old_run, tmp_path):
    path = tmp_path / "model.safetensors"
    header, data = read(old_run / "model.safetensors")
    metadata = header["__metadata__"]
    for said, words in (
        ("pt", "not a model of nsimplex"),
        ("nsimplex model 7", "its format 'nsimplex model 7' is not known to this version"),
    ):
        write(path, {**header, "__metadata__": {**metadata, "format": said}}, data)
        with pytest.raises(ValueError, match=f"^cannot read {path}: {words}$"):
            LanguageModel.from_run(path)
    path.write_text("no model at all")
    with pytest.raises(ValueError, match=f"^cannot read {path}: not a whole safetensors file"):
        LanguageModel.from_run(path)
    with pytest.raises(ValueError, match=r"^cannot read .*checkpoint\.safetensors: No such file"):
        LanguageModel.from_run(tmp_path / "nothing" / "checkpoint.safetensors")
    path.unlink()
    with pytest.raises(ValueError, match=r"^cannot read .*checkpoint\.safetensors: No such file"):
        LanguageModel.from_run(tmp_path)


def test_tensors_are_refused_by_name(old_run, tmp_path):
    path = tmp_path / "model.safetensors"
    header, data = read(old_run / "model.safetensors")
    name = "blocks.1.attention.output.weight"

    def refused(change, words):
        changed = copy.deepcopy(header)
        change(changed)
        write(path, changed, data)
        with pytest.raises(ValueError) as error:
            LanguageModel.from_run(path)
        assert str(error.value) == f"cannot read {path}: {words}"

    def rename(changed, to):
        changed[to] = changed.pop(name)

    refused(lambda h: rename(h, "blocks.1.other"), f"it has no tensor {name}")
    gain = header["norm.weight"]
    refused(
        lambda h: h.update({name: {**h[name], "shape": [4, 16]}}),
        f"tensor {name}: expected shape [8, 8], got [4, 16]",
    )
    refused(
        lambda h: h.update({"norm.weight": {**gain, "dtype": "I32"}}),
        "tensor norm.weight: expected floating point, got torch.int32",
    )
    begin = len(data)
    extra = {"dtype": "F32", "shape": [0], "data_offsets": [begin, begin]}
    refused(
        lambda h: h.update({"blocks.0.bias": extra}),
        "its tensor 'blocks.0.bias' belongs to no such model",
    )


def test_weights_that_are_not_finite_are_wanted_or_refused(old_run, tmp_path):
    path = tmp_path / "model.safetensors"
    header, data = read(old_run / "model.safetensors")
    begin, _ = header["norm.weight"]["data_offsets"]
    write(path, header, data[:begin] + struct.pack("<f", float("nan")) + data[begin + 4 :])
    with pytest.raises(ValueError, match=r"^cannot use .*: tensor norm\.weight holds numbers"):
        LanguageModel.from_run(path)
    assert LanguageModel.from_run(path, non_finite=True).norm.weight.isnan().sum() == 1


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda o: o.update(layers="3000000000"), "its option layers does not belong to its"),
        (lambda o: o.update(dim="4"), "its option dim does not belong to its weights"),
        (lambda o: o.update(vocabulary="2"), "its option vocabulary does not belong to its"),
        (lambda o: o.update(heads="many"), "heads: expected an integer, got 'many'"),
        (lambda o: o.update(heads="3"), "heads: expected a divisor of dim 8, got 3"),
        (lambda o: o.update(sparse="all"), "sparse: expected window, topk, path, linear"),
        (lambda o: o.update(colour="red"), "colour: no such option"),
        (lambda o: o.update(window="4:0:1"), "window"),
    ],
)
def test_options_that_make_no_model_are_refused(old_run, tmp_path, change, words):
    path = with_state(
        old_run / "model.safetensors",
        tmp_path / "model.safetensors",
        lambda state: change(state["model"]),
    )
    with pytest.raises(ValueError) as error:
        LanguageModel.from_run(path)
    assert str(error.value).startswith(f"cannot read {path}: ")
    assert words in str(error.value) and "\n" not in str(error.value)


def test_the_tokenizer_comes_with_the_run(old_run, tmp_path, monkeypatch):
    def read_tokens(state):
        state["tokenizer"] = "none"

    path = with_state(old_run / "model.safetensors", tmp_path / "model.safetensors", read_tokens)
    model = LanguageModel.from_run(path)
    assert model.tokenizer is None
    with pytest.raises(ValueError, match="expected token numbers, got text and no tokenizer"):
        model.generate("a", 1)
    assert len(model.generate([97], 3)) == 4
    shutil.copy(old_run / "model.safetensors", tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"of another program")
    model = LanguageModel.from_run(tmp_path)  # nobody needs the package for the weights
    assert isinstance(model.tokenizer, SentencePieceTokenizer)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError, match="needs the package sentencepiece"):
        model.generate("a", 1)


def test_options_of_a_run_are_those_it_was_trained_with(run):
    options = LanguageModel.from_run(run).options
    wanted = LanguageModelOptions(dim=16, heads=2, layers=2, every=2, context=8)
    assert {**vars(options), "window": None} == {**vars(wanted), "window": None}
    assert options.window == [(4, 0), (8, 0)]
