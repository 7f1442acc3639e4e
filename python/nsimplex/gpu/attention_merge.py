"""Kernels before and after those of the backward pass: numbers of each query's softmax, and sums of
parts."""

import triton
import triton.language as tl

from .tuple_terms import LN2, LOG2E, RELU, SIGMOID, begin_of, end_of

# Above this size of lse, exp(x - lse) loses digits (kLargeLse of the CPU's kernels).
LARGE_LSE = tl.constexpr(256.0)

# fmt: off

@triton.jit
def attention_row_statistics(
        # out and grad_out [B, H, Tq, Dv]; grad_lse and lse fp32 [B, H, Tq], contiguous; states
        # fp32 [3, B, H, Tq] with STATES: base, maximum in base 2, log of the sum.
        out, grad_out, grad_lse, lse, states,
        rows,  # fp32 [4, B, H, Tq], written
        out_strides, grad_strides, heads, queries,
        NORMALIZER: tl.constexpr, HAS_LSE: tl.constexpr, STATES: tl.constexpr, DV: tl.constexpr,
        DVP: tl.constexpr, BQ: tl.constexpr):
    """shift, delta, factor and base of every query, from which its weights follow:

        softmax   factor 2^(x log2(e) + (mask - base) log2(e) - shift)
        relu      factor max(x + mask, 0)
        sigmoid   1 / (1 + exp(-x - mask))

    Without a large lse, shift is lse in base 2, factor 1 and base 0. Otherwise shift is a maximum
    and factor the inverse of a sum. A query without a tuple has shift = inf and delta = 0.
    delta = out . grad_out - grad_lse is the common term of the gradients of its logits.
    """
    bh = tl.program_id(1).to(tl.int64)
    batch, head = bh // heads, bh % heads
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    cv = tl.arange(0, DVP)
    inside = i < queries
    ok = inside[:, None] & (cv < DV)[None, :]
    i64 = i.to(tl.int64)[:, None]
    place = bh * queries + i
    plane = tl.num_programs(1).to(tl.int64) * queries
    value = tl.load(lse + place, mask=inside, other=0.0)
    none = value == float("-inf")
    live = ok & ~none[:, None]
    o_rows = out + batch * out_strides[0] + head * out_strides[1] + i64 * out_strides[2]
    g_rows = grad_out + batch * grad_strides[0] + head * grad_strides[1] + i64 * grad_strides[2]
    o = tl.load(o_rows + cv[None, :], mask=live, other=0.0).to(tl.float32)
    g = tl.load(g_rows + cv[None, :], mask=live, other=0.0).to(tl.float32)
    delta = tl.sum(o * g, 1)
    if HAS_LSE:
        delta -= tl.load(grad_lse + place, mask=inside & ~none, other=0.0)
    shift = value * LOG2E
    factor = tl.full((BQ,), 1.0, tl.float32)
    base = tl.zeros((BQ,), tl.float32)
    if NORMALIZER == SIGMOID:
        shift = tl.zeros((BQ,), tl.float32)
        delta = tl.zeros((BQ,), tl.float32)
    elif NORMALIZER == RELU:
        factor = tl.exp2(-shift)
        shift = tl.zeros((BQ,), tl.float32)
    elif STATES:
        large = (tl.abs(value) > LARGE_LSE) & (tl.abs(value) < float("inf"))
        maximum = tl.load(states + plane + place, mask=inside, other=0.0)
        log_sum = tl.load(states + 2 * plane + place, mask=inside, other=0.0)
        own_base = tl.load(states + place, mask=inside, other=0.0)
        # The given lse may be that of more tuples, but not by less than its own rounding.
        beyond = (own_base - value) + maximum * LN2 + log_sum
        beyond = tl.where(tl.abs(beyond) > 4.7683716e-7 * tl.abs(value), beyond, 0.0)
        shift = tl.where(large, maximum, shift)
        base = tl.where(large, own_base, 0.0)
        factor = tl.where(large, tl.exp2((beyond - log_sum) * LOG2E), 1.0)
    tl.store(rows + place, tl.where(none, float("inf"), shift), mask=inside)
    tl.store(rows + plane + place, delta, mask=inside)
    tl.store(rows + 2 * plane + place, tl.where(none, 0.0, factor), mask=inside)
    tl.store(rows + 3 * plane + place, base, mask=inside)


@triton.jit
def attention_merge(
        parts,  # fp32 [B, Hk, segments, span, row_size], from channel ``offset``
        out,  # [B, Hk, T_m, C], written
        bounds,  # the axis' int32 [B, Tq, 2] with TABLE
        out_strides, kv_heads, segments, segment, queries, span,
        length, low, high,  # of the axis; they hold with TABLE too
        row_size, offset,
        TABLE: tl.constexpr, C: tl.constexpr, CP: tl.constexpr, BN: tl.constexpr):
    """out[j] is the sum over the segments of queries, in their order, of their parts for key j. The
    first row of a part is the first key that the segment's first query sees."""
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    start = tl.program_id(0) * BN
    j = start + tl.arange(0, BN)
    c = tl.arange(0, CP)
    total = tl.zeros((BN, CP), tl.float32)
    own_bounds = bounds + batch * queries * 2
    # Segments that may reach a key of the tile.
    from_seg = tl.maximum(start - high + 1, 0) // segment
    to_seg = tl.minimum(segments, tl.maximum(start + BN - low + segment - 1, 0) // segment)
    for seg in range(from_seg, to_seg):
        first = seg * segment
        stop = tl.minimum(first + segment, queries)
        lo = begin_of(first, low, own_bounds, queries, TABLE)
        hi = end_of(stop - 1, high, length, own_bounds, queries, TABLE)
        row = (tl.program_id(1).to(tl.int64) * segments + seg) * span + (j - lo)
        total += tl.load(parts + row[:, None] * row_size + offset + c[None, :],
                         mask=((j >= lo) & (j < hi))[:, None] & (c < C)[None, :], other=0.0)
    place = out + batch * out_strides[0] + kv_head * out_strides[1]
    place += j.to(tl.int64)[:, None] * out_strides[2] + c[None, :]
    tl.store(place, total.to(out.dtype.element_ty), mask=(j < length)[:, None] & (c < C)[None, :])


@triton.jit
def attention_add_splits(
        parts,  # fp32 [splits, B, Hk, T_N, C]
        out,  # [B, Hk, T_N, C], written
        out_strides, kv_heads, splits, length, C: tl.constexpr, CP: tl.constexpr, BN: tl.constexpr):
    """out is the sum of the parts in their order."""
    bh = tl.program_id(1).to(tl.int64)
    batch, kv_head = bh // kv_heads, bh % kv_heads
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    c = tl.arange(0, CP)
    ok = (j < length)[:, None] & (c < C)[None, :]
    plane = tl.num_programs(1).to(tl.int64) * length * C
    place = parts + (bh * length + j)[:, None] * C + c[None, :]
    total = tl.zeros((BN, CP), tl.float32)
    for _split in range(0, splits):
        total += tl.load(place, mask=ok, other=0.0)
        place += plane
    place = out + batch * out_strides[0] + kv_head * out_strides[1]
    place += j.to(tl.int64)[:, None] * out_strides[2] + c[None, :]
    tl.store(place, total.to(out.dtype.element_ty), mask=ok)
