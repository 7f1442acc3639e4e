"""Layers of higher-order transformers on lists of tuples (Kim, Oh and Hong, arXiv 2110.14416)."""

from __future__ import annotations

import math
from typing import TypedDict

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from .._arguments import checked_methods
from .._choices import (
    EquivariantEncoderForm,
    EquivariantFeatures,
    EquivariantForm,
    EquivariantKeys,
    EquivariantMlp,
)
from ..equivariant_attention import (
    EquivariantAttentionPlan,
    EquivariantAttentionWeights,
    equivariant_attention,
    equivariant_attention_classes,
    equivariant_attention_coefficients,
    orthogonal_directions,
)
from ..equivariant_classes import Kind, TensorKind, _kind, equivariant_classes
from ..equivariant_encoder_plan import EquivariantEncoderPlan, _is_lightweight
from ..equivariant_linear import EquivariantPlan
from .checks import require_name, require_rows, require_whole
from .equivariant_linear_layer import EquivariantLinear


@checked_methods
class RandomFeatures(nn.Module):
    """The random directions W [dim, features] of kernel attention.

    They are drawn once and kept in the buffer ``directions``. All layers of a model with the same
    head dim share one object. The model calls :meth:`redraw` before every training step.

    Args:
        dim: head dim.
        features: number of directions; 0: max(1, floor(dim ln dim)).

    Raises:
        ValueError: dim below 1 or features below 0.
    """

    def __init__(self, dim: int, features: int = 0) -> None:
        super().__init__()
        require_whole("[RandomFeatures] ", dim=dim)
        require_whole("[RandomFeatures] ", least=0, features=features)
        self.directions: Tensor
        self.register_buffer(
            "directions", orthogonal_directions(dim, features or max(1, int(dim * math.log(dim))))
        )

    def redraw(self, generator: torch.Generator | None = None) -> None:
        self.directions.copy_(
            orthogonal_directions(
                *self.directions.shape, generator=generator, dtype=self.directions.dtype
            )
        )


class EquivariantOptions(TypedDict, total=False):
    """The options of :class:`EquivariantAttention`, for layers that pass them on."""

    heads: int
    head_dim: int | None
    form: EquivariantForm
    keys: EquivariantKeys
    global_classes: bool
    normalise: bool
    feature_map: EquivariantFeatures
    features: RandomFeatures | None


