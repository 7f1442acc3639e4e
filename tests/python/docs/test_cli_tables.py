"""The tables of options in docs/cli.md are what the executables say under --help."""

import os
import subprocess
import sys

import pytest

#: Answers ``--help`` as an executable with two commands would.
PROGRAM = """#!/bin/sh
case "$*" in
  --help) printf 'Two commands\\nUsage: tool COMMAND\\n\\nCommands:\\n  one     First\\n  two     Second\\n' ;;
  'one --help') printf 'First\\n\\nPositionals:\\n  FILE (required)     Read it\\n\\nOptions:\\n  -h,--help  Help\\n'
    printf '  --same INT          In both [[1,2]]\\n\\nCommon options:\\n  --seed N    Seed\\n\\nExamples:\\n  tool one\\n' ;;
  'two --help') printf 'Second\\n\\nOptions:\\n  -h,--help  Help\\n  --same INT          In both [[1,2]]\\n'
    printf '  --a-rather-long-name-of-an-option A|B\\n                      Text below\\n' ;;
esac
"""

PAGE = """# Tool

<!-- options: common -->
<!-- end of options -->
<!-- options: tool one, tool two -->
<!-- end of options -->
<!-- options: tool one -->
<!-- end of options -->
<!-- options: tool two -->
<!-- end of options -->
"""

FILLED = """# Tool

<!-- options: common -->

| option | meaning | commands |
| --- | --- | --- |
| `--seed N` | Seed | `one` |

<!-- end of options -->
<!-- options: tool one, tool two -->

| option | meaning |
| --- | --- |
| `--same INT` | In both [1,2] |

<!-- end of options -->
<!-- options: tool one -->

| option | meaning |
| --- | --- |
| `FILE (required)` | Read it |

<!-- end of options -->
<!-- options: tool two -->

| option | meaning |
| --- | --- |
| `--a-rather-long-name-of-an-option A\\|B` | Text below |

<!-- end of options -->
"""


@pytest.fixture
def tables(root):
    def run(*arguments):
        command = [sys.executable, root / "tools" / "cli_tables.py", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    return run


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "tool"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


def test_the_page_has_the_options_of_every_command(tables, root, executable):
    laboratory = executable.with_name("nsimplex-lab")
    given = [executable, *([laboratory] if os.access(laboratory, os.X_OK) else [])]
    done = tables("--check", root / "docs" / "cli.md", *given)
    assert done.returncode == 0, done.stderr


def test_tables_are_written_once_and_then_stay(tables, tool, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert tables("--check", page, tool).returncode == 1 and page.read_text() == PAGE
    assert tables(page, tool).returncode == 0 and page.read_text() == FILLED
    assert tables("--check", page, tool).returncode == 0


@pytest.mark.parametrize("change, said", [
    (("<!-- options: tool two -->\n<!-- end of options -->\n", ""), "no table of options for: tool two"),
    (("tool one, tool two", "tool one, tool three"), "no executable has these commands: tool three"),
    (("<!-- options: tool one -->", "<!-- options: tool two -->"), "no table of options for: tool one"),
])  # fmt: skip
def test_commands_and_tables_are_the_same(tables, tool, tmp_path, change, said):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(*change))
    done = tables("--check", page, tool)
    assert done.returncode == 1 and said in done.stderr
