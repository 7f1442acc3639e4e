"""Masks as hypergraphs: the distance that information must travel under a mask.

A mask is a batch of tuples (i, j1, .., jN), one per admissible tuple of query i.
``nsimplex.graph.tuple_batch`` makes a mask from ``mask.nonzero()`` of a bool mask [n, n, .., n]. In
one layer, i receives information from j1 .. jN. In an undirected batch, every row stands for all
orders of its nodes, so a graph is the mask of attention between neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._library import operators
from ..graph import TupleBatch

__all__ = ["MaskExtent", "WeightBounds", "mask_distances", "mask_extent", "weight_bounds"]


class MaskExtent(NamedTuple):
    """Radius, diameter and spectral gap of every mask of a batch."""

    #: int64 [n]: layers until a node has reached all others of its mask, -1: never
    eccentricities: Tensor
    loops: Tensor  #: bool [n]: the node is both target and source of one tuple
    radii: Tensor  #: int64 [B]: least eccentricity of a node that reaches all, -1: no such node
    #: int64 [B]: of the 1-skeleton, in which nodes of one tuple are neighbours; -1: not connected
    diameters: Tensor
    #: float64 [B]: second eigenvalue of the skeleton's normalised Laplacian, 0: not connected
    gaps: Tensor


@checked
def mask_extent(masks: TupleBatch) -> MaskExtent:
    """Reachability in each mask: radius, diameter and spectral gap.

    A node that reaches all others is a centre. A mask with a centre is quasi-strongly connected.
    Complexity: O(n (n + pairs of neighbours)). The eigenvalue costs O(n^3) up to 256 nodes. Above
    256 nodes it costs about 50 sparse factorisations while these stay thin, as for windows, and
    otherwise the cost of ``laplacian_eigenvectors``. Source: "How Smoothing is N-simplicial
    Attention?", definitions 3.3 and 3.5 and section 3.1.
    """
    return MaskExtent(*operators.mask_extent(*masks._parts()))


@checked
def mask_distances(masks: TupleBatch) -> Tensor:
    """Number of layers until node i depends on node j: int64 [n, n] at [j, i], 0 for j itself, -1
    for never."""
    return operators.mask_distances(*masks._parts())


class WeightBounds(NamedTuple):
    """Bounds of the logits and of the attention weights of one query."""

    logit: float  #: L, of the magnitude of every logit
    lower: float  #: of every weight of an admissible tuple
    upper: float


@checked
def weight_bounds(
    order: int, tuples: int, radius: float, key_norm: float, scale: float
) -> WeightBounds:
    r"""Bounds of the entries of the attention weights, for product form and softmax:

    .. math::
        L = \mathrm{scale}\, (K R)^{N+1}, \qquad
        \frac{1}{1 + (n - 1) e^{2L}} \le \mathrm{weight} \le \frac{1}{1 + (n - 1) e^{-2L}}

    No bounds that depend on n and L alone are closer. With the largest n of all queries and the
    largest norms of all layers, ``lower`` serves as the epsilon with which the proof of Theorem 3.4
    begins: no admissible weight is smaller.

    Args:
        order: N.
        tuples: n, the number of admissible tuples of the query.
        radius: R, the largest norm of a token. For queries and keys of your own it is their largest
            norm, and ``key_norm`` is 1.
        key_norm: K, the largest spectral norm of W_K^(m), m = 0 .. N; m = 0 is the query's.
        scale: of the logits, for example ``head_dim ** -0.5``.

    Raises:
        ValueError: an order or number of tuples below 1, or a negative or infinite number.

    Complexity: O(1).

    Source: "How Smoothing is N-simplicial Attention?", appendix B, with its C^2 as L.

    Example:
        >>> weight_bounds(1, 3, 0.0, 1.0, 1.0).upper
        0.3333333333333333
    """
    return WeightBounds(*operators.weight_bounds(order, tuples, radius, key_norm, scale))
