"""Data of ``nsimplex graph train``: what is read, its split, and the scales of its features."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .._choices import GraphLoss
from .._command_channel import Channel
from ..graph import GraphData, Split, split_rows
from ..graph.batches import numbers_of
from ..nn.graph_losses import require_loss
from ..nn.graph_parts import require_apart
from .reading import read_data
from .records import Loaded, Recipe, warnings_to, with_targets
from .tables import BadRows, Targets


@dataclasses.dataclass(frozen=True)
class Task:
    """What every training of a command shares: the data, their split and the loss."""

    recipe: Recipe
    loaded: Loaded
    targets: Targets
    data: GraphData
    split: Split
    scaled: GraphData
    scales: dict[str, tuple[Tensor, Tensor]]
    loss: GraphLoss


def read_task(request: dict[str, Any], channel: Channel) -> Task:
    """Reads and splits the data of a command.

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
    return Task(recipe, loaded, targets, data, split, scaled, scales, loss)


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


def graphs_of_rows(data: GraphData) -> Tensor:
    """The graph of every node or edge, whichever the targets belong to."""
    if data.level == "node":
        return data.graph_of_nodes
    none = torch.empty(0, dtype=torch.int64)
    return torch.cat([none, *(numbers_of(each.tuple_offsets) for each in data.edges)])


def _graphs_with_targets(data: GraphData, known: Tensor) -> Tensor:
    return graphs_of_rows(data)[known].unique()


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
