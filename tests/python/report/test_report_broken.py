"""Broken lines of every kind are left out, and what is whole beside them is shown."""

import os
import random

import pytest

pytest.importorskip("matplotlib")

import test_causal_report
import test_report
import test_report_analyses
import test_report_claims
import test_report_curvature
import test_report_encodings
import test_report_graphs
import test_report_smoothing
from report_page import Page, read, write_lines

from nsimplex.report import write_report
from nsimplex.report.run import read_lines

HUGE = "1" + "0" * 400
BROKEN = {
    "deep": "[" * 200_000,
    "deep object": '{"a":' * 100_000,
    "huge whole number": f'{{"step": 1, "train_loss": {HUGE}}}',
    "huge number in a list": f'{{"step": 1, "train_loss": 1, "more": [{HUGE}]}}',
    "digits without end": '{"step": 1, "train_loss": 1' + "0" * 6000 + "}",
    "lone surrogate": r'{"step": 1, "train_loss": 1, "text": "\ud800"}',
    "lone surrogate in a name": r'{"step": 1, "train_loss": 1, "\uDFFF": 1}',
    "no object": "[1, 2]",
    "half": '{"step": 1, "train_lo',
    "step in words": '{"step": "one", "train_loss": 1}',
    "loss as a list": '{"step": 1, "train_loss": [1]}',
    "seed as an object": '{"step": 1, "train_loss": 1, "seed": {}}',
}
MATH = r"$\frac{1}{$"


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_left_out(tmp_path, line):
    (tmp_path / "metrics.jsonl").write_text(f'{line}\n{{"step": 7, "train_loss": 2.5}}\n{line}\n')
    assert read_lines(tmp_path / "metrics.jsonl") == [{"step": 7, "train_loss": 2.5}]
    for name in ("samples.jsonl", "bench.jsonl", "compare.jsonl", "info.json"):
        (tmp_path / name).write_text(line)
    assert "7 steps" in read(tmp_path)[1].text


def test_a_pair_of_surrogates_is_a_character(tmp_path):
    (tmp_path / "samples.jsonl").write_text(r'{"text": "\ud83d\ude00 \\ud800"}')
    assert "\U0001f600 \\ud800" in read(tmp_path)[1].text


#: Lines of every section, as the commands write them.
SECTIONS = {
    "attention_layer": lambda: [
        {
            "kind": "attention_layer",
            "step": step,
            "layer": place,
            "module": f"blocks.{place}",
            "order": 2,
            "rank_after": 3.5,
            "ratio_after": 0.4,
            "entropy": 0.9,
            "jacobian": 1.5,
        }
        for step in (100, 200)
        for place in (0, 1)
    ],
    "match": lambda: (
        test_report.match3_rows()
        + test_report.arm_rows(
            [
                (1, 1, "dense", None, 0.8),
                (1, 3, "dense", None, 0.9),
                (2, 1, "topk", 2, 0.7),
                (2, 1, "topk", 4, 0.9),
            ]
        )
    ),
    "language": test_report.language_rows,
    "comparison": test_report.comparison_rows,
    "scaling": test_report.scaling_rows,
    "graphs": lambda: test_report_graphs.graph_rows([("mlp", 0.5)]),
    "costs": test_report_graphs.cost_rows,
    "trained graphs": test_report_graphs.trained_rows,
    "fit": lambda: [test_causal_report.FIT],
    "certainty": test_causal_report.certainty_rows,
    "attenuation": test_report_claims.attenuation_rows,
    "robustness": test_report_claims.robustness_rows,
    "placement": test_report_claims.placement_rows,
    "complexity": test_report_claims.complexity_rows,
    "encodings": test_report_encodings.encoding_rows,
    "smoothing": test_report_smoothing.smoothing_rows,
    "lipschitz": lambda: [*test_report_analyses.lipschitz_rows(), test_report_analyses.HELD],
    "curvature": test_report_curvature.curvature_rows,
    "layers": test_report_analyses.layer_rows,
    "rates": test_report_analyses.rate_rows,
}
VALUES = [
    None,
    True,
    0,
    1,
    -1,
    2**70,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
    "",
    "x",
    MATH,
    "<b>",
    [],
    [1, 2, 3],
    ["x"],
    {},
    {"shd": "x"},
    "\udc80",
    [float("nan")] * 3,
]


