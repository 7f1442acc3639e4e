"""Classes of equivariant layers between tensors of any order, and the kinds of those tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ._arguments import checked, checked_methods
from ._choices import ClassSet, Symmetry
from ._library import operators
from ._pytree import constant_record

__all__ = ["EquivariantClass", "TensorKind", "equivariant_classes"]


@checked_methods
@constant_record
@dataclass(frozen=True)
class TensorKind:
    """Kind of a tensor in an equivariant layer: its order and the tuples that it may contain.

    Args:
        order: 0: one row per graph, 1: nodes, 2: pairs, ...
        symmetry: "ordered"; "loop_free": distinct entries only; "undirected": one tuple represents
            all orders of its entries.
        loops: of an undirected tensor, whether it contains hyperedges that name a node twice.
    """

    order: int
    symmetry: Symmetry = "ordered"
    loops: bool = True


Kind = TensorKind | int


def _kind(kind: Kind) -> TensorKind:
    return kind if isinstance(kind, TensorKind) else TensorKind(kind)


def _flat_kinds(input: Kind, output: Kind) -> dict:
    input, output = _kind(input), _kind(output)
    return {
        "input_order": input.order,
        "output_order": output.order,
        "input_symmetry": input.symmetry,
        "output_symmetry": output.symmetry,
        "input_loops": input.loops,
        "output_loops": output.loops,
    }


@dataclass(frozen=True)
class EquivariantClass:
    """A class of a layer k -> l: the equality patterns of (i, j) that share a weight.

    Attributes:
        name: name of the first member, like ``{i1 j1}{i2 j2}``.
        members: partitions of i1 .. ik j1 .. jl, as the block number of every position. A class has
            more than one member only if one of its sides is undirected.
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
def equivariant_classes(
    input: Kind, output: Kind, classes: ClassSet = "all"
) -> list[EquivariantClass]:
    """The classes of a layer between two kinds of tensors, in canonical order, which is the order
    of the layer's weights.

    The canonical order is the lexicographic order of the block numbers. Ordered tensors have
    b(k + l) classes, the Bell number. Loop-free tensors have sum_r C(k, r) C(l, r) r! classes.
    Undirected tensors have 9 for 2 -> 2, 31 for 3 -> 3, and without loops min(k, l) + 1. The bias
    classes are the classes of 0 -> l.

    Args:
        input, output: kinds, or orders of ordered tensors.
        classes: "all", for k + l <= 7; or "light", only the classes that do not sum over the input,
            for k + l <= 10.

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
    for number, *blocks in operators.equivariant_classes(**arguments).tolist():
        if number == len(members):
            members.append([])
        members[number].append(tuple(blocks))
    names = operators.equivariant_class_names(**arguments)
    return tuple(EquivariantClass(n, tuple(m), input.order) for n, m in zip(names, members))
