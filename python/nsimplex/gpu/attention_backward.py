"""The backward pass of dense attention on a GPU: plan, workspaces and launches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton

from . import attention_backward_kernels as kernels
from . import attention_merge as merge

BIG = 1 << 29  # positions in kernels are int32


@dataclass
class Axis:
    length: int
    low: int
    high: int
    most: int


def axis_of(length, queries, left, right, causal):
    offset = length - queries
    low = offset - left + 1 if left >= 0 else -BIG
    high = BIG
    if right >= 0:
        high = min(high, offset + right + 1)
    if causal:
        high = min(high, offset + 1)
    low, high = min(max(low, -BIG), BIG), min(max(high, -BIG), BIG)
    most = 0
    if queries > 0 and length > 0:
        candidates = {0, queries - 1, min(max(-low, 0), queries - 1), min(max(length - high, 0), queries - 1)}
        most = max(max(0, min(i + high, length) - max(i + low, 0)) for i in candidates)
    return Axis(length, low, high, most)


def pow2(x):
    return 1 << max(0, (x - 1).bit_length())


def rows_of(x):
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def strides(x):
    return (x.stride(0), x.stride(1), x.stride(2))


def empty_in_order(like: torch.Tensor) -> torch.Tensor:
    if like.stride(1) < like.stride(2):
        return torch.empty_like(like.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def tuple_boxes(counts, limit):
    """Sizes of a box of tuples, powers of two whose product is at most the limit, and how many
    boxes an axis needs."""
    sizes = [pow2(max(1, n)) for n in counts]
    while math.prod(sizes) > limit:
        sizes[sizes.index(max(sizes))] //= 2
    return sizes, [triton.cdiv(max(1, n), s) for n, s in zip(counts, sizes)]


def tuple_block(counts, limit):
    """Rows of a block that hold tuples: a power of two that wastes little."""
    total = math.prod(counts)
    best = min(limit, pow2(total))
    while best > 1 and best * -(-total // best) > 1.15 * total and best > 16:
        best //= 2
    return best


def backward(query, keys, values, out, lse, grad_out, grad_lse, wanted, options):
    window, causal = options["window"], options["causal"]
    scale, output_scale = options["scale"], options["output_scale"]
    rows, inner = options.get("rows", 64), options.get("inner", 64)
    precision, segment = options.get("precision", "tf32x3"), options.get("segment", 64)
    launch = options.get("launch", {})
    query, keys, values = rows_of(query), [rows_of(x) for x in keys], [rows_of(x) for x in values]
    out, grad_out, lse = rows_of(out), rows_of(grad_out), lse.contiguous()
    grad_lse = grad_lse.contiguous() if grad_lse is not None else None
    B, Hq, T, D = query.shape
    N, Hk, DV = len(keys), keys[0].shape[1], values[0].shape[3]
    group = Hq // Hk
    axes = [axis_of(k.shape[2], T, *window[m], causal) for m, k in enumerate(keys)]
    order = sorted(range(N), key=lambda m: (axes[m].most, m))
    axes, ks, vs = [axes[m] for m in order], [keys[m] for m in order], [values[m] for m in order]
    lead, last = axes[:-1], axes[-1]
    fp32 = dict(dtype=torch.float32, device=query.device)
    if query.numel() == 0 or math.prod(a.most for a in axes) == 0:
        return torch.zeros_like(query), [torch.zeros_like(x) for x in keys], [torch.zeros_like(x) for x in values]
    grad_query = empty_in_order(query)
    grad_keys, grad_values = [empty_in_order(x) for x in keys], [empty_in_order(x) for x in values]
    statistics = torch.empty(3, B, Hq, T, **fp32)
    bounds = statistics
    merge.attention_row_statistics[(triton.cdiv(T, 16), B * Hq)](
        out, grad_out, grad_lse if grad_lse is not None else lse, lse, lse, statistics, strides(out), strides(grad_out), Hq, T,
        NATURAL=False, NORMALIZER="softmax", HAS_LSE=grad_lse is not None, STATES=False, DV=DV, DVP=pow2(DV), BQ=16)
    common = dict(
        q=query, grad_out=grad_out, rows=statistics, lead_k=tuple(ks[:-1]), lead_v=tuple(vs[:-1]), k=ks[-1], v=vs[-1], bounds=bounds,
        q_strides=strides(query), grad_strides=strides(grad_out), lead_k_strides=tuple(strides(x) for x in ks[:-1]),
        lead_v_strides=tuple(strides(x) for x in vs[:-1]), k_strides=strides(ks[-1]), v_strides=strides(vs[-1]),
        length=last.length, low=last.low, high=last.high, batches=B, queries=T, group=group, kv_heads=Hk,
        logit_scale=scale, output_scale=output_scale, ORDER=N, D=D, DV=DV, DP=max(16, pow2(D)), DVP=max(16, pow2(DV)),
        BN=inner, TABLE=False, WIDE=False, SAFE=False, SCALED=query.dtype == torch.float32, PRECISION=precision)

    # Rows.
    sizes, chunks = tuple_boxes([a.most for a in lead], rows)
    BJ = math.prod(sizes)
    BH = min(pow2(group), max(1, rows // BJ))
    spare = min([s * n - a.most + 1 for a, s, n in zip(lead, sizes, chunks)], default=rows)
    BQ = 1
    while BQ * 2 <= spare and BQ * 2 * BH * BJ <= rows and BQ < T:
        BQ *= 2
    while BQ * BH * BJ < 16:
        BH *= 2
    segments = triton.cdiv(T, segment)
    span = [max(1, min(a.length, a.most + segment - 1)) for a in axes]
    lead_grad = tuple(torch.zeros(B, Hk, segments, n, D + DV, **fp32) for n in span[:-1])
    head_blocks = triton.cdiv(group, BH)
    scratch = torch.empty((B * Hk * segments, head_blocks, BQ * BH, D) if math.prod(chunks) > 1 else (1,), **fp32)
    kernels.attention_backward_rows[(segments, B * Hk)](
        **common, grad_q=grad_query, scratch=scratch, lead_grad=lead_grad, grad_q_strides=strides(grad_query),
        lead_axes=tuple((a.length, a.low, a.high, n, c) for a, n, c in zip(lead, span, chunks)),
        head_blocks=head_blocks, segment=segment, BQ=BQ, BH=BH, BJS=tuple(sizes), **launch)

    def merged(result, m, offset, C):
        axis = axes[m]
        merge.attention_merge[(triton.cdiv(axis.length, 16), B * Hk)](
            lead_grad[m], result, bounds, strides(result), Hk, segments, segment, T, span[m], axis.length, axis.low, axis.high,
            D + DV, offset, TABLE=False, C=C, CP=pow2(C), BN=16)

    for m in range(N - 1):
        merged(grad_keys[order[m]], m, 0, D)
        merged(grad_values[order[m]], m, D, DV)

    # Keys.
    counts = [max(1, a.most) for a in lead]
    tuples = math.prod(counts)
    BJ = tuple_block(counts, rows)
    BH = min(pow2(group), max(1, rows // BJ))
    BQ = min(pow2(max(T, 1)), max(1, rows // (BJ * BH)))
    while BQ * BH * BJ < 16:
        BH *= 2
    grad_k, grad_v = grad_keys[order[-1]], grad_values[order[-1]]
    kernels.attention_backward_keys[(triton.cdiv(last.length, inner), B * Hk)](
        **common, grad_k=grad_k, grad_v=grad_v, grad_k_strides=strides(grad_k), grad_v_strides=strides(grad_v),
        lead_axes=tuple((a.length, a.low, a.high, n) for a, n in zip(lead, counts)),
        head_blocks=triton.cdiv(group, BH), tuples=tuples, BQ=BQ, BH=BH, BJ=BJ, **launch)
    return grad_query, grad_keys, grad_values
