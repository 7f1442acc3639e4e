"""Sections about a model that ``nsimplex graph train`` or ``fit_graphs`` trained."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib

from .._page import counted, figure, readable, section, short, table
from ..viz.graph_drawing import MOST_NODES, graph_drawing
from .elements import MUTED, SERIES, STYLE, finish, new_axes, percent, spread_levels, svg, whole
from .run import Folder, Row, having, number

#: Metrics of a validation. The page draws the first that a run has.
_METRICS = ("scaled_mae", "mae", "rmse", "auc", "aupr", "accuracy", "f1")

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
    by_column = {name: None for row in rows for name in row if name.startswith(("mae ", "rmse "))}
    metrics += [name for name in by_column if having(rows, name)]
    about = next((row for row in rows if row["kind"] == "graph_data"), {})
    parts = []
    if metrics and (curve := having(epochs, "epoch", metrics[0])):
        parts.append(
            _curve(folder.name, curve, metrics[0], number(about, f"constant_{metrics[0]}"))
        )
    parts.append(_scores([row for row in rows if row["kind"] in _RESULTS], metrics, about))
    parts += _tuple_parts([row for row in rows if row["kind"] == "graph_tuples"])
    title = "A model of graphs" if only else f"A model of graphs: {folder.name}"
    trained = any(row["kind"] in ("graph_epoch", "graph_fit") for row in rows)
    return section(title, _about(about, trained), *parts)


@dataclass(frozen=True)
class _Part:
    """Rows, or graphs, on which a result has metrics."""

    name: str
    row: Row
    prefix: str  #: of its metrics in the row
    count: float | None
    unit: str
    is_share: bool  #: whether the accuracy is a share of rows that chose nothing

    def value(self, metric: str) -> float | None:
        return number(self.row, self.prefix + metric)

    def title(self) -> str:
        at = f"epoch {whole(self.row, 'epoch')}, " if self.name == "validation" else ""
        count = "" if self.count is None else f", {counted(self.count, self.unit)}"
        return f"{at}{self.name}{count}"

    def noun(self) -> str:
        judged = self.row["kind"] == "graph_evaluation"
        return self.name if judged else f"{self.name} {self.unit}"

    def cell(self, metric: str) -> str:
        value = self.value(metric)
        judged = metric == "accuracy" and self.is_share
        return figure(value) + (_interval(value, self.count) if judged else "")


def _parts(row: Row, about: Row) -> list[_Part]:
    """The parts of a result that have rows."""
    has_share = (row.get("target_kind") or about.get("target_kind")) in ("binary", "classes")
    unit = _unit(about)
    if row["kind"] == "graph_evaluation":
        found = [_Part("known targets", row, "", number(row, "rows"), "rows", has_share)]
    else:
        # The validation rows chose the epoch, so they are no draws like any others.
        has_share &= unit == "rows"
        found = [
            _Part("validation", row, "", number(about, "validation"), unit, False),
            _Part("test", row, "test_", number(about, "test"), unit, has_share),
        ]
    return [own for own in found if own.count or any(own.value(m) is not None for m in _METRICS)]


def _scores(results: list[Row], metrics: list[str], about: Row) -> str:
    """The metrics of the validation and the test rows, with what a constant answer reaches."""
    parts = [part for row in results for part in _parts(row, about)]
    if not parts or not metrics:
        return ""
    columns = [[part.title(), *map(part.cell, metrics)] for part in parts]
    said = []
    if small := [part for part in parts if part.count and part.count < _FEW]:
        names = dict.fromkeys(part.noun() for part in small)
        said.append(f"So few {' and '.join(names)} say little about the model.")
    constants = [
        [f"constant answer, {name}", *(figure(number(about, prefix + own)) for own in metrics)]
        for prefix, name in (("constant_", "validation"), ("constant_test_", "test"))
        if any(number(about, prefix + own) is not None for own in metrics)
    ]
    if constants:
        said.append("A constant answer is the commonest class, or the mean, of the training rows.")
    if any("[" in cell for own in columns for cell in own[1:]):
        said.append(
            "An interval in brackets has the true accuracy with 95 % confidence, if the rows are "
            "independent draws that the training did not use."
        )
    header, *body = zip(["", *metrics], *columns, *constants, strict=True)
    return table(header, body) + (f'<p class="muted">{" ".join(said)}</p>' if said else "")


def _unit(about: Row) -> str:
    """What the parts of the split are made of."""
    return "rows" if about.get("task") == "graph" or number(about, "graphs") == 1 else "graphs"


def _interval(share: float | None, count: float | None) -> str:
    """Wilson's interval of 95 % around a share of `count` rows."""
    if share is None or not count or not 0 <= share <= 1:
        return ""
    square = 1.96**2 / count
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return f" [{max(middle - half, 0):.2f}, {min(middle + half, 1):.2f}]"


def _about(row: Row, trained: bool) -> str:
    known = [(name, number(row, name)) for name in ("graphs", "nodes", "edges", "parameters")]
    counts = ", ".join(counted(value, name) for name, value in known if value is not None)
    words = [
        f"{name} {own}" for name in ("model", "target") if isinstance(own := row.get(name), str)
    ]
    about = escape(", ".join([*words, *([counts] if counts else [])]))
    said = [f"{about}."] if about else []
    if trained:
        read = "; the test rows are read at the end" if number(row, "test") != 0 else ""
        said.append(f"The epoch is chosen by the validation rows{read}.")
    return f'<p class="muted">{" ".join(said)}</p>' if said else ""


def _curve(name: str, rows: list[Row], metric: str, constant: float | None) -> str:
    with matplotlib.rc_context(STYLE):
        curves = [(metric, f"{metric} on the validation rows"), ("loss", "training loss")]
        known = [each for each in curves if having(rows, each[0])]
        further = ": if the training loss falls further, the model may be overfitting"
        further = further if curves[1] in known else ""
        drawing, found = new_axes(columns=len(known))
        for index, (key, title) in enumerate(known):
            axes = found[index] if len(known) > 1 else found
            points = [(row["epoch"], row[key]) for row in having(rows, key)]
            axes.plot(*zip(*points), color=SERIES[index])
            if key == metric and constant is not None:
                spread_levels(axes, [(constant, "constant answer", MUTED)])
            finish(axes, "epochs", title)
        return svg(
            drawing,
            f"graph-{name}-{metric}",
            " and ".join(title for _, title in known) + " over epochs",
            f"See when {metric} stops improving{further}.",
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
        left = counted(len(shown) - _MOST_PREDICTIONS, "more predictions")
        parts.append(f'<p class="muted">metrics.jsonl has {left}.</p>')
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
    unit = _unit(about)
    lead += f" on {counted(count, f'{part} {unit}')}" if count else f" on the {part} {unit}"
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
