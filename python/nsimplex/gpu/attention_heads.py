"""The launch of the forward kernel for calls in which many rows share their tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from . import attention_heads_kernels as kernels
from . import gpu_tiles
from .axes import QueryAxes
from .call_options import Options, sink_argument
from .launches import (
    launch_options,
    nonzero,
    operands,
    padded,
    power_of_two,
    strides,
)

__all__ = ["Blocks", "applies", "blocks", "forward_heads"]

#: Fewer blocks of queries leave multiprocessors idle, as their windows differ in length.
LEAST_BLOCKS = 512


@dataclass(frozen=True)
class Blocks:
    """Rows of a matrix product."""

    tiles: gpu_tiles.Tiles
    queries: int
    heads: int

    def programs(self, query: Tensor, kv_heads: int) -> int:
        """Blocks of a call."""
        batch, heads, queries, _ = query.shape
        return batch * kv_heads * -(-heads // kv_heads // self.heads) * -(-queries // self.queries)

    def pays(self, axes: QueryAxes) -> bool:
        """Whether this kernel is faster than the one whose rows are tuples of one query.

        This one passes over the union of the queries' windows. The other one begins anew for every
        query, at the price of about six tiles of inner keys. Measured on an H200.
        """
        if self.queries == 1:  # fewer heads leave rows empty
            return 2 * self.heads > self.tiles.rows
        if len(axes.axes) > 2:  # the products of leading keys are rounded once more
            return False
        lead, inner = [max(1, axis.most) for axis in axes.axes]
        more, size = self.queries - 1, self.tiles.inner
        percent = 100 * (lead + more) // lead  # of the tuples that one query sees
        percent = percent * (-(-(inner + more) // size) * size) // inner
        return percent * inner <= 95 * (inner + 6 * size)


def blocks(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], axes: QueryAxes
) -> Blocks:
    """All heads of a group as far as they fit, and then queries."""
    _, heads, queries, dim = query.shape
    group = heads // keys[0].shape[1]
    channels = padded(max(dim, values[0].shape[3]))
    tiles = gpu_tiles.tiles(
        "heads", gpu_tiles.architecture(query.device), query.dtype, channels, len(keys), group, 1
    )
    own_heads = min(tiles.rows, power_of_two(group))
    own_queries = min(tiles.rows // own_heads, power_of_two(queries))
    # A matrix product has at least 16 rows.
    return Blocks(tiles, own_queries, max(own_heads, 16 // own_queries))


def applies(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    axes: QueryAxes,
) -> bool:
    """Whether a call is one of this kernel's: 16-bit inputs of at most 128 channels, at least two
    axes, a softmax, no option that concerns single tuples, and windows that are long beside a
    block of queries."""
    own = blocks(query, keys, values, axes)
    return (
        len(keys) > 1
        and query.dtype in (torch.bfloat16, torch.float16)
        and max(query.shape[3], values[0].shape[3]) <= 128
        and own.pays(axes)
        and (own.queries == 1 or own.programs(query, keys[0].shape[1]) >= LEAST_BLOCKS)
        and options.normalizer in ("softmax", "softmax_sink")
        and options.distinct == "none"
        and options.mask is None
        and options.key_masks is None
        and options.dropout_p == 0
        and options.softcap is None
    )


def forward_heads(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    axes: QueryAxes,
    out: Tensor,
) -> tuple[Tensor, Tensor]:
    """Fills ``out`` and returns (out, lse) of a call that :func:`applies` admits and that has a
    query. The channels of every tensor are contiguous. It allocates nothing else."""
    batch, heads, queries, _ = query.shape
    kv_heads = keys[0].shape[1]
    own = blocks(query, keys, values, axes)
    head_blocks = -(-heads // kv_heads // own.heads)
    query_blocks = -(-queries // own.queries)
    lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=query.device)
    sink = sink_argument(options)
    kernels.attention_heads_kernel[(query_blocks * head_blocks, batch * kv_heads)](
        **operands(query, keys, values, axes),
        out=out,
        lse=lse,
        bounds=axes.bounds if axes.bounds is not None else query,
        sink=sink if sink is not None else query,
        out_strides=strides(out),
        lead_axes=tuple((axis.length, axis.low, axis.high) for axis in axes.axes[:-1]),
        head_blocks=head_blocks,
        logit_scale=nonzero(options.logit_scale),
        output_scale=float(options.output_scale),
        BQ=own.queries,
        BH=own.heads,
        BN=own.tiles.inner,
        TABLE=axes.bounds is not None,
        SINK=sink is not None,
        SUM=options.reduce == "sum",
        NEGATIVE=options.logit_scale < 0,
        **launch_options(query.device, own.tiles),
    )
    return out, lse
