"""Tables of keys per query, int64 [1 or B, Tq, k] with -1 after the last, and operations on them.

Their shapes depend on shapes alone, so that they can be made inside compiled code.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..tuples import neighbours


class Places(NamedTuple):
    """The arguments of a layer's forward that say which tokens may attend to which."""

    key_lengths: Tensor | None = None
    key_masks: Tensor | Sequence[Tensor] | None = None
    cu_seqlens: Tensor | None = None
    mask: Tensor | None = None
    positions: Tensor | None = None
    adjacency: Tensor | None = None
    pair_masks: Sequence[Tensor] | None = None

    def given(self) -> list[str]:
        return [name for name, value in self._asdict().items() if value is not None]


EVERYWHERE = Places()


def ascending(table: Tensor, length: int) -> Tensor:
    """The keys of each row in ascending order, each once, -1 after the last. Entries outside 0 to
    length - 1 are removed."""
    outside = (table < 0) | (table >= length)
    keys = table.masked_fill(outside, length).sort(-1).values
    repeated = keys[..., 1:] == keys[..., :-1]
    keys = torch.cat([keys[..., :1], keys[..., 1:].masked_fill(repeated, length)], -1)
    keys = keys.sort(-1).values
    return keys.masked_fill(keys == length, -1)


def _batch_of(tables: Sequence[Tensor]) -> int:
    """The batch of tables that may have 1 instead; it may be 0."""
    return next((table.size(0) for table in tables if table.size(0) != 1), 1)


def united(tables: Sequence[Tensor], length: int) -> Tensor:
    batch = _batch_of(tables)
    return ascending(torch.cat([t.expand(batch, -1, -1) for t in tables], -1), length)


def compact(table: Tensor, keep: Tensor) -> Tensor:
    """The kept entries of each row in their order, -1 after the last."""
    width = table.size(-1)
    place = torch.arange(width, device=table.device).expand_as(keep)
    order = place.masked_fill(~keep, width).sort(-1).indices
    return table.masked_fill(~keep, -1).gather(-1, order)


def window_table(queries: Tensor, left: int, right: int) -> Tensor:
    """Keys around queries [t], with entries outside the sequence."""
    around = torch.arange(1 - left, right + 1, device=queries.device)
    return (queries[:, None] + around)[None]


