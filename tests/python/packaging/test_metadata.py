"""The metadata of the package: which torch it asks for, and addresses that are true or absent."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
REPOSITORY = "https://example.org/somebody/nsimplex"
INPUTS = ["pyproject.toml", "CMakeLists.txt", "CITATION.cff", "README.md", "LICENSE"]


@pytest.fixture
def providers(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools" / "metadata")
    import addresses
    import torch_requirement

    return addresses, torch_requirement


@pytest.fixture
def metadata_of_sdist(tmp_path):
    """A function that makes a source distribution of a few files and returns its metadata."""

    def metadata(repository):
        for name in INPUTS:
            shutil.copy(ROOT / name, tmp_path / name)
        shutil.copytree(ROOT / "tools" / "metadata", tmp_path / "tools" / "metadata")
        if repository:
            with (tmp_path / "CITATION.cff").open("a", encoding="utf-8") as citation:
                citation.write(f"repository-code: {repository}\n")
        build = "from scikit_build_core.build import build_sdist; build_sdist('dist')"
        without_torch = {**os.environ, "TORCH_PYTHON": "/bin/false"}
        command = [sys.executable, "-c", build]
        run = subprocess.run(command, cwd=tmp_path, env=without_torch, capture_output=True)
        assert run.returncode == 0, run.stderr.decode()
        (archive,) = (tmp_path / "dist").glob("*.tar.gz")
        with tarfile.open(archive) as files:
            member = archive.name.removesuffix(".tar.gz") + "/PKG-INFO"
            return HeaderParser().parsestr(files.extractfile(member).read().decode("utf-8"))

    pytest.importorskip("scikit_build_core", "1.0")
    return metadata


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_a_source_distribution_has_true_addresses(metadata_of_sdist, repository):
    metadata = metadata_of_sdist(repository)
    version = metadata["Version"]
    urls = dict(url.split(", ", 1) for url in metadata.get_all("Project-URL", []))
    page = metadata.get_payload()
    targets = re.findall(r"\]\(([^)]*)\)", re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.S))
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)
    if not repository:
        assert not urls and not targets
        assert "- Install: wheels" in page and "[Install]" not in page
        return
    assert urls["Source"] == REPOSITORY
    assert urls["Security"] == f"{REPOSITORY}/security/advisories/new"
    assert all(url.startswith(REPOSITORY) for url in [*urls.values(), *targets])
    assert f"{REPOSITORY}/blob/v{version}/docs/install.md" in targets
    assert pictures and all(url.startswith(f"{REPOSITORY}/raw/v{version}/") for url in pictures)


def test_a_source_distribution_asks_for_any_supported_torch(metadata_of_sdist, providers):
    """A tool that reads only this metadata must not take the torch of the machine that made it."""
    metadata = metadata_of_sdist("")
    named = [each for each in metadata.get_all("Requires-Dist") if each.startswith("torch")]
    wanted = providers[1].supported_torch().removeprefix("torch").split(",")
    assert [set(each.removeprefix("torch").split(",")) for each in named] == [set(wanted)]
    assert metadata.get_all("Dynamic") == ["Requires-Dist"]


@pytest.mark.parametrize(
    ("text", "without", "within"),
    [
        ("[a](b.md)", "a", "[a](R/blob/v1.0/b.md)"),
        ("[a\nb](c.md#d)", "a\nb", "[a\nb](R/blob/v1.0/c.md#d)"),
        ("![a [b]](c.svg)", "a [b]", "![a [b]](R/raw/v1.0/c.svg)"),
        ("[`a[0]`](b.md)", "`a[0]`", "[`a[0]`](R/blob/v1.0/b.md)"),
        ("[a](https://b.org/c)", "[a](https://b.org/c)", "[a](https://b.org/c)"),
        ("[a](#b)", "[a](#b)", "[a](#b)"),
        ("`x[0](y)`", "`x[0](y)`", "`x[0](y)`"),
        ("```\nx[0](y)\n```", "```\nx[0](y)\n```", "```\nx[0](y)\n```"),
    ],
)
def test_links_to_files_lead_into_the_repository_or_become_text(providers, text, without, within):
    links = providers[0].absolute_links
    assert links(text, "", "1.0") == without
    assert links(text, "R", "1.0") == within


def test_the_repository_is_the_one_of_the_citation(providers):
    read = providers[0].repository_in
    assert read(f'title: a\nrepository-code: "{REPOSITORY}"\nversion: 1\n') == REPOSITORY
    assert read(f"# repository-code: {REPOSITORY}\nversion: 1\n") == ""


def test_a_wheel_for_a_libtorch_asks_for_its_minor_version(tmp_path, monkeypatch, providers):
    header = tmp_path / "include" / "torch" / "headeronly" / "version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n")
    monkeypatch.setenv("NSIMPLEX_LIBTORCH", str(tmp_path))
    monkeypatch.setenv("TORCH_PYTHON", sys.executable)
    provider = providers[1].Provider()
    provider.build_state("metadata_wheel")
    dependencies = ["numpy", "safetensors", "torch==2.11.*"]
    assert provider.dynamic_metadata({}, {}) == {"dependencies": dependencies}
    header.unlink()
    with pytest.raises(SystemExit, match="NSIMPLEX_LIBTORCH: expected a folder with LibTorch"):
        provider.dynamic_metadata({}, {})
