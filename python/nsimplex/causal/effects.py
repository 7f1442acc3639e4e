"""Total effects of columns on each other, and tests of a known graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from .._arguments import checked
from .._data_frames import DataFrame, data_frame
from .._library import operators
from .._printable import printable
from .arrays import graph_matrix, read_columns
from .columns import Columns, Names, given_names
from .frames import row_labels
from .limits import comparable_rows
from .rows import row_groups, row_targets

__all__ = [
    "CausalEffect",
    "GraphCheck",
    "PairTest",
    "PossibleEffect",
    "causal_effect",
    "check_causal_graph",
]


class PossibleEffect(NamedTuple):
    """The effect if the column whose effect it is has these causes."""

    causes: list[str]
    adjustment: list[str]  #: columns of the regression beside it
    effect: float  #: the estimate; 0 without a path
    error: float  #: its standard error
    low: float  #: its interval
    high: float


class CausalEffect(NamedTuple):
    """By how much the mean of a column rises per unit by which an intervention raises another."""

    cause: str
    affected: str
    effect: float  #: mean of the possible effects
    low: float  #: the interval
    high: float
    least: float  #: smallest and largest possible effect; equal if the graph tells the effect
    most: float
    paths: float  #: share of the samples whose graph may have a directed path; NaN without samples
    possible: list[PossibleEffect]  #: one per set of causes that the column ``cause`` may have

    def report(self) -> str:
        """The effect in a sentence."""
        said = (
            f"One unit more of {self.cause} changes {self.affected} by {self.effect:.4g} "
            f"[{self.low:.4g}, {self.high:.4g}]"
        )
        if len(self.possible) > 1:
            said += (
                f"; directions are open, and the effect lies between {self.least:.4g} and "
                f"{self.most:.4g} in {len(self.possible)} possible graphs"
            )
        elif self.possible[0].effect == self.possible[0].error == 0:
            said += "; the graph has no directed path"
        elif self.possible[0].adjustment:
            said += f", adjusted for {', '.join(self.possible[0].adjustment)}"
        if self.paths == self.paths:
            said += f"; {self.paths:.0%} of the samples may have a directed path"
        return said

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with a row per possible effect."""
        return data_frame(self.possible, PossibleEffect._fields)


@checked
def causal_effect(
    table: Any,
    graph: Any,
    cause: str | int,
    effect: str | int,
    *,
    names: Names | None = None,
    level: float = 0.95,
    samples: Sequence[Any] = (),
    groups: Any = None,
    targets: Any = None,
) -> CausalEffect:
    """The total effect of one column of a table [n, M] on another, in the units of the table.

    With directions for all edges, the effect is the coefficient of the cause in a regression of the
    effect on the cause and the optimal adjustment set: the causes of all columns on directed paths,
    without these columns, their effects and the cause. Without a directed path it is 0. The
    interval is Student's. It holds for the right graph, and for noise of any kind if there are many
    rows. A pair of columns with both entries in the graph is an edge of open direction. There is
    then one possible effect per set of causes that the column ``cause`` may have, and the interval
    has all of them.

    With ``samples``, each of them gives the estimate of all rows in its graph, and the interval is
    that of the mixture of these estimates with their errors. It then says how far the graph is
    uncertain, too.

    Args:
        graph: [M, M], entries other than 0 are edges i -> j; :attr:`CausalLimits.cpdag` has open
            directions.
        cause, effect: names or numbers of columns.
        names: of the columns; None: those of the table, if it has some.
        level: of the interval.
        samples: graphs [M, M] of samples of the rows.
        groups, targets: of the rows, as in :func:`causal_limits`.

    Effects are linear here, so that there are no kinds of columns.

    Raises:
        ValueError, TypeError: the message names the argument. A graph with a cycle is refused, and
            one in which the column ``cause`` may have more than 1,000 sets of causes.

    O(n M^2), and O(M edges + p^3) per possible effect and sample for an adjustment set of p
    columns.

    Sources: Henckel, Perkovic, Maathuis, JRSS B 2022 (optimal adjustment); Maathuis, Kalisch,
        Buehlmann, Annals of Statistics 2009 (open directions).
    """
    known = _rows_and_graph("causal_effect", table, graph, names, groups, targets)
    count = known.values.size(1) if known.values.dim() == 2 else 0
    columns = Columns(known.names, count)
    i, j = (
        _place("causal_effect", argument, entry, columns)
        for argument, entry in (("cause", cause), ("effect", effect))
    )
    own = [graph_matrix("causal_effect", "samples", each, known.names).values for each in samples]
    figures, numbers, causes, adjustment = operators.causal_effect(
        known.values, known.graph, i, j, level, own
    )
    shown = known.names or [f"x{column}" for column in range(count)]

    def named(marks: Tensor) -> list[str]:
        return [shown[column] for column in marks.nonzero().flatten().tolist()]

    possible = [
        PossibleEffect(named(of), named(beside), *figures_of.tolist())
        for of, beside, figures_of in zip(causes, adjustment, numbers)
    ]
    mean, least, most, low, high, paths = figures
    return CausalEffect(shown[i], shown[j], mean, low, high, least, most, paths, possible)


class PairTest(NamedTuple):
    """An edge first -> second, or two columns that no edge joins, by their partial correlation."""

    first: str
    second: str
    given: list[str]  #: the columns that are held fixed
    correlation: float
    p_value: float  #: of the hypothesis that it is 0
    adjusted: float  #: the p-value after Holm's correction for the number of tests


