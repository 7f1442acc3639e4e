"""tools/release checks, dates and tags a version, and pushes nothing."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
URL = "https://example.org/somebody/nsimplex"
CHANGELOG = """# Changelog

## 1.2.3, not released yet

Added

- One thing, whose sentence goes on
  in a second line ([its page](docs/tour.md)).
- Another.

## 1.2.2, 2020-01-01

Older.
"""
GIT = {
    f"GIT_{who}_{what}": "a@b.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
GIT |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


@pytest.fixture
def project(tmp_path):
    """A repository with the files that a release reads. Nothing of it is built."""
    files = {
        "CMakeLists.txt": "project(nsimplex VERSION 1.2.3 LANGUAGES CXX)\n",
        "CHANGELOG.md": CHANGELOG,
        "CITATION.cff": (ROOT / "CITATION.cff").read_text(encoding="utf-8"),
        "README.md": "# nsimplex\n",
        "SECURITY.md": "# Security\n",
        "docs/install.md": "1.2.3+torch2.13\n",
        "packaging/conda/recipe.yaml": 'version: "1.2.3"\n',
        ".gitignore": "/dist/\n__pycache__/\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("release", "metadata/addresses.py", "metadata/torch_requirement.py"):
        (tmp_path / "tools" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=first")
    return tmp_path


def git(folder, *words):
    run = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **GIT}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def release(project, *words):
    command = [sys.executable, project / "tools" / "release", *words]
    return subprocess.run(command, env={**os.environ, **GIT}, capture_output=True, text=True)


def test_a_check_writes_the_notes_and_changes_nothing(project):
    ended = release(project, "1.2.3", "--check", "--repository", URL)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *checks, last = ended.stdout.splitlines()
    assert len(checks) >= 8 and all(line.startswith("ok: ") for line in checks)
    assert last == "dist/notes-1.2.3.md"
    assert (project / last).read_text() == (
        "Added\n\n- One thing, whose sentence goes on in a second line "
        f"([its page]({URL}/blob/v1.2.3/docs/tour.md)).\n- Another.\n"
    )
    assert not git(project, "status", "--porcelain") and not git(project, "tag")


def write_file(name, text):
    return lambda project: (project / name).write_text(text)


def commit_file(name, text):
    def change(project):
        (project / name).write_text(text)
        git(project, "commit", "--quiet", "--all", "--message=changed")

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (write_file("new.txt", ""), "nothing is uncommitted; git status names 1 files"),
        (lambda p: git(p, "checkout", "-q", "-b", "work"), "the branch is main; it is work"),
        (lambda p: git(p, "tag", "v1.2.3"), "the tag v1.2.3 is new"),
        (
            commit_file("CMakeLists.txt", "project(nsimplex VERSION 1.2.2 LANGUAGES CXX)\n"),
            "CMakeLists.txt has the version 1.2.3",
        ),
        (commit_file("docs/install.md", "1.2.2"), "docs/install.md names 1.2.3"),
        (
            commit_file("docs/install.md", "1.2.3 is not published\nyet."),
            "docs/install.md does not say 'is not published yet'",
        ),
        (
            commit_file("packaging/conda/recipe.yaml", "1.2.2"),
            "packaging/conda/recipe.yaml names 1.2.3",
        ),
        (
            commit_file("CHANGELOG.md", "## 1.2.2, 2020-01-01\n\nOlder.\n"),
            "CHANGELOG.md has the section '## 1.2.3, DATE'",
        ),
        (
            commit_file("CHANGELOG.md", "## 1.2.3 is near\n\nText.\n"),
            "CHANGELOG.md has the section '## 1.2.3, DATE'; its heading is '1.2.3 is near'",
        ),
    ],
)
def test_a_version_that_is_not_ready_is_refused(project, change, fault):
    change(project)
    before = git(project, "rev-parse", "HEAD"), git(project, "tag")
    ended = release(project, "1.2.3", "--no-build", "--repository", URL)
    assert ended.returncode == 1
    failed = [line for line in ended.stdout.splitlines() if not line.startswith("ok: ")]
    assert failed == [f"FAILED: {fault}"]
    assert ended.stderr == "release: 1.2.3 cannot be released yet\n"
    assert before == (git(project, "rev-parse", "HEAD"), git(project, "tag"))


def test_an_address_is_needed_and_origin_may_name_it(project):
    ended = release(project, "1.2.3", "--check")
    assert "FAILED: the repository has a public address; name it with --repository" in ended.stdout
    git(project, "remote", "add", "origin", "git@example.org:somebody/nsimplex.git")
    ended = release(project, "1.2.3", "--check")
    assert ended.returncode == 0 and f"{URL}/blob" in (project / "dist/notes-1.2.3.md").read_text()


def test_a_release_is_dated_committed_and_tagged(project):
    ended = release(project, "1.2.3", "--no-build", "--repository", URL)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert git(project, "log", "-1", "--format=%s") == "build: release 1.2.3"
    assert git(project, "rev-parse", "v1.2.3^{commit}") == git(project, "rev-parse", "HEAD")
    assert not git(project, "status", "--porcelain")
    citation = (project / "CITATION.cff").read_text(encoding="utf-8")
    (date,) = re.findall(r"^date-released: (\d{4}-\d\d-\d\d)$", citation, re.MULTILINE)
    for line in ("version: 1.2.3", f"url: {URL}", f"repository-code: {URL}"):
        assert citation.splitlines().count(line) == 1
    assert f"## 1.2.3, {date}\n" in (project / "CHANGELOG.md").read_text(encoding="utf-8")
    linter = shutil.which("check-jsonschema", path=sysconfig.get_path("scripts"))
    if linter:
        schema = ["--builtin-schema", "vendor.citation-file-format"]
        assert subprocess.run([linter, *schema, project / "CITATION.cff"]).returncode == 0


def test_notes_come_with_the_list_of_what_is_inside_a_wheel(project):
    (project / "dist").mkdir()
    name = "nsimplex_attention-1.2.3-py3-none-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(project / "dist" / name, "w") as wheel:
        wheel.writestr("nsimplex_attention-1.2.3.dist-info/sboms/nsimplex.cdx.json", "{}")
    git(project, "tag", "v1.2.3")
    ended = release(project, "1.2.3", "--notes", "--repository", URL)
    assert ended.stdout.splitlines() == ["dist/notes-1.2.3.md", "dist/nsimplex-1.2.3.cdx.json"]
    assert (project / "dist/nsimplex-1.2.3.cdx.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["v1.2.3"], "VERSION: expected three numbers as in 0.2.0, got 'v1.2.3'"),
        (["1.2"], "VERSION: expected three numbers as in 0.2.0, got '1.2'"),
        (
            ["1.2.3", "--repository", "/srv/nsimplex"],
            "--repository: expected https://HOST/OWNER/NAME, got '/srv/nsimplex'",
        ),
        (["1.2.3", "--check", "--no-build"], "not allowed with argument --check"),
    ],
)
def test_wrong_arguments_are_refused(project, words, message):
    ended = release(project, *words)
    assert ended.returncode == 2 and message in ended.stderr


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        (URL, URL),
        (f"{URL}.git", URL),
        (f"{URL}/", URL),
        ("git@example.org:somebody/nsimplex.git", URL),
        ("ssh://git@example.org/somebody/nsimplex.git", URL),
        ("ssh://git@example.org:22/somebody/nsimplex.git", URL),
        ("https://example.org/nsimplex", ""),
        ("/srv/nsimplex", ""),
        ("../nsimplex", ""),
        ("file:///srv/nsimplex", ""),
        ("https://user:secret@example.org/somebody/nsimplex", ""),
        ("", ""),
    ],
)
def test_only_addresses_that_others_can_open_are_public(remote, address):
    assert runpy.run_path(str(ROOT / "tools" / "release"))["public_address"](remote) == address


def test_the_wheel_serves_the_torches_that_are_named(monkeypatch):
    functions = runpy.run_path(str(ROOT / "tools" / "release"))["build"].__globals__
    called = []

    def run(command, cwd):
        called.append(command)
        return subprocess.CompletedProcess(command, 1 if "fails" in command else 0)

    functions["subprocess"] = type("Subprocess", (), {"run": staticmethod(run)})
    functions["build"]("1.2.3", ["/a/python", "/b/python"])
    assert called[0] == ["tools/build_wheel", "/a/python", "/b/python"]
    assert called[-1][-1] == "dist/nsimplex_attention-1.2.3.tar.gz"
    with pytest.raises(SystemExit, match="tools/build_wheel failed; nothing has a tag yet"):
        functions["build"]("1.2.3", ["fails"])


def test_a_wheel_that_no_index_takes_is_refused(project):
    ended = release(project, "1.2.3", "--repository", URL, "/a/python")
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1] == (
        "FAILED: the wheel serves all 4 supported versions of torch; expected 3 times TORCH, got 1"
    )


def test_the_version_is_the_same_everywhere():
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    version = re.search(r"project\(nsimplex VERSION (\S+)", cmake)[1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    for name in runpy.run_path(str(ROOT / "tools" / "release"))["NAMED_IN"]:
        assert version in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_pages_say_that_nothing_is_published_in_the_words_that_a_release_looks_for():
    """All of them say so before the first release, and none afterwards."""
    pages = runpy.run_path(str(ROOT / "tools" / "release"))["UNPUBLISHED"]
    text = {name: " ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in pages}
    said = {words in text[name] for name, phrases in pages.items() for words in phrases}
    assert len(said) == 1, text
