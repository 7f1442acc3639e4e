"""Equivariant layers on lists of tuples: the definition, the dense layer, derivatives, hostile
lists."""

import pytest
import torch
from equivariant_definition import draw, orders_of, sparse_definition, stored
from equivariant_lists import KINDS, batch, some_of, weights

from nsimplex import (
    TensorKind,
    equivariant_classes,
    equivariant_linear,
    equivariant_linear_sparse,
    equivariant_plan,
)
from nsimplex.graph import TupleBatch

ORDERS = [(k, l) for k in range(8) for l in range(8 - k)]
SMALL = [(k, l) for k, l in ORDERS if k + l <= 4]


def plan_of(input, output, input_lists, output_lists, classes="all"):
    return equivariant_plan(
        input_lists,
        output_lists,
        classes=classes,
        input_loops=input.loops,
        output_loops=output.loops,
    )


def problem(input, output, nodes, share=0.6, classes="all"):
    """Two batches over the same graphs, features, weights, and the plan."""
    lists = [
        batch(kind, [some_of(kind, n, share, seed=seed + g) for g, n in enumerate(nodes)], nodes)
        for seed, kind in enumerate((input, output))
    ]
    x = draw(lists[0].tuples.size(0), 2, seed=1)
    return (
        x,
        *weights(input, output, classes=classes),
        plan_of(input, output, *lists, classes=classes),
        lists,
    )


