"""Tasks on molecules: one number of a molecule from tokens of its atoms and bonds."""

from __future__ import annotations

import csv
import functools
import io
import os
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..._csv_text import read_text
from .memory import choose
from .quantities import chosen_rows, parts_of
from .smiles import read_smiles
from .task import Batch, Task

__all__ = ["TASKS", "absent", "data_file"]

#: Codes of an atom: number, charge + 5, hydrogens, degree, aromatic, ring; of a bond: kind, ring.
_ATOM_PARTS, _BOND_PARTS = (119, 11, 9, 11, 2, 2), (6, 2)
_WIDTH = 3 + len(_ATOM_PARTS) + len(_BOND_PARTS)


class _Source(NamedTuple):
    """A file of molecules: its columns, and the most tokens and molecules that are taken."""

    file: str
    smiles: str
    target: str
    tokens: int
    molecules: int


_SOURCES = {
    "molecules": _Source("delaney.csv", "smiles", "logp", 48, 10**6),
    "freesolv": _Source("freesolv.csv", "smiles", "freesolv", 48, 10**6),
    "lipophilicity": _Source("lipo.csv", "smiles", "lipo", 64, 10**6),
    "qm8": _Source("qm8.csv.gz", "smiles", "E1-CC2", 48, 10**6),
    "qm9-gap": _Source("qm9_homo_lumo_gap.csv", "smiles", "band_gap", 48, 20_000),
}


def data_file(*parts: str) -> Path:
    """A file of the folder that NSIMPLEX_DATA names."""
    return Path(os.environ.get("NSIMPLEX_DATA", ""), *parts)


def absent(*parts: str) -> str:
    """Says that a file is absent, or ""."""
    if os.environ.get("NSIMPLEX_DATA") and data_file(*parts).exists():
        return ""
    return f"NSIMPLEX_DATA has no {'/'.join(parts)}"


def _tokens(smiles: str, most: int) -> Tensor | None:
    """int64 [1 + atoms + bonds, fields], the token of the molecule first; None if there are more
    than ``most``."""
    atoms, bonds = read_smiles(smiles)
    count = 1 + len(atoms) + len(bonds)
    if count > most:
        return None
    made = torch.zeros(count, _WIDTH, dtype=torch.int64)
    for place, atom in enumerate(atoms):
        charge = min(max(atom.charge + 5, 0), 10)
        codes = (atom.number, charge, min(atom.hydrogens, 8), min(atom.degree, 10))
        made[1 + place, : 3 + len(_ATOM_PARTS)] = torch.tensor(
            [1, place, place, *codes, atom.aromatic, atom.ring]
        )
    for place, bond in enumerate(bonds, 1 + len(atoms)):
        made[place, :3] = torch.tensor([2, bond.first, bond.second])
        made[place, 3 + len(_ATOM_PARTS) :] = torch.tensor([bond.kind, bond.ring])
    return made


def _rows(path: Path, source: _Source) -> list[tuple[int, str, str]]:
    """Lines, SMILES and targets. If two columns have one name, as in QM8, the first counts."""
    rows = list(csv.reader(io.StringIO(read_text(path), newline="")))
    for name in (source.smiles, source.target):
        if not rows or name not in rows[0]:
            raise ValueError(f"cannot read {path}: expected a column {name!r}")
    smiles, target = rows[0].index(source.smiles), rows[0].index(source.target)
    for line, row in enumerate(rows[1:], 2):
        if len(row) <= max(smiles, target):
            raise ValueError(f"cannot read {path}, line {line}: got {len(row)} columns")
    return [(line, row[smiles].strip(), row[target]) for line, row in enumerate(rows[1:], 2)]


@functools.cache
def _molecules(name: str) -> tuple[list[Tensor], Tensor, dict[str, Tensor]]:
    """Tokens of every molecule that is small enough, targets of mean 0 and spread 1, and splits."""
    source = _SOURCES[name]
    path = data_file("molecules", source.file)
    rows = _rows(path, source)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(11))
    tokens, targets = [], []
    for place in order[: source.molecules].tolist():
        line, text, target = rows[place]
        try:
            made, value = _tokens(text, source.tokens), float(target)
        except ValueError as error:
            raise ValueError(f"cannot read {path}, line {line}: {error}") from None
        if made is not None:
            tokens.append(made)
            targets.append(value)
    y = torch.tensor(targets)
    parts = parts_of(len(y))
    seen = y[parts["train"]]
    return tokens, (y - seen.mean()) / seen.std(), parts


def _draw(name: str, count: int, generator: torch.Generator, split: str) -> Batch:
    tokens, y, parts = _molecules(name)
    rows = chosen_rows(parts[split], count, generator, split)
    longest = max(len(tokens[row]) for row in rows.tolist())
    most = _SOURCES[name].tokens
    # Padding is a separate kind, code 3, whose other codes are 0.
    fields = torch.zeros(len(rows), longest, _WIDTH, dtype=torch.int64)
    fields[..., 0] = 3
    names = choose(len(rows), most, most, generator)
    for place, row in enumerate(rows.tolist()):
        own = tokens[row].clone()
        own[:, 1:3] = names[place][own[:, 1:3]]
        fields[place, : len(own)] = own
    targets = torch.full(fields.shape[:2], torch.nan)
    targets[:, 0] = y[rows]
    return Batch(fields, None, targets)


def _task(name: str, reason: str, level: float, steps: int = 400) -> Task:
    most = _SOURCES[name].tokens
    return Task(
        name=name,
        reason=reason,
        order=2,
        fields=(4, most, most, *_ATOM_PARTS, *_BOND_PARTS),
        classes=0,
        draw=functools.partial(_draw, name),
        level=level,
        steps=steps,
        missing=functools.partial(absent, "molecules", _SOURCES[name].file),
    )


TASKS = (
    _task(
        "molecules",
        "ESOL: the solubility of small molecules. Atoms and bonds are tokens, and a bond "
        "names its two atoms. An atom with its neighbour is a tuple of a bond and two atoms. "
        "Much of the solubility is a sum over atoms, for which no tuple is needed.",
        level=0.8,
    ),
    _task(
        "freesolv",
        "FreeSolv: the energy that a small molecule gains in water. Tokens are those of the task "
        "molecules. What a group of atoms gains depends on its neighbours, which a tuple of a "
        "bond and two atoms shows. There are only 450 molecules to train on, so models of any "
        "order may learn them by heart.",
        level=0.8,
    ),
    _task(
        "lipophilicity",
        "How a molecule of the size of a drug divides between octanol and water. Tokens are those "
        "of the task molecules, up to 64. Known rules add up contributions of atoms together with "
        "their neighbours, so a tuple of a bond and two atoms is what such a rule reads.",
        level=0.6,
    ),
    _task(
        "qm8",
        "QM8: the energy of the first excited state of molecules of at most eight heavy atoms. "
        "It depends on which bonds alternate, so on chains of atoms and bonds. A tuple joins two "
        "bonds at an atom, and layers make longer chains.",
        level=0.6,
    ),
    _task(
        "qm9-gap",
        "QM9: the gap between the highest filled and the lowest empty orbital, for 20,000 "
        "molecules of at most nine heavy atoms that are chosen once. The gap depends on chains "
        "of double bonds and on rings, as in the task qm8.",
        level=0.7,
    ),
)
