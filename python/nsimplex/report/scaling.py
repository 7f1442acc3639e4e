"""The section about loss against size."""

from __future__ import annotations

import math

import matplotlib

from .data import ScalingRun, number
from .figure import MUTED, SERIES, STYLE, new_axes, spread_labels, svg
from .lines import having
from .parts import amount, section, table


def scaling_lines(run: ScalingRun) -> str:
    """-log of the loss over the number of weights, with the fitted line of every arm."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        axes.set_xscale("log")
        ends = []
        for index, arm in enumerate(dict.fromkeys(row["arm"] for row in run.points)):
            color = SERIES[index % len(SERIES)]
            points = [(r["parameters"], -math.log(r["val_loss"])) for r in run.points if r["arm"] == arm]
            axes.plot(*zip(*points), "o", color=color)
            fit = next((r for r in having(run.fits, "beta") if r["arm"] == arm and r.get("source") == "sweep"), None)
            if fit is None:
                continue
            sizes = [min(points)[0], max(points)[0]]
            line = [fit["alpha"] * math.log(size) + fit["beta"] for size in sizes]
            axes.plot(sizes, line, color=color, linewidth=1.4)
            ends.append((sizes[1], line[1], arm, color))
        spread_labels(axes, ends)
        axes.set_xlabel("weights")
        axes.set_title("−log of the validation loss", loc="left", fontsize=10.5, color=MUTED, pad=10)
        return svg(figure, f"scaling-{run.name}", "Negative logarithm of the loss over the number of weights")


def scaling_section(run: ScalingRun) -> str:
    rows = [
        [
            str(row.get("task", "this sweep")), row["arm"],
            *(amount(number(row, key), 4) for key in ("alpha", "beta", "r_squared", "printed_alpha")),
        ]
        for row in run.fits
    ]  # fmt: skip
    header = ["", "model", "alpha", "beta", "R²", "alpha as printed"]
    return section(
        "Loss against size",
        '<p class="muted">−log L = alpha log N + beta. The published losses (Roy et al. 2025) are of 1, 2 and 3.5 '
        "billion active weights and cross at 2 billion; the sizes of a sweep on this machine lie far below that.</p>",
        scaling_lines(run) if any(r.get("source") == "sweep" for r in run.fits) else "",
        table(header, rows),
    )
