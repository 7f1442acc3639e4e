"""The parts of a task of the benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Batch", "Draw", "Task", "score"]


class Batch(NamedTuple):
    """Sequences of a task.

    fields: int64 [B, T, F], the codes of every token. A network adds one embedding per field.
    numbers: float [B, T, D], numbers of every token, or None.
    targets: int64 [B, T], -1 at tokens without a loss; or float [B, T], NaN at such tokens.
    """

    fields: Tensor
    numbers: Tensor | None
    targets: Tensor


#: Draws ``count`` sequences of a split, "train", "valid", "test" or "long", from a generator.
Draw = Callable[[int, torch.Generator, str], Batch]


@dataclasses.dataclass(frozen=True)
class Task:
    """A task on which users can run their own layer.

    Args:
        name: of the task on the command line.
        reason: why a tuple of tokens should matter, or why not.
        order: the lowest order that theory says should help; 1 for a control.
        fields: number of codes of each field of a token.
        classes: number of classes of a target; 0 if targets are numbers.
        draw: the generator.
        numbers: how many numbers a token has.
        ordered: whether the order of tokens means something. Networks then see positions.
        causal: whether a token may attend only to itself and to earlier tokens.
        level: the score whose first step and second are reported.
        longer: what is longer in the split "long"; empty if there is no such split.
        batch, steps: size of the training by default.
        missing: returns one line that says which file or package is absent, or "".
    """

    name: str
    reason: str
    order: int
    fields: tuple[int, ...]
    classes: int
    draw: Draw
    numbers: int = 0
    ordered: bool = False
    causal: bool = False
    level: float = 0.9
    longer: str = ""
    batch: int = 32
    steps: int = 400
    missing: Callable[[], str] = lambda: ""

    @property
    def metric(self) -> str:
        return "accuracy" if self.classes else "R2"


def score(task: Task, outputs: Tensor, targets: Tensor) -> float:
    """Accuracy, or 1 - mean squared error / variance, at the tokens that have a target."""
    if task.classes:
        known = targets >= 0
        return (outputs.argmax(-1)[known] == targets[known]).double().mean().item()
    known = ~targets.isnan()
    wanted, given = targets[known].double(), outputs.squeeze(-1)[known].double()
    spread = (wanted - wanted.mean()).square().mean()
    return (1 - (wanted - given).square().mean() / spread).item()
