"""Sections about language models: one training, models side by side, losses by size, learning rates
as models grow, samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from statistics import median_low

import matplotlib
from matplotlib.ticker import FuncFormatter

from .._page import section, table
from .elements import (
    MUTED,
    SERIES,
    STYLE,
    amount,
    dashes,
    finish,
    name_axes,
    new_axes,
    spread_labels,
    svg,
    whole,
)
from .run import Folder, Row, having, number


@dataclass
class LanguageRun:
    """One ``lm train``: its metrics, step by step."""

    name: str
    metrics: list[Row]


@dataclass
class ComparisonRun:
    """One ``lm compare``: validation losses, one result per model and seed, differences of pairs,
    speed-ups by step."""

    name: str
    points: list[Row]
    results: list[Row]
    pairs: list[Row]
    speed_ups: list[Row]


def loss_curves(run: LanguageRun) -> str:
    """Training and validation loss over steps."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        # Other colours than those of orders 1 and 2, which may be on the same page.
        curves = [("training", "train_loss", SERIES[2]), ("validation", "val_loss", SERIES[3])]
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
        spread_labels(axes, ends)
        finish(axes, "training steps", "loss, nats per token")
        return svg(
            figure,
            f"loss-{run.name}",
            "Training and validation loss over training steps",
            "See whether the loss still falls at the end: then more steps would help. A validation "
            "loss that rises while the training loss falls means that the model learns its text "
            "by heart.",
        )


def _language(run: LanguageRun, only: bool) -> str:
    speeds = [v for row in run.metrics if (v := number(row, "tokens_per_second")) is not None]
    speed = f"{median_low(speeds):,.0f} tokens per second (median). " if speeds else ""
    title = "Language model" if only else f"Language model: {run.name}"
    return section(
        title,
        f'<p class="muted">{escape(speed)}{run.metrics[-1]["step"]:,} steps. Validation is text '
        "that was never trained on.</p>",
        loss_curves(run),
    )


def language_runs(folders: list[Folder]) -> list[LanguageRun]:
    runs = []
    for folder in folders:
        metrics = [row for row in having(folder.rows, "step") if "train_loss" in row]
        if metrics:
            runs.append(LanguageRun(folder.name, metrics))
    return runs


def language_sections(folders: list[Folder]) -> list[str]:
    runs = language_runs(folders)
    return [_language(run, len(runs) == 1) for run in runs]


def _means(rows: list[dict], key: str) -> tuple[list[float], list[float]]:
    """Steps and the mean over the seeds there, for the steps that every seed has."""
    by_step: dict[float, dict] = {}
    for row in rows:
        by_step.setdefault(row["step"], {})[row.get("seed")] = row[key]
    seeds = max(len(values) for values in by_step.values())
    steps = sorted(step for step, values in by_step.items() if len(values) == seeds)
    return steps, [sum(by_step[step].values()) / seeds for step in steps]


