"""The linear model of a graph: each column regressed on its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from .._library import operators
from .structure import target_pairs


class LinearModel(NamedTuple):
    """x_j = intercept_j + sum_i x_i coefficients_ij + noise of variance_j, by least squares."""

    coefficients: Tensor  #: float64 [M, M]; 0 where the graph has no edge
    intercepts: Tensor  #: float64 [M]
    variances: Tensor  #: float64 [M], the mean of squared residuals


def regress(
    values: Tensor,
    adjacency: Tensor,
    groups: Sequence[int] = (),
    targets: Sequence[Sequence[int]] = (),
) -> LinearModel:
    """Regressions of all columns of values [n, M] on their causes. O(n M^2 + M p^3), and O(n M^2)
    more for each column that was intervened on: those rows take no part in its regression.

    Slopes come from values within groups; variances are those about one intercept. With missing
    values (nan), the rows of a regression are those that have all of its columns."""
    found = operators.causal_linear_model(values, adjacency, list(groups), target_pairs(targets))
    return LinearModel(*found)


def residuals(values: Tensor, model: LinearModel) -> Tensor:
    """The noise [n, M] of every row."""
    return values - values @ model.coefficients - model.intercepts


def log_likelihood(values: Tensor, model: LinearModel) -> Tensor:
    """The Gaussian log-likelihood of every row [n]."""
    noise = residuals(values, model)
    constant = (2 * math.pi * model.variances).log().sum()
    return -0.5 * ((noise.square() / model.variances).sum(dim=1) + constant)
