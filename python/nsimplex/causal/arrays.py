"""Conversion of tables and graphs to float64 tensors.

It accepts tensors, arrays, lists of rows, data frames of pandas and polars, sparse matrices and
AnnData objects. None of these packages is imported: an object that exists brings its own.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import describe
from .._hints import Numbers
from .._printable import printable

__all__ = [
    "Table",
    "as_double",
    "column_names",
    "graph_matrix",
    "is_anndata",
    "memory",
    "places_of_words",
    "read_columns",
    "require_finite",
]


class Table(NamedTuple):
    """Numbers with the names of their columns."""

    values: Tensor  #: float64, of any number of axes; NaN for a missing value
    names: list[str]  #: empty if the columns have none
    #: by the number of a column of words, its words; the values are places in this list
    words: Mapping[int, list[str]] = MappingProxyType({})


def as_double(
    function: str, argument: str, values: Numbers, words: Collection[int | str] = ()
) -> Tensor:
    """The numbers as a float64 tensor. Raise a TypeError of one line that names the argument if
    that fails."""
    return read_columns(function, argument, values, words=words).values


def read_columns(
    function: str,
    argument: str,
    table: Any,
    *,
    layer: str = "",
    raw: bool = False,
    words: Collection[int | str] = (),
    known: Mapping[int, Sequence[str] | None] | None = None,
) -> Table:
    """The numbers and the names of the columns of a table that is in memory.

    Args:
        layer, raw: which matrix of an AnnData object: one of ``layers``, or ``raw.X``.
        words: names or numbers of columns of a data frame that may hold words.
        known: by the number of a column, the words that it may hold; None: any.

    Raises:
        TypeError, ValueError: the table has something else than real numbers; the message names the
            argument and the column.
    """
    place = f"[{function}] {argument}"
    if is_anndata(table):
        return _of_anndata(place, table, layer, raw)
    if layer or raw:
        raise ValueError(
            f"{place}: expected an AnnData object for {'layer' if layer else 'raw'}, got "
            f"{describe(table)}"
        )
    if isinstance(table, Tensor):
        if table.is_complex():
            raise TypeError(f"{place}: expected real numbers, got {describe(table)}")
        # Operators that read a table in place would miss the sign of a lazily negated one.
        return Table(table.to(torch.float64).resolve_neg(), [])
    package = _package(table)
    if package == "polars" and hasattr(table, "collect"):
        raise TypeError(f"{place}: expected numbers, got a LazyFrame; call collect() first")
    if package in ("pandas", "polars") and hasattr(table, "columns"):
        return _of_frame(place, table, package, words, known)
    if hasattr(table, "toarray") and hasattr(table, "nnz"):
        _check_room(place, table.shape)
        return Table(_of_array(place, table.toarray()), [])
    return Table(_of_array(place, table), column_names(table))


def require_finite(function: str, argument: str, values: Tensor) -> None:
    """Refuses NaN and infinity in a matrix, dense or sparse: compared with 0 they look like edges.

    Raises:
        ValueError: the message names the argument and the place.
    """
    if values.is_meta or values.dim() != 2:
        return  # the operator says what it expects instead
    dense = values.layout == torch.strided
    sparse = values if dense else values.to_sparse_coo().coalesce()
    entries = values.flatten() if dense else sparse.values()
    if bool(entries.isfinite().all()):
        return
    wrong = int((~entries.isfinite()).nonzero()[0])
    row, column = divmod(wrong, values.size(1)) if dense else sparse.indices()[:, wrong].tolist()
    raise ValueError(
        f"[{function}] {argument}: expected finite numbers, got {entries[wrong].item()} in row "
        f"{row}, column {column}"
    )


def graph_matrix(
    function: str,
    argument: str,
    graph: Numbers,
    names: Sequence[str] = (),
    of: str = "",
    *,
    scores: bool = False,
) -> Table:
    """An adjacency matrix and the names of its columns. Rows of a data frame are matched with its
    columns by their names, and both with the ``names`` of the columns ``of`` something.

    Args:
        scores: whether they are scores of edges, which may be infinite.

    Raises:
        TypeError, ValueError: as :func:`read_columns`, or because names differ or a weight is not
            finite.
    """
    found = read_columns(function, argument, graph)
    if not scores:
        require_finite(function, argument, found.values)
    frame: Any = graph
    values, own = found.values, found.names
    if not own or len(set(own)) < len(own):
        return found
    if _package(graph) == "pandas":
        rows = [str(name) for name in frame.index]
        if rows != [str(number) for number in range(len(rows))]:
            said = "the same names of rows and columns"
            values = values[_order(f"[{function}] {argument}: expected {said}", rows, own)]
    if names and len(set(names)) == len(names):
        order = _order(f"[{function}] {argument}: expected the columns of {of}", own, names)
        values, own = values[order][:, order], list(names)
    return Table(values, own)


def _order(expected: str, given: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where ``names`` are in ``given``, which must be the same names."""
    for name in [*(set(given) - set(names)), *(set(names) - set(given))]:
        raise ValueError(f"{expected}, got {printable(name)[:60]!r} in one of them alone")
    if len(given) != len(names):
        raise ValueError(f"{expected}, got {len(given)} for {len(names)}")
    place = {name: at for at, name in enumerate(given)}
    return [place[name] for name in names]


