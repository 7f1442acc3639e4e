"""Discrete Ricci curvature of the edges of graphs."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._library import operators
from .batches import TupleBatch

__all__ = ["EdgeCurvatures", "edge_curvatures"]


class EdgeCurvatures(NamedTuple):
    """Curvatures of every row of a batch of pairs, float64 [m], NaN for a loop."""

    plain: Tensor  #: 4 - deg u - deg v (Forman)
    augmented: Tensor  #: 4 - deg u - deg v + 3 T (Forman with triangles as faces)
    balanced: Tensor  #: with squares too; 0 if an end has degree 1


@checked
def edge_curvatures(batch: TupleBatch) -> EdgeCurvatures:
    r"""The curvatures of every edge {u, v} with T triangles on it.

    .. math::
        \mathrm{plain} &= 4 - \deg u - \deg v, \qquad \mathrm{augmented} = \mathrm{plain} + 3 T \\
        \mathrm{balanced} &= \frac{2}{\deg u} + \frac{2}{\deg v} - 2
            + \frac{2 T}{\max \deg} + \frac{T}{\min \deg} + \frac{S}{\gamma \max \deg}

    S counts the neighbours of u and of v on a square through {u, v} without a diagonal, and gamma
    is the largest number of such squares that one of them closes. Negative edges are bottlenecks.

    Args:
        batch: pairs (k = 2). Directed pairs count as edges between their nodes; the neighbours are
            those of :func:`adjacency`.

    Returns:
        Three tensors float64 [m], in the order of ``batch.tuples``. Loops have NaN.

    Raises:
        ValueError: tuples of another length than 2.

    Complexity: O(m d^2) for degrees of d, on the CPU.

    Sources: Forman, "Bochner's method for cell complexes and combinatorial Ricci curvature"; for
        balanced, Topping et al., "Understanding over-squashing and bottlenecks on graphs via
        curvature", definition 1; "How Smoothing is N-simplicial Attention?", appendix F.2.

    Example:
        >>> path = edge_tuples(torch.tensor([[0, 1], [1, 2]]), 3, symmetry="undirected").batch
        >>> edge_curvatures(path).plain
        tensor([1., 1.], dtype=torch.float64)
    """
    return EdgeCurvatures(*operators.graph_edge_curvatures(*batch._parts()))
