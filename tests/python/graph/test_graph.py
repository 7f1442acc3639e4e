"""Batches of tuples, what is built from them and what they say about their nodes."""

import itertools

import pytest
import torch

import nsimplex
from nsimplex import graph

pytestmark = pytest.mark.usefixtures("one_seed")


@pytest.fixture
def one_seed():
    torch.manual_seed(0)


def pairs(*rows):
    return torch.tensor(rows, dtype=torch.int64).view(-1, 2)


def two_graphs():
    """A triangle with a tail, and a chain of three."""
    return graph.tuple_batch(
        pairs((0, 1), (0, 2), (1, 2), (2, 3), (4, 5), (5, 6)),
        tuple_offsets=torch.tensor([0, 4, 6]),
        node_offsets=torch.tensor([0, 4, 7]),
        symmetry="undirected",
    )


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
    nodes = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    features = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    mixed = graph.node_and_edge_features(made, nodes, features)
    for row, (i, j) in enumerate(made.batch.tuples.tolist()):
        own = nodes[i] if i == j else torch.zeros(2)
        edge = features[[{2, 0}, {0, 1}].index({i, j})] if i != j else torch.zeros(3)
        assert torch.equal(mixed[row], torch.cat([own.double(), edge.double()]))
    assert torch.autograd.gradcheck(
        lambda n, e: graph.node_and_edge_features(made, n, e), (nodes, features)
    )


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


def test_batches_are_taken_apart_and_put_together():
    batch = two_graphs()
    parts = graph.split_graphs(batch)
    assert [part.nodes for part in parts] == [4, 3]
    assert parts[1].tuples.tolist() == [[0, 1], [1, 2]]
    again = graph.concatenate_graphs(parts)
    assert torch.equal(again.tuples, batch.tuples) and torch.equal(
        again.node_offsets, batch.node_offsets
    )


def test_structure():
    batch = two_graphs()
    assert graph.adjacency(batch).offsets.tolist() == [0, 2, 4, 7, 8, 9, 11, 12]
    assert graph.node_degrees(batch).tolist() == [2, 2, 3, 1, 1, 2, 1]
    assert graph.connected_components(batch).tolist() == [0, 0, 0, 0, 1, 1, 1]
    cliques = graph.component_cliques(batch)
    assert torch.equal(
        cliques.tuples, graph.complete_tuples([4, 3], 2, symmetry="undirected", loops=False).tuples
    )
    labelled = graph.label_cliques(graph.connected_components(batch), batch.node_offsets)
    assert torch.equal(labelled.tuples, cliques.tuples) and torch.equal(
        labelled.tuple_offsets, cliques.tuple_offsets
    )
    assert [len(each) for each in graph.simplices(batch, 4)] == [7, 6, 1, 0]
    lines = graph.line_graph(batch)
    assert lines.batch.tuples.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [4, 5]]
    assert lines.shared.tolist() == [0, 1, 2, 2, 2, 5]


@pytest.mark.parametrize("nodes", [40, 400])  # computed densely, and by iteration
def test_laplacian_eigenvectors(nodes):
    made = graph.edge_tuples(torch.tensor([[i // 3, i] for i in range(1, nodes)]), nodes).batch
    values, vectors = graph.laplacian_eigenvectors(made, 5)
    dense = torch.zeros(nodes, nodes, dtype=torch.float64)
    dense[made.tuples[:, 0], made.tuples[:, 1]] = 1
    scale = dense.sum(1).rsqrt()
    laplacian = torch.eye(nodes, dtype=torch.float64) - scale[:, None] * dense * scale
    torch.testing.assert_close(values[0], torch.linalg.eigvalsh(laplacian)[:5], atol=1e-8, rtol=0)
    torch.testing.assert_close(laplacian @ vectors, vectors * values, atol=1e-7, rtol=0)
    torch.testing.assert_close(
        vectors.T @ vectors, torch.eye(5, dtype=torch.float64), atol=1e-8, rtol=0
    )


def test_laplacian_does_not_depend_on_threads():
    sizes = [300, 5, 280, 1]
    batch = graph.chain_graphs(sizes)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(graph.laplacian_eigenvectors(batch, 4).vectors)
    torch.set_num_threads(1)
    assert all(torch.equal(results[0], other) for other in results[1:])


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