def expect_definition(input, output, nodes, pooling="mean", classes="all", share=0.6):
    x, weight, bias, plan, (inputs, outputs) = problem(input, output, nodes, share, classes)
    ours = equivariant_linear_sparse(x, weight, bias, plan, pooling=pooling)
    rows = x.split([len(g) for g in inputs.lists])
    exact = torch.cat(
        [
            sparse_definition(own, i, j, weight, bias, input, output, classes, pooling)
            for own, i, j in zip(rows, inputs.lists, outputs.lists)
        ]
    )
    torch.testing.assert_close(ours, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_definition(k, l, pooling):
    expect_definition(
        TensorKind(k), TensorKind(l), {7: [2, 2], 6: [3], 5: [3, 2]}.get(k + l, [4, 1, 3]), pooling
    )


@pytest.mark.parametrize("k, l", SMALL + [(3, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("inputs", KINDS)
@pytest.mark.parametrize("outputs", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_definition_of_every_kind(k, l, inputs, outputs, pooling):
    expect_definition(KINDS[inputs](k), KINDS[outputs](l), [3] if k + l > 4 else [4, 2], pooling)


@pytest.mark.parametrize("k, l", SMALL + [(3, 3), (4, 3), (4, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_definition_of_light_layers(k, l, kind):
    expect_definition(KINDS[kind](k), KINDS[kind](l), [2] if k + l > 6 else [3, 2], classes="light")


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_complete_lists_are_dense_tensors(k, l, kind, pooling):
    input, output = KINDS[kind](k), KINDS[kind](l)
    nodes = {7: 2, 6: 3, 5: 3}.get(k + l, 4)
    lists = [batch(each, [stored(each, nodes)], [nodes]) for each in (input, output)]
    weight, bias = weights(input, output)
    rows = draw(lists[0].tuples.size(0), 2, seed=1)
    x = torch.zeros(1, *[nodes] * k, 2, dtype=torch.float64)
    for row, each in zip(rows, lists[0].lists[0]):
        for place in orders_of(input, each):
            x[(0, *place)] = row
    dense = equivariant_linear(
        x, weight, bias, input=input, output=output, pooling=pooling, nodes=nodes
    )
    sparse = equivariant_linear_sparse(
        rows, weight, bias, plan_of(input, output, *lists), pooling=pooling
    )
    expected = [dense[(0, *each)] for each in lists[1].lists[0]]
    torch.testing.assert_close(
        sparse, torch.stack(expected) if expected else sparse, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("k, l", [(2, 2), (2, 1), (3, 2), (3, 3)])
def test_undirected_is_ordered_with_tied_weights(k, l):
    """On the list that has every hyperedge in all its orders, with the weight of a class for its
    members."""
    undirected = [TensorKind(order, "undirected") for order in (k, l)]
    x, weight, bias, plan, (inputs, outputs) = problem(*undirected, [4, 3])
    ours = equivariant_linear_sparse(x, weight, bias, plan, pooling="sum")
    ordered = [TensorKind(order) for order in (k, l)]
    every = [
        batch(kind, [[o for t in g for o in orders_of(u, t)] for g in lists.lists], [4, 3])
        for kind, u, lists in zip(ordered, undirected, (inputs, outputs))
    ]
    number = {m: c for c, each in enumerate(plan.class_list()) for m in each.members}
    tied_plan = plan_of(*ordered, *every)
    tied = weight[[number[each.members[0]] for each in tied_plan.class_list()]]
    biases = {
        m: c for c, each in enumerate(equivariant_classes(0, undirected[1])) for m in each.members
    }
    tied_bias = bias[[biases[each.members[0]] for each in equivariant_classes(0, l)]]
    copies = torch.tensor([len(orders_of(undirected[0], t)) for g in inputs.lists for t in g])
    wide = equivariant_linear_sparse(
        x.repeat_interleave(copies, 0), tied, tied_bias, tied_plan, pooling="sum"
    )
    copies = torch.tensor([len(orders_of(undirected[1], t)) for g in outputs.lists for t in g])
    torch.testing.assert_close(wide, ours.repeat_interleave(copies, 0), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("k, l", SMALL + [(3, 3)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_equivariance(k, l, kind, pooling):
    """Renaming nodes and listing the tuples anew changes the order of the rows alone."""
    input, output = KINDS[kind](k), KINDS[kind](l)
    nodes = [4, 3]
    x, weight, bias, plan, lists = problem(input, output, nodes)
    names = [[2, 0, 3, 1], [1, 2, 0]]
    renamed, orders = [], []
    for each, tensor in zip((input, output), lists):
        sort = sorted if each.symmetry == "undirected" else list
        graphs = [
            [tuple(sort(name[n] for n in t)) for t in g] for name, g in zip(names, tensor.lists)
        ]
        shuffled = [g[::-1] for g in graphs]
        starts = tensor.tuple_offsets.tolist()
        orders.append([i for g in range(2) for i in reversed(range(starts[g], starts[g + 1]))])
        renamed.append(batch(each, shuffled, nodes))
    ours = equivariant_linear_sparse(x, weight, bias, plan, pooling=pooling)
    other_plan = plan_of(input, output, *renamed)
    other = equivariant_linear_sparse(x[orders[0]], weight, bias, other_plan, pooling=pooling)
    torch.testing.assert_close(other, ours[orders[1]], rtol=1e-11, atol=1e-11)


def graph_lists(order, graphs, nodes):
    return batch(TensorKind(order), graphs, nodes)


def test_empty_graphs_isolated_nodes_and_no_graphs():
    edges = graph_lists(2, [[], [(0, 1), (1, 0), (2, 2)], [], [(0, 0)]], [0, 4, 2, 1])
    nodes = graph_lists(1, [[(i,) for i in range(n)] for n in (0, 4, 2, 1)], [0, 4, 2, 1])
    kinds = TensorKind(2), TensorKind(1)
    weight, bias = weights(*kinds)
    x = draw(4, 2, seed=1).requires_grad_()
    out = equivariant_linear_sparse(x, weight, bias, plan_of(*kinds, edges, nodes))
    assert out.shape == (7, 3) and out.isfinite().all()
    # Graph 2 has nodes and no edge: its rows are the bias.
    torch.testing.assert_close(out[4:6], bias[0].expand(2, -1))
    out.sum().backward()
    assert x.grad.isfinite().all()

    nothing = graph_lists(2, [], [])
    empty = equivariant_linear_sparse(
        x[:0], weights(2, 2)[0], None, plan_of(kinds[0], kinds[0], nothing, nothing)
    )
    assert empty.shape == (0, 3)
    no_input = graph_lists(2, [[], [], [], []], [0, 4, 2, 1])
    out = equivariant_linear_sparse(x[:0], weight, bias, plan_of(*kinds, no_input, nodes))
    torch.testing.assert_close(out, bias[0].expand(7, -1))


def test_a_class_without_tuples_is_zero_and_not_nan():
    """A star: for the leaves of a hub no edge avoids the hub."""
    star = [(0, i) for i in range(1, 6)] + [(i, 0) for i in range(1, 6)]
    lists = graph_lists(2, [star], [6])
    kind = TensorKind(2)
    plan = plan_of(kind, kind, lists, lists)
    numbers = [c.name for c in plan.class_list()]
    weight = torch.zeros(15, 1, 1, dtype=torch.float64)
    weight[numbers.index("{i1}{i2}{j1}{j2}")] = 1
    x = (1e8 * draw(10, 1, seed=4)).requires_grad_()
    out = equivariant_linear_sparse(x, weight, None, plan)
    assert not out.any()
    assert not torch.autograd.grad(out.sum(), x)[0].any()


def test_hubs_do_not_cost_digits():
    """A few tuples left of very many: what is subtracted is summed in float64."""
    leaves = 3000
    tuples = [(0, i) for i in range(1, leaves)] + [(leaves, leaves + 1), (leaves + 1, leaves)]
    lists = graph_lists(2, [tuples], [leaves + 2])
    kind = TensorKind(2)
    plan = plan_of(kind, kind, lists, lists)
    weight, _ = weights(kind, kind)
    x = 1 + draw(len(tuples), 2, seed=5)
    exact = equivariant_linear_sparse(x, weight, None, plan)
    ours = equivariant_linear_sparse(x.float(), weight.float(), None, plan)
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype, error", [(torch.float32, 2e-6), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)]
)
def test_dtypes_and_strides(dtype, error):
    x, weight, bias, plan, _ = problem(TensorKind(2), TensorKind(2), [9, 7])
    low = [t.to(dtype).requires_grad_() for t in (x, weight, bias)]
    high = [t.detach().double().requires_grad_() for t in low]
    ours, exact = equivariant_linear_sparse(*low, plan), equivariant_linear_sparse(*high, plan)
    assert ours.dtype == dtype
    assert (ours.double() - exact).norm() <= error * exact.norm()
    grads = [torch.autograd.grad(out.sin().sum(), t) for out, t in ((ours, low), (exact, high))]
    for a, b in zip(*grads):
        assert a.dtype == dtype and (a.double() - b).norm() <= 3 * error * b.norm()
    view = x.repeat_interleave(2, 1)[:, ::2]
    whole = equivariant_linear_sparse(x, weight, bias, plan)
    torch.testing.assert_close(
        equivariant_linear_sparse(view, weight, bias, plan), whole, rtol=0, atol=0
    )


@pytest.mark.parametrize(
    "change, words",
    [
        ({"x": draw(3, 2)}, "expected ["),
        ({"x": torch.ones(3, 2, dtype=torch.int64)}, "expected"),
        ({"weight": draw(14, 2, 3)}, "weight: expected 15 classes, got 14"),
        ({"weight": draw(15, 3, 3)}, "weight: expected [classes, 2 channels, D]"),
        ({"bias": draw(1, 3)}, "bias: expected 2 classes, got 1"),
        ({"bias": draw(2, 4)}, "bias: expected [classes, 3]"),
        ({"pooling": "max"}, "pooling: expected one of sum, mean"),
    ],
)
def test_errors(change, words):
    x, weight, bias, plan, _ = problem(TensorKind(2), TensorKind(2), [4, 3])
    arguments = {"x": x, "weight": weight, "bias": bias, "plan": plan} | change
    with pytest.raises((ValueError, TypeError)) as error:
        equivariant_linear_sparse(**arguments)
    assert words in str(error.value)


def test_plan_errors():
    def batch_of(kind, graphs, nodes):
        lists = batch(kind, graphs, nodes)
        return TupleBatch(lists.tuples, lists.tuple_offsets, lists.node_offsets, lists.symmetry)

    kind = TensorKind(2, "undirected", loops=False)
    loop, other = batch_of(kind, [[(0, 1), (1, 1)]], [3]), batch_of(kind, [[(0, 1)]], [2])
    with pytest.raises(
        ValueError, match="input: expected no hyperedge with a repeated node, got one in row 1"
    ):
        plan_of(kind, TensorKind(2, "undirected"), loop, loop)
    with pytest.raises(ValueError, match="expected the nodes of the input"):
        plan_of(TensorKind(2, "undirected"), kind, loop, other)
    twice = batch_of(TensorKind(2), [[(0, 1), (0, 1)]], [2])
    with pytest.raises(ValueError, match="tuples"):
        plan_of(TensorKind(2), TensorKind(2), twice, twice)
    wide = batch_of(TensorKind(4), [[(0, 1, 1, 0)]], [2])
    with pytest.raises(ValueError, match="k \\+ l <= 7"):
        plan_of(TensorKind(4), TensorKind(4), wide, wide)
