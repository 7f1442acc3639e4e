"""Columns of text as features and targets."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from .._choices import GraphTarget
from .._csv_text import read_text
from .._printable import printable


class BadRow(ValueError):
    """A row that cannot be read: the message, the file, the line or the row, and the reason."""

    def __init__(self, message: str, path: str, line: int, reason: str) -> None:
        super().__init__(message)
        self.path, self.line, self.reason = path, line, reason


class BadRows(list[BadRow]):
    """Rows that are left out, if ``skip`` is true; otherwise the first one is raised."""

    def __init__(self, skip: bool = False) -> None:
        super().__init__()
        self.skip = skip

    def add(self, error: BadRow) -> None:
        """Takes note of a row.

        Raises:
            BadRow: the error itself, unless such rows are left out.
        """
        if not self.skip:
            raise error
        self.append(error)


MOST_VALUES = 1000  # different texts of a column of features
KINDS = get_args(GraphTarget)


@dataclass
class Table:
    """Rows of a csv file, by column. Columns are in the order of the file."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int] = field(default_factory=list)  #: of the file; empty if rows have none
    whole: set[str] | None = None  #: columns of arrays of whole numbers; None: all are texts

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def at(self, row: int) -> str:
        """Where a row is, for a message."""
        place = f"line {self.lines[row]}" if self.lines else f"row {row}"
        return f"cannot read {printable(self.path)}, {place}: "

    def error(self, row: int, reason: str) -> BadRow:
        return BadRow(
            self.at(row) + reason, self.path, self.lines[row] if self.lines else row, reason
        )

    def require(self, name: str, option: str) -> list[str]:
        if name not in self.columns:
            have = ", ".join(map(printable, self.columns)) or "none"
            raise ValueError(
                f"{option}: expected a column {name!r} in {printable(self.path)}, got {have}"
            )
        return self.columns[name]


class Column(NamedTuple):
    """How a column of features becomes numbers: as it is, or as one column of 0 and 1 per text."""

    name: str
    values: list[str] | None  #: the texts; None: numbers


def read_csv(path: str | os.PathLike[str], bad: BadRows | None = None) -> Table:
    """A csv file with a header. The delimiter is the first of tab, semicolon and comma that the
    header has. Columns of one name are one column if all their cells are equal. ``bad`` takes lines
    with another number of cells than the header.

    Raises:
        ValueError: "cannot read PATH, line N: WHY".
    """
    name = os.fspath(path)
    at = f"cannot read {printable(name)}"
    bad = BadRows() if bad is None else bad
    text = read_text(path)
    if "\0" in text:
        raise ValueError(f"{at}: expected csv, got bytes that are no text")
    header = text.partition("\n")[0]
    delimiter = next((each for each in "\t;," if each in header), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        names = [each.strip() for each in next(reader, [])]
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                why, line = f"expected {len(names)} cells, got {len(row)}", reader.line_num
                bad.add(BadRow(f"{at}, line {line}: {why}", name, line, why))
                continue
            rows.append([each.strip() for each in row])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"{at}, line {reader.line_num}: {error}") from None
    if not names:
        raise ValueError(f"{at}: expected a header, got an empty file")
    columns: dict[str, list[str]] = {}
    for place, each in enumerate(names):
        cells = [row[place] for row in rows]
        if columns.setdefault(each, cells) != cells:
            raise ValueError(f"{at}: two columns with different cells are called {each!r}")
    return Table(name, columns, lines)


def number_of(text: str) -> float | None:
    """A number in decimal digits, infinities and nan included, or None."""
    if not text.isascii() or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def describe_columns(table: Table, names: Sequence[str]) -> list[Column]:
    """How columns become features, by the values that they have.

    Raises:
        ValueError: a column with too many texts.
    """
    found = []
    for name in names:
        values = table.columns[name]
        if all(number_of(each) is not None for each in values if each):
            found.append(Column(name, None))
            continue
        texts = sorted(set(values))
        if len(texts) > MOST_VALUES:
            raise ValueError(
                f"cannot read {printable(table.path)}: expected at most {MOST_VALUES} different "
                f"texts in column {name!r}, got {len(texts)} (--ignore leaves it out)"
            )
        found.append(Column(name, texts))
    return found


def _unusable(value: float | None) -> str:
    """What a cell was expected to hold if a model cannot use its number; "" if it can."""
    if value is None or not math.isfinite(value):
        return "a finite number"
    return "" if abs(value) <= _LARGEST else f"a number of at most {_LARGEST:.2g}"


def features_of(table: Table, columns: Sequence[Column]) -> Tensor | None:
    """Features float32 [rows, d] of the columns of a table; None without columns.

    Raises:
        ValueError: a column that is missing, a cell without a finite number, an unknown text.
    """
    parts = []
    for column in columns:
        cells = table.require(column.name, "DATA")
        if column.values is None:
            numbers = [number_of(each) for each in cells]
            for row, value in enumerate(numbers):
                if wanted := _unusable(value):
                    raise ValueError(
                        f"{table.at(row)}expected {wanted} in column {column.name!r}, got "
                        f"{cells[row]!r:.40}"
                    )
            parts.append(torch.tensor(numbers, dtype=torch.float32).view(-1, 1))
            continue
        places = {text: place for place, text in enumerate(column.values)}
        for row, each in enumerate(cells):
            if each not in places:
                raise ValueError(
                    f"{table.at(row)}expected a text of column {column.name!r} that the model "
                    f"knows, got {each!r:.40}"
                )
        chosen = torch.tensor([places[each] for each in cells], dtype=torch.int64)
        parts.append(torch.nn.functional.one_hot(chosen, len(places)).float())
    return torch.cat(parts, 1) if parts else None


