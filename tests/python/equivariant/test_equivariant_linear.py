"""The dense equivariant linear layer: its definition, equivariance and padding."""

import pytest
import torch
from equivariant_definition import as_kind, dense_definition, draw, symmetrized
from equivariant_lists import KINDS

from nsimplex import TensorKind, equivariant_classes, equivariant_linear

ORDERS = [(k, l) for k in range(8) for l in range(8 - k)]
SMALL = [(k, l) for k, l in ORDERS if k + l <= 4]


def problem(
    input, output, nodes, *, classes="all", batch=2, channels=2, out=3, dtype=torch.float64
):
    input, output = as_kind(input), as_kind(output)
    x = draw(batch, *[nodes] * input.order, channels, seed=1)
    if input.symmetry == "undirected":
        x = symmetrized(x, input.order)
    weight = draw(len(equivariant_classes(input, output, classes)), channels, out, seed=2)
    bias = draw(len(equivariant_classes(0, output)), out, seed=3)
    return [t.to(dtype) for t in (x, weight, bias)]


def expect_definition(input, output, nodes, **options):
    x, weight, bias = problem(input, output, nodes, classes=options.get("classes", "all"), batch=1)
    ours = equivariant_linear(x, weight, bias, input=input, output=output, nodes=nodes, **options)
    exact = dense_definition(x[0], weight, bias, input, output, nodes=nodes, **options)
    torch.testing.assert_close(ours[0], exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_definition(k, l, pooling):
    expect_definition(k, l, {7: 2, 6: 3, 5: 4}.get(k + l, 5), pooling=pooling)


@pytest.mark.parametrize("k, l", SMALL + [(3, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("inputs", KINDS)
@pytest.mark.parametrize("outputs", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_definition_of_every_kind(k, l, inputs, outputs, pooling):
    expect_definition(KINDS[inputs](k), KINDS[outputs](l), 3 if k + l > 4 else 4, pooling=pooling)


@pytest.mark.parametrize("k, l", SMALL + [(3, 3), (4, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_definition_of_light_layers(k, l, kind):
    expect_definition(KINDS[kind](k), KINDS[kind](l), 2 if k + l > 6 else 3, classes="light")


@pytest.mark.parametrize("nodes", [0, 1, 2, 3])
@pytest.mark.parametrize("k, l", [(1, 1), (2, 2), (1, 2), (2, 1), (2, 0), (3, 2), (0, 2)])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_fewer_nodes_than_indices(k, l, nodes, pooling):
    """Classes that need more nodes than there are contribute nothing, and their mean is not 0 /
    0."""
    expect_definition(k, l, nodes, pooling=pooling)


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_equivariance(k, l, kind, pooling):
    nodes = 3 if k + l > 5 else 5
    input, output = KINDS[kind](k), KINDS[kind](l)
    x, weight, bias = problem(input, output, nodes)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(7))

    def permuted(t, axes):
        for axis in range(1, axes + 1):
            t = t.index_select(axis, order)
        return t

    layer = lambda t: equivariant_linear(
        t, weight, bias, input=input, output=output, pooling=pooling, nodes=nodes
    )
    torch.testing.assert_close(layer(permuted(x, k)), permuted(layer(x), l), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("k, l", [(1, 1), (2, 2), (3, 1), (1, 3), (2, 0), (0, 2)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_padded_graphs_are_those_alone(k, l, kind, pooling):
    input, output = KINDS[kind](k), KINDS[kind](l)
    counts = torch.tensor([3, 0, 5, 1])
    x, weight, bias = problem(input, output, 5, batch=4)
    options = {"input": input, "output": output, "pooling": pooling}
    for b, count in enumerate(counts.tolist()):  # what is padding must not be read
        for axis in range(k):
            x[b].narrow(axis, count, 5 - count).fill_(float("nan"))
    padded = equivariant_linear(x, weight, bias, node_counts=counts, nodes=5, **options)
    for b, count in enumerate(counts.tolist()):
        inside = (b, *[slice(count)] * k)
        alone = equivariant_linear(x[inside].unsqueeze(0), weight, bias, nodes=count, **options)
        expected = torch.zeros_like(padded[b])
        expected[(*[slice(count)] * l,)] = alone[0]
        torch.testing.assert_close(padded[b], expected)


def test_loop_free_reads_no_loop():
    x, weight, bias = problem(2, 2, 4)
    kind = TensorKind(2, "loop_free")
    weight, bias = weight[: len(equivariant_classes(kind, kind))], bias[:1]
    x.diagonal(dim1=1, dim2=2).fill_(float("nan"))
    y = equivariant_linear(x, weight, bias, input=kind, output=kind)
    assert y.isfinite().all() and not y.diagonal(dim1=1, dim2=2).any()


@pytest.mark.parametrize("k, l", [(2, 2), (3, 1), (3, 3)])
def test_float32_is_near_float64(k, l):
    x, weight, bias = problem(k, l, 8)
    exact = equivariant_linear(x, weight, bias, input=k, output=l)
    ours = equivariant_linear(*(t.float() for t in (x, weight, bias)), input=k, output=l)
    assert ours.dtype == torch.float32
    assert (ours - exact).norm() <= 1e-5 * exact.norm()


def test_deepsets():
    """The classes of 1 -> 1 are the node itself and the mean of the others (equation 4 of the
    paper)."""
    x, weight, bias = problem(1, 1, 6)
    others = (x.sum(1, keepdim=True) - x) / 5
    expected = x @ weight[0] + others @ weight[1] + bias
    torch.testing.assert_close(equivariant_linear(x, weight, bias, input=1, output=1), expected)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"x": draw(2, 3, 4, 2)}, "x: expected equal axes"),
        ({"x": draw(2, 3, 2)}, "x: expected [B, 2 axes of nodes, C]"),
        ({"x": torch.ones(1, 3, 3, 2, dtype=torch.int64)}, "x: expected a floating dtype"),
        (
            {"weight": draw(14, 2, 3)},
            "weight: expected [15 classes, 2 channels, D], got [14, 2, 3]",
        ),
        ({"weight": draw(15, 2, 3).float()}, "weight: expected"),
        ({"bias": draw(1, 3)}, "bias: expected [2 classes, 3], got [1, 3]"),
        ({"node_counts": torch.ones(3, dtype=torch.int64)}, "node_counts: expected integers [2]"),
        (
            {"node_counts": torch.tensor([2, 4])},
            "node_counts: expected 0 to 3, the nodes of x, got",
        ),
        ({"node_counts": torch.tensor([-1, 3])}, "node_counts: expected 0 to 3, the nodes of x"),
        ({"nodes": 4}, "nodes: expected 3"),
        ({"input": 0, "x": draw(2, 2), "weight": draw(2, 2, 3)}, "nodes: expected how many"),
        ({"pooling": "max"}, "pooling: expected one of sum, mean, got max"),
    ],
)
def test_errors(change, words):
    x, weight, bias = problem(2, 2, 3)
    arguments = {"x": x, "weight": weight, "bias": bias, "input": 2, "output": 2} | change
    with pytest.raises((ValueError, TypeError), match="equivariant_linear") as error:
        equivariant_linear(**arguments)
    assert words in str(error.value)
