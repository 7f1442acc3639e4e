"""A sequence that is divided among ranks: who has which tokens, and what a rank fetches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from .._choices import Unbounded
from .exchange import Item, Span, Traffic, exchange, require_equal_shards

__all__ = ["Shards"]


class Shards:
    """The ranks of a group, each with the same number of consecutive tokens; see
    :class:`ContextParallel`, which computes on them."""

    def __init__(self, group: dist.ProcessGroup, unbounded: Unbounded) -> None:
        self.group, self.unbounded = group, unbounded
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.traffic: list[Traffic] = []
        self._fitting: set[tuple] = set()

    def _own(self, length: int) -> Span:
        """The positions of this rank's ``length`` tokens."""
        return Span(self.rank * length, (self.rank + 1) * length)

    def _fetch(
        self,
        name: str,
        tensors: Sequence[Tensor],
        dims: Sequence[int],
        needs: Sequence[Sequence[Span]],
    ) -> list[Tensor]:
        """One exchange, whose bytes are noted."""
        traffic = Traffic(name)
        self.traffic.append(traffic)
        items = [Item(*each) for each in zip(tensors, dims, needs)]
        return exchange(items, self.group, traffic)

    def _everything(self, length: int, causal: bool = False) -> list[Span]:
        """By rank, all tokens, or those up to its last one."""
        return [
            Span(0, (rank + 1 if causal else self.ranks) * length) for rank in range(self.ranks)
        ]

    def _others(self, all_ranks: bool) -> list[Span]:
        """By rank, the ranks whose states it adds: those before it, or all."""
        return [Span(0, self.ranks if all_ranks else rank) for rank in range(self.ranks)]

    def _require_shards(
        self, name: str, length: int, tensors: Sequence[Tensor], dim: int = 2
    ) -> None:
        """Check shards of ``length`` tokens on every rank. On accelerators, where reading what the
        others sent waits for all work, shapes that have fitted once are not checked again."""
        known = name, length, *((tensor.shape, tensor.dtype) for tensor in tensors)
        if known not in self._fitting or tensors[0].is_cpu:
            require_equal_shards(name, length, tensors, dim, self.group)
            self._fitting.add(known)

    def _bounds(self, name: str, cu_seqlens: Tensor | None, length: int) -> list[int] | None:
        """The boundaries of documents in the whole sequence."""
        if cu_seqlens is None:
            return None
        bounds = cu_seqlens.tolist()
        total = self.ranks * length
        if not bounds or bounds[0] != 0 or bounds[-1] != total or bounds != sorted(bounds):
            raise ValueError(
                f"[{name}] cu_seqlens: expected 0 <= .. <= {total}, the tokens of all ranks, got "
                f"{bounds if len(bounds) < 10 else 'a tensor of other numbers'}"
            )
        return bounds

    def _documents(self, bounds: list[int] | None, length: int) -> Iterator[tuple[Span, Span]]:
        """(own queries, document) for every document that has some here."""
        own = self._own(length)
        if bounds is None:
            yield own, Span(0, self.ranks * length)
            return
        for first, last in itertools.pairwise(bounds):
            document = Span(first, last)
            queries = own.common(document)
            if queries.length:
                yield queries, document

    def _inside(self, lengths: Tensor, axis: int, span: Span, mask: Tensor | None) -> Tensor:
        """bool [B, keys]: the keys of a span that lie before the lengths."""
        own = lengths[axis] if lengths.dim() == 2 else lengths
        inside = torch.arange(span.first, span.last, device=lengths.device) < own[:, None]
        return inside if mask is None else inside & mask
