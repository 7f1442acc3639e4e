"""Training the models of a task side by side, and the lines that are written about it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._whole_file import require_place
from .compared_models import ModelSpec, Network, Size, cost, fit_size
from .speed import ROUNDS, by_turns, ratios
from .task import Batch, Task, score

__all__ = ["EQUAL", "Settings", "read_lines", "run_task"]

#: What can be equal in the models of a comparison.
EQUAL = ("flops", "parameters", "seconds")

#: Splits that are drawn once and are the same for all models and seeds.
HELD_OUT = {"valid": 1, "test": 2, "long": 3}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How the models of a task are trained.

    Args:
        rates: peak rates of AdamW. The first seed tries each, and the one with the best score on
            the split "valid" is taken for the other seeds.
        seeds: number of seeds. A seed gives all models the same training sequences.
        dim: width of the reference model, one layer of order 2, whose cost all models have.
        equal: "flops", "parameters" or "seconds": what is equal. Equal seconds have the widths of
            equal flops, and as many steps as take the seconds of the reference.
        steps, batch: 0: as the task says. With equal seconds these are the steps of the reference.
        held_out: sequences of each split that scores are computed on.
        minutes: after this time no further run of a task starts; 0: no limit.
    """

    rates: tuple[float, ...] = (0.003, 0.01)
    seeds: int = 3
    dim: int = 32
    equal: str = "flops"
    steps: int = 0
    batch: int = 0
    held_out: int = 256
    minutes: float = 20.0


