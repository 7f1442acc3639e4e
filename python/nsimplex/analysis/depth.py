"""Token collapse over many layers: the bound of Corollary 3.2, and attention in continuous time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from ..attention import attention
from .smoothing import (
    LARGEST_RANGE,
    collapse_bound,
    composite_norm,
    dirichlet_energy,
    minimal_residual,
)

__all__ = ["AttentionFlow", "CollapseHead", "DepthBound", "attention_flow", "depth_bound"]

_METHODS = "euler", "rk4"
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


def _applied(head: CollapseHead, tokens: Tensor) -> Tensor:
    """A head's output for tokens [n, C]."""
    q, *keys = [(tokens @ weight)[None, None] for weight in head.keys]
    values = [(tokens @ weight)[None, None] for weight in head.values]
    out = attention(q, keys, values, scale=head.keys[0].size(1) ** -0.5)[0, 0]
    return out if head.output is None else out @ head.output


def _checked_layers(
    layers: Sequence[Sequence[CollapseHead]], tokens: Tensor
) -> list[list[CollapseHead]]:
    at = "[depth_bound] "
    if tokens.dim() != 2 or not tokens.is_floating_point():
        raise ValueError(f"{at}tokens: expected floating [n, C], got {list(tokens.shape)}")
    if not layers or not all(len(heads) for heads in layers):
        raise ValueError(f"{at}layers: expected at least one, each with at least one head")
    wide = lambda own: own.detach().to("cpu", torch.float64)
    found = [
        [
            CollapseHead(
                [wide(own) for own in keys],
                [wide(own) for own in values],
                *[None if own is None else wide(own) for own in output],
            )
            for keys, values, *output in heads
        ]
        for heads in layers
    ]
    order, channels = len(found[0][0].values), tokens.size(1)
    for place, heads in enumerate(found):
        for own, head in enumerate(heads):
            label = f"{at}layers[{place}][{own}]: "
            if len(head.values) != order or len(head.keys) != order + 1:
                raise ValueError(
                    f"{label}expected {order + 1} keys and {order} values as in the first head, "
                    f"got {len(head.keys)} and {len(head.values)}"
                )
            last = head.values[0] if head.output is None else head.output
            if last.dim() != 2 or last.size(1) != channels:
                raise ValueError(
                    f"{label}expected an output of {channels} channels as the tokens, got "
                    f"{list(last.shape)}"
                )
    return found


@checked
def depth_bound(layers: Sequence[Sequence[CollapseHead]], tokens: Tensor) -> DepthBound:
    r"""The token collapse by a stack of attention layers, and the bound of Corollary 3.2:

    .. math::
        \|res(X^{(L)})\| \le \|res(X)\|^{3^L} \left(\frac{4 \gamma H}{\sqrt d} \beta
        \max_{0 \le t \le L} \|X^{(t)}\|^{2(N-1)}\right)^{(3^L - 1)/2}

    Args:
        layers: per layer its heads, each (keys, values) or (keys, values, output), as
            :func:`collapse_bound` takes them. All heads have the same order, and H is the largest
            number of heads.
        tokens: X [n, C].

    The layers have no mask, no skip connection and no normalisation; the outputs of the heads of a
    layer are added. gamma and beta are the largest of all layers and heads. ``output`` multiplies
    beta by its norm, which extends the corollary.

    The function computes in float64 on the CPU, without gradients. It takes O(n^(2N+1)) per head
    and is meant for few tokens. Source: "How Smoothing is N-simplicial Attention?", Corollary 3.2.

    Raises:
        ValueError: heads of several orders, or shapes that do not fit.
    """
    stack = _checked_layers(layers, tokens)
    states = [tokens.detach().to("cpu", torch.float64)]
    order, width = len(stack[0][0].values), stack[0][0].keys[0].size(1)
    gamma = reach = beta = 0.0
    sides: list[float] = []  # of the logarithm that is raised to (3^t - 1) / 2
    of_keys = of_values = of_output = 0.0
    heads_at_most = 0
    for heads in stack:
        for head in heads:
            found = collapse_bound(head.keys, head.values, states[-1], head.output)
            gamma, reach = max(gamma, found.gamma), max(reach, found.logit_range)
            of_keys = max(of_keys, *[float(composite_norm(own)) for own in head.keys])
            of_values = max(of_values, *[float(composite_norm(own)) for own in head.values])
            own = 1.0 if head.output is None else float(composite_norm(head.output))
            of_output = max(of_output, own)
        heads_at_most = max(heads_at_most, len(heads))
        states.append(torch.stack([_applied(head, states[-1]) for head in heads]).sum(0))
        largest = max(float(composite_norm(each)) for each in states)
        beta = (2 * of_keys) ** (order + 1) * (2 * of_values) ** order * of_output
        factors = 4 * gamma * heads_at_most / math.sqrt(width), beta, largest ** (2 * (order - 1))
        sides.append(sum(math.log(each) if each > 0 else -math.inf for each in factors))
    norms = torch.stack([composite_norm(each) for each in states])
    residuals = torch.stack([minimal_residual(each).norm for each in states]).log()
    start = float(residuals[0])
    bounds = [start]
    for depth, side in enumerate(sides, 1):
        power = 3.0**depth
        bounds.append(power * start + side * (power - 1) / 2)
    return DepthBound(
        residuals, torch.tensor(bounds, dtype=torch.float64), norms, gamma, beta, reach
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
    method: str = "rk4",
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
    if method not in _METHODS:
        raise ValueError(f"{at}method: expected one of {', '.join(_METHODS)}, got {method!r:.40}")
    width = time / steps

    def slope(here: Tensor) -> Tensor:
        found = function(here)
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
