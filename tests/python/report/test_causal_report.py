"""The report of causal graphs: the answer, its baselines, what scales tell."""

import json

import pytest

pytest.importorskip("matplotlib")

from nsimplex.report import write_report

FIGURES = {
    "shd": 3,
    "sid": 9,
    "f1": 0.8,
    "precision": 0.9,
    "recall": 0.72,
    "auroc": 0.95,
    "auprc": 0.91,
}
FIT = {
    "task": "fit",
    "table": "cells & more.csv",
    "estimator": "order",
    "model": "free variances",
    "standardise": True,
    "observations": 853,
    "features": 11,
    "edges": 17,
    "removed": ["a -> b"],
    **FIGURES,
    "at_0.3": {"threshold": 0.3, "shd": 4, "f1": 0.7, "sid": 12},
    "varsortability": 0.671,
    "r2_sortability": 0.52,
    "sortability_of": "truth",
    "baselines": {
        "empty": {"edges": 0, "shd": 17, "f1": 0.0},
        "variance_sort": {"edges": 9, **FIGURES, "shd": 14},
    },
    "seconds": 0.0123,
}


def page_of(folder, *rows):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_report(folder).read_text()


def test_an_answer_stands_beside_the_baselines(tmp_path):
    page = page_of(tmp_path, FIT)
    assert "<h1>Causal graph of 11 columns</h1>" in page
    lead = (
        "17 edges, learned from 853 rows. F1 against the known graph is 0.80; the best baseline, "
    )
    assert lead + "sorted by variance, reaches 0.80." in page
    assert "Beside the known graph: cells &amp; more.csv" in page
    for text in (
        "order (free variances)",
        "sorted by variance",
        "empty graph",
        "cut at 0.3",
        "0.671",
        "0.520",
    ):
        assert text in page, text
    assert "Columns were standardised" in page and "closed cycles: a -&gt; b" in page
    assert "<svg" in page


def test_a_graph_without_a_known_one_has_no_columns_of_errors(tmp_path):
    figures = dict.fromkeys(["shd", "sid", "f1", "precision", "recall", "auroc", "auprc"])
    others = {name: {"edges": 7, **figures} for name in FIT["baselines"]}
    row = {**FIT, **figures, "baselines": others}
    page = page_of(tmp_path, {key: row[key] for key in row if not key.startswith("at_")})
    assert ">edges</th>" in page and "sorted by variance" in page
    assert ">SHD</th>" not in page and 'class="strong"' not in page


def test_the_least_shd_alone_is_green(tmp_path):
    page = page_of(tmp_path, FIT)
    assert page.count('class="strong"') == 1 and '<td data-of="SHD" class="strong">3</td>' in page
    page = page_of(tmp_path, {**FIT, "at_0.3": {**FIT["at_0.3"], "shd": 2}})
    assert page.count('class="strong"') == 1 and '<td data-of="SHD" class="strong">2</td>' in page


def test_without_a_truth_there_are_no_figures(tmp_path):
    row = {
        **FIT,
        **dict.fromkeys(FIGURES),
        "sortability_of": "fit",
        "baselines": {"empty": {"edges": 0}},
    }
    del row["at_0.3"]
    page = page_of(tmp_path, row)
    assert "the learned graph" in page and "<svg" not in page
    assert 'class="strong"' not in page


def test_made_up_tables_are_listed_and_odd_lines_do_no_harm(tmp_path):
    simulated = {
        "task": "simulate",
        "nodes": 20,
        "edges": 40,
        "observations": 1000,
        "seed": 3,
        "table": "t.csv",
    }
    page = page_of(
        tmp_path,
        simulated,
        {"task": "fit"},
        {"task": "fit", "baselines": [1], "shd": 2, "removed": 3},
    )
    assert "Made-up tables" in page and "t.csv" in page


def test_answers_for_new_rows_are_counted(tmp_path):
    rows = [
        {
            "task": "predict",
            "row": str(i),
            "label": "<b>" if i % 3 else "a",
            "probabilities": {"a": 0.5},
        }
        for i in range(9)
    ]
    page = page_of(tmp_path, *rows)
    assert "Answers for new rows" in page and "&lt;b&gt;" in page and "<td>6</td>" in page
    page = page_of(
        tmp_path, *({"task": "predict", "row": str(i), "number": 10.0 * i} for i in range(4))
    )
    assert all(text in page for text in ("Answers for new rows", "largest", "15.0000", "30.0000"))


def certainty_rows():
    """What `nsimplex causal fit --confidence 10 --limits` writes besides the fit."""
    edge = {"cause": "a", "effect": "b", "weight": 1.5, "frequency": 0.9, "connected": 1.0}
    return [
        {
            "kind": "confidence",
            "replicates": 10,
            "resampling": "halves",
            "edges": 1,
            "edges_per_sample": 1.2,
            "stable": 1,
            "stable_from": 0.9,
            "expected_false": 0.9,
            "findings": ["1 of 1 edges have their direction in at least 90% of 10 samples"],
        },
        edge | {"kind": "edge_confidence", "ancestor": 1.0, "low": 1.4, "high": 1.6},
        {
            "kind": "causal_limits",
            "bic": 12.5,
            "edges": 1,
            "reversible": [["a", "b"]],
            "varsortability": 0.5,
            "sorted_by_variance": 1,
            "dependent": [],
            "tests": 1,
            "findings": ["BIC of the linear Gaussian model: 12.5", "<b>"],
        },
        {"kind": "causal_warnings", "findings": ["3 of 40 rows repeat earlier ones"]},
    ]


def test_certainty_is_told_in_sentences(tmp_path):
    page = page_of(tmp_path, *certainty_rows())
    assert "How sure the graph is" in page
    assert "<li>1 of 1 edges have their direction in at least 90% of 10 samples.</li>" in page
    assert "<li>BIC of the linear Gaussian model: 12.5.</li>" in page
    assert "<li>3 of 40 rows repeat earlier ones.</li>" in page
    assert "&lt;b&gt;" in page


def test_effects_are_a_table_of_intervals(tmp_path):
    figures = {"effect": 1.5, "low": 1.0, "high": 2.0, "least": 1.5, "most": 1.75}
    row = {"kind": "effect", "cause": "<b>", "affected": "growth", **figures}
    page = page_of(tmp_path, {"kind": "effects", "effects": 1}, row)
    assert "Total effects" in page and "&lt;b&gt; → growth" in page and "<b> →" not in page
    assert "1.0000 to 2.0000" in page and "1.5000 to 1.7500" in page
