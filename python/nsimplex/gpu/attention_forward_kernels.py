"""The forward pass of dense attention as a Triton kernel.

Rows of a matrix product are (query of the block, head of the group, tuple of leading keys), so a
loaded tile of inner keys and values serves all of them whatever the group's size. The products of
the query and the leading keys are the left operand of one flash-attention loop over the inner axis.
The rows of one query and head are joined after it, where the leading values enter once:

    o = sum_t w_t (v1_t * .. * Y_t),   Y_t the weighted inner values of tuple t.

A program owns whole softmaxes, unless SPLIT divides the tuples of a query among programs whose
parts ``attention_forward_merge`` adds in their order. There are no atomics.

Logits are kept in base 2. With a float mask they are relative to a base, the largest mask that a
row has seen, because fp32 loses a score beside -1e9.
"""

import triton
import triton.language as tl

from .attention_forward_merge import finish, with_sink
from .attention_forward_tile import softmax_tile
from .tuple_terms import (
    ANY_KEYS,
    BOOL_MASK,
    FLOAT_MASK,
    LN2,
    LOG2E,
    NO_MASK,
    OTHER_THAN_QUERY,
    SIGMOID,
    SOFTMAX,
    admitted,
    at,
    begin_of,
    dropout_factor,
    end_of,
    finite_or_zero,
    hashed_seed,
    key_hash,
    load_rows,
    position_of,
    row_hash,
)

# Above this size of lse the backward pass asks for the state of a row (kLargeLse on the CPU).
LARGE_LSE = tl.constexpr(256.0)

# fmt: off

