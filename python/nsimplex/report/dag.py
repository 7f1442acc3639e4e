"""The section about a learned graph: its picture, its edges as a table, and its matrices as
squares."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve

from .._layered import bezier_pieces, causal_order, edge_curves, letters, place_nodes
from .elements import (
    CARD,
    INK,
    MUTED,
    SERIES,
    STYLE,
    heat_map,
    section,
    sentence,
    short,
    svg,
    table,
)
from .learned import (
    EXTRA,
    LEARNED,
    MISSING,
    REVERSED,
    RIGHT,
    Edge,
    LearnedGraph,
)

_MOST_SIGNS = 40  # edges that are marked + or −

_HEIGHT = 20.0  # of a node, in points
_PALE = 0.25  # opacity of an edge that no sample has


#: Colour (by its number in the style sheet; 0: muted) and dashes of each kind of edge.
_LOOKS = {
    "positive": (1, None),
    "negative": (2, (5, 2)),
    RIGHT: (3, None),
    REVERSED: (4, (7, 2, 1.5, 2)),
    EXTRA: (2, (5, 2)),
    MISSING: (0, (1.2, 2)),
}

_WORDS = {
    "positive": "weight above 0",
    "negative": "weight below 0",
    RIGHT: "right: it is in the true graph",
    REVERSED: "reversed: the true graph has it the other way round",
    EXTRA: "extra: the true graph does not have it",
    MISSING: "missing: only the true graph has it",
}


def _look(edge: Edge) -> str:
    return ("negative" if edge.weight < 0 else "positive") if edge.kind == LEARNED else edge.kind


def legend(edges: list[Edge]) -> str:
    """What the kinds of edges look like and how many there are."""
    counts = Counter(map(_look, edges))
    items = []
    for look, (color, dashes) in _LOOKS.items():
        if counts[look]:
            dashed = f' stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""
            stroke = f"var(--series-{color})" if color else "var(--muted)"
            looks = f'stroke-width="2.4"{dashed} style="stroke: {stroke}"'
            line = f'<line x1="1" y1="5" x2="33" y2="5" {looks}></line>'
            key = f'<svg class="key" viewBox="0 0 34 10" aria-hidden="true">{line}</svg>'
            items.append(f"<li>{key}{_WORDS[look]} ({counts[look]:,})</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _curve(points: np.ndarray) -> Curve:
    vertices, codes = [points[0]], [Curve.MOVETO]
    for piece in bezier_pieces(points):
        vertices += piece
        codes += [Curve.CURVE4] * 3
    return Curve(vertices, codes)


def dag_figure(name: str, names: list[str], edges: list[Edge]) -> str:
    """The nodes with these names and the edges between them; as wide as the widest layer needs."""
    shown = [short(each) for each in names]
    widths = [max(30.0, 12 + 5.9 * letters(each)) for each in shown]
    pairs = [(e.cause, e.effect) for e in edges]
    places, bends = place_nodes(pairs, widths)
    curves = edge_curves(pairs, places, bends, widths, _HEIGHT)
    halves = np.array(widths)[:, None] / 2
    corners = np.concatenate(
        [places[:, :1] - halves, places[:, :1] + halves, *(c[:, :1] for c in curves)]
    )
    left, right = float(corners.min()) - 8, float(corners.max()) + 8
    bottom, top = min(float(c[:, 1].min()) for c in curves) - 28, 18.0
    largest = max((abs(e.weight) for e in edges if e.kind != MISSING), default=1.0)
    signs = len(edges) <= _MOST_SIGNS
    style: dict[Any, Any] = STYLE | {"lines.scale_dashes": False}
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=((right - left) / 72, (top - bottom) / 72))
        axes = drawing.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
        for edge, points in zip(edges, curves):
            color, dashes = _LOOKS[_look(edge)]
            width = 1.3 if edge.kind == MISSING else 0.9 + 2.5 * abs(edge.weight) / largest
            paint = SERIES[color - 1] if color else MUTED
            alpha = 1.0 if edge.sure is None else _PALE + (1 - _PALE) * edge.sure.frequency
            axes.add_patch(
                FancyArrowPatch(
                    path=_curve(points),
                    arrowstyle="-|>",
                    mutation_scale=8 + 1.5 * width,
                    linewidth=width,
                    color=paint,
                    alpha=alpha,
                    linestyle=(0, dashes) if dashes else "-",
                    joinstyle="miter",
                    capstyle="butt",
                    fill=True,
                    zorder=1,
                )
            )
            if signs:
                at = (len(points) - 1) // 2
                middle = (
                    points[1]
                    if points[0][1] == points[-1][1]
                    else (points[at] + points[at + 1]) / 2
                )
                box = {"boxstyle": "circle,pad=0.1", "facecolor": CARD, "edgecolor": "none"}
                sign = "−" if edge.weight < 0 else "+"
                axes.text(
                    middle[0],
                    middle[1],
                    sign,
                    ha="center",
                    va="center",
                    fontsize=9,
                    color=paint,
                    bbox=box,
                    zorder=2,
                )
        for (x, y), width, text in zip(places, widths, shown):
            axes.add_patch(
                FancyBboxPatch(
                    (x - width / 2, y - _HEIGHT / 2),
                    width,
                    _HEIGHT,
                    boxstyle="round,pad=0,rounding_size=6",
                    facecolor=CARD,
                    edgecolor=INK,
                    linewidth=1,
                    zorder=3,
                )
            )
            axes.text(x, y, text, ha="center", va="center", fontsize=9.5, color=INK, zorder=4)
        alt = (
            f"{len(names)} nodes in layers from causes down to effects, with {len(edges)} edges as "
            "arrows"
        )
        picture = svg(drawing, f"dag-{name}", alt, "")
    see = sentence("See which columns are first causes: arrows lead down from causes to effects.")
    # A small graph is not blown up.
    return f'{see}<div style="max-width: {1.5 * (right - left):.0f}px">{picture}</div>'


_MOST_DRAWN = 60  # of a picture

_MOST_EDGES = 120

_MOST_ROWS = 200

_MOST_LONE = 100  # names of nodes without edges


def _figure(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}".replace("-", "−")


def strongest(edges: list[Edge]) -> list[Edge]:
    """The edges of the largest weights, as many as a picture can show."""
    chosen: list[Edge] = []
    nodes: set[int] = set()
    # Weights of the true graph are not compared with learned ones.
    for edge in sorted(edges, key=lambda e: (e.kind == MISSING, -abs(e.weight))):
        both = nodes | {edge.cause, edge.effect}
        if len(both) <= _MOST_DRAWN:
            nodes = both
            chosen.append(edge)
            if len(chosen) == _MOST_EDGES:
                break
    return chosen


def _lone(graph: LearnedGraph, nodes: set[int]) -> str:
    lone = [name for at, name in enumerate(graph.names) if at not in nodes]
    if not lone:
        return ""
    names = ", ".join(short(name, 40) for name in lone[:_MOST_LONE])
    more = f", and {len(lone) - _MOST_LONE:,} more" if len(lone) > _MOST_LONE else ""
    count = "1 node has no edges" if len(lone) == 1 else f"{len(lone):,} nodes have no edges"
    return f'<p class="muted">{count}: {escape(names + more)}.</p>'


def _picture(graph: LearnedGraph, edges: list[Edge]) -> str:
    nodes = {node for edge in edges for node in (edge.cause, edge.effect)}
    if not edges:
        return f"<p>The graph has no edges.</p>{_lone(graph, nodes)}"
    shown, text = edges, ""
    if len(nodes) > _MOST_DRAWN or len(edges) > _MOST_EDGES:
        shown = strongest(edges)
        text = (
            f"<p>The picture of the whole graph is left out, because it has {len(graph.names):,} "
            f"nodes and {len(edges):,} "
            f"edges. The picture shows the part with the {len(shown):,} strongest edges.</p>"
        )
    drawn = sorted({node for edge in shown for node in (edge.cause, edge.effect)})
    place = {node: at for at, node in enumerate(drawn)}
    own = [replace(edge, cause=place[edge.cause], effect=place[edge.effect]) for edge in shown]
    figure = dag_figure(graph.name, [graph.names[node] for node in drawn], own)
    paler = ""
    if any(edge.sure for edge in shown):
        paler = " An arrow is paler the fewer samples of the rows have its edge."
    return (
        '<p class="muted">Arrows lead from a cause down to its effects, and are wider the larger '
        f"the weight is.{paler}</p>{text}"
        f"{legend(shown)}{figure}{_lone(graph, nodes)}"
    )


def _sure(edge: Edge) -> list[str]:
    """The share of the samples that have an edge, and the interval of its weight."""
    if edge.sure is None:
        return ["–", "–"]
    ends = f"{_figure(edge.sure.low)} to {_figure(edge.sure.high)}"
    return [f"{edge.sure.frequency:.0%}", "–" if np.isnan(edge.sure.low) else ends]


def _table(graph: LearnedGraph, edges: list[Edge]) -> str:
    known = graph.truth is not None
    sampled = any(edge.sure for edge in edges)
    body = []
    for edge in edges[:_MOST_ROWS]:
        row = [short(graph.names[edge.cause], 60), short(graph.names[edge.effect], 60)]
        row += ["–" if edge.kind == MISSING else _figure(edge.weight), _figure(edge.score)]
        if sampled:
            row += _sure(edge)
        if graph.truth is not None:
            row += [_figure(graph.truth[edge.cause, edge.effect]), edge.kind]
        body.append(row)
    if not body:
        return ""
    left = ""
    if len(edges) > _MOST_ROWS:
        files = "graph.tsv and truth.tsv have" if known else "graph.tsv has"
        left = (
            f"<p>{len(edges) - _MOST_ROWS:,} more edges are left out of this table; {files} them "
            "all.</p>"
        )
    header = ["cause", "effect", "weight", "score"]
    header += ["in samples", "95 % interval"] if sampled else []
    header += ["true weight", "edge"] if known else []
    return f"<h3>Edges by score</h3>{table(header, body)}{left}"


def _matrices(graph: LearnedGraph) -> str:
    causes = [(i, j) for i, j in np.argwhere(graph.weights != 0).tolist()]
    order = causal_order(len(graph.names), causes)
    names = [graph.names[node] for node in order]
    found = {"learned weights": graph.weights, "true weights": graph.truth, "scores": graph.scores}
    maps = "".join(
        heat_map(title, matrix[np.ix_(order, order)], names)
        for title, matrix in found.items()
        if matrix is not None
    )
    note = (
        "Rows are causes and columns are effects, both in an order in which causes come before "
        "their effects in the learned "
        "graph. A square is darker the larger its number is, on a scale of each matrix's own, "
        "which is logarithmic where "
        "numbers span more than a factor of 1000. Blue numbers are above 0 and orange ones below."
    )
    if len(names) > 60:
        note += " A square stands for a block of the matrix, and shows its largest number."
    return f'<h3>Matrices</h3><p class="muted">{note}</p><div class="matrices">{maps}</div>'


def learned_section(graph: LearnedGraph) -> str:
    """All about one graph; errors against the true graph where the folder has it."""
    edges = graph.edges()
    learned = sum(edge.kind != MISSING for edge in edges)
    counts = f"{len(graph.names):,} nodes and {learned:,} learned edges."
    if graph.truth is not None:
        counts += f" The true graph has {np.count_nonzero(graph.truth):,} edges."
    return section(
        f"Learned graph: {graph.name}",
        f'<p class="muted">{counts}</p>',
        _picture(graph, edges),
        _table(graph, edges),
        _matrices(graph),
    )
