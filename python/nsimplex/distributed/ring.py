"""Attention with one unbounded key axis that goes round the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..merge_attention import merge
from .exchange import Traffic

__all__ = ["ring_attention"]


class _Ring(NamedTuple):
    axis: int
    causal: bool
    group: dist.ProcessGroup
    traffic: Traffic
    options: dict

    @property
    def rank(self) -> int:
        return dist.get_rank(self.group)

    @property
    def ranks(self) -> int:
        return dist.get_world_size(self.group)

    def owner(self, step: int) -> int:
        """Rank whose keys this rank holds after `steps` steps."""
        return (self.rank - step) % self.ranks

    def sees(self, step: int) -> bool:
        return not self.causal or self.owner(step) <= self.rank

    def options_at(self, step: int) -> dict:
        """The own keys are causal; those of earlier ranks are all visible."""
        window = [*self.options["window"]]
        if self.causal and step == 0:
            window[2 * self.axis + 1] = 0
        return self.options | dict(window=window)

    def passed_on(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], int]:
        """The tensors of the rank before this one, and the bytes sent."""
        received = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors]
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        operations = [
            dist.P2POp(dist.isend, x.contiguous(), group=self.group, group_peer=after)
            for x in tensors
        ]
        operations += [
            dist.P2POp(dist.irecv, x, group=self.group, group_peer=before) for x in received
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        return received, sum(x.numel() * x.element_size() for x in tensors)


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ring: _Ring, order: int, query: Tensor, *rest: Tensor):
        keys, values = [*rest[:order]], [*rest[order:]]
        moving = [keys[ring.axis], values[ring.axis]]
        outs: list[Tensor] = []
        lses: list[Tensor] = []
        for step in range(ring.ranks):
            if step:
                moving, sent = ring.passed_on(moving)
                ring.traffic.sent += sent
                ring.traffic.messages += len(moving)
            if not ring.sees(step):
                continue
            keys[ring.axis], values[ring.axis] = moving
            out, lse = _operator("attention")(query, keys, values, **ring.options_at(step))
            outs, lses = [*outs, out], [*lses, lse]
            if len(outs) == 2:
                out, lse = merge(outs, lses)
                outs, lses = [out], [lse]
        ctx.ring, ctx.order = ring, order
        ctx.save_for_backward(query, *rest, outs[0], lses[0])
        return outs[0], lses[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out: Tensor, grad_lse: Tensor):  # type: ignore[override]
        ring, order = ctx.ring, ctx.order
        query, *rest, out, lse = ctx.saved_tensors
        keys, values = [*rest[:order]], [*rest[order:]]
        wide = torch.promote_types(query.dtype, torch.float32)
        grads = [torch.zeros_like(x, dtype=wide) for x in (query, *rest)]
        places = 1 + ring.axis, 1 + order + ring.axis
        moving = [keys[ring.axis], values[ring.axis]]
        for step in range(ring.ranks):
            if step:
                moving = [*moving, *[grads[place] for place in places]]
                moving, sent = ring.passed_on(moving)
                ring.traffic.returned += sent
                for place, grad in zip(places, moving[2:]):
                    grads[place] = grad
                moving = moving[:2]
            if not ring.sees(step):
                continue
            keys[ring.axis], values[ring.axis] = moving
            wanted = [True] * (1 + 2 * order) + [False] * 2
            found = _operator("attention_backward")(
                query, keys, values, out, lse, grad_out, grad_lse, wanted, **ring.options_at(step)
            )
            for place, grad in enumerate([found[0], *found[1], *found[2]]):
                grads[place] = grads[place] + grad
        if ring.ranks > 1:  # the last step home
            home, sent = ring.passed_on([grads[place] for place in places])
            ring.traffic.returned += sent
            for place, grad in zip(places, home):
                grads[place] = grad
        return None, None, *[g.to(x.dtype) for g, x in zip(grads, (query, *rest))]


def _operator(name: str):
    return getattr(torch.ops.nsimplex, name).default


def ring_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    axis: int,
    causal: bool,
    group: dist.ProcessGroup,
    traffic: Traffic,
    options: dict,
) -> tuple[Tensor, Tensor]:
    """(out, lse) of this rank's queries over all tuples; one key axis is spread over the ranks.

    Every rank attends to the keys that are here, merges the result by its lse, and passes the keys
    on. The backward pass goes round again with the gradients of the keys, so that no rank ever
    holds more than two shards.

    Args:
        query, keys, values: the shards; the other axes have all keys that the queries see.
        axis: the axis that goes round. With ``causal``, a query sees it up to its own position.
        group, traffic: the ranks, and the count of bytes.
        options: of the operator, with its flat window, which is (-1, -1) on ``axis``.
    """
    ring = _Ring(axis, causal, group, traffic, options)
    return _RingAttention.apply(ring, len(keys), query, *keys, *values)
