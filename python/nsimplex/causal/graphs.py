"""Comparison of causal graphs with a known graph, and baselines that use scales alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from torch import Tensor

from .._arguments import checked
from .._choices import GraphModel, Mechanism, Missing, Noise, ScreenBy
from .._data_frames import DataFrame, data_frame
from .._library import operators
from ..graph_files import read_table
from .arrays import as_double, graph_matrix, read_columns
from .columns import Columns, Names, given_names, per_column


class CausalMetrics(NamedTuple):
    """Edges of a graph compared with the true edges; docs/causal/structure.md has the
    definitions."""

    edges: int
    true_edges: int
    reversed: int
    extra: int
    missing: int
    shd: int  #: structural Hamming distance; a reversed edge counts one
    sid: int | None  #: structural intervention distance; None if a graph has a cycle
    precision: float
    recall: float
    f1: float
    fdr: float

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with one row."""
        return data_frame([self], self._fields)


class EdgeCurves(NamedTuple):
    """How well the scores of all pairs identify the true edges."""

    auroc: float
    auprc: float

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with one row."""
        return data_frame([self], self._fields)


class Sortability(NamedTuple):
    """How well scales predict the causal order; 0.5 is chance."""

    variance: float
    r2: float

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with one row."""
        return data_frame([self], self._fields)


class CausalSimulation(NamedTuple):
    """A table and the graph that generated it."""

    table: Tensor  #: float64 [observations, features]
    weights: Tensor  #: float64 [features, features], A_ij of i -> j


class UsableTable(NamedTuple):
    """Observations from which a causal graph can be learned."""

    values: Tensor  #: float64 [rows, columns], without missing values
    names: list[str]  #: names of the columns; empty if the table has none
    columns: list[int]  #: numbers of the columns in the table
    dropped: list[str]  #: each dropped column and the reason
    dropped_rows: int
    filled: int  #: number of values replaced by a mean


@checked
def causal_metrics(graph: Any, truth: Any) -> CausalMetrics:
    """Compares two graphs [M, M]. Every entry other than 0 is an edge i -> j.

    Source: Peters, Buehlmann, "Structural intervention distance for evaluating causal graphs",
        2015. O(M (M + edges)).
    """
    found = graph_matrix("causal_metrics", "graph", graph)
    known = graph_matrix("causal_metrics", "truth", truth, found.names, "graph")
    counts, shares = operators.causal_metrics(found.values, known.values)
    values: list[Any] = [*counts[:6], None if counts[6] < 0 else counts[6], *shares]
    return CausalMetrics._make(values)


@checked
def edge_curves(scores: Any, truth: Any) -> EdgeCurves:
    """AUROC and average precision of scores [M, M] of all ordered pairs; nan if the truth has no
    edges or all edges."""
    found = graph_matrix("edge_curves", "scores", scores, scores=True)
    known = graph_matrix("edge_curves", "truth", truth, found.names, "scores")
    return EdgeCurves(*operators.causal_edge_curves(found.values, known.values))


@checked
def causal_sortability(table: Any, graph: Any) -> Sortability:
    """Varsortability and R2-sortability of a table [n, M] by a graph [M, M]; nan for a graph
    without edges.

    Source: Reisach, Seiler, Weichwald, NeurIPS 2021; Reisach et al., NeurIPS 2023.
    """
    values = read_columns("causal_sortability", "table", table)
    known = graph_matrix("causal_sortability", "graph", graph, values.names, "table")
    return Sortability(*operators.causal_sortability(values.values, known.values))


@checked
def causal_baselines(table: Any) -> dict[str, tuple[Tensor, Tensor]]:
    """Baselines that use no causal information: ``empty``, ``variance_sort``, ``r2_sort``, each
    (adjacency, scores)."""
    flat = operators.causal_baselines(as_double("causal_baselines", "table", table))
    return {
        name: (flat[2 * at], flat[2 * at + 1])
        for at, name in enumerate(("empty", "variance_sort", "r2_sort"))
    }


