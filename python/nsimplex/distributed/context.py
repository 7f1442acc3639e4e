"""Context parallel: the sequence of every attention layer is divided among the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from typing_extensions import Unpack

from .._arguments import checked_methods
from .._choices import Distinct, Unbounded
from .._options import ShardOptions, ShardSelectionOptions, Window, flat_window
from .._sequence_shards import set_sequence_shards
from ..nn.key_tables import Places
from ..nn.layers import SimplicialAttention
from ..routing import topk_keys
from ..separable_attention import FeatureMap, separable_attention
from .exchange import Span, window_spans
from .layer_shards import attend_shard
from .prefix import state_of, with_state
from .shard_attention import attention_of_shards, refuse
from .shards import Shards

__all__ = ["ContextParallel", "context_parallel"]


@checked_methods
class ContextParallel(Shards):
    """A sequence that is divided among the ranks of a group: rank r of R holds tokens
    r T / R, .., (r + 1) T / R - 1.

    :func:`context_parallel` makes and enters it. Every method is called by all ranks together,
    with shards of the same shapes.

    Args:
        group: the ranks, in the order of the sequence; None: all.
        unbounded: "gather" or "ring", see :func:`context_parallel`.

    Attributes:
        rank, ranks: this rank's place, and their number.
        traffic: what every call has sent so far.
    """

    def __init__(self, group: dist.ProcessGroup | None, unbounded: Unbounded = "gather") -> None:
        if unbounded not in get_args(Unbounded):
            raise ValueError(
                f"[context_parallel] unbounded: expected gather or ring, got {unbounded!r}"
            )
        if not dist.is_initialized():
            raise ValueError(
                "[context_parallel] group: expected a process group, got none; call "
                "torch.distributed.init_process_group first"
            )
        every: Any = dist.group.WORLD
        super().__init__(every if group is None else group, unbounded)

    def shard(self, x: Tensor, dim: int = 1) -> Tensor:
        """This rank's part of a whole tensor along its sequence dimension.

        Raises:
            ValueError: the ranks do not divide the length.
        """
        if x.size(dim) % self.ranks:
            raise ValueError(
                f"[context_parallel] x: expected a multiple of {self.ranks} tokens, got "
                f"{x.size(dim)}"
            )
        length = x.size(dim) // self.ranks
        return x.narrow(dim, self.rank * length, length)

    def unshard(self, x: Tensor, dim: int = 1) -> Tensor:
        """Gathers the whole tensor from the parts of all ranks; differentiable."""
        self._require_shards("unshard", x.size(dim), [x], dim)
        return self._fetch("unshard", [x], [dim], [self._everything(x.size(dim))])[0]

    def report(self) -> str:
        """One line per call: the bytes that this rank sent forward and backward."""
        return "\n".join(
            f"{each.operator}: sent {each.sent} bytes in {each.messages} messages, "
            f"{each.returned} bytes of gradients"
            for each in self.traffic
        )

    def tokens(self, length: int) -> Span:
        """The positions of this rank's ``length`` tokens."""
        return self._own(length)

    def attention(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        *,
        causal: bool = False,
        window: Window = None,
        key_lengths: Tensor | None = None,
        key_masks: Sequence[Tensor] | None = None,
        cu_seqlens: Tensor | None = None,
        distinct: Distinct = "none",
        face: bool = False,
        return_lse: bool = False,
        **options: Unpack[ShardOptions],
    ) -> Tensor | tuple[Tensor, Tensor]:
        """:func:`nsimplex.attention` of the whole sequence, for this rank's queries.

        Args:
            query, keys, values: this rank's shards [B, heads, T / R, D], all of one length.
            causal, window, distinct: as there. An axis whose window is bounded on both sides
                fetches the keys before and behind the shard that the window reaches. Other axes
                fetch all keys that their queries see, or go round a ring.
            key_lengths, cu_seqlens: of the whole sequence, the same on every rank.
            key_masks: this rank's shards, bool [B, T / R].
            face: :func:`nsimplex.face_attention` instead.
            options: the others, but ``mask``, ``query_positions`` and ``layout``. Dropout draws
                other tuples than one process does.

        Returns:
            out [B, Hq, T / R, Dv], and lse with ``return_lse``. With ``face``, lse is refused.

        Raises:
            ValueError: an option that needs the whole sequence, or shards of different lengths.
        """
        return attention_of_shards(
            self,
            query,
            keys,
            values,
            causal=causal,
            window=window,
            key_lengths=key_lengths,
            key_masks=key_masks,
            cu_seqlens=cu_seqlens,
            distinct=distinct,
            face=face,
            return_lse=return_lse,
            options={**options},
        )

    def separable_attention(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        *,
        features: FeatureMap = "elu",
        causal: bool = False,
        window: Window = None,
    ) -> Tensor:
        """:func:`nsimplex.separable_attention` of the whole sequence, for this rank's queries.

        An axis without a window sends its state, [B, Hk, R, Dv + 1], for any length; an axis
        with a window sends what it reaches, as in :meth:`attention`.
        """
        name = "separable_attention"
        length, order = query.size(2), len(keys)
        self._require_shards(name, length, [*keys, *values])
        if features is not None:
            from ..separable_attention import _features

            query, keys = _features(name, query, keys, features)
        keys, values = [*keys], [*values]
        flat = flat_window(window, order, name) or [-1, -1] * order
        sides = [(flat[2 * m], 0 if causal else flat[2 * m + 1]) for m in range(order)]
        carried = [m for m in range(order) if sides[m] in ((-1, 0), (-1, -1))]
        items, dims, needs = [], [], []
        for m in range(order):
            if m in carried:
                items.append(state_of(keys[m], values[m]))
                needs.append(self._others(all_ranks=sides[m][1] == -1))
            else:
                items += [keys[m], values[m]]
                needs += [window_spans(self.ranks, length, *sides[m])] * 2
        dims = [2] * len(items)
        fetched = iter(self._fetch(name, items, dims, needs))
        windows: list[tuple[int, int]] = []
        for m in range(order):
            if m in carried:
                others = next(fetched)
                if sides[m][1] == -1:  # the own keys are here
                    before, after = others[:, :, : self.rank], others[:, :, self.rank + 1 :]
                    others = torch.cat([before, after], 2)
                keys[m], values[m] = with_state(others, keys[m], values[m])
                windows.append(sides[m])
                continue
            keys[m], values[m] = next(fetched), next(fetched)
            more = window_spans(self.ranks, length, *sides[m])[self.rank].last
            more -= self._own(length).last
            left, right = sides[m]
            windows.append((-1 if left == -1 else left + more, -1 if right == -1 else right - more))
        whole = all(left == -1 and right == (0 if causal else -1) for left, right in windows)
        return separable_attention(
            query, keys, values, features=None, causal=causal, window=None if whole else windows
        )

    def topk_keys(
        self,
        query: Tensor,
        key: Tensor,
        k: int,
        *,
        causal: bool = False,
        key_lengths: Tensor | None = None,
        **options: Unpack[ShardSelectionOptions],
    ) -> Tensor | tuple[Tensor, Tensor]:
        """:func:`nsimplex.topk_keys` for this rank's queries among the keys of all ranks.

        The keys, which are small, are gathered. query, key, weights and lse are shards; key_lengths
        are those of the whole sequence. The indices are positions in the whole sequence.
        """
        given: dict[str, Any] = {**options}
        refuse("topk_keys", **{n: given.pop(n, None) for n in ("adjacency", "candidates")})
        length = query.size(2)
        self._require_shards("topk_keys", length, [key])
        spans = self._everything(length, causal)
        (key,) = self._fetch("topk_keys", [key], [2], [spans])
        if key_lengths is not None:
            inside = self._inside(key_lengths, 0, spans[self.rank], None)
            given["adjacency"] = inside[:, None].expand(-1, length, -1)
        return topk_keys(query, key, k, causal=causal, **given)

    def attend(self, layer: SimplicialAttention, x: Tensor, places: Places) -> Tensor:
        """The output of an attention layer of nsimplex; the layer itself calls it."""
        return attend_shard(self, self.attention, self.separable_attention, layer, x, places)


