"""Caches of fixed size for serving: slots that belong to one sequence each, and pages that
sequences share.

Both are plain tensors, so a decoding step compiles with ``torch.compile(fullgraph=True)``, and the
sequences of a batch may have different lengths. Both are for inference.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ._arguments import checked_methods, describe
from .attention import attention

__all__ = ["PagedCache", "StaticCache"]

_OWN = ("causal", "window", "query_positions", "cu_seqlens", "layout")


class _FixedCache:
    """What both caches share: windows, options, and the shapes of a chunk."""

    def __init__(self, window: Sequence[int]) -> None:
        if not len(window):
            raise ValueError(f"[{self._name}] window: expected one int per axis, got none")
        for width in window:
            if not isinstance(width, int) or isinstance(width, bool) or width < -1 or width == 0:
                raise ValueError(
                    f"[{self._name}] window: expected widths of at least 1, or -1, got {width!r}"
                )
        self.window = [*window]
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _require_sizes(self, **sizes: int) -> None:
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"[{self._name}] {name}: expected at least 1, got {size}")

    def _allocate(self, rows: tuple[int, ...], key_width: int, value_width: int, **place) -> None:
        """Zeros [*rows, channels], one tensor of keys and one of values per axis."""
        self.keys = [torch.zeros(*rows, key_width, **place) for _ in self.window]
        self.values = [torch.zeros(*rows, value_width, **place) for _ in self.window]

    @property
    def nbytes(self) -> int:
        """Memory of the stored keys and values, in bytes."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def _options(self, options: dict) -> dict:
        for name in _OWN:
            if name in options:
                raise ValueError(f"[{self._name}] {name}: belongs to the cache")
        pairs = [(width, 0 if width >= 0 else -1) for width in self.window]
        return options | {"causal": True, "window": pairs}

    def _check_chunk(self, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        order = len(self.window)
        if len(keys) != order or len(values) != order:
            raise ValueError(
                f"[{self._name}] keys and values: expected {order} of each, got {len(keys)} and "
                f"{len(values)}"
            )
        if query.dim() != 4:
            raise ValueError(
                f"[{self._name}] query: expected shape [B, heads, tokens, channels], got "
                f"{[*query.shape]}"
            )
        for name, chunk, stored in (("keys", keys, self.keys), ("values", values, self.values)):
            for m, (each, kept) in enumerate(zip(chunk, stored)):
                expected = [query.size(0), kept.size(1), query.size(2), kept.size(3)]
                if [*each.shape] != expected:
                    raise ValueError(
                        f"[{self._name}] {name}[{m}]: expected shape {expected}, got "
                        f"{[*each.shape]}"
                    )
                if each.dtype != kept.dtype:
                    raise TypeError(
                        f"[{self._name}] {name}[{m}]: expected {kept.dtype}, got {each.dtype}"
                    )

    def _require_whole(self, name: str, given: int) -> None:
        known = isinstance(given, (int, torch.SymInt)) and not isinstance(given, bool)
        if not known or given < 0:
            raise ValueError(
                f"[{self._name}] {name}: expected an integer of at least 0, got {describe(given)}"
            )

    def _require_one_each(
        self, name: str, given: Tensor, batch: int, dtypes=(torch.int64, torch.int32)
    ) -> None:
        """One integer per sequence of the batch."""
        if given.dtype not in dtypes or [*given.shape] != [batch]:
            raise ValueError(
                f"[{self._name}] {name}: expected int64 of shape [{batch}], got {given.dtype} of "
                f"shape {[*given.shape]}"
            )

    def _require_range(self, name: str, given: Tensor, most: int | None) -> None:
        """Looks at the numbers, which compiled code does not."""
        if torch.compiler.is_compiling() or not given.numel():
            return
        low, high = (int(each) for each in given.aminmax())
        if low < 0 or (most is not None and high > most):
            upper = "or more" if most is None else f"to {most}"
            wrong = low if low < 0 else high
            raise ValueError(f"[{self._name}] {name}: expected 0 {upper}, got {wrong}")

    def _check_counts(self, counts: Tensor | None, batch: int, tokens: int) -> None:
        if counts is not None:
            self._require_one_each("counts", counts, batch)
            self._require_range("counts", counts, tokens)


def _new_places(lengths: Tensor, tokens: int, counts: Tensor | None) -> tuple[Tensor, Tensor]:
    """(position of every token of a chunk, whether it is one): [B, t] each. A token beyond an
    entry's count has the position of the entry's last one."""
    steps = torch.arange(tokens, device=lengths.device).unsqueeze(0)
    real = torch.ones_like(steps, dtype=torch.bool).expand(lengths.size(0), -1)
    if counts is not None:
        real = steps < counts.unsqueeze(1)
        steps = torch.minimum(steps, counts.unsqueeze(1) - 1)
    return lengths.unsqueeze(1) + steps, real


@checked_methods
class StaticCache(_FixedCache):
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
        self._check_counts(counts, self.lengths.size(0), tokens)
        return _new_places(self.lengths, tokens, counts)[0]

    def append(
        self, keys: Sequence[Tensor], values: Sequence[Tensor], counts: Tensor | None = None
    ) -> None:
        """Appends a chunk: N keys [B, Hk, t, D] and N values [B, Hk, t, Dv], of which entry b has
        ``counts[b]`` tokens (None: t) and padding behind them."""
        for first in keys[:1]:
            self._check_batch("keys[0]", first)
        self._check_chunk(keys[0] if len(keys) else self.keys[0], keys, values)
        positions, real = self._places(keys[0].size(2), counts)
        self._write(keys, values, positions, real)
        self._advance(real)

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        counts: Tensor | None = None,
        **options,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Appends the chunk and attends with its queries [B, Hq, t, D].

        ``counts``, int64 [B], says how many of an entry's t tokens are real; the others are padding
        at its end, whose outputs mean nothing. ``options`` and the result are those of
        :func:`nsimplex.attention`, without ``causal``, ``window`` and ``query_positions``, which
        belong to the cache.

        Raises:
            ValueError: a shape that does not fit, or more tokens than slots. Nothing changes then.
        """
        options = self._options(options)
        self._check_batch("query", query)
        self._check_chunk(query, keys, values)
        positions, real = self._places(query.size(2), counts)
        self._write(keys, values, positions, real)
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
        for tensor in (*self.keys, *self.values, self.lengths):
            tensor.copy_(tensor.index_select(0, entries))

    reorder = select

    def reset(self) -> None:
        """Forgets all tokens and keeps the memory."""
        self.lengths.zero_()

    def _check_batch(self, name: str, tensor: Tensor) -> None:
        batch = self.lengths.size(0)
        if tensor.dim() != 4 or tensor.size(0) != batch:
            raise ValueError(
                f"[StaticCache] {name}: expected shape [{batch}, heads, tokens, channels], got "
                f"{[*tensor.shape]}"
            )

    def _places(self, tokens: int, counts: Tensor | None) -> tuple[Tensor, Tensor]:
        self._check_counts(counts, self.lengths.size(0), tokens)
        positions, real = _new_places(self.lengths, tokens, counts)
        if not torch.compiler.is_compiling() and tokens:
            most = int(torch.where(real, positions, -1).max()) + 1
            if most > self.slots:
                raise ValueError(
                    f"[StaticCache] slots: expected room for {most} tokens, got {self.slots} slots"
                )
        return positions, real

    def _write(
        self, keys: Sequence[Tensor], values: Sequence[Tensor], positions: Tensor, real: Tensor
    ) -> None:
        """Fills slots behind the sequences' ends, which nobody reads before :meth:`_advance`."""
        with torch.no_grad():
            places = torch.where(real, positions, self.slots)[:, None, :, None]
            for kept, chunk in zip((*self.keys, *self.values), (*keys, *values)):
                kept.scatter_(2, places.expand_as(chunk), chunk)

    def _advance(self, real: Tensor) -> None:
        with torch.no_grad():
            self.lengths.add_(real.sum(1))


@checked_methods
class PagedCache(_FixedCache):
    """Keys and values in pages that sequences take from one pool, [pages, Hk, page, D] per axis.

    >>> cache = PagedCache([-1, 512], pages=4096, page=16, kv_heads=4, head_dim=64)
    >>> out = cache.attend(query, [k1, k2], [v1, v2], table, lengths)

    The caller owns the block table and the lengths, as servers do: ``table[b, i]`` is the page with
    the tokens i * page .. (i + 1) * page - 1 of sequence b. Pages may be shared by sequences with a
    common beginning. The result equals that of each sequence alone, up to rounding.

    Args:
        window, kv_heads, head_dim, value_dim, dtype, device: as in :class:`StaticCache`.
        pages: number of pages in the pool.
        page: tokens per page.

    Complexity: pages Hk page (D + Dv) numbers per axis. A call copies the pages that the widest
        window reaches, then costs what attention costs over the visible keys.
    """

    def __init__(
        self,
        window: Sequence[int],
        *,
        pages: int,
        page: int,
        kv_heads: int,
        head_dim: int,
        value_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(window)
        self._require_sizes(pages=pages, page=page, kv_heads=kv_heads, head_dim=head_dim)
        rows = pages + 1, kv_heads, page  # the last page takes what padding would write
        self._allocate(rows, head_dim, value_dim or head_dim, dtype=dtype, device=device)

    @property
    def pages(self) -> int:
        """Pages in the pool."""
        return self.keys[0].size(0) - 1

    @property
    def page(self) -> int:
        """Tokens per page."""
        return self.keys[0].size(2)

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        table: Tensor,
        lengths: Tensor,
        counts: Tensor | None = None,
        **options,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Writes the chunk to its pages and attends with its queries [B, Hq, t, D].

        Args:
            query, keys, values, counts, options: as in :meth:`StaticCache.attend`.
            table: int64 [B, n], the pages of each sequence in order. Entries behind a sequence's
                end may be any page.
            lengths: int64 [B], tokens of each sequence before this chunk. The caller adds the
                chunk's tokens for the next call.

        Raises:
            ValueError: a shape that does not fit, a page outside the pool, or more tokens than the
                table has room for. Nothing changes then.
        """
        options = self._options(options)
        self._check_chunk(query, keys, values)
        self._check_counts(counts, query.size(0), query.size(2))
        self._check_table(query, table, lengths)
        tokens = query.size(2)
        positions, real = _new_places(lengths, tokens, counts)
        if not torch.compiler.is_compiling() and tokens:
            most = int(torch.where(real, positions, -1).max()) + 1
            if most > table.size(1) * self.page:
                raise ValueError(
                    f"[PagedCache] table: expected pages for {most} tokens, got {table.size(1)} "
                    f"pages of {self.page}"
                )
        self._write(keys, values, table, positions, real)
        pages, first = self._reached(table, lengths, tokens)
        return attention(
            query,
            [self._gather(kept, pages) for kept in self.keys],
            [self._gather(kept, pages) for kept in self.values],
            query_positions=positions - first * self.page,
            **options,
        )

    def _check_table(self, query: Tensor, table: Tensor, lengths: Tensor) -> None:
        batch, pool = query.size(0), self.pages
        if table.dtype != torch.int64 or table.dim() != 2 or table.size(0) != batch:
            raise ValueError(
                f"[PagedCache] table: expected int64 of shape [{batch}, pages], got {table.dtype} "
                f"of shape {[*table.shape]}"
            )
        self._require_one_each("lengths", lengths, batch, (torch.int64,))
        self._require_range("lengths", lengths, None)
        if torch.compiler.is_compiling() or not table.numel():
            return
        low, high = (int(each) for each in table.aminmax())
        if low < 0 or high >= pool:
            wrong = low if low < 0 else high
            raise ValueError(f"[PagedCache] table: expected pages 0 to {pool - 1}, got {wrong}")

    def _write(
        self,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        table: Tensor,
        positions: Tensor,
        real: Tensor,
    ) -> None:
        """Padding goes to a page of its own, which no table names."""
        with torch.no_grad():
            rows = positions.clamp(min=0)
            pages = table.gather(1, (rows // self.page).clamp(max=table.size(1) - 1))
            pages, places = torch.where(real, pages, self.pages), rows % self.page
            for kept, chunk in zip((*self.keys, *self.values), (*keys, *values)):
                kept[pages, :, places] = chunk.transpose(1, 2)

    def _reached(self, table: Tensor, lengths: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        """(pages [B, n] that the queries may see, the first of them [B, 1] by number): n depends on
        sizes alone."""
        if min(self.window) < 0:
            return table, torch.zeros_like(lengths).unsqueeze(1)
        reach = max(self.window) - 1 + tokens  # keys from the first visible one to the last token
        count = min(table.size(1), -(-reach // self.page) + 1)
        first = ((lengths - max(self.window) + 1).clamp(min=0) // self.page).unsqueeze(1)
        places = first + torch.arange(count, device=table.device)
        return table.gather(1, places.clamp(max=table.size(1) - 1)), first

    def _gather(self, kept: Tensor, pages: Tensor) -> Tensor:
        """[B, Hk, n * page, channels]"""
        return kept[pages].transpose(1, 2).flatten(2, 3)
