"""Tiles of the attention kernels, by the problem and the kind of device alone: never from a
measurement at run time, so that the bits of a result depend on the problem only."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Tiles", "architecture", "tiles"]


@dataclass(frozen=True)
class Tiles:
    """Sizes of a launch."""

    rows: int  #: rows of a matrix product: (query, head of the group, tuple of leading keys)
    inner: int  #: keys of the inner axis in a tile
    warps: int
    stages: int
    tuples: int  #: most tuples of leading keys among the rows
    registers: int = 255  #: most registers of a thread, on NVIDIA
    segment: int = 64  #: queries of a program of the backward's rows pass


def architecture(device: torch.device) -> str:
    """sm_80, sm_90 .. on NVIDIA, gfx942 .. on AMD, and "cpu" for Triton's interpreter."""
    if device.type != "cuda":
        return "cpu"
    properties = torch.cuda.get_device_properties(device)
    if torch.version.hip:
        return properties.gcnArchName.split(":")[0]
    return f"sm_{properties.major}{properties.minor}"


def tiles(
    step: str, arch: str, dtype: torch.dtype, channels: int, order: int, group: int, leading: int
) -> Tiles:
    """Tiles of a pass.

    Args:
        step: "forward", "heads", "rows" or "keys": the two kernels of the forward pass, and the
            two passes of the backward.
        arch: :func:`architecture` of the device.
        dtype: of the inputs.
        channels: the larger of D and Dv, rounded up to a power of two.
        order: N.
        group: query heads per key head.
        leading: most tuples of leading keys that a query sees.
    """
    if arch == "cpu":
        return Tiles(rows=32, inner=16, warps=4, stages=1, tuples=32, segment=16)
    amd = arch.startswith("gfx")
    if step == "heads" and amd:
        return Tiles(rows=64, inner=64, warps=4, stages=1, tuples=1)
    if step == "heads":
        # Measured on an H200: several blocks per multiprocessor hide each other's waits.
        if channels <= 64:
            return Tiles(rows=64, inner=64, warps=4, stages=1, tuples=1, registers=168)
        if group <= 64:
            return Tiles(rows=64, inner=64, warps=4, stages=2, tuples=1)
        return Tiles(rows=128, inner=64, warps=8, stages=1, tuples=1, registers=128)
    wide = dtype == torch.float32
    rows = 64 if channels <= 128 else 32
    inner = 64 if channels * (2 if wide else 1) <= 128 else 32
    if wide and channels > 64:
        rows, inner = 32, 32
    if step == "rows" and not wide and channels <= 128:
        inner = 32
    if amd:
        # The keys pass spills registers with more rows. Triton 3.7.1 cannot compile the rows pass
        # with a mask if its loads are pipelined.
        rows = 32 if step == "keys" and channels > 64 else rows
        return Tiles(rows, inner, warps=4, stages=2 if step == "forward" else 1, tuples=32)
    if step == "rows" and not wide and channels <= 128:
        return Tiles(rows, inner, warps=4, stages=3, tuples=32)
    if step == "keys" and not wide and channels <= 128 and 33 <= group <= 64:
        return Tiles(rows, inner=128, warps=8, stages=1, tuples=32)
    return Tiles(rows, inner, warps=4, stages=1 if step == "keys" else 2, tuples=32)
