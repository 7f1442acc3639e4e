"""N-simplicial attention as it is defined: every tuple visited, float64, no thought of speed.

Independent of the library on purpose: the files that other implementations are held against come
from here.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor


def scores(query: Tensor, keys: list[Tensor], form: str) -> Tensor:
    """[B, H, Tq, T_1, .., T_N] without scale and masks; keys have the query's number of heads."""
    order = len(keys)
    if form == "product":
        letters = "jklmno"[:order]
        operands = ",".join(f"bh{letter}d" for letter in letters)
        return torch.einsum(f"bhid,{operands}->bhi{letters}", query, *keys)
    size = order + 1  # Leibniz' formula: one term for each permutation of a chunk's channels
    q, *ks = (x.unflatten(-1, (-1, size)) for x in (query, *keys))
    total = 0.0
    for permutation in itertools.permutations(range(size)):
        inversions = sum(a > b for a, b in itertools.combinations(permutation, 2))
        channels = [x[..., c] for x, c in zip((q, *ks), permutation)]
        total = total + (-1) ** inversions * scores(channels[0], channels[1:], "product")
    return total


def admissible(query: Tensor, keys: list[Tensor], options: dict, tensors: dict) -> Tensor:
    """bool, broadcastable to [B, H, Tq, T_1, .., T_N]."""
    order, queries = len(keys), query.size(2)
    result = torch.ones([1] * (3 + order), dtype=torch.bool)
    index = []
    for m, key in enumerate(keys):
        length = key.size(2)
        shape = [1] * (3 + order)
        shape[3 + m] = length
        j = torch.arange(length).view(shape)
        index.append(j)
        shape = [1] * (3 + order)
        shape[2] = queries
        position = (torch.arange(queries) + length - queries).view(shape)
        left, right = options["window"][m]
        if left >= 0:
            result = result & (j > position - left)
        if right >= 0:
            result = result & (j <= position + right)
        if options["causal"]:
            result = result & (j <= position)
        if options["distinct"] == "with_query":
            result = result & (j != position)
        if "key_lengths" in tensors:
            result = result & (j < tensors["key_lengths"][m].view([-1] + [1] * (2 + order)))
        if "cu_seqlens" in tensors:
            starts = tensors["cu_seqlens"][1:-1].contiguous()
            result = result & (
                torch.bucketize(j, starts, right=True)
                == torch.bucketize(position, starts, right=True)
            )
        if f"key_mask.{m}" in tensors:
            mask = tensors[f"key_mask.{m}"]
            shape = [mask.size(0)] + [1] * (2 + order)
            shape[3 + m] = length
            result = result & mask.view(shape)
    if options["distinct"] != "none":
        for a, b in itertools.combinations(index, 2):
            result = result & (a != b)
    if "mask" in tensors and tensors["mask"].dtype == torch.bool:
        result = result & tensors["mask"]
    return result


def combine(values: list[Tensor], reduce: str) -> Tensor:
    """[B, H, T_1, .., T_N, Dv]"""
    order = len(values)
    total = None
    for m, value in enumerate(values):
        shape = [*value.shape[:2], *[1] * order, value.size(-1)]
        shape[2 + m] = value.size(2)
        value = value.reshape(shape)
        total = value if total is None else total * value if reduce == "product" else total + value
    return total / order if reduce == "mean" else total


def attention(
    query: Tensor, keys: list[Tensor], values: list[Tensor], options: dict, tensors: dict
):
    """(out, lse). `tensors`: key_lengths [N, B], cu_seqlens, key_mask.M, mask and sink where a case
    has them."""
    groups = query.size(1) // keys[0].size(1)
    keys, values = ([x.repeat_interleave(groups, 1) for x in side] for side in (keys, values))
    logits = options["logit_scale"] * scores(query, keys, options["form"])
    mask = tensors.get("mask")
    if mask is not None and mask.dtype != torch.bool:
        logits = logits + mask
    seen = admissible(query, keys, options, tensors).expand_as(logits) & (logits != -math.inf)
    logits = logits.masked_fill(~seen, 0).flatten(3)
    seen = seen.flatten(3)
    some = seen.any(-1)

    normalizer = options["normalizer"]
    if normalizer == "sigmoid":
        weights = logits.sigmoid() * seen
        lse = torch.zeros_like(weights[..., 0]) + 0 * weights.sum(-1)
    elif normalizer == "relu":
        weights = logits.relu() * seen
        total = weights.sum(-1)
        some = some & (total > 0)
        total = total.masked_fill(~some, 1)
        weights, lse = weights / total.unsqueeze(-1), total.log()
    else:
        hidden = logits.masked_fill(~seen, -math.inf).masked_fill(~some.unsqueeze(-1), 0)
        if normalizer == "softmax_sink":
            sink = tensors["sink"].view(1, -1, 1, 1).expand(*hidden.shape[:3], 1)
            hidden = torch.cat([hidden, sink], -1)
        lse = hidden.logsumexp(-1)
        weights = (hidden - lse.unsqueeze(-1)).exp()[..., : seen.size(-1)]
        weights = weights.masked_fill(~some.unsqueeze(-1), 0)

    combined = combine(values, options["reduce"]).flatten(2, -2)
    out = options["output_scale"] * torch.einsum("bhit,bhtd->bhid", weights, combined)
    return out, lse.masked_fill(~some, -math.inf)
