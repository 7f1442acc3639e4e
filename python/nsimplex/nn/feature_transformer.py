"""Transformers over the features of one observation: the columns of a table are the tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..functional import attention
from ..positions import rotary
from ..separable import feature_map, separable_attention
from .blocks import FeedForward, TransformerBlock
from .layers import RMSNorm, SimplicialAttention, _initialize, require

_FREQUENCY_DEVIATION = 0.1

_CHOICES = {
    "backbone": ("softmax", "performer", "simplicial"),
    "values": ("bins", "linear", "periodic", "general"),
    "encoding": ("none", "sinusoidal", "learned", "additive", "relative", "rotary"),
    "aggregate": ("mean", "max", "cls"),
}

_PRESETS = {
    "paper-scbert": {"dim": 200, "heads": 10, "layers": 6, "backbone": "performer", "bins": 5},
    "paper-scgpt": {"dim": 512, "heads": 8, "layers": 4, "backbone": "softmax", "bins": 51},
}


@dataclass(frozen=True)
class FeatureTransformerOptions:
    """Shape of a :class:`FeatureTransformer`.

    Args:
        features: M, columns of the table.
        dim, heads, layers: D, H, L; for backbone "simplicial" D / H is a multiple of order + 1.
        hidden: of the MLPs; 0: 4 D.
        backbone: "softmax" over pairs, "performer" (linear time, random features of the softmax kernel) or
            "simplicial" (determinants of ``order`` keys).
        values: what becomes of a measured value: "bins" (a row of a code book, bins 0 .. ``bins``), "linear"
            x w + b, "periodic" W [sin 2 pi c x, cos 2 pi c x] with learned c (arXiv 2203.05556), "general"
            (what a trained transformer makes of it, :meth:`FeatureTransformer.set_general`).
        encoding: how a token says which feature it is: "none", "sinusoidal" (of the column's number),
            "learned" (a vector a column), "additive" (a given table [M, D]), "relative" (Transformer-XL's four
            terms of the difference of column numbers), "rotary" (a given table of angles).
        identity: a learned vector a feature is added, whatever the encoding.
        learned_scale: rotary: angles times a learned number a head, 1 at first.
        aggregate: an observation from its tokens: "mean", "max" or "cls".
        outputs: of :meth:`FeatureTransformer.predict`; 0: none.
    """

    features: int
    dim: int = 64
    heads: int = 4
    layers: int = 2
    hidden: int = 0
    backbone: str = "softmax"
    order: int = 2
    values: str = "bins"
    bins: int = 5
    encoding: str = "none"
    identity: bool = False
    learned_scale: bool = False
    aggregate: str = "cls"
    outputs: int = 0

    @classmethod
    def preset(cls, name: str, features: int, **changes) -> FeatureTransformerOptions:
        """The shape of one of the two models that CAPE's paper (arXiv 2509.16629, section F.4) puts its encodings into.

        Args:
            name: "paper-scbert" (D = 200, performer, 6 layers of 10 heads, 5 bins) or "paper-scgpt" (D = 512, softmax,
                4 layers of 8 heads, 51 bins). scBERT's layers and heads are those of its published model, whose heads
                are 64 wide instead of 20.
            features, changes: any fields of the class.
        """
        known = ", ".join(_PRESETS)
        require(name in _PRESETS, f"[FeatureTransformer] preset: expected one of {known}, got '{name}'")
        return cls(**{"features": features, **_PRESETS[name], **changes})

    def __post_init__(self) -> None:
        at = "[FeatureTransformer] "
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            require(value in choices, f"{at}{name}: expected one of {', '.join(choices)}, got '{value}'")
        for name in ("features", "heads", "layers", "bins"):
            value = getattr(self, name)
            require(value >= 1, f"{at}{name}: expected at least 1, got {value}")
        require(
            self.dim >= 1 and self.dim % self.heads == 0,
            f"{at}dim: expected a multiple of heads {self.heads}, got {self.dim}",
        )
        require(self.outputs >= 0, f"{at}outputs: expected 0 or more, got {self.outputs}")
        width = self.dim // self.heads
        simplicial = self.backbone == "simplicial"
        require(
            not simplicial or self.order >= 1, f"{at}order: expected at least 1, got {self.order}"
        )
        require(
            not simplicial or width % (self.order + 1) == 0,
            f"{at}dim: expected a multiple of heads times order + 1 = {self.heads * (self.order + 1)} "
            f"for backbone simplicial, got {self.dim}",
        )
        turns = self.encoding == "rotary"
        require(
            not turns or simplicial or width % 2 == 0,
            f"{at}dim: expected an even number of channels a head for rotary, got {width}",
        )
        require(
            self.encoding != "relative" or self.backbone == "softmax",
            f"{at}encoding: relative needs backbone softmax",
        )
        require(not self.learned_scale or turns, f"{at}learned_scale: only of encoding rotary")
        require(
            self.values != "periodic" or self.dim % 2 == 0,
            f"{at}dim: expected an even width for periodic values, got {self.dim}",
        )

    @property
    def planes(self) -> int:
        """Planes that turn in a head: D / 2H; simplicial: floor((N + 1) / 2) in each chunk of N + 1 channels."""
        width = self.dim // self.heads
        if self.backbone != "simplicial":
            return width // 2
        return (self.order + 1) // 2 * (width // (self.order + 1))


def _sinusoids(positions: Tensor, dim: int) -> Tensor:
    """Channels 2c and 2c + 1: sin and cos of position 10000^(-2c / dim); float64."""
    channels = torch.arange(0, dim, 2, dtype=torch.float64, device=positions.device)
    angles = positions.double().unsqueeze(1) * 10000.0 ** (-channels / dim)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :dim]


class FeaturePositions(nn.Module):
    """What all attention layers of a feature transformer share: the table of its encoding."""

    def __init__(self, options: FeatureTransformerOptions) -> None:
        super().__init__()
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
        require(self.table is not None, f"{at}only of encodings rotary and additive")
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
        """Radians [1 + M, H, planes], zeros for the extra token; times the learned scale."""
        table = self.table if self.scale is None else self.table * self.scale.unsqueeze(1)
        return F.pad(table, (0, 0, 0, 0, 1, 0))


class FeatureAttention(SimplicialAttention):
    """Self-attention among the tokens of a :class:`FeatureTransformer`.

    Relative encodings have the parameters ``relative.weight`` [D, D], ``content_bias`` and ``position_bias``
    [H, D / H] besides those of :class:`SimplicialAttention`.
    """

    def __init__(self, options: FeatureTransformerOptions, positions: FeaturePositions, seed: int) -> None:
        simplicial = options.backbone == "simplicial"
        super().__init__(
            options.dim,
            options.heads,
            order=options.order if simplicial else 1,
            form="determinant" if simplicial else "product",
        )
        self.model = options
        self.seed = seed
        self._positions = (positions,)  # the model's own, and registered there
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
        """Features of the softmax kernel. Only the numerator turns (arXiv 2104.09864, equation 19): turned
        features have no sign, and their sum no lower bound."""
        features = dict(kind="random", seed=self.seed, orthogonal=True)
        q, k = feature_map(q, **features), feature_map(k, **features)
        if self.model.encoding != "rotary":
            return separable_attention(q, [k], [v], features=None)
        state = self._turned(k).transpose(-2, -1) @ v
        weight = q @ k.sum(2, keepdim=True).transpose(-2, -1)
        return self._turned(q) @ state / weight

    def _attend_relatively(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q_m k_n + q_m r_{m-n} + u k_n + v r_{m-n}; the extra token stands at column 0."""
        tokens, width = q.shape[2:]
        apart = _sinusoids(torch.arange(1 - tokens, tokens, device=q.device), self.dim).to(q.dtype)
        places = self.relative(apart).unflatten(1, (self.heads, width))
        of_difference = (q + self.position_bias.unsqueeze(1)) @ places.permute(1, 2, 0)
        column = torch.arange(tokens, device=q.device)
        difference = column.unsqueeze(1) - column + (tokens - 1)
        bias = of_difference.gather(3, difference.expand(q.size(0), self.heads, tokens, tokens))
        scale = 1.0 / math.sqrt(width)
        return F.scaled_dot_product_attention(
            q + self.content_bias.unsqueeze(1), k, v, attn_mask=bias * scale, scale=scale
        )

    def forward(self, x: Tensor, contexts=(), key_lengths: Tensor | None = None, *, cache=None) -> Tensor:
        self._refuse_contexts(contexts, key_lengths)
        require(cache is None, "[FeatureAttention] cache: features have no order to decode in")
        q, keys, values = self._heads_of(x)
        if self.model.backbone == "performer":
            return self._join_heads(self._perform(q, keys[0], values[0]))
        if self.model.encoding == "relative":
            return self._join_heads(self._attend_relatively(q, keys[0], values[0]))
        if self.model.encoding == "rotary":
            q, *keys = (self._turned(part) for part in (q, *keys))
        return self._join_heads(attention(q, keys, values, **self.attention_options))


class FeatureTransformer(nn.Module):
    r"""A transformer over the features of one observation.

    Every column of a table is a token; which column it is comes in by an encoding that may be learned from
    causal structure (:mod:`nsimplex.causal`).

    .. math::
        t_0 = \mathrm{cls}, \qquad t_j = \mathrm{value}(x_j) \,(+\, \mathrm{identity}_j)
        \,(+\, \mathrm{encoding}_j), \qquad \mathrm{hidden} = \mathrm{norm}(\mathrm{blocks}(t))

    Attention is unmasked; "softmax" and "performer" use one key axis, "simplicial" N of them with form
    determinant, whose logits depend on differences of angles alone, as the dot product's do.

    Parameter names are those of the C++ module ``nsimplex::FeatureTransformer``, so weights move freely. The
    same generator state gives the same weights in both.

    Args:
        options: :class:`FeatureTransformerOptions`.
        generator: of the starting weights.

    Raises:
        ValueError: one line that names the option or tensor.

    Cost of a layer over T = 1 + M tokens: T^2 D, performer T D^2 / H, simplicial T^(N+1) D.

    Source: arXiv 2509.16629, sections 3.1, 3.5 and F.2.

    Example:
        >>> from nsimplex.nn import FeatureTransformer, FeatureTransformerOptions
        >>> model = FeatureTransformer(FeatureTransformerOptions(features=30, encoding="rotary"))
        >>> model.set_table(torch.rand(30, 4, model.options.planes))
        >>> model(torch.randint(0, 6, (2, 30))).shape
        torch.Size([2, 31, 64])
    """

    def __init__(
        self, options: FeatureTransformerOptions, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        o = self.options = options
        self.cls = nn.Parameter(torch.empty(o.dim))
        self.mask = nn.Parameter(torch.empty(o.dim))
        self.mark = nn.Parameter(torch.empty(o.dim))
        periodic = o.values == "periodic"
        self.frequencies = nn.Parameter(torch.empty(o.dim // 2)) if periodic else None
        if o.values == "bins":
            self.value = nn.Embedding(o.bins + 1, o.dim)
        else:
            self.value = None if o.values == "general" else nn.Linear(o.dim if periodic else 1, o.dim)
        self.identity = nn.Embedding(o.features, o.dim) if o.identity else None
        self.encoding = nn.Embedding(o.features, o.dim) if o.encoding == "learned" else None
        self.positions = FeaturePositions(o)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                FeatureAttention(o, self.positions, layer), FeedForward(o.dim, o.hidden, "gelu")
            )
            for layer in range(o.layers)
        )
        self.norm = RMSNorm(o.dim)
        self.reconstruction = nn.Linear(o.dim, o.bins + 1 if o.values == "bins" else 1)
        self.head = nn.Linear(o.dim, o.outputs) if o.outputs else None
        self._general: tuple[FeatureTransformer, ...] = ()
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        def linear(layer: nn.Linear) -> None:
            _initialize(layer.weight, generator)
            nn.init.zeros_(layer.bias)

        with torch.no_grad():
            self.cls.normal_(generator=generator)
            self.mask.normal_(generator=generator)
            self.mark.normal_(generator=generator)
            if self.frequencies is not None:
                self.frequencies.normal_(0.0, _FREQUENCY_DEVIATION, generator=generator)
            if isinstance(self.value, nn.Embedding):
                self.value.weight.normal_(generator=generator)
            elif self.value is not None:
                linear(self.value)
            for rows in (self.identity, self.encoding):
                if rows is not None:
                    rows.weight.normal_(generator=generator)
        self.positions.reset_parameters()
        for block in self.blocks:
            block.reset_parameters(generator, (2.0 * len(self.blocks)) ** -0.5)
        self.norm.reset_parameters()
        linear(self.reconstruction)
        if self.head is not None:
            linear(self.head)

    def set_table(self, table: Tensor) -> None:
        """rotary: radians, [M, planes] or [M, H, planes]; additive: [M, D]. Copied; zeros until then."""
        self.positions.set_table(table)

    def set_general(self, general: FeatureTransformer) -> None:
        """Of values "general": the trained transformer whose hidden states are the values here. It is not
        trained on and not part of the parameters."""
        at = "[FeatureTransformer] general: "
        o, own = general.options, self.options
        require(own.values == "general", f"{at}only of values general")
        require(
            (o.features, o.dim) == (own.features, own.dim),
            f"{at}expected {own.features} features of width {own.dim}, got {o.features} of width {o.dim}",
        )
        require(o.values in ("linear", "periodic"), f"{at}expected one of linear or periodic values")
        self._general = (general,)

    def _embed(self, x: Tensor) -> Tensor:
        if isinstance(self.value, nn.Embedding):
            return self.value(x)
        if self.frequencies is None:
            return self.value(x.unsqueeze(-1))
        angles = 2.0 * math.pi * x.unsqueeze(-1) * self.frequencies
        return self.value(torch.cat((angles.sin(), angles.cos()), -1))

    def forward(
        self, x: Tensor, masked: Tensor | None = None, marked: Tensor | None = None
    ) -> Tensor:
        """Observations x [B, M], for bins int64 numbers of bins, else floating -> hidden [B, 1 + M, D].

        masked, bool [B, M]: values that are not shown, a learned vector in their place. marked, bool [B, M]:
        tokens that another learned vector is added to, values set by an intervention for example.
        """
        o, at = self.options, "[FeatureTransformer] "
        whole = o.values == "bins"
        require(
            x.dim() == 2 and x.size(1) == o.features,
            f"{at}x: expected shape [B, {o.features}], got {list(x.shape)}",
        )
        if not (x.dtype == torch.int64 if whole else x.is_floating_point()):
            kind = "int64 numbers of bins" if whole else "floating numbers"
            raise TypeError(f"{at}x: expected {kind}, got {x.dtype}")
        for name, flags in (("masked", masked), ("marked", marked)):
            require(
                flags is None or (flags.dtype == torch.bool and flags.shape == x.shape),
                f"{at}{name}: expected bool of the shape of x",
            )
        if o.values == "general":
            require(bool(self._general), f"{at}general: set_general() first")
            with torch.no_grad():
                tokens = self._general[0](x, masked)[:, 1:]
        else:
            tokens = self._embed(x)
        if masked is not None:
            tokens = torch.where(masked.unsqueeze(-1), self.mask, tokens)
        if marked is not None:
            tokens = tokens + marked.unsqueeze(-1).to(tokens.dtype) * self.mark
        for rows in (self.identity, self.encoding):
            if rows is not None:
                tokens = tokens + rows.weight
        if o.encoding == "additive":
            tokens = tokens + self.positions.table
        if o.encoding == "sinusoidal":
            columns = torch.arange(1, o.features + 1, device=x.device)
            tokens = tokens + _sinusoids(columns, o.dim).to(tokens.dtype)
        hidden = torch.cat((self.cls.expand(x.size(0), 1, o.dim), tokens), 1)
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden)

    def reconstruct(self, hidden: Tensor) -> Tensor:
        """What the values may be: logits of bins [B, M, 1 + bins], or values [B, M]."""
        values = self.reconstruction(hidden[:, 1:])
        return values if self.options.values == "bins" else values.squeeze(-1)

    def reconstruction_loss(self, x: Tensor, masked: Tensor) -> Tensor:
        """Mean over the masked values of the cross entropy of their bins, or of their squared errors."""
        answers, truth = self.reconstruct(self(x, masked))[masked], x[masked]
        require(len(truth) > 0, "[FeatureTransformer] masked: expected a value to restore")
        bins = self.options.values == "bins"
        return F.cross_entropy(answers, truth) if bins else F.mse_loss(answers, truth)

    def aggregate(self, hidden: Tensor) -> Tensor:
        """Embeddings of the observations: hidden -> [B, D]."""
        if self.options.aggregate == "cls":
            return hidden[:, 0]
        features = hidden[:, 1:]
        return features.mean(1) if self.options.aggregate == "mean" else features.amax(1)

    def predict(self, hidden: Tensor) -> Tensor:
        """hidden -> [B, outputs], linear in :meth:`aggregate`."""
        require(self.head is not None, "[FeatureTransformer] outputs: expected a model with some")
        return self.head(self.aggregate(hidden))