@contextmanager
def context_parallel(
    mesh: DeviceMesh | dist.ProcessGroup, *, unbounded: Unbounded = "gather"
) -> Iterator[ContextParallel]:
    """Inside, the input of every attention layer of nsimplex is this rank's shard of a sequence.

    >>> with context_parallel(mesh) as context:
    ...     loss = model.loss(context.shard(tokens), context.shard(targets))
    ...     loss.backward()
    ...     print(context.report())

    Outputs equal those of one process to rounding, and gradients of activations go back to their
    owners. Gradients of parameters are those of the own tokens: average them over the mesh, as
    DistributedDataParallel does. A rank's loss is the mean over its own tokens. With shards of the
    same number of targets, the mean over the ranks is the loss of one process.

    Args:
        mesh: of one dimension, or a process group: the ranks of one sequence, in its order.
        unbounded: how an axis without a window reaches the other ranks. "gather": it fetches all
            keys that its queries see, in memory O(T). "ring": keys go round the ranks, and the
            partial results are merged by their lse, in memory O(T / R), forward and backward. The
            ring takes calls with one such axis, softmax or softmax_sink, and no masks, lengths,
            documents, dropout, ``augment`` or ``distinct``; other calls gather.

    Yields:
        The :class:`ContextParallel`, whose methods also serve calls outside of layers.

    Raises:
        ValueError: a mesh of several dimensions, or a name that does not fit. Layers refuse caches,
            contexts, positions, adjacencies, masks of tuples and graphs.

    Complexity: per layer and direction, an axis with window (left, right) sends at most
        (left - 1 + right) (D + Dv) numbers per batch entry and key head, in one batch of messages
        for all axes; that does not depend on the length. A rank computes T / R queries. With
        bounded windows all ranks have equal work, apart from the ends of the sequence. For a causal
        axis without a window, rank r does (2 r + 1) / R^2 of the work, so that the last rank takes
        2 - 1 / R times the mean.
    """
    if isinstance(mesh, DeviceMesh):
        if mesh.ndim != 1:
            raise ValueError(
                f"[context_parallel] mesh: expected one dimension, got {mesh.ndim}; take one of "
                "them by its name, mesh['name']"
            )
        mesh = mesh.get_group()
    context = ContextParallel(mesh, unbounded)
    before = set_sequence_shards(context)
    try:
        yield context
    finally:
        set_sequence_shards(before)
