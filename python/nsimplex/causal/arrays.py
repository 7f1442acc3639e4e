"""Tables and graphs as float64 tensors, whatever holds their numbers: tensors, arrays, data frames,
lists of rows."""

from __future__ import annotations

import torch
from torch import Tensor

from .._arguments import describe
from .._hints import Numbers

__all__ = ["as_double", "column_names"]


def as_double(function: str, argument: str, values: Numbers) -> Tensor:
    """The numbers in float64, or a TypeError of one line that names the argument."""
    refusal = f"[{function}] {argument}: expected numbers, got {describe(values)}"
    if isinstance(values, Tensor):
        if values.is_complex():
            raise TypeError(f"{refusal} of {values.dtype}")
        return values.to(torch.float64)
    try:
        if hasattr(values, "__array__"):
            import numpy  # is there where an array is

            return torch.from_numpy(numpy.array(values, dtype=numpy.float64))
        return torch.as_tensor(values, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise TypeError(refusal)


def column_names(table: object) -> list[str]:
    """Those of a data frame; none where they are mere numbers from 0 on."""
    columns = list(getattr(table, "columns", []))
    return [] if columns == list(range(len(columns))) else [str(column) for column in columns]
