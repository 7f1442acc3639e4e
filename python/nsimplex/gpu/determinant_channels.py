"""The determinant form as a product form over more channels.

The determinant of a chunk's N + 1 vectors is the signed sum of (N + 1)! products, one for every
permutation of their components (Leibniz). So the query and the keys with repeated channels have
that determinant as their product form: D N! channels stand for D.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from .launches import empty_in_order

__all__ = ["expand", "reduce"]


@functools.cache
def _channels(order: int, dim: int, device: torch.device):
    """(channels of each of the N + 1 operands [N + 1, D N!], signs [D N!], and for each operand
    the places of every channel [N + 1, D, N!])."""
    size = order + 1
    permutations = list(itertools.permutations(range(size)))
    signs = [
        (-1) ** sum(p[a] > p[b] for a in range(size) for b in range(a + 1, size))
        for p in permutations
    ]
    chunks = range(0, dim, size)
    channels = [[first + p[m] for first in chunks for p in permutations] for m in range(size)]
    places: list[list[list[int]]] = []
    for row in channels:
        found: list[list[int]] = [[] for _ in range(dim)]
        for place, channel in enumerate(row):
            found[channel].append(place)
        places.append(found)
    sign = torch.tensor([float(s) for _ in chunks for s in signs])
    return (
        torch.tensor(channels).to(device),
        sign.to(device),
        torch.tensor(places).to(device),
    )


def expand(query: Tensor, keys: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Query and keys with D N! channels whose product form is the determinant form of the given
    ones with D channels. The signs are in the query."""
    channels, signs, _ = _channels(len(keys), query.shape[3], query.device)
    expanded = query.index_select(3, channels[0]) * signs.to(query.dtype)
    return expanded, [key.index_select(3, channels[1 + m]) for m, key in enumerate(keys)]


def reduce(
    query: Tensor,
    keys: Sequence[Tensor],
    grad_query: Tensor | None,
    grad_keys: Sequence[Tensor | None],
) -> tuple[Tensor | None, list[Tensor | None]]:
    """Gradients of what :func:`expand` took, from those of what it returned, summed in a fixed
    order in fp32."""
    _, signs, places = _channels(len(keys), query.shape[3], query.device)

    def summed(gradient: Tensor | None, m: int, like: Tensor) -> Tensor | None:
        if gradient is None:
            return None
        parts = gradient.float()
        if m == 0:
            parts = parts * signs
        parts = parts.index_select(3, places[m].flatten()).unflatten(3, places[m].shape)
        return empty_in_order(like, like.shape[3]).copy_(parts.sum(4))

    return summed(grad_query, 0, query), [
        summed(gradient, 1 + m, keys[m]) for m, gradient in enumerate(grad_keys)
    ]
