"""One half of the backward pass of dense attention as a Triton kernel: gradients of the query and
of the leading keys and values."""

import triton
import triton.language as tl

from .attention_backward_terms import (
    add_rows,
    load_query_rows,
    product,
    row_offsets,
    slopes_of,
    sum_others,
    weights_of,
    without_whole,
)
from .tuple_terms import (
    ANY_KEYS,
    BOOL_MASK,
    FLOAT_MASK,
    LOG2E,
    NO_MASK,
    OTHER_THAN_QUERY,
    RELU,
    admitted,
    at,
    begin_of,
    cap_slope,
    capped,
    dropout_factor,
    end_of,
    hashed_seed,
    key_hash,
    load_rows,
    position_of,
    row_hash,
)

# fmt: off

@triton.jit
def _tile(u, g, du, y, share, shift, delta, base, factor, kp, vp, k_stride, v_stride, start, column,
          pair, added, kept, c, cv, scale, output_scale,
          MASKED: tl.constexpr, ADDED: tl.constexpr, SCALED: tl.constexpr, DROPOUT: tl.constexpr,
          NORMALIZER: tl.constexpr, SUM: tl.constexpr, ROUNDED: tl.constexpr, CAP: tl.constexpr,
          NEED_DU: tl.constexpr, NEED_Y: tl.constexpr,
          D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
          BN: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of inner keys for all rows: dU += dS K, and Y += P V (SUM: the sums of P)."""
    n = tl.arange(0, BN)
    if WIDE:
        n = n.to(tl.int64)
    start64 = start.to(tl.int64)
    kt = load_rows(kp + start64 * k_stride, n * k_stride, c, column, D, DP)
    vt = load_rows(vp + start64 * v_stride, n * v_stride, cv, column, DV, DVP)
    s = tl.dot(u, tl.trans(kt), input_precision=PRECISION)
    if CAP > 0:
        s = capped(s, CAP)
    p, x = weights_of(s, added, base, shift, factor, scale, NORMALIZER, ADDED, SCALED, not MASKED)
    if MASKED:
        p = tl.where(pair, p, 0.0)
    w = p
    if DROPOUT:
        w = p * kept
    if NEED_DU:
        dp = tl.dot(g, tl.trans(vt), input_precision=PRECISION)
        if SUM:
            dp += share
        if DROPOUT:
            dp = dp * kept
        slope = slopes_of(p, x, shift, factor, NORMALIZER)
        if MASKED and NORMALIZER == RELU:
            slope = tl.where(pair, slope, 0.0)
        slope = without_whole(slope, p, ROUNDED)
        if CAP > 0:
            slope = slope * cap_slope(s, CAP)
        ds = (slope * (dp * output_scale - delta)).to(kt.dtype)
    if NEED_Y:
        if SUM:
            y += tl.sum(w, 1)
        else:
            y = tl.dot(w.to(kt.dtype), vt, y, input_precision=PRECISION)
    if NEED_DU:
        du = tl.dot(ds, kt, du, input_precision=PRECISION)
    return du, y


@triton.jit
def _add_to_parts(
        x,  # [leading tuples of the box, channels]
        places, strides, box_keys, box_seen,  # of the leading keys or values, per axis
        lead_grad, part, offset,  # where the sums of the segment are
        lead_axes, bounds, batches, batch, queries, chunk, first, block_first, block_last, c,
        BJS: tl.constexpr, SEVERAL: tl.constexpr, SUM: tl.constexpr, TABLE: tl.constexpr,
        C: tl.constexpr, CP: tl.constexpr, ROW: tl.constexpr):
    """Adds x, times the other keys (or values) of each tuple, to the gradients of every leading
    axis. SUM: a tuple's value is the sum of its values, so there are no other factors."""
    LEADING: tl.constexpr = len(BJS)
    left_chunk = chunk
    for m in tl.static_range(LEADING):
        own = x
        if not SUM:
            for other in tl.static_range(LEADING):
                if other != m:
                    offsets = box_keys[other] * strides[other][2]
                    rest = load_rows(places[other], offsets, c, box_seen[other], C, CP)
                    # A choice keeps the product from being fused with a sum over threads.
                    own = tl.where(box_seen[other][:, None], own * rest.to(tl.float32), 0.0)
        axis = lead_axes[m]
        axis_bounds = bounds + (m * batches + batch) * queries * 2
        keys = begin_of(block_first, axis[1], axis_bounds, queries, TABLE)
        keys += tl.arange(0, at(BJS, m))
        if SEVERAL:
            keys += left_chunk % axis[4] * at(BJS, m)
            left_chunk = left_chunk // axis[4]
        write = keys < end_of(block_last, axis[2], axis[0], axis_bounds, queries, TABLE)
        rows = keys - begin_of(first, axis[1], axis_bounds, queries, TABLE)
        own_part = lead_grad[m] + part * axis[3] * ROW + offset
        add_rows(sum_others(own, m, BJS, CP), rows, own_part, ROW, c,
                 write[:, None] & (c < C)[None, :])


@triton.jit(do_not_specialize=["seed_low", "seed_high"])
def attention_backward_rows_kernel(
        # Inputs [B, H, T, channels] with channel stride 1; lead_k, lead_v are tuples of N - 1 of
        # them. rows: fp32 [4, B, Hq, Tq] of attention_row_statistics.
        q, grad_out, rows, lead_k, lead_v, k, v,
        # grad_q: like q. scratch: fp32 [B Hk segments, head_blocks, BQ BH, D], for several boxes.
        # lead_grad: per leading axis fp32 zeros [B, Hk, segments, span, D + Dv].
        grad_q, scratch, lead_grad,
        # bounds: int32 [N, B, Tq, 2] with TABLE. positions: int32 [B, Tq] with POSITIONS.
        # lead_masks, k_mask: uint8 [B, T_m] with KEY_MASKS. mask: uint8 or fp32 with MASK.
        # Unused ones are any pointer.
        bounds, positions, lead_masks, k_mask, mask,
        # Strides (batch, head, row) in elements; mask_strides (batch, head, query, leading axes ..,
        # inner axis).
        q_strides, grad_strides, grad_q_strides, lead_k_strides, lead_v_strides, k_strides,
        v_strides, mask_strides,
        # Of each leading axis (length, low, high, span, boxes), of the inner axis (length, low,
        # high).
        lead_axes, length, low, high,
        batches, queries, group, kv_heads, head_blocks,
        segment,  # queries of a program
        logit_scale, output_scale,
        seed_low, seed_high, threshold, keep_scale,  # with DROPOUT: see tuple_terms
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr,
        BJS: tl.constexpr,  # sizes of a box of leading tuples, per axis
        SEVERAL: tl.constexpr,  # boxes
        BN: tl.constexpr,
        CALLERS: tl.constexpr,  # the caller's index of every axis
        TABLE: tl.constexpr, POSITIONS: tl.constexpr, KEY_MASKS: tl.constexpr, MASK: tl.constexpr,
        DISTINCT: tl.constexpr, DROPOUT: tl.constexpr, NORMALIZER: tl.constexpr, SUM: tl.constexpr,
        SCALED: tl.constexpr,  # weights have a factor
        ROUNDED: tl.constexpr,  # delta has the rounding of a 16-bit out and no gradient of lse
        WIDE: tl.constexpr,  # offsets of rows within a head need int64
        EVEN: tl.constexpr,  # the group is a multiple of BH
        # Gradients of the query, the leading keys and the leading values.
        WANT_Q: tl.constexpr, WANT_K: tl.constexpr, WANT_V: tl.constexpr,
        CAP: tl.constexpr, PRECISION: tl.constexpr):
    """Rows of a product are (query of the block, head of the group, leading tuple of the box), and
    tiles of inner keys pass by: dU = dS K, Y = P V.

    A program owns the queries of one segment and one key head. Gradients of the leading keys and
    values are sums over its queries in parts of its own, which attention_merge adds in the order of
    the segments.
    """
    LEADING: tl.constexpr = ORDER - 1
    BJ: tl.constexpr = product(BJS, 0, LEADING)
    QH: tl.constexpr = BQ * BH
    BM: tl.constexpr = QH * BJ
    ADDED: tl.constexpr = MASK == FLOAT_MASK
    NEED_DU: tl.constexpr = WANT_Q or WANT_K
    NEED_Y: tl.constexpr = WANT_V
    # Weights need a mask if it depends on the row and the inner key, or if their sums are taken.
    # Otherwise keys outside the window are zeros, which add nothing to dU and Y.
    PAIRS: tl.constexpr = (
        BQ > 1 or SUM or KEY_MASKS or MASK != NO_MASK or DROPOUT or DISTINCT == OTHER_THAN_QUERY
        or (DISTINCT != ANY_KEYS and LEADING > 0))
    SAFE: tl.constexpr = TABLE or KEY_MASKS or MASK != NO_MASK or DISTINCT != ANY_KEYS
    seg = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    zero = batch * 0
    part = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + seg
    first = seg * segment
    stop = tl.minimum(first + segment, queries)
    heads = kv_heads * group
    plane = (zero + batches) * heads * queries
    scale = logit_scale
    if NORMALIZER != RELU:
        scale = logit_scale * LOG2E
    type = q.dtype.element_ty

    c, cv = tl.arange(0, DP), tl.arange(0, DVP)
    c_ok = c < D
    r = tl.arange(0, BM)
    qh = tl.arange(0, QH)
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2
    entry = positions + batch * queries

    boxes = 1
    lead_kp, lead_vp = (), ()
    for m in tl.static_range(LEADING):
        if SEVERAL:
            boxes *= lead_axes[m][4]
        steps_k, steps_v = lead_k_strides[m], lead_v_strides[m]
        lead_kp = lead_kp + (lead_k[m] + batch * steps_k[0] + kv_head * steps_k[1],)
        lead_vp = lead_vp + (lead_v[m] + batch * steps_v[0] + kv_head * steps_v[1],)

    row_q, row_head = r // (BH * BJ), (r // BJ) % BH
    q_base = q + batch * q_strides[0] + kv_head * group * q_strides[1]
    g_base = grad_out + batch * grad_strides[0] + kv_head * group * grad_strides[1]
    s_base = rows + (batch * heads + kv_head * group) * queries

    for block in range(0, tl.cdiv(stop - first, BQ)):
        block_first = first + block * BQ
        block_last = tl.minimum(block_first + BQ, stop) - 1
        i = block_first + row_q

        # Inner keys: the union of the block's windows.
        lo = begin_of(block_first, low, inner_bounds, queries, TABLE)
        hi = end_of(block_last, high, length, inner_bounds, queries, TABLE)
        tiles = tl.cdiv(tl.maximum(hi - lo, 0), BN)

        for chunk in range(0, boxes):
            # A box of tuples. Its keys by rows, and by the positions in the box alone.
            pair_ok = i < stop
            digits, box_digits, left_chunk = r % BJ, tl.arange(0, BJ), chunk
            keys, key_offsets, value_offsets, box_keys, box_seen = (), (), (), (), ()
            for m in tl.static_range(LEADING):
                axis = lead_axes[m]
                axis_bounds = bounds + (m * batches + batch) * queries * 2
                start = begin_of(block_first, axis[1], axis_bounds, queries, TABLE)
                if SEVERAL:
                    start += left_chunk % axis[4] * at(BJS, m)
                    left_chunk = left_chunk // axis[4]
                j = start + digits % at(BJS, m)
                box = start + box_digits % at(BJS, m)
                digits, box_digits = digits // at(BJS, m), box_digits // at(BJS, m)
                if BQ > 1:
                    pair_ok = pair_ok & (j >= begin_of(i, axis[1], axis_bounds, queries, TABLE))
                    end = end_of(i, axis[2], axis[0], axis_bounds, queries, TABLE)
                else:
                    end = end_of(block_first, axis[2], axis[0], axis_bounds, queries, TABLE)
                pair_ok = pair_ok & (j < end)
                seen = box < end_of(block_last, axis[2], axis[0], axis_bounds, queries, TABLE)
                if KEY_MASKS:
                    pair_ok = admitted(lead_masks[m] + batch * axis[0], j, pair_ok)
                    seen = admitted(lead_masks[m] + batch * axis[0], box, seen)
                if DISTINCT == OTHER_THAN_QUERY:
                    pair_ok = pair_ok & (j != position_of(i, axis[0], entry, queries, POSITIONS))
                if DISTINCT != ANY_KEYS:
                    for other in tl.static_range(m):
                        pair_ok = pair_ok & (j != keys[other])
                keys, box_seen = keys + (j,), box_seen + (seen,)
                if WIDE:
                    j, box = j.to(tl.int64), box.to(tl.int64)
                key_offsets = key_offsets + (j * lead_k_strides[m][2],)
                value_offsets = value_offsets + (j * lead_v_strides[m][2],)
                box_keys = box_keys + (box,)

            for head_block in range(0, head_blocks):
                first64, head64 = zero + block_first, zero + head_block * BH
                # Rows beyond the group or the segment read the last ones, and have no weight.
                ok = pair_ok
                own_head, own_q = row_head, row_q
                if not EVEN:
                    ok = ok & (head_block * BH + row_head < group)
                    own_head = tl.minimum(row_head, group - 1 - head_block * BH)
                if BQ > 1:
                    own_q = tl.minimum(row_q, stop - 1 - block_first)
                if WIDE:
                    own_head, own_q = own_head.to(tl.int64), own_q.to(tl.int64)
                place = s_base + (head64 * queries + first64) + (own_head * queries + own_q)
                shift = tl.load(place)
                delta = tl.load(place + plane)
                factor, base = shift, shift
                if SCALED:
                    factor = tl.load(place + 2 * plane)
                if ADDED:
                    base = tl.load(place + 3 * plane)
                q_place = q_base + (head64 * q_strides[1] + first64 * q_strides[2])
                g_place = g_base + (head64 * grad_strides[1] + first64 * grad_strides[2])
                q_offsets = own_head * q_strides[1] + own_q * q_strides[2]
                g_offsets = own_head * grad_strides[1] + own_q * grad_strides[2]
                live = ok & (shift < float("inf"))
                u = load_query_rows(q_place, q_offsets, c, live, D, DP, SAFE)
                g = load_query_rows(g_place, g_offsets, cv, live, DV, DVP, SAFE)
                share = tl.zeros((BM,), tl.float32)
                for m in tl.static_range(LEADING):
                    kk = load_rows(lead_kp[m], key_offsets[m], c, pair_ok, D, DP)
                    vv = load_rows(lead_vp[m], value_offsets[m], cv, pair_ok, DV, DVP)
                    u = u.to(tl.float32) * kk.to(tl.float32)
                    if SUM:
                        share += tl.sum(g.to(tl.float32) * vv.to(tl.float32), 1)
                    else:
                        g = g.to(tl.float32) * vv.to(tl.float32)
                u, g = u.to(type), g.to(type)
                shift = tl.where(ok, shift, float("inf"))
                head = kv_head * group + head_block * BH + row_head
                hashes = row_head
                if DROPOUT:
                    hashes = row_hash(hashed_seed(seed_low, seed_high), batch * heads + head, i)
                    for m in tl.static_range(LEADING):
                        hashes = hashes ^ key_hash(at(CALLERS, m), keys[m])
                mask_rows = head
                if MASK != NO_MASK:
                    mask_rows = batch * mask_strides[0] + head * mask_strides[1]
                    mask_rows += i.to(tl.int64) * mask_strides[2]
                    for m in tl.static_range(LEADING):
                        mask_rows += keys[m].to(tl.int64) * mask_strides[3 + m]

                du = tl.zeros((BM, DP), tl.float32)
                if SUM:
                    y = tl.zeros((BM,), tl.float32)
                else:
                    y = tl.zeros((BM, DVP), tl.float32)
                for tile in range(0, tiles):
                    inner = lo + tile * BN + tl.arange(0, BN)
                    column = inner < hi
                    if KEY_MASKS:
                        column = admitted(k_mask + batch * length, inner, column)
                    pair, added, kept = None, None, None
                    if PAIRS:
                        pair = column[None, :]
                    if BQ > 1:
                        own_lo = begin_of(i, low, inner_bounds, queries, TABLE)
                        own_hi = end_of(i, high, length, inner_bounds, queries, TABLE)
                        pair = pair & (inner[None, :] >= own_lo[:, None])
                        pair = pair & (inner[None, :] < own_hi[:, None])
                    if DISTINCT == OTHER_THAN_QUERY:
                        own = position_of(i, length, entry, queries, POSITIONS)
                        pair = pair & (inner[None, :] != own[:, None])
                    if DISTINCT != ANY_KEYS:
                        for m in tl.static_range(LEADING):
                            pair = pair & (inner[None, :] != keys[m][:, None])
                    if MASK != NO_MASK:
                        mask_columns = inner.to(tl.int64) * mask_strides[3 + LEADING]
                        own_mask = mask + mask_rows[:, None] + mask_columns[None, :]
                        read = pair & ok[:, None]
                        if MASK == BOOL_MASK:
                            pair = read & (tl.load(own_mask, mask=read, other=0) != 0)
                        else:
                            added = tl.load(own_mask, mask=read, other=float("-inf"))
                            pair = read & ~(added == float("-inf"))
                    if DROPOUT:
                        own_hash = hashes[:, None] ^ key_hash(at(CALLERS, LEADING), inner)[None, :]
                        kept = dropout_factor(own_hash, threshold, keep_scale)
                    du, y = _tile(
                        u, g, du, y, share[:, None], shift[:, None], delta[:, None], base[:, None],
                        factor[:, None], kp, vp, k_strides[2], v_strides[2], lo + tile * BN, column,
                        pair, added, kept, c, cv, scale, output_scale, PAIRS, ADDED, SCALED,
                        DROPOUT, NORMALIZER, SUM, ROUNDED, CAP, NEED_DU, NEED_Y, D, DV, DP, DVP, BN,
                        WIDE, PRECISION)

                # The rows become gradients of the leading values and keys, and of the query. The
                # barrier keeps the compiler from holding the query's rows in registers until here.
                tl.debug_barrier()
                if WANT_V:
                    gt = load_query_rows(g_place, g_offsets, cv, live, DV, DVP, SAFE).to(tl.float32)
                    if SUM:
                        y = y[:, None] * gt
                    else:
                        y *= gt
                    y = tl.sum(tl.reshape(y, (QH, BJ, DVP)), 0) * output_scale
                    _add_to_parts(
                        y, lead_vp, lead_v_strides, box_keys, box_seen, lead_grad, part, D,
                        lead_axes, bounds, batches, batch, queries, chunk, first, block_first,
                        block_last, cv, BJS, SEVERAL, SUM, TABLE, DV, DVP, D + DV)
                if WANT_K:
                    qt = load_query_rows(q_place, q_offsets, c, live, D, DP, SAFE).to(tl.float32)
                    dk = tl.sum(tl.reshape(du * qt, (QH, BJ, DP)), 0) * logit_scale
                    _add_to_parts(
                        dk, lead_kp, lead_k_strides, box_keys, box_seen, lead_grad, part, 0,
                        lead_axes, bounds, batches, batch, queries, chunk, first, block_first,
                        block_last, c, BJS, SEVERAL, False, TABLE, D, DP, D + DV)
                if WANT_Q:
                    for m in tl.static_range(LEADING):
                        kk = load_rows(lead_kp[m], key_offsets[m], c, pair_ok, D, DP)
                        du *= kk.to(tl.float32)
                    dq = tl.sum(tl.reshape(du, (QH, BJ, DP)), 1) * logit_scale
                    iq = block_first + qh // BH
                    hq = head_block * BH + qh % BH
                    q_ok = ((iq < stop) & (hq < group))[:, None] & c_ok[None, :]
                    store = q_ok
                    if SEVERAL:
                        own_sums = (part * head_blocks + head_block) * QH + qh
                        sums = scratch + own_sums[:, None] * D + c[None, :]
                        dq += tl.load(sums, mask=q_ok & (chunk > 0), other=0.0)
                        tl.store(sums, dq, mask=q_ok & (chunk < boxes - 1))
                        store = q_ok & (chunk == boxes - 1)
                    dq_rows = row_offsets(grad_q_strides, batch, kv_head * group + hq, iq)
                    tl.store(grad_q + dq_rows[:, None] + c[None, :], dq.to(type), mask=store)
                if LEADING > 0:
                    tl.debug_barrier()  # other threads may read the workspaces in the next step
