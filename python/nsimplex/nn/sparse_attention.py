"""The attention module that chooses its tuples."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor

from .._arguments import checked_methods
from .._options import scales
from ..attention import attention
from ..kv_cache import IndexedCache, LayerCache
from ..routing import indexer_loss, retained_mass, topk_keys
from ..sparse_attention import sparse_attention
from .checks import require, require_name, require_whole
from .layers import SimplicialAttention
from .routing import Indexer, IndexParts, IndexSource


@checked_methods
class SparseAttention(SimplicialAttention):
    """N-simplicial attention over the tuples that an :class:`Indexer` chooses, k^N per query.

    Projections and their parameters are those of :class:`SimplicialAttention` with the same
    arguments, without contexts, windows and key lengths. The indexer's parameters are
    ``indexer.*``. No gradient passes through the choice. The indexer learns from
    :attr:`auxiliary_loss` alone, and the gradient of that loss reaches nothing else.

    Args:
        pattern: "product", I_i x .. x I_i of the k keys chosen for query i; or "path", j1 in I_i,
            j2 in I_{j1}, ..
        keys: k.
        indexer: arguments of :class:`Indexer`. With source "reuse", it scores the pairs of the
            layer passed to :meth:`set_source`. That layer must have run before in the same pass.
        loss_weight: weight of :func:`nsimplex.indexer_loss`; above 0, "reuse" learns w.
        options: arguments of :class:`SimplicialAttention`.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        pattern: str = "product",
        keys: int = 64,
        indexer: dict | None = None,
        loss_weight: float = 0.0,
        **options,
    ) -> None:
        super().__init__(dim, heads, **options)
        at = "[SparseAttention] "
        require_name(at, "pattern", pattern, ("product", "path"))
        require_whole(at, keys=keys)
        require(loss_weight >= 0, f"{at}loss_weight: expected 0 or more, got {loss_weight}")
        require(
            not self.context_dims, f"{at}context_dims: expected none, got {len(self.context_dims)}"
        )
        window = self.attention_options["window"]
        require(window is None, f"{at}window: expected none beside chosen keys, got {window}")
        self.pattern, self.chosen_keys, self.loss_weight = pattern, keys, loss_weight
        indexer = dict(indexer or {})
        for name in indexer:
            require(
                name in inspect.signature(Indexer.__init__).parameters,
                f"{at}indexer: expected arguments of Indexer, got {name!r}",
            )
        if indexer.get("source") == "reuse":
            indexer["learned"] = loss_weight > 0
        self.indexer = Indexer(dim, **indexer)
        self._source: list[SimplicialAttention] = []  # a list, so that it is not a child module
        #: loss_weight times the indexer's loss of the last forward(x); None if gradients were not
        #: recorded.
        self.auxiliary_loss: Tensor | None = None
        #: While true, the layer attends to all admissible tuples, and the indexer learns over all
        #: admissible keys.
        self.warms_up = False
        #: While true, forward(x) stores ``retained_mass``, the share of dense attention's weight on
        #: the chosen tuples.
        self.measures_mass = False
        self.retained_mass: Tensor | None = None

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        super().reset_parameters(generator, residual_gain)
        if hasattr(self, "indexer"):
            self.indexer.reset_parameters(generator)

    def set_source(self, source: SimplicialAttention) -> None:
        """Set the layer whose pairs are reused. From now on, that layer stores its pairs."""
        source.keep_pairs = True
        self._source = [source]

    def _index_of(self, x: Tensor, first_position: int) -> IndexParts:
        source = IndexSource(*self._source[0].pairs) if self._source else None
        return self.indexer.project(x.detach(), source, first_position=first_position)

    def _choose(self, index: IndexParts) -> Tensor:
        with torch.no_grad():
            return topk_keys(
                index.query,
                index.key,
                self.chosen_keys,
                weights=index.weights,
                lse=index.lse,
                scores=self.indexer.scores,
                causal=self.attention_options["causal"],
            )

    def _alignment_loss(
        self,
        index: IndexParts,
        q: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        chosen: Tensor | None,
    ) -> Tensor | None:
        """The indexer's loss. If ``chosen`` is None, it covers all admissible keys."""
        if not torch.is_grad_enabled() or self.loss_weight <= 0:
            return None
        options = self.attention_options
        scale, _ = scales(options["scale"], q, values, options["reduce"])
        return self.loss_weight * indexer_loss(
            index.query,
            index.key,
            q,
            keys,
            weights=index.weights,
            lse=index.lse,
            scores=self.indexer.scores,
            causal=options["causal"],
            indices=chosen,
            pattern="product" if chosen is None else self.pattern,
            form=options["form"],
            logit_scale=scale,
        )

    def _attend(
        self, q: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], chosen: Tensor
    ) -> tuple[Tensor, Tensor]:
        options = {name: self.attention_options[name] for name in ("form", "reduce", "scale")}
        return sparse_attention(
            q, keys, values, chosen.unsqueeze(1), pattern=self.pattern, return_lse=True, **options
        )

    def _attend_to_all(
        self, q: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        return attention(q, keys, values, return_lse=True, **self.attention_options)

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """An empty cache that holds all tokens, because any token may become a chosen key.
        ``unbounded`` has no effect."""
        self._require_cacheable()
        return IndexedCache(self.order)

    def _continue(self, x: Tensor, cache: LayerCache) -> Tensor:
        self._require_cacheable()
        first = cache.position
        q, keys, values = self._heads_of(x, offset=first)
        index = self._index_of(x, first)
        keys, values = cache.extend(q, keys, values)
        # The source's lse is left out, because it may cover fewer keys than are scored here.
        chosen = self._choose(index._replace(key=cache.append_index(index.key), lse=None))
        if self.pattern == "path":
            chosen = cache.append_table(chosen)
        return self._join_heads(self._attend(q, keys, values, chosen)[0])

    def forward(
        self,
        x: Tensor,
        contexts: Sequence[Tensor] = (),
        key_lengths: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """x [B, T, C] -> [B, T, C], like :class:`SimplicialAttention`."""
        self._refuse_contexts(contexts, key_lengths)
        if cache is not None:
            return self._continue(x, cache)
        q, keys, values = self._heads_of(x)
        index = self._index_of(x, 0)
        if self.warms_up:
            self.auxiliary_loss = self._alignment_loss(index, q, keys, values, None)
            return self._join_heads(self._attend_to_all(q, keys, values)[0])
        chosen = self._choose(index)
        self.auxiliary_loss = self._alignment_loss(index, q, keys, values, chosen)
        out, lse = self._attend(q, keys, values, chosen)
        if self.measures_mass:
            with torch.no_grad():
                self.retained_mass = retained_mass(lse, self._attend_to_all(q, keys, values)[1])
        return self._join_heads(out)
