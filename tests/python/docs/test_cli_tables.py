"""The site's tables of options are what the executables say under --help."""

import os
import runpy
from types import SimpleNamespace

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

PAGE = "# Tool\n" + "".join(
    f"\n<!-- options: {names} -->\n> `--help` lists these options.\n"
    for names in ("common", "tool one, tool two", "tool one", "tool two")
)

FILLED = """# Tool

| option | meaning | commands |
| --- | --- | --- |
| `--seed N` | Seed | `one` |

| option | meaning |
| --- | --- |
| `--same INT` | In both [1,2] |

| option | meaning |
| --- | --- |
| `FILE (required)` | Read it |

| option | meaning |
| --- | --- |
| `--a-rather-long-name-of-an-option A\\|B` | Text below |
"""


@pytest.fixture(scope="module")
def tables(root):
    return SimpleNamespace(**runpy.run_path(str(root / "tools" / "site" / "command_tables.py")))


@pytest.fixture
def tool(tmp_path):
    path = tmp_path / "tool"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


def test_the_page_has_a_place_for_the_options_of_every_command(tables, root, executable):
    laboratory = executable.with_name("nsimplex-lab")
    if not os.access(laboratory, os.X_OK):
        pytest.skip("no nsimplex-lab; make lab builds it")
    commands = tables.read_commands(executable) | tables.read_commands(laboratory)
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    filled = tables.fill(page, commands)
    assert "| option | meaning" not in page and filled.count("| `--") > 400


def test_tables_take_the_place_of_comments(tables, tool):
    assert tables.fill(PAGE, tables.read_commands(tool)) == FILLED


CHANGES = [
    ("<!-- options: tool two -->", "", "no table of options for: tool"),
    ("tool one, tool two", "tool one, tool three", "no executable has these commands: tool three"),
    ("options: tool one -->", "options: tool two -->", "no table of options for: tool one"),
]


@pytest.mark.parametrize("old, new, said", CHANGES)
def test_commands_and_tables_are_the_same(tables, tool, old, new, said):
    with pytest.raises(tables.Mismatch, match=said):
        tables.fill(PAGE.replace(old, new), tables.read_commands(tool))
