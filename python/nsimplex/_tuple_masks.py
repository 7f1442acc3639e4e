"""Masks of pairs and ALiBi as one mask over tuples, for what knows only such a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["folded", "tuples_of_folded"]


def tuples_of_folded(query: Tensor, keys: Sequence[Tensor], options: dict[str, Any]) -> int:
    """How many numbers the mask has that :func:`folded` makes; 0 if it makes none."""
    if options.get("pair_masks") is None and options.get("alibi_slopes") is None:
        return 0
    plain = {
        name: [x.to("meta") for x in value] if isinstance(value, list) else value.to("meta")
        for name, value in options.items()
        if name in ("mask", "pair_masks", "alibi_slopes", "query_positions") and value is not None
    }
    shapes = query.to("meta"), [key.to("meta") for key in keys]
    return folded(*shapes, plain)["mask"].numel()


def folded(query: Tensor, keys: Sequence[Tensor], options: dict[str, Any]) -> dict[str, Any]:
    """The options of a call of the operator with ``pair_masks`` and ``alibi_slopes`` in ``mask``,
    which is broadcastable to [B, Hq, Tq, T_1, .., T_N]."""
    options, order = dict(options), len(keys)
    masks = [] if options.get("mask") is None else [options["mask"]]
    for axis, pairs in enumerate(options.pop("pair_masks", None) or []):
        masks.append(_of_axis(pairs, axis, order))
    slopes = options.pop("alibi_slopes", None)
    if slopes is not None:
        for axis, key in enumerate(keys):
            places = torch.arange(key.size(2), device=key.device)
            own = _positions(query, key, options.get("query_positions"))
            away = (own[..., None] - places).abs()
            pairs = -slopes[:, None, None] * away[:, None].to(slopes.dtype)
            masks.append(_of_axis(pairs, axis, order))
    if masks:
        options["mask"] = _joined(masks)
    return options


def _positions(query: Tensor, key: Tensor, given: Tensor | None) -> Tensor:
    """Of the queries among the keys of an axis, [B or 1, Tq]."""
    row = torch.arange(query.size(2), device=query.device)
    if given is None:
        return (row + key.size(2) - query.size(2))[None]
    return given[:, None] + row if given.dim() == 1 else given


def _of_axis(pairs: Tensor, axis: int, order: int) -> Tensor:
    """A mask of pairs [.., Tq, T] among all axes, [.., Tq, 1, .., T, .., 1]."""
    shape = [1] * order
    shape[axis] = pairs.size(-1)
    return pairs.reshape(*[1] * (4 - pairs.dim()), *pairs.shape[:-1], *shape)


def _joined(masks: Sequence[Tensor]) -> Tensor:
    admitted = [mask for mask in masks if mask.dtype == torch.bool]
    added = [mask for mask in masks if mask.dtype != torch.bool]
    total = sum(added[1:], added[0]) if added else None
    for mask in admitted:
        if total is None:
            total = mask
        elif total.dtype == torch.bool:
            total = total & mask
        else:
            total = torch.where(mask, total, -torch.inf)
    assert total is not None
    return total
