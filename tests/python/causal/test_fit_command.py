"""`nsimplex causal fit --confidence` and `--limits`: what edge_confidence and causal_limits say."""

import csv
import json
import math
import subprocess

import pytest
import torch

from nsimplex import causal

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def file(tmp_path):
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(60, 4, generator=generator, dtype=torch.float64)
    values = noise.clone()
    values[:, 1] += 1.5 * values[:, 0]
    values[:, 2] -= values[:, 1]
    path = tmp_path / "table.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    path.write_text(",".join(NAMES) + "\n" + rows + "\n")
    return path


def run(executable, env, *words):
    words = [executable, "causal", "fit", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, env=env)


@pytest.mark.parametrize("resampling", ["halves", "bootstrap"])
def test_the_command_says_what_the_functions_say(
    executable, subprocess_env, file, tmp_path, resampling
):
    options = ["--confidence", 12, "--resampling", resampling, "--limits", "--out", tmp_path / "r"]
    done = run(executable, subprocess_env, file, *options, "--json", "--seed", 3)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    table = causal.usable_table(file)
    expected = causal.edge_confidence(
        table.values, replicates=12, resampling=resampling, seed=3, n_jobs=None
    )
    edges = [line for line in lines if line["kind"] == "edge_confidence"]
    assert len(edges) == int((expected.adjacency != 0).sum()) > 0
    for line in edges:
        i, j = NAMES.index(line["cause"]), NAMES.index(line["effect"])
        assert line["weight"] == pytest.approx(expected.adjacency[i, j].item())
        assert line["frequency"] == pytest.approx(expected.frequencies[i, j].item())
        assert line["ancestor"] == pytest.approx(expected.ancestors[i, j].item())
        assert line["low"] == pytest.approx(expected.low[i, j].item())
        assert line["high"] == pytest.approx(expected.high[i, j].item())
    (summary,) = [line for line in lines if line["kind"] == "confidence"]
    assert summary["expected_false"] == pytest.approx(expected.expected_false(0.9))
    joined = expected.expected_false(0.9, connections=True)
    assert summary["expected_false_connections"] == pytest.approx(joined)
    learned = expected.adjacency != 0
    assert summary["stable_connections"] == int((expected.connected[learned] >= 0.9).sum())
    (limits,) = [line for line in lines if line["kind"] == "causal_limits"]
    known = causal.causal_limits(table.values, expected.adjacency, names=NAMES)
    assert limits["bic"] == pytest.approx(known.bic) and limits["findings"] == known.report()
    with open(tmp_path / "r" / "confidence.csv", newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == int(((expected.frequencies > 0) | (expected.adjacency != 0)).sum())


def test_rare_edges_are_left_out(executable, subprocess_env, file, tmp_path):
    options = ["--confidence", 12, "--min-frequency", 0.7, "--limits", "--out", tmp_path / "r"]
    done = run(executable, subprocess_env, file, *options, "--json", "--seed", 3)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    table = causal.usable_table(file)
    sure = causal.edge_confidence(table.values, replicates=12, seed=3)
    kept = sure.stable(0.7)
    assert int((kept != 0).sum()) > 0
    (fit,) = [line for line in lines if line["kind"] == "fit"]
    assert fit["edges"] == int((kept != 0).sum()) and fit["min_frequency"] == 0.7
    (summary,) = [line for line in lines if line["kind"] == "confidence"]
    assert summary["edges"] == int((sure.adjacency != 0).sum())  # of all rows
    assert summary["stable"] == fit["edges"] and summary["stable_from"] == 0.7
    assert summary["expected_false"] == pytest.approx(sure.expected_false(0.7))
    (limits,) = [line for line in lines if line["kind"] == "causal_limits"]
    assert limits["edges"] == fit["edges"]
    graph = causal.CausalGraph(confidence=12, min_frequency=0.7, seed=3).fit(file)
    assert torch.equal(graph.adjacency_ != 0, kept != 0)
    with open(tmp_path / "r" / "graph.csv", newline="") as text:
        rows = [[float(cell) for cell in row[-4:]] for row in list(csv.reader(text))[1:]]
    torch.testing.assert_close(torch.tensor(rows, dtype=torch.float64), kept)


def test_limits_of_a_standardised_fit_are_in_its_units(executable, subprocess_env, file):
    done = run(executable, subprocess_env, file, "--standardise", "--limits", "--json")
    assert done.returncode == 0, done.stderr
    (said,) = [
        line
        for line in map(json.loads, done.stdout.splitlines())
        if line["kind"] == "causal_limits"
    ]
    known = causal.CausalGraph(standardise=True).fit(file).limits(file)
    assert said["findings"] == known.report()
    assert said["bic"] == pytest.approx(known.bic)
    assert said["varsortability"] == pytest.approx(known.varsortability)


def test_no_bound_is_claimed_up_to_a_half(executable, subprocess_env, file):
    done = run(executable, subprocess_env, file, "--confidence", 4, "--min-frequency", 0.5)
    assert done.returncode == 0, done.stderr
    assert "have their direction in at least 50% of 4 samples\n" in done.stdout


def test_the_terminal_has_a_table_and_sentences(executable, subprocess_env, file):
    done = run(executable, subprocess_env, file, "--confidence", 4, "--limits")
    assert done.returncode == 0, done.stderr
    assert "a -> b" in done.stdout and "connection" in done.stdout
    assert "of 4 samples" in done.stdout and "BIC of the linear Gaussian model" in done.stdout


def test_a_long_table_says_where_its_other_edges_are(executable, subprocess_env, tmp_path):
    generator = torch.Generator().manual_seed(2)
    values = torch.randn(400, 50, generator=generator, dtype=torch.float64)
    for effect in range(1, 50):
        values[:, effect] += values[:, effect - 1]
    names = ",".join(f"c{n}" for n in range(50))
    rows = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    (tmp_path / "wide.csv").write_text(f"{names}\n{rows}\n")
    words = [tmp_path / "wide.csv", "--confidence", 2]
    done = run(executable, subprocess_env, *words)
    assert done.returncode == 0, done.stderr
    assert " more edges are not shown; --out writes all\n" in done.stdout
    done = run(executable, subprocess_env, *words, "--out", tmp_path / "r")
    assert " more edges are in confidence.csv\n" in done.stdout


def test_kinds_groups_and_words_reach_the_samples(executable, subprocess_env, file, tmp_path):
    rows = file.read_text().splitlines()
    lines = [rows[0] + ",batch,sick"]
    lines += [f"{row},{'xy'[n % 2]},{n % 3 // 2}" for n, row in enumerate(rows[1:])]
    (tmp_path / "mixed.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tiers.txt").write_text("a,b\nc,d,sick\n")
    done = run(
        executable,
        subprocess_env,
        tmp_path / "mixed.csv",
        *("--groups", "batch", "--kind", "sick=binary", "--confidence", 2),
        *("--forbid", "a:d", "--tiers", tmp_path / "tiers.txt"),
    )
    assert done.returncode == 0, done.stderr
    assert "of 2 samples" in done.stdout


@pytest.mark.parametrize("options", [[], ["--standardise"]])
def test_units_far_from_one_change_no_interval(executable, subprocess_env, file, tmp_path, options):
    names, *rows = file.read_text().splitlines()
    large = tmp_path / "large.csv"
    scaled = [",".join(repr(1e300 * float(cell)) for cell in row.split(",")) for row in rows]
    large.write_text("\n".join([names, *scaled, ""]))
    found = []
    for table in (file, large):
        words = [*options, "--confidence", 4, "--limits", "--json"]
        done = run(executable, subprocess_env, table, *words)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        edges = [line for line in lines if line["kind"] == "edge_confidence"]
        (limits,) = [line for line in lines if line["kind"] == "causal_limits"]
        found.append(([(e["cause"], e["effect"], e["frequency"]) for e in edges], edges, limits))
    (pairs, edges, _), (large_pairs, large_edges, limits) = found
    assert pairs == large_pairs and len(pairs) > 0
    for one, other in zip(edges, large_edges):
        assert [one["low"], one["high"]] == pytest.approx([other["low"], other["high"]])
    assert math.isfinite(limits["bic"])


@pytest.mark.parametrize(
    "words, said",
    [
        (["--confidence", "1"], "--confidence: expected 0 or at least 2, got 1"),
        (["--confidence", "100001"], "--confidence"),
        (["--resampling", "thirds"], "--resampling"),
        (["--min-frequency", "0.9"], "--min-frequency: expected a number of samples, --confidence"),
        (["--confidence", "4", "--min-frequency", "1.5"], "--min-frequency"),
        (["--confidence", "4", "--min-frequency", "nan"], "--min-frequency"),
        (["--limits", "--missing", "likelihood"], "--limits: expected a table without gaps"),
        (["--limits", "--groups", "a"], "--limits: expected rows of one group, got --groups"),
        (["--limits", "--targets", "a"], "--limits: expected rows without interventions, got"),
        (["--limits", "--kind", "a=count"], "--limits: expected continuous columns, got --kind"),
    ],
)
def test_wrong_options_are_one_line(executable, subprocess_env, file, tmp_path, words, said):
    done = run(executable, subprocess_env, file, *words, "--out", tmp_path / "r")
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.strip().count("\n") == 0
    assert not (tmp_path / "r").exists()
