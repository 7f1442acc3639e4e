"""The projections of an attention layer of one order.

Symbols: B batch, T sequence length, C = dim the model width, N = order, Hq query heads,
    Hk key/value heads, D head dim. Weights are applied as x W^T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._choices import Norm
from ..rotary import rotary as rotate
from .checks import require, require_rows
from .layer_options import LEARNED
from .layer_state import LayerState
from .weights import initialize, initialize_linear

_HEAD_NORM_EPSILON = 1e-6


def unit_rms(heads: Tensor) -> Tensor:
    return F.rms_norm(heads, (heads.size(-1),), eps=_HEAD_NORM_EPSILON)


def own_part(parameter: Any) -> Any:
    """This process's part of a parameter that is sharded by heads (a DTensor); others as they
    are."""
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


class HeadProjections(LayerState):
    """From tokens to heads and back, with the parameters that belong to heads."""

    # The layer's constructor sets them.
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    order: int
    context_dims: tuple[int, ...]
    norm: Norm
    rotary: bool
    rotary_base: float
    unit_layer: bool
    keep_pairs: bool
    _options: dict[str, Any]

    # Projections: qkv without contexts, q and kv with them.
    qkv: nn.Linear
    q: nn.Linear
    kv: nn.ModuleList
    output: nn.Linear
    sink: nn.Parameter | None

    @property
    def attention_options(self) -> Mapping[str, Any]:
        """Options of the layer's call of :func:`nsimplex.attention`, to read."""
        return MappingProxyType(self._options)

    def keep_heads(self, heads: int, kv_heads: int) -> None:
        """Computes only some of the heads from now on, whose parameters the caller has split."""
        self.__dict__.update(heads=heads, kv_heads=kv_heads)

    def _make_projections(self, bias: bool, place: dict) -> None:
        heads, width = self.heads, self.head_dim
        if self.context_dims:
            self.q = nn.Linear(self.dim, heads * width, bias=bias, **place)
            self.kv = nn.ModuleList(
                nn.Linear(context, 2 * self.kv_heads * width, bias=bias, **place)
                for context in self.context_dims
            )
        else:
            rows = (heads + 2 * self.order * self.kv_heads) * width
            self.qkv = nn.Linear(self.dim, rows, bias=bias, **place)
        self.output = nn.Linear(heads * width, self.dim, bias=bias, **place)

    def _make_head_parameters(self, normalizer: str, reduce: str, place: dict) -> None:
        """The sink's logits and the reducer's weights, where there are any."""
        sinks = torch.zeros(self.heads, **place) if normalizer == "softmax_sink" else None
        self.register_parameter("sink", None if sinks is None else nn.Parameter(sinks))
        k, d, n = self.kv_heads, self.head_dim, self.order
        shapes: list[tuple[int, ...]] = {
            "mlp": [(k, 2 * d, n * d), (k, 2 * d), (k, d, 2 * d), (k, d)],
            "mlp_symmetric": [
                *[(k, 2 * d, d), (k, 2 * d), (k, 2 * d, 2 * d), (k, 2 * d), (k, d, 2 * d), (k, d)]
            ],
        }.get(reduce, [])
        names = [f"reducer_{'wb'[i % 2]}{i // 2 + 1}" for i in range(len(shapes))]
        for name, shape in zip(names, shapes):
            self.register_parameter(name, nn.Parameter(torch.empty(shape, **place)))
        self._reducer_names = names

    def _reset_projections(self, generator: torch.Generator | None, residual_gain: float) -> None:
        for projection in (self.q, *self.kv) if self.context_dims else (self.qkv,):
            assert isinstance(projection, nn.Linear)
            initialize_linear(projection, generator)
        initialize_linear(self.output, generator, residual_gain)

    def _reset_head_parameters(self, generator: torch.Generator | None) -> None:
        if self.sink is not None:
            nn.init.zeros_(self.sink)
        for name in self._reducer_names:
            weight = getattr(self, name)
            if weight.dim() == 3:
                initialize(weight, generator)
            else:
                nn.init.zeros_(weight)

    def _check_input(self, x: Tensor) -> None:
        require_rows(type(self).__name__, "x", x, self.dim, 3)

    def _project_self(self, x: Tensor, **places) -> list[Tensor]:
        self._check_input(x)
        axes = self.order * self.kv_heads
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))
        qk, v = heads.split((self.heads + axes, axes), 2)
        if self.norm != "none":
            qk = unit_rms(qk)
        if self.norm == "qkv":
            v = unit_rms(v)
        if self.rotary:
            chunk = self.order + 1 if self._options["form"] == "determinant" else 2
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
            require_rows(type(self).__name__, f"contexts[{m}]", context, width, 3)
        q = self.q(x).unflatten(-1, (self.heads, self.head_dim))
        if self.norm != "none":
            q = unit_rms(q)
        keys, values = [], []
        for projection, context in zip(self.kv, contexts):
            heads = projection(context).unflatten(-1, (2 * self.kv_heads, self.head_dim))
            k, v = heads.split(self.kv_heads, 2)
            keys.append(k if self.norm == "none" else unit_rms(k))
            values.append(unit_rms(v) if self.norm == "qkv" else v)
        return [q, *keys, *values]

    def _heads_first(self, parts: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Split a projection's output into (q, keys, values), each [B, heads, T, D]. Store the
        pairs if ``keep_pairs``."""
        q, *rest = (part.transpose(1, 2) for part in parts)
        if self.keep_pairs:
            self._pairs = q.detach(), rest[0].detach()
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

    def _reducer_weights(self) -> list[Tensor] | None:
        if self._options["reduce"] not in LEARNED:
            return None
        return [own_part(getattr(self, name)) for name in self._reducer_names]
