"""Do layers with smaller Lipschitz constants resist adversarial inputs better?

    python -m nsimplex.lab.adversarial --out results.jsonl
    python -m nsimplex.lab.adversarial --table --out results.jsonl

"How Smoothing is N-simplicial Attention?" remarks below Theorem 3.7 that the constant of attention
of order N >= 2 on a ball of radius R vanishes with R, that of order 1 does not, and that this can
help against adversarial inputs. Here both orders are trained on inputs of radius R until they solve
a task. Then each sequence is attacked, and the attack is compared with the constants.

Task: of T tokens one is marked. A token is the sum of one of K orthonormal prototypes, of the mark
for one token, and of noise; its norm is 1. The class is the prototype of the marked token.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .. import analysis
from .._printable import exit_code
from .._whole_file import require_place
from ..nn import SimplicialAttention
from .pays.result_tables import shown

__all__ = ["Settings", "attack", "distances", "draw", "main", "measure", "table", "train"]

_TOKENS, _DIM, _CLASSES, _HEADS = 8, 16, 4, 2
_NOISE = 0.05  # standard deviation per channel, of tokens whose parts have norm 1


@dataclass(frozen=True)
class Settings:
    """What is trained and measured."""

    orders: tuple[int, ...] = (1, 2)
    radii: tuple[float, ...] = (4.0, 1.0, 0.25, 0.0625)
    seeds: int = 5
    steps: int = 4000  #: at most; training ends when 2048 validation sequences reach ``level``
    level: float = 0.995
    batch: int = 128
    rate: float = 0.003
    attacked: int = 128  #: test sequences
    attack_steps: int = 25


class Network(nn.Module):
    """x -> R x -> attention -> mean over tokens -> classes. Without normalisation or shortcut, so
    that the constant of the layer is that of the network up to the last matrix."""

    def __init__(self, order: int, radius: float) -> None:
        super().__init__()
        self.radius = radius
        self.attention = SimplicialAttention(_DIM, _HEADS, order=order)
        self.head = nn.Linear(_DIM, _CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.attention(self.radius * tokens).mean(1))


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(tokens [count, T, C] of norm 1, classes [count])."""
    kinds = torch.randint(_CLASSES, (count, _TOKENS), generator=generator)
    marked = torch.randint(_TOKENS, (count,), generator=generator)
    tokens = functional.one_hot(kinds, _DIM).float()
    tokens[torch.arange(count), marked, _CLASSES] = 1.0
    tokens = tokens + _NOISE * torch.randn(tokens.shape, generator=generator)
    return functional.normalize(tokens, dim=-1), kinds[torch.arange(count), marked]


def accuracy(network: nn.Module, tokens: Tensor, classes: Tensor) -> float:
    with torch.no_grad():
        return float((network(tokens).argmax(-1) == classes).float().mean())


