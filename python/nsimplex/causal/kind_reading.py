"""Kinds of the columns of an estimator's tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from .._arguments import describe
from .._choices import ColumnKind
from .graphs import UsableTable
from .structure import column_kinds
from .table_reading import TableReading

__all__ = ["KindReading"]


class KindReading(TableReading):
    """How an estimator reads its parameter ``kinds``, of which the columns may be dropped."""

    kinds: Sequence[ColumnKind] | Mapping[int | str, ColumnKind] | None

    def _word_columns(self) -> list[int | str]:
        return [column for column, kind in self._pairs_of_kinds() if kind in ("binary", "category")]

    def _check_means(self, values: Tensor, names: Sequence[str]) -> None:
        if self.missing != "means":
            return
        place: dict[Any, int] = {name: column for column, name in enumerate(names)}
        for column, kind in self._pairs_of_kinds():
            at = place.get(column, column)
            if kind == "continuous" or not isinstance(at, int) or not 0 <= at < values.size(1):
                continue
            if values[:, at].isnan().any():
                raise ValueError(
                    f"[{type(self).__name__}] missing: expected refuse or rows for column {column} "
                    f"of kind {kind}, which has no mean, got means"
                )

    def _pairs_of_kinds(self) -> Iterable[tuple[int | str, str]]:
        """Columns and their kinds, as the user gave them."""
        kinds = () if self.kinds is None else self.kinds
        if not isinstance(kinds, (Mapping, Sequence)):
            raise TypeError(
                f"[{type(self).__name__}] kinds: expected None, a dict or one kind per column, got "
                f"{describe(kinds)}"
            )
        return kinds.items() if isinstance(kinds, Mapping) else enumerate(kinds)

    def _kinds(self, kept: UsableTable, all_names: Sequence[str]) -> list[str]:
        """Kinds of the columns kept."""
        label, kinds = type(self).__name__, self.kinds
        if kinds is None:
            return []
        if self.screen:
            raise ValueError(f"[{label}] screen: expected continuous columns alone, got kinds")
        if isinstance(kinds, Mapping):
            place: dict[Any, int] = {column: at for at, column in enumerate(kept.columns)}

            def dropped(column: Any) -> bool:
                if isinstance(column, str):
                    return column in all_names and column not in kept.names
                return column not in place and 0 <= column < len(place) + len(kept.dropped)

            kinds = {
                place.get(column, column): kind
                for column, kind in kinds.items()
                if not dropped(column)
            }
        elif len(kinds) == len(kept.columns) + len(kept.dropped):
            kinds = [kinds[column] for column in kept.columns]
        return column_kinds(label, kinds, len(kept.columns), kept.names)
