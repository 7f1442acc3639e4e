"""The forward pass of dense attention where rows of a matrix product share tuples, in Triton.

The rows of every matrix product are heads of a few queries. They see the same tuples, or nearly, so
the tuples become keys and values of ordinary attention: tuple (j1, .., jN) has the key k1_j1 * .. *
kN_jN and the value v1_j1 * .. * vN_jN. A tile of inner keys and values stays in registers while the
leading tuples pass by, and one running softmax covers them all. Nothing is summed over rows, and
the loop reads one row of keys and of values per leading tuple. A block of several queries passes
over the union of their windows.

Products are rounded once to the type of the inputs, and leading products of two or more keys once
more.
"""

import triton
import triton.language as tl

from .tuple_terms import (
    LARGEST,
    LN2,
    LOG2E,
    begin_of,
    end_of,
    finite_or_zero,
    load_all_rows,
    load_rows,
)

# fmt: off

@triton.jit
def _row(place, c, C: tl.constexpr):
    if c.numel == C:
        return tl.load(place + c)
    else:
        return tl.load(place + c, mask=c < C, other=0.0)


@triton.jit
def _leading_row(places, strides, counts, flat, c, C: tl.constexpr, LEADING: tl.constexpr,
                 SUM: tl.constexpr):
    """The product (or sum) of the leading rows of tuple ``flat``. ``places``: the first row that
    the query sees, per axis."""
    if LEADING == 1:
        return _row(places[0] + tl.cast(flat, tl.int64) * strides[0][2], c, C)
    else:
        left = flat // counts[0]
        place = places[0] + tl.cast(flat % counts[0], tl.int64) * strides[0][2]
        row = _row(place, c, C).to(tl.float32)
        for m in tl.static_range(1, LEADING):
            digit = left
            if m < LEADING - 1:
                digit = left % counts[m]
                left = left // counts[m]
            place = places[m] + tl.cast(digit, tl.int64) * strides[m][2]
            factor = _row(place, c, C).to(tl.float32)
            if SUM:
                row += factor
            else:
                row *= factor
        return row.to(places[0].dtype.element_ty)


@triton.jit
def _sees(ok, limits, counts, flat, LEADING: tl.constexpr):
    """Whether the query of each row sees the leading keys of tuple ``flat``. ``limits``: its first
    key and its end per axis, counted from the first key of the block."""
    for m in tl.static_range(LEADING):
        digit = flat
        if m < LEADING - 1:
            digit = flat % counts[m]
            flat = flat // counts[m]
        ok = ok & (digit >= limits[m][0]) & (digit < limits[m][1])
    return ok


@triton.jit
def _leading_tuples(
        q, k_tile, v_tile, pair, o, top, total, row_ok, limits, k_places, v_places, lead_k_strides,
        lead_v_strides, counts, tuples, c, cv, scale2,
        D: tl.constexpr, DV: tl.constexpr, LEADING: tl.constexpr, SEVERAL: tl.constexpr,
        MASKED: tl.constexpr, SUM: tl.constexpr, NEGATIVE: tl.constexpr):
    """A tile of inner keys against all leading tuples: (o, maximum, sum). SEVERAL: the rows are
    those of several queries."""
    for flat in range(0, tuples):
        row = _leading_row(k_places, lead_k_strides, counts, flat, c, D, LEADING, False)
        if NEGATIVE:
            row = -row
        s = tl.dot(q, tl.trans(k_tile * row[None, :]))
        if MASKED:
            s = tl.where(pair, s, float("-inf"))
        most = tl.max(s, 1) * scale2
        if SEVERAL:
            # Rows that do not see the tuple keep their maximum and get the weight exp2(-inf).
            ok = _sees(row_ok, limits, counts, flat, LEADING)
            higher = tl.maximum(top, tl.where(ok, most, float("-inf")))
            safe = finite_or_zero(higher)
            shift = tl.where(ok, safe, float("inf"))
        else:
            higher = tl.maximum(top, most)
            safe = higher
            shift = higher
        p = tl.exp2(s * scale2 - shift[:, None])
        carry = tl.exp2(top - safe)
        total = total * carry + tl.sum(p, 1)
        o = o * carry[:, None]
        row = _leading_row(v_places, lead_v_strides, counts, flat, cv, DV, LEADING, SUM)
        if SUM:
            v = v_tile + row[None, :]
        else:
            v = v_tile * row[None, :]
        o = tl.dot(p.to(v.dtype), v, o)
        top = higher
    return o, top, total


