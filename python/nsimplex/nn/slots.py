"""Caches of fixed size for layers that choose keys, and for layers whose heads have different
orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..static_cache import StaticCache


class ChosenSlots(StaticCache):
    """Slots of a layer that chooses keys. They also hold the rows by which its indexer scores keys,
    and for paths the keys that every token chose."""

    def __init__(
        self, order: int, index: tuple[int, int] | None, width: int | None, *, batch: int, **sizes
    ) -> None:
        super().__init__([-1] * order, batch=batch, **sizes)
        rows, like = self.slots + 1, self.keys[0]
        heads, channels = index or (0, 0)
        self.index = like.new_zeros(batch, heads, rows, channels)
        self.chosen = like.new_full((batch, 1, rows, width or 0), -1, dtype=torch.int64)

    def _stored(self) -> list[Tensor]:
        return [*super()._stored(), self.index, self.chosen]

    def extended(
        self, keys: Sequence[Tensor], values: Sequence[Tensor], tokens: int
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Keys and values of the slots, and ``tokens`` rows behind them that no query sees: paths
        begin at the last rows."""
        if tokens == 1:  # the slot that takes what padding writes
            return [*keys], [*values]
        longer = [F.pad(each[:, :, :-1], (0, 0, 0, tokens)) for each in (*keys, *values)]
        return longer[: len(keys)], longer[len(keys) :]


class GroupSlots(StaticCache):
    """One cache per order, which advance together."""

    def __init__(self, caches: Sequence[StaticCache]) -> None:
        self.caches = [*caches]
        self.window = [width for cache in caches for width in cache.window]
        self.keys = [keys for cache in caches for keys in cache.keys]
        self.values = [values for cache in caches for values in cache.values]
        self.lengths = caches[0].lengths  # which changes in place

    def check(self) -> None:
        for cache in self.caches:
            cache.check()

    def crop(self, length: int | Tensor) -> None:
        for cache in self.caches:
            cache.crop(length)

    def select(self, entries: Tensor) -> None:
        for cache in self.caches:
            cache.select(entries)

    reorder = select

    def reset(self) -> None:
        for cache in self.caches:
            cache.reset()

    def append(self, *_: Any, **__: Any) -> None:
        raise ValueError("[GroupSlots] append: expected a cache of one order; the layer fills this")

    def attend(self, *_: Any, **__: Any) -> Any:
        raise ValueError("[GroupSlots] attend: expected a cache of one order; the layer fills this")
