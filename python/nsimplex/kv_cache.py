"""Keys and values kept between calls, for decoding with causal N-simplicial attention."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any, Literal, cast, overload

import torch
from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked_methods, describe
from ._library import classes
from ._options import RingCacheOptions, taken
from ._paths import operator_path
from .attention import attention

__all__ = ["IndexedCache", "KeyValueCache", "LayerCache", "LayerCaches"]


@checked_methods
class LayerCache:
    """State that one layer keeps of the tokens so far. This is the base of the caches; each of them
    describes its own state."""

    def __init__(self, cache, *arguments) -> None:
        self._cache = cache
        self._arguments = arguments  # of the constructor, for copies

    def __reduce__(self):
        """Copies and pickles: a new cache with the same state."""
        return type(self), self._arguments, self.state_dict()

    def __setstate__(self, state: dict[str, Tensor]) -> None:
        self.load_state_dict(state)

    def _parts(self) -> list[LayerCache]:
        """The caches with a separate state: more than one where heads have different orders."""
        return [self]

    @property
    def window(self) -> list[int]:
        return self._cache.window()

    @property
    def position(self) -> int:
        """Number of tokens appended so far, which is the position of the next token."""
        return self._cache.position()

    @property
    def nbytes(self) -> int:
        """Memory of the stored state, in bytes."""
        return self._cache.bytes()

    def reset(self) -> None:
        """Forgets all tokens, shapes and storage."""
        self._cache.reset()

    def select(self, entries: Tensor) -> None:
        """Replaces the batch by its entries [B'] (int64). Repeated entries are copied (beam
        search)."""
        self._cache.select(entries)

    def reorder(self, entries: Tensor) -> None:
        """The name that beam searches know for :meth:`select`."""
        self.select(entries)

    def state_dict(self) -> dict[str, Tensor]:
        """``position`` and the stored state (``keys.<m>`` and ``values.<m>`` in the order of
        positions, ``states.<m>``). All values are plain tensors, so torch.load(...,
        weights_only=True) reads a file that torch.save wrote."""
        return dict(self._cache.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Continues from the point at which :meth:`state_dict` was called, on the device of the
        given tensors."""
        self._cache.load_state(state)


