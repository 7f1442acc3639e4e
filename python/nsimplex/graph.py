"""Sets, graphs and hypergraphs as lists of tuples of nodes. One batch holds many, without padding.

The functions here prepare data: on the CPU, in int64, outside of compiled graphs. Only features
carry gradients. The functions return rows in ascending lexicographic order, each row once. Errors
name the argument, the expected value and the received value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data._utils.collate import collate as _collate
from torch.utils.data._utils.collate import default_collate_fn_map as _default_collate

from ._arguments import checked as _checked
from ._library import operators as _operators
from ._pytree import TensorRecord as _TensorRecord
from ._pytree import tensor_record as _tensor_record

__all__ = [
    "Adjacency",
    "DerivedTuples",
    "LaplacianEigenvectors",
    "LineGraph",
    "PointSets",
    "TupleBatch",
    "adjacency",
    "all_orders",
    "barabasi_albert_graph",
    "chain_graphs",
    "check_features",
    "collate_graphs",
    "complete_tuples",
    "component_cliques",
    "concatenate_graphs",
    "connected_components",
    "delaunay_graph",
    "derived_features",
    "edge_tuples",
    "label_cliques",
    "laplacian_eigenvectors",
    "line_graph",
    "node_and_edge_features",
    "node_degrees",
    "project_tuples",
    "random_point_sets",
    "simplices",
    "split_graphs",
    "tuple_batch",
    "with_loops",
]


@_tensor_record("tuples", "tuple_offsets", "node_offsets")
@dataclass(frozen=True)
class TupleBatch(_TensorRecord):
    """B hypergraphs, each a list of k-tuples of its nodes, one after the other.

    Nodes are numbered through the batch: graph g owns the nodes ``node_offsets[g]`` to
    ``node_offsets[g + 1] - 1``, and its tuples are the rows from ``tuple_offsets[g]`` to
    ``tuple_offsets[g + 1]``. Features are separate tensors, [m, d], in the order of these rows. A
    feature of a node belongs to the diagonal: for k = 2 to the loop (i, i). k = 1 is a set of
    points. ``tuple_batch()`` makes a batch and checks it. A batch is a pytree, and a DataLoader
    with :func:`collate_graphs` makes one batch of many samples.
    """

    tuples: Tensor  #: int64 [m, k]
    tuple_offsets: Tensor  #: int64 [B + 1]
    node_offsets: Tensor  #: int64 [B + 1]
    #: "ordered": any tuple; "loop_free": distinct entries; "undirected": one ascending tuple
    #: represents all orders of its entries
    symmetry: str = "ordered"

    def __len__(self) -> int:
        """m, the number of tuples."""
        return self.tuples.size(0)

    @property
    def order(self) -> int:
        """k."""
        return self.tuples.size(1)

    @property
    def graphs(self) -> int:
        """B."""
        return self.tuple_offsets.size(0) - 1

    @property
    def nodes(self) -> int:
        """Number of nodes of the whole batch."""
        return int(self.node_offsets[-1])

    def _parts(self) -> tuple[Tensor, Tensor, Tensor, str]:
        return self.tuples, self.tuple_offsets, self.node_offsets, self.symmetry


class DerivedTuples(NamedTuple):
    """A batch whose rows were derived from the rows of another object."""

    batch: TupleBatch
    origin: Tensor  #: int64 [m]: the source row of each row, -1 for a new row


class Adjacency(NamedTuple):
    """Neighbours of every node as compressed sparse rows, ascending, each neighbour once."""

    offsets: Tensor  #: int64 [n + 1]
    neighbours: Tensor  #: int64


class LineGraph(NamedTuple):
    """A graph whose nodes are the edges of another graph."""

    batch: TupleBatch
    shared: Tensor  #: int64 [m]: the node that the two edges share


class LaplacianEigenvectors(NamedTuple):
    """Eigenvalues and eigenvectors of each graph of a batch."""

    values: Tensor  #: float64 [B, count]
    vectors: Tensor  #: float64 [n, count]


class PointSets(NamedTuple):
    """Points of many sets, one set after the other."""

    points: Tensor  #: fp32 [n, 2], in the unit square
    node_offsets: Tensor  #: int64 [sets + 1], from 0 to n


def _derived(parts: Sequence[Tensor], symmetry: str) -> DerivedTuples:
    return DerivedTuples(TupleBatch(*parts[:3], symmetry), parts[3])


@_checked
def tuple_batch(
    tuples: Tensor,
    nodes: int | None = None,
    *,
    tuple_offsets: Tensor | None = None,
    node_offsets: Tensor | None = None,
    symmetry: str = "ordered",
) -> TupleBatch:
    """Makes a batch and checks its parts.

    Args:
        tuples: int64 [m, k], node numbers of the whole batch.
        nodes: number of nodes of a single graph, whose nodes are 0 to nodes - 1. No offsets are
            needed.
        tuple_offsets: int64 [B + 1], rows of each graph.
        node_offsets: int64 [B + 1], nodes of each graph.
        symmetry: "ordered", "loop_free" or "undirected".

    Raises:
        ValueError: offsets that do not rise from 0 to the end; a node outside its graph; a repeated
            tuple; equal entries when loop-free, descending entries when undirected.
        TypeError: another dtype than int64.
    """
    if (nodes is None) == (tuple_offsets is None) or (tuple_offsets is None) != (
        node_offsets is None
    ):
        raise ValueError("[tuple_batch] expected nodes, or tuple_offsets and node_offsets")
    if nodes is not None:
        if nodes < 0:
            raise ValueError(f"[tuple_batch] nodes: expected at least 0, got {nodes}")
        tuple_offsets, node_offsets = torch.tensor([0, len(tuples)]), torch.tensor([0, nodes])
    return TupleBatch(
        *_operators.graph_check(tuples, tuple_offsets, node_offsets, symmetry), symmetry
    )


@_checked
def check_features(batch: TupleBatch, features: Tensor, name: str = "features") -> None:
    """Raises an error unless features are floating point [m, d] without NaN and infinity."""
    _operators.graph_check_features(batch.tuples, features, name)


@_checked
def edge_tuples(
    edges: Tensor,
    nodes: int,
    *,
    symmetry: str = "ordered",
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
    return _derived(
        _operators.graph_edges(edges, nodes, symmetry, both_directions, loops), symmetry
    )


@_checked
def complete_tuples(
    nodes: Tensor | Sequence[int] | int,
    order: int,
    *,
    symmetry: str = "ordered",
    loops: bool = True,
) -> TupleBatch:
    """All tuples of the nodes of every graph. When ordered these are n^k tuples, and when loop-free
    those with distinct entries. When undirected there is one tuple per multiset, or with
    ``loops=False`` one per set.

    Args:
        nodes: number of nodes of each graph; a single number is one graph.
        order: k.
    """
    return TupleBatch(*_operators.graph_complete(_counts(nodes), order, symmetry, loops), symmetry)


@_checked
def with_loops(batch: TupleBatch) -> DerivedTuples:
    """The batch, with the tuple (i, .., i) added for every node that lacks it."""
    return _derived(_operators.graph_with_loops(*batch._parts()), batch.symmetry)


@_checked
def all_orders(batch: TupleBatch) -> DerivedTuples:
    """The ordered batch that corresponds to an undirected one: every order of the entries of every
    tuple."""
    return _derived(_operators.graph_all_orders(*batch._parts()), "ordered")


@_checked
def project_tuples(
    batch: TupleBatch, order: int, symmetry: str | None = None, *, all_nodes: bool | None = None
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
    return TupleBatch(
        *_operators.graph_project(*batch._parts(), order, symmetry, all_nodes), symmetry
    )


@_checked
def concatenate_graphs(batches: Sequence[TupleBatch]) -> TupleBatch:
    """One batch with the graphs of all batches, which must have the same order and symmetry."""
    symmetries = sorted({batch.symmetry for batch in batches})
    if len(symmetries) != 1:
        raise ValueError(
            "[concatenate_graphs] batches: expected one symmetry, got "
            f"{', '.join(symmetries) or 'none'}"
        )
    flat = [part for batch in batches for part in batch._parts()[:3]]
    return TupleBatch(*_operators.graph_concatenate(flat, symmetries[0]), symmetries[0])


@_checked
def collate_graphs(samples: Sequence[Any]) -> Any:
    """One batch of many samples: the ``collate_fn`` of a DataLoader of graphs.

    A sample is a :class:`TupleBatch`, a tensor, a number, a string, or a tuple, list or dict of
    these. All samples have the same structure, and so has the result. A tuple becomes a list, as in
    torch's ``default_collate``. Graphs go through :func:`concatenate_graphs`. Tensors are
    concatenated along their first dimension, so that features keep the order of the rows; tensors
    without dimensions are stacked. Numbers become a tensor with one entry per sample.

    Raises:
        ValueError: no samples, graphs of different orders or symmetries, or samples that differ in
            structure.
        TypeError: a sample with row numbers of its own, such as :class:`DerivedTuples`. Use its
            ``batch`` instead.

    Complexity: O(size of the samples).

    Example:
        >>> one = tuple_batch(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> samples = [(one, torch.randn(2, 4), label) for label in (0, 1)]
        >>> batch, x, label = collate_graphs(samples)
        >>> batch.graphs, x.shape, label
        (2, torch.Size([4, 4]), tensor([0, 1]))
    """
    if not samples:
        raise ValueError("[collate_graphs] samples: expected at least one, got none")
    try:
        return _collate(samples, collate_fn_map=_COLLATE)
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        said = str(error).splitlines()[0]
        if said.startswith("["):
            raise
        raise ValueError(
            f"[collate_graphs] samples: expected samples of one structure, got an error: {said}"
        ) from error


@_checked
def split_graphs(batch: TupleBatch) -> list[TupleBatch]:
    """The graphs of a batch. The nodes of each graph are numbered from 0."""
    return _batches(_operators.graph_split(*batch._parts()), batch.symmetry)


@_checked
def derived_features(features: Tensor, origin: Tensor) -> Tensor:
    """Features of derived tuples: row r is ``features[origin[r]]``, or zero for a new row.
    Differentiable."""
    return _operators.graph_derived_features(features, origin)


@_checked
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
    return _operators.graph_node_and_edge_features(
        *graph.batch._parts()[:3], graph.origin, node_features, edge_features
    )


@_checked
def adjacency(batch: TupleBatch) -> Adjacency:
    """Neighbours of every node: the other nodes of its tuples, at any position. Loops add no
    neighbours."""
    return Adjacency(*_operators.graph_adjacency(*batch._parts()))


@_checked
def node_degrees(batch: TupleBatch) -> Tensor:
    """Number of neighbours of every node: int64 [n]."""
    return adjacency(batch).offsets.diff()


@_checked
def connected_components(batch: TupleBatch) -> Tensor:
    """One number per connected component, the same for all nodes that tuples connect: int64 [n],
    from 0 in the order of the components' lowest nodes."""
    return _operators.graph_components(*batch._parts())


@_checked
def label_cliques(labels: Tensor, node_offsets: Tensor) -> TupleBatch:
    """The pairs of nodes of a graph that have the same label, undirected and without loops. This
    represents a partition of the nodes as a graph.

    Args:
        labels: int64 [n], any numbers.
        node_offsets: int64 [B + 1], the nodes of each graph.
    """
    return TupleBatch(*_operators.graph_label_cliques(labels, node_offsets), "undirected")


@_checked
def component_cliques(batch: TupleBatch) -> TupleBatch:
    """Every connected component completed to a clique. The result is a partition of the nodes for
    any predicted edges."""
    return TupleBatch(*_operators.graph_component_cliques(*batch._parts()), "undirected")


@_checked
def simplices(batch: TupleBatch, largest: int) -> list[TupleBatch]:
    """The cliques of a graph with 1, 2, .. ``largest`` nodes, as one undirected batch per size."""
    return _batches(_operators.graph_simplices(*batch._parts(), largest), "undirected")


@_checked
def line_graph(batch: TupleBatch) -> LineGraph:
    """The line graph of an undirected graph without loops. Its nodes are the rows of the batch. Its
    edges (undirected) are the pairs of rows that share a node."""
    parts = _operators.graph_line(*batch._parts())
    return LineGraph(TupleBatch(*parts[:3], "undirected"), parts[3])


@_checked
def laplacian_eigenvectors(batch: TupleBatch, count: int) -> LaplacianEigenvectors:
    r"""The lowest eigenvectors of each graph's normalised Laplacian, which encode its nodes.

    .. math:: L = I - D^{-1/2} A D^{-1/2} = U^\top \mathrm{diag}(\mathrm{values})\, U

    A is the matrix of ``adjacency()``. A node without neighbours has a row of zeros. The first
    vector of a connected graph has value 0 and depends only on the degrees. Each vector's sign
    makes its entry of largest magnitude positive; among entries within 1e-6 of that magnitude, the
    first one counts. If an eigenvalue is repeated, the vectors are one of many orthonormal bases.
    Graphs with fewer nodes than ``count`` have zeros in the missing columns.

    Source: Kim et al., "Transformers Generalize DeepSets and Can be Extended to Graphs and
        Hypergraphs", equation 31.
    """
    return LaplacianEigenvectors(*_operators.graph_laplacian(*batch._parts(), count))


@_checked
def chain_graphs(nodes: Tensor | Sequence[int] | int) -> TupleBatch:
    """Undirected chains 0 - 1 - .. - (n - 1), one for each number in ``nodes``."""
    return TupleBatch(*_operators.graph_chains(_counts(nodes)), "undirected")


@_checked
def barabasi_albert_graph(nodes: int, links: int, *, seed: int = 0) -> TupleBatch:
    """An undirected graph that grows by preferential attachment. Node ``links`` is joined to all
    nodes before it. Every later node is joined to ``links`` different nodes, each drawn with a
    probability proportional to its current number of links.

    The graph has links (nodes - links) edges. It is the same on every machine for the same seed.

    Source: Barabasi and Albert, "Emergence of scaling in random networks", Science 286 (1999).
    """
    return TupleBatch(*_operators.graph_barabasi_albert(nodes, links, seed), "undirected")


@_checked
def random_point_sets(sets: int, least: int, most: int, *, seed: int = 0) -> PointSets:
    """Sets of uniform points in the unit square. Each set has ``least`` to ``most`` points, and
    every number of points is equally likely.

    Coordinates are multiples of 2^-22 below 1, and the points of a set differ. The result is the
    same on every machine for the same seed. A set does not depend on the number of sets.
    """
    return PointSets(*_operators.graph_point_sets(sets, least, most, seed))


@_checked
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
    return TupleBatch(*_operators.graph_delaunay(points, node_offsets), "undirected")


def _counts(nodes: Tensor | Sequence[int] | int) -> Tensor:
    if isinstance(nodes, Tensor):
        return nodes
    return torch.tensor([nodes] if isinstance(nodes, int) else list(nodes), dtype=torch.int64)


def _batches(flat: Sequence[Tensor], symmetry: str) -> list[TupleBatch]:
    return [TupleBatch(*flat[at : at + 3], symmetry) for at in range(0, len(flat), 3)]


def _collate_tensors(tensors: Sequence[Tensor], *, collate_fn_map: object) -> Tensor:
    return torch.cat(tensors) if tensors[0].dim() else torch.stack(tensors)


def _refuse_rows(samples: Sequence[object], *, collate_fn_map: object) -> None:
    raise TypeError(
        "[collate_graphs] samples: expected graphs, tensors, numbers and strings, got "
        f"{type(samples[0]).__name__}, which numbers rows or nodes of its own graph"
    )


_COLLATE = {
    **_default_collate,
    Tensor: _collate_tensors,
    TupleBatch: lambda batches, *, collate_fn_map: concatenate_graphs(batches),
    (DerivedTuples, Adjacency, LineGraph, PointSets): _refuse_rows,
}