def comparison_curves(run: ComparisonRun, equal: str) -> str:
    """Validation loss of every arm, mean over the seeds: over steps at equal tokens, else over
    seconds."""
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
            axes.plot(across, losses, color=color, linestyle=dashes(index))
            ends.append((across[-1], losses[-1], arm, color))
        spread_labels(axes, ends)
        finish(
            axes,
            "training steps" if equal == "tokens" else "seconds of training",
            "validation loss, nats per token",
        )
        return svg(
            figure,
            f"compare-{run.name}-{equal}",
            f"Validation loss of each model at equal {equal}",
            "See which curve ends lowest: that model predicts the text best after "
            + ("as much time." if equal == "time" else "as many steps."),
        )


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
            axes.plot(steps, values, color=color, linestyle=dashes(index))
            ends.append((steps[-1], values[-1], " over ".join(pair), color))
        spread_labels(axes, ends)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:+.0f} %"))
        finish(axes, "training steps", "batch-wise speed-up")
        return svg(
            figure,
            f"speed-up-{run.name}",
            "Batch-wise speed-up of pairs of models over training steps",
            "See whether a curve stays above 0: then the first model of the pair needs fewer steps "
            "for the same loss.",
        )


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
            row["arm"],
            str(row.get("equal", "")),
            str(row.get("seed", "")),
            amount(number(row, "parameters"), 0),
            amount(number(row, "steps"), 0),
            amount(number(row, "val_loss"), 4),
            amount(number(row, "tokens_per_second"), 0),
            "–" if (mass := number(row, "retained_mass")) is None else f"{mass:.3f}",
        ]
        for row in run.results
    ]
    pairs = [
        [
            f"{row['arm']} over {row['over']}",
            str(row.get("equal", "")),
            str(row.get("seeds", "")),
            _interval(row, "difference", "low", "high", "{:+.4f}"),
            _interval(row, "batch_speed_up", "batch_low", "batch_high", "{:+.2%}"),
            "–" if (wall := number(row, "wall_clock_speed_up")) is None else f"{wall:+.2%}",
        ]
        for row in run.pairs
    ]
    parts = []
    for equal in kinds:
        parts += [f"<h3>At equal {escape(equal)}</h3>", comparison_curves(run, equal)]
    if run.speed_ups:
        parts += ["<h3>How much sooner</h3>", speed_up_curves(run)]
    if pairs:
        header = [
            "",
            "equal",
            "seeds",
            "difference of loss [95 %]",
            "batch-wise speed-up [95 %]",
            "by the clock",
        ]
        parts += ["<h3>Paired differences</h3>", table(header, pairs)]
    if results:
        header = ["model", "equal", "seed", "weights", "steps", "loss", "tokens/s", "retained mass"]
        parts += ["<h3>Runs</h3>", table(header, results)]
    return section(
        "Models compared" if only else f"Models compared: {run.name}",
        '<p class="muted">All models of a seed see the same batches and take turns at every step; '
        "weights that they "
        "share start equal. Lower loss is better; a speed-up of 1 % means a hundredth fewer steps "
        "for the same "
        "smoothed validation loss.</p>",
        *parts,
    )


def comparison_sections(folders: list[Folder]) -> list[str]:
    runs = []
    for folder in folders:
        rows = [row for row in folder.rows if isinstance(row.get("arm"), str)]
        over = [row for row in rows if isinstance(row.get("over"), str)]
        points = [r for r in having(rows, "step", "val_loss") if isinstance(r.get("equal"), str)]
        results = having(rows, "steps", "val_loss")
        pairs, speed_ups = having(over, "difference"), having(over, "step", "speed_up")
        if points:
            runs.append(ComparisonRun(folder.name, points, results, pairs, speed_ups))
    return [comparison_section(run, len(runs) == 1) for run in runs]


