"""A cache of fixed size for serving, with pages that sequences share.

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
from ._fixed_cache import WHOLE, FixedCache, new_places
from ._options import FixedCacheOptions
from .attention import attention

__all__ = ["PagedCache"]


@checked_methods
class PagedCache(FixedCache):
    """Keys and values in pages that sequences take from one pool, [pages, Hk, page, D] per axis.

    >>> cache = PagedCache([-1, 512], pages=4096, page=16, kv_heads=4, head_dim=64)
    >>> out = cache.attend(query, [k1, k2], [v1, v2], table, lengths)

    The caller owns the block table and the lengths, as servers do: ``table[b, i]`` is the page with
    the tokens i * page .. (i + 1) * page - 1 of sequence b. Pages may be shared by sequences with a
    common beginning, as long as nobody writes to a shared slot. The result equals that of each
    sequence alone, up to rounding.

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

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        table: Tensor,
        lengths: Tensor,
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
        table: Tensor,
        lengths: Tensor,
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
        table: Tensor,
        lengths: Tensor,
        counts: Tensor | None = None,
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Writes the chunk to its pages and attends with its queries [B, Hq, t, D].

        Args:
            query, keys, values, counts, options: as in :meth:`StaticCache.attend`.
            table: int64 or int32 [B, n], the pages of each sequence in order. Entries behind a
                sequence's end may be any page, or -1.
            lengths: int64 or int32 [B], tokens of each sequence before this chunk. The caller adds
                the chunk's tokens for the next call.

        Options that name keys by their index (``key_lengths``, ``key_masks``, ``mask``) count all
        n * page tokens of the table, whichever pages the windows reach.

        Raises:
            ValueError: a shape that does not fit, a page outside the pool, more tokens than the
                table has room for, a slot of a page that one sequence writes while another one, or
                the same one at another place, has it too, or keys and values that require a
                gradient while gradients are recorded. Nothing changes then.
            RuntimeError: such numbers in compiled code on the CPU. On other devices, :meth:`check`
                says so later.
        """
        options = self._options(options)
        self._check_chunk(query, keys, values)
        self._check_counts(counts, query.size(0), query.size(2))
        self._check_shapes(query, table, lengths)
        table, lengths = table.long(), lengths.long()
        tokens = query.size(2)
        positions, real = new_places(lengths, tokens, counts)
        # A row without real tokens pauses or has ended, and its pages may belong to another one.
        ends = torch.where(real.any(1), lengths + real.sum(1), 0)
        self._check_pages(table, lengths, ends)
        real = real & (positions >= 0) & (positions < table.size(1) * self.page)
        inside = (table >= 0) & (table < self.pages)
        table = torch.where(inside, table, self.pages)
        self._write(keys, values, table, positions, real)
        pages, first = self._reached(table, lengths, tokens)
        if min(self.window) >= 0:
            keys_of_table, width = table.size(1) * self.page, pages.size(1) * self.page
            options = self._of_reached(options, query, keys_of_table, first * self.page, width)
        return attention(
            query,
            [self._gather(kept, pages) for kept in self.keys],
            [self._gather(kept, pages) for kept in self.values],
            query_positions=positions - first * self.page,
            **options,
        )

    def _check_shapes(self, query: Tensor, table: Tensor, lengths: Tensor) -> None:
        batch = query.size(0)
        if table.dtype not in WHOLE or table.dim() != 2 or table.size(0) != batch:
            raise ValueError(
                f"[PagedCache] table: expected int64 of shape [{batch}, pages], got {table.dtype} "
                f"of shape {[*table.shape]}"
            )
        self._require_one_each("lengths", lengths, batch)
        self._require_range("lengths", lengths, None)

    def _check_pages(self, table: Tensor, lengths: Tensor, ends: Tensor) -> None:
        """Check the pages of sequences that have the tokens before ``ends`` after this call, and
        write those from ``lengths`` on."""
        count, pool, size = table.size(1), self.pages, self.page
        self._require_all(
            ends <= count * size,
            "table: expected pages for the tokens of every sequence",
            lambda: (
                f"table: expected pages for {int(ends.max())} tokens, got {count} pages of {size}"
            ),
        )
        begins = torch.arange(count, device=table.device) * size
        used = (ends.unsqueeze(1) - begins).clamp(0, size)  # slots of each page, [B, n]
        least = torch.where(used > 0, 0, -1)

        def outside() -> str:
            wrong = (table < least) | (table >= pool)
            return f"table: expected pages 0 to {pool - 1}, got {int(table[wrong][0])}"

        fits = (table >= least) & (table < pool)
        self._require_all(fits, "table: expected pages of the pool", outside)
        first = (lengths.unsqueeze(1) - begins).clamp(0, size)  # slots that are written come after
        written = (used > first).flatten()
        pages = torch.where(fits & (used > 0), table, pool).flatten()
        taken = self._second_most(pages, used.flatten())
        shared = written & (pages < pool) & (taken[pages] > first.flatten())

        def doubled() -> str:
            at = int(shared.int().argmax())
            return (
                f"table: expected a page of its own for what sequence {at // count} writes, got "
                f"page {int(pages[at])}, which the table has twice"
            )

        self._require_all(~shared, "table: expected pages of its own for every writer", doubled)

    def _second_most(self, pages: Tensor, used: Tensor) -> Tensor:
        """Of all places of the table with one page, the second largest number of used slots,
        [pool + 1]."""
        empty = used.new_zeros(self.pages + 1)
        most = empty.scatter_reduce(0, pages, used, "amax")
        places = torch.arange(pages.numel(), device=pages.device)
        leads = torch.where(used == most[pages], places, -1)
        leader = (empty - 1).scatter_reduce(0, pages, leads, "amax")
        return empty.scatter_reduce(0, pages, torch.where(leader[pages] == places, 0, used), "amax")

    def _write(
        self,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        table: Tensor,
        positions: Tensor,
        real: Tensor,
    ) -> None:
        """Padding goes to a separate page, which no table names."""
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

    def _of_reached(
        self, options: dict[str, Any], query: Tensor, keys: int, first: Tensor, width: int
    ) -> dict[str, Any]:
        """Options for ``keys`` tokens of a table, as those for the ``width`` tokens from ``first``
        [B, 1] on, which the gathered pages hold."""
        batch, order = query.size(0), len(self.window)
        # Causality hides the places behind the table's end, so they may repeat its last one.
        places = (first + torch.arange(width, device=first.device)).clamp(max=keys - 1)
        lengths, masks, mask = (options.get(name) for name in ("key_lengths", "key_masks", "mask"))
        changed: dict[str, Any] = {}
        if lengths is not None and lengths.dtype in WHOLE and lengths.shape[-1:] == (batch,):
            self._require_range("key_lengths", lengths, keys)
            shift = first.squeeze(1).to(lengths.dtype)
            changed["key_lengths"] = (lengths - shift).clamp(0, width)
        if masks is not None:
            for m, each in enumerate(masks):
                self._require_shape(f"key_masks[{m}]", each, (batch, keys), exact=True)
            changed["key_masks"] = [each.gather(1, places) for each in masks]
        if mask is not None and (mask.dim() > order or order == 1):
            self._require_shape("mask", mask, (*query.shape[:3], *[keys] * order))
            mask = mask[(None,) * (order + 3 - mask.dim())]
            for axis in range(3, 3 + order):
                if mask.size(axis) > 1:
                    mask = mask.expand(batch, *mask.shape[1:])
                    index = places.view(batch, *[1] * (axis - 1), width, *[1] * (order + 2 - axis))
                    shape = *mask.shape[:axis], width, *mask.shape[axis + 1 :]
                    mask = mask.gather(axis, index.expand(shape))
            changed["mask"] = mask
        return options | changed

    def _require_shape(
        self, name: str, given: Tensor, shape: tuple[int, ...], exact: bool = False
    ) -> None:
        sizes = zip(reversed(given.shape), reversed(shape))
        fits = given.dim() == len(shape) if exact else given.dim() <= len(shape)
        if not fits or any(have != want and (exact or have != 1) for have, want in sizes):
            wanted = "shape" if exact else "a shape that broadcasts to"
            raise ValueError(
                f"[PagedCache] {name}: expected {wanted} {[*shape]}, got {[*given.shape]}"
            )

    def _gather(self, kept: Tensor, pages: Tensor) -> Tensor:
        """[B, Hk, n * page, channels]"""
        return kept[pages].transpose(1, 2).flatten(2, 3)
