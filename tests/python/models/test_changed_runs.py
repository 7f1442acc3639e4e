"""Runs of the command line whose files somebody changed behind valid checksums."""

import json
import re
import shutil
import signal
import subprocess
import time

import pytest
from commands import write_molecules
from stored_changes import BROKEN, ForkedCommands, changed_json, changed_tensors, some, sweep

from nsimplex._safetensors import Safetensors, write_safetensors
from nsimplex.nn import LanguageModel, LanguageModelOptions
from nsimplex.nn.language_options import SIZES

FILES = ("model", "checkpoint")
#: Changes of a file that are read: those of `make test`, and all of them.
COUNTS = [150, pytest.param(None, marks=pytest.mark.slow)]
COMMANDS = [12, pytest.param(None, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def text(root):
    return root / "tests" / "train" / "files" / "run-0.1" / "text.txt"


@pytest.fixture(scope="module")
def run(executable, text, tmp_path_factory):
    """A run that stopped before its end."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    line = [executable, "lm", "train", "--text", text, "--out", folder, "--window", "4,8"]
    options = "--width 8 --heads 2 --layers 2 --every 2 --context 8 --batch 2 --steps 3"
    subprocess.run([*line, *options.split()], check=True, capture_output=True)
    return folder


class Changes:
    """A file of a run, and changed ones in its place.

    Attributes:
        own: its tensors and its state, the JSON in a field of its header.
    """

    def __init__(self, source, target, field="state"):
        file = Safetensors(source)
        self.path, self.metadata, self.field = target, file.metadata, field
        self.own = (
            {name: file.tensor(name) for name in file.names},
            json.loads(file.metadata[field]),
        )

    def all(self, prefixes=("",)):
        """Names and changes, of the tensors whose names begin so."""
        tensors, state = self.own
        yield from ((what, (tensors, other)) for what, other in changed_json(state))
        yield from ((f"state {text[:9]!r}", (tensors, text)) for text in BROKEN)
        for what, other in changed_tensors(tensors, ["model.x", "optimizer.x", "blocks.9.x"]):
            if what.startswith((*prefixes, *(f"no {each}" for each in prefixes), "+")):
                yield what, (other, state)

    def write(self, change):
        tensors, state = change
        text = state if isinstance(state, str) else json.dumps(state)
        write_safetensors(self.path, tensors, {**self.metadata, self.field: text})


def _same(text, spelled):
    return text == spelled or (spelled.count(".") == 1 and float(text) == float(spelled))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", FILES)
def test_a_model_is_what_its_file_says_or_refused(run, tmp_path, kind, count):
    changes = Changes(run / f"{kind}.safetensors", tmp_path / "model.safetensors")
    prefixes = ("model.", "tokenizer") if kind == "checkpoint" else ("",)

    def taken(what, change, model):
        tensors, state = change
        if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
            return "read without options"
        spelled = model.options.to_map()
        for name, text in state["model"].items():
            if not _same(text, spelled[name]):
                return f"{name} became {spelled[name]!r}"
        prefix = "model." if kind == "checkpoint" else ""
        for name, own in model.state_dict().items():
            if not own.equal(tensors[prefix + name]) or own.dtype != tensors[prefix + name].dtype:
                return f"tensor {name} is another one"
        return None

    tried, refused = sweep(
        some(changes.all(prefixes), count),
        changes.write,
        lambda: LanguageModel.from_run(changes.path),
        changes.path,
        taken,
    )
    assert refused > tried / 4
    changes.write(changes.own)
    LanguageModel.from_run(changes.path)


@pytest.fixture(scope="module")
def commands(build):
    with ForkedCommands(build) as commands:
        yield commands


@pytest.mark.parametrize("count", COMMANDS)
@pytest.mark.parametrize("kind", FILES)
def test_the_command_line_reads_what_python_reads(run, text, tmp_path, commands, kind, count):
    changes = Changes(run / f"{kind}.safetensors", tmp_path / "model.safetensors")
    words = ["lm", "eval", changes.path, "--text", text, "--part", "all"]

    def taken(what, change, done):
        try:
            LanguageModel.from_run(changes.path)
        except ValueError as error:
            return f"Python refuses it: {error}"
        return None

    prefixes = ("model.", "tokenizer") if kind == "checkpoint" else ("",)
    chosen = some(changes.all(prefixes), count)
    tried, refused = sweep(chosen, changes.write, lambda: commands.read(words), changes.path, taken)
    assert refused > tried / 4
    changes.write(changes.own)
    commands.read(words)


@pytest.mark.parametrize("count", COMMANDS)
def test_a_training_continues_from_what_it_wrote_or_not_at_all(
    run, text, tmp_path, commands, count
):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    changes = Changes(run / "checkpoint.safetensors", folder / "checkpoint.safetensors")
    words = ["lm", "train", "--resume", folder]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def write(change):
        for name, data in before.items():
            (folder / name).write_bytes(data)
        changes.write(change)

    # Options of a training may be any. A model must be that of its weights.
    chosen = [
        (what, change)
        for what, change in changes.all()
        if not what.removeprefix("no ").startswith(("training/", "text/", "model/")) or "+" in what
    ]
    sweep(some(chosen, count), write, lambda: commands.read(words), changes.path)
    write(changes.own)
    commands.read(words)


def _interrupted(line, folder):
    """A run that Ctrl-C ended after its first validation."""
    process = subprocess.Popen([*line, "--out", folder], stderr=subprocess.PIPE)
    log, deadline = folder / "metrics.jsonl", time.monotonic() + 60
    while not (log.exists() and "graph_point" in log.read_text()) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130, process.stderr.read()
    process.stderr.close()


def _hyperedges(folder):
    tuples = [(i, 20 + (i + k) % 20, 40 + (2 * i + k) % 20) for i in range(20) for k in range(2)]
    for name, own in (("train", tuples), ("test", tuples[::5])):
        (folder / f"{name}.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in own))
    options = ["--train", folder / "train.csv", "--test", folder / "test.csv"]
    return ["lab", "hyperedges", *options, "--models", "s2g-plus", "--epochs", "100"]


def _molecules(folder):
    write_molecules(folder / "molecules.npz")
    options = "--models laplacian --epochs 100 --width 8 --layers 1 --heads 2"
    return ["lab", "molecules", folder / "molecules.npz", *options.split()]


#: Commands that compare models of graphs, and how a result of theirs that is finite begins.
COMPARED = {"hyperedges": (_hyperedges, r'"auc":[01]\.'), "molecules": (_molecules, r'"mae":[0-9]')}


@pytest.mark.parametrize("count", COMMANDS)
@pytest.mark.parametrize("name", COMPARED)
def test_a_training_on_graphs_continues_from_what_it_wrote(
    executable, tmp_path, commands, name, count
):
    words, finite = COMPARED[name]
    line, folder = words(tmp_path), tmp_path / "run"
    _interrupted([executable, *line, "--threads", "1"], folder)
    changes = Changes(folder / "checkpoint.safetensors", folder / "checkpoint.safetensors")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def write(change):
        for name, data in before.items():
            (folder / name).write_bytes(data)
        changes.write(change)

    def read():
        return commands.read(["lab", name, "--json", "--resume", folder])

    def taken(what, change, out):
        return None if re.search(finite, out) else out

    tried, refused = sweep(some(changes.all(), count), write, read, changes.path, taken)
    assert refused > tried / 4
    write(changes.own)
    read()


@pytest.mark.parametrize("count", COMMANDS)
def test_a_model_of_features_predicts_as_it_was_trained_or_not(
    executable, tmp_path, commands, count
):
    table, folder = tmp_path / "table.csv", tmp_path / "run"
    rows = [[i % 5 / 4, i % 7 / 6, i % 3] for i in range(40)]
    table.write_text("x,y,z\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    (tmp_path / "labels.csv").write_text("kind\n" + "a\nb\n" * 20)
    line = [executable, "causal", "task", "classify", table, "--out", folder, "--save-models"]
    line += ["--labels", tmp_path / "labels.csv", "--encodings", "cape", "--values", "linear"]
    options = "--restore-epochs 1 --epochs 1 --seeds 1 --splits 1 --width 24 --layers 1 --threads 1"
    subprocess.run([*line, *options.split()], check=True, capture_output=True)
    (source,) = folder.rglob("*.safetensors")
    changes = Changes(source, tmp_path / "model.safetensors", "model")

    def read():
        try:
            return commands.read(["causal", "predict", changes.path, table])
        except ValueError as error:  # a model of features by other names is one
            if str(error).startswith("TABLE: expected one column"):
                return ""
            raise

    def taken(what, change, out):
        return "not finite" if "nan" in out or "inf" in out else None

    tried, refused = sweep(some(changes.all(), count), changes.write, read, changes.path, taken)
    assert refused > tried / 4
    changes.write(changes.own)
    read()


def test_sizes_have_the_same_bounds_in_files_and_in_python(run, text, tmp_path, commands):
    usual = LanguageModelOptions()
    fields = LanguageModelOptions.__dataclass_fields__
    assert [*SIZES] == [name for name in fields if type(getattr(usual, name)) is int]
    changes = Changes(run / "model.safetensors", tmp_path / "model.safetensors")
    tensors, state = changes.own
    words = ["lm", "eval", changes.path, "--text", text, "--part", "all"]
    for name, (least, most) in SIZES.items():
        for value, bound in ((least - 1, f"at least {least}"), (most + 1, f"at most {most}")):
            changes.write((tensors, {**state, "model": {**state["model"], name: str(value)}}))
            with pytest.raises(ValueError, match=rf"\] {name}: expected {bound}, got {value}$"):
                commands.read(words)
            with pytest.raises(ValueError, match=rf" {name}: expected {least} to {most}, got"):
                LanguageModel(LanguageModelOptions(**{name: value}))


#: Texts that say the same as those of a training, or something that none means.
OTHER_TEXTS = [
    *(("window", text) for text in ("2", "4,8", "4:0,8:0,", "04:0,8:0", "4:0,,8:0", "4:0,8:-0")),
    *(("layers", text) for text in ("02", "2.0", "+2", " 2", "2e0")),
    ("kv_heads", "-0"),
    *(("dropout", text) for text in ("nan", ".0", "0.0", "0e0")),
    *(("indexer_loss", text) for text in ("inf", "infinity", "1e999")),
    *(("tied", text) for text in ("1", "True")),
    ("form", "Product"),
]


def test_options_are_written_in_one_way(run, text, tmp_path, commands):
    changes = Changes(run / "model.safetensors", tmp_path / "model.safetensors")
    tensors, state = changes.own
    words = ["lm", "eval", changes.path, "--text", text, "--part", "all"]
    for name, written in OTHER_TEXTS:
        changes.write((tensors, {**state, "model": {**state["model"], name: written}}))
        with pytest.raises(ValueError, match=rf"{name}: expected [^\n]*, got "):
            commands.read(words)


#: Sizes that no machine has, and what is said of them before anything is made.
TOO_LARGE = [
    *((name, 2**62, "expected at most 2147483648, got") for name in ("--steps", "--accumulate")),
    *((name, 2**31, "GiB of this machine") for name in ("--context", "--batch")),
    ("--width", 2**20, "GiB of this machine"),
    ("--batch", 2**40, "--batch: expected at most 2147483648, got"),
    ("--layers", 2**40, "layers: expected at most 65536, got"),
    ("--heads", 2**40, "heads: expected at most 1048576, got"),
    ("--order", 2**40, "order: expected at most 8, got"),
]


def test_sizes_beyond_the_machine_are_one_line(text, tmp_path, commands):
    for name, value, says in TOO_LARGE:
        words = ["lm", "train", "--text", text, "--out", tmp_path / "run", name, value]
        done = commands.run(words)
        assert done["code"] == 2 and says in done["err"] and done["err"].count("\n") == 1, done
        assert not (tmp_path / "run").exists()
    line = _hyperedges(tmp_path)
    for name in ("--batch", "--warmup", "--eval-every"):
        done = commands.run([*line, name, 2**40])
        assert done["code"] == 2 and f"{name}: expected" in done["err"], done
        assert done["err"].count("\n") == 1
    for name in ("--random-walk", "--laplacian"):
        done = commands.run(["graph", "train", tmp_path, "--task", "graph", name, 2**20])
        assert done["code"] == 2 and done["err"].count("\n") == 1, done
        assert f"{name}: expected a whole number from 0 to 1024, got 1048576" in done["err"]
