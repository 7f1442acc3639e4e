"""What every launch of a kernel on a GPU needs: strides, results, and options of the compiler."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from . import gpu_tiles
from .axes import QueryAxes

__all__ = [
    "empty_in_order",
    "launch_options",
    "nonzero",
    "operands",
    "padded",
    "power_of_two",
    "precision",
    "strides",
    "with_rows",
]

#: Triton reads several elements at a time where it knows that addresses are multiples of 16.
ROW_MULTIPLE = 16


def power_of_two(x: int) -> int:
    """The least power of two that is at least x."""
    return 1 << max(0, (x - 1).bit_length())


def padded(channels: int) -> int:
    """Channels of a tile that holds these: a power of two, at least 16 for a matrix product."""
    return power_of_two(max(16, channels))


def nonzero(scale: float) -> float:
    """A scale of logits in the forward pass. An excluded logit is -inf, which times 0 were NaN."""
    return float(scale) or 1e-30


def with_rows(x: Tensor) -> Tensor:
    """The tensor [B, H, T, D] itself where its channels are contiguous and every row begins at a
    multiple of ROW_MULTIPLE elements, else a copy whose rows do. Loads of other rows take one
    element at a time."""
    begins = [x.storage_offset(), *strides(x)]
    if (x.stride(3) == 1 or x.shape[3] == 1) and all(step % ROW_MULTIPLE == 0 for step in begins):
        return x
    room = -(-x.shape[3] // ROW_MULTIPLE) * ROW_MULTIPLE
    return x.new_empty(*x.shape[:3], room)[..., : x.shape[3]].copy_(x)


def strides(x: Tensor) -> tuple[int, int, int]:
    """Strides of batch, head and row; 0 where there is only one."""
    batch, head, row = (x.stride(m) if x.shape[m] > 1 else 0 for m in range(3))
    return batch, head, row


def empty_in_order(like: Tensor, channels: int) -> Tensor:
    """[B, H, T, channels] with the heads outside or inside the rows, as in ``like``."""
    batch, heads, rows, _ = like.shape
    if like.stride(1) < like.stride(2):
        return like.new_empty(batch, rows, heads, channels).transpose(1, 2)
    return like.new_empty(batch, heads, rows, channels)


def precision(dtype: torch.dtype) -> str:
    """How fp32 operands are multiplied: three tf32 products, or exactly where there are none."""
    return "ieee" if dtype != torch.float32 or torch.version.hip else "tf32x3"


def launch_options(device: torch.device, tiles: gpu_tiles.Tiles) -> dict[str, int]:
    """Options of the compiler. Without a limit of registers it gives up on heavy kernels on
    sm_80."""
    if device.type == "cuda" and torch.version.hip is None:
        return {
            "num_warps": tiles.warps,
            "num_stages": tiles.stages,
            "maxnreg": tiles.registers,
        }
    return {"num_warps": tiles.warps, "num_stages": tiles.stages}


def operands(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], axes: QueryAxes
) -> dict[str, object]:
    """The arguments of every kernel of dense attention that stand for its inputs: the tensors in
    working order with their strides, the inner axis, and sizes."""
    ks, vs = axes.sort(keys), axes.sort(values)
    batch, heads, queries, dim = query.shape
    kv_heads, value_dim = keys[0].shape[1], values[0].shape[3]
    inner = axes.axes[-1]
    return {
        "q": query,
        "lead_k": tuple(ks[:-1]),
        "lead_v": tuple(vs[:-1]),
        "k": ks[-1],
        "v": vs[-1],
        "q_strides": strides(query),
        "lead_k_strides": tuple(strides(x) for x in ks[:-1]),
        "lead_v_strides": tuple(strides(x) for x in vs[:-1]),
        "k_strides": strides(ks[-1]),
        "v_strides": strides(vs[-1]),
        "length": inner.length,
        "low": inner.low,
        "high": inner.high,
        "batches": batch,
        "queries": queries,
        "group": heads // kv_heads,
        "kv_heads": kv_heads,
        "ORDER": len(keys),
        "D": dim,
        "DV": value_dim,
        "DP": padded(dim),
        "DVP": padded(value_dim),
    }
