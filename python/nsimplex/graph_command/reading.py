"""Reads data sets of graphs: csv files, SMILES, arrays, graph6 and hypergraphs."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._foreign_files import foreign_file
from .._npz import read_npz
from .._printable import printable
from ..graph import ConversionWarning, GraphData
from ..graph.hif import account_for_records, read_records, with_shared
from ..graph_files import read_graphs
from .array_files import read_arrays, read_hdf5
from .molecule_rows import read_molecules
from .records import (
    MOST_NODES,
    Loaded,
    Recipe,
    chosen_rows,
    edge_rows,
    graph_of_edges,
    unique_edges,
    with_rows,
)
from .tables import BadRow, Table, number_of, read_csv
from .tensor_files import read_tensors

_GRAPH = "graph"  # the column of nodes and edges that names their graph


def read_data(path: str, recipe: Recipe, nodes: str = "", graphs: str = "") -> Loaded:
    """A data set, whose format is known by its first bytes.

    Args:
        path: edges, hyperedges or SMILES in csv; npz or h5; graph6; HIF; a file of torch.save.
        recipe: how to read it. What is found the first time is added.
        nodes, graphs: csv files about the nodes and graphs of a csv file of edges. graph6 takes
            ``graphs``, a row per graph.

    Raises:
        ValueError: one line that names the file, or the option that is missing.
    """
    kind = format_of(path)
    if kind not in ("csv", "hif") and nodes:
        raise ValueError(f"--nodes: expected a csv file of edges in DATA, got {kind}")
    if kind not in ("csv", "graph6") and graphs:
        raise ValueError(f"--graphs: expected csv or graph6 in DATA, got {kind}")
    if not recipe.trained:
        _require_used(kind, recipe, nodes)
    if kind == "graph6":
        return _read_graph6(path, recipe, graphs)
    if kind == "hif":
        return _read_hif(path, recipe)
    if kind != "csv":
        readers: dict[str, Callable[[str], dict[str, Any]]] = {
            "npz": read_npz,
            "h5": read_hdf5,
            "tensors": lambda own: read_tensors(own, recipe.targets, recipe.task),
        }
        return read_arrays(path, readers[kind](path), recipe)
    table = read_csv(path, recipe.bad)
    recipe.see(table)
    if recipe.task == "graph" and recipe.smiles in table.columns and not nodes:
        recipe.require_ignored()
        return read_molecules(table, recipe)
    if recipe.smiles != Recipe.smiles and not recipe.trained:
        have = ", ".join(map(printable, table.columns))
        raise ValueError(f"--smiles: expected columns of {have}, got {recipe.smiles!r:.40}")
    if recipe.task == "hyperedge":
        return _read_hyperedges(table, recipe, nodes)
    return _read_edges(table, recipe, nodes, graphs)


def _require_used(kind: str, recipe: Recipe, nodes: str) -> None:
    """Raises a ValueError for an option that the reader of this kind of data does not use."""
    if kind == "graph6" and recipe.ignore:
        raise ValueError("--ignore: expected csv, HIF or arrays in DATA, got graph6")
    if kind in ("npz", "h5", "tensors") and recipe.bad.skip:
        raise ValueError(f"--skip-bad: expected csv, HIF or graph6 in DATA, got {kind}")
    if recipe.smiles == Recipe.smiles:
        return
    if kind != "csv":
        raise ValueError(f"--smiles: expected a csv of molecules in DATA, got {kind}")
    if recipe.task != "graph" or nodes:
        given = "--nodes" if nodes else f"--task {recipe.task}"
        raise ValueError(f"--smiles: expected --task graph and molecules in DATA, got {given}")


def format_of(path: str) -> str:
    """csv, npz, tensors, h5, hif or graph6."""
    names: list[str] = []
    with foreign_file(path, "zip archive") as file:
        with open(path, "rb") as content:
            start = content.read(64)
        if not start:
            raise ValueError(f"{file.at}it is empty")
        if start[:1] == b"\x80" and start[1:2] < b"\x06":
            raise ValueError(
                f"{file.at}a pickle, which is never read; torch.save writes a zip archive since "
                "version 1.6"
            )
        if start.startswith(b"PK"):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
    if start.startswith(b"PK"):
        return "npz" if any(name.endswith(".npy") for name in names) else "tensors"
    if start.startswith(b"\x89HDF"):
        return "h5"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and not path.endswith(".g6"):
        return "hif"
    if start.startswith(b">>graph6<<") or Path(path).suffix in (".g6", ".graph6"):
        return "graph6"
    return "csv"


class _Nodes:
    """Nodes and graphs of a csv file of edges, numbered graph by graph."""

    def __init__(
        self, edges: Table, ends: Sequence[Sequence[str]], recipe: Recipe, nodes: str, graphs: str
    ) -> None:
        own_graph = edges.columns.get(_GRAPH) if _GRAPH not in recipe.targets else None
        self.by_graph = own_graph is not None
        self.table = read_csv(nodes, recipe.bad) if nodes else None
        self.graph_table = read_csv(graphs, recipe.bad) if graphs else None
        recipe.see(self.table, self.graph_table)
        recipe.require_ignored()
        if self.table is not None:
            self.id_column = next(iter(self.table.columns))
            names = self.table.columns[self.id_column]
            graph = self.table.columns.get(_GRAPH) if _GRAPH not in recipe.targets else None
            if self.by_graph and graph is None:
                self.table.require(_GRAPH, "--nodes")
            of_graph = graph if graph is not None else [""] * len(names)
        else:
            self.id_column = "node"
            graph = own_graph
            seen = dict.fromkeys(
                (own_graph[row] if own_graph is not None else "", name)
                for row, own in enumerate(ends)
                for name in own
            )
            names = [name for _, name in seen]
            of_graph = [each for each, _ in seen]
        self.several = graph is not None
        self.graph_names = list(dict.fromkeys(of_graph))
        if self.graph_table is not None:
            if not self.several:
                raise ValueError(
                    f"--graphs: expected a column {_GRAPH!r} in the file of nodes or edges, got "
                    "none"
                )
            self.graph_names = self._listed_graphs(of_graph)
        place = {name: number for number, name in enumerate(self.graph_names)}
        numbers = [place[each] for each in of_graph]
        self.order = sorted(range(len(names)), key=lambda row: numbers[row])
        self.names = [names[row] for row in self.order]
        self.of_graph = [of_graph[row] for row in self.order]
        self.graph_of = torch.tensor([numbers[row] for row in self.order], dtype=torch.int64)
        self.number: dict[tuple[str, str], int] = {}
        for number, row in enumerate(self.order):
            key = (of_graph[row] if self.by_graph else "", names[row])
            if key in self.number:
                at = self.table.at(row) if self.table is not None else ""
                raise ValueError(
                    f"{at}the node {names[row]!r:.40} is listed twice"
                    + (f"; edges need a column {_GRAPH!r}" if self.several else "")
                )
            self.number[key] = number
        if self.table is not None:
            self.table = chosen_rows(self.table, self.order)

    def _listed_graphs(self, of_graph: Sequence[str]) -> list[str]:
        assert self.graph_table is not None
        listed = next(iter(self.graph_table.columns.values()))
        known: set[str] = set()
        for row, each in enumerate(listed):
            if each in known:
                raise ValueError(
                    f"{self.graph_table.at(row)}the graph {each!r:.40} is listed twice"
                )
            known.add(each)
        missing = next((each for each in of_graph if each not in known), None)
        if missing is not None:
            raise ValueError(
                f"--graphs: expected the graph {missing!r:.40} of a node in "
                f"{printable(self.graph_table.path)}"
            )
        return listed

    def numbers(self, edges: Table, row: int, names: Sequence[str]) -> tuple[int, ...]:
        graph = edges.columns[_GRAPH][row] if self.by_graph else ""
        found = []
        for name in names:
            if not name:
                raise edges.error(row, "expected the name of a node, got none")
            if (graph, name) not in self.number:
                raise edges.error(row, f"expected a node of the file of nodes, got {name!r:.40}")
            found.append(self.number[graph, name])
        return tuple(found)


def _read_edges(table: Table, recipe: Recipe, nodes: str, graphs: str) -> Loaded:
    names = list(table.columns)
    if len(names) < 2:
        raise ValueError(
            f"cannot read {printable(table.path)}: expected two columns of nodes, got "
            f"{len(names)}; a csv of molecules needs the column {recipe.smiles!r}"
        )
    if all(number_of(name) is not None for name in names[:2]):
        warnings.warn(
            f"{printable(table.path)}: first line taken as names of columns, {names[0]} and "
            f"{names[1]}; is it an edge?",
            ConversionWarning,
            stacklevel=2,
        )
    ends = list(zip(table.columns[names[0]], table.columns[names[1]]))
    known = _Nodes(table, ends, recipe, nodes, graphs)
    table, edges = _numbered(table, ends, known, recipe)
    return _loaded(table, names[:2], edges, known, recipe, hyper=False)


def _read_hyperedges(table: Table, recipe: Recipe, nodes: str) -> Loaded:
    name = next(iter(table.columns))
    ends = [cell.split() for cell in table.columns[name]]
    rows = [row for row, own in enumerate(ends) if _has_size(table, row, own, recipe)]
    table, ends = chosen_rows(table, rows), [ends[row] for row in rows]
    known = _Nodes(table, ends, recipe, nodes, "")
    table, edges = _numbered(table, ends, known, recipe)
    return _loaded(table, [name], edges, known, recipe, hyper=True)


def _numbered(
    table: Table, ends: Sequence[Sequence[str]], nodes: _Nodes, recipe: Recipe
) -> tuple[Table, list[tuple[int, ...]]]:
    """Rows whose nodes are known, and the numbers of their nodes."""
    rows, edges = [], []
    for row, own in enumerate(ends):
        try:
            edges.append(nodes.numbers(table, row, own))
            rows.append(row)
        except BadRow as error:
            recipe.bad.add(error)
    return (table if len(rows) == len(ends) else chosen_rows(table, rows)), edges


def _has_size(table: Table, row: int, nodes: Sequence[str], recipe: Recipe) -> bool:
    if len(set(nodes)) == len(nodes) and 2 <= len(nodes) <= MOST_NODES:
        return True
    wanted = f"a hyperedge of 2 to {MOST_NODES} different nodes"
    recipe.bad.add(table.error(row, f"expected {wanted}, got {' '.join(nodes)!r:.60}"))
    return False


def _loaded(
    table: Table,
    ends: list[str],
    edges: list[tuple[int, ...]],
    nodes: _Nodes,
    recipe: Recipe,
    hyper: bool,
) -> Loaded:
    kept = unique_edges(edges, table, nodes.names, recipe, [*ends, _GRAPH])
    table, edges = chosen_rows(table, kept), [edges[row] for row in kept]
    edge_features = recipe.features(table, "edge", [*ends, _GRAPH])
    node_features = recipe.features(nodes.table, "node", [nodes.id_column, _GRAPH])
    data = graph_of_edges(
        recipe,
        edges,
        edge_features,
        len(nodes.names),
        node_features,
        nodes.graph_of if nodes.several else None,
        len(nodes.graph_names) if nodes.several else 1,
        hyper,
        nodes.names,
    )
    prefix = [_GRAPH] if nodes.several else []
    before = lambda graph: [graph] if nodes.several else []
    if recipe.task == "graph":
        if not nodes.several:
            raise ValueError(
                f"--task: expected a column {_GRAPH!r} in the file of nodes or edges for a task on "
                f"graphs, or a column {recipe.smiles!r} of SMILES, got none; --smiles names another"
            )
        targets = recipe.read_targets(nodes.graph_table, "--graphs")
        return Loaded(data, targets, prefix, [[name] for name in nodes.graph_names])
    if recipe.task == "node":
        targets = recipe.read_targets(nodes.table, "--nodes")
        rows = [[*before(graph), name] for graph, name in zip(nodes.of_graph, nodes.names)]
        return Loaded(data, targets, [*prefix, nodes.id_column], rows)
    origin = edge_rows(data)
    targets = with_rows(recipe.read_targets(table, "DATA"), origin)
    rows = [
        [*before(nodes.of_graph[edges[row][0]]), *(table.columns[name][row] for name in ends)]
        for row in origin.tolist()
    ]
    return Loaded(data, targets, [*prefix, *ends], rows)


def _read_graph6(path: str, recipe: Recipe, graphs: str) -> Loaded:
    if recipe.task != "graph":
        raise ValueError(f"--task: expected graph for graph6, got {recipe.task}")
    batch = read_graphs(path)
    table = read_csv(graphs) if graphs else None
    if table is not None and len(table) != batch.graphs:
        raise ValueError(
            f"--graphs: expected a row for each of {batch.graphs} graphs in "
            f"{printable(table.path)}, got {len(table)}"
        )
    targets = recipe.read_targets(table, "--graphs")
    recipe.node_columns, recipe.edge_columns = [], []
    data = GraphData([batch], batch.node_offsets)
    return Loaded(data, targets, [_GRAPH], [[str(each)] for each in range(batch.graphs)])


def _attributes(path: str, records: Mapping[Any, dict[str, Any]], name: str) -> Table:
    """Attributes of nodes or hyperedges as columns of text. Only texts and numbers are kept."""
    columns: dict[str, list[str]] = {name: [str(each) for each in records]}
    if len(set(columns[name])) < len(records):
        raise ValueError(f"cannot read {printable(path)}: a number and a text name one {name}")
    for attribute in dict.fromkeys(key for own in records.values() for key in own):
        values = [own.get(attribute) for own in records.values()]
        if all(isinstance(each, (str, int, float, bool, type(None))) for each in values):
            columns[attribute] = [
                "" if each is None else str(int(each) if isinstance(each, bool) else each)
                for each in values
            ]
    return Table(path, columns)


def _read_hif(path: str, recipe: Recipe) -> Loaded:
    if recipe.task not in ("node", "hyperedge"):
        raise ValueError(f"--task: expected node or hyperedge for HIF, got {recipe.task}")
    records = read_records(path)
    if records.kind == "directed":
        raise ValueError(f"cannot read {printable(path)}: directed hypergraphs are not supported")
    node_table = _attributes(path, records.nodes, "node")
    table = _attributes(path, with_shared(records), "edge")
    recipe.see(node_table, table)
    recipe.seen += [*(name for own in records.incidences for name in own), *records.metadata]
    recipe.seen += [*records.others, "direction", "network-type"]
    recipe.require_ignored()
    taken = {"node": [*node_table.columns], "edge": [*table.columns], "graph": []}
    account_for_records(path, records, taken, recipe.ignore, "--ignore {}")
    members: dict[str, list[str]] = {}
    for node, edge in records.pairs:
        members.setdefault(str(edge), []).append(str(node))
    number = {name: place for place, name in enumerate(node_table.columns["node"])}
    edges: list[tuple[int, ...]] = []
    rows: list[int] = []
    for row, name in enumerate(table.columns["edge"]):
        distinct = list(dict.fromkeys(members[name]))
        if _has_size(table, row, distinct, recipe):
            edges.append(tuple(number[node] for node in distinct))
            rows.append(row)
    table = chosen_rows(table, rows)
    kept = unique_edges(edges, table, list(number), recipe, ["edge"])
    table, edges = chosen_rows(table, kept), [edges[row] for row in kept]
    data = graph_of_edges(
        recipe,
        edges,
        recipe.features(table, "edge", ["edge"]),
        len(number),
        recipe.features(node_table, "node", ["node"]),
        None,
        1,
        hyper=True,
        names=list(number),
    )
    if recipe.task == "node":
        targets = recipe.read_targets(node_table, "DATA")
        return Loaded(data, targets, ["node"], [[name] for name in number])
    origin: Tensor = edge_rows(data)
    targets = with_rows(recipe.read_targets(table, "DATA"), origin)
    names = table.columns["edge"]
    return Loaded(data, targets, ["edge"], [[names[row]] for row in origin.tolist()])
