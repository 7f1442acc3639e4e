"""Files of models of graphs and of their trainings, changed behind right checksums."""

import json
import math

import pytest
import torch
from stored_changes import BROKEN, changed_json, changed_tensors, some, sweep
from test_graph_training import SHAPE, Fragile, Interrupted, fitted, rings

from nsimplex._safetensors import Safetensors, write_safetensors
from nsimplex.graph_command.predicting import load
from nsimplex.graph_command.records import Recipe
from nsimplex.nn import GraphTransformer, HyperSAGNN, MessagePassing, SetToGraph
from nsimplex.nn.graph_checkpoint import FitState, read_checkpoint

#: Changes of a file that are read: those of `make test`, and all of them.
COUNTS = [100, pytest.param(None, marks=pytest.mark.slow)]


class Changes:
    """Changes of the tensors and of the state of a file, written in its place."""

    def __init__(self, path):
        file = Safetensors(path)
        self.path, self.metadata = path, file.metadata
        self.tensors = {name: file.tensor(name) for name in file.names}
        self.state = json.loads(file.metadata["state"])

    def all(self, tensors=True):
        for what, state in [*changed_json(self.state), *((text[:9], text) for text in BROKEN)]:
            yield what, (self.tensors, state)
        if tensors:
            names = "model.x", "optimizer.0.exp", "optimizer.x.y", "optimizer.1.2.3"
            for what, other in changed_tensors(self.tensors, names):
                yield what, (other, self.state)

    def of_states(self, *places):
        """States with another value at a place, which is a list of names with the value."""
        for *names, last, value in places:
            state = json.loads(json.dumps(self.state))
            holder = state
            for name in names:
                holder = holder[name]
            holder[last] = value
            yield f"{names} {last}={value!r}"[:80], (self.tensors, state)

    def write(self, change):
        tensors, state = change
        text = state if isinstance(state, str) else json.dumps(state)
        write_safetensors(self.path, tensors, {**self.metadata, "state": text})

    def refused(self, changes, read):
        changes = list(changes)
        assert sweep(changes, self.write, read, self.path) == (len(changes), len(changes))


def same_tensors(file, own):
    """What is wrong with tensors of a model, if they are those of a file."""
    for name, tensor in own.items():
        if not tensor.equal(file[name]) or tensor.dtype != file[name].dtype:
            return f"tensor {name} is another one"
    return None if file.keys() == own.keys() else "tensors of the file were left out"


STATES = [
    *(("epoch", value) for value in (-1, "3", 2**70, True, None, 1.0)),
    *((name, value) for name in ("best", "better") for value in (-1, 99, "1")),
    *((name, value) for name in ("score", "loss") for value in ("x", None, math.nan, [1.0])),
    ("ended", 1),
    ("__class__", 1),
]


@pytest.mark.parametrize("count", COUNTS)
def test_a_checkpoint_is_read_against_lists_of_names_shapes_and_ranges(
    tmp_path, monkeypatch, count
):
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    with pytest.raises(Interrupted):
        fitted(tmp_path, 7, Fragile)
    changes = Changes(tmp_path / "checkpoint.safetensors")
    model = MessagePassing("graph", "binary", dropout=0.2, kind="gat", heads=2, **SHAPE)
    before = {name: own.clone() for name, own in model.state_dict().items()}
    best = {name: own.clone() for name, own in before.items()}
    optimizer = torch.optim.AdamW(model.parameters())

    def read():
        return read_checkpoint(changes.path, model, best, optimizer, torch.Generator())

    changes.refused(changes.of_states(*STATES), read)
    # Torch takes any place of the next number up to the end, however many numbers are left.
    beyond = {name: changes.tensors[name].clone() for name in ("generator", "default")}
    for state in beyond.values():
        state[8:24] = torch.tensor([112, 2, 0, 0, 1, 0, 0, 0, 112, 2, 0, 0, 0, 0, 0, 0])
    others = [({**changes.tensors, name: own}, changes.state) for name, own in beyond.items()]
    changes.refused(((f"generator {n}", other) for n, other in enumerate(others)), read)
    assert all(own.equal(before[name]) for name, own in model.state_dict().items())

    def taken(what, change, state):
        tensors, told = change
        if json.dumps(vars(state)) != json.dumps(told):
            return f"the state became {state}"
        file = {
            name.removeprefix("model."): own
            for name, own in tensors.items()
            if name.startswith("model.")
        }
        return same_tensors(file, model.state_dict())

    tried, refused = sweep(some(changes.all(), count), changes.write, read, changes.path, taken)
    assert refused > tried / 2
    changes.write((changes.tensors, changes.state))
    assert read() == FitState(**changes.state)


