"""The warning of tables that have what a fit of a causal graph does not assume."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .._library import operators
from .._printable import printable

__all__ = ["TableWarning", "warn_of_table"]


class TableWarning(UserWarning):
    """A table has something that its fit does not assume, and the message says what: rows that
    depend on each other, a column that others determine, directions that no table of this kind
    tells, or columns that are no measurements."""


def warn_of_table(
    place: str,
    values: Tensor,
    adjacency: Tensor,
    model: str,
    arguments: dict[str, Any],
    names: Sequence[str | int],
    *,
    stacklevel: int,
) -> None:
    """Warns of each thing that a fit of a table [n, M] does not assume and the table has.

    Args:
        place: what the messages begin with: "[function] argument".
        adjacency, model: what was learned with these ``arguments``.
        names: names or numbers of the columns; none: x0, x1, ..
        stacklevel: that of :func:`warnings.warn` in the function that calls this one.
    """
    shown = [printable(f"x{name}" if isinstance(name, int) else name)[:60] for name in names]
    found = operators.causal_warnings(
        values, **arguments, graph=adjacency, model=model, names=shown
    )
    for sentence in found:
        warnings.warn(f"{place}: {sentence}", TableWarning, stacklevel=stacklevel + 1)
