"""Hypergraphs as files in the hypergraph interchange format (HIF), which is JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from .._arguments import checked
from .._choices import Duplicates, Level
from .._csv_text import read_text
from .._printable import printable
from .._whole_file import whole_file
from .conversion_checks import (
    WEIGHTS,
    has_weights,
    require_taken,
    warn_of_repeats,
    warn_of_rest,
)
from .conversions import from_edge_index
from .graph_data import GraphData
from .hyperedges import from_hyperedge_index
from .networkx_graphs import class_name, class_numbers

__all__ = ["read_hif", "write_hif"]

_Path = str | os.PathLike[str]
_TYPES = ("undirected", "directed", "asc")
_ENTRIES = ("network-type", "metadata", "nodes", "edges", "incidences")


class HifRecords(NamedTuple):
    """The contents of a file, not checked yet."""

    kind: str  #: the type of network
    nodes: dict[Any, dict[str, Any]]  #: attributes by identifier, in the order of mention
    edges: dict[Any, dict[str, Any]]
    pairs: list[tuple[Any, Any]]  #: node and hyperedge of every incidence
    incidences: list[dict[str, Any]]  #: attributes of every incidence
    directions: list[Any]  #: of every incidence; None: none
    metadata: dict[str, Any]
    others: list[str]  #: names of entries that the format does not have


@checked
def read_hif(
    path: _Path,
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    target: str = "",
    duplicates: Duplicates = "same",
    ignore: Sequence[str] = (),
) -> GraphData:
    """Reads a hypergraph from a file in the hypergraph interchange format.

    Nodes are in the order in which the file mentions them, first in ``nodes``, then in
    ``incidences``, and their identifiers become ``names``. Nodes in no hyperedge are kept. A file
    of type "directed" must have hyperedges of one tail and one head. They become ordered pairs. A
    file of type "asc" must list all faces of two nodes or more. What is not taken, such as other
    attributes and metadata, is named in one :class:`ConversionWarning`.

    Args:
        path: JSON, gzipped or not.
        node_features, edge_features: attributes that are numbers, or "weight". A hyperedge without
            the attribute has that of its incidences, if they all have the same.
        target: an attribute of all nodes, else of all hyperedges, else of the file's ``metadata``.
            Strings become classes.
        duplicates: what becomes of hyperedges of the same nodes, as in
            :func:`from_hyperedge_index`.
        ignore: names that are left out without a word.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line. This is also so for weights of hyperedges
            and incidences other than 1 that are neither taken nor ignored, and for directions in a
            file that is not "directed".

    Source: https://github.com/pszufe/HIF-standard
    """
    at = f"cannot read {printable(os.fspath(path))}: "
    records = read_records(path)
    nodes, edges = records.nodes, with_shared(records)
    targets, level, classes = None, "", ()
    if target:
        level, rows = _target_rows(at, target, nodes, edges, records.metadata)
        targets, classes = _as_targets(at, target, rows)
    options: dict[str, Any] = dict(
        edge_features=_table(at, edges, edge_features, "edge"),
        node_features=_table(at, nodes, node_features, "node"),
        targets=targets,
        level=level,
        duplicates=duplicates,
    )
    taken: dict[str, Sequence[str]] = {
        "node": [*node_features, *([target] if level == "node" else [])],
        "edge": [*edge_features, *([target] if level == "edge" else [])],
        "graph": [target] if level == "graph" else [],
    }
    account_for_records(path, records, taken, ignore)
    of_node = {name: number for number, name in enumerate(nodes)}
    of_edge = {name: number for number, name in enumerate(edges)}
    index = torch.tensor(
        [
            [of_node[node] for node, _ in records.pairs],
            [of_edge[edge] for _, edge in records.pairs],
        ],
        dtype=torch.int64,
    ).view(2, -1)
    try:
        if records.kind == "directed":
            pairs = _directed(at, index, records.directions, len(of_edge))
            made = from_edge_index(pairs, len(nodes), **options)
        else:
            made = from_hyperedge_index(index, len(nodes), **options)
    except ValueError as error:
        if str(error).startswith("cannot read"):
            raise
        raise ValueError(at + str(error).partition("] ")[2]) from None
    warn_of_repeats(f"{printable(os.fspath(path))}: ", len(edges) - made.num_edges, duplicates)
    return replace(made, names=tuple(nodes), classes=classes)


def read_records(path: _Path) -> HifRecords:
    """The records of a file.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
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
    others = [name for name in content if name not in _ENTRIES]
    nodes, edges = (_records(at, content, name, others) for name in ("node", "edge"))
    pairs, incidences, directions = [], [], []
    for place, own in enumerate(_list(at, content, "incidences")):
        where = f"incidences[{place}]"
        own = _expect(at, own, dict, where)
        names = []
        for name, known in (("node", nodes), ("edge", edges)):
            names.append(_name(at, own, name, where))
            known.setdefault(names[-1], {})
        pairs.append((names[0], names[1]))
        incidences.append(_attributes(at, own, where, ("node", "edge", "direction"), others))
        directions.append(own.get("direction"))
    alone = next(iter(edges.keys() - {edge for _, edge in pairs}), None)
    if alone is not None:
        raise ValueError(f"{at}hyperedge {alone!r:.40} has no nodes")
    metadata = _expect(at, content.get("metadata", {}), dict, "metadata")
    return HifRecords(kind, nodes, edges, pairs, incidences, directions, metadata, others)


