"""What batches say about their nodes: neighbours, components, cliques and spectra."""

import pytest
import torch
from small_graphs import two_graphs

from nsimplex import graph


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
