"""What a table cannot tell about a learned graph."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .._arguments import checked
from .._hints import Numbers
from .._library import operators
from .arrays import column_names, graph_matrix, read_columns


class VarianceOrderWarning(UserWarning):
    """Variances alone order the columns, so the graph may follow units instead of causes."""


class CausalLimits(NamedTuple):
    """Facts about a graph of M columns that its adjacency does not show."""

    bic: float  #: of the linear Gaussian model of the graph; smaller is better
    cpdag: Tensor  #: bool [M, M]: ``[i, j]`` and ``[j, i]`` if the direction cannot be told
    reversible: list[tuple[int, int]]  #: edges (cause, effect) whose direction cannot be told
    varsortability: float  #: share of paths along which the variance rises; 0.5 is chance
    sorted_by_variance: tuple[int, int]  #: edges that sorting by variance gives too, and all edges
    dependent: list[tuple[int, int, float]]  #: columns with dependent noises, and the p-value
    tests: int  #: number of pairs of noises tested
    names: list[str]

    findings: list[str]  #: all of it in sentences

    def report(self) -> list[str]:
        """The findings as sentences."""
        return self.findings


@checked
def causal_limits(
    table: Numbers, graph: Numbers, *, names: list[str] | None = None, level: float = 0.05
) -> CausalLimits:
    """Says what a table [n, M] cannot tell about an acyclic graph [M, M] of its columns.

    - **Direction.** The completed partially directed graph (CPDAG) has the edges whose direction
      all graphs share that linear Gaussian data cannot distinguish from this one. It comes from the
      colliders of the graph by Meek's rules.
    - **Units.** Varsortability is the share of directed paths along which the variance rises. A
      number near 1 means that units may have decided the order.
    - **Common causes outside the table.** With the right graph, linear effects and no common cause
      outside the table, the noises of all columns are independent. Each pair of residuals e_i, e_j
      is tested: by the correlation of tanh(e_i) and tanh(e_j) if no edge joins them, and by the
      correlations of f(e_i) and g(e_j), with f and g among tanh(2 e) and exp(-e^2 / 2), each minus
      the multiple of tanh(e) that makes its mean slope 0. Such a correlation does not depend on
      errors of the weights to first order. Holm's method aims at a probability of at most ``level``
      for one false finding. For edges between Gaussian columns this test has no power.

    Args:
        graph: [M, M], entries other than 0 are edges i -> j.
        names: of the columns; None: those of the table, if it has some.
        level: of the tests.

    Raises:
        ValueError, TypeError: the message names the argument. A graph with a cycle is refused.

    O(n M^2 + M^3), and O(M^4) at worst for the CPDAG.

    Sources: Meek, UAI 1995; Chickering, JMLR 2002 (CPDAG); Reisach, Seiler, Weichwald, NeurIPS 2021
        (varsortability); Shimizu et al., JMLR 2011 (independence of residuals); Holm 1979.
    """
    values, own_names, _ = read_columns("causal_limits", "table", table)
    adjacency = graph_matrix("causal_limits", "graph", graph, own_names, "table").values
    shown = list(names) if names is not None else column_names(table)
    found = operators.causal_limits(values, adjacency, shown, level)
    bic, cpdag, reversible, varsortability, (shared, edges, tests), pairs, p_values, said = found
    return CausalLimits(
        bic,
        cpdag,
        [(i, j) for i, j in reversible.tolist()],
        varsortability,
        (shared, edges),
        [(i, j, p) for (i, j), p in zip(pairs.tolist(), p_values.tolist())],
        tests,
        shown,
        said,
    )


def variance_evidence(values: Tensor, edges: Tensor) -> str:
    """A sentence if variances alone order the columns of a graph; else nothing."""
    return operators.causal_variance_order(values, edges.double())[3]
