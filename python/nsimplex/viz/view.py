"""What one layer attends to: tuples, marginals, sinks and the attention graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from .._arguments import checked, checked_methods, describe
from .._layout import Layout, heads_first
from .._options import AttentionOptions, operator_options
from .._page import alone
from .._printable import printable
from .._whole_file import require_kind, whole_file
from ..analysis.attention_calls import AttentionCall
from ..analysis.call_recorder import run_recorded
from ..analysis.listed_calls import ListedCall
from ..analysis.model_report import spaced
from ..analysis.other_calls import AugmentedCall, augmented
from ..attention import attention
from ..graph import edge_curvatures, tuple_batch
from .heaviest import LEFT_OUT, HeaviestTuples, check_heads, heaviest, rows_of
from .tuple_drawing import graph_svg, tuples_svg

__all__ = ["TupleView", "view", "views"]

_BLOCK = 32  # queries whose marginals are stored at a time
_EDGES = 3  # edges of the attention graph per query
_BARS = 24  # letters of the longest bar


@checked_methods
@dataclass(frozen=True)
class TupleView:
    """The tuples that a layer of any order attends to, for some queries of one text."""

    name: str  #: of the layer
    labels: list[str]  #: one per query, and per key if there are as many keys
    queries: list[int]  #: the queries of ``tuples`` and ``marginals``
    tuples: HeaviestTuples  #: [Hq, Q, count, N] and [Hq, Q, count]
    marginals: list[Tensor]  #: per axis [Hq, Q, T_m]: the weight of each key
    received: list[Tensor]  #: per axis [Hq, T_m]: the mean weight of each key over all queries
    edges: Tensor  #: int64 [E, 2]: (query, key), the heaviest keys of every query
    edge_weights: Tensor  #: [E]: mean of the marginals over axes and heads
    curvatures: Tensor  #: [E]: augmented Forman curvature in the graph of all edges, NaN for loops

    @property
    def order(self) -> int:
        return len(self.marginals)

    @property
    def heads(self) -> int:
        return self.tuples.weights.size(0)

    def label(self, key: int) -> str:
        """The text of a key."""
        if key == LEFT_OUT:
            return "left out"
        return self.labels[key] if 0 <= key < len(self.labels) else str(key)

    def sinks(self, count: int = 5) -> list[tuple[int, float]]:
        """The keys with the largest mean weight over queries, axes and heads."""
        if count < 0:
            raise ValueError(f"[TupleView] count: expected 0 or more, got {count}")
        if len({row.size(1) for row in self.received}) > 1:
            mass = self.received[0].mean(0)
        else:
            mass = torch.stack(self.received).mean((0, 1))
        best = mass.topk(min(count, mass.numel()))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    def rows(
        self, *, head: int = 0, query: int | None = None
    ) -> list[tuple[tuple[int, ...], float]]:
        """(keys, weight) of the heaviest tuples of a query, heaviest first. ``query`` is one of
        ``queries``; None: the last one. A key of -2 is an axis that the tuple leaves out."""
        place = self._place(head, query)
        found = []
        for keys, weight in zip(
            self.tuples.indices[head, place].tolist(),
            self.tuples.weights[head, place].tolist(),
            strict=True,
        ):
            if keys[0] != -1:
                found.append((tuple(keys), weight))
        return found

    def text(self, *, head: int = 0, query: int | None = None) -> str:
        """Tuples, marginals and sinks in letters, for a terminal."""
        place = self._place(head, query)
        at = self.queries[place]
        found = self.rows(head=head, query=at)
        names = [", ".join(map(self._named, keys)) for keys, _ in found]
        title = f"{self.name or 'attention'}: order {self.order}, head {head}, query {at} "
        lines = [title + _quoted(self.label(at)), "", "heaviest tuples"]
        lines += _bars(names, [weight for _, weight in found])
        for axis, marginal in enumerate(self.marginals):
            best = marginal[head, place].topk(min(5, marginal.size(-1)))
            lines += ["", f"heaviest keys of axis {axis + 1}"]
            keys = [self._named(key) for key in best.indices.tolist()]
            lines += _bars(keys, best.values.tolist())
        sinks = self.sinks()
        lines += ["", "sinks: mean weight over all queries, axes and heads"]
        lines += _bars([self._named(key) for key, _ in sinks], [m for _, m in sinks])
        return "\n".join(lines)

    def _named(self, key: int) -> str:
        return self.label(key) if key == LEFT_OUT else f"{key} {_quoted(self.label(key))}"

    def svg(self, *, head: int = 0, query: int | None = None) -> str:
        """A drawing of the heaviest tuples as a whole SVG file: arcs between tokens for order 1,
        filled triangles for order 2, filled polygons for higher orders. A stronger colour is a
        larger weight."""
        at = self.queries[self._place(head, query)]
        return alone(tuples_svg(at, self.rows(head=head, query=at), self.label))

    def graph_svg(self) -> str:
        """A drawing of the attention graph as a whole SVG file. An arc leads from a query to each
        of its heaviest keys; its colour is the sign of its curvature."""
        return alone(self._graph())

    def _graph(self) -> str:
        """The attention graph in the colours of a page."""
        return graph_svg(
            self.edges.tolist(), self.edge_weights.tolist(), self.curvatures.tolist(), self.label
        )

    def save(self, path: str | os.PathLike, *, head: int = 0, query: int | None = None) -> Path:
        """Writes ``svg()`` to a file and returns its path."""
        require_kind(path, ".svg")
        target, drawing = Path(path), self.svg(head=head, query=query)
        with whole_file(target, encoding="utf-8") as file:
            file.write(drawing)
        return target

    def _place(self, head: int, query: int | None) -> int:
        if not 0 <= head < self.heads:
            raise ValueError(f"[TupleView] head: expected 0 to {self.heads - 1}, got {head}")
        at = self.queries[-1] if query is None else query
        if at not in self.queries:
            raise ValueError(f"[TupleView] query: expected one of {self.queries[:8]}, got {query}")
        return self.queries.index(at)


def _quoted(label: str) -> str:
    return repr(printable(label))


def _bars(names: list[str], weights: list[float]) -> list[str]:
    width, most = max(map(len, names), default=0), max(weights, default=0.0)
    return [
        f"  {name.ljust(width)}  {100 * weight:5.1f} %  "
        + "█" * round(_BARS * weight / most if most > 0 else 0)
        for name, weight in zip(names, weights, strict=True)
    ]


@checked(options_of=attention)
def view(
    query: Tensor,
    keys: Sequence[Tensor],
    *,
    labels: Sequence[str] | None = None,
    queries: Sequence[int] | None = None,
    count: int = 10,
    name: str = "",
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> TupleView:
    """What the first entry of a batch attends to.

    Args:
        query: [B, Hq, Tq, D].
        keys: N tensors [B, Hk, T_m, D].
        labels: texts of the tokens; None: their numbers.
        queries: indices of the queries, rising; None: at most 16, evenly spaced, with the last.
        count: number of tuples per query and head.
        name: a title.
        layout: of query and keys, as in :func:`nsimplex.attention`.
        options: those of :func:`nsimplex.attention`. Dropout is left out.

    Returns:
        A :class:`TupleView`.

    Raises:
        ValueError: what :func:`heaviest_tuples` refuses.

    Complexity: :func:`heaviest_tuples` for ``queries``, and N forward passes with Dv = T_m for all
        queries. Memory O(Hq T (D + T)): there are never more weights than 32 queries times the keys
        of one axis and the heads.

    Example:
        >>> q, k1, k2 = torch.randn(3, 1, 2, 9, 4)
        >>> print(view(q, [k1, k2], labels="a b c d e f g h i".split(), causal=True).text())
    """
    if count < 1:
        raise ValueError(f"[view] count: expected 1 or more, got {count}")
    query, keys = heads_first("view", layout, query, keys)
    check_heads("view", query, keys)
    flat = operator_options(query, keys, keys, **options)
    call = AttentionCall(query, list(keys), list(keys), flat).entry(0)
    return _view_of(augmented(call), name, labels, queries, count, "view")


@checked
def views(
    model: nn.Module,
    batch: Tensor | Mapping | Sequence,
    *,
    labels: Sequence[str] | None = None,
    queries: Sequence[int] | None = None,
    count: int = 10,
) -> list[TupleView]:
    """What every attention layer of a model attends to in the first entry of a batch.

    Layers are found as by :func:`nsimplex.analysis.report`. Layers of chosen tuples, of separable
    features, with one softmax per face and with ``augment`` are shown too.

    Args:
        model, batch: as in :func:`nsimplex.analysis.report`.
        labels, queries, count: as in :func:`view`.

    Returns:
        One :class:`TupleView` per call of attention, in the order of the calls.

    Raises:
        ValueError: the model calls no attention, or what :func:`view` refuses.

    Complexity: one forward pass of the model, and :func:`view` per layer. A layer of chosen tuples
        takes a mask of T^N numbers for each of 32 queries at a time, and computes as a dense one.
        A layer with faces stores the weights of as many queries, as its operator does. The
        marginals of separable features take O(Hq T^2 R) operations, and no tuple.

    Example:
        >>> layer = nsimplex.nn.SimplicialAttention(8, heads=2, causal=True)
        >>> [each.order for each in views(layer, torch.randn(1, 6, 8))]
        [2]
    """
    if count < 1:
        raise ValueError(f"[views] count: expected 1 or more, got {count}")
    if not isinstance(model, nn.Module):
        raise TypeError(f"[views] model: expected a torch.nn.Module, got {describe(model)}")
    made = []
    for each in run_recorded(model, batch, "views").calls:
        call = each.other if each.call is None else augmented(each.call)
        if call is not None:
            made.append(_view_of(call.entry(0), each.name, labels, queries, count, "views"))
    return made


@torch.no_grad()
def _view_of(
    call: AttentionCall | AugmentedCall | ListedCall,
    name: str,
    labels: Sequence[str] | None,
    queries: Sequence[int] | None,
    count: int,
    function: str,
) -> TupleView:
    length, device = call.query.size(2), call.query.device
    if length == 0 or any(key.size(2) == 0 for key in call.keys):
        raise ValueError(f"[{function}] query: expected queries and keys, got none")
    if labels is not None and len(labels) < length:
        raise ValueError(f"[{function}] labels: expected {length} texts, got {len(labels)}")
    chosen = (
        spaced(length, 16, device)
        if queries is None
        else rows_of(function, queries, length, device)
    )
    rows = call.rows(chosen)
    found = heaviest(rows, count)
    sums = [torch.zeros(call.query.size(1), key.size(2), dtype=torch.float64) for key in call.keys]
    pairs, weights = [], []
    for start in range(0, length, _BLOCK):
        block = torch.arange(start, min(start + _BLOCK, length), device=device)
        part = call.rows(block)
        marginals = [part.marginals(axis)[0].double().cpu() for axis in range(call.order)]
        for total, marginal in zip(sums, marginals, strict=True):
            total += marginal.sum(1)
        if len({m.size(-1) for m in marginals}) == 1:
            mean = torch.stack(marginals).mean((0, 1))
            best = mean.topk(min(_EDGES, mean.size(-1)))
            pairs.append(
                torch.stack([block.cpu()[:, None].expand_as(best.indices), best.indices], -1)
            )
            weights.append(best.values)
    edges = torch.cat(pairs).flatten(0, 1) if pairs else torch.zeros(0, 2, dtype=torch.int64)
    mass = torch.cat(weights).flatten() if pairs else torch.zeros(0, dtype=torch.float64)
    edges, mass = edges[mass > 0], mass[mass > 0]
    order = (edges[:, 0] * (1 + call.keys[0].size(2)) + edges[:, 1]).argsort()
    edges, mass = edges[order], mass[order]
    # Queries sit at the end of the keys.
    nodes = edges + torch.tensor([max(call.keys[0].size(2) - length, 0), 0])
    graph = tuple_batch(nodes, max(length, *(key.size(2) for key in call.keys)))
    return TupleView(
        name,
        [str(each) for each in labels] if labels is not None else [str(i) for i in range(length)],
        chosen.tolist(),
        HeaviestTuples(found.indices[0].cpu(), found.weights[0].cpu()),
        [rows.marginals(axis)[0].float().cpu() for axis in range(call.order)],
        [(total / length).float() for total in sums],
        edges,
        mass,
        edge_curvatures(graph).augmented,
    )
