"""Hypergraphs from hyperedges of any sizes, and from incidences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Duplicates, Level
from .batches import TupleBatch
from .conversion_checks import (
    crossing_rows,
    finite_features,
    index_of,
    level_targets,
    matrix_entries,
    merged_rows,
    node_count,
    offsets_of,
    reduced_rows,
    renamed,
    require_choice,
    require_nodes,
    require_ones,
)
from .graph_data import GraphData

__all__ = ["from_hyperedge_index", "from_hyperedges", "from_incidence"]


@checked
def from_hyperedge_index(
    hyperedge_index: Tensor,
    num_nodes: int | None = None,
    edge_features: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    node_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    duplicates: Duplicates = "same",
    num_graphs: int | None = None,
) -> GraphData:
    """Hypergraphs from pairs (node, hyperedge), as PyTorch Geometric has them.

    Hyperedges of each size become an undirected list of ascending tuples, each once. A node that
    is listed twice in a hyperedge counts once.

    Args:
        hyperedge_index: whole numbers [2, incidences]: nodes, and hyperedges from 0 on.
        edge_features: [hyperedges, d] or [hyperedges].
        targets: rows of "edge" are in the order of the hyperedges, and in the result in the order
            of the lists, one after the other.
        num_nodes, batch, node_features, level, duplicates, num_graphs: as in
            :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`; a hyperedge without nodes.

    Complexity: O(I log I + n) for I incidences.
    """
    at = "[from_hyperedge_index] "
    require_choice(at, "duplicates", duplicates, get_args(Duplicates))
    hyperedge_index = index_of(at, "hyperedge_index", hyperedge_index)
    node, edge = hyperedge_index
    nodes = node_count(at, num_nodes, node_features, batch, hyperedge_index[:1])
    require_nodes(at, "hyperedge_index[0]", hyperedge_index[:1], nodes)
    if len(edge) and int(edge.min()) < 0:
        raise ValueError(f"{at}hyperedge_index[1]: expected at least 0, got {int(edge.min())}")
    count = int(edge.max()) + 1 if len(edge) else 0
    if edge_features is not None and edge_features.dim() and len(edge_features) > count:
        count = len(edge_features)
    if count > hyperedge_index.size(1):
        present = torch.zeros(min(count, len(edge) + 1), dtype=torch.bool)
        present[edge[edge < len(present)]] = True
        raise ValueError(
            f"{at}hyperedge_index: expected a node in every hyperedge, got none in hyperedge "
            f"{int((~present).nonzero()[0])}"
        )
    node_offsets = offsets_of(at, batch, nodes, num_graphs)
    node_features = finite_features(at, "node_features", node_features, nodes)
    edge_features = finite_features(at, "edge_features", edge_features, count)
    counts: dict[Level, int] = {"graph": node_offsets.size(0) - 1, "node": nodes, "edge": count}
    targets, level = level_targets(at, targets, level, counts)

    keys = torch.unique(edge * max(nodes, 1) + node)
    edge, node = keys // max(nodes, 1), keys % max(nodes, 1)
    sizes = torch.bincount(edge, minlength=count)
    if count and int(sizes.min()) == 0:
        raise ValueError(
            f"{at}hyperedge_index: expected a node in every hyperedge, got none in hyperedge "
            f"{int((sizes == 0).nonzero()[0])}"
        )
    lists, features, own_targets, origin = [], [], [], []
    for size in sizes.unique().tolist():
        numbers = (sizes == size).nonzero().squeeze(1)
        tuples = node[sizes[edge] == size].view(-1, size)
        crossing = crossing_rows(batch, tuples)
        if len(crossing):
            raise ValueError(
                f"{at}hyperedge_index: expected hyperedges inside a graph of batch, got "
                f"{tuple(tuples[crossing[0, 0]].tolist())}"
            )
        merged = merged_rows(tuples, nodes)
        if edge_features is not None:
            own = edge_features[numbers]
            features.append(reduced_rows(at, "edge_features", own, merged, duplicates, tuples))
        if level == "edge" and targets is not None:
            own_targets.append(
                reduced_rows(at, "targets", targets[numbers], merged, "same", tuples)
            )
        starts = torch.searchsorted(merged.rows[:, 0].contiguous(), node_offsets)
        lists.append(TupleBatch(merged.rows, starts, node_offsets, "undirected"))
        origin.append(numbers[merged.first])
    if level == "edge" and targets is not None:
        targets = torch.cat(own_targets) if own_targets else targets[:0]
    return GraphData(lists, node_offsets, node_features, features, targets, origin, level)


@checked
def from_hyperedges(
    hyperedges: Sequence[Any],
    num_nodes: int | None = None,
    edge_features: Tensor | None = None,
    *,
    node_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    duplicates: Duplicates = "same",
) -> GraphData:
    """One hypergraph from the lists of nodes of its hyperedges, whose sizes may differ.

    Args:
        hyperedges: numbers of nodes, or names. Names are numbered in the order of their first
            appearance and become the ``names`` of the result.
        num_nodes, edge_features, node_features, targets, level, duplicates: as in
            :func:`from_hyperedge_index`.

    Raises:
        ValueError: as :func:`from_hyperedge_index`; an empty hyperedge; numbers and names mixed.
    """
    at = "[from_hyperedges] "
    rows = []
    if isinstance(hyperedges, (Mapping, Set)):
        raise TypeError(
            f"{at}hyperedges: expected a list, whose order features and targets follow, got "
            f"{describe(hyperedges)}"
        )
    for place, edge in enumerate(hyperedges):
        if isinstance(edge, (str, bytes, Mapping)) or not hasattr(edge, "__iter__"):
            raise TypeError(
                f"{at}hyperedges[{place}]: expected nodes or their names, got {describe(edge)}"
            )
        # Arrays, tensors and the numbers in them become Python's.
        rows.append([getattr(node, "tolist", lambda own=node: own)() for node in edge])
        if not rows[-1]:
            raise ValueError(f"{at}hyperedges[{place}]: expected at least one node, got none")
    flat = [node for row in rows for node in row]
    for node in flat:
        if node is None or isinstance(node, (bool, float, complex)):
            hint = "; from_incidence takes flags" if isinstance(node, bool) else ""
            raise ValueError(f"{at}hyperedges: expected whole numbers or names, got {node}{hint}")
    numbered = [isinstance(node, int) for node in flat]
    names: tuple = ()
    if not any(numbered) and flat:
        try:
            index = {name: number for number, name in enumerate(dict.fromkeys(flat))}
        except TypeError:
            raise TypeError(f"{at}hyperedges: expected nodes or hashable names") from None
        names, flat = tuple(index), [index[name] for name in flat]
        if num_nodes is not None and num_nodes != len(names):
            raise ValueError(f"{at}num_nodes: expected {len(names)} names, got {num_nodes}")
        num_nodes = len(names)
    elif not all(numbered):
        raise ValueError(f"{at}hyperedges: expected numbers or names, got both")
    edges = [place for place, row in enumerate(rows) for _ in row]
    made = renamed(
        at,
        from_hyperedge_index,
        torch.tensor([flat, edges], dtype=torch.int64).view(2, -1),
        num_nodes,
        edge_features,
        instead=("hyperedge_index[0]", "hyperedges"),
        node_features=node_features,
        targets=targets,
        level=level,
        duplicates=duplicates,
    )
    return replace(made, names=names)


@checked
def from_incidence(
    incidence: Any,
    edge_features: Tensor | None = None,
    *,
    node_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    duplicates: Duplicates = "same",
) -> GraphData:
    """One hypergraph from its incidence matrix.

    Args:
        incidence: [n, E] of 0 and 1, a tensor, an array or a sparse matrix of SciPy. Nodes are in
            the hyperedges in whose columns they have a 1.
        edge_features, node_features, targets, level, duplicates: as in
            :func:`from_hyperedge_index`.

    Raises:
        ValueError: as :func:`from_hyperedge_index`; another shape; entries other than 0 and 1,
            whose weights or signs would be lost.
    """
    at = "[from_incidence] "
    (node, edge, value), shape = matrix_entries(at, "incidence", incidence)
    hint = "incidence != 0 leaves weights and signs out"
    require_ones(at, "incidence", value, (node, edge), hint)
    empty = torch.ones(shape[1], dtype=torch.bool)
    empty[edge] = False
    if empty.any():
        raise ValueError(
            f"{at}incidence: expected a node in every column, got none in column "
            f"{int(empty.nonzero()[0])}"
        )
    return renamed(
        at,
        from_hyperedge_index,
        torch.stack([node, edge]),
        shape[0],
        edge_features,
        node_features=node_features,
        targets=targets,
        level=level,
        duplicates=duplicates,
    )
