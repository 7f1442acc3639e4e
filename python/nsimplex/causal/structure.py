"""Causal graphs from tables of observations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._hints import Numbers
from .._library import operators
from .arrays import as_double


class CausalFit(NamedTuple):
    """A causal graph of M columns. Entry ``[i, j]`` belongs to the edge i -> j, in x_j = sum_i x_i
    A_ij + noise."""

    adjacency: Tensor  #: float64 [M, M]: the graph, acyclic; 0 means no edge
    weights: Tensor  #: float64 [M, M]: the estimator's output before threshold and repair
    scores: Tensor  #: float64 [M, M]: confidence per edge, >= 0; use it to rank pairs
    removed: Tensor  #: int64 [r, 2]: cause and effect of edges that closed cycles
    model: str  #: the model that the estimator chose, or the estimator's name
    seconds: float  #: duration of the fit


class FewRowsWarning(UserWarning):
    """A table has fewer rows than columns, so a graph learned from it shows only strong effects."""


@checked
def causal_fit(
    table: Numbers,
    *,
    estimator: str = "order",
    nonlinear: bool = False,
    standardise: bool = False,
    threshold: float | None = None,
    sparsity: float | None = None,
    rank: int = 40,
    sample: bool = False,
    seed: int = 0,
    forbidden: Iterable[tuple[int, int]] = (),
    required: Iterable[tuple[int, int]] = (),
    tiers: Sequence[int] = (),
) -> CausalFit:
    """Learns which columns of a table cause which other columns.

    Args:
        table: [n, M], observations in rows: n >= 2, M >= 2, finite, no column constant: a tensor,
            an array, a data frame. Converted to float64.
        estimator: "order", "logdet", "paper", "paper-lowrank", "lowrank", "notears" or "spectral";
            docs/causal/structure.md lists the assumptions of each.
        nonlinear: use nonlinear regressions ("order" and "logdet").
        standardise: divide columns by their standard deviation first; weights then refer to the
            scaled columns.
        threshold: drop edges with a smaller |weight|; None: 0.2, or 0 with "order".
        sparsity: weight of the l1 norm; None: the estimator's own.
        rank: columns of the factors of "lowrank" and "paper-lowrank".
        sample: "paper" and "paper-lowrank" draw their latent variables instead of using the means.
        seed: seed of random starts, initial weights and batches.
        forbidden: pairs (cause, effect) that are not edges.
        required: pairs (cause, effect) that are edges.
        tiers: one number per column; no column of a later tier causes a column of an earlier tier.

    Raises:
        ValueError, TypeError: the message names the argument, the expected value and the value
            received.

    Warns:
        FewRowsWarning: the table has fewer rows than columns.
    """
    values = as_double("causal_fit", "table", table)
    if values.dim() == 2 and values.size(0) < values.size(1):
        warnings.warn(
            f"[causal_fit] table: {values.size(0)} rows for {values.size(1)} columns: only strong "
            "effects can be found",
            FewRowsWarning,
            stacklevel=3,
        )
    return fit_quietly(
        values,
        fit_options(
            estimator=estimator,
            nonlinear=nonlinear,
            standardise=standardise,
            threshold=threshold,
            sparsity=sparsity,
            rank=rank,
            sample=sample,
            seed=seed,
            forbidden=forbidden,
            required=required,
            tiers=tiers,
        ),
    )


class FitOptions(NamedTuple):
    """The options of :func:`causal_fit`, in the operator's order."""

    estimator: str
    nonlinear: bool
    standardise: bool
    threshold: float | None
    sparsity: float | None
    rank: int
    sample: bool
    seed: int
    forbidden: list[tuple[int, int]]
    required: list[tuple[int, int]]
    tiers: list[int]

    def among(self, columns: list[int]) -> FitOptions:
        """The options for a table of these columns only."""
        place = {column: at for at, column in enumerate(columns)}

        def inside(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
            return [(place[i], place[j]) for i, j in pairs if i in place and j in place]

        tiers = [self.tiers[column] for column in columns] if self.tiers else []
        return self._replace(
            forbidden=inside(self.forbidden), required=inside(self.required), tiers=tiers
        )


def fit_options(
    *,
    estimator: str = "order",
    nonlinear: bool = False,
    standardise: bool = False,
    threshold: float | None = None,
    sparsity: float | None = None,
    rank: int = 40,
    sample: bool = False,
    seed: int = 0,
    forbidden: Iterable[tuple[int, int]] = (),
    required: Iterable[tuple[int, int]] = (),
    tiers: Sequence[int] = (),
) -> FitOptions:
    """Arguments of :func:`causal_fit` as one value."""
    return FitOptions(
        estimator,
        nonlinear,
        standardise,
        threshold,
        sparsity,
        rank,
        sample,
        seed,
        list(forbidden),
        list(required),
        list(tiers),
    )


def fit_quietly(values: Tensor, options: FitOptions) -> CausalFit:
    """:func:`causal_fit` of float64 values without its warning. Threads may call it at the same
    time."""
    *plain, forbidden, required, tiers = options
    return CausalFit(
        *operators.causal_fit(values, *plain, _edges(forbidden), _edges(required), tiers)
    )


def _edges(pairs: Iterable[tuple[int, int]]) -> Tensor:
    rows = [list(pair) for pair in pairs]
    return torch.tensor(rows, dtype=torch.int64) if rows else torch.empty(0, 2, dtype=torch.int64)
