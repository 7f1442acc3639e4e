"""Tasks on sums of numbers modulo M."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from .memory import labels
from .task import Batch, Task

__all__ = ["TASKS"]


def _places(length: int, size: int) -> Tensor:
    """int64 [count, size]: every choice of ``size`` places in rising order."""
    return torch.tensor(list(itertools.combinations(range(length), size)))


def _three_sums(count: int, generator: torch.Generator, split: str) -> Batch:
    modulus, length = 17, 10 if split == "long" else 7
    x = labels(count, modulus, length, generator)
    targets = torch.zeros_like(x)
    pairs = _places(length, 2)
    sums = (x[:, pairs[:, 0]] + x[:, pairs[:, 1]]) % modulus
    for place in range(length):
        others = (pairs != place).all(1)
        targets[:, place] = ((sums[:, others] + x[:, place, None]) % modulus == 0).any(1)
    return Batch(x.unsqueeze(-1), None, targets)


def _two_sums(count: int, generator: torch.Generator, split: str) -> Batch:
    modulus, length = 31, 8 if split == "long" else 6
    x = labels(count, modulus, length, generator)
    targets = torch.zeros_like(x)
    for place in range(length):
        found = torch.zeros(count, dtype=torch.bool)
        others = [other for other in range(length) if other != place]
        for partner in others:
            rest = [other for other in others if other != partner]
            for a, b in itertools.combinations(rest, 2):
                found |= (x[:, place] + x[:, partner] - x[:, a] - x[:, b]) % modulus == 0
        targets[:, place] = found
    return Batch(x.unsqueeze(-1), None, targets)


TASKS = (
    Task(
        name="three-sums",
        reason="Seven numbers modulo 17. A position asks whether two other positions add with it "
        "to 0. This is a condition on three tokens, with the number as a symbol.",
        order=2,
        fields=(17,),
        classes=2,
        draw=_three_sums,
        longer="10 numbers in place of 7",
        batch=64,
    ),
    Task(
        name="two-sums",
        reason="Six numbers modulo 31. A position asks whether it and a second one have the sum "
        "of two others. This is a condition on four tokens, for which theory asks for order 3.",
        order=3,
        fields=(31,),
        classes=2,
        draw=_two_sums,
        longer="8 numbers in place of 6",
        batch=64,
    ),
)
