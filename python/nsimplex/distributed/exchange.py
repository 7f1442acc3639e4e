"""The exchange of parts of a sharded sequence: keys, values, masks and states.

Every rank holds an equal shard of the sequence and names the span of positions that it needs. One
batch of messages brings the missing parts, and the gradients go back to their owners.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["Item", "Span", "Traffic", "exchange", "require_equal_shards", "window_spans"]


class Span(NamedTuple):
    """Positions first, .., last - 1 of the sequence."""

    first: int
    last: int

    def common(self, other: Span) -> Span:
        first = max(self.first, other.first)
        return Span(first, max(first, min(self.last, other.last)))

    @property
    def length(self) -> int:
        return self.last - self.first


@dataclasses.dataclass
class Traffic:
    """What one call sent from this rank to others.

    Attributes:
        operator: the call's name.
        sent: bytes of keys, values, masks and states.
        returned: bytes of gradients, once the backward pass has run.
        messages: number of messages of the forward pass.
    """

    operator: str
    sent: int = 0
    returned: int = 0
    messages: int = 0


class Item(NamedTuple):
    """One sharded tensor of an exchange."""

    tensor: Tensor
    dim: int  #: of the sequence
    needs: Sequence[Span]  #: by rank


class _Plan(NamedTuple):
    group: dist.ProcessGroup
    rank: int
    ranks: int
    dims: list[int]
    needs: list[list[Span]]
    shards: list[int]
    traffic: Traffic

    def held(self, item: int, rank: int) -> Span:
        shard = self.shards[item]
        return Span(rank * shard, (rank + 1) * shard)

    def moved(self, item: int, owner: int, reader: int) -> Span:
        """The positions of an item that one rank holds and another one needs."""
        return self.needs[item][reader].common(self.held(item, owner))


def window_spans(
    ranks: int,
    shard: int,
    left: int,
    right: int,
    documents: Sequence[int] | None = None,
) -> list[Span]:
    """By rank, the keys of an axis that its queries see.

    Query p sees p - left < j <= p + right; -1 is unbounded. With ``documents``, the boundaries of
    packed documents, no query sees another document.
    """
    length, spans = ranks * shard, []
    for rank in range(ranks):
        begin, end = rank * shard, (rank + 1) * shard
        first = 0 if left == -1 else max(0, begin - left + 1)
        last = length if right == -1 else min(length, end + right)
        if documents is not None:
            first = max(first, max((each for each in documents if each <= begin), default=0))
            last = min(last, min((each for each in documents if each >= end), default=length))
        spans.append(Span(first, last))
    return spans


def exchange(items: Sequence[Item], group: dist.ProcessGroup, traffic: Traffic) -> list[Tensor]:
    """Every item along the span that this rank needs of it.

    Args:
        items: the tensors; all ranks give the same number, with the same shapes and dtypes.
        group: the ranks that hold the sequence, in its order.
        traffic: counts the bytes that this rank sends.

    Returns:
        One tensor per item: the parts of all owners, in the order of the sequence. Differentiable
        once. A gradient is the sum over the readers, in the order of the ranks.

    Complexity: one message per dtype to every rank that needs something, all in one batch.
    """
    plan = _Plan(
        group,
        dist.get_rank(group),
        dist.get_world_size(group),
        [item.dim for item in items],
        [list(item.needs) for item in items],
        [item.tensor.size(item.dim) for item in items],
        traffic,
    )
    return list(_Exchange.apply(plan, *[item.tensor for item in items]))


def require_equal_shards(
    name: str, length: int, tensors: Sequence[Tensor], dim: int, group: dist.ProcessGroup
) -> None:
    """Refuse shards on all ranks unless they have one length, and the same shapes and dtypes.

    Without this check, ranks would wait for messages of other sizes, or read the wrong tokens.
    Complexity: one message of three numbers per rank.
    """
    shapes = [[*tensor.shape] for tensor in tensors]
    fits = [tensor.dim() > dim and tensor.size(dim) == length for tensor in tensors]
    facts = repr([*shapes, *[tensor.dtype for tensor in tensors]])
    own = torch.tensor([length, zlib.crc32(facts.encode()), all(fits)], device=tensors[0].device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, own, group=group)
    if not all(fits):
        raise ValueError(
            f"[{name}] keys: expected shards of {length} tokens as the query under "
            f"context_parallel, got shape {shapes[fits.index(False)]}"
        )
    numbers = [each.tolist() for each in found]
    for rank, (tokens, kind, right) in enumerate(numbers):
        at = f"[{name}] x: expected shards "
        if tokens != numbers[0][0]:
            raise ValueError(
                f"{at}of one length on all ranks under context_parallel, got {numbers[0][0]} "
                f"tokens on rank 0 and {tokens} on rank {rank}"
            )
        if kind != numbers[0][1] or not right:
            raise ValueError(
                f"{at}of the same shapes and dtypes on all ranks under context_parallel, got "
                f"others on rank {rank}"
            )


def _packed(parts: Sequence[Tensor]) -> list[Tensor]:
    """One flat tensor per dtype."""
    by_dtype: dict[torch.dtype, list[Tensor]] = {}
    for part in parts:
        by_dtype.setdefault(part.dtype, []).append(part.reshape(-1))
    return [torch.cat(each) for each in by_dtype.values()]


def _unpacked(buffers: Sequence[Tensor], shapes: Sequence[tuple[list[int], torch.dtype]]):
    """The parts of the flat tensors, in the order of the shapes."""
    buffer_of = {buffer.dtype: buffer for buffer in buffers}
    used = dict.fromkeys(buffer_of, 0)
    for shape, dtype in shapes:
        count = 1
        for size in shape:
            count *= size
        yield buffer_of[dtype][used[dtype] : used[dtype] + count].view(shape)
        used[dtype] += count


def _swap(
    plan: _Plan,
    outgoing: dict[int, list[Tensor]],
    incoming: dict[int, list[tuple[list[int], torch.dtype]]],
    device: torch.device,
) -> tuple[dict[int, list[Tensor]], int, int]:
    """Sends parts to ranks and receives parts of known shapes: (parts, bytes, messages sent)."""
    operations, received, sent = [], {}, 0
    for peer, parts in outgoing.items():
        for buffer in _packed(parts):
            operations.append(dist.P2POp(dist.isend, buffer, group=plan.group, group_peer=peer))
            sent += buffer.numel() * buffer.element_size()
    messages = len(operations)
    for peer, shapes in incoming.items():
        sizes: dict[torch.dtype, int] = {}
        for shape, dtype in shapes:
            sizes[dtype] = sizes.get(dtype, 0) + torch.Size(shape).numel()
        received[peer] = [
            torch.empty(size, dtype=dtype, device=device) for dtype, size in sizes.items()
        ]
        for buffer in received[peer]:
            operations.append(dist.P2POp(dist.irecv, buffer, group=plan.group, group_peer=peer))
    for work in dist.batch_isend_irecv(operations) if operations else []:
        work.wait()
    found = {peer: list(_unpacked(received[peer], shapes)) for peer, shapes in incoming.items()}
    return found, sent, messages


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan: _Plan, *tensors: Tensor):
        ctx.plan, ctx.shapes = plan, [(tensor.shape, tensor.dtype) for tensor in tensors]
        outgoing: dict[int, list[Tensor]] = {}
        incoming: dict[int, list[tuple[list[int], torch.dtype]]] = {}
        for peer in range(plan.ranks):
            if peer == plan.rank:
                continue
            for item, tensor in enumerate(tensors):
                span = plan.moved(item, plan.rank, peer)
                if span.length:
                    first = span.first - plan.held(item, plan.rank).first
                    part = tensor.narrow(plan.dims[item], first, span.length)
                    outgoing.setdefault(peer, []).append(part)
                span = plan.moved(item, peer, plan.rank)
                if span.length:
                    shape = [*tensor.shape]
                    shape[plan.dims[item]] = span.length
                    incoming.setdefault(peer, []).append((shape, tensor.dtype))
        found, sent, messages = _swap(plan, outgoing, incoming, tensors[0].device)
        plan.traffic.sent += sent
        plan.traffic.messages += messages
        parts_of = {peer: iter(parts) for peer, parts in found.items()}
        results = []
        for item, tensor in enumerate(tensors):
            parts = []
            for owner in range(plan.ranks):
                span = plan.moved(item, owner, plan.rank)
                if not span.length:
                    continue
                if owner != plan.rank:
                    parts.append(next(parts_of[owner]))
                    continue
                first = span.first - plan.held(item, owner).first
                parts.append(tensor.narrow(plan.dims[item], first, span.length))
            empty = tensor.narrow(plan.dims[item], 0, 0)
            results.append(torch.cat(parts or [empty], plan.dims[item]))
        ctx.mark_non_differentiable(*[x for x in results if not x.is_floating_point()])
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads: Tensor):  # type: ignore[override]
        plan, shapes = ctx.plan, ctx.shapes
        wanted = [item for item in range(len(grads)) if ctx.needs_input_grad[1 + item]]
        outgoing: dict[int, list[Tensor]] = {}
        incoming: dict[int, list[tuple[list[int], torch.dtype]]] = {}
        own: dict[int, Tensor] = {}
        for item in wanted:
            shape, dtype = shapes[item]
            dim, first = plan.dims[item], plan.needs[item][plan.rank].first
            total = torch.zeros(shape, dtype=dtype, device=grads[item].device)
            for peer in range(plan.ranks):
                span = plan.moved(item, peer, plan.rank)
                if span.length:
                    part = grads[item].narrow(dim, span.first - first, span.length)
                    if peer == plan.rank:
                        held = plan.held(item, peer).first
                        total.narrow(dim, span.first - held, span.length).copy_(part)
                    else:
                        outgoing.setdefault(peer, []).append(part)
                span = plan.moved(item, plan.rank, peer)
                if span.length and peer != plan.rank:
                    sizes = [*shape]
                    sizes[dim] = span.length
                    incoming.setdefault(peer, []).append((sizes, dtype))
            own[item] = total
        device = grads[0].device
        found, sent, _ = _swap(plan, outgoing, incoming, device)
        plan.traffic.returned += sent
        parts_of = {peer: iter(parts) for peer, parts in found.items()}
        for item in wanted:
            for peer in range(plan.ranks):
                span = plan.moved(item, plan.rank, peer)
                if span.length and peer != plan.rank:
                    first = span.first - plan.held(item, plan.rank).first
                    part = own[item].narrow(plan.dims[item], first, span.length)
                    part += next(parts_of[peer])
        return (None, *[own.get(item) for item in range(len(grads))])
