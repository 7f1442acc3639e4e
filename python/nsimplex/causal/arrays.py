"""Conversion of tables and graphs to float64 tensors.

It accepts tensors, arrays, data frames and lists of rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._arguments import describe
from .._hints import Numbers

__all__ = ["as_double", "column_names"]


def as_double(function: str, argument: str, values: Numbers) -> Tensor:
    """The numbers as a float64 tensor. Raise a TypeError of one line that names the argument if
    that fails."""
    refusal = f"[{function}] {argument}: expected numbers, got {describe(values)}"
    if isinstance(values, Tensor):
        if values.is_complex():
            raise TypeError(f"{refusal} of {values.dtype}")
        return values.to(torch.float64)
    try:
        if hasattr(values, "__array__"):
            import numpy  # installed if an array exists

            return torch.from_numpy(numpy.array(values, dtype=numpy.float64))
        return torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise TypeError(refusal)


def column_names(table: object) -> list[str]:
    """Column names of a data frame; none if they are just the numbers from 0 on."""
    columns = list(getattr(table, "columns", []))
    return [] if columns == list(range(len(columns))) else [str(column) for column in columns]
