"""The tables of a file of results, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .compared_models import ModelSpec, cost
from .paired_training import EQUAL
from .registry import TASKS
from .summary import Comparison, Line, Row, compare, equal_of, interval

__all__ = ["shown", "table"]

#: A score that is lower by less than this counts as the same.
_CLOSE = 0.01


def shown(values: Sequence[float], sign: str = "", digits: int = 3) -> str:
    """The mean and its interval."""
    if not values:
        return ""
    mean, half = interval(values)
    return f"{mean:{sign}.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


def _level(runs: dict[int, Line]) -> str:
    """Steps and seconds to the level, the medians of the seeds that reached it."""
    steps = [line["level_step"] for line in runs.values() if line["level_step"] is not None]
    if not steps:
        return ""
    seconds = [line["level_seconds"] for line in runs.values() if line["level_step"] is not None]
    middle = len(steps) // 2
    share = "" if len(steps) == len(runs) else f" ({len(steps)} of {len(runs)})"
    return f"{sorted(steps)[middle]}, {sorted(seconds)[middle]:.0f} s{share}"


def _markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _overview(found: list[Comparison], equal: str) -> list[str]:
    """A row per task. What is equal stands above the table and not beside every model."""

    def plain(row: Row) -> str:
        return row.model.replace(f" (equal {equal})", "").replace(f", equal {equal})", ")")

    names = sorted(
        {plain(row) for each in found for row in each.rows}, key=lambda name: (len(name), name)
    )
    rows = []
    for each in found:
        scores = {plain(row): shown(row.scores) for row in each.rows}
        rows.append(
            [f"{each.task} ({each.metric})", *(scores.get(name, "") for name in names)]
            + [shown(each.gain, "+")]
        )
    return _markdown(["task", *names, "order 2 against order 1"], rows)


def _layers(depth: int) -> str:
    return f"{depth} layer" if depth == 1 else f"{depth} layers"


def _by_depth(each: Comparison, order: int) -> list[Row]:
    """Models of one order and of nothing special, the shallowest first."""
    own = [row for row in each.rows if row.model == f"{order}x{row.line['depth']}"]
    return sorted(own, key=lambda row: row.line["depth"])


def _not_with(rows: list[Row]) -> str:
    return "not with " + ", ".join(str(row.line["depth"]) for row in rows) if rows else ""


def _first_depth(rows: list[Row]) -> str:
    """The fewest layers with which every seed reaches the level; if there are none, with which
    some seed does."""

    def reached(row: Row) -> int:
        return sum(line["level_step"] is not None for line in row.runs.values())

    some = [row for row in rows if reached(row)]
    all_seeds = [row for row in some if reached(row) == len(row.runs)]
    for row in (all_seeds or some)[:1]:
        return f"{_layers(row.line['depth'])}: {_level(row.runs)}"
    return _not_with(rows)


def _depths(found: list[Comparison]) -> list[str]:
    """How many layers each order needs for the level, and order 1 for the score of the best
    model of order 2."""
    rows = []
    for each in found:
        ordinary = _by_depth(each, 1)
        equals = ""
        if each.second is not None:
            wanted = interval(each.second.scores)[0] - _CLOSE
            enough = [row for row in ordinary if interval(row.scores)[0] >= wanted]
            equals = _layers(enough[0].line["depth"]) if enough else _not_with(ordinary)
        level = f"{TASKS[each.task].level:g}" if each.task in TASKS else ""
        rows.append(
            [f"{each.task} ({each.metric})", level, _first_depth(ordinary)]
            + [_first_depth(_by_depth(each, 2)), _first_depth(_by_depth(each, 3)), equals]
        )
    header = ["task", "level", "order 1: layers, steps, seconds", "order 2", "order 3"]
    return _markdown([*header, f"order 1 within {_CLOSE:g} of order 2"], rows)


def _price(task: str, model: str, width: int) -> str:
    """Flops of a model relative to those of all tuples, both of the width of the reference."""
    if task not in TASKS or TASKS[task].missing():
        return ""
    whole, own = (
        cost(TASKS[task], ModelSpec.parse(name), width, 4 * width).flops
        for name in (model.split(":")[0], model)
    )
    return f"{own / whole:.2f}"


def _kept(found: list[Comparison], lines: Sequence[Line]) -> list[str]:
    """What selected tuples keep of a gain of all tuples, if that gain is not 0."""
    ratios = {
        (line["task"], line["model"]): line["step_ratio"]
        for line in lines
        if line.get("kind") == "speed"
    }
    rows = []
    for each in found:
        for row in each.rows:
            whole = [one for one in each.rows if one.model == row.model.split(":")[0]]
            if ":" not in row.model or not whole or len(whole[0].gain) < 2 or not row.gain:
                continue
            mean, half = interval(whole[0].gain)
            if mean <= half:
                continue
            ratio = ratios.get((each.task, row.model))
            rows.append(
                [each.task, row.model, shown(whole[0].gain, "+"), shown(row.gain, "+")]
                + [f"{100 * interval(row.gain)[0] / mean:.0f} %"]
                + [_price(each.task, row.model, row.line["reference"])]
                + ["" if ratio is None else f"{ratio:.2f}"]
            )
    header = ["task", "model", "gain of all tuples", "gain of the model", "kept"]
    header += ["flops at the width of all tuples", "seconds per step at equal flops"]
    return _markdown(header, rows) if rows else []


def table(lines: Sequence[Line]) -> str:
    """Markdown: a row per task for everything that can be equal, the layers that each order needs,
    what selected tuples keep, and a table per task."""
    text = []
    for equal in EQUAL:
        found = compare([line for line in lines if equal_of(line) == equal])
        if found:
            text += ["", f"### Equal {equal}", "", *_overview(found, equal)]
    found = compare([line for line in lines if equal_of(line) == EQUAL[0]])
    if found:
        text += ["", "### Layers that an order needs", "", *_depths(found)]
        kept = _kept(found, lines)
        text += ["", "### What selected tuples keep", "", *kept] if kept else []
    header = ["model", "width x hidden", "parameters", "steps", "rate", "seeds", "score"]
    header += ["against order 1", "longer inputs", "steps, seconds to the level"]
    for each in compare(lines):
        text += ["", f"### {each.task} ({each.metric})", ""]
        rows = []
        for row in each.rows:
            line = row.line
            rows.append(
                [row.model, f"{line['dim']} x {line['hidden']}", str(line["parameters"])]
                + [str(line["steps"]), f"{line['rate']:g}", str(len(row.scores))]
                + [shown(row.scores), shown(row.gain, "+"), shown(row.long), _level(row.runs)]
            )
        text += _markdown(header, rows)
    return "\n".join(text[1:])
