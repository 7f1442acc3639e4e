"""``nsimplex graph train --seeds --models``: models compared on the same data and split."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from .._command_channel import Channel
from ..nn.graph_losses import judge_of
from ..nn.graph_ranks import GraphRanks
from ..nn.graph_training import CHECKPOINT_FILE, train_model
from .models import make_model
from .training import begin, keep_model, make_parts, say_bad, show_data, train, warn_of_data
from .training_data import Task, read_task

Row = dict[str, Any]

# Fields of a result beside its metrics.
_FACTS = ("task", "model", "seed", "best_epoch", "epochs", "parameters", "stopped")


def train_all(request: dict[str, Any], channel: Channel) -> None:
    """Trains every model of the command from every seed: one, or several to compare.

    Raises:
        ValueError: data or options that cannot be used, in one line.
    """
    models = request["models"] or [request["model"]]
    for name in models:
        if models.count(name) > 1:
            raise ValueError(f"--models: expected different models, got {name!r} twice")
    seeds = [request["seed"] + count for count in range(request["seeds"])]
    requests = [{**request, "model": name, "seed": seed} for seed in seeds for name in models]
    if len(requests) == 1:
        train(requests[0], channel)
        return
    ranks = GraphRanks().size
    if ranks > 1:
        raise ValueError(
            f"--models, --seeds: expected one training for {ranks} ranks, got {len(requests)}"
        )
    _compare(requests, channel)


def _compare(requests: list[dict[str, Any]], channel: Channel) -> None:
    """Trains one after the other. The run folder keeps the model that is best on the validation
    rows, and results, so that a run that goes on repeats no training that is done."""
    first, warn = requests[0], _Warnings(channel)
    folder = Path(first["folder"]) if first["folder"] else None
    task = read_task(first, channel)
    for request in requests:  # an error comes before anything is written
        make_model(request, task.recipe, task.data, task.targets)
    model, parts, options = make_parts(first, task, warn)
    warn_of_data(first, task, channel)
    begin(channel, folder, first["resume"])
    show_data(channel, task, parts)
    say_bad(channel, task.recipe.bad, folder)
    metric, more = judge_of("", "", model.target, model.options["outputs"])
    earlier = _earlier(folder) if first["resume"] else {}
    rows: list[Row] = []
    for place, request in enumerate(requests):
        key = request["model"], request["seed"]
        checkpoint = None if folder is None else folder / _checkpoint(*key)
        row = earlier.get(key)
        if row is None:
            log = _Log(channel, request, place, len(requests))
            if place:
                model, parts, options = make_parts(request, task, warn)
            found = train_model(
                model, parts, options, log, checkpoint=checkpoint, stops=channel.stops
            )
            row = _result(task, request, model, found)
            highest = max((_score(each, metric, more) for each in rows), default=None)
            if highest is None or _score(row, metric, more) > highest:
                keep_model(model, parts, task, folder)
        channel.line("graph_result", **row)
        channel.sync()
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        rows.append(row)
    means = [_mean(rows, name) for name in dict.fromkeys(row["model"] for row in rows)]
    for mean in means:
        channel.line("graph_mean", **mean)
    channel.table(_table(means))
    if folder is not None:
        best = max(rows, key=lambda row: _score(row, metric, more))
        kept = f"{best['model']} of seed {best['seed']}"
        channel.table([["kept", "best on the validation rows"], ["model.safetensors", kept]])


def _checkpoint(model: str, seed: int) -> str:
    """The file of a training that is under way."""
    return f"{Path(CHECKPOINT_FILE).stem}-{model}-{seed}.safetensors"


def _earlier(folder: Path | None) -> dict[tuple[str, int], Row]:
    """The results of an earlier part of the run, by model and seed."""
    assert folder is not None
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("kind") == "graph_result"]
    return {(row["model"], row["seed"]): row for row in rows}


class _Warnings:
    """Says each warning once."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._said = channel, set[str]()

    def warning(self, text: str) -> None:
        if text not in self._said:
            self._channel.warning(text)
        self._said.add(text)


class _Log:
    """Lines of the epochs of a training, with the progress of all trainings."""

    def __init__(
        self, channel: Channel, request: dict[str, Any], place: int, trainings: int
    ) -> None:
        self._channel, self._done = channel, place * request["epochs"]
        self._total = trainings * request["epochs"]
        self._own = {"task": request["task"], "model": request["model"], "seed": request["seed"]}

    def line(self, kind: str, **fields: Any) -> None:
        if kind != "graph_epoch":
            return  # the result has its fields
        epoch, loss = fields.pop("epoch"), fields.pop("loss")
        judged = {f"validation_{name}": value for name, value in fields.items()}
        self._channel.line("graph_point", **self._own, epoch=epoch, loss=loss, **judged)
        detail = f"{self._own['model']} seed {self._own['seed']}, loss {loss:.4g}"
        self._channel.progress(self._done + epoch, self._total, detail)

    def sync(self) -> None:
        self._channel.sync()


def _result(task: Task, request: dict[str, Any], model: Any, found: Any) -> Row:
    return {
        "task": task.recipe.task,
        "model": request["model"],
        "seed": request["seed"],
        **found.test,
        **{f"validation_{name}": value for name, value in found.validation.items()},
        "best_epoch": found.best,
        "epochs": found.epochs,
        "parameters": sum(each.numel() for each in model.parameters()),
        "stopped": False,
    }


def _score(row: Row, metric: str, more: bool) -> float:
    """The metric of the validation rows that chooses the model, more being better."""
    value = row[f"validation_{metric}"]
    if value is None or value != value:
        return -float("inf")
    return value if more else -value


def _mean(rows: list[Row], model: str) -> Row:
    """Means and sample deviations over the seeds of the metrics of the test rows, or of the
    validation rows if there is no test."""
    own = [row for row in rows if row["model"] == model]
    metrics = [name for name in own[0] if name not in _FACTS]
    tested = [name for name in metrics if not name.startswith("validation_")]
    mean: Row = {"task": own[0]["task"], "model": model, "seeds": len(own)}
    for name in tested or metrics:
        values = [float("nan") if row[name] is None else row[name] for row in own]
        mean[f"{name}_mean"] = statistics.fmean(values)
        mean[f"{name}_deviation"] = statistics.stdev(values) if len(values) > 1 else 0.0
    return mean


def _table(means: list[Row]) -> list[list[str]]:
    names = [key.removesuffix("_mean") for key in means[0] if key.endswith("_mean")]
    rows = [["model", *(name.replace("_", " ") for name in names), "seeds"]]
    for mean in means:
        cells = [f"{mean[f'{name}_mean']:.4g} ± {mean[f'{name}_deviation']:.2g}" for name in names]
        if mean["seeds"] == 1:
            cells = [f"{mean[f'{name}_mean']:.4g}" for name in names]
        rows.append([mean["model"], *cells, str(mean["seeds"])])
    return rows
