"""Graphs and hypergraphs with features and targets: the record between other libraries and
models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from .._choices import Level, Symmetry
from .._pytree import TensorRecord, tensor_record
from .batches import (
    TupleBatch,
    concatenate_graphs,
    graph_numbers,
    numbers_of,
    ragged_rows,
)

__all__ = ["GraphData", "concatenate_data"]


@tensor_record(
    "edges",
    "node_offsets",
    "node_features",
    "edge_features",
    "targets",
    "origin",
    "positions",
    "masks",
)
@dataclass(frozen=True)
class GraphData(TensorRecord):
    """B graphs or hypergraphs with features of nodes and edges, and targets.

    Edges of one size are one :class:`TupleBatch`, so a graph has one list, of pairs, and a
    hypergraph has one list per size of its hyperedges. ``from_edge_index``, ``from_pyg`` and the
    other functions of this module make such records and check them. ``len(data)`` is B.
    ``data[g]``, a slice, a list and a tensor of numbers or flags select graphs, whose nodes are
    then numbered anew. A record is a pytree. A DataLoader joins records with
    :func:`collate_graphs`, and also with torch's default collate function.
    """

    edges: list[TupleBatch]  #: one list per size of edges, smallest size first
    node_offsets: Tensor  #: int64 [B + 1]
    node_features: Tensor | None = None  #: [n, d], numbers or int64 codes
    #: [m, d] per list of edges; an empty list if edges have no features
    edge_features: list[Tensor] = field(default_factory=list)
    targets: Tensor | None = None  #: one row per graph, node or edge, as ``level`` says
    #: int64 [m] per list: the first edge of the source that became this row
    origin: list[Tensor] = field(default_factory=list)
    level: Level = ""  #: "graph", "node" or "edge": whose targets they are; "" without targets
    names: tuple = ()  #: names of the nodes; empty if the source numbers them
    classes: tuple = ()  #: names of the classes if the targets are numbers of named classes
    #: [n, d], where the nodes are; models read them only as features
    positions: Tensor | None = None
    #: bool [n, ..] by their names, such as train_mask, val_mask and test_mask: nodes of a split
    masks: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.num_graphs

    @property
    def num_graphs(self) -> int:
        """B."""
        return self.node_offsets.size(0) - 1

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.node_offsets[-1])

    @property
    def num_edges(self) -> int:
        """Number of edges of all sizes. A graph in both directions counts each edge twice."""
        return sum(len(each) for each in self.edges)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of edges for which there is a list."""
        return tuple(each.order for each in self.edges)

    @property
    def batch(self) -> TupleBatch:
        """The list of edges, if all have one size."""
        if len(self.edges) != 1:
            raise ValueError(
                f"[GraphData] batch: expected edges of one size, got sizes {list(self.sizes)}; "
                "edges lists them"
            )
        return self.edges[0]

    @property
    def graph_of_nodes(self) -> Tensor:
        """int64 [n], the graph of every node."""
        return numbers_of(self.node_offsets)

    @property
    def is_symmetric(self) -> bool:
        """Whether every edge exists in both directions. Undirected edges always do."""
        return all(
            each.symmetry == "undirected" or each.order != 2 or _is_symmetric(each, self.num_nodes)
            for each in self.edges
        )

    def __getitem__(self, which: int | slice | Sequence[int] | Tensor) -> GraphData:
        chosen = graph_numbers("GraphData", which, self.num_graphs)
        nodes, node_offsets = ragged_rows(self.node_offsets, chosen)
        rows = [ragged_rows(each.tuple_offsets, chosen)[0] for each in self.edges]
        targets = self.targets
        if targets is not None:
            own = {"graph": chosen, "node": nodes, "edge": None}[self.level]
            if own is None:
                starts = torch.tensor([0, *(len(each) for each in self.edges)]).cumsum(0)
                own = torch.cat([row + start for row, start in zip(rows, starts)])
            targets = targets[own]
        return replace(
            self,
            edges=[each[chosen] for each in self.edges],
            node_offsets=node_offsets,
            node_features=None if self.node_features is None else self.node_features[nodes],
            edge_features=[each[row] for each, row in zip(self.edge_features, rows)],
            targets=targets,
            origin=[each[row] for each, row in zip(self.origin, rows)],
            names=tuple(self.names[node] for node in nodes.tolist()) if self.names else (),
            positions=None if self.positions is None else self.positions[nodes],
            masks={name: own[nodes] for name, own in self.masks.items()},
        )

    def __iter__(self) -> Iterator[GraphData]:
        return (self[graph] for graph in range(self.num_graphs))


