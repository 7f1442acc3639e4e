"""SMILES to graphs: what the converter writes, and what it says of lines that are no molecules."""

import gzip
import os
import random

import numpy as np
import pytest
from stored_changes import mutated, sweep

pytest.importorskip("rdkit", reason="the optional dependency RDKit is absent")

from nsimplex import molecules

GOOD = "smiles,gap,name\nCCO,1.5,ethanol\nC1=CC=CC=C1,-2,benzene\nC,0,methane\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in.csv").write_text(GOOD)
    return tmp_path / "in.csv", tmp_path / "out.npz"


def test_graphs_of_small_molecules(files):
    source, result = files
    assert molecules.convert(source, result, target="gap") == (3, [])
    made = np.load(result)
    assert made["atom_offsets"].tolist() == [0, 3, 9, 10]
    assert made["bond_offsets"].tolist() == [0, 2, 8, 8]
    assert made["bonds"].tolist() == [
        [0, 1],
        [1, 2],
        [0, 1],
        [0, 5],
        [1, 2],
        [2, 3],
        [3, 4],
        [4, 5],
    ]
    assert made["targets"].tolist() == [1.5, -2, 0]
    assert made["lines"].tolist() == [2, 3, 4]
    names = list(molecules.ATOM_FEATURES)
    atom = {name: made["atoms"][:, names.index(name)] for name in names}
    assert atom["atomic_number"].tolist() == [6, 6, 8, 6, 6, 6, 6, 6, 6, 6]
    assert atom["hydrogens"].tolist() == [3, 2, 1, 1, 1, 1, 1, 1, 1, 4]
    assert atom["aromatic"].tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0]
    assert atom["formal_charge"].tolist() == [5] * 10
    assert made["bond_types"].tolist() == [[0, 0, 0]] * 2 + [[3, 0, 1]] * 6
    assert (made["atoms"] < made["atom_categories"]).all()
    assert (made["bond_types"] < made["bond_categories"]).all()


def test_fingerprints_tell_molecules_apart_and_not_their_writing(files):
    source, result = files
    source.write_text("smiles,gap\nCCO,0\nOCC,0\nCCN,0\n")
    molecules.convert(source, result, target="gap", bits=256)
    prints = np.load(result)["fingerprints"]
    assert prints.shape == (3, 32) and prints.dtype == np.uint8
    assert (prints[0] == prints[1]).all() and (prints[0] != prints[2]).any()


def test_hydrogens_become_atoms(files):
    source, result = files
    molecules.convert(source, result, target="gap", hydrogens=True)
    assert np.load(result)["atom_offsets"].tolist() == [0, 9, 21, 26]


def test_charges_chirality_and_stereo(files):
    source, result = files
    source.write_text("smiles,gap\n[NH4+],0\nN[C@@H](C)C(=O)O,0\nF/C=C/F,0\n")
    molecules.convert(source, result, target="gap")
    made = np.load(result)
    names = list(molecules.ATOM_FEATURES)
    assert made["atoms"][0, names.index("formal_charge")] == 6
    assert made["atoms"][2, names.index("chirality")] in (1, 2)
    stereo = made["bond_types"][
        made["bond_offsets"][2] :, list(molecules.BOND_FEATURES).index("stereo")
    ]
    assert sorted(stereo.tolist()) == [0, 0, 2]  # E


def test_bad_lines_are_named_and_skipped_only_when_asked(files):
    source, result = files
    source.write_text(GOOD + "C1CC,3,ring\nCC,,none\nCC,nan,nan\n\nCCC,1,propane\n")
    with pytest.raises(molecules.BadMolecule) as error:
        molecules.convert(source, result, target="gap")
    assert str(error.value) == f"cannot read {source}, line 5: cannot parse the SMILES 'C1CC'"
    assert not result.exists() and list(result.parent.iterdir()) == [source]
    written, bad = molecules.convert(source, result, target="gap", skip_bad=True)
    assert written == 4
    assert bad == [
        "line 5: cannot parse the SMILES 'C1CC'",
        "line 6: expected a number in column 'gap', got ''",
        "line 7: expected a number in column 'gap', got 'nan'",
    ]
    assert np.load(result)["lines"].tolist() == [2, 3, 4, 9]


@pytest.mark.parametrize(
    "option",
    [dict(hydrogens="no"), dict(skip_bad="no"), dict(radius=True), dict(bits="64")],
    ids=str,
)
def test_options_are_of_their_types(files, option):
    with pytest.raises(TypeError, match=rf"^\[convert\] {next(iter(option))}: expected "):
        molecules.convert(*files, target="gap", **option)


