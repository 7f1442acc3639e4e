"""The training loop of models of graphs: early stopping, a run folder, checkpoints."""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._choices import GraphLoss, LearningSchedule
from .._progress import Progress
from ..graph import Split, TupleBatch
from ..graph.frameworks import graphs_of
from .checks import require_whole
from .graph_checkpoint import (
    CHECKPOINT_FILE,
    FitState,
    RunFiles,
    read_checkpoint,
    write_checkpoint,
)
from .graph_losses import (
    graph_loss,
    judge_of,
    known_targets,
    mean_and_scale,
    require_class_weights,
    require_loss,
)
from .graph_models import GraphModel
from .graph_parts import Batch, GraphParts
from .graph_ranks import Share
from .training_callbacks import Callback, Callbacks, GraphFit, TrainingState

__all__ = ["GraphFit", "fit_graphs"]

_SAVE_SECONDS = 2.0  # between two checkpoints

#: The factor of the rate after a share of the steps.
_SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda share: 0.5 * (1 + torch.cos(torch.tensor(share * torch.pi)).item()),
    "linear": lambda share: 1 - share,
    "constant": lambda share: 1.0,
}


@checked
def fit_graphs(
    model: GraphModel,
    data: Any,
    split: Split | None = None,
    *,
    queries: TupleBatch | Sequence[TupleBatch] | None = None,
    targets: Tensor | None = None,
    epochs: int = 100,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-2,
    warmup: int = 10,
    patience: int = 20,
    loss: GraphLoss = "",
    class_weights: Sequence[float] = (),
    metric: str = "",
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    resume: bool = False,
    schedule: LearningSchedule | Callable[[int, int], float] = "cosine",
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
) -> GraphFit:
    """Trains a model and leaves it with the weights of the best epoch.

    If ``data`` has several graphs, or targets of graphs, the split names graphs, which are taken
    in batches. In a single graph it names rows of the targets: every step then sees the whole
    graph, and the loss that of the training rows. Numbers are learned in units of the deviation of
    the training targets. AdamW's rate rises linearly over the first ``warmup`` steps, and then
    follows ``schedule``. The best epoch is the one with the best ``metric`` of the validation rows.
    The validation loss decides between epochs that are equally good.

    If ``torch.distributed`` has a process group, its ranks train one model: each takes its part of
    every batch, rank 0 writes, and all return the same. Every rank makes this call with the same
    data and options; the weights of rank 0 count. Losses equal those of one process up to rounding.
    The same number of ranks gives the same bits again.

    Args:
        model: a :class:`GraphTransformer`, :class:`MessagePassing`, :class:`HyperSAGNN` or
            :class:`SetToGraph`.
        data: graphs, hypergraphs, or what :func:`from_pyg` takes, with targets unless ``targets``
            has them.
        split: rows for training, for validation (early stopping) and for the final test: numbers,
            or a flag per row. None: train_mask, val_mask and test_mask of the data.
        queries: of a single graph, the tuples to predict.
        targets: one per query, in the order of their lists by size.
        epochs: how many at most.
        batch_size: graphs per step.
        learning_rate, weight_decay: of AdamW.
        warmup: steps over which the rate rises.
        patience: epochs without a better validation after which the training ends; 0: never.
        loss, class_weights: as in :func:`graph_loss`.
        metric: "": mae, AUC or accuracy; of several columns of numbers ``scaled_mae``, the mean
            over the columns of the mae in deviations of the training targets. Others of
            :func:`graph_metrics` of one column are "rmse" of numbers, "aupr", "accuracy" and "f1"
            of binary targets and labels, and "loss" of all.
        folder: gets config.toml, info.json, metrics.jsonl, checkpoint.safetensors every few
            seconds and, after the training, model.safetensors.
        seed: of the order of batches, dropout and random features.
        resume: continue from the checkpoint in ``folder``, if there is one, with the same model,
            data and options. On a CPU the result has the bits of a run that was not interrupted.
        schedule: how the rate goes on: it falls to zero along a "cosine" or a "linear" line, or is
            "constant"; or a function of the step, from 0, and the number of all steps, whose result
            multiplies the rate.
        callbacks: functions that get a :class:`TrainingState` after each epoch, or objects of
            :class:`TrainingCallback`. One that sets ``state.stop`` ends the training, numbers that
            it adds to ``state.metrics`` are in metrics.jsonl, and ``state.score`` chooses the best
            epoch. An exception ends the training, without the line of its epoch; the checkpoint
            of an earlier epoch stays. On several ranks each rank calls its own.
        progress: a bar over the epochs, on standard error. None: on a terminal and in a notebook;
            True: as lines elsewhere, too; False: none.

    Raises:
        TypeError: targets of another dtype, something that is not a callback or a metric.
        ValueError: a row that is in two parts of the split; targets that are not those of the
            model's task, such as infinite ones or unknown classes in a part of the split; no
            training or no validation row with a known target, a loss that is not finite, other
            options than those of the run to resume. With several ranks: a single graph, dropout,
            the loss "soft_f1", fewer graphs per step than ranks, or other data on some rank.
        RuntimeError: a message between ranks failed.

    NaN marks a target that is not known, and so does a class below 0 in rows that are in no part of
    the split. Everything is checked before the model changes. If a class has no training row, all
    validation rows of a binary target have one class, or no row of a part has a target in a column,
    a warning says so.
    """
    at = "[fit_graphs] "
    require_whole(at, epochs=epochs, batch_size=batch_size)
    if not 0 < learning_rate < 1e3 or not 0 <= weight_decay < 1e3:
        raise ValueError(
            f"{at}learning_rate, weight_decay: expected numbers from 0 on, got {learning_rate}, "
            f"{weight_decay}"
        )
    require_whole(at, least=0, warmup=warmup, patience=patience)
    if resume and folder is None:
        raise ValueError(f"{at}folder: expected that of the run to resume, got none")
    require_loss(at, loss, model.target)
    require_class_weights(at, class_weights, loss, model.target, model.options["outputs"])
    judge_of(at, metric, model.target, model.options["outputs"])
    if not callable(schedule) and schedule not in _SCHEDULES:
        raise ValueError(
            f"{at}schedule: expected {', '.join(_SCHEDULES)} or a function, got {schedule!r:.40}"
        )
    own = graphs_of(f"{at}data: ", data, model.directions)
    parts = GraphParts(model, own, split, queries, targets, batch_size)
    options = FitOptions(
        epochs,
        learning_rate,
        weight_decay,
        warmup,
        patience,
        loss,
        seed,
        schedule,
        tuple(class_weights),
        metric,
    )
    Callbacks(at, callbacks)  # checked before the model changes
    start_ranks(model, parts, options, len(callbacks))
    log = RunFiles(folder, model, dict(batch_size=batch_size, **options.recorded()))
    parts.ranks.on_first(lambda: log.begin(resume))
    checkpoint = None if log.folder is None else log.folder / CHECKPOINT_FILE
    with Progress("epochs", progress if parts.ranks.writes else False) as bar:
        shown = Callbacks(at, [*callbacks, partial(_show, bar)])
        result = train_model(model, parts, options, log, checkpoint=checkpoint, callbacks=shown)

    def save() -> None:
        if folder is not None:
            model.save(folder)

    parts.ranks.on_first(save)
    return result


