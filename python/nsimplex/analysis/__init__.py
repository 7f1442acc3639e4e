"""Diagnostics of attention: Lipschitz constants, sensitivity and sharpness, smoothing."""

from .ascent import Ascent
from .lipschitz import (
    JacobianNorm,
    LipschitzEstimate,
    jacobian_norm,
    lipschitz_bound,
    lipschitz_constant,
    pair_lipschitz_bound,
)
from .masks import MaskExtent, mask_distances, mask_extent
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

__all__ = [
    "Ascent",
    "CollapseBound",
    "JacobianNorm",
    "LayerSmoothing",
    "LipschitzEstimate",
    "MaskExtent",
    "MinimalResidual",
    "SensitivityEstimate",
    "SmoothingMonitor",
    "collapse_bound",
    "composite_norm",
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
    "sensitivity",
    "sensitivity_bounds",
    "sharpness",
    "sharpness_bounds",
]
