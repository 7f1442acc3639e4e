"""Sections about causal graphs of tables: an answer beside baselines, and what is sure about it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import matplotlib

from .._page import counted, section, table
from .elements import MUTED, SERIES, STYLE, amount, finish, legend_below, new_axes, svg, whole
from .run import Folder, Row, number

_FIGURES = ("shd", "sid", "f1", "precision", "recall", "auroc", "auprc")

_TITLES = {"empty": "empty graph", "variance_sort": "sorted by variance", "r2_sort": "sorted by R²"}


def _cells(row: Row, figures: Sequence[str]) -> list[str]:
    return [
        whole(row, "edges"),
        *(whole(row, f) if f in ("shd", "sid") else amount(number(row, f), 3) for f in figures),
    ]


def _baselines(row: Row) -> dict[str, Row]:
    found = row.get("baselines")
    return (
        {name: each for name, each in found.items() if isinstance(each, dict)}
        if isinstance(found, dict)
        else {}
    )


def answers_figure(row: Row, name: str) -> str:
    """AUPRC and F1 of the answer and of the baselines, as bars."""
    answers = {
        str(row.get("estimator")): row,
        **{_TITLES.get(n, n): each for n, each in _baselines(row).items()},
    }
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes(height=0.8 + 0.42 * len(answers))
        for shift, key, alpha in ((-0.19, "f1", 1.0), (0.19, "auprc", 0.55)):
            for at, each in enumerate(answers.values()):
                value, color = number(each, key) or 0.0, SERIES[0] if at == 0 else MUTED
                label = key.upper() if at == 0 else None
                axes.barh(at + shift, value, 0.34, color=color, alpha=alpha, label=label)
                axes.text(value + 0.01, at + shift, f"{value:.2f}", va="center", fontsize=9)
        axes.set_yticks(range(len(answers)), list(answers))
        axes.invert_yaxis()
        axes.set_xlim(0, 1.15)  # also a narrow chart has room for the numbers
        finish(axes, "", "")
        legend_below(axes)
        return svg(
            drawing,
            f"fit-{name}",
            "F1 and AUPRC of the estimator and of the baselines",
            "See how much longer the blue bars of the estimator are than the grey ones of the "
            "baselines. F1 compares the edges with the true graph, and AUPRC, paler, the order of "
            "their scores.",
        )


def _remark(row: Row) -> str:
    by = "the true graph" if row.get("sortability_of") == "truth" else "the learned graph"
    text = (
        f"By {by}, varsortability {amount(number(row, 'varsortability'), 3)} and R²-sortability "
        f"{amount(number(row, 'r2_sortability'), 3)}: how far the columns' scales alone tell the "
        "order; 0.5 is chance. "
        f"Columns were {'' if row.get('standardise') else 'not '}standardised."
    )
    removed = row.get("removed")
    if isinstance(removed, list) and removed:
        text += f" Removed, because they closed cycles: {escape(', '.join(map(str, removed)))}."
    return f'<p class="muted">{text}</p>'


def _fit(row: Row, name: str) -> str:
    known = number(row, "shd") is not None
    figures = _FIGURES if known else ()
    answers = [(f"{row.get('estimator')} ({row.get('model')})", row)]
    for key, title in (("at_0.3", "cut at 0.3"), ("at_best", "cut at the best threshold")):
        if isinstance(row.get(key), dict):
            answers.append((title, row[key]))
    answers += [(_TITLES.get(n, n), each) for n, each in _baselines(row).items()]
    distances = [number(each, "shd") for _, each in answers]
    least = min((distance for distance in distances if distance is not None), default=None)
    best = [at for at, distance in enumerate(distances) if distance == least]
    header = [
        "graph",
        "edges",
        *(f.upper() if f != "precision" and f != "recall" else f for f in figures),
    ]
    seconds = amount(number(row, "seconds"), 3, " s")
    beside = "Beside the known graph" if known else "Beside baselines"
    return section(
        f"{beside}: {row.get('table', name)}".replace("\\", "/"),
        f'<p class="muted">{counted(number(row, "observations"), "observations")} of '
        f"{counted(number(row, 'features'), 'columns')}; the fit took {seconds}.</p>",
        answers_figure(row, name) if known else "",
        table(
            header,
            [[title, *_cells(each, figures)] for title, each in answers],
            strong=2 if known else None,
            good=best,
        ),
        _remark(row),
    )


def _simulated(rows: list[Row]) -> str:
    header = [
        "table",
        "columns",
        "edges",
        "observations",
        "seed",
        "varsortability",
        "R²-sortability",
    ]
    body = [
        [
            str(row.get("table", "")),
            *(whole(row, key) for key in ("nodes", "edges", "observations", "seed")),
            *(amount(number(row, key), 3) for key in ("varsortability", "r2_sortability")),
        ]
        for row in rows
    ]
    return section("Made-up tables", table(header, body))


def _embedded(rows: list[Row]) -> str:
    header = [
        "graph",
        "nodes",
        "edges",
        "dimension",
        "optimiser",
        "hops",
        "mean rank",
        "MAP",
        "seconds",
    ]
    body = [
        [
            str(row.get("graph", "")),
            *(whole(row, key) for key in ("nodes", "edges", "dimension")),
            str(row.get("optimiser", "")),
            whole(row, "hops"),
            *(amount(number(row, key), 3) for key in ("mean_rank", "map", "seconds")),
        ]
        for row in rows
    ]
    note = (
        "Mean rank and mean average precision of every node’s ancestors by distance; 1 is perfect "
        "for both."
    )
    return section("Embedded graphs", f'<p class="muted">{note}</p>', table(header, body))


def _predicted(rows: list[Row], name: str) -> str:
    """How often each class was the likeliest one, or the range of numbers."""
    numbers = [value for row in rows if (value := number(row, "number")) is not None]
    if numbers:
        body = [
            [
                amount(value, 4)
                for value in (min(numbers), sum(numbers) / len(numbers), max(numbers))
            ]
        ]
        return section(f"Answers for new rows: {name}", table(["least", "mean", "largest"], body))
    labels = [str(row["label"]) for row in rows if row.get("label") is not None]
    body = [[label, str(labels.count(label))] for label in sorted(set(labels))]
    return section(f"Answers for new rows: {name}", table(["class", "rows"], body)) if body else ""


def fit_headline(row: Row) -> tuple[str, str]:
    """The title of the page about one learned graph, and the result in a sentence."""
    title = f"Causal graph of {counted(number(row, 'features'), 'columns')}"
    rows = counted(number(row, "observations"), "rows")
    lead = f"{counted(number(row, 'edges'), 'edges')}, learned from {rows}."
    if (own := number(row, "f1")) is None:
        return title, lead
    others = {_TITLES.get(n, n): number(each, "f1") or 0.0 for n, each in _baselines(row).items()}
    lead += f" F1 against the known graph is {own:.2f}"
    if others:
        best = max(others, key=others.__getitem__)
        lead += f"; the best baseline, {best}, reaches {others[best]:.2f}"
    return title, lead + "."


def fit_sections(folders: list[Folder]) -> list[str]:
    return [_fit(row, folder.name) for folder in folders for row in folder.rows]


def _findings(row: Row) -> str:
    found = row.get("findings")
    said = [str(each) for each in found] if isinstance(found, list) else []
    return "".join(f"<li>{escape(each)}.</li>" for each in said)


def certainty_sections(folders: list[Folder]) -> list[str]:
    """How sure the edges of a graph are, and what the table cannot tell about them."""
    sections = []
    for folder in folders:
        if said := "".join(map(_findings, folder.rows)):
            sections.append(section(f"How sure the graph is: {folder.name}", f"<ul>{said}</ul>"))
    return sections


def effect_sections(folders: list[Folder]) -> list[str]:
    """The total effects of a folder: an interval per cause, and the range of open directions."""
    sections = []
    for folder in folders:
        body = [
            [
                f"{row.get('cause')} → {row.get('affected')}",
                amount(number(row, "effect"), 4),
                f"{amount(number(row, 'low'), 4)} to {amount(number(row, 'high'), 4)}",
                f"{amount(number(row, 'least'), 4)} to {amount(number(row, 'most'), 4)}",
            ]
            for row in folder.rows
        ]
        head = ["effect of", "total effect", "interval", "possible"]
        sections.append(section(f"Total effects: {folder.name}", table(head, body)))
    return sections


def simulated_sections(folders: list[Folder]) -> list[str]:
    return [_simulated([row for folder in folders for row in folder.rows])]


def embedded_sections(folders: list[Folder]) -> list[str]:
    return [_embedded([row for folder in folders for row in folder.rows])]


def predicted_sections(folders: list[Folder]) -> list[str]:
    return [_predicted(folder.rows, folder.name) for folder in folders]
