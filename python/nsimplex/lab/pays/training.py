"""Training the models of a task side by side, and the lines that are written about it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .models import ModelSpec, Network, Size, cost, fit_size
from .task import Batch, Task, score

__all__ = ["Settings", "read_lines", "run_task"]

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
        equal: "flops" or "parameters": what is equal.
        steps, batch: 0: as the task says.
        held_out: sequences of each split that scores are computed on.
        minutes: no further run of a task starts after so many minutes; 0: no limit.
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


def train(
    task: Task,
    spec: ModelSpec,
    size: Size,
    rate: float,
    seed: int,
    steps: int,
    batch: int,
    held_out: dict[str, Batch],
) -> dict[str, Any]:
    """Trains one model; returns its scores, its curve and its times."""
    torch.manual_seed(seed)
    network = Network(task, spec, size.dim, size.heads, size.hidden)
    optimizer = torch.optim.AdamW(network.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.01)
    warmup = max(1, steps // 20)

    def decay(step: int) -> float:
        """A linear start, then half a cosine to 0."""
        done = (step - warmup) / max(1, steps - warmup)
        return (step + 1) / warmup if step < warmup else 0.5 + 0.5 * math.cos(math.pi * done)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, decay)
    generator = torch.Generator().manual_seed(1000 + seed)
    curve, seconds = [], 0.0
    level: tuple[int, float] | None = None
    every = max(1, steps // 10)
    started = time.perf_counter()
    for step in range(1, steps + 1):
        drawn = task.draw(batch, generator, "train")
        loss = loss_of(task, network(drawn), drawn)
        auxiliary = network.auxiliary_loss()
        (loss if auxiliary is None else loss + auxiliary).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % every == 0 or step == steps:
            seconds += time.perf_counter() - started
            reached = _score(network, task, held_out["valid"])
            curve.append([step, round(seconds, 2), round(reached, 4)])
            if level is None and reached >= task.level:
                level = (step, round(seconds, 2))
            started = time.perf_counter()
    scores = {split: _score(network, task, rows) for split, rows in held_out.items()}
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
    """
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

    for spec in specs:
        size = fit_size(task, spec, getattr(reference, settings.equal), settings.equal)
        share = min(1.0, 1.005 * reference.flops / size.flops)
        own_steps = steps if share >= 1 or settings.equal != "flops" else int(steps * share)
        model = about | dict(
            model=spec.name, depth=spec.depth, norm=spec.norm, **dataclasses.asdict(size)
        )
        if own_steps < steps / 4:
            line = model | dict(kind="skipped", steps=own_steps, rate=None, seed=None)
            if _key(line) not in done:
                keep(line)
            say(f"{task.name} {spec.name}: skipped, equal flops leave {own_steps} of {steps} steps")
            continue

        def run(rate: float, seed: int, model=model, own_steps=own_steps, spec=spec, size=size):
            line = model | dict(kind="run", steps=own_steps, rate=rate, seed=seed)
            if _key(line) in done:
                return done[_key(line)]
            if settings.minutes and time.perf_counter() - started > 60 * settings.minutes:
                return None
            line |= train(task, spec, size, rate, seed, own_steps, batch, held_out)
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
