"""Transcripts of commands: what they print, refuse and leave behind, in any language that they are
written in.

A file of tests/transcripts has command lines, each after a ``$``, and below each what was seen. All
lines of a block, which ends at an empty line, share a folder with the inputs of ``make_inputs``.
To record what the commands do now, or only some blocks of some files:

    python tests/python/process/transcripts.py [FILE [WORD OF A BLOCK]]

A new case is a new ``$`` line. Numbers are written as ``#`` where a command succeeds. Of JSON, the
names and types of fields are kept, and of a file what its readers rely on.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from pathlib import Path

import numpy
from commands import make_inputs

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tools" / "site"))
from command_tables import rows_of

#: Longer texts are lists, such as a script of completions, that other tests know.
_MOST_LINES = 20
FOLDER = ROOT / "tests" / "transcripts"
_NUMBER = re.compile(r"(?<![\w#])[-−+]?(\d[\d_]*(\.\d+)?(e[-+]?\d+)?|nan|inf)(?![A-Za-z_])")


def blocks_of(text):
    """The blocks of a file."""
    return [block.strip("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]


def lines_of(block):
    """The command lines of a block. The blocks below a line ``# slow`` are only for test-all."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def without_numbers(text):
    """A line whose numbers and spaces do not depend on the run."""
    return re.sub(r" {2,}", "  ", re.sub(r"#([ ,]+#)+", "# ..", _NUMBER.sub("#", text))).rstrip()


