"""The section about the graph of a table: its picture, its edges as a table, and its matrices."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np

from .dag_figure import dag_figure, legend, short
from .dag_layout import causal_order
from .heat_map import heat_map
from .learned import MISSING, Edge, LearnedGraph
from .parts import section, table

_MOST_NODES = 60  # of a picture
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
        if len(both) <= _MOST_NODES:
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
    if len(nodes) > _MOST_NODES or len(edges) > _MOST_EDGES:
        shown = strongest(edges)
        text = (
            f"<p>The picture of the whole graph is left out, because it has {len(graph.names):,} nodes and {len(edges):,} "
            f"edges. The picture shows the part with the {len(shown):,} strongest edges.</p>"
        )
    drawn = sorted({node for edge in shown for node in (edge.cause, edge.effect)})
    place = {node: at for at, node in enumerate(drawn)}
    own = [replace(edge, cause=place[edge.cause], effect=place[edge.effect]) for edge in shown]
    return (
        f'<p class="muted">Arrows lead from a cause down to its effects, and are wider the larger the weight is.</p>{text}'
        f"{legend(shown)}{dag_figure(graph.name, [graph.names[n] for n in drawn], own)}{_lone(graph, nodes)}"
    )


def _table(graph: LearnedGraph, edges: list[Edge]) -> str:
    known = graph.truth is not None
    body = []
    for edge in edges[:_MOST_ROWS]:
        row = [short(graph.names[edge.cause], 60), short(graph.names[edge.effect], 60)]
        row += ["–" if edge.kind == MISSING else _figure(edge.weight), _figure(edge.score)]
        if known:
            row += [_figure(graph.truth[edge.cause, edge.effect]), edge.kind]
        body.append(row)
    if not body:
        return ""
    left = ""
    if len(edges) > _MOST_ROWS:
        files = "graph.tsv and truth.tsv have" if known else "graph.tsv has"
        left = f"<p>{len(edges) - _MOST_ROWS:,} more edges are left out of this table; {files} them all.</p>"
    header = ["cause", "effect", "weight", "score", *(["true weight", "edge"] if known else [])]
    return f"<h3>Edges by score</h3>{table(header, body)}{left}"


def _matrices(graph: LearnedGraph) -> str:
    causes = [tuple(pair) for pair in np.argwhere(graph.weights != 0).tolist()]
    order = causal_order(len(graph.names), causes)
    names = [graph.names[node] for node in order]
    found = {"learned weights": graph.weights, "true weights": graph.truth, "scores": graph.scores}
    maps = "".join(
        heat_map(title, matrix[np.ix_(order, order)], names) for title, matrix in found.items() if matrix is not None
    )
    note = (
        "Rows are causes and columns are effects, both in an order in which causes come before their effects in the learned "
        "graph. A square is darker the larger its number is, on a scale of each matrix's own, which is logarithmic where "
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
