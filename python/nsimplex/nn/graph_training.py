"""The training loop of models of graphs: early stopping, a run folder, checkpoints."""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from .._arguments import checked
from ..graph import GraphData, Split, TupleBatch
from .graph_checkpoint import (
    CHECKPOINT_FILE,
    FitState,
    RunFiles,
    read_checkpoint,
    write_checkpoint,
)
from .graph_losses import JUDGE, graph_loss, graph_metrics
from .graph_models import GraphInputs, GraphModel

__all__ = ["GraphFit", "fit_graphs"]

_SAVE_SECONDS = 2.0  # between two checkpoints


class GraphFit(NamedTuple):
    """What a training led to."""

    epochs: int  #: how many ran
    best: int  #: the epoch whose weights the model has now, from 1
    validation: dict[str, float]  #: metrics on the validation rows
    test: dict[str, float]  #: metrics on the test rows; empty if there are none


@checked
def fit_graphs(
    model: GraphModel,
    data: GraphData,
    split: Split,
    *,
    queries: TupleBatch | Sequence[TupleBatch] | None = None,
    targets: Tensor | None = None,
    epochs: int = 100,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-2,
    warmup: int = 10,
    patience: int = 20,
    loss: str = "",
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    resume: bool = False,
) -> GraphFit:
    """Trains a model and leaves it with the weights of the best epoch.

    If ``data`` has several graphs, or targets of graphs, the split names graphs, which are taken
    in batches. In a single graph it names rows of the targets: every step then sees the whole
    graph, and the loss that of the training rows. Numbers are learned in units of the deviation of
    the training targets. AdamW's rate rises linearly over the first ``warmup`` steps, and then
    falls to zero along a cosine. An epoch is judged by the validation rows: by mae, AUC or
    accuracy. The validation loss decides between epochs that are equally good.

    Args:
        model: a :class:`GraphTransformer`, a :class:`MessagePassing`.
        data: graphs, hypergraphs, with targets unless ``targets`` has them.
        split: rows to learn from, to stop by, and to judge by at the end.
        queries: of a single graph, the tuples to judge.
        targets: one per query, in the order of their lists by size.
        epochs: how many at most.
        batch_size: graphs per step.
        learning_rate, weight_decay: of AdamW.
        warmup: steps over which the rate rises.
        patience: epochs without a better validation after which the training ends; 0: never.
        loss: as in :func:`graph_loss`.
        folder: gets config.toml, metrics.jsonl, checkpoint.safetensors every few seconds and,
            after the training, model.safetensors.
        seed: of the order of batches, dropout and random features.
        resume: go on from the checkpoint in ``folder``, if there is one, with the same model, data
            and options. On a CPU the result has the bits of a run that was not interrupted.

    Raises:
        ValueError: targets that are not those of the model's task, empty training or validation
            rows, a loss that is not finite, other options than those of the run to resume.

    A class that no training row has is a warning.
    """
    at = "[fit_graphs] "
    for name, number in (("epochs", epochs), ("batch_size", batch_size)):
        if number < 1:
            raise ValueError(f"{at}{name}: expected at least 1, got {number}")
    if not 0 < learning_rate < 1e3 or not 0 <= weight_decay < 1e3:
        raise ValueError(
            f"{at}learning_rate, weight_decay: expected numbers from 0 on, got {learning_rate}, "
            f"{weight_decay}"
        )
    for name, number in (("warmup", warmup), ("patience", patience)):
        if number < 0:
            raise ValueError(f"{at}{name}: expected at least 0, got {number}")
    if resume and folder is None:
        raise ValueError(f"{at}folder: expected that of the run to resume, got none")
    parts = GraphParts(model, data, split, queries, targets, batch_size)
    options = FitOptions(epochs, learning_rate, weight_decay, warmup, patience, loss, seed)
    log = RunFiles(folder, model, dict(batch_size=batch_size, **vars(options)), resume)
    checkpoint = None if log.folder is None else log.folder / CHECKPOINT_FILE
    result = train_model(model, parts, options, log, checkpoint=checkpoint)
    if folder is not None:
        model.save(folder)
    return result


