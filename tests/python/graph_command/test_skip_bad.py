"""Rows that cannot be read: ``--skip-bad`` leaves them out and lists them."""

import csv
import json
import subprocess

import pytest
from graph_sets import predicted, rings, trained, two_groups, write


def skipped(folder):
    with open(folder / "skipped.csv", newline="") as file:
        return [(row["line"], row["reason"]) for row in csv.DictReader(file)]


def refused(**own):
    with pytest.raises(ValueError) as caught:
        trained(**own)
    return str(caught.value)


def test_edges_of_unknown_nodes_and_short_lines_are_left_out(tmp_path):
    edges, nodes = two_groups(tmp_path)
    good = len(edges.read_text().splitlines())
    with open(edges, "a") as file:
        file.write("p0,p1\np0,nobody,0.5\n")
    own = dict(data=edges, nodes=nodes)
    assert f"line {good + 1}: expected 3 cells, got 2" in refused(**own)
    said = trained(**own, skip_bad=True, folder=tmp_path)
    (about,) = said.of_kind("graph_data")
    assert (about["edges"], about["skipped"]) == (good - 1, 2)
    assert skipped(tmp_path) == [
        (str(good + 1), "expected 3 cells, got 2"),
        (str(good + 2), "expected a node of the file of nodes, got 'nobody'"),
    ]
    (warning,) = said.warnings
    assert "2 rows left out, all of which skipped.csv lists; first cannot read" in warning
    assert said.tables[-2][0] == ["file", "line", "left out because"] and len(said.tables[-2]) == 3
    # The model's file has nothing of it, and a run without bad rows leaves no list.
    assert len(predicted(tmp_path, **own | dict(data=two_groups(tmp_path)[0])).lines)
    trained(**own, skip_bad=True, folder=tmp_path)
    assert not (tmp_path / "skipped.csv").exists()


def test_ten_rows_are_shown_and_the_file_has_all(tmp_path):
    edges, nodes = two_groups(tmp_path)
    with open(edges, "a") as file:
        file.writelines(f"p0,q{k},1\n" for k in range(13))
    said = trained(data=edges, nodes=nodes, skip_bad=True, folder=tmp_path)
    assert len(said.tables[-2]) == 11 and len(skipped(tmp_path)) == 13
    assert "13 rows left out; first" in trained(data=edges, nodes=nodes, skip_bad=True).warnings[0]


@pytest.mark.parametrize(
    ("kind", "target", "bad", "reason"),
    [
        ("auto", "size", "heavy", "expected a finite number in column 'size', got 'heavy'"),
        ("auto", "odd", "inf", "expected a finite number in column 'odd', got 'inf'"),
        ("binary", "odd", "3", "expected 0 or 1 of a binary target in column 'odd', got '3'"),
        ("labels", "odd,size", "2", "expected 0 or 1 of a labels target in column 'odd', got '2'"),
    ],
)
def test_graphs_with_bad_targets_are_in_no_part_of_the_split(tmp_path, kind, target, bad, reason):
    edges, nodes, graphs = rings(tmp_path)
    column = ["name", "odd", "size", "letter"].index(target.split(",")[0])
    rows = [line.split(",") for line in graphs.read_text().splitlines()]
    if kind == "labels":
        rows = [rows[0], *([a, b, b, d] for a, b, _, d in rows[1:])]
    rows[4][column] = bad
    write(graphs, "".join(",".join(row) + "\n" for row in rows))
    own = dict(data=edges, nodes=nodes, graphs=graphs, task="graph", target=target, kind=kind)
    if kind == "labels":
        assert f"line 5: {reason}" in refused(**own)
    said = trained(**own, skip_bad=True, folder=tmp_path)
    (about,) = said.of_kind("graph_data")
    assert about["target_kind"] == {"auto": "number" if target == "size" else "binary"}.get(
        kind, kind
    )
    assert about["training"] + about["validation"] + about["test"] == 19
    assert (about["graphs"], skipped(tmp_path)) == (20, [("5", reason)])


def test_hyperedges_of_other_sizes_are_left_out(tmp_path):
    sets = [f"n{k} n{(k + 1) % 9},{k % 2}\n" for k in range(9)] + ["n0,1\n", "n1 n1,0\n"]
    data = write(tmp_path / "sets.csv", "nodes,real\n" + "".join(sets))
    own = dict(data=data, task="hyperedge", target="real", model="transformer")
    assert "line 11: expected a hyperedge of 2 to 5 different nodes" in refused(**own)
    said = trained(**own, skip_bad=True, folder=tmp_path)
    assert said.of_kind("graph_data")[0]["edges"] == 9
    assert [line for line, _ in skipped(tmp_path)] == ["11", "12"]


def test_smiles_that_cannot_be_parsed_are_left_out(tmp_path):
    pytest.importorskip("rdkit")
    text = "".join(f"{'C' * (1 + k)}O,{k}\n" for k in range(12))
    data = write(tmp_path / "m.csv", "smiles,value\nC1,3\n" + text + ",4\nCC,much\n")
    own = dict(data=data, task="graph", target="value", skip_bad=True, folder=tmp_path)
    (about,) = trained(**own).of_kind("graph_data")
    assert (about["graphs"], about["skipped"]) == (13, 3)
    assert about["training"] + about["validation"] + about["test"] == 12
    assert sorted(line for line, _ in skipped(tmp_path)) == ["15", "16", "2"]
    none = write(tmp_path / "n.csv", "smiles,value\nC1,3\n")
    with pytest.raises(ValueError, match="no molecule in it"):
        trained(**own | dict(data=none))


def test_the_command_says_what_it_leaves_out(executable, tmp_path):
    edges, nodes = two_groups(tmp_path)
    with open(edges, "a") as file:
        file.write("p0,nobody,0.5\n")
    run = tmp_path / "run"
    line = [executable, "graph", "train", edges, "--nodes", nodes, "--task", "node"]
    more = ["--target", "label", "--model", "gcn", "--epochs", "2", "--out", run, "--threads", "1"]
    done = subprocess.run([*line, *more], capture_output=True, text=True)
    assert done.returncode == 2 and "expected a node of the file of nodes" in done.stderr
    done = subprocess.run([*line, *more, "--skip-bad"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning: DATA: 1 row left out, all of which skipped.csv lists" in done.stderr
    first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    assert (first["kind"], first["skipped"]) == ("graph_data", 1)
    assert len(skipped(run)) == 1
