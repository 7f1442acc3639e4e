"""Sections about a model that ``nsimplex graph train`` or ``fit_graphs`` trained."""

from __future__ import annotations

from html import escape
from typing import Any

import matplotlib

from .._page import readable, section, short, table
from ..viz.graph_drawing import MOST_NODES, graph_drawing
from .elements import SERIES, STYLE, amount, finish, new_axes, percent, svg, whole
from .run import Folder, Row, having, number

#: Metrics of a validation, and whether the page draws them. The first that a run has is drawn.
_METRICS = ("mae", "rmse", "auc", "aupr", "accuracy", "f1")

_MOST_PREDICTIONS, _MOST_TUPLES = 6, 12  # whose tuples are shown, and how many tuples of each


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
    parts += _tuple_parts([row for row in rows if row["kind"] == "graph_tuples"])
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
        curves = [(metric, f"{metric} on the validation rows"), ("loss", "training loss")]
        known = [each for each in curves if having(rows, each[0])]
        drawing, found = new_axes(columns=len(known))
        for index, (key, title) in enumerate(known):
            axes = found[index] if len(known) > 1 else found
            points = [(row["epoch"], row[key]) for row in having(rows, key)]
            axes.plot(*zip(*points), color=SERIES[index])
            finish(axes, "epochs", title)
        return svg(
            drawing,
            f"graph-{name}-{metric}",
            " and ".join(title for _, title in known) + " over epochs",
            f"See when {metric} stops improving: a training loss that falls further means that the "
            "model learns its training rows by heart.",
        )


def _tuple_parts(rows: list[Row]) -> list[str]:
    """The heaviest tuples of the first predictions, drawn and listed."""
    shown = [row for row in rows if _is_whole(row)]
    parts = []
    if shown:
        parts.append(
            "<h3>Heaviest tuples of predictions</h3><p>The read-out is a mean over tuples of nodes "
            "in every class and head. A stronger colour is a larger weight; a ring is a node by "
            "itself. The layers before it mix the tuples, so a weight does not say what caused the "
            "prediction.</p>"
        )
    for row in shown[:_MOST_PREDICTIONS]:
        name = ", ".join(f"{key} {short(value, 40)}" for key, value in row["of"].items())
        weighed = [(nodes, float(weight)) for nodes, weight in row["drawn"]]
        picture = graph_drawing(row["nodes"], row["sets"], weighed, row["target"])
        body = [
            [
                ", ".join(short(node) for node in own["nodes"]),
                percent(own["weight"]),
                percent(1 / own["among"]),
                short(own["class"], 40),
                str(own["head"]),
            ]
            for own in row["tuples"][:_MOST_TUPLES]
        ]
        parts.append(
            f'<h3>{escape(name)}</h3><div style="max-width: 480px">{readable(picture)}</div>'
        )
        parts.append(table(["tuple", "weight", "even weight", "class", "head"], body))
    if len(shown) > _MOST_PREDICTIONS:
        left = f"{len(shown) - _MOST_PREDICTIONS:,}"
        parts.append(f'<p class="muted">{left} more predictions are in metrics.jsonl.</p>')
    return parts


def _is_whole(row: Row) -> bool:
    """Whether a line has all that its picture and table need, in the right types."""
    named, tuples = row.get("of"), row.get("tuples")
    nodes: Any = row.get("nodes")
    if not isinstance(named, dict) or not all(isinstance(own, str) for own in named.values()):
        return False
    if not _are_texts(nodes) or not 0 < len(nodes) <= MOST_NODES or not isinstance(tuples, list):
        return False
    inside = lambda own: (
        isinstance(own, list)
        and all(type(node) is int and 0 <= node < len(nodes) for node in own)
        and len(set(own)) == len(own)
    )
    sets, drawn = row.get("sets"), row.get("drawn")
    return (
        inside(row.get("target"))
        and isinstance(sets, list)
        and all(inside(own) and len(own) > 1 for own in sets)
        and isinstance(drawn, list)
        and all(
            isinstance(own, list)
            and len(own) == 2
            and inside(own[0])
            and own[0]
            and _is_share(own[1])
            for own in drawn
        )
        and all(
            isinstance(own, dict)
            and _are_texts(own.get("nodes"))
            and _is_share(own.get("weight"))
            and isinstance(own.get("class"), str)
            and type(own.get("head")) is int
            and type(own.get("among")) is int
            and own["among"] > 0
            for own in tuples
        )
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(own, str) for own in value)


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6
