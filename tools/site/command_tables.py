"""Writes the tables of options of the site's page docs/cli.md from the --help of the executables.

A table takes the place of two lines of the page, of which the first names the commands:

    <!-- options: nsimplex causal classify, nsimplex causal cluster -->
    > `--help` lists these options.

The table of several commands has the options that are the same in all of them. An option in the
table of some commands is not repeated in a table of fewer of them. The word ``common`` in place of
commands asks for the options that --help lists as common, with the commands that take each of them.

A command begins with the name of its executable; ``nsimplex-lab`` is written ``nsimplex lab``.
Every command needs a table of its own, and every table needs its executable.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

COMMON = "Common options"
PLACE = re.compile(r"<!-- options: (.*?) -->\n> `--help` lists these options.\n")
ROW = re.compile(r"  (?P<name>\S.*?(?: +\(required\))?)(?:  +(?P<text>\S.*))?$")


class Mismatch(Exception):
    """The page and the executables do not name the same commands."""


@dataclass(frozen=True)
class Option:
    """A line of a command's help."""

    group: str
    name: str
    text: str


def read_help(executable: Path, words: list[str]) -> list[Option]:
    """The rows of ``executable WORDS --help``."""
    command = [str(executable.absolute()), *words, "--help"]
    return rows_of(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def rows_of(shown: str) -> list[Option]:
    """The rows of a help: options, arguments and subcommands."""
    rows: list[Option] = []
    group = ""
    for line in shown.splitlines():
        if line.startswith("Examples:"):
            break
        if re.fullmatch(r"\S.*:", line):
            group = line[:-1]
        elif group and (row := ROW.match(line)):
            rows.append(Option(group, " ".join(row["name"].split()), row["text"] or ""))
        elif group and line.startswith(" ") and rows:  # the text of a long name
            last = rows.pop()
            rows.append(Option(last.group, last.name, f"{last.text} {line.strip()}".strip()))
    return [row for row in rows if row.name not in ("-h,--help", "-V,--version", "--config FILE")]


def read_commands(executable: Path) -> dict[str, list[Option]]:
    """Every command that has no further commands, by its full name, with its options."""
    found: dict[str, list[Option]] = {}
    level = [[]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while level:
            helps = list(pool.map(lambda words: read_help(executable, words), level))
            further = []
            for words, rows in zip(level, helps):
                commands = [row.name for row in rows if row.group == "Commands"]
                further += [[*words, name] for name in commands]
                if not commands:
                    found[" ".join([*executable.name.split("-"), *words])] = rows
            level = further
    return found


def escape(text: str) -> str:
    """``text`` as Markdown."""
    return re.sub(r"([*|<])", r"\\\1", text)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def option_cells(option: Option) -> list[str]:
    # A flag that switches something off shows its value in braces; nobody types that.
    name = re.sub(r"\{\w+\}", "", option.name).replace(",-", "`, `-").replace("|", "\\|")
    return [f"`{name}`", escape(option.text)]


def short_list(chosen: list[str], every: list[str]) -> str:
    """``chosen`` in words, or the commands that are missing if these are fewer."""
    rest = [name for name in every if name not in chosen]
    if not rest:
        return "all"
    listed = ", ".join(f"`{name.partition(' ')[2]}`" for name in min(chosen, rest, key=len))
    return listed if len(chosen) <= len(rest) else f"all but {listed}"


def common_table(commands: dict[str, list[Option]]) -> str:
    takers: dict[Option, list[str]] = {}
    for command, options in commands.items():
        for option in options:
            if option.group == COMMON:
                takers.setdefault(option, []).append(command)
    rows = [[*option_cells(o), short_list(names, list(commands))] for o, names in takers.items()]
    return table(["option", "meaning", "commands"], sorted(rows))


def same_in_all(names: list[str], commands: dict[str, list[Option]]) -> list[Option]:
    """The options that all of ``names`` have, with the same text without the common ones."""
    texts = [{(option.name, option.text) for option in commands[name]} for name in names]
    first = [option for option in commands[names[0]] if option.group != COMMON]
    return [o for o in first if all((o.name, o.text) in other for other in texts)]


def fill(page: str, commands: dict[str, list[Option]]) -> str:
    """``page`` with its tables."""
    lists = [[name.strip() for name in block.split(",")] for block in PLACE.findall(page)]
    lists = [names for names in lists if names != ["common"]]
    singles = [names[0] for names in lists if len(names) == 1]
    if missing := sorted(set(commands) - set(singles)):
        raise Mismatch("no table of options for: " + ", ".join(missing))
    if unknown := sorted({name for names in lists for name in names} - set(commands)):
        raise Mismatch("no executable has these commands: " + ", ".join(unknown))
    if len(singles) != len(set(singles)):
        raise Mismatch("two tables of options for one command")

    def write(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[1].split(",")]
        if names == ["common"]:
            body = common_table(commands)
        else:
            wider = [other for other in lists if set(other) > set(names)]
            elsewhere = {(o.name, o.text) for other in wider for o in same_in_all(other, commands)}
            rows = [o for o in same_in_all(names, commands) if (o.name, o.text) not in elsewhere]
            body = table(["option", "meaning"], [option_cells(o) for o in rows]) if rows else ""
        return body

    return PLACE.sub(write, page)
