"""Files of models of graphs and of their trainings, changed behind right checksums."""

import json
import math

import pytest
import torch
from test_graph_training import SHAPE, Fragile, Interrupted, fitted, rings

from nsimplex._safetensors import Safetensors, write_safetensors
from nsimplex.graph_command.predicting import load
from nsimplex.graph_command.records import Recipe
from nsimplex.nn import MessagePassing
from nsimplex.nn.graph_checkpoint import FitState, read_checkpoint


def stored(path):
    """The tensors, the metadata and the state of a file."""
    file = Safetensors(path)
    tensors = {name: file.tensor(name) for name in file.names}
    return tensors, file.metadata, json.loads(file.metadata["state"])


def assert_refused(path, tensors, metadata, state, read, what):
    """A file with right checksums and something else in it is refused in one line."""
    text = state if isinstance(state, str) else json.dumps(state)
    write_safetensors(path, tensors, {**metadata, "state": text})
    with pytest.raises(ValueError, match=r"^cannot (read|use) [^\n]*\.safetensors: [^\n]+$"):
        read()
        pytest.fail(str(what))


def other_tensors(tensors):
    """The tensors of a file with one of them gone or changed, or another one beside them."""
    for name, own in tensors.items():
        yield f"no {name}", {key: each for key, each in tensors.items() if key != name}
        wrong = {"longer": torch.cat([own.reshape(-1)] * 2), "integers": own.to(torch.int32)}
        if own.is_floating_point():
            wrong |= {"nan": torch.full_like(own, math.nan), "double": own.double()}
        for kind, tensor in wrong.items():
            yield f"{name} {kind}", {**tensors, name: tensor}
    for name in ("__class__", "model.x", "optimizer.0.exp", "optimizer.x.y", "optimizer.1.2.3"):
        yield name, {**tensors, name: torch.zeros(2)}


STATES = [
    *(("epoch", value) for value in (-1, "3", 2**70, True, None, 1.0)),
    *((name, value) for name in ("best", "better") for value in (-1, 99, "1")),
    *((name, value) for name in ("score", "loss") for value in ("x", None, math.nan, [1.0])),
    ("ended", 1),
    ("__class__", 1),
]


def test_a_checkpoint_is_read_against_lists_of_names_shapes_and_ranges(tmp_path, monkeypatch):
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    with pytest.raises(Interrupted):
        fitted(tmp_path, 7, Fragile)
    path = tmp_path / "checkpoint.safetensors"
    tensors, metadata, state = stored(path)
    model = MessagePassing("graph", "binary", dropout=0.2, kind="gat", heads=2, **SHAPE)
    before = {name: own.clone() for name, own in model.state_dict().items()}
    best, optimizer = model.state_dict(), torch.optim.AdamW(model.parameters())

    def read():
        return read_checkpoint(path, model, best, optimizer, torch.Generator())

    for text in ("", "[]", "null", "{}", "[" * 10_000, *({**state, k: v} for k, v in STATES)):
        assert_refused(path, tensors, metadata, text, read, text)
    for what, changed in other_tensors(tensors):
        assert_refused(path, changed, metadata, state, read, what)
    assert all(own.equal(before[name]) for name, own in model.state_dict().items())
    write_safetensors(path, tensors, metadata)
    assert read() == FitState(**state)


OPTIONS = [
    ("width", 2**16),
    ("width", 2**40),
    ("width", "8"),
    ("layers", 1000),
    ("layers", -1),
    ("heads", 3),
    ("node_codes", [1] * 1000),
    ("node_codes", "abc"),
    ("kind", "__class__"),
    ("task", None),
    ("dropout", math.nan),
    ("dropout", "0"),
    ("forward", 1),
    ("__class__", 1),
    ("self", 1),
]


def test_a_model_is_read_against_its_options_and_their_shapes(tmp_path):
    model = MessagePassing("graph", "binary", kind="gat", heads=2, **SHAPE)
    model.save(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, metadata, state = stored(path)

    def read():
        return MessagePassing.from_run(tmp_path)

    for text in ("", "[]", "{}", {**state, "class": ["x"]}, {**state, "class": "Module"}):
        assert_refused(path, tensors, metadata, text, read, text)
    for name, value in OPTIONS:
        options = {**state["options"], name: value}
        assert_refused(path, tensors, metadata, {**state, "options": options}, read, (name, value))
    for what, changed in other_tensors(tensors):
        if "target" not in what or "double" not in what:
            assert_refused(path, changed, metadata, state, read, what)
    write_safetensors(path, tensors, metadata)
    assert read().predict(rings(4)).equal(model.predict(rings(4)))


RECIPES = [
    *(("targets", value) for value in ([], "y", [1], None)),
    *(("task", value) for value in ("node", "x", 1, ["graph"])),
    *(("node_columns", value) for value in ([["x"]], [["x", [1]]], [1], "x", {"x": None})),
    *(("node_codes", value) for value in ("x", [1.5], [True], None)),
    *(("directed", value) for value in (1, "yes", None)),
    ("bad", []),
    ("seen", []),
    ("__class__", 1),
]


def test_how_data_are_read_is_compared_with_types(tmp_path):
    model = MessagePassing("graph", "binary", kind="gat", heads=2, **SHAPE)
    recipe = Recipe("graph", ["y"], node_columns=[])
    model.save(tmp_path, data=recipe.to_json())
    path = tmp_path / "model.safetensors"
    tensors, metadata, state = stored(path)
    for name, value in RECIPES:
        changed = {**state, "data": {**state["data"], name: value}}
        assert_refused(path, tensors, metadata, changed, lambda: load(str(tmp_path)), (name, value))
    for value in ([], None, "x", {}):
        changed = {**state, "data": value}
        assert_refused(path, tensors, metadata, changed, lambda: load(str(tmp_path)), value)
    write_safetensors(path, tensors, metadata)
    assert load(str(tmp_path))[1].to_json() == recipe.to_json()
