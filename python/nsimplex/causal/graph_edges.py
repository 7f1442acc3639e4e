"""The edges of a learned graph, with the names of their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .._data_frames import DataFrame, data_frame

__all__ = ["GraphEdge", "GraphEdges", "edges_of"]


class GraphEdge(NamedTuple):
    """An edge of a learned graph."""

    cause: str
    effect: str
    weight: float
    score: float  #: as in :class:`CausalFit`; NaN in a graph that was not learned
    #: share of the samples that have it in this direction, as in :class:`EdgeConfidence`; None
    #: without ``confidence``
    frequency: float | None
    connected: float | None  #: share of the samples that have it in either direction
    low: float | None  #: interval of the weight
    high: float | None


class GraphEdges(list[GraphEdge]):
    """A list of edges."""

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with a row per edge and the fields as columns."""
        return data_frame(self, GraphEdge._fields)


def edges_of(graph: Any) -> GraphEdges:
    """The edges of a fitted estimator, the surest or else the highest score first."""
    adjacency = graph._fitted("adjacency_").to_dense()  # that of embed() may be sparse
    columns = getattr(graph, "columns_", range(len(adjacency)))
    names = graph.names_ or [f"x{column}" for column in columns]
    scores = getattr(graph, "scores_", torch.full_like(adjacency, torch.nan))
    sure = getattr(graph, "confidence_", None)
    found = []
    for i, j in adjacency.nonzero().tolist():
        matrices = (sure.frequencies, sure.connected, sure.low, sure.high) if sure else ()
        figures = [each[i, j].item() for each in matrices] or [None] * 4
        known = (adjacency[i, j].item(), scores[i, j].item(), *figures)
        found.append(GraphEdge(names[i], names[j], *known))
    rank = lambda edge: (-(edge.frequency or 0), -(edge.connected or 0), -edge.score)
    return GraphEdges(sorted(found, key=rank))
