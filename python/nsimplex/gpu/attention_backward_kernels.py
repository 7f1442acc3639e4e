"""The backward pass of dense attention as two Triton kernels, each with four matrix products.

``attention_backward_rows`` is the forward kernel's twin. Rows of a product are (query of the block,
head of the group, tuple of leading keys), and tiles of inner keys pass by. It leaves the gradient
of the query, and for every segment of queries a private part of the gradients of the leading keys
and values, which ``attention_merge`` adds in the order of the segments.

``attention_backward_keys`` is its transpose. A tile of inner keys stays, and the rows of all queries
that see it pass by. It leaves the gradients of the inner keys and values.

No two programs write one number and there are no atomics, so the bits of a result depend on the
problem and the tiles alone. The second evaluation of the logits costs two of eight products, but
either kernel keeps its accumulators in registers, and nothing of the size of the query is stored in
fp32.

Positions are int32, offsets of rows int64. An axis is (length, low, high): query i sees the keys
[max(i + low, 0), min(i + high, length)); with TABLE these come from memory.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.constexpr_function
def _at(sizes, m):
    return sizes[m]


@triton.constexpr_function
def _product(sizes, begin, end):
    result = 1
    for index in range(begin, end):
        result *= sizes[index]
    return result


@triton.jit
def _begin(i, low, bounds, queries, TABLE: tl.constexpr):
    """The first key that query i sees; never falls with i."""
    if TABLE:
        return tl.load(bounds + 2 * tl.minimum(i, queries - 1))
    else:
        return tl.maximum(i + low, 0)


@triton.jit
def _end(i, high, length, bounds, queries, TABLE: tl.constexpr):
    """One past the last key that query i sees; never falls with i."""
    if TABLE:
        return tl.load(bounds + 2 * tl.minimum(i, queries - 1) + 1)
    else:
        return tl.minimum(i + high, length)


@triton.jit
def _first_at_least(bounds, limit, queries):
    """The first query whose begin (or end, of ``bounds`` + 1) reaches the limit; else ``queries``."""
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
def _sum_others(x, M: tl.constexpr, BJS: tl.constexpr, C: tl.constexpr):
    """[product of BJS, C] to [BJS[M], C]: sums over the tuples that share key M. The first axis is
    the fastest digit of a tuple."""
    BEFORE: tl.constexpr = _product(BJS, 0, M)
    AFTER: tl.constexpr = _product(BJS, M + 1, len(BJS))
    OWN: tl.constexpr = _at(BJS, M)
    if AFTER > 1:
        x = tl.sum(tl.reshape(x, (AFTER, OWN * BEFORE, C)), 0)
    if BEFORE > 1:
        x = tl.sum(tl.reshape(x, (OWN, BEFORE, C)), 1)
    return x


@triton.jit
def _add_rows(acc, rows, part, stride: tl.constexpr, c, ok):
    """part[rows] += acc. No other program touches this part."""
    place = part + rows.to(tl.int64)[:, None] * stride + c[None, :]
    tl.store(place, tl.load(place, mask=ok, other=0.0) + acc, mask=ok)


@triton.jit
def _row_offsets(strides, batch, head, i):
    return batch * strides[0] + head * strides[1] + i.to(tl.int64) * strides[2]


@triton.jit
def _load_tile(base, offsets, c, ok, D: tl.constexpr, DP: tl.constexpr):
    """[rows, channels], zeros where a row takes no part."""
    if D == DP:
        return tl.load(base + (offsets[:, None] + c[None, :]), mask=ok[:, None], other=0.0)
    else:
        return tl.load(base + (offsets[:, None] + c[None, :]), mask=ok[:, None] & (c < D)[None, :], other=0.0)


@triton.jit
def _load_all(base, offsets, c, D: tl.constexpr, DP: tl.constexpr):
    if D == DP:
        return tl.load(base + (offsets[:, None] + c[None, :]))
    else:
        return tl.load(base + (offsets[:, None] + c[None, :]), mask=(c < D)[None, :], other=0.0)


@triton.jit
def _load_some(base, offsets, c, live, D: tl.constexpr, DP: tl.constexpr, SAFE: tl.constexpr):
    """Rows of a query. Without a mask, those of one query are loaded once; SAFE leaves out queries
    that have no tuple, whatever their rows hold."""
    if SAFE:
        return _load_tile(base, offsets, c, live, D, DP)
    else:
        return _load_all(base, offsets, c, D, DP)


@triton.jit
def _rows_tile(u, g, du, y, shift, delta, factor_place, kp, vp, k_stride, v_stride, start, seen, pair,
               c, cv, scale2, output_scale,
               MASKED: tl.constexpr, SCALED: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
               BN: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of inner keys for all rows: dU += dS K, Y += P V."""
    n = tl.arange(0, BN)
    start64 = start.to(tl.int64)
    if MASKED:
        kt = _load_tile(kp + start64 * k_stride, n * k_stride, c, seen, D, DP)
        vt = _load_tile(vp + start64 * v_stride, n * v_stride, cv, seen, DV, DVP)
    else:
        kt = _load_all(kp + start64 * k_stride, n * k_stride, c, D, DP)
        vt = _load_all(vp + start64 * v_stride, n * v_stride, cv, DV, DVP)
    p = tl.exp2(tl.dot(u, tl.trans(kt), input_precision=PRECISION) * scale2 - shift[:, None])
    if SCALED:
        p = p * tl.load(factor_place)[:, None]
    if MASKED:
        p = tl.where(pair, p, 0.0)
    dp = tl.dot(g, tl.trans(vt), input_precision=PRECISION)
    ds = (p * (dp * output_scale - delta[:, None])).to(kt.dtype)
    y = tl.dot(p.to(kt.dtype), vt, y, input_precision=PRECISION)
    du = tl.dot(ds, kt, du, input_precision=PRECISION)
    return du, y


