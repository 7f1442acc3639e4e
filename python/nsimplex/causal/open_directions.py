"""Which edges of a fitted graph have a direction that the data do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .limits import completed_graph

__all__ = ["graph_with_open_edges"]


def graph_with_open_edges(
    adjacency: Tensor,
    model: str,
    known: dict[str, Any],
    *,
    standardise: bool,
    targets: Sequence[Iterable[int]] = (),
    other: bool = False,
) -> Tensor:
    """bool [M, M]: the edges of a graph that :func:`causal_fit` learned; one of open direction has
    both entries.

    Noises of one variance, in the units given, tell every direction, and so do curved effects.
    Covariances tell those of the completed partially directed graph. Prior knowledge and
    interventions that set one end alone tell more. An edge that follows from these alone, because
    the other direction would make a collider, may stay open.

    Args:
        model: that of the fit.
        known: prior knowledge with numbers of columns.
        standardise: the columns have one variance, so that variances tell nothing.
        targets: the columns that were set in each row.
        other: something else tells the directions: kinds of columns, or the shape of noises.
    """
    edges = adjacency != 0
    linear = model in ("equal variances", "free variances") or model.endswith("linear")
    curved = model.endswith("nonlinear")
    if other or curved or not linear or (not standardise and model.startswith("equal")):
        return edges
    told = _told_by_knowledge(known, len(edges)) | _told_by_interventions(targets, len(edges))
    return completed_graph(adjacency) & ~(told & edges).T


def _told_by_knowledge(known: dict[str, Any], count: int) -> Tensor:
    """Entry [i, j]: no edge j -> i is possible, or i -> j is required."""
    told = torch.zeros(count, count, dtype=torch.bool)
    for cause, effect in known["forbidden"]:
        told[effect, cause] = True
    for cause, effect in known["required"]:
        told[cause, effect] = True
    if known["tiers"]:
        tiers = torch.tensor(known["tiers"])
        told |= tiers[:, None] < tiers
    told[known["exogenous"], :] = True
    told[:, known["sinks"]] = True
    return told


def _told_by_interventions(targets: Sequence[Iterable[int]], count: int) -> Tensor:
    """Pairs of columns of which some row set one alone."""
    told = torch.zeros(count, count, dtype=torch.bool)
    for own in {frozenset(row) for row in targets}:
        chosen = torch.zeros(count, dtype=torch.bool)
        chosen[sorted(own)] = True
        told |= chosen[:, None] ^ chosen
    return told
