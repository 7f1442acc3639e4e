"""The state of separable attention as keys that stand for those of other ranks."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["state_of", "with_state"]


def state_of(key: Tensor, value: Tensor) -> Tensor:
    """[B, Hk, 1, R (Dv + 1)]: for every feature r the sums of k_jr v_j and of k_jr, in float32 or
    wider."""
    wide = torch.promote_types(key.dtype, torch.float32)
    key, value = key.to(wide), value.to(wide)
    sums = torch.cat([key.transpose(2, 3) @ value, key.sum(2).unsqueeze(3)], 3)
    return sums.flatten(2).unsqueeze(2)


def with_state(states: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values that begin with 2 R rows whose sums are those of the states.

    Row r of the first R has the feature c in channel r and the value s_r / c, where s_r is the sum
    of k_jr v_j, z_r that of k_jr, and c is z_r if that is positive and else 1. Row r of the others
    has the feature z_r - c and the value 0.
    """
    features, width = key.size(3), value.size(3)
    sums = states.sum(2).unflatten(2, (features, width + 1))
    values, total = sums[..., :width], sums[..., width]
    scale = torch.where(total > 0, total, torch.ones_like(total))
    rows = torch.cat([torch.diag_embed(scale), torch.diag_embed(total - scale)], 2)
    first = values / scale.unsqueeze(3)
    first = torch.cat([first, torch.zeros_like(first)], 2)
    return (
        torch.cat([rows.to(key.dtype), key], 2),
        torch.cat([first.to(value.dtype), value], 2),
    )
