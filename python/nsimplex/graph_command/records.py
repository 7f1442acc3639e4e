"""What the readers of data sets share: edges as rows of nodes, and the result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from typing import Any, Literal, Protocol, cast, get_type_hints

import torch
from torch import Tensor

from .._choices import Directions, Level
from .._hints import misfit
from .._printable import printable
from ..graph import ConversionWarning, GraphData, from_edge_index
from ..graph.hyperedges import from_hyperedge_index
from ..graph_files import ReadingWarning
from .tables import (
    BadRows,
    Column,
    Table,
    Targets,
    describe_columns,
    features_of,
    targets_of,
)

#: Largest size of a hyperedge that a model takes.
MOST_NODES = 5
Structure = Literal["all", "positive"]


@dataclass
class Recipe:
    """How a data set is read: as the user said, and what the reader found the first time. The
    model's file keeps it, so that new data become the same columns."""

    task: str
    targets: list[str]
    kind: str = "auto"
    smiles: str = "smiles"
    ignore: list[str] = field(default_factory=list)
    directed: bool = False
    classes: list[str] = field(default_factory=list)
    node_columns: list[Column] | None = None  #: None: not found yet
    edge_columns: list[Column] | None = None
    node_codes: list[int] = field(default_factory=list)
    edge_codes: list[int] = field(default_factory=list)
    structure: Structure = "all"  #: the rows of edges or hyperedges that are the graph
    elements: list[int] = field(default_factory=list)  #: atomic numbers of molecules
    several_parts: bool = False  #: whether some molecule has parts without a bond between them
    trained: bool = False
    bad: BadRows = field(default_factory=BadRows)  #: rows that cannot be read; not in the file
    seen: list[str] = field(default_factory=list)  #: columns of all tables; not in the file

    @property
    def metric_columns(self) -> list[str]:
        """The names of targets in metrics: several columns of numbers have separate ones."""
        return self.targets if self.kind == "number" and len(self.targets) > 1 else []

    def to_json(self) -> dict[str, Any]:
        """The fields that the model's file keeps."""
        fields = {own.name: getattr(self, own.name) for own in dataclass_fields(self)}
        del fields["bad"], fields["seen"]
        return fields | {"trained": True}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Recipe:
        """The recipe of a model's file.

        Raises:
            TypeError, ValueError: fields of other names or types.
        """
        names = cls("", []).to_json().keys()
        if not isinstance(fields, dict) or fields.keys() != names or not fields["trained"]:
            raise TypeError("fields that are no part of a file, or missing ones")
        made = cls(**fields)
        if not made.targets:
            raise ValueError("no target")
        for name, hint in get_type_hints(cls).items():
            value = getattr(made, name)
            if name.endswith("_columns") and isinstance(value, list):
                value = [Column(*each) for each in value]
                setattr(made, name, value)
            if name != "bad" and misfit(hint, value) is not None:
                raise TypeError(f"{name} of another type")
        return made

    def see(self, *tables: Table | None) -> None:
        """Keeps the names of the columns, to tell which of ``ignore`` there are."""
        self.seen += [name for table in tables if table is not None for name in table.columns]

    def require_ignored(self) -> None:
        """Raises a ValueError if ``ignore`` names a column that no table has."""
        for name in self.ignore:
            if not self.trained and name not in self.seen:
                have = ", ".join(map(printable, dict.fromkeys(self.seen)))
                raise ValueError(f"--ignore: expected columns of {have}, got {name!r:.40}")

    def features(self, table: Table | None, of: str, others: Sequence[str]) -> Tensor | None:
        """Features of the rows of a table. ``others``: columns that are not features."""
        known: list[Column] | None = getattr(self, f"{of}_columns")
        if known is None:
            names = [
                each
                for each in (table.columns if table is not None else ())
                if each not in others and each not in self.targets and each not in self.ignore
            ]
            known = describe_columns(table, names) if table is not None else []
            setattr(self, f"{of}_columns", known)
        if table is None:
            if known:
                raise ValueError(
                    f"DATA: expected features of {of}s {', '.join(c.name for c in known)}, as in "
                    "the training, got none"
                )
            return None
        return features_of(table, known)

    def read_targets(self, table: Table | None, option: str) -> Targets | None:
        """Targets of the rows of a table; None if a model that is trained meets a table without
        them."""
        if table is None or any(name not in table.columns for name in self.targets):
            if self.trained:
                return None
            if table is None:
                raise ValueError(
                    f"{option}: expected a file with the column {self.targets[0]!r}, got none"
                )
        assert table is not None
        found = targets_of(table, self.targets, self.kind, self.classes, self.bad)
        if not self.trained:
            self.kind, self.classes = found.kind, found.classes
            if not found.known.any():
                raise ValueError(f"--target: no row has a target in column {self.targets[0]!r}")
        return found


