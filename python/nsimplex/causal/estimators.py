"""CausalGraph: a causal graph of a table's columns, as an estimator of scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked_methods, describe
from .._printable import printable
from ..graph_files import read_table
from .arrays import Table, is_anndata, read_columns
from .confidence import confidence_of
from .contract import HAS_SKLEARN, BaseEstimator, NotFittedError, TransformerMixin
from .drawing import GraphPicture, draw_graph, to_igraph, to_networkx
from .graphs import UsableTable, usable_table
from .limits import (
    CausalLimits,
    VarianceOrderWarning,
    causal_limits,
    variance_evidence,
    variance_order,
)
from .linear_model import log_likelihood, regress
from .structure import causal_fit, fit_options

#: Columns up to which a fit looks at the order of variances, in O(M^3).
_MOST_COMPARED = 1000


class GraphEdge(NamedTuple):
    """An edge of a learned graph."""

    cause: str
    effect: str
    weight: float
    score: float  #: as in :class:`CausalFit`
    frequency: float | None  #: share of the samples that have it; None without ``confidence``
    low: float | None  #: interval of the weight
    high: float | None


@checked_methods
class CausalGraph(TransformerMixin, BaseEstimator):
    """Learns the causal graph of the columns of a table.

        graph = CausalGraph().fit(table)   # a data frame, AnnData, an array, a tensor, a file
        graph.adjacency_                   # [M, M], of the columns graph.names_
        graph.score(other)                 # log-likelihood per row, for GridSearchCV

    It is a transformer of scikit-learn if that is installed: ``clone``, pipelines, searches,
    ``set_output``, pickles and joblib work. Otherwise it has the same methods without
    ``set_output``.

    Args:
        estimator, nonlinear, standardise, threshold, seed: as in :func:`causal_fit`.
        missing, drop: as in :func:`usable_table`.
        layer, raw: which matrix of an AnnData object or an h5ad file: one of ``layers``, or
            ``raw.X``; by default ``X``.
        confidence: number of samples of the rows on which the graph is learned again, as in
            :func:`edge_confidence`; 0: none.
        resampling, n_jobs: as in :func:`edge_confidence`.
        min_frequency: drop edges that a smaller share of the samples has; needs ``confidence``.

    ``fit`` sets ``n_features_in_``; ``feature_names_in_`` if the table names all columns by
    strings; ``names_`` and ``columns_`` (names and numbers of the columns kept; without names the
    first is empty); ``dropped_`` (each dropped column and the reason); ``adjacency_`` and
    ``scores_`` [M, M]; and ``model_``. With ``confidence`` it sets ``confidence_``, an
    :class:`EdgeConfidence` of the graph before ``min_frequency``, and its ``frequencies_``.
    """

    def __init__(
        self,
        *,
        estimator: str = "order",
        nonlinear: bool = False,
        standardise: bool = False,
        threshold: float | None = None,
        missing: str = "refuse",
        drop: bool = False,
        layer: str = "",
        raw: bool = False,
        confidence: int = 0,
        resampling: str = "halves",
        min_frequency: float | None = None,
        n_jobs: int | None = None,
        seed: int = 0,
    ):
        self.estimator, self.nonlinear, self.standardise = estimator, nonlinear, standardise
        self.threshold, self.missing, self.drop = threshold, missing, drop
        self.layer, self.raw, self.seed = layer, raw, seed
        self.confidence, self.resampling = confidence, resampling
        self.min_frequency, self.n_jobs = min_frequency, n_jobs

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
        names: Sequence[str] = (),
        forbidden: Iterable[tuple[int | str, int | str]] = (),
        required: Iterable[tuple[int | str, int | str]] = (),
        tiers: Sequence[int] = (),
    ) -> CausalGraph:
        """Learns the graph of a table [n, M].

        Args:
            X: a data frame of pandas or polars, an AnnData object, an array, a tensor, a sparse
                matrix, rows of numbers, or a file with a table: csv, tsv, npy, npz, h5ad.
            y: not used; scikit-learn's pipelines pass it.
            names: names of the columns; a file and a data frame have their own.
            forbidden, required, tiers: as in :func:`causal_fit`, by the names of the columns or by
                the numbers of the columns kept.

        Raises:
            TypeError, ValueError: the message names the argument and, if it can, the column.

        Warns:
            VarianceOrderWarning: variances alone order the columns (at most 1,000); the message has
                the evidence.
            FewRowsWarning: the table has fewer rows than columns.
        """
        self._learn(self._kept(X, names), forbidden, required, tiers)
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
        search over parameters can compare graphs on rows that did not make them."""
        self._fitted("linear_")
        values = self._chosen(X)
        values = values[~values.isnan().any(dim=1)]
        if len(values) == 0:
            raise ValueError(f"[{type(self).__name__}] X: expected a row without missing values")
        return float(log_likelihood(values, self.linear_).mean())

    def limits(self, X: Any, level: float = 0.05) -> CausalLimits:
        """What the table X, usually that of the fit, cannot tell about the graph; see
        :func:`causal_limits`. Rows with missing values are left out."""
        adjacency = self._fitted("adjacency_")
        values = self._chosen(X)
        return causal_limits(
            values[~values.isnan().any(dim=1)],
            adjacency,
            names=list(self.get_feature_names_out()),
            level=level,
        )

    def edges(self) -> list[GraphEdge]:
        """The edges with the names of their columns, the surest or else the highest score first.
        ``pandas.DataFrame(graph.edges())`` makes a table of them."""
        adjacency = self._fitted("adjacency_")
        names = self.names_ or [f"x{column}" for column in self.columns_]
        sure = getattr(self, "confidence_", None)
        found = []
        for i, j in adjacency.nonzero().tolist():
            figures = (
                [each[i, j].item() for each in (sure.frequencies, sure.low, sure.high)]
                if (sure)
                else [None] * 3
            )
            weight, score = adjacency[i, j].item(), self.scores_[i, j].item()
            found.append(GraphEdge(names[i], names[j], weight, score, *figures))
        return sorted(found, key=lambda edge: (-(edge.frequency or 0), -edge.score))

    def draw(self, columns: Sequence[str | int] = (), *, most: int = 60) -> GraphPicture:
        """A picture of the graph; see :func:`draw_graph`."""
        return draw_graph(self, columns=columns, most=most)

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

    # Reading and checking of tables

    def _chosen(self, X: Any) -> Tensor:
        """The kept columns of a table, scaled."""
        columns = self._fitted("columns_")
        if isinstance(X, (str, os.PathLike)):
            table = self._read(X)
            columns = self._places(table.names, columns, os.fspath(X))
            if table.values.size(1) <= max(columns):
                self._check_size(f"[{type(self).__name__}] X", table.values, reset=False)
            self._check_finite(table)
        else:
            table = self._checked(X, reset=False)
        values = table.values[:, columns]
        if self.missing == "means":
            values = torch.where(values.isnan(), self.mean_, values)
        return self._scaled(values)

    def _read(self, path: str | os.PathLike[str]) -> Table:
        if os.fspath(path).endswith(".h5ad"):
            from .cells import read_h5ad

            cells = read_h5ad(path, self.layer, raw=self.raw)
            return Table(cells.values, cells.names)
        file = read_table(path)
        return Table(file.values, file.columns)

    def _checked(self, X: Any, reset: bool) -> Table:
        """A table in memory whose shape and names fit. With ``reset`` they become those of the
        fit."""
        place = f"[{type(self).__name__}] X"
        matrix = dict(layer=self.layer, raw=self.raw) if is_anndata(X) else {}
        table = read_columns(type(self).__name__, "X", X, **matrix)
        values = table.values
        if values.layout is not torch.strided:
            values = values.to_dense()
        if values.is_meta or values.device.type != "cpu":
            raise ValueError(f"{place}: expected a tensor on the CPU, got one on {values.device}")
        if values.dim() != 2:
            raise ValueError(
                f"{place}: expected [n, M], got {describe(X)}. Reshape your data: one row is "
                "X.reshape(1, -1), one column X.reshape(-1, 1)"
            )
        table = Table(values, table.names)
        self._check_names(X, table.names, reset)
        self._check_size(place, values, reset)
        self._check_finite(table)
        return table

    def _check_names(self, X: Any, names: list[str], reset: bool) -> None:
        own = list(getattr(X, "columns", [])) or (names if is_anndata(X) else [])
        named = bool(own) and all(isinstance(name, str) for name in own)
        if reset:
            for name in {name for name in names if names.count(name) > 1} if names else ():
                raise ValueError(
                    f"[{type(self).__name__}] X: expected different names of columns, got "
                    f"{names.count(name)} columns {printable(name)!r}"
                )
        if HAS_SKLEARN and not isinstance(X, Tensor) and not is_anndata(X):
            from sklearn.utils.validation import validate_data

            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.__dict__.pop("feature_names_in_", None)
            if named:
                import numpy

                self.feature_names_in_ = numpy.asarray(own, dtype=object)
        elif named and hasattr(self, "feature_names_in_"):
            fitted = list(self.feature_names_in_)
            if own != fitted:
                at = next(
                    (i for i, (a, b) in enumerate(zip(own, fitted)) if a != b),
                    min(len(own), len(fitted)),
                )
                expected, got = (
                    repr(each[at]) if at < len(each) else "no column" for each in (fitted, own)
                )
                raise ValueError(
                    f"[{type(self).__name__}] X: expected the columns of the fit in the same "
                    f"order, got {got} for {expected} in column {at}"
                )

    def _check_size(self, place: str, values: Tensor, reset: bool) -> None:
        rows, count = values.shape
        if reset:
            for size, least, word in ((count, 2, "feature"), (rows, 2, "sample")):
                if size < least:
                    raise ValueError(
                        f"{place}: found a table with {size} {word}(s) (shape=({rows}, {count})) "
                        f"while a minimum of {least} is required."
                    )
            self.n_features_in_ = count
            return
        if rows < 1:
            raise ValueError(
                f"{place}: found a table with 0 sample(s) (shape=({rows}, {count})) while a "
                "minimum of 1 is required."
            )
        if hasattr(self, "n_features_in_"):
            if count != self.n_features_in_:
                raise ValueError(
                    f"{place}: X has {count} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
        elif count <= max(self.columns_):  # a file that C++ wrote does not have the number
            raise ValueError(
                f"{place}: expected [n, more than {max(self.columns_)}], got {tuple(values.shape)}"
            )

    def _check_finite(self, table: Table) -> None:
        bad = table.values.isinf() if self.missing != "refuse" else ~table.values.isfinite()
        if not bad.any():
            return
        row, column = bad.nonzero()[0].tolist()
        value = table.values[row, column].item()
        name = printable(table.names[column])[:60] if table.names else column
        raise ValueError(
            f"[{type(self).__name__}] X: expected finite numbers, got "
            f"{'NaN' if value != value else value} in row {row}, column {name}"
            + ('; missing="rows" or "means" accepts missing values' if value != value else "")
        )

    def _kept(self, X: Any, names: Sequence[str]) -> UsableTable:
        """The table without what is dropped. Sets the attributes that describe the columns."""
        if isinstance(X, (str, os.PathLike)):
            self.__dict__.pop("feature_names_in_", None)
            if os.fspath(X).endswith(".h5ad"):
                table = self._read(X)
                self._check_finite(table)
                kept = usable_table(table.values, table.names, missing=self.missing, drop=self.drop)
                self.n_features_in_ = table.values.size(1)
            else:
                kept = usable_table(X, missing=self.missing, drop=self.drop)
                self.n_features_in_ = len(kept.columns) + len(kept.dropped)
        else:
            table = self._checked(X, reset=True)
            kept = usable_table(
                table.values, list(names) or table.names, missing=self.missing, drop=self.drop
            )
        self.names_, self.columns_, self.dropped_ = kept.names, kept.columns, kept.dropped
        return kept

    def _learn(
        self,
        kept: UsableTable,
        forbidden: Iterable[tuple[int | str, int | str]],
        required: Iterable[tuple[int | str, int | str]],
        tiers: Sequence[int],
    ) -> None:
        self.mean_, self.deviation_ = kept.values.mean(dim=0), kept.values.std(dim=0, correction=0)
        options = dict(
            estimator=self.estimator,
            nonlinear=self.nonlinear,
            standardise=self.standardise,
            threshold=self.threshold,
            seed=self.seed,
            forbidden=self._pairs("forbidden", forbidden),
            required=self._pairs("required", required),
            tiers=list(tiers),
        )
        fitted = causal_fit(kept.values, **options)
        self.adjacency_, self.scores_, self.model_ = fitted.adjacency, fitted.scores, fitted.model
        for name in ("confidence_", "frequencies_"):
            self.__dict__.pop(name, None)
        if self.confidence:
            self.confidence_ = confidence_of(
                kept.values,
                fitted.adjacency,
                fit_options(**options),
                replicates=self.confidence,
                resampling=self.resampling,
                n_jobs=self.n_jobs,
                seed=self.seed,
                label=type(self).__name__,
                argument="confidence",
            )
            self.frequencies_ = self.confidence_.frequencies
        if self.min_frequency is not None:
            if not self.confidence:
                raise ValueError(
                    f"[{type(self).__name__}] min_frequency: expected a number of samples, "
                    "confidence, too"
                )
            self.adjacency_ = self.confidence_.stable(self.min_frequency)
        scaled = self._scaled(kept.values)
        self.linear_ = regress(scaled, self.adjacency_)
        if len(self.adjacency_) > _MOST_COMPARED:
            return
        order, counts = variance_order(scaled, self.adjacency_ != 0)
        if evidence := variance_evidence(order, *counts):
            warnings.warn(f"[{type(self).__name__}] {evidence}", VarianceOrderWarning, stacklevel=4)

    def _pairs(
        self, argument: str, pairs: Iterable[tuple[int | str, int | str]]
    ) -> list[tuple[int, int]]:
        """Pairs of columns by the numbers of the columns kept."""

        def number(entry: int | str) -> int:
            if not isinstance(entry, str):
                return entry
            if entry not in self.names_:
                raise ValueError(
                    f"[{type(self).__name__}] {argument}: expected names of columns, got {entry!r}"
                )
            return self.names_.index(entry)

        return [(number(cause), number(effect)) for cause, effect in pairs]

    def _scaled(self, values: Tensor) -> Tensor:
        return (values - self.mean_) / self.deviation_ if self.standardise else values

    def _wraps_output(self) -> bool:
        """Whether scikit-learn makes a data frame of what ``transform`` returns."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        if own is None and HAS_SKLEARN:
            import sklearn

            own = sklearn.get_config()["transform_output"]
        return own not in (None, "default")

    def _places(self, names: list[str], columns: list[int], path: str) -> list[int]:
        """Numbers of the fit's columns in a file whose columns have these names."""
        if not self.names_ or not names:
            return columns
        for name in self.names_:
            if names.count(name) != 1:
                raise ValueError(
                    f"cannot use {path}: expected one column {name!r}, got {names.count(name)}"
                )
        return [names.index(name) for name in self.names_]

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, name):
            raise NotFittedError(f"[{type(self).__name__}] not fitted: call fit first")
        return getattr(self, name)
