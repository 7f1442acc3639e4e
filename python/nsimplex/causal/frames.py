"""Data frames of pandas, polars and pyarrow: their labels, and their columns as numbers.

None of these packages is imported: an object that exists brings its own.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from torch import Tensor

from .._arguments import describe
from .._hints import is_dense
from .._printable import printable

__all__ = [
    "column_names",
    "frame_labels",
    "frame_numbers",
    "is_anndata",
    "is_frame",
    "is_pandas",
    "is_series",
    "listed",
    "package",
    "places_of_words",
    "plain_table",
    "row_labels",
]

_PACKAGES = ("pandas", "polars", "pyarrow", "anndata", "xarray")


def package(value: object) -> str:
    """The package of a value's class, or of one of its base classes; empty for other classes
    that have tables."""
    for base in type(value).__mro__:
        name = (base.__module__ or "").partition(".")[0]
        if name in _PACKAGES:
            return name
    return ""


def is_anndata(table: object) -> bool:
    """Whether it is an AnnData object."""
    return package(table) == "anndata" and hasattr(table, "var_names")


def is_frame(table: object) -> bool:
    """Whether it is a data frame of pandas or polars."""
    return is_pandas(table) or (package(table) == "polars" and hasattr(table, "get_column"))


def is_pandas(table: object) -> bool:
    """Whether it is a data frame of pandas, or of a package with the same interface."""
    return hasattr(table, "iloc") and hasattr(table, "index") and len(_shape(table)) == 2


def is_series(values: object) -> bool:
    """Whether it is one column with labels of its rows, as a Series of pandas."""
    return hasattr(values, "iloc") and hasattr(values, "index") and len(_shape(values)) == 1


def _shape(value: object) -> tuple[int, ...]:
    shape = () if isinstance(value, Tensor) else getattr(value, "shape", ())  # or nested
    return shape if isinstance(shape, tuple) else ()


def plain_table(place: str, table: Any) -> Any:
    """A table of pyarrow as a data frame of pandas; other tables as they are.

    Raises:
        TypeError: its rows or columns have no order, or labels that a reader would ignore; the
            message begins with ``place`` and says how to write the table.
    """
    kind = package(table)
    if kind == "pyarrow" and hasattr(table, "schema") and hasattr(table, "to_pandas"):
        try:
            return table.to_pandas()
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{place}: tables of pyarrow need pandas ({error})") from None
    if kind == "polars" and hasattr(table, "collect"):
        raise TypeError(f"{place}: expected numbers, got a LazyFrame; call collect() first")
    if kind == "xarray":
        raise TypeError(
            f"{place}: expected numbers, got {describe(table)}; to_pandas() makes a data frame of "
            "an array of two axes"
        )
    if hasattr(table, "toarray"):  # one kind of sparse matrices is a dict
        return table
    labelled = isinstance(table, Mapping) or (
        isinstance(table, (list, tuple))
        and any(isinstance(row, (Mapping, Set)) or is_series(row) for row in table)
    )
    if labelled or getattr(getattr(table, "dtype", None), "names", None):
        what = "dict" if isinstance(table, Mapping) else describe(table)
        raise TypeError(
            f"{place}: expected numbers, got {what}; pandas.DataFrame(..) makes a table of columns "
            "or rows with names"
        )
    return table


def frame_labels(table: object) -> list[Any]:
    """The labels of the columns of a data frame; none for other tables."""
    framed = is_frame(table) or (hasattr(table, "__array__") and len(_shape(table)) == 2)
    return list(getattr(table, "columns", [])) if framed else []


def column_names(table: object) -> list[str]:
    """Names of the columns of a data frame; none if they are just the numbers from 0 on."""
    labels = frame_labels(table)
    return [] if _are_numbers(labels) else [str(label) for label in labels]


def _are_numbers(labels: Sequence[Any]) -> bool:
    """Whether they are the integers from 0 on."""
    return all(
        isinstance(label, numbers.Integral) and not isinstance(label, bool) and label == at
        for at, label in enumerate(labels)
    )


def row_labels(table: Any) -> Sequence[Any] | None:
    """The labels of the rows of a data frame of pandas or of an AnnData object; None for other
    tables."""
    if is_anndata(table):
        return table.obs_names
    return table.index if is_pandas(table) else None


def listed(expected: str, values: Any) -> list[Any]:
    """The entries of a list, a tuple, or an array of one axis, in their order.

    Raises:
        TypeError, ValueError: it has no order, several axes, or names of its own; the message
            begins with ``expected``.
    """
    if isinstance(values, (str, bytes, bytearray, Mapping, Set)) or is_frame(values):
        raise TypeError(f"{expected}, got {describe(values)}")
    given: Any = values
    if package(given) == "xarray":
        raise TypeError(f"{expected}, got {describe(given)}; to_numpy() gives its values")
    if package(given) == "pyarrow":
        return given.to_pylist()
    if isinstance(given, Tensor) and (not is_dense(given) or given.is_meta):
        raise TypeError(f"{expected}, got a tensor of layout {given.layout} on {given.device}")
    if getattr(given, "ndim", 1) != 1 or len(getattr(given, "shape", (0,))) != 1:
        raise ValueError(f"{expected}, got {describe(given)}")
    if hasattr(given, "tolist"):
        return given.tolist()
    if isinstance(given, Sequence) or hasattr(given, "__array__"):
        return list(given)
    raise TypeError(f"{expected}, got {describe(given)}")


def frame_numbers(
    place: str,
    table: Any,
    words: Collection[int],
    known: Mapping[int, Sequence[str] | None] | None,
) -> tuple[Any, list[str], dict[int, list[str]]]:
    """The numbers of a data frame as an array, the names of its columns, and the words of those
    ``words`` that hold words; see :func:`read_columns`."""
    import numpy  # pandas needs it

    names, shape, pandas = column_names(table), tuple(table.shape), is_pandas(table)
    values = numpy.empty(shape, dtype=numpy.float64)
    found: dict[int, list[str]] = {}
    for at in range(shape[1]):
        column = table.iloc[:, at] if pandas else table[:, at]
        label = printable(names[at]) if names else str(at)
        if at in words:
            missing = column.isna() if pandas else column.is_null()
            cells = [None if gone else cell for cell, gone in zip(column, missing)]
            numeric = all(isinstance(cell, (numbers.Real, type(None))) for cell in cells)
            if numeric and known is None:
                values[:, at] = [math.nan if cell is None else float(cell) for cell in cells]
                continue
            if known is None or at in known:
                texts = [None if cell is None else str(cell) for cell in cells]
                own = None if known is None else known[at]
                values[:, at], found[at] = places_of_words(f"{place}: column {label}", texts, own)
                continue
        values[:, at] = (_of_pandas if pandas else _of_polars)(place, label, column)
    return values, names, found


def places_of_words(
    place: str, cells: Sequence[str | None], known: Sequence[str] | None = None
) -> tuple[list[float], list[str]]:
    """The places of words in ``known``, or else among themselves in ascending order, and the words;
    nan for None. ``place`` begins the message of the ValueError for an unknown word."""
    words = sorted({cell for cell in cells if cell is not None}) if known is None else list(known)
    number = {word: float(at) for at, word in enumerate(words)}
    for cell in cells:
        if cell is not None and cell not in number:
            raise ValueError(
                f"{place}: expected one of the {len(words)} words of the fit, got "
                f"{printable(cell)[:60]!r}"
            )
    return [math.nan if cell is None else number[cell] for cell in cells], words


def _refused(place: str, label: str, got: object) -> TypeError:
    return TypeError(
        f"{place}: expected numbers in every column, got {got} in column {label}; drop it or "
        "encode it as numbers"
    )


def _of_pandas(place: str, label: str, column: Any) -> Any:
    kind = getattr(column.dtype, "kind", "O")
    if kind not in "biufO" or str(column.dtype) in ("category", "str", "string"):
        raise _refused(place, label, column.dtype)
    if kind == "O":
        for value, missing in zip(column, column.isna()):
            if not missing and not isinstance(value, numbers.Real):
                raise _refused(place, label, f"{type(value).__name__} {printable(str(value))[:30]}")
    return column.to_numpy(dtype="float64", na_value=math.nan)


def _of_polars(place: str, label: str, column: Any) -> Any:
    name = str(column.dtype)
    if not (column.dtype.is_numeric() or name in ("Boolean", "Null")):  # Null: all are missing
        raise _refused(place, label, name)
    import polars

    return column.cast(polars.Float64).to_numpy()
