"""Reads arguments about the columns of a table: one value per column, and pairs of columns."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, get_args

from torch import Tensor

from .._arguments import describe
from .._choices import ColumnKind
from .._hints import ArrayLike, is_bool
from .._printable import printable
from .frames import is_frame, is_series, listed

__all__ = [
    "Columns",
    "KeptColumns",
    "Kinds",
    "Names",
    "Pairs",
    "Tiers",
    "column_kinds",
    "column_pairs",
    "column_tiers",
    "given_names",
    "listed_columns",
    "numbered_pairs",
    "of_columns",
    "per_column",
    "whole",
]

#: One tier per column: by position, by name or number, or as an array or a Series.
Tiers = Sequence[int] | Mapping[Any, int] | Tensor | ArrayLike
#: One kind per column in the same forms; in a dict, other columns are continuous.
Kinds = Sequence[ColumnKind] | Mapping[Any, ColumnKind] | ArrayLike
#: One name per column, by position or number.
Names = Sequence[str] | Mapping[int, str] | ArrayLike
#: Pairs (cause, effect) of names or numbers of columns, or a graph or a file that has them.
Pairs = Iterable[Any] | Set[tuple[Any, Any]] | str | os.PathLike[str]

_WHOLE = re.compile(r"-?\d+(\.0+)?")


class Columns:
    """The columns of a table, to be found by their names or, from 0 on, their numbers.

    A name is the text of a label, and a label of another type counts as well. Names win: if some of
    them are whole numbers, as the labels 10, 20 and 30 of a data frame are, numbers are names."""

    def __init__(self, names: Sequence[str], count: int):
        self.names, self.count = list(names), count
        self._places: dict[str, int] = {}
        repeated = set()
        for at, name in enumerate(self.names):
            if self._places.setdefault(name, at) != at:
                repeated.add(name)
        for name in repeated:  # means none of them
            del self._places[name]
        self._of_numbers = {
            int(float(name)): at for name, at in self._places.items() if _WHOLE.fullmatch(name)
        }

    def find(self, entry: Any) -> int | None:
        """The number of the column that an entry means; None if it means none."""
        if isinstance(entry, str):
            return self._places.get(entry)
        if is_bool(entry):
            return None
        number = whole(entry)
        if number is None:
            return self._places.get(str(entry))
        if self._of_numbers:
            return self._of_numbers.get(number)
        return number if 0 <= number < self.count else None

    def is_left_out(self, entry: Any) -> bool:
        """Whether an entry means a column of the table that is not used."""
        return False

    def has_numbers(self) -> bool:
        """Whether some names are whole numbers."""
        return bool(self._of_numbers)

    def expected(self) -> str:
        """The columns that there are, as a message names them."""
        if self._of_numbers:
            return "names of columns, which win over their numbers"
        return f"columns 0 to {self.count - 1} or their names"

    def shown(self, at: int) -> str:
        """A column by its name or its number."""
        return printable(self.names[at])[:60] if self.names else str(at)


class KeptColumns(Columns):
    """The columns of a table if only some of them are used. They are found by their names and
    numbers in the whole table, and numbered among those that are used.

    Args:
        kept: numbers of the columns that are used.
    """

    def __init__(self, names: Sequence[str], count: int, kept: Sequence[int]):
        super().__init__(names, count)
        self._kept = list(kept)
        self._used = {column: at for at, column in enumerate(self._kept)}

    def find(self, entry: Any) -> int | None:
        at = super().find(entry)
        return None if at is None else self._used.get(at)

    def is_left_out(self, entry: Any) -> bool:
        at = super().find(entry)
        return at is not None and at not in self._used

    def shown(self, at: int) -> str:
        return super().shown(self._kept[at])


def whole(value: object) -> int | None:
    """A number without a fraction as an integer; None for anything else, True and False too."""
    if isinstance(value, numbers.Integral):
        return None if is_bool(value) else int(value)
    if not isinstance(value, numbers.Real):
        return None
    number = float(value)
    return int(number) if number.is_integer() else None


def of_columns(function: str, argument: str, expected: str, values: Any) -> list[Any] | dict:
    """One value per column as the user means them: a list by position, or a dict by the names or
    numbers of columns, which a Series has as its labels.

    Raises:
        TypeError, ValueError: they have no order.
    """
    said = f"[{function}] {argument}: expected {expected} per column"
    if is_series(values):
        labels = list(values.index)
        if len(set(labels)) < len(labels):
            raise ValueError(f"{said}, got a Series with a label twice")
        return dict(zip(labels, values.tolist()))
    return dict(values) if isinstance(values, Mapping) else listed(said, values)


def per_column(
    function: str, argument: str, expected: str, values: Any, columns: Columns
) -> list[Any] | dict[int, Any]:
    """As :func:`of_columns`, with the numbers of the columns as keys.

    Raises:
        TypeError, ValueError: as there, or a key means no column or the column of another key.
    """
    found = of_columns(function, argument, expected, values)
    if not isinstance(found, dict):
        return found
    numbered: dict[int, Any] = {}
    for key, value in found.items():
        at = columns.find(key)
        if at is None or at in numbered:
            why = "" if at is None else ", a column that has a value"
            raise ValueError(
                f"[{function}] {argument}: expected {columns.expected()}, got "
                f"{printable(repr(key))[:60]}{why}"
            )
        numbered[at] = value
    return numbered


def column_tiers(
    function: str, tiers: Any, columns: Columns, kept: Sequence[int] | None = None
) -> list[int]:
    """One whole number per column; none without tiers. Columns that a dict leaves out come after
    all others.

    Args:
        kept: numbers of the columns that are used, if they are not all. A list may be of these.
    """
    used = range(columns.count) if kept is None else kept
    found = per_column(function, "tiers", "one whole number", tiers, columns)
    given = list(found.values()) if isinstance(found, dict) else found
    numbered = [whole(tier) for tier in given]
    for tier, number in zip(given, numbered):
        if number is None:
            raise TypeError(
                f"[{function}] tiers: expected one whole number per column, got {describe(tier)}"
            )
        if not -(2**63) <= number < 2**63:
            raise ValueError(
                f"[{function}] tiers: expected whole numbers from -2^63 to 2^63 - 1, got "
                f"{describe(tier)}"
            )
    tiers = [number for number in numbered if number is not None]
    if isinstance(found, dict):
        own = dict(zip(found, tiers))
        last = min(max(tiers, default=0) + 1, 2**63 - 1)
        return [own.get(at, last) for at in used] if own else []
    return [tiers[at] for at in used] if len(tiers) == columns.count else tiers


def listed_columns(function: str, argument: str, entries: Any, columns: Columns) -> list[int]:
    """Columns by their numbers, without those that are left out.

    Raises:
        TypeError, ValueError: they are not a list, or an entry means no column.
    """
    said = f"[{function}] {argument}: expected a list of columns"
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise TypeError(f"{said}, got {describe(entries)}")
    found = []
    for entry in listed(said, entries):
        if columns.is_left_out(entry):
            continue
        at = columns.find(entry)
        if at is None:
            known = "names of columns" if isinstance(entry, str) else columns.expected()
            raise ValueError(
                f"[{function}] {argument}: expected {known}, got {printable(repr(entry))[:60]}"
            )
        found.append(at)
    return found


def column_kinds(
    function: str, kinds: Any, columns: Columns, kept: Sequence[int] | None = None
) -> list[str]:
    """One kind per column; none if all are continuous.

    Args:
        kept: as in :func:`column_tiers`.
    """
    if kinds is None:
        return []
    used = range(columns.count) if kept is None else kept
    if isinstance(kinds, str):
        raise ValueError(f"[{function}] kinds: expected one kind per column, got {kinds!r}")
    found = per_column(function, "kinds", "one kind", kinds, columns)
    if isinstance(found, dict):
        entries = list(found.values())
        found = [found.get(at, "continuous") for at in used]
    else:
        entries = found
        found = [found[at] for at in used] if len(found) == columns.count else found
    known = get_args(ColumnKind)
    for kind in entries:
        if kind not in known:
            raise ValueError(
                f"[{function}] kinds: expected {', '.join(known)}, got {describe(kind)}"
            )
    return found if any(kind != "continuous" for kind in found) else []


def given_names(function: str, names: Any, count: int, argument: str = "names") -> list[str]:
    """The names that a user gives to the columns; none without names."""
    found = per_column(function, argument, "one name", names, Columns([], count))
    if isinstance(found, dict):
        found = [found.get(at) for at in range(count)]
    for name in found:
        if not isinstance(name, str):
            raise TypeError(
                f"[{function}] {argument}: expected one name per column, got {describe(name)}"
            )
    if found and len(found) != count:
        raise ValueError(
            f"[{function}] {argument}: expected {count}, one per column, got {len(found)}"
        )
    return [str(name) for name in found]


def column_pairs(function: str, argument: str, pairs: Any) -> list[tuple[Any, Any]]:
    """Pairs (cause, effect) as the user gave them.

    Raises:
        TypeError: they are not pairs, or are a dict, whose values would not count.
    """
    said = f"[{function}] {argument}: expected pairs (cause, effect)"
    views = isinstance(pairs, Mapping) and not isinstance(pairs, Set)  # edges of networkx are both
    if views or is_frame(pairs) or is_series(pairs) or isinstance(pairs, (str, bytes)):
        raise TypeError(f"{said}, got {describe(pairs)}")
    if not isinstance(pairs, Iterable) or getattr(pairs, "ndim", 2) == 0:
        raise TypeError(f"{said}, got {describe(pairs)}")
    found = []
    given: Any = pairs
    for pair in given.tolist() if hasattr(given, "tolist") else given:
        entries = pair.tolist() if hasattr(pair, "tolist") else pair
        if isinstance(entries, (str, bytes)) or not isinstance(entries, Sequence):
            raise TypeError(f"{said}, got {describe(pair)} for a pair")
        if len(entries) != 2:
            raise ValueError(f"{said}, got {len(entries)} entries for a pair")
        found.append((entries[0], entries[1]))
    return found


def numbered_pairs(
    function: str, argument: str, pairs: Any, columns: Columns
) -> list[tuple[int, int]]:
    """Pairs of columns by their numbers."""

    def number(entry: Any) -> int:
        at = columns.find(entry)
        if columns.is_left_out(entry):
            raise ValueError(
                f"[{function}] {argument}: expected columns that are kept, got "
                f"{printable(repr(entry))[:60]}, which is left out"
            )
        if at is None:
            known = "names of columns" if isinstance(entry, str) else columns.expected()
            raise ValueError(
                f"[{function}] {argument}: expected {known}, got {printable(repr(entry))[:60]}"
            )
        return at

    return [
        (number(cause), number(effect)) for cause, effect in column_pairs(function, argument, pairs)
    ]
