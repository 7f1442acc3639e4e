"""The worked example of CONTRIBUTING.md is the code."""

import re


def test_the_places_of_an_option_are_in_the_code(root):
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Add an option to an operator")[2].partition("\n## ")[0]
    places = re.findall(r"^\| .*?`([\w/.]+)` \| `(.+)` \|$", section, re.MULTILINE)
    assert 0 < len(places) <= 5
    for path, line in places:
        assert line in (root / path).read_text(encoding="utf-8"), path
