"""Reads graphs, tuples and tables from files.

A file that cannot be used raises a ValueError with one line: "cannot read PATH: WHY", with the line
or row. Pickled data is never read.

All text files with rows and columns follow the same rules. The bytes are UTF-8, or UTF-16 with a
byte order mark, and lines end with LF, CR LF or CR. The following arguments control the reading. If
an argument is not given, the text decides, and a ReadingWarning reports each decision that depends
on the values alone:

- ``header``: whether the first row contains names. By default it does in three cases: it contains
  words that are not values; or it has one cell less than every other row, or begins with an empty
  cell; or it has three or more consecutive whole numbers, or whole numbers above columns that
  contain only fractions.
- ``index``: whether the first column contains the names of the rows. By default it does in two
  cases: the header has no name for it, or its cells are different names.
- ``delimiter``: "comma", "tab", "semicolon", "pipe" or "space" (runs of blanks).
- ``comment``: lines that begin with this character are skipped; "": no line is skipped. By default,
  lines with # above the first row are skipped. In lists of edges, lines with # or % are skipped
  anywhere.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ._arguments import checked
from ._data_frames import DataFrame, data_frame
from ._library import operators
from ._paths import operator_path
from .graph import TupleBatch

__all__ = [
    "EdgeFile",
    "ReadingWarning",
    "TableFile",
    "TupleFile",
    "read_edges",
    "read_graphs",
    "read_table",
    "read_tuples",
]

_Path = str | os.PathLike[str]


class ReadingWarning(UserWarning):
    """The values alone decided how a text was read. The message names the argument that overrides
    the decision."""


def _warn_of_guesses(path: _Path, guesses: str, stacklevel: int = 3) -> None:
    """Warns if something was guessed. ``stacklevel`` is that of :func:`warnings.warn` in the
    caller; by default the caller is a function under ``checked``."""
    if guesses:
        warnings.warn(f"{os.fspath(path)}: {guesses}", ReadingWarning, stacklevel=stacklevel + 1)


class EdgeFile(NamedTuple):
    """Edges as listed in a file, in its order, repetitions and loops included."""

    edges: Tensor  #: int64 [E, 2]
    weights: Tensor  #: float64 [E], or [0] if the file has none
    names: list[str]  #: names of the nodes; empty if the file numbers them
    nodes: int


class TupleFile(NamedTuple):
    """Tuples as listed in a file, in its order, repetitions included."""

    tuples: Tensor  #: int64 [m, k]; nodes of all types are numbered consecutively
    nodes: int  #: number of nodes of all types, or one more than the largest
    type_sizes: Tensor  #: int64 [k]: number of nodes of each column's type, or [0] without types


class TableFile(NamedTuple):
    """Numbers in rows and named columns."""

    values: Tensor  #: float64 [rows, columns]; a missing value is NaN
    columns: list[str]  #: names of the columns; empty if there are none
    labels: list[str]  #: names of the rows; empty if there are none

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with the names of columns and rows. Columns without names are x0,
        x1, .."""
        columns = self.columns or [f"x{column}" for column in range(self.values.size(1))]
        return data_frame(self.values.tolist(), columns, index=self.labels or None)


@checked
def read_graphs(path: _Path) -> TupleBatch:
    """Reads the undirected graphs of a file as one batch. The file contains lines of graph6, or is
    an npy array of graph6 strings, in C order."""
    tuples, tuple_offsets, node_offsets = operators.read_graphs(operator_path(path))
    return TupleBatch(tuples, tuple_offsets, node_offsets, "undirected")


@checked
def read_edges(
    path: _Path,
    *,
    header: bool | None = None,
    index: bool | None = None,
    delimiter: str = "",
    comment: str | None = None,
) -> EdgeFile:
    """Reads lines "from to" or "from to weight", separated by blanks, tabs, commas or semicolons. #
    and % begin comments.

    A header may name the columns of sources, targets and weights, in any order and among others,
    with the names that Gephi, Cytoscape, SNAP, igraph and causal tools use: source and target, from
    and to, node1 and node2, cause and effect, .. If every node is a number from 0 on, these numbers
    are the nodes, and the largest number determines how many nodes there are. However, numbers in
    quotes, and numbers far above the number of edges, are names, in ascending order. Otherwise
    nodes are names, numbered in the order of their first appearance.
    """
    *file, guesses = operators.read_edges(operator_path(path), header, index, delimiter, comment)
    _warn_of_guesses(path, guesses)
    return EdgeFile(*file)


@checked
def read_tuples(
    path: _Path,
    key: str = "",
    *,
    width: int | None = None,
    header: bool | None = None,
    index: bool | None = None,
    delimiter: str = "",
    comment: str | None = None,
) -> TupleFile:
    """Reads tuples from npz, npy, a text such as csv, or a file *.safetensors.

    Args:
        path: an npz may contain ``nums_type``, the number of nodes of each column's type. Then
            every column counts its own nodes from 0. Pickled arrays in the same file are not read.
        key: the array in an npz or safetensors file; "": train_data, test_data or the only array of
            two dimensions.
        width: expected k; None: any.
        header, index, delimiter, comment: for a text, as described at the top of this module.
            Numbers are nodes and never a header. A column with the name of weights, such as
            weight or score, is refused: it has no nodes.
    """
    *file, guesses = operators.read_tuples(
        operator_path(path), key, width or 0, header, index, delimiter, comment
    )
    _warn_of_guesses(path, guesses)
    return TupleFile(*file)


@checked
def read_table(
    path: _Path,
    key: str = "",
    *,
    header: bool | None = None,
    allow_missing: bool = True,
    index: bool | None = None,
    delimiter: str = "",
    comment: str | None = None,
    missing_words: Sequence[str] = (),
    use_columns: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> TableFile:
    """Reads a table from npy, npz or a text such as csv. The bytes of the file determine its
    format.

    Args:
        path: cells of a text may be quoted. A number nearer to 0 than any float64 is 0; a number
            beyond the largest float64 is an error.
        key: the array in an npz; "": the only array of two dimensions.
        header, index, delimiter, comment: for a text, as described at the top of this module.
        allow_missing: whether missing values become nan; otherwise they are errors. A missing value
            is an empty cell, NA, N/A, NaN, null, nil or None, in upper or lower case, or <NA>,
            #N/A, -nan, ?, - or a point.
        missing_words: further words that become nan.
        use_columns, leave_out: names of columns of a text to read and to skip. Columns without
            names are called x0, x1, .. A skipped column may contain anything.
    """
    *file, guesses = operators.read_table(
        operator_path(path),
        header,
        allow_missing,
        key,
        index,
        delimiter,
        comment,
        list(missing_words),
        list(use_columns),
        list(leave_out),
    )
    _warn_of_guesses(path, guesses)
    return TableFile(*file)
