"""SECURITY.md names tests that hold its promises: they exist."""

import re


def test_the_tests_that_hold_the_promises_exist(root):
    page = (root / "SECURITY.md").read_text()
    rows = page.partition("| --- | --- |\n")[2].splitlines()
    promises = re.findall(r"^\*\*(.+?)\.?\*\*", page, re.MULTILINE)
    told = [row.split("|")[1].strip() for row in rows]
    assert len(promises) == len(told) and all(map(str.startswith, promises, told))
    texts = "\n".join(
        path.name + "\n" + path.read_text(errors="replace")
        for pattern in ("*.py", "*_test.cc", "*_test.cpp")
        for path in (root / "tests").rglob(pattern)
    )
    for name in re.findall(r"`([^`]+)`", "\n".join(rows)):
        suite, _, test = name.partition(".")
        function = rf"def {name}\(" if name.startswith("test_") else rf"TEST\w*\({suite}, {test}\)"
        pattern = rf"^{re.escape(name)}$" if test in ("cc", "cpp") else function
        assert re.search(pattern, texts, re.MULTILINE), name
