"""Starting values of the modules' weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def initialize(weight: Tensor, generator: torch.Generator | None, gain: float = 1.0) -> None:
    """Normal with variance gain^2 / (3 fan_in): see nsimplex::Initialization."""
    with torch.no_grad():
        weight.normal_(0.0, gain / math.sqrt(3.0 * weight.size(-1)), generator=generator)


def initialize_linear(
    layer: nn.Linear, generator: torch.Generator | None, gain: float = 1.0
) -> None:
    """The weight as above; the bias, if there is one, is 0."""
    initialize(layer.weight, generator, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
