"""Rows of edges or hyperedges that are the graph, apart from the rows that a model judges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from .._printable import printable
from ..graph import GraphData, Split, TupleBatch
from ..graph.hif import read_hif, write_hif
from ..nn.graph_models import GraphModel
from ..nn.graph_parts import Batch, GraphParts
from .records import Recipe, Structure
from .tables import Targets

STRUCTURE_FILE = "structure.json"  #: of a run folder, in HIF
_FOLDS = 5  # parts of the training rows that are judged in turn


def choose_structure(
    asked: Structure | Literal["auto"], recipe: Recipe, data: GraphData, targets: Targets
) -> Structure:
    """ "all" rows, or the "positive" ones of the training, from the option ``--structure``.

    Raises:
        ValueError: an option that does not fit the task, the targets or the graphs.
    """
    if recipe.task not in ("edge", "hyperedge"):
        if asked != "auto":
            raise ValueError(
                f"--structure: expected --task edge or hyperedge for {asked}, got {recipe.task}"
            )
        return "all"
    if asked == "auto":
        numbers = targets.kind == "binary" and not targets.classes
        return "positive" if numbers and data.num_graphs == 1 else "all"
    if asked == "positive" and targets.kind != "binary":
        raise ValueError(f"--structure: expected a binary target for positive, got {targets.kind}")
    if asked == "positive" and data.num_graphs != 1:
        raise ValueError(f"--structure: expected one graph for positive, got {data.num_graphs}")
    return asked


def structure_of(data: GraphData, kept: Tensor) -> GraphData:
    """The graph without targets that has the edges with flags ``kept``, numbered size by size."""
    flags = kept.split([len(each) for each in data.edges])
    return replace(
        data,
        edges=_chosen(data.edges, kept),
        edge_features=[own[flag] for own, flag in zip(data.edge_features, flags)],
        origin=[own[flag] for own, flag in zip(data.origin, flags)],
        targets=None,
        level="",
    )


def _chosen(lists: list[TupleBatch], kept: Tensor) -> list[TupleBatch]:
    """The tuples with flags, of lists of one graph."""
    flags = kept.split([len(each) for each in lists])
    return [
        replace(each, tuples=each.tuples[flag], tuple_offsets=torch.tensor([0, int(flag.sum())]))
        for each, flag in zip(lists, flags)
    ]


class LinkParts(GraphParts):
    """The rows of one graph as tuples to judge. Messages pass over the training rows with target 1.

    A step judges a fifth of the training rows, each class by itself, over the edges of the others,
    so that the graph never tells whether a tuple that is judged is an edge. An epoch has all of
    them. The other parts are judged over all training rows with target 1.
    """

    def __init__(
        self, model: GraphModel, data: GraphData, split: Split, targets: Targets, seed: int
    ) -> None:
        queries = data.edges
        #: Flags of the training rows with target 1.
        self.positive = positive = torch.zeros(len(targets.values), dtype=torch.bool)
        positive[split.training] = targets.values[split.training, 0] == 1
        super().__init__(
            model, structure_of(data, positive), split, queries, data.targets, len(split.training)
        )
        self._folds: list[tuple[Any, Tensor]] = []
        for rows in _folds(split.training, positive, seed):
            judged = torch.zeros_like(positive)
            judged[rows] = True
            graph = structure_of(data, positive & ~judged)
            inputs = model.prepare(graph, _chosen(queries, judged))
            self._folds.append((inputs.to(model.target_mean.device), rows))
        self.steps = len(self._folds)

    def training(self, generator: torch.Generator) -> Iterator[Batch | None]:
        """A step per fold. The order of the folds does not change."""
        for inputs, rows in self._folds:
            yield inputs, self.targets[rows].to(self.model.target_mean.device), None


def _folds(rows: Tensor, positive: Tensor, seed: int) -> list[Tensor]:
    """Rows in ascending order, in parts with equal shares of both classes."""
    drawn = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    drawn = drawn[positive[drawn].long().sort(stable=True).indices]
    count = min(_FOLDS, len(drawn))
    return [drawn[part::count].sort().values for part in range(count)]


def write_structure(graph: GraphData, folder: Path, task: str) -> None:
    """Writes the edges and their features to the run folder, with the names of their nodes. Pairs
    are written in the order of their nodes, because HIF has no loops otherwise."""
    edges = graph.edges
    if task == "edge":
        edges = [replace(each, symmetry="ordered") for each in edges]
    own = replace(graph, edges=edges, node_features=None, names=_names(graph))
    write_hif(own, folder / STRUCTURE_FILE)


def with_structure(run: str, recipe: Recipe, data: GraphData) -> tuple[GraphData, int]:
    """The graph of the training with the nodes of new data, and how many rows of the new data are
    among its edges.

    Raises:
        ValueError: several graphs, a run without the file, nodes without features.
    """
    if data.num_graphs != 1:
        raise ValueError(f"DATA: expected one graph, as in the training, got {data.num_graphs}")
    place = Path(run)
    path = (place if place.is_dir() else place.parent) / STRUCTURE_FILE
    columns = len(recipe.edge_columns or ()) or len(recipe.edge_codes)
    names = [f"x{column}" for column in range(columns)]
    known = read_hif(path, edge_features=names)
    features = [own.long() if recipe.edge_codes else own for own in known.edge_features]
    symmetry = data.edges[0].symmetry if data.edges else "undirected"
    known = replace(known, edge_features=features)
    number = {name: place for place, name in enumerate(_names(data))}
    used = [known.names[node] for each in known.edges for node in each.tuples.flatten().tolist()]
    missing = [name for name in dict.fromkeys(used) if name not in number]
    if missing and data.node_features is not None:
        raise ValueError(
            f"DATA: expected features of all nodes of {printable(str(path))}, got none of "
            f"{missing[0]!r:.40}"
        )
    number.update({name: len(number) + place for place, name in enumerate(missing)})
    offsets = torch.tensor([0, len(number)])
    to_new = torch.tensor([number.get(name, -1) for name in known.names], dtype=torch.int64)
    edges, rows = [], []
    for each in known.edges:
        tuples = to_new[each.tuples]
        if symmetry == "undirected":
            tuples = tuples.sort(1).values
        order = _ascending(tuples)
        rows.append(order)
        edges.append(TupleBatch(tuples[order], torch.tensor([0, len(tuples)]), offsets, symmetry))
    listed = {tuple(row) for each in edges for row in each.tuples.tolist()}
    shared = sum(tuple(row) in listed for each in data.edges for row in each.tuples.tolist())
    return (
        replace(
            data,
            edges=edges,
            node_offsets=offsets,
            edge_features=[own[order] for own, order in zip(features, rows)],
            origin=[],
            names=tuple(number),
        ),
        shared,
    )


def asked_tuples(data: GraphData, graph: GraphData) -> list[TupleBatch]:
    """The rows of new data as tuples of the nodes of :func:`with_structure`."""
    return [replace(each, node_offsets=graph.node_offsets) for each in data.edges]


def _names(data: GraphData) -> tuple[Any, ...]:
    return data.names or tuple(range(data.num_nodes))


def _ascending(tuples: Tensor) -> Tensor:
    """The order of rows in which they ascend."""
    order = torch.arange(len(tuples))
    for column in reversed(range(tuples.size(1))):
        order = order[tuples[order, column].sort(stable=True).indices]
    return order
