"""The section about a learned graph: its picture, its edges as a table, and its matrices as
squares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np

from .._graph_svg import Drawing, Node, Paints, Stroke, in_rows, listed, neighbourhood
from .._layered import causal_order
from .elements import heat_map, readable, section, sentence, short, table
from .learned import (
    EXTRA,
    LEARNED,
    MISSING,
    REVERSED,
    RIGHT,
    Edge,
    LearnedGraph,
)

_PALE = 0.25  # opacity of an edge that no sample has
_PHONE = 330.0  # pixels that a phone has for a picture
_PAINTS = Paints(ink="var(--ink)", card="var(--card)")

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


def _paint(look: str) -> str:
    color = _LOOKS[look][0]
    return f"var(--series-{color})" if color else "var(--muted)"


def _dashes(look: str) -> str:
    return " ".join(map(str, _LOOKS[look][1] or ()))


def legend(edges: list[Edge]) -> str:
    """What the kinds of edges look like and how many there are."""
    counts = Counter(map(_look, edges))
    items = []
    for look in _LOOKS:
        if counts[look]:
            dashed = f' stroke-dasharray="{_dashes(look)}"' if _dashes(look) else ""
            looks = f'stroke-width="2.4"{dashed} style="stroke: {_paint(look)}"'
            line = f'<line x1="1" y1="5" x2="33" y2="5" {looks}></line>'
            key = f'<svg class="key" viewBox="0 0 34 10" aria-hidden="true">{line}</svg>'
            items.append(f"<li>{key}{_WORDS[look]} ({counts[look]:,})</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _said(names: list[str], edge: Edge) -> str:
    """An edge in words, which a browser shows under the pointer."""
    cause, effect = (short(names[node], 60) for node in (edge.cause, edge.effect))
    text = f"{cause} → {effect}: weight {_figure(edge.weight)}"
    if edge.score == edge.score:
        text += f", score {_figure(edge.score)}"
    if edge.sure is not None:
        text += f", in {edge.sure.frequency:.0%} of the samples"
    if edge.kind != LEARNED:
        text += f", {edge.kind}"
    return text + ("; the table cannot tell its direction" if edge.open else "")


def _stroke(names: list[str], edge: Edge, largest: float) -> Stroke:
    look = _look(edge)
    return Stroke(
        edge.cause,
        edge.effect,
        _paint(look),
        1.3 if edge.kind == MISSING else 0.9 + 2.5 * abs(edge.weight) / largest,
        _said(names, edge),
        dashes=_dashes(look),
        opacity=1.0 if edge.sure is None else _PALE + (1 - _PALE) * edge.sure.frequency,
        head=not edge.open,
        sign="−" if edge.weight < 0 else "+",
    )


def _svg(drawing: Drawing, alt: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {drawing.width:.0f} '
        f'{drawing.height:.0f}" style="font-size: 12px">{"".join(drawing.parts)}</svg>'
    )


def dag_figure(names: list[str], edges: list[Edge], chosen: set[int]) -> str:
    """The nodes with these names and the edges between them: in rows, and on narrow screens that
    have no room for rows one below the other."""
    nodes = [Node(short(name), short(name, 60), "", at in chosen) for at, name in enumerate(names)]
    largest = max((abs(e.weight) for e in edges if e.kind != MISSING), default=1.0)
    strokes = [_stroke(names, edge, largest) for edge in edges]
    wide = in_rows(nodes, strokes, _PAINTS)
    what = f"{len(names)} nodes with {len(edges)} edges"
    picture = _svg(wide, f"{what}, in rows from causes down to effects")
    see = sentence("See which columns are first causes: edges lead down from causes to effects.")
    if small := readable(picture) if _least_width(wide) <= _PHONE else "":
        # A small graph is not blown up.
        return f'{see}<div style="max-width: {1.3 * wide.width:.0f}px">{small}</div>'
    narrow = _svg(listed(nodes, strokes, _PAINTS, _PHONE), f"{what}, causes above effects")
    return see + readable(picture, "wide") + readable(narrow, "narrow")


def _least_width(drawing: Drawing) -> float:
    """Pixels in which its letters of 12 pixels have 11."""
    return drawing.width * 11 / 12


_MOST_DRAWN = 60  # of a picture

_MOST_EDGES = 120

_MOST_ROWS = 200

_MOST_LONE = 100  # names of nodes without edges


def _figure(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}".replace("-", "−")


def strongest(edges: list[Edge], centre: Sequence[int] = ()) -> list[Edge]:
    """The edges of the largest weights, as many as a picture can show; those around some nodes if
    there are any."""
    # Weights of the true graph are not compared with learned ones.
    ranked = sorted(edges, key=lambda e: (e.kind == MISSING, -abs(e.weight)))
    nodes = neighbourhood([(e.cause, e.effect) for e in ranked], centre, _MOST_DRAWN)
    return [e for e in ranked if e.cause in nodes and e.effect in nodes][:_MOST_EDGES]


def _lone(graph: LearnedGraph, nodes: set[int]) -> str:
    lone = [name for at, name in enumerate(graph.names) if at not in nodes]
    if not lone:
        return ""
    names = ", ".join(short(name, 40) for name in lone[:_MOST_LONE])
    more = f", and {len(lone) - _MOST_LONE:,} more" if len(lone) > _MOST_LONE else ""
    count = "1 node has no edges" if len(lone) == 1 else f"{len(lone):,} nodes have no edges"
    return f'<p class="muted">{count}: {escape(names + more)}.</p>'


def _picture(graph: LearnedGraph, edges: list[Edge], chosen: Sequence[str]) -> str:
    nodes = {node for edge in edges for node in (edge.cause, edge.effect)}
    if not edges:
        return f"<p>The graph has no edges.</p>{_lone(graph, nodes)}"
    shown, text = edges, ""
    centre = [graph.names.index(name) for name in chosen if name in graph.names]
    if centre:
        shown = strongest(edges, centre)
        around = escape(", ".join(short(graph.names[node], 40) for node in centre))
        text = f"<p>The picture shows {len(shown):,} of {len(edges):,} edges around {around}.</p>"
    elif len(nodes) > _MOST_DRAWN or len(edges) > _MOST_EDGES:
        shown = strongest(edges)
        text = (
            f"<p>The picture of the whole graph is left out, because it has {len(graph.names):,} "
            f"nodes and {len(edges):,} edges. The picture shows the part with the {len(shown):,} "
            "strongest edges. <code>nsimplex report DIR --column NAME</code> shows the part around "
            "a column of your choice.</p>"
        )
    drawn = sorted({*centre, *(node for e in shown for node in (e.cause, e.effect))})
    place = {node: at for at, node in enumerate(drawn)}
    own = [replace(edge, cause=place[edge.cause], effect=place[edge.effect]) for edge in shown]
    names = [graph.names[node] for node in drawn]
    figure = dag_figure(names, own, {place[node] for node in centre})
    more = ""
    if any(edge.sure for edge in shown):
        more = " An arrow is paler the fewer samples of the rows have its edge."
    if any(edge.open for edge in shown):
        more += " An edge without an arrow head may point either way: the table cannot tell."
    return (
        '<p class="muted">Arrows lead from a cause down to its effects, and are wider the larger '
        f"the weight is.{more}</p>{text}"
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
    sampled, loose = any(edge.sure for edge in edges), any(edge.open for edge in edges)
    body = []
    for edge in edges[:_MOST_ROWS]:
        row = [short(graph.names[edge.cause], 60), short(graph.names[edge.effect], 60)]
        row += ["–" if edge.kind == MISSING else _figure(edge.weight), _figure(edge.score)]
        if sampled:
            row += _sure(edge)
        if loose:
            row.append("either way" if edge.open else "")
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
    header += ["direction"] if loose else []
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


def learned_section(graph: LearnedGraph, columns: Sequence[str] = ()) -> str:
    """All about one graph; errors against the true graph where the folder has it. The picture shows
    the strongest part around ``columns`` if there are some."""
    edges = graph.edges()
    learned = sum(edge.kind != MISSING for edge in edges)
    counts = f"{len(graph.names):,} nodes and {learned:,} learned edges."
    if graph.truth is not None:
        counts += f" The true graph has {np.count_nonzero(graph.truth):,} edges."
    return section(
        f"Learned graph: {graph.name}",
        f'<p class="muted">{counts}</p>',
        _picture(graph, edges, columns),
        _table(graph, edges),
        _matrices(graph),
    )
