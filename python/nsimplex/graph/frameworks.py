"""Graphs from and to PyTorch Geometric, which this import does not need."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Directions, Duplicates, Level
from .batches import TupleBatch
from .conversion_checks import (
    WEIGHTS,
    ConversionWarning,
    has_weights,
    joined,
    renamed,
    repeats_in,
    require_taken,
    warn_of_repeats,
    warn_of_rest,
)
from .conversions import from_edge_index
from .graph_data import GraphData
from .hyperedges import from_hyperedge_index

__all__ = ["from_pyg", "graphs_of", "to_pyg"]


@checked
def from_pyg(
    data: Any,
    *,
    node_features: Sequence[str] = ("x",),
    edge_features: Sequence[str] = ("edge_attr",),
    target: str = "y",
    level: Level = "",
    directions: Directions = "given",
    duplicates: Duplicates = "same",
    ignore: Sequence[str] = (),
) -> GraphData:
    """Graphs of PyTorch Geometric: a ``Data``, ``Batch``, ``HyperGraphData`` or a list of these.

    PyTorch Geometric lists both directions of an undirected edge, and so does the result. A batch
    is converted as a whole, without a loop over its graphs. ``pos`` becomes ``positions``, and
    flags of nodes whose names end in "_mask" become ``masks``, if all graphs have them. Other
    attributes that are not taken are named in one :class:`ConversionWarning`.

    Args:
        data: the graphs, on the CPU.
        node_features, edge_features: names of the attributes to take. Several are joined column by
            column. Only the default names may be absent, and others in graphs without such rows.
        target: name of the attribute with targets; "y" may be absent.
        level, directions, duplicates: as in :func:`from_edge_index`.
        ignore: names of attributes that are left out without a word.

    Raises:
        ValueError: as :func:`from_edge_index`; an attribute that is absent; ``edge_weight`` other
            than 1 that is neither taken nor ignored, because without it this is another graph.
        TypeError: another object; heterogeneous graphs, which are not supported.
    """
    at = "[from_pyg] "
    if not isinstance(target, str):
        raise TypeError(f"{at}target: expected a string, got {describe(target)}")
    several = list(data) if isinstance(data, (list, tuple)) else [data]
    if not several:
        raise ValueError(f"{at}data: expected at least one graph, got none")
    rest: dict[str, list[str]] = {}
    changing: dict[str, list[str]] = {}
    repeats, made = 0, []
    taken = _TAKEN | {*node_features, *edge_features, target}
    for each in several:
        _require_pyg(at, each)
    every = [_pyg_attributes(each) for each in several]
    somewhere = {name for own in every for name in own if any(name not in o for o in every)}
    for each, attributes in zip(several, every):
        own = _from_pyg(
            at, each, node_features, edge_features, target, level, directions, duplicates
        )
        own, kept = with_extras(own, attributes, "pos", {*taken, *ignore, *somewhere})
        made.append(own)
        repeats += _repeats(each, own)
        for name, value in attributes.items():
            if name not in taken | kept:
                weights = name in WEIGHTS and has_weights(value)
                into = changing if weights else rest
                into.setdefault(_taker(each, name, value), []).append(name)
    require_taken(f"{at}data: ", changing, ignore)
    warn_of_rest(f"{at}data: ", rest, ignore)
    warn_of_repeats(f"{at}data: ", repeats, duplicates)
    return made[0] if several[0] is data else joined(made, f"{at}data")


@checked
def to_pyg(data: GraphData) -> Any:
    """The record as a ``Data`` of PyTorch Geometric, or a ``Batch`` for more than one graph.

    Undirected pairs become two columns of ``edge_index``. Hyperedges become a ``HyperGraphData``,
    whose ``edge_index`` lists pairs (node, hyperedge). Targets are ``y``, positions ``pos``, and
    masks have their names. Names of nodes and of classes have no place there, and a
    :class:`ConversionWarning` says so.

    Raises:
        ImportError: PyTorch Geometric is not installed.
    """
    try:
        from torch_geometric.data import Batch, Data
        from torch_geometric.data.hypergraph_data import HyperGraphData
    except ImportError:
        raise ImportError(
            "[to_pyg] PyTorch Geometric is needed: pip install torch_geometric"
        ) from None
    say_lost("[to_pyg] ", data, "PyTorch Geometric")
    graphs = []
    for own in data:
        parts: dict[str, Any] = {"x": own.node_features, "num_nodes": own.num_nodes, **own.masks}
        if own.positions is not None:
            parts["pos"] = own.positions
        if own.targets is not None:
            parts["y"] = own.targets
        if own.sizes in ((), (2,)):
            index, rows = edge_index(own)
            parts["edge_index"] = index
            if own.edge_features:
                parts["edge_attr"] = own.edge_features[0][rows]
            if own.level == "edge" and own.targets is not None:
                parts["y"] = own.targets[rows]
            graphs.append(Data(**parts))
            continue
        parts["edge_index"] = torch.cat(_incidences(own.edges), 1)
        if own.edge_features:
            parts["edge_attr"] = torch.cat(own.edge_features)
        graphs.append(HyperGraphData(**parts))
    return graphs[0] if len(graphs) == 1 else Batch.from_data_list(graphs)


def say_lost(at: str, data: GraphData, package: str, targets: bool = False) -> None:
    """Names what a record has and another package has no place for."""
    named = data.names not in ((), tuple(range(data.num_nodes)))
    lost = {"names": named, "classes": bool(data.classes), "targets": targets}
    for name in (name for name, own in lost.items() if own):
        warnings.warn(
            f"{at}data: left out its {name}, for which {package} has no place",
            ConversionWarning,
            stacklevel=4,
        )


def graphs_of(at: str, data: Any, directions: Directions) -> GraphData:
    """A record as it is, or graphs of PyTorch Geometric as a record.

    Args:
        at: begins the message if it is neither, "[fit_graphs] data: ".
    """
    if isinstance(data, GraphData):
        return data
    listed = isinstance(data, (list, tuple)) and bool(data)
    first = data[0] if listed else data
    if hasattr(first, "edge_types") or hasattr(first, "edge_index"):
        return from_pyg(list(data) if listed else data, directions=directions)
    raise TypeError(f"{at}expected GraphData or graphs of PyTorch Geometric, got {describe(data)}")


def with_extras(
    own: GraphData, found: Mapping[str, Any], positions: str, used: Collection[str]
) -> tuple[GraphData, set[str]]:
    """The record with positions and masks, and the names of the attributes that these are."""
    pos = None if positions in used else found.get(positions)
    floating = isinstance(pos, Tensor) and pos.is_floating_point()
    if pos is not None and not (floating and pos.dim() == 2 and len(pos) == own.num_nodes):
        pos = None
    masks = {
        name: value
        for name in list(found.keys())
        if name.endswith("_mask") and name not in used
        if isinstance(value := found[name], Tensor) and value.dtype == torch.bool
        if value.dim() and len(value) == own.num_nodes
    }
    kept = {*masks, *([] if pos is None else [positions])}
    return replace(own, positions=pos, masks=masks), kept


#: Attributes of PyTorch Geometric that say what the graphs are.
_TAKEN = {"edge_index", "adj_t", "batch", "ptr", "num_nodes", "num_graphs"}


def _require_pyg(at: str, data: Any) -> None:
    if hasattr(data, "edge_types"):
        raise TypeError(f"{at}data: heterogeneous graphs are not supported, got {describe(data)}")
    if not hasattr(data, "edge_index"):
        raise TypeError(f"{at}data: expected graphs of PyTorch Geometric, got {describe(data)}")
    if data.edge_index is None and getattr(data, "adj_t", None) is not None:
        raise ValueError(f"{at}data: expected edge_index, got adj_t alone")
    if data.edge_index is not None and not isinstance(data.edge_index, Tensor):
        raise TypeError(f"{at}edge_index: expected a tensor, got {describe(data.edge_index)}")


def _is_hypergraph(data: Any) -> bool:
    return "HyperGraph" in type(data).__name__


def _from_pyg(
    at: str,
    data: Any,
    node_features: Sequence[str],
    edge_features: Sequence[str],
    target: str,
    level: Level,
    directions: Directions,
    duplicates: Duplicates,
) -> GraphData:
    """One ``Data`` or ``Batch``."""
    index, nodes, batch = data.edge_index, data.num_nodes, getattr(data, "batch", None)
    if index is None:
        index = torch.empty(2, 0, dtype=torch.int64)
    found = _pyg_attributes(data)
    if target not in ("", "y", *found):
        raise ValueError(f"{at}target: expected an attribute of data, got {target!r:.60}")
    hyper = _is_hypergraph(data)
    options: dict[str, Any] = {} if hyper else {"directions": directions}
    return renamed(
        at,
        from_hyperedge_index if hyper else from_edge_index,
        index,
        nodes if nodes is not None else 0,
        _columns(at, "edge_features", found, edge_features, "edge_attr", bool(index.numel())),
        batch,
        node_features=_columns(at, "node_features", found, node_features, "x", bool(nodes)),
        targets=found.get(target),
        level=level,
        duplicates=duplicates,
        num_graphs=data.num_graphs if batch is not None and hasattr(data, "num_graphs") else None,
        **options,
    )


def _pyg_attributes(data: Any) -> dict[str, Any]:
    """The attributes that are set, by name."""
    keys = getattr(data, "keys", None)  # a property before version 2.4
    names: Any = keys() if callable(keys) else vars(data) if keys is None else keys
    found = {name: getattr(data, name, None) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if value is not None}


def _repeats(data: Any, made: GraphData) -> int:
    if data.edge_index is None or not data.edge_index.numel():
        return 0
    if _is_hypergraph(data):
        return int(data.edge_index[1].max()) + 1 - made.num_edges
    return repeats_in(data.edge_index, made.num_nodes)


def _taker(data: Any, name: str, value: Any) -> str:
    """The argument that takes an attribute as features; "" if none does. The name decides if there
    are as many nodes as edges."""
    numbers = isinstance(value, Tensor) and value.dim() in (1, 2) and value.dtype != torch.bool
    if not numbers:
        return ""
    pairs = 0 if data.edge_index is None or _is_hypergraph(data) else data.edge_index.size(1)
    of_edges = len(value) != data.num_nodes or name.startswith("edge") or name in WEIGHTS
    if pairs and len(value) == pairs and of_edges:
        return "edge_features"
    return "node_features" if len(value) == data.num_nodes else ""


def _columns(
    at: str, argument: str, found: Mapping[str, Any], names: Sequence[str], usual: str, rows: bool
) -> Tensor | None:
    """The attributes side by side. ``usual`` may be absent, and all may be if there are no
    ``rows``."""
    parts: list[Tensor] = []
    for name in names:
        value = found.get(name)
        if value is None and (name == usual or not rows):
            continue
        got = "no such attribute" if value is None else describe(value)
        if not isinstance(value, Tensor) or value.dim() not in (1, 2):
            raise ValueError(f"{at}{argument}: expected rows of numbers in {name!r:.60}, got {got}")
        parts.append(value[:, None] if value.dim() == 1 else value)
        for what, own, first in (
            ("as many rows", len(parts[-1]), len(parts[0])),
            ("numbers or codes alone", value.is_floating_point(), parts[0].is_floating_point()),
        ):
            if own != first:
                raise ValueError(
                    f"{at}{argument}: expected {what} in {', '.join(names)}, got "
                    f"{describe(parts[0])} and {describe(value)}"
                )
    if not parts:
        return None
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


def edge_index(data: GraphData) -> tuple[Tensor, Tensor]:
    """Both directions of undirected pairs, and the row of every column."""
    if not data.edges:
        return torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    index, rows = data.edges[0].tuples.t(), torch.arange(len(data.edges[0]))
    if data.edges[0].symmetry == "undirected":
        proper = index[0] != index[1]
        index = torch.cat([index, index[:, proper].flip(0)], 1)
        rows = torch.cat([rows, rows[proper]])
    return index.contiguous(), rows


def _incidences(lists: Sequence[TupleBatch]) -> list[Tensor]:
    found, start = [], 0
    for each in lists:
        numbers = torch.arange(start, start + len(each))
        found.append(torch.stack([each.tuples.flatten(), numbers.repeat_interleave(each.order)]))
        start += len(each)
    return found
