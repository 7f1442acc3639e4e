"""Attention layers during a training, from the lines of ``nsimplex.analysis.TrainingMonitor``."""

from __future__ import annotations

from typing import Any

import matplotlib

from .._page import figure, section, short, table
from .elements import SERIES, STYLE, dashes, finish, legend_below, new_axes, svg, whole
from .run import Folder, Row, number

_CHARTS = (
    (
        "rank_after",
        "effective rank after attention",
        "See whether a curve falls to 1: then that layer makes all tokens alike.",
    ),
    (
        "ratio_after",
        "share of the tokens' norm that is not their mean",
        "See whether a curve falls to 0: then the tokens after that layer are their mean.",
    ),
    (
        "entropy",
        "entropy over that of equal weights",
        "See which layers learn to choose: 1 is a plain mean, and 0 is one tuple.",
    ),
    (
        "jacobian",
        "largest amplification |J|",
        "See which layers amplify changes more and more: training becomes unstable there first.",
    ),
    (
        "sharpness",
        "sharpness of the operator",
        "See where the second derivative grows: steps must become smaller there.",
    ),
)


def monitor_sections(folders: list[Folder]) -> list[str]:
    """A section per folder, with a curve per layer."""
    with matplotlib.rc_context(STYLE):
        return [_section(folder) for folder in folders]


def _section(folder: Folder) -> str:
    rows = [row for row in folder.rows if row.get("kind") == "attention_layer"]
    layers: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        place = number(row, "layer")
        layers.setdefault((place or 0.0, str(row.get("module", ""))), []).append(row)
    parts: list[str] = []
    for field, title, see in _CHARTS:
        curves = [
            (name, points)
            for (_, name), own in sorted(layers.items())
            if (points := _points(own, field))
        ]
        if curves:
            parts.append(_chart(title, curves, see))
    return section("Attention layers", *parts, _last(layers)) if parts else ""


def _last(layers: dict[tuple[float, str], list[Row]]) -> str:
    """The last line of every layer."""
    rows = []
    for (place, name), own in sorted(layers.items()):
        numbers = [number(own[-1], field) for field in ("order", *(c[0] for c in _CHARTS))]
        cells = [figure(value) for value in numbers]
        rows.append([f"{place:g} {name}", whole(own[-1], "step"), *cells])
    header = ["layer", "step", "order", "rank", "ratio", "entropy", "|J|", "sharpness"]
    return table(header, rows)


def _points(rows: list[Row], field: str) -> list[tuple[float, float]]:
    found: list[Any] = [(number(row, "step"), number(row, field)) for row in rows]
    return [(step, value) for step, value in found if step is not None and value is not None]


def _chart(title: str, curves: list[tuple[str, list[tuple[float, float]]]], see: str) -> str:
    drawing, axes = new_axes(2.9)
    for index, (name, points) in enumerate(curves):
        axes.plot(
            *zip(*points, strict=True),
            color=SERIES[index % len(SERIES)],
            linestyle=dashes(index),
            marker="o",
            markersize=3,
            label=short(name, 28),
        )
    finish(axes, "step", title)
    legend_below(axes)
    said = "; ".join(f"{name} to {figure(points[-1][1])}" for name, points in curves)
    return svg(drawing, title, f"{title}: {said}", see)
