"""Handlers of C++ throw by C10_THROW_ERROR. GCC without optimisation does not see that
TORCH_CHECK(false) ends a function, and reports that control reaches the end (-Wreturn-type)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
HANDLER = re.compile(r"catch \([^)]*\) \{[^}]*?TORCH_CHECK\w*\(false")


def test_no_handler_ends_in_a_check_of_false():
    files = [path for folder in ("src", "lab") for path in (ROOT / folder).rglob("*.cpp")]
    files += [path for folder in ("include", "src", "lab") for path in (ROOT / folder).rglob("*.h")]
    found = [str(path.relative_to(ROOT)) for path in files if HANDLER.search(path.read_text())]
    assert len(files) > 300 and found == []