def with_shared(records: HifRecords) -> dict[Any, dict[str, Any]]:
    """The attributes of the hyperedges, and those that all their incidences share."""
    shared: dict[Any, dict[str, Any]] = {}
    for (_, edge), own in zip(records.pairs, records.incidences):
        known = shared.setdefault(edge, own)
        shared[edge] = {
            name: value for name, value in known.items() if name in own and own[name] == value
        }
    return {edge: shared[edge] | own for edge, own in records.edges.items()}


def account_for_records(
    path: _Path,
    records: HifRecords,
    taken: Mapping[str, Sequence[str]],
    ignore: Collection[str],
    option: str = "ignore=[{}]",
    stacklevel: int = 5,
) -> None:
    """Names what is not taken. ``taken`` has names by "node", "edge" and "graph"; ``ignore`` and
    ``option`` are as in :func:`require_taken`.

    Raises:
        ValueError: weights, directions and faces of a complex that would be lost.
    """
    name = printable(os.fspath(path))
    at = f"cannot read {name}: "
    edges = with_shared(records)
    left: dict[str, list[str]] = {"edge_features": [], "": []}
    rest: dict[str, list[str]] = {"": [], "target": []}
    for of, known in (("node", records.nodes), ("edge", edges)):
        for each, value in {n: v for own in known.values() for n, v in own.items()}.items():
            if each not in taken[of]:
                weighs = of == "edge" and each in WEIGHTS
                weighs = weighs and has_weights(own.get(each) for own in known.values())
                numbers = isinstance(value, (int, float)) and not isinstance(value, bool)
                argument = f"{of}_features" if numbers else "target"
                (left if weighs else rest).setdefault(argument, []).append(each)
    for (_, edge), own in zip(records.pairs, records.incidences):
        for each, value in own.items():
            if each not in edges[edge] or edges[edge][each] != value:
                weighs = each in WEIGHTS and has_weights([value])
                (left if weighs else rest)[""].append(each)
    if records.kind != "directed" and any(way is not None for way in records.directions):
        left[""].append("direction")
    require_taken(at, {key: dict.fromkeys(names) for key, names in left.items()}, ignore, option)
    if records.kind == "asc" and "network-type" not in ignore:
        _require_faces(at, records.pairs, option)
    rest["target"] += [each for each in records.metadata if each not in taken["graph"]]
    rest[""] += records.others
    warn_of_rest(f"{name}: ", rest, ignore, option, stacklevel)


def _require_faces(at: str, pairs: Sequence[tuple[Any, Any]], option: str) -> None:
    """Checks that an abstract simplicial complex lists the faces of its simplices."""
    members: dict[Any, set[Any]] = {}
    for node, edge in pairs:
        members.setdefault(edge, set()).add(node)
    listed = {frozenset(own) for own in members.values()}
    for edge, own in members.items():
        missing = next((own - {node} for node in own if own - {node} not in listed), None)
        if len(own) > 2 and missing is not None:
            raise ValueError(
                f"{at}network-type: expected all faces of the complex among its hyperedges, got "
                f"none of {len(missing)} nodes of hyperedge {edge!r:.40}; "
                f"{option.format(repr('network-type'))} takes those that are listed"
            )