def documents_of(cu_seqlens: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """(number of each token's document [T], its first token [T])."""
    places = torch.arange(length, device=cu_seqlens.device)
    bounds = cu_seqlens.long()
    document = torch.searchsorted(bounds, places, right=True) - 1
    return document, bounds[document.clamp_min(0)]


def neighbour_table(adjacency: Tensor, length: int | None, self_loops: bool) -> Tensor:
    """Table of a graph in one of the forms of :class:`nsimplex.nn.Neighbours`."""
    if adjacency.layout != torch.sparse_csr and adjacency.dtype != torch.bool:
        if length is None:
            length = int(adjacency.max()) + 1 if adjacency.numel() else 0
        if not torch.compiler.is_compiling():
            return _neighbours_of_edges(adjacency, length, self_loops)
        dense = torch.zeros(length, length, dtype=torch.bool, device=adjacency.device)
        adjacency = dense.index_put((adjacency[:, 0], adjacency[:, 1]), dense.new_ones(()))
    if not torch.compiler.is_compiling():
        return neighbours(adjacency, self_loops=self_loops)
    # The largest degree is data; in compiled code every token has room for all others.
    if adjacency.dim() == 2:
        adjacency = adjacency[None]
    keys = torch.arange(adjacency.size(-1), device=adjacency.device)
    linked = adjacency | (keys[:, None] == keys) if self_loops else adjacency
    return compact(keys.expand_as(linked), linked)


def _neighbours_of_edges(edges: Tensor, length: int, self_loops: bool) -> Tensor:
    if edges.numel():
        low, high = (int(each) for each in edges.aminmax())
        if low < 0 or high >= length:
            raise ValueError(
                f"[Neighbours] adjacency: expected nodes 0 to {length - 1}, got {low} to {high}"
            )
    edges = edges.unique(dim=0) if edges.numel() else edges  # sorted by their first node
    degrees = torch.bincount(edges[:, 0], minlength=length)
    rows = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
    present = torch.ones(len(edges), dtype=torch.bool, device=edges.device)
    shape = length, length
    with warnings.catch_warnings():  # torch calls its own format a beta, which no caller chose
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        matrix = torch.sparse_csr_tensor(
            rows, edges[:, 1].contiguous(), present, shape, check_invariants=False
        )
    return neighbours(matrix, self_loops=self_loops)


def induced_table(table: Tensor, positions: Tensor, key_lengths: Tensor | None) -> Tensor:
    """The rows and keys of a table of T tokens that belong to the tokens at ``positions`` [B, K],
    numbered by their place among these. Tokens from ``key_lengths`` on are padding."""
    batch, count = positions.shape
    length = table.size(1)
    place = torch.arange(count, device=table.device).expand(batch, -1)
    slot = positions
    if key_lengths is not None:  # padding writes to a separate slot
        slot = positions.masked_fill(place >= key_lengths[:, None], length)
    number = table.new_full((batch, length + 1), -1).scatter(1, slot, place)
    rows = table.expand(batch, -1, -1).gather(
        1, positions[..., None].expand(-1, -1, table.size(-1))
    )
    found = number.gather(1, rows.clamp_min(0).flatten(1)).view_as(rows)
    found = found.masked_fill(rows < 0, -1)
    return compact(found, found >= 0)


def admissible(table: Tensor, queries: Tensor, causal: bool, places: Places) -> Tensor:
    """Which entries of a table the layer's masks admit. Queries [t] are places among the keys."""
    keep = table >= 0
    keys = table.clamp_min(0)
    if causal:
        keep = keep & (table <= queries[:, None])
    if places.key_lengths is not None:
        keep = keep & (table < places.key_lengths[:, None, None])
    if places.key_masks is not None:
        mask = places.key_masks
        assert isinstance(mask, Tensor)  # one for all axes
        keep = keep & mask.gather(1, keys.expand(mask.size(0), -1, -1).flatten(1)).view(
            mask.size(0), *keys.shape[1:]
        )
    if places.cu_seqlens is not None:
        document, _ = documents_of(places.cu_seqlens, queries.numel())
        keep = keep & (document[keys] == document[:, None])
    if places.adjacency is not None:
        pairs = places.adjacency
        batch = _batch_of([pairs, keys])
        pairs = pairs.expand(batch, -1, -1)
        keep = keep & pairs.gather(2, keys.expand(batch, -1, -1))
    return keep


def pairs_of(places: Places, length: int) -> Tensor | None:
    """bool [1 or B, T, T]: pairs that key masks, documents and adjacency admit; None: all."""
    pairs = places.adjacency
    if places.key_masks is not None:
        assert isinstance(places.key_masks, Tensor)
        mask = places.key_masks[:, None].expand(-1, length, -1)
        pairs = mask if pairs is None else pairs & mask
    if places.cu_seqlens is not None:
        document, _ = documents_of(places.cu_seqlens, length)
        same = (document[:, None] == document)[None]
        pairs = same if pairs is None else pairs & same
    return pairs


def tuples_of(tables: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """All tuples of one table per axis, as a list (indices, offsets) of fixed shape. Rows of
    ``indices`` behind the last offset are unused."""
    order = len(tables)
    batch = _batch_of(tables)
    queries = tables[0].size(1)
    axes = [
        table.expand(batch, -1, -1).view(
            batch, queries, *[table.size(2) if axis == m else 1 for axis in range(order)]
        )
        for m, table in enumerate(tables)
    ]
    tuples = torch.stack(torch.broadcast_tensors(*axes), -1).flatten(2, -2)
    valid = (tuples >= 0).all(-1)
    counts = valid.sum(-1).flatten()
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    device = counts.device
    rows = torch.arange(batch, device=device)[:, None] * queries
    offsets = starts[rows + torch.arange(queries + 1, device=device)]
    tuples, valid = tuples.flatten(0, -2), valid.flatten()
    place = (valid.cumsum(0) - 1).masked_fill(~valid, valid.numel())
    indices = tuples.new_zeros(valid.numel() + 1, order)  # the last row takes what is no tuple
    indices = indices.scatter(0, place[:, None].expand(-1, order), tuples.clamp_min(0))
    return indices[:-1], offsets[:, None]