def odd_lines(rows, rng):
    """Lines as they are, and as many again with a key or two whose values are something else, or
    which are gone."""
    for row in rows:
        yield row
        odd = dict(row)
        for key in rng.sample(sorted(odd), min(len(odd), rng.choice([1, 1, 2]))):
            odd[key] = rng.choice(VALUES)
            if rng.random() < 0.2:
                del odd[key]
        yield odd


def draw_odd_pages(folder, section, seeds):
    for seed in seeds:
        rows = list(odd_lines(SECTIONS[section](), random.Random(f"{section} {seed}")))
        write_lines(folder / "metrics.jsonl", rows)
        try:
            Page(write_report(folder).read_text())
        except Exception as error:
            raise AssertionError(f"{section}, seed {seed}: {error!r}") from error


@pytest.mark.parametrize("section", SECTIONS)
def test_odd_values_do_no_harm(tmp_path, section):
    draw_odd_pages(tmp_path, section, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_many_odd_values_do_no_harm(tmp_path, section):
    draw_odd_pages(tmp_path, section, range(1, 40))


def with_words(value, words):
    """The same value with every text in it replaced by others, apart from what says what a line
    is."""
    if isinstance(value, dict):
        kept = (
            "task",
            "analysis",
            "row",
            "key",
            "graph",
            "over",
            "dtype",
            "norm",
            "method",
            "equal",
            "source",
            "sparse",
        )
        is_kept = lambda k, v: (
            k in kept or (k == "kind" and str(v).startswith(("graph_", "attention_", "c")))
        )
        return {k: v if is_kept(k, v) else with_words(v, words) for k, v in value.items()}
    return words if isinstance(value, str) else value


@pytest.mark.parametrize("section", SECTIONS)
def test_names_are_no_mathematics_and_no_html(tmp_path, section):
    words = MATH + '"><img src=x onerror=alert(1)>'
    write_lines(tmp_path / "metrics.jsonl", [with_words(row, words) for row in SECTIONS[section]()])
    _, page = read(tmp_path)
    assert "img" not in page.tags
    wordless = ("match", "language", "placement", "complexity", "curvature", "certainty")
    assert section in wordless or words in page.text


@pytest.mark.parametrize("name", [MATH, '"><img src=x>', "\udcff"], ids=ascii)
def test_nodes_and_folders_may_have_any_name(tmp_path, name):
    folder = tmp_path / name.replace("/", "")
    folder.mkdir()
    write_lines(folder / "metrics.jsonl", test_report.language_rows())
    points = f'name,generality,radius,e0,e1\n"{MATH}",0.1,1,0.2,0\n"{MATH} $",0.2,1,0.4,0\n'
    (folder / "ball.csv").write_text(points)
    for root in (tmp_path, folder):
        _, page = read(root)
        assert "img" not in page.tags and MATH in page.text


def test_powers_of_ten_are_written_out(tmp_path):
    write_lines(tmp_path / "metrics.jsonl", test_report_graphs.cost_rows())
    _, page = read(tmp_path)
    assert "10⁻²" in page.text and "mathdefault" not in page.text


def test_a_page_goes_nowhere_else(tmp_path):
    """What a run directory holds may come from others: links and pipes among it."""
    run, victim = tmp_path / "run", tmp_path / "victim"
    write_lines(run / "metrics.jsonl", test_report.language_rows())
    victim.write_text("old")
    for name in ("report.html", "report.html.tmp"):
        (run / name).symlink_to(victim)
    assert "Language model" in read(run)[1].text and victim.read_text() == "old"
    (run / "report.html").unlink()
    os.mkfifo(run / "report.html")
    with pytest.raises(OSError, match="report.html: it is not a regular file"):
        write_report(run)


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "samples.jsonl", "config.toml", "command.txt", "ball.csv"]
)
def test_a_pipe_in_place_of_a_file_is_left_out(tmp_path, name):
    write_lines(tmp_path / "other" / "metrics.jsonl", test_report.language_rows())
    os.mkfifo(tmp_path / name)
    assert "Language model" in read(tmp_path)[1].text


def test_names_without_room_beside_them_on_a_phone(recwarn):
    """One drawing, which a phone scrolls, instead of axes without width."""
    from nsimplex.report import elements

    for length, drawings in ((5, 2), (60, 1)):
        figure, axes = elements.new_axes(2.0)
        axes.barh(["a" * length, "b" * length], [1.0, 2.0])
        assert elements.svg(figure, f"names of {length}", "two bars", "").count("<svg") == drawings
    assert not [str(w.message) for w in recwarn if "not applied" in str(w.message)]
