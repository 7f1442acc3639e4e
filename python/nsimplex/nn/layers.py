"""The attention module, and helpers for all modules.

Symbols: B batch, T sequence length, C = dim the model width, N = order, Hq query heads,
    Hk key/value heads, D head dim. Weights are applied as x W^T; there are no biases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods
from ..attention import attention
from ..kv_cache import KeyValueCache, LayerCache
from ..rotary import rotary as rotate
from .checks import (
    MOST_AXES,
    require,
    require_name,
    require_places,
    require_positive,
    require_rows,
    require_scale,
    require_whole,
    require_window,
)
from .induced import induced

_HEAD_NORM_EPSILON = 1e-6


def _initialize(weight: Tensor, generator: torch.Generator | None, gain: float = 1.0) -> None:
    """Normal with variance gain^2 / (3 fan_in): see nsimplex::Initialization."""
    with torch.no_grad():
        weight.normal_(0.0, gain / math.sqrt(3.0 * weight.size(1)), generator=generator)


def _unit_rms(heads: Tensor) -> Tensor:
    return F.rms_norm(heads, (heads.size(-1),), eps=_HEAD_NORM_EPSILON)


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
class SimplicialAttention(nn.Module):
    """N-simplicial attention with its projections.

    q = x Wq, k^(m) = c^(m) Wk^(m), v^(m) = c^(m) Wv^(m), y = concat_heads(attention(q, k, v)) Wo,
    with c^(m) = x, or the m-th context tensor if ``context_dims`` gives N widths.

    Parameters: without contexts ``qkv.weight`` [(Hq + 2 N Hk) D, C], rows q, k1..kN, v1..vN; with
        contexts ``q.weight`` and ``kv.<m>.weight`` [2 Hk D, context_dims[m]], rows k, v;
        ``output.weight`` [C, Hq D].

    Args:
        dim: C, width of input and output.
        heads, kv_heads, head_dim: Hq; Hk (a divisor of Hq, 0: Hq); D (0: dim / heads).
        order: N; 1 is ordinary attention.
        context_dims: empty for self-attention, else one width per axis.
        norm: "none", "qk" or "qkv": which projections are RMS-normalised (per head, no gain) before
            attention. Only "qkv" with scale="unit" has the sensitivity guarantee.
        scale, causal, window, form, reduce: as in :func:`nsimplex.attention`.
        unit_layer: divide the output by 2N + 1, the number of projections of x. Suppose that
            scale="unit", x has unit RMS, and the projections have RMS norm at most 1. Then the
            sensitivity of the layer is at most 1 with this option and at most 2N + 1 without it.
        rotary: rotate q and every k by their positions (:func:`nsimplex.rotary`). Form
            "determinant" uses chunks of N + 1 channels, and its logits then depend on relative
            positions alone. Form "product" uses pairs of channels. It has that invariance for N = 1
            only, so order >= 2 is refused unless ``allow_non_invariant``.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        kv_heads: int = 0,
        head_dim: int = 0,
        order: int = 2,
        context_dims: Sequence[int] = (),
        norm: str = "none",
        scale: str | float | tuple[float, float] = "standard",
        causal: bool = False,
        window=None,
        form: str = "product",
        reduce: str = "product",
        unit_layer: bool = False,
        rotary: bool = False,
        rotary_base: float = 10000.0,
        allow_non_invariant: bool = False,
    ) -> None:
        super().__init__()
        at = "[SimplicialAttention] "
        require_whole(at, dim=dim, heads=heads)
        require_whole(at, most=MOST_AXES, order=order)
        require_whole(at, least=0, head_dim=head_dim, kv_heads=kv_heads)
        if head_dim == 0:
            require(dim % heads == 0, f"{at}heads: expected a divisor of dim {dim}, got {heads}")
            head_dim = dim // heads
        kv_heads = kv_heads or heads
        require(
            kv_heads > 0 and heads % kv_heads == 0,
            f"{at}kv_heads: expected a divisor of heads {heads}, got {kv_heads}",
        )
        require(
            len(context_dims) in (0, order),
            f"{at}context_dims: expected 0 or {order} entries, got {len(context_dims)}",
        )
        for width in context_dims:
            require_whole(at, context_dims=width)
        require_name(at, "norm", norm, ("none", "qk", "qkv"))
        require_name(at, "form", form, ("product", "determinant"))
        require_name(at, "reduce", reduce, ("product", "sum", "mean"))
        require_scale(at, scale)
        require_window("SimplicialAttention", window, order)
        require_positive(at, rotary_base=rotary_base)
        require(
            form == "product" or head_dim % (order + 1) == 0,
            f"{at}head_dim: expected a multiple of order + 1 = {order + 1} for form determinant, "
            f"got {head_dim}",
        )
        if rotary:
            require(not context_dims, f"{at}rotary: positions of different contexts do not compare")
            require(
                order == 1 or form == "determinant" or allow_non_invariant,
                f"{at}rotary: form product of order {order} does not depend on relative positions "
                "alone; set allow_non_invariant to use it all the same",
            )
            require(
                head_dim % 2 == 0 or form == "determinant",
                f"{at}rotary: expected an even head_dim, got {head_dim}",
            )

        self.dim, self.heads, self.kv_heads, self.head_dim = dim, heads, kv_heads, head_dim
        self.order, self.norm, self.rotary, self.rotary_base = order, norm, rotary, rotary_base
        self.context_dims = tuple(context_dims)
        self.unit_layer = unit_layer
        #: Whether forward stores ``pairs``: (q, k^(1)), detached, for the :class:`Indexer` of a
        #: later layer.
        self.keep_pairs = False
        self.pairs: tuple[Tensor, Tensor] | None = None
        self.attention_options = dict(
            causal=causal, window=window, form=form, reduce=reduce, scale=scale
        )
        if self.context_dims:
            self.q = nn.Linear(dim, heads * head_dim, bias=False)
            self.kv = nn.ModuleList(
                nn.Linear(width, 2 * kv_heads * head_dim, bias=False) for width in self.context_dims
            )
        else:
            self.qkv = nn.Linear(dim, (heads + 2 * order * kv_heads) * head_dim, bias=False)
        self.output = nn.Linear(heads * head_dim, dim, bias=False)
        self.reset_parameters()

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        for projection in (self.q, *self.kv) if self.context_dims else (self.qkv,):
            _initialize(projection.weight, generator)
        _initialize(self.output.weight, generator, residual_gain)

    def _check_input(self, x: Tensor) -> None:
        require_rows(type(self).__name__, "x", x, self.dim, 3)

    def _project_self(self, x: Tensor, **places) -> list[Tensor]:
        self._check_input(x)
        axes = self.order * self.kv_heads
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))
        qk, v = heads.split((self.heads + axes, axes), 2)
        if self.norm != "none":
            qk = _unit_rms(qk)
        if self.norm == "qkv":
            v = _unit_rms(v)
        if self.rotary:
            chunk = self.order + 1 if self.attention_options["form"] == "determinant" else 2
            qk = rotate(qk.transpose(1, 2), chunk=chunk, base=self.rotary_base, **places).transpose(
                1, 2
            )
        return [
            *qk.split([self.heads] + [self.kv_heads] * self.order, 2),
            *v.split(self.kv_heads, 2),
        ]

    def _project_contexts(self, x: Tensor, contexts: Sequence[Tensor]) -> list[Tensor]:
        self._check_input(x)
        for m, (context, width) in enumerate(zip(contexts, self.context_dims)):
            require_rows("SimplicialAttention", f"contexts[{m}]", context, width, 3)
        q = self.q(x).unflatten(-1, (self.heads, self.head_dim))
        if self.norm != "none":
            q = _unit_rms(q)
        keys, values = [], []
        for projection, context in zip(self.kv, contexts):
            heads = projection(context).unflatten(-1, (2 * self.kv_heads, self.head_dim))
            k, v = heads.split(self.kv_heads, 2)
            keys.append(k if self.norm == "none" else _unit_rms(k))
            values.append(_unit_rms(v) if self.norm == "qkv" else v)
        return [q, *keys, *values]

    def _heads_first(self, parts: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Split a projection's output into (q, keys, values), each [B, heads, T, D]. Store the
        pairs if ``keep_pairs``."""
        q, *rest = (part.transpose(1, 2) for part in parts)
        if self.keep_pairs:
            self.pairs = q.detach(), rest[0].detach()
        return q, rest[: self.order], rest[self.order :]

    def _heads_of(self, x: Tensor, **places) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """(q, keys, values) of self-attention."""
        return self._heads_first(self._project_self(x, **places))

    def _join_heads(self, out: Tensor) -> Tensor:
        """[B, Hq, T, D] -> [B, T, C]."""
        joined = self.output(out.transpose(1, 2).flatten(2))
        return joined / (2 * self.order + 1) if self.unit_layer else joined

    def _refuse_contexts(self, contexts: Sequence[Tensor], key_lengths: Tensor | None) -> None:
        require(
            len(contexts) == 0 and key_lengths is None,
            f"[{type(self).__name__}] contexts and key_lengths: expected none",
        )

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """An empty cache with the layer's windows. An axis without a window holds ``unbounded``
        keys; -1: all."""
        return KeyValueCache(self._cache_window(unbounded))

    def _cache_window(self, unbounded: int) -> list[int]:
        self._require_cacheable()
        window = self.attention_options["window"]
        entries = [window] * self.order if isinstance(window, (int, type(None))) else window
        lefts = [entry[0] if isinstance(entry, (list, tuple)) else entry for entry in entries]
        return [unbounded if left in (None, -1) else left for left in lefts]

    def _require_cacheable(self) -> None:
        require(
            self.attention_options["causal"] and not self.context_dims,
            "[SimplicialAttention] cache: only causal self-attention can go on from one",
        )

    def _continue(self, x: Tensor, cache: LayerCache) -> Tensor:
        self._require_cacheable()
        options = {k: v for k, v in self.attention_options.items() if k not in ("causal", "window")}
        return self._join_heads(cache.attend(*self._heads_of(x, offset=cache.position), **options))

    def forward(
        self,
        x: Tensor,
        contexts: Sequence[Tensor] = (),
        key_lengths: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
        positions: Tensor | None = None,
        adjacency: Tensor | None = None,
    ) -> Tensor:
        """x [B, T, C], contexts[m] [B, T_m, context_dims[m]], key_lengths int64 [N, B] or [B] ->
        [B, T, C].

        With a cache (:meth:`make_cache`), x holds the next T tokens of a causal self-attention. To
        rounding, the result equals the same rows of the whole sequence's result. Use a cache for
        inference only.

        positions and adjacency serve self-attention among some tokens of a sequence. positions,
        int64 [B, T] and rising, are the tokens' positions in the sequence. Rotary, causal mask and
        windows use them. adjacency, bool [B, T, T] or [T, T], marks the tokens that each token may
        attend to, on every axis. A window with positions, or an adjacency, costs memory for every
        tuple.
        """
        if cache is not None:
            given = key_lengths, positions, adjacency
            require(
                given == (None, None, None),
                "[SimplicialAttention] key_lengths, positions and adjacency: not with a cache",
            )
            return self._continue(x, cache)
        count = len(self.context_dims)
        require(
            len(contexts) == count,
            f"[SimplicialAttention] contexts: expected {count} tensors, got {len(contexts)}",
        )
        require(
            len(contexts) == 0 or (positions is None and adjacency is None),
            "[SimplicialAttention] positions and adjacency: not with contexts",
        )
        places = {} if positions is None else dict(positions=positions)
        if positions is not None or adjacency is not None:
            self._check_input(x)
            adjacency = require_places(x, positions, adjacency)
        parts = self._project_contexts(x, contexts) if contexts else self._project_self(x, **places)
        options = induced(self.attention_options, self.order, positions, adjacency)
        return self._join_heads(
            attention(*self._heads_first(parts), key_lengths=key_lengths, **options)
        )