@checked_methods
class KeyValueCache(LayerCache):
    """Keys and values of the tokens so far. Each axis has one ring buffer of its last ``window[m]``
    tokens.

    >>> cache = KeyValueCache([32, 512])
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # the prompt, in chunks of any length
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # then one token after the other

    The outputs equal those of :func:`nsimplex.attention` for the whole sequence with
    ``causal=True`` and the same windows, up to rounding, for any division into chunks.

    Storage grows by doubling up to the windows. It takes at most B Hk (D + Dv) sum_m w_m elements
    (twice that while an unbounded axis grows). A single query attends to the ring buffers directly,
    without a copy. A longer chunk attends to a copy of the last w_m - 1 keys in order, followed by
    its own keys. The first chunk fixes shapes, dtype and device. Batch entries and axes advance
    together. For inference only: tensors that require a gradient are refused while gradients are
    recorded. Apply rotary positions to the keys before you append them; ``position`` is the
    position of the next key. The C++ class is in nsimplex/cache.h.

    Args:
        window: one int per axis: the number of keys that the axis keeps and a query sees, its own
            position included; -1: all.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line. The cache does not
            change.
    """

    def __init__(self, window: Sequence[int]) -> None:
        super().__init__(classes.KeyValueCache([*window]), [*window])
        self._accepted = ""  # the options of the last call that attended

    def crop(self, length: int) -> None:
        """Forgets all tokens from position ``length`` on, as speculative decoding does with the
        tokens that it rejects.

        An axis that has dropped keys can be cropped only as far as its window still holds what the
        next query sees: ``window - 1`` keys before ``length``, or all of them. A copy of the
        remaining state is made.

        Raises:
            ValueError: a length below 0 or above :attr:`position`, or keys that were dropped.
        """
        position = self.position
        whole = isinstance(length, int) and not isinstance(length, bool)
        if not whole or not 0 <= length <= position:
            raise ValueError(
                f"[KeyValueCache] length: expected 0 to the position {position}, got "
                f"{describe(length)}"
            )
        if length == position:
            return
        if length == 0:
            self.reset()
            return
        state = self.state_dict()
        for m, window in enumerate(self.window):
            held = position if window < 0 else min(position, window)
            wanted = length if window < 0 else min(length, window)
            if position - held > length - wanted:
                raise ValueError(
                    f"[KeyValueCache] length: expected at least {position - held + wanted}, got "
                    f"{length}: axis {m} has dropped the keys before position {position - held}"
                )
            for kind in ("keys", "values"):
                rows = state[f"{kind}.{m}"]
                last = rows.size(2) - (position - length)
                state[f"{kind}.{m}"] = rows[:, :, last - wanted : last]
        state["position"] = torch.tensor(length)
        self.load_state_dict(state)

    def append(self, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        """Appends a chunk: N keys [B, Hk, t, D] and N values [B, Hk, t, Dv], t >= 0."""
        self._cache.append([*keys], [*values])

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor] | None = ...,
        values: Sequence[Tensor] | None = ...,
        *,
        return_lse: Literal[False] = ...,
        **options: Unpack[RingCacheOptions],
    ) -> Tensor: ...

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor] | None = ...,
        values: Sequence[Tensor] | None = ...,
        *,
        return_lse: Literal[True],
        **options: Unpack[RingCacheOptions],
    ) -> tuple[Tensor, Tensor]: ...

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor] | None = None,
        values: Sequence[Tensor] | None = None,
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Appends the chunk of ``keys`` and ``values`` and attends with its queries [B, Hq, t, D].

        Without keys, it attends with the queries of the last t appended positions. Then t > 1 is
        allowed only while no axis has dropped a key. ``options`` and the result are those of
        :func:`nsimplex.attention`. ``causal`` is implied and ``window`` belongs to the cache, so
        neither is an option. Options that name keys by their index are refused (key_lengths,
        key_masks, cu_seqlens, mask, distinct, dropout_p, query_positions).
        """
        options = taken(
            "ring",
            "KeyValueCache",
            options,
            "in a cache, which keeps [B, heads, T, D] and moves keys from place to place",
            own=("causal", "window"),
        )
        if keys is None and values is None:
            seen = self._cache.view(query)
        elif keys is None or values is None:
            raise ValueError("[KeyValueCache] attend: expected keys and values, or neither")
        else:
            self._check_options(query, [*keys], [*values], options)
            seen = self._cache.extend(query, [*keys], [*values])
        keys, values, window = cast("tuple[list[Tensor], list[Tensor], list[int]]", seen)
        pairs = [*zip(window[::2], window[1::2])]  # empty if every query sees every key
        options |= dict(causal=bool(pairs), window=pairs or None)
        return attention(query, keys, values, **options)

    def _check_options(
        self, query: Tensor, keys: list[Tensor], values: list[Tensor], options: dict[str, Any]
    ) -> None:
        """Refuses wrong options before the chunk is appended, because a ring that has dropped keys
        cannot take a chunk back. A caller who repeats a refused call would append it twice."""
        described = [(n, _kind_of(v) if isinstance(v, Tensor) else v) for n, v in options.items()]
        facts = repr(([*map(_kind_of, (query, *keys, *values))], described))
        if facts == self._accepted:
            return
        try:
            none = [[t[:, :, :0] for t in tensors] for tensors in ([query], keys, values)]
            attention(none[0][0], *none[1:], causal=True, **options)
        except Exception:
            copy.deepcopy(self)._cache.extend(query, keys, values)  # names a chunk that is at fault
            raise
        self._accepted = facts


def _kind_of(tensor: Tensor) -> tuple[Any, ...]:
    """What decides whether an operator takes a tensor."""
    return tensor.dtype, tensor.device, tensor.shape[:2], tensor.shape[3:]


@checked_methods
class IndexedCache(LayerCache):
    """State of a layer that selects its keys. The cache keeps the keys and values of all tokens,
    and the rows by which the indexer scores them. If the layer attends along paths, the cache also
    keeps the keys that every token chose. For inference only."""

    def __init__(self, order: int) -> None:
        super().__init__(classes.IndexedCache(order), order)

    def extend(
        self, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Appends a chunk and returns the keys and values of all tokens."""
        return self._cache.extend(query, [*keys], [*values])

    def append_index(self, rows: Tensor) -> Tensor:
        """Appends rows [B, H, t, C] of the indexer and returns the rows of all tokens."""
        return self._cache.append_index(rows)

    def append_table(self, chosen: Tensor) -> Tensor:
        """Appends chosen keys [B, t, k] and returns the chosen keys of all tokens."""
        return self._cache.append_table(chosen)


@checked_methods
class LayerCaches:
    """The caches of a model's layers, which advance together. ``caches[i]`` is the cache of layer
    i."""

    def __init__(self, layers: Sequence[LayerCache]) -> None:
        self._layers = [*layers]
        parts = [part for layer in self._layers for part in layer._parts()]
        self._caches = classes.LayerCaches([part._cache for part in parts])

    def __reduce__(self):
        return LayerCaches, (self._layers,)

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, layer: int) -> LayerCache:
        return self._layers[layer]

    @property
    def position(self) -> int:
        """Number of tokens appended so far to the first layer."""
        return self._caches.position()

    @property
    def nbytes(self) -> int:
        return self._caches.bytes()

    def reset(self) -> None:
        self._caches.reset()

    def select(self, entries: Tensor) -> None:
        """Calls :meth:`KeyValueCache.select` for every layer."""
        self._caches.select(entries)

    def state_dict(self) -> dict[str, Tensor]:
        """The state of every layer, under ``layers.<i>.``. A layer whose heads have different
        orders counts once for each of them."""
        return dict(self._caches.state())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self._caches.load_state(state)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the state to a safetensors file, atomically. The C++ library can read it too."""
        self._caches.save(operator_path(path))

    def load(self, path: str | os.PathLike, device: torch.device | str = "cpu") -> None:
        """Continues from a file of :meth:`save`. Raises RuntimeError for a file that does not
        fit."""
        self._caches.load(operator_path(path), torch.device(device))
