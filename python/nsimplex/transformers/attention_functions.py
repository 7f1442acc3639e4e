"""Attention functions for layers of Transformers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from .._arguments import describe
from .._options import taken
from ..attention import attention
from ..sparse_attention import sparse_attention
from .mask_reading import Seen, key_table, kind_of, make_mask

__all__ = [
    "attend",
    "attend_to_keys",
    "attention_forward",
    "require_causal_model",
    "require_computed",
]

_MOST_TUPLES = 2**26  # of a mask that names every tuple


#: What eager attention obeys in some models, and other implementations get in place of a mask.
_NOT_COMPUTED = dict(
    sinks="no sinks that differ between queries",
    indices="no choice of keys",
    block_indices="no choice of keys",
    head_mask="no mask of heads",
    output_attentions="False: the weights are not returned",
)


def attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **options,
) -> tuple[Tensor, None]:
    """Ordinary attention of a Transformers model, as ``attn_implementation="nsimplex"`` calls it.

    query [B, Hq, Tq, D], key and value [B, Hk, T, D]. ``attention_mask``, bool or floating, and
    ``position_bias``, added to the logits, are broadcastable to [B, Hq, Tq, T]. ``softcap`` caps
    the logits before both are added. ``s_aux`` [Hq] are logits of attention sinks. A mask alone
    says which keys a query sees. Without one a query sees no later key if ``is_causal`` is True, or
    None and ``module.is_causal`` is not False; else it sees all. The result is [B, Tq, Hq, D];
    weights are not returned. See :func:`nsimplex.attention`.

    Raises:
        ValueError: an option that it does not compute, such as ``head_mask``.
    """
    length = query.size(2)
    kind = kind_of(attention_mask, length, key.size(2))
    require_computed(attention_mask is None or kind is not None, options)
    _require_no_weights("[nsimplex] ", getattr(module, "config", None), options)
    if attention_mask is None and is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    causal = length > 1 and (bool(is_causal) if attention_mask is None else kind == "causal")
    if kind is not None:
        attention_mask = None
    if causal and key.size(2) > length:  # the first tokens of a static cache: the rest is empty
        key, value = key[:, :, :length], value[:, :, :length]
    mask = _with_bias(_of_width(attention_mask, key.size(2)), _of_width(position_bias, key.size(2)))
    if s_aux is not None:
        sinks: dict[str, Any] = dict(normalizer="softmax_sink", sink=s_aux)
    else:
        sinks = {}
    out = attention(
        query,
        [key],
        [value],
        causal=causal,
        mask=mask,
        scale=query.size(-1) ** -0.5 if scaling is None else scaling,
        dropout_p=dropout,
        softcap=softcap,
        **sinks,
    )
    return out.transpose(1, 2).contiguous(), None


def require_computed(unmasked: bool, options: dict[str, Any]) -> None:
    """Check the options of a model's call, and that documents without a mask are one."""
    taken("model", "nsimplex", options, "from a model")
    if unmasked:
        _require_one_document(options.get("cu_seq_lens_q"))
    for name, expected in _NOT_COMPUTED.items():
        given = options.get(name)
        if given is not None and given is not False:
            raise ValueError(
                f"[nsimplex] {name}: expected {expected}, got {describe(given)}; use "
                "attn_implementation='eager'"
            )


def _require_no_weights(at: str, config: Any, options: dict[str, Any]) -> None:
    if options.get("output_attentions") or getattr(config, "output_attentions", False):
        raise ValueError(
            f"{at}output_attentions: expected {_NOT_COMPUTED['output_attentions']}, got True"
        )


def _require_one_document(boundaries: Tensor | None) -> None:
    """Only a mask tells documents of one row apart; Transformers makes it from position_ids."""
    if boundaries is not None and len(boundaries) > 2:
        raise ValueError(
            f"[nsimplex] cu_seq_lens_q: expected one document, got {len(boundaries) - 1}; tell "
            "documents apart by position_ids"
        )


def _of_width(mask: Tensor | None, keys: int) -> Tensor | None:
    """A mask or bias without the slots behind the last key."""
    return mask[..., :keys] if mask is not None and mask.size(-1) > keys else mask


