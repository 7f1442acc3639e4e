"""The records of a training for TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._arguments import checked_methods
from .._choices import LogWriter
from .._run_writers import Points, Writers, writer_names
from .._whole_file import whole_file
from .training_callbacks import TrainingCallback, TrainingState

__all__ = ["TrainingLog"]

#: What each writer has got: the run, and the last step of each series.
STATE_FILE = "log.json"
_PERIOD = 2.0  # seconds between two writes of it


@checked_methods
class TrainingLog(TrainingCallback):
    """Hands the records of a training to TensorBoard, Weights & Biases or MLflow.

    >>> log = TrainingLog("runs/first", ["tensorboard", "wandb"])
    >>> fit_graphs(model, data, split, folder="runs/first", callbacks=[log])

    A loop of your own calls ``write`` and, at the end, ``close``::

        with TrainingLog("runs/own", ["mlflow"]) as log:
            for step in range(1, 1001):
                log.write({"step": step, "loss": train(model)})

    Every number of a record becomes a scalar, ``graph_epoch/loss`` for example: the record's kind
    and its field. TensorBoard's files and those of Weights & Biases are in the folder; MLflow
    writes where MLFLOW_TRACKING_URI says. A run that is active in this process is used and stays
    open. Otherwise the log opens a new run at the first record.

    Args:
        folder: of the run; it is made if it is missing.
        writers: "tensorboard", "wandb" or "mlflow", or several of these.
        resume: continue the runs that a log of this folder opened before, and leave out the steps
            that they have. ``fit_graphs`` says so itself.

    Raises:
        ValueError: an unknown writer, or one twice.
        ModuleNotFoundError: the package of a writer is not installed.

    A writer that fails later gets no further records. A warning says so, and the training goes on.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        writers: Sequence[LogWriter],
        *,
        resume: bool = False,
    ) -> None:
        self._names = writer_names("[TrainingLog] writers", writers)
        self._folder, self._resume = Path(folder), resume
        self._points, self._saved = Points(), 0.0
        self._writers: Writers | None = None

    def write(self, record: Mapping[str, Any]) -> None:
        """Hands one record to the writers. Its number ``step`` or ``epoch`` is the step, and
        ``kind`` its kind."""
        point = self._points(record)
        if self._writers is None:
            self._writers = self._open()
        self._writers.write(point)
        if time.monotonic() - self._saved > _PERIOD:
            self._save()

    def flush(self) -> None:
        """Sends what the writers still hold."""
        if self._writers is not None:
            self._writers.flush()

    def close(self) -> None:
        """Ends the runs that this log opened. A later record opens them again."""
        if self._writers is not None:
            self._save()
            self._writers.close()
        self._writers, self._resume = None, True

    def on_train_begin(self, state: TrainingState) -> None:
        self._resume = self._resume or state.epoch > 0

    def on_epoch_end(self, state: TrainingState) -> None:
        if state.rank == 0:
            self.write(
                {"kind": "graph_epoch", "epoch": state.epoch, "loss": state.loss, **state.metrics}
            )

    def on_train_end(self, state: TrainingState) -> None:
        if state.rank == 0 and state.result is not None:
            test = {f"test_{name}": value for name, value in state.result.test.items()}
            own = {"epoch": state.result.best, "epochs": state.result.epochs}
            self.write({"kind": "graph_fit", **own, **state.result.validation, **test})
        self.close()

    def __enter__(self) -> TrainingLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Writers:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / STATE_FILE
        state = None
        if self._resume:
            with suppress(OSError, ValueError):  # without it, or damaged: the runs begin anew
                state = json.loads(file.read_text(encoding="utf-8"))
        return Writers(self._names, self._folder, _warn, state)

    def _save(self) -> None:
        assert self._writers is not None
        self._saved = time.monotonic()
        with whole_file(self._folder / STATE_FILE, encoding="utf-8") as file:
            json.dump(self._writers.state, file)


def _warn(said: str) -> None:
    warnings.warn(f"[TrainingLog] {said}", stacklevel=2)
