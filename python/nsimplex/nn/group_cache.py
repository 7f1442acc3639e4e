"""The cache of a layer whose heads have different orders."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..kv_cache import KeyValueCache, LayerCache


class GroupCache(LayerCache):
    """One cache per order, which advance together."""

    def __init__(self, caches: Sequence[LayerCache]) -> None:
        super().__init__(None, caches)
        self.caches = [*caches]

    def _parts(self) -> list[LayerCache]:
        return self.caches

    @property
    def window(self) -> list[int]:
        return [window for cache in self.caches for window in cache.window]

    @property
    def position(self) -> int:
        return self.caches[0].position

    @property
    def nbytes(self) -> int:
        return sum(cache.nbytes for cache in self.caches)

    def reset(self) -> None:
        for cache in self.caches:
            cache.reset()

    def select(self, entries: Tensor) -> None:
        for cache in self.caches:
            cache.select(entries)

    def crop(self, length: int) -> None:
        """As :meth:`KeyValueCache.crop`, for all orders or for none."""
        states = [cache.state_dict() for cache in self.caches]
        try:
            for cache in self.caches:
                if not isinstance(cache, KeyValueCache):
                    raise ValueError(
                        "[GroupCache] crop: expected a layer without select, got a "
                        f"{type(cache).__name__}"
                    )
                cache.crop(length)
        except (ValueError, TypeError):
            for cache, state in zip(self.caches, states):
                cache.load_state_dict(state)
            raise

    def state_dict(self) -> dict[str, Tensor]:
        """The state of every cache, under ``groups.<i>.``."""
        return {
            f"groups.{i}.{name}": value
            for i, cache in enumerate(self.caches)
            for name, value in cache.state_dict().items()
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for i, cache in enumerate(self.caches):
            start = f"groups.{i}."
            own = {name: value for name, value in state.items() if name.startswith(start)}
            cache.load_state_dict({name[len(start) :]: value for name, value in own.items()})