@triton.jit
def attention_backward_rows(
        # Inputs; rows is fp32 [3, B, Hq, Tq] of attention_row_statistics.
        q, grad_out, rows, lead_k, lead_v, k, v,
        # grad_q has the dtype of q. scratch: fp32 [programs, head_blocks, BQ BH, D], used if there
        # are several chunks. Per leading axis fp32 zeros [B, Hk, segments, span, D + Dv].
        grad_q, scratch, lead_grad,
        bounds,  # int32 [N, B, Tq, 2] with TABLE, else unused
        # Strides (batch, head, row); tuples of these for the leading axes.
        q_strides, grad_strides, grad_q_strides, lead_k_strides, lead_v_strides, k_strides, v_strides,
        lead_axes,  # of each leading axis (length, low, high, span, boxes)
        length, low, high,  # of the inner axis
        batches, queries, group, kv_heads, head_blocks, segment,
        logit_scale, output_scale,
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BJS: tl.constexpr, BN: tl.constexpr,
        WIDE: tl.constexpr, SAFE: tl.constexpr, SCALED: tl.constexpr, TABLE: tl.constexpr, PRECISION: tl.constexpr):
    LEADING: tl.constexpr = ORDER - 1
    BJ: tl.constexpr = _product(BJS, 0, LEADING)
    QH: tl.constexpr = BQ * BH
    BM: tl.constexpr = QH * BJ
    seg = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    zero = batch * 0
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    part = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + seg
    first = seg * segment
    stop = tl.minimum(first + segment, queries)
    heads = kv_heads * group
    plane = batches.to(tl.int64) * heads * queries
    scale2 = logit_scale * LOG2E
    type = q.dtype.element_ty

    c, cv = tl.arange(0, DP), tl.arange(0, DVP)
    c_ok, cv_ok = c < D, cv < DV
    r = tl.arange(0, BM)
    qh = tl.arange(0, QH)
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2

    chunks = 1
    lead_kp, lead_vp = (), ()
    for m in tl.static_range(LEADING):
        chunks *= lead_axes[m][4]
        lead_kp = lead_kp + (lead_k[m] + batch * lead_k_strides[m][0] + kv_head * lead_k_strides[m][1],)
        lead_vp = lead_vp + (lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1],)

    row_q, row_head = r // (BH * BJ), (r // BJ) % BH
    q_base = q + batch * q_strides[0] + kv_head * group * q_strides[1]
    g_base = grad_out + batch * grad_strides[0] + kv_head * group * grad_strides[1]
    s_base = rows + (batch * heads + kv_head * group) * queries

    for block in range(0, tl.cdiv(stop - first, BQ)):
        block_first = first + block * BQ
        following = block_first + BQ
        block_last = tl.minimum(following, stop) - 1
        i = block_first + r // (BH * BJ)

        # Inner keys: the union of the block's windows; [all_lo, all_hi) is seen by all its queries.
        lo = _begin(block_first, low, inner_bounds, queries, TABLE)
        hi = _end(block_last, high, length, inner_bounds, queries, TABLE)
        all_lo, all_hi = lo, hi
        if BQ > 1:
            all_lo = _begin(block_last, low, inner_bounds, queries, TABLE)
            all_hi = _end(block_first, high, length, inner_bounds, queries, TABLE)
        head_tiles = (tl.maximum(all_lo - lo, 0) + BN - 1) // BN
        mid = lo + head_tiles * BN
        full_tiles = tl.maximum(all_hi - mid, 0) // BN
        tail = mid + full_tiles * BN
        edge_tiles = head_tiles + (tl.maximum(hi - tail, 0) + BN - 1) // BN

        for chunk in range(0, chunks):
            # A box of tuples. Its keys by rows, and by the positions in the box alone.
            pair_ok = i < stop
            digits, box_digits, left_chunk = r % BJ, tl.arange(0, BJ), chunk
            keys, box_keys, box_seen = (), (), ()
            for m in tl.static_range(LEADING):
                axis = lead_axes[m]
                axis_bounds = bounds + (m * batches + batch) * queries * 2
                base = _begin(block_first, axis[1], axis_bounds, queries, TABLE)
                base += left_chunk % axis[4] * _at(BJS, m)
                left_chunk = left_chunk // axis[4]
                j = base + digits % _at(BJS, m)
                box = base + box_digits % _at(BJS, m)
                digits, box_digits = digits // _at(BJS, m), box_digits // _at(BJS, m)
                if BQ > 1:
                    pair_ok = pair_ok & (j >= _begin(i, axis[1], axis_bounds, queries, TABLE))
                    pair_ok = pair_ok & (j < _end(i, axis[2], axis[0], axis_bounds, queries, TABLE))
                else:
                    pair_ok = pair_ok & (j < _end(block_first, axis[2], axis[0], axis_bounds, queries, TABLE))
                box_seen = box_seen + (box < _end(block_last, axis[2], axis[0], axis_bounds, queries, TABLE),)
                if WIDE:
                    j, box = j.to(tl.int64), box.to(tl.int64)
                keys, box_keys = keys + (j,), box_keys + (box,)

            for head_block in range(0, head_blocks):
                first64, head64 = zero + block_first, zero + head_block * BH
                ok = pair_ok & (head_block * BH + row_head < group)
                # Rows beyond the group or the segment read the last ones, and have no weight.
                own_head = tl.minimum(row_head, group - 1 - head_block * BH)
                own_q = tl.minimum(row_q, stop - 1 - block_first)
                if WIDE:
                    own_head, own_q = own_head.to(tl.int64), own_q.to(tl.int64)
                place = s_base + (head64 * queries + first64) + (own_head * queries + own_q)
                shift = tl.load(place)
                delta = tl.load(place + plane)
                q_place = q_base + (head64 * q_strides[1] + first64 * q_strides[2])
                g_place = g_base + (head64 * grad_strides[1] + first64 * grad_strides[2])
                q_offsets = own_head * q_strides[1] + own_q * q_strides[2]
                g_offsets = own_head * grad_strides[1] + own_q * grad_strides[2]
                live = ok & (shift < float("inf"))
                u = _load_some(q_place, q_offsets, c, live, D, DP, SAFE)
                g = _load_some(g_place, g_offsets, cv, live, DV, DVP, SAFE)
                for m in tl.static_range(LEADING):
                    kk = _load_tile(lead_kp[m], keys[m] * lead_k_strides[m][2], c, pair_ok, D, DP)
                    vv = _load_tile(lead_vp[m], keys[m] * lead_v_strides[m][2], cv, pair_ok, DV, DVP)
                    u = u.to(tl.float32) * kk.to(tl.float32)
                    g = g.to(tl.float32) * vv.to(tl.float32)
                u, g = u.to(type), g.to(type)
                shift = tl.where(ok, shift, float("inf"))

                du = tl.zeros((BM, DP), tl.float32)
                y = tl.zeros((BM, DVP), tl.float32)
                for tile in range(0, full_tiles):
                    du, y = _rows_tile(u, g, du, y, shift, delta, place + 2 * plane, kp, vp,
                                       k_strides[2], v_strides[2], mid + tile * BN, None, None, c, cv,
                                       scale2, output_scale, False, SCALED, D, DV, DP, DVP, BN, PRECISION)
                for tile in range(0, edge_tiles):
                    start = tl.where(tile < head_tiles, lo + tile * BN, tail + (tile - head_tiles) * BN)
                    inner = start + tl.arange(0, BN)
                    seen = inner < hi
                    pair = seen[None, :]
                    if BQ > 1:
                        pair = pair & (inner[None, :] >= _begin(i, low, inner_bounds, queries, TABLE)[:, None])
                        pair = pair & (inner[None, :] < _end(i, high, length, inner_bounds, queries, TABLE)[:, None])
                    du, y = _rows_tile(u, g, du, y, shift, delta, place + 2 * plane, kp, vp,
                                       k_strides[2], v_strides[2], start, seen, pair, c, cv,
                                       scale2, output_scale, True, SCALED, D, DV, DP, DVP, BN, PRECISION)

                # The rows become gradients of the query and of the leading keys and values.
                dq = du
                for m in tl.static_range(LEADING):
                    dq = dq * _load_tile(lead_kp[m], keys[m] * lead_k_strides[m][2], c, pair_ok, D, DP).to(tl.float32)
                dq = tl.sum(tl.reshape(dq, (QH, BJ, DP)), 1) * logit_scale
                iq = block_first + qh // BH
                hq = head_block * BH + qh % BH
                q_ok = ((iq < stop) & (hq < group))[:, None] & (c < D)[None, :]
                store = q_ok
                if LEADING > 0:
                    kept = scratch + ((part * head_blocks + head_block) * QH + qh)[:, None] * D + c[None, :]
                    dq += tl.load(kept, mask=q_ok & (chunk > 0), other=0.0)
                    tl.store(kept, dq, mask=q_ok & (chunk < chunks - 1))
                    store = q_ok & (chunk == chunks - 1)
                dq_rows = _row_offsets(grad_q_strides, batch, kv_head * group + hq, iq)
                tl.store(grad_q + dq_rows[:, None] + c[None, :], dq.to(type), mask=store)
                if LEADING > 0:
                    du *= _load_some(q_place, q_offsets, c, live, D, DP, SAFE).to(tl.float32)
                    du = tl.sum(tl.reshape(du, (QH, BJ, DP)), 0) * logit_scale
                    y *= _load_some(g_place, g_offsets, cv, live, DV, DVP, SAFE).to(tl.float32)
                    y = tl.sum(tl.reshape(y, (QH, BJ, DVP)), 0) * output_scale
                    left_chunk = chunk
                    for m in tl.static_range(LEADING):
                        dkm, dvm = du, y
                        for other in tl.static_range(LEADING):
                            if other != m:
                                dkm *= _load_tile(lead_kp[other], box_keys[other] * lead_k_strides[other][2], c,
                                                  box_seen[other], D, DP).to(tl.float32)
                                dvm *= _load_tile(lead_vp[other], box_keys[other] * lead_v_strides[other][2], cv,
                                                  box_seen[other], DV, DVP).to(tl.float32)
                        axis = lead_axes[m]
                        axis_bounds = bounds + (m * batches + batch) * queries * 2
                        own_keys = _begin(block_first, axis[1], axis_bounds, queries, TABLE)
                        own_keys += left_chunk % axis[4] * _at(BJS, m) + tl.arange(0, _at(BJS, m))
                        left_chunk = left_chunk // axis[4]
                        seen_keys = own_keys < _end(block_last, axis[2], axis[0], axis_bounds, queries, TABLE)
                        own_rows = own_keys - _begin(first, axis[1], axis_bounds, queries, TABLE)
                        own = lead_grad[m] + part * axis[3] * (D + DV)
                        _add_rows(_sum_others(dkm, m, BJS, DP), own_rows, own, D + DV, c, seen_keys[:, None] & c_ok[None, :])
                        _add_rows(_sum_others(dvm, m, BJS, DVP), own_rows, own + D, D + DV, cv, seen_keys[:, None] & cv_ok[None, :])
                    tl.debug_barrier()  # other threads may read the workspaces in the next step