def _is_symmetric(batch: TupleBatch, nodes: int) -> bool:
    first, second = batch.tuples.unbind(1)
    numbers = (first * nodes + second).sort().values
    return torch.equal(numbers, (second * nodes + first).sort().values)


def concatenate_data(samples: Sequence[GraphData]) -> GraphData:
    """One record with the graphs of all samples. Names are kept if all samples have them."""
    first = samples[0]
    at = "[collate_graphs] samples: "
    _require_one(at, "level of targets", [each.level for each in samples])
    _require_one(at, "classes", [each.classes for each in samples])
    has_features = [bool(each.edge_features) for each in samples if each.num_edges]
    _require_one(at, "edge features", has_features or [False])
    found: dict[tuple[int, Symmetry], None] = {}
    for each in samples:
        for batch in each.edges:
            found[batch.order, batch.symmetry] = None
    kinds: list[tuple[int, Symmetry]] = sorted(found)
    if len({order for order, _ in kinds}) != len(kinds):
        raise ValueError(f"{at}expected one symmetry, got ordered and undirected edges of one size")
    edges, features, origin = [], [], []
    for order, symmetry in kinds:
        lists, own, rows = [], [], []
        for each in samples:
            place = each.sizes.index(order) if order in each.sizes else None
            lists.append(_empty(each, order, symmetry) if place is None else each.edges[place])
            if place is not None and each.edge_features and len(each.edges[place]):
                own.append(each.edge_features[place])
            known = None if place is None or not each.origin else each.origin[place]
            rows.append(torch.full((len(lists[-1]),), -1) if known is None else known)
        edges.append(concatenate_graphs(lists))
        if any(each.origin for each in samples):
            origin.append(torch.cat(rows))
        if has_features and has_features[0]:
            widths = [tensor for each in samples for tensor in each.edge_features]
            features.append(_rows_of(at, "edge features", own or [widths[0][:0]]))
    ends = torch.cat([each.node_offsets.diff() for each in samples]).cumsum(0)
    named = all(each.names or not each.num_nodes for each in samples)
    return GraphData(
        edges,
        torch.cat([ends.new_zeros(1), ends]),
        _joined(at, "node features", [each.node_features for each in samples]),
        features,
        _targets(at, samples, [order for order, _ in kinds]),
        origin,
        first.level,
        tuple(name for each in samples for name in each.names) if named else (),
        first.classes,
        _joined(at, "positions", [each.positions for each in samples]),
        _masks(at, samples),
    )


def _masks(at: str, samples: Sequence[GraphData]) -> dict[str, Tensor]:
    _require_one(at, "masks", [each.masks.keys() for each in samples])
    return {
        name: _rows_of(at, name, [each.masks[name] for each in samples])
        for name in samples[0].masks
    }


def _targets(at: str, samples: Sequence[GraphData], sizes: Sequence[int]) -> Tensor | None:
    """Targets of edges are in the order of the lists, so that those of one size come together."""
    parts = [each.targets for each in samples]
    together = _joined(at, "targets", parts)
    if together is None or samples[0].level != "edge":
        return together
    of_size: dict[int, list[Tensor]] = {size: [] for size in sizes}
    for each, targets in zip(samples, parts):
        assert targets is not None
        rows = targets.split([len(edges) for edges in each.edges]) if each.edges else ()
        for size, own in zip(each.sizes, rows):
            of_size[size].append(own)
    ordered = [own for size in sizes for own in of_size[size]]
    return torch.cat(ordered) if ordered else together


def _empty(data: GraphData, order: int, symmetry: Symmetry) -> TupleBatch:
    return TupleBatch(
        torch.empty(0, order, dtype=torch.int64),
        torch.zeros_like(data.node_offsets),
        data.node_offsets,
        symmetry,
    )


def _require_one(at: str, name: str, values: Sequence) -> None:
    if any(value != values[0] for value in values):
        raise ValueError(f"{at}expected the same {name} in all of them")


def _joined(at: str, name: str, parts: Sequence[Tensor | None]) -> Tensor | None:
    tensors = [part for part in parts if part is not None]
    if len(tensors) not in (0, len(parts)):
        raise ValueError(f"{at}expected {name} in all of them or in none")
    return _rows_of(at, name, tensors) if tensors else None


def _rows_of(at: str, name: str, tensors: list[Tensor]) -> Tensor:
    _require_one(at, f"width of {name}", [part.shape[1:] for part in tensors])
    _require_one(at, f"dtype of {name}", [part.dtype for part in tensors])
    return torch.cat(tensors)
