"""Curvature of the edges of graphs, against known graphs and the command line."""

import json
import subprocess

import pytest
import torch

from nsimplex import graph


def curvatures(edges, nodes):
    batch = graph.edge_tuples(torch.tensor(edges), nodes, symmetry="undirected").batch
    return [x.tolist() for x in graph.edge_curvatures(batch)]


def test_known_graphs():
    cycle = [[i, (i + 1) % 5] for i in range(5)]
    assert curvatures(cycle, 5) == [[0] * 5, [0] * 5, [0] * 5]
    square = [[0, 1], [1, 2], [2, 3], [0, 3]]
    assert curvatures(square, 4) == [[0] * 4, [0] * 4, [1] * 4]
    complete = [[i, j] for i in range(4) for j in range(i + 1, 4)]
    # degrees 3 and two triangles per edge: 2/3 + 2/3 - 2 + 4/3 + 2/3
    plain, augmented, balanced = curvatures(complete, 4)
    assert (plain, augmented) == ([-2] * 6, [4] * 6)
    assert balanced == pytest.approx([4 / 3] * 6)
    star = [[0, 1], [0, 2], [0, 3]]
    assert curvatures(star, 4) == [[0] * 3, [0] * 3, [0] * 3]


def test_directed_pairs_and_loops():
    batch = graph.tuple_batch(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 2]]), 3)
    plain = graph.edge_curvatures(batch).plain
    assert plain[0].isnan() and plain[1:].tolist() == [1, 1, 1]


def test_tuples_of_three_are_refused():
    with pytest.raises(ValueError, match=r"\[edge_curvatures\] batch: expected pairs, got .* 3"):
        graph.edge_curvatures(graph.tuple_batch(torch.tensor([[0, 1, 2]]), 3))


def test_means_and_minima_are_those_of_the_command_line(executable, tmp_path):
    torch.manual_seed(1)
    pairs = torch.combinations(torch.arange(12))
    edges = pairs[torch.rand(len(pairs)) < 0.35]
    (tmp_path / "graph.txt").write_text("".join(f"{a} {b}\n" for a, b in edges.tolist()))
    out = tmp_path / "out"
    run = subprocess.run(
        [executable, "analyze", "curvature", tmp_path / "graph.txt", "--json", "--out", out],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = {
        line["statement"].partition(" curvature")[0]: line
        for line in map(json.loads, run.stdout.splitlines())
        if line["kind"] == "statement"
    }
    batch = graph.edge_tuples(edges, 12, symmetry="undirected").batch
    for key, own in (("graph", batch), ("line_graph", graph.line_graph(batch).batch)):
        for kind, values in graph.edge_curvatures(own)._asdict().items():
            assert said[f"mean {kind}"][key] == pytest.approx(float(values.mean()))
            assert said[f"minimum {kind}"][key] == pytest.approx(float(values.min()))
