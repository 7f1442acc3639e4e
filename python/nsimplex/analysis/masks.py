"""Masks as hypergraphs: how far information has to go under them.

A mask is a batch of tuples (i, j1, .., jN), one for every admissible tuple of query i;
``nsimplex.graph.tuple_batch`` makes one, of a bool mask [n, n, .., n] from ``mask.nonzero()``. In
one layer i receives from j1 .. jN. Of an undirected batch every row stands for all its orders, so a
graph is the mask of attention between neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._library import operators
from ..graph import TupleBatch

__all__ = ["MaskExtent", "mask_distances", "mask_extent"]


class MaskExtent(NamedTuple):
    """Radius, diameter and spectral gap of every mask of a batch."""

    #: int64 [n]: layers until a node has reached all others of its mask, -1: it never does
    eccentricities: Tensor
    loops: Tensor  #: bool [n]: the node is target and source of one tuple
    radii: Tensor  #: int64 [B]: the least eccentricity of a node that reaches all, -1 without one
    #: int64 [B]: of the 1-skeleton, in which nodes of one tuple are neighbours; -1: not connected
    diameters: Tensor
    #: float64 [B]: second eigenvalue of the skeleton's normalised Laplacian, 0: not connected
    gaps: Tensor


@checked
def mask_extent(masks: TupleBatch) -> MaskExtent:
    """Who reaches all others, in how many layers, and how well the nodes hang together.

    A mask with a node that reaches all others, a centre, is quasi-strongly connected. Complexity:
    O(n (n + pairs of neighbours)); for the eigenvalue O(n^3) up to 256 nodes, above about 50 sparse
    factorisations while these stay thin, as of windows, else as ``laplacian_eigenvectors``. Source:
    "How Smoothing is N-simplicial Attention?", definitions 3.3 and 3.5 and section 3.1.
    """
    return MaskExtent(*operators.mask_extent(*masks._parts()))


@checked
def mask_distances(masks: TupleBatch) -> Tensor:
    """Layers from node j until i depends on it: int64 [n, n] at [j, i], 0 for j itself, -1 where it
    never does."""
    return operators.mask_distances(*masks._parts())