def train(order: int, radius: float, seed: int, settings: Settings) -> tuple[Network, int, float]:
    """(the network, its number of steps, its validation accuracy)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Network(order, radius)
    held_out = draw(2048, torch.Generator().manual_seed(10_000 + seed))
    optimizer = torch.optim.Adam(network.parameters(), settings.rate)
    step, reached = 0, 0.0
    while step < settings.steps and reached < settings.level:
        for _ in range(50):
            tokens, classes = draw(settings.batch, generator)
            loss = functional.cross_entropy(network(tokens), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        step += 50
        reached = accuracy(network, *held_out)
    return network.eval().requires_grad_(False), step, reached


def attack(
    network: Callable[[Tensor], Tensor], tokens: Tensor, classes: Tensor, sizes: Tensor, steps: int
) -> Tensor:
    r"""Projected gradient ascent of the margin of the best wrong class, in the ball of Frobenius
    norm ``sizes[i]`` around sequence i. Steps have length 2.5 size / steps.

    Returns:
        bool [count]: whether a point that was visited has another class.
    """
    change, most = torch.zeros_like(tokens), sizes[:, None, None]
    fooled = network(tokens).argmax(-1) != classes
    own = functional.one_hot(classes, _CLASSES).bool()
    for _ in range(steps):
        change.requires_grad_(True)
        logits = network(tokens + change)
        margin = logits.masked_fill(own, -math.inf).amax(-1) - logits[own]
        (slope,) = torch.autograd.grad(margin.sum(), change)
        length = slope.flatten(1).norm(dim=1).clamp_min(1e-30)[:, None, None]
        change = change.detach() + 2.5 * most / steps * slope / length
        norm = change.flatten(1).norm(dim=1)[:, None, None]
        change = change * (most / torch.maximum(norm, most))
        with torch.no_grad():
            fooled |= network(tokens + change).argmax(-1) != classes
    return fooled


def distances(
    network: Callable[[Tensor], Tensor], tokens: Tensor, classes: Tensor, steps: int
) -> Tensor:
    """float [count]: the size of a ball in which the attack succeeds, by nine bisections of its
    logarithm between 2^-8 and 1 times the norm of the sequence: to 1.1 %. Infinity if the largest
    ball has no such point, 0 if the class is wrong without an attack."""
    norm = tokens.flatten(1).norm(dim=1)
    found = torch.where(attack(network, tokens, classes, norm, steps), norm, math.inf)
    low, high = torch.full_like(norm, -8.0), torch.zeros_like(norm)
    for _ in range(9):
        middle = (low + high) / 2
        sizes = norm * 2.0**middle
        hit = attack(network, tokens, classes, sizes, steps)
        found = torch.where(hit, torch.minimum(found, sizes), found)
        low, high = torch.where(hit, low, middle), torch.where(hit, middle, high)
    found[network(tokens).argmax(-1) != classes] = 0.0
    return found


def measure(order: int, radius: float, seed: int, settings: Settings) -> dict[str, Any]:
    """Trains a network and compares its constants with an attack: a line of results."""
    network, steps, reached = train(order, radius, seed, settings)
    tokens, classes = draw(settings.attacked, torch.Generator().manual_seed(20_000 + seed))
    layer = analysis.report(network, tokens, steps=30).layers[0]
    # A mean over T tokens has norm T^-1/2, and a difference of two logits 2^1/2 of their vector.
    norm = math.sqrt(_TOKENS)  # of a sequence
    last = float(torch.linalg.matrix_norm(network.head.weight, 2)) / norm
    logits = network(tokens)
    others = logits.masked_fill(functional.one_hot(classes, _CLASSES).bool(), -math.inf)
    margins = (logits.gather(1, classes[:, None]).squeeze(1) - others.amax(-1)).clamp_min(0)
    found = distances(network, tokens, classes, settings.attack_steps)
    if layer.lipschitz_bound is None or layer.jacobian is None:
        raise RuntimeError("[adversarial] no bound covers the layer")
    certified = margins / (math.sqrt(2) * radius * layer.lipschitz_bound * last)
    return dict(
        kind="run",
        order=order,
        radius=radius,
        seed=seed,
        steps=steps,
        valid=reached,
        accuracy=accuracy(network, tokens, classes),
        layer_bound=layer.lipschitz_bound,
        layer_jacobian=layer.jacobian,
        last=last,
        network_jacobian=float(
            analysis.jacobian_norm(network, tokens, analysis.Ascent(steps=30)).value.median()
        ),
        margin=float(margins.median()),
        certified=float(certified.median()) / norm,
        distance=float(found.median()) / norm,
        robust={str(part): float((found > part * norm).float().mean()) for part in (0.1, 0.2)},
        attacked=len(tokens),
        too_near=int((found < certified).sum()),
    )


def _rank_correlation(first: list[float], second: list[float]) -> float:
    def ranks(values: list[float]) -> Tensor:
        own = torch.tensor(values, dtype=torch.float64)
        less, same = own[:, None] > own, own[:, None] == own
        return less.sum(1) + (same.sum(1) - 1) / 2

    return float(torch.corrcoef(torch.stack([ranks(first), ranks(second)]))[0, 1])


def table(lines: Iterable[dict[str, Any]]) -> str:
    """The results as a table of Markdown, and the rank correlations. Values are means over seeds;
    the distance has its 95 % interval by Student's t."""
    runs = [line for line in lines if line.get("kind") == "run"]
    groups: dict[tuple[int, float], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["order"], run["radius"]), []).append(run)

    def mean(numbers: list[float]) -> float:
        return sum(numbers) / len(numbers)

    head = (
        "order|R|seeds|steps|accuracy|bound of the layer|measured|measured, network|"
        "margin|certified|distance|right at 10 %|right at 20 %"
    ).split("|")
    text = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    for (order, radius), rows in sorted(groups.items(), key=lambda own: (own[0][0], -own[0][1])):
        cells = [
            str(order),
            f"{radius:g}",
            str(len(rows)),
            f"{mean([row['steps'] for row in rows]):.0f}",
        ]
        cells.append(f"{mean([row['accuracy'] for row in rows]):.3f}")
        for name in ("layer_bound", "layer_jacobian", "network_jacobian", "margin", "certified"):
            cells.append(f"{mean([row[name] for row in rows]):.3g}")
        cells.append(shown([row["distance"] for row in rows]))
        for part in ("0.1", "0.2"):
            cells.append(f"{mean([row['robust'][part] for row in rows]):.3f}")
        text.append("| " + " | ".join(cells) + " |")
    text += ["", "| rank correlation with the distance | all runs | order 1 | order 2 |"]
    text.append("| --- | --- | --- | --- |")
    for name, title in (
        ("layer_bound", "bound of the layer"),
        ("layer_jacobian", "measured constant of the layer"),
        ("network_jacobian", "measured constant of the network"),
        ("certified", "certified distance"),
    ):
        cells = [title]
        for own in (runs, *([r for r in runs if r["order"] == n] for n in (1, 2))):
            if len(own) < 3:
                cells.append("-")
                continue
            made = _rank_correlation([r[name] for r in own], [r["distance"] for r in own])
            cells.append("-" if math.isnan(made) else f"{made:+.2f}")
        text.append("| " + " | ".join(cells) + " |")
    near, count = sum(run["too_near"] for run in runs), sum(run["attacked"] for run in runs)
    said = "Attacked sequences that change their class within the certified distance"
    text += ["", f"{said}: {near} of {count}."]
    return "\n".join(text)


