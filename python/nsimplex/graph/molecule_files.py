"""Graphs of the molecules that `python -m nsimplex.molecules` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor

from .._arguments import checked
from .._choices import MoleculeDirections
from .._npz import read_npz
from .._printable import printable
from .conversion_checks import require_choice
from .conversions import from_edge_index
from .graph_data import GraphData

__all__ = ["read_molecules"]

#: Arrays that make graphs of molecules.
MOLECULE_ARRAYS = ("atoms", "atom_offsets", "bonds", "bond_types", "bond_offsets")


def _counts(name: str, offsets: Tensor, rows: int) -> Tensor:
    """How many rows each molecule has."""
    counts = offsets.diff() if offsets.dim() == 1 and len(offsets) else None
    if counts is None or offsets[0] != 0 or offsets[-1] != rows or bool((counts < 0).any()):
        raise ValueError(f"array {name}: expected numbers that rise from 0 to {rows}")
    return counts


def _codes(name: str, array: Any, categories: Mapping[str, int]) -> Tensor:
    codes = _whole(name, array)
    if codes.dim() != 2 or codes.size(1) != len(categories):
        raise ValueError(
            f"array {name}: expected {len(categories)} columns, got shape {list(codes.shape)}"
        )
    wrong = ((codes < 0) | (codes >= torch.tensor([*categories.values()]))).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        feature, most = [*categories.items()][column]
        raise ValueError(
            f"array {name}: row {row}: expected a code of {feature} below {most}, "
            f"got {codes[row, column]}"
        )
    return codes


def _whole(name: str, array: Any) -> Tensor:
    import numpy as np

    own = np.asarray(array)
    if own.dtype.kind not in "iu":
        raise ValueError(f"array {name}: expected whole numbers, got {own.dtype}")
    return torch.from_numpy(own.astype(np.int64))


def molecule_graphs(
    arrays: Mapping[str, Any],
    *,
    targets: Tensor | None = None,
    directions: MoleculeDirections = "both",
) -> GraphData:
    """The graphs of the arrays of :func:`read_molecules`.

    Raises:
        ValueError: "array NAME: WHY", without the name of a file.
    """
    from ..molecules import ATOM_FEATURES, BOND_FEATURES, SYMBOLS

    atoms = _codes("atoms", arrays["atoms"], ATOM_FEATURES)
    types = _codes("bond_types", arrays["bond_types"], BOND_FEATURES)
    starts = _whole("atom_offsets", arrays["atom_offsets"])
    atom_counts = _counts("atom_offsets", starts, len(atoms))
    bond_counts = _counts(
        "bond_offsets", _whole("bond_offsets", arrays["bond_offsets"]), len(types)
    )
    bonds = _whole("bonds", arrays["bonds"])
    if bonds.shape != (len(types), 2):
        raise ValueError(f"array bonds: expected shape [{len(types)}, 2], got {list(bonds.shape)}")
    if len(atom_counts) != len(bond_counts):
        raise ValueError(
            f"array bond_offsets: expected {len(atom_counts)} molecules, got {len(bond_counts)}"
        )
    molecule = torch.repeat_interleave(bond_counts)
    wrong = ((bonds < 0) | (bonds >= atom_counts[molecule][:, None])).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(
            f"array bonds: row {row}: expected an atom of molecule {molecule[row]}, "
            f"0 to {atom_counts[molecule[row]] - 1}, got {bonds[row, column]}"
        )
    data = from_edge_index(
        (bonds + starts[molecule][:, None]).t().contiguous(),
        edge_features=types,
        batch=torch.repeat_interleave(atom_counts),
        node_features=atoms,
        targets=targets,
        level="" if targets is None else "graph",
        directions=directions,
        num_graphs=len(atom_counts),
    )
    place = torch.arange(data.num_nodes) - data.node_offsets[data.graph_of_nodes]
    names = (f"{SYMBOLS[code]}{at}" for code, at in zip(atoms[:, 0].tolist(), place.tolist()))
    return replace(data, names=tuple(names))


@checked
def read_molecules(
    path: str | os.PathLike[str], *, directions: MoleculeDirections = "both"
) -> GraphData:
    """Reads the molecules of an npz file that `python -m nsimplex.molecules` writes.

    A molecule is a graph. Its atoms are nodes, and its bonds are edges. The features are int64
    codes: ``node_features`` has a column for each of ``nsimplex.molecules.ATOM_FEATURES``,
    ``edge_features`` for each of ``BOND_FEATURES``, and a model takes their values as
    ``node_codes`` and ``edge_codes``. ``names`` has the symbol of every atom and its number in the
    molecule, from 0. ``targets`` is float32 [B], one number per molecule.

    Args:
        path: the npz file. RDKit is not needed to read it.
        directions: "both": two ordered pairs per bond; "undirected": one ascending pair.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.

    Complexity: O(E log E + n) for E bonds and n atoms.

    Source: docs/own-graph.md describes the file.
    """
    import numpy as np

    require_choice("[read_molecules] ", "directions", directions, get_args(MoleculeDirections))
    at = f"cannot read {printable(os.fspath(path))}: "
    arrays = read_npz(path)
    if missing := {*MOLECULE_ARRAYS, "targets"} - arrays.keys():
        raise ValueError(
            f"{at}expected the npz file of: python -m nsimplex.molecules; it has no array "
            f"{min(missing)}"
        )
    try:
        own = np.asarray(arrays["targets"])
        if own.dtype.kind not in "fiu" or own.shape != (len(arrays["atom_offsets"]) - 1,):
            raise ValueError("array targets: expected one number per molecule")
        with np.errstate(over="ignore"):
            numbers = own.astype(np.float32)
        if not np.isfinite(numbers).all():
            raise ValueError("array targets: expected finite numbers of float32")
        targets = torch.from_numpy(numbers)
        return molecule_graphs(arrays, targets=targets, directions=directions)
    except (TypeError, ValueError) as error:
        raise ValueError(at + str(error).rpartition("] ")[2]) from None
