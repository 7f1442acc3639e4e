"""``nsimplex graph train`` and ``predict``: every format and task, what a run keeps, and bad
input."""

import csv
import json
import math
import subprocess
import sys

import numpy
import pytest
import torch
from graph_sets import Channel, predicted, predictions, rings, trained, two_groups, write

from nsimplex import graph
from nsimplex.graph import Split
from nsimplex.graph_command.predicting import load
from nsimplex.graph_command.tables import Targets
from nsimplex.graph_command.training import constant_scores
from nsimplex.nn import GraphTransformer, MessagePassing
from nsimplex.nn.graph_training import Stopped


def test_nodes_of_two_groups_are_told_apart_from_files_to_predictions(tmp_path):
    edges, nodes = two_groups(tmp_path)
    own = dict(data=edges, nodes=nodes)
    said = trained(**own, folder=tmp_path, epochs=30, learning_rate=3e-2)
    (about,) = said.of_kind("graph_data")
    assert (about["target_kind"], about["nodes"], about["graphs"]) == ("classes", 40, 1)
    assert about["training"] + about["validation"] + about["test"] == 40
    for part in ("", "test_"):  # of the commonest class, with as many rows of either
        assert 0 < about[f"constant_{part}accuracy"] < 1
    (result,) = said.of_kind("graph_fit")
    assert result["accuracy"] >= 0.8
    lines = nodes.read_text().splitlines()
    unlabelled = "".join(line.rpartition(",")[0] + "\n" for line in lines)
    new = write(tmp_path / "new.csv", unlabelled)
    found = predicted(tmp_path, data=edges, nodes=new, folder=tmp_path)
    rows = predictions(tmp_path)
    assert [row["name"] for row in rows] == [line.split(",")[0] for line in lines[1:]]
    truth = [line.split(",")[3] for line in lines[1:]]
    assert sum(row["label"] == own for row, own in zip(rows, truth)) >= 36
    assert all(
        abs(float(row["probability a"]) + float(row["probability b"]) - 1) < 1e-6 for row in rows
    )
    assert len(found.of_kind("graph_prediction")) == 40 and not found.of_kind("graph_evaluation")
    # With targets the same command judges.
    (judged,) = predicted(tmp_path, **own).of_kind("graph_evaluation")
    assert judged["rows"] == 40 and judged["accuracy"] >= 0.9


def test_a_model_of_the_command_takes_features_as_they_are(tmp_path):
    """The scales that training needs are in the weights, so that from_run() needs nothing else."""
    edges, nodes = two_groups(tmp_path)
    trained(data=edges, nodes=nodes, folder=tmp_path, model="transformer")
    predicted(tmp_path, data=edges, nodes=nodes, folder=tmp_path)
    model = GraphTransformer.from_run(tmp_path)
    rows = [line.split(",") for line in nodes.read_text().splitlines()[1:]]
    number = {row[0]: place for place, row in enumerate(rows)}
    pairs = [line.split(",") for line in edges.read_text().splitlines()[1:]]
    data = graph.from_edge_index(
        torch.tensor([[number[a] for a, _, _ in pairs], [number[b] for _, b, _ in pairs]]),
        len(rows),
        torch.tensor([[float(weight)] for _, _, weight in pairs]),
        node_features=torch.tensor(
            [[float(row[1]), float(row[2] == "blue"), float(row[2] == "red")] for row in rows]
        ),
        directions="undirected",
    )
    chances = model.predict(data)
    said = torch.tensor(
        [
            [float(row["probability a"]), float(row["probability b"])]
            for row in predictions(tmp_path)
        ]
    )
    torch.testing.assert_close(chances, said, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("target", "kind", "columns"),
    [
        ("odd", "binary", ["odd", "probability 1"]),
        ("size", "number", ["size"]),
        ("letter", "classes", ["letter", "probability x", "probability y", "probability z"]),
        ("odd,size", "number", ["odd", "size"]),
    ],
)
def test_graphs_have_targets_of_every_kind(tmp_path, target, kind, columns):
    edges, nodes, graphs = rings(tmp_path)
    own = dict(data=edges, nodes=nodes)
    said = trained(**own, graphs=graphs, task="graph", target=target, folder=tmp_path)
    (about,) = said.of_kind("graph_data")
    assert (about["target_kind"], about["graphs"]) == (kind, 20)
    predicted(tmp_path, **own, folder=tmp_path)
    rows = predictions(tmp_path)
    assert [row["graph"] for row in rows] == [f"r{k}" for k in range(20)]
    assert list(rows[0]) == ["graph", *columns]


