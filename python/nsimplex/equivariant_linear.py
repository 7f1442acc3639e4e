"""Equivariant linear layers on dense tensors and on lists of tuples (sets, graphs and
hypergraphs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ._arguments import checked
from ._choices import ClassSet, Pooling
from ._hints import has_data
from ._library import operators
from ._packed_plans import as_autocast, pack, unpack
from ._pytree import TensorRecord, tensor_record
from .equivariant_classes import (
    EquivariantClass,
    Kind,
    TensorKind,
    _flat_kinds,
    equivariant_classes,
)
from .graph import TupleBatch

__all__ = ["EquivariantPlan", "equivariant_linear", "equivariant_linear_sparse", "equivariant_plan"]


@checked
def equivariant_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    input: Kind,
    output: Kind,
    classes: ClassSet = "all",
    pooling: Pooling = "mean",
    node_counts: Tensor | None = None,
    nodes: int | None = None,
) -> Tensor:
    r"""The equivariant linear layer L_{k->l} on dense tensors. With ``classes="light"`` it is the
    lightweight form of the layer.

    .. math::
        y_j = \sum_\mu w_\mu^T \sum_{i : (i, j) \in \mu} x_i + b_{\lambda(j)}
            \qquad i \in [n]^k,\; j \in [n]^l

    The sum over mu runs over the classes of :func:`equivariant_classes`. By default, a mean over i
    replaces the sum over i. A loop-free order neither reads nor writes entries with equal indices.
    An undirected input is expected to be symmetric, and each of its tuples counts in all its
    orders. The layer is then the ordered layer with tied weights (and, for the mean, one mean over
    all members of a class).

    Args:
        x: [B, n, .., n, C] with k axes of nodes, floating.
        weight: [classes, C, D].
        bias: [bias classes, D]; the bias classes are those of 0 -> l.
        input, output: kinds, or orders of ordered tensors.
        classes: "all" or "light".
        pooling: "mean", which is 0 if no tuple contributes, or "sum".
        node_counts: int64 [B], the number of nodes of each graph of a padded batch. Entries beyond
            it are not read, and are 0 in the result.
        nodes: n; required if k = 0.

    Returns:
        [B, n, .., n, D] with l axes of nodes. Differentiable any number of times, since the layer
        is composed of tensor operations.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: O(b(k + l) n^max(k, l)) times C, D or C D. The layer computes diagonals, sums and
        broadcasts of the diagram basis, whose weights are a Moebius transform of the weights of the
        classes. It multiplies by the weights before it broadcasts, so it never takes n^(k + l).

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 14; Godfrey et al., arXiv
        2303.06208.

    Example:
        >>> x, weight = torch.randn(4, 9, 9, 8), torch.randn(15, 8, 16)
        >>> equivariant_linear(x, weight, input=2, output=2).shape
        torch.Size([4, 9, 9, 16])
    """
    if node_counts is not None:
        _require_counts(node_counts, x.size(1) if x.dim() > 2 else nodes)
    return operators.equivariant_linear(
        x,
        weight,
        bias,
        **_flat_kinds(input, output),
        classes=classes,
        pooling=pooling,
        node_counts=node_counts,
        nodes=nodes,
    )


def _require_counts(counts: Tensor, most: int | None) -> None:
    """Check numbers of nodes where they can be read. Means divide by them."""
    if torch.compiler.is_compiling() or most is None:
        return
    if not (counts.is_cpu and has_data(counts) and counts.numel()):
        return
    low, high = (int(each) for each in counts.aminmax())
    if low < 0 or high > most:
        raise ValueError(
            f"[equivariant_linear] node_counts: expected 0 to {most}, the nodes of x, got {low} to "
            f"{high}"
        )


@tensor_record("tensors")
@dataclass(frozen=True)
class EquivariantPlan(TensorRecord):
    """The pairs of input and output tuples that belong to each class; see :func:`equivariant_plan`.

    A plan is a pytree: compiled and exported programs take one as an argument.

    Attributes:
        input, output: kinds of the two lists.
        classes: "all" or "light".
        rows: m and m', the rows of features of the two lists; empty if packed.
        class_counts: the numbers of classes of a layer's weight and bias.
        tensors, parts: arguments of the operators, which check these numbers before they use them.
            A packed plan has two tensors and no parts.
    """

    input: TensorKind
    output: TensorKind
    classes: ClassSet
    rows: tuple[int, ...]
    class_counts: tuple[int, int]
    tensors: list[Tensor]
    parts: tuple[int, ...]

    def packed(self) -> EquivariantPlan:
        """The same plan as one tensor of integers, without ``rows``. A program that was compiled or
        exported with a packed plan takes those of other lists as well."""
        if not self.rows:
            return self
        return replace(
            self, tensors=pack(self.tensors, self.parts, self.rows[1]), parts=(), rows=()
        )

    def class_list(self) -> list[EquivariantClass]:
        """The classes of the layer, in the order of its weights."""
        return equivariant_classes(self.input, self.output, self.classes)


@checked
def equivariant_plan(
    input: TupleBatch,
    output: TupleBatch,
    *,
    classes: ClassSet = "all",
    input_loops: bool = True,
    output_loops: bool = True,
) -> EquivariantPlan:
    """The plan of layers from features of one list of tuples to features of another list over the
    same nodes.

    Compute it once per pair of lists, on the CPU. Every layer between the two lists uses it in
    every step.

    Args:
        input, output: lists of tuples.
        classes: "all" or "light".
        input_loops, output_loops: of undirected lists, whether they contain hyperedges that name a
            node twice.

    Raises:
        ValueError: lists over different nodes, a repeated node that the symmetry or
            ``input_loops`` and ``output_loops`` exclude, orders beyond those of
            :func:`equivariant_classes`, or more than 2^31 look-ups.

    Complexity: O(C (m + m')) time and memory for the C look-ups of b(k + l) classes. The plan is
        computed with radix sorts and merges.
    """
    kinds, options = _list_kinds("equivariant_plan", input, output, input_loops, output_loops)
    tensors, parts = operators.equivariant_plan(
        input.tuples,
        input.tuple_offsets,
        output.tuples,
        output.tuple_offsets,
        input.node_offsets,
        **options,
        classes=classes,
    )
    rows = input.tuples.size(0), output.tuples.size(0)
    counts = (
        len(equivariant_classes(kinds[0], kinds[1], classes)),
        len(equivariant_classes(0, kinds[1])),
    )
    return EquivariantPlan(kinds[0], kinds[1], classes, rows, counts, tensors, tuple(parts))


def _list_kinds(
    function: str, input: TupleBatch, output: TupleBatch, input_loops: bool, output_loops: bool
) -> tuple[list[TensorKind], dict]:
    """The kinds of two lists over the same nodes, and the keyword arguments that describe these
    kinds to the operators that make plans."""
    if not torch.equal(input.node_offsets, output.node_offsets):
        raise ValueError(
            f"[{function}] output: expected the nodes of the input, got other node_offsets"
        )
    kinds = [
        TensorKind(each.tuples.size(-1), each.symmetry, loops)
        for each, loops in ((input, input_loops), (output, output_loops))
    ]
    return kinds, {
        name: value for name, value in _flat_kinds(*kinds).items() if not name.endswith("order")
    }


@checked
def equivariant_linear_sparse(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    plan: EquivariantPlan,
    *,
    pooling: Pooling = "mean",
) -> Tensor:
    """:func:`equivariant_linear` on lists of tuples. Sums run only over the tuples of the input
    list, and only the tuples of the output list are written.

    Args:
        x: [m, C] in the order of the input list, floating.
        weight: [classes, C, D], for ``plan.class_list()``.
        bias: [bias classes, D], whose classes are those of 0 -> l, or None.
        plan: plan of the two lists.
        pooling: "mean", which divides by the number of listed tuples that contribute, and is 0 if
            there are none; or "sum".

    Returns:
        [m', D] in the order of the output list, differentiable any number of times. Sums over a
        class are differences of sums over groups of tuples. These run in float64, and counts are
        integers.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: O(b(k + l) (m + m') C) for the sums, and a product with the weights, in chunks of
        rows. Memory besides the output is that of the group sums, in float64. For the gradient, x
        and weight are kept, and the sums are computed again. A gradient of a gradient computes and
        keeps all sums, [m', classes C] of the classes that apply to a tuple. The bits do not depend
        on the number of threads.

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 15.
    """
    for name, tensor, count in zip(("weight", "bias"), (weight, bias), plan.class_counts):
        if tensor is not None and (tensor.dim() == 0 or tensor.size(0) != count):
            got = f"{tensor.size(0)}" if tensor.dim() else "a number"
            raise ValueError(
                f"[equivariant_linear_sparse] {name}: expected {count} classes, got {got}"
            )
    if not plan.rows:
        return _sum_classes(x, weight, bias, plan.tensors, pooling)
    return operators.equivariant_linear_sparse(x, weight, bias, plan.tensors, plan.parts, pooling)


@torch.library.custom_op("nsimplex_packed::linear", mutates_args=())
def _packed_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, plan: Tensor, rows: Tensor, pooling: str
) -> Tensor:
    return operators.equivariant_linear_sparse(x, weight, bias, *unpack(plan), pooling)


@_packed_linear.register_fake
def _(x, weight, bias, plan, rows, pooling):
    return x.new_empty(rows.size(0), weight.size(2))


@torch.library.custom_op("nsimplex_packed::linear_backward", mutates_args=())
def _packed_linear_backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, plan: Tensor, pooling: str
) -> list[Tensor]:
    mask = [True, True, bias is not None]
    own = operators.equivariant_linear_sparse_backward(
        grad, x, weight, bias, *unpack(plan), pooling, mask
    )
    return list(own if bias is not None else own[:2])


@_packed_linear_backward.register_fake
def _(grad, x, weight, bias, plan, pooling):
    return [torch.empty_like(each) for each in (x, weight, bias) if each is not None]


def _keep_packed_linear(ctx, inputs, output) -> None:
    x, weight, bias, plan, _, ctx.pooling = inputs
    ctx.save_for_backward(x, weight, *([] if bias is None else [bias]), plan)


def _differentiate_packed_linear(ctx, grad):
    x, weight, *bias, plan = ctx.saved_tensors
    own = _packed_linear_backward(grad, x, weight, bias[0] if bias else None, plan, ctx.pooling)
    return own[0], own[1], own[2] if bias else None, None, None, None


_packed_linear.register_autograd(_differentiate_packed_linear, setup_context=_keep_packed_linear)


def _sum_classes(
    x: Tensor, weight: Tensor, bias: Tensor | None, plan: Sequence[Tensor], pooling: str
) -> Tensor:
    """``operators.equivariant_linear_sparse`` with a packed plan."""
    if not torch.compiler.is_compiling():
        return operators.equivariant_linear_sparse(x, weight, bias, *unpack(plan[0]), pooling)
    return _packed_linear(*as_autocast(x, weight, bias), *plan, pooling)


def _product_flops(channels: int, out: int, parts: Sequence[int]) -> int:
    """Flops of the products of all parts. Each part is given as its rows, three numbers, the count
    of its classes, and the classes."""
    total, at = 0, 0
    while at < len(parts):
        rows, classes = parts[at], parts[at + 4]
        total += 2 * rows * classes * channels * out
        at += 5 + classes
    return total


@register_flop_formula(operators.equivariant_linear_sparse)
def _linear_flops(x, weight, bias, plan, parts, pooling="mean", *, out_shape=None, **_) -> int:
    return _product_flops(weight[1], weight[2], parts)


@register_flop_formula(operators.equivariant_linear_sparse_backward)
def _linear_backward_flops(grad, x, weight, bias, plan, parts, pooling, output_mask, **_) -> int:
    """The backward pass computes one product for the gradient of x and one for the gradient of the
    weights."""
    return sum(output_mask[:2]) * _product_flops(weight[1], weight[2], parts)
