"""Sections about graphs in the ball: where nodes lie, and what the pull to the origin costs."""

from __future__ import annotations

from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from .._page import counted, section, table
from .elements import INK, LINE, MUTED, SERIES, STYLE, amount, new_axes, spread_labels, svg
from .learned import Ball
from .run import Folder, Row, number

_MOST_NAMES, _MOST_ARROWS, _MOST_EDGES = 40, 80, 1500

_STEPS = 24  # of a drawn geodesic


def geodesic(radii: tuple[float, float], directions: np.ndarray, steps: int = _STEPS) -> np.ndarray:
    """Points [steps, d] of the ball on the geodesic between two points given by radius and
    direction.

    On the hyperboloid it is (sinh((1 - t) D) p + sinh(t D) q) / sinh D; a point (x0, x) of that is
    x / (1 + x0) in the ball. The distance D comes from radii and directions, which keep their
    digits far out.
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
    """Two axes [d, 2] through the origin that show most of the points; the first two of the plane
    itself."""
    if points.shape[1] == 2:
        return np.eye(2)
    axes = np.linalg.svd(points, full_matrices=True)[2][:2].T
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), range(2)] < 0, -1, 1)


#: Where a name stands beside its node, in points: the first place that is free is taken.
_PLACES = [((6, 5), "left"), ((6, -12), "left"), ((-6, 5), "right"), ((-6, -12), "right")]


def place_names(figure: Figure, texts: list[Annotation]) -> None:
    """Moves names that overlap an earlier one, and hides those for which no place is free."""
    for text in texts:
        text.set_visible(True)
    figure.draw_without_rendering()
    taken: list[Bbox] = []
    for text in texts:
        for offset, side in _PLACES:
            text.set(position=offset, horizontalalignment=side)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            text.set_visible(False)


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
        sizes = (
            (24 + 130 * ball.generality / largest)
            if small
            else (4 + 60 * ball.generality / largest)
        )
        axes.scatter(*shown.T, s=sizes, color=SERIES[1], zorder=2, linewidths=0)
        named = np.argsort(-ball.generality, kind="stable")[: None if small else 12]
        look: dict[str, Any] = {"textcoords": "offset points", "color": INK, "fontsize": 8.5}
        texts = [
            axes.annotate(ball.names[node], shown[node], xytext=(6, 5), **look) for node in named
        ]
        axes.set_xlim(-1.04, 1.04)
        axes.set_ylim(-1.04, 1.04)
        axes.set_aspect("equal")
        axes.set_axis_off()
        return svg(
            drawing,
            f"ball-{ball.name}",
            "Nodes of a graph in the Poincaré ball, with edges as geodesics",
            "See which nodes are general causes: they are large and near the middle, and their "
            "effects lie further out. A name is left out where it would cover that of a more "
            "general node.",
            lambda: place_names(drawing, texts),
        )


def ball_section(ball: Ball) -> str:
    count, dimension = ball.points.shape
    view = (
        "its plane"
        if dimension == 2
        else f"its {dimension} dimensions along the two axes that show most"
    )
    edges = counted(len(ball.edges), "edges")
    if len(ball.edges) > _MOST_EDGES:
        edges = f"the {_MOST_EDGES:,} heaviest of {edges}"
    return section(
        f"The Poincaré ball: {ball.name}",
        f'<p class="muted">{counted(count, "nodes")} and {edges}, seen in {view}. Edges are '
        "geodesics from cause to effect, a dot is larger the more a node causes (its PageRank), "
        "and the rim is infinitely far from the middle.</p>",
        ball_figure(ball),
    )


_PLACED = {"edge_area": "edges nearer", "generality_correlation": "generality"}


def _label(row: Row) -> str:
    return f"{row['generality']:g}" + ("" if row.get("relative") else " π as printed")


def trade_off_figure(rows: list[Row], name: str) -> str:
    """Both figures against lambda_g, for the true and the learned graph."""
    arms = list(dict.fromkeys(_label(row) for row in rows))
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(3.4)
        ends: list[tuple[float, float, str, str]] = []
        kinds = [(graph, figure) for figure in _PLACED for graph in ("true", "learned")]
        for color, (graph, figure) in zip(SERIES, kinds, strict=True):
            points = [
                (arms.index(_label(row)), value)
                for row in rows
                if row.get("graph") == graph and (value := number(row, figure)) is not None
            ]
            if not points:
                continue
            axes.plot(*zip(*points), color=color, marker="o", markersize=4)
            ends.append((*points[-1], f"{_PLACED[figure]}, {graph} graph", color))
        for least in (0.8, 0.4):
            axes.axhline(least, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        spread_labels(axes, ends)
        axes.set_xticks(range(len(arms)), arms)
        axes.set_xlabel("λ, the pull of general causes to the origin")
        return svg(
            drawing,
            f"synthetic-{name}",
            "How well edges and generality are kept, against the pull to the origin",
            "See which pull keeps both: edges have to be above the dashed line at 0.8, and "
            "generality above the one at 0.4.",
        )


def _spread(row: Row, figure: str) -> str:
    return f"{amount(number(row, figure), 3)} ± {amount(number(row, f'{figure}_deviation'), 3)}"


def _placement(rows: list[Row], name: str) -> str:
    means = [
        row
        for row in rows
        if number(row, "graphs") is not None and number(row, "generality") is not None
    ]
    learned = [
        value for row in rows if "graph" not in row and (value := number(row, "shd")) is not None
    ]
    if not means:
        return ""
    drawn = []
    for hops in dict.fromkeys(row.get("hops") for row in means):
        own = [row for row in means if row.get("hops") == hops]
        drawn += [
            f"<h3>Attracted over {escape(str(hops))} edges at most</h3>",
            trade_off_figure(own, f"{name}-{hops}"),
        ]
    figures = ("edge_area", "generality_correlation", "own_edge_area", "own_generality_correlation")
    body = [
        [
            f"{row.get('graph')}, k = {row.get('hops')}, λ = {_label(row)}"
            + (", judged" if row.get("judged") else ""),
            *(_spread(row, figure) for figure in figures),
            amount(number(row, "mean_radius"), 2),
            "yes" if row.get("passes") else "no",
        ]
        for row in means
    ]
    header = [
        "embedded graph",
        "edges nearer",
        "generality",
        "by its own edges",
        "by its own generality",
        "radius",
        "passes",
    ]
    shd = (
        f" Learned graphs have an SHD of {sum(learned) / len(learned):.2f} on average."
        if learned
        else ""
    )
    return section(
        f"Graphs in the ball: {name}",
        f'<p class="muted">{amount(number(means[0], "graphs"), 0)} random graphs with a table '
        f"each.{shd} Edges nearer: the "
        "chance that a pair with an edge is nearer than one without, at least 0.8 to pass. "
        "Generality: Spearman’s "
        "correlation of the distance from the origin and −descendants, at least 0.4. Both by the "
        "true graph, then by the "
        "graph that was embedded. A stronger pull keeps generality at the cost of edges.</p>",
        *drawn,
        table(header, body),
    )


def placement_sections(folders: list[Folder]) -> list[str]:
    return [_placement(folder.rows, folder.name) for folder in folders]
