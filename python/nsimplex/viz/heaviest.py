"""The heaviest tuples of queries, without the weights of all tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from typing_extensions import Unpack

from .._arguments import checked
from .._layout import Layout, heads_first
from .._options import AttentionOptions, operator_options
from .._tuple_masks import folded
from ..analysis.attention_calls import AttentionCall, CallPart
from ..analysis.other_calls import AugmentedCall, augmented
from ..attention import attention
from ..routing import _tuples_of_call

__all__ = ["LEFT_OUT", "HeaviestTuples", "heaviest", "heaviest_tuples"]

#: The index of an axis with a row of ones that a tuple leaves out.
LEFT_OUT = -2

#: Finite numbers of a mask below this exclude a tuple, for the choice of the heaviest ones.
_MOST_MASK = 1e6
_MOST_TUPLES = 2**17  # that are scored at a time, if one query does not have more


class HeaviestTuples(NamedTuple):
    """The heaviest tuples of each query, heaviest first."""

    #: int64 [B, Hq, Q, count, N]: keys of the tuple; -2 on an axis that it leaves out
    #: (``augment``); -1 on all axes after a query's last tuple
    indices: Tensor
    weights: Tensor  #: float64 [B, Hq, Q, count]; 0 after the last tuple


@checked(options_of=attention)
def heaviest_tuples(
    query: Tensor,
    keys: Sequence[Tensor],
    count: int = 10,
    *,
    queries: Sequence[int] | None = None,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> HeaviestTuples:
    r"""The ``count`` tuples of largest weight of some queries, per head.

    .. math:: \mathrm{weight}_{iJ} = \mathrm{softmax}_J(e_{iJ}), \qquad
        e_{iJ} = s_1\, \mathrm{form}(q_i, k^{(1)}_{j_1}, \dots, k^{(N)}_{j_N}) + \mathrm{mask}_{iJ}

    The weights are those of :func:`nsimplex.attention_weights`. They are computed in float64
    without the tensor of all of them: :func:`nsimplex.topk_tuples` streams over blocks of queries
    and of tuples, and attention gives the logarithm of the sum.

    Args:
        query: [B, Hq, Tq, D].
        keys: N tensors [B, Hk, T_m, D].
        count: number of tuples per query, at least 1.
        queries: indices of the queries, rising; None: all.
        layout: of query and keys, as in :func:`nsimplex.attention`.
        options: those of :func:`nsimplex.attention`. Dropout is left out.

    Returns:
        :class:`HeaviestTuples`. A query with fewer admissible tuples has -1 and weight 0 after
        them. With ``augment``, tuples of fewer keys have -2 on the axes that they leave out, and
        their weights are those in the common softmax.

    Raises:
        ValueError: count < 1, an index out of range, or what attention refuses.

    Complexity: the arithmetic of two forward passes for these queries; memory
        O((T D + Q count) B Hq) and blocks of 2^17 to 2^22 scores. ``cu_seqlens`` adds a mask of
        Q T^N flags.

    Example:
        >>> q, k1, k2 = torch.randn(3, 1, 2, 9, 4)
        >>> best = heaviest_tuples(q, [k1, k2], 3, queries=[8], causal=True)
        >>> best.indices.shape, best.weights.shape
        (torch.Size([1, 2, 1, 3, 2]), torch.Size([1, 2, 1, 3]))
    """
    if count < 1:
        raise ValueError(f"[heaviest_tuples] count: expected 1 or more, got {count}")
    query, keys = heads_first("heaviest_tuples", layout, query, keys)
    check_heads("heaviest_tuples", query, keys)
    flat = operator_options(query, keys, keys, **options)
    call = augmented(
        AttentionCall(query.detach(), [key.detach() for key in keys], list(keys), flat)
    )
    if queries is not None:
        call = call.rows(rows_of("heaviest_tuples", queries, query.size(2), query.device))
    return heaviest(call, count, "heaviest_tuples")


def check_heads(function: str, query: Tensor, keys: Sequence[Tensor]) -> None:
    """Check the ranks, which attention itself checks too late for a view."""
    if len(keys) == 0:
        raise ValueError(f"[{function}] keys: expected one tensor per axis, got none")
    for name, tensor in (("query", query), *((f"keys[{m}]", key) for m, key in enumerate(keys))):
        if tensor.dim() != 4:
            raise ValueError(
                f"[{function}] {name}: expected 4 dimensions [batch, heads, length, channels], got "
                f"shape {list(tensor.shape)}"
            )


def rows_of(
    function: str, queries: Sequence[int], length: int, device: torch.device | None = None
) -> Tensor:
    """Indices of queries as a tensor."""
    rows = [int(row) for row in queries]
    if not rows or min(rows) < 0 or max(rows) >= length or rows != sorted(set(rows)):
        raise ValueError(
            f"[{function}] queries: expected rising indices from 0 to {length - 1}, got {rows[:8]}"
        )
    return torch.tensor(rows, device=device)


@torch.no_grad()
def heaviest(
    call: AttentionCall | AugmentedCall, count: int, function: str = "view"
) -> HeaviestTuples:
    """The heaviest tuples of all queries of a call."""
    if isinstance(call, AttentionCall):
        _require_order_of_scores(function, call.options)
    call = call.double()
    length = call.query.size(2)
    each = math.prod((call.query.size(0), call.query.size(1), *(k.size(2) for k in call.keys)))
    step = max(1, _MOST_TUPLES // max(each, 1))
    if length <= step:
        return _heaviest(call, count)
    parts = [
        _heaviest(
            call.rows(torch.arange(i, min(i + step, length), device=call.query.device)), count
        )
        for i in range(0, length, step)
    ]
    return HeaviestTuples(
        torch.cat([part.indices for part in parts], 2), torch.cat([p.weights for p in parts], 2)
    )


def _require_order_of_scores(function: str, options: dict[str, Any]) -> None:
    """Tuples are chosen by their scores before a soft cap, which keeps their order by itself."""
    softcap, slopes = options.get("softcap"), options.get("alibi_slopes")
    if softcap is None:
        return
    added = [options.get("mask"), *(options.get("pair_masks") or [])]
    numbers = [mask for mask in added if mask is not None and mask.is_floating_point()]
    numbers += [] if slopes is None else [slopes]
    if any((each[(each >= -_MOST_MASK) & each.isfinite()] != 0).any() for each in numbers):
        raise ValueError(
            f"[{function}] softcap: expected none beside a mask of numbers, which change the order "
            f"of capped logits, got {softcap}"
        )


def _heaviest(call: AttentionCall | AugmentedCall, count: int) -> HeaviestTuples:
    """One block of queries."""
    tables, weights = [], []
    for part in call.parts():
        table, weight = _of_part(part, count)
        if len(part.axes) < call.order:
            whole = table.new_full((*table.shape[:-1], call.order), LEFT_OUT)
            whole[..., part.axes] = table
            table = whole.masked_fill((weight == 0)[..., None], -1)
        tables.append(table)
        weights.append(weight)
    table, weight = torch.cat(tables, 3), torch.cat(weights, 3)
    order = weight.argsort(dim=-1, descending=True, stable=True)[..., :count]
    table = table.gather(3, order[..., None].expand(*order.shape, call.order))
    return HeaviestTuples(table, weight.gather(3, order))


def _of_part(part: CallPart, count: int) -> tuple[Tensor, Tensor]:
    """(tuples, weights) of an ordinary call, in any order."""
    call, lse = part.call, part.lse
    batch, heads, length, _ = call.query.shape
    single, shifted_query, shifted_keys = _of_single_heads(call)
    indices, offsets = _tuples_of_call(shifted_query, shifted_keys, count, **single)
    counts = offsets.flatten(0, 1).diff().flatten()  # [B Hq Tq]
    place = torch.arange(indices.size(0), device=indices.device)
    row = torch.repeat_interleave(counts)
    first = counts.cumsum(0) - counts
    table = indices.new_full((batch * heads * length, count, call.order), -1)
    table[row, place - first[row]] = indices
    table = table.view(batch, heads, length, count, call.order)
    logits = _logits(call, table)
    normalizer = call.options.get("normalizer", "softmax")
    if normalizer == "sigmoid":
        weights = logits.sigmoid()
    elif normalizer == "relu":
        weights = logits.clamp_min(0) * torch.exp(-lse)[..., None].nan_to_num(0, 0, 0)
    else:
        weights = torch.exp(logits - lse[..., None])
    missing = (table[..., 0] < 0) | ~(weights > 0)
    weights = weights.masked_fill(missing, 0)
    table = table.masked_fill(missing[..., None], -1)
    return table, weights


def _of_single_heads(call: AttentionCall) -> tuple[dict[str, Any], Tensor, list[Tensor]]:
    """Heads as batch entries, with channels that make every score positive.

    ``topk_tuples`` scores with max(logit, 0), so a constant is added to all logits of real tuples.
    """
    batch, heads, length, dim = call.query.shape
    order, (scale, _) = call.order, call.scale
    query = call.query.reshape(batch * heads, 1, length, dim)
    keys = [
        key.repeat_interleave(heads // key.size(1), 1).reshape(-1, 1, key.size(2), dim)
        for key in call.keys
    ]
    options = folded(call.query, call.keys, call.options)
    kept = ("causal", "window", "form", "distinct", "cu_seqlens")
    single: dict[str, Any] = {n: options[n] for n in kept if options.get(n) is not None}
    determinant = single.get("form") == "determinant"
    norms = [float(x.norm(dim=-1).max()) if x.numel() else 0.0 for x in (query, *keys)]
    most = abs(scale) * math.prod(norms) + 1
    for name in ("key_lengths", "query_positions", "key_masks"):
        value = options.get(name)
        if isinstance(value, (list, tuple)):
            single[name] = [mask.repeat_interleave(heads, 0) for mask in value]
        elif value is not None:
            axis = value.dim() - 1 if name == "key_lengths" else 0
            single[name] = value.repeat_interleave(heads, axis)
    mask = options.get("mask")
    if mask is not None:
        if mask.is_floating_point():
            mask = mask.masked_fill(mask < -_MOST_MASK, -torch.inf)
            finite = mask[mask.isfinite()]
            most += float(finite.abs().max()) if finite.numel() else 0.0
        if mask.dim() == order + 3:
            mask = mask.expand(batch, heads, *mask.shape[2:]).flatten(0, 1)[:, None]
        elif mask.dim() == order + 2 and mask.size(0) > 1:
            mask = mask.expand(batch, *mask.shape).flatten(0, 1)[:, None]
        single["mask"] = mask
    added = math.copysign(most / abs(scale), scale) if scale else 0.0
    width = order + 1 if determinant else 1
    single["logit_scale"] = scale
    query = torch.cat([query, query.new_zeros(*query.shape[:3], width)], -1)
    query[..., dim] = added
    padded = []
    for axis, key in enumerate(keys):
        key = torch.cat([key, key.new_zeros(*key.shape[:3], width)], -1)
        key[..., dim + (axis + 1 if determinant else 0)] = 1
        padded.append(key)
    return single, query, padded


def _logits(call: AttentionCall, table: Tensor) -> Tensor:
    """Logits of tuples [B, Hq, Tq, count, N], with the mask."""
    batch, heads, length, count, order = table.shape
    safe = table.clamp_min(0)
    rows = []
    for axis, key in enumerate(call.keys):
        key = key.repeat_interleave(heads // key.size(1), 1)
        at = safe[..., axis].flatten(2)[..., None].expand(-1, -1, -1, key.size(-1))
        rows.append(key.gather(2, at).unflatten(2, (length, count)))
    query = call.query[:, :, :, None]
    if call.options.get("form", "product") == "determinant":
        columns = [x.expand_as(rows[0]).unflatten(-1, (-1, order + 1)) for x in (query, *rows)]
        logits = torch.linalg.det(torch.stack(columns, -1)).sum(-1)
    else:
        logits = query.expand_as(rows[0])
        for row in rows:
            logits = logits * row
        logits = logits.sum(-1)
    logits = logits * call.scale[0]
    softcap = call.options.get("softcap")
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    mask = folded(call.query, call.keys, call.options).get("mask")
    if mask is None:
        return logits
    mask = mask[(None,) * (order + 3 - mask.dim())]
    device = table.device
    grid = [torch.arange(n, device=device).view(-1, *[1] * (3 - i)) for i, n in
          enumerate((batch, heads, length))]  # fmt: skip
    places = [*grid, *safe.unbind(-1)]
    chosen = mask[tuple(p if n > 1 else torch.zeros_like(p) for p, n in zip(places, mask.shape))]
    if mask.dtype == torch.bool:
        return logits.masked_fill(~chosen, -torch.inf)
    return logits + chosen
