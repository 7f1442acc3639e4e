"""Graphs of arrays: npz, h5, and tensors that torch saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._foreign_files import ForeignFile, foreign_file
from .._printable import printable
from ..graph import GraphData, from_edge_index
from ..graph.conversion_checks import WEIGHTS, warn_of_rest
from ..graph.molecule_files import MOLECULE_ARRAYS
from .molecule_rows import molecule_codes
from .records import Loaded, Recipe, edge_rows, with_rows
from .tables import Column, Table

#: Names of an array, by what it holds; the second is PyTorch Geometric's.
_NAMES = {
    "node_features": ("node_features", "x"),
    "edge_features": ("edge_features", "edge_attr"),
    "batch": ("batch",),
    "num_nodes": ("num_nodes",),
    "num_graphs": ("num_graphs",),
}
_MASKS = {"training": "train_mask", "validation": "val_mask", "test": "test_mask"}
_MOST_CODES = 10_000  # values of a column of whole numbers that are codes


def read_hdf5(path: str) -> dict[str, Any]:
    """The arrays at the top of an h5 file, with h5py. What is in other files is never read: links,
    external storage and virtual datasets are refused.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    try:
        import h5py
    except ImportError:
        raise ValueError(f"cannot read {printable(path)}: it needs the package h5py") from None
    with foreign_file(path, "h5 file") as file, h5py.File(path, "r") as content:
        own: dict[str, Any] = {}
        total = 0
        for name in map(str, content):
            if not isinstance(content.get(name, getlink=True), h5py.HardLink):
                where = f"{file.at}array {printable(name)[:60]}"
                raise ValueError(f"{where}: expected data of this file, got a link")
            dataset = content[name]
            if isinstance(dataset, h5py.Dataset):
                total += file.array_bytes(name, dataset)
                own[name] = dataset
        file.require_bytes(total)
        return {
            name: np.asarray(each.asstr() if each.dtype.kind in "OS" else each)
            for name, each in own.items()
        }


def _tensor(at: str, name: str, value: Any) -> Tensor:
    try:
        made = value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError):
        raise ValueError(f"{at}array {name}: expected numbers") from None
    if made.is_floating_point():
        return made.float()
    if made.is_complex():
        raise ValueError(f"{at}array {name}: expected real numbers, got {made.dtype}")
    return made.long()


def read_arrays(path: str, arrays: dict[str, Any], recipe: Recipe) -> Loaded:
    """Graphs of arrays: ``edge_index`` [2, E] with ``node_features``, ``edge_features``, ``batch``
    and targets by name; or those that :mod:`nsimplex.molecules` writes.

    Raises:
        ValueError: "cannot read PATH: WHY".
    """
    with foreign_file(path, "set of arrays") as file:
        return _read_arrays(file, path, arrays, recipe)


def _read_arrays(file: ForeignFile, path: str, arrays: dict[str, Any], recipe: Recipe) -> Loaded:
    at = file.at
    try:
        if all(name in arrays for name in MOLECULE_ARRAYS):
            recipe.require_ignored()
            data = molecule_codes(path, arrays, recipe)
        else:
            _name_the_rest(path, arrays, recipe)
            data = _indexed(file, arrays, recipe)
    except (TypeError, ValueError) as error:
        if str(error).startswith(("cannot read", "--")):
            raise
        _, known, said = str(error).partition("] ")
        said = said if known else str(error)
        said = said.replace("duplicates says what to do", "--directed keeps both directions apart")
        raise ValueError(at + said) from None
    if recipe.task == "hyperedge":
        raise ValueError("--task: expected graph, node or edge for arrays, got hyperedge")
    count = {"graph": data.num_graphs, "node": data.num_nodes}.get(recipe.task)
    columns: dict[str, list[str]] = {}
    whole = set[str]()
    if all(name in arrays for name in recipe.targets):
        for name in recipe.targets:
            value = np.asarray(arrays[name])
            own = (
                value.reshape(len(value), math.prod(value.shape[1:]))
                if value.ndim
                else value[None, None]
            )
            wanted = count if count is not None else np.asarray(arrays["edge_index"]).shape[1]
            if len(own) != wanted:
                raise ValueError(
                    f"{at}array {name}: expected a row per {recipe.task}, {wanted}, got {len(own)}"
                )
            for place in range(own.shape[1]):
                title = name if own.shape[1] == 1 else f"{name}[{place}]"
                columns[title] = [_text(each) for each in own[:, place].tolist()]
                if own.dtype.kind in "iu":
                    whole.add(title)
        recipe = _expanded(recipe, list(columns))
    elif not recipe.trained:
        missing = next(name for name in recipe.targets if name not in arrays)
        have = ", ".join(map(printable, arrays)) or "none"
        raise ValueError(
            f"--target: expected an array {missing!r} in {printable(path)}, got {have}"
        )
    targets = recipe.read_targets(Table(path, columns, whole=whole), "DATA")
    if recipe.task == "edge":
        origin = edge_rows(data)
        ends = np.asarray(arrays["edge_index"]).T.tolist()
        rows = [[str(each) for each in ends[row]] for row in origin.tolist()]
        return Loaded(data, with_rows(targets, origin), ["source", "target"], rows)
    assert count is not None
    rows = [[str(each)] for each in range(count)]
    masks = _masks(at, arrays, recipe, data)
    split = masks if {"training", "validation"} <= masks.keys() else None
    used = {_MASKS[part] for part in split or ()}
    unused = [name for name in _MASKS.values() if name in arrays and name not in used]
    return Loaded(data, targets, [recipe.task], rows, split, unused)


