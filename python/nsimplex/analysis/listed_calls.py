"""Calls of attention over chosen tuples, as dense calls under the mask of their tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .attention_calls import AttentionCall

__all__ = ["ListedCall"]


@dataclass(frozen=True)
class ListedCall:
    """One call of the operator nsimplex::sparse_attention."""

    query: Tensor  #: [B, Hq, Tq, D]
    keys: list[Tensor]  #: N tensors [B, Hk, T_m, D]
    indices: Tensor  #: sets [1 | B, G, rows, k] or tuples [nnz, N]
    offsets: Tensor | None  #: of tuples, [1 | B, G, Tq + 1]
    pattern: str
    options: dict[str, Any]  #: form and logit_scale

    @property
    def order(self) -> int:
        return len(self.keys)

    def entry(self, batch: int) -> ListedCall:
        """The call for one batch entry, without gradients."""
        indices, offsets = self.indices, self.offsets
        if offsets is not None and offsets.size(0) > 1:
            offsets = offsets[batch : batch + 1]
        if self.pattern != "list" and indices.size(0) > 1:
            indices = indices[batch : batch + 1]
        one = slice(batch, batch + 1)
        keys = [key[one].detach() for key in self.keys]
        return ListedCall(
            self.query[one].detach(), keys, indices, offsets, self.pattern, self.options
        )

    def rows(self, chosen: Tensor) -> AttentionCall:
        """The dense call of one entry for some of its queries. Its mask has a number for every
        tuple of these queries: the logarithm of how often it is listed."""
        counts = self._counts(chosen)
        every = counts.repeat_interleave(self.query.size(1) // counts.size(0), 0)
        mask = every > 0 if int(counts.max()) <= 1 else every.to(self.query.dtype).log()
        options = self.options | {"mask": mask[None]}
        return AttentionCall(self.query[:, :, chosen], self.keys, self.keys, options)

    def _counts(self, chosen: Tensor) -> Tensor:
        """How often every tuple is listed: [G, Q, T_1, .., T_N]."""
        sizes = [key.size(2) for key in self.keys]
        if self.pattern == "list":
            assert self.offsets is not None
            return self._listed(chosen, self.offsets[0], sizes)
        if self.pattern == "product":
            own = [_members(self.indices[0][:, chosen], size) for size in sizes]
            found = own[0]
            for member in own[1:]:
                found = found[..., None] * member.view(
                    *member.shape[:2], *[1] * (found.dim() - 2), -1
                )
            return found
        members = _members(self.indices[0], sizes[0])  # of every position
        found = members[:, members.size(1) - self.query.size(2) + chosen]
        for _ in sizes[1:]:
            step = members.view(members.size(0), *[1] * (found.dim() - 2), *members.shape[1:])
            found = found[..., None] * step
        return found

    def _listed(self, chosen: Tensor, offsets: Tensor, sizes: list[int]) -> Tensor:
        groups = offsets.size(0)
        found = offsets.new_zeros(groups, len(chosen), *sizes)
        for group in range(groups):
            for place, row in enumerate(chosen.tolist()):
                first, last = offsets[group, row : row + 2].tolist()
                tuples = self.indices[first:last].long()
                ones = tuples.new_ones(len(tuples))
                found[group, place].index_put_(tuple(tuples.unbind(1)), ones, accumulate=True)
        return found


def _members(sets: Tensor, size: int) -> Tensor:
    """How often each of ``size`` keys is in sets [G, Q, k] that end with -1: [G, Q, size]."""
    keys = torch.where(sets < 0, size, sets).long()
    counts = keys.new_zeros(*keys.shape[:2], size + 1)
    return counts.scatter_add_(2, keys, torch.ones_like(keys))[..., :size]
