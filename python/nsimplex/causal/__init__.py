"""Causal structure from tables, and causal graphs as rotary encodings.

The functions here estimate which column causes which, and prepare inputs of a model. They run on
the CPU in float64, outside of compiled graphs and of autograd. Errors name the argument, the
expected value and the value received.
"""

from __future__ import annotations

from .embedding import (
    CausalEmbedding,
    CausalRanking,
    EmbeddingWarning,
    ball_points,
    ball_tangents,
    causal_angles,
    causal_embed,
    causal_ranking,
    hyperbolic_distances,
    hyperboloid_points,
)
from .graphs import (
    CausalMetrics,
    CausalSimulation,
    EdgeCurves,
    Sortability,
    UsableTable,
    causal_baselines,
    causal_metrics,
    causal_sortability,
    edge_curves,
    simulate,
    usable_table,
)
from .structure import CausalFit, FewRowsWarning, causal_fit

__all__ = [
    "CausalEmbedding",
    "CausalFit",
    "CausalMetrics",
    "CausalRanking",
    "CausalSimulation",
    "EdgeCurves",
    "EmbeddingWarning",
    "FewRowsWarning",
    "Sortability",
    "UsableTable",
    "ball_points",
    "ball_tangents",
    "causal_angles",
    "causal_baselines",
    "causal_embed",
    "causal_fit",
    "causal_metrics",
    "causal_ranking",
    "causal_sortability",
    "edge_curves",
    "hyperbolic_distances",
    "hyperboloid_points",
    "read_h5ad",
    "simulate",
    "usable_table",
]


def __getattr__(name: str):
    # The package does not import it, so that `python -m nsimplex.causal.cells` runs it once.
    if name == "read_h5ad":
        from .cells import read_h5ad

        return read_h5ad
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