@dataclass
class Loaded:
    """A data set: graphs with targets, and the names of the rows that have predictions."""

    data: GraphData  #: without targets
    targets: Targets | None
    header: list[str]  #: names of the columns of ``rows``
    rows: list[list[str]]
    masks: dict[str, Tensor] | None = None  #: bool, the parts of a split that the data names
    unused_masks: Sequence[str] = ()  #: names of arrays that are masks, but no such parts


class Warned(Protocol):
    """What gets warnings."""

    def warning(self, text: str) -> None: ...


@contextmanager
def warnings_to(channel: Warned) -> Iterator[None]:
    """Warnings of this package become those of the command; other packages' are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        text = str(each.message)
        if text.startswith("["):
            channel.warning(text.partition("] ")[2])
        elif issubclass(each.category, (ConversionWarning, ReadingWarning)):
            channel.warning(text)


def unique_edges(
    edges: list[tuple[int, ...]],
    table: Table,
    names: list[str],
    recipe: Recipe,
    ends: Sequence[str],
) -> list[int]:
    """The rows of edges that are not repeated; of repeated ones the first, or the first with a
    target.

    Raises:
        ValueError: repeated edges whose features or targets differ.
    """
    targets = recipe.targets if recipe.task in ("edge", "hyperedge") else []
    apart = {*ends, *targets, *recipe.ignore}
    others = [cells for name, cells in table.columns.items() if name not in apart]
    own = [table.columns[name] for name in targets if name in table.columns]
    first: dict[tuple[int, ...], int] = {}
    for row, edge in enumerate(edges):
        key = edge if recipe.directed else tuple(sorted(edge))
        if key not in first:
            first[key] = row
            continue
        before = first[key]
        for cells in others:
            if cells[row] != cells[before]:
                _conflict(table, row, before, edge, names, "features")
        for cells in own:
            if cells[row] and cells[before] and cells[row] != cells[before]:
                _conflict(table, row, before, edge, names, "targets")
        if own and own[0][row] and not own[0][before]:
            first[key] = row
    return sorted(first.values())


def _conflict(
    table: Table, row: int, before: int, edge: tuple[int, ...], names: list[str], what: str
) -> None:
    nodes = ", ".join(names[node] for node in edge)
    earlier = f"line {table.lines[before]}" if table.lines else f"row {before}"
    raise ValueError(
        f"{table.at(row)}expected the {what} of {earlier}, where the edge ({nodes}) is listed, too"
    )


def chosen_rows(table: Table, rows: Sequence[int]) -> Table:
    return Table(
        table.path,
        {name: [cells[row] for row in rows] for name, cells in table.columns.items()},
        [table.lines[row] for row in rows] if table.lines else [],
    )


def graph_of_edges(
    recipe: Recipe,
    edges: list[tuple[int, ...]],
    features: Tensor | None,
    nodes: int,
    node_features: Tensor | None,
    graph_of: Tensor | None,
    graphs: int,
    hyper: bool,
    names: Sequence[str],
) -> GraphData:
    """Edges, each once, as a record. Nodes are in the order of their graphs, and so are their
    names."""
    options: dict[str, Any] = dict(
        edge_features=features, batch=graph_of, node_features=node_features, num_graphs=graphs
    )
    if hyper:
        index = torch.tensor(
            [[n for edge in edges for n in edge], [i for i, e in enumerate(edges) for _ in e]],
            dtype=torch.int64,
        )
        return replace(
            from_hyperedge_index(index.view(2, -1), nodes, **options), names=tuple(names)
        )
    index = torch.tensor(edges, dtype=torch.int64).view(-1, 2).t().contiguous()
    directions: Directions = "given" if recipe.directed else "undirected"
    made = from_edge_index(index, nodes, directions=directions, **options)
    return replace(made, names=tuple(names))


def edge_rows(data: GraphData) -> Tensor:
    """The row of the source for every edge of a record, size by size."""
    return torch.cat([torch.empty(0, dtype=torch.int64), *data.origin])


def with_rows(targets: Targets | None, rows: Tensor) -> Targets | None:
    if targets is None:
        return None
    return targets._replace(values=targets.values[rows], known=targets.known[rows])


def with_targets(loaded: Loaded, task: str) -> GraphData:
    """The record with its targets. Unknown classes are those of the first known row."""
    targets = loaded.targets
    assert targets is not None
    values = targets.values
    if not values.is_floating_point() and targets.known.any():
        values = torch.where(targets.known, values, values[targets.known][0])
    level = cast(Level, {"hyperedge": "edge"}.get(task, task))
    return replace(loaded.data, targets=values, level=level)