def _read(path: str) -> list[dict[str, Any]]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _run(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="nsimplex.lab.adversarial",
        description="Train small networks and attack them, for several orders and sizes of inputs",
    )
    parser.add_argument(
        "--out", default="adversarial.jsonl", help="file of results, which is continued"
    )
    parser.add_argument(
        "--seeds", type=int, default=Settings.seeds, help="number of seeds, counted up from 1 [5]"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="check that everything runs: 100 steps, one seed, 16 sequences",
    )
    parser.add_argument("--table", action="store_true", help="print the table of --out and stop")
    given = parser.parse_args(arguments)
    lines = _read(given.out)
    if given.table:
        if not lines:
            raise ValueError(f"--out: expected results, found none in {given.out}")
        print(table(lines))
        return
    if given.seeds < 1:
        raise ValueError(f"--seeds: expected at least 1, got {given.seeds}")
    settings = Settings(seeds=given.seeds)
    if given.quick:
        settings = Settings(steps=100, seeds=1, attacked=16, attack_steps=5, radii=(2.0,))
    require_place(given.out)
    torch.set_num_threads(1)
    done = {(line["order"], line["radius"], line["seed"]) for line in lines}
    for seed in range(1, settings.seeds + 1):
        for radius in settings.radii:
            for order in settings.orders:
                if (order, radius, seed) in done:
                    continue
                line = json.dumps(measure(order, radius, seed, settings))
                with open(given.out, "a", encoding="utf-8") as file:
                    file.write(line + "\n")
                print(line, flush=True)


def main(arguments: list[str] | None = None) -> int:
    return exit_code(lambda: _run(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
