"""One tile of inner keys in the forward pass of dense attention."""

import triton
import triton.language as tl

from .tuple_terms import (
    LN2,
    LOG2E,
    MOST_BASE,
    SIGMOID,
    SOFTMAX,
    capped,
    finite_or_zero,
    sigmoid,
)

# fmt: off

@triton.jit
def softmax_tile(
        u, y, top, total, kept, base, kp, vp, k_stride, v_stride, key, column, pair, added, factor,
        c, cv, scale2, D: tl.constexpr, DV: tl.constexpr, MASKED: tl.constexpr,
        ADDED: tl.constexpr, DROPOUT: tl.constexpr, NORMALIZER: tl.constexpr,
        CAP: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of inner keys: running state of every row (base, maximum top, sum total, sum of the
    kept weights) and the weighted values y."""
    k_place = kp + (key * k_stride)[:, None] + c[None, :]
    if MASKED:
        kt = tl.load(k_place, mask=column[:, None] & (c < D)[None, :], other=0.0)
    elif c.shape[0] == D:
        kt = tl.load(k_place)
    else:
        kt = tl.load(k_place, mask=(c < D)[None, :], other=0.0)
    s = tl.dot(u, tl.trans(kt), input_precision=PRECISION)
    if CAP > 0:
        s = capped(s, CAP)
    if NORMALIZER == SOFTMAX:
        if ADDED:
            new_base = tl.maximum(base, tl.max(tl.where(pair, added, float("-inf")), 1))
            shown = finite_or_zero(new_base)
            # As in float64, nothing of a score is left beside a mask like the smallest fp32.
            felt = tl.where(tl.abs(shown) < MOST_BASE, scale2, 0.0)
            s = s * felt[:, None] + (added - shown[:, None]) * LOG2E
            s = tl.where(pair, s, float("-inf"))
            top = top + (base - shown) * LOG2E
            base = new_base
            higher = tl.maximum(top, tl.max(s, 1))
            safe = finite_or_zero(higher)
            p = tl.exp2(s - safe[:, None])
        else:
            if MASKED:
                s = tl.where(pair, s, float("-inf"))
            most = tl.max(s, 1)
            if MASKED:  # the scale may be 0
                most = tl.where(most == float("-inf"), float("-inf"), most * scale2)
                higher = tl.maximum(top, most)
                safe = finite_or_zero(higher)
            else:
                higher = tl.maximum(top, most * scale2)
                safe = higher
            p = tl.exp2(s * scale2 - safe[:, None])
        alpha = tl.exp2(top - safe)
        total = total * alpha
        if DROPOUT:
            kept = kept * alpha
        y = y * alpha[:, None]
        top = higher
    else:
        s = s * (scale2 * LN2)
        if ADDED:
            s += added
        if NORMALIZER == SIGMOID:
            p = sigmoid(s)
        else:
            p = tl.where(s < 0, 0.0, s)
        if MASKED:
            p = tl.where(pair, p, 0.0)
    if NORMALIZER != SIGMOID:
        total += tl.sum(p, 1)
    elif MASKED:  # a sigmoid has no sum, but a query without a tuple must be known
        total += tl.sum(tl.where(pair, tl.full(p.shape, 1.0, tl.float32), 0.0), 1)
    else:
        total += key.shape[0]
    if DROPOUT:
        p = p * factor
    if DROPOUT or NORMALIZER == SIGMOID:
        kept += tl.sum(p, 1)
    v_place = vp + (key * v_stride)[:, None] + cv[None, :]
    if MASKED:
        vt = tl.load(v_place, mask=column[:, None] & (cv < DV)[None, :], other=0.0)
    elif cv.shape[0] == DV:
        vt = tl.load(v_place)
    else:
        vt = tl.load(v_place, mask=(cv < DV)[None, :], other=0.0)
    y = tl.dot(p.to(vt.dtype), vt, y, input_precision=PRECISION)
    return y, top, total, kept, base
