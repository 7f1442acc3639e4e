"""The largest derivative of a function over directions of norm 1, by backward passes only.

The leading axis of every tensor counts problems, and each problem is optimised separately.
nsimplex/analysis.h has the same functions in C++.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from .._arguments import checked_methods, describe

Function = Callable[..., Tensor]

_GROWTH, _SHRINK = 1.3, 0.5  # factors of the step size after a better value, after a worse value
_PATIENCE = 8  # the ascent stops after this many steps without growth


@checked_methods
@dataclass(frozen=True)
class Ascent:
    """Stopping rules of an ascent, and the size of the inputs' first step (a share of their row's
    norm)."""

    steps: int = 200
    tolerance: float = 1e-9
    step: float = 0.5

    def __post_init__(self) -> None:
        for name in ("steps", "tolerance", "step"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"[Ascent] {name}: expected 0 or more, got {getattr(self, name)}")


def check_problems(name: str, inputs: Sequence[Tensor], argument: str | None = None) -> None:
    """Check that all inputs are floating [B, .., C] with the same B, or raise a ValueError.

    Use ``argument`` for the name of a single input.
    """
    if not inputs:
        raise ValueError(f"[{name}] inputs: expected an input or more, got none")
    for i, x in enumerate(inputs):
        label = argument or f"inputs[{i}]"
        if not x.is_floating_point() or x.dim() < 2 or x.numel() == 0:
            raise ValueError(
                f"[{name}] {label}: expected floating [B, .., C] that is not empty, got {x.dtype} "
                f"{list(x.shape)}"
            )
        if x.shape[0] != inputs[0].shape[0]:
            raise ValueError(
                f"[{name}] {label}: expected {inputs[0].shape[0]} problems as in the first one, "
                f"got {x.shape[0]}"
            )


class NoGradient(ValueError):
    """A function whose output autograd does not connect with its input."""


def require_gradient(name: str, output: Tensor) -> None:
    """Refuses a function whose derivatives would all be 0, whatever it computes."""
    if not output.requires_grad:
        raise NoGradient(
            f"[{name}] function: expected an output that depends on the input for autograd, got "
            "one without a gradient; no_grad, inference_mode, detach and NumPy in it cut it off"
        )


def checked_function(name: str, function: Function) -> Function:
    """The function, whose outputs are checked: [B, .., C] for inputs [B, ..]."""

    def call(*inputs: Tensor) -> Tensor:
        # torch's fast kernels of attention and compiled code have no second derivative.
        with sdpa_kernel(SDPBackend.MATH), torch.compiler.set_stance("force_eager"):
            output: Any = function(*(each.clone() for each in inputs))  # it may write to them
        problems = inputs[0].size(0)
        if not isinstance(output, Tensor) or output.dim() < 2 or output.size(0) != problems:
            got = list(output.shape) if isinstance(output, Tensor) else describe(output)
            raise ValueError(
                f"[{name}] function: expected an output [B, .., C] with the {problems} entries of "
                f"its input, got {got}"
            )
        require_gradient(name, output)
        return output

    return call


def as_problems(values: Tensor, like: Tensor) -> Tensor:
    """View [B] as [B, 1, .., 1], to broadcast with ``like``."""
    return values.view(-1, *[1] * (like.dim() - 1))


def _row_norms(x: Tensor) -> Tensor:
    return x.norm(dim=-1, keepdim=True)


class Frobenius:
    """The Euclidean norm of all numbers of a problem."""

    @staticmethod
    def norm(x: Tensor) -> Tensor:
        return x.flatten(1).norm(dim=1)

    @staticmethod
    def norming(y: Tensor) -> Tensor:
        """u with <u, y> = |y| and <u, .> <= |.|."""
        return Frobenius.steepest(y, torch.zeros_like(y))

    @staticmethod
    def steepest(g: Tensor, otherwise: Tensor) -> Tensor:
        """Maximiser of <g, .> on the unit ball. If g is zero, it is ``otherwise``."""
        length = as_problems(Frobenius.norm(g), g)
        return torch.where(length > 0, g / length, otherwise)


class InfRms:
    """The largest root mean square of a row."""

    @staticmethod
    def norm(x: Tensor) -> Tensor:
        return _row_norms(x).flatten(1).amax(1) / math.sqrt(x.shape[-1])

    @staticmethod
    def norming(y: Tensor) -> Tensor:
        lengths = _row_norms(y)
        flat = lengths.flatten(1)
        first = torch.zeros_like(flat).scatter_(1, flat.argmax(1, keepdim=True), 1).view_as(lengths)
        return torch.where(lengths > 0, y / lengths, 0) * first / math.sqrt(y.shape[-1])

    @staticmethod
    def steepest(g: Tensor, otherwise: Tensor) -> Tensor:
        lengths = _row_norms(g)
        return torch.where(lengths > 0, g / lengths * math.sqrt(g.shape[-1]), otherwise)


@dataclass(frozen=True)
class Rows:
    """Domain of an input: rows of Euclidean norm up to the radius, or of exactly that norm."""

    radius: float
    sphere: bool = False

    def project(self, x: Tensor) -> Tensor:
        lengths = _row_norms(x)
        return torch.where(
            lengths > 0 if self.sphere else lengths > self.radius, x / lengths * self.radius, x
        )


def _gradients(value: Tensor, wrt: Sequence[Tensor], differentiable: bool) -> list[Tensor]:
    """Gradients of the value. They are zero for tensors on which the value does not depend, because
    autograd has no graph for these."""
    if not value.requires_grad:
        return [torch.zeros_like(x) for x in wrt]
    found = torch.autograd.grad(value, wrt, create_graph=differentiable, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, wrt, strict=True)]


def leaf(x: Tensor) -> Tensor:
    """A tensor by which derivatives are taken."""
    return (x.clone() if x.is_inference() else x).detach().requires_grad_()


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [leaf(x) for x in tensors]


def _form(output: Tensor, x: list[Tensor], directions: list[list[Tensor]], u: Tensor) -> Tensor:
    """<u, D^k F(x)[a_1, .., a_k]>, summed over problems."""
    value: Any = (u * output).sum()
    for direction in directions:
        slopes = _gradients(value, x, True)
        products: Any = ((g * a).sum() for g, a in zip(slopes, direction, strict=True))
        value = sum(products)
    return value


@torch.enable_grad()
def directional(
    function: Function, inputs: Sequence[Tensor], directions: list[list[Tensor]]
) -> Tensor:
    """D^k F(x)[a_1, .., a_k] for k directions, each with one tensor per input."""
    x = _leaves(inputs)
    output = function(*x)
    # The form is linear in u, so its gradient is the derivative at any u.
    u = torch.zeros_like(output).detach().requires_grad_()
    return _gradients(_form(output, x, directions, u), [u], False)[0]


@torch.enable_grad()
def form_gradients(
    function: Function,
    inputs: Sequence[Tensor],
    directions: list[list[Tensor]],
    u: Tensor,
    move: bool,
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """Gradients of <u, D^k F(x)[a_1, .., a_k]> with respect to the directions and, if ``move``, to
    the inputs."""
    x, a = _leaves(inputs), [_leaves(direction) for direction in directions]
    wrt = (x if move else []) + [each for direction in a for each in direction]
    found = iter(_gradients(_form(function(*x), x, a, u), wrt, False))
    slopes = [next(found) for _ in x] if move else []
    return slopes, [[next(found) for _ in direction] for direction in a]


def _choose(choice: Tensor, a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
    return [torch.where(as_problems(choice, p), p, q) for p, q in zip(a, b, strict=True)]


def _normal(x: Tensor) -> Tensor:
    """Normal numbers in the shape of x, the same for any strides."""
    return torch.randn(x.shape, dtype=x.dtype, device=x.device)


def random_direction(
    inputs: Sequence[Tensor], norm, active: list[Tensor] | None = None
) -> list[Tensor]:
    """A random direction of norm 1 per input, zero for inputs that are not active."""
    direction = [norm.steepest(_normal(x), torch.zeros_like(x)) for x in inputs]
    return (
        direction
        if active is None
        else [a * as_problems(m, a) for a, m in zip(direction, active, strict=True)]
    )


def ascend(
    function: Function,
    inputs: Sequence[Tensor],
    directions: list[list[Tensor]],
    norm,
    options: Ascent,
    domains: Sequence[Rows] = (),
    active: list[list[Tensor]] | None = None,
) -> tuple[Tensor, list[Tensor], list[list[Tensor]]]:
    """The largest |D^k F(x)[a_1, .., a_k]| over directions of norm 1 and, with ``domains``, over
    inputs.

    Let y be the derivative, and u such that <u, y> = |y| and <u, .> <= |.|. Directions are updated
    in turn: each moves to the maximiser of <u, D^k F[.]> on the unit ball (power iteration). Inputs
    take projected steps along the gradient of the same form. If a step lowers the value of a
    problem, it is undone and the step size is halved. Returns values [B], inputs and directions.
    The values are lower bounds that are attained.
    """
    x = [d.project(i) for d, i in zip(domains, inputs, strict=True)] if domains else list(inputs)
    derivative = directional(function, x, directions)
    value = norm.norm(derivative)
    steps = torch.full_like(value, options.step)
    before = value
    for count in range(options.steps):
        turn = count % len(directions)
        slopes, turns = form_gradients(
            function, x, directions, norm.norming(derivative), bool(domains)
        )
        following = [
            norm.steepest(g, a) for g, a in zip(turns[turn], directions[turn], strict=True)
        ]
        if active is not None:
            following = [
                a * as_problems(m, a) for a, m in zip(following, active[turn], strict=True)
            ]
        next_directions = [following if k == turn else d for k, d in enumerate(directions)]
        next_x = x
        if domains:
            next_x = [_moved(i, g, d, steps) for i, g, d in zip(x, slopes, domains, strict=True)]
        next_derivative = directional(function, next_x, next_directions)
        next_value = norm.norm(next_derivative)
        better = next_value >= value  # false for NaN as well
        (derivative,) = _choose(better, [next_derivative], [derivative])
        x = _choose(better, next_x, x)
        directions = [
            _choose(better, a, b) for a, b in zip(next_directions, directions, strict=True)
        ]
        value = torch.where(better, next_value, value)
        steps = torch.where(better, steps * _GROWTH, steps * _SHRINK).clamp_max(1)
        if (count + 1) % _PATIENCE == 0:
            if bool((value - before <= options.tolerance * value).all()):
                break
            before = value
    return value, x, directions


def _moved(x: Tensor, slope: Tensor, domain: Rows, steps: Tensor) -> Tensor:
    """Take a step along the gradient. No row moves further than the step's share of the radius."""
    longest = _row_norms(slope).flatten(1).amax(1)
    factor = torch.where(longest > 0, steps * domain.radius / longest, 0)
    return domain.project(x + as_problems(factor, x) * slope)