class GraphCheck(NamedTuple):
    """How well a graph fits a table."""

    violated: list[PairTest]  #: implied independences that the table contradicts, the surest first
    independences: int  #: number of implied independences
    superfluous: list[PairTest]  #: edges without which the table fits as well
    edges: int  #: number of edges
    bic: float  #: of the linear Gaussian model of the graph; smaller is better
    learned_bic: float  #: of the graph ``learned``; NaN without it
    permuted_bic: Tensor  #: float64 [permutations], of the graph with its names permuted
    permuted_violations: Tensor  #: float64 [permutations]: single tests below the level
    violations: int  #: single tests of this graph below the level
    p_value: float  #: share of the permuted graphs and this one with no more violations
    findings: list[str]  #: all of it in sentences

    def report(self) -> list[str]:
        """The findings as sentences."""
        return self.findings

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with a row per violated independence and superfluous edge."""
        rows = [(*test, "violated independence") for test in self.violated]
        rows += [(*test, "superfluous edge") for test in self.superfluous]
        return data_frame(rows, [*PairTest._fields, "finding"])


@checked
def check_causal_graph(
    table: Any,
    graph: Any,
    *,
    learned: Any = None,
    names: Names | None = None,
    level: float = 0.05,
    permutations: int = 200,
    seed: int = 0,
    groups: Any = None,
    targets: Any = None,
) -> GraphCheck:
    """Tests a graph [M, M] that somebody believes in on a table [n, M].

    Column j is independent of every earlier column that no edge joins with it, given the causes of
    j. These M (M - 1) / 2 - edges independences imply all others. Each is tested by its partial
    correlation, and each edge by the partial correlation of its ends given the other causes. An
    independence that the table contradicts after Holm's correction speaks for a missing edge. An
    edge whose own test is not significant may be superfluous. BIC and the number of contradicted
    independences are compared with those of the same graph after its names were permuted.

    A graph that passes is not proven: all graphs of one equivalence class have the same
    independences, and few rows contradict little. The tests are exact for linear Gaussian columns.

    Args:
        graph: acyclic, also with open directions, as in :func:`causal_effect`. A data frame has
            names, which are matched with those of the table.
        learned: another graph to compare by BIC, such as the adjacency of :func:`causal_fit`.
        names: of the columns; None: those of the table, if it has some.
        level: of the tests of independences together, and of each edge's.
        permutations: number of permuted graphs.
        seed: of the permutations.
        groups, targets: of the rows, as in :func:`causal_limits`.

    Raises:
        ValueError, TypeError: the message names the argument.

    O(n M^2), and O(M^2 p^3) per permutation for p causes.

    Sources: Pearl, "Causality", 2nd edition 2009, section 1.2 (ordered Markov condition); Holm
        1979; Eulig et al., "Toward falsifying causal graphs using a permutation-based test", AAAI
        2025.
    """
    known = _rows_and_graph("check_causal_graph", table, graph, names, groups, targets)
    other = None
    if learned is not None:
        other = graph_matrix("check_causal_graph", "learned", learned, known.names, "table").values
    *tests, counts, figures, permuted, violations, said = operators.causal_check_graph(
        known.values, known.graph, other, known.names, level, permutations, seed
    )
    shown = known.names or [f"x{column}" for column in range(known.graph.size(1))]
    independences, edges, own = counts
    bic, learned_bic, p_value = figures
    return GraphCheck(
        _tests(shown, *tests[:3]),
        independences,
        _tests(shown, *tests[3:]),
        edges,
        bic,
        learned_bic,
        permuted,
        violations,
        own,
        p_value,
        said,
    )


def _tests(names: list[str], pairs: Tensor, given: Tensor, numbers: Tensor) -> list[PairTest]:
    return [
        PairTest(
            names[i],
            names[j],
            [names[k] for k in fixed.nonzero().flatten().tolist()],
            *own.tolist(),
        )
        for (i, j), fixed, own in zip(pairs.tolist(), given, numbers)
    ]


class _Known(NamedTuple):
    """A table with a graph of its columns, and the names of the columns; none without names."""

    values: Tensor
    graph: Tensor
    names: list[str]


def _rows_and_graph(
    function: str, table: Any, graph: Any, names: Names | None, groups: Any, targets: Any
) -> _Known:
    """The rows that count, as :func:`causal_limits` takes them."""
    values, own_names, _ = read_columns(function, "table", table)
    adjacency = graph_matrix(function, "graph", graph, own_names, "table").values
    shown = own_names
    if values.dim() == 2:
        rows, count, labels = *values.shape, row_labels(table)
        shown = own_names if names is None else given_names(function, names, count)
        known = row_groups(function, groups, rows, labels)
        own = row_targets(function, targets, rows, Columns(own_names, count), labels=labels)
        if known or own:
            values = comparable_rows(values, known, own)
    return _Known(values, adjacency, shown)


def _place(function: str, argument: str, entry: Any, columns: Columns) -> int:
    found = columns.find(entry)
    if found is None:
        known = "a name of a column" if isinstance(entry, str) else columns.expected()
        raise ValueError(
            f"[{function}] {argument}: expected {known}, got {printable(repr(entry))[:60]}"
        )
    return found
