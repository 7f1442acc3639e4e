"""Causal graphs in hyperbolic space, and the rotary angles made of them."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._hints import Numbers
from .._library import operators
from .arrays import as_double


class EmbeddingWarning(UserWarning):
    """An embedding, and the angles made of it, carries nothing; the message says why."""


class CausalEmbedding(NamedTuple):
    """M nodes as points of hyperbolic space."""

    tangents: Tensor  #: float64 [M, d]: z = r u, distance from the origin and direction
    generality: Tensor  #: float64 [M]: PageRank of the walk from effects to causes; sums to 1
    loss: float  #: Eq. 15 at the end
    hops: int  #: what was used
    side: str  #: "both" or "causes", what was used
    without_negatives: int  #: nodes that every other one attracts
    seconds: float


class CausalRanking(NamedTuple):
    """How well distances tell which nodes lead to a node."""

    mean_rank: float  #: 1 is perfect
    map: float  #: mean over nodes of the average precision
    pairs: int


@checked
def causal_embed(
    adjacency: Numbers,
    *,
    dimension: int = 3,
    optimiser: str = "tangent",
    steps: int = 300,
    learning_rate: float | None = None,
    hops: int | None = None,
    side: str | None = None,
    weight: str = "paths",
    decay: float = 0.5,
    negatives: int | None = None,
    generality: float = 0.7,
    relative: bool = True,
    restart: float = 0.15,
    dangling: str = "uniform",
    seed: int = 0,
    balanced: bool = True,
) -> CausalEmbedding:
    r"""Places the nodes of a weighted graph in hyperbolic space: what is joined is near, what
    causes much is near the origin.

    Minimises, over all nodes m, with S_m the sum of :math:`e^{-d_{mn'}}` over all nodes n' but m
    and N+(m), W_m that of
    :math:`w_{mn}` over N+(m), and W the mean of those W_m that are not 0,

    .. math::
        \frac1M \sum_m \Big[ -\sum_{n \in N_+(m)} w_{mn} \log \frac{e^{-d_{mn}}}{e^{-d_{mn}} + S_m}
        + \lambda_g \sqrt{W_m W}\, M \pi_m \log\cosh d(m, o) \Big]

    Args:
        adjacency: [M, M], an array or a tensor, dense or sparse COO; ``adjacency[i, j]`` belongs to
            i -> j. Magnitudes count, loops do not.
        dimension: d, 2 or more.
        optimiser: "tangent" (Adam on z), "radam" or "rsgd" (the paper's).
        learning_rate: falls along a half cosine to a hundredth; None: 1, 0.3 and 0.1 for the three.
        hops: nodes that so many edges join attract each other; None: 1 for a hierarchy, else 2.
            A hierarchy is a transitive closure in which some edge follows another.
        side: "both", or "causes": a node's effects are among its negatives. None: "causes" for a
            hierarchy.
        weight: "paths", :math:`P_{mn} + P_{nm}` with :math:`P = \sum_h \mathrm{decay}^{h-1} |A|^h`;
            "direct", |A_mn|.
        negatives: nodes that stand for all others in a step; 0: all. None: all up to 2,000 nodes,
            else 512.
        generality, relative: :math:`\lambda_g`; with ``relative=False`` the pull is
            :math:`\lambda_g \pi_m d(m, o)`, as printed.
        restart, dangling: of the PageRank; "uniform" or "eigenvector" for nodes without causes.
        balanced: the magnitudes are first freed of units and of their common size, so that
            :math:`D^{-1} A D` and c A give the same points; False: as given.

    Warns:
        EmbeddingWarning: where most nodes with edges lie at the origin, all nodes in one point, or
            no edge is there.

    Raises:
        ValueError, TypeError: naming the argument, what was expected and what came.

    Source: Xu et al., arXiv 2509.16629, Eq. 11 to 21, with the corrections of
        docs/causal/embedding.md.
    """
    adjacency = as_double("causal_embed", "adjacency", adjacency)
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
def causal_ranking(tangents: Numbers, adjacency: Numbers) -> CausalRanking:
    """For every ancestor a of a node, a's rank by distance among a and all nodes that are no
    ancestors; ties count against a."""
    return CausalRanking(
        *operators.causal_ranking(
            as_double("causal_ranking", "tangents", tangents),
            as_double("causal_ranking", "adjacency", adjacency),
        )
    )


@checked
def hyperbolic_distances(tangents: Tensor) -> Tensor:
    """Distances [M, M] of points by their tangents [M, d], exact to rounding up to radius 300."""
    return operators.hyperbolic_distances(tangents)


@checked
def hyperboloid_points(tangents: Tensor) -> Tensor:
    """(cosh r, sinh r u) [..., d + 1] of tangents z = r u [..., d]; differentiable.

    A point farther out than the dtype can say, r about 88 in float32 and 700 in float64, is put at
    the last radius that it can, in its own direction.
    """
    return operators.hyperboloid_points(tangents)


@checked
def ball_points(tangents: Tensor) -> Tensor:
    """tanh(r / 2) u [..., d] of tangents z = r u; differentiable.

    Always inside the open unit ball: the norm is at most 1 - 4 eps of the dtype, which tanh reaches
    at r = 15.2 in float32 and 35.3 in float64. Farther points keep their direction, lose their
    distance and have a derivative of 0 along it: work with tangents out there.
    """
    return operators.ball_points(tangents)


@checked
def ball_tangents(ball: Tensor) -> Tensor:
    """The inverse of :func:`ball_points`, 2 artanh(|e|) e / |e|: always finite.

    A point on or outside the sphere counts as the last one of the dtype before it, at r = 17.3 in
    float32 and 37.4 in float64; the error of r is about eps e^r / 4 before that.
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
    """The rotary angles c e of points of the ball, as :func:`nsimplex.rotary` takes them.

    Args:
        ball: [M, d], coordinates e.
        heads: None: all heads share the table [leading + M, d]. Otherwise [leading + M, heads, d /
            heads], where heads take consecutive coordinates. A head of D channels in chunks of p
            (2; N + 1 for the determinant of order N) has D / p * floor(p / 2) planes.
        scale: c.
        by_dimension: c sqrt(d) instead of c, which keeps the size of the angles whatever d is.
        head_scale: [heads], learned: multiplies c head by head.
        leading: tokens before the features, as <cls>, which do not turn.

    Differentiable in ``ball`` and ``head_scale``.

    Source: Xu et al., arXiv 2509.16629, Eq. 24 to 26.
    """
    return operators.causal_angles(ball, heads or 0, scale, by_dimension, head_scale, leading)
