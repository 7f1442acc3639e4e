"""Attention between lists of tuples against its definition."""

import itertools
from dataclasses import replace

import pytest
import torch
from attention_definition import (
    attention_definition,
    attention_weights,
    exponential_features,
    relu_features,
)
from equivariant_definition import draw
from equivariant_lists import KINDS, batch, some_of

from nsimplex import (
    EquivariantAttentionWeights,
    TensorKind,
    equivariant_attention,
    equivariant_attention_classes,
    equivariant_attention_plan,
    orthogonal_directions,
)
from nsimplex.graph import tuple_batch

ORDERS = [(k, l) for k in range(4) for l in range(4) if k >= 1 and k + l <= 5]
HEADS = 2


def directions(dim=2, features=5):
    return orthogonal_directions(
        dim, features, generator=torch.Generator().manual_seed(7), dtype=torch.float64
    )


def test_directions_are_floating():
    with pytest.raises(ValueError, match="dtype: expected a floating dtype, got torch.int64"):
        orthogonal_directions(4, 3, dtype=torch.int64)


def problem(input, output, share=0.7, nodes=(3, 4), **options):
    """Two graphs with some of all tuples, and x and the plan of both."""
    input_graphs = [some_of(input, n, share, seed) for seed, n in enumerate(nodes)]
    output_graphs = [some_of(output, n, share, seed + 5) for seed, n in enumerate(nodes)]
    lists = batch(input, input_graphs, nodes), batch(output, output_graphs, nodes)
    plan = equivariant_attention_plan(
        *lists, input_loops=input.loops, output_loops=output.loops, **options
    )
    return draw(lists[0].tuples.size(0), 3, seed=8), lists, plan


def expected(x, lists, weights, input, output, **options):
    rows, first = [], 0
    for given, wanted in zip(lists[0].lists, lists[1].lists):
        own = x[first : first + len(given)]
        rows.append(
            attention_definition(own, given, wanted, weights, input, output, heads=HEADS, **options)
        )
        first += len(given)
    return torch.cat(rows)


FORMS = {
    "softmax": {"form": "softmax"},
    "kernel": {"form": "kernel"},
    "sums": {"form": "kernel", "normalise": False},
    "decoupled": {"form": "decoupled"},
}


