"""``nsimplex graph train``: data, split, model, training, file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._command_channel import Channel
from .._page import counted
from .._whole_file import whole_file
from ..graph import GraphData, Split
from ..nn.graph_losses import graph_metrics, mean_and_scale, mean_scaled_error
from ..nn.graph_models import GraphModel
from ..nn.graph_parts import GraphParts
from ..nn.graph_training import CHECKPOINT_FILE, FitOptions, start_ranks, train_model
from ..nn.graph_transformer import GraphTransformer
from .explaining import explained, line_of
from .link_parts import STRUCTURE_FILE, LinkParts, choose_structure, structure_of, write_structure
from .models import make_model
from .records import Recipe, Warned, warnings_to
from .tables import BadRows, Targets, number_of
from .training_data import Task, graphs_of_rows, read_task

# Of the report: predictions whose heaviest tuples are shown, how many tuples each, and the size of
# the largest graph.
_SHOWN, _TUPLES, _MOST_TUPLES = 3, 8, 4096
_MOST_BAD = 10  # rows that are left out and shown
SKIPPED_FILE = "skipped.csv"


def make_parts(
    request: dict[str, Any], task: Task, channel: Warned
) -> tuple[GraphModel, GraphParts, FitOptions]:
    """The model of a training, its batches and its options.

    Raises:
        ValueError: options that do not fit the data or each other, in one line.
    """
    recipe, targets = task.recipe, task.targets
    torch.manual_seed(request["seed"])
    model = make_model(request, recipe, task.data, targets).to(request["device"])
    recipe.structure = choose_structure(request["structure"], recipe, task.data, targets)
    with warnings_to(channel):
        parts = (
            LinkParts(model, task.scaled, task.split, targets, request["split_seed"])
            if recipe.structure == "positive"
            else GraphParts(model, task.scaled, task.split, None, None, request["batch"])
        )
    parts.columns = recipe.metric_columns
    options = FitOptions(
        request["epochs"],
        request["learning_rate"],
        request["weight_decay"],
        request["warmup"],
        request["patience"],
        task.loss,
        request["seed"],
    )
    return model, parts, options


def warn_of_data(request: dict[str, Any], task: Task, channel: Channel) -> None:
    """Warns of what was decided about the data without an option."""
    targets, loaded = task.targets, task.loaded
    numbered = targets.kind == "classes" and None not in map(number_of, targets.classes)
    if request["kind"] == "auto" and numbered:
        channel.warning(
            f"targets: whole numbers taken as {len(targets.classes)} classes; --kind number takes "
            "them as numbers"
        )
    if loaded.masks:
        channel.warning("the split is that of train_mask and val_mask in DATA")
    if loaded.unused_masks:
        channel.warning(
            f"left out {', '.join(loaded.unused_masks)} of DATA: parts of a split are flags of the "
            "nodes of one graph, in train_mask and val_mask"
        )


def keep_model(model: GraphModel, parts: GraphParts, task: Task, folder: Path | None) -> None:
    """Puts the scales of features into a trained model, and saves it in a run folder."""
    _fold(model.cpu(), task.scales)
    if folder is not None and parts.ranks.writes:
        model.save(folder, data=task.recipe.to_json())
        if isinstance(parts, LinkParts):
            write_structure(structure_of(task.data, parts.positive), folder, task.recipe.task)


def train(request: dict[str, Any], channel: Channel) -> None:
    """Trains one model as the options of the command say.

    Raises:
        ValueError: data or options that cannot be used, in one line.
    """
    task = read_task(request, channel)
    model, parts, options = make_parts(request, task, channel)
    folder = Path(request["folder"]) if request["folder"] else None
    warn_of_data(request, task, channel)
    try:
        start_ranks(model, parts, options)
    except ValueError as error:
        raise ValueError(str(error).partition("] ")[2]) from None
    parts.ranks.on_first(lambda: begin(channel, folder, request["resume"]))
    if not parts.ranks.writes:
        channel.begin()
    _say_data(channel, task, model, request["model"], parts)
    if parts.ranks.writes:
        say_bad(channel, task.recipe.bad, folder)
    log = _Log(channel, request["epochs"])
    checkpoint = None if folder is None else folder / CHECKPOINT_FILE
    found = train_model(model, parts, options, log, checkpoint=checkpoint, stops=channel.stops)
    keep_model(model, parts, task, folder)
    if isinstance(model, GraphTransformer) and parts.ranks.writes:
        _say_tuples(channel, model, task, parts)
    metrics = list(found.validation)
    rows = [
        [name, f"{found.validation[name]:.6g}", f"{found.test[name]:.6g}" if found.test else "-"]
        for name in metrics
    ]
    channel.table([[f"epoch {found.best} of {found.epochs}", "validation", "test"], *rows])


def begin(channel: Channel, folder: Path | None, resume: bool) -> None:
    """Begins a run, and removes the files of one that is overwritten."""
    channel.begin()
    if folder is not None and not resume:
        for name in (STRUCTURE_FILE, "model.safetensors"):
            (folder / name).unlink(missing_ok=True)
        for path in folder.glob(f"{Path(CHECKPOINT_FILE).stem}*.safetensors"):
            path.unlink()


def say_bad(channel: Channel, bad: BadRows, folder: Path | None) -> None:
    """The rows that are left out: the first ten, and a file of all."""
    if folder is not None:
        (folder / SKIPPED_FILE).unlink(missing_ok=True)  # of an earlier run
    if not bad:
        return
    rows = [[each.path, str(each.line), each.reason] for each in bad]
    where = ""
    if folder is not None:
        where = f", all of which {SKIPPED_FILE} lists"
        with whole_file(folder / SKIPPED_FILE, encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["file", "line", "reason"], *rows])
    channel.warning(f"DATA: {counted(len(rows), 'rows')} left out{where}; first {bad[0]}")
    channel.table([["file", "line", "left out because"], *rows[:_MOST_BAD]])


def _say_tuples(channel: Channel, model: GraphTransformer, task: Task, parts: GraphParts) -> None:
    """Lines with the heaviest tuples of some predictions of the test, or the validation without
    one. Large graphs are left out, for they take a pass per 16 tuples."""
    loaded, recipe, split = task.loaded, task.recipe, task.split
    data, queries = task.data, None
    if isinstance(parts, LinkParts):
        data, queries = structure_of(data, parts.positive), data.edges
    part = split.test if len(split.test) else split.validation
    rows = part
    if not _splits_rows(recipe, data):
        graphs = graphs_of_rows(data)
        rows = torch.tensor([int((graphs == graph).nonzero()[0]) for graph in part[:_SHOWN]])
    edges = max((int(each.tuple_offsets.diff().max()) for each in data.edges), default=0)
    if edges + int(data.node_offsets.diff().max()) > _MOST_TUPLES:
        return
    for own in explained(model, data, _TUPLES, rows[:_SHOWN].tolist(), queries):
        channel.line("graph_tuples", **line_of(own, loaded, recipe))


class _Log:
    """Lines of epochs, with the progress."""

    def __init__(self, channel: Channel, epochs: int) -> None:
        self._channel, self._epochs = channel, epochs

    def line(self, kind: str, **fields: Any) -> None:
        self._channel.line(kind, **fields)
        if kind == "graph_epoch":
            shown = [f"{name} {own:.4g}" for name, own in fields.items() if name != "epoch"]
            self._channel.progress(fields["epoch"], self._epochs, ", ".join(shown[:2]))

    def sync(self) -> None:
        self._channel.sync()


def _fold(model: GraphModel, scales: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Puts the scales of features into the weights, so that the model takes features as they
    are."""
    for name, (mean, spread) in scales.items():
        linear = getattr(model, name).linear
        with torch.no_grad():
            weight = linear.weight.double() / spread
            linear.bias.copy_(linear.bias.double() - weight @ mean)
            linear.weight.copy_(weight)


