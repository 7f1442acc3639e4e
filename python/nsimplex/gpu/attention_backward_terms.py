"""Parts that the two kernels of the backward pass share: loads of rows, and weights of tuples with
their derivatives."""

import triton
import triton.language as tl

from .tuple_terms import (
    LOG2E,
    MOST_BASE,
    RELU,
    SIGMOID,
    SOFTMAX,
    at,
    load_all_rows,
    load_rows,
)

#: From this weight on, all other tuples of a query together weigh less than an output of 16 bits
#: shows (kWholeWeight of the CPU's kernels).
WHOLE_WEIGHT = tl.constexpr(1 - 2.0**-13)

# fmt: off

@triton.constexpr_function
def product(sizes, begin, end):
    result = 1
    for index in range(begin, end):
        result *= sizes[index]
    return result


@triton.jit
def row_offsets(strides, batch, head, i):
    """Offsets of rows of [B, H, T, channels]."""
    return batch * strides[0] + head * strides[1] + i.to(tl.int64) * strides[2]


@triton.jit
def load_query_rows(base, offsets, c, live, D: tl.constexpr, DP: tl.constexpr, SAFE: tl.constexpr):
    """Rows of queries. Without a mask, the rows of one query are loaded once. SAFE leaves out the
    queries that have no tuple, for any contents of their rows."""
    if SAFE:
        return load_rows(base, offsets, c, live, D, DP)
    else:
        return load_all_rows(base, offsets, c, D, DP)


@triton.jit
def sum_others(x, M: tl.constexpr, BJS: tl.constexpr, C: tl.constexpr):
    """[product of BJS, C] to [BJS[M], C]: sums over the tuples that share key M. The first axis is
    the fastest digit of a tuple."""
    BEFORE: tl.constexpr = product(BJS, 0, M)
    AFTER: tl.constexpr = product(BJS, M + 1, len(BJS))
    OWN: tl.constexpr = at(BJS, M)
    if AFTER > 1:
        x = tl.sum(tl.reshape(x, (AFTER, OWN * BEFORE, C)), 0)
    if BEFORE > 1:
        x = tl.sum(tl.reshape(x, (OWN, BEFORE, C)), 1)
    return x


@triton.jit
def add_rows(acc, rows, part, stride: tl.constexpr, c, ok):
    """part[rows] += acc. No other program touches this part."""
    place = part + rows.to(tl.int64)[:, None] * stride + c[None, :]
    tl.store(place, tl.load(place, mask=ok, other=0.0) + acc, mask=ok)


@triton.jit
def weights_of(s, added, base, shift, factor, scale, NORMALIZER: tl.constexpr, ADDED: tl.constexpr,
               SCALED: tl.constexpr, BOUNDED: tl.constexpr):
    """Weights of scores s before dropout, and the logits they come from. All arguments broadcast.

    shift, factor and base are those of attention_row_statistics; shift = inf stands for a row
    without a weight. ``scale`` includes log2(e), except for relu. BOUNDED keeps the weights finite
    for scores that are not among the row's own, which have p <= 1.
    """
    if ADDED and NORMALIZER == SOFTMAX:
        # Next to a huge mask a score has no digits left, in any precision.
        scale = tl.where(tl.abs(base) < MOST_BASE, scale, 0.0)
    x = s * scale
    if ADDED:
        if NORMALIZER == RELU:
            x += added
        else:
            x += (added - base) * LOG2E
    if NORMALIZER == SOFTMAX:
        x -= shift
        if BOUNDED:
            x = tl.minimum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
        p = tl.exp2(x)
    elif NORMALIZER == SIGMOID:
        p = tl.where(shift == float("inf"), 0.0, 1.0 / (1.0 + tl.exp2(-x)))
    else:
        p = tl.where((x <= 0) | (shift == float("inf")), 0.0, x)
    if SCALED:
        p = p * factor
    return p, x


@triton.jit
def slopes_of(p, x, shift, factor, NORMALIZER: tl.constexpr):
    """Derivatives of the weights by their own logits, without the term of the common sum."""
    if NORMALIZER == SIGMOID:
        return p * (1.0 - p)
    elif NORMALIZER == RELU:
        return tl.where((x <= 0) | (shift == float("inf")), 0.0, factor)
    else:
        return p


@triton.jit
def without_whole(slope, p, ROUNDED: tl.constexpr):
    """Slopes of tuples with the weights p. ROUNDED: 0 for a tuple with all of its row's weight."""
    if ROUNDED:
        slope = tl.where(p >= WHOLE_WEIGHT, 0.0, slope)
    return slope