NONE = math.nan


@pytest.mark.parametrize(
    ("kind", "training", "others", "scores"),
    [
        ("classes", [0, 2, 2], [2, 2, 0, 1], {"accuracy": 0.5}),
        ("number", [[1], [3]], [[2], [5]], {"mae": 1.5, "rmse": 4.5**0.5}),
        (
            "number",
            [[1, NONE], [3, 4], [5, 4]],
            [[2, NONE], [5, 4]],
            {
                "mae 0": 1.5,
                "mae 1": 0,
                "rmse 0": 2.5**0.5,
                "rmse 1": 0,
                "scaled_mae": 1.5 / (8 / 3) ** 0.5 / 2,
            },
        ),
        (
            "binary",
            [[1], [1], [0]],
            [[1], [0], [1], [1]],
            {"auc": 0.5, "aupr": 0.75, "accuracy": 0.75, "f1": 6 / 7},
        ),
        (
            "labels",
            [[1, 0], [1, NONE], [NONE, 0], [0, 0]],
            [[1, 1], [0, NONE], [1, 0]],
            {"auc": 0.5, "aupr": 7 / 12, "accuracy": 7 / 12, "f1": 0.4},
        ),
    ],
)
def test_a_constant_answer_has_the_metrics_of_a_model(kind, training, others, scores):
    """The commonest class, mean or commoner values of the training rows, on the rows that are
    known of the others."""
    values = torch.tensor([*training, *others])
    known = torch.ones(len(values), dtype=torch.bool)
    split = Split(*torch.arange(len(values)).split([len(training), len(others), 0]))
    outputs = 3 if kind == "classes" else values.size(1)
    found = constant_scores(Targets(values, known, kind, [], outputs), split)
    assert found == pytest.approx({f"constant_{name}": score for name, score in scores.items()})


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("model", ["transformer", "gat"])
def test_edges_without_a_target_are_judged_by_the_others(tmp_path, model, directed):
    rows = [(i, j) for j in range(12) for i in range(j)]
    text = "".join(f"{j},{i},{'' if (i + j) % 5 == 0 else (i + j) % 2}\n" for i, j in rows)
    data = write(tmp_path / "links.csv", "a,b,sign\n" + text)
    own = dict(task="edge", target="sign", model=model, directed=directed)
    (about,) = trained(data=data, **own, folder=tmp_path).of_kind("graph_data")
    known = sum((i + j) % 5 != 0 for i, j in rows)
    assert about["training"] + about["validation"] + about["test"] == known
    predicted(tmp_path, data=data, folder=tmp_path)
    assert {(int(row["a"]), int(row["b"])) for row in predictions(tmp_path)} == {
        (j, i) for i, j in rows
    }


def test_hyperedges_of_mixed_sizes_in_csv_and_hif(tmp_path):
    sets = [(k, (k + 1) % 9) if k % 2 else (k, (k + 1) % 9, (k + 3) % 9) for k in range(9)]
    text = "".join(" ".join(f"n{i}" for i in own) + f",{k % 2}\n" for k, own in enumerate(sets))
    data = write(tmp_path / "sets.csv", "nodes,real\n" + text)
    own = dict(task="hyperedge", model="transformer", validation=0.3, test=0.0)
    (tmp_path / "a").mkdir()
    (about,) = trained(data=data, target="real", **own, folder=tmp_path / "a").of_kind("graph_data")
    assert (about["edges"], about["nodes"], about["test"]) == (9, 9, 0)
    predicted(tmp_path / "a", data=data, folder=tmp_path / "a")
    assert sorted(row["nodes"] for row in predictions(tmp_path / "a")) == sorted(
        line.split(",")[0] for line in text.splitlines()
    )
    content = {
        "incidences": [{"node": i, "edge": f"e{k}"} for k, own in enumerate(sets) for i in own],
        "nodes": [{"node": i, "attrs": {"x": i / 9, "t": "ab"[i % 2]}} for i in range(9)],
        "edges": [{"edge": f"e{k}", "attrs": {"u": k / 2}} for k in range(9)],
    }
    hif = write(tmp_path / "sets.json", json.dumps(content))
    (about,) = trained(data=hif, target="u", **own).of_kind("graph_data")
    assert about["target_kind"] == "number"
    (about,) = trained(data=hif, target="t", **{**own, "task": "node"}).of_kind("graph_data")
    assert about["target_kind"] == "classes"