@checked(operator="simulate_causal")
def simulate(
    dag: Any = None,
    *,
    graph: GraphModel = "er",
    nodes: int = 10,
    degree: int = 2,
    observations: int = 1000,
    mechanism: Mechanism = "linear",
    noise: Noise = "gaussian",
    equal_variances: bool = True,
    weights: tuple[float, float] = (0.5, 2.0),
    seed: int = 0,
    sample_seed: int = 0,
    interventions: Mapping[Any, float] | None = None,
) -> CausalSimulation:
    """Draws a DAG, a model x_j = f_j(causes) + noise on the DAG, and observations of the model.

    Args:
        dag: a graph to use instead of a random one; its weights are drawn anew.
        graph: "er" (``degree * nodes`` edges of all pairs) or "sf" (Barabasi and Albert's growth by
            ``degree`` links).
        mechanism: "linear", "mlp" (100 sigmoid units per column) or "gp" (functions of a Gaussian
            process, summed).
        noise: "gaussian", "exponential" or "gumbel", of mean 0 and standard deviation 1.
        equal_variances: if false, every noise has its own standard deviation, 0.5 to 2.
        weights: range of the magnitudes of the weights, of either sign.
        seed: seed of graph and model; the result is the same on every machine.
        sample_seed: seed of the observations.
        interventions: columns, by number or by their name in ``dag``, set to a value in every row,
            do(x_j = v). In each row, all other columns keep the noise that they have without
            interventions.

    Raises:
        ValueError: the message names the argument, the expected value and the value received.
    """
    given = None if dag is None else graph_matrix("simulate", "dag", dag)
    count = nodes if given is None else given.values.size(0) if given.values.dim() == 2 else 0
    columns = Columns([] if given is None else given.names, count)
    set_to = dict(per_column("simulate", "interventions", "a number", interventions or {}, columns))
    try:
        drawn = operators.causal_simulate(
            None if given is None else given.values,
            graph,
            nodes,
            degree,
            observations,
            mechanism,
            noise,
            equal_variances,
            *weights,
            seed,
            sample_seed,
            list(set_to),
            [float(value) for value in set_to.values()],
        )
    except ValueError as error:
        said = str(error)
        if given is not None and graph in get_args(GraphModel):  # the operator's graph is ours
            said = said.replace("[simulate_causal] graph:", "[simulate_causal] dag:", 1)
        raise ValueError(said) from None
    return CausalSimulation(*drawn)


@checked
def usable_table(
    table: Any,
    names: Names = (),
    *,
    missing: Missing = "refuse",
    drop: bool = False,
) -> UsableTable:
    """Observations that `causal_fit` accepts: no missing value, no constant column, no two equal
    columns.

    Args:
        table: [n, M], nan for a missing value: a tensor, an array, a data frame; or a file:
            csv, tsv, npy, npz (``read_h5ad`` reads h5ad).
        names: names of the columns; a file and a data frame have their own.
        missing: "refuse"; "rows" (drop rows with missing values); "means" (fill with the mean of
            the column's other values); "likelihood" (leave them, for ``causal_fit``).
        drop: drop constant columns and copies instead of refusing them.

    Raises:
        ValueError: the message names the column and, for a missing value, the row.
    """
    if not isinstance(table, Tensor) and isinstance(table, (str, os.PathLike)):
        file = read_table(table)
        table, names = file.values, file.columns
    whole = read_columns("usable_table", "table", table)
    count = whole.values.size(1) if whole.values.dim() == 2 else 0
    names = given_names("usable_table", names, count) or whole.names
    values, columns, dropped, counts = operators.causal_usable_table(
        whole.values, names, missing, drop
    )
    return UsableTable(
        values, [names[column] for column in columns] if names else [], columns, dropped, *counts
    )


@checked
def screen_columns(table: Any, screen: int, *, by: ScreenBy = "correlation") -> Tensor:
    """Chooses columns of a table [n, M] that is too wide for :func:`causal_fit`, before any graph
    is learned.

    By correlation, the score of column j is max over i != j of abs(r_ij). There is then a bound
    that no pair with a column left out exceeds, so that such a column has at most weak direct
    effects. An effect that others cancel can be lost. By variance, the score is the variance of
    the column as it is given; use it only for columns of one unit, such as logarithms of
    normalised expression.

    Args:
        table: [n, M], nan for a missing value. The variance is that of the values present; in
            correlations the mean of the column takes the place of a gap.
        screen: number of columns to keep, 2 or more; all if the table has no more.
        by: "correlation" or "variance". Of equal scores, the smaller number comes first.

    Returns:
        int64: the numbers of the columns, ascending.

    Raises:
        ValueError, TypeError: the message names the argument.

    O(n M^2) for correlation, O(n M) for variance; O(n M) memory.

    Source: Hero, Rajaratnam, "Large-scale correlation screening", JASA 2011.
    """
    return operators.causal_screen_columns(as_double("screen_columns", "table", table), screen, by)
