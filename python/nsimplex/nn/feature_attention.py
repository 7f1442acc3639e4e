"""Attention among the features of one observation, with every encoding of a token's feature."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..attention import attention
from ..rotary import rotary
from ..separable_attention import feature_map, separable_attention
from .checks import require
from .feature_options import FeatureTransformerOptions
from .layers import SimplicialAttention, _initialize


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Channels 2c and 2c + 1: sin and cos of position 10000^(-2c / dim); float64."""
    channels = torch.arange(0, dim, 2, dtype=torch.float64, device=positions.device)
    angles = positions.double().unsqueeze(1) * 10000.0 ** (-channels / dim)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :dim]


class FeaturePositions(nn.Module):
    """The table of the encoding. All attention layers of a feature transformer share it."""

    def __init__(self, options: FeatureTransformerOptions) -> None:
        super().__init__()
        self.table: Tensor | None
        shapes = {
            "rotary": (options.features, options.heads, options.planes),
            "additive": (options.features, options.dim),
        }
        shape = shapes.get(options.encoding)
        self.register_buffer("table", None if shape is None else torch.zeros(shape))
        self.scale = nn.Parameter(torch.ones(options.heads)) if options.learned_scale else None

    def reset_parameters(self) -> None:
        if self.scale is not None:
            nn.init.ones_(self.scale)

    def set_table(self, table: Tensor) -> None:
        at = "[FeatureTransformer] table: "
        if self.table is None:
            raise ValueError(f"{at}only of encodings rotary and additive")
        shaped = table
        if self.table.dim() == 3 and table.dim() == 2:
            shaped = table.unsqueeze(1).expand(-1, self.table.size(1), -1)
        require(
            table.is_floating_point() and shaped.shape == self.table.shape,
            f"{at}expected floating numbers of shape {list(self.table.shape)}"
            f"{' or the same without heads' if self.table.dim() == 3 else ''}, "
            f"got {table.dtype} of shape {list(table.shape)}",
        )
        with torch.no_grad():
            self.table.copy_(shaped)

    def angles(self) -> Tensor:
        """Radians [1 + M, H, planes], times the learned scale. The extra token has zeros."""
        assert self.table is not None
        table = self.table if self.scale is None else self.table * self.scale.unsqueeze(1)
        return F.pad(table, (0, 0, 0, 0, 1, 0))


class FeatureAttention(SimplicialAttention):
    """Self-attention among the tokens of a :class:`FeatureTransformer`.

    With a relative encoding, the layer has the parameters ``relative.weight`` [D, D],
    ``content_bias`` and ``position_bias`` [H, D / H] besides those of :class:`SimplicialAttention`.
    """

    _unread = ("dropout",)

    def __init__(
        self, options: FeatureTransformerOptions, positions: FeaturePositions, seed: int
    ) -> None:
        simplicial = options.backbone == "simplicial"
        super().__init__(
            options.dim,
            options.heads,
            order=options.order if simplicial else 1,
            form="determinant" if simplicial else "product",
        )
        self.model = options
        self.seed = seed
        self._positions = (positions,)  # a tuple, so that only the model registers the module
        if options.encoding == "relative":
            self.relative = nn.Linear(options.dim, options.dim, bias=False)
            self.content_bias = nn.Parameter(torch.zeros(options.heads, self.head_dim))
            self.position_bias = nn.Parameter(torch.zeros(options.heads, self.head_dim))

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        super().reset_parameters(generator, residual_gain)
        if hasattr(self, "relative"):
            _initialize(self.relative.weight, generator)
            nn.init.zeros_(self.content_bias)
            nn.init.zeros_(self.position_bias)

    def _turned(self, heads: Tensor) -> Tensor:
        chunk = self.order + 1 if self.model.backbone == "simplicial" else 2
        return rotary(heads, chunk=chunk, angles=self._positions[0].angles())

    def _perform(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend with random features of the softmax kernel.

        Only the numerator is rotated (arXiv 2104.09864, equation 19). Rotated features may be
        negative, so their sum has no lower bound.
        """
        features: dict[str, Any] = dict(kind="random", seed=self.seed, orthogonal=True)
        q, k = feature_map(q, **features), feature_map(k, **features)
        if self.model.encoding != "rotary":
            return separable_attention(q, [k], [v], features=None)
        state = self._turned(k).transpose(-2, -1) @ v
        weight = q @ k.sum(2, keepdim=True).transpose(-2, -1)
        return self._turned(q) @ state / weight

    def _attend_relatively(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q_m k_n + q_m r_{m-n} + u k_n + v r_{m-n}; the extra token is at column 0."""
        tokens, width = q.shape[2:]
        apart = sinusoids(torch.arange(1 - tokens, tokens, device=q.device), self.dim).to(q.dtype)
        places = self.relative(apart).unflatten(1, (self.heads, width))
        of_difference = (q + self.position_bias.unsqueeze(1)) @ places.permute(1, 2, 0)
        column = torch.arange(tokens, device=q.device)
        difference = column.unsqueeze(1) - column + (tokens - 1)
        bias = of_difference.gather(3, difference.expand(q.size(0), self.heads, tokens, tokens))
        scale = 1.0 / math.sqrt(width)
        return F.scaled_dot_product_attention(
            q + self.content_bias.unsqueeze(1), k, v, attn_mask=bias * scale, scale=scale
        )

    def forward(  # type: ignore[override]
        self, x: Tensor, contexts=(), key_lengths: Tensor | None = None, *, cache=None
    ) -> Tensor:
        self._refuse_contexts(contexts, key_lengths)
        require(cache is None, "[FeatureAttention] cache: features have no order to decode in")
        q, keys, values = self._heads_of(x)
        if self.model.backbone == "performer":
            return self._join_heads(self._perform(q, keys[0], values[0]))
        if self.model.encoding == "relative":
            return self._join_heads(self._attend_relatively(q, keys[0], values[0]))
        if self.model.encoding == "rotary":
            q, *keys = (self._turned(part) for part in (q, *keys))
        return self._join_heads(attention(q, keys, values, **self._options))
