"""The exact results of a call in float64, and how far others are from them."""

from __future__ import annotations

import torch
from definition import definition
from gpu_cases import Tensors
from torch import Tensor


def exact(given: Tensors, **options) -> dict[str, Tensor]:
    """out, lse and every gradient by the definition with all tuples at once, in float64."""
    leaves = [x.double().requires_grad_() for x in (given.query, *given.keys, *given.values)]
    order = len(given.keys)
    out, lse = definition(leaves[0], leaves[1 : 1 + order], leaves[1 + order :], **options)
    grad_lse = given.grad_lse.double().masked_fill(lse.isneginf(), 0)
    gradients = torch.autograd.grad(
        [out, lse], leaves, [given.grad_out.double(), grad_lse], materialize_grads=True
    )
    return {"out": out.detach(), "lse": lse.detach()} | dict(zip(names(order), gradients))


def names(order: int) -> list[str]:
    """Names of the gradients, in the order of the inputs."""
    return ["query", *(f"key {m}" for m in range(order)), *(f"value {m}" for m in range(order))]


def error(found: Tensor, expected: Tensor) -> float:
    """Relative error in the Euclidean norm; infinite where infinities or NaN are others."""
    found, expected = found.detach().double(), expected.detach().double()
    finite = expected.isfinite()
    if found.shape != expected.shape or not torch.equal(found.isfinite(), finite):
        return float("inf")
    if not torch.equal(found[~finite].nan_to_num(nan=7.0), expected[~finite].nan_to_num(nan=7.0)):
        return float("inf")
    difference, size = (found - expected)[finite].norm(), expected[finite].norm()
    return float(difference / size.clamp_min(1e-12)) if expected.numel() else 0.0


def errors(found: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """The error of every result, by name."""
    assert found.keys() == expected.keys()
    return {name: error(found[name], expected[name]) for name in expected}
