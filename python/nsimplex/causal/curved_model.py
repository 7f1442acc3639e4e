"""The curved model of a graph: each column as a smooth function of its causes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .column_scale import large_exponents, times_power

_OF_ONE, _OF_ALL = 20, 100  # random features of each cause, and of several causes together
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # of squared coefficients


class Curve(NamedTuple):
    """One column: intercept + features(causes) @ coefficients, and noise of one variance."""

    causes: Tensor  #: int64 [p]
    mean: Tensor  #: float64 [p], of the causes
    scale: Tensor  #: float64 [p]
    slopes: Tensor  #: float64 [p, F]
    phases: Tensor  #: float64 [F]
    coefficients: Tensor  #: float64 [p + F]
    intercept: float
    variance: float

    def noise(self, values: Tensor, column: int) -> Tensor:
        found = _features(values[:, self.causes], self.mean, self.scale, self.slopes, self.phases)
        return values[:, column] - self.intercept - found @ self.coefficients


class CurvedModel(NamedTuple):
    """One curve per column of values / 2^exponents, so that squares of all columns are finite."""

    curves: list[Curve]
    exponents: Tensor  #: float64 [M]


def curved_model(values: Tensor, adjacency: Tensor) -> CurvedModel:
    """A regression of each column of values [n, M] on its causes, whose parts are straight lines,
    smooth functions of each cause and smooth functions of all causes together. Random Fourier
    features of Gaussian kernels make the functions, and generalised cross-validation chooses the
    penalty on their coefficients. O(n F^2) for the F features of a column.

    Sources: Rahimi, Recht, NeurIPS 2007; Golub, Heath, Wahba, Technometrics 1979.
    """
    exponents = large_exponents(values)
    values = times_power(values, -exponents)
    curves = [
        _curve(values, column, adjacency[:, column].nonzero().flatten())
        for column in range(values.size(1))
    ]
    return CurvedModel(curves, exponents)


def curved_log_likelihood(values: Tensor, model: CurvedModel) -> Tensor:
    """The log-likelihood of every row [n], with Gaussian noises."""
    values = times_power(values, -model.exponents)
    total = values.new_full((len(values),), -math.log(2) * float(model.exponents.sum()))
    for column, curve in enumerate(model.curves):
        noise = curve.noise(values, column)
        total -= 0.5 * (noise.square() / curve.variance + math.log(2 * math.pi * curve.variance))
    return total


def _features(x: Tensor, mean: Tensor, scale: Tensor, slopes: Tensor, phases: Tensor) -> Tensor:
    z = (x - mean) / scale
    return torch.cat([z, torch.cos(z @ slopes + phases)], dim=1)


def _curve(values: Tensor, column: int, causes: Tensor) -> Curve:
    own, x = values[:, column], values[:, causes]
    count, rows = len(causes), len(values)
    mean, scale = x.mean(dim=0), x.std(dim=0, correction=0).clamp_min(1e-300)
    generator = torch.Generator().manual_seed(column)
    parts = [torch.zeros(count, 0, dtype=torch.float64)]
    for place in range(count):
        alone = torch.zeros(count, _OF_ONE, dtype=torch.float64)
        alone[place] = torch.randn(_OF_ONE, generator=generator, dtype=torch.float64)
        parts.append(alone)
    if count > 1:  # a width that grows with the distance of two rows
        joint = torch.randn(count, _OF_ALL, generator=generator, dtype=torch.float64)
        parts.append(joint / math.sqrt(count))
    slopes = torch.cat(parts, dim=1)
    phases = 2 * math.pi * torch.rand(slopes.size(1), generator=generator, dtype=torch.float64)
    found = _features(x, mean, scale, slopes, phases)
    level = found.mean(dim=0)
    left, sizes, right = torch.linalg.svd(found - level, full_matrices=False)
    shared = left.T @ (own - own.mean())
    total = float((own - own.mean()).square().sum())
    best = (math.inf, torch.zeros_like(sizes), 0.0)
    for penalty in _PENALTIES if count > 0 else ():
        kept = sizes.square() / (sizes.square() + penalty * rows / 100)
        rest = total - float(((2 * kept - kept.square()) * shared.square()).sum())
        free = rows - 1 - float(kept.sum())
        if free > 0 and rest * rows / free**2 < best[0]:
            best = (rest * rows / free**2, kept, rest / free)
    _, kept, variance = best
    variance = variance if count > 0 else total / max(rows - 1, 1)
    weights = torch.where(sizes > 0, kept / sizes.clamp_min(1e-300), 0.0) * shared
    coefficients = right.T @ weights
    intercept = float(own.mean() - level @ coefficients)
    floor = 1e-15 * total / rows
    return Curve(
        causes, mean, scale, slopes, phases, coefficients, intercept, max(variance, floor, 1e-300)
    )
