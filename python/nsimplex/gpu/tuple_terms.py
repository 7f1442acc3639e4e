"""Parts of the attention kernels that the forward and the backward pass share: which tuples a
query sees, and what options add to a logit or a weight.

Positions are int32 and offsets in memory int64. Rows of a matrix product are (query, head, tuple of
leading keys); columns are keys of the inner axis. What concerns a pair of both is written for any
two shapes that broadcast, so a kernel may transpose its products.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
LARGEST = tl.constexpr(3.4e38)  # of fp32, nearly

#: From this size on, the base of a row's masks leaves nothing of its scores, as in float64.
MOST_BASE = tl.constexpr(1e15)

#: What a mask holds: nothing, booleans (as uint8), or fp32 to add to the logits.
NO_MASK = tl.constexpr(0)
BOOL_MASK = tl.constexpr(1)
FLOAT_MASK = tl.constexpr(2)

#: Tuples that ``distinct`` leaves out: none, those with equal keys, and also those with the query's
#: own position.
ANY_KEYS = tl.constexpr(0)
OTHER_AXES = tl.constexpr(1)
OTHER_THAN_QUERY = tl.constexpr(2)

#: Normalizers. The sink is a state that a softmax begins with.
SOFTMAX = tl.constexpr(0)
SIGMOID = tl.constexpr(1)
RELU = tl.constexpr(2)


@triton.constexpr_function
def at(sizes, m):
    return sizes[m]


@triton.jit
def begin_of(i, low, bounds, queries, TABLE: tl.constexpr):
    """The first key that query i sees; never falls with i. ``bounds``: the entry's [queries, 2]."""
    if TABLE:
        return tl.load(bounds + 2 * tl.minimum(i, queries - 1))
    else:
        return tl.maximum(i + low, 0)


@triton.jit
def end_of(i, high, length, bounds, queries, TABLE: tl.constexpr):
    """One past the last key that query i sees; never falls with i."""
    if TABLE:
        return tl.load(bounds + 2 * tl.minimum(i, queries - 1) + 1)
    else:
        return tl.minimum(i + high, length)


@triton.jit
def first_at_least(bounds, limit, queries):
    """The first query whose begin (or end, of ``bounds`` + 1) reaches the limit; else
    ``queries``."""
    low = 0
    high = queries
    while low < high:
        middle = (low + high) // 2
        if tl.load(bounds + 2 * middle) >= limit:
            high = middle
        else:
            low = middle + 1
    return low


@triton.jit
def position_of(i, length, positions, queries, POSITIONS: tl.constexpr):
    """Where query i is among the keys of an axis. ``positions``: the entry's [queries]."""
    if POSITIONS:
        return tl.load(positions + tl.minimum(i, queries - 1))
    else:
        return i + (length - queries)


@triton.jit
def admitted(key_mask, j, ok):
    """Whether the mask of an axis (uint8 [T_m] of the entry) admits key j; false where not ok."""
    return tl.load(key_mask + j, mask=ok, other=0) != 0


@triton.jit
def splitmix64(x):
    """One step of splitmix64, as in tuple_hash.h."""
    x = x + 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def row_hash(seed, row, i):
    """uint32 hash of (batch entry * heads + head, query). ``seed``: uint64, splitmix64 of the
    call's seed, from ``hashed_seed``."""
    return splitmix64(splitmix64(seed ^ row.to(tl.uint64)) ^ i.to(tl.uint64)).to(tl.uint32)


@triton.jit
def key_hash(CALLER: tl.constexpr, j):
    """uint32 hash of key j of the caller's axis."""
    step: tl.constexpr = ((CALLER + 1) * 0x9E3779B97F4A7C15) % 18446744073709551616
    return splitmix64(j.to(tl.uint64) + step).to(tl.uint32)


@triton.jit
def hashed_seed(seed_low, seed_high):
    """splitmix64 of the seed, computed by the host, from its two halves as int32."""
    return (seed_high.to(tl.uint64) << 32) | (seed_low.to(tl.uint64) & 0xFFFFFFFF)


@triton.jit
def dropout_factor(hashes, threshold, keep_scale):
    """0 for a dropped tuple, else ``keep_scale`` = 1 / (1 - p). ``hashes``: row_hash xor the
    key_hash of every key. ``threshold``: floor(p 2^32), int64."""
    x = (hashes ^ (hashes >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    x = x ^ (x >> 16)
    return tl.where(x.to(tl.int64) >= threshold, keep_scale, 0.0)


@triton.jit
def finite_or_zero(x):
    """x, with -inf replaced by 0, so that subtracting it is safe."""
    return tl.where(x == float("-inf"), 0.0, x)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp2(-x * LOG2E))


@triton.jit
def capped(s, CAP: tl.constexpr):
    """CAP tanh(s / CAP), a soft cap."""
    return CAP * (1.0 - 2.0 / (1.0 + tl.exp2(s * (2.0 * LOG2E / CAP))))


@triton.jit
def cap_slope(s, CAP: tl.constexpr):
    """The derivative of a soft cap whose result is s."""
    return 1.0 - (s / CAP) * (s / CAP)


@triton.jit
def load_rows(base, offsets, c, ok, D: tl.constexpr, DP: tl.constexpr):
    """[rows, channels], zeros in rows that are left out."""
    if D == DP:
        return tl.load(base + (offsets[:, None] + c[None, :]), mask=ok[:, None], other=0.0)
    else:
        return tl.load(
            base + (offsets[:, None] + c[None, :]), mask=ok[:, None] & (c < D)[None, :], other=0.0
        )


@triton.jit
def load_all_rows(base, offsets, c, D: tl.constexpr, DP: tl.constexpr):
    """The same for rows that all exist."""
    if D == DP:
        return tl.load(base + (offsets[:, None] + c[None, :]))
    else:
        return tl.load(base + (offsets[:, None] + c[None, :]), mask=(c < D)[None, :], other=0.0)
