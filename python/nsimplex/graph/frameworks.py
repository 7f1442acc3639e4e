"""Graphs from and to PyTorch Geometric, NetworkX and DGL, none of which this import needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Directions, Duplicates, Level, ListedDirections
from .batches import TupleBatch
from .conversion_checks import joined, renamed, require_choice
from .conversions import from_edge_index
from .graph_data import GraphData
from .hyperedges import from_hyperedge_index

__all__ = ["class_numbers", "from_dgl", "from_networkx", "from_pyg", "to_networkx", "to_pyg"]


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
) -> GraphData:
    """Graphs of PyTorch Geometric: a ``Data``, ``Batch``, ``HyperGraphData`` or a list of these.

    PyTorch Geometric lists both directions of an undirected edge, and so does the result. A batch
    is converted as a whole, without a loop over its graphs.

    Args:
        data: the graphs, on the CPU.
        node_features, edge_features: names of the attributes to take. Several are joined column by
            column; those that are absent are left out.
        target: name of the attribute with targets; left out if absent.
        level, directions, duplicates: as in :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`.
        TypeError: another object; heterogeneous graphs, which are not supported.
    """
    at = "[from_pyg] "
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError(f"{at}data: expected at least one graph, got none")
        own: dict[str, Any] = dict(
            node_features=node_features,
            edge_features=edge_features,
            target=target,
            level=level,
            directions=directions,
            duplicates=duplicates,
        )
        return joined([from_pyg(each, **own) for each in data], f"{at}data")
    if hasattr(data, "edge_types"):
        raise TypeError(f"{at}data: heterogeneous graphs are not supported, got {describe(data)}")
    if not hasattr(data, "edge_index"):
        raise TypeError(f"{at}data: expected graphs of PyTorch Geometric, got {describe(data)}")
    index = data.edge_index
    if index is None:
        if getattr(data, "adj_t", None) is not None:
            raise ValueError(f"{at}data: expected edge_index, got adj_t alone")
        index = torch.empty(2, 0, dtype=torch.int64)
    batch = getattr(data, "batch", None)
    hyper = "HyperGraph" in type(data).__name__
    options: dict[str, Any] = {} if hyper else {"directions": directions}
    return renamed(
        at,
        from_hyperedge_index if hyper else from_edge_index,
        index,
        data.num_nodes if data.num_nodes is not None else 0,
        _columns(at, data, edge_features),
        batch,
        node_features=_columns(at, data, node_features),
        targets=getattr(data, target, None),
        level=level,
        duplicates=duplicates,
        num_graphs=data.num_graphs if batch is not None and hasattr(data, "num_graphs") else None,
        **options,
    )


@checked
def to_pyg(data: GraphData) -> Any:
    """The record as a ``Data`` of PyTorch Geometric, or a ``Batch`` for more than one graph.

    Undirected pairs become two columns of ``edge_index``. Hyperedges become a ``HyperGraphData``,
    whose ``edge_index`` lists pairs (node, hyperedge). Targets are ``y``.

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
    graphs = []
    for own in data:
        parts: dict[str, Any] = {"x": own.node_features, "num_nodes": own.num_nodes}
        if own.targets is not None:
            parts["y"] = own.targets
        if own.sizes in ((), (2,)):
            index, rows = _edge_index(own)
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


@checked
def from_networkx(
    graphs: Any,
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    target: str = "",
    directions: ListedDirections = "",
    duplicates: Duplicates = "same",
) -> GraphData:
    """A graph of NetworkX, or several of them in a list.

    Nodes are in the order of the graph, and their names become ``names``.

    Args:
        graphs: Graph, DiGraph, MultiGraph, MultiDiGraph or a list of these.
        node_features, edge_features: attributes that are numbers, or lists of numbers of one
            length, which become columns.
        target: an attribute of the graphs, of all nodes or of all edges. Targets that are strings
            become classes in ascending order, and their names become ``classes``.
        directions: as in :func:`from_edge_index`; "": "both" for undirected graphs, "given" for
            directed ones.
        duplicates: what becomes of parallel edges, as in :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`; an attribute that some nodes or edges lack.
    """
    at = "[from_networkx] "
    require_choice(at, "directions", directions, get_args(ListedDirections))
    if not isinstance(target, str):
        raise TypeError(f"{at}target: expected a string, got {describe(target)}")
    several = list(graphs) if isinstance(graphs, (list, tuple)) else [graphs]
    if not several:
        raise ValueError(f"{at}graphs: expected at least one graph, got none")
    for graph in several:
        if not (hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "adj")):
            raise TypeError(f"{at}graphs: expected graphs of NetworkX, got {describe(graph)}")
    nodes = [list(graph.nodes(data=True)) for graph in several]
    edges = [list(graph.edges(data=True)) for graph in several]
    starts = [0]
    for own in nodes:
        starts.append(starts[-1] + len(own))
    pairs = []
    for start, named, own in zip(starts, nodes, edges):
        number = {name: start + place for place, (name, _) in enumerate(named)}
        pairs += [(number[first], number[second]) for first, second, _ in own]
    of_nodes = [own for named in nodes for _, own in named]
    of_edges = [own for listed in edges for *_, own in listed]
    targets, level, classes = None, "", ()
    if target:
        rows, level = _networkx_targets(at, target, several, of_nodes, of_edges)
        targets, classes = _as_targets(at, rows)
    directed = several[0].is_directed()
    made = renamed(
        at,
        from_edge_index,
        torch.tensor(pairs, dtype=torch.int64).view(-1, 2).t(),
        starts[-1],
        _attributes(at, "edge_features", edge_features, of_edges),
        torch.repeat_interleave(
            torch.arange(len(several)), torch.tensor([len(own) for own in nodes])
        ),
        node_features=_attributes(at, "node_features", node_features, of_nodes),
        targets=targets,
        level=level,
        directions=directions or ("given" if directed else "both"),
        duplicates=duplicates,
        num_graphs=len(several),
    )
    names = tuple(name for named in nodes for name, _ in named)
    return replace(made, names=names, classes=classes)


@checked
def to_networkx(data: GraphData) -> Any:
    """The record as a graph of NetworkX, or a list of graphs if there are several.

    The graph is directed unless every edge exists in both directions with the same features. Nodes
    have ``features`` and ``target``, edges have ``features`` and ``target``, and the graph has
    ``target``, as far as the record has them. Classes get their names.

    Raises:
        ImportError: NetworkX is not installed.
        ValueError: hyperedges; :func:`to_hif` keeps them.
    """
    try:
        import networkx
    except ImportError:
        raise ImportError(
            "[to_networkx] NetworkX is needed: pip install networkx (the extra graph)"
        ) from None
    if data.sizes not in ((), (2,)):
        raise ValueError(
            f"[to_networkx] data: expected edges of size 2, got sizes {list(data.sizes)}"
        )
    graphs = []
    for own in data:
        edges = own.edges[0].tuples.tolist() if own.edges else []
        features = own.edge_features[0].tolist() if own.edge_features else None
        targets = _named_targets(own)
        of_edges = [
            ({} if features is None else {"features": features[row]})
            | ({"target": targets[row]} if targets and own.level == "edge" else {})
            for row in range(len(edges))
        ]
        known = {tuple(edge): each for edge, each in zip(edges, of_edges)}
        symmetric = all(known.get((b, a)) == each for (a, b), each in known.items())
        undirected = not own.edges or own.edges[0].symmetry == "undirected" or symmetric
        graph = networkx.Graph() if undirected else networkx.DiGraph()
        names = own.names or tuple(range(own.num_nodes))
        rows = None if own.node_features is None else own.node_features.tolist()
        for place, name in enumerate(names):
            attributes: dict[str, Any] = {} if rows is None else {"features": rows[place]}
            if targets and own.level == "node":
                attributes["target"] = targets[place]
            graph.add_node(name, **attributes)
        for (first, second), attributes in known.items():
            graph.add_edge(names[first], names[second], **attributes)
        if targets and own.level == "graph":
            graph.graph["target"] = targets[0]
        graphs.append(graph)
    return graphs[0] if len(graphs) == 1 else graphs


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
) -> GraphData:
    """A graph of DGL or a batch of them.

    Args:
        graph: homogeneous, on the CPU.
        node_features, edge_features, target: names in ``ndata``, ``edata`` and ``ndata``; left out
            if absent.
        targets: targets of the graphs or edges, in place of those in ``ndata``.
        directions, duplicates: as in :func:`from_edge_index`.

    Raises:
        ValueError: as :func:`from_edge_index`.
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
    counts = graph.batch_num_nodes()
    return renamed(
        at,
        from_edge_index,
        torch.stack([each.to(torch.int64) for each in graph.edges()]),
        graph.num_nodes(),
        graph.edata.get(edge_features),
        torch.repeat_interleave(torch.arange(len(counts)), counts.to(torch.int64)),
        node_features=graph.ndata.get(node_features),
        targets=graph.ndata.get(target) if targets is None else targets,
        directions=directions,
        duplicates=duplicates,
        num_graphs=len(counts),
    )


