"""The forward pass of dense attention on a GPU: plan, workspace and launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import attention_forward_kernels as kernels
from . import attention_forward_merge as merge
from . import attention_heads, gpu_tiles, tuple_terms
from .axes import QueryAxes
from .call_options import Options, axes_of_call, term_arguments
from .launches import (
    empty_in_order,
    launch_options,
    nonzero,
    operands,
    padded,
    power_of_two,
    precision,
    strides,
    with_rows,
)

__all__ = ["Options", "Plan", "forward", "forward_workspace", "plan", "states"]

#: Programs below which the tuples of a query are split among several, and the most of them.
FEW_PROGRAMS = 264
MOST_SPLITS = 64


@dataclass(frozen=True)
class Plan:
    """Sizes of a forward launch, which follow from the problem and the kind of device."""

    tiles: gpu_tiles.Tiles
    queries: int  #: of a block
    heads: int  #: of a block
    tuples: int  #: of a block
    chunk_splits: int
    inner_splits: int

    @property
    def splits(self) -> int:
        return self.chunk_splits * self.inner_splits


def tuple_block(counts: Sequence[int], limit: int) -> int:
    """Rows of a block that hold tuples: a power of two that wastes little."""
    total = math.prod(max(1, count) for count in counts)
    best = min(limit, power_of_two(total))
    while best > 16 and 20 * best * -(-total // best) > 23 * total:
        best //= 2
    return best


def block_sizes(
    tiles: gpu_tiles.Tiles, group: int, queries: int, counts: Sequence[int]
) -> tuple[int, int, int]:
    """Queries, heads and leading tuples of a block of rows: as many tuples as fit, then heads of a
    group, then queries."""
    block_tuples = tuple_block(counts, min(tiles.rows, tiles.tuples))
    block_heads = min(power_of_two(group), max(1, tiles.rows // block_tuples))
    room = max(1, tiles.rows // (block_tuples * block_heads))
    block_queries = min(power_of_two(max(1, queries)), room)
    # A matrix product has at least 16 rows.
    while block_queries * block_heads * block_tuples < 16:
        block_heads *= 2
    return block_queries, block_heads, block_tuples


def plan(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], axes: QueryAxes) -> Plan:
    """The launch of a call, whose working order is that of ``axes``."""
    batch, heads, queries, dim = query.shape
    kv_heads = keys[0].shape[1]
    group = heads // kv_heads
    lead = [max(1, axis.most) for axis in axes.axes[:-1]]
    tuples, inner = math.prod(lead), max(1, axes.axes[-1].most)
    channels = padded(max(dim, values[0].shape[3]))
    sizes = gpu_tiles.tiles(
        "forward", gpu_tiles.architecture(query.device), query.dtype, channels, len(keys), group,
        tuples,
    )  # fmt: skip
    block_queries, block_heads, block_tuples = block_sizes(sizes, group, queries, lead)
    blocks = -(-group // block_heads) * -(-max(1, queries) // block_queries)
    programs = max(1, batch * kv_heads * blocks)
    chunks, tiles = -(-tuples // block_tuples), -(-inner // sizes.inner)
    wanted = min(MOST_SPLITS, -(-FEW_PROGRAMS // programs)) if programs < FEW_PROGRAMS // 2 else 1
    chunk_splits = min(chunks, wanted)
    # A program keeps at least four tiles of keys, so that a merge stays small beside it.
    inner_splits = max(1, min(wanted // chunk_splits, tiles // 4))
    return Plan(sizes, block_queries, block_heads, block_tuples, chunk_splits, inner_splits)


def _launch(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    known_lse: Tensor | None,
    like: Tensor,
) -> tuple[Tensor, Tensor]:
    """(out, lse), or with known lse (anything, states)."""
    measuring = known_lse is not None
    out = query if measuring else empty_in_order(like, values[0].shape[3])
    query = with_rows(query)
    keys, values = [with_rows(x) for x in keys], [with_rows(x) for x in values]
    batch, heads, queries, _ = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    axes = axes_of_call(query, keys, options)
    sizes = plan(query, keys, values, axes)
    if (
        not measuring
        and batch * heads * queries
        and _by_heads(query, keys, values, options, axes, sizes)
    ):
        return attention_heads.forward_heads(query, keys, values, options, axes, out)
    terms = term_arguments(query, keys, options, axes)
    splits = 1 if measuring else sizes.splits
    fp32 = {"dtype": torch.float32, "device": query.device}
    lse = torch.empty(batch, heads, queries, **fp32)
    if batch * heads * queries == 0:
        return out, lse.expand(3, -1, -1, -1) if measuring else lse
    if measuring:
        states_out = torch.empty(3, batch, heads, queries, **fp32)
        target, statistics = out, states_out
    elif splits > 1:
        target = torch.empty(splits, batch, heads, queries, value_dim, **fp32)
        statistics = torch.empty(splits, 3, batch, heads, queries, **fp32)
    else:
        target, statistics = out, lse
    lead = axes.axes[:-1]
    group = heads // kv_heads
    head_blocks = -(-group // sizes.heads)
    grid = (
        -(-queries // sizes.queries) * head_blocks,
        batch * kv_heads,
        splits,
    )
    kernels.attention_forward_kernel[grid](
        **operands(query, keys, values, axes),
        out=target,
        lse=statistics,
        known_lse=known_lse if measuring else lse,
        out_strides=strides(out),
        lead_axes=tuple((a.length, a.low, a.high, max(1, a.most)) for a in lead),
        head_blocks=head_blocks,
        tuples=math.prod(axis.most for axis in lead),
        chunk_splits=1 if splits == 1 else sizes.chunk_splits,
        inner_splits=1 if splits == 1 else sizes.inner_splits,
        logit_scale=nonzero(options.logit_scale),
        output_scale=float(options.output_scale),
        BQ=sizes.queries,
        BH=sizes.heads,
        BJ=sizes.tuples,
        BN=sizes.tiles.inner,
        SPLIT=splits > 1,
        STATES=measuring,
        PRECISION=precision(query.dtype),
        **terms,
        **launch_options(query.device, sizes.tiles),
    )
    if measuring:
        return out, states_out
    if splits > 1:
        merge.attention_forward_merge[(-(-queries // 16), batch * heads)](
            parts=target,
            states=statistics,
            out=out,
            lse=lse,
            sink=terms["sink"],
            out_strides=strides(out),
            heads=heads,
            queries=queries,
            splits=splits,
            plane=batch * heads * queries,
            output_scale=float(options.output_scale),
            DV=value_dim,
            DVP=padded(value_dim),
            BQ=16,
            SINK=terms["SINK"],
            ADDED=terms["MASK"] == tuple_terms.FLOAT_MASK.value,
            NORMALIZER=terms["NORMALIZER"],
        )
    return out, lse


def forward(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    like: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Dense attention in the product form: (out, lse) of the operator ``nsimplex::attention``. The
    memory of out has the order of ``like``, and of the query without it.

    Shapes: query [B, Hq, Tq, D], keys [B, Hk, T_m, D] and values [B, Hk, T_m, Dv] for each of
    1 <= N <= 4 axes, D and Dv at most 256; fp32, bf16 or fp16. The arguments have been checked.
    Complexity: 2 (D + Dv) flops for every query, head and tuple, and :func:`forward_workspace`
        bytes of memory besides the results.
    """
    return _launch(query, keys, values, options, None, query if like is None else like)


