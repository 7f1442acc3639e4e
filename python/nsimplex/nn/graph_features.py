"""How features of graphs enter a model, and the options that data imply."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import describe
from .._choices import GraphTarget
from ..graph import GraphData

_MOST_CODES = 10_000  # values of a column of codes that a model for data makes room for


class FeatureEmbedding(nn.Module):
    """Numbers through a linear map, or codes through a table with rows per column."""

    starts: Tensor  #: the first row of every column in the table

    def __init__(self, channels: int, codes: Sequence[int], width: int) -> None:
        super().__init__()
        self.codes = tuple(codes)
        self.linear = nn.Linear(channels, width) if channels else None
        self.table = nn.Embedding(sum(codes), width) if codes else None
        if self.table is not None:
            nn.init.normal_(self.table.weight, std=1 / max(len(codes), 1) ** 0.5)
        self.constant = nn.Parameter(torch.randn(width)) if not channels and not codes else None
        self.register_buffer("starts", self._starts(), persistent=False)
        self.register_load_state_dict_post_hook(_start_again)

    def _starts(self) -> Tensor:
        starts = torch.tensor([0, *self.codes]).cumsum(0)[:-1] if self.codes else torch.empty(0)
        return starts.to(torch.int64)

    def forward(self, x: Tensor) -> Tensor:
        if self.linear is not None:
            return self.linear(x)
        if self.table is not None:
            return self.table(x + self.starts).sum(1)
        assert self.constant is not None
        return self.constant.expand(x.size(0), -1)

    def through(self, after: nn.Linear, x: Tensor) -> Tensor:
        """``after(self(x))`` [rows, width] without a product of width by width for every row: the
        weights are multiplied first. One row for all if there are no features."""
        if self.constant is not None:
            return after(self.constant)[None]
        if self.table is not None:
            moved = F.linear(self.table.weight, after.weight)
            return F.embedding(x + self.starts, moved).sum(1) + after.bias
        assert self.linear is not None
        if self.linear.in_features >= after.in_features:
            return after(self.linear(x))
        weight = after.weight @ self.linear.weight
        return F.linear(x, weight, after.weight @ self.linear.bias + after.bias)

    def none(self) -> Tensor:
        """The features of no rows: [0, columns]."""
        columns = len(self.codes) or (self.linear.in_features if self.linear is not None else 0)
        return torch.empty(0, columns, dtype=torch.int64 if self.codes else torch.float32)

    def check(self, at: str, name: str, x: Tensor | None, rows: int) -> Tensor:
        """The features; no columns if neither the model nor the data has any."""
        columns = len(self.codes) or (self.linear.in_features if self.linear is not None else 0)
        if not columns:
            if x is not None and x.size(1):
                of = name.removesuffix("_features")
                takes = f"{of}_channels" if x.is_floating_point() else f"{of}_codes"
                raise ValueError(
                    f"{at}{name}: expected none, because the model has no {takes}, got {x.dtype} "
                    f"{list(x.shape)}"
                )
            return torch.empty(rows, 0)
        dtype = "int64 codes" if self.codes else "floating numbers"
        if x is None or x.size(1) != columns or x.is_floating_point() == bool(self.codes):
            got = "none" if x is None else f"{x.dtype} {list(x.shape)}"
            raise ValueError(f"{at}{name}: expected {dtype} [{rows}, {columns}], got {got}")
        if self.codes and len(x):
            low, high = x.amin(0), x.amax(0)
            bad = ((low < 0) | (high >= torch.tensor(self.codes))).nonzero()
            if len(bad):
                column = int(bad[0, 0])
                raise ValueError(
                    f"{at}{name}: expected codes 0 to {self.codes[column] - 1} in column {column}, "
                    f"got {int(low[column])} to {int(high[column])}"
                )
        return x


def _start_again(embedding: FeatureEmbedding, keys: object) -> None:
    """Computes the starts of columns again once weights are loaded: they are in no state dict, and
    a model that was made on the device meta has none yet."""
    embedding.starts = embedding._starts().to(next(embedding.parameters()).device)


def implied_options(
    at: str, data: GraphData, task: str, target: GraphTarget | None, known: Collection[str]
) -> dict[str, Any]:
    """The options that the features, targets and edges of data imply, as far as ``known`` has
    them. Features that a model has no option for are left to its own check.

    Raises:
        ValueError: no targets of the task, several columns of classes, codes below 0 or too many.
    """
    found: dict[str, Any] = {}
    edges = next((own for own in data.edge_features if own.size(1)), None)
    for of, own in (("node", data.node_features), ("edge", edges)):
        if own is not None and own.is_floating_point():
            found[f"{of}_channels"] = own.size(1)
        elif own is not None:
            found[f"{of}_codes"] = _code_counts(f"{at}{of}_features: ", own)
    found["target"], found["outputs"] = _implied_target(f"{at}data: ", data, task, target)
    sizes = [size for size, own in zip(data.sizes, data.edges) if len(own)]
    found["order"] = sizes or [2]
    found["query_sizes"] = [size for size in sizes if size > 1] or [2]
    if task != "hyperedge":
        del found["query_sizes"]
    if any(own.order == 2 and own.symmetry == "undirected" for own in data.edges):
        found["symmetry"] = "undirected"
    return {name: value for name, value in found.items() if name in known}


def _code_counts(at: str, codes: Tensor) -> list[int]:
    """One more than the largest code of every column."""
    for bad, wanted in ((codes < 0, "from 0 on"), (codes >= _MOST_CODES, f"below {_MOST_CODES}")):
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            raise ValueError(
                f"{at}expected codes {wanted}, got {int(codes[row, column])} in row {row}, column "
                f"{column}; float() makes numbers of them"
            )
    return (codes.amax(0) + 1).tolist() if len(codes) else [1] * codes.size(1)


def _implied_target(
    at: str, data: GraphData, task: str, target: GraphTarget | None
) -> tuple[GraphTarget, int]:
    """The kind of the targets, and how many outputs they need."""
    wanted = "edge" if task == "hyperedge" else task
    own = data.targets
    if own is None or data.level != wanted:
        if target == "binary":
            return target, 1
        got = f"targets of {data.level}s" if data.level else "none"
        raise ValueError(
            f"{at}expected targets of {wanted}s, got {got}; target and outputs say what the "
            "model predicts without them"
        )
    columns = own[0].numel() if len(own) else 1
    kind: GraphTarget = target or _kind_of(at, own, columns)
    if kind == "classes":
        largest = int(own.max()) + 1 if own.numel() else 1
        return kind, max(len(data.classes), largest, 1)
    return kind, columns


def _kind_of(at: str, own: Tensor, columns: int) -> GraphTarget:
    """Whole numbers are classes. Flags, and numbers that are all 0, 1 or NaN, are binary."""
    whole = not own.is_floating_point() and own.dtype != torch.bool
    flags = bool(((own == 0) | (own == 1) | own.isnan()).all())
    if whole and columns == 1:
        return "classes"
    if flags:
        return "binary" if columns == 1 else "labels"
    if whole:
        raise ValueError(
            f"{at}expected one column of classes, got {describe(own)}; target says what they are"
        )
    return "number"
