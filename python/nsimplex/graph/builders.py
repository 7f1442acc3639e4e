"""Batches of tuples made from edges, from other batches, from random numbers and from points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._choices import Symmetry
from .._library import operators
from .batches import DerivedTuples, TupleBatch, batch_of, derived

__all__ = [
    "PointSets",
    "all_orders",
    "barabasi_albert_graph",
    "chain_graphs",
    "complete_tuples",
    "delaunay_graph",
    "edge_tuples",
    "node_and_edge_features",
    "project_tuples",
    "random_point_sets",
    "with_loops",
]


class PointSets(NamedTuple):
    """Points of many sets, one set after the other."""

    points: Tensor  #: fp32 [n, 2], in the unit square
    node_offsets: Tensor  #: int64 [sets + 1], from 0 to n


@checked
def edge_tuples(
    edges: Tensor,
    nodes: int,
    *,
    symmetry: Symmetry = "ordered",
    both_directions: bool = True,
    loops: bool = False,
) -> DerivedTuples:
    """The graph of edges int64 [E, 2] between the nodes 0 to nodes - 1. ``origin`` numbers edges.

    Args:
        edges: each edge once. If directions do not count, (i, j) and (j, i) are the same edge.
        nodes: number of nodes, isolated ones included.
        symmetry: "undirected" gives one ascending pair per edge.
        both_directions: when ordered or loop-free, an edge (i, j) gives (i, j) and (j, i). Use
            False for edges that are already listed in both directions, such as PyTorch Geometric's
            ``edge_index.t()``.
        loops: add (i, i) for every node that has none.
    """
    return derived(operators.graph_edges(edges, nodes, symmetry, both_directions, loops), symmetry)


@checked
def complete_tuples(
    nodes: Tensor | Sequence[int] | int,
    order: int,
    *,
    symmetry: Symmetry = "ordered",
    loops: bool = True,
) -> TupleBatch:
    """All tuples of the nodes of every graph. When ordered these are n^k tuples, and when loop-free
    those with distinct entries. When undirected there is one tuple per multiset, or with
    ``loops=False`` one per set.

    Args:
        nodes: number of nodes of each graph; a single number is one graph.
        order: k.
    """
    return batch_of(operators.graph_complete(_counts(nodes), order, symmetry, loops), symmetry)


@checked
def with_loops(batch: TupleBatch) -> DerivedTuples:
    """The batch, with the tuple (i, .., i) added for every node that lacks it."""
    return derived(operators.graph_with_loops(*batch._parts()), batch.symmetry)


@checked
def all_orders(batch: TupleBatch) -> DerivedTuples:
    """The ordered batch that corresponds to an undirected one: every order of the entries of every
    tuple."""
    return derived(operators.graph_all_orders(*batch._parts()), "ordered")


@checked
def project_tuples(
    batch: TupleBatch,
    order: int,
    symmetry: Symmetry | None = None,
    *,
    all_nodes: bool | None = None,
) -> TupleBatch:
    """E -> E': the tuples of a lower order on which a layer from the batch's order is computed.

    The result contains all tuples of ``order`` entries over the entries of each tuple, loops
    included, duplicates merged. The entries are distinct when loop-free and ascending when
    undirected. For order 0 it is the empty tuple of every graph. For the batch's own order it is
    the batch itself.

    Args:
        order: from 0 to the batch's order.
        symmetry: None: the batch's.
        all_nodes: for orders from 1 to the one below the batch's, whether a node that is in no
            tuple gets (i, .., i) too. For order 1, row i then belongs to node i. None: for order 1
            such nodes are an error, because without them the rows of later nodes would shift
            silently. For higher orders they are left out.
    """
    symmetry = batch.symmetry if symmetry is None else symmetry
    parts = operators.graph_project(*batch._parts(), order, symmetry, all_nodes)
    return batch_of(parts, symmetry)


@checked
def node_and_edge_features(
    graph: DerivedTuples, node_features: Tensor, edge_features: Tensor
) -> Tensor:
    """Features [m, dv + de] of a graph or hypergraph with loops. The first dv columns are the node
    features [n, dv], on the loops (i, .., i). The other de columns are the edge features [E, de],
    on the rows that come from an edge. All other entries are zero. Differentiable.

    Args:
        graph: of any order, from :func:`edge_tuples` with ``loops=True`` or :func:`with_loops`.

    Raises:
        ValueError: a node without a loop, whose features would be lost (unless dv = 0), or shapes
            that do not fit.
    """
    return operators.graph_node_and_edge_features(
        *graph.batch._parts()[:3], graph.origin, node_features, edge_features
    )


@checked
def chain_graphs(nodes: Tensor | Sequence[int] | int) -> TupleBatch:
    """Undirected chains 0 - 1 - .. - (n - 1), one for each number in ``nodes``."""
    return batch_of(operators.graph_chains(_counts(nodes)), "undirected")


@checked
def barabasi_albert_graph(nodes: int, links: int, *, seed: int = 0) -> TupleBatch:
    """An undirected graph that grows by preferential attachment. Node ``links`` is joined to all
    nodes before it. Every later node is joined to ``links`` different nodes, each drawn with a
    probability proportional to its current number of links.

    The graph has links (nodes - links) edges. It is the same on every machine for the same seed.

    Source: Barabasi and Albert, "Emergence of scaling in random networks", Science 286 (1999).
    """
    return batch_of(operators.graph_barabasi_albert(nodes, links, seed), "undirected")


@checked
def random_point_sets(sets: int, least: int, most: int, *, seed: int = 0) -> PointSets:
    """Sets of uniform points in the unit square. Each set has ``least`` to ``most`` points, and
    every number of points is equally likely.

    Coordinates are multiples of 2^-22 below 1, and the points of a set differ. The result is the
    same on every machine for the same seed. A set does not depend on the number of sets.
    """
    return PointSets(*operators.graph_point_sets(sets, least, most, seed))


@checked
def delaunay_graph(points: Tensor, node_offsets: Tensor | None = None) -> TupleBatch:
    """The edges of the Delaunay triangulation of each set of points: no circle through the corners
    of a triangle has a point inside.

    The result is exact for points on a grid, and every set is first moved to its grid: 2^22 steps
    in the smallest power of two that is not below the set's extent in x or y. Points of
    ``random_point_sets()`` are already on it. Points on one line are joined to their neighbours on
    the line, and two points to each other. If more than three points lie on an empty circle, their
    polygon is cut into triangles that start from its lowest number. O(n log n), sets in parallel.

    Args:
        points: floating point [n, 2].
        node_offsets: int64 [B + 1], the points of each set; one set without it.

    Raises:
        ValueError: a NaN or infinity, another shape, two points of a set that are equal on the
            grid.
    """
    return batch_of(operators.graph_delaunay(points, node_offsets), "undirected")


def _counts(nodes: Tensor | Sequence[int] | int) -> Tensor:
    if isinstance(nodes, Tensor):
        return nodes
    return torch.tensor([nodes] if isinstance(nodes, int) else list(nodes), dtype=torch.int64)
