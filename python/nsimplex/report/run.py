"""Reads a run directory leniently: a run that failed half-way is still worth a page."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

Row = dict

_LARGEST = (
    1e300  # of a number that figures are made with: squares and sums of what is beyond overflow
)

#: Keys whose values are words, where a line has them at all; sections group lines by them.
_WORDS = frozenset(
    "kind arm over model encoding task curve squash flow statement analysis estimator key row "
    "equal sparse dtype norm method "
    "source axis scale figure text".split()
)

#: Keys whose values are numbers, null where they are not known.
_NUMBERS = frozenset(
    "step steps epoch order depth layer seed rate tokens radius heads head_dim first second hops "
    "train_loss val_loss "
    "accuracy majority sigma noises mean deviation limit generality trials draws alpha beta "
    "speed_up speedup shd "
    "parameters rows columns edges constant printed best_rate best_loss gflops".split()
)

_WHOLE = frozenset(("layer", "heads", "head_dim"))


def read_text(path: Path) -> str:
    """What a file holds, bytes that are no UTF-8 as marks of that; "" where it cannot be read or is
    no plain file."""
    try:
        # A pipe is opened without waiting for somebody who writes into it, to be told apart from a
        # file.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read().decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def file_name(path: Path) -> str:
    """The last part of a path as text; names of files are bytes of any kind."""
    return os.fsencode(path.name).decode("utf-8", errors="replace")


def read_lines(path: Path) -> list[Row]:
    """The JSON objects of a file, one per line. Lines that are not objects, or not of the kind that
    commands write, are left out."""
    rows = (_row(line) for line in read_text(path).split("\n"))
    return [row for row in rows if row is not None]


def _row(line: str) -> Row | None:
    try:
        row = json.loads(line, parse_int=_whole_number)
        # Half of a surrogate pair can be written in JSON, but is not a character.
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and _is_sound(row) else None


def _whole_number(digits: str) -> int:
    value = int(digits)
    if abs(value) > _LARGEST:
        raise ValueError(
            f"expected a number that figures can be made with, got one of {len(digits)} digits"
        )
    return value


def _is_sound(row: Row) -> bool:
    for key, value in row.items():
        if key in _WORDS and not (value is None or isinstance(value, str)):
            return False
        if key in _WHOLE and isinstance(value, float) and not value.is_integer():
            return False
        if (
            key in _NUMBERS
            and value is not None
            and (isinstance(value, bool) or not isinstance(value, (int, float)))
        ):
            return False
    return True


def having(rows: list[Row], *keys: str) -> list[Row]:
    """Lines with a finite number for every key."""
    return [row for row in rows if all(number(row, key) is not None for key in keys)]


def number(row: Row, key: str) -> float | None:
    """A finite number, or None."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) <= _LARGEST else None  # false for NaN too


def latest(rows: list[Row], *names: str) -> list[Row]:
    """The last line of each model, seed, ..: a run that was continued has those of the part before,
    too."""
    return list({tuple(str(row.get(name)) for name in names): row for row in rows}.values())


#: Kinds of lines of version 0.1 by their field `analysis`.
_OLD_ANALYSES = {"model": "layer"} | {
    name: name for name in ("lipschitz", "sensitivity", "sharpness", "smoothing", "transfer")
}


def old_kind(row: Row) -> str:
    """The kind of a line as version 0.1 wrote it, by the fields that it has; "" where they tell
    none."""
    task, has = row.get("task"), row.keys().__contains__
    if task == "synthetic":
        return "placement_mean" if has("graphs") else "placement" if has("graph") else "structure"
    if task == "complexity":
        return "complexity_fit" if has("exponent") else "complexity"
    if task in ("fit", "simulate", "embed", "encode", "attenuation", "robustness", "predict"):
        return task
    if isinstance(row.get("analysis"), str):
        if has("best_rate"):
            return "transfer_best"
        return _OLD_ANALYSES.get(row["analysis"], "statement")
    if has("statement"):
        return "statement"
    if has("arm"):
        if has("alpha"):
            return "scaling_fit"
        if has("over"):
            return "comparison_pair" if has("difference") else "comparison_speed_up"
        if not has("equal"):
            return "scaling_point"
        return "comparison_point" if has("step") else "comparison_result"
    if has("model"):
        if has("forward_seconds"):
            return "graph_cost"
        if has("epoch"):
            return "graph_point"
        if has("seed"):
            return "graph_result" if has("best_epoch") else "graph_reference"
        return "graph_cost_fit" if has("largest_edges") else "graph_mean"
    if has("encoding"):
        return "encoding_mean" if has("trials") else "encoding_trial"
    if has("order"):
        return "match_point" if has("step") else "match_result"
    return "training" if has("train_loss") else ""


def with_kind(row: Row) -> Row:
    """A line with its kind, added to one that version 0.1 wrote."""
    if row.get("analysis") == "model" and "layer_kind" not in row:
        return row | {"kind": "layer", "layer_kind": row.get("kind", "")}
    return row if "kind" in row else row | {"kind": old_kind(row)}


@dataclass
class Folder:
    """The lines of one folder of a run directory, or those of them that a section shows."""

    name: str
    path: Path
    rows: list[Row]


@dataclass
class Run:
    """All that a run directory and the folders directly below it hold, apart from files beside the
    lines."""

    name: str
    folders: list[Folder] = field(default_factory=list)
    samples: list[Row] = field(default_factory=list)
    bench: list[Row] = field(default_factory=list)
    compare: list[Row] = field(default_factory=list)
    info: Row = field(default_factory=dict)
    seeds: list[str] = field(default_factory=list)
    written: float = 0  #: when a line was last added, in seconds since 1970; 0 without lines
    command: str = ""
    commands: list[str] = field(default_factory=list)

    def having_kinds(self, kinds: set[str]) -> list[Folder]:
        """The folders with their lines of some kinds; those without any are left out."""
        found = []
        for folder in self.folders:
            rows = [row for row in folder.rows if row["kind"] in kinds]
            if rows:
                found.append(Folder(folder.name, folder.path, rows))
        return found


def _command_of(config: str) -> str:
    first = config.partition("\n")[0]
    return first[1:].strip() if first.startswith("# nsimplex ") else ""


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0


def read_run(root: Path) -> Run:
    """Reads a run directory and the folders directly below it."""
    run = Run(name=file_name(root.resolve()))
    for folder in [root, *sorted(p for p in root.iterdir() if p.is_dir())]:
        rows = [with_kind(row) for row in read_lines(folder / "metrics.jsonl")]
        run.folders.append(Folder(file_name(folder), folder, rows))
        run.samples += [
            r for r in read_lines(folder / "samples.jsonl") if isinstance(r.get("text"), str)
        ]
        run.bench += having(read_lines(folder / "bench.jsonl"), "gflops")
        run.compare += having(read_lines(folder / "compare.jsonl"), "speedup")
        for row in read_lines(folder / "info.json"):
            run.info.update(row)
        run.written = max(run.written, _changed(folder / "metrics.jsonl"))
        config = read_text(folder / "config.toml")
        if command := _command_of(config):
            run.commands.append(command)
        run.seeds += re.findall(r"^seed *= *(\d+)$", config, re.MULTILINE)
    run.command = read_text(root / "command.txt").strip()
    return run
