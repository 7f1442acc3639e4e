"""Attention of a sequence that is divided among ranks, for the queries of one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._choices import Distinct
from .._options import Window, flat_window, operator_options, taken, unhandled
from ..attention import attention
from ..face_attention import face_attention
from .exchange import Item, Span, Traffic, exchange, window_spans
from .ring import ring_attention
from .shards import Shards

__all__ = ["attention_of_shards", "refuse"]

_SEED_STEP = 0x9E3779B97F4A7C15


def refuse(function: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"[{function}] {name}: expected None under context_parallel")


class _Axis(NamedTuple):
    """One key axis of a call: the window, and what this rank has of the keys."""

    left: int
    right: int  #: 0 with ``causal``
    span: Span
    key: Tensor
    value: Tensor
    mask: Tensor | None

    def part(self, queries: Span, keys: Span) -> tuple[Tensor, Tensor, Tensor | None, list[int]]:
        """Keys, values and mask of a part, with the window of queries that end before its last
        keys: the operator aligns queries and keys at their ends."""
        keys = self.span.common(keys)
        first, more = keys.first - self.span.first, keys.last - queries.last
        left = -1 if self.left == -1 else self.left + more
        right = -1 if self.right == -1 else self.right - more
        if right < 0 <= self.right:
            right = 0
        mask = None if self.mask is None else self.mask.narrow(1, first, keys.length)
        key, value = (x.narrow(2, first, keys.length) for x in (self.key, self.value))
        return key, value, mask, [left, right]

    def seen(self, queries: Span, document: Span) -> Span:
        """The keys of one document that its queries see."""
        first = document.first if self.left == -1 else queries.first - self.left + 1
        last = document.last if self.right == -1 else queries.last + self.right
        return Span(first, last).common(document)


def attention_of_shards(
    shards: Shards,
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    causal: bool,
    window: Window,
    key_lengths: Tensor | None,
    key_masks: Sequence[Tensor] | None,
    cu_seqlens: Tensor | None,
    distinct: Distinct,
    face: bool,
    return_lse: bool,
    options: dict[str, Any],
) -> Tensor | tuple[Tensor, Tensor]:
    """:meth:`ContextParallel.attention`."""
    name = "face_attention" if face else "attention"
    options = taken("shards", name, options, "under context_parallel")
    refuse(name, return_lse=return_lse or None if face else None)
    length = query.size(2)
    shards._require_shards(name, length, [*keys, *values])
    flat = flat_window(window, len(keys)) or [-1, -1] * len(keys)
    sides = [(flat[2 * m], 0 if causal else flat[2 * m + 1]) for m in range(len(keys))]
    if options.get("dropout_p", 0) > 0:
        seed = options.get("seed")
        seed = torch.randint(2**63 - 1, ()).item() if seed is None else seed
        options["seed"] = (seed + shards.rank * _SEED_STEP) % (2**63 - 1)
    places = dict(
        cu_seqlens=cu_seqlens, key_masks=key_masks, key_lengths=key_lengths, distinct=distinct
    )
    alone = not face and unhandled("around", options | places) is None
    axis = _ring_axis(shards, sides, options) if alone else None
    if axis is not None:
        return _ring(shards, query, keys, values, sides, axis, return_lse, options)
    bounds = shards._bounds(name, cu_seqlens, length)
    spans = [window_spans(shards.ranks, length, *side, bounds) for side in sides]
    if distinct != "none":  # equal positions have equal places on all axes
        spans = [
            [Span(min(s.first for s in each), max(s.last for s in each)) for each in zip(*spans)]
        ] * len(keys)
    items = [*keys, *values, *(key_masks or [])]
    dims = [2] * (2 * len(keys)) + [1] * len(key_masks or [])
    needs = spans * (3 if key_masks else 2)
    fetched = shards._fetch(name, items, dims, needs)
    masks: list[Tensor | None] = [*fetched[2 * len(keys) :]] or [None] * len(keys)
    if key_lengths is not None:
        masks = [
            shards._inside(key_lengths, m, spans[m][shards.rank], mask)
            for m, mask in enumerate(masks)
        ]
    axes = [
        _Axis(*sides[m], spans[m][shards.rank], fetched[m], fetched[len(keys) + m], masks[m])
        for m in range(len(keys))
    ]
    call: Callable = face_attention if face else attention
    options |= dict(causal=causal, distinct=distinct)
    outs = [
        _part(shards, call, query, axes, queries, document, options, return_lse)
        for queries, document in shards._documents(bounds, length)
    ]
    if not return_lse:
        return torch.cat(outs, 2)
    return torch.cat([out for out, _ in outs], 2), torch.cat([lse for _, lse in outs], 2)


def _part(
    shards: Shards,
    call: Callable,
    query: Tensor,
    axes: Sequence[_Axis],
    queries: Span,
    document: Span,
    options: dict,
    return_lse: bool,
):
    """The queries of one document."""
    own = query.narrow(2, queries.first - shards.rank * query.size(2), queries.length)
    if options["distinct"] != "none":
        common = axes[0].span.common(document)
        parts = [axis.part(queries, common)[:3] for axis in axes]
        window: list[tuple[int, ...]] = [(axis.left, axis.right) for axis in axes]
        place = queries.first - common.first
        at = torch.full((query.size(0),), place, dtype=torch.int64, device=query.device)
        options = options | dict(query_positions=at)
    else:
        found = [axis.part(queries, axis.seen(queries, document)) for axis in axes]
        parts, window = [each[:3] for each in found], [tuple(each[3]) for each in found]
    masks = [mask for _, _, mask in parts]
    if masks[0] is not None:
        options = options | dict(key_masks=masks)
    if face_attention is not call:
        options = options | dict(return_lse=return_lse)
    return call(own, [k for k, _, _ in parts], [v for _, v, _ in parts], window=window, **options)


def _ring_axis(shards: Shards, sides: Sequence[tuple[int, int]], options: dict) -> int | None:
    """The axis that goes round the ring; None: all are fetched."""
    whole = [m for m, (left, right) in enumerate(sides) if left == -1 and right in (0, -1)]
    others = [side for m, side in enumerate(sides) if m not in whole]
    plain = options.get("normalizer", "softmax") in ("softmax", "softmax_sink")
    bounded = len(whole) == 1 and not any(-1 in side for side in others)
    return whole[0] if shards.unbounded == "ring" and plain and bounded else None


def _ring(
    shards: Shards,
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    sides: Sequence[tuple[int, int]],
    axis: int,
    return_lse: bool,
    options: dict,
):
    """One unbounded axis goes round the ranks; the others fetch what their windows reach."""
    length, traffic = query.size(2), Traffic("attention")
    others = [m for m in range(len(keys)) if m != axis]
    spans = [window_spans(shards.ranks, length, *sides[m]) for m in others]
    keys, values = [*keys], [*values]
    if others:
        items = [Item(x[m], 2, span) for x in (keys, values) for m, span in zip(others, spans)]
        fetched = exchange(items, shards.group, traffic)
        for place, m in enumerate(others):
            keys[m], values[m] = fetched[place], fetched[len(others) + place]
    own, window = shards._own(length), [-1, -1] * len(keys)
    for m, span in zip(others, spans):
        more = span[shards.rank].last - own.last
        window[2 * m : 2 * m + 2] = [sides[m][0] + more, sides[m][1] - more]
    shards.traffic.append(traffic)
    sink = options.pop("sink", None)
    normalizer = options.pop("normalizer", "softmax")
    options = operator_options(query, keys, values, **options)
    options["window"] = window
    out, lse = ring_attention(
        query, keys, values, axis, sides[axis][1] == 0, shards.group, traffic, options
    )
    if normalizer == "softmax_sink":  # a tuple of its own in the denominator, with value 0
        share = torch.sigmoid(lse - sink[:, None])
        out = out * share[..., None].to(out.dtype)
        lse = torch.logaddexp(lse, sink[:, None].to(lse.dtype))
    return (out, lse) if return_lse else out
