"""Hypergraphs in files of the hypergraph interchange format."""

import copy
import json
import warnings

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


WEIGHTED = {
    "metadata": {"date": "2024", "y": 3.0},
    "nodes": [{"node": "a", "attrs": {"size": 1}, "colour": "red"}, {"node": "b"}],
    "edges": [{"edge": 0, "attrs": {"kind": "x"}}],
    "incidences": [
        {"edge": 0, "node": "a", "weight": 2.5, "attrs": {"role": "left"}},
        {"edge": 0, "node": "b", "weight": 2.5, "attrs": {"role": "right"}},
        {"edge": 1, "node": "b", "weight": 4},
    ],
}


def test_attributes_that_incidences_share_are_those_of_the_hyperedge(tmp_path):
    path = written(tmp_path / "a.json", WEIGHTED)
    with pytest.warns(graph.ConversionWarning) as said:
        data = graph.read_hif(path, edge_features=["weight"], target="y")
    assert [each.tolist() for each in data.edge_features] == [[[4.0]], [[2.5]]]
    assert (data.level, data.targets.tolist()) == ("graph", [3.0])
    assert [str(each.message) for each in said] == [
        f"{path}: left out 'role', 'colour'; 'kind', 'date' (target takes them); 'size' "
        "(node_features takes them); ignore=[..] leaves them out without a warning"
    ]
    assert said[0].filename == __file__
    single = {"incidences": [{"edge": 0, "node": "a", "weight": 2.5}]}
    with pytest.raises(
        ValueError, match=r"expected 'weight' to be taken .*; edge_features takes it"
    ):
        graph.read_hif(written(path, single))
    assert graph.read_hif(path, edge_features=["weight"]).edge_features[0].tolist() == [[2.5]]
    assert graph.read_hif(path, ignore=["weight"]).edge_features == []


def changed(**changes):
    content = copy.deepcopy(WEIGHTED)
    content["incidences"][0].update(changes)
    return content


@pytest.mark.parametrize(
    ("content", "name", "takes"),
    [
        (changed(weight=1), "weight", "takes it"),
        (changed(direction="tail"), "direction", "no argument takes it"),
        (
            {"edges": [{"edge": 0, "weight": 3}], "incidences": [{"edge": 0, "node": 1}]},
            "weight",
            "edge_features takes it",
        ),
        (
            {"network-type": "asc", "incidences": [{"edge": 0, "node": n} for n in "abc"]},
            "network-type",
            "",
        ),
    ],
)
def test_what_changes_the_hypergraph_is_taken_or_ignored(tmp_path, content, name, takes):
    path = written(tmp_path / "a.json", content)
    others = ["weight", "role", "colour", "kind", "date", "size", "y"]
    with pytest.raises(ValueError) as error:
        graph.read_hif(path, ignore=[each for each in others if each != name])
    said = str(error.value)
    assert said.startswith(f"cannot read {path}: ") and "\n" not in said
    assert takes in said and f"ignore=[{name!r}]" in said
    assert graph.read_hif(path, ignore=[*others, name]).num_edges >= 1


def test_hyperedges_of_the_same_nodes_are_counted(tmp_path):
    path = written(
        tmp_path / "a.json", {"incidences": [{"edge": e, "node": n} for e in "xy" for n in "ab"]}
    )
    with pytest.warns(graph.ConversionWarning, match="a.json: 1 edges are listed again and count"):
        assert graph.read_hif(path).num_edges == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.read_hif(path, duplicates="first")


def test_a_target_of_the_graph_comes_back(tmp_path):
    data = graph.from_hyperedges([[0, 1], [1, 2, 3]], targets=torch.tensor([2.5]), level="graph")
    graph.write_hif(data, tmp_path / "a.json")
    again = graph.read_hif(tmp_path / "a.json", target="target")
    assert (again.level, again.targets.tolist()) == ("graph", [2.5])
    with pytest.raises(ValueError, match="expected names that differ as numbers or text"):
        graph.write_hif(graph.from_hyperedges([[(1, 2), "(1, 2)"]]), tmp_path / "b.json")


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
