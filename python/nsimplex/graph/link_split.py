"""Edges of a graph as tuples to predict, apart from the edges that messages pass over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .batches import TupleBatch
from .conversion_checks import merged_rows
from .graph_data import GraphData
from .graph_scores import Split, negative_tuples, split_rows

__all__ = ["LinkSplit", "split_links"]


class LinkSplit(NamedTuple):
    """What :func:`fit_graphs` needs to predict links."""

    data: GraphData  #: the graph, with the edges that messages pass over and without targets
    queries: list[TupleBatch]  #: tuples to predict, a list per size
    targets: Tensor  #: 1 for edges, 0 for other tuples, in the order of the queries
    split: Split  #: rows of the queries


@checked
def split_links(
    data: GraphData,
    fractions: Sequence[float] = (0.7, 0.1, 0.2),
    *,
    supervision: float = 0.3,
    ratio: float = 1.0,
    seed: int = 0,
) -> LinkSplit:
    """Splits the edges or hyperedges of a graph for link prediction, and draws other tuples.

    No tuple that is predicted is an edge of the result's graph. If every ordered edge has its
    reverse, both count as one link, whose ends ascend in the queries. Loops stay in the graph.

    Args:
        data: one graph.
        fractions: of the edges for training, validation and test; their sum is 1.
        supervision: share of the training edges that are predicted. Messages pass over the others.
        ratio: tuples without an edge per predicted edge, as :func:`negative_tuples` draws them.
        seed: of the draw.

    Raises:
        ValueError: several graphs, too few edges for a part, fewer other tuples than ``ratio``
            needs.

    Complexity: O(m log m) for m edges.

    Example:
        >>> links = split_links(data)
        >>> fit_graphs(model, links.data, links.split, queries=links.queries, targets=links.targets)
    """
    at = "[split_links] "
    if data.num_graphs != 1:
        raise ValueError(f"{at}data: expected one graph, got {data.num_graphs}")
    if not 0 < supervision < 1:
        raise ValueError(f"{at}supervision: expected above 0 and below 1, got {supervision}")
    queries: list[TupleBatch] = []
    kept, targets, parts = [], [], []
    for batch in data.edges:
        flags, asked, truth, part = _split_list(batch, fractions, supervision, ratio, seed)
        kept.append(flags)
        if len(asked):
            queries.append(asked)
            targets.append(truth)
            parts.append(part)
    every = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)
    split = Split(*((every == number).nonzero().squeeze(1) for number in range(3)))
    for name, rows in zip(Split._fields, split):
        if not len(rows) and fractions[Split._fields.index(name)]:
            raise ValueError(
                f"{at}data: expected enough edges for {name}, got {data.num_edges} edges"
            )
    messages = replace(
        data,
        edges=[_chosen(each, flags) for each, flags in zip(data.edges, kept)],
        edge_features=[own[flags] for own, flags in zip(data.edge_features, kept)],
        origin=[own[flags] for own, flags in zip(data.origin, kept)],
        targets=None,
        level="",
    )
    return LinkSplit(messages, queries, torch.cat([torch.empty(0), *targets]), split)


def _split_list(
    batch: TupleBatch, fractions: Sequence[float], supervision: float, ratio: float, seed: int
) -> tuple[Tensor, TupleBatch, Tensor, Tensor]:
    """Flags of the edges of one size that stay in the graph; and the tuples to predict, their
    truth, and the number of their part."""
    tuples, nodes = batch.tuples, batch.nodes
    ascending = tuples.sort(1).values
    merged = merged_rows(tuples, nodes)
    reverse = len(merged_rows(torch.cat([tuples, tuples.flip(1)]), nodes).rows)
    one_way = batch.symmetry != "undirected" and reverse != len(merged.rows)
    merged = merged_rows(tuples if one_way else ascending, nodes)
    proper = (merged.rows.sort(1).values.diff(dim=1) > 0).all(1)
    if batch.order < 2:
        proper = torch.zeros_like(proper)
    rows = proper.nonzero().squeeze(1)
    found = split_rows(len(rows), fractions, seed=seed)
    draw = torch.Generator().manual_seed(seed)
    training = found.training[torch.randperm(len(found.training), generator=draw)]
    training = training[: round(supervision * len(training))]
    part = torch.full((len(merged.rows),), -1)
    for number, own in enumerate((training, found.validation, found.test)):
        part[rows[own]] = number
    positive = part >= 0
    links = TupleBatch(
        merged.rows[rows],
        torch.tensor([0, len(rows)]),
        batch.node_offsets,
        batch.symmetry if one_way else "undirected",
    )
    counts = torch.bincount(part[positive], minlength=3)
    wanted = (counts * ratio).ceil().long()
    others = torch.empty(0, batch.order, dtype=torch.int64)
    if len(rows):
        share = float(wanted.sum()) / len(rows)
        others = negative_tuples(links, share, seed=seed).tuples if share else others
    if len(others) < int(wanted.sum()):
        raise ValueError(
            f"[split_links] ratio: expected at most the tuples of size {batch.order} without an "
            f"edge, {len(others)}, got {int(wanted.sum())}"
        )
    others = others[torch.randperm(len(others), generator=draw)][: int(wanted.sum())]
    asked = torch.cat([merged.rows[positive], others])
    truth = torch.cat([torch.ones(int(positive.sum())), torch.zeros(len(others))])
    parts = torch.cat([part[positive], torch.repeat_interleave(torch.arange(3), wanted)])
    order = merged_rows(asked, nodes).first
    made = replace(batch, tuples=asked[order], tuple_offsets=torch.tensor([0, len(order)]))
    return ~positive[merged.inverse], made, truth[order], parts[order]


def _chosen(batch: TupleBatch, flags: Tensor) -> TupleBatch:
    return replace(
        batch, tuples=batch.tuples[flags], tuple_offsets=torch.tensor([0, int(flags.sum())])
    )
