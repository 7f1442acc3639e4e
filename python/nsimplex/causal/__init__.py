"""Causal structure from tables, and causal graphs as rotary encodings.

The functions here estimate which column causes which, and prepare inputs of a model. They run on
the CPU in float64, outside of compiled graphs and of autograd. Errors name the argument, the
expected value and the value received.
"""

from __future__ import annotations

import importlib
import typing

from .confidence import EdgeConfidence, edge_confidence
from .drawing import GraphPicture, draw_graph
from .effects import (
    CausalEffect,
    GraphCheck,
    PairTest,
    PossibleEffect,
    causal_effect,
    check_causal_graph,
)
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
from .few_rows import FewRowsWarning
from .graph_converters import graph_text, to_causal_learn, to_pgmpy
from .graph_exports import to_igraph, to_networkx
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
    screen_columns,
    simulate,
    usable_table,
)
from .hooks import CausalEncoding
from .limits import CausalLimits, VarianceOrderWarning, causal_limits
from .noise_directions import NoiseDirections, orient_by_noise
from .structure import CausalFit, FitChoices, FitInterrupted, causal_fit
from .table_warnings import TableWarning

if typing.TYPE_CHECKING:
    from .cells import read_h5ad
    from .estimators import CausalGraph
    from .pipeline import CausalPipeline

__all__ = [
    "CausalEffect",
    "CausalEmbedding",
    "CausalEncoding",
    "CausalFit",
    "CausalGraph",
    "CausalLimits",
    "CausalMetrics",
    "CausalPipeline",
    "CausalRanking",
    "CausalSimulation",
    "EdgeConfidence",
    "EdgeCurves",
    "EmbeddingWarning",
    "FewRowsWarning",
    "FitChoices",
    "FitInterrupted",
    "GraphCheck",
    "GraphPicture",
    "NoiseDirections",
    "PairTest",
    "PossibleEffect",
    "Sortability",
    "TableWarning",
    "UsableTable",
    "VarianceOrderWarning",
    "ball_points",
    "ball_tangents",
    "causal_angles",
    "causal_baselines",
    "causal_effect",
    "causal_embed",
    "causal_fit",
    "causal_limits",
    "causal_metrics",
    "causal_ranking",
    "causal_sortability",
    "check_causal_graph",
    "draw_graph",
    "edge_confidence",
    "edge_curves",
    "graph_text",
    "hyperbolic_distances",
    "hyperboloid_points",
    "orient_by_noise",
    "read_h5ad",
    "screen_columns",
    "simulate",
    "to_causal_learn",
    "to_igraph",
    "to_networkx",
    "to_pgmpy",
    "usable_table",
]


#: Names that are imported when they are asked for. The estimators import scikit-learn, which takes
#: a second; `python -m nsimplex.causal.cells` must run its module once.
_LATER = {
    "CausalGraph": "estimators",
    "CausalPipeline": "pipeline",
    "read_h5ad": "cells",
}


def __getattr__(name: str):
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
