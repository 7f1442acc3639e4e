"""Plans and lists of tuples as pytrees: other devices, pickles, DataLoader, compiled and exported
programs that take them as arguments."""

import copy
import io
import pickle

import pytest
import torch
from torch.utils import _pytree
from torch.utils.data import DataLoader

import nsimplex
from nsimplex.graph import collate_graphs, edge_tuples, project_tuples
from nsimplex.nn import EquivariantAttention, EquivariantEncoder, EquivariantLinear

GRAPH = edge_tuples(torch.tensor([[0, 1], [1, 2], [1, 3]]), 4, loops=True).batch
NODES = project_tuples(GRAPH, 1)

RECORDS = {
    "batch": lambda: GRAPH,
    "linear": lambda: nsimplex.equivariant_plan(GRAPH, NODES),
    "attention": lambda: nsimplex.equivariant_attention_plan(GRAPH, NODES, form="kernel"),
    "lightweight encoder": lambda: nsimplex.equivariant_encoder_plan(GRAPH, NODES),
    "pointwise encoder": lambda: nsimplex.equivariant_encoder_plan(GRAPH, NODES, mlp="pointwise"),
}


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def tensors_of(record):
    return [each for each in _pytree.tree_leaves(record) if each is not None]


def assert_same(ours, other):
    assert type(ours) is type(other)
    assert _pytree.tree_structure(ours) == _pytree.tree_structure(other)
    own, others = tensors_of(ours), tensors_of(other)
    assert own and all(isinstance(each, torch.Tensor) for each in own)
    assert len(own) == len(others) and all(map(torch.equal, own, others))


@pytest.fixture(params=RECORDS)
def record(request):
    return RECORDS[request.param]()


def test_leaves_are_tensors_and_the_rest_comes_back(record):
    leaves, spec = _pytree.tree_flatten(record)
    assert_same(_pytree.tree_unflatten(leaves, spec), record)
    assert_same(copy.deepcopy(record), record)
    assert_same(pickle.loads(pickle.dumps(record)), record)


def test_torch_loads_what_it_saved(record):
    file = io.BytesIO()
    torch.save(record, file)
    file.seek(0)
    assert_same(torch.load(file, weights_only=True), record)


def test_the_structure_survives_as_text(record):
    leaves, spec = _pytree.tree_flatten(record)
    again = _pytree.treespec_loads(_pytree.treespec_dumps(spec))
    assert again == spec
    assert_same(_pytree.tree_unflatten(leaves, again), record)


def test_paths_name_the_fields():
    plan = RECORDS["lightweight encoder"]()
    paths = [_pytree.keystr(path) for path, _ in _pytree.tree_flatten_with_path(plan)[0]]
    assert paths[0] == ".attention.tensors[0]" and ".light.tensors[10]" in paths


def test_all_tensors_move_to_another_device(record):
    moved = record.to("meta")
    assert {each.device.type for each in tensors_of(moved)} == {"meta"}
    assert [each.shape for each in tensors_of(moved)] == [each.shape for each in tensors_of(record)]
    assert_same(record.to(torch.device("cpu"), non_blocking=True), record)


