"""Graphs from and to DGL, which this import does not need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Directions, Duplicates
from .conversion_checks import (
    WEIGHTS,
    has_weights,
    renamed,
    repeats_in,
    require_taken,
    warn_of_repeats,
    warn_of_rest,
)
from .conversions import from_edge_index
from .frameworks import edge_index, say_lost, with_extras
from .graph_data import GraphData

__all__ = ["from_dgl", "to_dgl"]

_DGL_WEIGHTS = {("edge_features", name) for name in WEIGHTS}


@checked
def from_dgl(
    graph: Any,
    *,
    node_features: str = "feat",
    edge_features: str = "feat",
    target: str = "label",
    targets: Tensor | None = None,
    directions: Directions = "given",
    duplicates: Duplicates = "same",
    ignore: Sequence[str] = (),
) -> GraphData:
    """A graph of DGL or a batch of them.

    Args:
        graph: homogeneous, on the CPU.
        node_features, edge_features, target: names in ``ndata``, ``edata`` and ``ndata``; "": none.
            Only the default names may be absent. Others are named in one
            :class:`ConversionWarning`.
        targets: targets of the graphs or edges, in place of those in ``ndata``.
        directions, duplicates: as in :func:`from_edge_index`.
        ignore: names in ``ndata`` and ``edata`` that are left out without a word.

    Raises:
        ValueError: as :func:`from_edge_index`; a name that is absent; weights of edges other than 1
            that are neither taken nor ignored.
        TypeError: another object; heterogeneous graphs, which are not supported.
    """
    at = "[from_dgl] "
    if not (hasattr(graph, "ndata") and hasattr(graph, "edges") and hasattr(graph, "num_nodes")):
        raise TypeError(f"{at}graph: expected a graph of DGL, got {describe(graph)}")
    names = dict(node_features=node_features, edge_features=edge_features, target=target)
    for name, value in names.items():
        if not isinstance(value, str):
            raise TypeError(f"{at}{name}: expected a name, got {describe(value)}")
    if not getattr(graph, "is_homogeneous", True):
        raise TypeError(f"{at}graph: heterogeneous graphs are not supported, got {describe(graph)}")
    places = {
        "node_features": (graph.ndata, (node_features, target), ("feat", "label")),
        "edge_features": (graph.edata, (edge_features,), ("feat",)),
    }
    rest: dict[str, list[str]] = {}
    changing: dict[str, list[str]] = {}
    used = {node_features, target, *ignore}
    nodes = graph.num_nodes()
    bare = GraphData([], torch.tensor([0, nodes]))
    extras, kept = with_extras(bare, graph.ndata, "", used)
    for argument, (table, taken, usual) in places.items():
        for name, wanted in names.items():
            if wanted in taken and wanted not in ("", *usual, *list(table.keys())):
                raise ValueError(f"{at}{name}: expected a name in graph, got {wanted!r:.60}")
        for name in list(table.keys()):
            if name not in taken and name not in kept and not name.startswith("_"):
                weights = (argument, name) in _DGL_WEIGHTS and has_weights(table[name])
                (changing if weights else rest).setdefault(argument, []).append(name)
    require_taken(f"{at}graph: ", changing, ignore)
    warn_of_rest(f"{at}graph: ", rest, ignore)
    counts = graph.batch_num_nodes()
    index = torch.stack([each.to(torch.int64) for each in graph.edges()])
    made = renamed(
        at,
        from_edge_index,
        index,
        nodes,
        graph.edata.get(edge_features),
        torch.repeat_interleave(torch.arange(len(counts)), counts.to(torch.int64)),
        node_features=graph.ndata.get(node_features),
        targets=graph.ndata.get(target) if targets is None else targets,
        directions=directions,
        duplicates=duplicates,
        num_graphs=len(counts),
    )
    warn_of_repeats(f"{at}graph: ", repeats_in(index, nodes), duplicates)
    return replace(made, masks=extras.masks)


@checked
def to_dgl(data: GraphData) -> Any:
    """The record as a graph of DGL, or a batch of them for more than one graph.

    Undirected pairs become edges in both directions. Features are ``feat`` of nodes and edges.
    Targets of nodes or edges are ``label``, and positions and masks have these names in ``ndata``.
    Targets of graphs and names of nodes and classes have no place there, and a
    :class:`ConversionWarning` says so.

    Raises:
        ImportError: DGL is not installed.
        ValueError: hyperedges.
    """
    at = "[to_dgl] "
    if data.sizes not in ((), (2,)):
        raise ValueError(f"{at}data: expected edges of size 2, got sizes {list(data.sizes)}")
    try:
        import dgl  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(f"{at}DGL is needed: pip install dgl") from None
    say_lost(at, data, "DGL", targets=data.level == "graph")
    graphs = []
    for own in data:
        index, rows = edge_index(own)
        made = dgl.graph((index[0], index[1]), num_nodes=own.num_nodes)
        label = {} if own.targets is None else {"label": own.targets}
        of_nodes = {"feat": own.node_features, "pos": own.positions, **own.masks}
        of_edges = {"feat": own.edge_features[0][rows] if own.edge_features else None}
        of_nodes |= label if own.level == "node" else {}
        of_edges |= {name: each[rows] for name, each in label.items() if own.level == "edge"}
        for table, values in ((made.ndata, of_nodes), (made.edata, of_edges)):
            table.update({name: each for name, each in values.items() if each is not None})
        graphs.append(made)
    return graphs[0] if len(graphs) == 1 else dgl.batch(graphs)
