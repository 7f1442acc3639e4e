"""A small reader of SMILES for the benchmark, so that its molecules need no other package.

It reads what OpenSMILES calls a molecule: organic and bracket atoms, branches, ring closures, and
several parts with dots. Chirality, isotopes and the side of a double bond are read and left out.
Aromatic atoms are those that the text writes in lower case; nothing is perceived.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...molecules import SYMBOLS

__all__ = ["Atom", "Bond", "read_smiles"]

_NUMBER = {symbol: number for number, symbol in enumerate(SYMBOLS)}
#: Valences of the atoms that may stand without a bracket.
_VALENCES = {
    "B": (3,), "C": (4,), "N": (3, 5), "O": (2,), "P": (3, 5), "S": (2, 4, 6),
    "F": (1,), "Cl": (1,), "Br": (1,), "I": (1,), "*": (0,),
}  # fmt: skip
_ORDERS = {"-": 1, "/": 1, "\\": 1, "=": 2, "#": 3, ":": 4, "$": 5}
_BRACKET = re.compile(
    r"\[\d*(?P<symbol>[A-Z][a-z]?|[a-z][a-z]?|\*)@*(?:TH\d|AL\d|SP\d|TB\d+|OH\d+)?"
    r"(?P<hydrogens>H\d*)?(?P<charge>\++\d*|-+\d*)?(?::\d+)?\]"
)
_TOKEN = re.compile(
    r"(?P<bracket>\[[^\]]*\])|(?P<atom>Cl|Br|[BCNOPSFI*]|[bcnops])|(?P<bond>[-=#$:/\\])"
    r"|(?P<ring>%\d\d|\d)|(?P<other>[().])"
)


class Atom(NamedTuple):
    """An atom, except a hydrogen that is counted at another atom."""

    number: int  # in the table of elements; 0 is any element
    charge: int
    hydrogens: int
    aromatic: bool
    degree: int
    ring: bool


class Bond(NamedTuple):
    """A bond of two atoms by their places, the lower first."""

    first: int
    second: int
    kind: int  # 1, 2, 3 by its order, 4 aromatic, 5 quadruple
    ring: bool


class _Draft(NamedTuple):
    symbol: str
    aromatic: bool
    charge: int
    hydrogens: int | None  # None: as the valence says


def _charge(text: str) -> int:
    digits = text.lstrip("+-")
    size = int(digits) if digits else len(text)
    return -size if text.startswith("-") else size


def _bracket(text: str, smiles: str) -> _Draft:
    found = _BRACKET.fullmatch(text)
    symbol = found["symbol"] if found else ""
    if not found or symbol.capitalize() not in _NUMBER:
        raise ValueError(f"expected an atom, got {text!r} in the SMILES {smiles!r}")
    given = found["hydrogens"] or "H0"
    return _Draft(
        symbol.capitalize(),
        symbol[0].islower(),
        _charge(found["charge"]) if found["charge"] else 0,
        int(given[1:] or 1),
    )


def _parse(smiles: str) -> tuple[list[_Draft], dict[tuple[int, int], int]]:
    """Atoms as they are written, and bonds by their two places; kind 0 is a bond without a sign."""
    atoms: list[_Draft] = []
    bonds: dict[tuple[int, int], int] = {}
    open_rings: dict[int, tuple[int, int]] = {}
    branches: list[int] = []
    last, kind, place = -1, 0, 0

    def join(first: int, second: int, kind: int) -> None:
        if first == second or (min(first, second), max(first, second)) in bonds:
            raise ValueError(f"two atoms have two bonds in the SMILES {smiles!r}")
        bonds[min(first, second), max(first, second)] = kind

    while place < len(smiles):
        found = _TOKEN.match(smiles, place)
        if not found:
            raise ValueError(f"expected a SMILES, got {smiles[place]!r} in {smiles!r}")
        token, place = found[0], found.end()
        if found["bracket"] or found["atom"]:
            made = _bracket(token, smiles) if found["bracket"] else None
            atoms.append(made or _Draft(token.capitalize(), token.islower(), 0, None))
            if last >= 0:
                join(last, len(atoms) - 1, kind)
            last, kind = len(atoms) - 1, 0
        elif found["bond"]:
            kind = _ORDERS[token]
        elif found["ring"] and last >= 0:
            number = int(token.lstrip("%"))
            if number in open_rings:
                start, given = open_rings.pop(number)
                join(start, last, kind or given)
            else:
                open_rings[number] = last, kind
            kind = 0
        elif token == "(" and last >= 0:
            branches.append(last)
        elif token == ")" and branches:
            last = branches.pop()
        elif token == ".":
            last, kind = -1, 0
        else:
            raise ValueError(f"{token!r} is in the wrong place in the SMILES {smiles!r}")
    if open_rings or branches or kind or not atoms:
        raise ValueError(f"the SMILES {smiles!r} is not complete")
    return atoms, bonds


def _in_rings(count: int, bonds: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """The bonds that are part of a ring, that is, all but bridges."""
    near: list[list[int]] = [[] for _ in range(count)]
    for first, second in bonds:
        near[first].append(second)
        near[second].append(first)
    reached, lowest = [-1] * count, [0] * count
    rings, clock = set(bonds), 0
    for root in range(count):
        if reached[root] >= 0:
            continue
        reached[root] = lowest[root] = clock
        stack = [(root, -1, iter(near[root]))]
        while stack:
            atom, parent, others = stack[-1]
            other = next(others, None)
            if other is None:
                stack.pop()
                if parent >= 0:
                    lowest[parent] = min(lowest[parent], lowest[atom])
                    if lowest[atom] > reached[parent]:
                        rings.discard((min(atom, parent), max(atom, parent)))
            elif reached[other] < 0:
                clock += 1
                reached[other] = lowest[other] = clock
                stack.append((other, atom, iter(near[other])))
            elif other != parent:
                lowest[atom] = min(lowest[atom], reached[other])
    return rings


def _implicit(atom: _Draft, kinds: list[int]) -> int:
    """Hydrogens of an atom without a bracket: what its lowest sufficient valence leaves."""
    used = sum(1 if kind == 4 else kind for kind in kinds)
    valences = _VALENCES[atom.symbol]
    if atom.aromatic:  # one more electron is in the aromatic system
        return max(0, valences[0] - used - 1)
    return next((valence - used for valence in valences if valence >= used), 0)


def read_smiles(smiles: str) -> tuple[list[Atom], list[Bond]]:
    """The atoms of a molecule in the order of the text, and its bonds in the order of their atoms.

    An atom ``[H]`` with one single bond to another element is counted by that atom.
    A bond without a sign is aromatic if both atoms are and the bond is part of a ring.

    Raises:
        ValueError: a text that is no SMILES. The message has the part and the text.
    """
    drafts, written = _parse(smiles)
    rings = _in_rings(len(drafts), list(written))
    bonds = {
        pair: kind
        or (4 if pair in rings and drafts[pair[0]].aromatic and drafts[pair[1]].aromatic else 1)
        for pair, kind in written.items()
    }
    near: list[list[int]] = [[] for _ in drafts]
    for first, second in bonds:
        near[first].append(second)
        near[second].append(first)
    plain = ("H", False, 0, 0)
    hidden = {
        place: near[place][0]
        for place, draft in enumerate(drafts)
        if draft == plain and len(near[place]) == 1 and drafts[near[place][0]].symbol != "H"
    }
    kept = [place for place in range(len(drafts)) if place not in hidden]
    new = {place: number for number, place in enumerate(kept)}
    left = {pair: kind for pair, kind in bonds.items() if pair[0] in new and pair[1] in new}
    atoms = []
    for place in kept:
        draft = drafts[place]
        kinds = [bonds[min(place, other), max(place, other)] for other in near[place]]
        own = _implicit(draft, kinds) if draft.hydrogens is None else draft.hydrogens
        joined = [(min(place, other), max(place, other)) for other in near[place] if other in new]
        atoms.append(
            Atom(
                _NUMBER[draft.symbol],
                draft.charge,
                own + sum(other in hidden for other in near[place]),
                draft.aromatic,
                len(joined),
                any(pair in rings for pair in joined),
            )
        )
    return atoms, sorted(
        Bond(new[first], new[second], kind, (first, second) in rings)
        for (first, second), kind in left.items()
    )