MODELS = {
    "gat": lambda: MessagePassing("graph", "binary", kind="gat", heads=2, **SHAPE),
    "gin": lambda: MessagePassing("node", "classes", outputs=3, random_walk=2, **SHAPE),
    "softmax": lambda: GraphTransformer("graph", "number", heads=2, **SHAPE),
    "mixed": lambda: GraphTransformer(
        "graph", "labels", outputs=2, order=[1, 2, 3], heads=2, virtual_node=True, **SHAPE
    ),
    "kernel": lambda: GraphTransformer(
        "edge", "binary", form="kernel", readout="softmax", laplacian=2, heads=2, **SHAPE
    ),
    "hyper-sagnn": lambda: HyperSAGNN(node_channels=2, width=8, heads=2, head_dim=3),
    "s2g-plus": lambda: SetToGraph(node_channels=2, width=8, query_sizes=[2, 3]),
}
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


def test_options_that_make_no_model_are_refused(tmp_path):
    model = MODELS["gat"]()
    model.save(tmp_path)
    changes = Changes(tmp_path / "model.safetensors")
    places = [("options", *each) for each in OPTIONS]
    places += [("class", ["x"]), ("class", "Module")]
    changes.refused(changes.of_states(*places), lambda: MessagePassing.from_run(tmp_path))
    changes.write((changes.tensors, changes.state))
    read = MessagePassing.from_run(tmp_path)
    assert read.predict(rings(4)).equal(model.predict(rings(4)))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_what_its_file_says_or_refused(tmp_path, name, count):
    model = MODELS[name]()
    model.save(tmp_path)
    changes = Changes(tmp_path / "model.safetensors")

    def taken(what, change, read):
        tensors, state = change
        if "options" not in state or state["class"] != type(model).__name__:
            return "read without its class or its options"
        for option, value in state["options"].items():
            if json.dumps(read.options[option]) != json.dumps(value):
                return f"{option} became {read.options[option]!r}"
        missing = model.options.keys() - state["options"].keys()
        return f"{missing} became defaults" if missing else same_tensors(tensors, read.state_dict())

    tried, refused = sweep(
        some(changes.all(), count and count // 2),
        changes.write,
        lambda: type(model).from_run(tmp_path),
        changes.path,
        taken,
    )
    assert refused > tried / 2


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


@pytest.mark.parametrize("count", COUNTS)
def test_how_data_are_read_is_compared_with_types(tmp_path, count):
    model = MODELS["gat"]()
    recipe = Recipe("graph", ["y"], node_columns=[])
    model.save(tmp_path, data=recipe.to_json())
    changes = Changes(tmp_path / "model.safetensors")

    def read():
        return load(str(tmp_path))

    places = [("data", *each) for each in RECIPES] + [("data", value) for value in ([], None, "x")]
    changes.refused(changes.of_states(*places), read)

    def taken(what, change, read):
        told = change[1].get("data")
        own = read[1].to_json()
        alike = json.dumps(own, sort_keys=True) == json.dumps(told, sort_keys=True)
        return None if alike else f"the recipe became {own}"

    changes_of_data = [each for each in changes.all(tensors=False) if each[0].startswith("data/")]
    sweep(some(changes_of_data, count), changes.write, read, changes.path, taken)
    changes.write((changes.tensors, changes.state))
    assert read()[1].to_json() == recipe.to_json()
