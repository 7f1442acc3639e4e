"""The picture, the table and the matrices of a learned graph."""

import json
import math
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import test_causal_report
from report_page import read, write_lines

from nsimplex._layered import causal_order, crossings, layers_of, place_nodes
from nsimplex._page import counted, figure, short
from nsimplex.report import write_report
from nsimplex.report.elements import shades
from nsimplex.report.learned import (
    EXTRA,
    MISSING,
    REVERSED,
    RIGHT,
    read_learned,
)


def csv_of(names, matrix):
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    return (
        "\n".join(
            [",".join(quoted), *(",".join(map(str, row)) for row in np.asarray(matrix).tolist())]
        )
        + "\n"
    )


def write_run(folder, names, weights, scores=None, truth=None):
    """A folder as `nsimplex causal fit --out` leaves it."""
    write_lines(
        folder / "metrics.jsonl",
        [test_causal_report.FIT | {"sortability_of": "fit" if truth is None else "truth"}],
    )
    for stem, matrix in (("graph", weights), ("scores", scores), ("truth", truth)):
        if matrix is not None:
            (folder / f"{stem}.csv").write_text(csv_of(names, matrix), encoding="utf-8")


def random_dag(count, edges, seed=0):
    """Weights [count, count] above the diagonal."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((count, count))
    above = np.argwhere(np.triu(np.ones((count, count)), 1))
    for i, j in rng.permutation(above)[:edges]:
        weights[i, j] = rng.normal()
    return weights


# a -> b -> c, c -> d; the truth has a -> b, c -> b and d -> e.
NAMES = ["a", "b", "c", "d", "e", "f"]
WEIGHTS, TRUTH = np.zeros((6, 6)), np.zeros((6, 6))
WEIGHTS[[0, 1, 2], [1, 2, 3]] = 0.5, -2, 0.25
TRUTH[[0, 2, 3], [1, 1, 4]] = 1, 1, -3
SCORES = np.arange(36.0).reshape(6, 6)


def test_edges_are_right_reversed_extra_or_missing(tmp_path):
    write_run(tmp_path, NAMES, WEIGHTS, SCORES, TRUTH)
    edges = read_learned(tmp_path, has_truth=True).edges()
    assert [(e.cause, e.effect, e.weight, e.score, e.kind) for e in edges] == [
        (3, 4, -3, 22, MISSING),
        (2, 3, 0.25, 15, EXTRA),
        (1, 2, -2, 8, REVERSED),
        (0, 1, 0.5, 1, RIGHT),
    ]
    text, page = read(tmp_path)
    for words in (
        "6 nodes and 3 learned edges. The known graph has 3 edges.",
        "1 node has no edges: f.",
        "true weight",
        "extra: not in the known graph (1)",
        "missing: in the known graph only (1)",
        "reversed in the known graph (1)",
        "right: in the known graph too (1)",
        "dashed: weight below 0",
    ):
        assert words in page.text, words
    assert text.count('class="matrix"') == 3
    rows = [re.sub(r' data-of="[^"]*"', "", row) for row in re.findall(r"<tr>.*?</tr>", text)]
    assert "<tr><td>b</td><td>c</td><td>−2</td><td>8</td><td>0</td><td>reversed</td></tr>" in rows
    assert "<tr><td>d</td><td>e</td><td>–</td><td>22</td><td>−3</td><td>missing</td></tr>" in rows
    # Kinds differ in their marks, not in colour alone; dashes are weights below 0 in every picture.
    for picture in re.findall(r"<svg xmlns.*?</svg>", text, re.DOTALL):
        edges = re.findall(r"<g data-edge.*?</g>", picture)
        assert len(edges) == 4 and len(re.findall('class="mark"', "".join(edges))) == 3
        dashed = [each for each in edges if "stroke-dasharray" in each]
        assert len(dashed) == 2 and all("weight −" in each for each in dashed)


def test_without_a_truth_edges_have_one_colour(tmp_path):
    write_run(tmp_path, NAMES, WEIGHTS, SCORES)
    (tmp_path / "truth.csv").write_text(
        csv_of(NAMES, TRUTH)
    )  # of an earlier run, which was written over
    text, page = read(tmp_path)
    assert "dashed: weight below 0" in page.text and 'class="mark"' not in text
    assert set(re.findall(r'class="edge".*?stroke: var\((.*?)\)', text)) == {"--edge"}
    assert "true weight" not in page.text and text.count('class="matrix"') == 2
    assert "2 nodes have no edges: e, f." in page.text


def test_a_graph_without_edges_is_said_to_have_none(tmp_path):
    write_run(tmp_path, NAMES, np.zeros((6, 6)), np.zeros((6, 6)))
    assert "The graph has no edges." in read(tmp_path)[1].text


def test_layers_are_longest_paths():
    edges = [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)]
    order = causal_order(5, edges)
    assert all(order.index(cause) < order.index(effect) for cause, effect in edges)
    assert layers_of(5, edges, order) == [0, 1, 2, 0, 3]
    assert sorted(causal_order(3, [(0, 1), (1, 2), (2, 0)])) == [0, 1, 2]


def test_sweeps_take_crossings_out():
    assert crossings([0, 1], [2, 3], {0: [3], 1: [2]}) == 1
    assert crossings([0, 1], [2, 3], {0: [2, 3], 1: [2, 3]}) == 1
    places, _ = place_nodes([(0, 5), (1, 4), (2, 3)], [30.0] * 6)
    assert [places[:3, 0].argsort().tolist()] == [(places[[5, 4, 3], 0]).argsort().tolist()]


def test_nodes_of_a_layer_do_not_overlap():
    weights = random_dag(40, 110)
    widths = [30.0 + 3 * (node % 20) for node in range(40)]
    edges = [tuple(pair) for pair in np.argwhere(weights).tolist()]
    places, bends = place_nodes(edges, widths)
    for a in range(40):
        for b in range(a):
            if places[a, 1] == places[b, 1]:
                assert abs(places[a, 0] - places[b, 0]) >= (widths[a] + widths[b]) / 2
    assert all(places[cause, 1] > places[effect, 1] for cause, effect in edges)
    assert len(bends) == len(edges)


def test_a_large_graph_shows_its_strongest_edges(tmp_path):
    names = [f"gene{at}" for at in range(1000)]
    weights = random_dag(1000, 1500)
    write_run(tmp_path, names, weights, np.abs(weights) + 0.1, weights)
    text, page = read(tmp_path)
    shown = re.search(r"The picture shows the strongest (\d+) of 1,500 edges\.", page.text)
    assert f"{shown[1]} of 1,500 edges shown" in page.text
    assert (
        "1,300 more edges are left out of this table; graph.tsv and truth.tsv have them all."
        in page.text
    )
    assert len(text) < 3_000_000
    wide = text.partition("<svg xmlns")[2].partition("</svg>")[0]
    drawn = set(re.findall(r'data-column="(\d+)"', wide))
    i, j = np.unravel_index(np.abs(weights).argmax(), weights.shape)
    assert len(drawn) <= 60 and {str(i), str(j)} <= drawn


NAMED = [
    r"$\frac{1}{$",
    "<script>alert(1)</script>",
    "two\nlines",
    "n" * 5000,
    "",
    '"><img src=x>',
    "\u202eright to left",
    "名前",
]


def test_names_may_be_anything(tmp_path):
    count = len(NAMED)
    write_run(
        tmp_path,
        NAMED,
        random_dag(count, 12),
        SCORES.repeat(2).reshape(-1)[: count**2].reshape(count, count),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of letters that matplotlib's font lacks
        text, page = read(tmp_path)
    assert "script" not in page.tags and "img" not in page.tags
    for words in (
        r"$\frac{1}{$",
        "<script>alert(1)</script>",
        r"two\nlines",
        r"\u202eright to left",
        "名前",
    ):
        assert words in page.text, words
    assert "n" * 100 not in text and "\u202e" not in text
    assert short("n" * 5000) == "n" * 11 + "…" + "n" * 6


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "–"),
        (math.nan, "–"),
        (0.0, "0"),
        (0.00012345, "0.000123"),
        (9.9e-5, "9.90 × 10⁻⁵"),
        (-0.9996, "−1"),
        (999.4, "999"),
        (999.6, "1,000"),
        (-999.7, "−1,000"),
        (2030.4, "2,030"),
        (1e15, "1.00 × 10¹⁵"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_are_written_for_people(value, text):
    assert figure(value) == text


def test_nouns_go_with_their_numbers():
    numbers = [None, 0, 1, 1.0, 2030]
    said = ["– more edges", "0 more edges", "1 more edge", "1 more edge", "2,030 more edges"]
    assert [counted(number, "more edges") for number in numbers] == said


def test_a_graph_of_one_edge_is_counted_in_the_singular(tmp_path):
    write_run(tmp_path, ["a", "b", "c"], np.array([[0, 1.5, 0], [0, 0, 0], [0, 0, 0]]))
    text = read(tmp_path)[1].text
    assert "3 nodes and 1 learned edge." in text and "1 node has no edges: c" in text
    assert "1 column has no edges" in text and "2 columns with 1 edge," in text


def test_a_lone_surrogate_in_a_name_does_no_harm(tmp_path):
    write_run(tmp_path, NAMES, WEIGHTS)
    (tmp_path / "graph.csv").write_bytes(
        csv_of(NAMES, WEIGHTS).encode().replace(b'"a"', b'"\xed\xb0\x80"')
    )
    assert "Learned graph" in read(tmp_path)[1].text


@pytest.mark.parametrize("value", [1e308, 5e-324, math.inf, -math.inf])
def test_weights_may_have_any_size(tmp_path, value):
    weights = WEIGHTS.copy()
    weights[0, 5] = value
    write_run(tmp_path, NAMES, weights, weights, TRUTH * 1e300)
    text, _ = read(tmp_path)
    assert (
        "nan" not in re.sub(r"<[^>]*aria[^>]*>", "", text).lower()
        and text.count("stroke-dasharray") > 1
    )


def test_scores_that_are_no_numbers_come_last(tmp_path):
    scores = np.full((6, 6), math.nan)
    scores[2, 3] = 0.5
    write_run(tmp_path, NAMES, WEIGHTS, scores)
    assert [(e.cause, e.effect) for e in read_learned(tmp_path, False).edges()] == [
        (2, 3),
        (1, 2),
        (0, 1),
    ]
    text, _ = read(tmp_path)
    assert "<tr><td>b</td><td>c</td><td>−2</td><td>–</td></tr>" in text


def test_lines_of_an_edge_list_that_are_broken_are_left_out(tmp_path):
    write_run(tmp_path, NAMES, WEIGHTS)
    (tmp_path / "graph.csv").write_text("a,b\n1,x\n")
    (tmp_path / "graph.tsv").write_text(
        'source\ttarget\tweight\na\tb\t2\nbroken\nc\td\tx\n\n"c\t1"\tb\t-1\n'
    )
    graph = read_learned(tmp_path, False)
    assert graph.names == ["a", "b", "c\t1"] and np.count_nonzero(graph.weights) == 2
    assert "3 nodes and 2 learned edges" in read(tmp_path)[1].text


@pytest.mark.parametrize(
    "text", ["", "a,b\n", "a,b\n1,2\n", "a,b\n1,2\n3\n", "a,b\n0,x\n0,0\n", '"a']
)
def test_what_is_no_matrix_is_left_out(tmp_path, text):
    write_run(tmp_path, NAMES, WEIGHTS)
    for name in ("graph.csv", "scores.csv"):
        (tmp_path / name).write_text(text)
    assert read_learned(tmp_path, False) is None
    assert "Learned graph" not in read(tmp_path)[1].text
    (tmp_path / "graph.csv").unlink()
    os.mkfifo(tmp_path / "graph.csv")
    assert read_learned(tmp_path, False) is None


def test_cycles_do_no_harm(tmp_path):
    weights = random_dag(8, 14)
    write_run(tmp_path, NAMED, weights, None, (weights + weights.T + np.eye(8, k=5)))
    write_lines(
        tmp_path / "more" / "metrics.jsonl", [json.loads((tmp_path / "metrics.jsonl").read_text())]
    )
    (tmp_path / "more" / "graph.csv").write_text(csv_of(NAMED, weights + weights.T))
    assert read(tmp_path)[1].text.count("Learned graph") == 2


def test_a_first_column_of_names_is_left_out(tmp_path):
    (tmp_path / "graph.csv").write_text(",source,target\nsource,0,1\ntarget,0,0\n")
    graph = read_learned(tmp_path, False)
    assert graph.names == ["source", "target"] and graph.weights.tolist() == [[0, 1], [0, 0]]


def test_shades_grow_with_sizes():
    assert shades(np.array([[1.0, -2.0], [0.0, math.nan]]))[0].tolist() == [0.5, -1.0]
    assert np.isnan(shades(np.array([[1.0, -2.0], [0.0, math.nan]]))[1]).all()
    wide = shades(np.array([[1.0, 1e2, 1e4]]))
    np.testing.assert_allclose(wide, [[0, 0.5, 1]])


def test_frequencies_of_samples_are_drawn_and_listed(tmp_path):
    weights = np.zeros((3, 3))
    weights[0, 1], weights[1, 2] = 2.0, -1.0
    write_run(tmp_path / "run", ["a", "b", "c"], weights)
    page = read(tmp_path / "run")[0]
    assert "in samples" not in page and "in few samples" not in page
    lines = ["cause,effect,weight,frequency,connected,ancestor,low,high", "a,b,2.0,0.9,1,1,1.8,2.2"]
    lines += ["b,c,-1.0,0.5,0.6,0.5,,", "a,c,0.0,0.1,0.1,0.2,,", "broken", "b,a,1,7,1,1,1,1"]
    (tmp_path / "run" / "confidence.csv").write_text("\n".join(lines) + "\n")
    assert len(read_learned(tmp_path / "run", False).sure) == 3
    page = read(tmp_path / "run")[0]
    assert (
        "<th>direction in samples</th><th>connection in samples</th><th>95 % interval</th>"
        in re.sub(r"<th [^>]*>", "<th>", page)
    )
    assert page.index(">90%<") < page.index(">50%<") and ">60%<" in page  # the surest edge first
    assert ">90%<" in page and ">1.8 to 2.2<" in page and ">50%<" in page
    assert "pale colour: in few samples" in page
    assert 'opacity="0.905"' in page and 'opacity="0.625"' in page


def limits(pairs, **noises):
    """Lines of `nsimplex causal fit --limits`."""
    rows = [{"kind": "causal_limits", "reversible": pairs, "findings": ["a finding"]}]
    rows += [{"kind": "noise_directions", "findings": [], **noises}] if noises else []
    return rows


def heads_of(folder, rows):
    """The page of a graph a -> b -> c, c -> d with these lines, and its number of arrow heads."""
    write_run(folder, NAMES, WEIGHTS, SCORES)
    lines = [*lines_of(folder), *rows]
    write_lines(folder / "metrics.jsonl", lines)
    text, _ = read(folder)
    return text, text.count('class="head"') / 2  # for wide and for narrow screens


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_edges_without_a_direction_have_no_head(tmp_path):
    plain, heads = heads_of(tmp_path, [])
    assert heads == 3 and "either way" not in plain
    text, heads = heads_of(tmp_path, limits([["a", "b"], ["c", "d"], ["d", "c"], "x", [1, 2]]))
    assert heads == 1 and text.count(">either way</td>") == 2
    assert "no arrow head: either direction" in text
    assert "a → b: weight 0.5, score 1; the direction cannot be told" in text
    for noises, kept in ((dict(gain=9.0, p_value=0.0), 3), (dict(gain=0.0, p_value=0.5), 1)):
        assert heads_of(tmp_path, limits([["a", "b"], ["c", "d"]], **noises))[1] == kept


def pictures(text):
    """Least and own widths, nodes and heights of the pictures of columns on a page, by screens."""
    found = re.findall(
        r'<div class="scroll (\w*)"><div style="min-width: (\d+)px[^"]*"><svg [^>]*viewBox="0 0 '
        r'(\d+) (\d+)"[^>]*aria-label="Causal graph of (\d+) columns [^>]*font-size: 12px',
        text,
    )
    return {screens: tuple(map(int, own)) for screens, *own in found}


def test_a_phone_shows_many_columns_without_scrolling_sideways(tmp_path):
    names = [f"a gene of name {at}" for at in range(60)]
    write_run(tmp_path, names, random_dag(60, 80))
    found = pictures(read(tmp_path)[0])
    assert set(found) == {"wide", "narrow"}
    least, width, _, nodes = found["wide"]
    assert width <= 940 and least <= 880 and nodes > 50  # of a page of 1280 pixels
    least, width, height, own = found["narrow"]
    assert width == 328 and least <= 328 and own == nodes and height >= 20 * nodes
    write_run(tmp_path, NAMES, WEIGHTS)
    found = pictures(read(tmp_path)[0])
    assert found["narrow"][1] == 328 and found["wide"][1] == 760  # a small graph fills its card


def test_the_picture_shows_what_is_around_chosen_columns(tmp_path, subprocess_env):
    names = [f"gene{at}" for at in range(300)]
    chain = np.zeros((300, 300))
    chain[range(299), range(1, 300)] = np.linspace(2, 1, 299)
    write_run(tmp_path, names, chain)
    assert "--column NAME" in read(tmp_path)[0]
    page = write_report(tmp_path, columns=["gene200"]).read_text()
    assert "The picture shows 59 of 299 edges around gene200." in page
    assert page.count('class="chosen"') == 2 and ">gene140</text>" not in page
    assert ">gene141</text>" in page and ">gene201</text>" not in page
    with pytest.raises(ValueError, match=r"^\[write_report\] columns: expected names .* got 'zz'"):
        write_report(tmp_path, columns=["gene200", "zz"])
    found = subprocess.run(
        [sys.executable, "-m", "nsimplex.report", tmp_path, "--column", "gene0"],
        capture_output=True,
        text=True,
        env=subprocess_env,
    )
    assert found.returncode == 0 and "around gene0." in (tmp_path / "report.html").read_text()


def test_rows_are_no_wider_than_asked_for():
    widths = [30.0 + 3 * (node % 20) for node in range(60)]
    edges = [tuple(pair) for pair in np.argwhere(random_dag(60, 70)).tolist()]
    free, _ = place_nodes(edges, widths)
    places, bends = place_nodes(edges, widths, 700.0)
    halves = np.array(widths) / 2
    extent = lambda at: (at[:, 0] + halves).max() - (at[:, 0] - halves).min()
    assert extent(free) > 900 and extent(places) <= 700.01
    assert all(abs(x) <= 350 for chain in bends for x, _ in chain)
    assert all(places[cause, 1] > places[effect, 1] for cause, effect in edges)
    for a in range(60):
        for b in range(a):
            if places[a, 1] == places[b, 1]:
                assert abs(places[a, 0] - places[b, 0]) >= (widths[a] + widths[b]) / 2 + 15.9


def test_the_command_shows_what_is_around_chosen_columns(tmp_path, executable):
    write_run(tmp_path, ["-a", *NAMES[1:]], WEIGHTS)
    environment = {**os.environ, "NSIMPLEX_PYTHON": sys.executable}

    def report(*words):
        command = [executable, "report", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    found = report("--column=-a", "--column", NAMES[1], tmp_path)
    assert found.returncode == 0, found.stderr
    assert f"edges around -a, {NAMES[1]}." in (tmp_path / "report.html").read_text()
    found = report(tmp_path, "--column", "zz")
    assert found.returncode == 2
    expected = "nsimplex: --column: expected names of columns of a learned graph, got 'zz'\n"
    assert found.stderr == expected
