"""The cost of kernel attention, which is said before it begins."""

import re
import warnings

import pytest
import torch

from nsimplex import graph
from nsimplex.nn import GraphTransformer
from nsimplex.nn.graph_cost import kernel_cost


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
    doubled = kernel_cost((own, 2 * a, 2 * b) for own, a, b in uses)
    assert doubled == pytest.approx((2 * operations, 2 * kept))
    # At least the products of the values of all classes, there and back.
    least = sum(2 * m * e.attention.value_weight.numel() for e, m, _ in uses)
    assert operations > 3 * least
