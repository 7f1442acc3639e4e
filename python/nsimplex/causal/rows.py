"""What is known of the rows of a table beside their numbers: groups and interventions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor

from .._arguments import describe
from .._hints import is_bool
from .._printable import printable
from .columns import Columns, whole
from .frames import frame_labels, is_anndata, is_frame, is_pandas, is_series, listed

__all__ = [
    "check_different_columns",
    "row_blocks",
    "row_groups",
    "row_targets",
    "row_values",
    "taken_column",
    "without_column",
]


def taken_column(function: str, argument: str, table: Any, name: Any) -> tuple[Any, Any]:
    """The table and one value per row, if ``name`` names a column of a data frame (which is then
    taken out of it) or of ``obs`` of an AnnData object; else both as they are."""
    if not isinstance(name, str):
        return table, name
    columns = table.obs if is_anndata(table) else table
    if frame_labels(columns).count(name) != 1:
        raise ValueError(
            f"[{function}] {argument}: expected one value per row, or the name of a column of a "
            f"data frame or of obs, got {printable(name)[:60]!r}"
        )
    values = list(columns[name])
    if is_anndata(table):
        return table, values
    return without_column(table, name), values


def check_different_columns(function: str, beside: Mapping[str, str]) -> None:
    """Refuses one column for two arguments; rows of a group may be a block."""
    for name, other in (("targets", "groups"), ("blocks", "targets")):
        if beside.get(name) is not None and beside.get(name) == beside.get(other):
            raise ValueError(
                f"[{function}] {name}: expected another column than {other}, got {beside[name]!r} "
                "for both"
            )


def without_column(table: Any, name: str) -> Any:
    """A data frame without one of its columns; other tables as they are."""
    known = frame_labels(table)
    return table[[column for column in known if column != name]] if name in known else table


def row_groups(
    function: str,
    groups: Any,
    rows: int,
    labels: Sequence[Any] | None = None,
    argument: str = "groups",
) -> list[int]:
    """Groups as numbers 0, 1, .. in the order of their first rows; none for no groups.

    Args:
        labels: of the rows, as in :func:`row_values`.
        argument: the name of the argument in messages, a plural.
    """
    values = row_values(function, argument, groups, rows, labels)
    seen: dict[Any, int] = {}
    for row, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(
                f"[{function}] {argument}: expected a {argument[:-1]} in row {row}, got {value}"
            )
        if not isinstance(value, Hashable):
            raise TypeError(
                f"[{function}] {argument}: expected one value per row, got {describe(value)} in "
                f"row {row}"
            )
        seen.setdefault(value, len(seen))
    return [seen[value] for value in values]


def row_blocks(
    function: str, blocks: Any, rows: int, labels: Sequence[Any] | None = None
) -> list[int]:
    """The number of each row's block; none for no blocks. A whole number is the length of blocks of
    rows that follow each other."""
    length = None if isinstance(blocks, str) else whole(blocks)
    if length is None:
        return row_groups(function, blocks, rows, labels, "blocks")
    if length < 1:
        raise ValueError(f"[{function}] blocks: expected at least 1 row per block, got {length}")
    return [row // length for row in range(rows)]


def row_targets(
    function: str,
    targets: Any,
    rows: int,
    columns: Columns,
    labels: Sequence[Any] | None = None,
) -> list[list[int]]:
    """The columns that were intervened on in each row, ascending; none if no row has one.

    Args:
        targets: per row None, -1, NaN, NA or an empty text (no intervention), the number or the
            name of a column, or several of them. Interventions on columns that are left out do not
            count.
        labels: of the rows, as in :func:`row_values`.
    """

    def number(row: int, entry: Any) -> list[int]:
        if _is_missing(entry) or (isinstance(entry, str) and entry == ""):
            return []
        found = columns.find(entry)
        if whole(entry) == -1 and found is None:
            return []
        if found is not None and whole(entry) != -1:
            return [found]
        if columns.is_left_out(entry):
            return []
        mask = is_bool(entry) or (isinstance(entry, str) and entry.lower() in ("true", "false"))
        raise ValueError(
            f"[{function}] targets: expected {columns.expected()}, got "
            f"{printable(str(entry))[:60]} in row {row}; "
            + (
                "numpy.where(mask, column, -1) makes targets of a mask of rows"
                if mask
                else "None and -1 mean no intervention"
            )
        )

    found = []
    for row, value in enumerate(row_values(function, "targets", targets, rows, labels)):
        own = sorted(column for entry in _entries(columns, value) for column in number(row, entry))
        for column, following in pairwise(own):
            if column == following:
                raise ValueError(
                    f"[{function}] targets: expected each column once, got column "
                    f"{columns.shown(column)} twice in row {row}"
                )
        found.append(own)
    return found if any(found) else []


def _entries(columns: Columns, value: Any) -> list[Any]:
    """The columns that one row names."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        return [value]
    label = isinstance(value, tuple) and columns.find(value) is not None
    return [value] if label else list(value)


def row_values(
    function: str,
    argument: str,
    values: Any,
    rows: int,
    labels: Sequence[Any] | None = None,
    *,
    of: str = "row",
) -> list[Any]:
    """One value per row of a table; none for None.

    Args:
        labels: of the rows, if the table has some. The values of a Series are those of the rows
            with its labels, in any order; without ``labels``, rows are 0, 1, ..

    Raises:
        TypeError, ValueError: the values have no order, or labels of other rows.
    """
    if values is None:
        return []
    expected = f"[{function}] {argument}: expected one value"
    if is_frame(values) and len(frame_labels(values)) == 1:
        values = values.iloc[:, 0] if is_pandas(values) else values[:, 0]
    series = is_series(values)
    found = list(values) if series else listed(f"{expected} per {of}", values)
    if found and len(found) != rows:
        raise ValueError(f"{expected} for each of {rows} {of}s, got {len(found)}")
    if series and found:
        own = list(values.index)
        found = _by_labels(expected, own, found, range(rows) if labels is None else labels)
    return [_single(value) for value in found]


def _by_labels(
    expected: str, own: list[Any], values: list[Any], labels: Sequence[Any]
) -> list[Any]:
    if own == list(labels):
        return values
    known = dict(zip(own, values))
    if len(known) < len(own) or len(set(labels)) < len(labels) or set(labels) != set(own):
        raise ValueError(
            f"{expected} for each label of the table, got a Series with other labels; "
            "to_numpy() gives its values in their order"
        )
    return [known[label] for label in labels]


def _single(value: Any) -> Any:
    """The number of a tensor that has one: two equal tensors have different hashes."""
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.dim() == 0 else value.tolist()


def _is_missing(value: Any) -> bool:
    """Whether it is None, a NaN or NaT of any type, or the NA of pandas."""
    if value is None or type(value).__name__ == "NAType":
        return True
    different = value != value
    return is_bool(different) and bool(different)
