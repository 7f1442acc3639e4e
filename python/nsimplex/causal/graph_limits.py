"""What a table cannot tell about the graph of an estimator."""

from __future__ import annotations

import os
from typing import Any

from .._arguments import checked_methods
from .._printable import printable
from .columns import Columns, KeptColumns
from .frames import row_labels
from .kind_reading import KindReading
from .limits import CausalLimits, causal_limits, scaled_within_groups
from .rows import row_groups, row_targets, taken_column

__all__ = ["GraphLimits"]


@checked_methods
class GraphLimits(KindReading):
    """The method ``limits`` of an estimator that was fitted to a table."""

    #: groups and targets, if the fit had them: the name of their column, or None without a name
    rows_of_fit_: dict[str, str | None]

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
        adjacency, label = self._fitted("adjacency_"), type(self).__name__
        self._check_continuous()
        rows = dict(groups=groups, targets=targets)
        for name, of_fit in getattr(self, "rows_of_fit_", {}).items():
            if rows[name] is None and of_fit is None:
                raise ValueError(
                    f"[{label}] {name}: expected those of the rows of X, as the fit had, got None"
                )
            rows[name] = of_fit if rows[name] is None else rows[name]
        labels = None
        if isinstance(X, (str, os.PathLike)):
            named = {name: own for name, own in rows.items() if isinstance(own, str)}
            rows |= self._read(X, named, reset=False).beside if named else {}
        else:
            X = self._plain(X)
            labels = row_labels(X)
            for name in rows:
                X, rows[name] = taken_column(label, name, X, rows[name])
        values, names = self._chosen(X), [str(name) for name in self.get_feature_names_out()]
        known = row_groups(label, rows["groups"], len(values), labels)
        if known and self.standardise:
            values = scaled_within_groups(values, known)
        own = row_targets(label, rows["targets"], len(values), self._columns_of_fit(), labels)
        used = (~values.isnan().any(dim=1)).nonzero().flatten().tolist()
        return causal_limits(
            values[used],
            adjacency,
            names=names,
            level=level,
            groups=[known[row] for row in used] if known else None,
            targets=[own[row] for row in used] if own else None,
        )

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns that ``transform`` returns."""
        raise NotImplementedError

    def _columns_of_fit(self) -> KeptColumns:
        """The columns of the table of the fit, also those that it left out."""
        used = list(getattr(self, "columns_", range(len(self._fitted("adjacency_")))))
        count = getattr(self, "n_features_in_", None) or 1 + max(used, default=-1)
        names = self._all_names() or [f"x{column}" for column in range(count)]
        return KeptColumns(names, count, used)

    def _check_continuous(self) -> None:
        """Refuses columns of other kinds, whose effects are not those of a linear model."""
        used = getattr(self, "columns_", [])
        columns = Columns(self._all_names(), 1 + max(used, default=0))
        for column, kind in self._pairs_of_kinds():
            if kind != "continuous" and columns.find(column) in used:
                raise ValueError(
                    f"[{type(self).__name__}] limits: expected continuous columns, got column "
                    f"{printable(str(column))[:60]} of kind {kind}"
                )