@dataclass(frozen=True)
class FitOptions:
    """The options of a training, as :func:`fit_graphs` describes them."""

    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    warmup: int = 10
    patience: int = 20
    loss: str = ""
    seed: int = 0


class FitLog(Protocol):
    """What gets the lines of a training."""

    def line(self, kind: str, **fields: Any) -> None: ...

    def sync(self) -> None:
        """Returns when all lines before are where a later run finds them."""


class Stopped(Exception):
    """The training was told to stop."""


def train_model(
    model: GraphModel,
    parts: GraphParts,
    options: FitOptions,
    log: FitLog,
    *,
    checkpoint: Path | None = None,
    stops: Callable[[], bool] = lambda: False,
) -> GraphFit:
    """The loop of :func:`fit_graphs`. With ``checkpoint`` it goes on from this file if there is
    one, and writes it after an epoch every few seconds. It raises :class:`Stopped` between two
    steps if ``stops()`` says so. A run that goes on has the bits of one that did not stop."""
    at, metric, more = "[fit_graphs] ", *JUDGE[model.target]
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
        while state.epoch < options.epochs and not state.ended:
            epoch = state.epoch = state.epoch + 1
            model.train()
            total, rows = 0.0, 0
            for place, (inputs, wanted, own) in enumerate(parts.training(generator)):
                if stops():
                    raise Stopped
                model.redraw(generator)
                answers = model(inputs)
                answers = answers if own is None else answers[own]
                wanted = model.scaled(wanted, answers)
                value = graph_loss(answers, wanted, model.target, loss=options.loss)
                if not value.isfinite():
                    raise ValueError(
                        f"{at}loss: expected finite numbers, got {value.item()} in epoch {epoch}"
                    )
                optimizer.zero_grad()
                value.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                step = (epoch - 1) * parts.steps + place
                optimizer.param_groups[0]["lr"] = options.learning_rate * _rate(
                    step, steps, options.warmup
                )
                optimizer.step()
                total, rows = total + value.item() * len(wanted), rows + len(wanted)
            judged, validation_loss = parts.judge("validation", options.loss)
            if state.take(judged[metric] if more else -judged[metric], validation_loss):
                weights = copy.deepcopy(model.state_dict())
            state.ended = bool(options.patience) and epoch - state.better >= options.patience
            log.line("graph_epoch", epoch=epoch, loss=total / max(rows, 1), **judged)
            due = state.ended or epoch == options.epochs or time.monotonic() - saved > _SAVE_SECONDS
            if checkpoint is not None and (due or stops()):
                log.sync()
                write_checkpoint(checkpoint, model, weights, optimizer, generator, state)
                saved = time.monotonic()
    model.load_state_dict(weights)
    model.eval()
    validation, test = (parts.judge(name, options.loss)[0] for name in ("validation", "test"))
    result = GraphFit(state.epoch, state.best, validation, test)
    test = {f"test_{name}": value for name, value in result.test.items()}
    log.line("graph_fit", epoch=state.best, epochs=state.epoch, **result.validation, **test)
    return result


def _rate(step: int, steps: int, warmup: int) -> float:
    """A linear rise, times a half cosine."""
    cosine = torch.cos(torch.tensor(step / steps * torch.pi)).item()
    return min((step + 1) / max(warmup, 1), 1.0) * 0.5 * (1 + cosine)


