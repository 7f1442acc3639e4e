"""How an estimator reads the table of its fit, and others like it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from .._arguments import check_parameters, describe
from .._printable import printable
from .arrays import Table, read_columns
from .columns import (
    Columns,
    KeptColumns,
    Names,
    column_kinds,
    given_names,
    of_columns,
)
from .contract import HAS_SKLEARN, NotFittedError
from .frames import (
    column_names,
    frame_labels,
    is_anndata,
    is_frame,
    plain_table,
    row_labels,
)
from .graphs import UsableTable, screen_columns, usable_table
from .rows import (
    check_different_columns,
    row_blocks,
    row_groups,
    row_targets,
    taken_column,
    without_column,
)
from .table_files import FileTable, read_table_file

__all__ = ["FitTable"]

_DROP = "; drop=True leaves such columns out"


class FitTable:
    """The table of an estimator's fit.

    The estimator's parameters ``missing``, ``drop``, ``screen``, ``screen_by``, ``layer``, ``raw``
    and ``kinds`` say how tables are read. Its fitted attributes ``names_``, ``columns_``,
    ``dropped_``, ``words_``, ``row_columns_``, ``table_names_``, ``n_features_in_`` and
    ``feature_names_in_`` say what the table was; other tables are compared with them.
    """

    def __init__(self, estimator: Any):
        self.of = estimator
        self.label = type(estimator).__name__

    def read_for_fit(
        self, X: Any, names: Names, given: dict[str, Any]
    ) -> tuple[UsableTable, list[str], dict[str, Any]]:
        """The table of a fit, the names of all its columns, and what is known of the rows that it
        keeps. ``given``: groups, targets and blocks. Sets the attributes of the table."""
        label = self.label
        beside = {name: own for name, own in given.items() if isinstance(own, str)}
        of_graph = [name for name in ("groups", "targets") if given[name] is not None]
        self.of.rows_of_fit_ = {name: beside.get(name) for name in of_graph}
        check_different_columns(label, beside)
        if isinstance(X, (str, os.PathLike)):
            file = self.read(X, beside, reset=True)
            X, rows = file.table, {name: file.beside.get(name, given[name]) for name in given}
        else:
            whole = self.plain(X)
            rows = {name: taken_column(label, name, whole, own)[1] for name, own in given.items()}
            X = whole
            for column in beside.values():
                X = without_column(X, column)
        self.of.row_columns_ = list(beside.values())
        kept, all_names = self._kept(X, names)
        if all(own is None for own in rows.values()):
            return kept, all_names, {name: [] for name in rows}
        values = self._checked(X, reset=False).values
        used = torch.arange(len(values))
        if len(kept.values) < len(used):
            empty = values.isnan()
            filled = empty[:, ~empty.all(dim=0)] if self.of.drop else empty
            used = used[~filled.any(dim=1)]
        labels = row_labels(X)
        columns = KeptColumns(all_names, self.of.n_features_in_, kept.columns)
        groups = row_groups(label, rows["groups"], len(values), labels)
        targets = row_targets(label, rows["targets"], len(values), columns, labels)
        blocks = row_blocks(label, rows["blocks"], len(values), labels)
        known: dict[str, list] = dict(groups=groups, targets=targets, blocks=blocks)
        chosen = {name: [own[row] for row in used.tolist()] for name, own in known.items() if own}
        return kept, all_names, {name: chosen.get(name, []) for name in known}

    def chosen(self, X: Any) -> Tensor:
        """The kept columns of a table, scaled."""
        columns = self.fitted("columns_")
        beside = getattr(self.of, "row_columns_", [])
        if isinstance(X, (str, os.PathLike)):
            table = self.read(X, reset=False).table
            columns = self._places(table.names, columns, os.fspath(X))
            if table.values.size(1) <= max(columns):
                self._check_size(f"[{self.label}] X", table.values, reset=False)
        else:
            X = self.plain(X)
            for name in beside:
                X = without_column(X, name)
            table = self._checked(X, reset=False)
        values = table.values[:, columns]
        self._check_finite(values, self.of.names_ or self.of.columns_)
        if self.of.missing == "means":
            values = torch.where(values.isnan(), self.of.mean_, values)
        return self.scaled(values)

    def read(
        self,
        path: str | os.PathLike[str],
        beside: Mapping[str, str] = MappingProxyType({}),
        *,
        reset: bool,
    ) -> FileTable:
        """A file. Without ``reset``, it has the words of the fit, and only the columns of the fit
        are read if they have names; without names, those that described its rows are left out."""
        words: Any = self._word_columns()
        known: Any = None
        only: Any = None
        if not reset:
            known = dict(self._known_words())
            if self.of.names_:
                only = self.of.names_
                known = {name: known[at] for name, at in zip(only, self.of.columns_) if at in known}
            words = list(known)
        return read_table_file(
            self.label,
            path,
            beside=beside,
            skip=() if reset else getattr(self.of, "row_columns_", ()),
            only=only,
            words=words,
            known=known,
            layer=self.of.layer,
            raw=self.of.raw,
        )

    def _known_words(self) -> dict[int, list[str] | None]:
        """By the number of a column of words, those of the fit; None for a column that it dropped,
        which may hold others."""
        kept = set(self.of.columns_)
        own = getattr(self.of, "words_", {})
        return {column: words if column in kept else None for column, words in own.items()}

    def plain(self, X: Any) -> Any:
        """A table in a form whose columns can be chosen by name."""
        plain = isinstance(X, (Tensor, Table, str, os.PathLike))
        return X if plain else plain_table(f"[{self.label}] X", X)

    def _checked(self, X: Any, reset: bool) -> Table:
        """A table in memory whose shape and names fit. With ``reset`` they become those of the
        fit."""
        place = f"[{self.label}] X"
        matrix: dict[str, Any] = dict(layer=self.of.layer, raw=self.of.raw) if is_anndata(X) else {}
        if self._word_columns() and is_frame(X):
            columns = Columns(column_names(X), X.shape[1])
            if reset:
                matrix["words"] = {columns.find(word) for word in self._word_columns()}
            else:
                matrix["words"] = matrix["known"] = dict(self._known_words())
        table = X if isinstance(X, Table) else read_columns(self.label, "X", X, **matrix)
        if reset:
            self.of.words_ = dict(table.words)
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

    def check_options(self, X: Any) -> None:
        """Refuses options that the table has no use for, and wrong ones that it does not need."""
        check_parameters(self.of)
        name, label = self.label, "layer" if self.of.layer else "raw"
        path = os.fspath(X) if isinstance(X, (str, os.PathLike)) else ""
        if (self.of.layer or self.of.raw) and not is_anndata(X) and not path.endswith(".h5ad"):
            raise ValueError(
                f"[{name}] {label}: expected an AnnData object or an h5ad file, got "
                f"{describe(path or X)}"
            )
        if self.of.screen == 1 or self.of.screen < 0:
            raise ValueError(f"[{name}] screen: expected 0 or at least 2, got {self.of.screen}")
        if self.of.screen_by not in ("correlation", "variance"):
            raise ValueError(
                f'[{name}] screen_by: expected "correlation" or "variance", got '
                f"{describe(self.of.screen_by)}"
            )

    def _check_names(self, X: Any, names: list[str], reset: bool) -> None:
        labels = names if is_anndata(X) else frame_labels(X)
        texts = all(isinstance(label, str) for label in labels)
        if reset:
            for name in {name for name in names if names.count(name) > 1} if names else ():
                raise ValueError(
                    f"[{self.label}] X: expected different names of columns, got "
                    f"{names.count(name)} columns {printable(name)!r}"
                )
        fitted = getattr(self.of, "feature_names_in_", None)
        if HAS_SKLEARN and texts and not isinstance(X, (Tensor, Table)) and not is_anndata(X):
            if reset or fitted is not None or not (labels and self.all_names()):
                from sklearn.utils.validation import validate_data

                validate_data(self.of, X, reset=reset, skip_check_array=True)
        elif reset:
            self.of.__dict__.pop("feature_names_in_", None)
            if labels and texts:
                import numpy

                self.of.feature_names_in_ = numpy.asarray(labels, dtype=object)
        if not reset:
            self._compare_names(labels, names, texts)

    def _compare_names(self, labels: list[Any], names: list[str], texts: bool) -> None:
        """Refuses a table whose columns have other names than those of the fit, or another order.
        Labels that are not texts are compared with the numbers of the columns, if the fit had no
        names; the labels 0, 1, .. are names if those of the fit are numbers."""
        expected = self.all_names()
        if labels and not names and Columns(expected, len(expected)).has_numbers():
            names = [str(label) for label in labels]
        if not names or (texts and not expected):
            return
        expected = expected or [str(at) for at in range(len(names))]
        known = getattr(self.of, "table_names_", None) is not None or not self.of.names_
        for at in range(max(len(names), len(expected))) if known else self.of.columns_:
            own, fit = (each[at] if at < len(each) else None for each in (names, expected))
            if own != fit:
                got, wanted = (
                    "no column" if name is None else repr(printable(name)[:60])
                    for name in (own, fit)
                )
                raise ValueError(
                    f"[{self.label}] X: expected the columns of the fit in the same "
                    f"order, got {got} for {wanted} in column {at}"
                )

    def all_names(self) -> list[str]:
        """The names of the fit's table; if the columns have no names, those that were dropped have
        empty ones."""
        own = getattr(self.of, "table_names_", None)
        if own is not None:
            return own
        if hasattr(self.of, "feature_names_in_"):
            return list(self.of.feature_names_in_)
        names, columns = getattr(self.of, "names_", []), getattr(self.of, "columns_", [])
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
            self.of.n_features_in_ = count
            return
        if rows < 1:
            raise ValueError(
                f"{place}: found a table with 0 sample(s) (shape=({rows}, {count})) while a "
                "minimum of 1 is required."
            )
        if hasattr(self.of, "n_features_in_"):
            if count != self.of.n_features_in_:
                raise ValueError(
                    f"{place}: X has {count} features, but {self.label} is expecting "
                    f"{self.of.n_features_in_} features as input"
                )
        elif count <= max(self.of.columns_):  # a file that C++ wrote does not have the number
            raise ValueError(
                f"{place}: expected [n, more than {max(self.of.columns_)}], got "
                f"{tuple(values.shape)}"
            )

    def _check_finite(self, values: Tensor, names: Sequence[str | int]) -> None:
        bad = values.isinf() if self.of.missing != "refuse" else ~values.isfinite()
        if not bad.any():
            return
        row, column = bad.nonzero()[0].tolist()
        value = values[row, column].item()
        name = printable(str(names[column]))[:60] if names else column
        raise ValueError(
            f"[{self.label}] X: expected finite numbers, got "
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
        given = given_names(self.label, names, table.values.size(1))
        named = given or table.names
        self._check_means(table.values, named)
        try:
            kept = usable_table(table.values, named, missing=self.of.missing, drop=self.of.drop)
        except ValueError as error:
            why = str(error).removeprefix("[usable_table] cannot use the table: ")
            hint = "" if self.of.drop or not why.startswith("column ") else _DROP
            raise ValueError(f"[{self.label}] X: {why}{hint}") from None
        kept = self._screened(kept)
        self.of.names_, self.of.columns_, self.of.dropped_ = kept.names, kept.columns, kept.dropped
        self.of.table_names_ = table.names or named
        return kept, named

    def _screened(self, kept: UsableTable) -> UsableTable:
        """The columns that ``screen`` keeps."""
        if self.of.screen == 0:
            return kept
        try:
            places = screen_columns(kept.values, self.of.screen, by=self.of.screen_by).tolist()
        except ValueError as error:
            why = str(error).replace("[screen_columns] by:", "[screen_columns] screen_by:")
            why = why.removeprefix("[screen_columns] ")
            raise ValueError(f"[{self.label}] {why}") from None
        return kept._replace(
            values=kept.values[:, places],
            names=[kept.names[at] for at in places] if kept.names else [],
            columns=[kept.columns[at] for at in places],
        )

    def scaled(self, values: Tensor) -> Tensor:
        return (values - self.of.mean_) / self.of.deviation_ if self.of.standardise else values

    def _places(self, names: list[str], columns: list[int], path: str) -> list[int]:
        """Numbers of the fit's columns in a file whose columns have these names."""
        if not self.of.names_ or not names:
            return columns
        for name in self.of.names_:
            if names.count(name) != 1:
                raise ValueError(
                    f"cannot use {path}: expected one column {name!r}, got {names.count(name)}"
                )
        return [names.index(name) for name in self.of.names_]

    def fitted(self, name: str) -> Any:
        if not hasattr(self.of, name):
            raise NotFittedError(f"[{self.label}] not fitted: call fit first")
        return getattr(self.of, name)

    def _word_columns(self) -> list[int | str]:
        return [column for column, kind in self.pairs_of_kinds() if kind in ("binary", "category")]

    def _check_means(self, values: Tensor, names: Sequence[str]) -> None:
        if self.of.missing != "means":
            return
        columns = Columns(names, values.size(1))
        for column, kind in self.pairs_of_kinds():
            at = columns.find(column)
            if kind != "continuous" and at is not None and values[:, at].isnan().any():
                raise ValueError(
                    f"[{self.label}] missing: expected refuse or rows for column {column} "
                    f"of kind {kind}, which has no mean, got means"
                )

    def pairs_of_kinds(self) -> Iterable[tuple[Any, str]]:
        """Columns and their kinds, as the user gave them."""
        if self.of.kinds is None or isinstance(self.of.kinds, str):
            return ()
        found = of_columns(self.label, "kinds", "None, a dict or one kind", self.of.kinds)
        return found.items() if isinstance(found, dict) else enumerate(found)

    def kinds(self, kept: UsableTable, all_names: Sequence[str]) -> list[str]:
        """Kinds of the columns kept."""
        label = self.label
        if self.of.kinds is not None and self.of.screen:
            raise ValueError(f"[{label}] screen: expected continuous columns alone, got kinds")
        columns = Columns(all_names, self.of.n_features_in_)
        return column_kinds(label, self.of.kinds, columns, kept.columns)