def type_of(value):
    """The type of a JSON value."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} {type_of(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + "|".join(sorted({type_of(each) for each in value})) + "]"
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float", str: "text"}[type(value)]


def fields_of(objects):
    """Names of fields by type; ``name?`` is a field that only some of the objects have."""
    types = defaultdict(set)
    for each in objects:
        for name, value in each.items():
            types[name].add(type_of(value))
    named = defaultdict(list)
    for name in sorted(types):
        everywhere = all(name in each for each in objects)
        named["|".join(sorted(types[name]))].append(name if everywhere else f"{name}?")
    return "; ".join(f"{kind} {' '.join(names)}" for kind, names in sorted(named.items()))


def _json_lines(text):
    kinds = defaultdict(list)
    for line in text.splitlines():
        value = json.loads(line)
        kinds[value.pop("kind", "no kind")].append(value)
    for kind, objects in kinds.items():
        yield f"kind {kind}: {fields_of(objects)}"


def _json(path):
    value = json.loads(path.read_text())
    return [fields_of(value if isinstance(value, list) else [value])]


def _toml(path):
    return ["; ".join(line for line in path.read_text().splitlines() if line[0] != "#")]


def _table(path):
    delimiter = "\t" if path.suffix == ".tsv" else ","
    first = next(csv.reader(path.read_text().splitlines(), delimiter=delimiter), [])
    return [delimiter.join(without_numbers(cell) for cell in first)]


def _safetensors(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header.pop("__metadata__", {})
    kinds = defaultdict(set)
    for name, entry in header.items():
        each = re.sub(r"(?<=\.)\d+(?=\.)", "#", name)
        kinds[f"{entry['dtype']} of {len(entry['shape'])} axes"].add(each)
    yield f"metadata: {' '.join(sorted(metadata))}"
    yield from (f"{kind}: {' '.join(sorted(names))}" for kind, names in sorted(kinds.items()))


def _array(path):
    array = numpy.load(path, allow_pickle=False)
    return [f"{array.dtype} of {array.ndim} axes"]


_READERS = {
    ".json": _json,
    ".jsonl": lambda path: _json_lines(path.read_text()),
    ".toml": _toml,
    ".csv": _table,
    ".tsv": _table,
    ".safetensors": _safetensors,
    ".npy": _array,
}


def _wrapped(line):
    indent = " " * (len(line) - len(line.lstrip()))
    wrap = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(line, 110, subsequent_indent=f"{indent}    ", **wrap) or ["."]


def _help(text):
    """A help without the meaning of options: purpose, usage, options, commands and examples."""
    head, *groups = re.split(r"\n+(?=\S.*:\n)", text)
    yield from head.splitlines()
    for group, rows in itertools.groupby(rows_of(text), lambda row: row.group):
        if group != "Commands":
            defaults = ((row.name, re.findall(r" \[[^]]*\]$", row.text)) for row in rows)
            yield f"{group}: {'; '.join(name + ''.join(default) for name, default in defaults)}"
    for group in groups:
        if group.startswith(("Commands:", "Examples:")):
            yield from (row for row in group.splitlines()[1:] if row.startswith("  "))


def _said(code, out):
    """Lines of standard output."""
    if out.startswith("{"):
        return _json_lines(out)
    if code == 2:
        return out.splitlines()
    lines = [without_numbers(line) for line in out.splitlines()]
    lines = [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]
    return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], "and more"]


class Commands:
    """The programs of a build, and words that differ between machines and builds."""

    def __init__(self, programs):
        self.programs = programs
        said = subprocess.run([programs / "nsimplex", "info", "--json"], capture_output=True)
        facts = json.loads(said.stdout)
        names = ("processor", "family", "compiler", "torch", "version", "commit")
        self._words = [(facts[name], f"<{name}>") for name in names]
        levels = facts["simd_levels"]
        self._words += [(", ".join(levels), "<levels>"), *((each, "<level>") for each in levels)]
        self._words.sort(key=lambda pair: -len(pair[0]))

    def _own_words(self, text):
        for word, name in self._words:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", name, text)
        return text

    def _transcript(self, line, folder, seen):
        """What a command line does in a folder, as lines. ``seen`` has the files before it."""
        before = _times(folder)
        program, *words = shlex.split(line)
        done = subprocess.run(
            [self.programs / program, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        yield f"$ {line}"
        errors = done.stderr.splitlines()
        if not done.returncode:  # how far a command is comes when it likes
            errors = [without_numbers(each) for each in errors if each.startswith("nsimplex")]
        said = [f"exit {done.returncode}"] if done.returncode else []
        said += [f"! {each}" for each in errors]
        if "--help" in words:
            said += _help(done.stdout)
        else:
            said += _said(done.returncode, self._own_words(done.stdout))
        yield from _indented(said, "  ")
        for path, time in sorted(_times(folder).items()):
            if before.get(path) != time:
                content = [*_indented(_READERS.get(path.suffix, lambda path: [])(path), "    ")]
                unchanged = seen.get(path) == content
                seen[path] = content
                yield f"  > {path.relative_to(folder)}" + (" as before" if unchanged else "")
                yield from [] if unchanged else content

    def recorded_now(self, block, inputs):
        """A block as the commands behave now."""
        with tempfile.TemporaryDirectory() as folder:
            for path in Path(inputs).iterdir():
                (Path(folder) / path.name).symlink_to(path)
            seen, marks = {}, [line for line in block.splitlines() if line.startswith("#")]
            now = [self._transcript(line, Path(folder), seen) for line in lines_of(block)]
            return "\n".join([*marks, *(part for line in now for part in line)])


def _times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _indented(lines, indent):
    for line in lines:
        yield from (f"{indent}{part}" for part in _wrapped(line))


def record(name="*", word=""):
    """Writes files of transcripts again, or their blocks that hold a word."""
    commands = Commands(ROOT / "build" / "release" / "bin")
    with tempfile.TemporaryDirectory() as inputs:
        make_inputs(Path(inputs), commands.programs / "nsimplex")
        for file in sorted(FOLDER.glob(f"{name}.txt")):
            blocks = [
                commands.recorded_now(block, inputs) if word in block else block
                for block in blocks_of(file.read_text())
            ]
            file.write_text("\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    record(*sys.argv[1:])
