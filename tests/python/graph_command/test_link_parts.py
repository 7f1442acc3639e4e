"""Tasks on edges and hyperedges of targets 0 and 1: the graph that messages pass over, apart from
the rows that a model judges."""

import json

import numpy
import pytest
import torch
from graph_sets import predicted, predictions, rings, trained, write

from nsimplex import graph
from nsimplex.graph import Split
from nsimplex.graph_command.link_parts import LinkParts, structure_of
from nsimplex.graph_command.tables import Targets
from nsimplex.nn import GraphTransformer, HyperSAGNN, MessagePassing

PAIRS = [(i, j) for j in range(12) for i in range(j)]


def links(folder, more="", weight=False):
    """Pairs of twelve nodes, half of which are edges."""
    text = "".join(
        f"n{j},n{i},{(i + j) % 2}{f',{i / 9}' if weight else ''}\n" for i, j in PAIRS if i + j != 9
    )
    head = "a,b,link" + (",weight\n" if weight else "\n")
    return write(folder / "links.csv", head + text + more)


def parts_of(model, sizes=(2,)):
    rng = numpy.random.default_rng(0)
    sets = [rng.permutation(9)[:size].tolist() for size in sizes for _ in range(20)]
    if sizes == (2,):
        sets = [own for own in PAIRS if rng.random() < 0.6]
    data = graph.from_hyperedges(sets, 9 if sizes != (2,) else 12, duplicates="first")
    truth = torch.arange(data.num_edges) % 2
    values = truth[:, None].float()
    data = graph.GraphData(data.edges, data.node_offsets, targets=values, level="edge")
    rows = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(1))
    split = Split(rows[:20], rows[20:25], rows[25:])
    targets = Targets(values, torch.ones(len(rows), dtype=torch.bool), "binary", [], 1)
    return data, split, LinkParts(model, data, split, targets, seed=0)


