"""Kinds of the columns of an estimator's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from .columns import Columns, Kinds, column_kinds, of_columns
from .graphs import UsableTable
from .table_reading import TableReading

__all__ = ["KindReading"]


class KindReading(TableReading):
    """Reads the parameter ``kinds`` of an estimator, which may drop columns."""

    kinds: Kinds | None
    n_features_in_: int

    def _word_columns(self) -> list[int | str]:
        return [column for column, kind in self._pairs_of_kinds() if kind in ("binary", "category")]

    def _check_means(self, values: Tensor, names: Sequence[str]) -> None:
        if self.missing != "means":
            return
        columns = Columns(names, values.size(1))
        for column, kind in self._pairs_of_kinds():
            at = columns.find(column)
            if kind != "continuous" and at is not None and values[:, at].isnan().any():
                raise ValueError(
                    f"[{type(self).__name__}] missing: expected refuse or rows for column {column} "
                    f"of kind {kind}, which has no mean, got means"
                )

    def _pairs_of_kinds(self) -> Iterable[tuple[Any, str]]:
        """Columns and their kinds, as the user gave them."""
        if self.kinds is None or isinstance(self.kinds, str):
            return ()
        found = of_columns(type(self).__name__, "kinds", "None, a dict or one kind", self.kinds)
        return found.items() if isinstance(found, dict) else enumerate(found)

    def _kinds(self, kept: UsableTable, all_names: Sequence[str]) -> list[str]:
        """Kinds of the columns kept."""
        label = type(self).__name__
        if self.kinds is not None and self.screen:
            raise ValueError(f"[{label}] screen: expected continuous columns alone, got kinds")
        columns = Columns(all_names, self.n_features_in_)
        return column_kinds(label, self.kinds, columns, kept.columns)