def scaling_lines(name: str, points: list[Row], fits: list[Row]) -> str:
    """-log of the loss over the number of weights, with the fitted line of every arm."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        axes.set_xscale("log")
        ends = []
        for index, arm in enumerate(dict.fromkeys(row["arm"] for row in points)):
            color = SERIES[index % len(SERIES)]
            own = [(r["parameters"], -math.log(r["val_loss"])) for r in points if r["arm"] == arm]
            axes.plot(*zip(*own), "o", color=color)
            fit = next(
                (r for r in having(fits, "beta") if r["arm"] == arm and r.get("source") == "sweep"),
                None,
            )
            if fit is None:
                continue
            sizes = [min(own)[0], max(own)[0]]
            line = [fit["alpha"] * math.log(size) + fit["beta"] for size in sizes]
            axes.plot(sizes, line, color=color, linewidth=1.4)
            ends.append((sizes[1], line[1], arm, color))
        spread_labels(axes, ends)
        axes.set_xlabel("weights")
        axes.set_title(
            "−log of the validation loss", loc="left", fontsize=10.5, color=MUTED, pad=10
        )
        return svg(
            figure,
            f"scaling-{name}",
            "Negative logarithm of the loss over the number of weights",
            "See which line is higher and which one rises faster: higher is a lower loss.",
        )


def scaling_section(name: str, points: list[Row], fits: list[Row]) -> str:
    rows = [
        [
            str(row.get("task", "this sweep")),
            row["arm"],
            *(
                amount(number(row, key), 4)
                for key in ("alpha", "beta", "r_squared", "printed_alpha")
            ),
        ]
        for row in fits
    ]
    header = ["", "model", "alpha", "beta", "R²", "alpha as printed"]
    return section(
        "Loss against size",
        '<p class="muted">−log L = alpha log N + beta. The published losses (Roy et al. 2025) are '
        "of 1, 2 and 3.5 "
        "billion active weights and cross at 2 billion; the sizes of a sweep on this machine lie "
        "far below that.</p>",
        scaling_lines(name, points, fits) if any(r.get("source") == "sweep" for r in fits) else "",
        table(header, rows),
    )


def scaling_sections(folders: list[Folder]) -> list[str]:
    sections = []
    for folder in folders:
        rows = [row for row in folder.rows if isinstance(row.get("arm"), str)]
        sizes = having(rows, "parameters", "val_loss")
        points = [row for row in sizes if row["parameters"] > 0 and row["val_loss"] > 0]
        if fits := having(rows, "alpha"):
            sections.append(scaling_section(folder.name, points, fits))
    return sections


def rates_figure(run: Folder, scale: str) -> str:
    """Loss against rate, one curve a model; the best rate of each is a dot."""
    rows = [
        r
        for r in having(run.rows, "rate", "val_loss")
        if str(r.get("scale")) == scale and r["rate"] > 0
    ]
    axes_of = [a for a in dict.fromkeys(str(row.get("axis")) for row in rows) if a != "base"]
    with matplotlib.rc_context(STYLE):
        drawing, all_axes = new_axes(3.2, columns=max(len(axes_of), 1))
        for axes, grown in zip([all_axes] if len(axes_of) < 2 else all_axes, axes_of or ["base"]):
            own = [row for row in rows if row.get("axis") in ("base", grown)]
            sizes = list(dict.fromkeys((row.get("heads"), row.get("head_dim")) for row in own))
            axes.set_xscale("log")
            ends = []
            for index, size in enumerate(sizes):
                means: dict[float, list[float]] = {}
                for row in own:
                    if (row.get("heads"), row.get("head_dim")) == size:
                        means.setdefault(row["rate"], []).append(row["val_loss"])
                curve = sorted((rate, sum(v) / len(v)) for rate, v in means.items())
                color = SERIES[index % len(SERIES)]
                axes.plot(*zip(*curve), color=color)
                axes.plot(*min(curve, key=lambda point: point[1]), "o", color=color, markersize=6)
                ends.append((*curve[-1], f"{size[0]} x {size[1]}", color))
            spread_labels(axes, ends)
            axes.set_xlabel("learning rate")
            name_axes(axes, f"validation loss, {scale} scales, more {grown}")
        return svg(
            drawing,
            f"transfer-{run.name}-{scale}",
            f"Validation loss against learning rate, {scale} scales",
            "See whether the dots, which are the best rates, stand above each other: then the best "
            "learning rate stays the same as the model grows.",
        )


def transfer_parts(run: Folder) -> list[str]:
    best = [row for row in run.rows if "best_rate" in row]
    trials = [row for row in run.rows if number(row, "rate")]

    def worst(row: Row, key: str) -> str:
        same = ("scale", "axis", "heads", "head_dim")
        own = [
            t
            for t in trials
            if t.get("rate") == row.get("best_rate") and all(t.get(k) == row.get(k) for k in same)
        ]
        values = [v for t in own if (v := number(t, key)) is not None]
        return amount(max(values) if values else None, 3)

    figures = ("spikes", "gradient_peak", "int8_error", "alignment", "logit_range", "sensitivity")
    body = [
        [
            str(row.get("scale")),
            f"{whole(row, 'heads')} x {whole(row, 'head_dim')}",
            amount(number(row, "best_rate"), 4)
            + ("" if row.get("bracketed") else " (end of the ladder)"),
            amount(number(row, "best_loss"), 4),
            amount(number(row, "largest_stable_rate"), 4),
            whole(row, "moved"),
            *(worst(row, key) for key in figures),
        ]
        for row in best
    ]
    header = [
        "scales",
        "heads x D",
        "best rate",
        "loss",
        "stable to",
        "steps moved",
        *(f.replace("_", " ") for f in figures),
    ]
    scales = list(
        dict.fromkeys(
            str(row.get("scale")) for row in trials if number(row, "val_loss") is not None
        )
    )
    return [
        *(rates_figure(run, scale) for scale in scales),
        table(header, body),
        '<p class="muted">The last six columns are of the best rate. Models of one seed start from '
        "the same draws and see "
        "the same batches.</p>",
    ]
