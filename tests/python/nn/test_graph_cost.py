"""The cost of a training step, which is said before it begins."""

import re
import warnings

import pytest
import torch

from nsimplex import graph
from nsimplex.nn import GraphTransformer, graph_transformer
from nsimplex.nn.graph_cost import kernel_cost, softmax_cost


def sparse(nodes):
    rng = torch.Generator().manual_seed(0)
    index = torch.randint(nodes, (2, 5 * nodes), generator=rng)
    return graph.from_edge_index(index, nodes, directions="undirected", duplicates="first")


def model(form="kernel", **options):
    return GraphTransformer("node", width=64, layers=2, symmetry="undirected", form=form, **options)


def said(own, data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own.prepare(data)
    return [str(each.message) for each in caught]


def test_a_large_graph_is_said_to_be_one_before_the_kernel_form_begins():
    data = sparse(20_000)
    tuples = len(graph.with_loops(data.batch).batch)
    (message,) = said(model(), data)
    found = re.fullmatch(
        r"\[GraphTransformer\] data: kernel attention over ([\d,]+) tuples takes at most ([\d,]+) "
        r"billion operations per training step and keeps about ([\d.]+) GB",
        message,
    )
    assert found[1] == f"{tuples:,}" and float(found[2].replace(",", "")) > 100
    assert 0.5 < float(found[3]) < 5
    assert said(model(), sparse(500)) == said(model("softmax", global_classes=False), data) == []


@pytest.mark.parametrize("order", [2, [1, 2], [2, 4]])
def test_the_cost_grows_with_the_tuples_and_counts_every_encoder(order):
    own, data = model(order=order), sparse(40)
    nodes = graph.complete_tuples(data.node_offsets.diff(), 1)
    lists = {1: nodes, 2: graph.with_loops(data.batch).batch, 4: nodes}
    uses = list(own._uses(lists, {1: nodes}))
    encoders = [each for each in own.modules() if type(each).__name__ == "EquivariantEncoder"]
    assert len(uses) == len(encoders)
    operations, kept = kernel_cost(uses)
    doubled = kernel_cost((own, 2 * a, 2 * b, pairs) for own, a, b, pairs in uses)
    assert doubled == pytest.approx((2 * operations, 2 * kept))
    # At least the products of the values of all classes, there and back.
    least = sum(2 * m * e.attention.value_weight.numel() for e, m, *_ in uses)
    assert operations > 3 * least


class Planned(Exception):
    pass


def no_plan(*args, **options):
    raise Planned


def test_softmax_between_all_tuples_is_said_before_it_begins(monkeypatch):
    own, data = model("softmax"), sparse(1500)
    monkeypatch.setattr(graph_transformer, "equivariant_encoder_plan", no_plan)
    tuples = len(graph.with_loops(data.batch).batch)
    pairs = 2 * tuples**2 + tuples * 1500
    with pytest.raises(Planned), pytest.warns(UserWarning) as caught:
        own.prepare(data)
    assert str(caught[0].message) == (
        f"[GraphTransformer] data: softmax attention between all {tuples:,} tuples takes at most "
        f"{12 * 64 * pairs / 1e9:,.0f} billion operations per training step; global_classes=False "
        "leaves out tuples that share no node"
    )
    local = model("softmax", global_classes=False)
    lists = {1: graph.complete_tuples(1500, 1), 2: data.batch}
    assert softmax_cost(local._uses(lists, lists)) == 0


def test_pairs_of_tuples_are_those_of_one_graph():
    own, two = model("softmax"), graph.collate_graphs([sparse(20), sparse(30)])
    costs = []
    for data in (two, *two):
        lists = {1: graph.complete_tuples(data.node_offsets.diff(), 1), 2: data.batch}
        costs.append(softmax_cost(own._uses(lists, lists)))
    assert costs[0] == sum(costs[1:]) > 0
