"""Which tuples an attention layer computes: the values of its argument ``select``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

import torch
from torch import Tensor

from .._arguments import checked_methods, describe
from ..separable_attention import FeatureMap
from .checks import require, require_whole

_Kind = TypeVar("_Kind", bound="Select")
_Other = TypeVar("_Other", bound="Select")

__all__ = ["Linear", "Neighbours", "Path", "Select", "Sinks", "TopK", "Union", "Window"]


class Select:
    """Base of the selections. ``a | b`` is :class:`Union` of two of them."""

    def __or__(self, other: Select) -> Union:
        parts = [*(self.parts if isinstance(self, Union) else (self,))]
        if not isinstance(other, Select):
            return NotImplemented
        return Union((*parts, *(other.parts if isinstance(other, Union) else (other,))))


def _require_indexer(at: str, indexer: object, loss: object) -> None:
    require(
        indexer is None or isinstance(indexer, Mapping),
        f"{at}indexer: expected a dict of the arguments of Indexer, got {describe(indexer)}",
    )
    fits = isinstance(loss, (int, float)) and not isinstance(loss, bool) and 0 <= loss < math.inf
    require(fits, f"{at}loss: expected 0 or more, got {describe(loss)}")


@checked_methods
@dataclasses.dataclass(frozen=True)
class TopK(Select):
    """All tuples of the k keys that an :class:`Indexer` scores highest, k^N per query.

    Args:
        k: one number for all axes, or one per axis: axis m then takes the first k[m] keys of one
            ranking.
        indexer: arguments of :class:`Indexer`.
        loss: weight of :func:`nsimplex.indexer_loss` in the layer's ``auxiliary_loss``. Without it,
            an indexer of source "light" does not learn. With one k per axis, the loss compares
            with attention over the largest k on every axis.
    """

    k: int | Sequence[int]
    indexer: Mapping | None = None
    loss: float = 0.0

    def __post_init__(self) -> None:
        entries = self.k if isinstance(self.k, (list, tuple)) else (self.k,)
        require(len(entries) > 0, "[TopK] k: expected at least one number, got none")
        for entry in entries:
            require_whole("[TopK] ", k=entry)
        _require_indexer("[TopK] ", self.indexer, self.loss)


@checked_methods
@dataclasses.dataclass(frozen=True)
class Path(Select):
    """The chains j1 in I_i, j2 in I_{j1}, .. of the k keys that an indexer scores highest, at most
    k^N per query.

    Args:
        k, indexer, loss: as in :class:`TopK`, with one k.
    """

    k: int
    indexer: Mapping | None = None
    loss: float = 0.0

    def __post_init__(self) -> None:
        require_whole("[Path] ", k=self.k)
        _require_indexer("[Path] ", self.indexer, self.loss)


@checked_methods
@dataclasses.dataclass(frozen=True, eq=False)
class Neighbours(Select):
    """All tuples of a token's neighbours in a graph, deg^N per token.

    Args:
        adjacency: bool [T, T] or [B, T, T]; a sparse CSR tensor [T, T], whose values are ignored;
            or a list of edges (i, j), int64 [E, 2]. Entry (i, j) makes j a neighbour of i. None:
            ``forward(x, adjacency=..)`` takes it, and then replaces this one if there are two.
        self_loops: every token is its own neighbour.
        nodes: T of a list of edges; None: the largest node and 1. The other forms have their T.
        edge_index: instead of adjacency, int64 or int32 [2, E] of PyTorch Geometric: rows of
            sources and of targets. Messages flow from source to target, so the source becomes a
            neighbour of the target. It is stored as ``adjacency``.
    """

    adjacency: Tensor | None = None
    self_loops: bool = True
    nodes: int | None = None
    edge_index: Tensor | None = None

    def __post_init__(self) -> None:
        if self.edge_index is not None:
            pairs = edges_of("Neighbours", self.edge_index, self.adjacency)
            object.__setattr__(self, "adjacency", pairs)
            object.__setattr__(self, "edge_index", None)
        if self.nodes is not None:
            require_whole("[Neighbours] ", nodes=self.nodes)
        if self.adjacency is not None:
            require_graph("Neighbours", self.adjacency)
            edges = self.adjacency.layout == torch.strided and self.adjacency.dtype != torch.bool
            require(
                edges or self.nodes in (None, self.adjacency.size(-1)),
                f"[Neighbours] nodes: expected {self.adjacency.size(-1)}, those of adjacency, got "
                f"{self.nodes}",
            )

    def __deepcopy__(self, memo: dict) -> Neighbours:
        """torch copies no sparse CSR tensor by itself."""
        adjacency = None if self.adjacency is None else self.adjacency.detach().clone()
        return dataclasses.replace(self, adjacency=adjacency)


@checked_methods
@dataclasses.dataclass(frozen=True)
class Linear(Select):
    """All tuples, by a separable kernel instead of the softmax, in time linear in the length.

    Args:
        features: as in :func:`nsimplex.separable_attention`.
    """

    features: FeatureMap = "elu"

    def __post_init__(self) -> None:
        known = ("elu", "relu", "random")
        require(
            self.features is None or callable(self.features) or self.features in known,
            "[Linear] features: expected elu, relu, random, a function or None, got "
            f"{describe(self.features)}",
        )


@checked_methods
@dataclasses.dataclass(frozen=True)
class Window(Select):
    """Keys of a :class:`Union` around the query: p - left < j <= p + right for a query at p."""

    left: int
    right: int = 0

    def __post_init__(self) -> None:
        require_whole("[Window] ", left=self.left)
        require_whole("[Window] ", least=0, right=self.right)


@checked_methods
@dataclasses.dataclass(frozen=True)
class Sinks(Select):
    """Keys of a :class:`Union`: the first ``count`` tokens of the sequence or packed document."""

    count: int = 1

    def __post_init__(self) -> None:
        require_whole("[Sinks] ", count=self.count)


@checked_methods
@dataclasses.dataclass(frozen=True)
class Union(Select):
    """Tuples of the keys of several selections, each key once: (I_i^1 + I_i^2 + ..)^N per query.

    Args:
        parts: :class:`Window`, :class:`Sinks`, :class:`Neighbours`, and at most one :class:`TopK`.
    """

    parts: tuple[Select, ...]

    def __post_init__(self) -> None:
        parts = self.parts
        require(
            isinstance(parts, (list, tuple)) and len(parts) > 0,
            f"[Union] parts: expected selections, got {describe(parts)}",
        )
        for part in parts:
            require(
                isinstance(part, (Window, Sinks, Neighbours, TopK)),
                "[Union] parts: expected Window, Sinks, Neighbours or TopK, got "
                f"{type(part).__name__}",
            )
        for kind in (TopK, Neighbours):
            found = sum(isinstance(part, kind) for part in parts)
            require(found <= 1, f"[Union] parts: expected at most one {kind.__name__}, got {found}")


def edges_of(function: str, edge_index: Tensor, adjacency: Tensor | None) -> Tensor:
    """Edges (i, j), int64 [E, 2], of the argument edge_index, which replaces adjacency."""
    require(adjacency is None, f"[{function}] edge_index: given beside adjacency")
    whole = edge_index.dtype in (torch.int64, torch.int32) and edge_index.layout == torch.strided
    require(
        whole and edge_index.dim() == 2 and edge_index.size(0) == 2,
        f"[{function}] edge_index: expected int64 [2, E], got {describe(edge_index)}",
    )
    return edge_index.long().flip(0).t()


def require_graph(function: str, adjacency: Any, name: str = "adjacency") -> None:
    """Check that adjacency is one of the three forms of :class:`Neighbours`."""
    at = f"[{function}] {name}: expected bool [T, T] or [B, T, T], sparse CSR [T, T] or edges int64"
    require(isinstance(adjacency, Tensor), f"{at} [E, 2], got {describe(adjacency)}")
    if adjacency.layout == torch.sparse_csr:
        fits = adjacency.dim() == 2 and adjacency.size(0) == adjacency.size(1)
    elif adjacency.dtype == torch.bool:
        fits = adjacency.dim() in (2, 3) and adjacency.size(-1) == adjacency.size(-2)
    else:
        fits = adjacency.dtype == torch.int64 and adjacency.dim() == 2 and adjacency.size(1) == 2
    turned = adjacency.dim() == 2 and adjacency.size(0) == 2 != adjacency.size(1)
    hint = "; [2, E] of PyTorch Geometric is the argument edge_index" if turned else ""
    got = f"{adjacency.dtype} of shape {list(adjacency.shape)}"
    require(fits, f"{at} [E, 2], got {got}{hint}")


def parts_of(select: Select | None) -> tuple[Select | None, ...]:
    return select.parts if isinstance(select, Union) else (select,)


@overload
def part_of(select: Select | None, kind: type[_Kind], /) -> _Kind | None: ...
@overload
def part_of(
    select: Select | None, kind: type[_Kind], other: type[_Other], /
) -> _Kind | _Other | None: ...
def part_of(select: Select | None, *kinds: type[Select]) -> Select | None:
    """The part of a selection that is of one of the kinds, or None."""
    return next((part for part in parts_of(select) if isinstance(part, kinds)), None)
