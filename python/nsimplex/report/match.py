"""The section about a match task, and its tiles."""

from __future__ import annotations

from . import match_plots
from .data import Arm, MatchRun, number
from .figure import SERIES
from .parts import amount, percent, section, table, tile

# What completes a number, and how many are compared.
_WORDS = {
    "match2": ("another number that adds", "two-way"),
    "match3": ("two numbers that add", "three-way"),
    "match4": ("three numbers that add", "four-way"),
}


def _median(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None


def _accuracy(run: MatchRun, arm: Arm) -> float | None:
    """Of the results, or the curve's end where a run broke off."""
    curve = [r["accuracy"] for r in run.points if Arm.of(r) == arm]
    return _median(run.values(arm, "accuracy") or curve[-1:])


def match_tiles(run: MatchRun) -> list[str]:
    """The accuracy of one dense layer of each order."""
    majority = next((number(r, "majority") for r in run.results), None)
    note = f"majority class {percent(majority)}" if majority is not None else "run not finished"
    plain = [arm for arm in run.arms if arm == Arm(arm.order)]
    return [
        tile(percent(_accuracy(run, arm)), f"{run.task.capitalize()}, {arm}", note) for arm in reversed(plain)
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


def match_section(run: MatchRun) -> str:
    others, ways = _WORDS.get(run.task, _WORDS["match3"])
    equal = "training flops" if any(r.get("equal") == "flops" for r in run.results) else "parameters"
    figures = [match_plots.accuracy_against_keys(run), match_plots.accuracy_against_depth(run)]
    if run.points and len(run.arms) <= len(SERIES):
        figures.insert(0, match_plots.match_curves(run))
    return section(
        f"{run.task.capitalize()}: a task of {ways} matches",
        f'<p class="muted">Does a sequence hold {others} up with this one to 0 modulo M? A layer of order N '
        f"compares a position with N others at once. All models have about as many {equal} as one dense layer of "
        "the highest order (at least 2), see the same data and take turns step by step.</p>",
        *figures,
        _results(run),
    )
