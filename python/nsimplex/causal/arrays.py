"""Conversion of tables and graphs to float64 tensors.

It accepts tensors, arrays, lists of rows, data frames of pandas and polars, sparse matrices and
AnnData objects. None of these packages is imported: an object that exists brings its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.masked import MaskedTensor

from .._arguments import describe
from .._hints import Numbers
from .._printable import printable
from .frames import column_names, frame_numbers, is_anndata, is_frame, plain_table, row_labels

__all__ = [
    "Table",
    "as_double",
    "graph_matrix",
    "memory",
    "read_columns",
    "require_finite",
]


class Table(NamedTuple):
    """Numbers with the names of their columns."""

    values: Tensor  #: float64, of any number of axes; NaN for a missing value
    names: list[str]  #: empty if the columns have none
    #: by the number of a column of words, its words; the values are places in this list
    words: Mapping[int, list[str]] = MappingProxyType({})


def as_double(function: str, argument: str, values: Numbers) -> Tensor:
    """The numbers as a float64 tensor. Raise a TypeError of one line that names the argument if
    that fails."""
    return read_columns(function, argument, values).values


def read_columns(
    function: str,
    argument: str,
    table: Any,
    *,
    layer: str = "",
    raw: bool = False,
    words: Collection[int] = (),
    known: Mapping[int, Sequence[str] | None] | None = None,
) -> Table:
    """The numbers and the names of the columns of a table that is in memory.

    Args:
        layer, raw: which matrix of an AnnData object: one of ``layers``, or ``raw.X``.
        words: numbers of columns of a data frame that may hold words.
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
        return Table(_of_tensor(place, table), [])
    table = plain_table(place, table)
    if is_frame(table):
        values, names, found = frame_numbers(place, table, words, known)
        return Table(torch.from_numpy(values), names, found)
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
    columns by their labels, and both with the ``names`` of the columns ``of`` something; without
    such names, labels that are the numbers of the columns put them in order.

    Args:
        scores: whether they are scores of edges, which may be infinite.

    Raises:
        TypeError, ValueError: as :func:`read_columns`, or because names differ or a weight is not
            finite.
    """
    place = f"[{function}] {argument}"
    frame = graph if isinstance(graph, Tensor) else plain_table(place, graph)
    found = read_columns(function, argument, frame)
    if not scores:
        require_finite(function, argument, found.values)
    count = found.values.size(0) if found.values.dim() == 2 else 0
    if not (is_frame(frame) or is_anndata(frame)) or found.values.shape != (count, count):
        return found
    numbered = [str(number) for number in range(count)]
    labels = row_labels(frame)
    rows = numbered if labels is None else [str(label) for label in labels]
    values, own, alone = _rows_as_columns(place, found.values, found.names or numbered, rows)
    if len(set(own)) < len(own) or len(set(names)) < len(names):
        return Table(values, own)
    if own == numbered and set(names) != set(numbered):
        return Table(values, [])
    known = list(names) or (numbered if set(own) == set(numbered) else own)
    order = _order(f"{place}: expected the columns of {of or 'the graph'}", own, known)
    if alone and own != known:
        raise ValueError(
            f"{place}: expected names of rows and columns for another order of columns, got those "
            f"of {alone} alone"
        )
    return Table(values[order][:, order], [] if known == numbered and not names else known)


def _rows_as_columns(
    place: str, values: Tensor, own: list[str], rows: list[str]
) -> tuple[Tensor, list[str], str]:
    """A square matrix whose rows are in the order of its columns ``own``, their names, and which of
    the two alone has names. Labels that are just the numbers from 0 on are no names if the others
    are something else."""
    numbered = [str(number) for number in range(len(own))]
    if rows == own:
        return values, own, ""
    if set(own) != set(rows) and numbered in (own, rows):
        return (values, rows, "rows") if own == numbered else (values, own, "columns")
    expected = f"{place}: expected the same names of rows and columns"
    if len(set(own)) < len(own):
        raise ValueError(f"{expected}, got some of them twice")
    return values[_order(expected, rows, own)], own, ""


def _order(expected: str, given: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where ``names`` are in ``given``, which must be the same names."""
    for name in [*(set(given) - set(names)), *(set(names) - set(given))]:
        raise ValueError(f"{expected}, got {printable(name)[:60]!r} in one of them alone")
    if len(given) != len(names):
        raise ValueError(f"{expected}, got {len(given)} for {len(names)}")
    place = {name: at for at, name in enumerate(given)}
    return [place[name] for name in names]


def memory() -> int:
    """Bytes of memory of this machine, or the process limit if it is lower."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return machine if limit == resource.RLIM_INFINITY else min(machine, limit)


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


def _of_tensor(place: str, table: Tensor) -> Tensor:
    for wrong, what in (
        (table.is_nested, "a nested tensor"),
        (table.is_quantized, "a quantised tensor; dequantize() makes numbers of it"),
        (isinstance(table, MaskedTensor), "a masked tensor; to_tensor(nan) makes numbers of it"),
        (table.is_mkldnn, "a tensor of layout mkldnn; to_dense() makes numbers of it"),
    ):
        if wrong:
            raise TypeError(f"{place}: expected numbers, got {what}")
    if table.is_complex():
        raise TypeError(f"{place}: expected real numbers, got {describe(table)}")
    # Operators that read a table in place would miss the sign of a lazily negated one.
    return table.to(torch.float64).resolve_neg()


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
            entries = array.flat if array.dtype.kind == "O" else ()
            wrong = array.dtype if array.dtype.kind in "mMSUTV" else _no_number(entries)
            if wrong:
                raise TypeError(f"{place}: expected numbers, got {describe(values)} of {wrong}")
            if masked:  # what is under a mask counts as missing
                array = array.astype(numpy.float64).filled(math.nan)
            return torch.from_numpy(numpy.array(array, dtype=numpy.float64))
        if isinstance(values, (list, tuple)) and any(_is_array(row) for row in values):
            import numpy

            masked = any(isinstance(row, numpy.ma.MaskedArray) for row in values)
            return _of_array(place, numpy.ma.stack(values) if masked else numpy.asarray(values))
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


def _is_array(row: Any) -> bool:
    """Whether it is an array of NumPy, or of a package that makes such arrays."""
    return hasattr(row, "__array__") and not isinstance(row, Tensor) and row.ndim > 0


def _no_number(entries: Iterable[Any]) -> str:
    """The type of the first entry that float() would take although it is not a real number; else
    empty."""
    for entry in entries:
        if isinstance(entry, (str, bytes)):
            return "words"
        kind = getattr(entry, "dtype", None)
        if getattr(kind, "kind", "f") in "cmM":
            return str(kind)
    return ""


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
