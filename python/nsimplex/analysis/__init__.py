"""Diagnostics of attention: Lipschitz constants, sensitivity and sharpness."""

from .ascent import Ascent
from .lipschitz import (
    JacobianNorm,
    LipschitzEstimate,
    jacobian_norm,
    lipschitz_bound,
    lipschitz_constant,
    pair_lipschitz_bound,
)
from .sensitivity import (
    SensitivityEstimate,
    inf_op,
    inf_rms,
    sensitivity,
    sensitivity_bounds,
    sharpness,
    sharpness_bounds,
)

__all__ = [
    "Ascent",
    "JacobianNorm",
    "LipschitzEstimate",
    "SensitivityEstimate",
    "inf_op",
    "inf_rms",
    "jacobian_norm",
    "lipschitz_bound",
    "lipschitz_constant",
    "pair_lipschitz_bound",
    "sensitivity",
    "sensitivity_bounds",
    "sharpness",
    "sharpness_bounds",
]
