"""How an estimator reads a table, checks it and keeps some of its columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from .._arguments import check_parameters, describe
from .._choices import Missing, ScreenBy
from .._printable import printable
from .arrays import Table, read_columns
from .columns import Columns, Names, given_names
from .contract import HAS_SKLEARN, NotFittedError
from .frames import column_names, frame_labels, is_anndata, is_frame, plain_table
from .graphs import UsableTable, screen_columns, usable_table
from .rows import without_column
from .table_files import FileTable, read_table_file

__all__ = ["TableReading"]

_DROP = "; drop=True leaves such columns out"


class TableReading:
    """Tables of an estimator: read by its parameters ``missing``, ``drop``, ``screen``,
    ``screen_by``, ``layer`` and ``raw``.

    A fit sets ``names_``, ``columns_``, ``dropped_``, ``words_``, ``row_columns_``,
    ``table_names_``, ``n_features_in_`` and ``feature_names_in_`` here; other tables are compared
    with them.
    """

    # The estimator's parameters, and what its fit computes.
    missing: Missing
    drop: bool
    layer: str
    raw: bool
    screen: int
    screen_by: ScreenBy
    standardise: bool
    mean_: Tensor
    deviation_: Tensor

    def _word_columns(self) -> list[int | str]:
        """Names or numbers of the columns that may hold words."""
        return []

    def _check_means(self, values: Tensor, names: Sequence[str]) -> None:
        """Refuses gaps that ``missing="means"`` would fill, if they have no mean."""

    def _chosen(self, X: Any) -> Tensor:
        """The kept columns of a table, scaled."""
        columns = self._fitted("columns_")
        beside = getattr(self, "row_columns_", [])
        if isinstance(X, (str, os.PathLike)):
            table = self._read(X, reset=False).table
            columns = self._places(table.names, columns, os.fspath(X))
            if table.values.size(1) <= max(columns):
                self._check_size(f"[{type(self).__name__}] X", table.values, reset=False)
        else:
            X = self._plain(X)
            for name in beside:
                X = without_column(X, name)
            table = self._checked(X, reset=False)
        values = table.values[:, columns]
        self._check_finite(values, self.names_ or self.columns_)
        if self.missing == "means":
            values = torch.where(values.isnan(), self.mean_, values)
        return self._scaled(values)

    def _read(
        self,
        path: str | os.PathLike[str],
        beside: Mapping[str, str] = MappingProxyType({}),
        *,
        reset: bool,
    ) -> FileTable:
        """A file. Without ``reset``, it has the words of the fit, and only the columns of the fit
        are read if they have names; without names, those that described its rows are left out."""
        words: Any = self._word_columns()
        known: dict[Any, list[str] | None] | None = None
        only: list[str] | None = None
        if not reset:
            known = dict(self._known_words())
            if self.names_:
                only = self.names_
                known = {name: known[at] for name, at in zip(only, self.columns_) if at in known}
            words = list(known)
        return read_table_file(
            type(self).__name__,
            path,
            beside=beside,
            skip=() if reset else getattr(self, "row_columns_", ()),
            only=only,
            words=words,
            known=known,
            layer=self.layer,
            raw=self.raw,
        )

    def _known_words(self) -> dict[int, list[str] | None]:
        """By the number of a column of words, those of the fit; None for a column that it dropped,
        which may hold others."""
        kept = set(self.columns_)
        own = getattr(self, "words_", {})
        return {column: words if column in kept else None for column, words in own.items()}

    def _plain(self, X: Any) -> Any:
        """A table in a form whose columns can be chosen by name."""
        plain = isinstance(X, (Tensor, Table, str, os.PathLike))
        return X if plain else plain_table(f"[{type(self).__name__}] X", X)

    def _checked(self, X: Any, reset: bool) -> Table:
        """A table in memory whose shape and names fit. With ``reset`` they become those of the
        fit."""
        place = f"[{type(self).__name__}] X"
        matrix: dict[str, Any] = dict(layer=self.layer, raw=self.raw) if is_anndata(X) else {}
        if self._word_columns() and is_frame(X):
            columns = Columns(column_names(X), X.shape[1])
            if reset:
                matrix["words"] = {columns.find(word) for word in self._word_columns()}
            else:
                matrix["words"] = matrix["known"] = dict(self._known_words())
        table = X if isinstance(X, Table) else read_columns(type(self).__name__, "X", X, **matrix)
        if reset:
            self.words_ = dict(table.words)
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
        table = table._replace(values=values)
        self._check_names(X, table.names, reset)
        self._check_size(place, values, reset)
        if reset:
            self._check_finite(values, table.names)
        return table

    def _check_options(self, X: Any) -> None:
        """Refuses options that the table has no use for, and wrong ones that it does not need."""
        check_parameters(self)
        name, label = type(self).__name__, "layer" if self.layer else "raw"
        path = os.fspath(X) if isinstance(X, (str, os.PathLike)) else ""
        if (self.layer or self.raw) and not is_anndata(X) and not path.endswith(".h5ad"):
            raise ValueError(
                f"[{name}] {label}: expected an AnnData object or an h5ad file, got "
                f"{describe(path or X)}"
            )
        if self.screen == 1 or self.screen < 0:
            raise ValueError(f"[{name}] screen: expected 0 or at least 2, got {self.screen}")
        if self.screen_by not in ("correlation", "variance"):
            raise ValueError(
                f'[{name}] screen_by: expected "correlation" or "variance", got '
                f"{describe(self.screen_by)}"
            )

    def _check_names(self, X: Any, names: list[str], reset: bool) -> None:
        labels = names if is_anndata(X) else frame_labels(X)
        texts = all(isinstance(label, str) for label in labels)
        if reset:
            for name in {name for name in names if names.count(name) > 1} if names else ():
                raise ValueError(
                    f"[{type(self).__name__}] X: expected different names of columns, got "
                    f"{names.count(name)} columns {printable(name)!r}"
                )
        fitted = getattr(self, "feature_names_in_", None)
        if HAS_SKLEARN and texts and not isinstance(X, (Tensor, Table)) and not is_anndata(X):
            if reset or fitted is not None or not (labels and self._all_names()):
                from sklearn.utils.validation import validate_data

                validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.__dict__.pop("feature_names_in_", None)
            if labels and texts:
                import numpy

                self.feature_names_in_ = numpy.asarray(labels, dtype=object)
        if not reset:
            self._compare_names(labels, names, texts)

    def _compare_names(self, labels: list[Any], names: list[str], texts: bool) -> None:
        """Refuses a table whose columns have other names than those of the fit, or another order.
        Labels that are not texts are compared with the numbers of the columns, if the fit had no
        names; the labels 0, 1, .. are names if those of the fit are numbers."""
        expected = self._all_names()
        if labels and not names and Columns(expected, len(expected)).has_numbers():
            names = [str(label) for label in labels]
        if not names or (texts and not expected):
            return
        expected = expected or [str(at) for at in range(len(names))]
        known = getattr(self, "table_names_", None) is not None or not self.names_
        for at in range(max(len(names), len(expected))) if known else self.columns_:
            own, fit = (each[at] if at < len(each) else None for each in (names, expected))
            if own != fit:
                got, wanted = (
                    "no column" if name is None else repr(printable(name)[:60])
                    for name in (own, fit)
                )
                raise ValueError(
                    f"[{type(self).__name__}] X: expected the columns of the fit in the same "
                    f"order, got {got} for {wanted} in column {at}"
                )

    def _all_names(self) -> list[str]:
        """The names of the fit's table; if the columns have no names, those that were dropped have
        empty ones."""
        own = getattr(self, "table_names_", None)
        if own is not None:
            return own
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        names, columns = getattr(self, "names_", []), getattr(self, "columns_", [])
        if not (names and columns):
            return []
        place = dict(zip(columns, names))
        return [place.get(at, "") for at in range(1 + max(columns))]

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

    def _check_finite(self, values: Tensor, names: Sequence[str | int]) -> None:
        bad = values.isinf() if self.missing != "refuse" else ~values.isfinite()
        if not bad.any():
            return
        row, column = bad.nonzero()[0].tolist()
        value = values[row, column].item()
        name = printable(str(names[column]))[:60] if names else column
        raise ValueError(
            f"[{type(self).__name__}] X: expected finite numbers, got "
            f"{'NaN' if value != value else value} in row {row}, column {name}"
            + (
                '; missing="rows", "means" or "likelihood" accepts missing values'
                if value != value
                else ""
            )
        )

    def _kept(self, X: Any, names: Names) -> tuple[UsableTable, list[str]]:
        """The table without what is dropped, and the names of all columns. Sets the attributes that
        describe the columns."""
        table = self._checked(X, reset=True)
        given = given_names(type(self).__name__, names, table.values.size(1))
        named = given or table.names
        self._check_means(table.values, named)
        try:
            kept = usable_table(table.values, named, missing=self.missing, drop=self.drop)
        except ValueError as error:
            why = str(error).removeprefix("[usable_table] cannot use the table: ")
            hint = "" if self.drop or not why.startswith("column ") else _DROP
            raise ValueError(f"[{type(self).__name__}] X: {why}{hint}") from None
        kept = self._screened(kept)
        self.names_, self.columns_, self.dropped_ = kept.names, kept.columns, kept.dropped
        self.table_names_ = table.names or named
        return kept, named

    def _screened(self, kept: UsableTable) -> UsableTable:
        """The columns that ``screen`` keeps."""
        if self.screen == 0:
            return kept
        try:
            places = screen_columns(kept.values, self.screen, by=self.screen_by).tolist()
        except ValueError as error:
            why = str(error).replace("[screen_columns] by:", "[screen_columns] screen_by:")
            why = why.removeprefix("[screen_columns] ")
            raise ValueError(f"[{type(self).__name__}] {why}") from None
        return kept._replace(
            values=kept.values[:, places],
            names=[kept.names[at] for at in places] if kept.names else [],
            columns=[kept.columns[at] for at in places],
        )

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
