"""Which keys of an axis each query sees, as the GPU's kernels take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["MOST_POSITION", "Axis", "QueryAxes", "axes_of"]

#: Positions in kernels are int32: limits of a window are clamped to this size, which is beyond
#: every length.
MOST_POSITION = 1 << 29


@dataclass(frozen=True)
class Axis:
    """A key axis. Query i sees the keys max(i + low, 0) <= j < min(i + high, length), unless a
    table of bounds says otherwise."""

    length: int
    low: int
    high: int
    most: int  #: at least the number of keys that any query sees
    caller: int  #: index of the axis in the caller's ``keys``


@dataclass(frozen=True)
class QueryAxes:
    """The axes of a call in working order: the one with the longest window is the last, whose keys
    are the columns of the matrix products. The others are the leading axes.

    bounds: None, or int32 [N, B, Tq, 2] in working order: query i of entry b sees the keys
        bounds[m, b, i, 0] <= j < bounds[m, b, i, 1]. Both lie in [0, length] and never fall with i.
    positions: None, or int32 [B, Tq]: where the queries are among the keys of every axis. None
        stands for i + length - Tq.
    """

    axes: tuple[Axis, ...]
    bounds: Tensor | None
    positions: Tensor | None

    @property
    def order(self) -> tuple[int, ...]:
        """The caller's index of each axis."""
        return tuple(axis.caller for axis in self.axes)

    def sort(self, entries: Sequence) -> list:
        """The caller's entries, one per axis, in working order."""
        return [entries[axis.caller] for axis in self.axes]

    def unsort(self, entries: Sequence) -> list:
        """Entries in working order, one per axis, in the caller's order."""
        result: list = [None] * len(self.axes)
        for axis, entry in zip(self.axes, entries, strict=True):
            result[axis.caller] = entry
        return result


def axes_of(
    batch: int,
    queries: int,
    lengths: Sequence[int],
    *,
    causal: bool = False,
    window: Sequence[int] | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    query_positions: Tensor | None = None,
) -> QueryAxes:
    """The axes of a call of the operator with these options (``window`` is its flat list).

    Nothing is read back from the device: a table is computed there, and ``most`` is a bound that
    follows from the windows and the lengths alone.
    """
    reaches = [_reach(window, causal, m) for m in range(len(lengths))]
    axes = [
        _axis(m, length, queries, *reaches[m], query_positions is not None)
        for m, length in enumerate(lengths)
    ]
    axes.sort(key=lambda axis: (axis.most, axis.caller))
    positions = None
    if query_positions is not None:
        positions = query_positions
        if positions.dim() == 1:
            steps = torch.arange(queries, device=positions.device)
            positions = positions[:, None] + steps
        limit = MOST_POSITION
        positions = positions.clamp(-limit, limit).to(torch.int32).expand(batch, queries)
        positions = positions.contiguous()
    if key_lengths is None and cu_seqlens is None and positions is None:
        return QueryAxes(tuple(axes), None, None)
    bounds = _table(batch, queries, axes, reaches, key_lengths, cu_seqlens, positions)
    return QueryAxes(tuple(axes), bounds, positions)


def _reach(window: Sequence[int] | None, causal: bool, m: int) -> tuple[int, int]:
    """(left, right) of an axis: a query at p sees p - left < j <= p + right; MOST_POSITION is
    unbounded."""
    left, right = window[2 * m : 2 * m + 2] if window is not None else (-1, -1)
    left = min(left, MOST_POSITION) if left >= 0 else MOST_POSITION
    right = min(right, MOST_POSITION) if right >= 0 else MOST_POSITION
    return left, min(right, 0) if causal else right


def _axis(caller: int, length: int, queries: int, left: int, right: int, placed: bool) -> Axis:
    if placed:
        most = max(0, min(length, left + right)) if queries > 0 else 0
        return Axis(length, -MOST_POSITION, MOST_POSITION, most, caller)
    offset = length - queries
    low = max(offset - left + 1, -MOST_POSITION)
    high = min(offset + right + 1, MOST_POSITION)
    most = 0
    if queries > 0 and length > 0:
        # The number of keys is greatest at either end, or where a window stops being cut off.
        last = queries - 1
        places = {0, last, min(max(-low, 0), last), min(max(length - high, 0), last)}
        most = max(max(0, min(i + high, length) - max(i + low, 0)) for i in places)
    return Axis(length, low, high, most, caller)


def _table(
    batch: int,
    queries: int,
    axes: Sequence[Axis],
    reaches: Sequence[tuple[int, int]],
    key_lengths: Tensor | None,
    cu_seqlens: Tensor | None,
    positions: Tensor | None,
) -> Tensor:
    given = next(x for x in (positions, key_lengths, cu_seqlens) if x is not None)
    device = given.device
    step = torch.arange(queries, device=device, dtype=torch.int32)
    if key_lengths is not None:
        key_lengths = key_lengths.to(torch.int32).expand(len(axes), batch)
    if cu_seqlens is not None:
        edges = cu_seqlens.to(torch.int32)
        document = torch.searchsorted(edges, step, out_int32=True, right=True)
        document = document.clamp(1, max(1, edges.shape[0] - 1))  # values are not checked here
        document_begin = edges.index_select(0, document - 1)
        document_end = edges.index_select(0, document)
    table = torch.empty(len(axes), batch, queries, 2, dtype=torch.int32, device=device)
    for place, axis in enumerate(axes):
        left, right = reaches[axis.caller]
        position = positions if positions is not None else step + (axis.length - queries)
        begin, end = position - (left - 1), position + (right + 1)
        if cu_seqlens is not None:
            begin, end = begin.maximum(document_begin), end.minimum(document_end)
        if key_lengths is not None:
            end = end.minimum(key_lengths[axis.caller, :, None])
        table[place, :, :, 0] = begin.clamp(0, axis.length)
        table[place, :, :, 1] = end.clamp(0, axis.length)
    return table
