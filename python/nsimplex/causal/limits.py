"""What a table cannot tell about a learned graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._data_frames import DataFrame, data_frame
from .._library import operators
from .arrays import graph_matrix, read_columns
from .column_scale import large_exponent, times_power
from .columns import Columns, Names, given_names
from .frames import row_labels
from .rows import row_groups, row_targets


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

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with a row per pair of columns: the edges whose direction cannot
        be told, and the columns with dependent noises, with the p-value of the test."""
        names = self.names or [f"x{column}" for column in range(len(self.cpdag))]
        rows: list[tuple[str, str, str, float | None]] = [
            (names[i], names[j], "reversible", None) for i, j in self.reversible
        ]
        rows += [(names[i], names[j], "dependent noises", p) for i, j, p in self.dependent]
        return data_frame(rows, ["cause", "effect", "finding", "p_value"])


@checked
def causal_limits(
    table: Any,
    graph: Any,
    *,
    names: Names | None = None,
    level: float = 0.05,
    groups: Any = None,
    targets: Any = None,
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
        groups: the group or batch of each row, as in :func:`causal_fit`. Differences between groups
            do not count: each row is replaced by its deviation from the mean of the earlier rows of
            its group, times sqrt(k / (k + 1)) for k earlier rows, and the first row of a group is
            left out. That leaves n - G rows of n in G groups, the degrees of freedom within
            groups; independent noises stay uncorrelated and keep their variances. BIC is that of
            these rows.
        targets: the columns that were intervened on in each row, as in :func:`causal_fit`. Such
            rows are left out.

    Effects are linear here, so that there are no kinds of columns.

    Raises:
        ValueError, TypeError: the message names the argument. A graph with a cycle is refused, and
            so is a table with fewer than four rows left.

    O(n M^2 + M^3), and O(M^4) at worst for the CPDAG.

    Sources: Meek, UAI 1995; Chickering, JMLR 2002 (CPDAG); Reisach, Seiler, Weichwald, NeurIPS 2021
        (varsortability); Shimizu et al., JMLR 2011 (independence of residuals); Holm 1979.
    """
    values, own_names, _ = read_columns("causal_limits", "table", table)
    adjacency = graph_matrix("causal_limits", "graph", graph, own_names, "table").values
    shown = own_names
    if values.dim() == 2:
        rows, count, labels = *values.shape, row_labels(table)
        shown = own_names if names is None else given_names("causal_limits", names, count)
        known = row_groups("causal_limits", groups, rows, labels)
        columns = Columns(own_names, count)
        own = row_targets("causal_limits", targets, rows, columns, labels=labels)
        if known or own:
            values = _enough(comparable_rows(values, known, own), known, own)
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


def completed_graph(adjacency: Tensor) -> Tensor:
    """The CPDAG of :func:`causal_limits` for an acyclic graph, bool [M, M]. No table is needed: its
    numbers have no part in it."""
    table = torch.randn(4, len(adjacency), generator=torch.Generator().manual_seed(0)).double()
    return operators.causal_limits(table, adjacency.double(), [], 0.5)[1]


def _enough(left: Tensor, groups: list[int], targets: list[list[int]]) -> Tensor:
    """Refuses fewer rows than the tests need."""
    if len(left) < 4:
        rows = [] if not groups else ["within groups"]
        rows += [] if not targets else ["without interventions"]
        raise ValueError(
            f"[causal_limits] table: expected at least 4 rows {' and '.join(rows)}, got {len(left)}"
        )
    return left


def comparable_rows(
    values: Tensor, groups: Sequence[int], targets: Sequence[Sequence[int]]
) -> Tensor:
    """The rows of a table [n, M] without missing values and interventions, as deviations within
    groups if there are some; see :func:`causal_limits`."""
    whole = ~values.isnan().any(dim=1)
    rows = [row for row in whole.nonzero().flatten().tolist() if not targets or not targets[row]]
    if not groups:
        return values[rows]
    members: dict[int, list[int]] = {}
    for row in rows:
        members.setdefault(groups[row], []).append(row)
    return torch.cat([values[:0], *(_deviations(values[own]) for own in members.values())])


def scaled_within_groups(values: Tensor, groups: Sequence[int]) -> Tensor:
    """The table with columns divided by their standard deviations within groups, as a fit with
    groups and ``standardise`` does."""
    deviation = comparable_rows(values, groups, []).square().mean(dim=0).sqrt()
    return values / torch.where(deviation > 0, deviation, 1.0)


def _deviations(rows: Tensor) -> Tensor:
    """Each row but the first less the mean of those before it, in the variance of a row."""
    earlier = torch.arange(1, len(rows), dtype=torch.float64)[:, None]
    rows = rows - rows.mean(dim=0)
    means = rows[:-1].cumsum(dim=0) / earlier
    return (rows[1:] - means) * (earlier / (earlier + 1)).sqrt()


def variance_evidence(
    values: Tensor,
    edges: Tensor,
    groups: Sequence[int] = (),
    targets: Sequence[Sequence[int]] = (),
) -> str:
    """A sentence if variances alone order the columns of a graph; else nothing. The rows are those
    of :func:`comparable_rows`, if they are at least three and no column is constant there."""
    scaled = times_power(values, -large_exponent(values))
    rows = comparable_rows(scaled, groups, targets)
    if len(rows) < 3 or (rows == rows[:1]).all(dim=0).any():
        return ""
    return operators.causal_variance_order(rows, edges.double())[3]
