"""Equivariant linear layers on lists of tuples: sets, graphs and hypergraphs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ._arguments import checked
from .equivariant import EquivariantClass, TensorKind, _flat_kinds, equivariant_classes
from .graph import TupleBatch

__all__ = ["EquivariantPlan", "equivariant_linear_sparse", "equivariant_plan"]

_operators = torch.ops.nsimplex


@dataclass(frozen=True)
class EquivariantPlan:
    """Which input tuples meet which output tuples, class by class; see :func:`equivariant_plan`.

    Attributes:
        input, output: kinds of the two lists.
        classes: "all" or "light".
        rows: m and m', the rows of features of the two lists.
        class_counts: of the weight and of the bias of a layer.
        tensors, parts: as the operators take them, which check the numbers before they follow them.
    """

    input: TensorKind
    output: TensorKind
    classes: str
    rows: tuple[int, int]
    class_counts: tuple[int, int]
    tensors: list[Tensor]
    parts: list[int]

    def to(self, device: torch.device | str) -> EquivariantPlan:
        return replace(self, tensors=[t.to(device) for t in self.tensors])

    def class_list(self) -> list[EquivariantClass]:
        """The classes of the layer, in the order of its weights."""
        return equivariant_classes(self.input, self.output, self.classes)


@checked
def equivariant_plan(
    input: TupleBatch,
    output: TupleBatch,
    *,
    classes: str = "all",
    input_loops: bool = True,
    output_loops: bool = True,
) -> EquivariantPlan:
    """The plan of layers from features of one list of tuples to features of another over the same nodes.

    Made once for two lists, on the CPU, and used by every layer between them in every step.

    Args:
        input, output: lists of tuples.
        classes: "all" or "light".
        input_loops, output_loops: of undirected lists, whether hyperedges that name a node twice occur.

    Raises:
        ValueError: lists over different nodes, a repeated node where none should be, orders beyond those of
            :func:`equivariant_classes`, or more than 2^31 look-ups.

    Complexity: O(C (m + m')) time and memory for the C look-ups of b(k + l) classes: radix sorts and merges.
    """
    kinds, options = _list_kinds("equivariant_plan", input, output, input_loops, output_loops)
    tensors, parts = _operators.equivariant_plan(
        input.tuples, input.tuple_offsets, output.tuples, output.tuple_offsets, input.node_offsets,
        **options, classes=classes,
    )  # fmt: skip
    rows = input.tuples.size(0), output.tuples.size(0)
    counts = len(equivariant_classes(*kinds, classes)), len(equivariant_classes(0, kinds[1]))
    return EquivariantPlan(*kinds, classes, rows, counts, tensors, parts)


def _list_kinds(
    function: str, input: TupleBatch, output: TupleBatch, input_loops: bool, output_loops: bool
) -> tuple[list[TensorKind], dict]:
    """The kinds of two lists over the same nodes, and what the operators that make plans take of them."""
    if not torch.equal(input.node_offsets, output.node_offsets):
        raise ValueError(f"[{function}] output: expected the nodes of the input, got other node_offsets")
    kinds = [
        TensorKind(each.tuples.size(-1), each.symmetry, loops)
        for each, loops in ((input, input_loops), (output, output_loops))
    ]
    return kinds, {name: value for name, value in _flat_kinds(*kinds).items() if not name.endswith("order")}


@checked
def equivariant_linear_sparse(
    x: Tensor, weight: Tensor, bias: Tensor | None, plan: EquivariantPlan, *, pooling: str = "mean"
) -> Tensor:
    """:func:`equivariant_linear` on lists of tuples: sums run over the tuples of the input list only, and only
    those of the output list are written.

    Args:
        x: [m, C] in the order of the input list, floating.
        weight: [classes, C, D], for ``plan.class_list()``.
        bias: [bias classes, D], those of 0 -> l, or None.
        plan: of the two lists.
        pooling: "mean": divided by how many tuples of the list contribute, none: 0; or "sum".

    Returns:
        [m', D] in the order of the output list, differentiable any number of times. Sums over a class are
        differences of sums over groups of tuples; these run in float64, counts are integers.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: O(b(k + l) (m + m') C) for the sums and a product with the weights, by chunks of rows. Memory
    beside the output is that of the group sums, in float64; for the gradient x and weight are kept and sums
    made again. A gradient of a gradient makes and keeps all sums, [m', classes C] of the classes that
    apply to a tuple. The bits do not depend on the number of threads.

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 15.
    """
    for name, tensor, count in zip(("weight", "bias"), (weight, bias), plan.class_counts):
        if tensor is not None and (tensor.dim() == 0 or tensor.size(0) != count):
            got = f"{tensor.size(0)}" if tensor.dim() else "a number"
            raise ValueError(f"[equivariant_linear_sparse] {name}: expected {count} classes, got {got}")
    return _operators.equivariant_linear_sparse(x, weight, bias, plan.tensors, plan.parts, pooling)


def _product_flops(channels: int, out: int, parts: list[int]) -> int:
    """Of the products of all parts, each given as rows, three numbers, how many classes, classes."""
    total, at = 0, 0
    while at < len(parts):
        rows, classes = parts[at], parts[at + 4]
        total += 2 * rows * classes * channels * out
        at += 5 + classes
    return total


@register_flop_formula(_operators.equivariant_linear_sparse)
def _linear_flops(x, weight, bias, plan, parts, pooling="mean", *, out_shape=None, **_) -> int:
    return _product_flops(weight[1], weight[2], parts)


@register_flop_formula(_operators.equivariant_linear_sparse_backward)
def _linear_backward_flops(grad, x, weight, bias, plan, parts, pooling, output_mask, **_) -> int:
    """One product for the gradient of x and one for that of the weights."""
    return sum(output_mask[:2]) * _product_flops(weight[1], weight[2], parts)