def _masks(
    at: str, arrays: Mapping[str, Any], recipe: Recipe, data: GraphData
) -> dict[str, Tensor]:
    """The parts of a split of the nodes of one graph, as PyTorch Geometric names them. Flags may be
    numbers, as in files of programs without a type for them."""
    if recipe.task != "node" or data.num_graphs != 1:
        return {}
    found = {}
    for part, name in _MASKS.items():
        value = np.asarray(arrays.get(name, False))
        if value.dtype.kind in "biuf" and value.ndim == 1 and np.isin(value, (0, 1)).all():
            own = torch.as_tensor(value.astype(np.bool_))
            if len(own) != data.num_nodes:
                raise ValueError(
                    f"{at}array {name}: expected a row per node, {data.num_nodes}, got {len(own)}"
                )
            found[part] = own
    return found


def _expanded(recipe: Recipe, names: list[str]) -> Recipe:
    """Columns of a target with several are targets by themselves."""
    recipe.targets = names
    return recipe


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and math.isfinite(value):
        return str(int(value))
    return str(int(value) if isinstance(value, bool) else value)


def _name_the_rest(path: str, arrays: Mapping[str, Any], recipe: Recipe) -> None:
    """Names the arrays that nothing takes. Weights of edges are features, as all columns of csv."""
    known = {"edge_index", "ptr", *recipe.targets}
    known.update(_MASKS.values() if recipe.task == "node" else ())
    for names in _NAMES.values():
        known.update([name for name in names if name in arrays][:1])
    rest = [name for name in arrays if name not in known and name not in WEIGHTS]
    recipe.seen += [*rest, *(name for name in WEIGHTS if name in arrays)]
    recipe.require_ignored()
    warn_of_rest(f"{printable(path)}: ", {"": rest}, recipe.ignore, "--ignore {}")


def _weights(at: str, arrays: Mapping[str, Any], recipe: Recipe, own: Tensor | None) -> Any:
    """Features of edges, and behind them the weights that the arrays have."""
    parts = [] if own is None else [own]
    for name in WEIGHTS:
        if arrays.get(name) is None or name in (*recipe.ignore, *recipe.targets):
            continue
        weight = _rows(at, name, arrays[name]).float()
        if own is not None and (not own.is_floating_point() or len(own) != len(weight)):
            raise ValueError(
                f"{at}array {name}: expected as many rows of numbers in the other features of "
                f"edges, got {own.dtype} {list(own.shape)}; --ignore {name} leaves it out"
            )
        parts.append(weight)
    return torch.cat(parts, 1) if parts else None


def _rows(at: str, name: str, value: Any) -> Tensor:
    """Features [rows, d]."""
    made = _tensor(at, name, value)
    if made.dim() not in (1, 2):
        raise ValueError(
            f"{at}array {name}: expected rows of numbers, got shape {list(made.shape)}"
        )
    return made[:, None] if made.dim() == 1 else made


def _whole(at: str, name: str, value: Any) -> int:
    made = _tensor(at, name, value)
    if made.numel() != 1 or (made.is_floating_point() and float(made) % 1 != 0):
        raise ValueError(f"{at}array {name}: expected a whole number, got {made.tolist()!r:.40}")
    return int(made)


def _indexed(file: ForeignFile, arrays: dict[str, Any], recipe: Recipe) -> GraphData:
    at = file.at
    if "edge_index" not in arrays:
        have = ", ".join(map(printable, arrays)) or "none"
        raise ValueError(f"{at}expected an array edge_index [2, E], got {have}")
    found: dict[str, Any] = {}
    for name, names in _NAMES.items():
        known = next((each for each in names if arrays.get(each) is not None), None)
        read = _READERS.get(name, _tensor)
        found[name] = None if known is None else read(at, known, arrays[known])
    found["edge_features"] = _weights(at, arrays, recipe, found["edge_features"])
    for of in ("node", "edge"):
        own = found[f"{of}_features"]
        width = len(getattr(recipe, f"{of}_columns") or ())
        if own is None and of == "edge" and width and not len(arrays["edge_index"][0]):
            found["edge_features"] = torch.empty(0, width)  # a graph without edges
        if own is not None:
            found[f"{of}_features"] = _codes_or_numbers(own, recipe, of)
        _check_columns(at, found[f"{of}_features"], recipe, of)
    for name in ("num_nodes", "num_graphs"):
        file.require_nodes(found[name] or 0)
    index = _tensor(at, "edge_index", arrays["edge_index"])
    if index.numel() and not index.is_floating_point():
        file.require_nodes(int(index.max()))
    return from_edge_index(
        index,
        directions="given" if recipe.directed else "undirected",
        **found,
    )


_READERS: dict[str, Any] = {
    "node_features": _rows,
    "edge_features": _rows,
    "num_nodes": _whole,
    "num_graphs": _whole,
}


def _codes_or_numbers(own: Tensor, recipe: Recipe, of: str) -> Tensor:
    """Small whole numbers from 0 on are codes, all others numbers."""
    if own.is_floating_point() or own.dim() != 2:
        return own
    codes: list[int] = getattr(recipe, f"{of}_codes")
    columns = getattr(recipe, f"{of}_columns")
    if columns is None and own.numel() and own.min() >= 0 and own.max() < _MOST_CODES:
        codes = (own.amax(0) + 1).tolist()
        setattr(recipe, f"{of}_codes", codes)
    return own if codes else own.float()


def _check_columns(at: str, own: Tensor | None, recipe: Recipe, of: str) -> None:
    width = 0 if own is None or own.is_floating_point() is False else own.size(-1)
    columns: list[Column] | None = getattr(recipe, f"{of}_columns")
    if columns is None:
        setattr(recipe, f"{of}_columns", [Column(str(place), None) for place in range(width)])
    elif len(columns) != width:
        raise ValueError(
            f"{at}expected {len(columns)} columns of features of {of}s, as in the training, got "
            f"{width}"
        )
