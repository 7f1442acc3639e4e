"""Molecules of a csv file, with RDKit."""

from __future__ import annotations

import numpy as np

from .. import molecules
from .._printable import printable
from .array_files import molecule_codes
from .records import Loaded, Recipe, chosen_rows
from .tables import Table


def read_molecules(table: Table, recipe: Recipe) -> Loaded:
    """A graph per row from its SMILES. Atoms and bonds have the codes of :mod:`nsimplex.molecules`.

    Raises:
        ValueError: a line whose SMILES cannot be parsed; RDKit is not installed.
    """
    try:
        chemistry = molecules._Chemistry(bits=8, radius=2, hydrogens=False)
    except SystemExit:
        raise ValueError(
            f"cannot read {printable(table.path)}: molecules need RDKit: "
            "python -m pip install rdkit (the extra molecules)"
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
        {
            "atoms": np.concatenate([each.atoms for each in made]),
            "atom_offsets": np.cumsum([0, *(len(each.atoms) for each in made)]),
            "bonds": np.concatenate([each.bonds for each in made]),
            "bond_types": np.concatenate([each.bond_types for each in made]),
            "bond_offsets": np.cumsum([0, *(len(each.bonds) for each in made)]),
        },
        recipe,
    )
    targets = recipe.read_targets(table, "DATA")
    return Loaded(data, targets, [recipe.smiles], [[text] for text in table.columns[recipe.smiles]])
