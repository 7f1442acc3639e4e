"""Largest singular values of Jacobians, at a point and over a ball, and the bounds for
attention."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._choices import LipschitzForm
from .._library import operators
from .ascent import (
    Ascent,
    Frobenius,
    Function,
    Rows,
    ascend,
    check_problems,
    checked_function,
    random_direction,
)

__all__ = [
    "JacobianNorm",
    "LipschitzEstimate",
    "jacobian_norm",
    "lipschitz_bound",
    "lipschitz_constant",
    "pair_lipschitz_bound",
]


class JacobianNorm(NamedTuple):
    value: Tensor  #: [B]: |J v| with |v| = 1, never above the norm and growing towards it
    direction: Tensor  #: v, of the shape of the input


class LipschitzEstimate(NamedTuple):
    value: Tensor  #: [B]: |J(x) v|, a lower bound of the constant that is attained at x
    input: Tensor
    direction: Tensor


@checked
@torch.inference_mode(False)
def jacobian_norm(function: Function, x: Tensor, options: Ascent = Ascent()) -> JacobianNorm:
    """Largest singular value of the Jacobian of ``function`` at x [B, ..], one per problem.

    The method is power iteration on J^T J with Frobenius norms, from a random direction. The
    Jacobian is never formed. Entry b of function(x) must depend on entry b of x alone. Each step
    costs two forward, backward and double backward passes.

    Example:
        >>> w = torch.diag(torch.tensor([3.0, 2.0]))
        >>> jacobian_norm(lambda x: x @ w, torch.zeros(1, 5, 2)).value
        tensor([3.0000])
    """
    check_problems("jacobian_norm", [x], "x")
    function = checked_function("jacobian_norm", function)
    value, _, (direction,) = ascend(
        function, [x], [random_direction([x], Frobenius)], Frobenius, options
    )
    return JacobianNorm(value, direction[0])


@checked
@torch.inference_mode(False)
def lipschitz_constant(
    function: Function, start: Tensor, radius: float, options: Ascent = Ascent()
) -> LipschitzEstimate:
    """The largest |J(x) v| over unit v and x whose every row has norm <= radius, from start [B, ..,
    C].

    Each step combines gradient ascent in x and power iteration in v. The result is a lower bound of
    the local Lipschitz constant. Each start is one problem; use several and keep the best. Source:
    "How Smoothing is N-simplicial Attention?", Definition 3.6.
    """
    check_problems("lipschitz_constant", [start], "start")
    if not radius > 0:
        raise ValueError(f"[lipschitz_constant] radius: expected a positive number, got {radius}")
    function = checked_function("lipschitz_constant", function)
    direction = random_direction([start], Frobenius)
    value, (x,), ((v,),) = ascend(
        function, [start], [direction], Frobenius, options, [Rows(radius)]
    )
    return LipschitzEstimate(value, x, v)


@checked
def lipschitz_bound(
    order: int,
    tokens: int,
    head_dim: int,
    radius: float,
    key_norm: float,
    value_norm: float,
    form: LipschitzForm = "printed",
    output_scale: float = 1.0,
) -> float:
    r"""Theorem 3.7 of "How Smoothing is N-simplicial Attention?", for softmax, product values and
    logits over sqrt(d).

    Symbols: n tokens, a = sqrt(d) (K R)^(N+1), K the largest spectral norm of W_K^(m), m = 0..N, V
    the largest spectral norm of W_V^(m)::

        printed      n sqrt(2n) N V^N R^(N-1) sqrt(1 + N^2 a^2)
        proof        n sqrt(n) N V^N R^(N-1) (1 + a), the result of the theorem's proof
        all_factors  n sqrt(n) V^N R^(N-1) (N + (N + 1) a), counts the query among a logit's factors

    ``output_scale`` is s2, times the norm of an output projection (our extension).
    """
    _require_from("lipschitz_bound", 1, order=order, tokens=tokens, head_dim=head_dim)
    _require_from("lipschitz_bound", 0, radius=radius, key_norm=key_norm, value_norm=value_norm)
    _require_from("lipschitz_bound", 0, output_scale=output_scale)
    return operators.lipschitz_bound(
        order, tokens, head_dim, radius, key_norm, value_norm, form, output_scale
    )


@checked
def pair_lipschitz_bound(tokens: int, radius: float, form_norm: float, value_norm: float) -> float:
    """sqrt(3) |W_V| sqrt(|A|^2 R^4 (4n + 1) + n), A = W_Q W_K^T / sqrt(d), for ordinary attention.

    Source: Castin, Ablin and Peyré, "How smooth is attention?", arXiv 2312.14820.
    """
    _require_from("pair_lipschitz_bound", 1, tokens=tokens)
    _require_from(
        "pair_lipschitz_bound", 0, radius=radius, form_norm=form_norm, value_norm=value_norm
    )
    return operators.pair_lipschitz_bound(tokens, radius, form_norm, value_norm)


def _require_from(function: str, least: int, **numbers: float) -> None:
    for name, value in numbers.items():
        if not value >= least:
            raise ValueError(f"[{function}] {name}: expected {least} or more, got {value}")
