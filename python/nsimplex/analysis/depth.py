"""Token collapse over many layers: the bound of Corollary 3.2, and attention in continuous time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from .._arguments import checked
from .._choices import FlowMethod
from .._library import operators
from .smoothing import LARGEST_RANGE, dirichlet_energy

__all__ = ["AttentionFlow", "CollapseHead", "DepthBound", "attention_flow", "depth_bound"]

_MOST_STEPS = 1_000_000


class CollapseHead(NamedTuple):
    """The weights of one head, as :func:`collapse_bound` takes them."""

    keys: Sequence[Tensor]  #: W_K^(0), the queries', to W_K^(N), each [C, d]
    values: Sequence[Tensor]  #: W_V^(1) to W_V^(N), each [C, Dv]
    output: Tensor | None = None  #: [Dv, C]; None if Dv = C


class DepthBound(NamedTuple):
    """Both sides of Corollary 3.2 after 0, 1, .., L layers, as natural logarithms. A residual of 0
    has the logarithm -inf."""

    residual: Tensor  #: [L + 1], float64: log ||res(X^(t))||, attained
    bound: Tensor  #: [L + 1], float64: the log of the right side for t layers; the residual for 0
    norm: Tensor  #: [L + 1], float64: ||X^(t)||
    gamma: float  #: the largest of all layers and heads
    beta: float
    logit_range: float  #: the largest of all layers and heads

    @property
    def assumption_holds(self) -> bool:
        """Whether the assumption of Theorem 3.1 holds in every layer and head."""
        return self.logit_range <= LARGEST_RANGE


@checked
def depth_bound(layers: Sequence[Sequence[CollapseHead]], tokens: Tensor) -> DepthBound:
    r"""The token collapse by a stack of attention layers, and the bound of Corollary 3.2:

    .. math::
        \|res(X^{(L)})\| \le \|res(X)\|^{3^L} \left(\frac{4 \gamma H}{\sqrt d} \beta
        \max_{0 \le t \le L} \|X^{(t)}\|^{2(N-1)}\right)^{(3^L - 1)/2}

    d is the smallest width of a head's keys.

    Args:
        layers: per layer its heads, each (keys, values) or (keys, values, output), as
            :func:`collapse_bound` takes them. All heads have the same order, and H is the largest
            number of heads.
        tokens: X [n, C].

    The layers have no mask, no skip connection and no normalisation; the outputs of the heads of a
    layer are added. gamma and beta are the largest of all layers and heads. ``output`` multiplies
    beta by its norm, which extends the corollary.

    The function computes in float64 on the CPU, without gradients. It takes O(n^(2N+1)) per head
    and is meant for few tokens: n^(N+1) is at most 2^29. Source: "How Smoothing is N-simplicial
    Attention?", Corollary 3.2.

    Raises:
        ValueError: heads of several orders, or shapes that do not fit.
        TypeError: weights or tokens that are not floating point numbers.
    """
    keys: list[Tensor] = []
    values: list[Tensor] = []
    outputs: list[Tensor | None] = []
    counts = []
    for heads in layers:
        for own_keys, own_values, *output in heads:
            keys += own_keys
            values += own_values
            outputs += output or [None]
            counts.append((len(own_keys), len(own_values)))
    return DepthBound(
        *operators.depth_bound(
            keys,
            values,
            outputs,
            tokens,
            [len(heads) for heads in layers],
            [own for own, _ in counts],
            [own for _, own in counts],
        )
    )


class AttentionFlow(NamedTuple):
    """Tokens that follow dX/dt = f(X), at the times of the steps."""

    times: Tensor  #: [steps + 1], float64
    tokens: Tensor  #: [.., n, d], at the last time
    dirichlet_energy: Tensor  #: [steps + 1, ..], float64
    largest_distance: Tensor  #: [steps + 1, ..], float64: of two tokens


def _largest_distance(tokens: Tensor) -> Tensor:
    return torch.cdist(tokens.double(), tokens.double()).flatten(-2).amax(-1)


@torch.no_grad()
@checked
def attention_flow(
    function: Callable[[Tensor], Tensor],
    tokens: Tensor,
    time: float,
    *,
    steps: int = 100,
    method: FlowMethod = "rk4",
    normalized: bool = False,
) -> AttentionFlow:
    r"""Follow dX/dt = f(X) from t = 0, and measure the collapse of the tokens.

    The paper conjectures that attention in continuous time collapses as deep stacks do. A
    transformer with skip connections is the Euler method with a step of 1 for such a flow.

    Args:
        function: f, from tokens [.., n, d] to the same shape: an attention layer without its skip
            connection, for example.
        tokens: X(0) [.., n, d]. The flow runs in their dtype and on their device.
        time: t at the end, positive.
        steps: how many steps of equal length, at most 1,000,000.
        method: "euler", or "rk4", the classical Runge-Kutta method of order 4.
        normalized: after every step, each token is divided by its root mean square.

    Complexity: per step one call of f with "euler" and four with "rk4", and O(n^2 d) for the
    distances. Values that overflow become
    infinite or NaN and are kept: orders above 1 can reach infinity in finite time. Source: "How
    Smoothing is N-simplicial Attention?", section 3.2.1.

    Raises:
        ValueError: arguments out of range, or an f that changes the shape.
    """
    at = "[attention_flow] "
    if tokens.dim() < 2 or not tokens.is_floating_point():
        raise ValueError(f"{at}tokens: expected floating [.., n, d], got {list(tokens.shape)}")
    if not 0 < time < math.inf:
        raise ValueError(f"{at}time: expected a positive number, got {time}")
    if not 1 <= steps <= _MOST_STEPS:
        raise ValueError(f"{at}steps: expected 1 to {_MOST_STEPS:,}, got {steps}")
    methods = get_args(FlowMethod)
    if method not in methods:
        raise ValueError(f"{at}method: expected one of {', '.join(methods)}, got {method!r:.40}")
    width = time / steps

    def slope(here: Tensor) -> Tensor:
        found = function(here.clone())  # it may write to it
        if not isinstance(found, Tensor) or found.shape != here.shape:
            got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(f"{at}function: expected shape {list(here.shape)}, got {got}")
        return found

    energies, distances = [dirichlet_energy(tokens)], [_largest_distance(tokens)]
    for _ in range(steps):
        change = slope(tokens)
        if method == "rk4":
            second = slope(tokens + width / 2 * change)
            third = slope(tokens + width / 2 * second)
            fourth = slope(tokens + width * third)
            change = (change + 2 * second + 2 * third + fourth) / 6
        tokens = tokens + width * change
        if normalized:
            tokens = tokens / tokens.square().mean(-1, keepdim=True).sqrt()
        energies.append(dirichlet_energy(tokens))
        distances.append(_largest_distance(tokens))
    times = torch.arange(steps + 1, dtype=torch.float64) * width
    return AttentionFlow(times, tokens, torch.stack(energies), torch.stack(distances))
