"""Sections about a model that ``nsimplex graph train`` or ``fit_graphs`` trained."""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

import matplotlib

from .._page import figure, readable, section, short, table
from ..viz.graph_drawing import MOST_NODES, graph_drawing
from .elements import MUTED, SERIES, STYLE, finish, new_axes, percent, spread_levels, svg, whole
from .run import Folder, Row, having, number

#: Metrics of a validation, and whether the page draws them. The first that a run has is drawn.
_METRICS = ("mae", "rmse", "auc", "aupr", "accuracy", "f1")

_RESULTS = ("graph_fit", "graph_evaluation")
_FEW = 30  # rows whose scores say little
_ORDINALS = {"1": "1st", "2": "2nd", "3": "3rd"}
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
        parts.append(_curve(folder.name, curve, metrics[0], _chance(about, metrics[0])))
    parts.append(_scores([row for row in rows if row["kind"] in _RESULTS], metrics, about))
    parts += _tuple_parts([row for row in rows if row["kind"] == "graph_tuples"])
    title = "A model of graphs" if only else f"A model of graphs: {folder.name}"
    return section(title, f'<p class="muted">{_about(about)}</p>', *parts)


def _scores(results: list[Row], metrics: list[str], about: Row) -> str:
    """The metrics of the validation and the test rows, with what a constant answer reaches."""
    if not results or not metrics:
        return ""
    unit = "rows" if _has_rows(about) else "graphs"
    header, body, few = [""], [[name] for name in metrics], False
    for row in results:
        fits = row["kind"] == "graph_fit"
        parts = ("validation", "test") if fits else ("known targets",)
        for part in parts:
            prefix = "test_" if part == "test" else ""
            count = number(about, part)
            named = f"{part}, {_counted(count, unit)}" if fits and count is not None else part
            header.append(
                f"epoch {whole(row, 'epoch')}, {named}" if part == "validation" else named
            )
            few |= fits and count is not None and 0 < count < _FEW
            for cells, name in zip(body, metrics, strict=True):
                value = number(row, f"{prefix}{name}")
                inside = _interval(value, count) if fits and unit == "rows" else ""
                cells.append(figure(value) + (inside if name == "accuracy" else ""))
    for prefix, words in (("", "validation"), ("test_", "test")):
        known = [number(about, f"constant_{prefix}{name}") for name in metrics]
        known = [0.5 if name == "auc" else own for name, own in zip(metrics, known, strict=True)]
        if any(own is not None for own in known):
            header.append(f"constant answer, {words}")
            for cells, own in zip(body, known, strict=True):
                cells.append(figure(own))
    said = (
        "A constant answer is the commonest class, or the mean, of the training rows. An interval "
        "in brackets has the true accuracy with 95 % confidence."
    )
    if few:
        said = f"So few {unit} say little about the model. {said}"
    return f'{table(header, body)}<p class="muted">{said}</p>'


def _has_rows(about: Row) -> bool:
    """Whether the parts of the split are rows; else they are graphs."""
    return about.get("task") == "graph" or number(about, "graphs") == 1


def _interval(share: float | None, count: float | None) -> str:
    """Wilson's interval of 95 % around a share of so many rows."""
    if share is None or not count or not 0 <= share <= 1:
        return ""
    square = 1.96**2 / count
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return f" [{max(middle - half, 0):.2f}, {min(middle + half, 1):.2f}]"


def _counted(count: float, plural: str) -> str:
    return f"{count:,.0f} {plural if count != 1 else plural.removesuffix('s')}"


def _about(row: Row) -> str:
    known = [(name, number(row, name)) for name in ("graphs", "nodes", "edges", "parameters")]
    counts = ", ".join(_counted(value, name) for name, value in known if value is not None)
    words = [
        f"{name} {own}" for name in ("model", "target") if isinstance(own := row.get(name), str)
    ]
    about = escape(", ".join([*words, *([counts] if counts else [])]))
    return (
        f"{about + '. ' if about else ''}The epoch is chosen by the validation rows; the test "
        "rows are read at the end."
    )


def _chance(about: Row, metric: str) -> float | None:
    """What a constant answer reaches on the validation rows."""
    return 0.5 if metric == "auc" else number(about, f"constant_{metric}")


