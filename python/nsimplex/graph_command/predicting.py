"""``nsimplex graph predict``: new data, a trained model, a table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._command_channel import Channel
from .._page import counted
from .._printable import printable
from .._whole_file import whole_file
from ..graph import TupleBatch
from ..nn.graph_baselines import MessagePassing
from ..nn.graph_losses import graph_metrics
from ..nn.graph_models import GraphModel, read_state
from ..nn.graph_set_models import HyperSAGNN, SetToGraph
from ..nn.graph_transformer import GraphTransformer
from .explaining import COLUMNS, explained, line_of, table_rows
from .link_parts import asked_tuples, with_structure
from .reading import read_data
from .records import Recipe, warnings_to

_MODELS: dict[str, type[GraphModel]] = {
    own.__name__: own for own in (GraphTransformer, MessagePassing, HyperSAGNN, SetToGraph)
}
_GRAPHS_AT_ONCE = 64
PREDICTIONS_FILE, TUPLES_FILE = "predictions.csv", "tuples.csv"


def load(run: str) -> tuple[GraphModel, Recipe]:
    """The model of a run folder, and how its data are read.

    Raises:
        ValueError: "cannot read PATH: WHY".
    """
    file, state = read_state(run)
    if state["class"] not in _MODELS:
        file.fail(f"it holds a {printable(str(state['class']))[:40]}")
    if "data" not in state:
        file.fail("a model that nsimplex graph train did not write; load it with from_run()")
    try:
        recipe = Recipe.from_json(state["data"])
    except (TypeError, ValueError):
        file.fail("the header's state is damaged: data")
    if recipe.task != state["options"].get("task"):
        file.fail("the header's state is damaged: the data are of another task than the model")
    return _MODELS[state["class"]].from_run(run), recipe


def predict(request: dict[str, Any], channel: Channel) -> None:
    """Predicts for every graph, node, edge or hyperedge of the data, lists the heaviest tuples of
    each prediction if it is told to, and judges where targets are known."""
    model, recipe = load(request["run"])
    with warnings_to(channel):
        loaded = read_data(request["data"], recipe, request["nodes"], request["graphs"])
    data, queries, shared = loaded.data, None, 0
    if recipe.structure == "positive":
        data, shared = with_structure(request["run"], recipe, loaded.data)
        queries = asked_tuples(loaded.data, data)
    try:
        with warnings_to(channel):
            answers = _answers(model.to(request["device"]), data, queries).cpu()
    except ValueError as error:
        raise ValueError(
            f"cannot use {printable(request['data'])}: {str(error).partition('] ')[2] or error}"
        ) from None
    count = request["explain"]
    heaviest = explained(model, data, count, range(len(answers)), queries) if count else []
    channel.begin()
    if shared:
        channel.warning(
            f"{counted(shared, 'rows')} of DATA are edges of the training's graph, so that "
            "their predictions say little"
        )
    header, rows = _columns(model, recipe, answers)
    named = [[*name, *row] for name, row in zip(loaded.rows, rows)]
    tuples = [row for own in heaviest for row in table_rows(own, loaded)]
    if request["folder"]:
        _write(request, PREDICTIONS_FILE, [*loaded.header, *header], named)
        if count:
            _write(request, TUPLES_FILE, [*loaded.header, *COLUMNS], tuples)
    for name, row in zip(loaded.rows, rows):
        channel.line(
            "graph_prediction",
            task=recipe.task,
            row=dict(zip(loaded.header, name)),
            prediction=dict(zip(header, row)),
        )
    shown = [[*name, *(_shown(each) for each in row)] for name, row in zip(loaded.rows, rows)]
    channel.table([[*loaded.header, *header], *shown])
    for own in heaviest:
        channel.line("graph_tuples", **line_of(own, loaded, recipe))
    if count:
        channel.table([[*loaded.header, *COLUMNS], *tuples])
    targets = loaded.targets
    if targets is not None and targets.known.any():
        kind: Any = recipe.kind
        columns = recipe.metric_columns
        known = targets.known
        found = graph_metrics(answers[known], targets.values[known], kind, columns=columns)
        channel.line("graph_evaluation", target_kind=kind, rows=int(targets.known.sum()), **found)
        channel.table([["known targets", ""], *([k, f"{v:.6g}"] for k, v in found.items())])


def _write(request: dict[str, Any], name: str, header: list[str], rows: list[list[Any]]) -> None:
    with whole_file(Path(request["folder"]) / name, encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _answers(model: GraphModel, data: Any, queries: list[TupleBatch] | None) -> Tensor:
    """Predictions of many graphs, some at a time. Edges of several sizes come size by size, so
    their graphs are taken together."""
    if queries is not None:
        return model.predict(data, queries)
    if data.num_graphs <= _GRAPHS_AT_ONCE or (len(data.edges) > 1 and model.task == "hyperedge"):
        return model.predict(data)
    parts = torch.arange(data.num_graphs).split(_GRAPHS_AT_ONCE)
    return torch.cat([model.predict(data[part]) for part in parts])


def _columns(
    model: GraphModel, recipe: Recipe, answers: Tensor
) -> tuple[list[str], list[list[Any]]]:
    """Names and values of the columns that are predicted."""
    values = answers.double().tolist()
    if model.target == "number":
        return recipe.targets, values
    if model.target == "labels":
        return [f"probability {name}" for name in recipe.targets], values
    name = recipe.targets[0]
    if model.target == "binary":
        classes = recipe.classes or ["0", "1"]
        return [name, f"probability {classes[1]}"], [
            [classes[int(row[0] > 0.5)], row[0]] for row in values
        ]
    places = answers.argmax(1).tolist()
    return [name, *(f"probability {each}" for each in recipe.classes)], [
        [recipe.classes[place], *row] for place, row in zip(places, values)
    ]


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
