"""Parameters as the plain values that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._arguments import describe
from .frames import is_series

__all__ = ["as_kinds", "as_plain"]


def as_plain(function: str, name: str, value: Any) -> Any:
    """A parameter as a value that JSON can hold. Scalars of NumPy become Python's. A mapping whose
    keys are not all strings becomes a list of pairs, since keys are strings in JSON.

    Raises:
        TypeError: the parameter has a value of another type; the message names it.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        pairs = [
            (as_plain(function, name, key), as_plain(function, name, entry))
            for key, entry in value.items()
        ]
        named = all(isinstance(key, str) for key, _ in pairs)
        return dict(pairs) if named else [list(pair) for pair in pairs]
    if isinstance(value, str):
        return str(value)
    if is_series(value):
        return as_plain(function, name, dict(value.items()))
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy, a tensor
        return as_plain(function, name, value.tolist())
    if isinstance(value, Sequence):
        return [as_plain(function, name, entry) for entry in value]
    raise TypeError(
        f"[{function}] {name}: expected a number, a text, None or a list, got {describe(value)}"
    )


def as_kinds(kinds: Any, names: Sequence[str]) -> Any:
    """The parameter ``kinds`` from what :func:`as_plain` made of it. Older files have numbers of
    columns as texts; such a key is a number unless it is one of the names of the columns."""
    if isinstance(kinds, list) and kinds and all(_is_pair(entry) for entry in kinds):
        return dict(kinds)
    if isinstance(kinds, dict):
        return {
            int(key) if key.isdecimal() and key not in names else key: kind
            for key, kind in kinds.items()
        }
    return kinds


def _is_pair(entry: Any) -> bool:
    """Whether it is a column and its kind."""
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], (int, str))
