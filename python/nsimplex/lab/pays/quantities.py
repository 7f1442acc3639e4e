"""Tasks on point sets and on tables."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from .task import Batch, Task

__all__ = ["TASKS", "chosen_rows", "parts_of"]


def _three_body(count: int, generator: torch.Generator, split: str) -> Batch:
    points = 12 if split == "long" else 8
    places = torch.rand(count, points, 2, generator=generator) * (points / 8) ** 0.5 * 2
    to = places.unsqueeze(1) - places.unsqueeze(2)  # [B, i, j]: from i to j
    distance = to.square().sum(-1)
    near = (-2 * distance).exp() * (1 - torch.eye(points))
    unit = to / (distance.sqrt().unsqueeze(-1) + 1e-9)
    # Sum over j < k of w_ij w_ik cos(angle at i)^2; j = k would be 1 and is left out.
    cosines = (unit.unsqueeze(3) * unit.unsqueeze(2)).sum(-1).square()
    pairs = near.unsqueeze(3) * near.unsqueeze(2) * cosines * (1 - torch.eye(points))
    energy = pairs.sum((2, 3)) / 2
    fields = torch.zeros(count, points, 1, dtype=torch.int64)
    return Batch(fields, places, 4 * energy)


_COLUMNS = 8


def _made_table(count: int, generator: torch.Generator, split: str) -> Batch:
    x = torch.randn(count, _COLUMNS, generator=generator)
    y = (x[:, 0] * x[:, 1] * x[:, 2] + x[:, 3] * x[:, 4] + x[:, 5]) / 3**0.5
    return _row_of_cells(x, y)


def _friedman(count: int, generator: torch.Generator, split: str) -> Batch:
    x = torch.rand(count, 10, generator=generator)
    y = 10 * (torch.pi * x[:, 0] * x[:, 1]).sin() + 20 * (x[:, 2] - 0.5).square()
    y = y + 10 * x[:, 3] + 5 * x[:, 4] + torch.randn(count, generator=generator)
    return _row_of_cells(2 * x - 1, (y - 14.4) / 5)


def _row_of_cells(x: Tensor, y: Tensor) -> Batch:
    """A token per column, after a token that has the target."""
    count, columns = x.shape
    fields = torch.arange(columns + 1).repeat(count, 1).unsqueeze(-1)
    numbers = torch.cat([torch.zeros(count, 1), x], 1).unsqueeze(-1)
    targets = torch.full((count, columns + 1), torch.nan)
    targets[:, 0] = y
    return Batch(fields, numbers, targets)


def parts_of(count: int) -> dict[str, Tensor]:
    """Rows of each split, 70 %, 10 % and 20 %."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    first, second = int(0.7 * count), int(0.8 * count)
    return dict(train=order[:first], valid=order[first:second], test=order[second:])


@functools.cache
def _diabetes_table() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    from sklearn.datasets import load_diabetes

    found: Any = load_diabetes()
    x, y = torch.tensor(found["data"]).float(), torch.tensor(found["target"]).float()
    parts = parts_of(len(y))
    seen = y[parts["train"]]
    return x * len(y) ** 0.5, (y - seen.mean()) / seen.std(), parts


def chosen_rows(rows: Tensor, count: int, generator: torch.Generator, split: str) -> Tensor:
    """Random rows to train on; otherwise the same rows always, however many were asked for: at most
    512 to choose by and 2,048 to test on."""
    if split != "train":
        return rows[: 2048 if split == "test" else 512]
    return rows[torch.randint(len(rows), (count,), generator=generator)]


def _diabetes(count: int, generator: torch.Generator, split: str) -> Batch:
    x, y, parts = _diabetes_table()
    rows = chosen_rows(parts[split], count, generator, split)
    return _row_of_cells(x[rows], y[rows])


@functools.cache
def _tumours() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    from sklearn.datasets import load_breast_cancer

    found: Any = load_breast_cancer()
    x, y = torch.tensor(found["data"]).float(), torch.tensor(found["target"])
    parts = parts_of(len(y))
    seen = x[parts["train"]]
    return (x - seen.mean(0)) / seen.std(0), y, parts


def _breast_cancer(count: int, generator: torch.Generator, split: str) -> Batch:
    x, y, parts = _tumours()
    rows = chosen_rows(parts[split], count, generator, split)
    fields, numbers, places = _row_of_cells(x[rows], y[rows].float())
    targets = torch.full(places.shape, -1)
    targets[:, 0] = y[rows]
    return Batch(fields, numbers, targets)


def _no_tables() -> str:
    try:
        import sklearn.datasets  # noqa: F401
    except ImportError:
        return "scikit-learn is not installed"
    return ""


TASKS = (
    Task(
        name="three-body",
        reason="Eight points in the plane. A point asks for a sum over pairs of its neighbours of "
        "a function of the angle between them, which is a sum over tuples by definition. The "
        "angle term is a polynomial in sums over single neighbours, so wide layers of order 1 "
        "can represent it too.",
        order=2,
        fields=(1,),
        classes=0,
        draw=_three_body,
        numbers=2,
        longer="12 points of the same density in place of 8",
    ),
    Task(
        name="made-table",
        reason="Tokens are the eight columns of a row. The target is x0 x1 x2 + x3 x4 + x5, so a "
        "tuple of three columns, one of two, and one column matter. The columns are fixed, so a "
        "feed-forward layer after a mean can learn the products as well.",
        order=2,
        fields=(_COLUMNS + 1,),
        classes=0,
        draw=_made_table,
        numbers=1,
    ),
    Task(
        name="friedman",
        reason="The made-up table of Friedman (1991), ten columns as tokens and noise of variance "
        "1. The target is 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4, and five columns "
        "mean nothing. One pair of columns matters together; most of the variance is a sum over "
        "single columns.",
        order=2,
        fields=(11,),
        classes=0,
        draw=_friedman,
        numbers=1,
    ),
    Task(
        name="breast-cancer",
        reason="The table of 569 tumours that scikit-learn has, thirty columns as tokens. A linear "
        "model answers about 97 of 100 questions, so little is left for interactions. Nearly a "
        "control.",
        order=1,
        fields=(31,),
        classes=2,
        draw=_breast_cancer,
        numbers=1,
        steps=200,
        missing=_no_tables,
    ),
    Task(
        name="diabetes",
        reason="The table of 442 patients that scikit-learn has, ten columns as tokens. Linear "
        "models explain about half of the variance, and interactions are known to add little. "
        "Nearly a control.",
        order=1,
        fields=(11,),
        classes=0,
        draw=_diabetes,
        numbers=1,
        level=0.4,
        steps=200,
        missing=_no_tables,
    ),
)
