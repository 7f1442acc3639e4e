"""Sections about a model that ``nsimplex graph train`` or ``fit_graphs`` trained."""

from __future__ import annotations

from html import escape

import matplotlib

from .elements import (
    SERIES,
    STYLE,
    amount,
    dashes,
    finish,
    new_axes,
    section,
    spread_labels,
    svg,
    table,
    whole,
)
from .run import Folder, Row, having, number

#: Metrics of a validation, and whether the page draws them. The first that a run has is drawn.
_METRICS = ("mae", "rmse", "auc", "aupr", "accuracy", "f1")


def trained_graph_sections(folders: list[Folder]) -> list[str]:
    """One section per folder."""
    return [_section(folder, len(folders) == 1) for folder in folders]


def _section(folder: Folder, only: bool) -> str:
    rows = folder.rows
    epochs = [row for row in rows if row["kind"] == "graph_epoch"]
    metrics = [name for name in _METRICS if having(rows, name)]
    about = next((row for row in rows if row["kind"] == "graph_data"), {})
    parts = []
    if metrics and (curve := having(epochs, "epoch", metrics[0])):
        parts.append(_curve(folder.name, curve, metrics[0]))
    results = [row for row in rows if row["kind"] in ("graph_fit", "graph_evaluation")]
    body = [
        [name, *(amount(number(row, key), 4) for row in results for key in (name, f"test_{name}"))]
        for name in metrics
    ]
    header = [""]
    for row in results:
        place = f"epoch {whole(row, 'epoch')}" if row["kind"] == "graph_fit" else "known targets"
        header += [f"{place}, validation", "test"] if row["kind"] == "graph_fit" else [place, ""]
    if results and body:
        parts.append(table(header, body))
    title = "A model of graphs" if only else f"A model of graphs: {folder.name}"
    return section(title, f'<p class="muted">{_about(about)}</p>', *parts)


def _about(row: Row) -> str:
    known = [(name, number(row, name)) for name in ("graphs", "nodes", "edges", "parameters")]
    counts = ", ".join(f"{amount(value, 0)} {name}" for name, value in known if value is not None)
    words = [
        f"{name} {own}" for name in ("model", "target") if isinstance(own := row.get(name), str)
    ]
    about = escape(", ".join([*words, *([counts] if counts else [])]))
    return (
        f"{about + '. ' if about else ''}The epoch is chosen by the validation rows; the test "
        "rows are read at the end."
    )


def _curve(name: str, rows: list[Row], metric: str) -> str:
    with matplotlib.rc_context(STYLE):
        drawing, axes = new_axes()
        ends = []
        for index, (key, label) in enumerate(((metric, metric), ("loss", "training loss"))):
            points = [(row["epoch"], row[key]) for row in having(rows, key)]
            if not points:
                continue
            axes.plot(*zip(*points), color=SERIES[index], linestyle=dashes(index))
            ends.append((*points[-1], label, SERIES[index]))
        spread_labels(axes, ends)
        finish(axes, "epochs", f"{metric} on the validation rows")
        return svg(drawing, f"graph-{name}-{metric}", f"Validation {metric} over epochs")
