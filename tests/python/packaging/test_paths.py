"""Readers and writers of files, with names and bytes that are no UTF-8."""

import os
import pathlib
import subprocess

import pytest
import torch

import nsimplex
from nsimplex import causal
from nsimplex.causal.pipeline import CausalPipeline

ODD = os.fsdecode(b"caf\xe9-\xff")


READERS = {
    "read_table": nsimplex.read_table,
    "read_edges": nsimplex.read_edges,
    "read_tuples": nsimplex.read_tuples,
    "read_graphs": nsimplex.read_graphs,
    "usable_table": causal.usable_table,
    "CausalPipeline.fit": CausalPipeline().fit,
    "CausalPipeline.load": CausalPipeline.load,
}


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_names_that_are_no_utf8_are_names(tmp_path, kind):
    path = kind(os.path.join(tmp_path, ODD))
    pathlib.Path(path).write_text("0 1\n1 2\n2 3\n")
    assert nsimplex.read_edges(path).nodes == 4
    assert nsimplex.read_tuples(path, width=2).tuples.shape == (3, 2)
    assert nsimplex.read_table(path, header=False).values.shape == (3, 2)
    CausalPipeline(steps=1).fit(torch.randn(30, 3)).save(path)
    assert CausalPipeline.load(path).columns_ == [0, 1, 2]
    assert os.listdir(tmp_path) == [ODD]


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("path", [ODD, pathlib.Path("absent") / ODD], ids=["name", "folder"])
def test_a_file_that_is_not_there_is_named_whatever_its_name_is(tmp_path, monkeypatch, name, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^cannot read \S*caf\\xe9-\\xff: [^\n]+$"):
        READERS[name](path)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("path", ["\ud800", b"table.csv", 3], ids=ascii)
def test_what_is_no_path_is_said_in_one_line(name, path):
    with pytest.raises((TypeError, ValueError)) as error:
        READERS[name](path)
    assert "\n" not in str(error.value) and "found type" not in str(error.value)
    assert "'str'" not in str(error.value) or not isinstance(path, str)


def test_bytes_of_a_file_that_are_no_utf8_are_shown(tmp_path):
    """In the words of an operator; Python by itself would say that it cannot decode them, and not
    of which file."""
    path = tmp_path / "latin.csv"
    path.write_bytes(b"a,b\n1,caf\xe9\n")
    with pytest.raises(ValueError) as error:
        nsimplex.read_table(path)
    assert not isinstance(error.value, UnicodeDecodeError)
    assert str(error.value).startswith(f"cannot read {path}") and "\n" not in str(error.value)


def test_caches_go_where_they_are_told(tmp_path):
    layer = nsimplex.KeyValueCache([4])
    layer.attend(torch.ones(1, 1, 2, 4), [torch.ones(1, 1, 2, 4)], [torch.ones(1, 1, 2, 4)])
    caches = nsimplex.LayerCaches([layer])
    path = os.path.join(tmp_path, ODD)
    caches.save(path)
    caches.load(pathlib.Path(path))
    assert os.listdir(tmp_path) == [ODD]
    with pytest.raises((ValueError, RuntimeError), match=r"caf\\xe9") as error:
        caches.load(path + "-absent")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", READERS)
def test_a_name_is_not_cut_at_a_zero(tmp_path, name):
    """The system would read the file that is named before the zero."""
    path = tmp_path / "table.csv"
    path.write_text("0,1\n1,2\n2,3\n")
    with pytest.raises(ValueError) as error:
        READERS[name](f"{path}\0.csv")
    assert "\0" not in str(error.value) and "\n" not in str(error.value)


@pytest.fixture(scope="module")
def kept(root):
    """The files that git keeps, by their kind and permissions."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-sz"], capture_output=True)
    if listed.returncode:
        pytest.skip("no git folder here")
    entries = [os.fsdecode(each).partition("\t") for each in listed.stdout.split(b"\0") if each]
    return {name: entry.split()[0] for entry, _, name in entries}


def test_files_that_name_an_interpreter_can_be_run(root, kept):
    files = [root / name for name, mode in kept.items() if mode.startswith("100")]
    scripts = [file for file in files if file.is_file() and file.read_bytes()[:2] == b"#!"]
    assert scripts
    assert [str(file) for file in scripts if not os.access(file, os.X_OK)] == []


def test_no_link_is_kept(kept):
    """A link leads to a place of one machine, or a copy of the tree would have to keep it whole."""
    assert [name for name, mode in kept.items() if mode == "120000"] == []
