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
def _key_in_slot(slot, begin, ring):
    """The key at or after ``begin`` that lies in this slot of a ring."""
    return begin + (slot + ring - begin % ring) % ring


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
def _load_rows(base, offsets, c, ok, c_ok):
    """fp32 [rows, channels], zeros where a row takes no part."""
    return tl.load(base + offsets[:, None] + c[None, :], mask=ok[:, None] & c_ok[None, :], other=0.0).to(tl.float32)


@triton.jit
def _rows_tile(u, g, du, y, shift, delta, factor, kp, vp, k_stride, v_stride, keys, seen, pair, c, cv, c_ok, cv_ok,
               scale2, MASKED: tl.constexpr, FOLD: tl.constexpr, PRECISION: tl.constexpr):
    """One tile of inner keys for all rows: dU += dS K, Y += P V."""
    k_place = kp + keys.to(tl.int64)[:, None] * k_stride + c[None, :]
    v_place = vp + keys.to(tl.int64)[:, None] * v_stride + cv[None, :]
    if MASKED:
        kt = tl.load(k_place, mask=seen[:, None] & c_ok[None, :], other=0.0)
        vt = tl.load(v_place, mask=seen[:, None] & cv_ok[None, :], other=0.0)
    else:
        kt = tl.load(k_place, mask=c_ok[None, :], other=0.0)
        vt = tl.load(v_place, mask=cv_ok[None, :], other=0.0)
    p = tl.exp2(tl.dot(u, tl.trans(kt), input_precision=PRECISION) * scale2 - shift[:, None])
    if not FOLD:
        p = p * factor[:, None]
    if MASKED:
        p = tl.where(pair, p, 0.0)
    dp = tl.dot(g, tl.trans(vt), input_precision=PRECISION)
    ds = (p * (dp - delta[:, None])).to(kt.dtype)
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
        lead_axes,  # of each leading axis (length, low, high, span, chunks of its ring)
        length, low, high,  # of the inner axis
        batches, queries, group, kv_heads, head_blocks, segment,
        logit_scale, output_scale,
        ORDER: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, DP: tl.constexpr, DVP: tl.constexpr,
        BQ: tl.constexpr, BH: tl.constexpr, BJS: tl.constexpr, BN: tl.constexpr,
        TABLE: tl.constexpr, FOLD: tl.constexpr, PRECISION: tl.constexpr):
    LEADING: tl.constexpr = ORDER - 1
    BJ: tl.constexpr = _product(BJS, 0, LEADING)
    QH: tl.constexpr = BQ * BH
    BM: tl.constexpr = QH * BJ
    seg = tl.program_id(0)
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
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
    n = tl.arange(0, BN)
    r = tl.arange(0, BM)
    qh = tl.arange(0, QH)
    kp = k + batch * k_strides[0] + kv_head * k_strides[1]
    vp = v + batch * v_strides[0] + kv_head * v_strides[1]
    inner_bounds = bounds + ((ORDER - 1) * batches + batch) * queries * 2

    # A leading key keeps its slot (its index modulo the ring) while a query sees it, and its
    # gradients stay in registers until then, unless the ring has several chunks.
    chunks = 1
    acc_k, acc_v = (), ()
    for m in tl.static_range(LEADING):
        chunks *= lead_axes[m][4]
        acc_k = acc_k + (tl.zeros((_at(BJS, m), DP), tl.float32),)
        acc_v = acc_v + (tl.zeros((_at(BJS, m), DVP), tl.float32),)

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
            ok = i < stop
            slot, slot_t, left_chunk = r % BJ, tl.arange(0, BJ), chunk
            keys, keys_t, seen_t = (), (), ()
            for m in tl.static_range(LEADING):
                axis = lead_axes[m]
                axis_bounds = bounds + (m * batches + batch) * queries * 2
                base = _begin(block_first, axis[1], axis_bounds, queries, TABLE)
                ring = axis[4] * _at(BJS, m)
                offset = left_chunk % axis[4] * _at(BJS, m)
                left_chunk = left_chunk // axis[4]
                j = _key_in_slot(offset + slot % _at(BJS, m), base, ring)
                jt = _key_in_slot(offset + slot_t % _at(BJS, m), base, ring)
                slot, slot_t = slot // _at(BJS, m), slot_t // _at(BJS, m)
                if BQ > 1:
                    ok = ok & (j >= _begin(i, axis[1], axis_bounds, queries, TABLE))
                    ok = ok & (j < _end(i, axis[2], axis[0], axis_bounds, queries, TABLE))
                else:
                    ok = ok & (j < _end(block_first, axis[2], axis[0], axis_bounds, queries, TABLE))
                keys, keys_t = keys + (j,), keys_t + (jt,)
                seen_t = seen_t + (jt < _end(block_last, axis[2], axis[0], axis_bounds, queries, TABLE),)

            for head_block in range(0, head_blocks):
                head_in_group = head_block * BH + (r // BJ) % BH
                row_ok = ok & (head_in_group < group)
                head = kv_head * group + head_in_group
                q_rows = _row_offsets(q_strides, batch, head, i)
                g_rows = _row_offsets(grad_strides, batch, head, i)
                place = rows + (batch * heads + head) * queries + i
                shift = tl.load(place, mask=row_ok, other=float("inf"))
                delta = tl.load(place + plane, mask=row_ok, other=0.0)
                factor = tl.load(place + 2 * plane, mask=row_ok, other=0.0)
                # A query without a tuple has shift = inf, and takes nothing, whatever its rows hold.
                row_ok = row_ok & (shift < float("inf"))
                gain = tl.full((BM,), 1.0, tl.float32) * output_scale
                if FOLD:
                    gain = gain * factor
                    delta = delta * factor
                u = _load_rows(q, q_rows, c, row_ok, c_ok)
                g = _load_rows(grad_out, g_rows, cv, row_ok, cv_ok) * gain[:, None]
                for m in tl.static_range(LEADING):
                    u *= _load_rows(lead_k[m], _row_offsets(lead_k_strides[m], batch, kv_head, keys[m]), c, row_ok, c_ok)
                    g *= _load_rows(lead_v[m], _row_offsets(lead_v_strides[m], batch, kv_head, keys[m]), cv, row_ok, cv_ok)
                u, g = u.to(type), g.to(type)

                du = tl.zeros((BM, DP), tl.float32)
                y = tl.zeros((BM, DVP), tl.float32)
                for tile in range(0, full_tiles):
                    du, y = _rows_tile(u, g, du, y, shift, delta, factor, kp, vp, k_strides[2], v_strides[2],
                                       mid + tile * BN + n, None, None, c, cv, c_ok, cv_ok, scale2,
                                       False, FOLD, PRECISION)
                for tile in range(0, edge_tiles):
                    inner = tl.where(tile < head_tiles, lo + tile * BN, tail + (tile - head_tiles) * BN) + n
                    seen = inner < hi
                    pair = seen[None, :]
                    if BQ > 1:
                        pair = pair & (inner[None, :] >= _begin(i, low, inner_bounds, queries, TABLE)[:, None])
                        pair = pair & (inner[None, :] < _end(i, high, length, inner_bounds, queries, TABLE)[:, None])
                    du, y = _rows_tile(u, g, du, y, shift, delta, factor, kp, vp, k_strides[2], v_strides[2],
                                       inner, seen, pair, c, cv, c_ok, cv_ok, scale2,
                                       True, FOLD, PRECISION)

                # The rows become gradients of the query and of the leading keys and values.
                dq = du
                for m in tl.static_range(LEADING):
                    dq = dq * _load_rows(lead_k[m], _row_offsets(lead_k_strides[m], batch, kv_head, keys[m]), c, row_ok, c_ok)
                dq = tl.sum(tl.reshape(dq, (QH, BJ, DP)), 1) * logit_scale
                iq = block_first + qh // BH
                hq = head_block * BH + qh % BH
                q_ok = ((iq < stop) & (hq < group))[:, None] & c_ok[None, :]
                store = q_ok
                if LEADING > 0:
                    kept = scratch + ((part * head_blocks + head_block) * QH + qh)[:, None] * D + c[None, :]
                    dq += tl.load(kept, mask=q_ok & (chunk > 0), other=0.0)
                    tl.store(kept, dq, mask=q_ok & (chunk < chunks - 1))
                    store = q_ok & (chunk == chunks - 1)
                dq_rows = _row_offsets(grad_q_strides, batch, kv_head * group + hq, iq)
                tl.store(grad_q + dq_rows[:, None] + c[None, :], dq.to(type), mask=store)
                if LEADING > 0:
                    du *= _load_rows(q, q_rows, c, row_ok, c_ok)
                    du = tl.sum(tl.reshape(du, (QH, BJ, DP)), 0) * logit_scale
                    y *= _load_rows(grad_out, g_rows, cv, row_ok, cv_ok) * gain[:, None]
                    y = tl.sum(tl.reshape(y, (QH, BJ, DVP)), 0)
                    new_k, new_v = (), ()
                    for m in tl.static_range(LEADING):
                        dkm, dvm = du, y
                        for other in tl.static_range(LEADING):
                            if other != m:
                                dkm *= _load_rows(lead_k[other], _row_offsets(lead_k_strides[other], batch, kv_head, keys_t[other]),
                                                  c, seen_t[other], c_ok)
                                dvm *= _load_rows(lead_v[other], _row_offsets(lead_v_strides[other], batch, kv_head, keys_t[other]),
                                                  cv, seen_t[other], cv_ok)
                        new_k = new_k + (acc_k[m] + _sum_others(dkm, m, BJS, DP),)
                        new_v = new_v + (acc_v[m] + _sum_others(dvm, m, BJS, DVP),)
                    acc_k, acc_v = new_k, new_v

            # Keys that no further query sees leave the ring; with several chunks, all do.
            if LEADING > 0:
                left_chunk = chunk
                kept_k, kept_v = (), ()
                for m in tl.static_range(LEADING):
                    axis = lead_axes[m]
                    axis_bounds = bounds + (m * batches + batch) * queries * 2
                    slots = left_chunk % axis[4] * _at(BJS, m) + tl.arange(0, _at(BJS, m))
                    left_chunk = left_chunk // axis[4]
                    held = _key_in_slot(slots, _begin(block_first, axis[1], axis_bounds, queries, TABLE),
                                        axis[4] * _at(BJS, m))
                    going = (held < _begin(following, axis[1], axis_bounds, queries, TABLE)) | (
                        following >= stop) | (chunks > 1)
                    write = going & (held < _end(block_last, axis[2], axis[0], axis_bounds, queries, TABLE))
                    row = held - _begin(first, axis[1], axis_bounds, queries, TABLE)
                    own = lead_grad[m] + part * axis[3] * (D + DV)
                    _add_rows(acc_k[m], row, own, D + DV, c, write[:, None] & c_ok[None, :])
                    _add_rows(acc_v[m], row, own + D, D + DV, cv, write[:, None] & cv_ok[None, :])
                    kept_k = kept_k + (tl.where(going[:, None], 0.0, acc_k[m]),)
                    kept_v = kept_v + (tl.where(going[:, None], 0.0, acc_v[m]),)
                acc_k, acc_v = kept_k, kept_v
                tl.debug_barrier()  # other threads may read the workspaces again in the next pass


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
        TABLE: tl.constexpr, FOLD: tl.constexpr, PRECISION: tl.constexpr):
    LEADING: tl.constexpr = ORDER - 1
    BM: tl.constexpr = BQ * BH * BJ
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
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
        to_q = tl.maximum(tl.minimum(queries, start + BN - low), from_q)
    key_ok = key < _end(queries - 1, high, length, inner_bounds, queries, TABLE)
    kt = tl.load(k + batch * k_strides[0] + kv_head * k_strides[1] + key.to(tl.int64)[:, None] * k_strides[2] + c[None, :],
                 mask=key_ok[:, None] & c_ok[None, :], other=0.0)
    vt = tl.load(v + batch * v_strides[0] + kv_head * v_strides[1] + key.to(tl.int64)[:, None] * v_strides[2] + cv[None, :],
                 mask=key_ok[:, None] & cv_ok[None, :], other=0.0)
    dk = tl.zeros((BN, DP), tl.float32)
    dv = tl.zeros((BN, DVP), tl.float32)

    chunks = tl.cdiv(tuples, BJ)
    steps = chunks * head_blocks
    for step in range(0, tl.cdiv(to_q - from_q, BQ) * steps):
        block_first = from_q + step // steps * BQ
        rest = step % steps
        chunk, head_block = rest // head_blocks, rest % head_blocks
        i = block_first + r // (BH * BJ)
        head_in_group = head_block * BH + (r // BJ) % BH
        head = kv_head * group + head_in_group
        flat = chunk * BJ + r % BJ
        row_ok = (head_in_group < group) & (flat < tuples)
        if BQ > 1:
            row_ok = row_ok & (i < to_q)
        place = rows + (batch * heads + head) * queries + i
        keys = ()
        for m in tl.static_range(LEADING):
            axis = lead_axes[m]
            axis_bounds = bounds + (m * batches + batch) * queries * 2
            if BQ > 1:
                j = _begin(i, axis[1], axis_bounds, queries, TABLE) + flat % axis[3]
                row_ok = row_ok & (j < _end(i, axis[2], axis[0], axis_bounds, queries, TABLE))
            else:
                j = _begin(block_first, axis[1], axis_bounds, queries, TABLE) + flat % axis[3]
                row_ok = row_ok & (j < _end(block_first, axis[2], axis[0], axis_bounds, queries, TABLE))
            flat = flat // axis[3]
            keys = keys + (j,)
        shift = tl.load(place, mask=row_ok, other=float("inf"))
        delta = tl.load(place + plane, mask=row_ok, other=0.0)
        factor = tl.load(place + 2 * plane, mask=row_ok, other=0.0)
        row_ok = row_ok & (shift < float("inf"))
        gain = tl.full((BM,), 1.0, tl.float32) * output_scale
        if FOLD:
            gain = gain * factor
            delta = delta * factor
        u = _load_rows(q, _row_offsets(q_strides, batch, head, i), c, row_ok, c_ok)
        g = _load_rows(grad_out, _row_offsets(grad_strides, batch, head, i), cv, row_ok, cv_ok) * gain[:, None]
        for m in tl.static_range(LEADING):
            u *= _load_rows(lead_k[m], _row_offsets(lead_k_strides[m], batch, kv_head, keys[m]), c, row_ok, c_ok)
            g *= _load_rows(lead_v[m], _row_offsets(lead_v_strides[m], batch, kv_head, keys[m]), cv, row_ok, cv_ok)
        u, g = u.to(type), g.to(type)

        p = tl.exp2(tl.dot(kt, tl.trans(u), input_precision=PRECISION) * scale2 - shift[None, :])
        if not FOLD:
            p = p * factor[None, :]
        if BQ > 1:
            seen = (key[:, None] >= _begin(i, low, inner_bounds, queries, TABLE)[None, :]) & (
                key[:, None] < _end(i, high, length, inner_bounds, queries, TABLE)[None, :])
            p = tl.where(seen, p, 0.0)
        else:
            seen = (key >= _begin(block_first, low, inner_bounds, queries, TABLE)) & (
                key < _end(block_first, high, length, inner_bounds, queries, TABLE))
            p = tl.where(seen[:, None], p, 0.0)
        dp = tl.dot(vt, tl.trans(g), input_precision=PRECISION)
        ds = (p * (dp - delta[None, :])).to(type)
        dv = tl.dot(p.to(type), g, dv, input_precision=PRECISION)
        dk = tl.dot(ds, u, dk, input_precision=PRECISION)

    write = key < length
    k_rows = grad_k + _row_offsets(grad_k_strides, batch, kv_head, key)
    v_rows = grad_v + _row_offsets(grad_v_strides, batch, kv_head, key)
    tl.store(k_rows[:, None] + c[None, :], (dk * logit_scale).to(grad_k.dtype.element_ty), mask=write[:, None] & c_ok[None, :])
    tl.store(v_rows[:, None] + cv[None, :], dv.to(grad_v.dtype.element_ty), mask=write[:, None] & cv_ok[None, :])
