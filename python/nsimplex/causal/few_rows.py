"""The warning of tables whose rows or values are too few for a causal graph."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from .._library import operators
from .._printable import printable

__all__ = ["FewRowsWarning", "warn_of_few_rows"]


class FewRowsWarning(UserWarning):
    """A table has so few rows, or a column so few values, that edges may be wrong or missing."""


def warn_of_few_rows(
    place: str, values: Tensor, names: Sequence[str | int], *, stacklevel: int
) -> None:
    """Warns if a graph of a table [n, M] means little because of few rows or values.

    Args:
        place: what the message begins with: "[function] argument".
        names: names or numbers of the columns; none: they are 0 to M - 1.
        stacklevel: that of :func:`warnings.warn` in the function that calls this one.
    """
    if values.dim() != 2 or values.layout is not torch.strided or values.device.type != "cpu":
        return  # the fit refuses it
    shown = [printable(name)[:60] for name in names]
    if few := operators.causal_few_rows(values, shown):
        warnings.warn(f"{place}: {few}", FewRowsWarning, stacklevel=stacklevel + 1)
