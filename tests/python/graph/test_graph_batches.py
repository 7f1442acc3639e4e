"""Batches of tuples: checks, limits, joining and splitting."""

import pytest
import torch
from small_graphs import pairs, two_graphs

import nsimplex
from nsimplex import graph


def test_batch_counts_its_parts():
    batch = two_graphs()
    assert (len(batch), batch.order, batch.graphs, batch.nodes) == (6, 2, 2, 7)
    assert graph.tuple_batch(pairs((1, 0)), 5).nodes == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: graph.tuple_batch(pairs((0, 1), (0, 1)), 2),
            "[tuple_batch] tuples: expected every tuple once, got (0, 1)",
        ),
        (
            lambda: graph.tuple_batch(pairs((0, 2)), 2),
            "[tuple_batch] tuples: expected nodes 0 to 1 in graph 0, got 2",
        ),
        (
            lambda: graph.tuple_batch(pairs((1, 0)), 2, symmetry="undirected"),
            "[tuple_batch] tuples: expected ascending",
        ),
        (
            lambda: graph.tuple_batch(pairs((1, 1)), 2, symmetry="loop_free"),
            "[tuple_batch] tuples: expected distinct",
        ),
        (
            lambda: graph.tuple_batch(pairs((1, 1)), 2, symmetry="x"),
            '[tuple_batch] symmetry: expected "ordered"',
        ),
        (
            lambda: graph.tuple_batch(pairs((1, 1)), -1),
            "[tuple_batch] nodes: expected at least 0, got -1",
        ),
        (
            lambda: graph.tuple_batch(pairs((1, 1))),
            "[tuple_batch] expected nodes, or tuple_offsets and node_offsets",
        ),
        (
            lambda: graph.edge_tuples(pairs((0, 1), (1, 0)), 2),
            "[edge_tuples] edges: expected every tuple once, got (0, 1) in rows 0 and 1; edges "
            "that come in both directions want both_directions=False",
        ),
        (
            lambda: graph.edge_tuples(torch.zeros(2, 5, dtype=torch.int64), 2),
            "[edge_tuples] edges: expected shape [E, 2], got [2, 5]: [2, E] is transposed, pass "
            "edges.t()",
        ),
        (
            lambda: graph.node_and_edge_features(
                graph.edge_tuples(pairs((0, 1)), 3), torch.ones(3, 1), torch.ones(1, 1)
            ),
            "[node_and_edge_features] graph: 3 of 3 nodes have no loop to carry their features; "
            "expected one of every node, as edge_tuples(.., loops=True)",
        ),
        (
            lambda: graph.project_tuples(graph.edge_tuples(pairs((0, 1)), 3).batch, 1),
            "[project_tuples] batch: 1 of 3 nodes are in no tuple and would get no row; expected "
            "all_nodes=True",
        ),
        (
            lambda: graph.concatenate_graphs([two_graphs(), graph.tuple_batch(pairs(), 1)]),
            "[concatenate_graphs] batches: expected one symmetry, got ordered, undirected",
        ),
        (lambda: graph.project_tuples(two_graphs(), 3), "[project_tuples] order: expected 0 to 2"),
        (
            lambda: graph.check_features(two_graphs(), torch.full((6, 1), torch.nan)),
            "[features] features: expected finite numbers, got nan in row 0, column 0",
        ),
    ],
)
def test_refuses_what_is_no_batch(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value).split("Exception raised from")[0].strip()


def test_batches_are_taken_apart_and_put_together():
    batch = two_graphs()
    parts = graph.split_graphs(batch)
    assert [part.nodes for part in parts] == [4, 3]
    assert parts[1].tuples.tolist() == [[0, 1], [1, 2]]
    again = graph.concatenate_graphs(parts)
    assert torch.equal(again.tuples, batch.tuples) and torch.equal(
        again.node_offsets, batch.node_offsets
    )


def test_is_reached_from_the_package():
    assert nsimplex.graph is graph


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: graph.complete_tuples(torch.tensor([1]), order=10**6),
            "order: expected 0 to 64, got 1000000",
        ),
        (lambda: graph.complete_tuples(torch.tensor([0]), order=10**12), "order: expected 0 to 64"),
        (
            lambda: graph.complete_tuples(torch.tensor([3000]), order=4),
            "entries in all, got more of order 4",
        ),
        (
            lambda: graph.complete_tuples(torch.tensor([2**62, 2**62]), order=1),
            "nodes: expected at least 0 and at most",
        ),
        (
            lambda: graph.project_tuples(graph.tuple_batch(torch.zeros(1, 200).long(), 1), 199),
            "order: expected 0 to 64",
        ),
        (
            lambda: graph.project_tuples(
                graph.tuple_batch(torch.arange(60)[None], 60), 30, all_nodes=False
            ),
            "entries in all, got more of order 30",
        ),
        (
            lambda: graph.all_orders(
                graph.tuple_batch(torch.arange(14)[None], 14, symmetry="undirected")
            ),
            "entries in all, got more of order 14",
        ),
        (
            lambda: graph.simplices(
                graph.tuple_batch(torch.tensor([[0, 1]]), 2, symmetry="undirected"), 2**32
            ),
            "largest: expected 1 to 64, got 4294967296",
        ),
    ],
)
def test_orders_and_sizes_have_limits(call, words):
    with pytest.raises(ValueError, match=words):
        call()
