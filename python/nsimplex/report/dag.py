"""The section about a learned graph: its picture, its edges as a table, and its matrices as
squares."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from .._layered import causal_order
from .._page import counted, figure, section, short, table
from ..causal.drawing import GraphPicture, draw_graph, page_parts
from .elements import heat_map, sentence
from .learned import MISSING, Edge, LearnedGraph

_MOST_DRAWN = 60  # nodes of a picture

_MOST_ROWS = 200

_INTERVALS = (
    '<p class="muted">An edge whose direction a sample leaves open counts a half there. The '
    "interval of a weight belongs to the graph shown: it is right if the other causes of the "
    "effect are.</p>"
)
_MOST_LONE = 100  # names of nodes without edges


def _lone(graph: LearnedGraph, nodes: set[int]) -> str:
    lone = [name for at, name in enumerate(graph.names) if at not in nodes]
    if not lone:
        return ""
    names = ", ".join(short(name, 40) for name in lone[:_MOST_LONE])
    more = f", and {len(lone) - _MOST_LONE:,} more" if len(lone) > _MOST_LONE else ""
    count = f"{counted(len(lone), 'nodes')} {'has' if len(lone) == 1 else 'have'} no edges"
    return f'<p class="muted">{count}: {escape(names + more)}.</p>'


def _drawn(graph: LearnedGraph, edges: list[Edge], chosen: Sequence[int]) -> GraphPicture:
    """The picture of a graph with these edges, or of its part around chosen nodes."""
    fields = {"frequencies": "frequency", "low": "low", "high": "high"} if graph.sure else {}
    known = {name: np.full(graph.weights.shape, np.nan) for name in fields}
    for edge in edges:
        if edge.sure is not None:
            for name, field in fields.items():
                known[name][edge.cause, edge.effect] = getattr(edge.sure, field)
    return draw_graph(
        graph.weights,
        graph.names,
        columns=chosen,
        most=_MOST_DRAWN,
        scores=graph.scores,
        reversible=[(edge.cause, edge.effect) for edge in edges if edge.open],
        truth=graph.truth,
        **known,
    )


def _picture(graph: LearnedGraph, edges: list[Edge], chosen: Sequence[str]) -> str:
    nodes = {node for edge in edges for node in (edge.cause, edge.effect)}
    if not edges:
        return f"<p>The graph has no edges.</p>{_lone(graph, nodes)}"
    centre = [graph.names.index(name) for name in chosen if name in graph.names]
    drawn, text = _drawn(graph, edges, centre), ""
    shown = f"{len(drawn.edges):,} of {counted(len(edges), 'edges')}"
    if centre:
        around = escape(", ".join(short(graph.names[node], 40) for node in centre))
        text = f"<p>The picture shows {shown} around {around}.</p>"
    elif drawn.hidden:
        text = (
            f"<p>The picture shows the strongest {shown}. <code>nsimplex report DIR --column NAME"
            "</code> shows the part around a column of your choice.</p>"
        )
    see = sentence("See which columns are first causes: edges lead down from causes to effects.")
    return f"{text}{see}{page_parts(drawn)}{_lone(graph, nodes)}"


def _sure(edge: Edge) -> list[str]:
    """The shares of the samples that have an edge in its direction and in either, and the interval
    of its weight."""
    if edge.sure is None:
        return ["–", "–", "–"]
    ends = f"{figure(edge.sure.low)} to {figure(edge.sure.high)}"
    shares = [f"{edge.sure.frequency:.0%}", f"{edge.sure.connected:.0%}"]
    return [*shares, "–" if np.isnan(edge.sure.low) else ends]


def _table(graph: LearnedGraph, edges: list[Edge]) -> str:
    known = graph.truth is not None
    sampled, loose = any(edge.sure for edge in edges), any(edge.open for edge in edges)
    body = []
    for edge in edges[:_MOST_ROWS]:
        row = [short(graph.names[edge.cause], 60), short(graph.names[edge.effect], 60)]
        row += ["–" if edge.kind == MISSING else figure(edge.weight), figure(edge.score)]
        if sampled:
            row += _sure(edge)
        if loose:
            row.append("either way" if edge.open else "")
        if graph.truth is not None:
            row += [figure(graph.truth[edge.cause, edge.effect]), edge.kind]
        body.append(row)
    if not body:
        return ""
    left = ""
    if len(edges) > _MOST_ROWS:
        files = "graph.tsv and truth.tsv have" if known else "graph.tsv has"
        more = counted(len(edges) - _MOST_ROWS, "more edges")
        verb = "is" if len(edges) == _MOST_ROWS + 1 else "are"
        left = f"<p>{more} {verb} left out of this table; {files} them all.</p>"
    header = ["cause", "effect", "weight", "score"]
    header += ["direction in samples", "connection in samples", "95 % interval"] if sampled else []
    header += ["direction"] if loose else []
    header += ["true weight", "edge"] if known else []
    order = "share of the samples" if sampled else "score"
    note = _INTERVALS if sampled else ""
    return f"<h3>Edges by {order}</h3>{note}{table(header, body, kind='names')}{left}"


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


def learned_section(graph: LearnedGraph, columns: Sequence[str] = (), only: bool = False) -> str:
    """All about one graph; errors against the true graph where the folder has it. The picture shows
    the strongest part around ``columns`` if there are some. ``only``: no other is on the page."""
    edges = graph.edges()
    learned = sum(edge.kind != MISSING for edge in edges)
    counts = f"{counted(len(graph.names), 'nodes')} and {counted(learned, 'learned edges')}."
    if graph.truth is not None:
        counts += f" The known graph has {counted(int(np.count_nonzero(graph.truth)), 'edges')}."
    return section(
        "Learned graph" if only else f"Learned graph: {graph.name}",
        f'<p class="muted">{counts}</p>',
        _picture(graph, edges, columns),
        _table(graph, edges),
        _matrices(graph),
    )