@triton.jit(do_not_specialize=["seed_low", "seed_high"])
def attention_forward_kernel(
        # [B, H, T, channels] with channel stride 1; lead_k and lead_v are tuples of N - 1 tensors.
        q, lead_k, lead_v, k, v,
        # out: of q's dtype, lse: fp32 [B, Hq, Tq]. With SPLIT out is fp32 [splits, B, Hq, Tq, Dv]
        # and lse fp32 [splits, 3, B, Hq, Tq]: base, maximum, sum. With STATES lse is
        # fp32 [3, B, Hq, Tq]: base, maximum, log of the sum; known_lse is read, out is not written.
        out, lse, known_lse,
        # bounds: int32 [N, B, Tq, 2] with TABLE. positions: int32 [B, Tq] with POSITIONS.
        # lead_masks, k_mask: uint8 [B, T_m] with KEY_MASKS. mask: uint8 or fp32 with MASK.
        # sink: fp32 [Hq] with SINK. Unused ones are any pointer.
        bounds, positions, lead_masks, k_mask, mask, sink,
        # Strides (batch, head, row) in elements; mask_strides (batch, head, query, leading axes ..,
        # inner axis).
        q_strides, lead_k_strides, lead_v_strides, k_strides, v_strides, out_strides, mask_strides,
        # Of each leading axis (length, low, high, most), of the inner axis (length, low, high).
        lead_axes, length, low, high,
        batches, queries, group, kv_heads, head_blocks,
        tuples,  # product of the leading axes' ``most``
        chunk_splits, inner_splits,  # of the chunks of tuples and of the inner keys; else 1
        logit_scale, output_scale,
        seed_low, seed_high, threshold, keep_scale,  # with DROPOUT: see tuple_terms
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BJ: tl.constexpr, BN: tl.constexpr,
        CALLERS: tl.constexpr,  # the caller's index of every axis
        TABLE: tl.constexpr, POSITIONS: tl.constexpr, KEY_MASKS: tl.constexpr, MASK: tl.constexpr,
        SINK: tl.constexpr, DISTINCT: tl.constexpr, DROPOUT: tl.constexpr, NORMALIZER: tl.constexpr,
        SUM: tl.constexpr, SPLIT: tl.constexpr, STATES: tl.constexpr,
        CAP: tl.constexpr,  # see capped(); 0: none
        PRECISION: tl.constexpr):
    LEADING: tl.constexpr = ORDER - 1
    QH: tl.constexpr = BQ * BH
    BM: tl.constexpr = QH * BJ
    ADDED: tl.constexpr = MASK == FLOAT_MASK
    # One masked loop takes all tiles where options concern pairs of a row and an inner key, and
    # where a block has one query: its mask is a vector then, and a second loop costs registers.
    ONE_LOOP: tl.constexpr = (
        BQ == 1 or KEY_MASKS or MASK != NO_MASK or DROPOUT or DISTINCT == OTHER_THAN_QUERY
        or (DISTINCT != ANY_KEYS and LEADING > 0))
    # One tuple at a time, which is the same one for all rows: their softmax simply goes on.
    CARRY: tl.constexpr = (
        BJ == 1 and BQ == 1 and LEADING <= 1 and not KEY_MASKS and not SUM
        and DISTINCT == ANY_KEYS and not SPLIT)
    pid = tl.program_id(0)
    split = tl.program_id(2)
    first = pid // head_blocks * BQ
    last = tl.minimum(first + BQ, queries) - 1
    head_block = pid % head_blocks
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    heads = kv_heads * group
    # Maxima are taken before the scale, which is positive therefore.
    scale2 = tl.abs(logit_scale) * LOG2E
    sign = tl.where(logit_scale < 0, -1.0, 1.0)

    rows = tl.arange(0, BM)
    if BQ == 1:
        i = first
        row_ok = head_block * BH + rows // BJ < group
    else:
        i = first + rows // (BH * BJ)
        row_ok = (i < queries) & (head_block * BH + (rows // BJ) % BH < group)
    head = kv_head * group + head_block * BH + (rows // BJ) % BH
    c, cv, n = tl.arange(0, DP), tl.arange(0, DVP), tl.arange(0, BN)
    q_rows = head * q_strides[1] + i.to(tl.int64) * q_strides[2]
    q += batch * q_strides[0]
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2

    # Inner keys: the union of the block's windows; [all_lo, all_hi) is seen by every query of it.
    lo = begin_of(first, low, inner_bounds, queries, TABLE)
    hi = end_of(last, high, length, inner_bounds, queries, TABLE)
    all_lo, all_hi = lo, hi
    if BQ > 1:
        all_lo = begin_of(last, low, inner_bounds, queries, TABLE)
        all_hi = end_of(first, high, length, inner_bounds, queries, TABLE)
    if SPLIT:
        piece = tl.cdiv(tl.cdiv(tl.maximum(hi - lo, 0), BN), inner_splits) * BN
        lo = lo + piece * (split % inner_splits)
        hi = tl.minimum(hi, lo + piece)
        all_lo, all_hi = tl.maximum(all_lo, lo), tl.minimum(all_hi, hi)
    if ONE_LOOP:
        head_tiles, full_tiles = 0, 0
        mid = lo
    else:
        head_tiles = tl.cdiv(tl.maximum(all_lo - lo, 0), BN)
        mid = lo + head_tiles * BN
        full_tiles = tl.maximum(all_hi - mid, 0) // BN
    tail = mid + full_tiles * BN
    edge_tiles = head_tiles + tl.cdiv(tl.maximum(hi - tail, 0), BN)

    count = tuples
    if CARRY and LEADING == 1:
        lead_begin = begin_of(first, lead_axes[0][1], bounds + batch * queries * 2, queries, TABLE)
        count = end_of(first, lead_axes[0][2], lead_axes[0][0], bounds + batch * queries * 2,
                       queries, TABLE) - lead_begin
    chunk_first, chunks = 0, tl.cdiv(count, BJ)
    if SPLIT:
        piece = tl.cdiv(chunks, chunk_splits)
        chunk_first = piece * (split // inner_splits)
        chunks = tl.minimum(chunks, chunk_first + piece)
    qh = tl.arange(0, QH)
    head_q = kv_head * group + head_block * BH + qh % BH
    stat = (batch * heads + head_q) * queries + first + qh // BH
    stat_ok = (first + qh // BH < queries) & (head_block * BH + qh % BH < group)
    if STATES:
        known = tl.load(known_lse + stat, mask=stat_ok, other=0.0)
        large = (tl.abs(known) > LARGE_LSE) & (tl.abs(known) < float("inf"))
        chunks = tl.where(tl.max(large.to(tl.int32), 0) > 0, chunks, 0)

    # State of each query and head.
    top0 = 0.0
    if NORMALIZER == SOFTMAX:
        top0 = float("-inf")
    best = tl.full((QH,), top0, tl.float32)
    best_base = tl.full((QH,), float("-inf"), tl.float32)
    weight = tl.zeros((QH,), tl.float32)
    o = tl.zeros((QH, DVP), tl.float32)

    for chunk in range(chunk_first, chunks):
        ok = row_ok
        flat = chunk * BJ + rows % BJ
        if BJ > 1 or LEADING > 1:
            ok = ok & (flat < tuples)
        # Leading keys of the rows.
        js = ()
        for m in tl.static_range(LEADING):
            axis_bounds = bounds + (m * batches + batch) * queries * 2
            digit = flat
            if m < LEADING - 1:
                digit = flat % lead_axes[m][3]
                flat = flat // lead_axes[m][3]
            j = begin_of(i, lead_axes[m][1], axis_bounds, queries, TABLE) + digit
            ok = ok & (j < end_of(i, lead_axes[m][2], lead_axes[m][0], axis_bounds, queries, TABLE))
            if KEY_MASKS:
                ok = admitted(lead_masks[m] + batch * lead_axes[m][0], j, ok)
            if DISTINCT == OTHER_THAN_QUERY:
                entry = positions + batch * queries
                ok = ok & (j != position_of(i, lead_axes[m][0], entry, queries, POSITIONS))
            if DISTINCT != ANY_KEYS:
                for other in tl.static_range(m):
                    ok = ok & (j != js[other])
            js = js + (j,)

        u = load_rows(q, q_rows, c, row_ok, D, DP).to(tl.float32) * sign
        for m in tl.static_range(LEADING):
            own = lead_k[m] + batch * lead_k_strides[m][0] + kv_head * lead_k_strides[m][1]
            if CARRY:
                place = own + (lead_begin + chunk).to(tl.int64) * lead_k_strides[m][2]
                u *= tl.load(place + c, mask=c < D, other=0.0).to(tl.float32)[None, :]
            else:
                key_rows = js[m].to(tl.int64) * lead_k_strides[m][2]
                u *= load_rows(own, key_rows, c, ok, D, DP).to(tl.float32)
        u = u.to(q.dtype.element_ty)
        if DROPOUT:
            hashes = row_hash(hashed_seed(seed_low, seed_high), batch * heads + head, i)
            for m in tl.static_range(LEADING):
                hashes = hashes ^ key_hash(at(CALLERS, m), js[m])
        if MASK != NO_MASK:
            mask_rows = batch * mask_strides[0] + head * mask_strides[1]
            mask_rows += i.to(tl.int64) * mask_strides[2]
            for m in tl.static_range(LEADING):
                mask_rows += js[m].to(tl.int64) * mask_strides[3 + m]

        y = tl.zeros((BM, DVP), tl.float32)
        if CARRY:
            top, total = best, weight
        else:
            top = tl.full((BM,), top0, tl.float32)
            total = tl.zeros((BM,), tl.float32)
        kept = total
        base = tl.full((BM,), float("-inf"), tl.float32)
        if CARRY:
            base = best_base
        if not ONE_LOOP:
            for tile in range(0, full_tiles):
                key = (mid + tile * BN + n).to(tl.int64)
                y, top, total, kept, base = softmax_tile(
                    u, y, top, total, kept, base, kp, vp, k_strides[2], v_strides[2], key, None,
                    None, None, None, c, cv, scale2, D, DV, False, False, False, NORMALIZER,
                    CAP, PRECISION)
        for tile in range(0, edge_tiles):
            start = lo + tile * BN
            if not ONE_LOOP:
                start = tl.where(tile < head_tiles, start, tail + (tile - head_tiles) * BN)
            inner = start + n
            key = inner.to(tl.int64)
            column = inner < hi
            if KEY_MASKS:
                column = admitted(k_mask + batch * length, inner, column)
            pair = column[None, :]
            if BQ > 1:
                from_key = begin_of(i, low, inner_bounds, queries, TABLE)
                to_key = end_of(i, high, length, inner_bounds, queries, TABLE)
                pair = pair & (inner[None, :] >= from_key[:, None])
                pair = pair & (inner[None, :] < to_key[:, None])
            if DISTINCT == OTHER_THAN_QUERY:
                entry = positions + batch * queries
                position = position_of(i, length, entry, queries, POSITIONS)
                if BQ > 1:
                    pair = pair & (inner[None, :] != position[:, None])
                else:
                    pair = pair & (inner != position)[None, :]
            if DISTINCT != ANY_KEYS:
                for m in tl.static_range(LEADING):
                    pair = pair & (inner[None, :] != js[m][:, None])
            added, factor = None, None
            if MASK != NO_MASK:
                mask_place = mask + mask_rows[:, None] + (key * mask_strides[3 + LEADING])[None, :]
                read = column[None, :] & ok[:, None]
                if BQ > 1:
                    read = read & pair
                if MASK == BOOL_MASK:
                    pair = pair & (tl.load(mask_place, mask=read, other=0) != 0)
                else:
                    added = tl.load(mask_place, mask=read, other=float("-inf"))
                    pair = pair & ~(added == float("-inf"))
            if DROPOUT:
                key_hashes = key_hash(at(CALLERS, LEADING), inner)
                factor = dropout_factor(
                    hashes[:, None] ^ key_hashes[None, :], threshold, keep_scale)
            y, top, total, kept, base = softmax_tile(
                u, y, top, total, kept, base, kp, vp, k_strides[2], v_strides[2], key, column, pair,
                added, factor, c, cv, scale2, D, DV, True, ADDED, DROPOUT, NORMALIZER, CAP,
                PRECISION)

        if CARRY:
            since, since_base = best, best_base
            best, weight, best_base = top, total, base
            if LEADING == 1:
                place = lead_v[0] + batch * lead_v_strides[0][0] + kv_head * lead_v_strides[0][1]
                place += (lead_begin + chunk).to(tl.int64) * lead_v_strides[0][2]
                y *= tl.load(place + cv, mask=cv < DV, other=0.0).to(tl.float32)[None, :]
            if NORMALIZER == SOFTMAX:
                if ADDED:
                    since += (since_base - finite_or_zero(base)) * LOG2E
                o = o * tl.exp2(since - finite_or_zero(top))[:, None] + y
            else:
                o += y
        else:
            # The rows of a query and head make one softmax. An absent row has the maximum -inf; a
            # NaN is not absent.
            if NORMALIZER == SOFTMAX:
                top = tl.where(ok & ~(total == 0), top, float("-inf"))
                if ADDED:
                    base = tl.where(top == float("-inf"), float("-inf"), base)
                    new_base = tl.maximum(best_base, tl.max(tl.reshape(base, (QH, BJ)), 1))
                    shown = finite_or_zero(new_base)
                    base2 = tl.reshape(base, (QH, BJ)) - shown[:, None]
                    top = tl.reshape(tl.reshape(top, (QH, BJ)) + base2 * LOG2E, (BM,))
                    best += (best_base - shown) * LOG2E
                    best_base = new_base
                higher = tl.maximum(best, tl.max(tl.reshape(top, (QH, BJ)), 1))
                safe = finite_or_zero(higher)
                scale = tl.exp2(tl.reshape(top, (QH, BJ)) - safe[:, None])
                carry = tl.exp2(best - safe)
                best = higher
            else:
                scale = tl.reshape(tl.where(ok, 1.0, 0.0), (QH, BJ))
                carry = tl.full((QH,), 1.0, tl.float32)
            # The choice keeps the product from being fused with a sum over threads, each of which
            # would round another term.
            scale = tl.reshape(scale, (BM,))
            own_weight = tl.where(ok, scale * total, 0.0)
            weight = weight * carry + tl.sum(tl.reshape(own_weight, (QH, BJ)), 1)
            y = tl.where(ok[:, None], y * scale[:, None], 0.0)
            if SUM:
                if not DROPOUT and NORMALIZER != SIGMOID:
                    kept = total
                sums = tl.zeros((BM, DVP), tl.float32)
                for m in tl.static_range(LEADING):
                    own = lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1]
                    value_rows = js[m].to(tl.int64) * lead_v_strides[m][2]
                    sums += load_rows(own, value_rows, cv, ok, DV, DVP).to(tl.float32)
                y += sums * tl.where(ok, kept * scale, 0.0)[:, None]
            else:
                for m in tl.static_range(LEADING):
                    own = lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1]
                    value_rows = js[m].to(tl.int64) * lead_v_strides[m][2]
                    y *= load_rows(own, value_rows, cv, ok, DV, DVP).to(tl.float32)
            o = o * carry[:, None] + tl.sum(tl.reshape(y, (QH, BJ, DVP)), 1)

    plane = tl.num_programs(1).to(tl.int64) * group * queries
    if STATES:
        if SINK:
            drain = tl.load(sink + head_q, mask=stat_ok, other=0.0)
            o, best_base, best, weight = with_sink(o, best_base, best, weight, drain, ADDED)
        if not ADDED:
            best_base = tl.zeros((QH,), tl.float32)
        tl.store(lse + stat, tl.where(large, best_base, 0.0), mask=stat_ok)
        tl.store(lse + plane + stat, tl.where(large, best, known * LOG2E), mask=stat_ok)
        tl.store(lse + 2 * plane + stat, tl.where(large, tl.log2(weight) * LN2, 0.0), mask=stat_ok)
    elif SPLIT:
        own = lse + split.to(tl.int64) * 3 * plane
        tl.store(own + stat, best_base, mask=stat_ok)
        tl.store(own + plane + stat, best, mask=stat_ok)
        tl.store(own + 2 * plane + stat, weight, mask=stat_ok)
        place = out + (split.to(tl.int64) * plane + stat)[:, None] * DV + cv[None, :]
        tl.store(place, o, mask=stat_ok[:, None] & (cv < DV)[None, :])
    else:
        drain = None
        if SINK:
            drain = tl.load(sink + head_q, mask=stat_ok, other=0.0)
        o, value = finish(
            o, best_base, best, weight, drain, output_scale, ADDED, SINK, NORMALIZER)
        place = out + batch * out_strides[0] + head_q * out_strides[1]
        place += (first + qh // BH).to(tl.int64) * out_strides[2]
        tl.store(place[:, None] + cv[None, :], o.to(out.dtype.element_ty),
                 mask=stat_ok[:, None] & (cv < DV)[None, :])
        tl.store(lse + stat, value, mask=stat_ok)
