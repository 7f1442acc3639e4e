"""The mask for attention among some tokens of a sequence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def induced(
    options: dict, order: int, positions: Tensor | None, adjacency: Tensor | None
) -> dict[str, object]:
    """Options for attention among the tokens at ``positions``, restricted to ``adjacency``."""
    if positions is None and adjacency is None:
        return options
    mask = induced_mask(order, positions, options["window"], adjacency)
    return options | {"mask": mask, "window": options["window"] if positions is None else None}


def induced_mask(
    order: int, positions: Tensor | None, window, adjacency: Tensor | None
) -> Tensor | None:
    """Mask, bool, broadcastable to [B, 1, T, T_1, .., T_N]: windows around positions [B, T] and
    adjacency.

    ``window`` has the form that attention accepts. Without positions, the mask leaves the window to
    attention. None if all tuples are admissible.
    """
    entries: list[Any] = [None] * order
    if positions is not None:
        entries = [window] * order if isinstance(window, (int, type(None))) else list(window)
    mask = None
    for axis, entry in enumerate(entries):
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
        if pairs is None:
            continue
        shape = [*pairs.shape[:2]] + [1] * order
        shape[2 + axis] = pairs.size(2)
        pairs = pairs.view(shape).unsqueeze(1)
        mask = pairs if mask is None else mask & pairs
    return mask


def joined(mask: Tensor | None, admitted: Tensor | None) -> Tensor | None:
    """A mask of attention, restricted to tuples that a second, boolean one admits."""
    if mask is None or admitted is None:
        return admitted if mask is None else mask
    if mask.dtype == torch.bool:
        return mask & admitted
    return torch.where(admitted, mask, -torch.inf)
