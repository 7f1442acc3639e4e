"""Results as data frames of pandas, which is imported only when a frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any

__all__ = ["DataFrame", "data_frame"]


def data_frame(
    rows: Iterable[Sequence[Any]], columns: Sequence[str], index: Sequence[Any] | None = None
) -> DataFrame:
    """A data frame of rows.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise ModuleNotFoundError(
            "[to_frame] expected the package pandas, which is not installed: pip install pandas "
            "(the extra tables)"
        ) from None
    make: Any = pandas.DataFrame  # whose own annotations ask for more than it needs
    return make([tuple(row) for row in rows], columns=list(columns), index=index)
