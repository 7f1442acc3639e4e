"""CausalGraph: a causal graph of a table's columns, as an estimator of scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .._arguments import checked_methods
from .._choices import Missing, Resampling, ScreenBy
from .._printable import printable
from .._progress import progress_calls
from .column_scale import means_and_deviations
from .columns import Columns, KeptColumns, Kinds, Names, Pairs, Tiers
from .confidence import check_samples, confidence_of
from .contract import (
    BaseEstimator,
    NotFittedError,
    TransformerMixin,
    feature_names_out,
    wraps_output,
)
from .curved_model import curved_log_likelihood, curved_model
from .drawing import GraphPicture, draw_graph
from .few_rows import warn_of_few_rows
from .fitted_model import FittedModel
from .graph_edges import GraphEdges, edges_of
from .graph_exports import to_igraph, to_networkx
from .graphs import UsableTable
from .limits import CausalLimits, VarianceOrderWarning, scaled_within_groups, variance_evidence
from .linear_model import log_likelihood, regress
from .noise_directions import check_orientation
from .prior_knowledge import PriorKnowledge, numbered_knowledge
from .structure import FitInterrupted, FitOptions, fit_arguments, fit_quietly, settled
from .table_limits import limits_of
from .table_warnings import warn_of_table

#: Columns up to which a fit looks at the order of variances, in O(M^3).
_MOST_COMPARED = 1000


@checked_methods
@dataclass(kw_only=True, eq=False, repr=False)
class CausalGraph(FittedModel, TransformerMixin, BaseEstimator, FitOptions):
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
            :func:`orient_by_noise` does, here and in the samples of ``confidence``. Where it turns
            edges, scores are absolute weights. It needs linear effects, continuous columns without
            gaps, and rows of one group without interventions.
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
        min_frequency: drop edges whose direction a smaller share of the samples has; needs
            ``confidence``. An edge of open direction counts a half.

    ``fit`` sets ``n_features_in_``; ``feature_names_in_`` if the table names all columns by
    strings; ``names_`` and ``columns_`` (names and numbers of the columns kept; without names the
    first is empty); ``dropped_`` (each dropped column and the reason); ``words_`` (by the number of
    a column of words, its words; their places are the numbers); ``row_columns_`` (names of the
    columns with groups and targets; other tables may have them and need not); ``adjacency_`` and
    ``scores_`` [M, M]; ``cpdag_`` [M, M], the edges, with both entries of those whose direction the
    data and prior knowledge leave open; ``model_``; and ``choices_``, a :class:`FitChoices`, whose
    ``findings`` say why "auto" chose what it chose. If noises were asked for directions, it sets
    ``noise_directions_``, a :class:`NoiseDirections`. With ``confidence`` it sets ``confidence_``,
    an :class:`EdgeConfidence` of the graph before ``min_frequency``, and its ``frequencies_``.
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
        exogenous: Names | Sequence[int] = (),
        sinks: Names | Sequence[int] = (),
        paths: Pairs = (),
        groups: Any = None,
        targets: Any = None,
        blocks: Any = None,
        progress: bool | Callable[[int, int], Any] | None = None,
    ) -> CausalGraph:
        """Learns the graph of a table [n, M].

        Args:
            X: a data frame of pandas or polars, an AnnData object, an array, a tensor, a sparse
                matrix, rows of numbers, or a file with a table: csv, tsv, npy, npz, h5ad.
            y: not used; scikit-learn's pipelines pass it.
            names: names of the columns; a file and a data frame have their own.
            forbidden to paths: as in :func:`causal_fit`, by the names of the columns or by their
                numbers in X, also if ``drop`` or ``screen`` leave some out. Forbidden edges of
                those do not count, required edges and paths are refused, and a list of tiers may be
                of all columns or of those that are kept.
            groups, targets: as in :func:`causal_fit`, one value per row of X; or the name of a
                column that has them: of a data frame or a text, where it is taken out of the table,
                or of ``obs`` of an AnnData object or an h5ad file. Targets may be names of columns,
                or their numbers in X; those on columns that are dropped do not count. In a text,
                semicolons separate several names of one row.
            blocks: rows that stay together in the samples of ``confidence``, as in
                :func:`edge_confidence`; or the name of a column, as for ``groups``.
            progress: a bar or a function, as in :func:`causal_fit` and then, for the samples of
                ``confidence``, as in :func:`edge_confidence`.

        Raises:
            TypeError, ValueError: the message names the argument and, if it can, the column.
            FitInterrupted: as in :func:`causal_fit`. The estimator then has the best graph so far.

        Warns:
            TableWarning: as in :func:`causal_fit`.
            VarianceOrderWarning: variances alone order the columns (at most 1,000); the message has
                the evidence.
            FewRowsWarning: as in :func:`causal_fit`.

        After Ctrl-C during the samples of ``confidence`` the estimator has the graph of all rows,
        without ``min_frequency``.
        """
        self._check(X, groups, targets, blocks)
        known = PriorKnowledge(
            forbidden=forbidden,
            required=required,
            tiers=tiers,
            exogenous=exogenous,
            sinks=sinks,
            paths=paths,
        )
        given = dict(groups=groups, targets=targets, blocks=blocks)
        table = self._table.read_for_fit(X, names, given)
        with progress_calls(type(self).__name__, progress) as told:
            self._learn(*table, known, told)
        return self

    def transform(self, X: Any) -> Any:
        """The kept columns of another table [n, all columns], in float64.

        With ``standardise``, subtract the means of the fit and divide by its standard deviations.
        With ``missing="means"``, missing values become the means of the fit; with "rows" they stay
        NaN. A file is matched by the names of its columns, in any order.

        Returns:
            A tensor if X is a tensor or a file, otherwise an array, or what ``set_output`` says.
        """
        values = self._table.chosen(X)
        as_tensor = isinstance(X, (Tensor, str, os.PathLike)) and not wraps_output(self)
        return values if as_tensor else values.numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """The Gaussian log-likelihood of another table, in its units, under the model of the graph:
        each column is regressed on its causes, by smooth functions if effects are curves and by
        lines otherwise. Mean over the rows without missing values, so that a search over parameters
        can compare graphs on rows that did not make them. Columns of ``kinds`` count as numbers.

        A model that was fitted with groups has the slopes within groups and one intercept for all
        rows, because new rows may be of other groups. Differences between groups then count as
        noise, so the score is lower than that of a fit without groups if groups differ much.
        Compare scores of fits that all have groups, or of fits that all have none."""
        lacks = not hasattr(self, "linear_") or (self._curved() and not hasattr(self, "curves_"))
        if hasattr(self, "adjacency_") and lacks:
            raise NotFittedError(
                f"[{type(self).__name__}] score: expected the model of a fit, which neither a "
                "given graph nor a file of C++, of an older version or of a nonlinear fit has; "
                "call fit first"
            )
        self._fitted("linear_")
        values = self._table.chosen(X)
        values = values[~values.isnan().any(dim=1)]
        if len(values) == 0:
            raise ValueError(f"[{type(self).__name__}] X: expected a row without missing values")
        curves = getattr(self, "curves_", None)
        if curves is None:
            found = log_likelihood(values, self.linear_)
        else:
            found = curved_log_likelihood(values, curves)
        # Densities of the scaled columns become those of the columns.
        units = self.deviation_.log().sum() if self.standardise else 0.0
        return float(found.mean() - units)

    def limits(
        self, X: Any, level: float = 0.05, *, groups: Any = None, targets: Any = None
    ) -> CausalLimits:
        """What the table X, usually that of the fit, cannot tell about the graph; see
        :func:`causal_limits`. Rows with missing values are left out, and so are rows with
        interventions. All columns must be continuous.

        Args:
            level: as in :func:`causal_limits`.
            groups, targets: of the rows of X, as in :meth:`CausalGraph.fit`. If the fit had them,
                they are needed here, too; a name of a column that ``fit`` got counts again.

        Raises:
            ValueError, TypeError: the message names the argument.
        """
        return limits_of(self._table, X, level, dict(groups=groups, targets=targets))

    def edges(self) -> GraphEdges:
        """The edges with the names of their columns, the surest or else the highest score first.
        ``edges().to_frame()`` is a data frame of pandas."""
        return edges_of(self)

    def draw(
        self,
        columns: Sequence[str | int] = (),
        *,
        most: int = 60,
        reversible: Sequence[tuple[int, int]] | None = None,
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
        return feature_names_out(self, input_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def _fitted(self, name: str) -> Any:
        return self._table.fitted(name)

    def _check(self, X: Any, groups: Any, targets: Any, blocks: Any) -> None:
        """Refuses parameters that are wrong or have no use for the table."""
        self._table.check_options(X)
        label = type(self).__name__
        if self.orient_by_noise:
            kinds = any(kind != "continuous" for _, kind in self._table.pairs_of_kinds())
            known = dict(groups=groups is not None, targets=targets is not None, kinds=kinds)
            check_orientation(label, self, **known)
        check_samples(label, self, blocks)

    def _learn(
        self,
        kept: UsableTable,
        all_names: list[str],
        rows: dict[str, Any],
        given: PriorKnowledge,
        progress: Callable[[int, int], Any] | None,
    ) -> None:
        blocks = rows.pop("blocks")
        self.mean_, self.deviation_ = means_and_deviations(kept.values)
        kinds, label = self._table.kinds(kept, all_names), type(self).__name__
        width: int = self._fitted("n_features_in_")
        columns = KeptColumns(all_names, width, kept.columns)
        whole = Columns(all_names, width)
        known = numbered_knowledge(label, given, columns, whole, kept.columns)
        arguments = fit_arguments(
            self,
            seed=self.seed,
            soft=self.soft,
            kinds=kinds,
            missing="likelihood" if self.missing == "likelihood" else "refuse",
            orient_by_noise=self.orient_by_noise,
            **known,
            **rows,
        )
        named = kept.names or kept.columns
        warn_of_few_rows(f"[{label}] X", kept.values, named, stacklevel=4)
        shown = [printable(str(name))[:60] for name in named]
        stopped = None
        try:
            fitted = fit_quietly(kept.values, arguments, progress, names=shown)
        except FitInterrupted as interrupted:
            stopped, fitted = interrupted, interrupted.fit
        except ValueError as error:
            said = str(error).removeprefix("[causal_fit] ")
            said = f"X:{said.removeprefix('table:')}" if said.startswith("table:") else said
            raise ValueError(f"[{label}] {said}") from None
        self.adjacency_, self.scores_, self.model_ = fitted.adjacency, fitted.scores, fitted.model
        self.cpdag_, self.choices_ = fitted.cpdag, fitted.choices
        for name in ("confidence_", "frequencies_", "noise_directions_"):
            self.__dict__.pop(name, None)
        if fitted.noise is not None:
            self.noise_directions_ = fitted.noise
        # Ctrl-C leaves a fitted graph: here, and in one of the samples.
        scaled = self._table.scaled(kept.values)
        self._regress(scaled, rows)
        if stopped is not None:
            raise stopped
        arguments = settled(arguments, fitted.choices)
        if self.confidence:
            self.confidence_ = confidence_of(
                kept.values,
                fitted.adjacency,
                arguments,
                replicates=self.confidence,
                resampling=self.resampling,
                blocks=blocks,
                n_jobs=self.n_jobs,
                label=label,
                argument="confidence",
                progress=progress,
            )
            self.frequencies_ = self.confidence_.frequencies
        if self.min_frequency is not None:
            self.adjacency_ = self.confidence_.stable(self.min_frequency)
            kept_edges = self.adjacency_ != 0
            self.cpdag_ = self.cpdag_ & (kept_edges | kept_edges.T)
            self._regress(scaled, rows)
        warn_of_table(
            f"[{label}] X",
            kept.values,
            fitted.adjacency,
            fitted.model,
            arguments,
            named,
            stacklevel=4,
        )
        if fitted.choices.kinds or len(self.adjacency_) > _MOST_COMPARED:
            return
        if self.standardise and rows["groups"]:
            scaled = scaled_within_groups(scaled, rows["groups"])
        if evidence := variance_evidence(scaled, self.adjacency_, **rows):
            warnings.warn(f"[{label}] {evidence}", VarianceOrderWarning, stacklevel=4)

    def _regress(self, values: Tensor, rows: dict[str, Any]) -> None:
        """Fits the models by which ``score`` compares tables."""
        self.linear_ = regress(values, self.adjacency_, **rows)
        curved = self._curved() and not rows["groups"]
        self.curves_ = curved_model(values, self.adjacency_) if curved else None

    def _curved(self) -> bool:
        """Whether the fit has curved effects, by its options or its choice."""
        return self.nonlinear or (hasattr(self, "choices_") and self.choices_.nonlinear)
