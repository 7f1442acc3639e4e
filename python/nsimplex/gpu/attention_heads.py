"""The launch of the forward kernel for calls in which many query heads share a key head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from . import attention_heads_kernels as kernels
from . import gpu_tiles
from .axes import QueryAxes
from .call_options import Options, sink_argument
from .launches import empty_in_order, launch_options, nonzero, operands, padded, strides

__all__ = ["applies", "forward_heads"]

#: Fewer query heads per key head leave rows of the matrix products empty.
LEAST_GROUP = 33


def applies(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: Options
) -> bool:
    """Whether a call is one of this kernel's: 16-bit inputs of at most 128 channels, at least two
    axes, a softmax, and no option that concerns single tuples."""
    return (
        len(keys) > 1
        and query.dtype in (torch.bfloat16, torch.float16)
        and max(query.shape[3], values[0].shape[3]) <= 128
        and query.shape[1] >= LEAST_GROUP * keys[0].shape[1]
        and options.normalizer in ("softmax", "softmax_sink")
        and options.distinct == "none"
        and options.mask is None
        and options.key_masks is None
        and options.dropout_p == 0
    )


def forward_heads(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: Options,
    axes: QueryAxes,
) -> tuple[Tensor, Tensor]:
    """(out, lse) of a call that :func:`applies` admits and that has a query. The channels of every
    tensor are contiguous. It allocates nothing besides its results."""
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    group = heads // kv_heads
    channels = padded(max(dim, value_dim))
    tiles = gpu_tiles.tiles(
        "heads", gpu_tiles.architecture(query.device), query.dtype, channels, len(keys), group, 1
    )
    rows = min(tiles.rows, padded(group))
    head_blocks = -(-group // rows)
    out = empty_in_order(query, value_dim)
    lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=query.device)
    sink = sink_argument(options)
    kernels.attention_heads_kernel[(queries * head_blocks, batch * kv_heads)](
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
        BH=rows,
        BN=tiles.inner,
        TABLE=axes.bounds is not None,
        SINK=sink is not None,
        SUM=options.reduce == "sum",
        NEGATIVE=options.logit_scale < 0,
        **launch_options(query.device, tiles),
    )
    return out, lse
