"""Files with tables: numbers, columns of words, and columns that describe the rows."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._printable import printable
from ..graph_files import read_table
from .arrays import Table, places_of_words

__all__ = ["FileTable", "read_table_file"]

_DELIMITERS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|", "space": " "}
#: Missing values of :func:`read_table`, in lower case.
_MISSING = {
    "", "na", "n/a", "nan", "null", "nil", "none", "<na>", "#n/a", "#na", "-nan", "?", "-", "."
}  # fmt: skip


class FileTable(NamedTuple):
    """A table, and columns of its file that describe the rows."""

    table: Table
    beside: dict[str, list[Any]]  #: by the argument that names the column, its values


def read_table_file(
    function: str,
    path: str | os.PathLike[str],
    *,
    beside: Mapping[str, str],
    skip: Collection[str] = (),
    only: Sequence[str] | None = None,
    words: Collection[int | str] = (),
    known: Mapping[Any, Sequence[str] | None] | None = None,
    layer: str = "",
    raw: bool = False,
) -> FileTable:
    """Reads a table and the columns that describe its rows.

    Args:
        beside: names of columns to take out of the table, by the argument that gave the name. In an
            h5ad file they are columns of ``obs``.
        skip: names of columns to leave out, if the file has them.
        only: names of the columns that are needed. Others need not hold numbers, and may be left
            out. None: all are needed.
        words: names or numbers of columns that may hold words.
        known: by the name or number of a column, the words that it may hold; None: any.
        layer, raw: which matrix of an h5ad file.

    Raises:
        ValueError: the message names the file or the argument.
    """
    if os.fspath(path).endswith(".h5ad"):
        from .cells import cell_table, open_cells

        data = open_cells(path)
        cells = cell_table(path, data, layer, raw)
        for argument, name in beside.items():
            _check_known(function, argument, name, list(data.obs), f"obs of {os.fspath(path)}")
        found = {argument: list(data.obs[name]) for argument, name in beside.items()}
        return FileTable(Table(cells.values, cells.names), found)
    named = {*beside.values(), *skip, *(word for word in words if isinstance(word, str))}
    numbered = any(not isinstance(word, str) for word in words)
    text = _read_text(path, named) if named or numbered else None
    if text is None or not (beside or numbered or named & set(text.names)):
        try:
            file = read_table(path)
        except ValueError:
            text = None if only is None else _read_text(path, only)
            if text is None or not (others := _others(text, only, path)):
                raise
            return FileTable(_without(text, path, others, words, known), {})
        for argument, name in beside.items():
            _check_known(function, argument, name, file.columns, os.fspath(path))
        return FileTable(Table(file.values, file.columns), {})
    for argument, name in beside.items():
        _check_known(function, argument, name, text.names, os.fspath(path))
    found: dict[str, list[Any]] = {each: text.cells(name) for each, name in beside.items()}
    out = {*beside.values(), *skip, *_others(text, only, path)}
    table = _without(text, path, out, words, known)
    if "targets" in found:
        found["targets"] = [_targets(cell, table.names) for cell in found["targets"]]
    return FileTable(table, found)


def _others(text: _Text, only: Sequence[str] | None, path: str | os.PathLike[str]) -> set[str]:
    """Names of the columns that are not needed; none if the text has no names."""
    if only is None or not text.header:
        return set()
    if not set(only) & set(text.names):
        raise ValueError(f"cannot use {os.fspath(path)}: expected one column {only[0]!r}, got 0")
    return set(text.names) - set(only)


class _Text(NamedTuple):
    """The cells of a text."""

    delimiter: str
    header: bool
    labelled: bool  #: whether the first column has row names
    names: list[str]  #: of the columns without row names; x0, x1, .. without a header
    rows: list[list[str]]  #: without row names

    def cells(self, name: str) -> list[str | None]:
        """The cells of a column; None for a missing value."""
        at = self.names.index(name)
        return [None if row[at].lower() in _MISSING else row[at] for row in self.rows]


def _check_known(function: str, argument: str, name: str, names: Sequence[str], of: str) -> None:
    if names.count(name) != 1:
        raise ValueError(
            f"[{function}] {argument}: expected one value per row, or the name of a column of "
            f"{printable(of)}, got {printable(name)[:60]!r}"
        )


def _without(
    text: _Text,
    path: str | os.PathLike[str],
    out: Collection[str],
    words: Collection[int | str],
    known: Mapping[Any, Sequence[str] | None] | None,
) -> Table:
    """The table without some columns; its other columns are numbers, or words where they may be."""
    names = [name for name in text.names if name not in out]
    spelled: dict[int, list[str | None]] = {}
    for at, name in enumerate(names):
        if (at in words or name in words) and text.names.count(name) == 1:
            cells = text.cells(name)
            fitted = None if known is None else known.get(name, known.get(at))
            if fitted is not None or not all(map(_is_number, cells)):
                spelled[at] = cells
    left_out = [name for name in text.names if name in out] + [names[at] for at in spelled]
    values = torch.full((len(text.rows), len(names)), torch.nan, dtype=torch.float64)
    numeric = [at for at in range(len(names)) if at not in spelled]
    if numeric:
        file = read_table(
            path,
            header=text.header,
            index=text.labelled,
            delimiter=text.delimiter,
            leave_out=list(dict.fromkeys(left_out)),
        )
        if file.values.shape != (len(text.rows), len(numeric)):
            raise ValueError(
                f"cannot read {os.fspath(path)}: expected {len(text.rows)} rows and {len(numeric)} "
                f"columns of numbers, got {list(file.values.shape)}"
            )
        values[:, numeric] = file.values
    found: dict[int, list[str]] = {}
    for at, cells in spelled.items():
        place = f"cannot use {os.fspath(path)}: column {printable(names[at])[:60]}"
        fitted = None if known is None else known.get(names[at], known.get(at))
        own, found[at] = places_of_words(place, cells, fitted)
        values[:, at] = torch.tensor(own, dtype=torch.float64)
    return Table(values, names if text.header else [], found)


def _read_text(path: str | os.PathLike[str], wanted: Collection[str]) -> _Text | None:
    """The cells of a text, between the delimiters that give most of the wanted names of columns;
    None if the file is no such text, which :func:`read_table` then reads or refuses."""
    try:
        data = Path(path).read_bytes()
        if data.startswith((b"\x93NUMPY", b"PK\x03\x04")):
            return None
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except (OSError, ValueError):  # no such file, or bytes in another encoding
        return None
    lines = text.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line.strip() and line[0] != "#"), 0)
    text = "".join(lines[first:])
    found = [each for name in _DELIMITERS if (each := _split(text, name)) is not None]
    return max(found, key=lambda each: len(set(wanted) & set(each.names)), default=None)


def _split(text: str, delimiter: str) -> _Text | None:
    """The cells between delimiters; None unless there are two columns or more in every row."""
    mark = _DELIMITERS[delimiter]
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
        rows = [[cell.strip() for cell in row] for row in reader if any(row)]
    except csv.Error:
        return None
    width = len(rows[-1]) if rows else 0
    shorter = bool(rows) and len(rows[0]) + 1 == width
    if width < 2 or any(len(row) != width for row in rows[shorter:]):
        return None
    header = shorter or rows[0][0] == "" or _is_header(rows[0])
    below = rows[header:]
    if not below:
        return None
    if len(below) > 1 and not any(row[-1] for row in below) and (shorter or not rows[0][-1]):
        below, rows[0] = [row[:-1] for row in below], rows[0][: width - 1]
        shorter = False
    index = shorter or (header and rows[0][0] == "") or _are_row_names([row[0] for row in below])
    names = rows[0][index and not shorter :] if header else []
    below = [row[index:] for row in below]
    names = names or [f"x{at}" for at in range(len(below[0]))]
    return _Text(delimiter, header, index, names, below)


def _is_header(cells: Iterable[str]) -> bool:
    """Whether a first row has names: a word, and no number with a fraction."""
    cells = list(cells)
    fraction = any(_is_number(cell) and not cell.lstrip("+-").isdecimal() for cell in cells if cell)
    return not fraction and any(not _is_number(cell) for cell in cells)


def _are_row_names(cells: Sequence[str]) -> bool:
    """Whether a first column has row names: different words."""
    return len(set(cells)) == len(cells) and not any(map(_is_number, cells))


def _is_number(cell: str | None) -> bool:
    """Whether a cell is a number or missing."""
    if cell is None or cell.lower() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _targets(cell: str | None, names: Sequence[str]) -> list[str | int]:
    """The columns that a cell names between semicolons; numbers unless they are names."""
    found: list[str | int] = []
    for part in (cell or "").split(";"):
        name = part.strip().strip('"')
        if name and name not in names and name.lstrip("-").isdecimal():
            found.append(int(name))
        elif name:
            found.append(name)
    return found
