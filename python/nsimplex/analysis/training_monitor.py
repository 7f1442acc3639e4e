"""Metrics of the attention layers during training, every few steps."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from .._arguments import checked_methods
from .._run_writers import Points, Writers, is_installed
from ..nn.training_log import TrainingLog
from .model_report import ModelReport, report

__all__ = ["TrainingMonitor"]

#: Fields that are logged for each layer, if they are known.
_LOGGED = (
    "ratio_before", "ratio_after", "ratio_block", "rank_before", "rank_after", "rank_block",
    "cosine_after", "entropy", "sink_mass", "jacobian", "lipschitz_bound", "sensitivity",
    "sensitivity_bound", "sharpness", "sharpness_bound",
)  # fmt: skip


@checked_methods
class TrainingMonitor:
    """Logs smoothing, effective rank and sharpness of every attention layer while a model trains.

    >>> with TrainingMonitor(model, batch, "runs/first", every=100) as monitor:
    ...     for step in range(1, 1001):
    ...         train(model)
    ...         monitor.step(step)

    Every ``every`` steps, :func:`nsimplex.analysis.report` measures the layers on the same batch.
    A line per layer is added to ``metrics.jsonl`` in the directory::

        {"kind": "attention_layer", "step": 100, "layer": 0, "module": "blocks.0.attention",
         "order": 2, "rank_after": 11.7, "ratio_after": 0.64, "sharpness": 2.4, ..}

    ``nsimplex report`` draws these lines. With TensorBoard, the same numbers are scalars named
    ``attention/<layer>/<field>``.

    Args:
        model: any module that :func:`nsimplex.analysis.report` can measure.
        batch: what the model reads each time, small and always the same, so that changes come from
            the model. It is passed as in :func:`nsimplex.analysis.report`.
        directory: of the run; it is made if it is missing.
        every: number of steps between two measurements.
        derivatives, queries, steps: as in :func:`nsimplex.analysis.report`. ``derivatives=False``
            leaves out the Jacobian, sensitivity and sharpness, and most of the time.
        tensorboard: whether to write for TensorBoard; None: if it is installed and there is no
            ``log``.
        log: gets the same records, for Weights & Biases and MLflow as well.

    Raises:
        ValueError: every, queries or steps below 1.
        ImportError: tensorboard=True, and it is not installed.

    Several processes: call ``step`` in one of them. The measured modules must then be able to run
    in that process alone.

    Complexity: that of :func:`nsimplex.analysis.report` every ``every`` steps. The model, its
    gradients and torch's random numbers are left as they were.
    """

    def __init__(
        self,
        model: nn.Module,
        batch: Tensor | Mapping | Sequence,
        directory: str | os.PathLike,
        *,
        every: int = 100,
        derivatives: bool = True,
        queries: int = 16,
        steps: int = 4,
        tensorboard: bool | None = None,
        log: TrainingLog | None = None,
    ) -> None:
        for name, value in (("every", every), ("queries", queries), ("steps", steps)):
            if value < 1:
                raise ValueError(f"[TrainingMonitor] {name}: expected 1 or more, got {value}")
        self._model, self._batch, self._every = model, batch, every
        self._settings: dict[str, Any] = dict(derivatives=derivatives, queries=queries, steps=steps)
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "metrics.jsonl"
        self._points, self._log = Points(), log
        self._writers = Writers(_writers(tensorboard, log), directory, _warn)

    def step(self, step: int) -> ModelReport | None:
        """Measures and logs the layers if ``step`` is a multiple of ``every``.

        Returns:
            The report, or None if nothing was measured.
        """
        if step % self._every != 0:
            return None
        made = report(self._model, self._batch, **self._settings)
        lines = []
        for place, layer in enumerate(made.layers):
            line: dict[str, Any] = dict(
                kind="attention_layer", step=step, layer=place, module=layer.name, order=layer.order
            )
            numbers = {name: getattr(layer, name) for name in _LOGGED}
            line |= {name: value for name, value in numbers.items() if value is not None}
            lines.append(json.dumps(line, allow_nan=False))
            own = {name: value for name, value in line.items() if name != "order"}
            self._writers.write(self._points(own))
            if self._log is not None:
                self._log.write(own)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return made

    def close(self) -> None:
        """Closes the writer for TensorBoard; ``log`` stays open."""
        self._writers.close()

    def __enter__(self) -> TrainingMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _writers(tensorboard: bool | None, log: TrainingLog | None) -> list[str]:
    """The writers that a monitor opens itself."""
    at = "[TrainingMonitor] tensorboard: expected"
    if log is not None and tensorboard:
        raise ValueError(f"{at} None or False with log, whose writers get the numbers, got True")
    if tensorboard and not is_installed("tensorboard"):
        raise ImportError(f"{at} TensorBoard, which is not installed: pip install tensorboard")
    wanted = log is None and tensorboard is not False and is_installed("tensorboard")
    return ["tensorboard"] if wanted else []


def _warn(said: str) -> None:
    warnings.warn(f"[TrainingMonitor] {said}", stacklevel=2)
