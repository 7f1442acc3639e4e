"""Embeddings of causal graphs in hyperbolic space, and their rotary angles."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from torch import Tensor

from .._arguments import checked
from .._choices import Dangling, Optimiser, PairWeight, Side
from .._hints import Numbers
from .._library import operators
from .arrays import as_double, graph_matrix


class EmbeddingWarning(UserWarning):
    """An embedding and its angles carry no information; the message says why."""


class CausalEmbedding(NamedTuple):
    """M nodes as points of hyperbolic space."""

    tangents: Tensor  #: float64 [M, d]: z = r u, distance from the origin and direction
    generality: Tensor  #: float64 [M]: PageRank of the walk from effects to causes; sums to 1
    loss: float  #: final value of Eq. 15
    hops: int  #: the value used
    side: str  #: "both" or "causes", the value used
    without_negatives: int  #: number of nodes that every other node attracts
    seconds: float


class CausalRanking(NamedTuple):
    """How well distances identify the ancestors of a node."""

    mean_rank: float  #: 1 is perfect
    map: float  #: mean over nodes of the average precision
    pairs: int


@checked
def causal_embed(
    adjacency: Any,
    *,
    dimension: int = 3,
    optimiser: Optimiser = "tangent",
    steps: int = 300,
    learning_rate: float | None = None,
    hops: int | None = None,
    side: Side | None = None,
    weight: PairWeight = "paths",
    decay: float = 0.5,
    negatives: int | None = None,
    generality: float = 0.7,
    relative: bool = True,
    restart: float = 0.15,
    dangling: Dangling = "uniform",
    seed: int = 0,
    balanced: bool = True,
) -> CausalEmbedding:
    r"""Embeds the nodes of a weighted graph in hyperbolic space.

    Connected nodes lie close to each other. Nodes that cause many others lie close to the origin.

    For node m, S_m is the sum of :math:`e^{-d_{mn'}}` over all nodes n' except m and those in
    N+(m). W_m is the sum of :math:`w_{mn}` over N+(m). W is the mean of all W_m that are not 0. The
    function minimises, over all nodes m,

    .. math::
        \frac1M \sum_m \Big[ -\sum_{n \in N_+(m)} w_{mn} \log \frac{e^{-d_{mn}}}{e^{-d_{mn}} + S_m}
        + \lambda_g \sqrt{W_m W}\, M \pi_m \log\cosh d(m, o) \Big]

    Args:
        adjacency: [M, M], an array or a tensor, dense or sparse COO; ``adjacency[i, j]`` belongs to
            i -> j. Only magnitudes are used, and loops are ignored.
        dimension: d, 2 or more.
        optimiser: "tangent" (Adam on z), "radam" or "rsgd" (the paper's).
        learning_rate: decays along a half cosine to a hundredth; None: 1, 0.3 and 0.1 for the three
            optimisers.
        hops: nodes attract each other if a path of at most this many edges joins them. None: 1 for
            a hierarchy, else 2. A hierarchy is a transitive closure in which some edge follows
            another.
        side: "both", or "causes": a node's effects are among its negatives. None: "causes" for a
            hierarchy.
        weight: "paths", :math:`P_{mn} + P_{nm}` with :math:`P = \sum_h \mathrm{decay}^{h-1} |A|^h`;
            "direct", |A_mn|.
        negatives: number of nodes that represent all others in a step; 0: all. None: all up to
            2,000 nodes, else 512.
        generality, relative: :math:`\lambda_g`; with ``relative=False`` the pull is
            :math:`\lambda_g \pi_m d(m, o)`, as printed.
        restart, dangling: parameters of the PageRank; "uniform" or "eigenvector" for nodes without
            causes.
        balanced: remove units and the common scale from the magnitudes first, so that
            :math:`D^{-1} A D` and c A give the same points; False: use the magnitudes as given.

    Warns:
        EmbeddingWarning: most nodes with edges lie at the origin, all nodes lie at one point, or
            the graph has no edge.

    Raises:
        ValueError, TypeError: the message names the argument, the expected value and the value
            received.

    Source: Xu et al., arXiv 2509.16629, Eq. 11 to 21, with the corrections of
        docs/causal/embedding.md.
    """
    adjacency = graph_matrix("causal_embed", "adjacency", adjacency).values
    made = CausalEmbedding(
        *operators.causal_embed(
            adjacency,
            dimension,
            optimiser,
            steps,
            learning_rate,
            hops,
            side,
            weight,
            decay,
            negatives,
            generality,
            relative,
            restart,
            dangling,
            seed,
            balanced,
        )
    )
    if steps > 0 and (warning := operators.causal_embedding_warning(made.tangents, adjacency)):
        warnings.warn(f"causal_embed: {warning}", EmbeddingWarning, stacklevel=3)
    return made


@checked
def causal_ranking(tangents: Numbers, adjacency: Any) -> CausalRanking:
    """Ranks of the ancestors of every node by distance.

    The rank of an ancestor a is its rank among a and all nodes that are not ancestors. Ties count
    against a.
    """
    return CausalRanking(
        *operators.causal_ranking(
            as_double("causal_ranking", "tangents", tangents),
            graph_matrix("causal_ranking", "adjacency", adjacency).values,
        )
    )


@checked
def hyperbolic_distances(tangents: Tensor) -> Tensor:
    """Distances [M, M] between points given by tangents [M, d], exact to rounding up to radius
    300."""
    return operators.hyperbolic_distances(tangents)


@checked
def hyperboloid_points(tangents: Tensor) -> Tensor:
    """(cosh r, sinh r u) [..., d + 1] of tangents z = r u [..., d]; differentiable.

    The largest radius r that the dtype can represent is about 88 in float32 and 700 in float64. A
    point farther out is moved to that radius, in its own direction.
    """
    return operators.hyperboloid_points(tangents)


@checked
def ball_points(tangents: Tensor) -> Tensor:
    """tanh(r / 2) u [..., d] of tangents z = r u; differentiable.

    The result is always inside the open unit ball. Its norm is at most 1 - 4 eps of the dtype,
    which tanh reaches at r = 15.2 in float32 and 35.3 in float64. Farther points keep their
    direction but lose their distance, and the derivative along the direction is 0. Use tangents for
    such points.
    """
    return operators.ball_points(tangents)


@checked
def ball_tangents(ball: Tensor) -> Tensor:
    """The inverse of :func:`ball_points`, 2 artanh(|e|) e / |e|: always finite.

    A point on or outside the sphere is treated as the last point inside it that the dtype can
    represent, at r = 17.3 in float32 and 37.4 in float64. At smaller r, the error of r is about
    eps e^r / 4.
    """
    return operators.ball_tangents(ball)


@checked
def causal_angles(
    ball: Tensor,
    *,
    heads: int | None = None,
    scale: float = math.pi / 4,
    by_dimension: bool = False,
    head_scale: Tensor | None = None,
    leading: int = 0,
) -> Tensor:
    """The rotary angles c e of points of the ball, in the form that :func:`nsimplex.rotary`
    accepts.

    Args:
        ball: [M, d], coordinates e.
        heads: None: all heads share the table [leading + M, d]. Otherwise [leading + M, heads, d /
            heads], and heads take consecutive coordinates. A head of D channels in chunks of p
            (2; N + 1 for the determinant of order N) has D / p * floor(p / 2) planes.
        scale: c.
        by_dimension: use c sqrt(d) instead of c, so that the size of the angles does not depend on
            d.
        head_scale: [heads], learned: multiplies c per head.
        leading: number of tokens before the features that are not rotated, such as <cls>.

    Differentiable in ``ball`` and ``head_scale``.

    Source: Xu et al., arXiv 2509.16629, Eq. 24 to 26.
    """
    return operators.causal_angles(ball, heads or 0, scale, by_dimension, head_scale, leading)
