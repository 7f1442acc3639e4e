"""Molecules as graphs: SMILES of a csv file become one npz that `nsimplex graph train` reads.

    python -m nsimplex.molecules qm9.csv qm9.npz --target band_gap

RDKit reads the SMILES; it is an optional dependency (``pip install rdkit``, or the extra
``molecules``). `docs/own-graph.md` describes the arrays of the file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._arguments import checked
from ._csv_text import read_rows
from ._printable import exit_code, printable
from ._whole_file import require_other, whole_file

__all__ = ["ATOM_FEATURES", "BOND_FEATURES", "BadMolecule", "convert", "main"]

#: Name of each categorical feature of an atom, and its number of values. The codes are 0, 1, ..
ATOM_FEATURES = {
    "atomic_number": 119,
    "chirality": 4,  # none, clockwise, counter-clockwise, other
    "degree": 11,
    "formal_charge": 11,  # -5 to 5
    "hydrogens": 9,
    "radical_electrons": 5,
    "hybridisation": 6,  # sp, sp2, sp3, sp3d, sp3d2, other
    "aromatic": 2,
    "in_ring": 2,
}
BOND_FEATURES = {
    "type": 5,  # single, double, triple, aromatic, other
    "stereo": 6,  # none, Z, E, cis, trans, other
    "conjugated": 2,
}
#: The longest SMILES, in letters.
LETTERS = 10_000
#: Symbols of the elements by atomic number; 0 is an atom of any element.
SYMBOLS = tuple(
    (
        "* H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge "
        "As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm "
        "Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U "
        "Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
    ).split()
)
_CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW")
_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BOND_TYPE = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_BOND_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS")


class BadMolecule(ValueError):
    """A line that does not contain a valid molecule with a target. The message names the line and
    the reason."""


class _Molecule(NamedTuple):
    line: int
    target: float
    atoms: np.ndarray  # uint8 [n, features]
    bonds: np.ndarray  # int32 [e, 2], the lower atom first
    bond_types: np.ndarray  # uint8 [e, features]
    fingerprint: np.ndarray  # uint8 [bits / 8]


def _code(names: Sequence[str], value: Any) -> int:
    """The index of an enumerator among the names. Any other enumerator gets the index after the
    last."""
    name = str(value)
    return names.index(name) if name in names else len(names)


def _atom_codes(atom: Any) -> list[int]:
    codes = [
        atom.GetAtomicNum(),
        _code(_CHIRALITY, atom.GetChiralTag()),
        atom.GetDegree(),
        atom.GetFormalCharge() + 5,
        atom.GetTotalNumHs(),
        atom.GetNumRadicalElectrons(),
        _code(_HYBRIDISATION, atom.GetHybridization()),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]
    return [
        min(max(code, 0), count - 1)
        for code, count in zip(codes, ATOM_FEATURES.values(), strict=True)
    ]


def _bond_codes(bond: Any) -> list[int]:
    return [
        _code(_BOND_TYPE, bond.GetBondType()),
        _code(_BOND_STEREO, bond.GetStereo()),
        int(bond.GetIsConjugated()),
    ]


class _Chemistry:
    """The parts of RDKit that this module uses."""

    def __init__(self, bits: int, radius: int, hydrogens: bool) -> None:
        try:
            from rdkit import Chem, RDLogger
            from rdkit.Chem import rdFingerprintGenerator
        except ImportError as error:
            raise SystemExit(
                f"molecules: RDKit is needed: {sys.executable} -m pip install rdkit (the extra "
                "molecules)"
            ) from error
        RDLogger.DisableLog("rdApp.*")  # this module reports errors itself, with the line
        self._chem = Chem
        self._hydrogens = hydrogens
        self._morgan = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)

    def molecule(self, line: int, smiles: str, target: float) -> _Molecule:
        if len(smiles) > LETTERS:  # RDKit takes time with their square
            raise BadMolecule(
                f"line {line}: expected a SMILES of at most {LETTERS} letters, got {len(smiles)}"
            )
        parsed = self._chem.MolFromSmiles(smiles)
        if parsed is None or parsed.GetNumAtoms() == 0:
            raise BadMolecule(f"line {line}: cannot parse the SMILES {_quoted(smiles)}")
        fingerprint = np.packbits(self._morgan.GetFingerprintAsNumPy(parsed))
        if self._hydrogens:
            parsed = self._chem.AddHs(parsed)
        bonds = sorted(
            (min(ends), max(ends), codes)
            for bond in parsed.GetBonds()
            for ends, codes in [((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()), _bond_codes(bond))]
        )
        return _Molecule(
            line,
            target,
            np.array([_atom_codes(atom) for atom in parsed.GetAtoms()], np.uint8),
            np.array([bond[:2] for bond in bonds], np.int32).reshape(-1, 2),
            np.array([bond[2] for bond in bonds], np.uint8).reshape(-1, len(BOND_FEATURES)),
            fingerprint,
        )


def _lines(path: Path, smiles: str, target: str) -> Iterator[tuple[int, str, str]]:
    """Line numbers, SMILES and targets of a csv file, which may be compressed."""
    for line, row in read_rows(path, (smiles, target)):
        yield line, (row[smiles] or "").strip(), (row[target] or "").strip()


def _quoted(text: str) -> str:
    """A text of a file for a message, cut if it is long."""
    return repr(text if len(text) <= 60 else text[:60] + "..")


def _number(text: str) -> float:
    """Parses a finite number. ``float`` alone would also accept 1_000 and digits of other
    scripts."""
    try:
        value = float(text) if text.isascii() and "_" not in text else np.nan
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(text)
    return value


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with whole_file(path, binary=True) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _offsets(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


@checked
def convert(
    source: str | os.PathLike[str],
    result: str | os.PathLike[str],
    *,
    target: str,
    smiles: str = "smiles",
    bits: int = 1024,
    radius: int = 2,
    hydrogens: bool = False,
    skip_bad: bool = False,
) -> tuple[int, list[str]]:
    """Writes the molecules of a csv file, gzipped or not, as graphs to an npz file.

    Args:
        source: csv with a header.
        result: npz. It is written completely or not at all.
        target: column of the numbers to predict.
        smiles: column of the molecules.
        bits: length of the Morgan fingerprints, a multiple of 8.
        radius: radius of the Morgan fingerprints; 2 is ECFP4.
        hydrogens: whether hydrogens become separate atoms. Otherwise the atom that they belong
            to counts them.
        skip_bad: leave out lines that do not contain a molecule with a finite target.

    Returns:
        The number of written molecules, and one error message per line that was left out.

    Raises:
        BadMolecule: a line that cannot be used, unless ``skip_bad``.
        ValueError: a column that is missing or named twice, a file that is not UTF-8, or no
            molecule at all.
    """
    if bits < 8 or bits % 8 != 0:
        raise ValueError(f"bits: expected a multiple of 8, got {bits}")
    if radius < 0:
        raise ValueError(f"radius: expected 0 or more, got {radius}")
    require_other(result, source)
    chemistry = _Chemistry(bits, radius, hydrogens)
    molecules, bad = [], []
    for line, text, number in _lines(Path(source), smiles, target):
        try:
            try:
                value = _number(number)
            except ValueError:
                raise BadMolecule(
                    f"line {line}: expected a number in column {target!r}, got {_quoted(number)}"
                ) from None
            molecules.append(chemistry.molecule(line, text, value))
        except BadMolecule as error:
            if not skip_bad:
                raise BadMolecule(f"cannot read {source}, {error}") from None
            bad.append(str(error))
    if not molecules:
        raise ValueError(f"cannot read {source}: no molecule in it")
    columns = {name: [getattr(each, name) for each in molecules] for name in _Molecule._fields}
    _write(
        Path(result),
        {
            "atoms": np.concatenate(columns["atoms"]),
            "atom_offsets": _offsets(columns["atoms"]),
            "atom_categories": np.array(list(ATOM_FEATURES.values()), np.int64),
            "bonds": np.concatenate(columns["bonds"]),
            "bond_types": np.concatenate(columns["bond_types"]),
            "bond_offsets": _offsets(columns["bonds"]),
            "bond_categories": np.array(list(BOND_FEATURES.values()), np.int64),
            "targets": np.array(columns["target"]),
            "fingerprints": np.stack(columns["fingerprint"]),
            "lines": np.array(columns["line"], np.int64),
        },
    )
    return len(molecules), bad


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda: _convert(_options(arguments)), "molecules")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m nsimplex.molecules", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("source", help="csv with a header, gzipped or not")
    parser.add_argument("result", help="npz to write")
    parser.add_argument("--target", required=True, help="column of the numbers to predict")
    parser.add_argument("--smiles", default="smiles", help="column of the molecules (%(default)s)")
    parser.add_argument(
        "--bits", type=int, default=1024, help="bits of the Morgan fingerprints (%(default)s)"
    )
    parser.add_argument(
        "--radius", type=int, default=2, help="radius of the Morgan fingerprints (%(default)s)"
    )
    parser.add_argument("--hydrogens", action="store_true", help="hydrogens as atoms of their own")
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out lines that cannot be used, and name them"
    )
    return parser.parse_args(arguments)


def _convert(options: argparse.Namespace) -> None:
    written, bad = convert(**vars(options))
    for reason in bad:
        print(f"molecules: left out {printable(reason)}", file=sys.stderr)
    print(f"{options.result}: {written} molecules, {len(bad)} lines left out")


if __name__ == "__main__":
    sys.exit(main())
