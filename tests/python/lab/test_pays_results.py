"""The results of the benchmark of orders: intervals, tables, the figure and the committed lines."""

from __future__ import annotations

import json

import pytest

from nsimplex.lab.pays import TASKS, ModelSpec
from nsimplex.lab.pays.__main__ import main
from nsimplex.lab.pays.compared_models import cost
from nsimplex.lab.pays.figure import comparisons_of, gain_text
from nsimplex.lab.pays.paired_training import append_line, read_lines
from nsimplex.lab.pays.result_tables import table
from nsimplex.lab.pays.summary import compare, interval, summarize


def made_line(model, seed, value, rate=0.01, valid=None, **others):
    return dict(
        kind="run", task="copy", metric="accuracy", model=model, depth=1, seed=seed,
        rate=rate, score=value, valid=value if valid is None else valid, long=None, dim=8,
        hidden=16, parameters=1, steps=2, level_step=None, level_seconds=None, norm="none",
        equal="flops",
    ) | others  # fmt: skip


def test_intervals_and_paired_gains():
    mean, half = interval([0.5, 0.6, 0.7])
    assert mean == pytest.approx(0.6)
    assert half == pytest.approx(4.30265 * 0.1 / 3**0.5, rel=1e-5)
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x1", 2, 0.6), line("1x2", 1, 0.7), line("1x2", 2, 0.9)]
    lines += [line("2x1", 1, 0.8), line("2x1", 2, 0.8), line("2x1", 1, 0.9, 0.1, valid=0.1)]
    rows = {row.model: row for row in summarize(lines)}
    assert rows["2x1"].scores == [0.8, 0.8]
    assert rows["2x1"].gain == pytest.approx([0.1, -0.1])
    assert rows["1x1"].gain == pytest.approx([-0.2, -0.3])
    assert "| 2x1 | 8 x 16 | 1 | 2 | 0.01 | 2 | 0.800 ± 0.000 |" in table(lines)
    assert json.dumps(lines[0])


@pytest.mark.parametrize(
    "values, comparisons, quantile",  # of Student's t, from tables
    [(2, 1, 12.7062), (3, 1, 4.30265), (4, 1, 3.18245), (11, 1, 2.22814), (61, 1, 2.00030)]
    + [(3, 25, 22.3271), (4, 5, 5.84091), (5, 10, 5.59757)],
)
def test_intervals_of_several_comparisons_are_wider(values, comparisons, quantile):
    given = [0.0, 1.0] + [0.5] * (values - 2)
    half = interval(given, comparisons)[1]
    assert half == pytest.approx(quantile * (0.5 / (values - 1) / values) ** 0.5, rel=1e-5)


def test_a_comparison_has_the_best_model_of_each_order():
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x2", 1, 0.7), line("2x1", 1, 0.8), line("2x2", 1, 0.6)]
    lines += [line("2x1", 1, 0.9, task="bag-of-tokens")]
    both, alone = compare(lines)
    assert (both.first.model, both.second.model) == ("1x2", "2x1")
    assert both.gain == pytest.approx([0.1])
    assert alone.first is None and alone.gain == []
    shown = table(lines).splitlines()[2:]
    assert shown[0] == "| task | 1x1 | 1x2 | 2x1 | 2x2 | order 2 against order 1 |"
    assert shown[2] == "| copy (accuracy) | 0.500 | 0.700 | 0.800 | 0.600 | +0.100 |"
    assert shown[3] == "| bag-of-tokens (accuracy) |  |  | 0.900 |  |  |"


def test_runs_of_different_settings_are_not_mixed():
    line = made_line
    lines = [line("1x1", 1, 0.5), line("1x1", 2, 0.5), line("1x1", 1, 0.9, norm="qk")]
    lines += [line("1x1", 1, 0.6, steps=4), line("1x1", 1, 0.3, equal="parameters")]
    rows = {row.model: row for row in summarize(lines)}
    assert set(rows) == {"1x1", "1x1 (QK norm)", "1x1 (equal parameters)"}
    assert rows["1x1"].scores == [0.6]
    assert rows["1x1 (QK norm)"].scores == [0.9]


def test_models_are_compared_at_equal_cost():
    """A wider model of order 1, of equal parameters, is no peer of models of equal flops."""
    line = made_line
    lines = [line("1x1", 1, 0.5), line("2x1", 1, 0.6)]
    lines += [
        line(name, 1, value, equal="parameters") for name, value in (("1x1", 0.9), ("2x1", 0.7))
    ]
    rows = {row.model: row for row in summarize(lines)}
    assert rows["2x1"].gain == pytest.approx([0.1])
    assert rows["2x1 (equal parameters)"].gain == pytest.approx([-0.2])
    (both,) = compare(lines)
    assert (both.first.model, both.second.model) == ("1x1", "2x1")
    assert both.gain == pytest.approx([0.1])
    (only,) = compare(lines[2:])
    assert only.gain == pytest.approx([-0.2])