MODELS = {
    "gcn": (lambda: MessagePassing("edge", "binary", width=8), (2,)),
    "transformer": (
        lambda: GraphTransformer(
            "hyperedge", "binary", order=[2, 3], width=8, layers=1, query_sizes=[2, 3]
        ),
        (2, 3),
    ),
    "hyper-sagnn": (lambda: HyperSAGNN(width=8), (2, 3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_row_that_is_judged_is_an_edge_of_its_graph(monkeypatch, name):
    make, sizes = MODELS[name]
    model, asked = make(), []
    prepare = model.prepare
    monkeypatch.setattr(model, "prepare", lambda *own: asked.append(own) or prepare(*own))
    data, split, parts = parts_of(model, sizes)
    rows = [tuple(row) for each in data.edges for row in each.tuples.tolist()]
    training = {rows[row] for row in split.training.tolist() if data.targets[row] == 1}
    (whole, queries), *folds = [
        ({tuple(row) for each in own.edges for row in each.tuples.tolist()}, lists)
        for own, lists in asked
    ]
    assert whole == training and sum(map(len, queries)) == len(rows)
    judged = []
    for structure, lists in folds:
        own = [tuple(row) for each in lists for row in each.tuples.tolist()]
        assert structure == training - set(own)
        judged += own
    assert sorted(judged) == sorted(rows[row] for row in split.training.tolist())
    # The answers of a step are in the order of its targets.
    for (_, lists), (_, wanted, _) in zip(folds, parts.training(torch.Generator())):
        own = [rows.index(tuple(row)) for each in lists for row in each.tuples.tolist()]
        assert wanted.equal(data.targets[own])


@pytest.mark.parametrize("model", ["gcn", "transformer", "hyper-sagnn"])
def test_rows_with_target_0_and_rows_of_the_test_change_no_prediction(tmp_path, model):
    data = links(tmp_path)
    own = dict(task="edge", target="link", model=model, folder=tmp_path, epochs=1)
    (about,) = trained(data=data, **own).of_kind("graph_data")
    assert 0 < about["structure"] <= about["training"] // 2 + 1 < about["edges"]
    asked = write(tmp_path / "asked.csv", "a,b\nn4,n5\n")
    more = write(tmp_path / "more.csv", "a,b,link\nn4,n5,1\nn0,n9,0\nn1,n8,1\n")
    found = []
    for new in (asked, more):
        assert not predicted(tmp_path, data=new, folder=tmp_path).warnings
        found += [
            float(row["probability 1"])
            for row in predictions(tmp_path)
            if (row["a"], row["b"]) == ("n4", "n5")
        ]
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert "say little" in predicted(tmp_path, data=data).warnings[0]


def test_the_graph_of_the_training_is_kept_with_its_features(tmp_path):
    data = links(tmp_path, weight=True)
    own = dict(task="edge", target="link", model="gin", folder=tmp_path, epochs=1)
    said = trained(data=data, **own, directed=True)
    content = json.loads((tmp_path / "structure.json").read_text())
    lines = [line.split(",") for line in data.read_text().splitlines()[1:]]
    known = {(a, b): float(weight) for a, b, truth, weight in lines if truth == "1"}
    ends = {}
    for each in content["incidences"]:
        ends.setdefault(each["edge"], {})[each["direction"]] = each["node"]
    for each in content["edges"]:
        pair = ends[each["edge"]]["tail"], ends[each["edge"]]["head"]
        assert each["attrs"]["x0"] == pytest.approx(known[pair])
    assert len(content["edges"]) == said.of_kind("graph_data")[0]["structure"]
    new = write(tmp_path / "new.csv", "a,b,weight\nn4,n5,0\nnew,n5,0\n")
    assert len(predicted(tmp_path, data=new).of_kind("graph_prediction")) == 2
    (tmp_path / "structure.json").unlink()
    with pytest.raises(ValueError, match=r"cannot read .*structure\.json"):
        predicted(tmp_path, data=new)


def test_features_of_all_nodes_of_the_graph_are_needed(tmp_path):
    nodes = write(tmp_path / "n.csv", "name,x\n" + "".join(f"n{i},{i}\n" for i in range(12)))
    own = dict(task="edge", target="link", folder=tmp_path, epochs=1)
    trained(data=links(tmp_path), nodes=nodes, **own)
    asked = write(tmp_path / "asked.csv", "a,b\nn4,n5\n")
    assert len(predicted(tmp_path, data=asked, nodes=nodes).of_kind("graph_prediction")) == 1
    few = write(tmp_path / "few.csv", "name,x\nn4,4\nn5,5\n")
    with pytest.raises(ValueError, match=r"expected features of all nodes of .*structure\.json"):
        predicted(tmp_path, data=asked, nodes=few)


def test_hyperedges_with_target_0_are_no_structure(tmp_path):
    sets = [(k, (k + 1) % 9) if k % 2 else (k, (k + 1) % 9, (k + 3) % 9) for k in range(9)]
    text = "".join(" ".join(f"n{i}" for i in own) + f",{k % 3 % 2}\n" for k, own in enumerate(sets))
    data = write(tmp_path / "sets.csv", "nodes,real\n" + text)
    own = dict(task="hyperedge", target="real", model="transformer", test=0.0, validation=0.4)
    (about,) = trained(data=data, **own, folder=tmp_path).of_kind("graph_data")
    assert about["structure"] == 2
    found = predicted(tmp_path, data=data, folder=tmp_path, explain=1)
    assert len(found.of_kind("graph_prediction")) == len(found.of_kind("graph_tuples")) == 9


def test_other_targets_and_several_graphs_keep_all_rows(tmp_path):
    data = links(tmp_path)
    own = dict(task="edge", target="link", epochs=1)
    (about,) = trained(data=data, **own, structure="all").of_kind("graph_data")
    assert about["structure"] == about["edges"]
    (about,) = trained(data=data, **own, kind="number").of_kind("graph_data")
    assert about["structure"] == about["edges"]
    edges, _, _ = rings(tmp_path)
    text = edges.read_text().splitlines()
    more = "".join(f"{line},{place % 2}\n" for place, line in enumerate(text[1:]))
    data = write(tmp_path / "rings.csv", text[0] + ",link\n" + more)
    (about,) = trained(data=data, **own).of_kind("graph_data")
    assert about["structure"] == about["edges"]
    with pytest.raises(ValueError, match="--structure: expected one graph for positive, got 20"):
        trained(data=data, **own, structure="positive")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "node"}, "--structure: expected --task edge or hyperedge for positive, got node"),
        ({"kind": "number"}, "--structure: expected a binary target for positive, got number"),
    ],
)
def test_a_structure_that_does_not_fit_is_told_in_one_line(tmp_path, options, message):
    nodes = write(tmp_path / "n.csv", "name,link\n" + "".join(f"n{i},{i % 2}\n" for i in range(12)))
    own = dict(data=links(tmp_path), task="edge", target="link", structure="positive")
    with pytest.raises(ValueError) as caught:
        trained(**{**own, **({"nodes": nodes} if options.get("task") else {}), **options})
    assert str(caught.value) == message


def test_a_graph_keeps_the_rows_with_flags():
    data = graph.from_hyperedges([[0, 1], [1, 2], [0, 1, 2]], 3)
    kept = structure_of(data, torch.tensor([False, True, True]))
    assert [each.tuples.tolist() for each in kept.edges] == [[[1, 2]], [[0, 1, 2]]]
    assert [each.tuple_offsets.tolist() for each in kept.edges] == [[0, 1], [0, 1]]
