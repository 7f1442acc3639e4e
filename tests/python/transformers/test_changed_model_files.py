"""Configs and weights of saved models that somebody changed: one line with the file's name."""

import json
import math

import pytest
import torch
from stored_changes import changed_header, fault_of, some, sweep
from tiny_models import build, transformers

from nsimplex.nn.language_options import SIZES
from nsimplex.transformers import SimplicialConfig, convert, from_pretrained


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Folders of a model with simplicial layers and of a converted one."""
    folder = tmp_path_factory.mktemp("stored")
    build("simplicial").save_pretrained(folder / "own")
    model = build("llama")
    convert(model, every=2)
    model.save_pretrained(folder / "converted")
    return folder


def copied(stored, kind, tmp_path):
    for file in (stored / kind).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def assert_refused(folder, read=from_pretrained):
    with pytest.raises(ValueError) as caught:
        read(folder)
    wrong = fault_of(str(caught.value), folder)
    assert not wrong, f"{wrong}: {caught.value}"


FIELDS = [
    ("hidden_size", "x"),
    ("hidden_size", 2**20),
    ("vocab_size", 2**31),
    ("vocab_size", -1),
    ("num_hidden_layers", 2**40),
    ("num_hidden_layers", 60000),
    ("num_attention_heads", math.nan),
    ("num_attention_heads", 0),
    ("num_key_value_heads", 2**40),
    ("head_dim", -8),
    ("hidden_act", "__class__"),
    ("tie_word_embeddings", 2),
    ("architectures", 1),
    ("architectures", [1]),
    ("dtype", 1e308),
    ("num_labels", 2**40),
    ("num_labels", "x"),
    ("id2label", 3),
    ("auto_map", -1),
    ("self", "x"),
    ("__dict__", 1),
    ("model_type", [1]),
    ("rope_parameters", {"rope_type": 2**70}),
]
#: Numbers with which a model would answer with numbers that are not finite.
NUMBERS = [
    *(("rms_norm_eps", value) for value in (-math.inf, math.inf, math.nan, -1.0)),
    *(("initializer_range", value) for value in (math.inf, math.nan, -0.1)),
    *(("attention_dropout", value) for value in (math.nan, -0.5, 1.0)),
    *(
        ("rope_parameters", {"rope_type": "default", "rope_theta": value})
        for value in (math.nan, math.inf, 0, -1.0)
    ),
    ("rope_parameters", {"rope_type": "linear", "rope_theta": 1e4, "factor": 0.0}),
    ("scale", math.nan),
]
LAYERS = {
    "own": [
        *(("every", -1), ("order", None), ("window", "x"), ("form", []), ("rotary", 1)),
        *NUMBERS,
    ],
    "converted": [
        ("nsimplex", value)
        for value in (1, {"every": 2}, {"every": 0, "order": 2, "window": None}, {"__class__": 1})
    ],
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_changed_config_is_one_line_with_its_file(kind, stored, tmp_path):
    folder = copied(stored, kind, tmp_path)
    path = folder / "config.json"
    fields = json.loads(path.read_text())
    for name, value in [*FIELDS, *LAYERS[kind]]:
        path.write_text(json.dumps({**fields, name: value}))
        assert_refused(folder)
    for text in (b"", b"[]", b"{", b"null", b"\xff", b"[" * 100_000):
        path.write_bytes(text)
        assert_refused(folder)


def test_sizes_have_the_bounds_of_language_models():
    names = dict(vocab_size="vocabulary", num_hidden_layers="layers", hidden_size="dim")
    names |= dict(num_attention_heads="heads", max_position_embeddings="context", order="order")
    for name, own in names.items():
        least, most = SIZES[own]
        for value in (least - 1, most + 1):
            with pytest.raises(ValueError, match=rf"\] {name}: expected {least} to {most}, got"):
                SimplicialConfig(**{name: value}, head_dim=8)


def test_auto_classes_refuse_changed_fields_with_the_name_too(stored, tmp_path):
    folder = copied(stored, "own", tmp_path)
    path = folder / "config.json"
    fields = json.loads(path.read_text())
    for name, value in (("form", "x"), ("hidden_size", "x"), ("rotary", 1)):
        path.write_text(json.dumps({**fields, name: value}))
        for read in (
            SimplicialConfig.from_pretrained,
            transformers.AutoConfig.from_pretrained,
            transformers.AutoModelForCausalLM.from_pretrained,
        ):
            assert_refused(folder, read)


def test_the_folder_may_be_given_by_its_keyword(stored):
    named = dict(pretrained_model_name_or_path=stored / "own")
    config = SimplicialConfig.from_pretrained(**named)
    own = type(build("simplicial"))
    assert own.from_pretrained(**named, config=config).config.order == config.order


#: Fields that say another model, or nothing about its numbers.
TAKEN = [
    *(("window", [2**40, 9]), ("window", None), ("scale", 0.5), ("pretraining_tp", 2)),
    *(("eos_token_id", [1]), ("use_cache", False), ("transformers_version", "x"), ("forward", 1)),
    ("rope_parameters", {"rope_type": "default", "rope_theta": 1e308}),
    ("rms_norm_eps", 0.0),
]


def test_other_values_in_the_ranges_give_another_model(stored, tmp_path):
    folder = copied(stored, "own", tmp_path)
    path = folder / "config.json"
    fields = json.loads(path.read_text())
    for name, value in TAKEN:
        path.write_text(json.dumps({**fields, name: value}))
        assert from_pretrained(folder)(torch.tensor([[1, 2, 3]])).logits.isfinite().all(), name


@pytest.mark.parametrize("count", [40, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", LAYERS)
def test_changed_weights_are_one_line_with_their_file(kind, stored, tmp_path, count):
    folder = copied(stored, kind, tmp_path)
    path = folder / "model.safetensors"
    own = from_pretrained(folder).state_dict()

    def write(data):  # a new file, for the old one may still be mapped
        path.unlink()
        path.write_bytes(data)

    def taken(what, data, model):
        same = all(tensor.equal(own[name]) for name, tensor in model.state_dict().items())
        # Whole numbers are the weights of quantised models.
        return None if same or what.endswith("dtype='I32'") else "other weights"

    changes = some(changed_header(path.read_bytes()), count)
    tried, refused = sweep(changes, write, lambda: from_pretrained(folder), folder, taken)
    assert refused > tried * 0.8
