"""What a training tells its callbacks, and what they may change."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from .._arguments import checked_methods, describe
from .._data_frames import DataFrame, data_frame

__all__ = ["Callback", "GraphFit", "TrainingCallback", "TrainingState"]


class GraphFit(NamedTuple):
    """The result of a training."""

    epochs: int  #: how many ran
    best: int  #: the epoch whose weights the model has now, from 1
    validation: dict[str, float]  #: metrics on the validation rows
    test: dict[str, float]  #: metrics on the test rows; empty if there are none

    def to_frame(self) -> DataFrame:
        """A data frame of pandas with a row for the validation and, if there are test rows, one for
        the test, and the metrics as columns."""
        parts = {name: own for name in ("validation", "test") if (own := getattr(self, name))}
        rows = [[own[name] for name in self.validation] for own in parts.values()]
        return data_frame(rows, list(self.validation), index=list(parts))


@dataclass
class TrainingState:
    """How far a training is. A callback may set ``stop`` and ``score``, add entries to
    ``metrics``, and change the model and the optimizer."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    epochs: int  #: how many there are at most
    epoch: int = 0  #: how many have ended
    loss: float = math.nan  #: mean training loss of the epoch
    #: on the validation rows; numbers that a callback adds are in metrics.jsonl, too
    metrics: dict[str, float] = field(default_factory=dict)
    validation_loss: float = math.nan
    #: what the best epoch is chosen by, and the patience: more is better
    score: float = math.nan
    stop: bool = False  #: set it to end the training after this epoch
    rank: int = 0  #: of this process, in a training on several; files are for rank 0
    result: GraphFit | None = None  #: at the end of the training


@checked_methods
class TrainingCallback:
    """A base class of objects that a training calls. A subclass defines one or more of the three
    methods.

    >>> class Patient(TrainingCallback):
    ...     def on_epoch_end(self, state):
    ...         state.stop = state.loss < 0.01
    """

    def on_train_begin(self, state: TrainingState) -> None:
        """Before the first step. ``state.epoch`` is above 0 if the run continues."""

    def on_epoch_end(self, state: TrainingState) -> None:
        """After the validation of an epoch, and before its line is written."""

    def on_train_end(self, state: TrainingState) -> None:
        """After the last step. The model has the weights of the best epoch, and ``state.result``
        what the training returns. An exception in the training skips this."""

    _HOOKS: ClassVar = ("on_train_begin", "on_epoch_end", "on_train_end")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls):
            if name.startswith("on_") and name not in cls._HOOKS:
                raise TypeError(
                    f"[{cls.__name__}] expected methods of {', '.join(cls._HOOKS)}, got {name}"
                )


#: A function that is called after each epoch, or an object with methods.
Callback = Callable[[TrainingState], Any] | TrainingCallback


class Callbacks:
    """The callbacks of a training, in their order. They leave torch's random numbers as they
    were.

    Raises:
        TypeError: something that is not a callback.
    """

    def __init__(self, at: str, callbacks: Sequence[Callback]) -> None:
        self._at, self._callbacks = at, list(callbacks)
        for own in self._callbacks:
            if isinstance(own, type):
                raise TypeError(f"{at}callbacks: expected objects, got the class {own.__name__}")
            if not isinstance(own, TrainingCallback) and not callable(own):
                raise TypeError(
                    f"{at}callbacks: expected functions or objects of TrainingCallback, got "
                    f"{describe(own)}"
                )

    def train_begin(self, state: TrainingState) -> None:
        self._call("on_train_begin", state)

    def epoch_end(self, state: TrainingState) -> None:
        """Raises a TypeError or ValueError if a callback leaves something else than metrics."""
        self._call("on_epoch_end", state)
        state.metrics = {name: self._number(name, own) for name, own in state.metrics.items()}
        state.score = self._number("score", state.score)
        for name in ("kind", "epoch", "loss"):
            if name in state.metrics:
                raise ValueError(f"{self._at}callbacks: expected another metric than {name!r}")

    def train_end(self, state: TrainingState) -> None:
        self._call("on_train_end", state)

    def _call(self, hook: str, state: TrainingState) -> None:
        with torch.random.fork_rng(devices=[]):
            for own in self._callbacks:
                if isinstance(own, TrainingCallback):
                    getattr(own, hook)(state)
                elif hook == "on_epoch_end":
                    own(state)

    def _number(self, name: str, value: Any) -> float:
        if isinstance(value, Tensor) and value.numel() == 1:
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(
                f"{self._at}callbacks: expected numbers in state.metrics and state.score, got "
                f"{describe(value)} for {name!r}"
            )
        return float(value)
