"""Models and tasks of a file of results: means, intervals, and differences paired by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .paired_training import EQUAL

__all__ = ["Comparison", "Line", "Row", "compare", "equal_of", "interval", "order_of", "summarize"]

Line = dict[str, Any]


class Row(NamedTuple):
    """A model of a task over its seeds, at the rate that its first seed chose."""

    task: str
    metric: str
    model: str
    line: Line
    scores: list[float]
    long: list[float]
    gain: list[float]  # minus the best model of order 1, seed by seed
    runs: dict[int, Line]  # by seed


class Comparison(NamedTuple):
    """A task: its rows, and the best models of order 1 and of order 2 on the split "valid".

    ``equal`` is what these two have in common. Other rows may have something else in common."""

    task: str
    metric: str
    equal: str
    rows: list[Row]
    first: Row | None
    second: Row | None

    @property
    def gain(self) -> list[float]:
        """Order 2 minus order 1, seed by seed; empty if one of them was not run."""
        return self.second.gain if self.first and self.second else []


def interval(values: Sequence[float], comparisons: int = 1) -> tuple[float, float]:
    """(mean, half the width of its 95 % interval by Student's t); NaN for fewer than two values.

    The intervals of several comparisons hold together at 95 % by Bonferroni's correction.
    """
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    quantile = _student_quantile(1 - 0.05 / comparisons, len(values) - 1)
    return mean, quantile * math.sqrt(spread / len(values))


def _student_quantile(share: float, degrees: int) -> float:
    """The t with this share of Student's distribution between -t and t, found by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _student_share(middle, degrees) > share else (middle, high)
    return math.sqrt(degrees) * math.tan(low)


def _student_share(angle: float, degrees: int) -> float:
    """The share between -t and t, for t = sqrt(degrees) tan(angle): Abramowitz and Stegun, 26.7.3
    and 26.7.4."""
    odd = degrees % 2
    total, term = 0.0, math.cos(angle) if odd else 1.0
    for step in range(1 + odd, degrees, 2):
        total += term
        term *= step / (step + 1) * math.cos(angle) ** 2
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share


def order_of(model: str) -> int:
    """The order of a model with all tuples and one order of heads; 0 for any other."""
    name = model.split(" ")[0]
    return int(name[0]) if name[:1].isdigit() and name[1:2] == "x" and ":" not in name else 0


def _chosen(lines: Iterable[Line]) -> dict[tuple[str, str], dict[int, Line]]:
    """Runs by (task, model) and seed, at the rate with the best "valid" of seed 1.

    Models with a norm, equal parameters or equal seconds have separate names. Of a model that
    ran for several numbers of steps, the longest runs are taken.
    """
    runs: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.get("kind") == "run":
            runs.setdefault((line["task"], _name(line)), []).append(line)
    chosen = {}
    for key, found in runs.items():
        longest = max(line["steps"] for line in found)
        found = [line for line in found if line["steps"] == longest]
        first = [line for line in found if line["seed"] == 1]
        if first:
            rate = max(first, key=lambda line: line["valid"])["rate"]
            chosen[key] = {line["seed"]: line for line in found if line["rate"] == rate}
    return chosen


def _name(line: Line) -> str:
    notes = ["QK norm"] if line.get("norm", "none") == "qk" else []
    notes += [f"equal {equal_of(line)}"] if equal_of(line) != EQUAL[0] else []
    return " ".join([line["model"], *([f"({', '.join(notes)})"] if notes else [])])


def equal_of(line: Line) -> str:
    """What the models of a comparison have in common: one of ``EQUAL``."""
    return line.get("equal", EQUAL[0])


def _valid(runs: dict[int, Line]) -> float:
    return sum(line["valid"] for line in runs.values()) / len(runs)


def summarize(lines: Iterable[Line]) -> list[Row]:
    """A row per task and model, in the order of the lines. The gain of a model is its score minus
    that of the best model of order 1 of equal cost, paired by seed."""
    chosen = _chosen(lines)
    best: dict[tuple[str, str], dict[int, Line]] = {}
    for (task, model), runs in chosen.items():
        key = task, equal_of(runs[1])
        if order_of(model) == 1 and (key not in best or _valid(runs) > _valid(best[key])):
            best[key] = runs
    rows = []
    for (task, model), runs in chosen.items():
        peers = best.get((task, equal_of(runs[1])), {})
        rows.append(
            Row(
                task,
                runs[1]["metric"],
                model,
                runs[1],
                [runs[seed]["score"] for seed in sorted(runs)],
                [runs[seed]["long"] for seed in sorted(runs) if runs[seed]["long"] is not None],
                [runs[s]["score"] - peers[s]["score"] for s in sorted(runs) if s in peers],
                runs,
            )
        )
    return rows


def compare(lines: Iterable[Line]) -> list[Comparison]:
    """A comparison per task, in the order of the lines. The best models are those of equal flops,
    unless a task has none."""
    tasks: dict[str, list[Row]] = {}
    for row in summarize(lines):
        tasks.setdefault(row.task, []).append(row)
    found = []
    for task, rows in tasks.items():
        best: list[Row | None] = []
        common = min((equal_of(row.line) for row in rows), key=EQUAL.index)
        for order in (1, 2):
            own = [
                row for row in rows if order_of(row.model) == order and equal_of(row.line) == common
            ]
            best.append(max(own, key=lambda row: _valid(row.runs)) if own else None)
        found.append(Comparison(task, rows[0].metric, common, rows, *best))
    return found
