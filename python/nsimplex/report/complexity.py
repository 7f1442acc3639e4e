"""The section about `nsimplex causal complexity`: seconds against rows and columns."""

from __future__ import annotations

import matplotlib

from .data import Row, number
from .figure import MUTED, SERIES, STYLE, new_axes, spread_labels, svg
from .parts import amount, section, table

_FIGURES = {"step_one": "step I, an epoch", "step_two": "step II, a step", "order": "order, a whole fit"}


def complexity_figure(rows: list[Row], name: str) -> str:
    """Fig. S5 on logarithmic axes: the slope is the exponent."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(3.4, columns=2)
        for axes, over in zip(both, ("rows", "columns"), strict=True):
            ends = []
            own = [row for row in rows if row.get("over") == over]
            for color, (figure, title) in zip(SERIES, _FIGURES.items(), strict=False):
                points = [(row[over], value) for row in own if (value := number(row, figure)) is not None and value > 0]
                if not points:
                    continue
                axes.plot(*zip(*points), color=color, marker="o", markersize=4)
                ends.append((*points[-1], title, color))
            axes.set_xscale("log")
            axes.set_yscale("log")
            spread_labels(axes, ends)
            axes.set_xlabel(over)
            axes.set_title("seconds", loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(drawing, f"complexity-{name}", "Seconds of structure learning and embedding over rows and columns")


def complexity_section(rows: list[Row], name: str) -> str:
    sizes = [row for row in rows if number(row, "rows") and number(row, "columns")]
    fits = [row for row in rows if number(row, "exponent") is not None]
    if not sizes:
        return ""
    times = [
        [
            amount(number(row, "rows"), 0),
            amount(number(row, "columns"), 0),
            *(amount(number(row, figure), 4, " s") for figure in _FIGURES),
            f"{amount(number(row, 'timed'), 0)} of {amount(number(row, 'batches'), 0)}",
        ]
        for row in sizes
    ]
    exponents = [
        [
            f"{_FIGURES.get(str(row.get('figure')), '?')}, with {row.get('over')}",
            amount(number(row, "exponent"), 2),
            amount(number(row, "r_squared"), 3),
            amount(number(row, "paper"), 0),
        ]
        for row in fits
    ]
    return section(
        f"What structure and embedding cost: {name}",
        f'<p class="muted">Seconds of processor time, means of {amount(number(sizes[0], "runs"), 0)} tables. An epoch of step I is the paper’s '
        "estimator over all batches; where an epoch took longer than the time given, the batches that were timed stand for "
        "all.</p>",
        complexity_figure(sizes, name),
        "<h3>Exponents</h3>" if exponents else "",
        table(["seconds grow by", "exponent", "R²", "paper"], exponents, strong=1) if exponents else "",
        "<h3>Seconds</h3>",
        table(["rows", "columns", *_FIGURES.values(), "batches timed"], times),
    )
