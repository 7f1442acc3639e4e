"""Many graphs or hypergraphs as one batch: records, checks, joining and splitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Symmetry
from .._library import operators
from .._pytree import TensorRecord, tensor_record

_Values = TypeVar("_Values", Tensor, "Tensor | None")

__all__ = [
    "DerivedTuples",
    "TupleBatch",
    "batches_of",
    "check_features",
    "concatenate_graphs",
    "derived",
    "derived_features",
    "split_graphs",
    "tuple_batch",
]


@tensor_record("tuples", "tuple_offsets", "node_offsets")
@dataclass(frozen=True)
class TupleBatch(TensorRecord):
    """B hypergraphs, each a list of k-tuples of its nodes, one after the other.

    Nodes are numbered through the batch: graph g owns the nodes ``node_offsets[g]`` to
    ``node_offsets[g + 1] - 1``, and its tuples are the rows from ``tuple_offsets[g]`` to
    ``tuple_offsets[g + 1]``. Features are separate tensors, [m, d], in the order of these rows. A
    feature of a node belongs to the diagonal: for k = 2 to the loop (i, i). k = 1 is a set of
    points. ``tuple_batch()`` makes a batch and checks it. A batch is a pytree, and a DataLoader
    with :func:`collate_graphs` makes one batch of many samples. ``batch[g]``, a slice, a list and a
    tensor of numbers or flags select graphs, whose nodes are then numbered anew. Iterating yields
    the graphs one by one.
    """

    tuples: Tensor  #: int64 [m, k]
    tuple_offsets: Tensor  #: int64 [B + 1]
    node_offsets: Tensor  #: int64 [B + 1]
    #: "ordered": any tuple; "loop_free": distinct entries; "undirected": one ascending tuple
    #: represents all orders of its entries
    symmetry: Symmetry = "ordered"

    def __len__(self) -> int:
        """m, the number of tuples."""
        return self.tuples.size(0)

    @property
    def order(self) -> int:
        """k."""
        return self.tuples.size(1)

    @property
    def graphs(self) -> int:
        """B."""
        return self.tuple_offsets.size(0) - 1

    @property
    def nodes(self) -> int:
        """Number of nodes of the whole batch."""
        return int(self.node_offsets[-1])

    @property
    def num_graphs(self) -> int:
        """B, by PyTorch Geometric's name."""
        return self.graphs

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole batch, by PyTorch Geometric's name."""
        return self.nodes

    def __getitem__(self, which: int | slice | Sequence[int] | Tensor) -> TupleBatch:
        chosen = graph_numbers("TupleBatch", which, self.graphs)
        rows, tuple_offsets = ragged_rows(self.tuple_offsets, chosen)
        _, node_offsets = ragged_rows(self.node_offsets, chosen)
        moved = torch.repeat_interleave(
            node_offsets[:-1] - self.node_offsets[:-1][chosen], tuple_offsets.diff()
        )
        return TupleBatch(
            self.tuples[rows] + moved[:, None], tuple_offsets, node_offsets, self.symmetry
        )

    def __iter__(self) -> Iterator[TupleBatch]:
        return (self[graph] for graph in range(self.graphs))

    def _parts(self) -> tuple[Tensor, Tensor, Tensor, str]:
        return self.tuples, self.tuple_offsets, self.node_offsets, self.symmetry


def batch_of(parts: Sequence[Tensor], symmetry: Symmetry) -> TupleBatch:
    """The batch of an operator's (tuples, tuple_offsets, node_offsets)."""
    tuples, tuple_offsets, node_offsets = parts
    return TupleBatch(tuples, tuple_offsets, node_offsets, symmetry)


class DerivedTuples(NamedTuple):
    """A batch whose rows were derived from the rows of another object."""

    batch: TupleBatch
    origin: Tensor  #: int64 [m]: the source row of each row, -1 for a new row


def derived(parts: Sequence[Tensor], symmetry: Symmetry) -> DerivedTuples:
    return DerivedTuples(batch_of(parts[:3], symmetry), parts[3])


@checked
def tuple_batch(
    tuples: Tensor,
    nodes: int | None = None,
    *,
    tuple_offsets: Tensor | None = None,
    node_offsets: Tensor | None = None,
    symmetry: Symmetry = "ordered",
) -> TupleBatch:
    """Makes a batch and checks its parts.

    Args:
        tuples: int64 [m, k], node numbers of the whole batch.
        nodes: number of nodes of a single graph, whose nodes are 0 to nodes - 1. No offsets are
            needed.
        tuple_offsets: int64 [B + 1], rows of each graph.
        node_offsets: int64 [B + 1], nodes of each graph.
        symmetry: "ordered", "loop_free" or "undirected".

    Raises:
        ValueError: offsets that do not rise from 0 to the end; a node outside its graph; a repeated
            tuple; equal entries when loop-free, descending entries when undirected.
        TypeError: another dtype than int64.
    """
    if (nodes is None) == (tuple_offsets is None) or (tuple_offsets is None) != (
        node_offsets is None
    ):
        raise ValueError("[tuple_batch] expected nodes, or tuple_offsets and node_offsets")
    if nodes is not None:
        if nodes < 0:
            raise ValueError(f"[tuple_batch] nodes: expected at least 0, got {nodes}")
        tuple_offsets, node_offsets = torch.tensor([0, len(tuples)]), torch.tensor([0, nodes])
    parts = operators.graph_check(tuples, tuple_offsets, node_offsets, symmetry)
    return batch_of(parts, symmetry)


