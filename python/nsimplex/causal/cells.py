"""Single-cell files as tables: h5ad through anndata (``pip install nsimplex[cells]``).

    python -m nsimplex.causal.cells pbmc.h5ad pbmc.csv --columns 100
    nsimplex causal fit pbmc.csv --drop --out runs/pbmc
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["CellTable", "main", "read_h5ad"]


class CellTable(NamedTuple):
    """Observations of an AnnData file."""

    values: Tensor  #: float64 [cells, genes]
    names: list[str]  #: of the genes
    cells: list[str]  #: of the cells
    labels: dict[str, list[str]]  #: columns of ``obs`` that hold words, one a cell


def read_h5ad(path: str | os.PathLike[str], layer: str = "", *, raw: bool = False) -> CellTable:
    """Reads an h5ad file.

    Args:
        layer: the matrix of ``layers``; "": ``X``.
        raw: ``raw.X`` with its genes instead.

    Raises:
        ModuleNotFoundError: anndata is not installed.
        ValueError: the file cannot be read, or has no such matrix.
    """
    try:
        import anndata
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"h5ad files need anndata: pip install nsimplex[cells] ({error})") from None
    try:
        data = anndata.read_h5ad(path)
    except Exception as error:  # h5py and anndata raise errors of many kinds
        raise ValueError(f"cannot read {os.fspath(path)}: {str(error).splitlines()[0]}") from None
    source = data.raw if raw else data
    if source is None:
        raise ValueError(f"cannot read {os.fspath(path)}: it has no raw")
    if layer and (raw or layer not in data.layers):
        raise ValueError(f"cannot read {os.fspath(path)}: expected a layer of {list(data.layers)}, got {layer!r}")
    matrix = data.layers[layer] if layer else source.X
    if matrix is None:
        raise ValueError(f"cannot read {os.fspath(path)}: it has no X")
    dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    words = {
        str(name): [str(value) for value in column]
        for name, column in data.obs.items()
        if column.dtype.kind not in "iufb"
    }
    return CellTable(
        torch.as_tensor(dense, dtype=torch.float64).contiguous(),
        [str(name) for name in source.var_names],
        [str(name) for name in data.obs_names],
        words,
    )


def main(arguments: list[str] | None = None) -> int:
    """Writes a csv of an h5ad file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m nsimplex.causal.cells", description="h5ad as a table")
    parser.add_argument("h5ad")
    parser.add_argument("csv")
    parser.add_argument("--layer", default="", help="matrix of layers; default: X")
    parser.add_argument("--raw", action="store_true", help="raw.X instead")
    parser.add_argument("--columns", type=int, default=0, help="only so many genes of the largest variance; 0: all")
    options = parser.parse_args(arguments)
    try:
        table = read_h5ad(options.h5ad, options.layer, raw=options.raw)
    except (OSError, ValueError, ModuleNotFoundError) as error:
        print(f"nsimplex.causal.cells: {error}", file=sys.stderr)
        return 2
    keep = range(len(table.names))
    if 0 < options.columns < len(table.names):
        largest = table.values.var(dim=0).topk(options.columns).indices
        keep = sorted(largest.tolist())
    target = Path(options.csv)
    with tempfile.NamedTemporaryFile("w", newline="", dir=target.parent, delete=False, encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *(table.names[column] for column in keep)])
        for cell, row in zip(table.cells, table.values[:, list(keep)].tolist(), strict=True):
            writer.writerow([cell, *row])
    os.replace(file.name, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
