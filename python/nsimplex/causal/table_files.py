"""Files with tables: numbers, columns of words, and columns that describe the rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from .._library import operators
from .._paths import operator_path
from .._printable import printable
from ..graph_files import _warn_of_guesses
from .arrays import Table
from .frames import places_of_words

__all__ = ["FileTable", "read_table_file"]


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
        only: names of the columns that are needed. Others are left out, and need not hold numbers.
            None: all are needed.
        words: names or numbers of columns that may hold words.
        known: by the name or number of a column, the words that it may hold; None: any.
        layer, raw: which matrix of an h5ad file.

    Raises:
        ValueError: the message names the file or the argument.
    """
    if os.fspath(path).endswith(".h5ad"):
        from .cells import cell_table, open_cells

        data = open_cells(path)
        table = cell_table(path, data, layer, raw)
        for argument, name in beside.items():
            _check_known(function, argument, name, list(data.obs), f"obs of {os.fspath(path)}")
        labels = {argument: list(data.obs[name]) for argument, name in beside.items()}
        return FileTable(Table(table.values, table.names), labels)
    values, names, all_names, spelled, texts, asides, guesses = operators.causal_read_columns(
        operator_path(path),
        list(beside.values()),
        list(skip),
        [word for word in words if isinstance(word, str)],
        [word for word in words if not isinstance(word, str)],
        list(only or ()),
    )
    for argument, name in beside.items():
        _check_known(function, argument, name, all_names, os.fspath(path))
    if only and values.size(1) == 0:
        raise ValueError(f"cannot use {os.fspath(path)}: expected one column {only[0]!r}, got 0")
    _warn_of_guesses(path, guesses, stacklevel=6)  # the user's call of a method
    found: dict[str, list[Any]] = {}
    for argument, cells in zip(beside, _parts(asides, len(values))):
        targets = argument == "targets"
        found[argument] = [_targets(cell, names) for cell in cells] if targets else list(cells)
    own: dict[int, list[str]] = {}
    for at, cells in zip(spelled, _parts(texts, len(values))):
        name = names[at] if names else f"x{at}"
        fitted = None if known is None else known.get(name, known.get(at))
        gaps = sum(cell is None for cell in cells)
        if fitted is None and int(values[:, at].isnan().sum()) == gaps:
            continue  # numbers
        place = f"cannot use {os.fspath(path)}: column {printable(name)[:60]}"
        places, own[at] = places_of_words(place, cells, fitted)
        values[:, at] = torch.tensor(places, dtype=torch.float64)
    return FileTable(Table(values, names, own), found)


def _check_known(function: str, argument: str, name: str, names: Sequence[str], of: str) -> None:
    if names.count(name) != 1:
        raise ValueError(
            f"[{function}] {argument}: expected one value per row, or the name of a column of "
            f"{printable(of)}, got {printable(name)[:60]!r}"
        )


def _parts(cells: Sequence[str], rows: int) -> list[list[str | None]]:
    """Columns of cells that follow one another, with None for a missing value."""
    return [
        [cell or None for cell in cells[first : first + rows]]
        for first in range(0, len(cells), rows)
    ]


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