def read_lines(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The whole lines of a file of results; a last line that was cut off is left out.

    Raises:
        ValueError: a line that is no JSON object, by its number.
    """
    if not Path(path).exists():
        return []
    found = []
    text = Path(path).read_text(encoding="utf-8")
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"{path}: line {number}: expected a JSON object")
        found.append(value)
    return found


def append_line(path: str | os.PathLike[str], line: dict[str, Any]) -> None:
    """Adds a line. What an interrupted run left of its last line is removed first."""
    with open(path, "ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        if whole < end:
            file.truncate(whole)
        file.write((json.dumps(line) + "\n").encode())


def _key(line: dict[str, Any]) -> str:
    names = (
        "task",
        "model",
        "norm",
        "equal",
        "reference",
        "rate",
        "seed",
        "steps",
        "batch",
        "held_out",
    )
    return json.dumps([line.get(name) for name in names])


def loss_of(task: Task, outputs: Tensor, batch: Batch) -> Tensor:
    if task.classes:
        return F.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), ignore_index=-1)
    known = ~batch.targets.isnan()
    return F.mse_loss(outputs.squeeze(-1)[known], batch.targets[known])


def _score(network: Network, task: Task, batch: Batch) -> float:
    network.eval()
    with torch.no_grad():
        parts = range(0, batch.fields.shape[0], 128)
        outputs = [network(_rows(batch, slice(first, first + 128))) for first in parts]
    network.train()
    return score(task, torch.cat(outputs), batch.targets)


def _rows(batch: Batch, rows: slice) -> Batch:
    numbers = None if batch.numbers is None else batch.numbers[rows]
    return Batch(batch.fields[rows], numbers, batch.targets[rows])


class Training:
    """A model, its optimiser and its training sequences; ``step`` takes one step."""

    def __init__(
        self,
        task: Task,
        spec: ModelSpec,
        size: Size,
        rate: float,
        seed: int,
        steps: int,
        batch: int,
    ) -> None:
        torch.manual_seed(seed)
        self.task, self.steps, self.batch = task, steps, batch
        self.network = Network(task, spec, size.dim, size.heads, size.hidden)
        self._optimizer = torch.optim.AdamW(
            self.network.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.01
        )
        warmup = max(1, steps // 20)

        def decay(step: int) -> float:
            """A linear start, then half a cosine to 0."""
            done = (step - warmup) / max(1, steps - warmup)
            return (step + 1) / warmup if step < warmup else 0.5 + 0.5 * math.cos(math.pi * done)

        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, decay)
        self._generator = torch.Generator().manual_seed(1000 + seed)

    def step(self) -> None:
        drawn = self.task.draw(self.batch, self._generator, "train")
        loss = loss_of(self.task, self.network(drawn), drawn)
        auxiliary = self.network.auxiliary_loss()
        (loss if auxiliary is None else loss + auxiliary).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self._optimizer.step()
        self._schedule.step()
        self._optimizer.zero_grad()


def train(training: Training, held_out: dict[str, Batch]) -> dict[str, Any]:
    """Takes all steps of a training; returns its scores, its curve and its times."""
    task, steps = training.task, training.steps
    curve, seconds = [], 0.0
    level: tuple[int, float] | None = None
    every = max(1, steps // 10)
    started = time.perf_counter()
    for step in range(1, steps + 1):
        training.step()
        if step % every == 0 or step == steps:
            seconds += time.perf_counter() - started
            reached = _score(training.network, task, held_out["valid"])
            curve.append([step, round(seconds, 2), round(reached, 4)])
            if level is None and reached >= task.level:
                level = (step, round(seconds, 2))
            started = time.perf_counter()
    scores = {split: _score(training.network, task, rows) for split, rows in held_out.items()}
    return dict(
        valid=round(scores["valid"], 5),
        score=round(scores["test"], 5),
        long=round(scores["long"], 5) if "long" in scores else None,
        level_step=level[0] if level else None,
        level_seconds=level[1] if level else None,
        seconds=round(seconds, 2),
        curve=curve,
    )


def machine() -> str:
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def _speeds(
    task: Task,
    plans: Sequence[tuple[ModelSpec, Size]],
    batch: int,
    about: dict[str, Any],
    done: Sequence[dict[str, Any]],
    keep: Callable[[dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """A line of the kind "speed" per model: how long a step of it takes, relative to the reference.

    Models whose line ``done`` has are not measured again, so that a run that is continued has the
    steps that it began with.

    Raises:
        ValueError: the lines are of another processor, torch or number of threads.
    """
    shared = ("task", "reference", "batch")
    known = [
        line
        for line in done
        if line.get("kind") == "speed" and all(line.get(name) == about[name] for name in shared)
    ]
    for line in known:
        for name in ("machine", "torch", "threads"):
            if line.get(name) != about[name]:
                raise ValueError(
                    f"--equal seconds: --out has seconds of {name} {line.get(name)!r}, expected "
                    f"{about[name]!r}; name another --out"
                )
    found = {_key(line): line for line in known}
    reference = ModelSpec.parse("2x1")
    lines = {
        spec: about | _named(spec, own) | dict(kind="speed", steps=None, rate=None, seed=None)
        for spec, own in plans
    }
    new = {spec: line for spec, line in lines.items() if _key(line) not in found}
    if new:
        sizes = {reference: cost(task, reference, about["reference"], 4 * about["reference"])}
        sizes |= {spec: own for spec, own in plans if spec in new and spec != reference}
        runs = [Training(task, spec, own, 1e-4, 1, 1000, batch) for spec, own in sizes.items()]
        times = by_turns([run.step for run in runs])
        seconds = {spec: statistics.median(own) for spec, own in zip(sizes, times)}
        relative = dict(zip(sizes, ratios(times)))
        for spec, line in new.items():
            line |= dict(
                step_seconds=round(seconds[spec], 6),
                reference_seconds=round(seconds[reference], 6),
                step_ratio=round(relative[spec], 4),
                rounds=ROUNDS,
            )
            keep(line)
    return [found.get(_key(lines[spec]), lines[spec]) for spec, _ in plans]


def _named(spec: ModelSpec, size: Size) -> dict[str, Any]:
    return dict(model=spec.name, depth=spec.depth, norm=spec.norm, **dataclasses.asdict(size))


def run_task(
    task: Task,
    specs: Sequence[ModelSpec],
    settings: Settings,
    out: str | os.PathLike[str],
    say: Callable[[str], None] = print,
    result: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Trains every model of a task with every seed and appends a line per run to ``out``.

    ``say`` shows a text after each run, and ``result`` is called with each new line.

    Runs that ``out`` has are not repeated. A model that the flops cannot pay, even at a quarter of
    the steps, gets a line of the kind "skipped".

    Raises:
        ValueError: ``out`` holds something else.
        OSError: it cannot be written.
    """
    require_place(out)
    done = {_key(line): line for line in read_lines(out)}
    steps, batch = settings.steps or task.steps, settings.batch or task.batch
    reference = cost(task, ModelSpec.parse("2x1"), settings.dim, 4 * settings.dim)
    generator = torch.Generator()
    held_out = {}
    for split, number in HELD_OUT.items():
        if split != "long" or task.longer:
            count = min(settings.held_out, 128) if split == "valid" else settings.held_out
            held_out[split] = task.draw(count, generator.manual_seed(number), split)
    about = dict(
        task=task.name,
        metric=task.metric,
        equal=settings.equal,
        reference=settings.dim,
        batch=batch,
        held_out=settings.held_out,
        machine=machine(),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
    )
    started = time.perf_counter()

    def keep(line: dict[str, Any]) -> None:
        append_line(out, line)
        if result is not None:
            result(line)

    counted = "parameters" if settings.equal == "parameters" else "flops"
    sizes = [fit_size(task, spec, getattr(reference, counted), counted) for spec in specs]
    speeds: list[dict[str, Any]] = [{} for _ in specs]
    if settings.equal == "seconds":
        speeds = _speeds(task, list(zip(specs, sizes)), batch, about, list(done.values()), keep)
    for spec, size, speed in zip(specs, sizes, speeds):
        own_steps = steps
        if speed:
            own_steps = max(1, round(steps / speed["step_ratio"]))
        elif settings.equal == "flops" and size.flops > 1.005 * reference.flops:
            own_steps = int(steps * 1.005 * reference.flops / size.flops)
        model = about | _named(spec, size)
        model |= {name: speed[name] for name in ("step_ratio", "step_seconds") if speed}
        if own_steps < steps / 4:
            line = model | dict(kind="skipped", steps=own_steps, rate=None, seed=None)
            if _key(line) not in done:
                keep(line)
            say(
                f"{task.name} {spec.name}: skipped, equal {settings.equal} leave {own_steps} of "
                f"{steps} steps"
            )
            continue

        def run(rate: float, seed: int, model=model, own_steps=own_steps, spec=spec, size=size):
            line = model | dict(kind="run", steps=own_steps, rate=rate, seed=seed)
            if _key(line) in done:
                return done[_key(line)]
            if settings.minutes and time.perf_counter() - started > 60 * settings.minutes:
                return None
            line |= train(Training(task, spec, size, rate, seed, own_steps, batch), held_out)
            keep(line)
            say(
                f"{task.name} {spec.name} rate {rate} seed {seed}: "
                f"{task.metric} {line['score']:.4f} in {line['seconds']:.0f} s"
            )
            return line

        first = [line for rate in settings.rates if (line := run(rate, 1)) is not None]
        if len(first) < len(settings.rates):
            say(f"{task.name} {spec.name}: not run, {settings.minutes:g} minutes are over")
            continue
        best = float(max(first, key=lambda line: line["valid"])["rate"])
        for seed in range(2, settings.seeds + 1):
            run(best, seed)
