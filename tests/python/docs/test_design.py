"""Each source says at its top what it holds, docs/design.md explains how the sources work together,
and both stay short enough to read."""

import re

import pytest

LARGEST, LONGEST_PAGE = 400, 350
SOURCES = (".h", ".cpp", ".cc")


@pytest.fixture(scope="module")
def sources(root):
    """The text of every C++ source and header, by its path."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in ("src", "lab", "include")
        for path in (root / folder).rglob("*")
        if path.suffix in SOURCES
    }


def first_comment(text):
    """The first paragraph of the comment with which a text begins; empty if it begins with code."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//") or not line.strip("/ "):
            break
        lines.append(line.lstrip("/ "))
    return " ".join(lines)


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("// Reads a table\n// of numbers.\n\n#pragma once\n", "Reads a table of numbers."),
        ("// Reads.\n//\n// More.\n#include <a>\n", "Reads."),
        ("#pragma once\n\n// Reads a table of numbers.\n", ""),
    ],
)
def test_the_comment_before_the_code_is_found(text, comment):
    assert first_comment(text) == comment


def test_every_source_begins_with_a_sentence(sources):
    sentence = re.compile(r"\S+( \S+)+[.:]")
    without = [
        path for path, text in sources.items() if not sentence.fullmatch(first_comment(text))
    ]
    assert without == []


def test_no_file_is_longer_than_a_topic(sources):
    lengths = {path: text.count("\n") for path, text in sources.items()}
    assert {
        path: lines
        for path, lines in lengths.items()
        if lines > LARGEST and not path.startswith("include/")
    } == {}


def test_public_headers_stay_few(root):
    assert len(list((root / "include" / "nsimplex").glob("*.h"))) <= 25


def test_the_page_about_the_design_is_read_in_ten_minutes(root):
    page = (root / "docs" / "design.md").read_text(encoding="utf-8")
    assert page.count("\n") <= LONGEST_PAGE


def test_the_page_about_the_design_names_files_that_exist(root, sources):
    page = (root / "docs" / "design.md").read_text(encoding="utf-8")
    made = {"_build_info.py"}  # by the build
    named = set(re.findall(r"`([\w/]+(?:-inl)?\.(?:py|h|cpp|cc|cmake))`", page)) - made
    known = set(sources) | {
        path.relative_to(root).as_posix()
        for folder in ("python", "tests", "tools", "cmake")
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".cmake", *SOURCES)
    }
    assert [
        name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in known)
    ] == []
