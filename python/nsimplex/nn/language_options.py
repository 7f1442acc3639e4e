"""Options of a language model, and how a checkpoint's header spells them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from .._arguments import checked_methods, describe
from .._choices import (
    Activation,
    Form,
    IndexerSource,
    LanguageSelection,
    Norm,
    Normalizer,
    ScaleName,
    Scores,
)
from .checks import require

__all__ = ["LanguageModelOptions"]


@checked_methods
@dataclasses.dataclass
class LanguageModelOptions:
    """Shape of a :class:`LanguageModel`. Fields and defaults match
    nsimplex::LanguageModelOptions. The last five are options of the simplicial layers, as in
    :class:`SimplicialAttention`. A checkpoint without them has their defaults."""

    __slots__ = ("__dict__", "__weakref__", "_of_model")

    vocabulary: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 0
    dim: int = 128
    context: int = 64
    order: int = 2
    every: int = 4
    window: Sequence = (16, 256)
    sparse: LanguageSelection = "window"
    topk: int = 64
    indexer: IndexerSource = "reuse"
    indexer_scores: Scores = "softmax"
    indexer_loss: float = 0.0
    norm: Norm = "none"
    scale: ScaleName = "standard"
    mlp: Activation = "swiglu"
    mlp_ratio: float = 0.0
    tied: bool = True
    form: Form = "product"
    rotary: bool = False
    normalizer: Normalizer = "softmax"
    augment: bool = False
    dropout: float = 0.0

    def __setattr__(self, name: str, value: Any) -> None:
        known = name in self.__dataclass_fields__ or name in self.__slots__
        require(known, f"[LanguageModelOptions] {name}: no such option")
        require(
            not hasattr(self, "_of_model"),
            f"[LanguageModel] options.{name}: expected the option that the model was made with, "
            f"got {describe(value)}; make a new model",
        )
        super().__setattr__(name, value)

    def of_model(self) -> LanguageModelOptions:
        """A copy that does not change any more, because a model reads its options once."""
        own = dataclasses.replace(self)
        own._of_model = True
        return own

    @classmethod
    def from_map(cls, fields: dict[str, str]) -> LanguageModelOptions:
        """Read the output of the C++ library's to_map, which a checkpoint's header stores."""
        known = {field.name: str(field.type) for field in dataclasses.fields(cls)}
        for name in fields:
            require(name in known, f"[LanguageModel] {name}: no such option")
        read: dict[str, Callable[[str], Any]] = {
            "int": int,
            "float": float,
            "bool": lambda text: text == "true",
            known["window"]: _parse_windows,
        }
        values: dict[str, Any] = {
            name: read.get(known[name], str)(text) for name, text in fields.items()
        }
        return cls(**values)


def _parse_windows(text: str) -> list[tuple[int, ...]]:
    """ "left:right,left:right" -> [(left, right), ...]"""
    return [tuple(map(int, entry.split(":"))) for entry in text.split(",") if entry]
