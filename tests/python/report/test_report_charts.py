"""Names in charts do not lie over others. ``read`` checks that every chart has a sentence."""

import re

import pytest

pytest.importorskip("matplotlib")

import test_report_learned
from report_page import charts_of, read, write_lines
from test_report import arm_rows, match3_rows

from nsimplex.report import elements
from nsimplex.viz.graph_drawing import graph_drawing


def names_in(chart, wanted):
    """Left end, height and text of the names that a pattern finds in a chart. A letter is taken as
    five points wide."""
    found = []
    for tag, name in re.findall(r"<text([^>]*)>([^<]*)</text>", chart):
        if re.fullmatch(wanted, name):
            x, y = (float(re.search(f' {axis}="([-0-9.]+)"', tag)[1]) for axis in "xy")
            found.append((x - 5 * len(name) * ("text-anchor: end" in tag), y, name))
    return found


def assert_apart(names, width, height):
    for at, (x, y, name) in enumerate(names):
        for other_x, other_y, other in names[:at]:
            assert abs(x - other_x) >= width or abs(y - other_y) >= height, (name, other)


def test_a_learned_graph_says_what_to_see(tmp_path):
    test_report_learned.write_run(tmp_path, list("abcd"), test_report_learned.random_dag(4, 5))
    text, _ = read(tmp_path)
    above = text.partition("Learned graph")[2].partition('<div class="scroll')[0]
    assert above.endswith("edges lead down from causes to effects.</p>")


def test_names_of_curves_that_end_together_lie_apart(tmp_path):
    rows = match3_rows()
    for row in rows:
        row["accuracy"] = 0.75
    write_lines(tmp_path / "metrics.jsonl", rows)
    (chart,) = charts_of(read(tmp_path)[0])
    names = names_in(chart, "order [12]")
    assert len(names) == 2
    assert_apart(names, 40, 12)


def test_names_of_curves_and_levels_at_one_height_lie_apart(tmp_path):
    arms = [(order, depth, "dense", None, 0.9) for order in (1, 2) for depth in (1, 3)]
    arms += [(order, 1, "dense", None, 0.9) for order in (3, 4)]
    write_lines(tmp_path / "metrics.jsonl", arm_rows(arms))
    (chart,) = charts_of(read(tmp_path)[0])
    names = names_in(chart, "order [1234]")
    assert len(names) == 8  # in two charts
    assert_apart(names, 40, 12)


def test_names_in_the_ball_do_not_overlap(tmp_path):
    points = [f"node {at:02},{1 - 0.01 * at},{0.02 * at},{0.01 * at},0" for at in range(20)]
    points.append("far,0.1,2,0.7,0")
    (tmp_path / "ball.csv").write_text("name,generality,radius,e0,e1\n" + "\n".join(points) + "\n")
    (chart,) = charts_of(read(tmp_path)[0])
    names = names_in(chart, r"node \d\d|far")
    assert {"node 00", "far"} <= {name for _, _, name in names}
    assert len(names) < len(points)
    assert_apart(names, 20, 7)


def test_names_of_curves_lie_below_all_curves():
    figure, axes = elements.new_axes(2.9)
    for height in range(4):
        axes.plot([0, 1], [height, height], label=f"bound of sensitivity {height}")
    elements.legend_below(axes)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 <= axes.get_tightbbox().y0
    assert legend.get_window_extent().y0 >= 0


def test_names_of_nodes_lie_below_their_rings():
    drawing = graph_drawing(["C0", "C1"], [(0, 1)], [((0,), 1.0), ((1,), 0.5)])
    feet = [float(y) for y in re.findall(r'<text x="[\d.]+" y="([\d.]+)"', drawing)]
    rings = re.findall(r'cy="([\d.]+)" r="9" .*?stroke-width: ([\d.]+)px', drawing)
    assert len(feet) == len(rings) == 2
    lowest = max(float(y) + 9 + float(width) / 2 for y, width in rings)
    assert min(feet) - 9 >= lowest  # letters of 12 pixels are 9 high
