"""The tables of options in docs/cli.md are what the executables say under --help."""

import os
import subprocess
import sys

import pytest

#: Answers ``--help`` as an executable with two commands would.
PROGRAM = r"""#!/bin/sh
case "$*" in
  --help) cat <<END
Two commands
Usage: tool COMMAND

Commands:
  one     First
  two     Second
END
  ;;
  "one --help") cat <<END
First

Positionals:
  FILE (required)     Read it

Options:
  -h,--help           Help
  --same INT          In both [1,2]

Common options:
  --seed N            Seed

Examples:
  tool one
END
  ;;
  "two --help") cat <<END
Second

Options:
  -h,--help           Help
  --same INT          In both [1,2]
  --a-rather-long-name-of-an-option A|B
                      Text below
END
  ;;
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


CHANGES = [
    ("<!-- options: tool two -->\n<!-- end of options -->\n", "", "no table of options for: tool"),
    ("tool one, tool two", "tool one, tool three", "no executable has these commands: tool three"),
    ("options: tool one -->", "options: tool two -->", "no table of options for: tool one"),
]


@pytest.mark.parametrize("old, new, said", CHANGES)
def test_commands_and_tables_are_the_same(tables, tool, tmp_path, old, new, said):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(old, new))
    done = tables("--check", page, tool)
    assert done.returncode == 1 and said in done.stderr
