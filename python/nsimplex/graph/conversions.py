"""Graphs from arrays: edge indices, sparse matrices and padded tensors."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Directions, Duplicates, Level
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

__all__ = ["from_dense", "from_edge_index", "from_scipy"]


@checked
def from_edge_index(
    edge_index: Tensor,
    num_nodes: int | None = None,
    edge_features: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    node_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    directions: Directions = "given",
    duplicates: Duplicates = "same",
    num_graphs: int | None = None,
) -> GraphData:
    """Graphs from an edge index, as PyTorch Geometric has it.

    Nodes without edges are kept. Edges become rows in ascending order, each once, and features
    and targets of edges follow them. ``origin`` names the column that each row comes from.

    Args:
        edge_index: whole numbers [2, E], nodes numbered through the whole batch.
        num_nodes: n; None: the rows of ``node_features``, else the length of ``batch``, else one
            more than the largest node.
        edge_features: [E, d] or [E], floating, or int64 codes.
        batch: whole numbers [n], the graph of every node, in ascending order; None: one graph.
        node_features: [n, d] or [n], floating, or whole codes, which become int64.
        targets: one row per graph, node or edge. NaN marks a missing target.
        level: whose targets they are, "graph", "node" or "edge"; "": the first of these with as
            many members as targets have rows.
        directions: "given": ordered pairs as listed; "both": ordered pairs, and for every edge
            (i, j) also (j, i) with its features; "undirected": one ascending pair for both.
        duplicates: what becomes of an edge that is listed more than once (for "undirected" also
            of its reverse). "same": it is merged, and other features are an error; "first": its
            first features count; "mean", "sum": of all its features. Targets always need to agree.
        num_graphs: B; None: one more than the last number in ``batch``. Give it if the last graph
            may have no nodes.

    Raises:
        ValueError: a node outside the graph, an edge between two graphs, NaN or infinity in
            features, repeated edges that differ, targets that fit no level.
        TypeError: another dtype.

    Complexity: O(E log E + n), without a loop over graphs; O(E log E) without ``batch``, for
        any numbers of nodes.
    """
    at = "[from_edge_index] "
    require_choice(at, "directions", directions, get_args(Directions))
    require_choice(at, "duplicates", duplicates, get_args(Duplicates))
    edge_index = index_of(at, "edge_index", edge_index)
    columns = edge_index.size(1)
    nodes = node_count(at, num_nodes, node_features, batch, edge_index)
    require_nodes(at, "edge_index", edge_index, nodes)
    node_offsets = offsets_of(at, batch, nodes, num_graphs)
    crossing = crossing_rows(batch, edge_index.t())
    if len(crossing):
        pair = edge_index[:, crossing[0, 0]].tolist()
        raise ValueError(
            f"{at}edge_index: expected edges inside a graph of batch, got {tuple(pair)} in column "
            f"{crossing[0, 0]}"
        )
    node_features = finite_features(at, "node_features", node_features, nodes)
    edge_features = finite_features(at, "edge_features", edge_features, columns)
    counts: dict[Level, int] = {"graph": node_offsets.size(0) - 1, "node": nodes, "edge": columns}
    targets, level = level_targets(at, targets, level, counts)

    edges, source = edge_index.t(), torch.arange(columns)
    if directions == "undirected":
        edges = edges.sort(1).values
    merged = merged_rows(edges, nodes)
    own = reduced_rows(at, "edge_features", edge_features, merged, duplicates, edges)
    own_targets = None
    if level == "edge" and targets is not None:
        own_targets = reduced_rows(at, "targets", targets, merged, "same", edges)
    source, edges = merged.first, merged.rows
    if directions == "both":
        keys = edges[:, 0] * nodes + edges[:, 1]
        reverse = edges.flip(1)
        missing = ~torch.isin(reverse[:, 0] * nodes + reverse[:, 1], keys)
        edges = torch.cat([edges, reverse[missing]])
        order = (edges[:, 0] * nodes + edges[:, 1]).argsort()
        edges = edges[order]
        every = torch.cat([torch.arange(len(source)), missing.nonzero().squeeze(1)])[order]
        source = source[every]
        own = None if own is None else own[every]
        own_targets = None if own_targets is None else own_targets[every]
    return GraphData(
        [
            TupleBatch(
                edges,
                torch.searchsorted(edges[:, 0].contiguous(), node_offsets),
                node_offsets,
                "undirected" if directions == "undirected" else "ordered",
            )
        ],
        node_offsets,
        node_features,
        [] if own is None else [own],
        own_targets if level == "edge" else targets,
        [source],
        level,
    )


@checked
def from_scipy(
    matrix: Any,
    *,
    weights: bool | None = None,
    node_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    directions: Directions = "given",
) -> GraphData:
    """A graph from its adjacency matrix, or graphs from a list of matrices.

    Args:
        matrix: [n, n], a sparse matrix of SciPy, a sparse tensor, an array or a list of these. An
            entry that is not 0 is an edge from its row to its column.
        weights: whether the entries become features of the edges; None: no, and entries other than
            1 are an error.
        node_features, targets, level: as in :func:`from_edge_index`, for the graphs in turn.
        directions: as in :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`; a matrix that is not square; weights that would be
            lost.
    """
    at = "[from_scipy] "
    matrices = matrix if isinstance(matrix, (list, tuple)) else [matrix]
    if not matrices:
        raise ValueError(f"{at}matrix: expected at least one matrix, got none")
    indices, values, sizes, start = [], [], [], 0
    for place, each in enumerate(matrices):
        name = f"matrix[{place}]" if isinstance(matrix, (list, tuple)) else "matrix"
        (row, column, value), shape = matrix_entries(at, name, each)
        if shape[0] != shape[1]:
            raise ValueError(f"{at}{name}: expected shape [n, n], got {list(shape)}")
        if weights and value.dtype == torch.bool:
            raise TypeError(f"{at}{name}: expected numbers for weights=True, got {value.dtype}")
        if weights is None:
            hint = "weights=True takes them as features of edges, False leaves them out"
            require_ones(at, name, value, (row, column), hint)
        indices.append(torch.stack([row, column]) + start)
        values.append(value)
        sizes.append(shape[0])
        start += shape[0]
    return renamed(
        at,
        from_edge_index,
        torch.cat(indices, 1),
        start,
        torch.cat(values).to(torch.get_default_dtype())[:, None] if weights else None,
        torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)),
        node_features=node_features,
        targets=targets,
        level=level,
        directions=directions,
        num_graphs=len(sizes),
    )


@checked
def from_dense(
    adjacency: Tensor,
    mask: Tensor | None = None,
    *,
    node_features: Tensor | None = None,
    edge_features: Tensor | None = None,
    targets: Tensor | None = None,
    level: Level = "",
    directions: Directions = "given",
) -> GraphData:
    """Graphs from padded tensors.

    Args:
        adjacency: [B, n, n] or [n, n] of 0 and 1, which is an edge from i to j.
        mask: bool [B, n] or [n], the nodes that exist; None: all.
        node_features: [B, n, d].
        edge_features: [B, n, n, d].
        targets: [B, ..], [B, n, ..] for "node" or [B, n, n, ..] for "edge".
        level: "graph", "node" or "edge"; "": "graph".
        directions: as in :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`; an edge of a node outside of the mask; entries other
            than 0 and 1, whose weights would be lost.
    """
    at = "[from_dense] "
    require_choice(at, "level", level, get_args(Level))
    if adjacency.dim() == 2:
        adjacency = adjacency[None]
        mask, node_features, edge_features = (
            None if each is None else each[None] for each in (mask, node_features, edge_features)
        )
        targets = targets[None] if targets is not None and level in ("node", "edge") else targets
    if adjacency.dim() != 3 or adjacency.size(1) != adjacency.size(2):
        raise ValueError(
            f"{at}adjacency: expected shape [B, n, n] or [n, n], got {list(adjacency.shape)}"
        )
    graphs, nodes = adjacency.shape[:2]
    mask = torch.ones(graphs, nodes, dtype=torch.bool) if mask is None else mask
    if mask.shape != (graphs, nodes) or mask.dtype != torch.bool:
        raise ValueError(f"{at}mask: expected bool {[graphs, nodes]}, got {describe(mask)}")
    for name, tensor, lead in (
        ("node_features", node_features, (graphs, nodes)),
        ("edge_features", edge_features, (graphs, nodes, nodes)),
        ("targets", targets, (graphs, nodes, nodes)[: {"node": 2, "edge": 3}.get(level, 1)]),
    ):
        if tensor is not None and tensor.shape[: len(lead)] != lead:
            raise ValueError(
                f"{at}{name}: expected [{', '.join(map(str, lead))}, ..], got {list(tensor.shape)}"
            )
    graph, row, column = (adjacency != 0).nonzero().unbind(1)
    hint = "pass adjacency != 0, and weights as edge_features"
    places = (graph, row, column)
    require_ones(at, "adjacency", adjacency[graph, row, column], places, hint)
    outside = (~(mask[graph, row] & mask[graph, column])).nonzero()
    if len(outside):
        where = [int(each[outside[0, 0]]) for each in (graph, row, column)]
        raise ValueError(f"{at}adjacency: expected edges of nodes in mask, got one at {where}")
    number = (mask.flatten().cumsum(0) - 1).view(graphs, nodes)
    if targets is not None and level == "node":
        targets = targets[mask]
    elif targets is not None and level == "edge":
        targets = targets[graph, row, column]
    return renamed(
        at,
        from_edge_index,
        torch.stack([number[graph, row], number[graph, column]]),
        int(mask.sum()),
        None if edge_features is None else edge_features[graph, row, column],
        mask.nonzero()[:, 0].contiguous(),
        node_features=None if node_features is None else node_features[mask],
        targets=targets,
        level=level or ("graph" if targets is not None else ""),
        directions=directions,
        num_graphs=graphs,
    )
