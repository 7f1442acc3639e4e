"""Attention layers on a shard of the sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..nn.heads import own_part
from ..nn.key_tables import EVERYWHERE, Places
from ..nn.place_checks import require_sparse_places
from ..nn.select import Linear, Neighbours, Path, part_of
from .shards import Shards

if TYPE_CHECKING:
    from ..nn import SimplicialAttention

__all__ = ["attend_shard"]


def _require_places(layer: SimplicialAttention, x: Tensor, places: Places) -> None:
    """Refuse what needs the whole sequence."""
    taken: tuple[str, ...] = ("key_masks",)
    if layer.select is None:
        taken += ("key_lengths", "cu_seqlens")
    elif not isinstance(layer.select, Linear):
        taken = ()
    name = type(layer).__name__
    given = [place for place in places.given() if place not in taken]
    if given:
        raise ValueError(f"[{name}] {given[0]}: expected None under context_parallel")
    if layer.select is not None:
        require_sparse_places(name, x, places, layer.select)


def attend_shard(
    shards: Shards,
    attention: Callable[..., Any],
    separable_attention: Callable[..., Tensor],
    layer: SimplicialAttention,
    x: Tensor,
    places: Places,
) -> Tensor:
    """The layer's output for the tokens x [B, T / R, C] of this rank. ``attention`` and
    ``separable_attention`` compute on shards.

    key_masks are this rank's shard; key_lengths and cu_seqlens are those of the whole sequence.
    """
    _require_places(layer, x, places)
    first, select = shards._own(x.size(1)).first, layer.select
    if select is None:
        heads = layer._heads_of(x, offset=first)
        return layer._join_heads(_window(attention, layer, *heads, places))
    if isinstance(select, Linear):
        kept = places.key_masks
        assert kept is None or isinstance(kept, Tensor)  # require_sparse_places
        return layer._join_heads(_linear(separable_attention, layer, select, x, first, kept))
    return _chosen(shards, layer, x, first)


def _window(
    attention: Callable[..., Any],
    layer: SimplicialAttention,
    q: Tensor,
    keys: list[Tensor],
    values: list[Tensor],
    places: Places,
) -> Any:
    masks = places.key_masks
    options: dict[str, Any] = layer._options | dict(
        key_lengths=places.key_lengths,
        key_masks=[masks] * layer.order if isinstance(masks, Tensor) else masks,
        cu_seqlens=places.cu_seqlens,
        sink=own_part(layer.sink),
    )
    if layer.training and layer.dropout > 0:
        options["dropout_p"] = layer.dropout
    return attention(q, keys, values, face=layer.face, **options)


def _linear(
    separable_attention: Callable[..., Tensor],
    layer: SimplicialAttention,
    select: Linear,
    x: Tensor,
    first: int,
    kept: Tensor | None,
) -> Tensor:
    from ..separable_attention import _features

    q, keys, values = layer._heads_of(x, offset=first)
    options = {name: layer._options[name] for name in ("causal", "window")}
    q, keys = _features("separable_attention", q, keys, select.features)
    if kept is not None:  # a key without features has no weight
        keys = [key * kept[:, None, :, None].to(key.dtype) for key in keys]
    return separable_attention(q, keys, values, features=None, **options)


def _chosen(shards: Shards, layer: SimplicialAttention, x: Tensor, first: int) -> Tensor:
    """Keys of all ranks are gathered, and every rank chooses those of its own queries."""
    at = f"[{type(layer).__name__}] "
    causal = layer._options["causal"]
    if part_of(layer.select, Neighbours) is not None:
        raise ValueError(f"{at}select: expected no Neighbours under context_parallel")
    if layer.warms_up or layer.measures_mass:
        raise ValueError(f"{at}warms_up and measures_mass: expected False under context_parallel")
    path = isinstance(layer.select, Path)
    if path and not causal:
        raise ValueError(f"{at}causal: expected True with select Path under context_parallel")
    length = x.size(1)
    q, keys, values = layer._heads_of(x, offset=first)
    index = layer._index_of(x, first)
    more = []
    if index is not None:
        more = [index.key if layer.loss_weight > 0 else index.key.detach()]
    spans = shards._everything(length, causal)
    shards._require_shards("sparse_attention", length, [*keys, *values])
    tensors = [*keys, *values, *more]
    dims, needs = [2] * len(tensors), [spans] * len(tensors)
    fetched = shards._fetch("sparse_attention", tensors, dims, needs)
    keys, values = fetched[: layer.order], fetched[layer.order : 2 * layer.order]
    if index is not None:
        index = index._replace(key=fetched[-1], lse=None)
    queries = torch.arange(first, first + length, device=x.device)
    tables = layer._tables(index, queries, spans[shards.rank].last, EVERYWHERE)
    if path:
        batch = x.size(0)
        own = tables[0].expand(batch, -1, -1)
        tables = shards._fetch("sparse_attention", [own], [1], [spans])
    widest = max(tables, key=lambda table: table.size(-1))
    layer.auxiliary_loss = layer._alignment_loss(index, q, keys, values, widest, layer.pattern)
    return layer._join_heads(layer._attend(q, keys, values, tables)[0])