def _with_bias(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    if mask is None or bias is None:
        return bias if mask is None else mask
    return bias.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else bias + mask


AttentionInterface.register("nsimplex", attention_forward)
AttentionMaskInterface.register("nsimplex", make_mask)


def require_causal_model(at: str, config: Any, options: dict[str, Any] | None = None) -> None:
    """Check that a model's masks are causal, that they are made in a way that is read here, and
    that neither the config nor the options of a call ask for weights, which tuples do not return.
    """
    _require_no_weights(at, config, options or {})
    if not getattr(config, "is_causal", True):
        raise ValueError(f"{at}is_causal: expected True, got False; simplicial layers are causal")
    made_by = config._attn_implementation
    if made_by not in (None, "eager", "sdpa", "nsimplex"):
        raise ValueError(
            f"{at}attn_implementation: expected eager, sdpa or nsimplex, got {made_by}"
        )


def attend(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    seen: Seen,
    call: Callable[..., Any] = attention,
    **options,
) -> tuple[Tensor, Tensor]:
    """Causal :func:`nsimplex.attention`, or another ``call`` with its arguments, for what a model's
    mask admits: (out, lse).

    query [B, Hq, Tq, D] are the last of the tokens so far, keys and values N of [B, Hk, T, D].
    """
    order = len(keys)
    common: dict[str, Any] = dict(causal=True, **options)
    if seen.documents is not None:
        batch, length = query.size(0), query.size(2)
        query, *rest = (_in_one_row(each) for each in (query, *keys, *values))
        if seen.keys is not None:
            common["key_masks"] = [seen.keys.reshape(1, -1)] * order
        out, lse = call(
            query, rest[:order], rest[order:], cu_seqlens=seen.documents, return_lse=True, **common
        )
        out = out[0].unflatten(1, (batch, length)).transpose(0, 1)
        return out, lse[0].unflatten(1, (batch, length)).transpose(0, 1)
    if seen.keys is not None:
        common["key_masks"] = [seen.keys] * order
    if seen.positions is not None:
        common["query_positions"] = seen.positions
    if seen.pairs is not None:
        common["mask"] = _mask_of_tuples(seen.pairs, order)
    return call(query, keys, values, return_lse=True, **common)


def attend_to_keys(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    seen: Seen,
    *,
    window: int,
    sinks: int,
    normalizer: str,
    sink: Tensor | None = None,
    **options,
) -> Tensor:
    """Causal :func:`nsimplex.sparse_attention` over the tuples of the last ``window`` keys and of
    the first ``sinks`` tokens of the text or document, as :func:`attend`."""
    table = key_table(seen, query.size(2), keys[0].size(2), window, sinks, query.device)
    out, lse = sparse_attention(
        query, keys, values, table, pattern="product", return_lse=True, **options
    )
    if normalizer != "softmax_sink" or sink is None:
        return out
    # A separate tuple in the denominator, with value 0.
    return out * torch.sigmoid(lse - sink[:, None])[..., None].to(out.dtype)


def _in_one_row(heads: Tensor) -> Tensor:
    """[B, H, T, D] -> [1, H, B T, D]."""
    return heads.transpose(0, 1).flatten(1, 2).unsqueeze(0)


def _mask_of_tuples(pairs: Tensor, order: int) -> Tensor:
    """[B, Tq, T] -> [B, 1, Tq, T, .., T]: the query sees every key of the tuple."""
    batch, queries, length = pairs.shape
    entries = batch * queries * length**order
    if order > 1 and entries > _MOST_TUPLES:
        raise ValueError(
            f"[nsimplex] attention_mask: expected a causal mask with padding or documents, got "
            f"another one, which takes {math.ceil(entries / 2**20)} MiB for tuples of {order} keys"
        )
    mask = pairs
    for axis in range(order):
        shape = [batch, 1, queries] + [1] * order
        shape[3 + axis] = length
        own = pairs.reshape(shape)
        mask = own if axis == 0 else mask & own
    return mask
