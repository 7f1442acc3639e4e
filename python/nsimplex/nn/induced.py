"""Masks of pairs for attention among some tokens of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def induced(
    options: dict, order: int, positions: Tensor | None, adjacency: Tensor | None
) -> dict[str, object]:
    """Options for attention among the tokens at ``positions``, restricted to ``adjacency``."""
    if positions is None and adjacency is None:
        return options
    masks = induced_pairs(order, positions, options["window"], adjacency)
    return options | {
        "pair_masks": masks,
        "window": options["window"] if positions is None else None,
    }


def induced_pairs(
    order: int, positions: Tensor | None, window, adjacency: Tensor | None
) -> list[Tensor] | None:
    """pair_masks, bool [B, 1, T, T] per axis or broadcastable: windows around positions [B, T] and
    adjacency.

    ``window`` has the form that attention accepts. Without positions, the masks leave the window to
    attention. None if all tuples are admissible.
    """
    entries: list[Any] = [None] * order
    if positions is not None:
        entries = [window] * order if isinstance(window, (int, type(None))) else list(window)
    masks = []
    for entry in entries:
        left, right = (
            entry if isinstance(entry, (list, tuple)) else (-1 if entry is None else entry, -1)
        )
        if isinstance(entry, int) and entry >= 0:
            right = 0
        pairs = adjacency
        if positions is not None and (left >= 0 or right >= 0):
            distance = positions[:, None, :] - positions[:, :, None]  # j - i
            inside = torch.ones_like(distance, dtype=torch.bool)
            if left >= 0:
                inside = inside & (distance > -left)
            if right >= 0:
                inside = inside & (distance <= right)
            pairs = inside if pairs is None else pairs & inside
        masks.append(None if pairs is None else pairs.unsqueeze(1))
    given = next((mask for mask in masks if mask is not None), None)
    if given is None:
        return None
    every = given.new_ones(1, 1, 1, 1)
    return [every if mask is None else mask for mask in masks]


def joined(
    masks: Sequence[Tensor] | None, admitted: Sequence[Tensor] | None
) -> Sequence[Tensor] | None:
    """pair_masks, restricted to pairs that second, boolean ones admit. A wrong number of masks
    stays as it is, and attention refuses it."""
    if masks is None or admitted is None:
        return admitted if masks is None else masks
    if isinstance(masks, Tensor) or len(masks) != len(admitted):
        return masks
    return [
        mask & admits if mask.dtype == torch.bool else torch.where(admits, mask, -torch.inf)
        for mask, admits in zip(masks, admitted)
    ]
