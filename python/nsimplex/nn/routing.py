"""Modules that choose keys for a sparse layer or tokens for a dense layer."""

from __future__ import annotations

import inspect
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods, describe
from ..rotary import rotary as rotate
from ..routing import indexer_loss, topk_keys
from .checks import (
    require,
    require_lengths,
    require_name,
    require_positive,
    require_rows,
    require_whole,
)
from .layers import SimplicialAttention, _initialize


class IndexSource(NamedTuple):
    """Tensors of the previous attention layer that an indexer reuses, as passed to its attention
    call."""

    query: Tensor  #: [B, Hq, T, D], after rotation by positions
    key: Tensor  #: k^(1), [B, Hk, T, D]
    lse: Tensor | None = None  #: [B, Hq, T] of pairs, for softmax scores; None: computed


class IndexParts(NamedTuple):
    """Inputs of the scores: the tensor arguments of :func:`nsimplex.topk_keys`."""

    query: Tensor
    key: Tensor
    weights: Tensor | None
    lse: Tensor | None


@checked_methods
class Indexer(nn.Module):
    """Chooses k keys per query for a sparse attention layer (:func:`nsimplex.topk_keys`).

    source "light": own projections, q = x Wq with H heads, one key head k = x Wk, w = x Ww.
    source "reuse": q, k^(1) and lse of the previous attention layer (:class:`IndexSource`),
    detached. Here w = 1, or w = x Ww if ``learned``. With softmax scores, w = softplus(x Ww), which
    is not negative.

    No gradient passes through the choice. The parameters learn from :meth:`loss` alone, and its
    gradient reaches only these parameters.

    Parameters: light ``query.weight`` [H D, C], ``key.weight`` [D, C], ``weight.weight`` [H, C];
        reuse none, or ``weight.weight``.

    Args:
        dim: C, width of x.
        heads: H; for "reuse" the query heads of the source.
        index_dim: D of "light".
        source: "light" or "reuse".
        scores: "relu" or "softmax".
        learned: whether "reuse" learns w; "light" always does.
        rotary: "light" rotates its queries and keys by their positions (pairs of channels).
    """

    def __init__(
        self,
        dim: int,
        heads: int = 4,
        *,
        index_dim: int = 32,
        source: str = "light",
        scores: str = "relu",
        learned: bool = False,
        rotary: bool = False,
        rotary_base: float = 10000.0,
    ) -> None:
        super().__init__()
        at = "[Indexer] "
        require_whole(at, dim=dim, heads=heads, index_dim=index_dim)
        require_positive(at, rotary_base=rotary_base)
        require_name(at, "source", source, ("light", "reuse"))
        require_name(at, "scores", scores, ("relu", "softmax"))
        require(
            not rotary or (source == "light" and index_dim % 2 == 0),
            f"{at}rotary: expected source light and an even index_dim, got {source} and "
            f"{index_dim}",
        )
        self.dim, self.heads, self.index_dim = dim, heads, index_dim
        self.source, self.scores = source, scores
        self.rotary, self.rotary_base = rotary, rotary_base
        if source == "light":
            self.query = nn.Linear(dim, heads * index_dim, bias=False)
            self.key = nn.Linear(dim, index_dim, bias=False)
        self.learned = learned or source == "light"
        if self.learned:
            self.weight = nn.Linear(dim, heads, bias=False)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for child in self.children():
            _initialize(child.weight, generator)

    def project(
        self, x: Tensor, source: IndexSource | None = None, *, first_position: int = 0
    ) -> IndexParts:
        """x [B, T, C] -> inputs of the scores. While decoding, the caller puts the keys of earlier
        tokens before ``key``."""
        require_rows("Indexer", "x", x, self.dim, 3)
        weights = None
        if self.learned:
            weights = self.weight(x).transpose(1, 2)
            weights = F.softplus(weights) if self.scores == "softmax" else weights
        if self.source == "reuse":
            require(
                source is not None,
                "[Indexer] source: expected the tensors of the attention layer before; a first "
                "layer has "
                "none and takes source light",
            )
            require(
                source.query.dim() == 4 and source.query.size(1) == self.heads,
                f"[Indexer] source.query: expected {self.heads} heads [B, H, T, D], got "
                f"{list(source.query.shape)}",
            )
            lse = (
                source.lse.detach() if source.lse is not None and self.scores == "softmax" else None
            )
            return IndexParts(source.query.detach(), source.key.detach(), weights, lse)
        query = self.query(x).unflatten(-1, (self.heads, self.index_dim)).transpose(1, 2)
        key = self.key(x).unsqueeze(1)
        if self.rotary:
            turn = dict(base=self.rotary_base, offset=first_position)
            query, key = rotate(query, **turn), rotate(key, **turn)
        return IndexParts(query, key, weights, None)

    def forward(
        self,
        x: Tensor,
        k: int,
        *,
        causal: bool = False,
        source: IndexSource | None = None,
        key_lengths: Tensor | None = None,
        adjacency: Tensor | None = None,
    ) -> Tensor:
        """The table of chosen keys, int64 [B, T, k]: see :func:`nsimplex.topk_keys`."""
        with torch.no_grad():
            query, key, weights, lse = self.project(x, source)
        return topk_keys(
            query,
            key,
            k,
            weights=weights,
            scores=self.scores,
            causal=causal,
            lse=lse,
            key_lengths=key_lengths,
            adjacency=adjacency,
        )

    def loss(
        self,
        x: Tensor,
        query: Tensor,
        keys,
        *,
        causal: bool = False,
        source: IndexSource | None = None,
        indices: Tensor | None = None,
        pattern: str = "product",
        form: str = "product",
        logit_scale: float | None = None,
    ) -> Tensor:
        """Distance between the scores of x and the attention of the layer with ``query`` and
        ``keys``.

        See :func:`nsimplex.indexer_loss`. Without ``indices``, it is the loss of the dense warm-up.
        The gradient reaches the indexer's parameters alone: not x, not the layer, not the source.
        """
        parts = self.project(x.detach(), source)
        return indexer_loss(
            parts.query,
            parts.key,
            query,
            keys,
            weights=parts.weights,
            lse=parts.lse,
            scores=self.scores,
            causal=causal,
            indices=indices,
            pattern=pattern,
            form=form,
            logit_scale=logit_scale,
        )


