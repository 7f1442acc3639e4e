"""Calls of the kernels below the operator, with tiles and precisions that a test chooses.

Triton is imported when a function is called, so that tests can be collected without it.
"""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

import torch
from gpu_cases import Case, Tensors
from oracle import names
from torch import Tensor

#: name: dtype, ``input_precision`` of fp32 (None is the kernels' own), largest error of a result
PRECISIONS = {
    "fp32": (torch.float32, "ieee", 3e-6),
    "tf32x3": (torch.float32, "tf32x3", 2e-5),
    "bf16": (torch.bfloat16, None, 2e-2),
    "fp16": (torch.float16, None, 3e-3),
}


def flat(window) -> list[int] | None:
    """The operator's form of a window."""
    return None if window is None else [side for axis in window for side in axis]


def modules():
    """(launches of the forward pass, those of the backward pass)."""
    from nsimplex.gpu import attention_backward, attention_forward

    return attention_forward, attention_backward


@contextmanager
def chosen(tiles: dict[str, int] | None = None, precision: str | None = None, split: bool = True):
    """Launches take other tiles than the table's, and another precision of fp32. Without ``split``,
    few programs stay few."""
    from nsimplex.gpu import gpu_tiles

    plain, before = gpu_tiles.tiles, []
    few = modules()[0].FEW_PROGRAMS
    modules()[0].FEW_PROGRAMS = few if split else 0
    if tiles:
        gpu_tiles.tiles = lambda *args, **named: dataclasses.replace(plain(*args, **named), **tiles)
    for module in modules() if precision else ():
        if hasattr(module, "precision"):
            before.append((module, module.precision))
            module.precision = lambda dtype: precision if dtype == torch.float32 else "ieee"
    try:
        yield
    finally:
        gpu_tiles.tiles, modules()[0].FEW_PROGRAMS = plain, few
        for module, function in before:
            module.precision = function


def outcome(given: Tensors, options: dict) -> dict[str, Tensor]:
    """out, lse and every gradient of the kernels. ``options``: fields of Options."""
    forward, backward = modules()
    call = forward.Options(**options)
    out, lse = forward.forward(given.query, given.keys, given.values, call)
    order = len(given.keys)
    wanted = [True] * (1 + 2 * order) + [False, False]
    grad_query, grad_keys, grad_values, _ = backward.backward(
        given.query, given.keys, given.values, out, lse, given.grad_out, given.grad_lse, wanted,
        call,
    )  # fmt: skip
    gradients = [grad_query, *grad_keys, *grad_values]
    return {"out": out, "lse": lse} | dict(zip(names(order), gradients))


def options_of(case: Case) -> tuple[dict, dict]:
    """A case's options for the kernels and for the definition."""
    scales = case.dim**-0.5, 1.25
    kernels = {
        "causal": case.causal,
        "window": flat(case.window),
        "logit_scale": scales[0],
        "output_scale": scales[1],
    }
    return kernels, {"causal": case.causal, "window": case.window, "scale": scales}
