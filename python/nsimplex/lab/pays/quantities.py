"""Tasks whose targets are numbers: point sets, tables and molecules."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .memory import choose
from .task import Batch, Task

__all__ = ["TASKS"]


def _three_body(count: int, generator: torch.Generator, split: str) -> Batch:
    points = 12 if split == "long" else 8
    places = torch.rand(count, points, 2, generator=generator) * (points / 8) ** 0.5 * 2
    to = places.unsqueeze(1) - places.unsqueeze(2)  # [B, i, j]: from i to j
    distance = to.square().sum(-1)
    near = (-2 * distance).exp() * (1 - torch.eye(points))
    unit = to / (distance.sqrt().unsqueeze(-1) + 1e-9)
    # Sum over j < k of w_ij w_ik cos(angle at i)^2; j = k would be 1 and is left out.
    cosines = (unit.unsqueeze(3) * unit.unsqueeze(2)).sum(-1).square()
    pairs = near.unsqueeze(3) * near.unsqueeze(2) * cosines * (1 - torch.eye(points))
    energy = pairs.sum((2, 3)) / 2
    fields = torch.zeros(count, points, 1, dtype=torch.int64)
    return Batch(fields, places, 4 * energy)


_COLUMNS = 8


def _made_table(count: int, generator: torch.Generator, split: str) -> Batch:
    x = torch.randn(count, _COLUMNS, generator=generator)
    y = (x[:, 0] * x[:, 1] * x[:, 2] + x[:, 3] * x[:, 4] + x[:, 5]) / 3**0.5
    return _row_of_cells(x, y)


def _row_of_cells(x: Tensor, y: Tensor) -> Batch:
    """A token per column, after a token that has the target."""
    count, columns = x.shape
    fields = torch.arange(columns + 1).repeat(count, 1).unsqueeze(-1)
    numbers = torch.cat([torch.zeros(count, 1), x], 1).unsqueeze(-1)
    targets = torch.full((count, columns + 1), torch.nan)
    targets[:, 0] = y
    return Batch(fields, numbers, targets)


def _parts(count: int) -> dict[str, Tensor]:
    """Rows of each split, 70 %, 10 % and 20 %."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    first, second = int(0.7 * count), int(0.8 * count)
    return dict(train=order[:first], valid=order[first:second], test=order[second:])


@functools.cache
def _diabetes_table() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    from sklearn.datasets import load_diabetes

    found: Any = load_diabetes()
    x, y = torch.tensor(found["data"]).float(), torch.tensor(found["target"]).float()
    parts = _parts(len(y))
    seen = y[parts["train"]]
    return x * len(y) ** 0.5, (y - seen.mean()) / seen.std(), parts


def _chosen_rows(rows: Tensor, count: int, generator: torch.Generator, split: str) -> Tensor:
    """Random rows to train on; otherwise all rows, however many were asked for."""
    if split != "train":
        return rows
    return rows[torch.randint(len(rows), (count,), generator=generator)]


def _diabetes(count: int, generator: torch.Generator, split: str) -> Batch:
    x, y, parts = _diabetes_table()
    rows = _chosen_rows(parts[split], count, generator, split)
    return _row_of_cells(x[rows], y[rows])


def _no_tables() -> str:
    try:
        import sklearn.datasets  # noqa: F401
    except ImportError:
        return "scikit-learn is not installed"
    return ""


_MOST_TOKENS = 48
#: Features of nsimplex.molecules that the tokens of atoms and of bonds have.
_ATOM_PARTS, _BOND_PARTS = (119, 11, 11, 9, 6, 2, 2), (5, 2)


def _molecule_file() -> Path:
    return Path(os.environ.get("NSIMPLEX_DATA", "")) / "molecules" / "delaney.csv"


