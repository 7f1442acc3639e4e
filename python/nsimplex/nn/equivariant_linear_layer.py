"""The equivariant linear layer as a module, for dense tensors and for lists of tuples."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import ClassSet, Pooling
from ..equivariant_classes import Kind, _kind, equivariant_classes
from ..equivariant_linear import EquivariantPlan, equivariant_linear, equivariant_linear_sparse
from .checks import require_name, require_rows, require_whole


@checked_methods
class EquivariantLinear(nn.Module):
    """L_{k->l}, or with ``classes="light"`` its lightweight form
    (:func:`nsimplex.equivariant_linear`).

    Parameters: ``weight`` [classes, C, D], initially normal with variance 1 / (3 classes C);
        ``bias`` [bias classes, D], initially zero, or absent.

    Args:
        input, output: kinds of the two tensors, or orders of ordered ones.
        in_channels, out_channels: C and D.
        classes: "all" or "light".
        pooling: "mean" or "sum".
        bias: whether the layer has a bias.

    Raises:
        ValueError: orders or names that do not fit.

    Example:
        >>> layer = EquivariantLinear(2, 1, 8, 16)
        >>> layer(torch.randn(4, 9, 9, 8)).shape
        torch.Size([4, 9, 16])
    """

    def __init__(
        self,
        input: Kind,
        output: Kind,
        in_channels: int,
        out_channels: int,
        *,
        classes: ClassSet = "all",
        pooling: Pooling = "mean",
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_whole("[EquivariantLinear] ", in_channels=in_channels, out_channels=out_channels)
        require_name("[EquivariantLinear] ", "pooling", pooling, ("mean", "sum"))
        self.classes: ClassSet
        self.pooling: Pooling
        self.input, self.output, self.classes, self.pooling = (
            _kind(input),
            _kind(output),
            classes,
            pooling,
        )
        count = len(equivariant_classes(self.input, self.output, classes))
        self.weight = nn.Parameter(torch.empty(count, in_channels, out_channels))
        self.bias = (
            nn.Parameter(torch.empty(len(equivariant_classes(0, self.output)), out_channels))
            if bias
            else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        count, channels, _ = self.weight.shape
        nn.init.normal_(self.weight, std=1 / math.sqrt(3 * max(count * channels, 1)))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        plan: EquivariantPlan | None = None,
        *,
        node_counts: Tensor | None = None,
        nodes: int | None = None,
    ) -> Tensor:
        """x [B, n, .., n, C] -> [B, n, .., n, D]; or with a plan of two lists x [m, C] -> [m', D].

        The plan must have the layer's kinds and classes. ``node_counts`` and ``nodes`` apply to
        dense tensors only.
        """
        require_rows("EquivariantLinear", "x", x, self.weight.size(1))
        if plan is None:
            return equivariant_linear(
                x,
                self.weight,
                self.bias,
                input=self.input,
                output=self.output,
                classes=self.classes,
                pooling=self.pooling,
                node_counts=node_counts,
                nodes=nodes,
            )
        if (plan.input, plan.output, plan.classes) != (self.input, self.output, self.classes):
            raise ValueError(
                f"[EquivariantLinear] plan: expected {self.classes} classes of {self.input} -> "
                f"{self.output}, "
                f"got {plan.classes} classes of {plan.input} -> {plan.output}"
            )
        return equivariant_linear_sparse(x, self.weight, self.bias, plan, pooling=self.pooling)

    def extra_repr(self) -> str:
        count, inputs, outputs = self.weight.shape
        return (
            f"{self.input.order} -> {self.output.order}, {count} classes, {inputs} -> {outputs} "
            "channels"
        )
