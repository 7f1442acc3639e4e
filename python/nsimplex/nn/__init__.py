"""Layers made of N-simplicial attention, as thin ``torch.nn`` modules.

The C++ library has the same modules with the same parameter names and the same arithmetic
(nsimplex/layers.h, nsimplex/language_model.h, nsimplex/sparse_layers.h,
nsimplex/equivariant_layers.h, nsimplex/feature_transformer.h).
``load_state_dict`` accepts weights from either library.
"""

from .blocks import FeedForward, TransformerBlock
from .equivariant_encoder import (
    EquivariantAttention,
    EquivariantEncoder,
    PatternLinear,
    RandomFeatures,
)
from .equivariant_linear_layer import EquivariantLinear
from .expert_choice import ExpertChoice, Indexer, IndexParts, IndexSource
from .feature_options import FeatureTransformerOptions
from .feature_transformer import FeatureTransformer
from .graph_baselines import MessagePassing
from .graph_losses import graph_loss, graph_metrics
from .graph_models import GraphInputs
from .graph_set_models import HyperSAGNN, SetToGraph
from .graph_training import fit_graphs
from .graph_transformer import GraphTransformer
from .language_model import LanguageModel
from .language_options import LanguageModelOptions
from .layer_state import auxiliary_loss
from .layers import RMSNorm, SimplicialAttention
from .parameter_groups import ParameterGroups, parameter_groups
from .select import Linear, Neighbours, Path, Select, Sinks, TopK, Union, Window
from .separable_layer import SeparableAttention
from .sparse_layer import SparseAttention
from .training_callbacks import GraphFit, TrainingCallback, TrainingState
from .training_log import TrainingLog
from .upcycling import HigherOrderPart, UpcycledAttention, calibrate, convert, order_shares

__all__ = [
    "EquivariantAttention",
    "EquivariantEncoder",
    "EquivariantLinear",
    "ExpertChoice",
    "FeatureTransformer",
    "FeatureTransformerOptions",
    "FeedForward",
    "GraphFit",
    "GraphInputs",
    "GraphTransformer",
    "HigherOrderPart",
    "HyperSAGNN",
    "IndexParts",
    "IndexSource",
    "Indexer",
    "LanguageModel",
    "LanguageModelOptions",
    "Linear",
    "MessagePassing",
    "Neighbours",
    "ParameterGroups",
    "Path",
    "PatternLinear",
    "RMSNorm",
    "RandomFeatures",
    "Select",
    "SeparableAttention",
    "SetToGraph",
    "SimplicialAttention",
    "Sinks",
    "SparseAttention",
    "TopK",
    "TrainingCallback",
    "TrainingLog",
    "TrainingState",
    "TransformerBlock",
    "Union",
    "UpcycledAttention",
    "Window",
    "auxiliary_loss",
    "calibrate",
    "convert",
    "fit_graphs",
    "graph_loss",
    "graph_metrics",
    "order_shares",
    "parameter_groups",
]
