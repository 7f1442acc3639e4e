"""Sizes of the backward pass of dense attention on a GPU: tiles, blocks, segments and workspace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import gpu_tiles
from .attention_forward import block_sizes
from .axes import QueryAxes
from .call_options import Options, axes_of_call
from .launches import padded, power_of_two

__all__ = [
    "BackwardPlan",
    "KeysPlan",
    "RowsPlan",
    "backward_workspace",
    "needs_states",
    "plan",
    "scratch_numbers",
]

#: Programs that a launch should have, so that every multiprocessor has one or two.
ENOUGH_PROGRAMS = 264
#: Bytes of the parts of leading gradients, above which segments of queries grow.
MOST_PART_BYTES = 512 << 20
MOST_SPLITS = 16


@dataclass(frozen=True)
class RowsPlan:
    """The launch for the query and the leading axes."""

    tiles: gpu_tiles.Tiles
    queries: int  #: of a block
    heads: int  #: of a block
    box: tuple[int, ...]  #: leading tuples of a block: keys of each leading axis
    boxes: tuple[int, ...]  #: how many of them cover what a block of queries sees
    segment: int  #: queries of a program
    segments: int
    spans: tuple[int, ...]  #: keys of each leading axis that a segment may see


@dataclass(frozen=True)
class KeysPlan:
    """The launch for the inner axis."""

    tiles: gpu_tiles.Tiles
    queries: int
    heads: int
    tuples: int
    splits: int  #: of the queries of a tile of keys


@dataclass(frozen=True)
class BackwardPlan:
    """Sizes of a backward pass, which follow from the problem and the kind of device."""

    rows: RowsPlan
    keys: KeysPlan


def plan(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], axes: QueryAxes
) -> BackwardPlan:
    """The launches of a call, whose working order is that of ``axes``."""
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    group = heads // kv_heads
    counts = [max(1, axis.most) for axis in axes.axes[:-1]]
    channels = padded(max(dim, value_dim))
    arch = gpu_tiles.architecture(query.device)

    def tiles(step: str) -> gpu_tiles.Tiles:
        return gpu_tiles.tiles(
            step, arch, query.dtype, channels, len(keys), group, math.prod(counts)
        )

    return BackwardPlan(
        _rows_plan(tiles("rows"), batch * kv_heads, group, queries, counts, axes, dim + value_dim),
        _keys_plan(tiles("keys"), batch * kv_heads, group, queries, counts, axes.axes[-1].length),
    )


def _rows_plan(
    tiles: gpu_tiles.Tiles,
    sequences: int,
    group: int,
    queries: int,
    counts: Sequence[int],
    axes: QueryAxes,
    channels: int,
) -> RowsPlan:
    box = [power_of_two(count) for count in counts]
    while math.prod(box) > min(tiles.rows, tiles.tuples):
        box[box.index(max(box))] //= 2
    boxes = [-(-count // size) for count, size in zip(counts, box, strict=True)]
    block_heads = min(power_of_two(group), max(1, tiles.rows // math.prod(box)))
    room = max(1, tiles.rows // (math.prod(box) * block_heads))
    block_queries = 1
    if axes.positions is None:  # else a block of queries may see any keys
        # The boxes have to hold the keys of all queries of a block.
        spare = [s * n - c + 1 for s, n, c in zip(box, boxes, counts, strict=True)]
        while 2 * block_queries <= min([room, *spare]) and block_queries < queries:
            block_queries *= 2
    while block_queries * block_heads * math.prod(box) < 16:  # a product's least rows
        block_heads *= 2
    segment = max(1, min(tiles.segment, queries))

    def spans(segment: int) -> tuple[int, ...]:
        if axes.positions is not None:
            return tuple(max(1, axis.length) for axis in axes.axes[:-1])
        return tuple(max(1, min(axis.length, axis.most + segment - 1)) for axis in axes.axes[:-1])

    def part_bytes(segment: int) -> int:
        return 4 * channels * sequences * -(-queries // segment) * sum(spans(segment))

    while segment > 8 and sequences * -(-queries // segment) < ENOUGH_PROGRAMS:
        segment //= 2
    while segment < queries and part_bytes(segment) > MOST_PART_BYTES:
        segment *= 2
    return RowsPlan(
        tiles,
        block_queries,
        block_heads,
        tuple(box),
        tuple(boxes),
        segment,
        -(-queries // segment),
        spans(segment),
    )


def _keys_plan(
    tiles: gpu_tiles.Tiles,
    sequences: int,
    group: int,
    queries: int,
    counts: Sequence[int],
    length: int,
) -> KeysPlan:
    block_queries, block_heads, tuples = block_sizes(tiles, group, queries, counts)
    programs = sequences * -(-length // tiles.inner)
    splits = min(MOST_SPLITS, max(1, ENOUGH_PROGRAMS // max(1, 2 * programs)))
    splits = min(splits, max(1, -(-queries // (4 * block_queries))))
    return KeysPlan(tiles, block_queries, block_heads, tuples, splits)


def needs_states(query: Tensor, options: Options) -> bool:
    """Whether rows with a large lse need their softmax state. With 16-bit inputs and without a
    float mask, the rounding of lse is below that of the inputs."""
    if options.normalizer not in ("softmax", "softmax_sink"):
        return False
    added = options.mask is not None and options.mask.dtype != torch.bool
    return added or query.dtype == torch.float32


def scratch_numbers(sizes: RowsPlan, sequences: int, head_blocks: int, dim: int) -> int:
    """Of the query's gradients between the boxes of tuples of a block."""
    if math.prod(sizes.boxes) == 1:
        return 1
    return sequences * sizes.segments * head_blocks * sizes.queries * sizes.heads * dim


def backward_workspace(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options
) -> int:
    """Bytes that :func:`backward` allocates besides its results if all gradients are wanted.

    The largest are parts of the leading gradients: for each segment of queries the keys that it
    sees. Segments grow until these take at most MOST_PART_BYTES, or there is only one segment.
    """
    axes = axes_of_call(query, keys, options)
    sizes = plan(query, keys, values, axes)
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    channels, sequences = dim + value_dim, batch * kv_heads
    planes = 8 if needs_states(query, options) else 4
    numbers = planes * batch * heads * queries
    numbers += sequences * sizes.rows.segments * sum(sizes.rows.spans) * channels
    head_blocks = -(-(heads // kv_heads) // sizes.rows.heads)
    numbers += scratch_numbers(sizes.rows, sequences, head_blocks, dim)
    if sizes.keys.splits > 1:
        numbers += sizes.keys.splits * sequences * axes.axes[-1].length * channels
    if axes.bounds is not None:
        numbers += axes.bounds.numel() * (2 if needs_states(query, options) else 1)
    return 4 * numbers