def _splits_rows(recipe: Recipe, data: GraphData) -> bool:
    """Whether the parts of a split are rows of targets; else they are graphs."""
    return recipe.task == "graph" or data.num_graphs == 1


def constant_scores(
    targets: Targets, split: Split, columns: Sequence[str] = ()
) -> dict[str, float]:
    """The metrics of a constant answer of the training rows on the other rows."""
    answer = _constant_answer(targets, split.training)
    kind: Any = targets.kind
    found: dict[str, float] = {}
    for prefix, rows in (("constant_", split.validation), ("constant_test_", split.test)):
        if not len(rows):
            continue
        answers, wanted = answer.expand(len(rows), -1), targets.values[rows]
        scores = graph_metrics(answers, wanted, kind, columns=columns)
        if kind == "number" and targets.outputs > 1:
            _, scale = mean_and_scale(targets.values[split.training])
            scores["scaled_mae"] = mean_scaled_error(answers, wanted, scale)
        found |= {f"{prefix}{name}": score for name, score in scores.items()}
    return found


def _constant_answer(targets: Targets, rows: Tensor) -> Tensor:
    """The commonest class of some rows as probabilities, or the mean of numbers, or the commoner
    value per binary column; as floating [outputs]."""
    values = targets.values[rows]
    if targets.kind == "classes":
        return F.one_hot(values.mode(0).values, targets.outputs).double()
    mean = values.double().reshape(len(rows), -1).nanmean(0)
    return mean if targets.kind == "number" else (mean > 0.5).double()


def _say_data(
    channel: Channel, task: Task, model: GraphModel, name: str, parts: GraphParts
) -> None:
    recipe, data, targets, split = task.recipe, task.data, task.targets, task.split
    channel.line(
        "graph_data",
        task=recipe.task,
        target=", ".join(recipe.targets),
        target_kind=targets.kind,
        model=name,
        parameters=sum(each.numel() for each in model.parameters()),
        graphs=data.num_graphs,
        nodes=data.num_nodes,
        edges=data.num_edges,
        structure=parts.data.num_edges,
        training=len(split.training),
        validation=len(split.validation),
        test=len(split.test),
        skipped=len(recipe.bad),
        **(constant_scores(targets, split, parts.columns) if _splits_rows(recipe, data) else {}),
    )
    show_data(channel, task, parts)


def show_data(channel: Channel, task: Task, parts: GraphParts) -> None:
    """A table of the data and their split."""
    recipe, data = task.recipe, task.data
    rows = [
        ["task", recipe.task],
        ["target", f"{', '.join(recipe.targets)} ({task.targets.kind})"],
        ["graphs, nodes, edges", f"{data.num_graphs}, {data.num_nodes}, {data.num_edges}"],
        ["training, validation, test", ", ".join(str(len(part)) for part in task.split)],
    ]
    if isinstance(parts, LinkParts):
        rows.append(["structure", f"{parts.data.num_edges} training rows with target 1"])
    channel.table([["data", ""], *rows])
