"""Directions of edges from non-Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._arguments import checked
from .._library import operators
from .arrays import graph_matrix, read_columns
from .columns import Columns, Names, Pairs, Tiers
from .prior_knowledge import PriorKnowledge, numbered_knowledge
from .structure import NoiseDirections, edge_pairs


@checked
def orient_by_noise(
    table: Any,
    graph: Any,
    *,
    level: float = 0.01,
    forbidden: Pairs = (),
    required: Pairs = (),
    tiers: Tiers = (),
    exogenous: Names | Sequence[int] = (),
    sinks: Names | Sequence[int] = (),
    paths: Pairs = (),
) -> NoiseDirections:
    r"""Reverses edges of an acyclic graph [M, M] while non-Gaussian noise supports this.

    Covariances do not tell the direction of every edge. In a linear model with independent noises
    of which at most one is Gaussian, the noises do. The cost of a graph is

    .. math::
        \sum_j \big[ n \log \hat\sigma_j^2 - 2 n J(\hat e_j / \hat\sigma_j) + 2 \log n\, p_j \big]

    with the residuals :math:`\hat e_j` of column j regressed on its :math:`p_j` causes and the
    approximate negentropy :math:`J(u) = 79.047 (\mathrm{mean} \log\cosh u - 0.37457)^2 + 7.4129
    (\mathrm{mean}\, u e^{-u^2/2})^2`. A step reverses one edge i -> j that no other path joins.
    Both columns may then have the causes of either, and those are dropped whose absence lowers the
    Gaussian part of the cost. After each sweep over the edges, every column may also gain causes. A
    step is kept if the whole cost falls. With at most 50 columns, a second search starts from the
    order that the noises of 300 rows suggest, as in DirectLiNGAM; the result of lower cost counts.

    The noises of the right graph are independent. So the turned graph is the result only if at
    most half as many pairs of its noises depend on each other as of the given graph, by the tests
    of :func:`causal_limits` at the level 0.05, and if -2 log p summed over all pairs is smaller.
    Curved effects and common causes outside the table keep noises dependent. Columns of at most 2
    sqrt(n) different values keep the directions of their edges, and there is no second start beside
    them.

    If all noises are Gaussian, the sum of 2 n J is nearly a chi-squared variable of 2 M degrees of
    freedom. If this sum is not significant, the graph keeps its edges.

    Args:
        table: [n, M], linear effects, n >= 4, finite, no column constant.
        graph: [M, M], entries other than 0 are edges i -> j, such as the adjacency of
            :func:`causal_fit`.
        level: of the test.
        forbidden to paths: as in :func:`causal_fit`. The graph must satisfy them, and the result
            does.

    Raises:
        ValueError, TypeError: the message names the argument, the expected value and the value
            received.

    O(n M^2 + M^3), and per edge and sweep O(n p + p^4) for at most p causes. The second start takes
    O(300 M^3).

    Sources: Shimizu et al., JMLR 2006 and 2011 (LiNGAM, DirectLiNGAM); Hyvaerinen, NIPS 1998
        (negentropy); Chickering, JMLR 2002 (reversals).
    """
    values, names, _ = read_columns("orient_by_noise", "table", table)
    given = graph_matrix("orient_by_noise", "graph", graph, names, "table").values
    columns = Columns(names, values.size(1) if values.dim() == 2 else 0)
    own = PriorKnowledge(
        forbidden=forbidden,
        required=required,
        tiers=tiers,
        exogenous=exogenous,
        sinks=sinks,
        paths=paths,
    )
    known = numbered_knowledge("orient_by_noise", own, columns)
    pairs = {name: edge_pairs(known[name]) for name in ("forbidden", "required", "paths")}
    adjacency, turned, *found = operators.causal_orient_by_noise(
        values, given, level, **(known | pairs)
    )
    return NoiseDirections(
        adjacency, [(cause, effect) for cause, effect in turned.tolist()], *found
    )


def check_orientation(label: str, fit: Any, *, groups: bool, targets: bool, kinds: bool) -> None:
    """Raises a ValueError for a fit with something that :func:`orient_by_noise` does not take into
    account. ``fit`` has the parameters of the estimator; ``kinds``: of columns that are not
    continuous."""
    expected, argument, value = operators.causal_refused_by_noise(
        bool(fit.nonlinear),
        groups,
        targets,
        kinds,
        fit.missing == "likelihood",
    )
    if expected:
        got = f'{argument}="{value}"' if value else argument
        raise ValueError(f"[{label}] orient_by_noise: expected {expected}, got {got}")
