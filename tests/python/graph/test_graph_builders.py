"""Batches made from edges, from other batches, from random numbers and from points."""

import itertools

import pytest
import torch
from small_graphs import pairs, two_graphs
from torch._subclasses.fake_tensor import FakeTensorMode

from nsimplex import graph


@pytest.fixture(autouse=True)
def one_seed():
    torch.manual_seed(0)


def test_edges_carry_their_features():
    edges = pairs((2, 0), (0, 1))
    made = graph.edge_tuples(edges, 4, loops=True)
    assert made.batch.tuples.tolist() == [
        [0, 0],
        [0, 1],
        [0, 2],
        [1, 0],
        [1, 1],
        [2, 0],
        [2, 2],
        [3, 3],
    ]
    nodes = torch.randn(4, 2, dtype=torch.float64)
    features = torch.randn(2, 3, dtype=torch.float64)
    mixed = graph.node_and_edge_features(made, nodes, features)
    for row, (i, j) in enumerate(made.batch.tuples.tolist()):
        own = nodes[i] if i == j else torch.zeros(2)
        edge = features[[{2, 0}, {0, 1}].index({i, j})] if i != j else torch.zeros(3)
        assert torch.equal(mixed[row], torch.cat([own.double(), edge.double()]))


def test_hyperedges_carry_features_too():
    made = graph.with_loops(graph.tuple_batch(torch.tensor([[0, 1, 2], [1, 3, 2]]), 4))
    nodes, edges = torch.arange(4.0).view(4, 1) + 1, torch.tensor([[10.0], [20.0]])
    rows = zip(
        made.batch.tuples.tolist(), graph.node_and_edge_features(made, nodes, edges).tolist()
    )
    for (i, *rest), (of_node, of_edge) in rows:
        assert (of_node, of_edge) == ((i + 1, 0) if {i} == set(rest) else (0, 10 if i == 0 else 20))


def test_every_node_has_its_row_on_request():
    batch = graph.tuple_batch(
        pairs((0, 1), (5, 6)),
        tuple_offsets=torch.tensor([0, 1, 2]),
        node_offsets=torch.tensor([0, 3, 7]),
    )
    nodes = graph.project_tuples(batch, 1, all_nodes=True)
    assert nodes.tuples.flatten().tolist() == list(range(7)) and nodes.tuple_offsets.tolist() == [
        0,
        3,
        7,
    ]
    assert graph.project_tuples(batch, 1, all_nodes=False).tuples.flatten().tolist() == [0, 1, 5, 6]
    graph.tuple_batch(
        nodes.tuples, tuple_offsets=nodes.tuple_offsets, node_offsets=nodes.node_offsets
    )


def test_complete_tuples():
    assert graph.complete_tuples(3, 2).tuples.tolist() == [
        list(t) for t in itertools.product(range(3), repeat=2)
    ]
    free = graph.complete_tuples([3, 1], 2, symmetry="loop_free")
    assert free.tuples.tolist() == [list(t) for t in itertools.permutations(range(3), 2)]
    assert free.node_offsets.tolist() == [0, 3, 4]
    sets = graph.complete_tuples(torch.tensor([4]), 3, symmetry="undirected", loops=False)
    assert sets.tuples.tolist() == [list(t) for t in itertools.combinations(range(4), 3)]


def test_loops_orders_and_projections():
    batch = two_graphs()
    loops = graph.with_loops(batch)
    assert len(loops.batch) == len(batch) + batch.nodes
    assert torch.equal(loops.batch.tuples[loops.origin >= 0], batch.tuples)
    assert torch.equal(
        graph.derived_features(batch.tuples, loops.origin)[loops.origin < 0],
        torch.zeros(7, 2).long(),
    )
    ordered = graph.all_orders(batch)
    assert ordered.batch.symmetry == "ordered"
    assert torch.equal(ordered.batch.tuples.sort(1).values, batch.tuples[ordered.origin])
    assert graph.project_tuples(batch, 1).tuples.flatten().tolist() == list(range(7))
    assert graph.project_tuples(batch, 0).tuples.shape == (2, 0)
    assert torch.equal(graph.project_tuples(batch, 2).tuples, batch.tuples)


def test_made_graphs():
    chains = graph.chain_graphs([3, 0, 1, 2])
    assert chains.tuples.tolist() == [[0, 1], [1, 2], [4, 5]]
    assert chains.node_offsets.tolist() == [0, 3, 3, 4, 6]
    assert chains.tuple_offsets.tolist() == [0, 2, 2, 2, 3]
    grown = graph.barabasi_albert_graph(200, 5, seed=1)
    assert len(grown) == 5 * 195 and grown.nodes == 200
    assert graph.connected_components(grown).max() == 0
    assert torch.equal(grown.tuples, graph.barabasi_albert_graph(200, 5, seed=1).tuples)
    with pytest.raises(ValueError, match="expected more than links, 5, got 5"):
        graph.barabasi_albert_graph(5, 5)


def test_triangulations():
    sets = graph.random_point_sets(4, 3, 40, seed=2)
    batch = graph.delaunay_graph(sets.points, sets.node_offsets)
    assert batch.symmetry == "undirected" and torch.equal(batch.node_offsets, sets.node_offsets)
    # Planar: 3 n - 3 edges but for one each on the hull, which has at least three.
    sizes, edges = sets.node_offsets.diff(), batch.tuple_offsets.diff()
    assert (edges <= 3 * sizes - 6).all() and (edges >= 2 * sizes - 3).all()
    # The nearest neighbour of every point is joined to it.
    points, pairs = sets.points.double(), set(map(tuple, batch.tuples.tolist()))
    for begin, end in itertools.pairwise(sets.node_offsets.tolist()):
        distances = torch.cdist(points[begin:end], points[begin:end]).fill_diagonal_(9)
        for i, j in enumerate(distances.argmin(1).tolist()):
            assert (begin + min(i, j), begin + max(i, j)) in pairs
    assert torch.equal(batch.tuples, graph.delaunay_graph(points, sets.node_offsets).tuples)
    with pytest.raises(ValueError, match="expected finite numbers, got nan in row 0, column 1"):
        graph.delaunay_graph(torch.tensor([[0, torch.nan]]))


def test_a_graph_that_is_traced_says_so():
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        edges = mode.from_tensor(torch.tensor([[0, 1]]))
        with pytest.raises(ValueError, match=r"^\[edge_tuples\] edges: .* graph that torch traces"):
            torch.ops.nsimplex.graph_edges(edges, 2, "ordered", True, True)
