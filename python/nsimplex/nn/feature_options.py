"""Shape of a transformer over the features of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from typing_extensions import Unpack

from .._arguments import checked_methods
from .._choices import Aggregate, Backbone, FeatureEncoding, FeaturePreset, FeatureValues
from .checks import require

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


class FeatureChanges(TypedDict, total=False):
    """The fields of :class:`FeatureTransformerOptions` without ``features``."""

    dim: int
    heads: int
    layers: int
    hidden: int
    backbone: Backbone
    order: int
    values: FeatureValues
    bins: int
    encoding: FeatureEncoding
    identity: bool
    learned_scale: bool
    aggregate: Aggregate
    outputs: int


@checked_methods
@dataclass(frozen=True)
class FeatureTransformerOptions:
    """Shape of a :class:`FeatureTransformer`.

    Args:
        features: M, the number of columns of the table.
        dim, heads, layers: D, H, L; for backbone "simplicial" D / H is a multiple of order + 1.
        hidden: width of the MLPs; 0: 4 D.
        backbone: "softmax" over pairs, "performer" (linear time, random features of the softmax
            kernel) or "simplicial" (determinants of ``order`` keys).
        values: embedding of a measured value: "bins" (a row of a code book, bins 0 .. ``bins``),
            "linear" x w + b, "periodic" W [sin 2 pi c x, cos 2 pi c x] with learned c (arXiv
            2203.05556), "general" (the hidden state that a trained transformer computes from it,
            :meth:`FeatureTransformer.set_general`).
        encoding: encoding of a token's feature: "none", "sinusoidal" (of the column's number),
            "learned" (one vector per column), "additive" (a given table [M, D]), "relative"
            (Transformer-XL's four terms of the difference of column numbers), "rotary" (a given
            table of angles).
        identity: add one learned vector per feature, with any encoding.
        learned_scale: rotary: multiply angles by one learned number per head, initially 1.
        aggregate: how an observation's embedding is computed from its tokens: "mean", "max" or
            "cls".
        outputs: width of :meth:`FeatureTransformer.predict`; 0: none.
    """

    features: int
    dim: int = 64
    heads: int = 4
    layers: int = 2
    hidden: int = 0
    backbone: Backbone = "softmax"
    order: int = 2
    values: FeatureValues = "bins"
    bins: int = 5
    encoding: FeatureEncoding = "none"
    identity: bool = False
    learned_scale: bool = False
    aggregate: Aggregate = "cls"
    outputs: int = 0

    @classmethod
    def preset(
        cls, name: FeaturePreset, features: int, **changes: Unpack[FeatureChanges]
    ) -> FeatureTransformerOptions:
        """The shape of one of the two models to which CAPE's paper (arXiv 2509.16629, section F.4)
        adds its encodings.

        Args:
            name: "paper-scbert" (D = 200, performer, 6 layers of 10 heads, 5 bins) or "paper-scgpt"
                (D = 512, softmax, 4 layers of 8 heads, 51 bins). The numbers of layers and heads of
                scBERT are those of its published model. The heads of that model are 64 wide instead
                of 20.
            features, changes: any fields of the class.
        """
        known = ", ".join(_PRESETS)
        require(
            name in _PRESETS, f"[FeatureTransformer] preset: expected one of {known}, got '{name}'"
        )
        fields: dict[str, Any] = {"features": features, **_PRESETS[name], **changes}
        return cls(**fields)

    def __post_init__(self) -> None:
        at = "[FeatureTransformer] "
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            require(
                value in choices, f"{at}{name}: expected one of {', '.join(choices)}, got '{value}'"
            )
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
            f"{at}dim: expected a multiple of heads times order + 1 = "
            f"{self.heads * (self.order + 1)} "
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
        """Rotated planes per head: D / 2H; simplicial: floor((N + 1) / 2) in each chunk of N + 1
        channels."""
        width = self.dim // self.heads
        if self.backbone != "simplicial":
            return width // 2
        return (self.order + 1) // 2 * (width // (self.order + 1))
