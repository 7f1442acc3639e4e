"""Samples of graphs as one batch, for a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from .._arguments import checked, describe
from .._printable import printable
from .batches import DerivedTuples, TupleBatch, concatenate_graphs
from .builders import PointSets
from .conversion_checks import is_masked
from .frameworks import from_pyg
from .graph_data import GraphData, concatenate_data
from .graph_structure import Adjacency, LineGraph

__all__ = ["collate_graphs"]


@checked
def collate_graphs(samples: Sequence[Any]) -> Any:
    """One batch of many samples: the ``collate_fn`` of a DataLoader of graphs.

    A sample is a :class:`TupleBatch`, a :class:`GraphData`, a ``Data`` of PyTorch Geometric, which
    becomes a :class:`GraphData`, a tensor, a number, a string, or a tuple, list or dict of these.
    All samples have the same structure, and so has the result. A tuple becomes a list, as in
    torch's ``default_collate``. Graphs go through :func:`concatenate_graphs`. Tensors are
    concatenated along their first dimension, so that features keep the order of the rows; tensors
    without dimensions are stacked. Numbers become a tensor with one entry per sample.

    Raises:
        ValueError: no samples, graphs of different orders or symmetries, or samples that differ in
            structure.
        TypeError: a sample with its own row numbers, such as :class:`DerivedTuples`. Use its
            ``batch`` instead.

    Complexity: O(size of the samples).

    Example:
        >>> one = tuple_batch(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> samples = [(one, torch.randn(2, 4), label) for label in (0, 1)]
        >>> batch, x, label = collate_graphs(samples)
        >>> batch.graphs, x.shape, label
        (2, torch.Size([4, 4]), tensor([0, 1]))
    """
    if len(samples) and hasattr(samples[0], "edge_index"):
        return from_pyg(list(samples))
    if not samples:
        raise ValueError("[collate_graphs] samples: expected at least one, got none")
    _require_one_structure(samples)
    try:
        return collate(samples, collate_fn_map=_COLLATE)
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        said = str(error).splitlines()[0]
        if said.startswith("["):
            raise
        raise ValueError(
            f"[collate_graphs] samples: expected samples of one structure, got an error: {said}"
        ) from error


def _require_one_structure(samples: Sequence[Any]) -> None:
    """Refuses samples whose keys or types differ, because the first one would decide, and arrays
    whose masks would be lost."""
    first, said = samples[0], "[collate_graphs] samples: expected samples of one structure, got"
    if any(is_masked(each) for each in samples):
        raise ValueError(f"{said} an array with masked entries")
    for kind in (Mapping, str, bool):
        own = sum(isinstance(each, kind) for each in samples)
        if own not in (0, len(samples)):
            other = next(
                each for each in samples if isinstance(each, kind) != isinstance(first, kind)
            )
            raise ValueError(f"{said} {describe(first)} and {describe(other)}")
    if isinstance(first, Mapping):
        for each in samples:
            for key in each.keys() ^ first.keys():
                raise ValueError(f"{said} {printable(str(key))[:60]!r} in some of them alone")
        for key in first:
            _require_one_structure([each[key] for each in samples])
    elif isinstance(first, (list, tuple)) and all(type(each) is type(first) for each in samples):
        for parts in zip(*samples):
            _require_one_structure(parts)


def _collate_tensors(tensors: Sequence[Tensor], *, collate_fn_map: object) -> Tensor:
    dtypes = sorted({str(each.dtype) for each in tensors})
    if len(dtypes) > 1:
        raise TypeError(
            f"[collate_graphs] samples: expected tensors of one dtype, got {', '.join(dtypes)}"
        )
    return torch.cat([*tensors]) if tensors[0].dim() else torch.stack([*tensors])


def _refuse_rows(samples: Sequence[object], *, collate_fn_map: object) -> None:
    raise TypeError(
        "[collate_graphs] samples: expected graphs, tensors, numbers and strings, got "
        f"{type(samples[0]).__name__}, which numbers rows or nodes of its own graph"
    )


_COLLATE: dict[type | tuple[type, ...], Callable[..., Any]] = {
    **default_collate_fn_map,
    Tensor: _collate_tensors,
    TupleBatch: lambda batches, *, collate_fn_map: concatenate_graphs(batches),
    GraphData: lambda samples, *, collate_fn_map: concatenate_data(samples),
    (DerivedTuples, Adjacency, LineGraph, PointSets): _refuse_rows,
}

# A DataLoader without collate_fn joins graphs, too, where its samples are graphs.
for _kind in (TupleBatch, GraphData):
    default_collate_fn_map.setdefault(_kind, _COLLATE[_kind])
