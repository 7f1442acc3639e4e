"""The parts of the site's tools, without building it; make test-all builds and visits it."""

import importlib
import re
import shutil
import subprocess
import sys

import pytest


def test_every_page_has_a_place_in_the_navigation(pages, tmp_path):
    names = pages.copy_pages(tmp_path)
    placed = [name for members in pages.sections(names).values() for name in members]
    assert len(placed) == len(set(placed))
    assert {name.as_posix() for name in names} - {name.as_posix() for name in placed} == {
        "docs/README.md"
    }
    assert len(pages.sections(names)) >= 4


def test_the_first_page_is_in_no_section(pages, tmp_path):
    names = pages.copy_pages(tmp_path)
    lines = pages.navigation(names, [], []).splitlines()
    assert lines[:3] == ["nav:", "  - Home: README.md", "  - Start:"]
    assert not any(line == "    - README.md" for line in lines)


def test_every_public_name_is_in_one_group_of_the_reference(pages):
    for module, groups in pages.REFERENCE.items():
        names = [name for group in groups for name in group.names.split()]
        loaded = importlib.import_module(module)
        public = [name for name in loaded.__all__ if callable(getattr(loaded, name))]
        assert sorted(names) == sorted(public), module
        for group in groups:
            assert re.fullmatch(r"[A-Z][^.]*\.", group.about), group.title


def test_the_reference_begins_with_attention(pages):
    page = pages.python_page("nsimplex")
    places = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    # The function, not the file attention.py, which has the same name.
    assert places[0] == "nsimplex.attention.attention"
    assert "nsimplex.merge" in places
    assert [f"](#{place})" in page for place in places] == [True] * len(places)
    assert page.index("[`attention`]") < page.index("## Attention\n") < page.index("## Files")


@pytest.mark.parametrize(
    "address, opened",
    [
        ("", ""),
        ("https://example.org/them/it", ""),
        (
            "https://github.com/them/it",
            "https://colab.research.google.com/github/them/it/blob/v{}/docs/notebooks/x.ipynb",
        ),
    ],
)
def test_colab_opens_the_notebook_of_a_known_repository(pages, root, address, opened):
    link = pages.colab_link(root / "docs" / "notebooks" / "x.ipynb", address)
    expected = opened.format(pages.version())
    assert link == (f"[Open in Colab]({expected}){{ .md-button }}" if expected else "")


def test_the_head_of_the_pages_has_the_address_of_the_citation(pages, root, tmp_path, monkeypatch):
    for address in ("", "https://github.com/them/it"):
        monkeypatch.setattr(pages, "repository", lambda found=address: found)
        lines = pages.configuration(tmp_path).splitlines()
        assert (f"repo_url: {address}" in lines) == bool(address)
        assert any(line.startswith("repo_url:") for line in lines) == bool(address)
    # The script of the theme would ask the server of the repository for its numbers.
    link = (root / "tools" / "site" / "theme" / "partials" / "source.html").read_text()
    assert "config.repo_url" in link and "data-md-component" not in link


def test_formulas_of_pages_become_mathml(root):
    python = root / ".venv-docs" / "bin" / "python"
    if not python.exists():
        pytest.skip("tools/docs has not made .venv-docs")
    command = [python, root / "tests" / "python" / "docs" / "convert_formulas.py"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_links_to_what_is_no_page(pages, tmp_path):
    name = pages.Path("docs/page.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / name).write_text(
        "[layers](../include/nsimplex/layers.h) [examples](../examples/python)\n"
        "[first](notebooks/1-first-contact.ipynb) [cite](../CITATION.cff) [web](https://a.org/x)\n"
        "`[code](../include/nsimplex/layers.h)`\n"
        "[`cite [x]` it](../CITATION.cff), `code` and [`code`](../CITATION.cff)\n"
    )
    pages.rewrite_links(tmp_path, [name])
    assert (tmp_path / name).read_text() == (
        "[layers](reference/cpp/layers.md) examples\n"
        "[first](notebooks/1-first-contact.md) [cite](../CITATION.cff.txt) [web](https://a.org/x)\n"
        "`[code](../include/nsimplex/layers.h)`\n"
        "[`cite [x]` it](../CITATION.cff.txt), `code` and [`code`](../CITATION.cff.txt)\n"
    )
    assert "cff-version" in (tmp_path / "CITATION.cff.txt").read_text()


def test_the_page_of_a_header_has_every_function_and_its_text(pages, root):
    for header in (root / "include" / "nsimplex").glob("*.h"):
        source, page = header.read_text(encoding="utf-8"), pages.cpp_page(header)
        headings = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
        assert page.count("```") % 2 == 0
        for line in re.findall(r"^NSIMPLEX_API .*$", source, re.MULTILINE):
            named = re.search(r"(\w+)\(", line) or re.search(r"(\w+)(?: =.*)?;", line)
            assert named is None or named[1] in headings, f"{header.name}: {line}"
    rotary = pages.cpp_page(root / "include" / "nsimplex" / "rotary.h")
    assert "\nRotary position encoding for any number of key axes.\n" in rotary
    assert "```cpp\nNSIMPLEX_API at::Tensor rotary(" in rotary


def test_the_version_is_that_of_the_library(pages):
    import nsimplex

    assert pages.version() == nsimplex.__version__


@pytest.fixture
def site(tmp_path):
    def write(body):
        head = "<!doctype html><meta charset=utf-8><title>x</title><article><h1 id=top>X</h1>"
        (tmp_path / "index.html").write_text(f"{head}{body}</article>")
        (tmp_path / "other.html").write_text(f"{head}<a href='index.html#top'>x</a></article>")
        return tmp_path

    return write


@pytest.mark.parametrize(
    "body, fault",
    [
        ("<a href='other.html#top'>ok</a><a href='https://a.org/'>web</a>", None),
        ("<a href='missing.html'>x</a>", "missing.html leads nowhere"),
        ("<a href='other.html#place'>x</a>", "other.html#place has no such place"),
        ("<img src='missing.svg'>", "missing.svg leads nowhere"),
        ("<script src='https://a.org/x.js'></script>", "loads https://a.org/x.js"),
    ],
)
def test_links_are_checked(visit, site, body, fault):
    found = visit.broken_links(site(body))
    assert found == [] if fault is None else [fault in line for line in found] == [True]


def test_links_alone_are_checked_without_a_browser(root, site, tmp_path):
    script = root / "tools" / "site" / "visit.py"
    for body, code in (("<p style='width:600px'>x</p>", 0), ("<a href='missing.html'>x</a>", 1)):
        command = [sys.executable, script, "--links", site(body)]
        ended = subprocess.run(
            command, capture_output=True, text=True, env={"CHROMIUM": str(tmp_path / "none")}
        )
        assert ended.returncode == code, ended.stderr
        assert ("missing.html leads nowhere" in ended.stdout) == bool(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body, fault",
    [
        ("<p>fine</p>", None),
        ("<div style='width:600px'>x</div>", "at 390: is 6"),
        ("<img src='data:image/png;base64,AAAA'>", "does not draw"),
    ],
)
def test_layout_is_looked_at(visit, site, body, fault):
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("no Chromium")
    found = visit.layout_faults(site(body), chromium, minutes=2)
    assert found == [] if fault is None else any(fault in line for line in found), found