class Targets(NamedTuple):
    """Targets of rows, and which of them are known."""

    values: Tensor  #: float32 [rows, outputs], or int64 [rows] of classes
    known: Tensor  #: bool [rows]
    kind: str  #: one of KINDS
    classes: list[str]  #: names, of two classes for texts of a binary target
    outputs: int


_LARGEST = torch.finfo(torch.float32).max
_MOST_CLASSES = 100  # of whole numbers of a text
_MISSING = frozenset(("", "na", "nan", "n/a", "null", "none", "?"))


def targets_of(
    table: Table,
    names: Sequence[str],
    kind: str,
    classes: Sequence[str],
    bad: BadRows | None = None,
) -> Targets:
    """Targets of the columns ``names``. A cell is unknown if it is empty, NA, nan, null or ?.

    Args:
        kind: one of KINDS, or "auto": columns of 0 and 1 are "binary" or "labels"; one column of
            texts, of an array of whole numbers, or of few different numbers 0, 1, .. in a text is
            "classes"; other numbers are "number".
        classes: names that are known already; (): those of the table.
        bad: takes rows with values that do not fit, whose targets are then unknown. If it leaves
            rows out, a column is of numbers, or of 0 and 1 for "binary", if more than half of its
            known cells are.

    Raises:
        ValueError: a column that is missing, values that do not fit, a class that is not known.
    """
    bad = BadRows() if bad is None else bad
    columns = [table.require(name, "--target") for name in names]
    known = [[each.lower() not in _MISSING for each in column] for column in columns]
    cells = [
        each for own, has in zip(columns, known) for each, is_known in zip(own, has) if is_known
    ]
    numbers = [each for each in map(number_of, cells) if each is not None]
    numeric = len(numbers) == len(cells) or (bad.skip and 2 * len(numbers) > len(cells))
    finite = [each for each in numbers if not bad.skip or math.isfinite(each)]
    truths = numeric and set(finite) <= {0.0, 1.0}
    if kind == "binary" and bad.skip:
        truths = 2 * sum(each in (0.0, 1.0) for each in numbers) > len(cells)
    if kind == "auto":
        if not cells:
            raise ValueError(f"--target: column {names[0]!r} of {printable(table.path)} is empty")
        several = len(columns) > 1
        kind = "number"
        if truths:
            kind = "labels" if several else "binary"
        elif not numeric or (not several and _are_classes(table, names[0], cells, numbers)):
            kind = "classes"
    if kind in ("binary", "classes") and len(columns) > 1:
        raise ValueError(f"--target: expected one column of a {kind} target, got {len(columns)}")
    if kind == "classes" or (kind == "binary" and (classes or not truths)):
        return _class_targets(table, names[0], columns[0], known[0], kind, classes, bad)
    parts, refused = [], set[int]()
    for name, column, has in zip(names, columns, known):
        values = []
        for row, (text, is_known) in enumerate(zip(column, has)):
            value = number_of(text) if is_known else math.nan
            wanted = _unusable(value) if is_known else ""
            if not wanted and kind != "number" and is_known and value not in (0.0, 1.0):
                wanted = f"0 or 1 of a {kind} target"
            if wanted and row not in refused:
                bad.add(table.error(row, f"expected {wanted} in column {name!r}, got {text!r:.40}"))
                refused.add(row)
            values.append(math.nan if wanted or value is None else value)
        parts.append(torch.tensor(values, dtype=torch.float32))
    targets = torch.stack(parts, 1)
    targets[sorted(refused)] = math.nan
    return Targets(targets, ~targets.isnan().all(1), kind, [], len(parts))


def _are_classes(table: Table, name: str, cells: list[str], numbers: list[float]) -> bool:
    """Whether numbers are classes: those of an array of whole numbers, as in PyTorch Geometric, and
    numbers 0, 1, .. of a text, at most 100 of which each occurs twice on average."""
    if table.whole is not None:
        return name in table.whole
    found = sorted(set(numbers))
    few = len(found) <= min(_MOST_CLASSES, len(cells) // 2)
    return len(numbers) == len(cells) and few and found == list(range(len(found)))


def _class_targets(
    table: Table,
    name: str,
    cells: list[str],
    known: list[bool],
    kind: str,
    classes: Sequence[str],
    bad: BadRows,
) -> Targets:
    have = {each for each, is_known in zip(cells, known) if is_known}
    names = list(classes) or sorted(have, key=_class_order)
    if kind == "binary" and len(names) != 2:
        raise ValueError(
            f"--kind: expected two classes of a binary target in column {name!r}, got {len(names)}"
        )
    if len(names) < 2:
        raise ValueError(
            f"--target: expected at least two classes in column {name!r}, got "
            f"{', '.join(map(printable, names)) or 'none'}"
        )
    places: dict[str, int] = {each: place for place, each in enumerate(names)}
    rows = []
    for row, (text, is_known) in enumerate(zip(cells, known)):
        if is_known and text not in places:
            bad.add(
                table.error(
                    row, f"expected a class of the model in column {name!r}, got {text!r:.40}"
                )
            )
        rows.append(places.get(text, -1) if is_known else -1)
    numbers = torch.tensor(rows, dtype=torch.int64)
    has = numbers >= 0
    if kind == "binary":
        values = torch.where(has, numbers.float(), torch.nan)[:, None]
        return Targets(values, has, kind, names, 1)
    return Targets(numbers, has, kind, names, len(names))


def _class_order(text: str) -> tuple[Any, ...]:
    value = number_of(text)
    return (1, 0.0, text) if value is None or math.isnan(value) else (0, value, text)
