"""The section about models that were trained side by side."""

from __future__ import annotations

from html import escape

import matplotlib
from matplotlib.ticker import FuncFormatter

from .data import ComparisonRun, Row, number
from .figure import MUTED, SERIES, STYLE, finish, new_axes, spread_labels, svg
from .lines import having
from .parts import amount, section, table


def _means(rows: list[dict], key: str) -> tuple[list[float], list[float]]:
    """Steps and the mean over the seeds there, for the steps that every seed has."""
    by_step: dict[float, dict] = {}
    for row in rows:
        by_step.setdefault(row["step"], {})[row.get("seed")] = row[key]
    seeds = max(len(values) for values in by_step.values())
    steps = sorted(step for step, values in by_step.items() if len(values) == seeds)
    return steps, [sum(by_step[step].values()) / seeds for step in steps]


def comparison_curves(run: ComparisonRun, equal: str) -> str:
    """Validation loss of every arm, mean over the seeds: over steps at equal tokens, else over seconds."""
    points = [row for row in having(run.points, "seconds") if row.get("equal") == equal]
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        ends = []
        for index, arm in enumerate(dict.fromkeys(row["arm"] for row in points)):
            rows = [row for row in points if row["arm"] == arm]
            across, losses = _means(rows, "val_loss")
            if equal == "time":
                across = _means(rows, "seconds")[1]
            color = SERIES[index % len(SERIES)]
            style = "-" if index < len(SERIES) else (0, (4, 2))
            axes.plot(across, losses, color=color, linestyle=style)
            ends.append((across[-1], losses[-1], arm, color))
        spread_labels(axes, ends)
        finish(axes, "training steps" if equal == "tokens" else "seconds of training", "validation loss, nats per token")
        return svg(figure, f"compare-{run.name}-{equal}", f"Validation loss of each model at equal {equal}")


def speed_up_curves(run: ComparisonRun) -> str:
    """Batch-wise speed-up of pairs of arms over steps, mean over the seeds."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        axes.axhline(0, color=MUTED, linewidth=1.4, linestyle=(0, (4, 3)))
        pairs = list(dict.fromkeys((row["arm"], row["over"]) for row in run.speed_ups))
        ends = []
        for index, pair in enumerate(pairs):
            rows = [row for row in run.speed_ups if (row["arm"], row["over"]) == pair]
            steps, values = _means(rows, "speed_up")
            color = SERIES[index % len(SERIES)]
            axes.plot(steps, values, color=color, linestyle="-" if index < len(SERIES) else (0, (4, 2)))
            ends.append((steps[-1], values[-1], " over ".join(pair), color))
        spread_labels(axes, ends)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:+.0f} %"))
        finish(axes, "training steps", "batch-wise speed-up")
        return svg(figure, f"speed-up-{run.name}", "Batch-wise speed-up of pairs of models over training steps")


def _interval(row: Row, middle: str, low: str, high: str, form: str) -> str:
    values = [number(row, key) for key in (middle, low, high)]
    if values[0] is None:
        return "–"
    if None in values:
        return form.format(values[0])  # a single seed has no interval
    return f"{form.format(values[0])} [{form.format(values[1])}, {form.format(values[2])}]"


def comparison_section(run: ComparisonRun, only: bool) -> str:
    kinds = list(dict.fromkeys(row.get("equal", "") for row in run.points))
    results = [
        [
            row["arm"], str(row.get("equal", "")), str(row.get("seed", "")),
            amount(number(row, "parameters"), 0), amount(number(row, "steps"), 0),
            amount(number(row, "val_loss"), 4), amount(number(row, "tokens_per_second"), 0),
            "–" if (mass := number(row, "retained_mass")) is None else f"{mass:.3f}",
        ]
        for row in run.results
    ]  # fmt: skip
    pairs = [
        [
            f"{row['arm']} over {row['over']}", str(row.get("equal", "")), str(row.get("seeds", "")),
            _interval(row, "difference", "low", "high", "{:+.4f}"),
            _interval(row, "batch_speed_up", "batch_low", "batch_high", "{:+.2%}"),
            "–" if (wall := number(row, "wall_clock_speed_up")) is None else f"{wall:+.2%}",
        ]
        for row in run.pairs
    ]  # fmt: skip
    parts = []
    for equal in kinds:
        parts += [f"<h3>At equal {escape(equal)}</h3>", comparison_curves(run, equal)]
    if run.speed_ups:
        parts += ["<h3>How much sooner</h3>", speed_up_curves(run)]
    if pairs:
        header = ["", "equal", "seeds", "difference of loss [95 %]", "batch-wise speed-up [95 %]", "by the clock"]
        parts += ["<h3>Paired differences</h3>", table(header, pairs)]
    if results:
        header = ["model", "equal", "seed", "weights", "steps", "loss", "tokens/s", "retained mass"]
        parts += ["<h3>Runs</h3>", table(header, results)]
    return section(
        "Models compared" if only else f"Models compared: {run.name}",
        '<p class="muted">All models of a seed see the same batches and take turns at every step; weights that they '
        "share start equal. Lower loss is better; a speed-up of 1 % means a hundredth fewer steps for the same "
        "smoothed validation loss.</p>",
        *parts,
    )