@dataclass(frozen=True)
class FitOptions:
    """The options of a training, as :func:`fit_graphs` describes them."""

    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    warmup: int = 10
    patience: int = 20
    loss: GraphLoss = ""
    seed: int = 0
    schedule: LearningSchedule | Callable[[int, int], float] = "cosine"
    class_weights: tuple[float, ...] = ()
    metric: str = ""

    def recorded(self) -> dict[str, Any]:
        """The options by their names. A function has its own name. The usual schedule, weights and
        metric have none, as in runs of versions that had no others."""
        own = {name: value for name, value in vars(self).items() if value not in ((), None)}
        if not self.metric:
            del own["metric"]
        if not isinstance(self.schedule, str):
            own["schedule"] = getattr(self.schedule, "__qualname__", type(self.schedule).__name__)
        elif self.schedule == "cosine":
            del own["schedule"]
        return own


class FitLog(Protocol):
    """What gets the lines of a training."""

    def line(self, kind: str, **fields: Any) -> None: ...

    def sync(self) -> None:
        """Returns when all lines before are where a later run finds them."""


class Stopped(Exception):
    """The training was told to stop."""


def start_ranks(
    model: GraphModel, parts: GraphParts, options: FitOptions, callbacks: int = 0
) -> None:
    """Prepares a training on the ranks of a process group, if there are several.

    Raises:
        ValueError: a training that cannot be divided, or that is another one on some rank.
    """
    at, ranks = "[fit_graphs] ", parts.ranks
    if ranks.size == 1:
        return
    if parts.whole:
        raise ValueError(f"{at}data: expected several graphs for {ranks.size} ranks, got one")
    if model.options["dropout"]:
        raise ValueError(
            f"{at}model: expected dropout 0 with several ranks, got {model.options['dropout']}"
        )
    if options.loss == "soft_f1":
        raise ValueError(f"{at}loss: expected a mean over rows with several ranks, got soft_f1")
    if parts.batch_size < ranks.size:
        raise ValueError(
            f"{at}batch_size: expected at least the {ranks.size} ranks, got {parts.batch_size}"
        )
    texts = [type(model).__name__, repr(model.options), repr(options.recorded())]
    texts += [repr(parts.batch_size), repr(callbacks)]
    offsets = [each.tuple_offsets for each in parts.data.edges]
    features = [parts.data.node_features, *parts.data.edge_features, *parts.split, parts.targets]
    tensors = [parts.data.node_offsets, *offsets, *features]
    ranks.start(model, [*texts, *(each for each in tensors if each is not None)])


