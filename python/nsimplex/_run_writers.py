"""Writers of the records of a training: TensorBoard, Weights & Biases and MLflow.

A record is a line of metrics.jsonl. Its numbers get names such as ``graph_epoch/loss`` or
``graph_point/esol gin 1/loss``: the kind of the line, the words and numbers that tell one series of
lines from another, and the field.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["WRITERS", "Point", "Points", "Writers", "is_installed", "writer_names"]

#: A module of each writer's package, and something in it.
_NEEDED = {
    "tensorboard": ("torch.utils.tensorboard", "SummaryWriter"),
    "wandb": ("wandb", "init"),
    "mlflow": ("mlflow", "start_run"),
}
WRITERS = tuple(_NEEDED)

#: Fields that tell series of lines of one kind apart.
_IDENTITY = ("task", "model", "encoding", "split", "seed", "layer", "module")
_STEPS = ("step", "epoch")
#: Kinds with another name for the writers.
_NAMES = {"attention_layer": "attention"}


class Point(NamedTuple):
    """The numbers of a record."""

    series: str
    step: int
    values: dict[str, float]  #: by field


class Points:
    """Records as points. One without a step is numbered within its series."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, record: Mapping[str, Any]) -> Point:
        kind = str(record.get("kind", "training"))
        own = [str(record[name]) for name in _IDENTITY if name in record]
        series = "/".join([_NAMES.get(kind, kind), *filter(None, [" ".join(own)])])
        self._counts[series] = self._counts.get(series, 0) + 1
        steps = (record[name] for name in _STEPS if isinstance(record.get(name), int))
        apart = {"kind", *_IDENTITY, *_STEPS}
        values = {
            name: float(value)
            for name, value in record.items()
            if name not in apart and _is_number(value)
        }
        return Point(series, next(steps, self._counts[series]), values)


def _is_number(value: Any) -> bool:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and math.isfinite(value)


def writer_names(at: str, names: Collection[str]) -> list[str]:
    """The names of writers that are installed.

    Args:
        at: what messages begin with.

    Raises:
        ValueError: an unknown name, or one twice.
        ModuleNotFoundError: a package that is missing.
    """
    for number, name in enumerate(own := list(names)):
        if name not in WRITERS:
            known = f"{', '.join(WRITERS[:-1])} or {WRITERS[-1]}"
            raise ValueError(f"{at}: expected {known}, got {name}")
        if name in own[:number]:
            raise ValueError(f"{at}: expected each writer once, got {name} twice")
        if not is_installed(name):
            raise ModuleNotFoundError(
                f"{at}: expected the package {name}, which is not installed: pip install {name}"
            )
    return own


def is_installed(name: str) -> bool:
    """Whether the package of a writer can be imported. A folder of its name is no package."""
    module, function = _NEEDED[name]
    try:
        return hasattr(import_module(module), function)
    except ImportError:
        return False


class _TensorBoard:
    """Files of events in the run folder."""

    id = ""

    def __init__(self, folder: Path, _: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def write(self, point: Point) -> None:
        for name, value in point.values.items():
            self._writer.add_scalar(f"{point.series}/{name}", value, point.step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """A run of Weights & Biases: the active one, or a new one with its files in the run
    folder. WANDB_PROJECT, WANDB_MODE and its other variables count. Each series has its own axis of
    steps."""

    def __init__(self, folder: Path, run: str) -> None:
        import wandb

        self._own = wandb.run is None
        self._run: Any = wandb.run or wandb.init(
            dir=str(folder),
            name=folder.resolve().name,
            id=run or None,
            resume="allow" if run else None,
            settings=wandb.Settings(silent=True),
        )
        self.id = str(self._run.id)
        self._series: set[str] = set()
        if self._own and (url := getattr(self._run, "url", None)):  # none offline
            print(f"wandb: {url}", file=sys.stderr)

    def write(self, point: Point) -> None:
        step = f"{point.series}/step"
        if point.series not in self._series:
            self._series.add(point.series)
            self._run.define_metric(f"{point.series}/*", step_metric=step)
        named = {f"{point.series}/{name}": value for name, value in point.values.items()}
        self._run.log({step: point.step, **named})

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self._own:
            self._run.finish()


class _MLflow:
    """A run of MLflow: the active one, or a new one. MLFLOW_TRACKING_URI and
    MLFLOW_EXPERIMENT_NAME count."""

    def __init__(self, folder: Path, run: str) -> None:
        import mlflow

        self._mlflow: Any = mlflow
        active = mlflow.active_run()
        self._own = active is None
        if active is None:
            name = None if run else folder.resolve().name
            active = mlflow.start_run(run_id=run or None, run_name=name)
        self.id = str(active.info.run_id)

    def write(self, point: Point) -> None:
        plain = re.sub(r"[^\w\-. :/]", "_", point.series)  # names take no other letters
        named = {f"{plain}/{name}": value for name, value in point.values.items()}
        if named:
            self._mlflow.log_metrics(named, step=point.step)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self._own:
            self._mlflow.end_run()


_MAKERS: dict[str, Callable[[Path, str], Any]] = {
    "tensorboard": _TensorBoard,
    "wandb": _Wandb,
    "mlflow": _MLflow,
}


class Writers:
    """Several writers, which share their points. One that fails is told of once, and gets no
    further points.

    Args:
        warn: gets the line about a writer that fails.
        state: of writers of the same folder that this continues. A writer gets no step again that
            it has had.
    """

    def __init__(
        self,
        names: Collection[str],
        folder: str | os.PathLike[str],
        warn: Callable[[str], Any],
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._open: dict[str, Any] = {}
        self._warn = warn
        self._had = {name: dict(own["steps"]) for name, own in (state or {}).items()}
        #: of each writer, the run and the last step of each series
        self.state: dict[str, Any] = {name: dict(own) for name, own in (state or {}).items()}
        for name in names:
            self._guarded(name, self._make, name, Path(folder))

    def write(self, point: Point) -> None:
        for name in list(self._open):
            if point.step > self._had.get(name, {}).get(point.series, -1):
                self._guarded(name, self._write, name, point)

    def flush(self) -> None:
        for name, own in list(self._open.items()):
            self._guarded(name, own.flush)

    def close(self) -> None:
        for name, own in list(self._open.items()):
            self._guarded(name, own.close)
        self._open.clear()

    def _make(self, name: str, folder: Path) -> None:
        before = self.state.get(name, {"run": "", "steps": {}})
        own = self._open[name] = _MAKERS[name](folder, before["run"])
        self.state[name] = {"run": own.id, "steps": dict(before["steps"])}

    def _write(self, name: str, point: Point) -> None:
        self._open[name].write(point)
        steps = self.state[name]["steps"]
        steps[point.series] = max(point.step, steps.get(point.series, -1))

    def _guarded(self, name: str, action: Callable[..., Any], *arguments: Any) -> None:
        try:
            action(*arguments)
        except Exception as error:  # whatever a writer raises, the training goes on
            self._open.pop(name, None)
            why = str(error).partition("\n")[0] or type(error).__name__
            self._warn(f"{name} failed and gets no further records: {why}")
