"""A cache of fixed size for serving, with slots that belong to one sequence each.

It consists of plain tensors, so a decoding step compiles with ``torch.compile(fullgraph=True)``,
and the sequences of a batch may have different lengths. It is for inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import torch
from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked_methods
from ._fixed_cache import FixedCache, new_places
from ._options import FixedCacheOptions
from .attention import attention

__all__ = ["StaticCache"]


@checked_methods
class StaticCache(FixedCache):
    """Keys and values of a batch in fixed slots, [B, Hk, slots, D] per axis.

    >>> cache = StaticCache([-1, 512], batch=8, slots=2048, kv_heads=4, head_dim=64)
    >>> out = cache.attend(query, [k1, k2], [v1, v2], counts=lengths)  # padded prompts
    >>> out = cache.attend(query, [k1, k2], [v1, v2])  # then one token for each

    Every row of the result equals the row that :func:`nsimplex.attention` gives for that sequence
    alone with ``causal=True`` and the same windows, up to rounding. No shape depends on the
    lengths, so one compiled step serves all of them. A call reads only the keys that its queries
    see.

    Apply rotary positions to queries and keys before the call; :meth:`positions` gives them.

    Args:
        window: one int per axis: the number of keys that a query sees, its own included; -1: all.
        batch, slots, kv_heads, head_dim, value_dim: sizes; ``value_dim`` None: ``head_dim``.
        dtype, device: of keys and values; None: torch's defaults.

    Attributes:
        lengths: int64 [B], the number of tokens of each sequence.
        keys, values: the slots. What lies at or behind a sequence's length is never read.

    Complexity: B Hk slots (D + Dv) numbers per axis; a step of one token costs what attention costs
        over the visible keys.
    """

    def __init__(
        self,
        window: Sequence[int],
        *,
        batch: int,
        slots: int,
        kv_heads: int,
        head_dim: int,
        value_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(window)
        self._require_sizes(batch=batch, slots=slots, kv_heads=kv_heads, head_dim=head_dim)
        rows = batch, kv_heads, slots + 1  # the last slot takes what padding would write
        self._allocate(rows, head_dim, value_dim or head_dim, dtype=dtype, device=device)
        self.lengths = torch.zeros(batch, dtype=torch.int64, device=self.keys[0].device)

    @property
    def slots(self) -> int:
        """The most tokens of a sequence."""
        return self.keys[0].size(2) - 1

    def positions(self, tokens: int, counts: Tensor | None = None) -> Tensor:
        """Positions of the next ``tokens`` tokens of every sequence, int64 [B, tokens]."""
        self._require_whole("tokens", tokens)
        self._check_lengths()
        self._check_counts(counts, self.lengths.size(0), tokens)
        return new_places(self.lengths, tokens, counts)[0]

    def append(
        self, keys: Sequence[Tensor], values: Sequence[Tensor], counts: Tensor | None = None
    ) -> None:
        """Appends a chunk: N keys [B, Hk, t, D] and N values [B, Hk, t, Dv]. Entry b has
        ``counts[b]`` tokens (None: t), and padding behind them."""
        for first in keys[:1]:
            self._check_batch("keys[0]", first)
        _, real = self._extend(keys[0] if len(keys) else self.keys[0], keys, values, counts)
        self._advance(real)

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        counts: Tensor | None = ...,
        *,
        return_lse: Literal[False] = ...,
        **options: Unpack[FixedCacheOptions],
    ) -> Tensor: ...

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        counts: Tensor | None = ...,
        *,
        return_lse: Literal[True],
        **options: Unpack[FixedCacheOptions],
    ) -> tuple[Tensor, Tensor]: ...

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        counts: Tensor | None = None,
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Appends the chunk and attends with its queries [B, Hq, t, D].

        ``counts``, int64 [B], says how many of an entry's t tokens are real; the others are padding
        at its end, whose outputs mean nothing. ``options`` and the result are those of
        :func:`nsimplex.attention`, without ``causal``, ``window`` and ``query_positions``, which
        belong to the cache.

        Raises:
            ValueError: a shape that does not fit, more tokens than slots, or keys and values that
                require a gradient while gradients are recorded. Nothing changes then.
            RuntimeError: more tokens than slots, and other numbers out of their range, in compiled
                code on the CPU. On other devices, :meth:`check` says so later.
        """
        options = self._options(options)
        positions, real = self._extend(query, keys, values, counts)
        slots = self.slots
        result = attention(
            query,
            [kept[:, :, :slots] for kept in self.keys],
            [kept[:, :, :slots] for kept in self.values],
            query_positions=positions,
            **options,
        )
        self._advance(real)  # not after a call that was refused
        return result

    def crop(self, length: int | Tensor) -> None:
        """Forgets all tokens from position ``length`` on; an int64 [B] tensor gives one length per
        sequence. A shorter sequence stays as it is.

        Raises:
            ValueError: another shape or dtype, or a length below 0. Nothing changes then.
        """
        if isinstance(length, Tensor):
            self._require_one_each("length", length, self.lengths.size(0))
            self._require_range("length", length, None)
            self.lengths.copy_(torch.minimum(self.lengths, length))
        else:
            self._require_whole("length", length)
            self.lengths.clamp_(max=length)

    def select(self, entries: Tensor) -> None:
        """Replaces the batch by its entries [B] (int64), in place: beam search. The size of the
        batch stays."""
        batch = self.lengths.size(0)
        self._require_one_each("entries", entries, batch, (torch.int64,))
        self._require_range("entries", entries, batch - 1)
        for tensor in self._stored():
            tensor.copy_(tensor.index_select(0, entries))

    reorder = select

    def reset(self) -> None:
        """Forgets all tokens, and what :meth:`check` would say, and keeps the memory."""
        self.lengths.zero_()
        self._wrong.zero_()

    def _stored(self) -> list[Tensor]:
        """What belongs to the entries of the batch, which is the first axis."""
        return [*self.keys, *self.values, self.lengths]

    def _check_lengths(self) -> None:
        """They are an attribute that anybody may set."""
        self._require_one_each("lengths", self.lengths, self.keys[0].size(0), (torch.int64,))
        self._require_range("lengths", self.lengths, self.slots)

    def _check_batch(self, name: str, tensor: Tensor) -> None:
        batch = self.lengths.size(0)
        if tensor.dim() != 4 or tensor.size(0) != batch:
            raise ValueError(
                f"[StaticCache] {name}: expected shape [{batch}, heads, tokens, channels], got "
                f"{[*tensor.shape]}"
            )

    def _places(self, tokens: int, counts: Tensor | None) -> tuple[Tensor, Tensor]:
        self._check_lengths()
        self._check_counts(counts, self.lengths.size(0), tokens)
        positions, real = new_places(self.lengths, tokens, counts)
        used = torch.where(real, positions + 1, 0)
        self._require_all(
            used <= self.slots,
            "slots: expected room for the tokens of every sequence",
            lambda: f"slots: expected room for {int(used.max())} tokens, got {self.slots} slots",
        )
        return positions, real & (positions >= 0) & (positions < self.slots)

    def _extend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        counts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Fills slots with a chunk, of the query's batch and length. Returns the position of every
        token and whether it is one, as :meth:`_advance` needs it."""
        self._check_batch("query", query)
        self._check_chunk(query, keys, values)
        positions, real = self._places(query.size(2), counts)
        self._write([*self.keys, *self.values], [*keys, *values], positions, real)
        return positions, real

    def _write(
        self, kept: Sequence[Tensor], chunks: Sequence[Tensor], positions: Tensor, real: Tensor
    ) -> None:
        """Fills slots behind the sequences' ends, which nobody reads before :meth:`_advance`."""
        with torch.no_grad():
            places = torch.where(real, positions, self.slots)[:, None, :, None]
            for slots, chunk in zip(kept, chunks):
                slots.scatter_(2, places.expand_as(chunk), chunk)

    def _advance(self, real: Tensor) -> None:
        with torch.no_grad():
            self.lengths.add_(real.sum(1))
