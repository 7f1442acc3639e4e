"""The tuples that a graph transformer's read-out weighs most, per prediction."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, checked_methods, describe
from .._choices import Symmetry
from .._page import alone
from .._printable import printable
from .._whole_file import require_kind, whole_file
from ..graph import GraphData, TupleBatch, complete_tuples, with_loops
from ..graph.batches import numbers_of
from ..nn.equivariant_encoder import EquivariantEncoder
from ..nn.graph_transformer import GraphTransformer
from .graph_drawing import graph_drawing, nearby_nodes

__all__ = ["GraphTuple", "GraphTuples", "heaviest_graph_tuples"]

_MOST_ROWS = 64  # whose coefficients are computed at a time
_MOST_COEFFICIENTS = 2**24  # that are stored at a time, if one row does not have more


class GraphTuple(NamedTuple):
    """One tuple of a read-out's attention."""

    nodes: tuple[int, ...]  #: numbered within their graph; (i,) for a loop, which carries node i
    weight: float  #: its attention coefficient in one class and head
    among: int  #: tuples that share this class and head; 1 / among would be an even weight
    name: str  #: the class, as :func:`nsimplex.equivariant_classes` names it
    head: int


@checked_methods
@dataclass(frozen=True)
class GraphTuples:
    """The heaviest tuples of one prediction, and the graph around them."""

    row: int  #: of the prediction
    graph: int  #: in which it is
    target: tuple[int, ...]  #: its nodes; () for the prediction of a whole graph
    tuples: list[GraphTuple]  #: heaviest first
    edges: list[tuple[int, ...]]  #: of the graph, each set of nodes once
    labels: list[str]  #: of all nodes of the graph

    def text(self) -> str:
        """The tuples in letters, for a terminal."""
        names = [self.name(each.nodes) for each in self.tuples]
        width = max(map(len, names), default=0)
        lines = [
            f"  {name.ljust(width)}  {100 * each.weight:5.1f} %, even {100 / each.among:.1f} %  "
            f"{each.name}, head {each.head}"
            for name, each in zip(names, self.tuples)
        ]
        about = f" for {self.name(self.target)}" if self.target else ""
        title = f"graph {self.graph}{about}: heaviest tuples of the read-out"
        return "\n".join([title, *(lines or ["  none: every class has one tuple at most"])])

    def name(self, nodes: Sequence[int]) -> str:
        """Nodes by their labels."""
        return ", ".join(printable(self.labels[node]) for node in nodes)

    def svg(self) -> str:
        """A drawing as a whole SVG file. Nodes stand by their distances in the graph. A tuple is a
        ring around one node, a line between two, or a filled polygon; a stronger colour is a larger
        weight. Nodes of the prediction are orange. At most 40 nodes are drawn: those of the
        heaviest tuples and those near them."""
        tuples = [(each.nodes, each.weight) for each in self.tuples]
        return alone(graph_drawing(self.labels, self.edges, tuples, self.target))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes ``svg()`` to a file and returns its path."""
        require_kind(path, ".svg")
        target, drawing = Path(path), self.svg()
        with whole_file(target, encoding="utf-8") as file:
            file.write(drawing)
        return target

    def nearby(self) -> GraphTuples:
        """The part of the graph that is drawn, with its nodes numbered anew. Tuples that have other
        nodes are left out."""
        kept = self.kept_nodes()
        place = {node: at for at, node in enumerate(kept)}
        moved = lambda nodes: tuple(place[node] for node in nodes)
        inside = lambda nodes: all(node in place for node in nodes)
        return replace(
            self,
            target=tuple(place[node] for node in self.target if node in place),
            tuples=[
                each._replace(nodes=moved(each.nodes)) for each in self.tuples if inside(each.nodes)
            ],
            edges=[moved(each) for each in self.edges if inside(each)],
            labels=[self.labels[node] for node in kept],
        )

    def kept_nodes(self) -> list[int]:
        """The numbers of the nodes that are drawn, in ascending order."""
        tuples = [each.nodes for each in self.tuples]
        return nearby_nodes(len(self.labels), self.edges, [self.target, *tuples])

    def _repr_svg_(self) -> str:
        return self.svg()


@checked
def heaviest_graph_tuples(
    model: GraphTransformer,
    data: GraphData,
    count: int = 10,
    *,
    rows: Sequence[int] | None = None,
    queries: TupleBatch | Sequence[TupleBatch] | None = None,
) -> list[GraphTuples]:
    r"""The ``count`` tuples that weigh most in a model's predictions, of all classes and heads.

    The weight of tuple i in the read-out of row j is the coefficient of
    :func:`nsimplex.equivariant_attention`, in one class and head:

    .. math:: \alpha_{ij} = s(q_j, k_i) / Z_j

    Coefficients of one class and head add up to 1. Classes that admit a single tuple of a row are
    left out, because its coefficient is always 1. The layers before the read-out have mixed the
    tuples, so a weight says what the read-out averages over, not what caused the prediction.

    Args:
        model: a :class:`nsimplex.nn.GraphTransformer`.
        data: graphs.
        count: number of tuples per row, at least 1.
        rows: rows of ``model.predict(data, queries)``; None: all.
        queries: as in :meth:`nsimplex.nn.GraphTransformer.predict`.

    Returns:
        A :class:`GraphTuples` per row, in the order of ``rows``.

    Raises:
        ValueError: count below 1, a row out of range, or data that the model refuses.
        TypeError: a model of another class.

    Complexity: per graph one forward pass; per 64 rows of a graph with m tuples, m / 16 calls of
        the read-out's attention with values of 16 channels per head.

    Example:
        >>> best = heaviest_graph_tuples(model, data, 5, rows=[0])[0]
        >>> print(best.text())

    Source: Kim, Oh and Hong, arXiv 2110.14416, equation 10.
    """
    at = "[heaviest_graph_tuples] "
    if not isinstance(model, GraphTransformer):
        raise TypeError(f"{at}model: expected a GraphTransformer, got {describe(model)}")
    if not isinstance(data, GraphData):
        raise TypeError(f"{at}data: expected GraphData, got {describe(data)}")
    if count < 1:
        raise ValueError(f"{at}count: expected 1 or more, got {count}")
    nodes = complete_tuples(data.node_offsets.diff(), 1)
    outputs = model._output_lists(data, nodes, queries)
    lists = [outputs[size] for size in model._targets()]
    ends = torch.tensor([0, *(len(each) for each in lists)]).cumsum(0).tolist()
    asked = list(range(ends[-1])) if rows is None else [int(row) for row in rows]
    bad = next((row for row in asked if not 0 <= row < ends[-1]), None)
    if bad is not None:
        raise ValueError(f"{at}rows: expected numbers from 0 to {ends[-1] - 1}, got {bad}")
    graphs = [numbers_of(each.tuple_offsets).tolist() for each in lists]
    groups: dict[tuple[int, int], list[int]] = {}  # rows of one list and one graph
    for row in dict.fromkeys(asked):
        which = next(number for number in range(len(lists)) if row < ends[number + 1])
        groups.setdefault((which, graphs[which][row - ends[which]]), []).append(row)
    found: dict[int, GraphTuples] = {}
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for (which, graph), own in groups.items():
                batch = lists[which]
                start = int(data.node_offsets[graph])
                chosen = batch.tuples[torch.tensor(own) - ends[which]] - start
                part = _GraphPart(model, data[graph], chosen, batch.symmetry)
                for row, target, tuples in zip(own, chosen.tolist(), part.heaviest(count)):
                    found[row] = GraphTuples(
                        row, graph, tuple(target), tuples, part.edges, part.labels
                    )
    finally:
        model.train(training)
    return [found[row] for row in asked]


class _GraphPart:
    """One graph with some of its outputs, of one size."""

    def __init__(
        self, model: GraphTransformer, data: GraphData, outputs: Tensor, symmetry: Symmetry
    ) -> None:
        self.model, self.data, self.outputs = model, data, outputs
        self.symmetry: Symmetry = symmetry
        sets = {tuple(sorted(set(each))) for batch in data.edges for each in batch.tuples.tolist()}
        self.edges = sorted(each for each in sets if len(each) > 1)
        self.labels = [str(name) for name in data.names] or [str(i) for i in range(data.num_nodes)]
        queries = self._batch(outputs) if model.task in ("edge", "hyperedge") else None
        inputs = model.prepare(data, queries)
        hidden = model.hidden(inputs.to(model.target_mean.device))
        self.sources: list[tuple[TupleBatch, EquivariantEncoder, Tensor]] = []
        for source in model._sources():
            if source == 1:
                batch = complete_tuples(data.node_offsets.diff(), 1)
            else:
                batch = with_loops(model._list(data, source)[0]).batch
            reader = model.readers[f"from_{source}_to_{outputs.size(1)}"]
            own, norm = hidden[source], reader.norm_attention
            self.sources.append((batch, reader, own if norm is None else norm(own)))

    def _batch(self, outputs: Tensor) -> TupleBatch:
        offsets = torch.tensor([0, len(outputs)])
        return TupleBatch(outputs, offsets, self.data.node_offsets, self.symmetry)

    def heaviest(self, count: int) -> Iterator[list[GraphTuple]]:
        """The heaviest tuples of every output."""
        most = max(
            len(batch) * reader.attention.heads * len(reader.attention.class_names())
            for batch, reader, _ in self.sources
        )
        step = max(1, min(_MOST_ROWS, _MOST_COEFFICIENTS // max(most, 1)))
        for outputs in self.outputs.split(step):
            rows: list[list[GraphTuple]] = [[] for _ in range(len(outputs))]
            for batch, reader, x in self.sources:
                plan = self.model._plan(batch, self._batch(outputs), self.model.readout)
                coefficients = reader.attention.coefficients(x, plan.attention.to(x.device)).cpu()
                names = reader.attention.class_names()
                for place, own in enumerate(coefficients.unbind(2)):
                    rows[place] += _heaviest(own, batch.tuples, names, count)
            yield from (sorted(own, key=lambda each: -each.weight)[:count] for own in rows)


def _heaviest(
    coefficients: Tensor, tuples: Tensor, names: list[str], count: int
) -> list[GraphTuple]:
    """Of one output: coefficients [classes, heads, m]."""
    among = (coefficients != 0).sum(-1)
    several = coefficients.masked_fill((among < 2)[..., None], 0).flatten()
    best = several.topk(min(count, several.numel()))
    found = []
    for weight, at in zip(best.values.tolist(), best.indices.tolist()):
        if weight > 0:
            head, row = divmod(at, tuples.size(0))
            own, head = divmod(head, coefficients.size(1))
            nodes = tuples[row].tolist()
            nodes = nodes[:1] if len(set(nodes)) == 1 else nodes
            found.append(GraphTuple(tuple(nodes), weight, int(among[own, head]), names[own], head))
    return found
