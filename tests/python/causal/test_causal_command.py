"""``nsimplex causal fit`` and ``CausalGraph`` learn the same graph from the same file."""

import json
import subprocess

import numpy as np
import pytest
import torch

from nsimplex.causal import CausalGraph
from nsimplex.graph_files import read_table

pandas = pytest.importorskip("pandas")

NUMBERS = ["dose", "growth", "visits"]


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(5)
    frame = pandas.DataFrame({"dose": random.normal(size=500)})
    frame["batch"] = random.choice(["monday", "friday", "sunday"], 500)
    frame["growth"] = 1.2 * frame["dose"] + 4 * (frame["batch"] == "friday")
    frame["growth"] += random.normal(size=500)
    frame["visits"] = random.poisson(np.exp(0.5 * frame["dose"]))
    frame["sick"] = np.where(frame["growth"] + random.logistic(size=500) > 0, "yes", "no")
    frame["ward"] = random.choice(["a", "b", "c"], 500)
    frame["set"] = [
        ("growth" if row % 4 == 0 else "dose;visits") * (row % 2 == 0) for row in range(500)
    ]
    return frame


#: Columns, options of the command, of the estimator, and of its fit.
CASES = {
    "groups": ([*NUMBERS, "batch"], "--groups batch", {}, {"groups": "batch"}),
    "targets": ([*NUMBERS, "set"], "--targets set", {}, {"targets": "set"}),
    "soft": (
        [*NUMBERS, "batch", "set"],
        "--groups batch --targets set --soft",
        {"soft": True},
        {"groups": "batch", "targets": "set"},
    ),
    "kinds": (
        ["dose", "sick", "ward", "visits", "batch"],
        "--kind sick=binary --kind ward=category --kind visits=count --groups batch",
        {"kinds": {"sick": "binary", "ward": "category", "visits": "count"}},
        {"groups": "batch"},
    ),
}


@pytest.mark.parametrize("missing", ["refuse", "rows"])
@pytest.mark.parametrize("case", CASES)
def test_the_command_and_the_estimator_agree(executable, frame, tmp_path, case, missing):
    columns, options, own, rows = CASES[case]
    table = frame[columns].copy()
    if missing == "rows":
        table.loc[[3, 4, 77], "dose"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    agree(executable, tmp_path, table, options, dict(own, missing=missing), rows)


def test_they_agree_about_gaps(executable, frame, tmp_path):
    table = frame[NUMBERS].copy()
    table.loc[::7, "dose"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    line = agree(executable, tmp_path, table, "", {"missing": "likelihood"}, {})
    assert line["gaps"] == 72


def agree(executable, folder, table, options, own, rows):
    if "targets" in rows:
        rows = dict(rows, targets=[cell.split(";") for cell in table["set"]])
        table = table.drop(columns="set")
    graph = CausalGraph(standardise=True, seed=1, **own).fit(table, **rows)
    done = subprocess.run(
        [executable, "causal", "fit", folder / "table.csv", "--standardise", "--json", "--out"]
        + [folder / "run", "--missing", own["missing"], *options.split()],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = read_table(folder / "run" / "graph.csv")
    assert found.columns == graph.names_
    torch.testing.assert_close(found.values, graph.adjacency_, rtol=1e-9, atol=1e-12)
    assert graph.adjacency_.count_nonzero() > 0
    return json.loads(done.stdout.splitlines()[0])
