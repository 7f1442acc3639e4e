"""Layers made of N-simplicial attention, as thin ``torch.nn`` modules.

The C++ library has the same modules with the same parameter names and the same arithmetic
(nsimplex/layers.h, nsimplex/language_model.h,
nsimplex/routing_layers.h, nsimplex/equivariant_layers.h): ``load_state_dict`` takes either's weights.
"""

from .blocks import FeedForward, TransformerBlock
from .equivariant import EquivariantLinear
from .language_model import LanguageModel, LanguageModelOptions
from .layers import RMSNorm, SimplicialAttention
from .routing import ExpertChoice, Indexer, IndexParts, IndexSource
from .separable import SeparableAttention
from .sparse import SparseAttention

__all__ = [
    "EquivariantLinear",
    "ExpertChoice",
    "FeedForward",
    "IndexParts",
    "IndexSource",
    "Indexer",
    "LanguageModel",
    "LanguageModelOptions",
    "RMSNorm",
    "SeparableAttention",
    "SimplicialAttention",
    "SparseAttention",
    "TransformerBlock",
]
