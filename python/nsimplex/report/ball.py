"""The picture of an embedded graph: the unit ball seen along two axes, edges as geodesics."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.patches import Circle

from .figure import INK, LINE, MUTED, SERIES, STYLE, new_axes, svg
from .lines import file_name, read_text
from .parts import section

_MOST_NAMES, _MOST_ARROWS, _MOST_EDGES = 40, 80, 1500
_STEPS = 24  # of a drawn geodesic


@dataclass
class Ball:
    """Points of ball.csv and edges of edges.tsv, as ``nsimplex causal embed --out`` writes them."""

    name: str
    names: list[str]
    generality: np.ndarray  #: [M]
    radius: np.ndarray  #: [M], hyperbolic
    points: np.ndarray  #: [M, d], in the unit ball
    edges: list[tuple[int, int, float]]  #: cause, effect, weight; the heaviest first


def _lines(path: Path, delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter) if row]
    except csv.Error:
        return []


def read_ball(folder: Path) -> Ball | None:
    """The ball of a run directory; None where there is none that can be drawn."""
    rows = _lines(folder / "ball.csv", ",")
    if len(rows) < 2 or rows[0][:3] != ["name", "generality", "radius"]:
        return None
    try:
        numbers = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    except ValueError:
        return None
    if numbers.ndim != 2 or numbers.shape[1] < 4 or not np.isfinite(numbers).all():
        return None
    names = [row[0] for row in rows[1:]]
    place = {name: at for at, name in enumerate(names)}
    edges = []
    for row in _lines(folder / "edges.tsv", "\t")[1:]:
        try:
            edges.append((place[row[0]], place[row[1]], float(row[2])))
        except (IndexError, KeyError, ValueError):
            continue
    edges.sort(key=lambda edge: -abs(edge[2]))
    return Ball(file_name(folder), names, numbers[:, 0], numbers[:, 1], numbers[:, 2:], edges)


def geodesic(radii: tuple[float, float], directions: np.ndarray, steps: int = _STEPS) -> np.ndarray:
    """Points [steps, d] of the ball on the geodesic between two points given by radius and direction.

    On the hyperboloid it is (sinh((1 - t) D) p + sinh(t D) q) / sinh D; a point (x0, x) of that is x / (1 + x0) in the
    ball. The distance D comes from radii and directions, which keep their digits far out.
    """
    r, s = radii
    gap = directions[0] - directions[1]
    square = np.sinh((r - s) / 2) ** 2 + np.sinh(r) * np.sinh(s) * (gap @ gap) / 4
    distance = 2 * np.arcsinh(np.sqrt(square))
    t = np.linspace(0, 1, steps)
    if distance < 1e-9:
        return np.repeat(np.tanh(r / 2) * directions[:1], steps, axis=0)
    first, last = (np.sinh(x * distance) / np.sinh(distance) for x in (1 - t, t))
    time = first * np.cosh(r) + last * np.cosh(s)
    space = np.outer(first * np.sinh(r), directions[0]) + np.outer(last * np.sinh(s), directions[1])
    return space / (1 + time[:, None])


def principal_axes(points: np.ndarray) -> np.ndarray:
    """Two axes [d, 2] through the origin that show most of the points; the first two of the plane itself."""
    if points.shape[1] == 2:
        return np.eye(2)
    axes = np.linalg.svd(points, full_matrices=True)[2][:2].T
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), range(2)] < 0, -1, 1)


def ball_figure(ball: Ball) -> str:
    """The unit disc with nodes, sized by generality, and their strongest edges."""
    axes_of = principal_axes(ball.points)
    shown = ball.points @ axes_of
    lengths = np.linalg.norm(ball.points, axis=1, keepdims=True)
    directions = np.divide(ball.points, lengths, out=np.zeros_like(ball.points), where=lengths > 0)
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(6.4)
        axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=LINE, linewidth=1.5))
        axes.plot([0], [0], "+", color=MUTED, markersize=7)
        edges = ball.edges[:_MOST_EDGES]
        alpha = min(0.8, max(0.08, 60 / max(len(edges), 1)))
        for cause, effect, _ in edges:
            radii = (ball.radius[cause], ball.radius[effect])
            arc = geodesic(radii, directions[[cause, effect]]) @ axes_of
            axes.plot(*arc.T, color=SERIES[0], linewidth=1.1, alpha=alpha, zorder=1)
            if len(edges) <= _MOST_ARROWS:
                middle = _STEPS // 2
                style = {"arrowstyle": "-|>", "color": SERIES[0], "alpha": alpha}
                axes.annotate("", arc[middle + 1], arc[middle - 1], arrowprops=style)
        largest = max(float(ball.generality.max()), 1e-12)
        small = len(ball.names) <= _MOST_NAMES
        sizes = (24 + 130 * ball.generality / largest) if small else (4 + 60 * ball.generality / largest)
        axes.scatter(*shown.T, s=sizes, color=SERIES[1], zorder=2, linewidths=0)
        named = range(len(ball.names)) if small else np.argsort(-ball.generality)[:12]
        for node in named:
            axes.annotate(ball.names[node], shown[node], xytext=(6, 5), textcoords="offset points", color=INK, fontsize=8.5)
        axes.set_xlim(-1.04, 1.04)
        axes.set_ylim(-1.04, 1.04)
        axes.set_aspect("equal")
        axes.set_axis_off()
        return svg(drawing, f"ball-{ball.name}", "Nodes of a graph in the Poincaré ball, with edges as geodesics")


def ball_section(ball: Ball) -> str:
    count, dimension = ball.points.shape
    view = "its plane" if dimension == 2 else f"its {dimension} dimensions along the two axes that show most"
    edges = f"{len(ball.edges):,} edges"
    if len(ball.edges) > _MOST_EDGES:
        edges = f"the {_MOST_EDGES:,} heaviest of {edges}"
    return section(
        f"The Poincaré ball: {ball.name}",
        f'<p class="muted">{count:,} nodes and {edges}, seen in {view}. Edges are geodesics from cause to effect, a dot '
        "is larger the more a node causes (its PageRank), and the rim is infinitely far from the middle.</p>",
        ball_figure(ball),
    )