def _arrays():
    ring = numpy.array([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    rng = numpy.random.default_rng(0)
    return {
        "edge_index": numpy.concatenate([ring + 4 * k for k in range(12)], 1),
        "x": rng.normal(size=(48, 3)),
        "batch": numpy.repeat(numpy.arange(12), 4),
        "y": numpy.arange(12) / 2,
        "labels": rng.integers(0, 2, (12, 3)),
        "z": numpy.arange(48) % 3,
    }


def _save(name, path):
    arrays = _arrays()
    if name == "npz":
        numpy.savez(path, **arrays)
    elif name == "h5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            file.update(arrays)
    else:
        torch.save({key: torch.as_tensor(own) for key, own in arrays.items()}, path)
    return path


@pytest.mark.parametrize("name", ["npz", "h5", "pt"])
def test_arrays_of_three_containers_are_one_data_set(tmp_path, name):
    data = _save(name, tmp_path / f"data.{name}")
    found = {}
    for task, target, kind in (
        ("graph", "y", "auto"),
        ("graph", "labels", "auto"),
        ("node", "z", "classes"),
    ):
        (about,) = trained(data=data, task=task, target=target, kind=kind).of_kind("graph_data")
        found[target] = about["target_kind"]
        assert (about["graphs"], about["edges"]) == (12, 48)
    assert found == {"y": "number", "labels": "labels", "z": "classes"}


def test_graph6_has_a_file_of_labels(tmp_path):
    data = write(tmp_path / "some.g6", "D?{\nDqc\n" * 8)
    labels = write(tmp_path / "labels.csv", "t\n" + "0\n1\n" * 8)
    own = dict(task="graph", target="t", folder=tmp_path)
    (about,) = trained(data=data, graphs=labels, **own).of_kind("graph_data")
    assert (about["graphs"], about["target_kind"]) == (16, "binary")
    assert len(predicted(tmp_path, data=data).of_kind("graph_prediction")) == 16


def test_molecules_of_an_npz_have_codes(tmp_path):
    from nsimplex.molecules import ATOM_FEATURES, BOND_FEATURES

    count = 15
    numpy.savez(
        tmp_path / "m.npz",
        atoms=numpy.ones((3 * count, len(ATOM_FEATURES)), numpy.uint8),
        atom_offsets=numpy.arange(count + 1) * 3,
        bonds=numpy.tile(numpy.array([[0, 1], [1, 2]], numpy.int32), (count, 1)),
        bond_types=numpy.zeros((2 * count, len(BOND_FEATURES)), numpy.uint8),
        bond_offsets=numpy.arange(count + 1) * 2,
        targets=numpy.arange(count) / count,
    )
    own = dict(data=tmp_path / "m.npz", task="graph", target="targets", model="gin")
    trained(**own, folder=tmp_path)
    model, _ = load(str(tmp_path))
    assert isinstance(model, MessagePassing)
    assert model.options["node_codes"] == list(ATOM_FEATURES.values())


def test_smiles_become_graphs_where_rdkit_is(tmp_path):
    text = "".join(f"{'C' * (1 + k)}O,{k}\n" for k in range(12))
    data = write(tmp_path / "m.csv", "smiles,value\n" + text)
    own = dict(data=data, task="graph", target="value")
    try:
        import rdkit  # noqa: F401
    except ImportError:
        with pytest.raises(ValueError, match=r"m\.csv: RDKit is needed: (.*) -m pip") as caught:
            trained(**own)
        assert f" {sys.executable} -m pip install rdkit" in str(caught.value)
        assert str(caught.value).endswith("; NSIMPLEX_PYTHON chooses another Python")
        return
    trained(**own, folder=tmp_path)
    new = write(tmp_path / "new.csv", "smiles\nCCO\n")
    (line,) = predicted(tmp_path, data=new).of_kind("graph_prediction")
    assert line["row"] == {"smiles": "CCO"} and isinstance(line["prediction"]["value"], float)
    with pytest.raises(ValueError, match=r"line 2: cannot parse the SMILES 'C1'"):
        predicted(tmp_path, data=write(tmp_path / "bad.csv", "smiles\nC1\n"))


def test_a_training_that_stops_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    edges, nodes, graphs = rings(tmp_path)
    own = dict(
        data=edges, nodes=nodes, graphs=graphs, task="graph", target="size", epochs=6, dropout=0.3
    )
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    whole = trained(**own, folder=tmp_path / "whole")
    first = Channel(most=3)
    with pytest.raises(Stopped):
        trained(first, **own, folder=tmp_path / "broken")
    assert not (tmp_path / "broken" / "model.safetensors").exists()
    second = trained(**own, folder=tmp_path / "broken", resume=True)
    lines = [*first.of_kind("graph_epoch"), *second.of_kind("graph_epoch")]
    assert lines == whole.of_kind("graph_epoch")
    assert second.of_kind("graph_fit") == whole.of_kind("graph_fit")
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "broken")]
    assert models[0] == models[1]


