"""The figure of a file of results, drawn by the elements of the report."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import Any

import torch

from ..._whole_file import whole_file
from .registry import TASKS
from .summary import Comparison, Line, compare, equal_of, interval, order_of

__all__ = ["comparisons_of", "draw", "gain_text"]

#: Shapes say the number of layers; the colour says the order.
_SHAPES = {1: "o", 2: "s", 3: "^", 4: "D", 6: "P"}
#: Order 1 is drawn above the line of its task and order 2 below it.
_HEIGHTS = {1: -0.19, 2: 0.19}


def _trivial(task: str) -> float | None:
    """The score on the split "test" of the best constant answer; None if the data is absent."""
    known = TASKS.get(task)
    if known is None:
        return None
    if not known.classes:
        return 0.0
    if known.missing():
        return None
    targets = known.draw(256, torch.Generator().manual_seed(2), "test").targets
    counts = targets[targets >= 0].bincount()
    return (counts.max() / counts.sum()).item()


def _is_control(task: str) -> bool:
    return task in TASKS and TASKS[task].order == 1


def _sorted(found: list[Comparison]) -> list[Comparison]:
    """Tasks by the mean gain of order 2, the largest first, and the controls after them."""

    def place(each: Comparison) -> tuple[bool, float]:
        return _is_control(each.task), -interval(each.gain)[0] if each.gain else 0.0

    return sorted(found, key=place)


def gain_text(each: Comparison, comparisons: int) -> tuple[str, bool]:
    """The text of the gain of order 2, and whether its interval leaves 0 out.

    Args:
        comparisons: the number of intervals of the figure, for which this one is corrected.
    """
    if not each.gain:
        return "", False
    mean, half = interval(each.gain, comparisons)
    text = "0.00" if abs(mean) < 0.005 else f"{mean:+.2f}".replace("-", "−")
    if math.isnan(half):
        return text, False
    return f"{text} ± {half:.2f}", abs(mean) > half


def comparisons_of(found: Sequence[Comparison]) -> int:
    """The number of tasks that have an interval."""
    return max(1, sum(len(each.gain) > 1 for each in found))


def draw(lines: Sequence[Line], path: str | os.PathLike[str]) -> None:
    """An SVG with a row per task: a small point per seed, a large one for the mean of a model, and
    the score of order 2 minus that of order 1 with its interval, corrected for the number of tasks.
    Models of selected tuples are only in the table, and so are equal parameters and seconds if
    equal flops were run.

    Raises:
        ValueError: matplotlib is missing.
    """
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            "--figure needs matplotlib: python -m pip install matplotlib (the extra plots)"
        ) from None
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ...report.elements import INK, LINE, MUTED, SERIES, STYLE, picture, svg

    def mark(model: str, line: Line) -> tuple[str, str]:
        order = order_of(model)
        return SERIES[order - 1 if 1 <= order <= 3 else 3], _SHAPES.get(line["depth"], "X")

    found = _sorted(compare(lines))
    comparisons = comparisons_of(found)
    controls = [_is_control(each.task) for each in found]
    models: dict[str, Line] = {}
    style: dict[Any, Any] = {**STYLE, "font.size": 11.5, "axes.grid": False}
    with matplotlib.rc_context(style):
        height = 0.42 * len(found) + (0.3 if any(controls) else 0) + 1.5
        figure = Figure(figsize=(6.4, height), layout="constrained")
        axes = figure.subplots()
        place = 0.0
        places: list[float] = []
        for each, control in zip(found, controls):
            if control and True not in controls[: len(places)]:
                place += 0.8
                axes.text(0, place - 0.75, "controls: no tuple is needed", color=MUTED, va="center")
            places.append(place)
            axes.plot([0, 1], [place] * 2, color=LINE, linewidth=0.8, zorder=0)
            constant = _trivial(each.task)
            if constant is not None:
                axes.plot([constant] * 2, [place - 0.36, place + 0.36], color=MUTED, linewidth=1.4)
            for row in each.rows:
                if ":" in row.model or equal_of(row.line) != each.equal:
                    continue
                models.setdefault(row.model, row.line)
                color, shape = mark(row.model, row.line)
                drawn = [max(score, -0.03) for score in row.scores]
                at = place + _HEIGHTS.get(order_of(row.model), 0)
                axes.plot(drawn, [at] * len(drawn), ".", color=color, markersize=4, alpha=0.6)
                mean = sum(drawn) / len(drawn)
                axes.plot(mean, at, shape, color=color, markersize=6, fillstyle="none", mew=1.6)
            text, clear = gain_text(each, comparisons)
            axes.text(
                1.06,
                place,
                text,
                color=INK if clear else MUTED,
                fontweight="bold" if clear else "normal",
                va="center",
            )
            place += 1
        axes.set_yticks(places, [each.task for each in found], color=INK)
        axes.set_ylim(place - 0.4, -0.6)
        axes.set_xlim(-0.05, 1.4)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel("accuracy or R2 on new sequences", x=0.36)
        axes.text(1.06, -0.75, "order 2 − order 1", color=MUTED, va="bottom")
        handles = []
        for model, line in sorted(models.items()):
            color, shape = mark(model, line)
            handles.append(
                Line2D([], [], color=color, marker=shape, linestyle="", fillstyle="none", mew=1.8)
            )
        names = [_words(model, line) for model, line in sorted(models.items())]
        handles.append(Line2D([], [], color=MUTED, marker="|", linestyle="", markersize=9, mew=1.4))
        names.append("constant answer")
        figure.legend(handles, names, loc="outside upper center", ncols=2, frameon=False)
        alt = "Scores of every model per task, with the score of order 2 minus that of order 1"
        text = svg(figure, "pays", alt, "")
    with whole_file(path) as file:
        file.write(picture(text, 640))


def _words(model: str, line: Line) -> str:
    """``2x1`` as "order 2, 1 layer", ``1+1+2x2`` as "heads of 1, 1, 2; 2 layers"."""
    order, depth = order_of(model), line["depth"]
    name, _, notes = model.partition(" ")
    mixed = re.fullmatch(r"(\d(?:\+\d)+)x\d", name)
    if not order and not mixed:
        return model
    which = f"heads of {mixed[1].replace('+', ', ')};" if mixed else f"order {order},"
    layers = f"{depth} layer" if depth == 1 else f"{depth} layers"
    return f"{which} {layers} {notes}".strip()
