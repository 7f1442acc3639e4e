"""The operator's definition with all tuples at once: independent of the library's own reference."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

AXES = "uvwxyz"


def definition(
    query,
    keys,
    values,
    *,
    causal=False,
    window=None,
    form="product",
    reduce="product",
    normalizer="softmax",
    scale="standard",
    key_lengths=None,
    key_masks=None,
    cu_seqlens=None,
    mask=None,
    sink=None,
    distinct="none",
    dropout_p=0.0,
    seed=None,
    query_positions=None,
    augment=(),
    order_bias=None,
    softcap=None,
    alibi_slopes=None,
    pair_masks=(),
    return_lse=True,
):
    """(out, lse). ``window`` is a list of pairs or None, ``key_lengths`` is [N, B]. Axes in
    ``augment`` get a row of ones."""
    order, dim = len(keys), query.size(3)
    groups = query.size(1) // keys[0].size(1)
    keys = [key.repeat_interleave(groups, 1) for key in keys]
    values = [value.repeat_interleave(groups, 1) for value in values]
    lengths = [key.size(2) for key in keys]
    neutral = torch.ones_like if reduce == "product" else torch.zeros_like
    for m in augment:
        keys[m] = torch.cat([keys[m], torch.ones_like(keys[m][:, :, :1])], 2)
        values[m] = torch.cat([values[m], neutral(values[m][:, :, :1])], 2)
    s1, s2 = (dim**-0.5, 1.0) if scale == "standard" else scale

    logits = s1 * (products if form == "product" else determinants)(query, keys)
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    for m, length in enumerate(lengths if alibi_slopes is not None else []):
        away = positions(query.size(2), length, query_positions) - torch.arange(length)
        shape = [away.size(0), 1, query.size(2)] + [1] * order
        shape[3 + m] = length
        slopes = alibi_slopes.view(-1, *[1] * (order + 1))
        logits = logits - slopes * away.abs().view(shape)
    seen = visible(
        query,
        lengths,
        causal,
        window,
        key_lengths,
        key_masks,
        cu_seqlens,
        distinct,
        query_positions,
        augment,
    )
    lengths = [key.size(2) for key in keys]
    count = real_keys(lengths, augment)
    seen = seen & (count > 0)
    if order_bias is not None:
        logits = logits + order_bias[(count - 1).clamp(min=0)].movedim(-1, 0)[:, None]
    masks = [] if mask is None else [mask]
    for m, pairs in enumerate(pair_masks):
        pairs = pairs.view(*[1] * (4 - pairs.dim()), *pairs.shape)
        shape = [*pairs.shape[:3], *[1] * order]
        shape[3 + m] = pairs.size(3)
        masks.append(pairs.view(shape))
    for each in masks:
        if each.dtype == torch.bool:
            seen = seen & each
        else:
            logits = logits + each
            seen = seen & ~each.isneginf()
    seen = seen.expand(logits.shape).flatten(3)
    logits = logits.flatten(3)
    some = seen.any(-1)
    if normalizer == "sigmoid":
        weights, lse = logits.sigmoid() * seen, 0 * logits.masked_fill(~seen, 0).sum(-1)
    elif normalizer == "relu":
        positive = logits.clamp_min(0).masked_fill(~seen, 0)
        total = positive.sum(-1)
        some = total > 0
        total = total.masked_fill(~some, 1)
        weights, lse = positive / total[..., None], total.log()
    else:
        terms = logits.masked_fill(~seen, -torch.inf)
        if sink is not None:
            terms = torch.cat([terms, sink[:, None, None].expand_as(terms[..., :1])], -1)
        terms = terms.masked_fill(~some[..., None], 0)
        # A large lse has no digits left for the logarithm of a sum: neither weights nor its own
        # gradient are made from it.
        largest = terms.detach().amax(-1, keepdim=True)
        lse = largest.squeeze(-1) + (terms - largest).logsumexp(-1)
        weights = terms.softmax(-1)[..., : logits.size(-1)]
    weights = weights.masked_fill(~some[..., None], 0).unflatten(-1, lengths)
    if dropout_p:
        weights = weights * kept(weights.shape, dropout_p, seed) / (1 - dropout_p)

    axes = AXES[:order]
    operands = ",".join(f"bh{axis}d" for axis in axes)
    if reduce == "mean":
        weights = weights / count.clamp(min=1)
    if reduce == "product":
        out = torch.einsum(f"bht{axes},{operands}->bhtd", weights, *values)
    else:
        out = sum(
            torch.einsum(f"bht{axes},bh{axis}d->bhtd", weights, value)
            for axis, value in zip(axes, values)
        )
    return s2 * out, lse.masked_fill(~some, -torch.inf)


def products(query: Tensor, keys: list[Tensor]) -> Tensor:
    axes = AXES[: len(keys)]
    return torch.einsum(f"bhtd,{','.join(f'bh{a}d' for a in axes)}->bht{axes}", query, *keys)


def determinants(query: Tensor, keys: list[Tensor]) -> Tensor:
    """By the library of linear algebra, one matrix a tuple and chunk."""
    order = len(keys)
    vectors = [query.view(*query.shape[:3], *[1] * order, query.size(3))]
    for m, key in enumerate(keys):
        shape = [1] * order
        shape[m] = key.size(2)
        vectors.append(key.view(*key.shape[:2], 1, *shape, key.size(3)))
    chunks = [v.unflatten(-1, (-1, order + 1)) for v in torch.broadcast_tensors(*vectors)]
    return torch.linalg.det(torch.stack(chunks, -1)).sum(-1)


def visible(
    query,
    lengths,
    causal,
    window,
    key_lengths,
    key_masks,
    cu_seqlens,
    distinct,
    query_positions=None,
    augment=(),
) -> Tensor:
    """bool, broadcasts to [B, Hq, Tq, T_1, .., T_N]. Every query sees rows of ones."""
    order, queries = len(lengths), query.size(2)
    row = torch.arange(queries)
    rows = [length + (m in augment) for m, length in enumerate(lengths)]
    seen = torch.ones(1, 1, queries, *rows, dtype=torch.bool)
    for m, length in enumerate(lengths):
        position, index = positions(queries, length, query_positions), torch.arange(length)[None, :]
        sees = torch.ones(1, queries, length, dtype=torch.bool)
        left, right = (-1, -1) if window is None else window[m]
        if left >= 0:
            sees = sees & (index > position - left)
        if right >= 0:
            sees = sees & (index <= position + right)
        if causal:
            sees = sees & (index <= position)
        if key_lengths is not None:
            sees = sees & (index < key_lengths[m][:, None, None])
        if key_masks is not None:
            sees = sees & key_masks[m][:, None, :]
        if distinct == "with_query":
            sees = sees & (index != position)
        for begin, end in itertools.pairwise(cu_seqlens) if cu_seqlens is not None else []:
            inside = (row >= begin) & (row < end)
            sees = sees & (inside[:, None] == inside[None, :])
        if m in augment:
            sees = torch.cat([sees, torch.ones_like(sees[..., :1])], -1)
        shape = [sees.size(0), 1, queries] + [1] * order
        shape[3 + m] = rows[m]
        seen = seen & sees.view(shape)
    if distinct != "none":
        for tuple_of_keys in itertools.product(*map(range, rows)):
            real = [j for j, length in zip(tuple_of_keys, lengths) if j < length]
            if len(set(real)) < len(real):
                seen[(..., *tuple_of_keys)] = False
    return seen


def positions(queries, length, given) -> Tensor:
    """Of the queries among the keys of an axis, [B or 1, Tq, 1]."""
    row = torch.arange(queries)
    if given is None:
        return (row + length - queries).view(1, -1, 1)
    return (given if given.dim() == 2 else given[:, None] + row)[..., None]


def real_keys(rows, augment) -> Tensor:
    """How many keys of a tuple are not rows of ones, [T_1, .., T_N]."""
    count = torch.full(rows, len(rows))
    for m in augment:
        count.select(m, rows[m] - 1).sub_(1)
    return count


def kept(shape, p: float, seed: int) -> Tensor:
    """Which tuples dropout keeps, one after the other, in Python's integers."""
    batch, heads, queries, *lengths = shape
    keys = [
        [splitmix64(j + (m + 1) * GAMMA) & LOW for j in range(n)] for m, n in enumerate(lengths)
    ]
    threshold, keep = int(p * 2**32), []
    for row in range(batch * heads):
        for i in range(queries):
            start = splitmix64(splitmix64(splitmix64(seed) ^ row) ^ i) & LOW
            for chosen in itertools.product(*keys):
                x = start
                for key in chosen:
                    x ^= key
                x = (x ^ (x >> 16)) * 0x85EBCA6B & LOW
                x = (x ^ (x >> 13)) * 0xC2B2AE35 & LOW
                keep.append((x ^ (x >> 16)) >= threshold)
    return torch.tensor(keep).view(shape)


GAMMA, LOW, ALL = 0x9E3779B97F4A7C15, 2**32 - 1, 2**64 - 1


def splitmix64(x: int) -> int:
    x = (x + GAMMA) & ALL
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & ALL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & ALL
    return x ^ (x >> 31)
