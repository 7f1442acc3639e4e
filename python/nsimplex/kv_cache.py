"""Keys and values kept between calls, for decoding with causal N-simplicial attention."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from ._arguments import checked_methods
from ._library import classes
from ._paths import operator_path
from .attention import attention

__all__ = ["IndexedCache", "KeyValueCache", "LayerCache", "LayerCaches"]


@checked_methods
class LayerCache:
    """What one layer keeps of the tokens so far: the base of the caches, each of which says what
    that is."""

    def __init__(self, cache) -> None:
        self._cache = cache

    @property
    def window(self) -> list[int]:
        return self._cache.window()

    @property
    def position(self) -> int:
        """Tokens appended so far: the position of the next one."""
        return self._cache.position()

    @property
    def nbytes(self) -> int:
        """Memory of what is kept."""
        return self._cache.bytes()

    def reset(self) -> None:
        """Forgets all tokens, shapes and storage."""
        self._cache.reset()

    def select(self, entries: Tensor) -> None:
        """Replaces the batch by entries [B'] (int64) of it; repeated ones are copied (beam
        search)."""
        self._cache.select(entries)

    def state_dict(self) -> dict[str, Tensor]:
        """``position`` and what is kept (``keys.<m>`` and ``values.<m>`` in the order of positions,
        ``states.<m>``): plain tensors, so that torch.load(..., weights_only=True) reads what
        torch.save wrote."""
        return dict(self._cache.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continues where :meth:`state_dict` was taken, on the device of its tensors."""
        self._cache.load_state(state)


@checked_methods
class KeyValueCache(LayerCache):
    """Keys and values of the tokens so far, one ring of the last ``window[m]`` of them an axis.

    >>> cache = KeyValueCache([32, 512])
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # the prompt, in chunks of any length
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # then one token after the other

    gives what :func:`nsimplex.attention` of the whole sequence with ``causal=True`` and these
    windows gives, to rounding, however the sequence is cut.

    Storage grows by doubling up to the windows, at most B Hk (D + Dv) sum_m w_m elements (twice
    that while an unbounded axis grows). A single query attends to the rings as they lie, without a
    copy; a longer chunk to a copy of the last w_m - 1 keys in order, followed by its own. Shapes,
    dtype and device are those of the first chunk; batch entries and axes advance together. For
    inference only: tensors that require a gradient are refused while gradients are recorded. Keys
    with positions (rotary) are turned before they come here; ``position`` counts them. The C++
    class is nsimplex/cache.h.

    Args:
        window: one int an axis: keys that the axis holds and a query sees, its own position
            included; -1: all.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line; the cache is as it was.
    """

    def __init__(self, window: Sequence[int]) -> None:
        super().__init__(classes.KeyValueCache([*window]))

    def append(self, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Appends a chunk: N keys [B, Hk, t, D] and N values [B, Hk, t, Dv], t >= 0."""
        self._cache.append([*keys], [*values])

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor] | None = None,
        values: Sequence[Tensor] | None = None,
        **options,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Appends the chunk of ``keys`` and ``values`` and attends with its queries [B, Hq, t, D].

        Without keys: attends with the queries of the last t positions appended; t > 1 only while no
        axis has dropped a key. ``options`` and the result are those of :func:`nsimplex.attention`,
        without ``causal``, which is implied, ``window``, which is the cache's, and what counts keys
        by their place in a tensor (key_lengths, key_masks, cu_seqlens, mask, distinct, dropout_p).
        """
        for name, value in options.items():
            if name in ("causal", "window"):
                raise ValueError(f"[KeyValueCache] {name}: belongs to the cache")
            if name == "layout" and value != "bhtd":
                raise ValueError(
                    "[KeyValueCache] layout: the cache keeps [B, heads, T, D], expected 'bhtd'"
                )
            given = isinstance(value, Tensor) or value not in (None, "none", 0.0)
            if name in _BY_PLACE and given:
                raise NotImplementedError(
                    f"[KeyValueCache] {name}: counts keys by their place, which moves in a ring"
                )
        if (keys is None) != (values is None):
            raise ValueError("[KeyValueCache] attend: expected keys and values, or neither")
        if keys is None:
            keys, values, window = self._cache.view(query)
        else:
            keys, values, window = self._cache.extend(query, [*keys], [*values])
        pairs = [*zip(window[::2], window[1::2])]  # empty: every query sees every key
        return attention(query, keys, values, causal=bool(pairs), window=pairs or None, **options)


class IndexedCache(LayerCache):
    """What a layer that chooses its keys keeps: keys and values of all tokens, the rows its indexer
    scores them by and, where it attends along paths, the keys that every token chose. For inference
    only."""

    def __init__(self, order: int) -> None:
        super().__init__(classes.IndexedCache(order))

    def extend(
        self, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Appends a chunk: the keys and values of all tokens."""
        return self._cache.extend(query, [*keys], [*values])

    def append_index(self, rows: Tensor) -> Tensor:
        """Appends rows [B, H, t, C] of the indexer: those of all tokens."""
        return self._cache.append_index(rows)

    def append_table(self, chosen: Tensor) -> Tensor:
        """Appends chosen keys [B, t, k]: those of all tokens."""
        return self._cache.append_table(chosen)


# Options of the operator that name keys by their index.
_BY_PLACE = ("key_lengths", "key_masks", "cu_seqlens", "mask", "distinct", "dropout_p")


@checked_methods
class LayerCaches:
    """The caches of a model's layers, which advance together: ``caches[i]`` is that of layer i."""

    def __init__(self, layers: Sequence[LayerCache]) -> None:
        self._layers = [*layers]
        self._caches = classes.LayerCaches([layer._cache for layer in self._layers])

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, layer: int) -> LayerCache:
        return self._layers[layer]

    @property
    def position(self) -> int:
        """Tokens appended so far, of the first layer."""
        return self._caches.position()

    @property
    def nbytes(self) -> int:
        return self._caches.bytes()

    def reset(self) -> None:
        self._caches.reset()

    def select(self, entries: Tensor) -> None:
        """:meth:`KeyValueCache.select` of every layer."""
        self._caches.select(entries)

    def state_dict(self) -> dict[str, Tensor]:
        """Every layer's state under ``layers.<i>.``."""
        return dict(self._caches.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._caches.load_state(state)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the state as a safetensors file, atomically; the C++ library reads it too."""
        self._caches.save(operator_path(path))

    def load(self, path: str | os.PathLike, device: torch.device | str = "cpu") -> None:
        """Continues where :meth:`save` was called; RuntimeError for a file that does not fit."""
        self._caches.load(operator_path(path), torch.device(device))