class GraphParts:
    """The rows of a split as inputs of a model, which are prepared once."""

    def __init__(
        self,
        model: GraphModel,
        data: GraphData,
        split: Split,
        queries: TupleBatch | Sequence[TupleBatch] | None,
        targets: Tensor | None,
        batch_size: int,
    ) -> None:
        at = "[fit_graphs] "
        self.model, self.split, self.batch_size = model, split, batch_size
        wanted = {"hyperedge": "edge"}.get(model.task, model.task)
        if targets is None:
            if queries is not None:
                raise ValueError(f"{at}targets: expected one per query, got none")
            if data.level != wanted:
                raise ValueError(
                    f"{at}data: expected targets of {wanted}s, got "
                    + (f"targets of {data.level}s" if data.level else "none")
                )
            targets = data.targets
        assert targets is not None
        self.whole = data.num_graphs == 1 and wanted != "graph"
        if queries is not None and not self.whole:
            raise ValueError(f"{at}queries: expected a single graph, got {data.num_graphs}")
        rows = len(targets) if self.whole else data.num_graphs
        for name, part in zip(Split._fields, split):
            if part.dtype != torch.int64 or part.dim() != 1:
                raise TypeError(f"{at}split: expected int64 rows of {name}, got {part.dtype}")
            if len(part) and not (part.min() >= 0 and part.max() < rows):
                raise ValueError(f"{at}split: expected {name} rows 0 to {rows - 1}")
            if not len(part) and name != "test":
                raise ValueError(f"{at}split: expected {name} rows, got none")
        if model.target == "classes":
            if targets.dtype != torch.int64:
                raise TypeError(f"{at}targets: expected int64 of classes, got {targets.dtype}")
            if len(targets) and int(targets.max()) >= model.options["outputs"]:
                raise ValueError(
                    f"{at}targets: expected classes 0 to {model.options['outputs'] - 1}, got "
                    f"{int(targets.max())}"
                )
        elif targets.numel() != len(targets) * model.options["outputs"]:
            raise ValueError(
                f"{at}targets: expected {model.options['outputs']} columns, got "
                f"{list(targets.shape)}"
            )
        self.targets = targets
        if self.whole:
            self.inputs = model.prepare(data, queries).to(model.target_mean.device)
            self.steps = 1
        else:
            self.data = data
            if data.targets is not targets:
                raise ValueError(
                    f"{at}targets: expected those of data for {data.num_graphs} graphs"
                )
            self.steps = -(-len(split.training) // batch_size)
            self.kept: dict[str, list] = {
                name: list(self._batches(part)) for name, part in zip(Split._fields[1:], split[1:])
            }
        own = self.training_targets()
        if model.target == "classes":
            unseen = sorted(set(self.targets.unique().tolist()) - set(own.unique().tolist()))
            if unseen:
                warnings.warn(
                    f"{at}targets: no training row has the classes {unseen}", stacklevel=4
                )

    def _batches(self, chosen: Tensor) -> Iterator[tuple[GraphInputs, Tensor, None]]:
        for part in chosen.split(self.batch_size):
            own = self.data[part]
            device = self.model.target_mean.device
            assert own.targets is not None
            yield self.model.prepare(own).to(device), own.targets.to(device), None

    def training_targets(self) -> Tensor:
        if self.whole:
            return self.targets[self.split.training]
        own = self.data[self.split.training].targets
        assert own is not None
        return own

    def training(self, generator: torch.Generator) -> Iterator[tuple[GraphInputs, Tensor, Any]]:
        if self.whole:
            rows = self.split.training
            yield self.inputs, self.targets[rows], rows
            return
        chosen = self.split.training
        yield from self._batches(chosen[torch.randperm(len(chosen), generator=generator)])

    @torch.no_grad()
    def judge(self, name: str, loss: str) -> tuple[dict[str, float], float]:
        """Metrics and loss of a part; neither if it is empty."""
        rows = getattr(self.split, name)
        if not len(rows):
            return {}, math.nan
        self.model.eval()
        if self.whole:
            answers, wanted = self.model(self.inputs)[rows], self.targets[rows]
        else:
            batches = self.kept[name]
            answers = torch.cat([self.model(inputs) for inputs, _, _ in batches])
            wanted = torch.cat([own for _, own, _ in batches])
        wanted = wanted.to(answers.device)
        metrics = graph_metrics(self.model.values(answers).cpu(), wanted.cpu(), self.model.target)
        scaled = self.model.scaled(wanted, answers)
        return metrics, graph_loss(answers, scaled, self.model.target, loss=loss).item()


def _scale_targets(model: GraphModel, targets: Tensor) -> None:
    if model.target != "number":
        return
    rows = targets.reshape(len(targets), -1).double()
    known = ~rows.isnan()
    count = known.sum(0).clamp(min=1)
    mean = torch.where(known, rows, 0).sum(0) / count
    spread = (torch.where(known, rows - mean, 0).square().sum(0) / count).sqrt()
    model.target_mean.copy_(mean)
    model.target_scale.copy_(torch.where(spread > 0, spread, 1))
