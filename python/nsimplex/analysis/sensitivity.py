"""Sensitivity and sharpness under inf-RMS norms, after Cesista, "Sensitivity and Sharpness of
n-Simplicial Attention"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._library import operators
from .ascent import (
    Ascent,
    Function,
    InfRms,
    Rows,
    ascend,
    check_problems,
    checked_function,
    random_direction,
)

__all__ = [
    "SensitivityEstimate",
    "inf_op",
    "inf_rms",
    "sensitivity",
    "sensitivity_bounds",
    "sharpness",
    "sharpness_bounds",
]


@checked
def inf_rms(x: Tensor) -> Tensor:
    """The largest root mean square of a row of x [.., C]."""
    if not x.is_floating_point() or x.dim() == 0 or x.numel() == 0:
        raise ValueError(
            f"[inf_rms] x: expected floating [.., C] that is not empty, got {x.dtype} "
            f"{list(x.shape)}"
        )
    return x.norm(dim=-1).max() / math.sqrt(x.shape[-1])


@checked
def inf_op(weights: Tensor, order: int) -> Tensor:
    """The largest sum of absolute values over the last ``order`` axes. For attention weights, these
    are all axes but the query's."""
    if (
        order < 1
        or weights.dim() <= order
        or not weights.is_floating_point()
        or weights.numel() == 0
    ):
        raise ValueError(
            f"[inf_op] weights: expected floating numbers with {order} key axes behind that of the "
            "queries, got "
            f"{weights.dtype} {list(weights.shape)}"
        )
    return weights.abs().flatten(weights.dim() - order).sum(-1).max()


class SensitivityEstimate(NamedTuple):
    value: Tensor  #: [B], the largest over blocks and starts
    blocks: Tensor  #: [blocks, B]: per input, or per pair of inputs (i <= j, in that order)
    inputs: list[Tensor]  #: the inputs that attain the value, [B, ..] each
    directions: list[list[Tensor]]  #: a; or a and b; one tensor per input


@torch.inference_mode(False)
def _climb(
    name: str,
    function: Function,
    inputs: Sequence[Tensor],
    blocks: list[tuple[int, ...]],
    input_rms: Sequence[float] | None,
    starts: int,
    options: Ascent,
) -> SensitivityEstimate:
    check_problems(name, inputs)
    if starts < 1:
        raise ValueError(f"[{name}] starts: expected one or more, got {starts}")
    if input_rms is not None and len(input_rms) != len(inputs):
        raise ValueError(
            f"[{name}] input_rms: expected {len(inputs)} numbers, one per input, got "
            f"{len(input_rms)}"
        )
    for size in input_rms or ():
        if not 0 <= size < math.inf:
            raise ValueError(f"[{name}] input_rms: expected finite numbers from 0 on, got {size}")
    function = checked_function(name, function)
    problems = inputs[0].shape[0]
    x = [i.detach().repeat(len(blocks) * starts, *[1] * (i.dim() - 1)) for i in inputs]
    one_hot = [
        torch.tensor([b[k] for b in blocks], device=x[0].device) for k in range(len(blocks[0]))
    ]
    active = [
        [
            (chosen == i).to(x[0].dtype).repeat_interleave(starts * problems)
            for i in range(len(inputs))
        ]
        for chosen in one_hot
    ]
    domains = [Rows(r * math.sqrt(i.shape[-1]), True) for r, i in zip(input_rms or [], inputs)]
    directions = [random_direction(x, InfRms, each) for each in active]
    value, x, directions = ascend(function, x, directions, InfRms, options, domains, active)
    everything = value.view(-1, problems)
    best = everything.max(0)
    rows = best.indices * problems + torch.arange(problems, device=best.indices.device)
    return SensitivityEstimate(
        best.values,
        everything.view(len(blocks), starts, problems).amax(1),
        [i[rows] for i in x],
        [[a[rows] for a in direction] for direction in directions],
    )


@checked
def sensitivity(
    function: Function,
    inputs: Sequence[Tensor],
    *,
    input_rms: Sequence[float] | None = None,
    starts: int = 1,
    options: Ascent = Ascent(),
) -> SensitivityEstimate:
    """max |DF[a]| / |a|, |a| the sum of the inputs' inf-RMS norms: a lower bound that is attained.

    Under the sum norm, the maximum is attained by a perturbation of a single input. The ascent
    therefore treats each input separately. If ``input_rms`` is given, the inputs move as well, and
    their rows are projected onto this root mean square. Otherwise the inputs are fixed.

    Args:
        function: takes as many tensors [B, .., C_i]; entry b of its value depends on entries b
            alone.
        inputs: starting point of the ascent.
        input_rms: one number per input; None: the sensitivity at these inputs.
        starts: number of random directions from which the ascent starts per input.
    """
    blocks: list[tuple[int, ...]] = [(i,) for i in range(len(inputs))]
    return _climb("sensitivity", function, inputs, blocks, input_rms, starts, options)


@checked
def sharpness(
    function: Function,
    inputs: Sequence[Tensor],
    *,
    input_rms: Sequence[float] | None = None,
    starts: int = 1,
    options: Ascent = Ascent(),
) -> SensitivityEstimate:
    """max |D2F[a, b]| / (|a| |b|) over two independent directions: the mixed derivative, for every
    pair of inputs."""
    count = len(inputs)
    blocks: list[tuple[int, ...]] = [(i, j) for i in range(count) for j in range(i, count)]
    return _climb("sharpness", function, inputs, blocks, input_rms, starts, options)


@checked
def sensitivity_bounds(
    order: int,
    head_dim: int,
    value_dim: int,
    scale: tuple[float, float],
    input_rms: Sequence[float] | None = None,
) -> list[float]:
    """Bounds of the sensitivity of attention to q, k_1.., v_1.., for product form and softmax with
    factors (s1, s2).

    Let c1 = s1 D^((N+1)/2), c2 = s2 Dv^((N-1)/2), and let inputs have unit inf-RMS. The bounds are
    c1 c2 for q and every k, and c2 for every v. The largest of them bounds the whole; it is 1 with
    the scales of ``"unit"``. ``input_rms`` gives other norms, in that order.
    """
    return operators.sensitivity_bounds(order, head_dim, value_dim, *scale, input_rms or [])


@checked
def sharpness_bounds(
    order: int,
    head_dim: int,
    value_dim: int,
    scale: tuple[float, float],
    input_rms: Sequence[float] | None = None,
) -> list[float]:
    """Bounds of the sharpness for every pair of q, k_1.., v_1.. (i <= j, in that order).

    With inputs of unit inf-RMS, the bounds are c2 (c1 + 2 c1^2) for two of q and k, 2 c1^2 c2 for
    one of them with itself, c1 c2 for one of them and a value, c2 for two values, and 0 for a value
    with itself. The largest is 3 with the scales of ``"unit"``.
    """
    return operators.sharpness_bounds(order, head_dim, value_dim, *scale, input_rms or [])
