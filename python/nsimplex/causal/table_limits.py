"""What a table cannot tell about the graph of an estimator."""

from __future__ import annotations

import os
from typing import Any

from torch import Tensor

from .._printable import printable
from .columns import Columns, KeptColumns
from .frames import row_labels
from .limits import CausalLimits, causal_limits, scaled_within_groups
from .rows import row_groups, row_targets, taken_column
from .table_reading import FitTable

__all__ = ["columns_of_fit", "limits_of", "rows_for_limits"]


def limits_of(table: FitTable, X: Any, level: float, given: dict[str, Any]) -> CausalLimits:
    """The limits of the graph of a fit for the table X, with ``given`` groups and targets."""
    _check_continuous(table)
    values, known, own = rows_for_limits(table, X, given)
    if known and table.of.standardise:
        values = scaled_within_groups(values, known)
    return causal_limits(
        values,
        table.fitted("adjacency_"),
        names=[str(name) for name in table.of.get_feature_names_out()],
        level=level,
        groups=known or None,
        targets=own or None,
    )


def rows_for_limits(
    table: FitTable, X: Any, given: dict[str, Any]
) -> tuple[Tensor, list[int], list[list[int]]]:
    """The rows of X without missing values as the fit scales them, with their groups and targets;
    none without."""
    estimator, label = table.of, table.label
    rows = dict(given)
    for name, of_fit in getattr(estimator, "rows_of_fit_", {}).items():
        if rows[name] is None and of_fit is None:
            raise ValueError(
                f"[{label}] {name}: expected those of the rows of X, as the fit had, got None"
            )
        rows[name] = of_fit if rows[name] is None else rows[name]
    labels = None
    if isinstance(X, (str, os.PathLike)):
        named = {name: own for name, own in rows.items() if isinstance(own, str)}
        rows |= table.read(X, named, reset=False).beside if named else {}
    else:
        X = table.plain(X)
        labels = row_labels(X)
        for name in rows:
            X, rows[name] = taken_column(label, name, X, rows[name])
    values = table.chosen(X)
    known = row_groups(label, rows["groups"], len(values), labels)
    own = row_targets(label, rows["targets"], len(values), columns_of_fit(table), labels)
    used = (~values.isnan().any(dim=1)).nonzero().flatten().tolist()
    return (
        values[used],
        [known[row] for row in used] if known else [],
        [own[row] for row in used] if own else [],
    )


def columns_of_fit(table: FitTable) -> KeptColumns:
    """The columns of the table of the fit, also those that it left out."""
    used = list(getattr(table.of, "columns_", range(len(table.fitted("adjacency_")))))
    count = getattr(table.of, "n_features_in_", None) or 1 + max(used, default=-1)
    names = table.all_names() or [f"x{column}" for column in range(count)]
    return KeptColumns(names, count, used)


def _check_continuous(table: FitTable) -> None:
    """Refuses columns of other kinds, whose effects are not those of a linear model."""
    used = getattr(table.of, "columns_", [])
    columns = Columns(table.all_names(), 1 + max(used, default=0))
    for column, kind in table.pairs_of_kinds():
        if kind != "continuous" and columns.find(column) in used:
            raise ValueError(
                f"[{table.label}] limits: expected continuous columns, got column "
                f"{printable(str(column))[:60]} of kind {kind}"
            )