def train_model(
    model: GraphModel,
    parts: GraphParts,
    options: FitOptions,
    log: FitLog,
    *,
    checkpoint: Path | None = None,
    stops: Callable[[], bool] = lambda: False,
    callbacks: Callbacks | None = None,
) -> GraphFit:
    """The loop of :func:`fit_graphs`. With ``checkpoint`` it goes on from this file if there is
    one, and writes it after an epoch every few seconds. It raises :class:`Stopped` between two
    steps if ``stops()`` says so. A run that goes on has the bits of one that did not stop. On
    several ranks, :func:`start_ranks` comes first, and only rank 0 writes."""
    at = "[fit_graphs] "
    metric, more = judge_of(at, options.metric, model.target, model.options["outputs"])
    ranks = parts.ranks
    _scale_targets(model, parts.training_targets())
    generator = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
    )
    steps = options.epochs * parts.steps
    state, saved = FitState(), time.monotonic()
    weights = copy.deepcopy(model.state_dict())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        if checkpoint is not None and checkpoint.exists():
            state = read_checkpoint(checkpoint, model, weights, optimizer, generator)
        for rank, (done,) in enumerate(ranks.gather([state.epoch])):
            if done != state.epoch:
                raise ValueError(
                    f"{at}folder: expected one that all ranks share, but rank {rank} found "
                    f"{done:.0f} epochs in it and rank {ranks.rank} found {state.epoch}"
                )
        told = TrainingState(model, optimizer, options.epochs, state.epoch, rank=ranks.rank)
        callbacks = callbacks or Callbacks(at, ())
        callbacks.train_begin(told)
        while state.epoch < options.epochs and not state.ended:
            epoch = state.epoch = state.epoch + 1
            model.train()
            total, rows = 0.0, 0
            for place, batch in enumerate(parts.training(generator)):
                if ranks.any(stops()):
                    raise Stopped
                optimizer.zero_grad()
                share = partial(_share, model, batch, options, generator)
                value, count = ranks.learn(share, model)
                if not math.isfinite(value):
                    raise ValueError(
                        f"{at}loss: expected finite numbers, got {value} in epoch {epoch}"
                    )
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                step = (epoch - 1) * parts.steps + place
                rate = options.learning_rate * _rate(options, step, steps)
                optimizer.param_groups[0]["lr"] = rate
                optimizer.step()
                total, rows = total + value * count, rows + count
            judged, told.validation_loss = parts.judge("validation", options)
            score = (judged | {"loss": told.validation_loss})[metric]
            told.score = score if more else -score
            told.epoch, told.loss, told.metrics = epoch, total / max(rows, 1), dict(judged)
            callbacks.epoch_end(told)
            (score,) = ranks.of_first([told.score])
            if state.take(score, told.validation_loss):
                weights = copy.deepcopy(model.state_dict())
            late = bool(options.patience) and epoch - state.better >= options.patience
            state.ended = ranks.any(told.stop) or late
            if not ranks.writes:
                continue
            log.line("graph_epoch", epoch=epoch, loss=told.loss, **told.metrics)
            due = state.ended or epoch == options.epochs or time.monotonic() - saved > _SAVE_SECONDS
            if checkpoint is not None and (due or stops()):
                log.sync()
                write_checkpoint(checkpoint, model, weights, optimizer, generator, state)
                saved = time.monotonic()
    model.load_state_dict(weights)
    model.eval()
    validation, test = (parts.judge(name, options)[0] for name in ("validation", "test"))
    result = GraphFit(state.epoch, state.best, validation, test)
    test = {f"test_{name}": value for name, value in result.test.items()}
    if ranks.writes:
        log.line("graph_fit", epoch=state.best, epochs=state.epoch, **result.validation, **test)
    told.result, told.metrics = result, dict(result.validation)
    callbacks.train_end(told)
    return result


def _show(bar: Progress, state: TrainingState) -> None:
    """Shows the loss and the first metric."""
    shown = [("loss", state.loss), *state.metrics.items()][:2]
    bar.update(state.epoch, state.epochs, ", ".join(f"{name} {value:.4g}" for name, value in shown))


def _share(
    model: GraphModel, batch: Batch | None, options: FitOptions, generator: torch.Generator
) -> Share | None:
    """The loss of a batch with new random features, which all ranks draw."""
    model.redraw(generator)
    if batch is None:
        return None
    inputs, wanted, own = batch
    answers = model(inputs)
    answers = answers if own is None else answers[own]
    wanted = model.scaled(wanted, answers)
    value = graph_loss(
        answers, wanted, model.target, loss=options.loss, class_weights=options.class_weights
    )
    return Share(value, known_targets(wanted), len(wanted))


def _rate(options: FitOptions, step: int, steps: int) -> float:
    """A linear rise, times the schedule."""
    own = options.schedule
    factor = _SCHEDULES[own](step / steps) if isinstance(own, str) else own(step, steps)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 0 <= factor < 1e3:
        raise ValueError(
            f"[fit_graphs] schedule: expected a number from 0 on, got {describe(factor)} in step "
            f"{step}"
        )
    return min((step + 1) / max(options.warmup, 1), 1.0) * factor


def _scale_targets(model: GraphModel, targets: Tensor) -> None:
    if model.target != "number":
        return
    mean, scale = mean_and_scale(targets)
    model.target_mean.copy_(mean)
    model.target_scale.copy_(scale)
