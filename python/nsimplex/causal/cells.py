"""Single-cell files as tables: reads h5ad through anndata (the extra ``cells``).

python -m nsimplex.causal.cells pbmc.h5ad pbmc.csv --raw --columns 100 --labels type=types.csv
nsimplex causal fit pbmc.csv --drop --out runs/pbmc
nsimplex causal task classify pbmc.csv --labels types.csv --out runs/types
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from .._arguments import checked
from .._foreign_files import ForeignFile, foreign_file
from .._printable import exit_code, printable
from .._whole_file import whole_file
from .arrays import read_columns

__all__ = ["CellTable", "cell_table", "main", "open_cells", "read_h5ad"]


class CellTable(NamedTuple):
    """Observations of an AnnData file."""

    values: Tensor  #: float64 [cells, genes]
    names: list[str]  #: names of the genes
    cells: list[str]  #: names of the cells
    labels: dict[str, list[str]]  #: columns of ``obs`` that hold words, one per cell


def open_cells(path: str | os.PathLike[str]) -> Any:
    """The AnnData object of an h5ad file."""
    try:
        import anndata
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"h5ad files need anndata: python -m pip install anndata, the extra cells ({error})"
        ) from None
    with foreign_file(path, "h5ad file") as file:
        _require_own_data(path, file)
        return anndata.read_h5ad(path)


def _require_own_data(path: str | os.PathLike[str], file: ForeignFile) -> None:
    """Checks, before anything is read, that the arrays of a file are in it and that their sizes
    are in proportion to its own."""
    import h5py  # which anndata needs

    total = 0

    def add(name: str, found: Any) -> None:
        nonlocal total
        if isinstance(found, h5py.Dataset):
            total += file.array_bytes(name, found)
            file.require_bytes(total)

    def refuse(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            where = printable(name)[:60]
            raise ValueError(f"{file.at}{where}: expected data of this file, got a link")

    with h5py.File(path, "r") as content:
        content.visititems_links(refuse)
        content.visititems(add)


def _words(column: Any) -> list[str]:
    return [str(value) for value in column]


@checked
def read_h5ad(path: str | os.PathLike[str], layer: str = "", *, raw: bool = False) -> CellTable:
    """Reads an h5ad file.

    Args:
        layer: the matrix of ``layers``; "": ``X``.
        raw: read ``raw.X`` with its genes instead.

    Raises:
        ModuleNotFoundError: anndata is not installed.
        ValueError: the file cannot be read, or does not have the matrix.
    """
    data = open_cells(path)
    return cell_table(path, data, layer, raw)


def cell_table(path: str | os.PathLike[str], data: Any, layer: str, raw: bool) -> CellTable:
    """One of its matrices, and the words of ``obs``."""
    try:
        values, genes, _ = read_columns("read_h5ad", "path", data, layer=layer, raw=raw)
    except ValueError as error:
        why = str(error).removeprefix("[read_h5ad] path: ")
        raise ValueError(f"cannot read {os.fspath(path)}: {why}") from None
    words = {
        str(name): _words(column)
        for name, column in data.obs.items()
        if column.dtype.kind not in "iufb"
    }
    return CellTable(values, genes, [str(name) for name in data.obs_names], words)


def _most_variable(values: Tensor, count: int) -> list[int]:
    """The ``count`` columns of largest variance, without missing values. Columns without a variance
    come last in the ranking."""
    there = ~values.isnan()
    number = there.sum(dim=0)
    mean = values.nan_to_num(0.0).sum(dim=0) / number
    variance = ((values - mean).square().where(there, 0.0)).sum(dim=0) / (number - 1)
    variance = variance.where(variance.isfinite(), -1.0)
    return sorted(variance.argsort(descending=True, stable=True)[:count].tolist())


def _labels(path: str, data: Any, name: str) -> list[str]:
    """A column of ``obs``, one label per cell."""
    if name not in data.obs:
        known = ", ".join(map(printable, data.obs.columns)) or "none"
        raise ValueError(
            f"cannot read {path}: expected a column of obs, which are {known}, got {name!r}"
        )
    column = data.obs[name]
    missing = np.flatnonzero(column.isna().to_numpy())
    if missing.size > 0:
        cell = data.obs_names[missing[0]]
        raise ValueError(
            f"cannot read {path}: obs column {name!r} has no value for {missing.size} cells, "
            f"first {cell!r}"
        )
    return _words(column)


def _write(
    path: str, header: Sequence[str], cells: Iterable[str], rows: Iterable[Sequence[Any]]
) -> None:
    with whole_file(path, newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *header])
        for cell, row in zip(cells, rows, strict=True):
            writer.writerow([cell, *row])


def _convert(options: argparse.Namespace) -> None:
    if options.columns < 0:
        raise ValueError(f"--columns: expected 0 or more, got {options.columns}")
    pairs = [text.rpartition("=") for text in options.labels]
    for name, _, file in pairs:
        if not name or not file:
            raise ValueError(f"--labels: expected OBS_COLUMN=FILE, got {file or name!r}")
    files = [options.h5ad, options.csv, *(file for _, _, file in pairs)]
    if len({os.path.abspath(file) for file in files}) < len(files):
        raise ValueError(
            "expected a file of its own for everything that is read or written, "
            f"got {' '.join(files)}"
        )
    data = open_cells(options.h5ad)
    table = cell_table(options.h5ad, data, options.layer, options.raw)
    labels = [(file, name, _labels(options.h5ad, data, name)) for name, _, file in pairs]
    keep = list(range(len(table.names)))
    if 0 < options.columns < len(keep):
        keep = _most_variable(table.values, options.columns)
    names = [table.names[column] for column in keep]
    _write(options.csv, names, table.cells, table.values[:, keep].tolist())
    for file, name, words in labels:
        _write(file, [name], table.cells, ([word] for word in words))
    matrix = f"layers[{options.layer!r}]" if options.layer else "raw.X" if options.raw else "X"
    genes = f"{len(keep)} of {len(table.names)} genes"
    print(f"{options.csv}: {len(table.cells)} cells, {genes} of {matrix}")
    if not options.raw and data.raw is not None:
        print(f"the file has raw.X, too, of {data.raw.n_vars} genes, often not scaled: --raw")
    for file, name, words in labels:
        print(f"{file}: {len(set(words))} different labels of {name}")


def main(arguments: list[str] | None = None) -> int:
    """Writes an h5ad file and its labels as csv files; returns the exit code."""
    return exit_code(lambda: _convert(_options(arguments)), "nsimplex.causal.cells")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m nsimplex.causal.cells", description="Write an h5ad file as a csv table"
    )
    parser.add_argument("h5ad", help="AnnData file to read")
    parser.add_argument("csv", help="table to write")
    parser.add_argument("--layer", default="", help="name of a matrix in layers; default: X")
    parser.add_argument(
        "--raw", action="store_true", help="take raw.X instead of X, which is scaled in many files"
    )
    parser.add_argument(
        "--columns",
        type=int,
        default=0,
        help="keep this number of genes, those of the largest variance; 0: all",
    )
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="OBS_COLUMN=FILE",
        help="also write a column of obs as a csv of labels, for causal task classify; repeatable",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
