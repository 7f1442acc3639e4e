"""Columns of a table that is too wide: screen_columns, and `screen` of estimators and command."""

import json
import subprocess

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, CausalPipeline


@pytest.fixture(scope="module")
def made():
    """300 rows of 60 columns: a graph of six columns among noise."""
    small = causal.simulate(nodes=6, degree=1, observations=300, seed=4)
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(300, 60, generator=generator, dtype=torch.float64)
    at = [5, 11, 20, 21, 40, 59]
    table[:, at] = small.table
    return table, at, small


def test_keeps_the_columns_that_correlate_most(made):
    table, at, _ = made
    joined = torch.corrcoef(table.T).abs().fill_diagonal_(0).amax(0)
    for count in (2, 3, 17, 60, 99):
        kept = causal.screen_columns(table, count)
        assert kept.tolist() == joined.topk(min(count, 60)).indices.sort().values.tolist()
    assert set(causal.screen_columns(table, 4).tolist()) <= set(at)
    spread = causal.screen_columns(table, 7, by="variance")
    assert spread.tolist() == table.var(0).topk(7).indices.sort().values.tolist()


def test_a_graph_of_the_columns_kept_has_their_names_and_numbers(made):
    table, _, _ = made
    names = [f"g{column}" for column in range(60)]
    kept = causal.screen_columns(table, 8).tolist()
    graph = CausalGraph(screen=8).fit(table, names=names)
    assert graph.columns_ == kept and graph.names_ == [f"g{column}" for column in kept]
    assert graph.n_features_in_ == 60 and graph.dropped_ == []
    assert graph.adjacency_.equal(causal.causal_fit(table[:, kept]).adjacency)
    assert graph.transform(table).equal(table[:, kept])
    pairs = graph.adjacency_.nonzero().tolist()
    assert {(edge.cause, edge.effect) for edge in graph.edges()} == {
        (names[kept[i]], names[kept[j]]) for i, j in pairs
    }
    numbered = CausalGraph(screen=8, drop=True).fit(torch.cat([torch.ones(300, 1), table], 1))
    assert numbered.columns_ == [column + 1 for column in kept] and numbered.n_features_in_ == 61
    assert CausalGraph(screen=500).fit(table).columns_ == list(range(60))


def test_a_pipeline_is_saved_with_its_screening(made, tmp_path):
    table, _, _ = made
    pipeline = CausalPipeline(screen=5, screen_by="variance", steps=3).fit(table)
    pipeline.save(tmp_path / "p")
    again = CausalPipeline.load(tmp_path / "p")
    assert (again.screen, again.screen_by, again.columns_) == (5, "variance", pipeline.columns_)
    assert again.transform(table).equal(pipeline.transform(table))


def test_missing_values(made):
    table = made[0].clone()
    table[:5, 3] = torch.nan
    kept = causal.screen_columns(table, 6)
    assert CausalGraph(screen=6, missing="rows").fit(table).columns_ == (
        causal.screen_columns(table[5:], 6).tolist()
    )
    assert CausalGraph(screen=6, missing="likelihood").fit(table).columns_ == kept.tolist()


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(screen=1), "screen: expected 0 or at least 2, got 1"),
        (dict(screen=-3), "screen: expected 0 or at least 2, got -3"),
        (
            dict(screen=4, screen_by="mean"),
            'screen_by: expected "correlation" or "variance", got \'mean\'',
        ),
        (dict(screen=4, kinds={0: "binary"}), "screen: expected continuous columns alone"),
        (dict(screen=2**70), r"^\[CausalGraph\] screen: expected an integer from -2\^63 to"),
    ],
)
def test_names_what_cannot_be(made, options, says):
    table = made[0].clone()
    table[:, 0] = (table[:, 0] > 0).double()
    with pytest.raises(ValueError, match=says):
        CausalGraph(**options).fit(table)


def test_cells_keep_the_place_of_their_genes(made):
    anndata = pytest.importorskip("anndata")
    from nsimplex.causal import sc

    table, _, _ = made
    data = anndata.AnnData(table.numpy())
    sc.fit(data, screen=8, steps=2)
    kept = causal.screen_columns(table, 8).tolist()
    assert data.var["causal_used"].to_numpy().nonzero()[0].tolist() == kept
    assert data.varp["causal_graph"].shape == (60, 60)


def test_the_command_keeps_the_names_of_the_file(made, executable, subprocess_env, tmp_path):
    table, _, _ = made
    kept = causal.screen_columns(table, 8).tolist()
    path = tmp_path / "wide.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    path.write_text(",".join(f"g{column}" for column in range(60)) + "\n" + rows + "\n")
    words = [executable, "causal", "fit", path, "--screen", "8", "--out", tmp_path / "run"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, env=subprocess_env)
    assert done.returncode == 0, done.stderr
    line, *_ = [json.loads(line) for line in done.stdout.splitlines()]
    assert line["columns"] == kept and line["screened_out"] == 52 and line["features"] == 8
    header = (tmp_path / "run" / "graph.csv").read_text().splitlines()[0]
    assert header.split(",")[-8:] == [f"g{column}" for column in kept]
    done = subprocess.run(
        [*words, "--overwrite"], capture_output=True, text=True, env=subprocess_env
    )
    assert "screened 60 columns by correlation, kept 8" in done.stdout
    for wrong, says in (
        (["1"], "--screen: expected 0 or at least 2, got 1"),
        (["8", "--screen-by", "mean"], "--screen-by"),
        (["8", "--kind", "g0=binary"], "--screen: expected numbers in all columns, got --kind"),
    ):
        done = subprocess.run(
            [*words[:5], *wrong], capture_output=True, text=True, env=subprocess_env
        )
        assert done.returncode == 2 and says in done.stderr, done.stderr
