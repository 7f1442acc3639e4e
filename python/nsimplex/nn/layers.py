"""The attention layer.

Symbols: B batch, T sequence length, C = dim the model width, N = order, Hq query heads,
    Hk key/value heads, D head dim. Weights are applied as x W^T.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import Distinct, Form, LearnedReduce, Norm, Normalizer
from .._options import TAKEN, Scale, Window
from .._sequence_shards import sequence_shards
from ..kv_cache import LayerCache
from ..static_cache import StaticCache
from .checks import (
    factory,
    require,
    require_positive,
    require_rows,
    require_whole,
    require_window,
)
from .decoding import CachedTuples
from .group_cache import GroupCache
from .indexer import Indexer
from .key_tables import Places, neighbour_table
from .layer_options import (
    DEFAULT_ORDER,
    check_augment,
    check_heads,
    check_layer,
    check_orders,
    indexer_options,
    rotary_is_relative,
)
from .place_checks import require_places
from .select import Neighbours, Select, edges_of, part_of
from .slots import GroupSlots
from .weights import initialize as _initialize

__all__ = ["RMSNorm", "SimplicialAttention", "_initialize"]


@checked_methods
class RMSNorm(nn.RMSNorm):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last axis."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        require_whole("[RMSNorm] ", dim=dim)
        require_positive("[RMSNorm] ", eps=eps)
        super().__init__(dim, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        require_rows("RMSNorm", "x", x, self.normalized_shape[0])
        return super().forward(x)


@checked_methods
class SimplicialAttention(CachedTuples):
    """N-simplicial attention with its projections.

    q = x Wq, k^(m) = c^(m) Wk^(m), v^(m) = c^(m) Wv^(m), y = concat_heads(attention(q, k, v)) Wo,
    with c^(m) = x, or the m-th context tensor if ``context_dims`` gives N widths.

    Parameters: without contexts ``qkv.weight`` [(Hq + 2 N Hk) D, C], rows q, k1..kN, v1..vN; with
        contexts ``q.weight`` and ``kv.<m>.weight`` [2 Hk D, context_dims[m]], rows k, v;
        ``output.weight`` [C, Hq D]. With ``bias`` also the ``bias`` of each. "softmax_sink" has
        ``sink`` [Hq], which starts at 0. A learned reducer has ``reducer_w1``, ``reducer_b1``, ..,
        shaped as in :func:`nsimplex.sparse_attention`. TopK and Path have ``indexer.*``. With
        ``orders``, ``groups.<i>.*`` are the parameters of the heads of the i-th smallest order.

    Args:
        dim: C, width of input and output.
        heads, kv_heads, head_dim: Hq; Hk (a divisor of Hq, 0: Hq); D (0: dim / heads).
        order: N; 1 is ordinary attention.
        context_dims: empty for self-attention, else one width per axis.
        norm: "none", "qk" or "qkv": which projections are RMS-normalised (per head, no gain) before
            attention. Only "qkv" with scale="unit" has the sensitivity guarantee.
        scale, softcap, causal, window, form, distinct: as in :func:`nsimplex.attention`.
        reduce: as in :func:`nsimplex.attention`; beside chosen keys also "mlp" or "mlp_symmetric"
            (:func:`nsimplex.sparse_attention`), whose weights belong to the layer.
        unit_layer: divide the output by 2N + 1, the number of projections of x. Suppose that
            scale="unit", x has unit RMS, and the projections have RMS norm at most 1. Then the
            sensitivity of the layer is at most 1 with this option and at most 2N + 1 without it.
        rotary: rotate q and every k by their positions (:func:`nsimplex.rotary`). Form
            "determinant" uses chunks of N + 1 channels, and its logits then depend on relative
            positions alone. Form "product" uses pairs of channels. It has that invariance for N = 1
            only, so order >= 2 is refused unless ``allow_non_invariant``.
        normalizer: as in :func:`nsimplex.attention`; "softmax_sink" learns one logit per head.
            Beside chosen keys "softmax" or "softmax_sink".
        face: one softmax per face (:func:`nsimplex.face_attention`).
        augment: as in :func:`nsimplex.attention`: True, or axes.
        dropout: share of tuples whose weight is dropped while the layer trains.
        bias: whether the projections have biases.
        select: which tuples are computed. None: all tuples in the window. Else :class:`TopK`,
            :class:`Path`, :class:`Neighbours`, :class:`Linear` or :class:`Union`, without window,
            face, augment, distinct, softcap, dropout and contexts. :class:`Linear` takes a
            window, and ignores ``scale``.
        orders: one order per head, instead of ``order``. The heads of one order are computed
            together. The layer adds the outputs of the orders. Rotary positions then apply to the
            orders that allow them; there must be at least one. A window is None, one int, or one
            entry per axis of the highest order, of which heads of order n have the last n.
        device, dtype: of the parameters.

    Raises:
        ValueError, TypeError: an option that does not fit, or does not go with another, by name.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        kv_heads: int = 0,
        head_dim: int = 0,
        order: int = DEFAULT_ORDER,
        context_dims: Sequence[int] = (),
        norm: Norm = "none",
        scale: Scale = "standard",
        causal: bool = False,
        window: Window = None,
        form: Form = "product",
        reduce: LearnedReduce = "product",
        unit_layer: bool = False,
        rotary: bool = False,
        rotary_base: float = 10000.0,
        allow_non_invariant: bool = False,
        normalizer: Normalizer = "softmax",
        face: bool = False,
        augment: bool | Sequence[int] | None = None,
        distinct: Distinct = "none",
        dropout: float = 0.0,
        bias: bool = False,
        select: Select | None = None,
        orders: Sequence[int] | None = None,
        softcap: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        at = f"[{type(self).__name__}] "
        options: dict[str, Any] = dict(
            order=order,
            context_dims=context_dims,
            norm=norm,
            scale=scale,
            causal=causal,
            window=window,
            form=form,
            reduce=reduce,
            unit_layer=unit_layer,
            rotary=rotary,
            rotary_base=rotary_base,
            allow_non_invariant=allow_non_invariant,
            normalizer=normalizer,
            face=face,
            augment=augment,
            distinct=distinct,
            dropout=dropout,
            bias=bias,
            select=select,
            softcap=softcap,
        )
        kv_heads, head_dim = check_heads(at, dim, heads, kv_heads, head_dim)
        place = factory(at, device, dtype)
        if orders is None:
            check_layer(at, head_dim, options)
        else:
            orders = check_orders(at, orders, heads, kv_heads, options)
            options["order"] = order = max(orders)
            require_window(type(self).__name__, window, order)
            check_augment(at, options)
        self.dim, self.heads, self.kv_heads, self.head_dim = dim, heads, kv_heads, head_dim
        self.order, self.norm, self.rotary, self.rotary_base = order, norm, rotary, rotary_base
        self.context_dims = tuple(context_dims)
        self.unit_layer, self.face, self.dropout, self.select = unit_layer, face, dropout, select
        self.orders = None if orders is None else tuple(orders)
        #: Whether forward stores ``pairs``: (q, k^(1)), detached, for the :class:`Indexer` of a
        #: later layer.
        self.keep_pairs = False
        self._options = {name: value for name, value in options.items() if name in TAKEN["layer"]}
        self._start_selecting(select)
        if self.orders is not None:
            self._make_groups(options, place)
            self._made = True
            return
        self._make_projections(bias, place)
        self._reset_projections(None, 1.0)
        known = inspect.signature(Indexer.__init__).parameters
        index = indexer_options(at, select, {n: p for n, p in known.items() if n not in _GIVEN})
        if index is not None:
            self.indexer = Indexer(dim, **index, **place)
        self._make_head_parameters(normalizer, reduce, place)
        self._reset_head_parameters(None)
        self.register_buffer("neighbours", None, persistent=False)
        self.register_load_state_dict_post_hook(_place_again)
        self._place_neighbours()
        self._made = True

    def _make_groups(self, options: dict, place: dict) -> None:
        """One layer for the heads of each order."""
        assert self.orders is not None
        shared = self.heads // self.kv_heads
        rotary: bool = options["rotary"]
        augment: Any = options["augment"]
        window: Any = options["window"]
        self.groups = nn.ModuleList()
        for order in sorted(set(self.orders)):
            heads = self.orders.count(order)
            relative = rotary_is_relative(order, options["form"])
            listed: Any = None if augment is None or isinstance(augment, bool) else augment
            options |= dict(
                order=order,
                window=window if window is None or isinstance(window, int) else window[-order:],
                augment=augment if listed is None else [axis for axis in listed if axis < order],
                rotary=rotary and (relative or options["allow_non_invariant"]),
            )
            self.groups.append(
                SimplicialAttention(
                    self.dim,
                    heads,
                    kv_heads=heads // shared,
                    head_dim=self.head_dim,
                    **options,
                    **place,
                )
            )
        self._reset_groups(None, 1.0)

    def _reset_groups(self, generator: torch.Generator | None, residual_gain: float) -> None:
        for group in self._groups():
            share = (group.heads / self.heads) ** 0.5  # as rows of one projection of all heads
            group.reset_parameters(generator, residual_gain * share)

    def _place_neighbours(self) -> None:
        part = part_of(self.select, Neighbours)
        if part is None or part.adjacency is None:
            return
        table = neighbour_table(part.adjacency, part.nodes, part.self_loops)
        known = None if self.neighbours is None else self.neighbours.device
        away = known is None or known.type == "meta"
        self.neighbours = table.to(self.output.weight.device if away else known)

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        """Draw new weights. The table of neighbours is computed again, after ``to_empty`` too."""
        if self.orders is not None:
            return self._reset_groups(generator, residual_gain)
        self._reset_projections(generator, residual_gain)
        if hasattr(self, "indexer"):
            self.indexer.reset_parameters(generator)
        self._reset_head_parameters(generator)
        self._place_neighbours()

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """An empty cache for decoding.

        Without ``select``, it holds the keys in the layer's windows, and on an axis without a
        window ``unbounded`` keys; -1: all. :class:`Linear` keeps states of fixed size. The other
        selections keep all keys, because any token may become a chosen key, and so do ``distinct``
        and ``face``.
        """
        if self.orders is not None:
            return GroupCache([group.make_cache(unbounded) for group in self._groups()])
        return self._empty_cache(unbounded)

    def make_static_cache(self, batch: int, slots: int) -> StaticCache:
        """An empty :class:`nsimplex.StaticCache` for ``batch`` sequences of at most ``slots``
        tokens, in the dtype and on the device of the weights. Its sequences may have different
        lengths, and a step compiles. A step of chosen keys scores all slots, and one of
        :class:`Linear` computes its sums over all slots."""
        if self.orders is not None:
            return GroupSlots([group.make_static_cache(batch, slots) for group in self._groups()])
        weight = self.output.weight
        return self._empty_slots(
            batch=batch,
            slots=slots,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            dtype=weight.dtype,
            device=weight.device,
        )

    def forward(
        self,
        x: Tensor,
        contexts: Sequence[Tensor] = (),
        key_lengths: Tensor | None = None,
        *,
        cache: LayerCache | StaticCache | None = None,
        counts: Tensor | None = None,
        positions: Tensor | None = None,
        adjacency: Tensor | None = None,
        edge_index: Tensor | None = None,
        key_masks: Tensor | Sequence[Tensor] | None = None,
        cu_seqlens: Tensor | None = None,
        mask: Tensor | None = None,
        pair_masks: Sequence[Tensor] | None = None,
    ) -> Tensor:
        """x [B, T, C], contexts[m] [B, T_m, context_dims[m]], key_lengths int64 [N, B] or [B] ->
        [B, T, C].

        key_lengths, key_masks, cu_seqlens, mask and pair_masks are those of
        :func:`nsimplex.attention`. One key mask bool [B, T] serves all axes. Beside chosen keys
        there is one length per sequence and one key mask, and no mask of tuples or pairs.

        With a cache (:meth:`make_cache`), x holds the next T tokens of a causal self-attention. To
        rounding, the result equals the same rows of the whole sequence's result. Use a cache for
        inference only. With a :meth:`make_static_cache`, counts, int64 [B], says how many of the T
        tokens of each sequence are real; padding follows them, and its outputs mean nothing.

        positions and adjacency serve self-attention among some tokens of a sequence. positions,
        int64 [B, T] and rising, are the tokens' positions in the sequence. Rotary, causal mask and
        windows use them. adjacency, bool [B, T, T] or [T, T], marks the tokens that each token may
        attend to, on every axis. Without ``select``, a window with positions, or an adjacency, is
        a mask of pairs on every axis. :class:`Neighbours` takes the adjacency in any of its forms,
        or as the edge_index of PyTorch Geometric instead.
        """
        if edge_index is not None:
            adjacency = edges_of(type(self).__name__, edge_index, adjacency)
        places = Places(key_lengths, key_masks, cu_seqlens, mask, positions, adjacency, pair_masks)
        name = type(self).__name__
        if cache is not None:
            given = places.given()
            require(not given, f"[{name}] {' and '.join(given)}: not with a cache")
        count = len(self.context_dims)
        require(
            len(contexts) == count,
            f"[{name}] contexts: expected {count} tensors, got {len(contexts)}",
        )
        require(
            counts is None or cache is not None,
            f"[{name}] counts: expected none without a StaticCache",
        )
        shards = sequence_shards()
        require(
            shards is None or (cache is None and count == 0),
            f"[{name}] cache and contexts: expected none under context_parallel",
        )
        if self.orders is not None:
            return self._add_groups(x, places, cache, counts)
        if cache is not None:
            return self._continue(x, cache, counts)
        if shards is not None:
            self._check_input(x)
            return shards.attend(self, x, places)
        require(
            count == 0 or (positions is None and adjacency is None),
            f"[{name}] positions and adjacency: not with contexts",
        )
        self._check_input(x)
        if count:
            parts = self._heads_first(self._project_contexts(x, contexts))
            return self._join_heads(self._attend_to_window(*parts, places))
        adjacency = require_places(name, x, places, part_of(self.select, Neighbours) is None)
        return self._attend_self(x, places._replace(adjacency=adjacency))

    def _groups(self) -> Iterator[SimplicialAttention]:
        for group in self.groups:
            assert isinstance(group, SimplicialAttention)
            yield group

    def _add_groups(
        self,
        x: Tensor,
        places: Places,
        cache: LayerCache | StaticCache | None,
        counts: Tensor | None,
    ) -> Tensor:
        caches = [None] * len(self.groups) if cache is None else self._caches_of(cache)
        outs: list[Tensor] = [
            group(x, **places._asdict(), cache=each, counts=counts)
            for group, each in zip(self.groups, caches)
        ]
        return sum(outs[1:], outs[0])

    def _caches_of(self, cache: LayerCache | StaticCache) -> Sequence[LayerCache | StaticCache]:
        if isinstance(cache, (GroupCache, GroupSlots)) and len(cache.caches) == len(self.groups):
            return cache.caches
        raise ValueError(
            f"[{type(self).__name__}] cache: expected one of this layer's make_cache()"
        )


def _place_again(layer: SimplicialAttention, keys: object) -> None:
    """Computes the table of neighbours again once weights are loaded: it is in no state dict, and a
    layer that was made on the device meta has none yet."""
    layer._place_neighbours()


#: Arguments of the indexer that the layer gives.
_GIVEN = ("self", "dim", "device", "dtype")
