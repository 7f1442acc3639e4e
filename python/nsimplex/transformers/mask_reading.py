"""The masks that layers of Transformers get, and what simplicial layers read in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.masking_utils import eager_mask, sdpa_mask

from .._arguments import describe
from ..nn.key_tables import ascending, documents_of

__all__ = ["Seen", "key_table", "kind_of", "make_mask", "seen_by", "stored"]


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


def kind_of(mask: Tensor | None, queries: int, keys: int | None = None) -> str | None:
    """ "causal" or "all" if :func:`make_mask` made the mask so and nobody wrote to it."""
    if mask is None or torch.compiler.is_compiling():
        return None
    kind, version = getattr(mask, "_nsimplex_kind", (None, None))
    fits = mask.size(-2) == queries and keys in (None, mask.size(-1))
    return kind if fits and kind is not None and mask._version == version else None


_NOT_COMPILED = (
    "[nsimplex] attention_mask: expected a causal mask in compiled code, with documents or padding "
    "before or after the tokens, got another one"
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


def key_table(
    seen: Seen, queries: int, length: int, window: int, sinks: int, device: torch.device
) -> Tensor:
    """The keys that queries see of their window and of the first tokens of the text or document:
    int64 [1 or B, Tq, window + sinks], ascending, -1 after the last."""
    places = torch.arange(queries, device=device)
    if seen.positions is None:
        places = (places + (length - queries))[None]
    else:
        places = seen.positions[:, None] + places
    first = torch.zeros_like(places)
    if seen.documents is not None and seen.keys is not None:
        rows = seen.keys.size(0)
        begins = documents_of(seen.documents, rows * length)[1].view(rows, length)
        first = begins - length * torch.arange(rows, device=begins.device)[:, None]
    elif seen.keys is not None:
        first = seen.keys.int().argmax(1, keepdim=True)
    elif seen.pairs is not None:
        first = seen.pairs.int().argmax(-1)
    near = places[..., None] + torch.arange(1 - window, 1, device=places.device)
    begin = first[..., None] + torch.arange(sinks, device=places.device)
    begin = begin.expand(*torch.broadcast_shapes(begin.shape[:2], places.shape), -1)
    table = torch.cat([near.expand(begin.size(0), -1, -1), begin], -1)
    keep = (table >= first[..., None]) & (table <= places[..., None])
    inside = table.clamp(0, length - 1)
    if seen.keys is not None:
        rows, shown = seen.keys.size(0), inside.expand(seen.keys.size(0), -1, -1)
        keep = keep & seen.keys.gather(1, shown.flatten(1)).view(rows, *shown.shape[1:])
    if seen.pairs is not None:
        keep = keep & seen.pairs.gather(2, inside.expand(seen.pairs.size(0), -1, -1))
    return ascending(table.expand_as(keep).masked_fill(~keep, -1), length)


def stored(
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    cache,
    layer: int,
    mask: Tensor | None,
    window: int | None = None,
) -> tuple[list[Tensor], list[Tensor], Seen]:
    """Appends keys and values, N of [B, Hk, Tq, D] each, to a cache of Transformers (None: there is
    none) and returns those of all tokens so far, with what the mask admits. A cache of a sliding
    layer returns the last ones.

    A step of one token with a static cache gets all slots, and the position of the query, and so
    does every compiled call. Its shapes do not depend on the number of tokens, so it compiles
    without a break of the graph.
    """
    width, value_width, queries = keys[0].size(3), values[0].size(3), keys[0].size(2)
    if cache is None:
        return [*keys], [*values], seen_by(mask, queries, queries, window)
    packed = cache.update(torch.cat([*keys], -1), torch.cat([*values], -1), layer)
    length, slots = cache.get_seq_length(layer), packed[0].size(2)
    if isinstance(length, Tensor) and (queries == 1 or torch.compiler.is_compiling()):
        first = length - queries
        seen = seen_by(mask, queries, slots, window, first)
        seen = seen._replace(positions=first.expand(packed[0].size(0)))
    else:  # a static cache has empty slots behind the tokens
        length = min(int(length), slots)
        packed = [each[:, :, :length] for each in packed]
        seen = seen_by(mask, queries, length, window)
    return [*packed[0].split(width, -1)], [*packed[1].split(value_width, -1)], seen


def seen_by(
    mask: Tensor | None,
    queries: int,
    length: int,
    window: int | None = None,
    first: Tensor | None = None,
) -> Seen:
    """Reads a mask that Transformers made: [B, 1, Tq, T] bool or floating, or [B, T], or None.

    Compiled code cannot choose by values: it takes a causal mask with padding or documents, and
    checks it.

    Args:
        queries: Tq; the queries are the last ones of the tokens so far.
        length: number of tokens so far; a longer mask goes on with slots that are empty.
        window: the last tokens that the layer sees; None: all.
        first: the slot of the first query; None: the queries end where the tokens end.

    Raises:
        ValueError: a mask that differs between heads or adds numbers to logits, or padding between
            tokens.
        RuntimeError: a mask that compiled code does not take.
    """
    if mask is None or kind_of(mask, queries) == "causal":
        return Seen()
    if torch.compiler.is_compiling() or mask.is_inference():  # no count of writes to it
        return _read(mask, queries, length, window, first)
    memo, state = getattr(mask, "_nsimplex_seen", None), (queries, length, window, mask._version)
    if memo is None or memo[0] != state:
        memo = state, _read(mask, queries, length, window, first)
        setattr(mask, "_nsimplex_seen", memo)  # noqa: B010, for the next layer
    return memo[1]


def _read(
    mask: Tensor, queries: int, length: int, window: int | None, first: Tensor | None
) -> Seen:
    admitted = _admitted(mask, length)
    if admitted.dim() == 2:
        return _of_keys(F.pad(admitted, (0, length - admitted.size(1))))
    places = torch.arange(queries, device=mask.device) + (
        length - queries if first is None else first
    )
    row, column = places[:, None], torch.arange(length, device=mask.device)
    inside = column <= row if window is None else (column <= row) & (column > row - window)
    alone = first is None and queries == length  # all tokens, which documents may divide
    compiling = torch.compiler.is_compiling()
    if not (compiling and alone):
        keys = admitted.any(1)
        usual = (admitted == inside & keys[:, None, :]).all()
        if compiling:
            _require(usual, _NOT_COMPILED)
        if compiling or usual:
            return _of_keys(keys)
        if (admitted & (column > row)).any():
            raise ValueError(
                "[nsimplex] attention_mask: expected tokens that see none after them, got some "
                "that do; simplicial layers are causal"
            )
    if alone:
        documents, shown = _documents(admitted, inside)
        if compiling:
            _require(shown, _NOT_COMPILED)
        if compiling or shown:
            return documents
    return Seen(pairs=admitted)


def _documents(admitted: Tensor, inside: Tensor) -> tuple[Seen, Tensor]:
    """Documents one after the other, and whether they are what a mask [B, T, T] shows within
    ``inside`` [T, T]. A row of padding is a document of its own."""
    column = torch.arange(admitted.size(1), device=admitted.device)
    own = admitted.diagonal(dim1=1, dim2=2)
    begins = torch.where(own, admitted.int().argmax(-1), column) == column
    start = torch.where(begins, column, 0).cummax(1).values
    seen = inside & (column >= start[:, :, None]) & own[:, None, :]
    shown = ((admitted == seen) | ~own[:, :, None]).all()
    return Seen(own, _boundaries(begins)), shown


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
    _require(
        ~(admitted & (mask != 0)).any(),
        "[nsimplex] attention_mask: expected 0 or the least number, got a bias of logits",
    )
    return admitted


def _of_keys(keys: Tensor) -> Seen:
    if not torch.compiler.is_compiling() and keys.all():
        return Seen()
    runs = keys[:, :1].sum(1) + (keys[:, 1:] & ~keys[:, :-1]).sum(1)
    _require(
        (runs <= 1).all(),
        "[nsimplex] attention_mask: expected padding before or after the tokens, got padding "
        "between them, which windows would count; pad on the left",
    )
    return Seen(keys)


def _require(holds: Tensor, message: str) -> None:
    """Checks what a tensor says: at once, or when compiled code runs."""
    if torch.compiler.is_compiling():
        torch.ops.aten._assert_async.msg(holds, message)
    elif not holds:
        raise ValueError(message)


def _boundaries(begins: Tensor) -> Tensor:
    """Where documents of rows one after the other begin, and the end as often as there are tokens
    that begin none: the shape does not depend on the documents."""
    begins = begins.clone()
    begins[:, 0] = True  # a row of the batch begins a new document
    begins = F.pad(begins.flatten(), (0, 1), value=True)
    places = torch.arange(begins.size(0), device=begins.device)
    return torch.where(begins, places, places[-1:]).sort().values
