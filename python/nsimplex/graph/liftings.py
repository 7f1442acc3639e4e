"""Hypergraphs made from graphs, and encodings of nodes as features."""

from __future__ import annotations

import warnings
from dataclasses import replace

import torch
from torch import Tensor

from .._arguments import checked
from .batches import TupleBatch, ragged_rows
from .conversion_checks import ConversionWarning, merged_rows
from .graph_data import GraphData
from .graph_structure import adjacency, laplacian_eigenvectors, line_graph, simplices
from .hyperedges import from_hyperedge_index

__all__ = [
    "lift_cliques",
    "lift_k_hop_sets",
    "lift_line_graph",
    "with_laplacian_encodings",
    "with_random_walk_encodings",
]

_BLOCK = 2**23  # numbers of a power of the walk's matrix that are moved at a time


@checked
def lift_cliques(data: GraphData, largest: int = 3) -> GraphData:
    """The graph with its cliques of 2 to ``largest`` nodes as undirected hyperedges.

    Features of nodes and targets of nodes and graphs are kept. If edges have features, those of a
    clique are the mean of the features of its edges. A :class:`ConversionWarning` names loops,
    which are no cliques.

    Raises:
        ValueError: edges of another size than 2; codes as features of edges; targets of edges.
    """
    at = "[lift_cliques] "
    pairs, features = _pairs(at, data)
    if largest < 2:
        raise ValueError(f"{at}largest: expected at least 2, got {largest}")
    _warn_of_loops(at, pairs)
    lists = simplices(pairs, largest)[1:]
    own: list[Tensor] = []
    if features is not None:
        keys = pairs.tuples[:, 0] * data.num_nodes + pairs.tuples[:, 1]
        for batch in lists:
            ends = torch.combinations(torch.arange(batch.order), 2)
            members = batch.tuples[:, ends]
            rows = torch.searchsorted(keys, members[..., 0] * data.num_nodes + members[..., 1])
            own.append(features[rows].mean(1) if len(batch) else features[:0])
    return replace(
        data,
        edges=lists,
        edge_features=own,
        origin=[torch.full((len(each),), -1) for each in lists],
    )


@checked
def lift_line_graph(data: GraphData) -> GraphData:
    """The line graphs: their nodes are the undirected edges of the graphs, and their edges are the
    pairs of edges that share a node.

    Features of the new nodes are those of the edges, followed by the mean of the features of their
    two nodes. Features of the new edges are those of the shared node. Targets of graphs are kept. A
    :class:`ConversionWarning` names loops, which become no nodes.

    Raises:
        ValueError: edges of another size than 2; codes as features; targets of nodes.
    """
    at = "[lift_line_graph] "
    if data.level == "node":
        raise ValueError(
            f"{at}data: expected no targets of nodes, which have no place in the result"
        )
    pairs, features = _pairs(at, data)
    _warn_of_loops(at, pairs)
    proper = pairs.tuples[:, 0] != pairs.tuples[:, 1]
    if not bool(proper.all()):
        features = None if features is None else features[proper]
        starts = torch.cat([proper.new_zeros(1, dtype=torch.int64), proper.cumsum(0)])
        pairs = replace(
            pairs, tuples=pairs.tuples[proper], tuple_offsets=starts[pairs.tuple_offsets]
        )
    lines = line_graph(pairs)
    parts = [] if features is None else [features]
    of_edges: list[Tensor] = []
    if data.node_features is not None:
        _require_numbers(at, "node_features", data.node_features)
        parts.append(data.node_features[pairs.tuples].mean(1))
        of_edges.append(data.node_features[lines.shared])
    return GraphData(
        [lines.batch],
        lines.batch.node_offsets,
        torch.cat(parts, 1) if parts else None,
        of_edges,
        data.targets,
        [torch.full((len(lines.batch),), -1)],
        data.level,
        (),
        data.classes,
    )


