"""Configs and weights of saved models that somebody changed: one line with the file's name."""

import json
import math
import re
import struct

import pytest
from tiny_models import build, transformers

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
    said = str(caught.value)
    assert str(folder) in said and re.match(r"cannot read|\[from_pretrained\]", said), said
    assert "\n" not in said and not re.search(r"Allocator|Error\b", said), said


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
LAYERS = {
    "own": [("every", -1), ("order", None), ("window", "x"), ("form", []), ("rotary", 1)],
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


def changed_weights(data):
    """Files of weights with another header, and cut ones."""
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    name = next(each for each in header if each.endswith("q_proj.weight"))
    own = header[name]

    def packed(text):
        return struct.pack("<Q", len(text)) + text + rest

    entries = [
        *({**own, "shape": shape} for shape in ([], [2**40], [2**62, 4], [-1], "x", [1])),
        *({**own, "dtype": dtype} for dtype in ("F64", "F4", "X", None)),
        *({**own, "data_offsets": each} for each in ([0, 0], [5, 1], [0, 2**40], [2**63, 2**64])),
    ]
    for entry in entries:
        yield packed(json.dumps({**header, name: entry}).encode())
    renamed = {"other" if key == name else key: entry for key, entry in header.items()}
    yield packed(json.dumps(renamed).encode())
    yield packed(json.dumps({**header, "__metadata__": {"format": "x"}}).encode())
    for text in (b"", b"[]", b"{}", b"[" * 100_000, b"\xff"):
        yield packed(text)
    for size in (0, 7, 8, 100, len(data) - 1):
        yield data[:size]


@pytest.mark.parametrize("kind", LAYERS)
def test_changed_weights_are_one_line_with_their_file(kind, stored, tmp_path):
    folder = copied(stored, kind, tmp_path)
    path = folder / "model.safetensors"
    for data in changed_weights(path.read_bytes()):
        path.unlink()
        path.write_bytes(data)
        assert_refused(folder)