@checked
def check_features(batch: TupleBatch, features: Tensor, name: str = "features") -> None:
    """Raises an error unless features are floating point [m, d] without NaN and infinity."""
    operators.graph_check_features(batch.tuples, features, name)


@checked
def concatenate_graphs(batches: Sequence[TupleBatch]) -> TupleBatch:
    """One batch with the graphs of all batches, which must have the same order and symmetry."""
    symmetries: list[Symmetry] = sorted({batch.symmetry for batch in batches})
    if len(symmetries) != 1:
        raise ValueError(
            "[concatenate_graphs] batches: expected one symmetry, got "
            f"{', '.join(symmetries) or 'none'}"
        )
    flat = [part for batch in batches for part in batch._parts()[:3]]
    return batch_of(operators.graph_concatenate(flat, symmetries[0]), symmetries[0])


@checked
def split_graphs(batch: TupleBatch) -> list[TupleBatch]:
    """The graphs of a batch. The nodes of each graph are numbered from 0."""
    return batches_of(operators.graph_split(*batch._parts()), batch.symmetry)


@checked
def derived_features(features: Tensor, origin: Tensor) -> Tensor:
    """Features of derived tuples: row r is ``features[origin[r]]``, or zero for a new row.
    Differentiable."""
    return operators.graph_derived_features(features, origin)


def batches_of(flat: Sequence[Tensor], symmetry: Symmetry) -> list[TupleBatch]:
    return [batch_of(flat[at : at + 3], symmetry) for at in range(0, len(flat), 3)]


def graph_numbers(at: str, which: int | slice | Sequence[int] | Tensor, count: int) -> Tensor:
    """The numbers of the selected graphs: int64 [chosen]."""
    every = torch.arange(count)
    if isinstance(which, int) and not isinstance(which, bool):
        if not -count <= which < count:
            raise IndexError(f"[{at}] index: expected a graph below {count}, got {which}")
        return every[which].view(1)
    if isinstance(which, slice):
        return _sliced(at, which, count)
    try:
        chosen = which if isinstance(which, Tensor) else torch.as_tensor(which)
        entries: Any = which
        listed = () if isinstance(which, Tensor) else list(entries)
        if len({isinstance(each, bool) for each in listed}) > 1:
            raise TypeError
    except (RuntimeError, TypeError, ValueError):
        raise TypeError(
            f"[{at}] index: expected a number, a slice, numbers or flags, got {describe(which)}"
        ) from None
    if chosen.numel() == 0:
        chosen = chosen.to(torch.int64)
    flags = chosen.dtype == torch.bool
    if chosen.dim() != 1 or not (flags or chosen.dtype == torch.int64):
        raise TypeError(f"[{at}] index: expected int64 or bool [count], got {describe(which)}")
    if flags and len(chosen) != count:
        raise IndexError(f"[{at}] index: expected {count} flags, got {len(chosen)}")
    if not flags and len(chosen) and not (-count <= chosen.min() and chosen.max() < count):
        raise IndexError(f"[{at}] index: expected graphs below {count}, got {chosen.tolist()[:8]}")
    return every[chosen]


def _sliced(at: str, which: slice, count: int) -> Tensor:
    """The numbers that a slice selects, in its direction."""
    try:
        chosen = range(count)[which]
    except (TypeError, ValueError):
        raise TypeError(f"[{at}] index: expected a slice of whole numbers, got {which}") from None
    return chosen.start + chosen.step * torch.arange(len(chosen))


def widened(values: _Values) -> _Values:
    """Whole numbers of fewer bits as int64; others stay."""
    narrow = (torch.int32, torch.int16, torch.int8, torch.uint8)
    return values.long() if isinstance(values, Tensor) and values.dtype in narrow else values


def numbers_of(offsets: Tensor) -> Tensor:
    """The number of the group of every row: offsets [0, 2, 3] -> [0, 0, 1]."""
    return torch.repeat_interleave(
        torch.arange(offsets.size(0) - 1, device=offsets.device), offsets.diff()
    )


def ragged_rows(offsets: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the chosen groups, one group after the other, and the offsets of the groups."""
    counts = offsets.diff()[chosen]
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    rows = torch.arange(int(ends[-1])) + torch.repeat_interleave(
        offsets[:-1][chosen] - ends[:-1], counts
    )
    return rows, ends