@checked
def lift_k_hop_sets(data: GraphData, hops: int = 1) -> GraphData:
    """The hypergraphs whose hyperedges are, per node, the nodes within ``hops`` steps of it.

    Sets of two nodes that are equal are one hyperedge, and ``origin`` names the first of the
    nodes. Features and targets of nodes, and targets of graphs, are kept. A
    :class:`ConversionWarning` names features of edges, for which the sets have no place.

    Raises:
        ValueError: hops below 1; targets of edges.

    Complexity: the number of (node, member) pairs, per hop.
    """
    at = "[lift_k_hop_sets] "
    if hops < 1:
        raise ValueError(f"{at}hops: expected at least 1, got {hops}")
    if data.level == "edge":
        raise ValueError(
            f"{at}data: expected no targets of edges, which have no place in the result"
        )
    if any(own.size(1) for own in data.edge_features):
        _warn_of_lost(at, "features of edges, for which the sets have no place")
    found, nodes = adjacency(_all_pairs(data)), max(data.num_nodes, 1)
    reached = torch.arange(data.num_nodes) * (nodes + 1)  # centre * nodes + member
    for _ in range(hops):
        rows, ends = ragged_rows(found.offsets, reached % nodes)
        centres = torch.repeat_interleave(reached // nodes, ends.diff())
        further = centres * nodes + found.neighbours[rows]
        before = len(reached)
        reached = torch.unique(torch.cat([reached, further]))
        if len(reached) == before:
            break
    centre, node = reached // nodes, reached % nodes
    made = from_hyperedge_index(
        torch.stack([node, centre]),
        data.num_nodes,
        batch=data.graph_of_nodes,
        node_features=data.node_features,
        num_graphs=data.num_graphs,
    )
    return replace(
        made, targets=data.targets, level=data.level, names=data.names, classes=data.classes
    )


@checked
def with_random_walk_encodings(data: GraphData, steps: int) -> GraphData:
    r"""The graphs, whose nodes have the probabilities of return as further features.

    .. math:: p_{i,t} = (P^t)_{ii}, \quad P = D^{-1} A, \quad t = 1, .., \mathrm{steps}

    A is the matrix of ``adjacency()``: neighbours are nodes that share an edge. A node without
    neighbours gets zeros.

    Raises:
        ValueError: steps below 1; codes as features of nodes.

    Complexity: O(steps m n) time for m edges of all graphs and n nodes of the largest one.

    Source: Dwivedi et al., "Graph Neural Networks with Learnable Structural and Positional
        Representations", arXiv 2110.07875.
    """
    at = "[with_random_walk_encodings] "
    if steps < 1:
        raise ValueError(f"{at}steps: expected at least 1, got {steps}")
    neighbours = adjacency(_all_pairs(data))
    degrees = neighbours.offsets.diff()
    rows = torch.repeat_interleave(torch.arange(data.num_nodes), degrees)
    chances = (1 / degrees.double())[rows][:, None]
    local = torch.arange(data.num_nodes) - data.node_offsets[:-1][data.graph_of_nodes]
    found = torch.zeros(data.num_nodes, steps, dtype=torch.float64)
    longest = int(local.max()) + 1 if data.num_nodes else 0
    block_width = max(1, min(longest, _BLOCK // max(len(rows), 1)))
    for start in range(0, longest, block_width):
        width = min(block_width, longest - start)
        own = ((local >= start) & (local < start + width)).nonzero().squeeze(1)
        columns = local[own] - start
        block = torch.zeros(data.num_nodes, width, dtype=torch.float64)
        block[own, columns] = 1
        for step in range(steps):
            moved = block[neighbours.neighbours] * chances
            block = torch.zeros_like(block).index_add(0, rows, moved)
            found[own, step] = block[own, columns]
    return _with_features(at, data, found)


@checked
def with_laplacian_encodings(data: GraphData, count: int) -> GraphData:
    """The graphs, whose nodes have entries of the lowest eigenvectors of the normalised Laplacian
    as further features; see :func:`laplacian_eigenvectors`, which fixes their signs.

    Raises:
        ValueError: count below 1; codes as features of nodes.
    """
    at = "[with_laplacian_encodings] "
    if count < 1:
        raise ValueError(f"{at}count: expected at least 1, got {count}")
    return _with_features(at, data, laplacian_eigenvectors(_all_pairs(data), count).vectors)


def _with_features(at: str, data: GraphData, more: Tensor) -> GraphData:
    if data.node_features is None:
        return replace(data, node_features=more.to(torch.get_default_dtype()))
    _require_numbers(at, "node_features", data.node_features)
    own = data.node_features
    return replace(data, node_features=torch.cat([own, more.to(own.dtype)], 1))


def _require_numbers(at: str, name: str, features: Tensor) -> None:
    if not features.is_floating_point():
        raise ValueError(f"{at}{name}: expected floating point, got {features.dtype}")


def _warn_of_loops(at: str, pairs: TupleBatch) -> None:
    loops = int((pairs.tuples[:, 0] == pairs.tuples[:, 1]).sum())
    if loops:
        _warn_of_lost(at, f"{loops} loop{'s' if loops > 1 else ''}")


def _warn_of_lost(at: str, what: str) -> None:
    warnings.warn(f"{at}data: left out {what}", ConversionWarning, stacklevel=4)


def _pairs(at: str, data: GraphData) -> tuple[TupleBatch, Tensor | None]:
    """The undirected pairs of a graph, and the mean of the features of both directions."""
    if data.level == "edge":
        raise ValueError(
            f"{at}data: expected no targets of edges, which have no place in the result"
        )
    if data.sizes not in ((), (2,)):
        raise ValueError(f"{at}data: expected edges of size 2, got sizes {list(data.sizes)}")
    pairs = _all_pairs(data)
    if not data.edge_features:
        return pairs, None
    features = data.edge_features[0]
    _require_numbers(at, "edge_features", features)
    merged = merged_rows(data.edges[0].tuples.sort(1).values, data.num_nodes)
    total = features.new_zeros(len(merged.rows), features.size(1))
    total = total.index_add(0, merged.inverse, features)
    return pairs, total / torch.bincount(merged.inverse, minlength=len(total))[:, None]


def _all_pairs(data: GraphData) -> TupleBatch:
    """Undirected pairs of nodes that share an edge; loops of the data are kept."""
    parts = [torch.empty(0, 2, dtype=torch.int64)]
    for each in data.edges:
        ends = torch.combinations(torch.arange(each.order), 2)
        parts.append(each.tuples[:, ends].flatten(0, 1))
    rows = merged_rows(torch.cat(parts).sort(1).values, data.num_nodes).rows
    return TupleBatch(
        rows,
        torch.searchsorted(rows[:, 0].contiguous(), data.node_offsets),
        data.node_offsets,
        "undirected",
    )
