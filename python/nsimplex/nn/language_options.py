"""Options of a language model, and how a checkpoint's header spells them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .checks import require

__all__ = ["LanguageModelOptions"]


@dataclasses.dataclass
class LanguageModelOptions:
    """Shape of a :class:`LanguageModel`. Fields and defaults match
    nsimplex::LanguageModelOptions. The last five are options of the simplicial layers, as in
    :class:`SimplicialAttention`. A checkpoint without them has their defaults."""

    vocabulary: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 0
    dim: int = 128
    context: int = 64
    order: int = 2
    every: int = 4
    window: Sequence = (16, 256)
    sparse: str = "window"
    topk: int = 64
    indexer: str = "reuse"
    indexer_scores: str = "softmax"
    indexer_loss: float = 0.0
    norm: str = "none"
    scale: str = "standard"
    mlp: str = "swiglu"
    mlp_ratio: float = 0.0
    tied: bool = True
    form: str = "product"
    rotary: bool = False
    normalizer: str = "softmax"
    augment: bool = False
    dropout: float = 0.0

    @classmethod
    def from_map(cls, fields: dict[str, str]) -> LanguageModelOptions:
        """Read the output of the C++ library's to_map, which a checkpoint's header stores."""
        known = {field.name: field.type for field in dataclasses.fields(cls)}
        for name in fields:
            require(name in known, f"[LanguageModel] {name}: no such option")
        read = {"int": int, "float": float, "str": str, "bool": lambda text: text == "true"}
        return cls(
            **{
                name: _parse_windows(text) if name == "window" else read[known[name]](text)
                for name, text in fields.items()
            }
        )


def _parse_windows(text: str) -> list[tuple[int, int]]:
    """ "left:right,left:right" -> [(left, right), ...]"""
    return [tuple(map(int, entry.split(":"))) for entry in text.split(",") if entry]
