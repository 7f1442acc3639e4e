"""CausalGraph: a causal graph of a table's columns, as an estimator of scikit-learn."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked_methods
from .._choices import Missing, Resampling, ScreenBy
from .._printable import printable
from .._progress import progress_calls
from .column_scale import means_and_deviations
from .columns import (
    Columns,
    KeptColumns,
    Kinds,
    Names,
    Pairs,
    Tiers,
    column_pairs,
    column_tiers,
    numbered_pairs,
)
from .confidence import check_samples, confidence_of
from .contract import BaseEstimator, NotFittedError, TransformerMixin
from .drawing import GraphPicture, draw_graph
from .few_rows import warn_of_few_rows
from .frames import row_labels
from .graph_edges import GraphEdges, edges_of
from .graph_exports import to_igraph, to_networkx
from .graph_limits import GraphLimits
from .graphs import UsableTable
from .limits import VarianceOrderWarning, scaled_within_groups, variance_evidence
from .linear_model import log_likelihood, regress
from .noise_directions import check_orientation, orient_by_noise
from .rows import row_groups, row_targets, taken_column
from .structure import FitInterrupted, FitOptions, fit_arguments, fit_quietly

#: Columns up to which a fit looks at the order of variances, in O(M^3).
_MOST_COMPARED = 1000


@checked_methods
@dataclass(kw_only=True, eq=False, repr=False)
class CausalGraph(GraphLimits, TransformerMixin, BaseEstimator, FitOptions):
    """Learns the causal graph of the columns of a table.

        graph = CausalGraph().fit(table)   # a data frame, AnnData, an array, a tensor, a file
        graph.adjacency_                   # [M, M], of the columns graph.names_
        graph.score(other)                 # log-likelihood per row, for GridSearchCV

    It is a transformer of scikit-learn if that is installed: ``clone``, pipelines, searches,
    ``set_output``, pickles and joblib work. Otherwise it has the same methods without
    ``set_output``.

    Args:
        estimator to sample, soft, seed: as in :func:`causal_fit`.
        orient_by_noise: reverse edges of the graph by noise that is not Gaussian, as
            :func:`orient_by_noise` does. Where it turns edges, scores are absolute weights. It
            needs linear effects, continuous columns without gaps, and rows of one group without
            interventions. Samples of ``confidence`` are not turned, and are refused.
        kinds: as in :func:`causal_fit`, for all columns of the table, or for some by name or
            number. Binary and category columns of a data frame may hold words.
        missing, drop: as in :func:`usable_table`; "likelihood" is that of :func:`causal_fit`.
        screen, screen_by: keep only this number of columns before the graph is learned, by the
            criterion of :func:`screen_columns`; 0: all. It needs columns that are all continuous.
        layer, raw: which matrix of an AnnData object or an h5ad file: one of ``layers``, or
            ``raw.X``; by default ``X``.
        confidence: number of samples of the rows on which the graph is learned again, as in
            :func:`edge_confidence`; 0: none.
        resampling, n_jobs: as in :func:`edge_confidence`.
        min_frequency: drop edges that a smaller share of the samples has; needs ``confidence``.

    ``fit`` sets ``n_features_in_``; ``feature_names_in_`` if the table names all columns by
    strings; ``names_`` and ``columns_`` (names and numbers of the columns kept; without names the
    first is empty); ``dropped_`` (each dropped column and the reason); ``words_`` (by the number of
    a column of words, its words; their places are the numbers); ``row_columns_`` (names of the
    columns with groups and targets; other tables may have them and need not); ``adjacency_`` and
    ``scores_`` [M, M]; and ``model_``. With ``orient_by_noise`` it sets ``noise_directions_``, a
    :class:`NoiseDirections`. With ``confidence`` it sets ``confidence_``, an
    :class:`EdgeConfidence` of the graph before ``min_frequency``, and its ``frequencies_``.
    """

    orient_by_noise: bool = False
    soft: bool = False
    kinds: Kinds | None = None
    missing: Missing = "refuse"
    drop: bool = False
    screen: int = 0
    screen_by: ScreenBy = "correlation"
    layer: str = ""
    raw: bool = False
    confidence: int = 0
    resampling: Resampling = "halves"
    min_frequency: float | None = None
    n_jobs: int | None = None
    seed: int = 0

    def set_params(self, **params: Any) -> CausalGraph:
        """Changes arguments of the constructor. Fitted attributes stay until the next ``fit``."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"[{type(self).__name__}] expected parameters of {', '.join(known)}, got "
                    f"{name!r}"
                )
        return super().set_params(**params)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        names: Names = (),
        forbidden: Pairs = (),
        required: Pairs = (),
        tiers: Tiers = (),
        groups: Any = None,
        targets: Any = None,
        progress: bool | Callable[[int, int], Any] | None = None,
    ) -> CausalGraph:
        """Learns the graph of a table [n, M].

        Args:
            X: a data frame of pandas or polars, an AnnData object, an array, a tensor, a sparse
                matrix, rows of numbers, or a file with a table: csv, tsv, npy, npz, h5ad.
            y: not used; scikit-learn's pipelines pass it.
            names: names of the columns; a file and a data frame have their own.
            forbidden, required, tiers: as in :func:`causal_fit`, by the names of the columns or by
                their numbers in X, also if ``drop`` or ``screen`` leave some out. Forbidden edges
                of those do not count, required ones are refused, and a list of tiers may be of all
                columns or of those that are kept.
            groups, targets: as in :func:`causal_fit`, one value per row of X; or the name of a
                column that has them: of a data frame or a text, where it is taken out of the table,
                or of ``obs`` of an AnnData object or an h5ad file. Targets may be names of columns,
                or their numbers in X; those on columns that are dropped do not count. In a text,
                semicolons separate several names of one row.
            progress: a bar or a function, as in :func:`causal_fit` and then, for the samples of
                ``confidence``, as in :func:`edge_confidence`.

        Raises:
            TypeError, ValueError: the message names the argument and, if it can, the column.
            FitInterrupted: as in :func:`causal_fit`. The estimator then has the best graph so far.

        Warns:
            VarianceOrderWarning: variances alone order the columns (at most 1,000); the message has
                the evidence.
            FewRowsWarning: as in :func:`causal_fit`.

        After Ctrl-C during the samples of ``confidence`` the estimator has the graph of all rows,
        without ``min_frequency``.
        """
        table = self._with_rows(X, names, groups, targets)
        with progress_calls(type(self).__name__, progress) as told:
            self._learn(*table, forbidden, required, tiers, told)
        return self

    def transform(self, X: Any) -> Any:
        """The kept columns of another table [n, all columns], in float64.

        With ``standardise``, subtract the means of the fit and divide by its standard deviations.
        With ``missing="means"``, missing values become the means of the fit; with "rows" they stay
        NaN. A file is matched by the names of its columns, in any order.

        Returns:
            A tensor if X is a tensor or a file, otherwise an array, or what ``set_output`` says.
        """
        values = self._chosen(X)
        as_tensor = isinstance(X, (Tensor, str, os.PathLike)) and not self._wraps_output()
        return values if as_tensor else values.numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """The Gaussian log-likelihood of another table under the linear model of the graph: each
        column is regressed on its causes. Mean over the rows without missing values, so that a
        search over parameters can compare graphs on rows that did not make them.

        A model that was fitted with groups has the slopes within groups and one intercept for all
        rows, because new rows may be of other groups. Differences between groups then count as
        noise, so the score is lower than that of a fit without groups if groups differ much.
        Compare scores of fits that all have groups, or of fits that all have none."""
        if hasattr(self, "adjacency_") and not hasattr(self, "linear_"):
            raise NotFittedError(
                f"[{type(self).__name__}] score: expected the linear model of a fit, which neither "
                "a given graph nor a file of C++ or of an older version has; call fit first"
            )
        self._fitted("linear_")
        values = self._chosen(X)
        values = values[~values.isnan().any(dim=1)]
        if len(values) == 0:
            raise ValueError(f"[{type(self).__name__}] X: expected a row without missing values")
        return float(log_likelihood(values, self.linear_).mean())

    def edges(self) -> GraphEdges:
        """The edges with the names of their columns, the surest or else the highest score first.
        ``edges().to_frame()`` is a data frame of pandas."""
        return edges_of(self)

    def draw(
        self,
        columns: Sequence[str | int] = (),
        *,
        most: int = 60,
        reversible: Sequence[tuple[int, int]] = (),
        truth: Any = None,
    ) -> GraphPicture:
        """A picture of the graph, beside a known one if there is ``truth``; see
        :func:`draw_graph`."""
        return draw_graph(self, columns=columns, most=most, reversible=reversible, truth=truth)

    def to_networkx(self) -> Any:
        """The graph for networkx; see :func:`to_networkx`."""
        return to_networkx(self)

    def to_igraph(self) -> Any:
        """The graph for igraph; see :func:`to_igraph`."""
        return to_igraph(self)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Any:
        """Names of the columns that ``transform`` returns, as an array; x0, x1, .. without
        names."""
        import numpy

        columns, count = self._fitted("columns_"), getattr(self, "n_features_in_", None)
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            given = [str(name) for name in input_features]
            if count is not None and len(given) != count:
                raise ValueError(
                    f"[{type(self).__name__}] input_features should have length equal to number of "
                    f"features ({count}), got {len(given)}"
                )
            if known is not None and given != list(known):
                raise ValueError(
                    f"[{type(self).__name__}] input_features is not equal to feature_names_in_"
                )
            names = [given[column] for column in columns]
        else:
            names = self.names_ or [f"x{column}" for column in columns]
        return numpy.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def _with_rows(
        self, X: Any, names: Names, groups: Any, targets: Any
    ) -> tuple[UsableTable, list[str], dict[str, Any]]:
        """The table, the names of all its columns, and what is known of the rows that it keeps."""
        label = type(self).__name__
        self._check_options(X)
        self._check_orientation(groups, targets)
        check_samples(label, self.confidence, self.resampling, self.min_frequency, self.n_jobs)
        given = {"groups": groups, "targets": targets}
        self.rows_of_fit_ = {
            name: own if isinstance(own, str) else None
            for name, own in given.items()
            if own is not None
        }
        beside = {name: own for name, own in given.items() if isinstance(own, str)}
        if len(set(beside.values())) < len(beside):
            raise ValueError(
                f"[{label}] targets: expected another column than groups, got {targets!r} for both"
            )
        if isinstance(X, (str, os.PathLike)):
            file = self._read(X, beside, reset=True)
            X, groups, targets = file.table, *(file.beside.get(name, given[name]) for name in given)
        else:
            X = self._plain(X)
            X, groups = taken_column(label, "groups", X, groups)
            X, targets = taken_column(label, "targets", X, targets)
        self.row_columns_ = list(beside.values())
        kept, all_names = self._kept(X, names)
        if groups is None and targets is None:
            return kept, all_names, dict(groups=[], targets=[])
        whole = self._checked(X, reset=False)
        rows = torch.arange(len(whole.values))
        if len(kept.values) < len(rows):
            values = whole.values
            used = ~values.isnan().all(dim=0) if self.drop else slice(None)
            rows = rows[~values[:, used].isnan().any(dim=1)]
        labels = row_labels(X)
        columns = KeptColumns(all_names, self.n_features_in_, kept.columns)
        groups = row_groups(label, groups, len(whole.values), labels)
        targets = row_targets(label, targets, len(whole.values), columns, labels)
        return (
            kept,
            all_names,
            dict(
                groups=[groups[row] for row in rows.tolist()] if groups else [],
                targets=[targets[row] for row in rows.tolist()] if targets else [],
            ),
        )

    def _learn(
        self,
        kept: UsableTable,
        all_names: list[str],
        rows: dict[str, Any],
        forbidden: Pairs,
        required: Pairs,
        tiers: Tiers,
        progress: Callable[[int, int], Any] | None,
    ) -> None:
        self.mean_, self.deviation_ = means_and_deviations(kept.values)
        kinds, label = self._kinds(kept, all_names), type(self).__name__
        columns = KeptColumns(all_names, self.n_features_in_, kept.columns)
        forbidden = [  # columns that are dropped have no edges
            pair
            for pair in column_pairs(label, "forbidden", forbidden)
            if not any(columns.is_left_out(entry) for entry in pair)
        ]
        whole = Columns(all_names, self.n_features_in_)
        known: dict[str, Any] = dict(
            forbidden=numbered_pairs(label, "forbidden", forbidden, columns),
            required=numbered_pairs(label, "required", required, columns),
            tiers=column_tiers(label, tiers, whole, kept.columns),
        )
        arguments = fit_arguments(
            self,
            seed=self.seed,
            soft=self.soft,
            kinds=kinds,
            missing="likelihood" if self.missing == "likelihood" else "refuse",
            **known,
            **rows,
        )
        named = kept.names or kept.columns
        warn_of_few_rows(f"[{label}] X", kept.values, named, stacklevel=4)
        stopped = None
        try:
            fitted = fit_quietly(kept.values, arguments, progress)
        except FitInterrupted as interrupted:
            stopped, fitted = interrupted, interrupted.fit
        except ValueError as error:
            raise ValueError(self._said_of_columns(str(error))) from None
        self.adjacency_, self.scores_, self.model_ = fitted.adjacency, fitted.scores, fitted.model
        for name in ("confidence_", "frequencies_", "noise_directions_"):
            self.__dict__.pop(name, None)
        # Ctrl-C leaves a fitted graph: here, while edges are turned, and in one of the samples.
        scaled = self._scaled(kept.values)
        self.linear_ = regress(scaled, self.adjacency_, **rows)
        if stopped is not None:
            raise stopped
        if self.orient_by_noise:
            self._turn_edges(scaled, known)
            self.linear_ = regress(scaled, self.adjacency_, **rows)
        if self.confidence:
            self.confidence_ = confidence_of(
                kept.values,
                fitted.adjacency,
                arguments,
                replicates=self.confidence,
                resampling=self.resampling,
                n_jobs=self.n_jobs,
                label=label,
                argument="confidence",
                progress=progress,
            )
            self.frequencies_ = self.confidence_.frequencies
        if self.min_frequency is not None:
            self.adjacency_ = self.confidence_.stable(self.min_frequency)
            self.linear_ = regress(scaled, self.adjacency_, **rows)
        if kinds or len(self.adjacency_) > _MOST_COMPARED:
            return
        if self.standardise and rows["groups"]:
            scaled = scaled_within_groups(scaled, rows["groups"])
        if evidence := variance_evidence(scaled, self.adjacency_, **rows):
            warnings.warn(f"[{label}] {evidence}", VarianceOrderWarning, stacklevel=4)

    def _said_of_columns(self, message: str) -> str:
        """A message of :func:`causal_fit` with the name of this class and of the table's columns.
        The function itself knows only the numbers of the columns that were kept."""

        def named(found: re.Match) -> str:
            at = int(found[1])
            if at >= len(self.columns_):
                return found[0]
            name = printable(self.names_[at])[:60] if self.names_ else self.columns_[at]
            return f"column {name}"

        message = message.replace("[causal_fit] table:", f"[{type(self).__name__}] X:")
        message = message.replace("[causal_fit]", f"[{type(self).__name__}]")
        return re.sub(r"\bcolumn (\d+)\b", named, message)

    def _check_orientation(self, groups: Any, targets: Any) -> None:
        """Refuses what :func:`orient_by_noise` would not take into account."""
        if not self.orient_by_noise:
            return
        check_orientation(
            type(self).__name__,
            nonlinear=bool(self.nonlinear),
            groups=groups is not None,
            targets=targets is not None,
            kinds=any(kind != "continuous" for _, kind in self._pairs_of_kinds()),
            likelihood=self.missing == "likelihood",
            confidence=bool(self.confidence),
        )

    def _turn_edges(self, values: Tensor, known: dict[str, Any]) -> None:
        """Turns edges of the fit by the noises of the table, and ranks pairs by their weights."""
        try:
            found = orient_by_noise(values, self.adjacency_, **known)
        except ValueError as error:
            why = str(error).removeprefix("[orient_by_noise] ")
            raise ValueError(f"[{type(self).__name__}] orient_by_noise: {why}") from None
        if found.gain > 0:
            self.adjacency_, self.scores_ = found.adjacency, found.adjacency.abs()
        self.noise_directions_ = found
