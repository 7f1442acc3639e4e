"""The module that chooses the tokens of a layer."""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from .._arguments import checked_methods, describe
from ..kv_cache import LayerCache
from .checks import require, require_lengths, require_rows, require_whole
from .indexer import Indexer, IndexParts, IndexSource
from .layer_state import HeldLayers, retained_mass_of
from .layers import SimplicialAttention, _initialize

__all__ = ["ExpertChoice", "IndexParts", "IndexSource", "Indexer", "attend"]


@checked_methods
class ExpertChoice(HeldLayers):
    """A layer or block among the K tokens with the highest router scores; the other tokens pass
    unchanged.

    The router scores tokens by s_i = <x_i, w>. In each sequence, the K tokens of highest s are
    chosen and attend among themselves. With f the layer, y_i = x_i + s_i f(X_chosen)_i for chosen
    tokens and y_i = x_i for the others. For a block, which adds its input itself, f is the change
    that it makes. The router learns through s_i. Chosen tokens keep their positions, and the
    layer's rotary, masks and windows use them. Padding is never chosen. Among equal scores, the
    earlier token is chosen.

    The router compares all tokens, so whether a token is chosen depends on later tokens. For this
    reason a causal layer is refused unless ``allow_leak``. The module is meant for sets and graphs.

    ``auxiliary_loss``, ``retained_mass``, ``dropout``, ``loss_weight``, ``warms_up``,
    ``measures_mass`` and ``keep_pairs`` are those of the attention layers in it.

    Parameters: ``router.weight`` [1, C] and ``attention.*``.

    Args:
        attention: f: an attention layer without contexts, a :class:`TransformerBlock`, or another
            module that maps [B, K, C] to [B, K, C]. It gets key_lengths, positions and adjacency if
            its forward has arguments of these names.
        tokens: K: an int of at least 1, or a float in (0, 1], a share of the real tokens, rounded
            up. A product that is whole except for rounding errors is not rounded up (0.07 of 100 is
            7). If K exceeds the number of real tokens, all are chosen.
        sigmoid: use sigmoid(s_i) instead of s_i as the weight.
        dim: C. None: the ``dim`` of the module.

    Source: "How Smoothing is N-simplicial Attention?", section 2.3; Raposo et al. (arXiv
        2404.02258).
    """

    def __init__(
        self,
        attention: nn.Module,
        *,
        tokens: int | float,
        sigmoid: bool = False,
        allow_leak: bool = False,
        dim: int | None = None,
    ) -> None:
        super().__init__()
        at = "[ExpertChoice] "
        require(
            isinstance(attention, nn.Module),
            f"{at}attention: expected a layer or block, got {describe(attention)}",
        )
        layers: list[Any] = [m for m in attention.modules() if isinstance(m, SimplicialAttention)]
        require(
            not any(layer.context_dims for layer in layers),
            f"{at}attention: expected a layer without contexts",
        )
        require(
            allow_leak or not any(layer.attention_options["causal"] for layer in layers),
            f"{at}attention: choosing among all tokens leaks the future into a causal layer; "
            "set allow_leak to use it all the same",
        )
        own = getattr(attention, "dim", None)
        if dim is None:
            require(
                isinstance(own, int),
                f"{at}dim: expected the width of the tokens, because {type(attention).__name__} "
                "does not name it",
            )
            dim = own
        assert dim is not None
        require_whole(at, dim=dim)
        require(own in (None, dim), f"{at}dim: expected that of the layer, {own}, got {dim}")
        self.tokens, self.sigmoid, self.dim = tokens, sigmoid, dim
        self.router = nn.Linear(dim, 1, bias=False)
        like = next(attention.parameters(), None)
        if like is not None:
            self.router.to(like)
        self.attention: Any = attention
        self._taken = frozenset(inspect.signature(type(attention).forward).parameters)
        _initialize(self.router.weight, None)
        self._made = True

    @property
    def retained_mass(self) -> Tensor | None:
        return retained_mass_of(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "tokens":
            whole = isinstance(value, int) and not isinstance(value, bool)
            require(
                value >= 1 if whole else isinstance(value, float) and 0 < value <= 1,
                "[ExpertChoice] tokens: expected an int of at least 1 or a share in (0, 1], got "
                f"{describe(value)}",
            )
        elif name == "sigmoid":
            require(
                isinstance(value, bool),
                f"[ExpertChoice] sigmoid: expected True or False, got {describe(value)}",
            )
        super().__setattr__(name, value)

    def reset_parameters(
        self, generator: torch.Generator | None = None, residual_gain: float = 1.0
    ) -> None:
        _initialize(self.router.weight, generator)
        self.attention.reset_parameters(generator, residual_gain)

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """Refused: the router compares all tokens, and a cache holds only the earlier ones."""
        raise ValueError(f"[ExpertChoice] cache: {_NO_CACHE}")

    def _count(self, length: Any) -> Any:
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
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        *,
        adjacency: Tensor | None = None,
        positions: Tensor | None = None,
        residual: bool = True,
    ) -> Tensor:
        """x [B, T, C] -> [B, T, C].

        lengths, int64 [B], are the numbers of real tokens per sequence. adjacency, bool [T, T] or
        [B, T, T], marks the tokens that each token may attend to. It also applies among the chosen
        tokens. positions, int64 [B, T] and rising, are the tokens' positions in a longer sequence;
        None: 0 to T - 1. Without ``residual``, the result is y - x.
        """
        require_rows("ExpertChoice", "x", x, self.dim, 3)
        if positions is not None and (
            positions.dtype != torch.int64 or positions.shape != x.shape[:2]
        ):
            raise ValueError(
                f"[ExpertChoice] positions: expected int64 of shape {list(x.shape[:2])}, got "
                f"{positions.dtype} of shape {list(positions.shape)}"
            )
        length, channels = x.size(1), x.size(2)
        real = x
        if lengths is not None:
            require_lengths(lengths, x)
            padding = torch.arange(length, device=x.device) >= lengths[:, None]
            real = x.masked_fill(padding[..., None], 0)
        scores = self.router(real).squeeze(-1)
        places, counts = self.choose(scores.detach(), lengths)
        missing = torch.arange(places.size(1), device=x.device) >= counts[:, None]

        rows = places[..., None].expand(-1, -1, channels)
        chosen = real.gather(1, rows).masked_fill(missing[..., None], 0)
        if adjacency is not None:
            if adjacency.dtype != torch.bool or adjacency.dim() not in (2, 3):
                raise ValueError(
                    f"[ExpertChoice] adjacency: expected bool of shape {[length, length]} or "
                    f"{[x.size(0), length, length]}, got {adjacency.dtype} of shape "
                    f"{list(adjacency.shape)}"
                )
            if adjacency.dim() == 3 and adjacency.size(0) not in (1, x.size(0)):
                raise ValueError(
                    f"[ExpertChoice] adjacency: expected one matrix or {x.size(0)}, got shape "
                    f"{list(adjacency.shape)}"
                )
            if adjacency.shape[-2:] != (length, length):
                raise ValueError(
                    f"[ExpertChoice] adjacency: expected {length} tokens, got shape "
                    f"{list(adjacency.shape)}"
                )
            table = adjacency.expand(x.size(0), -1, -1)
            table = table.gather(1, places[..., None].expand(-1, -1, length))
            adjacency = table.gather(2, places[:, None].expand(-1, places.size(1), -1))
        out = self.attention(chosen, **self._given(counts, lengths, places, positions, adjacency))
        weight = scores.gather(1, places)
        weight = (weight.sigmoid() if self.sigmoid else weight).masked_fill(missing, 0)
        update = out * weight[..., None]
        # A sum, like any residual: under autocast, a sum of two dtypes has the wider one.
        change = update.new_zeros(x.shape).scatter_add(1, rows, update)
        return x + change if residual else change

    def _given(
        self,
        counts: Tensor,
        lengths: Tensor | None,
        places: Tensor,
        positions: Tensor | None,
        adjacency: Tensor | None,
    ) -> dict[str, Tensor]:
        """The arguments that the wrapped module takes."""
        taken = self._taken
        given = (("lengths", lengths), ("adjacency", adjacency), ("positions", positions))
        for name, value in given:
            wanted = name if name in taken else f"key_{name}"
            require(
                value is None or wanted in taken,
                f"[ExpertChoice] {name}: expected None, because {type(self.attention).__name__} "
                "does not take it",
            )
        if positions is not None:
            places = positions.gather(1, places)
        passed: dict[str, Any] = dict(
            key_lengths=counts, lengths=counts, positions=places, adjacency=adjacency
        )
        passed = {name: value for name, value in passed.items() if value is not None}
        if "residual" in taken:
            passed["residual"] = False
        return {name: value for name, value in passed.items() if name in taken}


def attend(layer: SimplicialAttention | ExpertChoice, x: Tensor, given: dict) -> Tensor:
    """What a layer adds to x. ``given``: arguments of :class:`SimplicialAttention` by name."""
    if not isinstance(layer, ExpertChoice):
        return layer(x, **given)
    for name in given:
        known = ("key_lengths", "adjacency", "positions")
        why = f"expected None, got {describe(given[name])}"
        require(name in known, f"[ExpertChoice] {name}: {_NO_CACHE if name == 'cache' else why}")
    rest = {name: value for name, value in given.items() if name != "key_lengths"}
    return layer(x, given.get("key_lengths"), **rest, residual=False)


_NO_CACHE = "the router compares all tokens, and a cache holds only the earlier ones"
