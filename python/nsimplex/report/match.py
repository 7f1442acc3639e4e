"""Sections about match tasks: accuracy over steps, against the keys chosen and against depth."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low

import matplotlib
from matplotlib.ticker import FuncFormatter

from .._page import section, table, tile
from .elements import (
    MUTED,
    SERIES,
    STYLE,
    amount,
    finish,
    new_axes,
    percent,
    spread_labels,
    spread_levels,
    svg,
)
from .run import Folder, Row, having, number


@dataclass(frozen=True)
class Arm:
    """One of the models that a match task compares."""

    order: int
    depth: int = 1
    sparse: str = "dense"
    topk: int = 0

    @staticmethod
    def of(row: Row) -> Arm:
        depth, topk = number(row, "depth"), number(row, "topk")
        return Arm(
            int(row["order"]), int(depth or 1), str(row.get("sparse") or "dense"), int(topk or 0)
        )

    def __str__(self) -> str:
        parts = [f"order {self.order}"]
        if self.depth > 1:
            parts.append(f"{self.depth} layers")
        if self.sparse != "dense":
            parts.append(f"{self.sparse} {self.topk}")
        return ", ".join(parts)


@dataclass
class MatchRun:
    """One `task match2`, `match3` or `match4`: points of the curves and one result an arm and
    seed."""

    name: str
    points: list[Row]
    results: list[Row]

    @property
    def task(self) -> str:
        return next(
            (str(row["task"]) for row in self.results + self.points if "task" in row), "match3"
        )

    @property
    def arms(self) -> list[Arm]:
        arms = {Arm.of(row) for row in self.points + self.results}
        return sorted(arms, key=lambda a: (a.order, a.depth, a.sparse, a.topk))

    def values(self, arm: Arm, key: str) -> list[float]:
        """What the results of an arm say, one number a seed."""
        values = [number(row, key) for row in self.results if Arm.of(row) == arm]
        return [value for value in values if value is not None]


# What completes a number, and how many are compared.
_WORDS = {
    "match2": ("another number that adds", "two-way"),
    "match3": ("two numbers that add", "three-way"),
    "match4": ("three numbers that add", "four-way"),
}


def _accuracy(run: MatchRun, arm: Arm) -> float | None:
    """Of the results, or the curve's end where a run broke off."""
    curve = [r["accuracy"] for r in run.points if Arm.of(r) == arm]
    values = run.values(arm, "accuracy") or curve[-1:]
    return median_low(values) if values else None


def match_tiles(run: MatchRun) -> list[str]:
    """The accuracy of one dense layer of each order."""
    majority = next((number(r, "majority") for r in run.results), None)
    note = f"majority class {percent(majority)}" if majority is not None else "run not finished"
    plain = [arm for arm in run.arms if arm == Arm(arm.order)]
    return [
        tile(percent(_accuracy(run, arm)), f"{run.task.capitalize()}, {arm}", note)
        for arm in reversed(plain)
    ]


def _megaflops(value: float | None) -> str:
    return amount(value / 1e6 if value is not None else None, 3)


def _milliseconds(value: float | None) -> str:
    return amount(1e3 * value if value is not None else None, 1, " ms")


def _results(run: MatchRun) -> str:
    rows = [
        [
            str(Arm.of(result)) + (f", seed {result['seed']}" if "seed" in result else ""),
            percent(number(result, "accuracy")),
            percent(number(result, "majority")),
            amount(number(result, "parameters"), 0),
            _megaflops(number(result, "flops")),
            _milliseconds(number(result, "step_seconds")),
            amount(number(result, "seconds"), 1, " s"),
        ]
        for result in run.results
    ]
    header = ["", "accuracy", "majority class", "parameters", "Mflop a position", "a step", "time"]
    return table(header, rows) if rows else ""


_DASHES = (0, (4, 3))


def _percents(axes, lowest: float) -> None:
    axes.set_ylim(min(0.5, lowest) - 0.03, 1.03)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def _majority(axes, run: MatchRun) -> None:
    majorities = [m for r in run.results if (m := number(r, "majority")) is not None]
    if not majorities:
        return
    axes.axhline(majorities[0], color=MUTED, linewidth=1.4, linestyle=_DASHES)
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


def match_curves(run: MatchRun) -> str:
    """Held-out accuracy over steps, one curve an arm and seed, beside the majority rate."""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes()
        named = []
        for arm, color in zip(run.arms, SERIES):
            rows = [row for row in run.points if Arm.of(row) == arm]
            seeds = sorted({row.get("seed", 0) for row in rows})
            ends = []
            for seed in seeds:
                points = sorted(
                    (r for r in rows if r.get("seed", 0) == seed), key=lambda row: row["step"]
                )
                axes.plot(
                    [r["step"] for r in points],
                    [r["accuracy"] for r in points],
                    color=color,
                    linewidth=2.2 if len(seeds) == 1 else 1.4,
                )
                ends.append(points[-1])
            if ends:
                last = max(ends, key=lambda row: row["step"])
                named.append((last["step"], last["accuracy"], str(arm), color))
        spread_labels(axes, named)
        _majority(axes, run)
        _percents(axes, min(r["accuracy"] for r in run.points))
        finish(axes, "training steps", "accuracy on held-out sequences")
        return svg(
            figure,
            f"{run.task}-{run.name}",
            "Held-out accuracy of each model over training steps",
            "See which model learns the task: its curve rises from the share of the majority class "
            "towards 100 %.",
        )


