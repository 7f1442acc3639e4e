"""Diagnostics of attention: Lipschitz constants, sensitivity and sharpness, smoothing."""

from .ascent import Ascent
from .depth import AttentionFlow, CollapseHead, DepthBound, attention_flow, depth_bound
from .influence import token_influence
from .layer_report import LayerReport
from .lipschitz import (
    JacobianNorm,
    LipschitzEstimate,
    jacobian_norm,
    lipschitz_bound,
    lipschitz_constant,
    pair_lipschitz_bound,
)
from .masks import MaskExtent, WeightBounds, mask_distances, mask_extent, weight_bounds
from .model_report import ModelReport, report
from .sensitivity import (
    SensitivityEstimate,
    inf_op,
    inf_rms,
    sensitivity,
    sensitivity_bounds,
    sharpness,
    sharpness_bounds,
)
from .smoothing import (
    CollapseBound,
    LayerSmoothing,
    MinimalResidual,
    SmoothingMonitor,
    collapse_bound,
    composite_norm,
    dirichlet_energy,
    effective_rank,
    mean_cosine,
    mean_residual,
    minimal_residual,
)
from .training_monitor import TrainingMonitor

__all__ = [
    "Ascent",
    "AttentionFlow",
    "CollapseBound",
    "CollapseHead",
    "DepthBound",
    "JacobianNorm",
    "LayerReport",
    "LayerSmoothing",
    "LipschitzEstimate",
    "MaskExtent",
    "MinimalResidual",
    "ModelReport",
    "SensitivityEstimate",
    "SmoothingMonitor",
    "TrainingMonitor",
    "WeightBounds",
    "attention_flow",
    "collapse_bound",
    "composite_norm",
    "depth_bound",
    "dirichlet_energy",
    "effective_rank",
    "inf_op",
    "inf_rms",
    "jacobian_norm",
    "lipschitz_bound",
    "lipschitz_constant",
    "mask_distances",
    "mask_extent",
    "mean_cosine",
    "mean_residual",
    "minimal_residual",
    "pair_lipschitz_bound",
    "report",
    "sensitivity",
    "sensitivity_bounds",
    "sharpness",
    "sharpness_bounds",
    "token_influence",
    "weight_bounds",
]
