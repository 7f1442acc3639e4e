"""Equivariant linear layers between tensors of any order, and the classes they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from ._arguments import checked

__all__ = ["EquivariantClass", "TensorKind", "equivariant_classes", "equivariant_linear"]

_operators = torch.ops.nsimplex


@dataclass(frozen=True)
class TensorKind:
    """What an equivariant layer knows of a tensor: its order and which tuples it holds.

    Args:
        order: 0: one row a graph, 1: nodes, 2: pairs, ...
        symmetry: "ordered"; "loop_free": distinct entries only; "undirected": one tuple for all orders of its
            entries.
        loops: of an undirected tensor, whether hyperedges that name a node twice occur.
    """

    order: int
    symmetry: str = "ordered"
    loops: bool = True


Kind = TensorKind | int


def _kind(kind: Kind) -> TensorKind:
    return kind if isinstance(kind, TensorKind) else TensorKind(kind)


def _flat_kinds(input: Kind, output: Kind) -> dict:
    input, output = _kind(input), _kind(output)
    return {
        "input_order": input.order, "output_order": output.order,
        "input_symmetry": input.symmetry, "output_symmetry": output.symmetry,
        "input_loops": input.loops, "output_loops": output.loops,
    }  # fmt: skip


@dataclass(frozen=True)
class EquivariantClass:
    """A class of a layer k -> l: the equality patterns of (i, j) that share a weight.

    Attributes:
        name: of the first member, like ``{i1 j1}{i2 j2}``.
        members: partitions of i1 .. ik j1 .. jl, the number of the block of every position; more than one only
            where a side is undirected.
        inputs: k.
    """

    name: str
    members: tuple[tuple[int, ...], ...]
    inputs: int

    @property
    def light(self) -> bool:
        """Whether the class does not sum over the input."""
        member = self.members[0]
        return set(member[: self.inputs]) <= set(member[self.inputs :])


@checked
def equivariant_classes(input: Kind, output: Kind, classes: str = "all") -> list[EquivariantClass]:
    """The classes of a layer between two kinds of tensors, in canonical order: that of its weights.

    Canonical is the lexicographic order of the block numbers. Ordered tensors have b(k + l) classes, the Bell
    number; loop-free ones sum_r C(k, r) C(l, r) r!; undirected ones 9 for 2 -> 2, 31 for 3 -> 3, and without
    loops min(k, l) + 1. Bias classes are those of 0 -> l.

    Args:
        input, output: kinds, or orders of ordered tensors.
        classes: "all", for k + l <= 7; or "light": those that do not sum over the input, for k + l <= 10.

    Raises:
        ValueError: an order or a name that does not fit.

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1, 2 and 14.

    Example:
        >>> [c.name for c in equivariant_classes(1, 2)][:3]
        ['{i1 j1 j2}', '{i1 j1}{j2}', '{i1 j2}{j1}']
    """
    return list(_classes(_kind(input), _kind(output), classes))


@lru_cache
def _classes(input: TensorKind, output: TensorKind, classes: str) -> tuple[EquivariantClass, ...]:
    arguments = _flat_kinds(input, output) | {"classes": classes}
    members: list[list[tuple[int, ...]]] = []
    for number, *blocks in _operators.equivariant_classes(**arguments).tolist():
        if number == len(members):
            members.append([])
        members[number].append(tuple(blocks))
    names = _operators.equivariant_class_names(**arguments)
    return tuple(EquivariantClass(n, tuple(m), input.order) for n, m in zip(names, members))


@checked
def equivariant_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    input: Kind,
    output: Kind,
    classes: str = "all",
    pooling: str = "mean",
    node_counts: Tensor | None = None,
    nodes: int | None = None,
) -> Tensor:
    r"""The equivariant linear layer L_{k->l} on dense tensors; with ``classes="light"`` its lightweight form.

    .. math::
        y_j = \sum_\mu w_\mu^T \sum_{i : (i, j) \in \mu} x_i + b_{\lambda(j)}
            \qquad i \in [n]^k,\; j \in [n]^l

    over the classes of :func:`equivariant_classes`, with a mean over the i of a class in place of the sum by
    default. A loop-free order neither reads nor writes entries with equal indices. An undirected input is
    expected to be symmetric, and each of its tuples counts in all its orders: the layer is the ordered one with
    tied weights (and, for the mean, one mean over all members of a class).

    Args:
        x: [B, n, .., n, C] with k axes of nodes, floating.
        weight: [classes, C, D].
        bias: [bias classes, D], its classes those of 0 -> l.
        input, output: kinds, or orders of ordered tensors.
        classes: "all" or "light".
        pooling: "mean", where no contributing tuple gives 0, or "sum".
        node_counts: int64 [B], nodes of each graph of a padded batch: entries beyond are not read and come out
            as 0.
        nodes: n; needed where k = 0.

    Returns:
        [B, n, .., n, D] with l axes of nodes. Differentiable any number of times: the layer is composed of
        tensor operations.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: O(b(k + l) n^max(k, l)) times C, D or C D. Diagonals, sums and broadcasts of the diagram basis,
    whose weights are a Moebius transform of the classes', and products with them before anything is broadcast;
    never n^(k + l).

    Sources: Kim, Oh and Hong, arXiv 2110.14416, equations 1 and 14; Godfrey et al., arXiv 2303.06208.

    Example:
        >>> x, weight = torch.randn(4, 9, 9, 8), torch.randn(15, 8, 16)
        >>> equivariant_linear(x, weight, input=2, output=2).shape
        torch.Size([4, 9, 9, 16])
    """
    return _operators.equivariant_linear(
        x, weight, bias, **_flat_kinds(input, output), classes=classes, pooling=pooling,
        node_counts=node_counts, nodes=nodes,
    )  # fmt: skip