@triton.jit
def _advance(block_first, chunk, head_block, chunks, head_blocks, BQ: tl.constexpr):
    """The next step: heads are the fastest, then boxes of tuples, then queries."""
    head_block += 1
    wrap = head_block == head_blocks
    head_block = tl.where(wrap, 0, head_block)
    chunk += wrap.to(tl.int32)
    wrap = chunk == chunks
    chunk = tl.where(wrap, 0, chunk)
    return block_first + wrap.to(tl.int32) * BQ, chunk, head_block


@triton.jit
def attention_backward_keys(
        q, grad_out, rows, lead_k, lead_v, k, v,
        # Typed like k with one split, else fp32 parts: batch stride of a split first.
        grad_k, grad_v,
        bounds,
        q_strides, grad_strides, lead_k_strides, lead_v_strides, k_strides, v_strides, grad_k_strides, grad_v_strides,
        lead_axes,  # of each leading axis (length, low, high, most)
        length, low, high,
        batches, queries, group, kv_heads, head_blocks, tuples,
        logit_scale, output_scale,
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BJ: tl.constexpr, BN: tl.constexpr,
        WIDE: tl.constexpr, SAFE: tl.constexpr, SCALED: tl.constexpr, TABLE: tl.constexpr, PRECISION: tl.constexpr):
    LEADING: tl.constexpr = ORDER - 1
    BM: tl.constexpr = BQ * BH * BJ
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    zero = batch * 0
    kv_head = (tl.program_id(1) % kv_heads).to(tl.int64)
    heads = kv_heads * group
    plane = batches.to(tl.int64) * heads * queries
    scale2 = logit_scale * LOG2E
    type = q.dtype.element_ty

    c, cv = tl.arange(0, DP), tl.arange(0, DVP)
    c_ok, cv_ok = c < D, cv < DV
    r = tl.arange(0, BM)
    start = tl.program_id(0) * BN
    key = start + tl.arange(0, BN)
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2

    # Queries that see some key of the tile, and the keys that some query sees.
    if TABLE:
        from_q = _first_at_least(inner_bounds + 1, start + 1, queries)
        to_q = _first_at_least(inner_bounds, start + BN, queries)
    else:
        from_q = tl.minimum(tl.maximum(start - high + 1, 0), queries)
        to_q = tl.minimum(queries, start + BN - low)
        for m in tl.static_range(LEADING):  # only queries that see some leading key
            from_q = tl.maximum(from_q, 1 - lead_axes[m][2])
            to_q = tl.minimum(to_q, lead_axes[m][0] - lead_axes[m][1])
        to_q = tl.maximum(to_q, from_q)
    key_ok = key < _end(queries - 1, high, length, inner_bounds, queries, TABLE)
    kt = _load_tile(k + batch * k_strides[0] + kv_head * k_strides[1], key.to(tl.int64) * k_strides[2], c, key_ok, D, DP)
    vt = _load_tile(v + batch * v_strides[0] + kv_head * v_strides[1], key.to(tl.int64) * v_strides[2], cv, key_ok, DV, DVP)
    dk = tl.zeros((BN, DP), tl.float32)
    dv = tl.zeros((BN, DVP), tl.float32)

    # Offsets of a row from the first one of its block.
    row_q, row_head, row_t = r // (BH * BJ), (r // BJ) % BH, r % BJ
    q_base = q + batch * q_strides[0] + kv_head * group * q_strides[1]
    g_base = grad_out + batch * grad_strides[0] + kv_head * group * grad_strides[1]
    s_base = rows + (batch * heads + kv_head * group) * queries

    chunks = tl.cdiv(tuples, BJ)
    block_first, chunk, head_block = from_q, from_q * 0, from_q * 0
    for step in range(0, tl.cdiv(to_q - from_q, BQ) * chunks * head_blocks):
        i = block_first + r // (BH * BJ)
        first64, head64 = zero + block_first, zero + head_block * BH
        ok = head_block * BH + row_head < group
        if BQ > 1:
            ok = ok & (i < to_q)
        # Rows beyond the group or the queries read the last ones, and have no weight. So loads need
        # no mask, and the rows of a query are loaded once.
        own_head = tl.minimum(row_head, group - 1 - head_block * BH)
        own_q = tl.minimum(row_q, to_q - 1 - block_first)
        if WIDE:
            own_head, own_q = own_head.to(tl.int64), own_q.to(tl.int64)
        place = s_base + (head64 * queries + first64) + (own_head * queries + own_q)
        shift = tl.load(place)
        delta = tl.load(place + plane)
        q_place = q_base + (head64 * q_strides[1] + first64 * q_strides[2])
        g_place = g_base + (head64 * grad_strides[1] + first64 * grad_strides[2])
        q_offsets = own_head * q_strides[1] + own_q * q_strides[2]
        g_offsets = own_head * grad_strides[1] + own_q * grad_strides[2]
        live = ok & (shift < float("inf"))
        qt = _load_some(q_place, q_offsets, c, live, D, DP, SAFE)
        gt = _load_some(g_place, g_offsets, cv, live, DV, DVP, SAFE)

        # Leading keys and values of the rows.
        flat = chunk * BJ + r % BJ
        u, g = qt, gt
        for m in tl.static_range(LEADING):
            axis = lead_axes[m]
            axis_bounds = bounds + (m * batches + batch) * queries * 2
            key_base = lead_k[m] + batch * lead_k_strides[m][0] + kv_head * lead_k_strides[m][1]
            value_base = lead_v[m] + batch * lead_v_strides[m][0] + kv_head * lead_v_strides[m][1]
            if BQ == 1:
                begin = _begin(block_first, axis[1], axis_bounds, queries, TABLE)
                end = _end(block_first, axis[2], axis[0], axis_bounds, queries, TABLE)
            else:
                begin = _begin(i, axis[1], axis_bounds, queries, TABLE)
                end = _end(i, axis[2], axis[0], axis_bounds, queries, TABLE)
            if BQ == 1 and LEADING == 1:
                seen = begin + flat < end
                offset = row_t
                if WIDE:
                    offset = offset.to(tl.int64)
                from_key = (begin + chunk * BJ).to(tl.int64)
                key_base += from_key * lead_k_strides[m][2]
                value_base += from_key * lead_v_strides[m][2]
            else:
                own = flat
                if m < LEADING - 1:
                    own = flat % axis[3]
                    flat = flat // axis[3]
                offset = begin + own
                seen = offset < end
                if WIDE:
                    offset = offset.to(tl.int64)
            ok = ok & seen
            kk = _load_tile(key_base, offset * lead_k_strides[m][2], c, seen, D, DP)
            vv = _load_tile(value_base, offset * lead_v_strides[m][2], cv, seen, DV, DVP)
            if LEADING == 1:
                u = (u.to(tl.float32) * kk.to(tl.float32)).to(type)
                g = (g.to(tl.float32) * vv.to(tl.float32)).to(type)
            else:
                u = u.to(tl.float32) * kk.to(tl.float32)
                g = g.to(tl.float32) * vv.to(tl.float32)
        u, g = u.to(type), g.to(type)
        shift = tl.where(ok, shift, float("inf"))

        p = tl.exp2(tl.dot(kt, tl.trans(u), input_precision=PRECISION) * scale2 - shift[None, :])
        if SCALED:
            p = p * tl.load(place + 2 * plane)[None, :]
        if BQ > 1:
            seen = (key[:, None] >= _begin(i, low, inner_bounds, queries, TABLE)[None, :]) & (
                key[:, None] < _end(i, high, length, inner_bounds, queries, TABLE)[None, :])
            p = tl.where(seen, p, 0.0)
        else:
            begin = _begin(block_first, low, inner_bounds, queries, TABLE)
            end = _end(block_first, high, length, inner_bounds, queries, TABLE)
            p = tl.where(((key >= begin) & (key < end))[:, None], p, 0.0)
        dp = tl.dot(vt, tl.trans(g), input_precision=PRECISION)
        ds = (p * (dp * output_scale - delta[None, :])).to(type)
        dv = tl.dot(p.to(type), g, dv, input_precision=PRECISION)
        dk = tl.dot(ds, u, dk, input_precision=PRECISION)
        block_first, chunk, head_block = _advance(block_first, chunk, head_block, chunks, head_blocks, BQ)

    write = key < length
    k_rows = grad_k + _row_offsets(grad_k_strides, batch, kv_head, key)
    v_rows = grad_v + _row_offsets(grad_v_strides, batch, kv_head, key)
    tl.store(k_rows[:, None] + c[None, :], (dk * logit_scale).to(grad_k.dtype.element_ty), mask=write[:, None] & c_ok[None, :])
    tl.store(v_rows[:, None] + cv[None, :], (dv * output_scale).to(grad_v.dtype.element_ty), mask=write[:, None] & cv_ok[None, :])
