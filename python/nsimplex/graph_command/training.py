"""``nsimplex graph train``: data, split, model, training, file."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .._choices import GraphLoss
from .._command_channel import Channel
from .._page import counted
from .._whole_file import whole_file
from ..graph import GraphData, Split, split_rows
from ..graph.batches import numbers_of
from ..nn.graph_losses import graph_metrics, mean_and_scale, mean_scaled_error, require_loss
from ..nn.graph_models import GraphModel
from ..nn.graph_parts import GraphParts, require_apart
from ..nn.graph_training import CHECKPOINT_FILE, FitOptions, start_ranks, train_model
from ..nn.graph_transformer import GraphTransformer
from .explaining import explained, line_of
from .link_parts import STRUCTURE_FILE, LinkParts, choose_structure, structure_of, write_structure
from .models import make_model
from .reading import read_data
from .records import Loaded, Recipe, warnings_to, with_targets
from .tables import BadRows, Targets, number_of

# Of the report: predictions whose heaviest tuples are shown, how many tuples each, and the size of
# the largest graph.
_SHOWN, _TUPLES, _MOST_TUPLES = 3, 8, 4096
_MOST_BAD = 10  # rows that are left out and shown
SKIPPED_FILE = "skipped.csv"


def train(request: dict[str, Any], channel: Channel) -> None:
    """Trains as the options of the command say.

    Raises:
        ValueError: data or options that cannot be used, in one line.
    """
    names = lambda text: [each.strip() for each in text.split(",") if each.strip()]
    recipe = Recipe(
        request["task"],
        names(request["target"]),
        request["kind"],
        request["smiles"],
        names(request["ignore"]),
        request["directed"],
        bad=BadRows(request["skip_bad"]),
    )
    if not recipe.targets:
        raise ValueError("--target: expected a column, got none")
    for name in recipe.targets:
        if recipe.targets.count(name) > 1:
            raise ValueError(f"--target: expected different columns, got {name!r} twice")
    with warnings_to(channel):
        loaded = read_data(request["data"], recipe, request["nodes"], request["graphs"])
    targets = loaded.targets
    assert targets is not None
    data = with_targets(loaded, recipe.task)
    split = (
        _masked_split(loaded.masks, targets.known)
        if loaded.masks
        else _split(request, data, targets, recipe.task)
    )
    scaled, scales = _standardised(data)
    loss: GraphLoss = "" if request["loss"] == "default" else request["loss"]
    require_loss("--", loss, targets.kind)
    torch.manual_seed(request["seed"])
    model = make_model(request, recipe, data, targets).to(request["device"])
    recipe.structure = choose_structure(request["structure"], recipe, data, targets)
    with warnings_to(channel):
        parts = (
            LinkParts(model, scaled, split, targets, request["split_seed"])
            if recipe.structure == "positive"
            else GraphParts(model, scaled, split, None, None, request["batch"])
        )
    parts.columns = recipe.metric_columns
    folder = Path(request["folder"]) if request["folder"] else None
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
    options = FitOptions(
        request["epochs"],
        request["learning_rate"],
        request["weight_decay"],
        request["warmup"],
        request["patience"],
        loss,
        request["seed"],
    )
    try:
        start_ranks(model, parts, options)
    except ValueError as error:
        raise ValueError(str(error).partition("] ")[2]) from None
    parts.ranks.on_first(lambda: _begin(channel, folder, request["resume"]))
    if not parts.ranks.writes:
        channel.begin()
    _say_data(channel, recipe, data, targets, split, model, request["model"], parts)
    if parts.ranks.writes:
        _say_bad(channel, recipe.bad, folder)
    log = _Log(channel, request["epochs"])
    checkpoint = None if folder is None else folder / CHECKPOINT_FILE
    found = train_model(model, parts, options, log, checkpoint=checkpoint, stops=channel.stops)
    _fold(model.cpu(), scales)
    if folder is not None and parts.ranks.writes:
        model.save(folder, data=recipe.to_json())
        if isinstance(parts, LinkParts):
            write_structure(structure_of(data, parts.positive), folder, recipe.task)
    if isinstance(model, GraphTransformer) and parts.ranks.writes:
        _say_tuples(channel, model, loaded, recipe, split, parts)
    metrics = list(found.validation)
    rows = [
        [name, f"{found.validation[name]:.6g}", f"{found.test[name]:.6g}" if found.test else "-"]
        for name in metrics
    ]
    channel.table([[f"epoch {found.best} of {found.epochs}", "validation", "test"], *rows])


def _begin(channel: Channel, folder: Path | None, resume: bool) -> None:
    channel.begin()
    if folder is not None and not resume:
        for name in (CHECKPOINT_FILE, STRUCTURE_FILE, "model.safetensors"):
            (folder / name).unlink(missing_ok=True)  # of an earlier run, which is overwritten


def _say_bad(channel: Channel, bad: BadRows, folder: Path | None) -> None:
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


def _say_tuples(
    channel: Channel,
    model: GraphTransformer,
    loaded: Loaded,
    recipe: Recipe,
    split: Split,
    parts: GraphParts,
) -> None:
    """Lines with the heaviest tuples of some predictions of the test, or the validation without
    one. Large graphs are left out, for they take a pass per 16 tuples."""
    data, queries = with_targets(loaded, recipe.task), None
    if isinstance(parts, LinkParts):
        data, queries = structure_of(data, parts.positive), data.edges
    part = split.test if len(split.test) else split.validation
    rows = part
    if not _splits_rows(recipe, data):
        graphs = _graphs_of_rows(data)
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


def _split(request: dict[str, Any], data: GraphData, targets: Targets, task: str) -> Split:
    """Rows with a target: graphs if there are several or the task is theirs, rows otherwise."""
    shares = (1 - request["validation"] - request["test"], request["validation"], request["test"])
    if shares[1] <= 0:
        raise ValueError(f"--validation: expected a share above 0, got {shares[1]:g}")
    if shares[0] <= 0:
        raise ValueError(
            f"--validation, --test: expected shares that leave some for training, got {shares[1]:g}"
            f", {shares[2]:g}"
        )
    shares = tuple(max(share, 0.0) for share in shares)
    by_rows = task == "graph" or data.num_graphs == 1
    if by_rows:
        rows = targets.known.nonzero().squeeze(1)
        classes: Tensor | int = len(rows)
        if targets.kind in ("binary", "classes"):
            classes = targets.values[rows].reshape(-1).long()
    else:
        if not targets.values.is_floating_point() and not targets.known.all():
            raise ValueError(
                "--target: expected the class of every row of several graphs, got none in row "
                f"{int((~targets.known).nonzero()[0]) + 1}"
            )
        rows = _graphs_with_targets(data, targets.known)
        classes = len(rows)
    made = split_rows(classes, shares, seed=request["split_seed"])
    unit = task if by_rows else "graph"
    for name, part in zip(("training", "validation"), made):
        if not len(part):
            raise ValueError(
                f"DATA: expected enough {unit}s with a target for a split, got {len(rows)}, which "
                f"leave none for {name}"
            )
    return Split(*(rows[part] for part in made))


def _masked_split(masks: Mapping[str, Tensor], known: Tensor) -> Split:
    """The parts that masks of the data name, as far as their targets are known."""
    none = torch.zeros_like(known)
    parts = {name: masks.get(name, none) & known for name in Split._fields}
    for name in ("training", "validation"):
        if not parts[name].any():
            raise ValueError(f"DATA: expected nodes with a target in the mask of {name}, got none")
    split = Split(**{name: own.nonzero().squeeze(1) for name, own in parts.items()})
    require_apart("DATA", split, "node")
    return split


def _graphs_of_rows(data: GraphData) -> Tensor:
    """The graph of every node or edge, whichever the targets belong to."""
    if data.level == "node":
        return data.graph_of_nodes
    none = torch.empty(0, dtype=torch.int64)
    return torch.cat([none, *(numbers_of(each.tuple_offsets) for each in data.edges)])


def _graphs_with_targets(data: GraphData, known: Tensor) -> Tensor:
    return _graphs_of_rows(data)[known].unique()


def _standardised(data: GraphData) -> tuple[GraphData, dict[str, tuple[Tensor, Tensor]]]:
    """Floating features with mean 0 and deviation 1 per column, and what was done."""
    scales: dict[str, tuple[Tensor, Tensor]] = {}

    def scaled(name: str, parts: list[Tensor]) -> list[Tensor]:
        if not parts or not parts[0].is_floating_point() or not parts[0].size(1):
            return parts
        rows = torch.cat(parts).double()
        if not len(rows):
            return parts
        mean, spread = rows.mean(0), rows.std(0, correction=0)
        spread = torch.where(spread > 0, spread, 1)
        scales[name] = mean, spread
        return [((own.double() - mean) / spread).to(own.dtype) for own in parts]

    nodes = [] if data.node_features is None else scaled("node_input", [data.node_features])
    edges = scaled("edge_input", data.edge_features)
    made = dataclasses.replace(data, node_features=nodes[0] if nodes else None, edge_features=edges)
    return made, scales


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
    channel: Channel,
    recipe: Recipe,
    data: GraphData,
    targets: Targets,
    split: Split,
    model: GraphModel,
    name: str,
    parts: GraphParts,
) -> None:
    structure = parts.data.num_edges
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
        structure=structure,
        training=len(split.training),
        validation=len(split.validation),
        test=len(split.test),
        skipped=len(recipe.bad),
        **(constant_scores(targets, split, parts.columns) if _splits_rows(recipe, data) else {}),
    )
    rows = [
        ["task", recipe.task],
        ["target", f"{', '.join(recipe.targets)} ({targets.kind})"],
        ["graphs, nodes, edges", f"{data.num_graphs}, {data.num_nodes}, {data.num_edges}"],
        ["training, validation, test", ", ".join(str(len(part)) for part in split)],
    ]
    if isinstance(parts, LinkParts):
        rows.append(["structure", f"{structure} training rows with target 1"])
    channel.table([["data", ""], *rows])
