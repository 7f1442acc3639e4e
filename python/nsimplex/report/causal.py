"""Sections about causal graphs of tables: an answer beside those that know nothing."""

from __future__ import annotations

from html import escape

import matplotlib

from .claims import attenuation_section, robustness_section
from .complexity import complexity_section
from .data import Row, number
from .figure import MUTED, SERIES, STYLE, finish, new_axes, svg
from .parts import amount, section, table
from .placement import placement_section

_FIGURES = ("shd", "sid", "f1", "precision", "recall", "auroc", "auprc")
_TITLES = {"empty": "empty graph", "variance_sort": "sorted by variance", "r2_sort": "sorted by R²"}


def _whole(row: Row, key: str) -> str:
    return amount(number(row, key), 0)


def _cells(row: Row) -> list[str]:
    return [_whole(row, "edges"), *(_whole(row, f) if f in ("shd", "sid") else amount(number(row, f), 3) for f in _FIGURES)]


def _baselines(row: Row) -> dict[str, Row]:
    found = row.get("baselines")
    return {name: each for name, each in found.items() if isinstance(each, dict)} if isinstance(found, dict) else {}


def answers_figure(row: Row, name: str) -> str:
    """AUPRC and F1 of the answer and of the baselines, as bars."""
    answers = {str(row.get("estimator")): row, **{_TITLES.get(n, n): each for n, each in _baselines(row).items()}}
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(height=0.5 + 0.42 * len(answers))
        for at, each in enumerate(answers.values()):
            for shift, key, color in ((-0.19, "f1", SERIES[0]), (0.19, "auprc", SERIES[1])):
                value = number(each, key) or 0.0
                axes.barh(at + shift, value, height=0.34, color=color if at == 0 else MUTED, alpha=1 if key == "f1" else 0.55)
                axes.text(value + 0.01, at + shift, f"{key.upper()} {value:.2f}", va="center", fontsize=8)
        axes.set_yticks(range(len(answers)), list(answers))
        axes.invert_yaxis()
        axes.set_xlim(0, 1.15)
        finish(axes, "F1 of the graph, AUPRC of the scores", "")
        return svg(drawing, f"fit-{name}", "F1 and AUPRC of the estimator and of three baselines")


def _remark(row: Row) -> str:
    by = "the true graph" if row.get("sortability_of") == "truth" else "the learned graph"
    text = (
        f"By {by}, varsortability {amount(number(row, 'varsortability'), 3)} and R²-sortability "
        f"{amount(number(row, 'r2_sortability'), 3)}: how far the columns' scales alone tell the order; 0.5 is chance. "
        f"Columns were {'' if row.get('standardise') else 'not '}standardised."
    )
    removed = row.get("removed")
    if isinstance(removed, list) and removed:
        text += f" Removed, because they closed cycles: {escape(', '.join(map(str, removed)))}."
    return f'<p class="muted">{text}</p>'


def _fit(row: Row, name: str) -> str:
    known = number(row, "shd") is not None
    rows = [[f"{row.get('estimator')} ({row.get('model')})", *_cells(row)]]
    for key, title in (("at_0.3", "cut at 0.3"), ("at_best", "cut at the best threshold")):
        if isinstance(row.get(key), dict):
            rows.append([title, *_cells(row[key])])
    rows += [[_TITLES.get(n, n), *_cells(each)] for n, each in _baselines(row).items()]
    header = ["graph", "edges", *(f.upper() if f != "precision" and f != "recall" else f for f in _FIGURES)]
    seconds = amount(number(row, "seconds"), 3, " s")
    return section(
        f"Causal graph of {row.get('table', name)}".replace("\\", "/"),
        f'<p class="muted">{_whole(row, "observations")} observations of {_whole(row, "features")} columns; the fit took {seconds}.</p>',
        answers_figure(row, name) if known else "",
        table(header, rows, strong=2),
        _remark(row),
    )


def _simulated(rows: list[Row]) -> str:
    header = ["table", "columns", "edges", "observations", "seed", "varsortability", "R²-sortability"]
    body = [
        [
            str(row.get("table", "")),
            *(_whole(row, key) for key in ("nodes", "edges", "observations", "seed")),
            *(amount(number(row, key), 3) for key in ("varsortability", "r2_sortability")),
        ]
        for row in rows
    ]
    return section("Made-up tables", table(header, body))


def _embedded(rows: list[Row]) -> str:
    header = ["graph", "nodes", "edges", "dimension", "optimiser", "hops", "mean rank", "MAP", "seconds"]
    body = [
        [
            str(row.get("graph", "")),
            *(_whole(row, key) for key in ("nodes", "edges", "dimension")),
            str(row.get("optimiser", "")),
            _whole(row, "hops"),
            *(amount(number(row, key), 3) for key in ("mean_rank", "map", "seconds")),
        ]
        for row in rows
    ]
    note = "Mean rank and mean average precision of every node’s ancestors by distance; 1 is perfect for both."
    return section("Embedded graphs", f'<p class="muted">{note}</p>', table(header, body))


def _predicted(rows: list[Row], name: str) -> str:
    """How often each class was the likeliest one, or the range of numbers."""
    numbers = [value for row in rows if (value := number(row, "number")) is not None]
    if numbers:
        body = [[amount(value, 4) for value in (min(numbers), sum(numbers) / len(numbers), max(numbers))]]
        return section(f"Answers for new rows: {name}", table(["least", "mean", "largest"], body))
    labels = [str(row["label"]) for row in rows if row.get("label") is not None]
    body = [[label, str(labels.count(label))] for label in sorted(set(labels))]
    return section(f"Answers for new rows: {name}", table(["class", "rows"], body)) if body else ""


# Lines of one task and folder make a section.
_BY_FOLDER = {
    "synthetic": placement_section,
    "attenuation": attenuation_section,
    "robustness": robustness_section,
    "complexity": complexity_section,
    "predict": _predicted,
}


def causal_sections(rows: list[tuple[str, Row]]) -> list[str]:
    """Of lines of `nsimplex causal`, each with the name of its folder."""
    sections = [_fit(row, name) for name, row in rows if row["task"] == "fit"]
    for task, make in (("simulate", _simulated), ("embed", _embedded)):
        own = [row for _, row in rows if row["task"] == task]
        if own:
            sections.append(make(own))
    for name, task in dict.fromkeys((name, row["task"]) for name, row in rows):
        if task in _BY_FOLDER:
            sections.append(_BY_FOLDER[task]([row for folder, row in rows if folder == name and row["task"] == task], name))
    return [each for each in sections if each]
