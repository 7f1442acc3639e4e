"""Options of a language model, and how a checkpoint's header spells them."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Sequence
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
from .._printable import printable
from .checks import MOST_AXES, require, require_name

__all__ = ["MOST_HIDDEN", "SIZES", "LanguageModelOptions"]

_MOST, _MOST_WIDTH = 2**31, 2**20
#: The least and the most of every size: those of the C++ library, with which a test compares them.
SIZES = dict(
    vocabulary=(1, _MOST),
    layers=(1, 2**16),
    heads=(1, _MOST_WIDTH),
    kv_heads=(0, _MOST_WIDTH),
    dim=(1, _MOST_WIDTH),
    context=(1, _MOST),
    order=(1, MOST_AXES),
    every=(0, _MOST),
    topk=(1, _MOST),
)
MOST_HIDDEN = 64 * _MOST_WIDTH  # channels within an MLP


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
        at, types = "[LanguageModel] ", typing.get_type_hints(cls)
        for name in fields:
            require(name in cls.__dataclass_fields__, f"{at}{name}: no such option")
        return cls(**{name: _parsed(name, text, types[name]) for name, text in fields.items()})


# As the C++ library writes them: other texts, which Python would read, it refuses.
_INTEGER = "(?:0|-?[1-9][0-9]{0,17})"
_WHOLE, _REAL = re.compile(_INTEGER), re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_WINDOWS = re.compile(f"({_INTEGER}:{_INTEGER}(,(?!$)|$))*")


def _parsed(name: str, text: str, kind: Any) -> Any:
    """The value of an option that has this text."""
    at, names = "[LanguageModel] ", ("true", "false") if kind is bool else typing.get_args(kind)
    if names:
        require_name(at, name, text, names)
        return text == "true" if kind is bool else text
    if kind is int:
        expected, fits = "an integer", bool(_WHOLE.fullmatch(text))
    elif kind is float:
        expected = "a finite number"
        fits = bool(_REAL.fullmatch(text)) and math.isfinite(float(text))
    else:
        expected = "windows as left:right,left:right"
        fits = bool(_WINDOWS.fullmatch(text))
    require(fits, f"{at}{name}: expected {expected}, got {printable(repr(text[:80]))}")
    return kind(text) if kind in (int, float) else _windows(text)


def _windows(text: str) -> list[tuple[int, ...]]:
    """ "left:right,left:right" -> [(left, right), ...]"""
    return [tuple(map(int, entry.split(":"))) for entry in text.split(",") if entry]
