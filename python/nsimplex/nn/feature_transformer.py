"""Transformers over the features of one observation: the columns of a table are the tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods
from .blocks import FeedForward, TransformerBlock
from .checks import require
from .feature_attention import FeatureAttention, FeaturePositions, sinusoids
from .feature_options import FeatureTransformerOptions
from .layers import RMSNorm, _initialize

_FREQUENCY_DEVIATION = 0.1


@checked_methods
class FeatureTransformer(nn.Module):
    r"""A transformer over the features of one observation.

    Every column of a table is a token. An encoding tells the model which column a token is. The
    encoding can be learned from causal structure (:mod:`nsimplex.causal`).

    .. math::
        t_0 = \mathrm{cls}, \qquad t_j = \mathrm{value}(x_j) \,(+\, \mathrm{identity}_j)
        \,(+\, \mathrm{encoding}_j), \qquad \mathrm{hidden} = \mathrm{norm}(\mathrm{blocks}(t))

    Attention is unmasked. "softmax" and "performer" use one key axis. "simplicial" uses N key axes
    with form determinant, whose logits depend on differences of angles alone, like those of the dot
    product.

    Parameter names are those of the C++ module ``nsimplex::FeatureTransformer``, so either module
    can load the other's weights. The same generator state gives the same weights in both.

    Args:
        options: :class:`FeatureTransformerOptions`.
        generator: generator of the initial weights.

    Raises:
        ValueError: one line that names the option or tensor.

    Cost per layer over T = 1 + M tokens: T^2 D, performer T D^2 / H, simplicial T^(N+1) D.

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
        self.value: nn.Embedding | nn.Linear | None
        if o.values == "bins":
            self.value = nn.Embedding(o.bins + 1, o.dim)
        else:
            self.value = (
                None if o.values == "general" else nn.Linear(o.dim if periodic else 1, o.dim)
            )
        self.identity = nn.Embedding(o.features, o.dim) if o.identity else None
        self.encoding = nn.Embedding(o.features, o.dim) if o.encoding == "learned" else None
        self.positions = FeaturePositions(o)
        blocks = [
            TransformerBlock(
                FeatureAttention(o, self.positions, layer), FeedForward(o.dim, o.hidden, "gelu")
            )
            for layer in range(o.layers)
        ]
        self.blocks = cast("Sequence[TransformerBlock]", nn.ModuleList(blocks))
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
        """Set the table of the encoding to a copy of ``table``.

        rotary: radians, [M, planes] or [M, H, planes]; additive: [M, D]. The initial table is zero.
        """
        self.positions.set_table(table)

    def set_general(self, general: FeatureTransformer) -> None:
        """Set the trained transformer whose hidden states are the values.

        Use it with values "general". It is not trained and is not part of the parameters.
        """
        at = "[FeatureTransformer] general: "
        o, own = general.options, self.options
        require(own.values == "general", f"{at}only of values general")
        require(
            (o.features, o.dim) == (own.features, own.dim),
            f"{at}expected {own.features} features of width {own.dim}, got {o.features} of width "
            f"{o.dim}",
        )
        require(
            o.values in ("linear", "periodic"), f"{at}expected one of linear or periodic values"
        )
        self._general = (general,)

    def _embed(self, x: Tensor) -> Tensor:
        assert self.value is not None
        if isinstance(self.value, nn.Embedding):
            return self._rows_of_bins(self.value, x)
        if self.frequencies is None:
            return self.value(x.unsqueeze(-1))
        angles = 2.0 * math.pi * x.unsqueeze(-1) * self.frequencies
        return self.value(torch.cat((angles.sin(), angles.cos()), -1))

    def _rows_of_bins(self, book: nn.Embedding, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return book(x)
        try:
            return book(x)
        except IndexError:  # its message names no argument
            low, high = (int(each) for each in x.aminmax())
        raise ValueError(
            f"[FeatureTransformer] x: expected bins 0 to {self.options.bins}, got {low} to {high}"
        )

    def forward(
        self, x: Tensor, masked: Tensor | None = None, marked: Tensor | None = None
    ) -> Tensor:
        """Observations x [B, M] -> hidden [B, 1 + M, D].

        x holds int64 bin numbers for values "bins", and floating numbers otherwise. masked, bool
        [B, M], marks hidden values; a learned vector replaces them. marked, bool [B, M], marks
        tokens to which another learned vector is added, for example values set by an intervention.
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
            assert self.positions.table is not None
            tokens = tokens + self.positions.table
        if o.encoding == "sinusoidal":
            columns = torch.arange(1, o.features + 1, device=x.device)
            tokens = tokens + sinusoids(columns, o.dim).to(tokens.dtype)
        hidden = torch.cat((self.cls.expand(x.size(0), 1, o.dim), tokens), 1)
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden)

    def reconstruct(self, hidden: Tensor) -> Tensor:
        """Predictions of the values: logits of bins [B, M, 1 + bins], or values [B, M]."""
        values = self.reconstruction(hidden[:, 1:])
        return values if self.options.values == "bins" else values.squeeze(-1)

    def reconstruction_loss(self, x: Tensor, masked: Tensor) -> Tensor:
        """Mean over the masked values: cross entropy for bins, squared error otherwise."""
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
        if self.head is None:
            raise ValueError("[FeatureTransformer] outputs: expected a model with some")
        return self.head(self.aggregate(hidden))
