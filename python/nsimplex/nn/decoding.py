"""How an attention layer goes on from a cache, for every selection that has one."""

from __future__ import annotations

from types import NoneType
from typing import Any, TypeVar

import torch
from torch import Tensor

from .._arguments import describe
from ..kv_cache import IndexedCache, KeyValueCache, LayerCache
from ..separable_attention import SeparableCache
from ..static_cache import StaticCache
from .checks import require
from .heads import own_part
from .indexer import IndexParts
from .key_tables import EVERYWHERE, Places, united
from .select import Linear, Neighbours, Path, Sinks, TopK, Union, Window, part_of, parts_of
from .selecting import SelectedTuples
from .slots import ChosenSlots

_Cache = TypeVar("_Cache", bound=LayerCache)


class CachedTuples(SelectedTuples):
    """The part of an attention layer that decodes."""

    has_slots = True  #: whether a layer takes a StaticCache

    def _require_cacheable(self) -> None:
        at = f"[{type(self).__name__}] "
        require(
            self._options["causal"] and not self.context_dims,
            f"{at}cache: only causal self-attention can go on from one",
        )
        require(
            part_of(self.select, Neighbours) is None,
            f"{at}select: Neighbours has no cache, because its graph is one of all tokens",
        )

    def _counts_places(self) -> bool:
        """Whether attention needs all keys in their order, which a ring does not hold."""
        return self.face or self._options["distinct"] != "none"

    def _cache_window(self, unbounded: int) -> list[int]:
        window = self._options["window"]
        entries = [window] * self.order if isinstance(window, (int, type(None))) else window
        lefts = [entry[0] if isinstance(entry, (list, tuple)) else entry for entry in entries]
        return [unbounded if left in (None, -1) else left for left in lefts]

    def _empty_cache(self, unbounded: int) -> LayerCache:
        self._require_cacheable()
        if self._counts_places():
            return IndexedCache(self.order)
        if self.select is None:
            return KeyValueCache(self._cache_window(unbounded))
        if isinstance(self.select, Linear):
            return SeparableCache(self._cache_window(-1), self.select.features)
        return IndexedCache(self.order)

    def _continue(
        self, x: Tensor, cache: LayerCache | StaticCache, counts: Tensor | None
    ) -> Tensor:
        self._require_cacheable()
        require(
            not (self.training and self.dropout > 0),
            f"[{type(self).__name__}] dropout: expected evaluation mode with a cache; call eval()",
        )
        self._auxiliary_loss = None
        if isinstance(cache, StaticCache):
            return self._continue_slots(x, cache, counts)
        require(
            counts is None, f"[{type(self).__name__}] counts: expected none without a StaticCache"
        )
        first = cache.position
        q, keys, values = self._heads_of(x, offset=first)
        if isinstance(self.select, Linear):
            cache = self._fitting(cache, SeparableCache)
            require(
                cache._map == self.select.features,
                f"[{type(self).__name__}] cache: expected one of features "
                f"{describe(self.select.features)}, got {describe(cache._map)}",
            )
            return self._join_heads(cache.attend(q, keys, values))
        if self._counts_places():
            keys, values = self._fitting(cache, IndexedCache).extend(q, keys, values)
            return self._join_heads(self._attend_to_window(q, keys, values))
        if self.select is None:
            cache = self._fitting(cache, KeyValueCache)
            return self._join_heads(cache.attend(q, keys, values, **self._cached_options()))
        cache = self._fitting(cache, IndexedCache)
        index = self._index_of(x, first)
        keys, values = cache.extend(q, keys, values)
        if index is not None:
            # The source's lse is left out, because it may cover fewer keys than are scored here.
            index = index._replace(key=cache.append_index(index.key), lse=None)
        queries = torch.arange(first, first + x.size(1), device=x.device)
        tables = self._tables(index, queries, first + x.size(1), EVERYWHERE)
        if self.pattern == "path":
            tables = [cache.append_table(tables[0])]
        return self._join_heads(self._attend(q, keys, values, tables)[0])

    def _fitting(self, cache: LayerCache, kind: type[_Cache]) -> _Cache:
        """The cache, which is of the kind that :meth:`make_cache` makes."""
        if isinstance(cache, kind):
            self._require_own_window(cache)
            return cache
        raise ValueError(
            f"[{type(self).__name__}] cache: expected a {kind.__name__}, as make_cache() makes, "
            f"got {type(cache).__name__}"
        )

    def _require_own_window(self, cache: LayerCache | StaticCache) -> None:
        """Check that a cache keeps the keys of the layer's windows, which it would take the place
        of. An axis of a ring without a window may keep any number of keys."""
        own = [] if isinstance(cache, IndexedCache) else self._cache_window(-1)
        held = [*cache.window] if own else []
        any_number = isinstance(cache, KeyValueCache)
        fits = (kept == w or (any_number and w == -1) for w, kept in zip(own, held))
        require(
            len(held) != len(own) or all(fits),
            f"[{type(self).__name__}] cache: expected one of window {own}, as make_cache() makes, "
            f"got window {held}",
        )

    def _empty_slots(self, **sizes: Any) -> StaticCache:
        self._require_cacheable()
        if self.select is None or isinstance(self.select, Linear):
            return StaticCache(self._cache_window(-1), **sizes)
        part, index = part_of(self.select, TopK, Path), None
        if part is not None and self.indexer.source == "light":
            index = 1, self.indexer.index_dim
        elif part is not None:
            require(
                len(self._source) > 0,
                f"[{type(self).__name__}] source: expected set_source before make_static_cache",
            )
            index = self._source[0].kv_heads, self._source[0].head_dim
        width = part.k if isinstance(part, Path) else None
        return ChosenSlots(self.order, index, width, **sizes)

    def _continue_slots(self, x: Tensor, cache: StaticCache, counts: Tensor | None) -> Tensor:
        self._require_own_window(cache)
        positions = cache.positions(x.size(1), counts)
        q, keys, values = self._heads_of(x, positions=positions)
        if self.select is None and not self._counts_places():
            options = self._cached_options()
            return self._join_heads(cache.attend(q, keys, values, counts=counts, **options))
        require(
            isinstance(cache, ChosenSlots) != isinstance(self.select, (Linear, NoneType)),
            f"[{type(self).__name__}] cache: expected one of this layer's make_static_cache()",
        )
        positions, real = cache._extend(q, keys, values, counts)
        if self.select is None:
            keys, values = (
                [kept[:, :, :-1] for kept in each] for each in (cache.keys, cache.values)
            )
            out = self._attend_to_window(q, keys, values, query_positions=positions)
        elif isinstance(cache, ChosenSlots):
            out = self._attend_to_chosen_slots(x, q, cache, positions, real)
        else:
            out = self._attend_linearly_to_slots(q, cache, positions, real)
        cache._advance(real)
        return self._join_heads(out)

    def _attend_to_chosen_slots(
        self, x: Tensor, q: Tensor, cache: ChosenSlots, positions: Tensor, real: Tensor
    ) -> Tensor:
        places = torch.arange(cache.slots, device=x.device)
        visible = places <= positions[..., None]
        index = self._index_of(x, 0, positions)
        if index is not None:
            cache._write([cache.index], [index.key], positions, real)
            index = index._replace(key=cache.index[:, :, :-1], lse=None)
        tables = self._tables_in_slots(index, positions, visible)
        keys, values = cache.keys, cache.values
        if self.pattern == "path":
            tokens = q.size(2)
            cache._write([cache.chosen], [tables[0][:, None]], positions, real)
            tables = [torch.cat([cache.chosen[:, 0, :-1], tables[0]], 1)]
            keys, values = cache.extended(keys, values, tokens)
        else:
            keys, values = ([kept[:, :, :-1] for kept in each] for each in (keys, values))
        return self._attend(q, keys, values, tables)[0]

    def _tables_in_slots(
        self, index: IndexParts | None, positions: Tensor, visible: Tensor
    ) -> list[Tensor]:
        """The keys of queries at positions [B, t], among the visible slots [B, t, slots]."""
        slots = visible.size(-1)
        fixed: list[Tensor] = []
        for part in parts_of(self.select):
            if isinstance(part, Window):
                around = torch.arange(1 - part.left, 1, device=positions.device)
                fixed.append(positions[..., None] + around)
            elif isinstance(part, Sinks):
                first = torch.arange(part.count, device=positions.device).expand(
                    *positions.shape, -1
                )
                fixed.append(first.masked_fill(first > positions[..., None], -1))
        if index is None:
            return [united(fixed, slots)]
        part = part_of(self.select, TopK, Path)
        assert part is not None
        best = self._choose(index, Places(adjacency=visible), causal=False)
        chosen = [best] if isinstance(part.k, int) else [best[..., :k] for k in part.k]
        if isinstance(self.select, Union):
            return [united([*fixed, table], slots) for table in chosen]
        return chosen

    def _attend_linearly_to_slots(
        self, q: Tensor, cache: StaticCache, positions: Tensor, real: Tensor
    ) -> Tensor:
        """A query row per slot, of which those of the new tokens count."""
        slots = cache.slots
        places = torch.where(real, positions, slots)[:, None, :, None].expand_as(q)
        rows = q.new_zeros(*q.shape[:2], slots + 1, q.size(3)).scatter(2, places, q)
        lengths = torch.where(real, positions + 1, 0).amax(1)
        keys, values = ([kept[:, :, :-1] for kept in each] for each in (cache.keys, cache.values))
        out = self._attend_linearly(rows[:, :, :-1], keys, values, Places(key_lengths=lengths))
        return out.gather(2, positions.clamp_min(0)[:, None, :, None].expand_as(q))

    def _cached_options(self) -> dict[str, Any]:
        """Options of attention that do not belong to a cache."""
        own = ("causal", "window", "distinct")
        options = {n: value for n, value in self._options.items() if n not in own}
        return options | dict(sink=own_part(self.sink))
