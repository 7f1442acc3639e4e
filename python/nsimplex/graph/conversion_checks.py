"""Checks and merged rows that all conversions to graphs share."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args, overload

import torch
from torch import Tensor

from .._arguments import describe
from .._choices import Level
from .batches import widened
from .graph_data import GraphData, concatenate_data

#: Names that libraries give to the weights of edges. Without its weights it is another graph.
WEIGHTS = ("weight", "weights", "edge_weight", "edge_weights")


class ConversionWarning(UserWarning):
    """A source has attributes that the result does not have. The message names them, and the
    arguments that take them."""


def require_taken(
    at: str,
    left: Mapping[str, Iterable[str]],
    ignore: Collection[str],
    option: str = "ignore=[{}]",
) -> None:
    """Refuses to leave out attributes without which the result would be another graph.

    Args:
        at: begins the message, "[from_pyg] data: ".
        left: names of these attributes, by the argument that takes them; "": nothing takes them.
        ignore: names that the caller leaves out knowingly.
        option: how the caller says so.
    """
    for argument, names in left.items():
        for name in names:
            if name not in ignore:
                takes = f"{argument} takes it" if argument else "no argument takes it"
                raise ValueError(
                    f"{at}expected {name!r:.60} to be taken or ignored, because without it this is "
                    f"another graph, got neither; {takes}, {option.format(repr(name)[:60])} leaves "
                    "it out"
                )


def warn_of_rest(
    at: str,
    rest: Mapping[str, Iterable[str]],
    ignore: Collection[str],
    option: str = "ignore=[{}]",
    stacklevel: int = 4,
) -> None:
    """Names in one warning the attributes of a source that the result does not have.

    Args:
        at, rest, ignore, option: as in :func:`require_taken`.
        stacklevel: of :func:`warnings.warn`, for a function that ``checked`` wraps.
    """
    said = []
    for argument, names in rest.items():
        own = [repr(name)[:60] for name in dict.fromkeys(names) if name not in ignore]
        if own:
            more = f" and {len(own) - _MOST_NAMES} more" if len(own) > _MOST_NAMES else ""
            takes = f" ({argument} takes them)" if argument else ""
            said.append(", ".join(own[:_MOST_NAMES]) + more + takes)
    if said:
        warnings.warn(
            f"{at}left out {'; '.join(said)}; {option.format('..')} leaves them out without a "
            "warning",
            ConversionWarning,
            stacklevel=stacklevel,
        )


_MOST_NAMES = 8  # in one message


def warn_of_repeats(at: str, repeats: int, duplicates: str, stacklevel: int = 4) -> None:
    """Names the edges that are listed more than once and become one, in one warning."""
    if repeats and duplicates == "same":
        warnings.warn(
            f"{at}{repeats} edges are listed again and count once; duplicates='first' "
            "says so without a warning, 'sum' and 'mean' use the features of all",
            ConversionWarning,
            stacklevel=stacklevel,
        )


def repeats_in(index: Tensor, nodes: int) -> int:
    """How many columns of an edge index [2, E] are listed before."""
    return index.size(1) - len(merged_rows(index.t(), nodes).rows)


def is_masked(values: Any) -> bool:
    """Whether it is an array of NumPy with masked entries."""
    mask = getattr(values, "mask", None) if hasattr(values, "filled") else None
    return mask is not None and bool(mask.any())


def has_weights(values: Any) -> bool:
    """Whether weights of edges are other than 1, the weight of an edge that has none."""
    if isinstance(values, Tensor):
        return bool((values != 1).any())
    return any(
        value is not None and not (isinstance(value, numbers.Real) and value == 1)
        for value in values
    )


def require_ones(at: str, name: str, value: Tensor, places: Sequence[Tensor], hint: str) -> None:
    """Refuses entries of a matrix other than 1, which would be lost where an entry only says that
    there is an edge."""
    wrong = (value != 1).nonzero()
    if len(wrong):
        row = int(wrong[0])
        place = ", ".join(str(int(each[row])) for each in places)
        raise ValueError(
            f"{at}{name}: expected entries 0 and 1, got {value[row].item()} at [{place}]; {hint}"
        )


class MergedRows(NamedTuple):
    """Distinct rows in ascending order."""

    rows: Tensor  #: [distinct, k]
    inverse: Tensor  #: the distinct row of every row
    first: Tensor  #: the first row of every distinct one


def merged_rows(rows: Tensor, nodes: int) -> MergedRows:
    if rows.size(1) == 2 and nodes < 2**31:  # one number per row: a sort of numbers is faster
        keys, inverse = torch.unique(rows[:, 0] * nodes + rows[:, 1], return_inverse=True)
        distinct = torch.stack([keys // max(nodes, 1), keys % max(nodes, 1)], 1)
    else:
        distinct, inverse = torch.unique(rows, dim=0, return_inverse=True)
    first = torch.full((len(distinct),), len(rows)).scatter_reduce(
        0, inverse, torch.arange(len(rows)), "amin"
    )
    return MergedRows(distinct, inverse, first)


@overload
def reduced_rows(
    at: str, name: str, values: None, merged: MergedRows, rule: str, rows: Tensor
) -> None: ...
@overload
def reduced_rows(
    at: str, name: str, values: Tensor, merged: MergedRows, rule: str, rows: Tensor
) -> Tensor: ...
def reduced_rows(
    at: str, name: str, values: Tensor | None, merged: MergedRows, rule: str, rows: Tensor
) -> Tensor | None:
    """Values of the distinct rows."""
    if values is None:
        return None
    first = values[merged.first]
    if rule == "first" or len(first) == len(values):
        return first
    if rule == "same":
        spread = first[merged.inverse]
        alike = (spread == values) | ((spread != spread) & (values != values))
        differ = (~alike.flatten(1).all(1) if alike.dim() > 1 else ~alike).nonzero()
        if len(differ):
            row = int(differ[0, 0])
            hint = "; duplicates says what to do" if name == "edge_features" else ""
            raise ValueError(
                f"{at}{name}: expected the same for an edge that is listed twice, got others for "
                f"{tuple(rows[row].tolist())} in {int(merged.first[merged.inverse[row]])} and "
                f"{row}{hint}"
            )
        return first
    if not values.is_floating_point():
        raise ValueError(
            f"{at}duplicates: expected same or first for codes of type {values.dtype}, got {rule}"
        )
    total = torch.zeros_like(first).index_add(0, merged.inverse, values)
    if rule == "mean":
        total /= torch.bincount(merged.inverse, minlength=len(first))[:, None]
    return total


def renamed(
    at: str, function: Any, *args: Any, instead: tuple[str, str] = ("", ""), **kwargs: Any
) -> GraphData:
    """The call, whose errors begin with the name of the function that the user called. They say the
    second word of ``instead`` for the first one, an argument that this function has not."""
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError) as error:
        text = str(error)
        if text.startswith(f"[{function.__name__}] "):
            said = text.partition("] ")[2]
            if instead[0] and said.startswith(instead[0]):
                said = instead[1] + said[len(instead[0]) :]
            raise type(error)(at + said) from None
        raise


def matrix_entries(
    at: str, name: str, matrix: Any
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int]]:
    """Rows, columns and values of the entries of a matrix that are not 0, and its shape. Entries of
    a sparse matrix that are listed more than once are added up, as SciPy does."""
    if hasattr(matrix, "tocoo"):
        matrix = matrix.tocoo(copy=True)
        matrix.sum_duplicates()
        row, column, value = (
            torch.as_tensor(_plain_array(each)) for each in (matrix.row, matrix.col, matrix.data)
        )
        shape = matrix.shape
    else:
        if hasattr(matrix, "columns"):  # torch would read a frame column by column
            raise TypeError(
                f"{at}{name}: expected a matrix, got {describe(matrix)}; to_numpy() makes one"
            )
        if is_masked(matrix):
            raise TypeError(
                f"{at}{name}: expected a matrix, got {describe(matrix)} with masked entries; "
                "filled(0) makes one"
            )
        try:
            dense = torch.as_tensor(_plain_array(matrix))
        except (KeyError, RuntimeError, TypeError, ValueError):
            raise TypeError(f"{at}{name}: expected a matrix, got {describe(matrix)}") from None
        if dense.is_meta or dense.dim() != 2:
            raise ValueError(f"{at}{name}: expected a matrix, got {describe(matrix)}")
        if dense.layout != torch.strided:
            dense = dense.to_sparse_coo().coalesce()
            (row, column), value = dense.indices(), dense.values()
        else:
            row, column = dense.nonzero().unbind(1)
            value = dense[row, column]
        shape = dense.shape
    if value.is_complex():
        raise TypeError(f"{at}{name}: expected real numbers, got {value.dtype}")
    wrong = (~value.isfinite()).nonzero()
    if len(wrong):
        first = int(wrong[0])
        raise ValueError(
            f"{at}{name}: expected finite numbers, got {value[first].item()} in row "
            f"{int(row[first])}, column {int(column[first])}"
        )
    kept = value != 0
    row, column = row.to(torch.int64), column.to(torch.int64)
    rows, columns = shape
    return (row[kept], column[kept], value[kept]), (rows, columns)


def _plain_array(values: Any) -> Any:
    """An array of NumPy in a form that torch takes and counts in: of types that have operators, in
    the machine's byte order, with strides above 0. Other values stay."""
    if not hasattr(values, "__array_interface__"):
        return values
    import numpy  # installed if an array exists

    values = numpy.asarray(values)
    wide = {"u": numpy.dtype("uint64"), "f": numpy.dtype("longdouble")}.get(values.dtype.kind)
    kind = numpy.dtype("float64") if values.dtype.newbyteorder("=") == wide else values.dtype
    return numpy.ascontiguousarray(values, kind.newbyteorder("="))