@checked_methods
class ExpertChoice(nn.Module):
    """Attention among the K tokens with the highest router scores; the other tokens pass unchanged.

    The router scores tokens by s_i = <x_i, w>. In each sequence, the K tokens of highest s are
    chosen and attend among themselves. With f the attention layer, y_i = x_i + s_i f(X_chosen)_i
    for chosen tokens and y_i = x_i for the others. The router learns through s_i. Chosen tokens
    keep their positions, and the layer's rotary, masks and windows use them. Padding is never
    chosen. Among equal scores, the earlier token is chosen.

    The router compares all tokens, so whether a token is chosen depends on later tokens. For this
    reason a causal layer is refused unless ``allow_leak``. The layer is meant for sets and graphs.

    Parameters: ``router.weight`` [1, C] and ``attention.*``.

    Args:
        attention: the layer f, without contexts.
        tokens: K: an int of at least 1, or a float in (0, 1], a share of the real tokens, rounded
            up. A product that is whole except for rounding errors is not rounded up (0.07 of 100 is
            7). If K exceeds the number of real tokens, all are chosen.
        sigmoid: use sigmoid(s_i) instead of s_i as the weight.

    Source: "How Smoothing is N-simplicial Attention?", section 2.3; Raposo et al. (arXiv
        2404.02258).
    """

    def __init__(
        self,
        attention: SimplicialAttention,
        *,
        tokens: int | float,
        sigmoid: bool = False,
        allow_leak: bool = False,
    ) -> None:
        super().__init__()
        at = "[ExpertChoice] "
        whole = isinstance(tokens, int) and not isinstance(tokens, bool)
        require(
            tokens >= 1 if whole else isinstance(tokens, float) and 0 < tokens <= 1,
            f"{at}tokens: expected an int of at least 1 or a share in (0, 1], got "
            f"{describe(tokens)}",
        )
        require(
            isinstance(attention, SimplicialAttention)
            and "positions" in inspect.signature(type(attention).forward).parameters,
            f"{at}attention: expected a layer that attends among selected tokens, as "
            "SimplicialAttention, got "
            f"{describe(attention)}",
        )
        require(not attention.context_dims, f"{at}attention: expected a layer without contexts")
        require(
            allow_leak or not attention.attention_options["causal"],
            f"{at}attention: choosing among all tokens leaks the future into a causal layer; "
            "set allow_leak to use it all the same",
        )
        self.tokens, self.sigmoid = tokens, sigmoid
        self.router = nn.Linear(attention.dim, 1, bias=False)
        self.attention = attention
        _initialize(self.router.weight, None)

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        _initialize(self.router.weight, generator)
        self.attention.reset_parameters(generator, residual_gain)

    def _count(self, length):
        """K for `length` real tokens, which is a number or a tensor."""
        if isinstance(self.tokens, int):
            return (
                min(self.tokens, length)
                if isinstance(length, int)
                else length.clamp_max(self.tokens)
            )
        # The factor keeps ceil() from rounding up a product that is whole except for rounding
        # errors: 0.07 of 100 tokens are 7, not 8.
        if isinstance(length, Tensor):
            return (length.double() * self.tokens * (1 - 1e-12)).ceil().long()
        return math.ceil(length * self.tokens * (1 - 1e-12))

    def choose(self, scores: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(positions int64 [B, K], counts int64 [B]): the chosen tokens of each batch entry in
        ascending order, padded with 0."""
        batch, length = scores.shape
        place = torch.arange(length, device=scores.device)
        if lengths is None:
            counts = place.new_full((batch,), self._count(length))
        else:
            scores = scores.masked_fill(place >= lengths[:, None], -torch.inf)
            counts = self._count(lengths)
        best = scores.sort(dim=-1, descending=True, stable=True).indices[:, : self._count(length)]
        missing = torch.arange(best.size(1), device=best.device) >= counts[:, None]
        positions = best.masked_fill(missing, length).sort(-1).values
        return positions.masked_fill(missing, 0), counts

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, *, adjacency: Tensor | None = None
    ) -> Tensor:
        """x [B, T, C] -> [B, T, C].

        lengths, int64 [B], are the numbers of real tokens per sequence. adjacency, bool [T, T] or
        [B, T, T], marks the tokens that each token may attend to. It also applies among the chosen
        tokens.
        """
        require_rows("ExpertChoice", "x", x, self.attention.dim, 3)
        length, channels = x.size(1), x.size(2)
        real = x
        if lengths is not None:
            require_lengths(lengths, x)
            padding = torch.arange(length, device=x.device) >= lengths[:, None]
            real = x.masked_fill(padding[..., None], 0)
        scores = self.router(real).squeeze(-1)
        positions, counts = self.choose(scores.detach(), lengths)
        missing = torch.arange(positions.size(1), device=x.device) >= counts[:, None]

        rows = positions[..., None].expand(-1, -1, channels)
        chosen = real.gather(1, rows).masked_fill(missing[..., None], 0)
        if adjacency is not None:
            if adjacency.dtype != torch.bool or adjacency.dim() not in (2, 3):
                raise ValueError(
                    f"[ExpertChoice] adjacency: expected bool of shape {[length, length]} or "
                    f"{[x.size(0), length, length]}, got {adjacency.dtype} of shape "
                    f"{list(adjacency.shape)}"
                )
            if adjacency.shape[-2:] != (length, length):
                raise ValueError(
                    f"[ExpertChoice] adjacency: expected {length} tokens, got shape "
                    f"{list(adjacency.shape)}"
                )
            table = adjacency.expand(x.size(0), -1, -1)
            table = table.gather(1, positions[..., None].expand(-1, -1, length))
            adjacency = table.gather(2, positions[:, None].expand(-1, positions.size(1), -1))
        out = self.attention(chosen, key_lengths=counts, positions=positions, adjacency=adjacency)
        weight = scores.gather(1, positions)
        weight = (weight.sigmoid() if self.sigmoid else weight).masked_fill(missing, 0)
        update = out * weight[..., None]
        # A sum, like any residual: under autocast, a sum of two dtypes has the wider one.
        return x + update.new_zeros(x.shape).scatter_add(1, rows, update)
