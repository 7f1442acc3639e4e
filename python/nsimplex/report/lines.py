"""Lines of JSON and texts of files that anybody may have written: what is broken in them is left out."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

Row = dict

_LARGEST = 1e300  # of a number that figures are made with: squares and sums of what is beyond overflow

#: Keys whose values are words, where a line has them at all; sections group lines by them.
_WORDS = frozenset(
    "arm over model encoding task curve squash flow statement analysis estimator key row equal sparse dtype norm method "
    "source axis scale figure text".split()
)
#: Keys whose values are numbers, null where they are not known.
_NUMBERS = frozenset(
    "step steps epoch order depth layer seed rate tokens radius heads head_dim first second hops train_loss val_loss "
    "accuracy majority sigma noises mean deviation limit generality trials draws alpha beta speed_up speedup shd "
    "parameters rows columns edges constant printed best_rate best_loss gflops".split()
)

_WHOLE = frozenset(("layer", "heads", "head_dim"))


def read_text(path: Path) -> str:
    """What a file holds, bytes that are no UTF-8 as marks of that; "" where it cannot be read or is no plain file."""
    try:
        # A pipe is opened without waiting for somebody who writes into it, to be told apart from a file.
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
    """The JSON objects of a file, one a line; lines that are none, or not of the kind that commands write, are left out."""
    rows = (_row(line) for line in read_text(path).split("\n"))
    return [row for row in rows if row is not None]


def _row(line: str) -> Row | None:
    try:
        row = json.loads(line, parse_int=_whole_number)
        # Half of a surrogate pair can be written in JSON, but is no character.
        if "\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and _is_sound(row) else None


def _whole_number(digits: str) -> int:
    value = int(digits)
    if abs(value) > _LARGEST:
        raise ValueError(f"expected a number that figures can be made with, got one of {len(digits)} digits")
    return value


def _is_sound(row: Row) -> bool:
    for key, value in row.items():
        if key in _WORDS and not (value is None or isinstance(value, str)):
            return False
        if key in _WHOLE and isinstance(value, float) and not value.is_integer():
            return False
        if key in _NUMBERS and value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
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
