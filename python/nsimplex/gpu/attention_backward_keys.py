"""The other half of the backward pass of dense attention as a Triton kernel: gradients of the inner
keys and values."""

import triton
import triton.language as tl

from .attention_backward_terms import (
    load_query_rows,
    row_offsets,
    slopes_of,
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
    first_at_least,
    hashed_seed,
    key_hash,
    load_rows,
    position_of,
    row_hash,
)

# fmt: off

@triton.jit
def _advance(block_first, chunk, head_block, chunks, head_blocks, BQ: tl.constexpr):
    """The next step: heads are the fastest, then chunks of tuples, then queries."""
    head_block += 1
    wrap = head_block == head_blocks
    head_block = tl.where(wrap, 0, head_block)
    chunk += wrap.to(tl.int32)
    wrap = chunk == chunks
    chunk = tl.where(wrap, 0, chunk)
    return block_first + wrap.to(tl.int32) * BQ, chunk, head_block


@triton.jit(do_not_specialize=["seed_low", "seed_high"])
def attention_backward_keys_kernel(
        # Inputs, options and strides: see attention_backward_rows_kernel.
        q, grad_out, rows, lead_k, lead_v, k, v,
        # Gradients of k and v: like them with one split, else fp32 parts [splits, B, Hk, T_N, ..].
        grad_k, grad_v,
        bounds, positions, lead_masks, k_mask, mask,
        q_strides, grad_strides, lead_k_strides, lead_v_strides, k_strides, v_strides,
        grad_k_strides, grad_v_strides, mask_strides,
        # Of each leading axis (length, low, high, most), of the inner axis (length, low, high).
        lead_axes, length, low, high,
        batches, queries, group, kv_heads, head_blocks,
        tuples,  # product of the leading axes' ``most``
        splits,  # of the queries of a tile
        logit_scale, output_scale,
        seed_low, seed_high, threshold, keep_scale,
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BJ: tl.constexpr, BN: tl.constexpr,
        CALLERS: tl.constexpr,
        TABLE: tl.constexpr, POSITIONS: tl.constexpr, KEY_MASKS: tl.constexpr, MASK: tl.constexpr,
        DISTINCT: tl.constexpr, DROPOUT: tl.constexpr, NORMALIZER: tl.constexpr, SUM: tl.constexpr,
        SCALED: tl.constexpr, ROUNDED: tl.constexpr, WIDE: tl.constexpr,
        EVEN: tl.constexpr,  # the group is a multiple of BH
        # With several leading axes their ``most`` where division by it should be cheap; else 0.
        MOSTS: tl.constexpr,
        WANT_K: tl.constexpr, WANT_V: tl.constexpr,  # inner keys, inner values
        CAP: tl.constexpr, PRECISION: tl.constexpr):
    """A tile of inner keys stays, and the rows (query, head, leading tuple) of all queries that see
    it pass by: dV += P^T G, dK += dS^T U. The products are transposed, with keys first."""
    LEADING: tl.constexpr = ORDER - 1
    BM: tl.constexpr = BQ * BH * BJ
    ADDED: tl.constexpr = MASK == FLOAT_MASK
    SAFE: tl.constexpr = TABLE or KEY_MASKS or MASK != NO_MASK or DISTINCT != ANY_KEYS
    split = tl.program_id(2)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    zero = batch * 0
    heads = kv_heads * group
    plane = (zero + batches) * heads * queries
    scale = logit_scale
    if NORMALIZER != RELU:
        scale = logit_scale * LOG2E
    type = q.dtype.element_ty

    c, cv = tl.arange(0, DP), tl.arange(0, DVP)
    r = tl.arange(0, BM)
    start = tl.program_id(0) * BN
    key = start + tl.arange(0, BN)
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2
    entry = positions + batch * queries

    # Queries that see some key of the tile and, as far as is known here, some leading tuple.
    if TABLE:
        from_q = first_at_least(inner_bounds + 1, start + 1, queries)
        to_q = first_at_least(inner_bounds, start + BN, queries)
    else:
        from_q = tl.minimum(tl.maximum(start - high + 1, 0), queries)
        to_q = tl.minimum(queries, start + BN - low)
        for m in tl.static_range(LEADING):
            from_q = tl.maximum(from_q, 1 - lead_axes[m][2])
            to_q = tl.minimum(to_q, lead_axes[m][0] - lead_axes[m][1])
    to_q = tl.maximum(to_q, from_q)
    piece = tl.cdiv(tl.cdiv(to_q - from_q, BQ), splits) * BQ
    from_q = tl.minimum(from_q + split * piece, to_q)
    to_q = tl.minimum(from_q + piece, to_q)
    key_ok = key < end_of(queries - 1, high, length, inner_bounds, queries, TABLE)
    if KEY_MASKS:
        key_ok = admitted(k_mask + batch * length, key, key_ok)
    key64 = key.to(tl.int64)
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]
    kt = load_rows(kp, key64 * k_strides[2], c, key_ok, D, DP)
    vt = load_rows(vp, key64 * v_strides[2], cv, key_ok, DV, DVP)
    dk = tl.zeros((BN, DP), tl.float32)
    dv = tl.zeros((BN, DVP), tl.float32)
    key_hashes = key
    if DROPOUT:
        key_hashes = key_hash(at(CALLERS, LEADING), key)

    row_q, row_head, row_t = r // (BH * BJ), (r // BJ) % BH, r % BJ
    q_base = q + batch * q_strides[0] + kv_head * group * q_strides[1]
    g_base = grad_out + batch * grad_strides[0] + kv_head * group * grad_strides[1]
    s_base = rows + (batch * heads + kv_head * group) * queries
    chunks = tl.cdiv(tuples, BJ)
    block_first, chunk, head_block = from_q, from_q * 0, from_q * 0
    for _step in range(0, tl.cdiv(to_q - from_q, BQ) * chunks * head_blocks):
        i = block_first + row_q
        flat = chunk * BJ + row_t
        first64, head64 = zero + block_first, zero + head_block * BH
        # Rows beyond the group or the queries read the last ones, and have no weight. So loads need
        # no mask, and the rows of a query are loaded once.
        ok = row_head < BH
        own_head, own_q = row_head, row_q
        if not EVEN:
            ok = head_block * BH + row_head < group
            own_head = tl.minimum(row_head, group - 1 - head_block * BH)
        if BQ > 1:
            ok = ok & (i < to_q)
            own_q = tl.minimum(row_q, to_q - 1 - block_first)
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
        live = ok & (shift < float("inf"))
        q_offsets = own_head * q_strides[1] + own_q * q_strides[2]
        g_offsets = own_head * grad_strides[1] + own_q * grad_strides[2]
        u = load_query_rows(q_place, q_offsets, c, live, D, DP, SAFE)
        g = load_query_rows(g_place, g_offsets, cv, live, DV, DVP, SAFE)

        # Leading keys and values of the rows.
        share = tl.zeros((BM,), tl.float32)
        keys = ()
        for m in tl.static_range(LEADING):
            axis = lead_axes[m]
            axis_bounds = bounds + (m * batches + batch) * queries * 2
            key_base = lead_k[m] + batch * lead_k_strides[m][0] + kv_head * lead_k_strides[m][1]
            value_base = lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1]
            if BQ == 1:
                begin = begin_of(block_first, axis[1], axis_bounds, queries, TABLE)
                end = end_of(block_first, axis[2], axis[0], axis_bounds, queries, TABLE)
            else:
                begin = begin_of(i, axis[1], axis_bounds, queries, TABLE)
                end = end_of(i, axis[2], axis[0], axis_bounds, queries, TABLE)
            own = flat
            if m < LEADING - 1:
                if at(MOSTS, m) > 0:
                    own = flat % at(MOSTS, m)
                    flat = flat // at(MOSTS, m)
                else:
                    own = flat % axis[3]
                    flat = flat // axis[3]
            j = begin + own
            seen = j < end
            offset = j
            if BQ == 1 and LEADING == 1:  # offsets from the chunk's first key do not change
                offset = row_t
                from_key = zero + begin + chunk * BJ
                key_base += from_key * lead_k_strides[m][2]
                value_base += from_key * lead_v_strides[m][2]
            if WIDE:
                offset = offset.to(tl.int64)
            if KEY_MASKS:
                seen = admitted(lead_masks[m] + batch * axis[0], j, seen)
            ok = ok & seen
            if DISTINCT == OTHER_THAN_QUERY:
                ok = ok & (j != position_of(i, axis[0], entry, queries, POSITIONS))
            if DISTINCT != ANY_KEYS:
                for other in tl.static_range(m):
                    ok = ok & (j != keys[other])
            keys = keys + (j,)
            kk = load_rows(key_base, offset * lead_k_strides[m][2], c, seen, D, DP)
            vv = load_rows(value_base, offset * lead_v_strides[m][2], cv, seen, DV, DVP)
            u = u.to(tl.float32) * kk.to(tl.float32)
            if SUM:
                share += tl.sum(g.to(tl.float32) * vv.to(tl.float32), 1)
            else:
                g = g.to(tl.float32) * vv.to(tl.float32)
        u, g = u.to(type), g.to(type)
        shift = tl.where(ok, shift, float("inf"))

        # Pairs of an inner key and a row, for options that need both.
        added = None
        if BQ == 1:
            begin = begin_of(block_first, low, inner_bounds, queries, TABLE)
            end = end_of(block_first, high, length, inner_bounds, queries, TABLE)
            pair = ((key >= begin) & (key < end))[:, None]
        else:
            pair = (key[:, None] >= begin_of(i, low, inner_bounds, queries, TABLE)[None, :]) & (
                key[:, None] < end_of(i, high, length, inner_bounds, queries, TABLE)[None, :])
        if KEY_MASKS:
            pair = pair & key_ok[:, None]
        if DISTINCT == OTHER_THAN_QUERY:
            own_position = position_of(i, length, entry, queries, POSITIONS)
            pair = pair & (key[:, None] != own_position[None, :])
        if DISTINCT != ANY_KEYS:
            for m in tl.static_range(LEADING):
                pair = pair & (key[:, None] != keys[m][None, :])
        if MASK != NO_MASK or DROPOUT:
            head = kv_head * group + head_block * BH + row_head
        if MASK != NO_MASK:
            mask_rows = batch * mask_strides[0] + head * mask_strides[1]
            mask_rows += i.to(tl.int64) * mask_strides[2]
            for m in tl.static_range(LEADING):
                mask_rows += keys[m].to(tl.int64) * mask_strides[3 + m]
            own_mask = mask + mask_rows[None, :] + (key64 * mask_strides[3 + LEADING])[:, None]
            pair = pair & ok[None, :]
            if MASK == BOOL_MASK:
                pair = pair & (tl.load(own_mask, mask=pair, other=0) != 0)
            else:
                added = tl.load(own_mask, mask=pair, other=float("-inf"))
                pair = pair & ~(added == float("-inf"))

        s = tl.dot(kt, tl.trans(u), input_precision=PRECISION)
        if CAP > 0:
            s = capped(s, CAP)
        p, x = weights_of(s, added, base[None, :], shift[None, :], factor[None, :], scale,
                          NORMALIZER, ADDED, SCALED, False)
        p = tl.where(pair, p, 0.0)
        w = p
        if DROPOUT:
            hashes = row_hash(hashed_seed(seed_low, seed_high), batch * heads + head, i)
            for m in tl.static_range(LEADING):
                hashes = hashes ^ key_hash(at(CALLERS, m), keys[m])
            kept = dropout_factor(key_hashes[:, None] ^ hashes[None, :], threshold, keep_scale)
            w = p * kept
        if WANT_K:
            dp = tl.dot(vt, tl.trans(g), input_precision=PRECISION)
            if SUM:
                dp += share[None, :]
            if DROPOUT:
                dp = dp * kept
            slope = slopes_of(p, x, shift[None, :], factor[None, :], NORMALIZER)
            if NORMALIZER == RELU:
                slope = tl.where(pair, slope, 0.0)
            slope = without_whole(slope, p, ROUNDED)
            if CAP > 0:
                slope = slope * cap_slope(s, CAP)
            ds = (slope * (dp * output_scale - delta[None, :])).to(type)
        if WANT_V:
            dv = tl.dot(w.to(type), g, dv, input_precision=PRECISION)
        if WANT_K:
            dk = tl.dot(ds, u, dk, input_precision=PRECISION)
        block_first, chunk, head_block = _advance(
            block_first, chunk, head_block, chunks, head_blocks, BQ)

    write = (key < length)[:, None]
    split64 = zero + split
    if WANT_K:
        place = grad_k + row_offsets(grad_k_strides, split64 * batches + batch, kv_head, key)
        tl.store(place[:, None] + c[None, :], (dk * logit_scale).to(grad_k.dtype.element_ty),
                 mask=write & (c < D)[None, :])
    if WANT_V:
        place = grad_v + row_offsets(grad_v_strides, split64 * batches + batch, kv_head, key)
        tl.store(place[:, None] + cv[None, :], (dv * output_scale).to(grad_v.dtype.element_ty),
                 mask=write & (cv < DV)[None, :])