@functools.cache
def _molecules() -> tuple[list[Tensor], Tensor, dict[str, Tensor]]:
    """Tokens of every molecule of ESOL that is small enough, targets and splits."""
    import numpy

    from ...molecules import convert

    header = _molecule_file().read_text(encoding="utf-8").splitlines()[0].split(",")
    target = next(name for name in header if name == "logp" or name.startswith("measured"))
    smiles = next(name for name in header if name.lower() == "smiles")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "molecules.npz"
        convert(_molecule_file(), path, smiles=smiles, target=target)
        arrays = numpy.load(path)
        found = {name: torch.tensor(arrays[name].astype("float64")) for name in arrays.files}
    atoms, bonds = found["atom_offsets"].long(), found["bond_offsets"].long()
    tokens, kept = [], []
    for number in range(len(found["targets"])):
        own = slice(int(atoms[number]), int(atoms[number + 1]))
        joined = slice(int(bonds[number]), int(bonds[number + 1]))
        count, pairs = own.stop - own.start, joined.stop - joined.start
        if 1 + count + pairs > _MOST_TOKENS:
            continue
        made = torch.zeros(1 + count + pairs, 3 + len(_ATOM_PARTS) + len(_BOND_PARTS)).long()
        made[1 : 1 + count, 0] = 1
        made[1 : 1 + count, 1:3] = torch.arange(count).unsqueeze(1)
        parts = found["atoms"][own].long()[:, [0, 2, 3, 4, 6, 7, 8]]
        made[1 : 1 + count, 3 : 3 + len(_ATOM_PARTS)] = parts
        made[1 + count :, 0] = 2
        made[1 + count :, 1:3] = found["bonds"][joined].long()
        made[1 + count :, 3 + len(_ATOM_PARTS) :] = found["bond_types"][joined].long()[:, [0, 2]]
        tokens.append(made)
        kept.append(number)
    y = found["targets"][kept].float()
    parts = _parts(len(kept))
    seen = y[parts["train"]]
    return tokens, (y - seen.mean()) / seen.std(), parts


def _esol(count: int, generator: torch.Generator, split: str) -> Batch:
    tokens, y, parts = _molecules()
    rows = _chosen_rows(parts[split], count, generator, split)
    longest = max(len(tokens[row]) for row in rows.tolist())
    width = tokens[0].shape[1]
    # Padding is a kind of its own, code 3, whose other codes are 0.
    fields = torch.zeros(len(rows), longest, width, dtype=torch.int64)
    fields[..., 0] = 3
    names = choose(len(rows), _MOST_TOKENS, _MOST_TOKENS, generator)
    for place, row in enumerate(rows.tolist()):
        own = tokens[row].clone()
        own[:, 1:3] = names[place][own[:, 1:3]]
        fields[place, : len(own)] = own
    targets = torch.full(fields.shape[:2], torch.nan)
    targets[:, 0] = y[rows]
    return Batch(fields, None, targets)


def _no_molecules() -> str:
    if not os.environ.get("NSIMPLEX_DATA") or not _molecule_file().exists():
        return "NSIMPLEX_DATA has no molecules/delaney.csv"
    try:
        import rdkit  # noqa: F401
    except ImportError:
        return "RDKit is not installed"
    return ""


TASKS = (
    Task(
        name="molecules",
        reason="ESOL: the solubility of small molecules. Atoms and bonds are tokens, and a bond "
        "names its two atoms. An atom with its neighbour is a tuple of a bond and two atoms. "
        "Much of the solubility is a sum over atoms, for which no tuple is needed.",
        order=2,
        fields=(4, _MOST_TOKENS, _MOST_TOKENS, *_ATOM_PARTS, *_BOND_PARTS),
        classes=0,
        draw=_esol,
        level=0.8,
        missing=_no_molecules,
    ),
    Task(
        name="three-body",
        reason="Eight points in the plane. A point asks for a sum over pairs of its neighbours of "
        "a function of the angle between them, which is a sum over tuples by definition. The "
        "angle term is a polynomial in sums over single neighbours, so wide layers of order 1 "
        "can represent it too.",
        order=2,
        fields=(1,),
        classes=0,
        draw=_three_body,
        numbers=2,
        longer="12 points of the same density in place of 8",
    ),
    Task(
        name="made-table",
        reason="Tokens are the eight columns of a row. The target is x0 x1 x2 + x3 x4 + x5, so a "
        "tuple of three columns, one of two, and one column matter. The columns are fixed, so a "
        "feed-forward layer after a mean can learn the products as well.",
        order=2,
        fields=(_COLUMNS + 1,),
        classes=0,
        draw=_made_table,
        numbers=1,
    ),
    Task(
        name="diabetes",
        reason="The table of 442 patients that scikit-learn has, ten columns as tokens. Linear "
        "models explain about half of the variance, and interactions are known to add little. "
        "Nearly a control.",
        order=1,
        fields=(11,),
        classes=0,
        draw=_diabetes,
        numbers=1,
        level=0.4,
        steps=200,
        missing=_no_tables,
    ),
)
