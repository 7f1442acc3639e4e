"""The attention module in linear time."""

from __future__ import annotations

from typing_extensions import Unpack

from .._arguments import checked_methods, describe
from ..separable_attention import FeatureMap
from .attention_options import LayerOptions
from .checks import require
from .layers import SimplicialAttention
from .select import Linear


@checked_methods
class SeparableAttention(SimplicialAttention):
    """N-simplicial attention with a separable kernel (:func:`nsimplex.separable_attention`) instead
    of the softmax. Its time is linear in the length. It is
    ``SimplicialAttention(select=Linear(features))``.

    Parameters and projections are those of :class:`SimplicialAttention` with the same arguments.
    Form and reduce must be "product". ``scale`` has no effect. Contexts are refused.

    Args:
        features: as in :func:`nsimplex.separable_attention`.
        options: arguments of :class:`SimplicialAttention`.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        features: FeatureMap = "elu",
        **options: Unpack[LayerOptions],
    ) -> None:
        known = features is None or callable(features) or features in ("elu", "relu", "random")
        require(
            known,
            "[SeparableAttention] features: expected elu, relu, random, a function or None, got "
            f"{describe(features)}",
        )
        super().__init__(dim, heads, select=Linear(features), **options)

    @property
    def features(self) -> FeatureMap:
        assert isinstance(self.select, Linear)
        return self.select.features
