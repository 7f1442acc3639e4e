"""``python -m nsimplex.lab.pays TASK``: exit code 0, or 2 with one line for wrong input."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
from collections.abc import Callable
from typing import Any

import torch

from ..._printable import exit_code
from .compared_models import MakeLayer, ModelSpec
from .figure import draw
from .paired_training import EQUAL, Settings, read_lines, run_task
from .registry import TASKS
from .result_tables import table

#: Models that are trained if nothing else is asked for.
MODELS = "1x1,1x2,1x4,1x6,2x1,2x2,1+2x2,3x1"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise ValueError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="nsimplex.lab.pays", description="Compare attention of several orders at equal cost"
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help="tasks by name; --list names them")
    parser.add_argument("--all", action="store_true", help="all tasks")
    parser.add_argument("--list", action="store_true", help="list the tasks and stop")
    parser.add_argument("--out", default="pays.jsonl", help="file of results, which is continued")
    parser.add_argument("--models", default=MODELS, help=f"models as ORDERxDEPTH, .. ({MODELS})")
    parser.add_argument("--layer", default="", metavar="MODULE:NAME", help="your own layer")
    parser.add_argument("--depth", default="1,2", help="numbers of layers of --layer (1,2)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (3)")
    parser.add_argument("--rates", default="0.003,0.01", help="peak rates (0.003,0.01)")
    parser.add_argument("--steps", type=int, default=0, help="steps (0: the task's)")
    parser.add_argument("--batch", type=int, default=0, help="sequences per step (0: the task's)")
    parser.add_argument("--width", type=int, default=32, help="width of the reference model (32)")
    parser.add_argument(
        "--equal", choices=EQUAL, default="flops", help="what all models share (flops)"
    )
    parser.add_argument("--full", action="store_true", help="one comparison per kind of --equal")
    parser.add_argument(
        "--norm", choices=("none", "qk"), default="none", help="norm of queries and keys (none)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=20,
        help="start no run of a task after this time (20); 0: no limit",
    )
    parser.add_argument("--threads", type=int, default=1, help="threads (1); 0: torch's default")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="check that everything runs: 20 steps, one seed, one rate",
    )
    parser.add_argument("--table", action="store_true", help="print the table of --out and stop")
    parser.add_argument("--figure", default="", metavar="SVG", help="draw --out and stop")
    return parser


def _numbers(option: str, text: str, kind: type, least: float) -> tuple:
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(least < value < float("inf") for value in values):
        raise ValueError(f"{option}: expected numbers above {least:g}, got {text!r}")
    return values


def _own_layer(name: str, depths: tuple[int, ...]) -> list[ModelSpec]:
    module, _, attribute = name.partition(":")
    try:
        layer: MakeLayer = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--layer: expected MODULE:NAME, got {name!r} ({error})") from None
    if not callable(layer):
        raise ValueError(f"--layer: expected a class or function, got {name!r}")
    made = [ModelSpec(f"{attribute}x{depth}", (1,), depth, layer=layer) for depth in depths]
    for spec in made:
        try:
            shape = spec.make_layer(32, 2, TASKS["joint-recall"])(torch.zeros(2, 5, 32)).shape
        except Exception as error:
            raise ValueError(
                f"--layer: {name}(32, 2, causal=False, rotary=False) {error}"
            ) from None
        if tuple(shape) != (2, 5, 32):
            raise ValueError(f"--layer: expected an output of [2, 5, 32], got {list(shape)}")
    return made


def run(
    arguments: list[str],
    say: Callable[[str], None],
    result: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Runs the benchmark with these words of a command line.

    Args:
        arguments: the words, as ``python -m nsimplex.lab.pays`` has them.
        say: shows a text to the user.
        result: called with each new line of the file of results.

    Raises:
        ValueError: words that cannot be used.
    """
    given = _parser().parse_args(arguments)
    if given.list:
        for task in TASKS.values():
            say(f"{task.name:20} order {task.order}  {task.reason}")
        return
    if given.table or given.figure:
        lines = read_lines(given.out)
        if not lines:
            raise ValueError(f"--out: expected results, found none in {given.out}")
        if given.table:
            say(table(lines))
        if given.figure:
            draw(lines, given.figure)
        return
    names = list(TASKS) if given.all else given.task
    if not names:
        raise ValueError("TASK: expected the name of a task or --all; --list names the tasks")
    for name in names:
        if name not in TASKS:
            raise ValueError(f"TASK: expected one of {', '.join(TASKS)}, got {name!r}")
    rates = _numbers("--rates", given.rates, float, 0)
    depths = _numbers("--depth", given.depth, int, 0)
    for option in ("seeds", "width"):
        _numbers(f"--{option}", str(getattr(given, option)), int, 0)
    for option in ("steps", "batch", "minutes", "threads"):
        if not 0 <= getattr(given, option) < float("inf"):
            raise ValueError(f"--{option}: expected 0 or more, got {getattr(given, option)}")
    if given.width % 8:
        raise ValueError(f"--width: expected a multiple of 8, got {given.width}")
    models = "1x1,2x1" if given.quick and given.models == MODELS else given.models
    specs = [ModelSpec.parse(name, given.norm) for name in models.split(",")]
    if given.layer:
        specs += _own_layer(given.layer, depths)
    settings = Settings(
        rates=rates,
        seeds=given.seeds,
        dim=given.width,
        equal=given.equal,
        steps=given.steps,
        batch=given.batch,
        minutes=given.minutes,
    )
    if given.quick:
        settings = dataclasses.replace(
            settings, rates=rates[:1], seeds=1, steps=given.steps or 20, held_out=64
        )
    if given.full and given.equal != "flops":
        raise ValueError(f"--equal: expected nothing beside --full, got {given.equal!r}")
    if given.threads:
        torch.set_num_threads(given.threads)
    for name in names:
        missing = TASKS[name].missing()
        if missing:
            say(f"{name}: skipped, {missing}")
            continue
        for equal in EQUAL if given.full else (given.equal,):
            if given.full:
                say(f"{name}: equal {equal}")
            own = dataclasses.replace(settings, equal=equal)
            run_task(TASKS[name], specs, own, given.out, say, result)


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    return exit_code(lambda: run(words, lambda text: print(text, flush=True)))


if __name__ == "__main__":
    sys.exit(main())
