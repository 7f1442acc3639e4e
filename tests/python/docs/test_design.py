"""docs/design.md has a sentence for each of the larger C++ files, and files stay small enough to
be one topic."""

import re
from collections import Counter

import pytest

LARGE, LARGEST = 150, 400


@pytest.fixture(scope="module")
def lengths(root):
    """Lines per file, by its name: names are unique in the tree."""
    return {
        path.name: path.read_text(encoding="utf-8").count("\n")
        for folder in ("src", "lab")
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cpp", ".cc")
    }


def test_every_large_file_has_its_sentence(root, lengths):
    page = (root / "docs" / "design.md").read_text(encoding="utf-8")
    section = page.partition("## Topics of the larger files")[2]
    listed = re.findall(r"^- `([^`]+)`: ", section, re.MULTILINE)
    assert [name for name, times in Counter(listed).items() if times > 1] == []
    assert set(listed) - set(lengths) == set()
    large = {name for name, lines in lengths.items() if lines >= LARGE}
    assert large - set(listed) == set()


def test_no_file_is_longer_than_a_topic(lengths):
    assert {name: lines for name, lines in lengths.items() if lines > LARGEST} == {}


def test_public_headers_stay_few(root):
    assert len(list((root / "include" / "nsimplex").glob("*.h"))) <= 24