def test_early_stopping_ends_after_the_patience(tmp_path):
    edges, nodes = two_groups(tmp_path)
    said = trained(data=edges, nodes=nodes, epochs=50, patience=2, learning_rate=1e-9)
    assert len(said.of_kind("graph_epoch")) == 3  # nothing gets better than after the first


A, B = "from,to,w\n", "name,x,label\n"
NODES = B + "a,1,u\nb,2,v\nc,3,u\nd,4,v\n"
BAD = {
    "a missing column": (
        A + "a,b,1\n",
        NODES,
        {"target": "no"},
        "--target: expected a column 'no'",
    ),
    "an unknown node": (A + "a,z,1\n", NODES, {}, "line 2: expected a node of the file of nodes"),
    "a node twice": (A + "a,b,1\n", NODES + "a,5,u\n", {}, "line 6: the node 'a' is listed twice"),
    "nan in features": (A + "a,b,1\n", NODES.replace("3", "nan"), {}, "line 4: expected a finite"),
    "a feature beyond float32": (
        A + "a,b,1\n",
        NODES.replace("3", "1e39"),
        {},
        "line 4: expected a number of at most 3.4e+38 in column",
    ),
    "a target beyond float32": (
        A + "a,b,1\n",
        NODES.replace("u", "1e39").replace("v", "2"),
        {},
        "line 2: expected a number of at most 3.4e+38 in column 'label', got '1e39'",
    ),
    "an empty feature": (A + "a,b,\n", NODES, {}, "line 2: expected a finite number in column 'w'"),
    "one class": (A + "a,b,1\n", NODES.replace("v", "u"), {}, "at least two classes"),
    "edges that differ": (A + "a,b,1\nb,a,2\n", NODES, {}, "line 3: expected the features of line"),
    "too few rows": (A + "a,b,1\n", B + "a,1,u\nb,1,v\n", {}, "leave none for validation"),
    "a short line": (A + "a,b\n", NODES, {}, "line 2: expected 3 cells, got 2"),
    "no nodes": (A + "a,b,1\n", "", {"nodes": ""}, "--nodes: expected a file with the column"),
    "no graphs": (A + "a,b,1\n", NODES, {"task": "graph"}, "expected a column 'graph'"),
    "an empty file": ("", NODES, {}, "it is empty"),
    "heads": (
        A + "a,b,1\n",
        NODES * 1,
        {"heads": 3, "model": "gat"},
        "--heads: expected a divisor",
    ),
    "a column that is text": (
        A + "a,b,1\n",
        NODES,
        {"kind": "number"},
        "line 2: expected a finite number in column 'label', got 'u'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_data_that_cannot_be_used_is_told_in_one_line(tmp_path, name):
    edges, nodes, options, message = BAD[name]
    own = dict(data=write(tmp_path / "e.csv", edges), nodes=write(tmp_path / "n.csv", nodes))
    with pytest.raises(ValueError) as caught:
        trained(**{**own, "validation": 0.4, "test": 0.0, **options})
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_repeated_and_reversed_edges_and_nodes_without_edges_are_taken(tmp_path):
    edges = write(tmp_path / "e.csv", A + "a,b,1\nb,a,1\na,b,1\nc,c,2\n")
    nodes = write(tmp_path / "n.csv", NODES + "e,5,u\nf,6,v\n")
    own = dict(data=edges, nodes=nodes, validation=0.4, test=0.0)
    for model in ("gcn", "transformer"):
        (about,) = trained(**own, model=model).of_kind("graph_data")
        assert (about["nodes"], about["edges"]) == (6, 2)


def test_a_graph_without_edges_or_nodes_is_taken(tmp_path):
    edges = write(tmp_path / "e.csv", "a,b,graph\n0,1,g\n")
    nodes = write(tmp_path / "n.csv", "node,graph,x\n0,g,1\n1,g,2\n" + "0,h,3\n")
    graphs = write(tmp_path / "g.csv", "name,t\ng,1\nh,2\ni,3\nj,4\n")
    own = dict(data=edges, nodes=nodes, graphs=graphs, task="graph", target="t", folder=tmp_path)
    for model in ("gcn", "transformer"):
        (about,) = trained(**own, model=model, validation=0.5, test=0.0).of_kind("graph_data")
        assert (about["graphs"], about["nodes"], about["edges"]) == (4, 3, 1)
        assert len(predicted(tmp_path, data=edges, nodes=nodes, graphs=graphs).lines) == 5


def test_what_is_left_out_is_a_warning_of_the_command(tmp_path):
    path = tmp_path / "data.npz"
    numpy.savez(path, **_arrays(), pos=numpy.ones((48, 3)))
    own = dict(data=path, task="graph", target="y", epochs=1)
    said = trained(**own, folder=tmp_path).warnings
    assert said == [
        f"{path}: left out 'labels', 'z', 'pos'; --ignore .. leaves them out without a warning"
    ]
    assert predicted(tmp_path, data=path).warnings == said
    assert trained(**own, ignore="pos,labels,z").warnings == []


def test_a_class_of_the_test_rows_alone_is_a_warning(tmp_path):
    edges = write(tmp_path / "e.csv", "from,to\na,b\n")
    text = "".join(f"n{k},{k},{'u' if k < 9 else 'rare'}\n" for k in range(10))
    nodes = write(tmp_path / "n.csv", B + "a,1,v\nb,2,v\nc,2,v\nd,3,v\n" + text)
    for seed in range(20):
        own = dict(validation=0.45, test=0.45, split_seed=seed, epochs=1)
        try:
            said = trained(data=edges, nodes=nodes, **own)
        except ValueError:
            continue
        if said.warnings:
            assert "no training row has the classes" in said.warnings[0]
            return
    raise AssertionError("no split had a class outside of training")


def test_predictions_refuse_data_of_another_kind(tmp_path):
    edges, nodes = two_groups(tmp_path)
    trained(data=edges, nodes=nodes, folder=tmp_path)
    other = write(tmp_path / "o.csv", nodes.read_text().replace("red", "green"))
    with pytest.raises(ValueError, match="a text of column 'colour' that the model knows"):
        predicted(tmp_path, data=edges, nodes=other)
    with pytest.raises(ValueError, match="expected features of nodes age, colour"):
        predicted(tmp_path, data=edges)
    write(tmp_path / "model.safetensors", "x")
    with pytest.raises(ValueError, match="cannot read .*model.safetensors"):
        predicted(tmp_path, data=edges, nodes=nodes)


def test_the_command_trains_keeps_goes_on_and_predicts(executable, tmp_path):
    edges, nodes = two_groups(tmp_path)
    run, quiet = tmp_path / "run", ("--threads", "1")
    files = [edges, "--nodes", nodes]
    line = [executable, "graph", "train", *files, "--task", "node", "--target", "label"]
    done = subprocess.run(
        [*line, "--model", "gcn", "--epochs", "3", "--out", run, *quiet],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "accuracy" in done.stdout, done.stderr
    names = {path.name for path in run.iterdir()}
    assert {"config.toml", "metrics.jsonl", "inputs.json", "model.safetensors"} <= names
    kinds = [json.loads(each)["kind"] for each in (run / "metrics.jsonl").read_text().splitlines()]
    assert kinds == ["graph_data", *["graph_epoch"] * 3, "graph_fit"]
    before = (run / "metrics.jsonl").read_bytes()
    done = subprocess.run(
        [executable, "graph", "train", "--resume", run, *quiet], capture_output=True, text=True
    )
    assert done.returncode == 0 and "had been finished" in done.stderr, done.stderr
    assert (run / "metrics.jsonl").read_bytes() == before
    done = subprocess.run(
        [executable, "graph", "predict", run, *files, "--out", tmp_path / "new", "--json", *quiet],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    lines = [json.loads(each) for each in done.stdout.splitlines()]
    assert len(lines) == 41 and lines[0]["row"] == {"name": "p0"}
    assert len(predictions(tmp_path / "new")) == 40
    bad = subprocess.run(
        [*line[:-1], "no", "--out", tmp_path / "bad"], capture_output=True, text=True
    )
    assert bad.returncode == 2 and len(bad.stderr.splitlines()) == 1
    assert bad.stderr.startswith("nsimplex: --target: expected a column 'no'")
    assert not (tmp_path / "bad").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told_in_one_line(executable, tmp_path):
    edges, nodes = two_groups(tmp_path)
    line = [executable, "graph", "train", edges, "--nodes", nodes, "--task", "node"]
    line += ["--target", "label", "--out", tmp_path / "run", "--device"]
    for device, says in (("cuda", "--device: expected cpu, "), ("tpu", "--device: unknown device")):
        done = subprocess.run([*line, device], capture_output=True, text=True)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith(f"nsimplex: {says}"), done.stderr
    assert not (tmp_path / "run").exists()


def _rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_heaviest_tuples_of_predictions_are_listed_by_the_names_of_nodes(tmp_path):
    edges, nodes = two_groups(tmp_path)
    own = dict(data=edges, nodes=nodes)
    said = trained(**own, folder=tmp_path, model="transformer")
    shown = said.of_kind("graph_tuples")
    assert [len(each["tuples"]) for each in shown] == [8, 8, 8]
    names = {line.split(",")[0] for line in nodes.read_text().splitlines()[1:]}
    assert all(set(each["nodes"]) <= names for each in shown)
    known = {row["name"]: list(row.values())[3] for row in _rows_of(nodes)}
    for each in shown:
        assert each["classes"] == [known[name] for name in each["nodes"]]
    found = predicted(tmp_path, **own, folder=tmp_path, explain=2)
    lines = found.of_kind("graph_tuples")
    assert [each["of"]["name"] for each in lines] == [row["name"] for row in predictions(tmp_path)]
    rows = _rows_of(tmp_path / "tuples.csv")
    assert list(rows[0]) == ["name", "tuple", "weight", "even weight", "class", "head"]
    assert [(row["tuple"], float(row["weight"])) for row in rows] == [
        (", ".join(each["nodes"]), pytest.approx(each["weight"], rel=1e-5))
        for line in lines
        for each in line["tuples"]
    ]
    assert any(table[0][-5:] == list(rows[0])[-5:] for table in found.tables)
    for line in lines:
        (target,) = line["target"]
        assert line["nodes"][target] == line["of"]["name"]
        assert all(set(own) <= set(range(len(line["nodes"]))) for own in line["sets"])


@pytest.mark.parametrize("task", ["node", "edge"])
def test_models_of_several_graphs_show_tuples_of_the_graphs_of_the_test(tmp_path, task):
    edges, nodes, _ = rings(tmp_path)
    own = dict(data=edges, nodes=nodes, target="place")
    if task == "edge":
        lines = edges.read_text().splitlines()
        text = "".join(f"{line},{number}\n" for number, line in enumerate(lines[1:]))
        own = dict(data=write(tmp_path / "more.csv", lines[0] + ",weight\n" + text))
        own = own | dict(target="weight")
    shown = trained(**own, task=task, model="transformer").of_kind("graph_tuples")
    assert len(shown) == 3 and len({each["of"]["graph"] for each in shown}) == 3


def test_other_models_than_transformers_have_no_tuples(tmp_path):
    edges, nodes = two_groups(tmp_path)
    said = trained(data=edges, nodes=nodes, folder=tmp_path, model="gin")
    assert not said.of_kind("graph_tuples")
    with pytest.raises(ValueError, match="--explain: expected a transformer in RUN, got gin"):
        predicted(tmp_path, data=edges, nodes=nodes, explain=1)
