"""What stands before and after the backward kernel: numbers of each query's softmax, and sums over
segments."""

import triton
import triton.language as tl

from .attention_backward_kernels import LOG2E, _begin, _end

# Above this size of lse, exp(x - lse) loses digits, and the backward asks for the state of the
# row (kLargeLse of the CPU's kernels).
LARGE_LSE = tl.constexpr(256.0)


@triton.jit
def attention_row_statistics(
        out, grad_out, grad_lse, lse, states, rows, out_strides, grad_strides, heads, queries,
        NATURAL: tl.constexpr, NORMALIZER: tl.constexpr, HAS_LSE: tl.constexpr, STATES: tl.constexpr,
        DV: tl.constexpr, DVP: tl.constexpr, BQ: tl.constexpr):
    """rows [3, B, H, Tq] of each query: (shift, delta, factor).

    The weight of a logit x is factor exp(x - shift), where shift is in base 2 unless NATURAL. shift
    is lse and factor 1; but if lse is large, shift is the maximum of the state and factor the
    inverse of its sum. A query without a tuple has shift = inf. delta = out . grad_out - grad_lse.
    relu has the weight factor max(x, 0), sigmoid neither shift nor delta.
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
    o = tl.load(out + batch * out_strides[0] + head * out_strides[1] + i64 * out_strides[2] + cv[None, :],
                mask=ok, other=0.0)
    g = tl.load(grad_out + batch * grad_strides[0] + head * grad_strides[1] + i64 * grad_strides[2] + cv[None, :],
                mask=ok, other=0.0)
    delta = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)
    if HAS_LSE:
        delta -= tl.load(grad_lse + place, mask=inside, other=0.0)
    value = tl.load(lse + place, mask=inside, other=0.0)
    none = value == float("-inf")
    shift = tl.where(none, float("inf"), value)
    factor = tl.full((BQ,), 1.0, tl.float32)
    if NORMALIZER == "sigmoid":
        shift = tl.where(none, float("inf"), 0.0)
        delta = tl.zeros((BQ,), tl.float32)
    elif NORMALIZER == "relu":
        factor = tl.where(none, 0.0, tl.exp2(-shift * LOG2E))
        shift = tl.where(none, float("inf"), 0.0)
    elif STATES:
        maximum = tl.load(states + place, mask=inside, other=0.0)
        log_sum = tl.load(states + plane + place, mask=inside, other=0.0)
        # The given lse may be that of more tuples, but never by less than its own rounding.
        beyond = (maximum - value) + log_sum
        beyond = tl.where(tl.abs(beyond) > 4.7683716e-7 * tl.abs(value), beyond, 0.0)
        large = (tl.abs(value) > LARGE_LSE) & ~none
        shift = tl.where(large, maximum, shift)
        factor = tl.where(large, tl.exp2((beyond - log_sum) * LOG2E), 1.0)
    if not NATURAL:
        shift = shift * LOG2E
    tl.store(rows + place, shift, mask=inside)
    tl.store(rows + plane + place, tl.where(none, 0.0, delta), mask=inside)
    tl.store(rows + 2 * plane + place, factor, mask=inside)


@triton.jit
def attention_merge(
        parts, out, bounds, out_strides, kv_heads, segments, segment, queries, span, length, low, high,
        row_size, offset, TABLE: tl.constexpr, C: tl.constexpr, CP: tl.constexpr, BN: tl.constexpr):
    """out[j] is the sum over the segments, in their order, of their parts for key j.

    parts: fp32 [B, Hk, segments, span, row_size], from channel ``offset``. A segment's first row
    is the first key that its first query sees. low and high bound the keys of a query with TABLE too.
    """
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
        lo = _begin(first, low, own_bounds, queries, TABLE)
        hi = _end(stop - 1, high, length, own_bounds, queries, TABLE)
        row = (tl.program_id(1).to(tl.int64) * segments + seg) * span + (j - lo)
        total += tl.load(parts + row[:, None] * row_size + offset + c[None, :],
                         mask=((j >= lo) & (j < hi))[:, None] & (c < C)[None, :], other=0.0)
    place = out + batch * out_strides[0] + kv_head * out_strides[1] + j.to(tl.int64)[:, None] * out_strides[2]
    tl.store(place + c[None, :], total.to(out.dtype.element_ty), mask=(j < length)[:, None] & (c < C)[None, :])
