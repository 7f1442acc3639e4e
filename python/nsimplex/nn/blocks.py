"""Feed-forward and block modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods, describe
from .._choices import Activation
from ..kv_cache import LayerCache
from ..static_cache import StaticCache
from .checks import require, require_name, require_rows, require_whole
from .expert_choice import ExpertChoice, attend
from .layer_state import HeldLayers, retained_mass_of
from .layers import RMSNorm, SimplicialAttention, _initialize


@checked_methods
class FeedForward(nn.Module):
    """Feed-forward layer.

    swiglu: y = (silu(x Wg) * (x Wu)) Wd; gelu: y = gelu(x Wu) Wd.

    Parameters: ``up.weight`` [2 hidden, dim] with rows Wg, Wu (gelu: [hidden, dim]) and
        ``down.weight`` [dim, hidden].

    If ``hidden`` is 0, the width is 8/3 dim (swiglu) or 4 dim (gelu), rounded up to a multiple
    of 8.
    """

    def __init__(self, dim: int, hidden: int = 0, activation: Activation = "swiglu") -> None:
        super().__init__()
        require_whole("[FeedForward] ", dim=dim)
        require_whole("[FeedForward] ", least=0, hidden=hidden)
        require_name("[FeedForward] ", "activation", activation, ("swiglu", "gelu"))
        if hidden == 0:
            usual = (8 * dim + 2) // 3 if activation == "swiglu" else 4 * dim
            hidden = (usual + 7) // 8 * 8
        self.activation = activation
        self.up = nn.Linear(dim, 2 * hidden if activation == "swiglu" else hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)
        self.reset_parameters()

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        _initialize(self.up.weight, generator)
        _initialize(self.down.weight, generator, residual_gain)

    def forward(self, x: Tensor) -> Tensor:
        require_rows("FeedForward", "x", x, self.up.in_features)
        up = self.up(x)
        if self.activation == "gelu":
            return self.down(F.gelu(up))
        gate, value = up.chunk(2, -1)
        return self.down(F.silu(gate) * value)


@checked_methods
class TransformerBlock(HeldLayers):
    """Pre-norm block: h = x + attention(norm(x)), y = h + mlp(norm(h)).

    ``auxiliary_loss``, ``retained_mass``, ``dropout``, ``loss_weight``, ``warms_up``,
    ``measures_mass`` and ``keep_pairs`` are those of the attention layer.

    Args:
        attention: the attention layer, or an :class:`ExpertChoice` around one.
        mlp: the feed-forward layer.
    """

    def __init__(self, attention: SimplicialAttention | ExpertChoice, mlp: FeedForward) -> None:
        super().__init__()
        require(
            isinstance(attention, (SimplicialAttention, ExpertChoice)),
            "[TransformerBlock] attention: expected a SimplicialAttention, one of its kinds or an "
            f"ExpertChoice, got {describe(attention)}",
        )
        require(
            isinstance(mlp, nn.Module),
            f"[TransformerBlock] mlp: expected a module, got {describe(mlp)}",
        )
        self.dim: int = attention.dim
        place = next(attention.parameters())
        self.attention_norm = RMSNorm(attention.dim).to(place)
        self.attention: SimplicialAttention | ExpertChoice = attention
        self.mlp_norm = RMSNorm(attention.dim).to(place)
        self.mlp: FeedForward = mlp
        self._made = True

    @property
    def retained_mass(self) -> Tensor | None:
        return retained_mass_of(self)

    def set_source(self, source: SimplicialAttention | TransformerBlock) -> None:
        """As in the attention layer. ``source`` is an attention layer, or a block around one."""
        if not isinstance(self.attention, SimplicialAttention):
            raise ValueError(
                "[TransformerBlock] source: expected none, because an ExpertChoice attends among "
                "chosen tokens"
            )
        inner: Any = source.attention if isinstance(source, TransformerBlock) else source
        self.attention.set_source(inner)

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        self.attention_norm.reset_parameters()
        self.attention.reset_parameters(generator, residual_gain)
        self.mlp_norm.reset_parameters()
        self.mlp.reset_parameters(generator, residual_gain)

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        return self.attention.make_cache(unbounded)

    def make_static_cache(self, batch: int, slots: int) -> StaticCache:
        if not isinstance(self.attention, SimplicialAttention):
            raise ValueError(
                "[TransformerBlock] attention: expected a SimplicialAttention with slots, got "
                f"{describe(self.attention)}"
            )
        return self.attention.make_static_cache(batch, slots)

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
        residual: bool = True,
    ) -> Tensor:
        """x [B, T, C] -> [B, T, C]. The arguments are those of the attention layer. Without
        ``residual``, the result is y - x."""
        require_rows("TransformerBlock", "x", x, self.attention.dim, 3)
        given = dict(
            contexts=contexts or None,
            key_lengths=key_lengths,
            cache=cache,
            counts=counts,
            positions=positions,
            adjacency=adjacency,
            edge_index=edge_index,
            key_masks=key_masks,
            cu_seqlens=cu_seqlens,
            mask=mask,
        )
        given = {name: value for name, value in given.items() if value is not None}
        change = attend(self.attention, self.attention_norm(x), given)
        h = x + change
        update = self.mlp(self.mlp_norm(h))
        return h + update if residual else change + update
