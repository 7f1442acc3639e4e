"""The molecules and tables of the benchmark of orders, against independent computations."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path

import pytest
import torch
from pays_batches import drawn

from nsimplex.lab.pays import TASKS
from nsimplex.lab.pays.__main__ import main
from nsimplex.lab.pays.molecule_tasks import _molecules
from nsimplex.lab.pays.smiles import read_smiles


def has(name):
    return os.environ.get("NSIMPLEX_DATA") and not TASKS[name].missing()


@pytest.mark.parametrize(
    "smiles, hydrogens",
    [
        ("CCO", [3, 2, 1]),
        ("C=CC#N", [2, 1, 0, 0]),
        ("c1cc[nH]c1", [1, 1, 1, 1, 1]),
        ("c1ccncc1", [1, 1, 1, 0, 1, 1]),
        ("CS(=O)(=O)Cl", [3, 0, 0, 0, 0]),
        ("CP(O)O", [3, 0, 1, 1]),
        ("OP(=O)(O)O", [1, 0, 0, 1, 1]),
        ("[H]C([H])([H])[H]", [4]),
        ("[H][H]", [0, 0]),
        ("[NH4+]", [4]),
        ("BrC(Br)I", [0, 1, 0, 0]),
    ],
)
def test_atoms_have_the_hydrogens_that_their_valence_leaves(smiles, hydrogens):
    assert [atom.hydrogens for atom in read_smiles(smiles)[0]] == hydrogens


def test_bonds_rings_and_charges_are_those_of_the_text():
    atoms, bonds = read_smiles("c1ccccc1-c1ccccc1C(=O)[O-].[Na+]")
    assert [atom.charge for atom in atoms] == [0] * 14 + [-1, 1]
    assert [atom.ring for atom in atoms] == [True] * 12 + [False] * 4
    kinds = {(bond.first, bond.second): (bond.kind, bond.ring) for bond in bonds}
    assert len(bonds) == 12 + 1 + 1 + 2
    assert kinds[0, 5] == (4, True) and kinds[5, 6] == (1, False)
    assert kinds[12, 13] == (2, False) and kinds[12, 14] == (1, False)
    # Without a sign, the bond of two rings is single because it is in no ring.
    assert read_smiles("c1ccccc1c1ccccc1")[1] == read_smiles("c1ccccc1-c1ccccc1")[1]
    cage = read_smiles("C1C2OC3C1OC23")
    assert all(bond.ring for bond in cage[1]) and len(cage[1]) == 9
    assert [bond.ring for bond in read_smiles("C1CC1CC1CC1")[1]].count(False) == 2
    assert read_smiles("C%10CC%10") == read_smiles("C1CC1")
    assert read_smiles("F/C=C/F") == read_smiles("FC=CF")
    assert read_smiles("[13C@@H](F)(Cl)Br") == read_smiles("C(F)(Cl)Br")
    assert [atom.number for atom in read_smiles("[Fe+2].[se]1cccc1")[0]] == [26, 34, 6, 6, 6, 6]
    assert read_smiles("C=1CC1")[1] == read_smiles("C1CC=1")[1]


def test_the_degree_counts_the_bonds_of_an_atom():
    atoms, bonds = read_smiles("[H]OC(=O)c1ccccc1N(C)C")
    for place, atom in enumerate(atoms):
        assert atom.degree == sum(place in (bond.first, bond.second) for bond in bonds)


@pytest.mark.parametrize(
    "smiles, said",
    [
        ("", "is not complete"),
        ("C1CC", "is not complete"),
        ("C(C", "is not complete"),
        ("C=", "is not complete"),
        ("C)C", "')' is in the wrong place"),
        ("1CC1", "'1' is in the wrong place"),
        ("C!C", "expected a SMILES, got '!'"),
        ("[Xx]", "expected an atom, got '[Xx]'"),
        ("C11", "two atoms have two bonds"),
        ("C12CC12", "two atoms have two bonds"),
    ],
)
def test_what_is_no_smiles_is_refused(smiles, said):
    with pytest.raises(ValueError) as error:
        read_smiles(smiles)
    assert said in str(error.value)


@pytest.mark.skipif(not has("qm8"), reason="NSIMPLEX_DATA has no molecules/qm8.csv.gz")
def test_hydrogens_that_a_file_writes_are_those_of_the_valences():
    path = Path(os.environ["NSIMPLEX_DATA"]) / "molecules" / "qm8.csv.gz"
    with gzip.open(path, "rt") as file:
        texts = [row[0] for row in csv.reader(file)][1::20]
    compared = 0
    for text in texts:
        atoms = read_smiles(text)[0]
        # The hydrogen of an aromatic nitrogen, and those of a bracket, must be written.
        if any(atom.number == 7 and atom.aromatic and atom.hydrogens for atom in atoms):
            continue
        if text.count("[") != text.count("[H]"):
            continue
        plain = re.sub(r"\(\[H\]\)|\[H\]", "", text)
        assert [atom[:5] for atom in atoms] == [atom[:5] for atom in read_smiles(plain)[0]]
        compared += 1
    assert compared > 900


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """A folder of data with eleven molecules, one of which is too large."""
    folder = tmp_path / "molecules"
    folder.mkdir()
    rows = ["CCO,1", "CCN,2", "c1ccccc1,3", "CC(=O)O,4", "C1CC1,5", "CCl,6", "CC#N,7", "OCCO,8"]
    rows += ["CCCC,9", "CF,10", "C" * 40 + ",11"]
    (folder / "delaney.csv").write_text("\n".join(["smiles,logp", *rows]) + "\n")
    monkeypatch.setenv("NSIMPLEX_DATA", str(tmp_path))
    _molecules.cache_clear()
    yield folder / "delaney.csv"
    _molecules.cache_clear()


def test_tokens_are_the_atoms_and_bonds_of_the_molecules(small_data):
    tokens, y, parts = _molecules("molecules")
    assert len(tokens) == 10 and sorted(torch.cat(list(parts.values())).tolist()) == [*range(10)]
    assert y[parts["train"]].mean().item() == pytest.approx(0, abs=1e-6)
    assert y[parts["train"]].std().item() == pytest.approx(1)
    texts = {tuple(line.split(",")) for line in small_data.read_text().splitlines()[1:]}
    sizes = sorted(
        1 + len(read_smiles(text)[0]) + len(read_smiles(text)[1]) for text, _ in texts if
        len(text) < 40
    )  # fmt: skip
    assert sorted(len(made) for made in tokens) == sizes
    batch = drawn("molecules", 30)
    for fields, targets in zip(batch.fields.tolist(), batch.targets):
        kinds = [token[0] for token in fields]
        assert kinds[0] == 0 and kinds == sorted(kinds)
        names = [token[1] for token in fields if token[0] == 1]
        assert len(set(names)) == len(names)
        assert all(token[1] in names and token[2] in names for token in fields if token[0] == 2)
        assert all(sum(token[1:]) == 0 for token in fields if token[0] == 3)
        assert not targets[0].isnan() and targets[1:].isnan().all()
        degrees = {token[1]: token[6] for token in fields if token[0] == 1}
        ends = [end for token in fields if token[0] == 2 for end in token[1:3]]
        assert degrees == {name: ends.count(name) for name in names}


def test_names_of_atoms_change_and_targets_do_not(small_data):
    first, second = drawn("molecules", split="test"), drawn("molecules", seed=4, split="test")
    assert torch.equal(first.targets[:, 0], second.targets[:, 0])
    assert not torch.equal(first.fields[..., 1], second.fields[..., 1])
    assert torch.equal(first.fields[..., 3:], second.fields[..., 3:])


@pytest.mark.parametrize(
    "text, said",
    [
        ("smiles,logp\nCC,1\nC1,2\n", "line 3: the SMILES 'C1' is not complete"),
        ("smiles,logp\nCC,x\n", "line 2: could not convert string to float: 'x'"),
        ("smiles,logp\nCC\n", "line 2: got 1 columns"),
        ("smiles,other\nCC,1\n", "expected a column 'logp'"),
    ],
)
def test_a_wrong_file_of_molecules_is_one_line(small_data, text, said, capsys, tmp_path):
    small_data.write_text(text)
    call = ["molecules", "--quick", "--models", "1x1", "--out", str(tmp_path / "pays.jsonl")]
    assert main(call) == 2
    message = capsys.readouterr().err
    assert "delaney.csv" in message and said in message and message.count("\n") == 1


def test_the_table_of_friedman_is_its_formula():
    batch = drawn("friedman", 4000)
    x = (batch.numbers[:, 1:, 0].double() + 1) / 2
    clean = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    clean += 10 * x[:, 3] + 5 * x[:, 4]
    noise = batch.targets[:, 0].double() * 5 + 14.4 - clean
    assert noise.std().item() == pytest.approx(1, abs=0.05)
    assert noise.mean().item() == pytest.approx(0, abs=0.08)
    assert abs(batch.targets[:, 0].mean().item()) < 0.1
    assert 0.9 < batch.targets[:, 0].std().item() < 1.1


def test_rows_of_a_table_keep_their_answers():
    datasets = pytest.importorskip("sklearn.datasets")
    table = datasets.load_breast_cancer()
    batch = drawn("breast-cancer", split="test")
    assert batch.targets[:, 1:].max() == -1
    x = torch.tensor(table["data"])
    z = (x - x.mean(0)) / x.std(0)
    near = lambda row: (z - row).square().sum(1).argmin()
    for row, target in zip(batch.numbers[:20, 1:, 0].double(), batch.targets[:20, 0]):
        # The splits have other means than the whole table, by a little.
        assert table["target"][near(row)] == target
    seen = {tuple(row) for row in drawn("breast-cancer", 3000).numbers[..., 0].tolist()}
    assert not seen & {tuple(row) for row in batch.numbers[..., 0].tolist()}


@pytest.mark.parametrize("name", ["code", "text"])
def test_bytes_ask_for_the_next_byte_of_their_file(name, tmp_path, monkeypatch):
    from nsimplex.lab.pays.sequences import _plays

    if name == "text":
        (tmp_path / "text").mkdir()
        words = " ".join(f"word{number}" for number in range(900))
        (tmp_path / "text" / "tinyshakespeare.txt").write_text(words)
        monkeypatch.setenv("NSIMPLEX_DATA", str(tmp_path))
        _plays.cache_clear()
    elif TASKS["code"].missing():
        pytest.skip(TASKS["code"].missing())
    batch, test = drawn(name), drawn(name, split="test")
    assert torch.equal(batch.fields[:, 1:, 0], batch.targets[:, :-1])
    if name == "text":
        for row, last in zip(batch.fields[..., 0].tolist(), batch.targets[:, -1].tolist()):
            assert bytes([*row, last]).decode() in words[: len(words) * 9 // 10]
        for row in test.fields[..., 0].tolist():
            assert bytes(row).decode() in words[len(words) * 9 // 10 :]
        _plays.cache_clear()
