"""Graphs, tuples and tables from files.

A file that cannot be used is a ValueError of one line: "cannot read PATH: WHY", with the line or row. Nothing pickled is
ever read.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import torch
from torch import Tensor

from ._arguments import checked
from .graph import TupleBatch

__all__ = [
    "EdgeFile",
    "TableFile",
    "TupleFile",
    "read_edges",
    "read_graphs",
    "read_table",
    "read_tuples",
]

_operators = torch.ops.nsimplex
_Path = str | os.PathLike[str]


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
    type_sizes: Tensor  #: int64 [k]: how many nodes the type of each column has, or [0] without types


class TableFile(NamedTuple):
    """Numbers in rows and named columns."""

    values: Tensor  #: float64 [rows, columns]; NaN where missing
    columns: list[str]  #: their names; empty where there are none
    labels: list[str]  #: names of the rows; empty where there are none


@checked
def read_graphs(path: _Path) -> TupleBatch:
    """Undirected graphs of a file, one batch: lines of graph6, or an npy array of graph6 strings, in C order."""
    return TupleBatch(*_operators.read_graphs(os.fspath(path)), "undirected")


@checked
def read_edges(path: _Path) -> EdgeFile:
    """Lines "from to" or "from to weight", between spaces, tabs, commas or semicolons; # and % begin comments.

    Where every node is a number from 0 on these are the nodes, as many as the largest says; otherwise they are
    names, numbered as they come.
    """
    return EdgeFile(*_operators.read_edges(os.fspath(path)))


@checked
def read_tuples(path: _Path, key: str = "", *, width: int | None = None) -> TupleFile:
    """Tuples from npz, npy, csv, tsv, or a file *.safetensors.

    Args:
        path: an npz may hold ``nums_type``, the number of nodes of each column's type; then its columns count their
            nodes from 0, each for itself. Pickled arrays beside are not read.
        key: the array in an npz or safetensors file; "": train_data, test_data or the only one of two dimensions.
        width: expected k; None: any.
    """
    return TupleFile(*_operators.read_tuples(os.fspath(path), key, width or 0))


@checked
def read_table(
    path: _Path, key: str = "", *, header: bool | None = None, allow_missing: bool = True
) -> TableFile:
    """A table from csv, tsv, npy or npz; which of them it is, its bytes say.

    Args:
        path: in text the first column holds labels where its name is empty, or where the header has one cell less
            than every row. Cells may be quoted.
        key: the array in an npz; "": the only one of two dimensions.
        header: whether the first line has names; None: where one of its cells is no number.
        allow_missing: an empty cell, NA, N/A, NaN, nan, null, NULL and None give NaN; otherwise they are errors.
    """
    return TableFile(*_operators.read_table(os.fspath(path), header, allow_missing, key))
