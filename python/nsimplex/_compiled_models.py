"""Models that torch compiled, traced or exported, whose code may leave out the hooks of modules."""

from __future__ import annotations

import sys

import torch
from torch import nn

__all__ = ["forget_compiled_code", "require_modules"]


def require_modules(at: str, model: nn.Module) -> None:
    """Check that the model's modules are Python's own, which run their hooks and keep state."""
    for name, module in model.named_modules():
        kind = None
        if isinstance(module, torch.jit.ScriptModule):
            kind = "a script module"
        elif isinstance(module, torch.fx.GraphModule):
            # A traced graph calls modules. An exported one has operators, and one check of inputs.
            called = {node.target for node in module.graph.nodes if node.op == "call_module"}
            kind = None if called - {"_guards_fn"} else "an exported program"
        if kind is not None:
            raise ValueError(
                f"{at}model: expected modules of Python, got {kind}, which runs none: "
                f"{name or 'the model itself'}"
            )


def forget_compiled_code() -> None:
    """Compile what torch compiled again at its next run. Compiled code does not notice that hooks
    came or went."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