@pytest.mark.parametrize("k, l", ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_is_its_definition(k, l, form):
    input, output, options = TensorKind(k), TensorKind(l), FORMS[form]
    x, lists, plan = problem(input, output, form="kernel", share=0.7 if k + l < 5 else 0.3)
    weights, w = attention_weights(input, output), directions()
    out = equivariant_attention(x, weights, plan, heads=HEADS, directions=w, **options)
    phi = relu_features(w)
    torch.testing.assert_close(out, expected(x, lists, weights, input, output, phi=phi, **options))


@pytest.mark.parametrize("name", [name for name in KINDS if name != "ordered"])
@pytest.mark.parametrize("k, l", [(1, 1), (2, 1), (2, 2), (1, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("form", ["softmax", "kernel", "sums"])
def test_kinds(name, k, l, form):
    input, output, options = KINDS[name](k), KINDS[name](l), FORMS[form]
    x, lists, plan = problem(input, output, form="kernel", share=0.6 if k + l < 5 else 0.3)
    weights, w = attention_weights(input, output), directions()
    out = equivariant_attention(x, weights, plan, heads=HEADS, directions=w, **options)
    phi = relu_features(w)
    torch.testing.assert_close(out, expected(x, lists, weights, input, output, phi=phi, **options))


@pytest.mark.parametrize(
    "scale, features, nodes", [(0.3, 5, (3, 4)), (0.7, 8192, (6,)), (2.0, 64, (7,))]
)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("form", ["kernel", "sums", "decoupled"])
def test_exponential_features(scale, features, nodes, order, form):
    """At any size of queries and keys, for normalised and plain sums: what normalises cancels its
    factor, and nothing else is there."""
    input, output, options = TensorKind(2), TensorKind(order), FORMS[form]
    x, lists, plan = problem(input, output, form="kernel", share=1.0, nodes=nodes)
    weights, w = attention_weights(input, output, scale=scale), directions(features=features)
    out = equivariant_attention(
        x, weights, plan, heads=HEADS, directions=w, features="exponential", **options
    )
    exact = expected(x, lists, weights, input, output, phi=exponential_features(w), **options)
    torch.testing.assert_close(out, exact, rtol=1e-7, atol=1e-9 * exact.abs().max().item())


def test_exponential_features_of_zero_are_one():
    """Two keys without a logit, five features, no normaliser: every query sums 2 x 5."""
    lists = tuple_batch(torch.tensor([[0], [1], [2]]), 3)
    plan = equivariant_attention_plan(lists, lists, form="kernel")
    (own,) = equivariant_attention_classes(1, 1)
    maps = [torch.zeros(n, 1, 1, dtype=torch.float64) for n in (own.query_weights, own.key_weights)]
    none, ones = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, 1, dtype=torch.float64)
    weights = EquivariantAttentionWeights(maps[0], none, maps[1], none, ones, ones)
    out = equivariant_attention(
        torch.ones(3, 1, dtype=torch.float64),
        weights,
        plan,
        directions=directions(1, 5),
        form="kernel",
        features="exponential",
        normalise=False,
    )
    assert out.tolist() == [[10.0]] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_exponential_features_of_long_queries_and_keys_stay_finite(scale, dtype):
    x, _, plan = problem(TensorKind(2), TensorKind(1), form="kernel", share=1.0, nodes=(9,))
    inputs = [t.to(dtype).requires_grad_() for t in (x, *attention_weights(2, 1, scale=scale))]
    out = equivariant_attention(
        inputs[0],
        EquivariantAttentionWeights(*inputs[1:]),
        plan,
        heads=HEADS,
        directions=directions(features=9).to(dtype),
        form="kernel",
        features="exponential",
    )
    assert out.isfinite().all()
    assert all(slope.isfinite().all() for slope in torch.autograd.grad(out.sum(), inputs))


@pytest.mark.parametrize("options", [{"keys": "node"}, {"global_classes": False}])
def test_fewer_classes(options):
    input = TensorKind(2)
    x, lists, plan = problem(input, input, **options)
    weights = attention_weights(input, input, **options)
    out = equivariant_attention(x, weights, plan, heads=HEADS)
    torch.testing.assert_close(out, expected(x, lists, weights, input, input, **options))


def large_graph(nodes=40, links=300):
    """A hub and random edges: groups far beyond those that are visited pair by pair."""
    generator = torch.Generator().manual_seed(3)
    drawn = {tuple(e) for e in torch.randint(0, nodes, (links, 2), generator=generator).tolist()}
    edges = sorted(drawn | {(0, i) for i in range(nodes)} | {(i, 0) for i in range(nodes)})
    return tuple_batch(torch.tensor(edges), nodes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", [1, 2])
def test_kernels_of_large_groups(form, order):
    graph = large_graph()
    target = graph if order == 2 else tuple_batch(torch.arange(40)[:, None], 40)
    plan = equivariant_attention_plan(graph, target, form="kernel")
    weights, w = attention_weights(2, order), directions()
    x = draw(len(graph.tuples), 3, seed=1)
    own = dict(heads=HEADS, directions=w, **FORMS[form])
    out = equivariant_attention(x, weights, plan, **own)
    arguments = (
        x,
        *weights,
        w,
        plan.tensors,
        plan.parts,
        HEADS,
        own["form"],
        own.get("normalise", True),
    )
    torch.testing.assert_close(out, torch.ops.nsimplex.equivariant_attention_reference(*arguments))


def test_tables_of_whole_graphs():
    # More pairs than one task sums: the table of all is made once, and the tables of nodes take it
    # over.
    nodes = 66
    pairs = torch.cartesian_prod(torch.arange(nodes), torch.arange(nodes))
    graph = tuple_batch(pairs[pairs[:, 0] != pairs[:, 1]], nodes)
    plan = equivariant_attention_plan(graph, graph, form="kernel")
    weights, w = attention_weights(2, 2, dim=1, value_dim=1, out=2), directions(dim=1, features=1)
    x = draw(len(graph.tuples), 3, seed=1).requires_grad_()

    def apply(x):
        return equivariant_attention(x, weights, plan, heads=HEADS, directions=w, form="kernel")

    out = apply(x)
    arguments = (x.detach(), *weights, w, plan.tensors, plan.parts, HEADS, "kernel")
    torch.testing.assert_close(out, torch.ops.nsimplex.equivariant_attention_reference(*arguments))
    direction, of_out = draw(*x.shape, seed=2), draw(*out.shape, seed=3)
    (grad,) = torch.autograd.grad((out * of_out).sum(), x)
    step = 1e-6
    with torch.no_grad():
        slope = ((apply(x + step * direction) - apply(x - step * direction)) * of_out).sum() / (
            2 * step
        )
    torch.testing.assert_close((grad * direction).sum(), slope, rtol=1e-5, atol=0)


def test_float32_within_a_hundred_thousandth():
    graph = large_graph()
    plan = equivariant_attention_plan(graph, graph, form="kernel")
    weights, w = attention_weights(2, 2), directions()
    x = draw(len(graph.tuples), 3, seed=1)
    wide = equivariant_attention(x, weights, plan, heads=HEADS, directions=w, form="kernel")
    narrow = equivariant_attention(
        x.float(),
        type(weights)(*(t.float() for t in weights)),
        plan,
        heads=HEADS,
        directions=w.float(),
        form="kernel",
    )
    assert (narrow - wide).norm() <= 1e-5 * wide.norm()


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_large_groups(form):
    graph = large_graph()
    plan = equivariant_attention_plan(graph, graph, form="kernel")
    w = directions()
    own = FORMS[form]
    inputs = [
        t.requires_grad_() for t in (draw(len(graph.tuples), 3, seed=1), *attention_weights(2, 2))
    ]
    cotangent = draw(len(graph.tuples), 2, seed=9)
    arguments = (
        *inputs,
        w,
        plan.tensors,
        plan.parts,
        HEADS,
        own["form"],
        own.get("normalise", True),
    )
    grads = [
        torch.autograd.grad((op(*arguments) * cotangent).sum(), inputs)
        for op in (
            torch.ops.nsimplex.equivariant_attention,
            torch.ops.nsimplex.equivariant_attention_reference,
        )
    ]
    for got, wanted in zip(*grads):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("nodes, links", [(2, 1), (20, 60), (120, 6000)])
@pytest.mark.parametrize("form", FORMS)
def test_bits_do_not_depend_on_threads(form, nodes, links, dtype, same_bits):
    graph = large_graph(nodes, links)
    plan = equivariant_attention_plan(graph, graph, form="kernel")
    weights, w = attention_weights(2, 2, dtype=dtype), directions().to(dtype)
    inputs = [
        t.requires_grad_() for t in (draw(len(graph.tuples), 3, seed=1, dtype=dtype), *weights)
    ]

    def call():
        out = equivariant_attention(
            inputs[0], type(weights)(*inputs[1:]), plan, heads=HEADS, directions=w, **FORMS[form]
        )
        return out.detach(), *torch.autograd.grad(out.square().sum(), inputs)

    same_bits(call)


def test_renumbering_nodes_renumbers_the_output():
    for input, output in itertools.product((TensorKind(2), TensorKind(2, "undirected")), repeat=2):
        x, lists, plan = problem(input, output, nodes=(5,))
        weights = attention_weights(input, output)
        out = equivariant_attention(x, weights, plan, heads=HEADS)
        order = [3, 0, 4, 1, 2]

        def renamed(kind, tuples):
            rows = [tuple(order[n] for n in t) for t in tuples]
            return [tuple(sorted(t)) for t in rows] if kind.symmetry == "undirected" else rows

        moved = [
            batch(kind, [renamed(kind, own.lists[0])], (5,))
            for kind, own in zip((input, output), lists)
        ]
        again = equivariant_attention(x, weights, equivariant_attention_plan(*moved), heads=HEADS)
        torch.testing.assert_close(again, out)


def test_no_admissible_key_gives_zero():
    lonely = tuple_batch(torch.tensor([[0, 0]]), 2)  # a loop: no other node, no edge
    nodes = tuple_batch(torch.tensor([[0], [1]]), 2)
    w = directions()
    for form in ("softmax", "kernel"):
        plan = equivariant_attention_plan(lonely, nodes, form="kernel")
        weights = attention_weights(2, 1)
        x = draw(1, 3).requires_grad_()
        out = equivariant_attention(x, weights, plan, heads=HEADS, directions=w, form=form)
        assert torch.equal(
            out[0], torch.zeros(2, dtype=torch.float64)
        )  # node 0 sees itself through light classes
        assert out[1].abs().sum() > 0  # node 1 sees the loop of the other
        out[0].sum().backward()
        assert torch.equal(x.grad, torch.zeros_like(x))


def test_empty_lists():
    none = tuple_batch(torch.zeros(0, 2, dtype=torch.int64), 0)
    plan = equivariant_attention_plan(none, none, form="kernel")
    for form in ("softmax", "kernel"):
        out = equivariant_attention(
            draw(0, 3),
            attention_weights(2, 2),
            plan,
            heads=HEADS,
            directions=directions(),
            form=form,
        )
        assert out.shape == (0, 2)


def test_nan_spreads_only_to_what_sees_it():
    graph = tuple_batch(torch.tensor([[0], [1], [2], [3]]), 4)
    plan = equivariant_attention_plan(graph, graph)
    x = draw(4, 3)
    x[2] = torch.nan
    out = equivariant_attention(x, attention_weights(1, 1), plan, heads=HEADS)
    assert out.isnan().any(1).tolist() == [True] * 4
    pairs = tuple_batch(torch.tensor([[0, 1], [2, 3]]), 4)
    local = equivariant_attention_plan(pairs, pairs, global_classes=False)
    out = equivariant_attention(
        draw(2, 3).index_fill_(0, torch.tensor([1]), torch.nan),
        attention_weights(2, 2, global_classes=False),
        local,
        heads=HEADS,
    )
    assert not out[0].isnan().any()


BAD = {
    "plan: expected one of form kernel": lambda a: a.update(form="kernel", directions=directions()),
    "directions: expected": lambda a: a.update(form="decoupled"),
    "directions: expected fixed ones": lambda a: a.update(
        form="kernel", directions=directions().requires_grad_()
    ),
    "heads: expected": lambda a: a.update(heads=0),
    "form: expected one of": lambda a: a.update(form="hard"),
    "normalise: expected true": lambda a: a.update(normalise=False),
    "features: expected one of": lambda a: a.update(features="cosine"),
    "x: expected": lambda a: a.update(x=a["x"][0]),
    "x: expected a floating": lambda a: a.update(x=a["x"].long()),
    "query: expected": lambda a: a.update(
        weights=a["weights"]._replace(query=a["weights"].query[1:])
    ),
    "key_bias: expected": lambda a: a.update(
        weights=a["weights"]._replace(key_bias=a["weights"].key_bias[1:])
    ),
    "output: expected": lambda a: a.update(
        weights=a["weights"]._replace(output=a["weights"].output.float())
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message):
    x, _, plan = problem(TensorKind(1), TensorKind(1))
    arguments = dict(x=x, weights=attention_weights(1, 1), plan=plan, heads=HEADS)
    BAD[message](arguments)
    with pytest.raises((ValueError, TypeError), match=message):
        equivariant_attention(**arguments)


def test_operators_refuse_the_kernel_form_of_a_softmax_plan():
    """It lacks the tables, without which groups of more than 32 keys would count as empty."""
    x, _, plan = problem(TensorKind(1), TensorKind(1))
    rest = (*attention_weights(1, 1), directions(), plan.tensors, plan.parts, HEADS, "kernel")
    for name in ("equivariant_attention", "equivariant_attention_reference"):
        with pytest.raises(ValueError, match="plan: expected one of form kernel"):
            getattr(torch.ops.nsimplex, name)(x, *rest)


def test_lists_over_other_nodes():
    one, other = tuple_batch(torch.tensor([[0]]), 1), tuple_batch(torch.tensor([[0]]), 2)
    with pytest.raises(ValueError, match="output: expected the nodes of the input"):
        equivariant_attention_plan(one, other)


def test_a_plan_that_was_changed_is_refused():
    """The kernels follow the numbers of a plan without a look: any other number, size or dtype is
    found before."""
    x, _, plan = problem(TensorKind(2), TensorKind(2))
    weights = attention_weights(TensorKind(2), TensorKind(2))
    equivariant_attention(x, weights, plan, heads=HEADS)
    for t, tensor in enumerate(plan.tensors):
        if tensor.numel() == 0:
            continue
        other = tensor.clone()
        other.view(-1)[-1] += 1
        for changed in (other, tensor.flatten()[:-1], tensor.to(torch.int16)):
            own = replace(plan, tensors=[*plan.tensors[:t], changed, *plan.tensors[t + 1 :]])
            with pytest.raises(
                ValueError, match="plan: expected the tensors of an equivariant_attention_plan"
            ):
                equivariant_attention(x, weights, own, heads=HEADS)
    for p in range(len(plan.parts)):
        own = replace(plan, parts=[*plan.parts[:p], plan.parts[p] + 1, *plan.parts[p + 1 :]])
        with pytest.raises(ValueError, match="plan: expected the tensors"):
            equivariant_attention(x, weights, own, heads=HEADS)
