"""Causal graphs as text and as objects of other libraries, with edges of open direction."""

from __future__ import annotations

from typing import Any, Literal

from .._arguments import checked
from .._library import operators
from .columns import Names
from .graph_exports import KnownGraph, known_graph, open_edges

__all__ = ["graph_text", "to_causal_learn", "to_pgmpy"]


@checked
def graph_text(
    graph: Any, names: Names | None = None, *, format: Literal["dot", "gml", "graphml"] = "dot"
) -> str:
    """A graph as the text of a file: DOT of Graphviz, GML or GraphML.

        dowhy.CausalModel(frame, "dose", "growth", graph=graph_text(graph, format="gml"))

    Edges of open direction, which are pairs with both entries in a matrix and those that
    ``cpdag_`` of an estimator leaves open, have no head in DOT, are not directed in GraphML, and
    have ``open 1`` in GML, whose edges all have the direction of the graph.

    Args:
        graph, names: as in :func:`draw_graph`.
    """
    whole = known_graph("graph_text", graph, names, {})
    return operators.causal_graph_text(
        whole.adjacency, open_edges(graph, whole).double(), whole.names, format
    )


@checked
def to_causal_learn(graph: Any, names: Names | None = None) -> Any:
    """A ``GeneralGraph`` of causal-learn: arrows, and lines for edges of open direction.

    Args:
        graph, names: as in :func:`draw_graph`.

    Raises:
        ModuleNotFoundError: causal-learn is not installed.
    """
    whole = known_graph("to_causal_learn", graph, names, {})
    try:
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"to_causal_learn needs causal-learn: python -m pip install causal-learn ({error})"
        ) from None
    nodes = [GraphNode(name) for name in whole.names]
    made = GeneralGraph(nodes)
    lines = open_edges(graph, whole)
    for i, j in _single(whole):
        head = Endpoint.TAIL if lines[i, j] else Endpoint.ARROW
        made.add_edge(Edge(nodes[i], nodes[j], Endpoint.TAIL, head))
    return made


@checked
def to_pgmpy(graph: Any, names: Names | None = None) -> Any:
    """A ``PDAG`` of pgmpy if edges have open directions, otherwise a ``DAG``.

    Args:
        graph, names: as in :func:`draw_graph`.

    Raises:
        ModuleNotFoundError: pgmpy is not installed.
    """
    whole = known_graph("to_pgmpy", graph, names, {})
    try:
        from pgmpy.base import DAG, PDAG
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"to_pgmpy needs pgmpy: python -m pip install pgmpy ({error})"
        ) from None
    lines = open_edges(graph, whole)
    arrows: list[tuple[str, str]] = []
    loose: list[tuple[str, str]] = []
    for i, j in _single(whole):
        (loose if lines[i, j] else arrows).append((whole.names[i], whole.names[j]))
    made = PDAG(directed_ebunch=arrows, undirected_ebunch=loose) if loose else DAG(arrows)
    made.add_nodes_from(whole.names)
    return made


def _single(whole: KnownGraph) -> list[tuple[int, int]]:
    """The edges, a pair with both entries once."""
    edges = whole.adjacency != 0
    return [(i, j) for i, j in edges.nonzero().tolist() if i < j or not edges[j, i]]
