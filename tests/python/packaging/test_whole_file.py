"""Files of Python writers are whole or not there, whatever stands where they go."""

import os

import pytest

from nsimplex._whole_file import whole_file


def write(path, text="new", **options):
    with whole_file(path, **options) as file:
        file.write(text)


def test_a_file_is_replaced_and_has_the_rights_of_every_new_file(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    before = os.umask(0o027)
    try:
        write(target)
    finally:
        os.umask(before)
    assert target.read_text() == "new" and target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["table.csv"]
    write(target, b"\x00", binary=True)
    assert target.read_bytes() == b"\x00"


@pytest.mark.parametrize(
    "error", [ValueError("half way"), KeyboardInterrupt(), OSError()], ids=repr
)
def test_what_fails_leaves_the_earlier_file_and_nothing_beside(tmp_path, error):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(type(error)) as raised, whole_file(target) as file:
        file.write("new")
        raise error
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["table.csv"]
    if isinstance(error, OSError):  # one without a word of its own
        assert str(raised.value) == f"cannot write {target}: OSError"


def test_a_link_is_replaced_and_not_followed(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "table.csv"
    victim.write_text("old")
    target.symlink_to(victim)
    write(target)
    assert victim.read_text() == "old" and target.read_text() == "new" and not target.is_symlink()


def test_a_prepared_temporary_is_neither_followed_nor_removed(tmp_path, monkeypatch):
    victim, target = tmp_path / "victim", tmp_path / "table.csv"
    victim.write_text("old")
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    guessed = tmp_path / ".table.csv.guessed.partial"
    guessed.symlink_to(victim)
    with pytest.raises(OSError, match=f"cannot write {target}: "):
        write(target)
    assert victim.read_text() == "old" and guessed.is_symlink() and not target.exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "no folder"])
def test_what_is_no_file_is_refused_before_anything_is_written(tmp_path, kind):
    target = tmp_path / "table.csv"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target = tmp_path / "absent" / "table.csv"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError) as error:
        write(target)
    assert str(error.value).startswith(f"cannot write {target}: ") and "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_bytes_are_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    target, done = tmp_path / "table.csv", []
    sync, replace = os.fsync, os.replace

    def noting_sync(descriptor):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).split(".")[-1])
        sync(descriptor)

    def noting_replace(source, destination):
        done.append("renamed")
        replace(source, destination)

    monkeypatch.setattr(os, "fsync", noting_sync)
    monkeypatch.setattr(os, "replace", noting_replace)
    write(target)
    assert done == ["partial", "renamed", tmp_path.name.split(".")[-1]]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_disk_that_fails_is_named_with_the_file(tmp_path, monkeypatch, name):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match=f"cannot write {tmp_path / 'x'}: No space left on device"):
        write(tmp_path / "x")
    assert os.listdir(tmp_path) == []
