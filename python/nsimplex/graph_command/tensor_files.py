"""Files of torch.save: tensors by name, and graphs of PyTorch Geometric, which need not be
installed."""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._arguments import describe
from .._foreign_files import ForeignFile, foreign_file
from .._hints import is_dense
from .._printable import printable
from ..graph import ConversionWarning
from ..graph.conversion_checks import WEIGHTS

#: Attributes of nodes, from which their number follows if nothing else says it.
_OF_NODES = ("x", "node_features", "pos", "z", "train_mask")
_FEATURES = (("x", "node_features"), ("edge_attr", "edge_features"))  # of nodes, of edges


class _Stored:
    """An object of PyTorch Geometric as the file has it: its attributes, and no code."""

    def __init__(self, *bases: Any) -> None:
        pass


class _Heterogeneous(_Stored):
    pass


class _Hypergraph(_Stored):
    pass


class _BatchMaker:
    """A ``Batch`` is stored as a call of an object that makes its class."""

    def __new__(cls) -> Any:
        return _Stored


_DATA = "torch_geometric.data."
_STORED: list[Any] = [
    *(
        (_Stored, _DATA + name)
        for name in (
            "data.Data",
            "data.DataEdgeAttr",
            "data.DataTensorAttr",
            "feature_store.TensorAttr",
            "graph_store.EdgeAttr",
            "batch.Batch",
            "batch.DataBatch",
            "storage.BaseStorage",
            "storage.NodeStorage",
            "storage.EdgeStorage",
            "storage.GlobalStorage",
        )
    ),
    (_Heterogeneous, _DATA + "hetero_data.HeteroData"),
    (_Hypergraph, _DATA + "hypergraph_data.HyperGraphData"),
    (_BatchMaker, _DATA + "batch.DynamicInheritanceGetter"),
    *(dict, list, defaultdict),
]


def read_tensors(path: str, targets: Sequence[str] = (), task: str = "") -> dict[str, Any]:
    """What torch.save wrote: a dict of tensors, a ``Data`` or ``Batch`` of PyTorch Geometric, a
    list of ``Data`` or dicts, or the file of an InMemoryDataset. Nothing in the file is run, and
    PyTorch Geometric is not needed.

    Raises:
        ValueError: "cannot read PATH: WHY".
    """
    at = f"cannot read {printable(path)}: "
    with foreign_file(path, "file of torch.save") as file:
        with zipfile.ZipFile(path) as archive:
            file.require_bytes(sum(each.file_size for each in archive.infolist()))
        found = _loaded(path, at)
        return _content(file, found, targets if task == "graph" else ())


def _loaded(path: str, at: str) -> Any:
    """The objects of a file, none of whose code runs."""
    try:
        with torch.serialization.safe_globals(_STORED):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        known = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
        reason = f"an object of {known[1]}" if known else "objects of other kinds"
        raise ValueError(
            f"{at}expected tensors by name, or graphs of PyTorch Geometric, got "
            f"{printable(reason)[:200]}"
        ) from None


def _content(file: ForeignFile, found: Any, targets_of_graphs: Sequence[str]) -> dict[str, Any]:
    """The attributes of the graphs of a file."""
    at = file.at
    _require_dense(file, found)
    if isinstance(found, (list, tuple)):
        return _joined(file, _graphs_of(at, found), targets_of_graphs)
    own = _attributes(at, found)
    if own is None:
        raise ValueError(
            f"{at}expected tensors by name, or graphs of PyTorch Geometric, got "
            f"{type(found).__name__}"
        )
    return own


def _require_dense(file: ForeignFile, found: Any) -> None:
    """Refuses tensors without an entry per place, and those with too many: a few bytes can be
    expanded to any shape."""
    total, seen, rest = 0, set[int](), [found]
    while rest:
        each = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Tensor):
            if each.is_meta or not is_dense(each):
                got = "one on device meta" if each.is_meta else describe(each)
                raise ValueError(f"{file.at}expected dense tensors, got {got}")
            total += each.numel() * each.element_size()
        elif isinstance(each, Mapping):
            rest += each.values()
        elif isinstance(each, (list, tuple)):
            rest += each
        elif isinstance(each, _Stored):
            rest += vars(each).values()
    file.require_bytes(total)


def _attributes(at: str, found: Any) -> dict[str, Any] | None:
    """The attributes of a graph; None for anything else."""
    if isinstance(found, Mapping):
        return {str(name): own for name, own in found.items()}
    kind = type(found).__name__
    if isinstance(found, _Heterogeneous) or kind == "HeteroData":
        raise ValueError(f"{at}heterogeneous graphs are not supported")
    if isinstance(found, _Hypergraph) or "HyperGraph" in kind:
        raise ValueError(f"{at}hypergraphs are read from csv or HIF; graph.write_hif writes one")
    if not isinstance(found, _Stored) and kind != "Data":
        return None
    fields = vars(found)
    store = fields.get("_store", fields)  # before version 2 there was no store
    own = dict(store if isinstance(store, dict) else vars(store).get("_mapping", {}))
    count = fields.get("_num_graphs", own.pop("_num_graphs", None))
    if count is not None:
        own["num_graphs"] = count
    own = {str(name): each for name, each in own.items() if each is not None}
    if "edge_index" not in own and "adj_t" in own:
        raise ValueError(f"{at}expected edge_index, got adj_t alone")
    if "edge_index" not in own and _node_count(own):
        own["edge_index"] = torch.empty(2, 0, dtype=torch.int64)
    return own