def states(query: Tensor, keys: Sequence[Tensor], options: Options, lse: Tensor) -> Tensor:
    """The softmax state of the rows with a large lse: fp32 [3, B, Hq, Tq] of base, maximum and
    logarithm of the sum.

    A tuple with the logit s + mask has the weight exp2((mask - base + s) log2(e) - maximum)
    exp(-log of the sum); base is 0 without a float mask. Rows whose lse is at most 256 in size
    have base 0, maximum lse log2(e) and logarithm 0. A program without a large row ends at once,
    and nothing is read back.
    """
    return _launch(query, keys, keys, options, lse.contiguous(), query)[1]


def _by_heads(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    axes: QueryAxes,
    sizes: Plan,
) -> bool:
    """Whether the kernel whose rows share tuples takes a call; it splits no query."""
    return sizes.splits == 1 and attention_heads.applies(query, keys, values, options, axes)


def forward_workspace(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options
) -> int:
    """Bytes that :func:`forward` allocates besides its results: parts of split queries, and a
    table of bounds. There are at most MOST_SPLITS parts if a launch would have fewer than
    FEW_PROGRAMS / 2 programs."""
    batch, heads, queries, _ = query.shape
    axes = axes_of_call(query, keys, options)
    splits = plan(query, keys, values, axes).splits
    table = 0 if axes.bounds is None else axes.bounds.numel() * 4
    if splits == 1:
        return table
    return table + 4 * splits * batch * heads * queries * (values[0].shape[3] + 3)
