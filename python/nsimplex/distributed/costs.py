"""A cost model: what a layer computes and sends under tensor, context and data parallelism."""

from __future__ import annotations

import dataclasses

import torch

from .._choices import Unbounded
from .._options import Window, flat_window

__all__ = [
    "LayerShape",
    "context_parallel_bytes",
    "context_parallel_imbalance",
    "data_parallel_bytes",
    "exposed_share",
    "layer_flops",
    "tensor_parallel_bytes",
]


@dataclasses.dataclass(frozen=True)
class LayerShape:
    """A block of an attention layer and a feed-forward layer (swiglu), and its input.

    Args:
        tokens: T of the whole sequence.
        dim, heads, kv_heads, head_dim: C, Hq, Hk and D.
        order: N.
        window: as in :func:`nsimplex.attention`; None: no axis has a window.
        hidden: width of the feed-forward layer; 0: no such layer.
        batch: B.
        causal: as in :func:`nsimplex.attention`.
        width: bytes of a number that is sent.
    """

    tokens: int
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    order: int = 2
    window: Window = None
    hidden: int = 0
    batch: int = 1
    causal: bool = True
    width: int = 2

    def sides(self) -> list[tuple[int, int]]:
        """(left, right) of every axis; -1 is unbounded."""
        flat = flat_window(self.window, self.order) or [-1, -1] * self.order
        pairs = zip(flat[::2], flat[1::2])
        return [(left, 0 if self.causal else right) for left, right in pairs]

    @property
    def weights(self) -> int:
        """Number of weights of the block."""
        rows = self.heads + 2 * self.order * self.kv_heads + self.heads
        return self.dim * (rows * self.head_dim + 3 * self.hidden)


def _tuples(shape: LayerShape, tokens: int) -> float:
    """Admissible tuples of the first tokens of a causal sequence, or of a whole one."""
    window = None if shape.window is None else flat_window(shape.window, shape.order)
    count = torch.ops.nsimplex.attention_tuples
    return float(count(tokens, [tokens] * shape.order, causal=shape.causal, window=window))


def layer_flops(shape: LayerShape) -> float:
    r"""Flops of a forward pass of the block over the whole sequence.

    .. math:: 2 B T \cdot \mathrm{weights} + 4 D B H_q \cdot \mathrm{tuples}

    A backward pass takes twice as many for the weights and three times as many for the tuples.
    """
    products = 2.0 * shape.batch * shape.tokens * shape.weights
    tuples = _tuples(shape, shape.tokens)
    return products + 4.0 * shape.head_dim * shape.batch * shape.heads * tuples


def tensor_parallel_bytes(shape: LayerShape, ranks: int) -> float:
    r"""Bytes that a rank sends in a forward pass of the block: two sums over the ranks of
    [B, T, C], each 2 (R - 1) / R of the tensor in a ring. A backward pass sends as many.

    .. math:: 4 \frac{R - 1}{R} B T C \cdot \mathrm{width}
    """
    sums = 2 if shape.hidden else 1
    size = shape.batch * shape.tokens * shape.dim * shape.width
    return sums * 2.0 * (ranks - 1) / ranks * size


def data_parallel_bytes(shape: LayerShape, ranks: int, sharded: bool = False) -> float:
    r"""Bytes that a rank sends in a step for the weights of the block.

    .. math:: 2 \frac{R - 1}{R} \cdot \mathrm{weights} \cdot \mathrm{width}

    for a sum of the gradients in a ring; 3 instead of 2 with ``sharded`` weights, which are
    gathered in the forward and in the backward pass before their gradients are summed and
    scattered.
    """
    return (3 if sharded else 2) * (ranks - 1) / ranks * shape.weights * shape.width


def context_parallel_bytes(
    shape: LayerShape, ranks: int, rank: int | None = None, unbounded: Unbounded = "gather"
) -> int:
    r"""Bytes of keys and values that a rank receives in a forward pass.

    .. math:: 2 B H_k D \cdot \mathrm{width} \cdot \sum_m \mathrm{rows}_m

    An axis with window (left, right) brings min(left - 1, first) + min(right, T - last) rows to the
    rank with tokens first, .., last - 1. An unbounded side brings all rows there. On the ring, an
    axis brings T - T / R rows. The bytes that all ranks send are as many as all receive. A backward
    pass sends the same to the owners; on the ring, it sends keys and values once more, and their
    gradients in float32 or wider.

    Args:
        rank: None: one in the middle of the sequence, which receives as many as any rank with
            windows.
        unbounded: as in :func:`nsimplex.distributed.context_parallel`.
    """
    rank = ranks // 2 if rank is None else rank
    length = shape.tokens // ranks
    before, after = rank * length, shape.tokens - (rank + 1) * length
    rows = 0
    for left, right in shape.sides():
        if left == -1 and right in (0, -1) and unbounded == "ring":
            rows += shape.tokens - length
            continue
        rows += before if left == -1 else min(left - 1, before)
        rows += after if right == -1 else min(right, after)
    return 2 * shape.batch * shape.kv_heads * shape.head_dim * shape.width * rows


def context_parallel_imbalance(shape: LayerShape, ranks: int) -> float:
    """The most tuples that a rank computes, divided by the mean over the ranks. 1 is balanced. For
    causal attention, whose last rank has the most."""
    if not shape.causal:
        return 1.0
    length = shape.tokens // ranks
    total = _tuples(shape, shape.tokens)
    return (total - _tuples(shape, shape.tokens - length)) * ranks / total


def exposed_share(
    flops: float, sent: float, flops_per_second: float, bytes_per_second: float
) -> float:
    """Seconds of communication divided by seconds of compute of one rank. Below 1, messages can
    hide behind compute that does not wait for them."""
    return (sent / bytes_per_second) / (flops / flops_per_second)
