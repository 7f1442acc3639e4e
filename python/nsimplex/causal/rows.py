"""What is known of the rows of a table beside their numbers: groups and interventions."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from .._arguments import describe
from .._printable import printable
from .arrays import is_anndata

__all__ = ["row_groups", "row_targets", "taken_column", "without_column"]


def taken_column(function: str, argument: str, table: Any, name: Any) -> tuple[Any, Any]:
    """The table and one value per row, if ``name`` names a column of a data frame (which is then
    taken out of it) or of ``obs`` of an AnnData object; else both as they are."""
    if not isinstance(name, str):
        return table, name
    columns = table.obs if is_anndata(table) else table
    known = list(getattr(columns, "columns", []))
    if known.count(name) != 1:
        raise ValueError(
            f"[{function}] {argument}: expected one value per row, or the name of a column of a "
            f"data frame or of obs, got {printable(name)[:60]!r}"
        )
    values = list(columns[name])
    if is_anndata(table):
        return table, values
    return without_column(table, name), values


def without_column(table: Any, name: str) -> Any:
    """A data frame without one of its columns; other tables as they are."""
    known = list(getattr(table, "columns", []))
    return table[[column for column in known if column != name]] if name in known else table


def row_groups(function: str, groups: Any, rows: int) -> list[int]:
    """Groups as numbers 0, 1, .. in the order of their first rows; none for no groups."""
    values = _values(function, "groups", groups, rows)
    seen: dict[Any, int] = {}
    for row, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(f"[{function}] groups: expected a group in row {row}, got {value}")
        if not isinstance(value, Hashable):
            raise TypeError(
                f"[{function}] groups: expected one value per row, got {describe(value)} in row "
                f"{row}"
            )
        seen.setdefault(value, len(seen))
    return [seen[value] for value in values]


def row_targets(
    function: str,
    targets: Any,
    rows: int,
    columns: int,
    names: Sequence[str] = (),
    others: Iterable[str] = (),
) -> list[list[int]]:
    """The columns that were intervened on in each row, ascending; none if no row has one.

    Args:
        targets: per row None, -1, NaN, NA or an empty text (no intervention), the number or the
            name of a column, or several of them.
        names: of the columns.
        others: names that are no columns any more; interventions on them are left out.
    """
    place = {name: column for column, name in enumerate(names)}
    away = set(others)

    def number(row: int, entry: Any) -> list[int]:
        if _is_missing(entry) or (isinstance(entry, str) and entry == ""):
            return []
        if isinstance(entry, str):
            if entry in place:
                return [place[entry]]
            if entry in away:
                return []
        elif isinstance(entry, numbers.Real) and float(entry).is_integer():
            whole = int(float(entry))
            if whole == -1:
                return []
            if 0 <= whole < columns:
                return [whole]
        raise ValueError(
            f"[{function}] targets: expected columns 0 to {columns - 1} or their names, got "
            f"{printable(str(entry))[:60]} in row {row}; None and -1 mean no intervention"
        )

    found = []
    for row, value in enumerate(_values(function, "targets", targets, rows)):
        several = isinstance(value, Iterable) and not isinstance(value, str)
        entries = list(value) if several else [value]
        found.append(sorted({column for entry in entries for column in number(row, entry)}))
    return found if any(found) else []


def _values(function: str, argument: str, values: Any, rows: int) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(
            f"[{function}] {argument}: expected one value per row, got {describe(values)}"
        )
    given: Any = values
    found = given.tolist() if hasattr(given, "tolist") else list(given)
    if not isinstance(found, list):
        raise TypeError(f"[{function}] {argument}: expected one value per row, got a number")
    if found and len(found) != rows:
        raise ValueError(
            f"[{function}] {argument}: expected one value for each of {rows} rows, got {len(found)}"
        )
    return found


def _is_missing(value: Any) -> bool:
    """Whether it is None, a NaN or NaT of any type, or the NA of pandas."""
    if value is None or type(value).__name__ == "NAType":
        return True
    different = value != value
    return type(different).__name__ in ("bool", "bool_") and bool(different)
