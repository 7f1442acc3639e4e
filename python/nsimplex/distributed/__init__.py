"""Sharded operators and models, on top of ``torch.distributed``.

Importing this module registers the sharding rules of all operators for DTensor.
"""

from __future__ import annotations

from .context import ContextParallel, context_parallel
from .exchange import Traffic
from .rules import register_rules
from .tensor_parallel import (
    FeedForwardParallel,
    HeadParallel,
    SplitLinear,
    gather_state_dict,
    scatter_state_dict,
    tensor_parallel,
    tensor_parallel_plan,
)

register_rules()

__all__ = [
    "ContextParallel",
    "FeedForwardParallel",
    "HeadParallel",
    "SplitLinear",
    "Traffic",
    "context_parallel",
    "gather_state_dict",
    "scatter_state_dict",
    "tensor_parallel",
    "tensor_parallel_plan",
]
