"""What follows the tiles in the forward pass of dense attention: a query's sums become its output,
and parts of a split query are joined."""

import triton
import triton.language as tl

from .tuple_terms import (
    LARGEST,
    LN2,
    LOG2E,
    SIGMOID,
    SOFTMAX,
    finite_or_zero,
)

# fmt: off

@triton.jit
def with_sink(o, base, best, weight, drain, ADDED: tl.constexpr):
    """The state of a query and head with the sink's weight, drain being its logit."""
    if ADDED:
        new_base = tl.maximum(base, drain)
        shown = finite_or_zero(new_base)
        best += (base - shown) * LOG2E
        drain = (drain - shown) * LOG2E
        base = new_base
    else:
        # The minimum keeps the product from being fused with a subtraction, which for large
        # sinks would leave the rounding of the product as an exponent.
        drain = tl.minimum(drain * LOG2E, LARGEST)
    higher = tl.maximum(best, drain)
    safe = finite_or_zero(higher)
    carry = tl.exp2(best - safe)
    return o * carry[:, None], base, higher, weight * carry + tl.exp2(drain - safe)


@triton.jit
def finish(o, base, best, weight, drain, output_scale, ADDED: tl.constexpr, SINK: tl.constexpr,
            NORMALIZER: tl.constexpr):
    """Output and lse from the sums of a query; without a tuple, 0 and -inf."""
    some = ~(weight == 0)
    if NORMALIZER == SIGMOID:
        return o * output_scale, tl.where(some, 0.0, float("-inf"))
    else:
        if SINK:
            o, base, best, weight = with_sink(o, base, best, weight, drain, ADDED)
        o = tl.where(some[:, None], o * (output_scale / tl.where(some, weight, 1.0))[:, None], 0.0)
        value = (best + tl.log2(tl.where(some, weight, 1.0))) * LN2
        if ADDED:
            value += finite_or_zero(base)
        return o, tl.where(some, value, float("-inf"))


@triton.jit
def attention_forward_merge(
        parts, states, out, lse, sink, out_strides,
        heads, queries, splits, plane,  # plane: B Hq Tq
        output_scale,
        DV: tl.constexpr, DVP: tl.constexpr, BQ: tl.constexpr, ADDED: tl.constexpr,
        SINK: tl.constexpr, NORMALIZER: tl.constexpr):
    """Joins the parts of each query in their order: parts fp32 [splits, B, Hq, Tq, Dv], states
    fp32 [splits, 3, B, Hq, Tq] of base, maximum and sum."""
    bh = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BQ + tl.arange(0, BQ)
    cv = tl.arange(0, DVP)
    ok = i < queries
    stat = bh * queries + i
    o = tl.zeros((BQ, DVP), tl.float32)
    weight = tl.zeros((BQ,), tl.float32)
    best = tl.full((BQ,), float("-inf"), tl.float32)
    base = tl.full((BQ,), float("-inf"), tl.float32)
    if NORMALIZER != SOFTMAX:
        best = tl.zeros((BQ,), tl.float32)
    for split in range(0, splits):
        number = tl.full((BQ,), 0, tl.int64) + split
        own = states + number * 3 * plane + stat
        new_top = tl.load(own + plane, mask=ok, other=float("-inf"))
        new_weight = tl.load(own + 2 * plane, mask=ok, other=0.0)
        new_o = tl.load(parts + ((number * plane + stat) * DV)[:, None] + cv[None, :],
                        mask=ok[:, None] & (cv < DV)[None, :], other=0.0)
        if NORMALIZER == SOFTMAX:
            if ADDED:
                new_base = tl.load(own, mask=ok, other=float("-inf"))
                higher_base = tl.maximum(base, new_base)
                shown = finite_or_zero(higher_base)
                new_top += (new_base - shown) * LOG2E
                best += (base - shown) * LOG2E
                base = higher_base
            higher = tl.maximum(best, new_top)
            safe = finite_or_zero(higher)
            carry, scale = tl.exp2(best - safe), tl.exp2(new_top - safe)
            o = o * carry[:, None] + new_o * scale[:, None]
            weight = weight * carry + new_weight * scale
            best = higher
        else:
            o += new_o
            weight += new_weight
    drain = None
    if SINK:
        drain = tl.full((BQ,), 0.0, tl.float32) + tl.load(sink + bh % heads)
    o, value = finish(o, base, best, weight, drain, output_scale, ADDED, SINK, NORMALIZER)
    place = out + bh // heads * out_strides[0] + bh % heads * out_strides[1]
    tl.store((place + i.to(tl.int64) * out_strides[2])[:, None] + cv[None, :],
             o.to(out.dtype.element_ty), mask=ok[:, None] & (cv < DV)[None, :])
    tl.store(lse + stat, value, mask=ok)