def test_the_table_says_how_many_layers_an_order_needs():
    line = made_line
    reached = dict(level_step=60, level_seconds=2.0)
    lines = []
    for seed in (1, 2):
        lines += [line("1x1", seed, 0.5), line("1x4", seed, 0.95, depth=4, **reached)]
        lines += [line("1x2", seed, 0.7, depth=2, **(reached if seed == 1 else {}))]
        lines += [line("2x1", seed, 0.7, task="two-sums"), line("1x1", seed, 0.6, task="two-sums")]
        lines += [line("2x1", seed, 0.6), line("1x6 (QK norm)", seed, 0.9, depth=6, **reached)]
    shown = table(lines)
    start = shown.index("### Layers that an order needs")
    rows = shown[start:].splitlines()[4:6]
    assert rows == [
        "| copy (accuracy) | 0.9 | 4 layers: 60, 2 s | not with 1 |  | 2 layers |",
        "| two-sums (accuracy) | 0.9 | not with 1 | not with 1 |  | not with 1 |",
    ]
    some = table([each for each in lines if each["depth"] != 4])
    assert "| copy (accuracy) | 0.9 | 2 layers: 60, 2 s (1 of 2) |" in some


def test_the_table_says_what_selected_tuples_keep_of_a_gain():
    line = made_line
    lines = []
    for seed, noise in ((1, 0.0), (2, 0.01), (3, 0.02)):
        for task, gain in (("three-sums", 0.2), ("copy", 0.0)):
            scores = {"1x1": 0.5, "2x1": 0.5 + gain, "2x1:topk4": 0.5 + gain / 4}
            for model, value in scores.items():
                noisy = value + (noise if model != "1x1" else 0)
                lines.append(line(model, seed, noisy, task=task, reference=32))
    lines.append(dict(kind="speed", task="three-sums", model="2x1:topk4", step_ratio=1.5))
    shown = table(lines)
    rows = shown[shown.index("### What selected tuples keep") :].splitlines()[4:]
    task, reference = (
        TASKS["three-sums"],
        cost(TASKS["three-sums"], ModelSpec.parse("2x1"), 32, 128),
    )
    price = cost(task, ModelSpec.parse("2x1:topk4"), 32, 128).flops / reference.flops
    assert rows[0] == (
        f"| three-sums | 2x1:topk4 | +0.210 ± 0.025 | +0.060 ± 0.025 | 29 % | {price:.2f} | 1.50 |"
    )
    assert rows[1] == ""  # order 2 gains nothing in the other task


def test_the_rows_of_the_figure_are_sorted_by_what_order_two_gains(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    gains = {"text": -0.2, "copy": 0.3, "code": 0.0, "three-sums": 0.1, "joint-recall": 0.2}
    for task, gain in gains.items():
        for seed in (1, 2):
            append_line(out, made_line("1x1", seed, 0.5, task=task))
            append_line(out, made_line("2x1", seed, 0.5 + gain, task=task))
    for seed, gain in ((1, 0.0), (2, 0.3)):
        append_line(out, made_line("1x1", seed, 0.2, task="grammar"))
        append_line(out, made_line("2x1", seed, 0.2 + gain, task="grammar"))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    rows = ["joint-recall", "grammar", "three-sums", "code", "text", "copy"]
    assert sorted(rows, key=lambda task: drawn.index(f">{task}<")) == rows


def test_the_figure_shows_what_has_equal_flops(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    for model, equal in (("1x1", "flops"), ("2x1", "flops"), ("2x1", "seconds")):
        append_line(out, made_line(model, 1, 0.5, equal=equal))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    assert ">order 2, 1 layer<" in drawn and "equal seconds" not in drawn


def test_the_figure_shows_every_model(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    for task, first, second in (("copy", 0.9, 0.9), ("three-sums", 0.6, 0.8)):
        for seed in (1, 2, 3):
            append_line(out, made_line("1x1", seed, first, task=task))
            append_line(out, made_line("2x1", seed, second, task=task))
            append_line(out, made_line("1x2", seed, -3.0, task=task, norm="qk", depth=2))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    words = ["three-sums", "copy", "controls: no tuple is needed", "+0.20 ± 0.00", "0.00 ± 0.00"]
    words += ["order 1, 1 layer", "order 2, 1 layer", "order 1, 2 layers (QK norm)"]
    for text in words:
        assert f">{text}<" in drawn
    assert drawn.index(">three-sums<") < drawn.index(">copy<")
    assert "var(" not in drawn and drawn.startswith("<svg ")
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    assert picture.read_text() == drawn


def test_a_figure_of_an_unknown_task_or_of_one_seed_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    out, picture = tmp_path / "pays.jsonl", tmp_path / "pays.svg"
    append_line(out, made_line("1x1", 1, 0.5, task="mine"))
    append_line(out, made_line("2x1", 1, 0.7, task="mine"))
    append_line(out, made_line("2x1:topk4", 1, 0.6, task="mine"))
    append_line(out, made_line("Layerx2", 1, 0.6, task="mine", depth=2))
    append_line(out, made_line("1+1+2x2", 1, 0.6, task="mine", depth=2))
    assert main(["--figure", str(picture), "--out", str(out)]) == 0
    drawn = picture.read_text()
    for text in ("mine", "+0.20", "Layerx2", "heads of 1, 1, 2; 2 layers"):
        assert f">{text}<" in drawn
    assert "topk" not in drawn  # selected tuples are only in the table


def test_the_page_of_results_and_its_figure_are_those_of_the_committed_lines(root):
    lines = read_lines(root / "lab" / "pays" / "results.jsonl")
    page = (root / "lab" / "pays" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in table(lines).splitlines() if line.startswith("|")] == [
        line for line in page if line.startswith("|")
    ]
    drawn = (root / "docs" / "images" / "pays.svg").read_text(encoding="utf-8")
    found = compare(lines)
    for each in found:
        assert f">{each.task}<" in drawn
        assert not each.gain or f">{gain_text(each, comparisons_of(found))[0]}<" in drawn
