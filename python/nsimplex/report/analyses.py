"""Sections about statements that were put to the test, and about what was measured for them."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib

from .data import AnalysisRun, Row, number
from .figure import MUTED, SERIES, STYLE, new_axes, spread_labels, svg
from .lines import having
from .parts import amount, section, table
from .smoothing import smoothing_plots

_TITLES = {
    "lipschitz": "Lipschitz constants of attention",
    "sensitivity": "Sensitivity and sharpness of attention",
    "smoothing": "Over-smoothing of attention",
    "model": "Layers of a trained model",
    "transfer": "Learning rates as models grow",
}


def _whole(row: Row, key: str) -> str:
    return amount(number(row, key), 0)


def statements_table(rows: list[Row]) -> str:
    """What was stated, how often it was tried and failed, and how much room was left."""
    body = [
        [
            str(row["statement"]),
            _whole(row, "draws"),
            _whole(row, "violations"),
            amount(number(row, "median_slack"), 3),
            "holds" if row.get("holds") is True else "violated",
        ]
        for row in rows
    ]
    return table(["statement", "draws", "violations", "median slack", ""], body, strong=4)


def _title(axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10.5, color=MUTED, pad=10)


def _median(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


_GROWTH = ("order", "tokens", "radius", "constant", "printed")


def growth_figure(run: AnalysisRun) -> str:
    """Measured constants against tokens and against the radius, dashed the printed bound: medians over the sweep."""
    rows = [r for r in having(run.rows, *_GROWTH) if r["constant"] > 0 and r["printed"] > 0 and r["order"] % 1 == 0]
    orders = sorted({int(row["order"]) for row in rows})
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(3.4, columns=2)
        for axes, key in zip(both, ("tokens", "radius")):
            axes.set_xscale("log", base=2 if key == "tokens" else 10)
            axes.set_yscale("log")
            ends = []
            for order in orders:
                color = SERIES[(order - 1) % len(SERIES)]
                own = [row for row in rows if row["order"] == order]
                places = sorted({row[key] for row in own})
                for figure, style in (("constant", "-"), ("printed", (0, (2, 2)))):
                    values = [_median([row[figure] for row in own if row[key] == place]) for place in places]
                    axes.plot(places, values, color=color, linestyle=style, marker="o", markersize=3)
                    if figure == "constant":
                        ends.append((places[-1], values[-1], f"N = {order}", color))
            spread_labels(axes, ends)
            axes.set_xlabel(key)
            _title(axes, f"constant over the {key}")
        return svg(drawing, f"lipschitz-{run.name}", "Lipschitz constants and bounds against tokens and radius")


def _lipschitz(run: AnalysisRun) -> list[str]:
    return [
        growth_figure(run),
        '<p class="muted">Lines are measured, by ascent over the ball of tokens; dashes are the printed bound. Medians over '
        "the draws and the rest of the sweep.</p>",
    ]


def _sensitivity(run: AnalysisRun) -> list[str]:
    rows = [row for row in run.rows if number(row, "largest") is not None]
    body = [
        [
            str(row.get("analysis")),
            _whole(row, "order"),
            _whole(row, "dim"),
            str(row.get("scales", "")),
            *(amount(number(row, key), 4) for key in ("bound", "largest", "from_gaussian", "at_gaussian")),
        ]
        for row in rows
    ]
    header = ["", "order", "D", "scales", "bound", "largest found", "from normal inputs", "at normal inputs"]
    return [table(header, body, strong=5)]


_LAYER_FIGURES = [
    [("ratio", "||res|| / ||X||"), ("mean_cosine", "mean cosine of two tokens")],
    [("relative_entropy", "entropy, of its largest"), ("logit_range", "range of a query's logits")],
    [("block_jacobian", "largest singular value, block"), ("sensitivity", "sensitivity of the operator")],
]


def layers_figure(run: AnalysisRun, pair: list[tuple[str, str]]) -> str:
    """Two figures over the layers; dots are layers of order 2 and above."""
    with matplotlib.rc_context(STYLE):
        drawing, both = new_axes(2.8, columns=2)
        for axes, (key, title) in zip(both, pair):
            rows = having(run.rows, "layer", key)
            axes.plot([r["layer"] for r in rows], [r[key] for r in rows], color=SERIES[0])
            high = [row for row in rows if (number(row, "order") or 0) > 1]
            axes.plot([r["layer"] for r in high], [r[key] for r in high], "o", color=SERIES[1], markersize=5)
            axes.set_xlabel("layer")
            axes.xaxis.get_major_locator().set_params(integer=True)
            _title(axes, title)
        keys = "-".join(key for key, _ in pair)
        return svg(drawing, f"model-{run.name}-{keys}", f"{pair[0][1]} and {pair[1][1]} over the layers")


def _model(run: AnalysisRun) -> list[str]:
    names = {
        "ratio": "||res|| / ||X||",
        "effective_rank": "rank",
        "mean_cosine": "cosine",
        "dirichlet_energy": "Dirichlet energy",
        "logit_range": "logit range",
        "alignment": "alignment",
        "relative_entropy": "entropy",
        "block_jacobian": "|J| of the block",
        "attention_jacobian": "|J| of attention",
        "sensitivity": "sensitivity",
        "sensitivity_bound": "bound",
    }
    body = [
        [_whole(row, "layer"), str(row.get("kind", "")), *(amount(number(row, key), 3) for key in names)]
        for row in run.rows
    ]
    known = [pair for pair in _LAYER_FIGURES if all(any(number(r, key) is not None for r in run.rows) for key, _ in pair)]
    return [
        *(layers_figure(run, pair) for pair in known),
        table(["layer", "attention", *names.values()], body),
        '<p class="muted">Layer 0 is the embedding; dots are layers of order 2 and above. Means over windows of the text.</p>',
    ]


def rates_figure(run: AnalysisRun, scale: str) -> str:
    """Loss against rate, one curve a model; the best rate of each is a dot."""
    rows = [r for r in having(run.rows, "rate", "val_loss") if str(r.get("scale")) == scale and r["rate"] > 0]
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
            _title(axes, f"validation loss, {scale} scales, more {grown}")
        return svg(drawing, f"transfer-{run.name}-{scale}", f"Validation loss against learning rate, {scale} scales")


def _transfer(run: AnalysisRun) -> list[str]:
    best = [row for row in run.rows if "best_rate" in row]
    trials = [row for row in run.rows if number(row, "rate")]

    def worst(row: Row, key: str) -> str:
        same = ("scale", "axis", "heads", "head_dim")
        own = [t for t in trials if t.get("rate") == row.get("best_rate") and all(t.get(k) == row.get(k) for k in same)]
        values = [v for t in own if (v := number(t, key)) is not None]
        return amount(max(values) if values else None, 3)

    figures = ("spikes", "gradient_peak", "int8_error", "alignment", "logit_range", "sensitivity")
    body = [
        [
            str(row.get("scale")),
            f"{_whole(row, 'heads')} x {_whole(row, 'head_dim')}",
            amount(number(row, "best_rate"), 4) + ("" if row.get("bracketed") else " (end of the ladder)"),
            amount(number(row, "best_loss"), 4),
            amount(number(row, "largest_stable_rate"), 4),
            _whole(row, "moved"),
            *(worst(row, key) for key in figures),
        ]
        for row in best
    ]
    header = ["scales", "heads x D", "best rate", "loss", "stable to", "steps moved", *(f.replace("_", " ") for f in figures)]
    scales = list(dict.fromkeys(str(row.get("scale")) for row in trials if number(row, "val_loss") is not None))
    return [
        *(rates_figure(run, scale) for scale in scales),
        table(header, body),
        '<p class="muted">The last six columns are of the best rate. Models of one seed start from the same draws and see '
        "the same batches.</p>",
    ]


_PARTS: dict[str, Callable[[AnalysisRun], list[str]]] = {
    "lipschitz": _lipschitz,
    "sensitivity": _sensitivity,
    "smoothing": smoothing_plots,
    "model": _model,
    "transfer": _transfer,
}


def analysis_section(run: AnalysisRun, only: bool) -> str:
    """Figures of one analysis, then its statements."""
    title = _TITLES.get(run.kind, "Statements")
    measured = _PARTS[run.kind](run) if run.kind in _PARTS and run.rows else []
    return section(
        title if only else f"{title}: {run.name}",
        *measured,
        statements_table(run.statements) if run.statements else "",
    )
