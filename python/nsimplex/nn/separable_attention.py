"""The attention module in linear time."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .._arguments import checked_methods, describe
from ..kv_cache import LayerCache
from ..separable_attention import FeatureMap, SeparableCache, separable_attention
from .checks import require
from .layers import SimplicialAttention


@checked_methods
class SeparableAttention(SimplicialAttention):
    """N-simplicial attention with a separable kernel (:func:`nsimplex.separable_attention`) instead
    of the softmax. Its time is linear in the length.

    Parameters and projections are those of :class:`SimplicialAttention` with the same arguments.
    Form and reduce must be "product". ``scale`` has no effect. Contexts and key lengths are
    refused.

    Args:
        features: as in :func:`nsimplex.separable_attention`.
        options: arguments of :class:`SimplicialAttention`.
    """

    def __init__(
        self, dim: int, heads: int = 1, *, features: FeatureMap = "elu", **options
    ) -> None:
        super().__init__(dim, heads, **options)
        at = "[SeparableAttention] "
        for name in ("form", "reduce"):
            value = self.attention_options[name]
            require(
                value == "product",
                f"{at}{name}: expected product, the one that separates, got '{value}'",
            )
        require(
            not self.context_dims, f"{at}context_dims: expected none, got {len(self.context_dims)}"
        )
        require(
            features is None or callable(features) or features in ("elu", "relu", "random"),
            f"{at}features: expected elu, relu, random, a function or None, got "
            f"{describe(features)}",
        )
        self.features = features

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """An empty cache. Axes without a window keep a state of fixed size; ``unbounded`` has no
        effect."""
        return SeparableCache(self._cache_window(-1), self.features)

    def _continue(self, x: Tensor, cache: LayerCache) -> Tensor:
        self._require_cacheable()
        return self._join_heads(cache.attend(*self._heads_of(x, offset=cache.position)))

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
        options = {name: self.attention_options[name] for name in ("causal", "window")}
        return self._join_heads(
            separable_attention(*self._heads_of(x), features=self.features, **options)
        )