def _plot_seeds(
    axes,
    run: MatchRun,
    arms: list[tuple[int, Arm]],
    key: str,
    color: str,
    dashed: bool,
    scale: float,
):
    """A line through the means over seeds, a dot a seed; returns its last point."""
    points = [(x, [scale * v for v in run.values(arm, key)]) for x, arm in arms]
    points = [(x, values) for x, values in points if values]
    means = [sum(values) / len(values) for _, values in points]
    places = [x for x, _ in points]
    axes.plot(places, means, color=color, linestyle=_DASHES if dashed else "-")
    for x, values in points:
        axes.plot([x] * len(values), values, "o", color=color, markersize=4, alpha=0.7)
    return (places[-1], means[-1]) if points else None


def _level(run: MatchRun, arm: Arm, key: str, scale: float, name: str) -> list:
    """The height where one model lies whatever the horizontal axis says; empty if not known."""
    values = [scale * v for v in run.values(arm, key)]
    return [(sum(values) / len(values), name, _color(arm.order))] if values else []


def _color(order: int) -> str:
    return SERIES[(order - 1) % len(SERIES)]


def accuracy_against_keys(run: MatchRun) -> str:
    """Accuracy of sparse layers against k, with one dense layer of each order as a level; empty
    without two k."""
    lines: dict[tuple, list[tuple[int, Arm]]] = {}
    for arm in run.arms:
        if arm.sparse != "dense" and run.values(arm, "accuracy"):
            lines.setdefault((arm.order, arm.depth, arm.sparse), []).append((arm.topk, arm))
    lines = {key: arms for key, arms in lines.items() if len(arms) > 1}
    if not lines:
        return ""
    with matplotlib.rc_context(STYLE):
        figure, axes = new_axes(3.6)
        lowest, named, levels = 0.5, [], []
        for (order, depth, sparse), arms in lines.items():
            dashed = sparse == "path"
            ends = _plot_seeds(axes, run, arms, "accuracy", _color(order), dashed, 1)
            if ends is None:
                continue
            x, y = ends
            lowest = min(lowest, *(v for _, arm in arms for v in run.values(arm, "accuracy")))
            layers = f", {depth} layers" if depth > 1 else ""
            named.append((x, y, f"order {order} {sparse}{layers}", _color(order)))
        for arm in run.arms:
            if arm == Arm(arm.order):
                levels += _level(run, arm, "accuracy", 1, f"order {arm.order}, all tuples")
        spread_labels(axes, named)
        spread_levels(axes, levels)
        _percents(axes, lowest)
        finish(
            axes,
            "k, keys chosen for a position",
            "accuracy on held-out sequences, after the last step",
        )
        return svg(
            figure,
            f"{run.task}-keys-{run.name}",
            "Held-out accuracy against the number of chosen keys",
            "See how many keys are enough: there a curve reaches the dotted line of the layer with "
            "all tuples.",
        )


def accuracy_against_depth(run: MatchRun) -> str:
    """Accuracy and time of a step against depth, orders of one layer as levels; empty without two
    depths."""
    dense = [arm for arm in run.arms if arm.sparse == "dense" and run.values(arm, "accuracy")]
    orders: dict[int, list[tuple[int, Arm]]] = {}
    for arm in dense:
        orders.setdefault(arm.order, []).append((arm.depth, arm))
    if not any(len(arms) > 1 for arms in orders.values()):
        return ""
    with matplotlib.rc_context(STYLE):
        figure, panels = new_axes(3.4, columns=2)
        for axes, key, scale, title in (
            (panels[0], "accuracy", 1, "accuracy on held-out sequences"),
            (panels[1], "step_seconds", 1e3, "milliseconds a training step, median"),
        ):
            named, levels = [], []
            for order, arms in orders.items():
                if len(arms) == 1:
                    levels += _level(run, arms[0][1], key, scale, str(arms[0][1]))
                elif end := _plot_seeds(axes, run, arms, key, _color(order), False, scale):
                    named.append((*end, f"order {order}", _color(order)))
            spread_labels(axes, named)
            spread_levels(axes, levels)
            finish(axes, "layers", title)
        _percents(panels[0], min(v for arm in dense for v in run.values(arm, "accuracy")))
        panels[1].set_ylim(bottom=0)
        return svg(
            figure,
            f"{run.task}-depth-{run.name}",
            "Held-out accuracy and time of a step against depth",
            "See whether more layers of a low order reach the accuracy of one layer of a high "
            "order, and how long a step then takes.",
        )


def match_section(run: MatchRun) -> str:
    others, ways = _WORDS.get(run.task, _WORDS["match3"])
    equal = (
        "training flops" if any(r.get("equal") == "flops" for r in run.results) else "parameters"
    )
    figures = [accuracy_against_keys(run), accuracy_against_depth(run)]
    if run.points and len(run.arms) <= len(SERIES):
        figures.insert(0, match_curves(run))
    return section(
        f"{run.task.capitalize()}: a task of {ways} matches",
        f'<p class="muted">Does a sequence hold {others} up with this one to 0 modulo M? A layer '
        "of order N "
        f"compares a position with N others at once. All models have about as many {equal} as one "
        "dense layer of "
        "the highest order (at least 2), see the same data and take turns step by step.</p>",
        *figures,
        _results(run),
    )


def match_runs(folders: list[Folder]) -> list[MatchRun]:
    runs = []
    for folder in folders:
        rows = having(folder.rows, "order")
        points = [row for row in having(rows, "accuracy") if "step" in row]
        results = [row for row in having(rows, "majority") if "step" not in row]
        if points or results:
            runs.append(MatchRun(folder.name, points, results))
    return runs


def match_sections(folders: list[Folder]) -> list[str]:
    return [match_section(run) for run in match_runs(folders)]
