"""The module that chooses the keys of a sparse layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods
from .._choices import Form, IndexerSource, Scores, SetPattern
from ..attention import attention
from ..rotary import rotary as rotate
from ..routing import indexer_loss, topk_keys
from ..sparse_attention import sparse_attention
from ..tuples import neighbours
from .checks import factory, require, require_name, require_positive, require_rows, require_whole
from .key_tables import Places, admissible, compact
from .weights import initialize


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


def normalised(
    parts: IndexParts, causal: bool, key_lengths: Tensor | None, adjacency: Tensor | None
) -> IndexParts:
    """The parts with the lse of softmax scores over the admissible keys, as
    :func:`nsimplex.topk_keys` computes it of the same masks. :func:`nsimplex.indexer_loss` knows no
    masks, so without it padding and other documents would count. ``adjacency`` is bool
    [1 or B, Tq, T] or sparse CSR."""
    query, key = parts.query, parts.key
    value = key[..., :1].detach()
    if adjacency is not None and adjacency.layout == torch.sparse_csr:
        table = neighbours(adjacency, self_loops=False)
        queries = torch.arange(table.size(1), device=table.device)
        kept = admissible(table, queries, causal, Places(key_lengths=key_lengths))
        _, lse = sparse_attention(
            query, [key], [value], compact(table, kept), pattern="product", return_lse=True
        )
    else:
        _, lse = attention(
            query,
            [key],
            [value],
            causal=causal,
            key_lengths=key_lengths,
            mask=None if adjacency is None else adjacency.unsqueeze(1),
            return_lse=True,
        )
    return parts._replace(lse=lse.masked_fill(lse == -torch.inf, 0.0))  # a query without keys


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
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 4,
        *,
        index_dim: int = 32,
        source: IndexerSource = "light",
        scores: Scores = "relu",
        learned: bool = False,
        rotary: bool = False,
        rotary_base: float = 10000.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
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
        self.source: IndexerSource = source
        self.scores: Scores = scores
        self.rotary, self.rotary_base = rotary, rotary_base
        place = factory(at, device, dtype)
        if source == "light":
            self.query = nn.Linear(dim, heads * index_dim, bias=False, **place)
            self.key = nn.Linear(dim, index_dim, bias=False, **place)
        self.learned = learned or source == "light"
        if self.learned:
            self.weight = nn.Linear(dim, heads, bias=False, **place)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for child in self.children():
            assert isinstance(child, nn.Linear)
            initialize(child.weight, generator)

    def project(
        self,
        x: Tensor,
        source: IndexSource | None = None,
        *,
        first_position: int = 0,
        positions: Tensor | None = None,
    ) -> IndexParts:
        """x [B, T, C] -> inputs of the scores. While decoding, the caller puts the keys of earlier
        tokens before ``key``. ``positions``, int64 [B, T], replaces first_position, .."""
        require_rows("Indexer", "x", x, self.dim, 3)
        weights = None
        if self.learned:
            weights = self.weight(x).transpose(1, 2)
            if self.scores == "softmax":
                # Compiled, PyTorch's backward of softplus mistakes the strides of a view.
                weights = F.softplus(weights.contiguous())
        if self.source == "reuse":
            if source is None:
                raise ValueError(
                    "[Indexer] source: expected the tensors of the attention layer before; a first "
                    "layer has none and takes source light"
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
            turn: dict[str, Any] = dict(base=self.rotary_base, offset=first_position)
            if positions is not None:
                turn = dict(base=self.rotary_base, positions=positions)
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
        keys: Sequence[Tensor],
        *,
        causal: bool = False,
        source: IndexSource | None = None,
        indices: Tensor | None = None,
        pattern: SetPattern = "product",
        form: Form = "product",
        logit_scale: float | None = None,
    ) -> Tensor:
        """Distance between the scores of x and the attention of the layer with ``query`` and
        ``keys``.

        See :func:`nsimplex.indexer_loss`. Without ``indices``, it is the loss of the dense warm-up.
        Softmax scores are normalised over all keys, or with ``causal`` over the earlier ones; call
        :func:`nsimplex.indexer_loss` with an ``lse`` for keys under other masks.
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
