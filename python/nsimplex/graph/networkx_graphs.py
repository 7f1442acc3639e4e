"""Graphs from and to NetworkX, which this import does not need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import Duplicates, Level, ListedDirections
from .conversion_checks import (
    WEIGHTS,
    has_weights,
    is_masked,
    renamed,
    repeats_in,
    require_choice,
    require_taken,
    warn_of_repeats,
    warn_of_rest,
)
from .conversions import from_edge_index
from .graph_data import GraphData

__all__ = ["class_name", "class_numbers", "from_networkx", "to_networkx"]


@checked
def from_networkx(
    graphs: Any,
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    target: str = "",
    directions: ListedDirections = "",
    duplicates: Duplicates = "same",
    ignore: Sequence[str] = (),
) -> GraphData:
    """A graph of NetworkX, or several of them in a list.

    Nodes are in the order of the graph, and their names become ``names``. Attributes that are not
    taken are named in one :class:`ConversionWarning`, but for the name of a graph.

    Args:
        graphs: Graph, DiGraph, MultiGraph, MultiDiGraph or a list of these.
        node_features, edge_features: attributes that are numbers, or lists of numbers of one
            length, which become columns.
        target: an attribute of the graphs, of all nodes or of all edges. Targets that are strings
            become classes in ascending order, and their names become ``classes``.
        directions: as in :func:`from_edge_index`; "": "both" for undirected graphs, "given" for
            directed ones, each graph by itself.
        duplicates: what becomes of parallel edges, as in :func:`from_edge_index`.
        ignore: attributes that are left out without a word.

    Raises:
        ValueError: as :func:`from_edge_index`; an attribute that some nodes or edges lack; weights
            of edges other than 1 that are neither taken nor ignored, because without them this is
            another graph.
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
    taken = {"graph": ("name",), "node": (*node_features,), "edge": (*edge_features,)}
    if level:
        taken[level] = (*taken[level], target)
    _account(at, [graph.graph for graph in several], of_nodes, of_edges, taken, ignore)
    features = _attributes(at, "edge_features", edge_features, of_edges)
    index = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).t()
    columns = torch.arange(len(pairs))
    if not directions:
        # Every undirected graph also lists its edges backwards, behind all others.
        both = torch.tensor([not graph.is_directed() for graph in several])
        counts = torch.tensor([len(own) for own in edges])
        backwards = torch.repeat_interleave(both, counts) & (index[0] != index[1])
        columns = torch.cat([columns, backwards.nonzero().squeeze(1)])
        listed = torch.cat([index, index[:, backwards].flip(0)], 1)
    else:
        listed = index
    made = renamed(
        at,
        from_edge_index,
        listed,
        starts[-1],
        None if features is None else features[columns],
        torch.repeat_interleave(
            torch.arange(len(several)), torch.tensor([len(own) for own in nodes])
        ),
        node_features=_attributes(at, "node_features", node_features, of_nodes),
        targets=targets[columns] if targets is not None and level == "edge" else targets,
        level=level,
        directions=directions or "given",
        duplicates=duplicates,
        num_graphs=len(several),
    )
    warn_of_repeats(f"{at}graphs: ", repeats_in(index, starts[-1]), duplicates)
    names = tuple(name for named in nodes for name, _ in named)
    origin = [columns[each] for each in made.origin]
    return replace(made, names=names, classes=classes, origin=origin)


def _account(
    at: str,
    of_graphs: list[dict],
    of_nodes: list[dict],
    of_edges: list[dict],
    taken: Mapping[str, Sequence[str]],
    ignore: Sequence[str],
) -> None:
    """Names the attributes that are not taken."""
    left: dict[str, list[str]] = {}
    rest: dict[str, list[str]] = {}
    for place, rows in (("node", of_nodes), ("edge", of_edges), ("graph", of_graphs)):
        known = {name: value for own in rows for name, value in own.items()}
        left[place] = [name for name in known if name not in taken[place]]
        for name in left[place]:
            numbers = place != "graph" and _cell(known[name]) is not None
            rest.setdefault(f"{place}_features" if numbers else "target", []).append(name)
    weights = [
        name
        for name in left["edge"]
        if name in WEIGHTS and has_weights(own.get(name) for own in of_edges)
    ]
    require_taken(f"{at}graphs: ", {"edge_features": weights}, ignore)
    warn_of_rest(f"{at}graphs: ", rest, ignore, stacklevel=5)


@checked
def to_networkx(data: GraphData) -> Any:
    """The record as a graph of NetworkX, or a list of graphs if there are several.

    The graph is directed unless every edge exists in both directions with the same features. Nodes
    have ``features`` and ``target``, edges have ``features`` and ``target``, and the graph has
    ``target``, as far as the record has them. Classes get their names, and those below 0, which
    are not known, None.

    Raises:
        ImportError: NetworkX is not installed.
        ValueError: hyperedges, which :func:`write_hif` keeps; two nodes of one name.
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
        if len(set(names)) < len(names):
            raise ValueError("[to_networkx] data: expected different names of nodes in a graph")
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
def class_numbers(labels: Iterable[Any]) -> tuple[Tensor, tuple]:
    """Numbers of classes int64 [rows] of named labels, and the names in ascending order.

    Raises:
        TypeError: labels that cannot be ordered.
        ValueError: a label that is NaN.
    """
    if isinstance(labels, (str, bytes)):
        raise TypeError(f"[class_numbers] labels: expected a list, got {describe(labels)}")
    rows = labels.tolist() if isinstance(labels, Tensor) else list(labels)
    for place, row in enumerate(rows):
        if isinstance(row, float) and row != row:
            raise ValueError(f"[class_numbers] labels: expected a label in row {place}, got nan")
    try:
        names = tuple(sorted(set(rows)))
    except TypeError:
        raise TypeError("[class_numbers] labels: expected labels of one type") from None
    number = {name: place for place, name in enumerate(names)}
    return torch.tensor([number[row] for row in rows], dtype=torch.int64), names


def class_name(data: GraphData, number: int) -> Any:
    """The name of a class; None for a number below 0, a class that is not known."""
    return data.classes[number] if number >= 0 else None


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
    """The real numbers of an attribute; None if there are none, or if some are masked."""
    try:
        cell = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    if cell.is_complex() or is_masked(value):
        return None
    return cell.to(torch.get_default_dtype())


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
    named = [isinstance(row, str) for row in rows]
    if any(named):
        if not all(named):
            raise ValueError(f"{at}target: expected numbers or names of classes, got both")
        return class_numbers(rows)
    try:
        return torch.tensor(rows), ()
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{at}target: expected numbers or names of classes") from None


def _named_targets(data: GraphData) -> list | None:
    if data.targets is None:
        return None
    rows = data.targets.tolist()
    return [class_name(data, row) for row in rows] if data.classes else rows