@checked_methods
class EquivariantAttention(nn.Module):
    """Attn_{k->l} with all its classes.

    Classes that sum over the input use :func:`nsimplex.equivariant_attention`. The other classes
    use the light layer, without a bias.

    Parameters: those of :class:`nsimplex.EquivariantAttentionWeights` as ``query_weight``,
        ``query_bias``, ``key_weight``, ``key_bias``, ``value_weight``, ``output_weight``, and
        ``light.weight``. Initial weights are normal with variance 1 / (3 fan_in); initial biases
        are zero.

    Args:
        input, output: kinds of the two lists, or orders of ordered ones.
        in_channels, out_channels: C and D.
        heads: H.
        head_dim: width of queries, keys and values per head; None: out_channels / heads.
        form: "softmax", "kernel" or "decoupled".
        keys, global_classes: as for :func:`nsimplex.equivariant_attention_classes`.
        normalise: divide by the sum of a class's coefficients.
        feature_map: "relu" or "exponential", for the kernel forms.
        features: random features that the layers of a model share; None: the layer has its own.

    Raises:
        ValueError: orders, widths or names that do not fit, or a plan of other kinds.
    """

    def __init__(
        self,
        input: Kind,
        output: Kind,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 1,
        head_dim: int | None = None,
        form: EquivariantForm = "softmax",
        keys: EquivariantKeys = "paper",
        global_classes: bool = True,
        normalise: bool = True,
        feature_map: EquivariantFeatures = "relu",
        features: RandomFeatures | None = None,
    ) -> None:
        super().__init__()
        at = "[EquivariantAttention] "
        require_whole(at, in_channels=in_channels, out_channels=out_channels, heads=heads)
        require_name(at, "feature_map", feature_map, ("relu", "exponential"))
        if head_dim is None:
            if out_channels % heads:
                raise ValueError(
                    f"[EquivariantAttention] heads: expected a divisor of {out_channels} "
                    "out_channels where head_dim "
                    f"is not given, got {heads}"
                )
            head_dim = out_channels // heads
        require_whole(at, head_dim=head_dim)
        require_name(at, "form", form, ("softmax", "kernel", "decoupled"))
        if form == "softmax" and not normalise:
            raise ValueError(
                "[EquivariantAttention] normalise: expected True for form softmax, got False"
            )
        self.input, self.output = _kind(input), _kind(output)
        self.heads, self.normalise = heads, normalise
        self.form: EquivariantForm = form
        self.feature_map: EquivariantFeatures = feature_map
        self.keys, self.global_classes = keys, global_classes
        self._classes = equivariant_attention_classes(
            self.input, self.output, keys=keys, global_classes=global_classes
        )
        count, width = len(self._classes), heads * head_dim
        queries = sum(c.query_weights for c in self._classes)
        keys_count = sum(c.key_weights for c in self._classes)
        self.query_weight = nn.Parameter(torch.empty(queries, in_channels, width))
        self.query_bias = nn.Parameter(torch.empty(count, width))
        self.key_weight = nn.Parameter(torch.empty(keys_count, in_channels, width))
        self.key_bias = nn.Parameter(torch.empty(count, width))
        self.value_weight = nn.Parameter(torch.empty(count, in_channels, width))
        self.output_weight = nn.Parameter(torch.empty(count, width, out_channels))
        self.light = EquivariantLinear(
            self.input, self.output, in_channels, out_channels, classes="light", bias=False
        )
        self.features = None if form == "softmax" else features or RandomFeatures(head_dim)
        if self.features is not None and self.features.directions.size(0) != head_dim:
            raise ValueError(
                f"[EquivariantAttention] features: expected directions of {head_dim} channels, got "
                f"{self.features.directions.size(0)}"
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        channels = self.value_weight.size(1)
        for weight, counts in (
            (self.query_weight, [c.query_weights for c in self._classes]),
            (self.key_weight, [c.key_weights for c in self._classes]),
        ):
            for own, count in zip(weight.split(counts), counts):
                _initialize(own, count * channels)
        nn.init.zeros_(self.query_bias)
        nn.init.zeros_(self.key_bias)
        _initialize(self.value_weight, channels)
        _initialize(self.output_weight, self.output_weight.size(0) * self.output_weight.size(1))
        self.light.reset_parameters()

    def forward(self, x: Tensor, plan: EquivariantAttentionPlan, light: EquivariantPlan) -> Tensor:
        """x [m, C] -> [m', D]; ``light`` is the plan of the light classes between the same
        lists."""
        self._check(plan)
        attended = equivariant_attention(x, self._weights(), plan, **self._options(x))
        return attended + self.light(x, light)

    def coefficients(self, x: Tensor, plan: EquivariantAttentionPlan) -> Tensor:
        """The attention coefficients [classes, heads, m', m]; see
        :func:`nsimplex.equivariant_attention_coefficients`."""
        self._check(plan)
        return equivariant_attention_coefficients(x, self._weights(), plan, **self._options(x))

    def class_names(self) -> list[str]:
        """The names of the classes that attend, in the order of :meth:`coefficients`."""
        return [each.own.name for each in self._classes]

    def _check(self, plan: EquivariantAttentionPlan) -> None:
        if (plan.input, plan.output, plan.keys, plan.global_classes) != (
            self.input,
            self.output,
            self.keys,
            self.global_classes,
        ):
            raise ValueError(
                f"[EquivariantAttention] plan: expected one of {self.input} -> {self.output} with "
                "the layer's "
                f"classes, got {plan.input} -> {plan.output}"
            )

    def _weights(self) -> EquivariantAttentionWeights:
        return EquivariantAttentionWeights(
            self.query_weight,
            self.query_bias,
            self.key_weight,
            self.key_bias,
            self.value_weight,
            self.output_weight,
        )

    def _options(self, x: Tensor) -> dict:
        return dict(
            heads=self.heads,
            form=self.form,
            normalise=self.normalise,
            directions=None if self.features is None else self.features.directions.to(x.dtype),
            features=self.feature_map,
        )


@checked_methods
class PatternLinear(nn.Module):
    """A linear layer that treats every tuple separately.

    It has one matrix per equality pattern of the tuple's entries. The patterns are the classes of
    0 -> l.

    Parameters: ``weight`` [patterns, C, D], ``bias`` [patterns, D].
    """

    def __init__(self, kind: Kind, in_channels: int, out_channels: int) -> None:
        super().__init__()
        at = "[PatternLinear] "
        require_whole(at, least=0, kind=_kind(kind).order)
        require_whole(at, in_channels=in_channels, out_channels=out_channels)
        patterns = len(equivariant_classes(0, kind))
        self.weight = nn.Parameter(torch.empty(patterns, in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(patterns, out_channels))
        _initialize(self.weight, in_channels)

    def forward(self, x: Tensor, rows: list[Tensor]) -> Tensor:
        """x [m, C] -> [m, D]; ``rows`` lists the rows of each pattern, and holds each row once."""
        if len(rows) != len(self.weight):
            raise ValueError(
                f"[PatternLinear] rows: expected {len(self.weight)} patterns, got {len(rows)}"
            )
        require_rows("PatternLinear", "x", x, self.weight.size(1), 2)
        count = sum(
            own.size(0) if own.dim() == 1 and own.dtype == torch.int64 else -x.size(0)
            for own in rows
        )
        if count != x.size(0):
            raise ValueError(
                f"[PatternLinear] rows: expected int64 numbers of {x.size(0)} rows of x, each once"
            )
        out = [torch.addmm(b, x[own], w) for own, w, b in zip(rows, self.weight, self.bias)]
        return torch.cat(out)[torch.cat(rows).argsort()]


@checked_methods
class EquivariantEncoder(nn.Module):
    """Enc_{k->l}: attention and an MLP.

    Attention has no identity connection by default, because its light classes carry the input
    through learned maps.

    Parameters: ``attention.*``, ``mlp_in.*``, ``mlp_out.*`` and, in the standard form,
        ``norm_attention.*``, ``norm_mlp.*``.

    Args:
        input, output, in_channels, out_channels, and all arguments not listed here: passed to
            :class:`EquivariantAttention`.
        hidden: width of the MLP; None: out_channels.
        mlp: "lightweight": two light layers l -> l; "pointwise": each row separately, with its own
            weights per equality pattern; "automatic": lightweight up to l = 3, pointwise beyond and
            for loop-free tuples.
        dropout: rate after attention and after both layers of the MLP.
        residual: add A to the output of attention. Input and output must be the same list, and
            C = D.
        encoder: "standard": Y = Attn(LN(A)), Enc(A) = Y + MLP(LN(Y)), GELU; "paper": Y = Attn(A),
            Enc(A) = Y + MLP(Y), ReLU (equations 8 and 9).

    Raises:
        ValueError: orders, widths or names that do not fit, or a plan of other kinds.
    """

    mlp_in: EquivariantLinear | PatternLinear
    mlp_out: EquivariantLinear | PatternLinear

    def __init__(
        self,
        input: Kind,
        output: Kind,
        in_channels: int,
        out_channels: int,
        *,
        hidden: int | None = None,
        mlp: EquivariantMlp = "automatic",
        dropout: float = 0.0,
        residual: bool = False,
        encoder: EquivariantEncoderForm = "standard",
        **attention: Unpack[EquivariantOptions],
    ) -> None:
        super().__init__()
        require_name("[EquivariantEncoder] ", "encoder", encoder, ("standard", "paper"))
        if hidden is not None:
            require_whole("[EquivariantEncoder] ", hidden=hidden)
        if not 0 <= dropout < 1:
            raise ValueError(f"[EquivariantEncoder] dropout: expected in [0, 1), got {dropout}")
        self.attention = EquivariantAttention(input, output, in_channels, out_channels, **attention)
        kind: TensorKind = self.attention.output
        if residual and (self.attention.input, in_channels) != (kind, out_channels):
            raise ValueError(
                "[EquivariantEncoder] residual: expected input and output of one kind and width, "
                f"got {in_channels} "
                f"and {out_channels} channels"
            )
        self.dropout, self.residual, self.encoder = dropout, residual, encoder
        standard = encoder == "standard"
        self.norm_attention = nn.LayerNorm(in_channels) if standard else None
        self.norm_mlp = nn.LayerNorm(out_channels) if standard else None
        self.lightweight = _is_lightweight(mlp, kind)
        hidden = hidden or out_channels
        if self.lightweight:
            self.mlp_in = EquivariantLinear(kind, kind, out_channels, hidden, classes="light")
            self.mlp_out = EquivariantLinear(kind, kind, hidden, out_channels, classes="light")
        else:
            self.mlp_in = PatternLinear(kind, out_channels, hidden)
            self.mlp_out = PatternLinear(kind, hidden, out_channels)

    def forward(self, x: Tensor, plan: EquivariantEncoderPlan) -> Tensor:
        """x [m, C] -> [m', D]."""
        require_rows("EquivariantEncoder", "x", x, self.attention.value_weight.size(1), 2)
        if (plan.mlp is not None) != self.lightweight:
            raise ValueError(
                "[EquivariantEncoder] plan: expected one for the layer's form of the MLP"
            )
        rows = plan.mlp if self.lightweight else plan.pattern_rows
        own = x if self.norm_attention is None else self.norm_attention(x)
        y = self._dropped(self.attention(own, plan.attention, plan.light))
        if self.residual:
            y = y + x
        hidden = self.mlp_in(y if self.norm_mlp is None else self.norm_mlp(y), rows)
        hidden = torch.relu(hidden) if self.encoder == "paper" else nn.functional.gelu(hidden)
        return y + self._dropped(self.mlp_out(self._dropped(hidden), rows))

    def _dropped(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(x, self.dropout, self.training) if self.dropout else x


def _initialize(weight: Tensor, fan_in: int) -> None:
    nn.init.normal_(weight, std=1 / math.sqrt(3 * max(fan_in, 1)))