def require_choice(at: str, name: str, value: object, names: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in names:
        known = ", ".join(each or '""' for each in names)
        raise ValueError(f"{at}{name}: expected one of {known}, got {describe(value)}")


def index_of(at: str, name: str, index: Tensor) -> Tensor:
    """An index [2, E] in int64. One without columns may have any dtype, as an empty list has."""
    if not isinstance(index, Tensor) or index.is_meta or index.layout != torch.strided:
        raise TypeError(f"{at}{name}: expected a dense int64 tensor, got {describe(index)}")
    index = widened(index)
    if index.dtype != torch.int64 and index.numel():
        raise TypeError(f"{at}{name}: expected int64, got {index.dtype}")
    if index.dim() != 2 or index.size(0) != 2:
        turned = index.dim() == 2 and index.size(1) == 2
        hint = f"; [E, 2] is transposed, pass {name}.t()" if turned else ""
        raise ValueError(f"{at}{name}: expected shape [2, E], got {list(index.shape)}{hint}")
    return index.to(torch.int64)


_MOST_NODES = 2**31  # a pair of nodes is one number of 64 bits


def node_count(
    at: str, given: int | None, features: Tensor | None, batch: Tensor | None, index: Tensor
) -> int:
    for name, tensor in (("node_features", features), ("batch", batch)):
        if tensor is not None and (not isinstance(tensor, Tensor) or not tensor.dim()):
            raise TypeError(f"{at}{name}: expected one row per node, got {describe(tensor)}")
    if given is not None:
        if not isinstance(given, int) or given < 0 or given > _MOST_NODES:
            raise ValueError(
                f"{at}num_nodes: expected a number of nodes, at most 2^31, got {describe(given)}"
            )
        return given
    for tensor in (features, batch):
        if tensor is not None:
            return len(tensor)
    largest = int(index.max()) if index.numel() else -1
    if largest >= _MOST_NODES:
        raise ValueError(f"{at}num_nodes: expected nodes below 2^31, got {largest}")
    return largest + 1


def require_nodes(at: str, name: str, index: Tensor, nodes: int) -> None:
    wrong = ((index < 0) | (index >= nodes)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        allowed = f"nodes 0 to {nodes - 1}" if nodes else "no edges of 0 nodes"
        raise ValueError(
            f"{at}{name}: expected {allowed}, got {int(index[row, column])} in column {column}"
        )


def offsets_of(at: str, batch: Tensor | None, nodes: int, graphs: int | None) -> Tensor:
    batch = widened(batch)
    if batch is None:
        if graphs not in (None, 1):
            raise ValueError(f"{at}num_graphs: expected batch with more than one, got {graphs!r}")
        return torch.tensor([0, nodes])
    if batch.dtype != torch.int64 or batch.is_meta or batch.layout != torch.strided:
        raise TypeError(f"{at}batch: expected dense int64, got {batch.dtype}")
    if batch.shape != (nodes,):
        raise ValueError(f"{at}batch: expected shape [{nodes}], got {list(batch.shape)}")
    if len(batch) and (int(batch[0]) < 0 or bool((batch.diff() < 0).any())):
        raise ValueError(f"{at}batch: expected ascending numbers of graphs from 0 on")
    last = int(batch[-1]) + 1 if len(batch) else 0
    graphs = last if graphs is None else graphs
    if not isinstance(graphs, int) or graphs < last or graphs > _MOST_NODES:
        raise ValueError(f"{at}num_graphs: expected at least {last}, got {describe(graphs)}")
    counts = torch.bincount(batch, minlength=graphs)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def crossing_rows(batch: Tensor | None, rows: Tensor) -> Tensor:
    """The rows [.., 1] whose nodes are in more than one graph."""
    if batch is None:
        return torch.empty(0, 1, dtype=torch.int64)
    graphs = batch[rows]
    return (graphs != graphs[:, :1]).any(1).nonzero()


def finite_features(at: str, name: str, features: Tensor | None, rows: int) -> Tensor | None:
    """Features as [rows, d], finite."""
    if features is None:
        return None
    if not isinstance(features, Tensor) or features.is_meta or features.layout != torch.strided:
        raise TypeError(f"{at}{name}: expected a dense tensor, got {describe(features)}")
    features = widened(features)
    if not (features.is_floating_point() or features.dtype == torch.int64):
        raise TypeError(f"{at}{name}: expected floating point or int64, got {features.dtype}")
    if features.dim() == 1:
        features = features[:, None]
    if features.dim() != 2 or len(features) != rows:
        raise ValueError(f"{at}{name}: expected shape [{rows}, d], got {list(features.shape)}")
    wrong = (~features.isfinite()).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(
            f"{at}{name}: expected finite numbers, got {features[row, column].item()} in row "
            f"{row}, column {column}"
        )
    return features


def level_targets(
    at: str, targets: Tensor | None, level: Level, counts: dict[Level, int]
) -> tuple[Tensor | None, Level]:
    """Targets with one row per member of their level."""
    require_choice(at, "level", level, get_args(Level))
    if targets is None:
        if level:
            raise ValueError(f"{at}level: expected targets with level {level}, got none")
        return None, ""
    if not isinstance(targets, Tensor) or targets.is_meta or targets.layout != torch.strided:
        raise TypeError(f"{at}targets: expected a dense tensor, got {describe(targets)}")
    if targets.is_complex():
        raise TypeError(f"{at}targets: expected numbers or classes, got {targets.dtype}")
    targets = widened(targets)
    rows = targets.view(1) if targets.dim() == 0 else targets
    for name, count in counts.items():
        if level in ("", name) and len(rows) == count:
            return rows, name
    wanted = ", ".join(f"{count} ({name})" for name, count in counts.items() if level in ("", name))
    raise ValueError(f"{at}targets: expected rows {wanted}, got {len(rows)}")


def joined(samples: Sequence[GraphData], name: str) -> GraphData:
    """One record of many, where errors name the argument that held them."""
    try:
        return concatenate_data(samples)
    except ValueError as error:
        raise ValueError(str(error).replace("[collate_graphs] samples", name)) from None
