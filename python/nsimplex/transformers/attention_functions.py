"""Attention functions for layers of Transformers, and the reading of their masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask, sdpa_mask

from .._arguments import describe
from .._options import taken
from ..attention import attention

__all__ = ["attend", "attention_forward", "require_causal_model", "seen_by", "stored"]

_MOST_TUPLES = 2**26  # of a mask that names every tuple


#: What eager attention obeys in some models, and other implementations get in place of a mask.
_NOT_COMPUTED = dict(
    softcap="no cap of the logits",
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
    **options,
) -> tuple[Tensor, None]:
    """Ordinary attention of a Transformers model, as ``attn_implementation="nsimplex"`` calls it.

    query [B, Hq, Tq, D], key and value [B, Hk, T, D]. ``attention_mask``, bool or floating, and
    ``position_bias``, added to the logits, are broadcastable to [B, Hq, Tq, T]. ``s_aux`` [Hq] are
    logits of attention sinks. A mask alone says which keys a query sees. Without one a query sees
    no later key if ``is_causal`` is True, or None and ``module.is_causal`` is not False; else it
    sees all. The result is [B, Tq, Hq, D]; weights are not returned. See
    :func:`nsimplex.attention`.

    Raises:
        ValueError: an option that it does not compute, such as ``softcap``.
    """
    taken("model", "nsimplex", options, "from a model")
    _require_computed(options)
    _require_no_weights("[nsimplex] ", getattr(module, "config", None), options)
    length = query.size(2)
    kind = _kind_of(attention_mask, length, key.size(2))
    if attention_mask is None or kind is not None:
        _require_one_document(options.get("cu_seq_lens_q"))
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
        **sinks,
    )
    return out.transpose(1, 2).contiguous(), None


def _require_computed(options: dict[str, Any]) -> None:
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


def make_mask(
    *,
    batch_size: int,
    attention_mask: Tensor | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    **shape,
) -> Tensor:
    """The mask of eager attention, also where eager or SDPA attention leaves it out: which tokens
    are seen is never left to an attribute of a layer.

    Where SDPA would leave it out, the mask remembers that it is causal or admits all, so that
    :func:`attention_forward` need not read it.
    """
    skips: dict[str, Any] = dict(
        allow_is_causal_skip=allow_is_causal_skip,
        allow_is_bidirectional_skip=allow_is_bidirectional_skip,
    )
    own: dict[str, Any] = dict(batch_size=batch_size, attention_mask=attention_mask, **shape)
    plain = not torch.compiler.is_compiling() and sdpa_mask(**skips, **own) is None
    if not plain:
        return eager_mask(**own)
    row = eager_mask(**{**own, "batch_size": 1, "attention_mask": None})
    mask = row.expand(batch_size, -1, -1, -1)
    if not mask.is_inference():  # which counts no writes
        kind = "causal" if allow_is_causal_skip else "all"
        setattr(mask, "_nsimplex_kind", (kind, mask._version))  # noqa: B010
    return mask


def _kind_of(mask: Tensor | None, queries: int, keys: int | None = None) -> str | None:
    """ "causal" or "all" if :func:`make_mask` made the mask so and nobody wrote to it."""
    if mask is None or torch.compiler.is_compiling():
        return None
    kind, version = getattr(mask, "_nsimplex_kind", (None, None))
    fits = mask.size(-2) == queries and keys in (None, mask.size(-1))
    return kind if fits and kind is not None and mask._version == version else None


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


class Seen(NamedTuple):
    """What a model's mask admits, as arguments of :func:`attend`.

    ``keys`` bool [B, T] are tokens and no padding; None: all. ``documents`` int64 [n + 1] are
    boundaries in the batch's rows one after the other; ``pairs`` bool [B, Tq, T] is any other mask.
    ``positions`` int64 [B] are the slots of the queries; None: the queries end where the keys end.
    """

    keys: Tensor | None = None
    documents: Tensor | None = None
    pairs: Tensor | None = None
    positions: Tensor | None = None


def stored(
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    cache,
    layer: int,
    mask: Tensor | None,
) -> tuple[list[Tensor], list[Tensor], Seen]:
    """Appends keys and values, N of [B, Hk, Tq, D] each, to a cache of Transformers (None: there is
    none) and returns those of all tokens so far, with what the mask admits.

    A step of one token with a static cache gets all slots, and the position of the query. Its
    shapes do not depend on the number of tokens, so it compiles without a break of the graph.
    """
    width, value_width, queries = keys[0].size(3), values[0].size(3), keys[0].size(2)
    if cache is None:
        return [*keys], [*values], seen_by(mask, queries, queries)
    packed = cache.update(torch.cat([*keys], -1), torch.cat([*values], -1), layer)
    length = cache.get_seq_length(layer)
    if isinstance(length, Tensor) and queries == 1:
        seen = _seen_in_slots(mask, packed[0].size(2))
        seen = seen._replace(positions=(length - 1).expand(packed[0].size(0)))
    else:  # a static cache has empty slots behind the tokens
        length = min(int(length), packed[0].size(2))
        packed = [each[:, :, :length] for each in packed]
        seen = seen_by(mask, queries, length)
    return [*packed[0].split(width, -1)], [*packed[1].split(value_width, -1)], seen


def _seen_in_slots(mask: Tensor | None, slots: int) -> Seen:
    """The mask of one query per row; its position hides the empty slots."""
    if mask is None:
        return Seen()
    admitted = _admitted(mask, slots)
    keys = (
        admitted[:, -1] if admitted.dim() == 3 else F.pad(admitted, (0, slots - admitted.size(1)))
    )
    return Seen(keys) if torch.compiler.is_compiling() else _of_keys(keys)


def seen_by(mask: Tensor | None, queries: int, length: int) -> Seen:
    """Reads a mask that Transformers made: [B, 1, Tq, T] bool or floating, or [B, T], or None.

    Args:
        queries: Tq; the queries are the last ones of the tokens so far.
        length: number of tokens so far; a longer mask goes on with slots that are empty.

    Raises:
        ValueError: a mask that differs between heads or adds numbers to logits, or padding between
            tokens.
    """
    if mask is None or _kind_of(mask, queries) == "causal":
        return Seen()
    if torch.compiler.is_compiling() or mask.is_inference():  # no count of writes to it
        return _read(mask, queries, length)
    memo, state = getattr(mask, "_nsimplex_seen", None), (queries, length, mask._version)
    if memo is None or memo[0] != state:
        memo = state, _read(mask, queries, length)
        setattr(mask, "_nsimplex_seen", memo)  # noqa: B010, for the next layer
    return memo[1]


def _read(mask: Tensor, queries: int, length: int) -> Seen:
    admitted = _admitted(mask, length)
    if admitted.dim() == 2:
        return _of_keys(admitted)
    row = torch.arange(length - queries, length, device=mask.device)[:, None]
    column = torch.arange(length, device=mask.device)
    keys = admitted[:, -1]
    if torch.equal(admitted, (column <= row) & keys[:, None, :]):
        return _of_keys(keys)
    if (admitted & (column > row)).any():
        raise ValueError(
            "[nsimplex] attention_mask: expected tokens that see none after them, got some that "
            "do; simplicial layers are causal"
        )
    if queries == length:  # documents one after the other
        own = admitted.diagonal(dim1=1, dim2=2)
        first = torch.where(own, admitted.int().argmax(-1), column)
        inside = (column <= row) & (column >= first[:, :, None]) & own[:, None, :]
        begins = first == column
        same = first == torch.where(begins, column, 0).cummax(1).values
        if (same | ~own).all() and torch.equal(
            admitted & own[:, :, None], inside & own[:, :, None]
        ):
            return Seen(None if own.all() else own, _boundaries(begins))
    return Seen(pairs=admitted)


def _admitted(mask: Tensor, length: int) -> Tensor:
    """A mask as bool, [B, T] or [B, Tq, T]."""
    if not isinstance(mask, Tensor) or mask.dim() not in (2, 4):
        raise ValueError(
            "[nsimplex] attention_mask: expected a tensor [B, T] or [B, 1, Tq, T], got "
            f"{describe(mask)}; use attn_implementation 'eager', 'sdpa' or 'nsimplex'"
        )
    if mask.dim() == 2:
        return mask[:, :length].bool()
    if mask.size(1) != 1:
        raise ValueError(
            f"[nsimplex] attention_mask: expected one mask for all heads, got {mask.size(1)}"
        )
    mask = mask[:, 0, :, :length]
    if mask.dtype == torch.bool:
        return mask
    admitted = mask > torch.finfo(mask.dtype).min / 2
    if not torch.compiler.is_compiling() and (admitted & (mask != 0)).any():
        raise ValueError(
            "[nsimplex] attention_mask: expected 0 or the least number, got a bias of logits"
        )
    return admitted


def _of_keys(keys: Tensor) -> Seen:
    if keys.all():
        return Seen()
    runs = keys[:, :1].sum(1) + (keys[:, 1:] & ~keys[:, :-1]).sum(1)
    if (runs > 1).any():
        raise ValueError(
            "[nsimplex] attention_mask: expected padding before or after the tokens, got padding "
            "between them, which windows would count; pad on the left"
        )
    return Seen(keys)


def _boundaries(begins: Tensor) -> Tensor:
    begins = begins.clone()
    begins[:, 0] = True  # a row of the batch begins a new document
    ends = torch.tensor([begins.numel()], device=begins.device)
    return torch.cat([begins.flatten().nonzero()[:, 0], ends])


def attend(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    seen: Seen,
    **options,
) -> tuple[Tensor, Tensor]:
    """Causal :func:`nsimplex.attention` for what a model's mask admits: (out, lse).

    query [B, Hq, Tq, D] are the last of the tokens so far, keys and values N of [B, Hk, T, D].
    """
    order = len(keys)
    common: dict[str, Any] = dict(causal=True, **options)
    if seen.documents is not None:
        batch, length = query.size(0), query.size(2)
        query, *rest = (_in_one_row(each) for each in (query, *keys, *values))
        if seen.keys is not None:
            common["key_masks"] = [seen.keys.reshape(1, -1)] * order
        out, lse = attention(
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
    return attention(query, keys, values, return_lse=True, **common)


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