@triton.jit
def attention_heads_kernel(
        # Tensors, strides and axes are those of attention_forward_kernel.
        q, lead_k, lead_v, k, v, out, lse, bounds, sink,
        q_strides, lead_k_strides, lead_v_strides, k_strides, v_strides, out_strides,
        lead_axes,  # tuples (length, low, high) of the leading axes
        length, low, high,  # of the inner axis
        batches, queries, group, kv_heads, head_blocks,
        logit_scale, output_scale,
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr, TABLE: tl.constexpr,
        SINK: tl.constexpr, SUM: tl.constexpr, NEGATIVE: tl.constexpr):
    """Grid: (blocks of queries * head_blocks, batches * kv_heads)."""
    LEADING: tl.constexpr = ORDER - 1
    BM: tl.constexpr = BQ * BH
    first = tl.program_id(0) // head_blocks * BQ
    last = tl.minimum(first + BQ, queries) - 1
    block = tl.program_id(0) % head_blocks
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    rows = tl.arange(0, BM)
    in_group = block * BH + rows % BH
    head = kv_head * group + in_group
    row_ok = in_group < group
    i = first
    if BQ > 1:
        i = first + rows // BH
        row_ok = row_ok & (i < queries)
    c, cv = tl.arange(0, DP), tl.arange(0, DVP)
    n = tl.arange(0, BN)
    scale2 = tl.abs(logit_scale) * LOG2E

    place = q + batch * q_strides[0] + head * q_strides[1] + i.to(tl.int64) * q_strides[2]
    qt = tl.load(place[:, None] + c[None, :], mask=row_ok[:, None] & (c < D)[None, :], other=0.0)
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]

    tuples = 1
    counts, limits, k_places, v_places = (), (), (), ()
    for m in tl.static_range(LEADING):
        axis_bounds = bounds + (m * batches + batch) * queries * 2
        begin = begin_of(first, lead_axes[m][1], axis_bounds, queries, TABLE)
        end = end_of(last, lead_axes[m][2], lead_axes[m][0], axis_bounds, queries, TABLE)
        if BQ > 1:
            own_begin = begin_of(i, lead_axes[m][1], axis_bounds, queries, TABLE)
            own_end = end_of(i, lead_axes[m][2], lead_axes[m][0], axis_bounds, queries, TABLE)
            limits = limits + ((own_begin - begin, own_end - begin),)
        counts = counts + (tl.maximum(end - begin, 0),)
        own = lead_k[m] + batch * lead_k_strides[m][0] + kv_head * lead_k_strides[m][1]
        k_places = k_places + (own + begin.to(tl.int64) * lead_k_strides[m][2],)
        own = lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1]
        v_places = v_places + (own + begin.to(tl.int64) * lead_v_strides[m][2],)
        tuples *= tl.maximum(end - begin, 0)
    inner_bounds = bounds + (LEADING * batches + batch) * queries * 2
    # The union of the windows; [all_lo, all_hi) is seen by every query.
    lo = begin_of(first, low, inner_bounds, queries, TABLE)
    hi = end_of(last, high, length, inner_bounds, queries, TABLE)
    all_lo, all_hi = lo, hi
    if BQ > 1:
        all_lo = begin_of(last, low, inner_bounds, queries, TABLE)
        all_hi = end_of(first, high, length, inner_bounds, queries, TABLE)
    head_tiles = tl.cdiv(all_lo - lo, BN)
    mid = lo + head_tiles * BN
    full = tl.maximum(all_hi - mid, 0) // BN
    tail = mid + full * BN
    edge_tiles = head_tiles + tl.cdiv(tl.maximum(hi - tail, 0), BN)
    if tuples == 0:
        edge_tiles = 0

    o = tl.zeros((BM, DVP), tl.float32)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    if SINK:
        drain = tl.load(sink + head, mask=row_ok, other=0.0)
        top = tl.minimum(drain * LOG2E, LARGEST)  # as in with_sink
        total = tl.where(drain == float("-inf"), 0.0, 1.0)
    # Tiles that a window fills in part come first: what follows them would keep registers.
    for tile in range(0, edge_tiles):
        start = tl.where(tile < head_tiles, lo + tile * BN, tail + (tile - head_tiles) * BN)
        inner = start + n
        column = inner < hi
        pair = column[None, :]
        if BQ > 1:
            from_key = begin_of(i, low, inner_bounds, queries, TABLE)
            to_key = end_of(i, high, length, inner_bounds, queries, TABLE)
            pair = (inner[None, :] >= from_key[:, None]) & (inner[None, :] < to_key[:, None])
        key = inner.to(tl.int64)
        k_tile = load_rows(kp, key * k_strides[2], c, column, D, DP)
        v_tile = load_rows(vp, key * v_strides[2], cv, column, DV, DVP)
        o, top, total = _leading_tuples(
            qt, k_tile, v_tile, pair, o, top, total, row_ok, limits, k_places, v_places,
            lead_k_strides, lead_v_strides, counts, tuples, c, cv, scale2, D, DV, LEADING, BQ > 1,
            True, SUM, NEGATIVE)
    for tile in range(0, full):
        key = (mid + tile * BN + n).to(tl.int64)
        k_tile = load_all_rows(kp, key * k_strides[2], c, D, DP)
        v_tile = load_all_rows(vp, key * v_strides[2], cv, DV, DVP)
        o, top, total = _leading_tuples(
            qt, k_tile, v_tile, None, o, top, total, row_ok, limits, k_places, v_places,
            lead_k_strides, lead_v_strides, counts, tuples, c, cv, scale2, D, DV, LEADING, BQ > 1,
            False, SUM, NEGATIVE)

    some = ~(total == 0)
    safe = tl.where(some, total, 1.0)
    o = tl.where(some[:, None], o * (output_scale / safe)[:, None], 0.0)
    value = tl.where(some, (top + tl.log2(safe)) * LN2, float("-inf"))
    place = out + batch * out_strides[0] + head * out_strides[1] + i.to(tl.int64) * out_strides[2]
    tl.store(place[:, None] + cv[None, :], o.to(out.dtype.element_ty),
             mask=row_ok[:, None] & (cv < DV)[None, :])
    tl.store(lse + (batch * kv_heads * group + head) * queries + i, value, mask=row_ok)
