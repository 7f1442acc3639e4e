"""What a batch of graphs says about its nodes: neighbours, components, cliques and spectra."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._library import operators
from .batches import TupleBatch, batch_of, batches_of

__all__ = [
    "Adjacency",
    "LaplacianEigenvectors",
    "LineGraph",
    "adjacency",
    "component_cliques",
    "connected_components",
    "label_cliques",
    "laplacian_eigenvectors",
    "line_graph",
    "node_degrees",
    "simplices",
]


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


@checked
def adjacency(batch: TupleBatch) -> Adjacency:
    """Neighbours of every node: the other nodes of its tuples, at any position. Loops add no
    neighbours."""
    return Adjacency(*operators.graph_adjacency(*batch._parts()))


@checked
def node_degrees(batch: TupleBatch) -> Tensor:
    """Number of neighbours of every node: int64 [n]."""
    return adjacency(batch).offsets.diff()


@checked
def connected_components(batch: TupleBatch) -> Tensor:
    """One number per connected component, the same for all nodes that tuples connect: int64 [n],
    from 0 in the order of the components' lowest nodes."""
    return operators.graph_components(*batch._parts())


@checked
def label_cliques(labels: Tensor, node_offsets: Tensor) -> TupleBatch:
    """The pairs of nodes of a graph that have the same label, undirected and without loops. This
    represents a partition of the nodes as a graph.

    Args:
        labels: int64 [n], any numbers.
        node_offsets: int64 [B + 1], the nodes of each graph.
    """
    return batch_of(operators.graph_label_cliques(labels, node_offsets), "undirected")


@checked
def component_cliques(batch: TupleBatch) -> TupleBatch:
    """Every connected component completed to a clique. The result is a partition of the nodes for
    any predicted edges."""
    return batch_of(operators.graph_component_cliques(*batch._parts()), "undirected")


@checked
def simplices(batch: TupleBatch, largest: int) -> list[TupleBatch]:
    """The cliques of a graph with 1, 2, .. ``largest`` nodes, as one undirected batch per size."""
    return batches_of(operators.graph_simplices(*batch._parts(), largest), "undirected")


@checked
def line_graph(batch: TupleBatch) -> LineGraph:
    """The line graph of an undirected graph without loops. Its nodes are the rows of the batch. Its
    edges (undirected) are the pairs of rows that share a node."""
    parts = operators.graph_line(*batch._parts())
    return LineGraph(batch_of(parts[:3], "undirected"), parts[3])


@checked
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
    return LaplacianEigenvectors(*operators.graph_laplacian(*batch._parts(), count))
