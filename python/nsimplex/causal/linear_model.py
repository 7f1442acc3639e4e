"""The linear model of a graph: each column regressed on its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .rows import left_out, within_groups


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
    if values.isnan().any():
        return _regress_available(values, adjacency, left_out(targets, values.size(1)))
    unused = left_out(targets, values.size(1))
    if unused is None and not groups:
        return _regress(values, adjacency)
    model = _regress(within_groups(values, groups), adjacency)
    coefficients = model.coefficients
    intercepts, variances = model.intercepts, model.variances
    for effect in range(values.size(1)):
        rows = torch.arange(len(values)) if unused is None else (~unused[:, effect]).nonzero()[:, 0]
        causes = adjacency[:, effect].nonzero().flatten()
        if unused is not None and unused[:, effect].any():
            chosen = [groups[row] for row in rows.tolist()] if groups else ()
            own = torch.cat([causes, torch.tensor([effect])])
            star = torch.zeros(len(own), len(own), dtype=values.dtype)
            star[:-1, -1] = 1
            part = _regress(within_groups(values[rows][:, own], chosen), star)
            coefficients[causes, effect] = part.coefficients[:-1, -1]
        noise = values[rows, effect] - values[rows] @ coefficients[:, effect]
        intercepts[effect], variances[effect] = noise.mean(), noise.var(correction=0)
    smallest = torch.finfo(torch.float64).eps * values.var(dim=0, correction=0)
    return LinearModel(coefficients, intercepts, variances.maximum(smallest))


def _regress(values: Tensor, adjacency: Tensor) -> LinearModel:
    mean = values.mean(dim=0)
    centred = values - mean
    covariance = centred.T @ centred / len(values)
    coefficients, variances = torch.zeros_like(adjacency), covariance.diagonal().clone()
    for effect in range(adjacency.size(1)):
        causes = adjacency[:, effect].nonzero().flatten()
        if len(causes) == 0:
            continue
        # The pseudo-inverse accepts causes that determine each other.
        own = covariance[causes[:, None], causes]
        slopes = torch.linalg.pinv(own, hermitian=True) @ covariance[causes, effect]
        coefficients[causes, effect] = slopes
        variances[effect] -= slopes @ covariance[causes, effect]
    smallest = torch.finfo(torch.float64).eps * covariance.diagonal()
    return LinearModel(coefficients, mean - mean @ coefficients, variances.maximum(smallest))


def _regress_available(values: Tensor, adjacency: Tensor, unused: Tensor | None) -> LinearModel:
    coefficients = torch.zeros_like(adjacency)
    intercepts, variances = torch.zeros(2, values.size(1), dtype=values.dtype)
    for effect in range(values.size(1)):
        own = torch.cat([adjacency[:, effect].nonzero()[:, 0], torch.tensor([effect])])
        rows = ~values[:, own].isnan().any(dim=1)
        if unused is not None:
            rows &= ~unused[:, effect]
        star = torch.zeros(len(own), len(own), dtype=values.dtype)
        star[:-1, -1] = 1
        part = _regress(values[rows][:, own], star)
        coefficients[own[:-1], effect] = part.coefficients[:-1, -1]
        intercepts[effect], variances[effect] = part.intercepts[-1], part.variances[-1]
    return LinearModel(coefficients, intercepts, variances)


def residuals(values: Tensor, model: LinearModel) -> Tensor:
    """The noise [n, M] of every row."""
    return values - values @ model.coefficients - model.intercepts


def log_likelihood(values: Tensor, model: LinearModel) -> Tensor:
    """The Gaussian log-likelihood of every row [n]."""
    noise = residuals(values, model)
    constant = (2 * math.pi * model.variances).log().sum()
    return -0.5 * ((noise.square() / model.variances).sum(dim=1) + constant)
