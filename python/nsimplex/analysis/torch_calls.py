"""Attention of PyTorch itself as calls of :func:`nsimplex.attention`, from its arguments."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention_calls import AttentionCall


def four_axes(x: Tensor, heads: int) -> Tensor:
    """[B, H, T, C] of a tensor whose first axes may be joined, [B H, T, C], or several."""
    if x.dim() == 3:
        return x.unflatten(0, (-1, heads))
    return x if x.dim() == 4 else x.flatten(0, x.dim() - 4)


def scaled_dot_product_call(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> AttentionCall:
    """The call of ``torch.nn.functional.scaled_dot_product_attention`` with these arguments."""
    query, key, value = (four_axes(x if x.dim() > 2 else x[None], 1) for x in (query, key, value))
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask[:, None] if attn_mask.size(0) == query.size(0) else attn_mask[None]
    positions = None
    if is_causal and query.size(2) != key.size(2):  # aligned at the first tokens
        positions = torch.arange(query.size(2), device=query.device).expand(query.size(0), -1)
    return AttentionCall(
        query.detach(),
        [key.detach()],
        [value.detach()],
        dict(
            logit_scale=scale,
            causal=is_causal,
            query_positions=None if positions is None else positions.contiguous(),
            mask=attn_mask if attn_mask is None else _float_mask(attn_mask, query.dtype),
        ),
    )


def _float_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype == torch.bool:
        return mask
    # finfo.min stands for a forbidden key in many models.
    return mask.to(dtype).masked_fill(mask <= torch.finfo(mask.dtype).min / 2, -torch.inf)


def multi_head_call(args: tuple, kwargs: dict[str, Any]) -> AttentionCall | None:
    """The call within ``torch.nn.MultiheadAttention``, from its arguments."""
    names = (
        "query", "key", "value", "embed_dim", "heads", "in_weight", "in_bias", "bias_k", "bias_v",
        "zero",
    )  # fmt: skip
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    if given["bias_k"] is not None or given["zero"]:
        return None
    inputs = [given[name].detach() for name in ("query", "key", "value")]
    if inputs[0].dim() == 2:
        inputs = [x[:, None] for x in inputs]
    width, heads = given["embed_dim"], given["heads"]
    if kwargs.get("use_separate_proj_weight"):
        weights = [kwargs[f"{name}_proj_weight"] for name in "qkv"]
    else:
        weights = list(given["in_weight"].split(width))
    biases = [None] * 3 if given["in_bias"] is None else list(given["in_bias"].split(width))
    parts = [
        F.linear(x, w.detach(), None if b is None else b.detach())
        .unflatten(-1, (heads, -1))
        .permute(1, 2, 0, 3)
        for x, w, b in zip(inputs, weights, biases, strict=True)
    ]
    query, key, value = parts
    mask = _as_added(kwargs.get("attn_mask"), query.dtype)
    if mask is not None:
        mask = mask.unflatten(0, (-1, heads)) if mask.dim() == 3 else mask[None, None]
    padding = _as_added(kwargs.get("key_padding_mask"), query.dtype)
    if padding is not None:
        padding = padding.reshape(-1, 1, 1, padding.size(-1))
        mask = padding if mask is None else mask + padding
    return AttentionCall(query, [key], [value], dict(mask=mask, causal=False))


def _as_added(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """In this module true forbids a key."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
        return zeros.masked_fill(mask, -torch.inf)
    return mask.to(dtype)