@checked
def class_numbers(labels: Iterable[Any]) -> tuple[Tensor, tuple]:
    """Numbers of classes int64 [rows] of named labels, and the names in ascending order.

    Raises:
        TypeError: labels that cannot be ordered.
    """
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"[class_numbers] labels: expected a list, got {describe(labels)}")
    rows = labels.tolist() if isinstance(labels, Tensor) else list(labels)
    try:
        names = tuple(sorted(set(rows)))
    except TypeError:
        raise TypeError("[class_numbers] labels: expected labels of one type") from None
    number = {name: place for place, name in enumerate(names)}
    return torch.tensor([number[row] for row in rows], dtype=torch.int64), names


def _columns(at: str, data: Any, names: Sequence[str]) -> Tensor | None:
    parts = [getattr(data, name, None) for name in names]
    found = [part[:, None] if part.dim() == 1 else part for part in parts if part is not None]
    if not found:
        return None
    if any(part.shape[:1] != found[0].shape[:1] for part in found):
        raise ValueError(f"{at}data: expected as many rows in {', '.join(names)}")
    return torch.cat(found, 1) if len(found) > 1 else found[0]


def _edge_index(data: GraphData) -> tuple[Tensor, Tensor]:
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


def _attributes(at: str, argument: str, names: Sequence[str], rows: list[dict]) -> Tensor | None:
    if not names:
        return None
    columns = []
    for name in names:
        missing = next((place for place, own in enumerate(rows) if name not in own), None)
        if missing is not None:
            raise ValueError(f"{at}{argument}: {name!r} is missing in row {missing}")
        cells: list[Tensor] = []
        for row, own in enumerate(rows):
            cell = _cell(own[name])
            if cell is None or (cells and cell.shape != cells[0].shape):
                raise ValueError(
                    f"{at}{argument}: expected numbers of one length in {name!r}, got "
                    f"{describe(own[name])} in row {row}"
                )
            cells.append(cell)
        column = torch.stack(cells) if cells else torch.empty(0, 1, dtype=torch.get_default_dtype())
        columns.append(column.flatten(1) if column.dim() > 1 else column[:, None])
    return torch.cat(columns, 1)


