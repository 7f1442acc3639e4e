"""What every launch of a kernel on a GPU needs: strides, results, and options of the compiler."""

from __future__ import annotations

import torch
from torch import Tensor

from . import gpu_tiles

__all__ = [
    "empty_in_order",
    "launch_options",
    "power_of_two",
    "precision",
    "strides",
    "with_rows",
]


def power_of_two(x: int) -> int:
    """The least power of two that is at least x."""
    return 1 << max(0, (x - 1).bit_length())


def with_rows(x: Tensor) -> Tensor:
    """The tensor itself where its channels are contiguous, else a copy."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def strides(x: Tensor) -> tuple[int, int, int]:
    """Strides of batch, head and row."""
    return x.stride(0), x.stride(1), x.stride(2)


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
