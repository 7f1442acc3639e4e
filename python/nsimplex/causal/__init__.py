"""Causal structure from tables: which column causes which; causal graphs as rotary encodings.

Functions here prepare what a model is given: on the CPU, float64, outside of compiled graphs and of autograd. Errors
name the argument, what was expected and what came.
"""

from __future__ import annotations

from .embedding import (
    CausalEmbedding,
    CausalRanking,
    ball_points,
    ball_tangents,
    causal_angles,
    causal_embed,
    causal_ranking,
    hyperbolic_distances,
    hyperboloid_points,
)
from .structure import CausalFit, causal_fit

__all__ = [
    "CausalEmbedding",
    "CausalFit",
    "CausalRanking",
    "ball_points",
    "ball_tangents",
    "causal_angles",
    "causal_embed",
    "causal_fit",
    "causal_ranking",
    "hyperbolic_distances",
    "hyperboloid_points",
]
