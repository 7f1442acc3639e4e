"""Molecules as graphs: those of a csv file, with RDKit, and arrays of :mod:`nsimplex.molecules`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import molecules
from .._printable import printable
from ..graph import ConversionWarning, GraphData, connected_components
from ..graph.molecule_files import molecule_graphs
from ..molecules import ATOM_FEATURES, BOND_FEATURES, SYMBOLS
from .records import Loaded, Recipe, chosen_rows
from .tables import Table

_MOST_SYMBOLS = 5  # of unknown elements in a warning


def molecule_codes(
    path: str, arrays: Mapping[str, Any], recipe: Recipe, rows: Sequence[str] = ()
) -> GraphData:
    """The graphs of the arrays that :mod:`nsimplex.molecules` writes, whose features are codes.
    Atoms are called by their symbol and their number in the molecule, from 0, as RDKit numbers
    them. ``rows`` names the molecules in warnings about those that differ from the training."""
    recipe.node_columns, recipe.edge_columns = [], []
    recipe.node_codes = list(ATOM_FEATURES.values())
    recipe.edge_codes = list(BOND_FEATURES.values())
    data = molecule_graphs(arrays, directions="undirected")
    assert data.node_features is not None
    elements, graphs = data.node_features[:, 0], data.graph_of_nodes
    split = _with_several_parts(data)
    if not recipe.trained:
        recipe.elements, recipe.several_parts = elements.unique().tolist(), bool(len(split))
        return data
    unknown = ~torch.isin(elements, torch.tensor(recipe.elements))
    if unknown.any():
        symbols = [SYMBOLS[code] for code in elements[unknown].unique().tolist()]
        more = ", .." if len(symbols) > _MOST_SYMBOLS else ""
        _warn(
            path,
            graphs[unknown].unique(),
            rows,
            f"atoms {', '.join(symbols[:_MOST_SYMBOLS])}{more}",
        )
    if len(split) and not recipe.several_parts:
        _warn(path, split, rows, "several parts without a bond between them, as salts have")
    return data


def _with_several_parts(data: GraphData) -> Tensor:
    """The molecules of more than one connected part."""
    parts = connected_components(data.batch)
    pairs = torch.stack([data.graph_of_nodes, parts], 1).unique(dim=0)
    return (torch.bincount(pairs[:, 0], minlength=data.num_graphs) > 1).nonzero().squeeze(1)


def _warn(path: str, which: Tensor, rows: Sequence[str], what: str) -> None:
    first = int(which[0])
    count = f"{len(which)} molecule" + ("s have" if len(which) > 1 else " has")
    warnings.warn(
        f"{printable(path)}: {count} {what}, which no molecule of the training has; first in "
        f"{rows[first] if rows else f'molecule {first}'}",
        ConversionWarning,
        stacklevel=3,
    )


def read_molecules(table: Table, recipe: Recipe) -> Loaded:
    """A graph per row from its SMILES. Atoms and bonds have the codes of :mod:`nsimplex.molecules`.

    Raises:
        ValueError: a line whose SMILES cannot be parsed; RDKit is not installed.
    """
    try:
        chemistry = molecules._Chemistry(bits=8, radius=2, hydrogens=False)
    except SystemExit as error:
        needed = str(error).partition(": ")[2]
        raise ValueError(
            f"cannot read {printable(table.path)}: {needed}; NSIMPLEX_PYTHON chooses another Python"
        ) from None
    made, rows = [], []
    for row, (line, text) in enumerate(zip(table.lines, table.columns[recipe.smiles])):
        try:
            made.append(chemistry.molecule(line, text, 0.0))
            rows.append(row)
        except molecules.BadMolecule as error:
            recipe.bad.add(table.error(row, str(error).partition(": ")[2]))
    table = chosen_rows(table, rows)
    if not made:
        raise ValueError(f"cannot read {printable(table.path)}: no molecule in it")
    data = molecule_codes(
        table.path,
        {
            "atoms": np.concatenate([each.atoms for each in made]),
            "atom_offsets": np.cumsum([0, *(len(each.atoms) for each in made)]),
            "bonds": np.concatenate([each.bonds for each in made]),
            "bond_types": np.concatenate([each.bond_types for each in made]),
            "bond_offsets": np.cumsum([0, *(len(each.bonds) for each in made)]),
        },
        recipe,
        [f"line {line}" for line in table.lines],
    )
    targets = recipe.read_targets(table, "DATA")
    return Loaded(data, targets, [recipe.smiles], [[text] for text in table.columns[recipe.smiles]])
