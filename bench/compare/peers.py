"""Attention of order N in plain PyTorch, as well as it can be written: what nsimplex is measured
against.

Every peer takes (query [B, H, T, D], keys, values, windows) of causal self-attention with one
length T, as many key as query heads, product form and product reducer, and works on blocks of
queries, so that its memory does not grow with T times the tuples. ``run`` adds the backward pass
block by block too: each block is differentiated as soon as it is there, and nothing is kept.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

#: Logits of one block, in elements: 64 MB of fp32, the fastest of 16 to 256 MB.
BLOCK_ELEMENTS = 16 << 20


def _weights(logits: Tensor, mask: Tensor | None, axes: int) -> Tensor:
    """Softmax over the last `axes` axes together."""
    if mask is not None:
        logits = logits.masked_fill(~mask, float("-inf"))
    return logits.flatten(-axes).softmax(-1).view_as(logits)


def _windows(rows: Tensor, first: int, count: int, window: int) -> Tensor:
    """Rows [B, H, T, D] -> strided view [B, H, count, window, D]: the last `window` rows up to each
    position.

    Positions before the sequence show zero rows; the caller masks them.
    """
    begin = first - window + 1
    block = rows[:, :, max(begin, 0) : first + count]
    block = F.pad(block, (0, 0, max(-begin, 0), 0))
    return block.unfold(2, window, 1).transpose(-1, -2)


def windowed_views(query: Tensor, keys, values, windows, first: int, count: int) -> Tensor:
    """Order 2 for queries [first, first + count): batched products of strided windows, one a
    query."""
    (k1, k2), (v1, v2), (w1, w2) = keys, values, windows
    q = query[:, :, first : first + count] * query.size(-1) ** -0.5
    u = q.unsqueeze(3) * _windows(k1, first, count, w1)  # [B, H, C, w1, D]
    logits = u @ _windows(k2, first, count, w2).transpose(-1, -2)  # [B, H, C, w1, w2]
    mask = None
    if first < max(w1, w2) - 1:
        position = torch.arange(first, first + count).view(-1, 1, 1)
        mask = (torch.arange(w1).view(-1, 1) >= w1 - 1 - position) & (
            torch.arange(w2) >= w2 - 1 - position
        )
    y = _weights(logits, mask, 2) @ _windows(v2, first, count, w2)
    return (_windows(v1, first, count, w1) * y).sum(3)


def banded_blocks(query: Tensor, keys, values, windows, first: int, count: int) -> Tensor:
    """The same with one large product a head: the long axis is cut once for all queries of a block
    and what a query does not see is masked."""
    (k1, k2), (v1, v2), (w1, w2) = keys, values, windows
    q = query[:, :, first : first + count] * query.size(-1) ** -0.5
    begin = max(first - w2 + 1, 0)
    long_keys, long_values = k2[:, :, begin : first + count], v2[:, :, begin : first + count]
    u = q.unsqueeze(3) * _windows(k1, first, count, w1)
    logits = (u.flatten(2, 3) @ long_keys.transpose(-1, -2)).unflatten(2, (count, w1))
    position = torch.arange(first, first + count).view(-1, 1, 1)
    key = torch.arange(begin, first + count)
    mask = (key <= position) & (key > position - w2)
    if first < w1 - 1:
        mask = mask & (torch.arange(w1).view(-1, 1) >= w1 - 1 - position)
    weights = _weights(logits, mask, 2)
    y = (weights.flatten(2, 3) @ long_values).unflatten(2, (count, w1))
    return (_windows(v1, first, count, w1) * y).sum(3)


def naive_einsum(query: Tensor, keys, values, windows, first: int, count: int) -> Tensor:
    """The definition: every tuple of all T x T keys, masked afterwards."""
    (k1, k2), (v1, v2), (w1, w2) = keys, values, windows
    q = query[:, :, first : first + count] * query.size(-1) ** -0.5
    logits = torch.einsum("bhid,bhjd,bhkd->bhijk", q, k1, k2)
    position = torch.arange(first, first + count).view(-1, 1)
    key = torch.arange(query.size(2))
    seen = [(key <= position) & (key > position - w) for w in (w1, w2)]
    weights = _weights(logits, seen[0].unsqueeze(2) & seen[1].unsqueeze(1), 2)
    return torch.einsum("bhijk,bhjd,bhkd->bhid", weights, v1, v2)


def sdpa(query: Tensor, keys, values, windows, first: int, count: int) -> Tensor:
    """Order 1: torch's own fused kernel; one block."""
    return F.scaled_dot_product_attention(query, keys[0], values[0], is_causal=True)


def block_size(peer, query: Tensor, windows) -> int:
    """Queries of a block, so that its logits stay within BLOCK_ELEMENTS."""
    batch, heads, length, _ = query.shape
    if peer is sdpa:
        return length
    tuples = length * length if peer is naive_einsum else windows[0] * windows[1]
    size = max(BLOCK_ELEMENTS // (batch * heads * tuples), 1)
    # Beyond this a banded block computes mostly what it masks away.
    return min(size, length, max(windows[1] // 8, 1) if peer is banded_blocks else length)


def run(peer, query: Tensor, keys, values, windows, grad_out: Tensor | None = None):
    """The output, or with `grad_out` the gradients of query, keys and values."""
    length = query.size(2)
    windows = [min(w, length) if w > 0 else length for w in windows]
    size = block_size(peer, query, windows)
    inputs = [query, *keys, *values]
    if grad_out is None:
        with torch.no_grad():
            blocks = [
                peer(query, keys, values, windows, first, min(size, length - first))
                for first in range(0, length, size)
            ]
        return torch.cat(blocks, 2)
    gradients = [torch.zeros_like(tensor) for tensor in inputs]
    for first in range(0, length, size):
        count = min(size, length - first)
        out = peer(query, keys, values, windows, first, count)
        of_block = torch.autograd.grad(out, inputs, grad_out[:, :, first : first + count])
        for total, part in zip(gradients, of_block):
            total += part
    return gradients