def _curve(name: str, rows: list[Row], metric: str, chance: float | None) -> str:
    with matplotlib.rc_context(STYLE):
        curves = [(metric, f"{metric} on the validation rows"), ("loss", "training loss")]
        known = [each for each in curves if having(rows, each[0])]
        drawing, found = new_axes(columns=len(known))
        for index, (key, title) in enumerate(known):
            axes = found[index] if len(known) > 1 else found
            points = [(row["epoch"], row[key]) for row in having(rows, key)]
            axes.plot(*zip(*points), color=SERIES[index])
            if key == metric and chance is not None:
                spread_levels(axes, [(chance, "constant answer", MUTED)])
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
            "<h3>Heaviest tuples of predictions</h3><p>The read-out averages tuples of nodes, "
            "one per head and per place of the predicted node. A stronger blue "
            "is a larger weight, a blue ring is a node by itself, and orange is predicted. The "
            "layers before it mix the tuples, so a weight does not say what caused the "
            "prediction.</p>"
        )
    for row in shown[:_MOST_PREDICTIONS]:
        name = ", ".join(f"{key} {short(value, 40)}" for key, value in row["of"].items())
        weighed = [(nodes, float(weight)) for nodes, weight in row["drawn"]]
        classes = row["classes"] if _are_texts(row.get("classes")) else []
        classes = classes if len(classes) == len(row["nodes"]) else []
        picture = graph_drawing(row["nodes"], row["sets"], weighed, row["target"], classes)
        body = [
            [
                ", ".join(short(node) for node in own["nodes"]),
                percent(own["weight"]),
                percent(1 / own["among"]),
                short(class_in_words(own["class"]), 60),
                str(own["head"]),
            ]
            for own in row["tuples"][:_MOST_TUPLES]
        ]
        parts.append(
            f'<h3>{escape(name)}</h3><div style="max-width: 480px">{readable(picture)}</div>'
        )
        parts.append(table(["tuple", "weight", "even weight", "predicted node is", "head"], body))
    if len(shown) > _MOST_PREDICTIONS:
        left = f"{len(shown) - _MOST_PREDICTIONS:,}"
        parts.append(f'<p class="muted">{left} more predictions are in metrics.jsonl.</p>')
    return parts


def class_in_words(name: str) -> str:
    """Which nodes of the tuples of a class are predicted: {i1}{i2 j1} is "2nd"."""
    blocks = [block.split() for block in re.findall(r"\{([^{}]*)\}", name)]
    outputs = {entry for block in blocks for entry in block if entry[0] == "j"}
    if not blocks:
        return name
    if not outputs:
        return "–"
    met = []
    for block in blocks:
        own, of = (
            " and ".join(_ORDINALS.get(e[1:], f"{e[1:]}th") for e in block if e[0] == side)
            for side in "ij"
        )
        if own and of:
            met.append(own if len(outputs) == 1 else f"{own} as {of}")
    return ", ".join(met) or "none"


def trained_headline(rows: list[Row]) -> tuple[str, str]:
    """The title of the page about one model, and its result in a sentence."""
    about = next((row for row in rows if row["kind"] == "graph_data"), {})
    fit: Row = next((row for row in reversed(rows) if row["kind"] == "graph_fit"), {})
    title = f"A model that predicts {about.get('target', 'targets of graphs')}"
    metric = next((name for name in _METRICS if number(fit, name) is not None), None)
    if metric is None:
        return title, "What it learned, and how well it predicts."
    tested = number(fit, f"test_{metric}") is not None
    part, prefix = ("test", "test_") if tested else ("validation", "")
    named = metric if metric == "accuracy" else metric.upper()
    lead = f"{named} {figure(number(fit, prefix + metric))}"
    count = number(about, part)
    unit = "rows" if _has_rows(about) else "graphs"
    lead += f" on {_counted(count, f'{part} {unit}')}" if count else f" on the {part} {unit}"
    constant = number(about, f"constant_{prefix}{metric}")
    lead += f"; a constant answer reaches {figure(constant)}" if constant is not None else ""
    return title, lead[0].upper() + lead[1:] + "."


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
