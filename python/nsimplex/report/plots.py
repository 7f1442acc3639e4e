"""Figures as inline SVG that follows the page: text and lines take the page's colours, light or dark."""

from __future__ import annotations

import io
import re

import matplotlib

matplotlib.use("svg")  # no display is needed, nor looked for

from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: E402

from .data import LanguageRun, Match3Run, number  # noqa: E402

# matplotlib draws in these stand-ins; the page's style sheet says what they look like.
INK, LINE, MUTED = "#010101", "#020202", "#030303"
SERIES = ["#040401", "#040402", "#040403", "#040404"]
_VARIABLES = {INK: "var(--ink)", LINE: "var(--line)", MUTED: "var(--muted)"} | {
    color: f"var(--series-{i + 1})" for i, color in enumerate(SERIES)
}

_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
}


def _svg(figure: Figure, name: str, alt: str) -> str:
    buffer = io.StringIO()
    # The salt keeps the ids of two figures apart and one figure's ids the same every time.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Presentation attributes do not know var(); inline styles do, and matplotlib writes those.
    for stand_in, variable in _VARIABLES.items():
        svg = svg.replace(stand_in, variable)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)


def _axes(height: float = 3.1):
    figure = Figure(figsize=(7.6, height), layout="constrained")
    return figure, figure.add_subplot()


def _thousands(value: float, _position: int) -> str:
    return f"{value:,.0f}"


def _finish(axes, xlabel: str, ylabel: str) -> None:
    axes.set_xlabel(xlabel)
    axes.set_title(ylabel, loc="left", fontsize=10.5, color=MUTED, pad=10)
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.margins(x=0.02)


def _label(axes, x: float, y: float, text: str, color: str, shift: float = 0) -> None:
    """Names a curve at its right end, so that no legend is needed."""
    axes.annotate(
        text,
        (x, y),
        xytext=(8, shift),
        textcoords="offset points",
        va="center",
        color=color,
        fontweight="bold",
        annotation_clip=False,
    )


def match3_curves(run: Match3Run) -> str:
    """Held-out accuracy over steps, one curve an order and seed, beside the majority rate."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes()
        orders = sorted({row["order"] for row in run.points})
        for index, order in enumerate(orders):
            color = SERIES[index % len(SERIES)]
            seeds = sorted({row.get("seed", 0) for row in run.points if row["order"] == order})
            ends = []
            for seed in seeds:
                points = [r for r in run.points if r["order"] == order and r.get("seed", 0) == seed]
                points.sort(key=lambda row: row["step"])
                axes.plot(
                    [r["step"] for r in points],
                    [r["accuracy"] for r in points],
                    color=color,
                    linewidth=2.2 if len(seeds) == 1 else 1.4,
                )
                ends.append(points[-1])
            best = max(ends, key=lambda row: row["step"])
            _label(axes, best["step"], best["accuracy"], f"order {order}", color)
        majorities = [number(r, "majority") for r in run.results]
        majorities = [m for m in majorities if m is not None]
        if majorities:
            axes.axhline(majorities[0], color=MUTED, linewidth=1.4, linestyle=(0, (4, 3)))
            # Above the line where there is no room between it and the axis.
            axes.annotate(
                "always the majority class",
                (0.99, majorities[0]),
                xycoords=("axes fraction", "data"),
                xytext=(0, 9 if majorities[0] < 0.55 else -9),
                textcoords="offset points",
                ha="right",
                va="center",
                color=MUTED,
            )
        axes.set_ylim(min([0.5, *(r["accuracy"] for r in run.points)]) - 0.03, 1.03)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        _finish(axes, "training steps", "accuracy on held-out sequences")
        return _svg(figure, f"match3-{run.name}", "Held-out accuracy of each order over training steps")


def loss_curves(run: LanguageRun) -> str:
    """Training and validation loss over steps."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes()
        curves = [("training", "train_loss", SERIES[0]), ("validation", "val_loss", SERIES[1])]
        ends = []
        for name, key, color in curves:
            points = [(row["step"], number(row, key)) for row in run.metrics]
            points = [(step, loss) for step, loss in points if loss is not None]
            if not points:
                continue
            steps, losses = zip(*points)
            marker = "o" if key == "val_loss" else None
            axes.plot(steps, losses, color=color, marker=marker, markersize=4.5, alpha=0.95)
            ends.append((steps[-1], losses[-1], name, color))
        # Two curves often end together: the lower name goes below, the upper one above.
        ends.sort(key=lambda end: end[1])
        for index, (step, loss, name, color) in enumerate(ends):
            shift = 0 if len(ends) == 1 else (-7, 7)[index]
            _label(axes, step, loss, name, color, shift)
        _finish(axes, "training steps", "loss, nats per token")
        return _svg(figure, f"loss-{run.name}", "Training and validation loss over training steps")

