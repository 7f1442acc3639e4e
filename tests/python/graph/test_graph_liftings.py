"""Graphs lifted to hypergraphs, and encodings of nodes."""

import networkx
import pytest
import torch

from nsimplex import graph

#: A triangle 0 1 2 with a tail 2 - 3, and a single node; then a path of two.
INDEX = torch.tensor([[0, 0, 1, 2, 5], [1, 2, 2, 3, 6]])
GRAPHS = torch.tensor([0, 0, 0, 0, 0, 1, 1])


def data(**options):
    return graph.from_edge_index(INDEX, 7, batch=GRAPHS, directions="both", **options)


def test_cliques_have_the_mean_of_their_edges():
    features = torch.tensor([3.0, 6, 9, 1, 2])
    lifted = graph.lift_cliques(data(edge_features=features, targets=torch.tensor([0.0, 1.0])))
    assert lifted.sizes == (2, 3) and lifted.level == "graph"
    assert lifted.edges[0].tuples.tolist() == INDEX.t().tolist()
    assert lifted.edge_features[0].flatten().tolist() == features.tolist()
    assert lifted.edges[1].tuples.tolist() == [[0, 1, 2]]
    assert lifted.edge_features[1].tolist() == [[6]]
    assert lifted[1].edges[0].tuples.tolist() == [[0, 1]]


def test_line_graph_features():
    features, nodes = torch.tensor([3.0, 6, 9, 1, 2]), torch.arange(7.0)
    lifted = graph.lift_line_graph(data(edge_features=features, node_features=nodes))
    assert lifted.batch.tuples.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert lifted.node_features.tolist() == [[3, 0.5], [6, 1], [9, 1.5], [1, 2.5], [2, 5.5]]
    assert lifted.edge_features[0].flatten().tolist() == [0, 1, 2, 2, 2]
    assert lifted.node_offsets.tolist() == [0, 4, 5]
    loops = graph.from_edge_index(torch.tensor([[0, 1, 1], [1, 1, 2]]), 3)
    for lift, tuples in ((graph.lift_line_graph, [[0, 1]]), (graph.lift_cliques, [[0, 1], [1, 2]])):
        with pytest.warns(graph.ConversionWarning, match="data: left out 1 loop$"):
            assert lift(loops).edges[0].tuples.tolist() == tuples


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_k_hop_sets(hops):
    lifted = graph.lift_k_hop_sets(data(), hops)
    own = networkx.Graph(INDEX.t().tolist())
    own.add_node(4)
    expected = {
        tuple(sorted(networkx.single_source_shortest_path_length(own, node, hops)))
        for node in range(7)
    }
    found = [tuple(row) for each in lifted.edges for row in each.tuples.tolist()]
    assert set(found) == expected and len(found) == len(expected)


def test_features_of_edges_that_k_hop_sets_lose_are_named():
    with pytest.warns(graph.ConversionWarning, match="data: left out features of edges, for which"):
        graph.lift_k_hop_sets(data(edge_features=torch.ones(5)))


def test_random_walk_encodings():
    encoded = graph.with_random_walk_encodings(data(), 5).node_features
    matrix = torch.zeros(7, 7, dtype=torch.float64)
    matrix[INDEX[0], INDEX[1]] = matrix[INDEX[1], INDEX[0]] = 1
    walk = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    expected = torch.stack([torch.linalg.matrix_power(walk, t).diagonal() for t in range(1, 6)], 1)
    torch.testing.assert_close(encoded, expected.float())


def test_random_walk_encodings_in_blocks(monkeypatch):
    from nsimplex.graph import liftings

    whole = graph.with_random_walk_encodings(data(), 4).node_features
    monkeypatch.setattr(liftings, "_BLOCK", 20)
    assert torch.equal(graph.with_random_walk_encodings(data(), 4).node_features, whole)


def test_laplacian_encodings():
    own = data(node_features=torch.ones(7, 1))
    encoded = graph.with_laplacian_encodings(own, 2).node_features
    pairs = graph.from_edge_index(INDEX, 7, batch=GRAPHS, directions="undirected").batch
    expected = graph.laplacian_eigenvectors(pairs, 2).vectors.float()
    torch.testing.assert_close(encoded, torch.cat([torch.ones(7, 1), expected], 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graph.lift_cliques(data(), 1), "[lift_cliques] largest: expected at least 2"),
        (
            lambda: graph.lift_cliques(graph.from_hyperedges([[0, 1, 2]])),
            "[lift_cliques] data: expected edges of size 2, got sizes [3]",
        ),
        (
            lambda: graph.lift_line_graph(data(targets=torch.arange(7))),
            "[lift_line_graph] data: expected no targets of nodes",
        ),
        (
            lambda: graph.lift_k_hop_sets(data(targets=torch.arange(5)), 1),
            "[lift_k_hop_sets] data: expected no targets of edges",
        ),
        (
            lambda: graph.with_random_walk_encodings(data(node_features=torch.arange(7)), 2),
            "[with_random_walk_encodings] node_features: expected floating point, got torch.int64",
        ),
    ],
)
def test_lifting_mistakes(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message)
