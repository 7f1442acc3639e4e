"""The launch of the forward kernel for calls in which many query heads share a key head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from . import attention_heads_kernels as kernels
from . import gpu_tiles
from .axes import QueryAxes
from .launches import empty_in_order, launch_options, power_of_two, strides

__all__ = ["applies", "forward_heads"]

#: Fewer query heads per key head leave rows of the matrix products empty.
LEAST_GROUP = 33


def applies(query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options) -> bool:
    """Whether a call is one of this kernel's: 16-bit inputs of at most 128 channels, at least two
    axes, a softmax, and no option that concerns single tuples. ``options`` is an
    ``attention_forward.Options``."""
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
    options,
    axes: QueryAxes,
) -> tuple[Tensor, Tensor]:
    """(out, lse) of a call that :func:`applies` admits and that has a query. The channels of every
    tensor are contiguous. It allocates nothing besides its results."""
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    group = heads // kv_heads
    channels = max(16, power_of_two(max(dim, value_dim)))
    tiles = gpu_tiles.tiles(
        "heads", gpu_tiles.architecture(query.device), query.dtype, channels, len(keys), group, 1
    )
    ks, vs = axes.sort(keys), axes.sort(values)
    lead, last = axes.axes[:-1], axes.axes[-1]
    rows = min(tiles.rows, max(16, power_of_two(group)))
    head_blocks = -(-group // rows)
    out = empty_in_order(query, value_dim)
    lse = torch.empty(batch, heads, queries, dtype=torch.float32, device=query.device)
    sink = options.sink if options.normalizer == "softmax_sink" else None
    kernels.attention_heads_kernel[(queries * head_blocks, batch * kv_heads)](
        q=query,
        lead_k=tuple(ks[:-1]),
        lead_v=tuple(vs[:-1]),
        k=ks[-1],
        v=vs[-1],
        out=out,
        lse=lse,
        bounds=axes.bounds if axes.bounds is not None else query,
        sink=sink.detach().to(torch.float32).contiguous() if sink is not None else query,
        q_strides=strides(query),
        lead_k_strides=tuple(strides(x) for x in ks[:-1]),
        lead_v_strides=tuple(strides(x) for x in vs[:-1]),
        k_strides=strides(ks[-1]),
        v_strides=strides(vs[-1]),
        out_strides=strides(out),
        lead_axes=tuple((axis.length, axis.low, axis.high) for axis in lead),
        length=last.length,
        low=last.low,
        high=last.high,
        batches=batch,
        queries=queries,
        group=group,
        kv_heads=kv_heads,
        head_blocks=head_blocks,
        logit_scale=float(options.logit_scale),
        output_scale=float(options.output_scale),
        ORDER=len(keys),
        D=dim,
        DV=value_dim,
        DP=max(16, power_of_two(dim)),
        DVP=max(16, power_of_two(value_dim)),
        BH=rows,
        BN=tiles.inner,
        TABLE=axes.bounds is not None,
        SINK=sink is not None,
        SUM=options.reduce == "sum",
        NEGATIVE=options.logit_scale < 0,
        **launch_options(query.device, tiles),
    )
    return out, lse
