"""What a fitted graph answers: effects, samples, interventions and counterfactuals."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._hints import is_bool
from .._library import operators
from .._printable import printable
from .arrays import graph_matrix
from .confidence import EdgeConfidence
from .effects import CausalEffect, GraphCheck, causal_effect, check_causal_graph
from .limits import comparable_rows, completed_graph
from .linear_model import LinearModel
from .table_limits import columns_of_fit, rows_for_limits
from .table_reading import FitTable

__all__ = ["FittedModel"]


class FittedModel:
    """The answers of a fitted :class:`CausalGraph` with linear effects.

    Numbers are in the units of the table of the fit, also with ``standardise``.
    """

    @property
    def _table(self) -> FitTable:
        """The table of the fit, by which others are read."""
        return FitTable(self)

    @checked(name="CausalGraph")
    def effect(
        self,
        X: Any,
        cause: str | int,
        effect: str | int,
        *,
        level: float = 0.95,
        groups: Any = None,
        targets: Any = None,
    ) -> CausalEffect:
        """The total effect of a column on another, estimated from the table X, usually that of the
        fit; see :func:`causal_effect`. Edges that ``cpdag_`` leaves open have both directions, so
        that the effect may have several values; a pipeline from a file of C++ has no ``cpdag_``,
        and the directions of its graph count as told. After a fit with ``confidence`` the interval
        is that over the graphs of the samples.

        Args:
            X, groups, targets: as in :meth:`CausalGraph.limits`.
            cause, effect: columns by their names or their numbers in the table.
            level: of the interval.

        Raises:
            ValueError, TypeError: the message names the argument.
        """
        table = self._table
        rows = _plain_rows(table, "effect", X, groups, targets)
        known = columns_of_fit(table)
        places = [
            _column(table, argument, entry, known)
            for argument, entry in (("cause", cause), ("effect", effect))
        ]
        sure = getattr(self, "confidence_", None)
        graph = _open_graph(table)
        return causal_effect(
            rows,
            graph,
            *places,
            names=_names(table),
            level=level,
            samples=sample_graphs(sure, _has_lines(graph)) if sure else (),
        )

    @checked(name="CausalGraph")
    def check_graph(
        self,
        X: Any,
        graph: Any,
        *,
        level: float = 0.05,
        permutations: int = 200,
        groups: Any = None,
        targets: Any = None,
    ) -> GraphCheck:
        """Tests somebody's own graph of the columns of the fit on the table X, beside the learned
        one; see :func:`check_causal_graph`.

        Args:
            graph: [M, M], of the columns of the fit; names of a data frame are matched.
            X, groups, targets: as in :meth:`CausalGraph.limits`.
            level, permutations: as in :func:`check_causal_graph`.
        """
        rows = _plain_rows(self._table, "check_graph", X, groups, targets)
        names = _names(self._table)
        return check_causal_graph(
            rows,
            _matched(graph, names),
            learned=self._table.fitted("adjacency_").to_dense(),
            names=names,
            level=level,
            permutations=permutations,
        )

    @checked(name="CausalGraph")
    def sample_rows(self, rows: int, *, seed: int = 0) -> Any:
        """Rows of the fitted linear model with Gaussian noise, [rows, M].

        Returns:
            An array of the columns ``names_``.
        """
        return self._drawn("sample_rows", rows, {}, seed)

    @checked(name="CausalGraph")
    def intervene(self, do: Mapping[Any, float], rows: int, *, seed: int = 0) -> Any:
        """Rows of the fitted linear model in which an intervention has set columns, [rows, M].

            treated = graph.intervene({"dose": 2.0}, 1000)
            treated.mean(axis=0)                         # the expected value of every column

        Args:
            do: the value of each column that is set, by its name or number.
            rows: how many.
            seed: of the noise. Calls of one seed have the same noise in each row, whatever is set.
        """
        return self._drawn("intervene", rows, do, seed)

    @checked(name="CausalGraph")
    def counterfactual(self, X: Any, do: Mapping[Any, float]) -> Any:
        """What the rows of X would have been if ``do`` had set columns: the noise of each row stays
        as it was (Pearl, "Causality", 2009, theorem 7.1.7).

        Args:
            X: a table with the columns of the fit, without missing values.
            do: as in :meth:`intervene`.
        """
        table = self._table
        model = model_in_units(table, "counterfactual")
        values = _unscaled(table, table.chosen(X))
        columns, set_to = _interventions(table, do)
        found = operators.causal_counterfactual(
            model.coefficients, model.intercepts, values, columns, set_to
        )
        return found if isinstance(X, (Tensor, str, os.PathLike)) else found.numpy()

    def _drawn(self, method: str, rows: int, do: Mapping[Any, float], seed: int) -> Any:
        model = model_in_units(self._table, method)
        found = operators.causal_sample_model(
            *model[:3], rows, *_interventions(self._table, do), seed
        )
        return found.numpy()


def model_in_units(table: FitTable, method: str) -> LinearModel:
    """The linear model of a fit in the units of its table."""
    _check_linear(table, method)
    own = table.fitted("linear_")
    factor = torch.ones_like(own.intercepts)
    if own.exponents is not None:
        factor = torch.exp2(own.exponents)
    mean = torch.zeros_like(factor)
    if table.of.standardise:
        factor, mean = factor * table.fitted("deviation_"), table.fitted("mean_")
    coefficients = own.coefficients * factor / factor[:, None]
    intercepts = mean + own.intercepts * factor - mean @ coefficients
    return LinearModel(coefficients, intercepts, own.variances * factor.square())


def sample_graphs(sure: EdgeConfidence, open_edges: bool) -> list[Tensor]:
    """The graphs [M, M] of the samples. ``open_edges``: directions that covariances do not tell are
    open in them, too."""
    graphs = []
    for pairs in sure.graphs:
        graph = torch.zeros_like(sure.adjacency)
        graph[pairs[:, 0], pairs[:, 1]] = 1
        graphs.append(graph)
    if open_edges and not any(map(_has_lines, graphs)):
        graphs = [completed_graph(graph).double() for graph in graphs]
    return graphs


def _has_lines(graph: Tensor) -> bool:
    """Whether a pair of columns has both entries."""
    return bool(((graph != 0) & (graph.T != 0)).any())


def _check_linear(table: FitTable, method: str) -> None:
    if table.of._curved():
        got = "nonlinear=True" if table.of.nonlinear else 'curves, which "auto" chose'
        raise ValueError(
            f"[{table.label}] {method}: expected a fit with linear effects, got {got}; "
            'estimator="order" without nonlinear fits lines'
        )
    kinds = [kind for _, kind in table.pairs_of_kinds() if kind != "continuous"]
    if kinds:
        raise ValueError(
            f"[{table.label}] {method}: expected continuous columns, got one of kind {kinds[0]}"
        )


def _plain_rows(table: FitTable, method: str, X: Any, groups: Any, targets: Any) -> Tensor:
    """The rows of X that count, in its units."""
    _check_linear(table, method)
    values, known, own = rows_for_limits(table, X, dict(groups=groups, targets=targets))
    values = _unscaled(table, values)
    return comparable_rows(values, known, own) if known or own else values


def _unscaled(table: FitTable, values: Tensor) -> Tensor:
    """Values as the fit scales them, in the units of its table."""
    if not table.of.standardise:
        return values
    return values * table.fitted("deviation_") + table.fitted("mean_")


def _open_graph(table: FitTable) -> Tensor:
    """The graph of a fit with both entries of an edge of open direction."""
    adjacency = table.fitted("adjacency_").to_dense()
    told = getattr(table.of, "cpdag_", None)
    return adjacency if told is None else torch.as_tensor(told).double()


def _names(table: FitTable) -> list[str]:
    return [str(name) for name in table.of.get_feature_names_out()]


def _matched(graph: Any, names: list[str]) -> Any:
    return graph_matrix("CausalGraph", "graph", graph, names, "the fit").values


def _column(table: FitTable, argument: str, entry: Any, columns: Any) -> int:
    found = columns.find(entry)
    if found is None:
        left_out = ", which the fit left out" if columns.is_left_out(entry) else ""
        raise ValueError(
            f"[{table.label}] {argument}: expected {columns.expected()}, got "
            f"{printable(repr(entry))[:60]}{left_out}"
        )
    return found


def _interventions(table: FitTable, do: Mapping[Any, float]) -> tuple[list[int], list[float]]:
    """The columns that are set, by their numbers among those kept, and the values."""
    known = columns_of_fit(table)
    columns: list[int] = []
    values: list[float] = []
    for entry, value in do.items():
        if is_bool(value) or not isinstance(value, numbers.Real):
            raise TypeError(
                f"[{table.label}] do: expected a number per column, got {describe(value)}"
            )
        columns.append(_column(table, "do", entry, known))
        values.append(float(value))
    return columns, values