def _graphs_of(at: str, found: Sequence[Any]) -> list[dict[str, Any]]:
    """The graphs of a list, or of an InMemoryDataset: all in one, and where each begins."""
    first = _attributes(at, found[0]) if len(found) else None
    if first is None:
        kind = type(found[0]).__name__ if len(found) else "none"
        raise ValueError(f"{at}expected a list of graphs of PyTorch Geometric, got {kind}")
    slices = found[1] if isinstance(found, tuple) and len(found) in (2, 3) else None
    if isinstance(found, tuple) and len(found) in (2, 3) and slices is None:
        return [first]
    if isinstance(slices, dict) and "edge_index" in slices and "edge_index" in first:
        starts = {str(name): torch.as_tensor(own).tolist() for name, own in slices.items()}
        graphs = len(starts["edge_index"]) - 1
        lists = first.pop("_num_nodes", None) or first.get("num_nodes")
        if isinstance(lists, list):
            first["num_nodes"], starts["num_nodes"] = lists, list(range(graphs + 1))
        made = []
        for graph in range(graphs):
            cut: dict[str, Any] = {}
            for name, each in first.items():
                if name in starts:
                    part = slice(*starts[name][graph : graph + 2])
                    cut[name] = each[:, part] if name == "edge_index" else each[part]
            if "num_nodes" in cut:
                cut["num_nodes"] = int(torch.as_tensor(cut["num_nodes"]).sum())
            made.append(cut)
        return made
    listed = [_attributes(at, each) for each in found]
    for place, own in enumerate(listed):
        if own is None or "edge_index" not in own or "batch" in own:
            got = "a batch" if own is not None and "batch" in own else "none"
            raise ValueError(f"{at}graph {place}: expected a graph with edge_index, got {got}")
    return [own for own in listed if own is not None]


def _node_count(own: Mapping[str, Any]) -> int:
    if own.get("num_nodes") is not None:
        return int(own["num_nodes"])
    known = next((own[name] for name in _OF_NODES if own.get(name) is not None), None)
    if known is not None:
        return len(known)
    index = own.get("edge_index")
    return int(index.max()) + 1 if index is not None and index.numel() else 0


def _joined(
    file: ForeignFile, graphs: Sequence[dict[str, Any]], targets_of_graphs: Sequence[str]
) -> dict[str, Any]:
    """All graphs as the arrays of one batch. An attribute that cannot be joined is left out, unless
    it has features or targets."""
    at = file.at
    counts = [_node_count(own) for own in graphs]
    file.require_nodes(sum(counts))
    for place, (own, count) in enumerate(zip(graphs, counts)):
        index = own["edge_index"]
        if not isinstance(index, Tensor) or index.dtype != torch.int64 or index.shape[:-1] != (2,):
            raise ValueError(f"{at}graph {place}: expected edge_index int64 [2, E]")
        if index.numel() and not (index.min() >= 0 and index.max() < count):
            bad = index[(index < 0) | (index >= count)][0]
            raise ValueError(
                f"{at}graph {place}: expected nodes 0 to {count - 1} in edge_index, got {bad}"
            )
    nodes = torch.tensor(counts)
    starts = nodes.cumsum(0) - nodes
    found: dict[str, Any] = {
        "edge_index": torch.cat([own["edge_index"] + n for own, n in zip(graphs, starts)], 1),
        "batch": torch.repeat_interleave(torch.arange(len(graphs)), nodes),
        "num_nodes": int(nodes.sum()),
        "num_graphs": len(graphs),
    }
    features = {*WEIGHTS, *(name for names in _FEATURES for name in names)}
    apart = []
    for name in dict.fromkeys(key for own in graphs for key in own):
        if name in found or name == "ptr":
            continue
        rows: list[Any] = [own.get(name) for own in graphs]
        used = name in features or name in targets_of_graphs
        try:
            found[name] = _rows(name, rows, graphs, name in targets_of_graphs)
        except ValueError as error:
            if used:
                raise ValueError(f"{at}{error}") from None
            apart.append(repr(name)[:60])
    if apart:
        warnings.warn(
            f"{at.removeprefix('cannot read ')}left out {', '.join(apart[:8])}, whose rows cannot "
            "be joined",
            ConversionWarning,
            stacklevel=2,
        )
    return found


def _rows(
    name: str, rows: list[Any], graphs: Sequence[dict[str, Any]], of_graphs: bool
) -> Tensor | list[str]:
    """The rows of all graphs, one after the other.

    Raises:
        ValueError: what differs from the first graph that has them.
    """
    if all(isinstance(each, str) for each in rows):
        return rows
    made, first = [], None
    for place, (row, own) in enumerate(zip(rows, graphs)):
        if row is None:
            empty = name in _FEATURES[1] and own["edge_index"].size(1) == 0
            if empty or (name in _FEATURES[0] and _node_count(own) == 0):
                continue
            raise ValueError(f"graph {place}: expected {name}, which other graphs have, got none")
        try:
            each = torch.as_tensor(row)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(f"graph {place}: expected numbers in {name}") from None
        if each.dim() == 0 or (of_graphs and each.dim() == 1 and len(each) != 1):
            each = each[None]
        first = each if first is None else first
        if each.shape[1:] != first.shape[1:]:
            raise ValueError(
                f"graph {place}: expected {name} of shape {['rows', *first.shape[1:]]}, as in "
                f"other graphs, got {list(each.shape)}".replace("'", "")
            )
        made.append(each)
    return torch.cat(made)