def test_compressed_csv(files):
    _, result = files
    source = result.with_name("in.csv.gz")
    source.write_bytes(gzip.compress(GOOD.encode()))
    assert molecules.convert(source, result, target="gap")[0] == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (GOOD, ["--target", "energy"], "expected a column 'energy', got smiles, gap, name"),
        (GOOD, ["--target", "gap", "--bits", "12"], "bits: expected a multiple of 8, got 12"),
        (GOOD, ["--target", "gap", "--radius", "-1"], "radius: expected 0 or more, got -1"),
        ("smiles,gap\n", ["--target", "gap"], "no molecule in it"),
        (GOOD + "?,1,x\n", ["--target", "gap"], "line 5: cannot parse the SMILES '?'"),
        (
            GOOD + "(" * 3000 + ",1,x\n",
            ["--target", "gap"],
            f"line 5: cannot parse the SMILES '{'(' * 60}..'",
        ),
        (
            GOOD + "C" * 10001 + ",1,x\n",
            ["--target", "gap"],
            "line 5: expected a SMILES of at most 10000 letters, got 10001",
        ),
        (
            GOOD + "C," + "x" * 90 + ",x\n",
            ["--target", "gap"],
            f"line 5: expected a number in column 'gap', got '{'x' * 60}..'",
        ),
    ],
)
def test_command_says_what_is_wrong_in_one_line(files, capsys, text, options, message):
    source, result = files
    source.write_text(text)
    assert molecules.main([str(source), str(result), *options]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not result.exists()


def test_command(files, capsys):
    source, result = files
    source.write_text(GOOD + "?,1,x\n")
    assert molecules.main([str(source), str(result), "--target", "gap", "--skip-bad"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{result}: 3 molecules, 1 lines left out\n"
    assert said.err == "molecules: left out line 5: cannot parse the SMILES '?'\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_byte_order_mark_and_line_ends_are_no_part_of_names(files, mark, end):
    source, result = files
    source.write_bytes(mark + GOOD.encode().replace(b"\n", end))
    assert molecules.convert(source, result, target="gap")[0] == 3


def test_plain_text_may_be_called_gz_and_gzipped_text_anything(files):
    _, result = files
    for name, data in [("in.csv.gz", GOOD.encode()), ("in.txt", gzip.compress(GOOD.encode()))]:
        source = result.with_name(name)
        source.write_bytes(data)
        assert molecules.convert(source, result, target="gap")[0] == 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"smiles,gap,smiles\nC,1,C\n", "two columns are called 'smiles'"),
        (b"smiles,gap,gap\nC,1,2\n", "two columns are called 'gap'"),
        (b"smiles,gap\nC,1_000\n", "line 2: expected a number in column 'gap', got '1_000'"),
        ("smiles,gap\nC,１\n".encode(), "line 2: expected a number in column 'gap', got '１'"),
        (
            b"smiles,gap,name\nC,1,methane\nCC,2,\xe9thane\n",
            "line 3: expected UTF-8, got the byte 0xe9",
        ),
        (b"\xff\xfes\x00m\x00", "expected UTF-8, got UTF-16"),
        (gzip.compress(GOOD.encode())[:-9], "damaged gzip"),
        (b"", "expected a column 'smiles', got none"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(files, capsys, data, message):
    source, result = files
    source.write_bytes(data)
    assert molecules.main([str(source), str(result), "--target", "gap"]) == 2
    said = capsys.readouterr().err
    assert message in said and str(source) in said and said.count("\n") == 1
    assert list(result.parent.iterdir()) == [source]


RICH = """smiles,gap,name
CC(=O)Oc1ccccc1C(=O)O,1.5,"aspirin, plain"
[13CH3][C@@H](N)C(=O)[O-],-2e-3,alanine
C1CC2CC1CC2.[Na+].[Cl-],0,salt
F/C=C\\F,3,trans
c1ccc2c(c1)[nH]c1ccccc12,4,carbazole
"""


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_are_one_line_or_molecules(files, packed, count):
    source, result = files
    content = gzip.compress(RICH.encode()) if packed else RICH.encode()
    draw = random.Random(count)
    changes = ((f"file {i}", mutated(content, draw)) for i in range(count))

    def read():
        return molecules.convert(source, result, target="gap", bits=64, skip_bad=True)

    def taken(what, data, answer):
        made = np.load(result)
        sound = (made["atoms"] < made["atom_categories"]).all() and (
            made["bonds"].size == 0 or made["bonds"].max() < made["atom_offsets"][-1]
        )
        return None if sound and np.isfinite(made["targets"]).all() else "a graph that is none"

    assert sweep(changes, source.write_bytes, read, source, taken)[0] == count


def test_the_result_has_the_mode_of_other_files_or_a_line(files, capsys, tmp_path):
    source, result = files
    molecules.convert(source, result, target="gap")
    umask = os.umask(0)
    os.umask(umask)
    assert result.stat().st_mode & 0o777 == 0o666 & ~umask
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "absent" / "x.npz", tmp_path / "folder"):
        assert molecules.main([str(source), str(target), "--target", "gap"]) == 2
        said = capsys.readouterr().err
        assert f"cannot write {target}" in said and said.count("\n") == 1
    assert not any(path.name.endswith(".partial") for path in tmp_path.rglob("*"))


def test_the_source_is_never_written_over(files, capsys, tmp_path):
    source, _ = files
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "other.csv").hardlink_to(source)
    for result in (source, tmp_path / "link.csv", tmp_path / "other.csv"):
        assert molecules.main([str(source), str(result), "--target", "gap"]) == 2
        said = capsys.readouterr().err
        assert said == f"molecules: cannot write {result}: it is a file that is read\n"
    assert source.read_text() == GOOD


def test_a_source_that_cannot_be_read_is_named(files, capsys, tmp_path):
    _, result = files
    for source, why in (("absent.csv", "No such file or directory"), ("", "Is a directory")):
        assert molecules.main([str(tmp_path / source), str(result), "--target", "gap"]) == 2
        assert capsys.readouterr().err == f"molecules: cannot read {tmp_path / source}: {why}\n"
