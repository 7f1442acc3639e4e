"""The linear model of a graph: each column regressed on its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from .._library import operators
from .column_scale import large_exponents, times_power
from .structure import target_pairs


class LinearModel(NamedTuple):
    """x_j = intercept_j + sum_i x_i coefficients_ij + noise of variance_j, by least squares.

    With ``exponents``, x_j is a column divided by 2^exponents_j. Columns have one if their squares
    would leave the range of float64."""

    coefficients: Tensor  #: float64 [M, M]; 0 where the graph has no edge
    intercepts: Tensor  #: float64 [M]
    variances: Tensor  #: float64 [M], the mean of squared residuals
    exponents: Tensor | None = None  #: float64 [M]; None: 0


def regress(
    values: Tensor,
    adjacency: Tensor,
    groups: Sequence[int] = (),
    targets: Sequence[Sequence[int]] = (),
) -> LinearModel:
    """Regressions of all columns of values [n, M] on their causes. O(n M^2 + M p^3), and O(n M^2)
    more for each column that was intervened on: those rows are left out of its regression.

    Slopes come from values within groups; variances are those about one intercept. With missing
    values (nan), the rows of a regression are those that have all of its columns."""
    exponents = large_exponents(values)
    scaled = bool(exponents.any())
    if scaled:
        values = times_power(values, -exponents)
    coefficients, intercepts, variances = operators.causal_linear_model(
        values, adjacency, list(groups), target_pairs(targets)
    )
    return LinearModel(coefficients, intercepts, variances, exponents if scaled else None)


def residuals(values: Tensor, model: LinearModel) -> Tensor:
    """The noise [n, M] of every row, in the units of the model."""
    if model.exponents is not None:
        values = times_power(values, -model.exponents)
    return values - values @ model.coefficients - model.intercepts


def log_likelihood(values: Tensor, model: LinearModel) -> Tensor:
    """The Gaussian log-likelihood of every row [n]."""
    noise = residuals(values, model)
    constant = (2 * math.pi * model.variances).log().sum()
    if model.exponents is not None:
        constant = constant + 2 * math.log(2) * model.exponents.sum()
    return -0.5 * ((noise.square() / model.variances).sum(dim=1) + constant)
