"""Powers of two that keep squares of columns within the range of float64."""

from __future__ import annotations

import torch
from torch import Tensor

#: A column whose largest number is within 2^-200 to 2^200 stays as it is.
_MODERATE = 200


def binary_exponents(values: Tensor) -> Tensor:
    """Per column of a table [n, M] the exponent e of its largest number, which is below 2^e; as
    float64 [M]. Missing values (NaN) do not count."""
    largest = values.nan_to_num(0.0).abs().amax(dim=0)
    return torch.where(largest > 0, torch.frexp(largest).exponent.double(), 0.0)


def large_exponents(values: Tensor) -> Tensor:
    """As :func:`binary_exponents`; 0 for columns whose squares are far from both ends."""
    exponents = binary_exponents(values)
    return torch.where(exponents.abs() > _MODERATE, exponents, 0.0)


def large_exponent(values: Tensor) -> float:
    """The largest of all columns' exponents, by which a whole table can be scaled; 0 if no column
    needs that."""
    exponents = binary_exponents(values)
    if exponents.numel() == 0 or exponents.abs().max() <= _MODERATE:
        return 0.0
    return exponents.max().item()


def times_power(values: Tensor, exponents: Tensor | float) -> Tensor:
    """values * 2^exponents, without intermediate results out of range."""
    whole = torch.as_tensor(exponents, dtype=torch.float64)
    half = (whole / 2).floor()
    return values * torch.exp2(half) * torch.exp2(whole - half)


def means_and_deviations(values: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the standard deviation (of n) of each column of a table [n, M] of any scale.
    Missing values (NaN) do not count."""
    exponents = binary_exponents(values)
    scaled = times_power(values, -exponents)
    mean = scaled.nanmean(dim=0)
    deviation = scaled.std(dim=0, correction=0)
    if deviation.isnan().any():
        deviation = (scaled - mean).square().nanmean(dim=0).sqrt()
    return times_power(mean, exponents), times_power(deviation, exponents)
