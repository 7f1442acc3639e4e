"""Hypergraphs as files in the hypergraph interchange format (HIF), which is JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from .._arguments import checked
from .._csv_text import read_text
from .._printable import printable
from .._whole_file import whole_file
from .conversions import from_edge_index
from .graph_data import GraphData
from .hyperedges import from_hyperedge_index
from .networkx_graphs import class_numbers

__all__ = ["read_hif", "write_hif"]

_Path = str | os.PathLike[str]
_TYPES = ("undirected", "directed", "asc")


@checked
def read_hif(
    path: _Path,
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    target: str = "",
) -> GraphData:
    """Reads a hypergraph from a file in the hypergraph interchange format.

    Nodes are in the order in which the file mentions them, first in ``nodes``, then in
    ``incidences``, and their identifiers become ``names``. Nodes in no hyperedge are kept. A file
    of type "directed" must have hyperedges of one tail and one head. They become ordered pairs.

    Args:
        path: JSON, gzipped or not.
        node_features, edge_features: attributes that are numbers, or "weight".
        target: an attribute of all nodes, else of all hyperedges. Strings become classes.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.

    Source: https://github.com/pszufe/HIF-standard
    """
    at = f"cannot read {printable(os.fspath(path))}: "
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if str(error).startswith("cannot read"):
            raise
        raise ValueError(f"{at}not JSON: {error}") from None
    kind = _expect(at, content, dict, "the file").get("network-type", "undirected")
    if kind not in _TYPES:
        raise ValueError(f"{at}network-type: expected {', '.join(_TYPES)}, got {kind!r:.40}")
    nodes, edges = (_records(at, content, name) for name in ("node", "edge"))
    pairs, directions = [], []
    for place, own in enumerate(_list(at, content, "incidences")):
        own = _expect(at, own, dict, f"incidences[{place}]")
        names = []
        for name, known in (("node", nodes), ("edge", edges)):
            names.append(_name(at, own, name, f"incidences[{place}]"))
            known.setdefault(names[-1], {})
        pairs.append(names)
        directions.append(own.get("direction"))
    if len({edge for _, edge in pairs}) < len(edges):
        alone = next(name for name in edges if all(name != edge for _, edge in pairs))
        raise ValueError(f"{at}hyperedge {alone!r:.40} has no nodes")
    of_node = {name: number for number, name in enumerate(nodes)}
    of_edge = {name: number for number, name in enumerate(edges)}
    index = torch.tensor(
        [[of_node[node] for node, _ in pairs], [of_edge[edge] for _, edge in pairs]],
        dtype=torch.int64,
    ).view(2, -1)
    targets, level, classes = None, "", ()
    if target:
        level = "node" if any(target in each for each in nodes.values()) else "edge"
        rows = _column(at, nodes if level == "node" else edges, target, level)
        targets, classes = (
            class_numbers(rows)
            if rows and isinstance(rows[0], str)
            else (torch.tensor([_number(at, row, target) for row in rows]), ())
        )
    options: dict[str, Any] = dict(
        edge_features=_table(at, edges, edge_features, "edge"),
        node_features=_table(at, nodes, node_features, "node"),
        targets=targets,
        level=level,
    )
    try:
        if kind == "directed":
            made = from_edge_index(
                _directed(at, index, directions, len(of_edge)), len(nodes), **options
            )
        else:
            made = from_hyperedge_index(index, len(nodes), **options)
    except ValueError as error:
        if str(error).startswith("cannot read"):
            raise
        raise ValueError(at + str(error).partition("] ")[2]) from None
    return replace(made, names=tuple(nodes), classes=classes)


@checked
def write_hif(data: GraphData, path: _Path) -> None:
    """Writes one graph or hypergraph to a file in the hypergraph interchange format.

    Columns of features become the attributes x0, x1, .. of nodes and hyperedges, and targets become
    ``target``. Ordered pairs give a file of type "directed". Types of numbers are not kept.

    Raises:
        ValueError: more than one graph; ordered hyperedges of more than two nodes.
        OSError: nothing can be written there.
    """
    at = "[write_hif] data: "
    if data.num_graphs != 1:
        raise ValueError(f"{at}expected one graph, got {data.num_graphs}")
    ordered = [each.order for each in data.edges if each.symmetry != "undirected"]
    if ordered not in ([], [2]) or (ordered and len(data.edges) > 1):
        raise ValueError(f"{at}expected undirected hyperedges or ordered pairs alone")
    names = data.names or tuple(range(data.num_nodes))
    rows = data.targets.tolist() if data.targets is not None else []
    if data.classes:
        rows = [data.classes[row] for row in rows]
    nodes = []
    for place, name in enumerate(names):
        attributes = _numbered(data.node_features, place)
        if data.level == "node":
            attributes["target"] = rows[place]
        nodes.append({"node": _identifier(name), **({"attrs": attributes} if attributes else {})})
    edges: list[dict[str, Any]] = []
    incidences: list[dict[str, Any]] = []
    for size, batch in enumerate(data.edges):
        for place, members in enumerate(batch.tuples.tolist()):
            number = len(edges)
            attributes = _numbered(data.edge_features[size], place) if data.edge_features else {}
            if data.level == "edge":
                attributes["target"] = rows[number]
            edges.append({"edge": number, **({"attrs": attributes} if attributes else {})})
            ways = (
                ({"direction": "tail"}, {"direction": "head"}) if ordered else ({},) * len(members)
            )
            incidences += [
                {"edge": number, "node": _identifier(names[node]), **way}
                for node, way in zip(members, ways)
            ]
    metadata = {"target": rows[0]} if data.level == "graph" else {}
    content = {
        "network-type": "directed" if ordered else "undirected",
        **({"metadata": metadata} if metadata else {}),
        "nodes": nodes,
        "edges": edges,
        "incidences": incidences,
    }
    with whole_file(path, encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False)


def _identifier(name: Any) -> int | str:
    return name if isinstance(name, (int, str)) else str(name)


def _numbered(features: Any, row: int) -> dict[str, Any]:
    return {} if features is None else {f"x{i}": x for i, x in enumerate(features[row].tolist())}


def _expect(at: str, value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise ValueError(f"{at}{where}: expected {wanted}, got {value!r:.40}")
    return value


def _list(at: str, content: dict, name: str) -> list:
    if name == "incidences" and name not in content:
        raise ValueError(f"{at}it has no incidences")
    return _expect(at, content.get(name, []), list, name)


def _name(at: str, record: dict, name: str, where: str) -> Any:
    found = record.get(name)
    if not isinstance(found, (int, str)) or isinstance(found, bool):
        raise ValueError(f"{at}{where}: expected {name} as a number or a string, got {found!r:.40}")
    return found


def _records(at: str, content: dict, name: str) -> dict[Any, dict]:
    """Attributes by identifier."""
    found: dict[Any, dict] = {}
    for place, own in enumerate(_list(at, content, f"{name}s")):
        own = _expect(at, own, dict, f"{name}s[{place}]")
        key = _name(at, own, name, f"{name}s[{place}]")
        if key in found:
            raise ValueError(f"{at}{name}s[{place}]: {key!r:.40} is listed twice")
        attributes = _expect(at, own.get("attrs", {}), dict, f"{name}s[{place}], attrs")
        found[key] = attributes | ({"weight": own["weight"]} if "weight" in own else {})
    return found


def _column(at: str, records: dict[Any, dict], name: str, kind: str) -> list:
    missing = next((key for key, own in records.items() if name not in own), None)
    if missing is not None:
        raise ValueError(f"{at}{kind} {missing!r:.40} has no attribute {name!r:.40}")
    return [own[name] for own in records.values()]


def _number(at: str, value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{at}expected a number in {name!r:.40}, got {value!r:.40}")
    return value


def _table(at: str, records: dict[Any, dict], names: Sequence[str], kind: str) -> Any:
    if not names:
        return None
    columns = [[_number(at, row, n) for row in _column(at, records, n, kind)] for n in names]
    return torch.tensor(columns, dtype=torch.get_default_dtype()).t().contiguous()


def _directed(at: str, index: torch.Tensor, directions: list, edges: int) -> torch.Tensor:
    pairs = torch.full((2, edges), -1)
    for (node, edge), way in zip(index.t().tolist(), directions):
        side = {"tail": 0, "head": 1}.get(way) if isinstance(way, str) else None
        if side is None:
            raise ValueError(f"{at}directed incidences: expected tail or head, got {way!r:.40}")
        if pairs[side, edge] >= 0:
            raise ValueError(f"{at}directed hyperedges: expected one tail and one head")
        pairs[side, edge] = node
    if bool((pairs < 0).any()):
        raise ValueError(f"{at}directed hyperedges: expected one tail and one head")
    return pairs