def column_names(table: object) -> list[str]:
    """Column names of a data frame; none if they are just the numbers from 0 on."""
    columns = list(getattr(table, "columns", []))
    return [] if columns == list(range(len(columns))) else [str(column) for column in columns]


def is_anndata(table: object) -> bool:
    """Whether it is an AnnData object."""
    return _package(table) == "anndata" and hasattr(table, "var_names")


def memory() -> int:
    """Bytes of memory of this machine, or the process limit if it is lower."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return machine if limit == resource.RLIM_INFINITY else min(machine, limit)


def _package(value: object) -> str:
    return (type(value).__module__ or "").partition(".")[0]


def _check_room(place: str, shape: tuple[int, ...]) -> None:
    """A sparse matrix that takes little memory may expand to more numbers than there is room
    for."""
    needed, there = 8 * math.prod(shape), memory()
    if needed > there:
        size = " x ".join(map(str, shape))
        raise ValueError(
            f"{place}: {size} numbers need {needed / 2**30:.0f} GiB, and this machine has "
            f"{there / 2**30:.0f}"
        )


def _of_array(place: str, values: Any) -> Tensor:
    try:
        if hasattr(values, "__array__"):
            import numpy  # installed if an array exists

            masked = isinstance(values, numpy.ma.MaskedArray)
            array: Any = values if masked else numpy.asarray(values)
            if array.dtype.kind == "c":
                raise ValueError(
                    f"{place}: expected real numbers, got {describe(values)}: Complex data not "
                    "supported"
                )
            if array.dtype.kind in "mM":
                raise TypeError(
                    f"{place}: expected numbers, got {describe(values)} of {array.dtype}"
                )
            if masked:  # what is under a mask counts as missing
                array = array.astype(numpy.float64).filled(math.nan)
            return torch.from_numpy(numpy.array(array, dtype=numpy.float64))
        return torch.as_tensor(values, dtype=torch.float64)
    except ValueError as error:
        if str(error).startswith(place):
            raise
    except TypeError as error:
        if str(error).startswith(place):
            raise
        if str(error).startswith("float() argument"):  # Python's words for an object in an array
            raise TypeError(f"{place}: expected numbers, got {describe(values)}: {error}") from None
    except (RuntimeError, OverflowError):
        pass
    raise TypeError(f"{place}: expected numbers, got {describe(values)}")


def _of_frame(
    place: str,
    table: Any,
    package: str,
    words: Collection[int | str],
    known: Mapping[int, Sequence[str] | None] | None,
) -> Table:
    import numpy  # pandas needs it

    names, shape = column_names(table), tuple(table.shape)
    values = numpy.empty(shape, dtype=numpy.float64)
    found: dict[int, list[str]] = {}
    for at in range(shape[1]):
        column = table.iloc[:, at] if package == "pandas" else table[:, at]
        label = printable(names[at]) if names else str(at)
        if at in words or (names and names[at] in words):
            missing = column.isna() if package == "pandas" else column.is_null()
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
        values[:, at] = (_of_pandas if package == "pandas" else _of_polars)(place, label, column)
    return Table(torch.from_numpy(values), names, found)


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


def _of_anndata(place: str, data: Any, layer: str, raw: bool) -> Table:
    import numpy

    if raw and layer:
        raise ValueError(f"{place}: expected layer or raw, got both")
    if raw and data.raw is None:
        raise ValueError(f"{place}: it has no raw")
    if layer and layer not in data.layers:
        raise ValueError(f"{place}: expected a layer of {list(data.layers)}, got {layer!r}")
    matrix = data.layers[layer] if layer else (data.raw if raw else data).X
    if matrix is None:
        raise ValueError(f"{place}: it has no X")
    _check_room(place, matrix.shape)
    dense: Any = matrix
    try:
        if hasattr(matrix, "to_memory"):  # a sparse matrix that is still in its file
            matrix = matrix.to_memory()
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        values = torch.from_numpy(numpy.array(dense, dtype=numpy.float64, order="C"))
    except MemoryError:
        size = 8 * math.prod(matrix.shape) / 2**30
        raise ValueError(f"{place}: not enough memory for {size:.1f} GiB") from None
    except (TypeError, ValueError):
        raise ValueError(
            f"{place}: expected a matrix of numbers, got "
            f"{getattr(dense, 'dtype', type(dense).__name__)}"
        ) from None
    return Table(values, [str(name) for name in (data.raw if raw else data).var_names])
