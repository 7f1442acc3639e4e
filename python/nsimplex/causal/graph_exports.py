"""Causal graphs with facts about their edges, and their conversion to networkx and igraph."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._hints import Numbers
from .._printable import printable
from .arrays import graph_matrix
from .columns import Names, given_names

__all__ = ["KnownGraph", "known_graph", "open_edges", "to_igraph", "to_networkx"]


class KnownGraph(NamedTuple):
    """Matrices [M, M] as float64, and the names of all columns."""

    adjacency: Tensor
    names: list[str]
    figures: dict[
        str, Tensor
    ]  # scores, frequencies, connected, low, high, as far as they are known

    def said(self, i: int, j: int) -> dict[str, float]:
        return {name: matrix[i, j].item() for name, matrix in self.figures.items()}


def known_graph(
    function: str, graph: Any, names: Names | None, figures: dict[str, Numbers | None]
) -> KnownGraph:
    """A graph from an estimator that was fitted, or from an adjacency matrix."""
    if hasattr(graph, "get_feature_names_out") and not hasattr(graph, "__array__"):
        adjacency = graph._fitted("adjacency_").to_dense()
        if hasattr(graph, "columns_") and names is None:
            names = [str(name) for name in graph.get_feature_names_out()]
        own = {"scores": getattr(graph, "scores_", None)}
        if sure := getattr(graph, "confidence_", None):
            own |= {
                "frequencies": sure.frequencies,
                "connected": sure.connected,
                "low": sure.low,
                "high": sure.high,
            }
        figures = own | {name: value for name, value in figures.items() if value is not None}
    else:
        adjacency, own_names, _ = graph_matrix(function, "graph", graph)
        names = own_names or None if names is None else names
    if adjacency.dim() != 2 or adjacency.size(0) != adjacency.size(1) or len(adjacency) == 0:
        raise ValueError(
            f"[{function}] graph: expected [M, M] or a fitted estimator, got {describe(graph)}"
        )
    if not adjacency.isfinite().all():
        raise ValueError(f"[{function}] graph: expected finite weights")
    count = len(adjacency)
    if names is not None:
        names = given_names(function, names, count)
    known = {}
    for name, value in figures.items():
        if value is not None:
            figure = graph_matrix(function, name, value, names or (), "graph", scores=True)
            known[name] = figure.values
            if known[name].shape != adjacency.shape:
                raise ValueError(
                    f"[{function}] {name}: expected {list(adjacency.shape)}, got "
                    f"{list(known[name].shape)}"
                )
    adjacency = adjacency.clone().fill_diagonal_(0)
    labels = [str(name) for name in names] if names else [f"x{at}" for at in range(count)]
    return KnownGraph(adjacency, labels, known)


def open_edges(graph: Any, whole: KnownGraph) -> Tensor:
    """bool [M, M]: both entries of every edge of open direction."""
    edges = whole.adjacency != 0
    told = getattr(graph, "cpdag_", None)
    if told is None or not hasattr(graph, "get_feature_names_out"):
        return edges & edges.T
    given = torch.as_tensor(told)
    return given & given.T & (edges | edges.T)


@checked
def to_networkx(graph: Any, names: Names | None = None) -> Any:
    """A ``networkx.DiGraph`` of all columns, with ``weight``, and ``score``, ``frequency``,
    ``connected``, ``low`` and ``high`` as far as they are known. Edges of open
    direction have ``open=True``.

    Args:
        graph, names: as in :func:`draw_graph`.
    """
    import networkx  # torch needs it

    whole = known_graph("to_networkx", graph, names, {})
    for name, times in Counter(whole.names).items():
        if times > 1:
            raise ValueError(
                f"[to_networkx] names: expected different names of columns, got {times} columns "
                f"{printable(name)[:60]!r}"
            )
    made = networkx.DiGraph()
    made.add_nodes_from(whole.names)
    lines = open_edges(graph, whole)
    for i, j in whole.adjacency.nonzero().tolist():
        marks = {"open": True} if lines[i, j] else {}
        made.add_edge(whole.names[i], whole.names[j], **_attributes(whole, i, j), **marks)
    return made


@checked
def to_igraph(graph: Any, names: Names | None = None) -> Any:
    """A directed ``igraph.Graph`` of all columns with the attributes of :func:`to_networkx`.

    igraph is under the GPL and is installed separately.

    Raises:
        ModuleNotFoundError: igraph is not installed.
    """
    whole = known_graph("to_igraph", graph, names, {})
    try:
        import igraph
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"to_igraph needs igraph: python -m pip install igraph ({error})"
        ) from None
    pairs = whole.adjacency.nonzero().tolist()
    made = igraph.Graph(n=len(whole.names), edges=pairs, directed=True)
    made.vs["name"] = whole.names
    attributes = [_attributes(whole, i, j) for i, j in pairs]
    for name in attributes[0] if attributes else ():
        made.es[name] = [each[name] for each in attributes]
    return made


def _attributes(graph: KnownGraph, i: int, j: int) -> dict[str, float]:
    singular = {"scores": "score", "frequencies": "frequency"}
    own = {singular.get(name, name): value for name, value in graph.said(i, j).items()}
    return {"weight": graph.adjacency[i, j].item()} | own
