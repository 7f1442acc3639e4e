"""The worked examples of CONTRIBUTING.md are the code."""

import re

import pytest


@pytest.mark.parametrize(
    "heading, most",
    [("## Add an option to an operator", 5), ("## Add an option to the fit of a causal graph", 6)],
)
def test_the_places_of_an_option_are_in_the_code(root, heading, most):
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition(heading)[2].partition("\n## ")[0]
    places = re.findall(r"^\| .*?`([\w/.]+)` \| `(.+)` \|$", section, re.MULTILINE)
    assert 0 < len(places) <= most
    for path, line in places:
        assert line in (root / path).read_text(encoding="utf-8"), path