def test_all_tensors_are_pinned(record, monkeypatch):
    """On machines without an accelerator, too, on which torch pins nothing."""
    seen = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda own: seen.append(own) or own.clone())
    assert_same(record.pin_memory(), record)
    assert list(map(id, seen)) == list(map(id, tensors_of(record)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_all_tensors_are_in_pinned_memory(record):
    assert all(each.is_pinned() for each in tensors_of(record.pin_memory()))


class Samples(torch.utils.data.Dataset):
    """Graphs of different sizes, each with features of its pairs and a label."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        nodes = 2 + index
        edges = torch.tensor([[i, i + 1] for i in range(nodes - 1)])
        batch = edge_tuples(edges, nodes, loops=True).batch
        return batch, torch.full((len(batch), 3), float(index)), index % 2


def with_plan(samples):
    batch, x, label = collate_graphs(samples)
    return batch, x, label, nsimplex.equivariant_encoder_plan(batch, project_tuples(batch, 0))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_makes_batches_and_plans(workers):
    layer = EquivariantEncoder(2, 0, 3, 4)
    loader = DataLoader(Samples(), batch_size=3, collate_fn=with_plan, num_workers=workers)
    for step, (batch, x, label, plan) in enumerate(loader):
        assert batch.graphs == 3 and x.shape == (len(batch), 3)
        assert label.tolist() == [(3 * step + i) % 2 for i in range(3)]
        together = layer(x, plan)
        for i in range(3):
            own_batch, own_x, _, own_plan = with_plan([Samples()[3 * step + i]])
            assert own_batch.graphs == 1
            torch.testing.assert_close(layer(own_x, own_plan), together[i : i + 1])


def test_samples_of_any_structure():
    sample = {"graph": GRAPH, "x": [draw(len(GRAPH), 2)], "y": torch.tensor(1.0), "name": "a"}
    made = collate_graphs([sample, sample])
    assert made["graph"].graphs == 2 and made["x"][0].shape == (2 * len(GRAPH), 2)
    assert made["y"].tolist() == [1.0, 1.0] and made["name"] == ["a", "a"]
    assert collate_graphs([GRAPH]).graphs == 1


@pytest.mark.parametrize(
    "samples, error, message",
    [
        ([], ValueError, "samples: expected at least one, got none"),
        ([GRAPH, NODES], ValueError, "order"),
        ([(GRAPH, 1), (GRAPH,)], ValueError, "samples: expected samples of one structure"),
        ([{"a": 1}, {"b": 1}], ValueError, "samples: expected samples of one structure"),
        ([draw(2, 3), draw(2, 4)], ValueError, "samples: expected samples of one structure"),
        (
            [edge_tuples(torch.tensor([[0, 1]]), 2)],
            TypeError,
            "samples: expected graphs, tensors, numbers and strings, got DerivedTuples",
        ),
    ],
)
def test_other_samples_are_refused(samples, error, message):
    with pytest.raises(error, match=message):
        collate_graphs(samples)


def encoder():
    return EquivariantEncoder(2, 1, 3, 4, heads=2), ("lightweight encoder",)


def pointwise():
    return EquivariantEncoder(2, 1, 3, 4, mlp="pointwise"), ("pointwise encoder",)


def kernel():
    return EquivariantAttention(2, 1, 3, 4, form="kernel"), ("attention", "light")


def linear():
    return EquivariantLinear(2, 1, 3, 4), ("linear",)


RECORDS_OF_LAYERS = RECORDS | {
    "light": lambda: nsimplex.equivariant_plan(GRAPH, NODES, classes="light")
}


@pytest.fixture(params=[encoder, pointwise, kernel, linear])
def layer_and_arguments(request):
    torch.manual_seed(0)
    layer, names = request.param()
    return layer.eval(), (draw(len(GRAPH), 3), *(RECORDS_OF_LAYERS[name]() for name in names))


def test_compiled_layers_take_plans(layer_and_arguments):
    torch._dynamo.reset()
    layer, (x, *plans) = layer_and_arguments
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x.requires_grad_()
    torch.testing.assert_close(compiled(x, *plans), layer(x, *plans))
    ours, exact = (torch.autograd.grad(f(x, *plans).sum(), x)[0] for f in (compiled, layer))
    torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_layers_take_plans(layer_and_arguments, strict):
    layer, arguments = layer_and_arguments
    program = torch.export.export(layer, arguments, strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    other = (draw(len(GRAPH), 3) + 1, *copy.deepcopy(arguments[1:]))
    for module in (program.module(), loaded.module()):
        for given in (arguments, other):
            torch.testing.assert_close(module(*given), layer(*given))


class Degrees(torch.nn.Module):
    def forward(self, batch: nsimplex.graph.TupleBatch, weight: torch.Tensor) -> torch.Tensor:
        ones = weight.new_ones(batch.tuples.size(0))
        return weight * weight.new_zeros(4).index_add(0, batch.tuples[:, 0], ones)


def test_programs_take_batches():
    weight = draw(4)
    expected = weight * torch.tensor([2.0, 4.0, 2.0, 2.0])
    compiled = torch.compile(Degrees(), fullgraph=True, backend="aot_eager")
    program = torch.export.export(Degrees(), (GRAPH, weight))
    for function in (Degrees(), compiled, program.module()):
        torch.testing.assert_close(function(GRAPH, weight), expected)
