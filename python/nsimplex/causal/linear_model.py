"""The linear model of a graph: each column regressed on its causes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class LinearModel(NamedTuple):
    """x_j = intercept_j + sum_i x_i coefficients_ij + noise of variance_j, by least squares."""

    coefficients: Tensor  #: float64 [M, M]; 0 where the graph has no edge
    intercepts: Tensor  #: float64 [M]
    variances: Tensor  #: float64 [M], the mean of squared residuals


def regress(values: Tensor, adjacency: Tensor) -> LinearModel:
    """Regressions of all columns of values [n, M] on their causes. O(n M^2 + M p^3)."""
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


def residuals(values: Tensor, model: LinearModel) -> Tensor:
    """The noise [n, M] of every row."""
    return values - values @ model.coefficients - model.intercepts


def log_likelihood(values: Tensor, model: LinearModel) -> Tensor:
    """The Gaussian log-likelihood of every row [n]."""
    noise = residuals(values, model)
    constant = (2 * math.pi * model.variances).log().sum()
    return -0.5 * ((noise.square() / model.variances).sum(dim=1) + constant)