@checked
def write_hif(data: GraphData, path: _Path) -> None:
    """Writes one graph or hypergraph to a file in the hypergraph interchange format.

    Columns of features become the attributes x0, x1, .. of nodes and hyperedges, and targets become
    ``target``. Ordered pairs give a file of type "directed". Types of numbers are not kept.

    Raises:
        ValueError: more than one graph; ordered hyperedges of more than two nodes; two names
            of nodes that are one text.
        OSError: nothing can be written there.
    """
    at = "[write_hif] data: "
    if data.num_graphs != 1:
        raise ValueError(f"{at}expected one graph, got {data.num_graphs}")
    ordered = [each.order for each in data.edges if each.symmetry != "undirected"]
    if ordered not in ([], [2]) or (ordered and len(data.edges) > 1):
        raise ValueError(f"{at}expected undirected hyperedges or ordered pairs alone")
    names = [_identifier(name) for name in data.names] or list(range(data.num_nodes))
    if len(set(names)) < len(names):
        raise ValueError(f"{at}expected names that differ as numbers or text")
    rows = data.targets.tolist() if data.targets is not None else []
    if data.classes:
        rows = [class_name(data, row) for row in rows]
    nodes = []
    for place, name in enumerate(names):
        attributes = _numbered(data.node_features, place)
        if data.level == "node":
            attributes["target"] = rows[place]
        nodes.append({"node": name, **({"attrs": attributes} if attributes else {})})
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
                {"edge": number, "node": names[node], **way} for node, way in zip(members, ways)
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
    return name if isinstance(name, (int, str)) and not isinstance(name, bool) else str(name)


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


def _records(at: str, content: dict, name: str, others: list[str]) -> dict[Any, dict]:
    """Attributes by identifier."""
    found: dict[Any, dict] = {}
    for place, own in enumerate(_list(at, content, f"{name}s")):
        where = f"{name}s[{place}]"
        own = _expect(at, own, dict, where)
        key = _name(at, own, name, where)
        if key in found:
            raise ValueError(f"{at}{where}: {key!r:.40} is listed twice")
        found[key] = _attributes(at, own, where, (name,), others)
    return found


def _attributes(
    at: str, record: dict, where: str, known: Sequence[str], others: list[str]
) -> dict[str, Any]:
    """The attributes and the weight of a record. ``others`` gets the names of further entries."""
    attributes = _expect(at, record.get("attrs") or {}, dict, f"{where}, attrs")
    others += [each for each in record if each not in ("attrs", "weight", *known)]
    weight = record.get("weight")
    return attributes | ({} if weight is None else {"weight": weight})


def _target_rows(
    at: str, name: str, nodes: dict[Any, dict], edges: dict[Any, dict], metadata: dict[str, Any]
) -> tuple[Level, list]:
    if any(name in own for own in nodes.values()):
        return "node", _column(at, nodes, name, "node")
    if name in metadata and not any(name in own for own in edges.values()):
        return "graph", [metadata[name]]
    return "edge", _column(at, edges, name, "edge")


def _as_targets(at: str, name: str, rows: list) -> tuple[torch.Tensor, tuple]:
    if rows and all(isinstance(row, str) for row in rows):
        return class_numbers(rows)
    return torch.tensor([_number(at, row, name) for row in rows]), ()


def _column(at: str, records: dict[Any, dict], name: str, kind: str) -> list:
    missing = next((key for key, own in records.items() if name not in own), None)
    if missing is not None:
        raise ValueError(f"{at}{kind} {missing!r:.40} has no attribute {name!r:.40}")
    return [own[name] for own in records.values()]


def _number(at: str, value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{at}expected a number in {name!r:.40}, got {value!r:.40}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{at}expected a number below 2^63 in {name!r:.40}, got {value!r:.40}")
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
