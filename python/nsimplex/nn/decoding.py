"""How an attention layer goes on from a cache, for every selection that has one."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from .._arguments import describe
from ..kv_cache import IndexedCache, KeyValueCache, LayerCache
from ..separable_attention import SeparableCache
from ..static_cache import StaticCache
from .checks import require
from .heads import own_part
from .key_tables import EVERYWHERE
from .select import Linear, Neighbours, part_of
from .selecting import SelectedTuples

_Cache = TypeVar("_Cache", bound=LayerCache)


class CachedTuples(SelectedTuples):
    """The part of an attention layer that decodes."""

    has_slots = True  #: whether a layer without ``select`` and ``orders`` takes a StaticCache

    def _require_cacheable(self) -> None:
        at = f"[{type(self).__name__}] "
        require(
            self._options["causal"] and not self.context_dims,
            f"{at}cache: only causal self-attention can go on from one",
        )
        distinct = self._options["distinct"]
        require(distinct == "none", f"{at}distinct: expected none with a cache, got {distinct!r}")
        require(not self.face, f"{at}face: expected False with a cache, got True")
        require(
            part_of(self.select, Neighbours) is None,
            f"{at}select: Neighbours has no cache, because its graph is one of all tokens",
        )

    def _cache_window(self, unbounded: int) -> list[int]:
        window = self._options["window"]
        entries = [window] * self.order if isinstance(window, (int, type(None))) else window
        lefts = [entry[0] if isinstance(entry, (list, tuple)) else entry for entry in entries]
        return [unbounded if left in (None, -1) else left for left in lefts]

    def _empty_cache(self, unbounded: int) -> LayerCache:
        self._require_cacheable()
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

    def _continue_slots(self, x: Tensor, cache: StaticCache, counts: Tensor | None) -> Tensor:
        self._require_slots()
        self._require_own_window(cache)
        positions = cache.positions(x.size(1), counts)
        q, keys, values = self._heads_of(x, positions=positions)
        options = self._cached_options()
        return self._join_heads(cache.attend(q, keys, values, counts=counts, **options))

    def _cached_options(self) -> dict[str, Any]:
        """Options of attention that do not belong to a cache."""
        own = ("causal", "window", "distinct")
        options = {n: value for n, value in self._options.items() if n not in own}
        return options | dict(sink=own_part(self.sink))

    def _require_slots(self) -> None:
        require(
            self.select is None,
            f"[{type(self).__name__}] select: expected none with a StaticCache",
        )
