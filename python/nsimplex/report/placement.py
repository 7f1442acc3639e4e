"""The section about `nsimplex causal synthetic`: does the ball show the graph that made the data?"""

from __future__ import annotations

from html import escape

import matplotlib

from .data import Row, number
from .figure import MUTED, SERIES, STYLE, new_axes, spread_labels, svg
from .parts import amount, section, table

_FIGURES = {"edge_area": "edges nearer", "generality_correlation": "generality"}


def _label(row: Row) -> str:
    return f"{row['generality']:g}" + ("" if row.get("relative") else " π as printed")


def trade_off_figure(rows: list[Row], name: str) -> str:
    """Both figures against lambda_g, for the true and the learned graph."""
    arms = list(dict.fromkeys(_label(row) for row in rows))
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(3.4)
        ends = []
        kinds = [(graph, figure) for figure in _FIGURES for graph in ("true", "learned")]
        for color, (graph, figure) in zip(SERIES, kinds, strict=True):
            points = [
                (arms.index(_label(row)), value)
                for row in rows
                if row.get("graph") == graph and (value := number(row, figure)) is not None
            ]
            if not points:
                continue
            axes.plot(*zip(*points), color=color, marker="o", markersize=4)
            ends.append((*points[-1], f"{_FIGURES[figure]}, {graph} graph", color))
        for least in (0.8, 0.4):
            axes.axhline(least, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        spread_labels(axes, ends)
        axes.set_xticks(range(len(arms)), arms)
        axes.set_xlabel("λ, the pull of general causes to the origin")
        return svg(drawing, f"synthetic-{name}", "How well edges and generality are kept, against the pull to the origin")


def _spread(row: Row, figure: str) -> str:
    return f"{amount(number(row, figure), 3)} ± {amount(number(row, f'{figure}_deviation'), 3)}"


def placement_section(rows: list[Row], name: str) -> str:
    means = [row for row in rows if number(row, "graphs") is not None and number(row, "generality") is not None]
    learned = [value for row in rows if "graph" not in row and (value := number(row, "shd")) is not None]
    if not means:
        return ""
    drawn = []
    for hops in dict.fromkeys(row.get("hops") for row in means):
        own = [row for row in means if row.get("hops") == hops]
        drawn += [f"<h3>Attracted over {escape(str(hops))} edges at most</h3>", trade_off_figure(own, f"{name}-{hops}")]
    figures = ("edge_area", "generality_correlation", "own_edge_area", "own_generality_correlation")
    body = [
        [
            f"{row.get('graph')}, k = {row.get('hops')}, λ = {_label(row)}" + (", judged" if row.get("judged") else ""),
            *(_spread(row, figure) for figure in figures),
            amount(number(row, "mean_radius"), 2),
            "yes" if row.get("passes") else "no",
        ]
        for row in means
    ]
    header = ["embedded graph", "edges nearer", "generality", "by its own edges", "by its own generality", "radius", "passes"]
    shd = f" Learned graphs have an SHD of {sum(learned) / len(learned):.2f} on average." if learned else ""
    return section(
        f"Graphs in the ball: {name}",
        f'<p class="muted">{amount(number(means[0], "graphs"), 0)} random graphs with a table each.{shd} Edges nearer: the '
        "chance that a pair with an edge is nearer than one without, at least 0.8 to pass. Generality: Spearman’s "
        "correlation of the distance from the origin and −descendants, at least 0.4. Both by the true graph, then by the "
        "graph that was embedded. A stronger pull keeps generality at the cost of edges.</p>",
        *drawn,
        table(header, body),
    )
