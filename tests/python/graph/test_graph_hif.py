"""Hypergraphs in files of the hypergraph interchange format."""

import json

import pytest
import torch

from nsimplex import graph


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_what_is_written_is_read(tmp_path):
    data = graph.from_hyperedges(
        [["a", "b"], ["c", "b", "a"], ["d"]],
        edge_features=torch.tensor([[1.0, 2], [3, 4], [5, 6]]),
        node_features=torch.arange(4.0),
        targets=torch.tensor([0.5, 1, 2, 3]),
    )
    path = tmp_path / "a.json"
    graph.write_hif(data, path)
    again = graph.read_hif(path, node_features=["x0"], edge_features=["x0", "x1"], target="target")
    assert again.names == data.names and again.sizes == data.sizes == (1, 2, 3)
    for own, their in zip(data.edges, again.edges):
        assert torch.equal(own.tuples, their.tuples)
    for own, their in zip(data.edge_features, again.edge_features):
        assert torch.equal(own, their)
    assert torch.equal(data.node_features, again.node_features)
    assert torch.equal(data.targets, again.targets) and again.level == "node"


def test_directed_pairs(tmp_path):
    data = graph.from_edge_index(torch.tensor([[0, 2], [1, 0]]), 4)
    path = tmp_path / "a.json"
    graph.write_hif(data, path)
    assert json.loads(path.read_text())["network-type"] == "directed"
    again = graph.read_hif(path)
    assert again.batch.tuples.tolist() == [[0, 1], [2, 0]] and again.num_nodes == 4


def test_nodes_that_only_incidences_name_and_weights(tmp_path):
    content = {
        "nodes": [{"node": "z"}],
        "edges": [{"edge": 7, "weight": 2.5}, {"edge": 8, "weight": 1}],
        "incidences": [
            {"node": "y", "edge": 7},
            {"node": "z", "edge": 7},
            {"node": "y", "edge": 8},
        ],
    }
    data = graph.read_hif(written(tmp_path / "a.json", content), edge_features=["weight"])
    assert data.names == ("z", "y") and data.sizes == (1, 2)
    assert [each.tolist() for each in data.edge_features] == [[[1.0]], [[2.5]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ([], "the file: expected an object, got []"),
        ({}, "it has no incidences"),
        ({"incidences": [{"node": 1}]}, "incidences[0]: expected edge as a number or a string"),
        ({"incidences": [], "nodes": [{"node": 1}, {"node": 1}]}, "nodes[1]: 1 is listed twice"),
        ({"incidences": [], "edges": [{"edge": 1}]}, "hyperedge 1 has no nodes"),
        ({"incidences": [], "network-type": "x"}, "network-type: expected undirected, directed"),
        (
            {"network-type": "directed", "incidences": [{"node": 1, "edge": 1}]},
            "directed incidences: expected tail or head, got None",
        ),
    ],
)
def test_unusable_files_are_one_line(tmp_path, content, message):
    path = written(tmp_path / "a.json", content)
    with pytest.raises(ValueError) as error:
        graph.read_hif(path)
    assert str(error.value).startswith(f"cannot read {path}: {message}")
    assert "\n" not in str(error.value)


def test_missing_attributes(tmp_path):
    content = {"nodes": [{"node": 1, "attrs": {"a": "x"}}], "incidences": [{"node": 1, "edge": 1}]}
    path = written(tmp_path / "a.json", content)
    with pytest.raises(ValueError, match="node 1 has no attribute 'b'"):
        graph.read_hif(path, node_features=["b"])
    with pytest.raises(ValueError, match="expected a number in 'a', got 'x'"):
        graph.read_hif(path, node_features=["a"])
    with pytest.raises(ValueError, match=r"cannot read .*nothing.json: No such file"):
        graph.read_hif(tmp_path / "nothing.json")
    two = graph.from_edge_index(torch.tensor([[0], [1]]), 3, batch=torch.tensor([0, 0, 1]))
    with pytest.raises(ValueError, match=r"\[write_hif\] data: expected one graph, got 2"):
        graph.write_hif(two, path)
