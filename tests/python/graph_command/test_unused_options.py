"""``nsimplex graph train`` refuses options that its model or its data have no use for."""

import numpy as np
import pytest
import torch
from graph_sets import trained, two_groups, write

from nsimplex import graph
from nsimplex.nn import MessagePassing, fit_graphs, graph_loss


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(order="7"), "--order: expected --model transformer or s2g, got gcn"),
        (dict(model="gin", form="kernel"), "--form: expected --model transformer, got gin"),
        (dict(model="gat", readout="softmax"), "--readout: expected --model transformer, got gat"),
        (dict(local=True), "--local: expected --model transformer, got gcn"),
        (dict(target="label,label"), "--target: expected different columns, got 'label' twice"),
        (dict(smiles="zz"), "--smiles: expected --task graph and molecules in DATA, got --nodes"),
        (
            dict(smiles="zz", nodes="", task="edge"),
            "--smiles: expected --task graph and molecules in DATA, got --task edge",
        ),
        (
            dict(smiles="zz", nodes="", task="graph"),
            "--smiles: expected columns of from, to, weight, got 'zz'",
        ),
        (dict(ignore="zz"), "--ignore: expected columns of from, to, weight, name, age, "),
        (dict(loss="soft_f1"), "--loss: expected a target of kind binary or labels for soft_f1, "),
        (dict(loss="squared"), "--loss: expected a target of kind number for squared, got classes"),
    ],
)
def test_nothing_is_ignored(tmp_path, options, says):
    edges, nodes = two_groups(tmp_path)
    with pytest.raises(ValueError) as caught:
        trained(**dict(data=edges, nodes=nodes) | options)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_an_edge_in_the_place_of_names_is_told(tmp_path):
    edges = write(tmp_path / "e.csv", "".join(f"{i},{(i + 1) % 30}\n" for i in range(30)))
    nodes = write(tmp_path / "n.csv", "id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    said = trained(data=edges, nodes=nodes, target="y")
    assert any("e.csv: first line taken as names of columns, 0 and 1" in w for w in said.warnings)
    said = trained(data=write(edges, "a,b\n" + edges.read_text()), nodes=nodes, target="y")
    assert not any("first line" in each for each in said.warnings)


def test_columns_of_every_file_may_be_ignored(tmp_path):
    edges, nodes = two_groups(tmp_path)
    trained(data=edges, nodes=nodes, ignore="weight,colour", folder=tmp_path)
    file = write(tmp_path / "g.g6", "A_\nBw\nCF\nDqK\nA_\nBw\n")
    labels = write(tmp_path / "g.csv", "graph,y,z\n" + "".join(f"{n},{n},0\n" for n in range(6)))
    own = dict(data=file, graphs=labels, task="graph", target="y")
    with pytest.raises(
        ValueError, match="--ignore: expected csv, HIF or arrays in DATA, got graph6"
    ):
        trained(**own, ignore="z")
    trained(**own)


def test_rows_of_arrays_cannot_be_left_out(tmp_path):
    file = tmp_path / "g.npz"
    np.savez(file, edge_index=np.array([[0, 1, 2], [1, 2, 0]]), y=np.arange(3))
    with pytest.raises(ValueError, match="^--skip-bad: expected csv, HIF or graph6 in DATA, got n"):
        trained(data=file, task="node", target="y", skip_bad=True)
    with pytest.raises(ValueError, match="^--smiles: expected a csv of molecules in DATA, got npz"):
        trained(data=file, task="node", target="y", smiles="s")


def test_a_loss_has_a_kind_of_target():
    answers, wanted = torch.randn(4, 1), torch.tensor([0.0, 1, 0, 1])
    with pytest.raises(
        ValueError, match=r"\[graph_loss\] loss: expected .* binary or labels for s"
    ):
        graph_loss(answers, wanted, "number", loss="soft_f1")
    with pytest.raises(ValueError, match=r"\[graph_loss\] loss: expected .* number for squared"):
        graph_loss(answers, wanted, "binary", loss="squared")
    ring = graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), targets=torch.ones(1))
    data = graph.collate_graphs([ring] * 6)
    model = MessagePassing("graph", "number", width=4, layers=1)
    split = graph.split_rows(6, (0.5, 0.3, 0.2))
    with pytest.raises(ValueError, match=r"\[fit_graphs\] loss: expected a target of kind binary"):
        fit_graphs(model, data, split, epochs=1, loss="soft_f1")
