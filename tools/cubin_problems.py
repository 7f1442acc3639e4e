"""The calls that tools/build_cubins traces and compiles for."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from cubin_programs import dense, plain

# Windows of the axes, the last one inner, and query heads per key head.
WINDOWS: dict[int, list[tuple[int, ...]]] = {
    1: [(-1, 0), (512, 0), (-1, -1)],
    2: [*((lead, 0, 512, 0) for lead in (8, 16, 32, 64)), (-1, 0, -1, 0), (-1, -1, -1, -1)],
    3: [*((lead, 0, lead, 0, 512, 0) for lead in (4, 8, 16)), (-1, 0, -1, 0, -1, 0)],
}
ELEMENTS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
SHAPES = [  # batch, length, key heads, query heads per key head
    (4, 8192, 1, 128),
    (1, 8192, 1, 128),
    (4, 4096, 2, 16),
    (4, 4096, 8, 8),
    (4, 4096, 8, 4),
    (4, 4096, 32, 1),
    (16, 1024, 8, 1),
    (32, 256, 8, 1),
    (32, 256, 4, 4),
    (2, 300, 2, 4),
    (2, 100, 2, 2),
]


@dataclass(frozen=True)
class Problem:
    """A call that the kernels are compiled for, with all calls that lead to the same decisions."""

    arch: int
    dtype: str
    order: int
    channels: int
    window: tuple[int, ...]  # left and right of each axis; -1: unbounded
    group: int
    length: int = 4096
    batch: int = 4
    kv_heads: int = 8
    heads_inside: bool = False  # [B, T, H, D] in memory
    grad_lse: bool = False
    tiles: str = ""  # those of another architecture, for tests

    @property
    def type(self):
        return ELEMENTS[self.dtype]

    def sizes(self) -> dict[str, tuple[int, ...]]:
        heads = self.kv_heads * self.group
        rows = {"query": heads} | {f"keys.{m}": self.kv_heads for m in range(self.order)}
        rows |= {f"values.{m}": self.kv_heads for m in range(self.order)}
        sizes = {
            name: (self.batch, n, self.length, self.channels)
            for name, n in (rows | {"out": heads, "grad_out": heads}).items()
        }
        names = ("lse", "grad_lse") if self.grad_lse else ("lse",)
        return sizes | dict.fromkeys(names, (self.batch, heads, self.length))

    def strides(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if self.heads_inside and len(sizes) == 4:
            _, h, t, c = sizes
            return (t * h * c, c, h * c, 1)
        return tuple(plain(n) for n in dense(sizes))

    def element(self, name: str):
        return torch.float32 if name.endswith("lse") else self.type

    def numbers(self) -> dict[str, Any]:
        """The sizes that formulas and conditions are about, by name."""
        numbers = {}
        for name, sizes in self.sizes().items():
            for d, (n, stride) in enumerate(zip(sizes, self.strides(sizes), strict=True)):
                numbers |= {f"{name}.size.{d}": n, f"{name}.stride.{d}": stride}
            numbers[f"{name}.offset"] = 0
        for m in range(self.order):
            numbers |= {f"left.{m}": self.window[2 * m], f"right.{m}": self.window[2 * m + 1]}
        return numbers | {"logit_scale": 0.1234, "output_scale": 0.987}


def problems(arguments: argparse.Namespace) -> Iterator[Problem]:
    """Problems whose programs and kernels the file gets."""
    windows = {
        order: [each for each in arguments.window if len(each) == 2 * order] or WINDOWS[order]
        for order in arguments.order
    }
    for arch, dtype, order, channels, shape, inside, grad_lse in itertools.product(
        arguments.arch, arguments.dtype, arguments.order, arguments.channels, SHAPES,
        (False, True), (False, True),
    ):  # fmt: skip
        batch, length, kv_heads, group = shape
        if group not in arguments.group:
            continue
        for window in windows[order]:
            yield Problem(
                arch, dtype, order, channels, window, group, length, batch, kv_heads, inside,
                grad_lse,
            )  # fmt: skip


def window_of(text: str) -> tuple[int, ...]:
    """The numbers of "32,0,512,0" or "all,0": argparse would take -1 for an option."""
    try:
        window = tuple(-1 if number == "all" else int(number) for number in text.split(","))
    except ValueError:
        window = ()
    if len(window) not in (2 * order for order in WINDOWS) or min(window) < -1:
        raise argparse.ArgumentTypeError(
            f"expected left,right of 1 to {max(WINDOWS)} axes, numbers or all, got {text}"
        )
    return window


def channels(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"expected 1 to 256, got {text}")
    return int(text)
