"""Graphs, tuples and tables from files.

A file that cannot be used is a ValueError of one line: "cannot read PATH: WHY", with the line or
row. Nothing pickled is ever read.

Texts of rows and columns are read by one set of rules. The bytes are UTF-8, or UTF-16 with a byte
order mark, and lines end with LF, CR LF or CR. These arguments say how; what is not given, the text
decides, and a ReadingWarning tells what was decided by the values alone:

- ``header``: whether the first row has names. It has where it holds words that are no values, where
  it has one cell less than every other row or begins with an empty one, and where it has three or
  more consecutive whole numbers, or whole numbers above columns that all hold fractions.
- ``index``: whether the first column has the names of the rows. It has where the header has no name
  for it, and where its cells are different names.
- ``delimiter``: "comma", "tab", "semicolon", "pipe" or "space" (runs of blanks).
- ``comment``: a line that begins with this character is passed over; "": no line is. Without it,
  lines with # above the first row are; in lists of edges, lines with # or % anywhere.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ._arguments import checked
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
    """How a text was read was decided by its values alone; the message names the argument that says
    otherwise."""


def _warn(path: _Path, guesses: str) -> None:
    if guesses:
        warnings.warn(f"{os.fspath(path)}: {guesses}", ReadingWarning, stacklevel=3)


class EdgeFile(NamedTuple):
    """Edges as a file lists them: in its order, repetitions and loops included."""

    edges: Tensor  #: int64 [E, 2]
    weights: Tensor  #: float64 [E], or [0] where the file has none
    names: list[str]  #: of the nodes; empty where the file numbers them
    nodes: int


class TupleFile(NamedTuple):
    """Tuples as a file lists them: in its order, repetitions included."""

    tuples: Tensor  #: int64 [m, k], columns of types numbered through
    nodes: int  #: of all types, or one more than the largest
    type_sizes: (
        Tensor  #: int64 [k]: how many nodes the type of each column has, or [0] without types
    )


class TableFile(NamedTuple):
    """Numbers in rows and named columns."""

    values: Tensor  #: float64 [rows, columns]; NaN where missing
    columns: list[str]  #: their names; empty where there are none
    labels: list[str]  #: names of the rows; empty where there are none


@checked
def read_graphs(path: _Path) -> TupleBatch:
    """Undirected graphs of a file, one batch: lines of graph6, or an npy array of graph6 strings,
    in C order."""
    return TupleBatch(*operators.read_graphs(operator_path(path)), "undirected")


@checked
def read_edges(
    path: _Path,
    *,
    header: bool | None = None,
    index: bool | None = None,
    delimiter: str = "",
    comment: str | None = None,
) -> EdgeFile:
    """Lines "from to" or "from to weight", between blanks, tabs, commas or semicolons; # and %
    begin comments.

    A header may name the columns of sources, targets and weights, in any order and among others, as
    Gephi, Cytoscape, SNAP, igraph and causal tools do: source and target, from and to, node1 and
    node2, cause and effect, .. Where every node is a number from 0 on these are the nodes, as many
    as the largest says; but numbers in quotes, and numbers far above the number of edges, are
    names, in ascending order. Otherwise nodes are names, numbered as they come.
    """
    *file, guesses = operators.read_edges(operator_path(path), header, index, delimiter, comment)
    _warn(path, guesses)
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
    """Tuples from npz, npy, a text such as csv, or a file *.safetensors.

    Args:
        path: an npz may hold ``nums_type``, the number of nodes of each column's type; then its
            columns count their nodes from 0, each for itself. Pickled arrays beside are not read.
        key: the array in an npz or safetensors file; "": train_data, test_data or the only one of
            two dimensions.
        width: expected k; None: any.
        header, index, delimiter, comment: of a text, as this module says; numbers are nodes and
            never a header.
    """
    *file, guesses = operators.read_tuples(
        operator_path(path), key, width or 0, header, index, delimiter, comment
    )
    _warn(path, guesses)
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
    """A table from npy, npz or a text such as csv; which of them it is, its bytes say.

    Args:
        path: cells of a text may be quoted. A number nearer to 0 than any float64 is 0; one beyond
            the largest is an error.
        key: the array in an npz; "": the only one of two dimensions.
        header, index, delimiter, comment: of a text, as this module says.
        allow_missing: an empty cell, NA, N/A, NaN, null, nil, None, in capitals or not, also <NA>,
            #N/A and -nan, and ?, - and a point give nan; otherwise they are errors.
        missing_words: further words that give nan.
        use_columns, leave_out: names of columns to read, and to pass over, of a text; x0, x1, ..
            where it has no names. What is not read may hold anything.
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
    _warn(path, guesses)
    return TableFile(*file)