def _cell(value: Any) -> Tensor | None:
    """The numbers of an attribute; None if there are none."""
    try:
        return torch.as_tensor(value, dtype=torch.get_default_dtype())
    except (TypeError, ValueError, RuntimeError):
        return None


def _networkx_targets(
    at: str, name: str, graphs: list, of_nodes: list[dict], of_edges: list[dict]
) -> tuple[list, Level]:
    of_graphs = [graph.graph for graph in graphs]
    places: dict[Level, list[dict]] = {"graph": of_graphs, "node": of_nodes, "edge": of_edges}
    for level, rows in places.items():
        found = [own[name] for own in rows if name in own]
        if found and len(found) < len(rows):
            raise ValueError(
                f"{at}target: {len(rows) - len(found)} of {len(rows)} {level}s have no {name!r}"
            )
        if found:
            return found, level
    raise ValueError(f"{at}target: no graph, node or edge has {name!r}")


def _as_targets(at: str, rows: list) -> tuple[Tensor, tuple]:
    if isinstance(rows[0], str):
        return class_numbers(rows)
    try:
        return torch.tensor(rows), ()
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{at}target: expected numbers or names of classes") from None


def _named_targets(data: GraphData) -> list | None:
    if data.targets is None:
        return None
    rows = data.targets.tolist()
    return [data.classes[row] for row in rows] if data.classes else rows
