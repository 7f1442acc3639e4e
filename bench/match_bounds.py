"""What a lower order can find of a match task: ``python bench/match_bounds.py``.

Of uniform sequences with balanced labels, the share of positions at which they are right who answer
1 exactly where fewer than r - 1 other positions make a match. lab/match/RESULTS.md uses it.
"""

from __future__ import annotations

import itertools

import torch

SEQUENCES = 20_000
TASKS = [(2, 13, 8), (3, 37, 8), (4, 31, 8), (4, 61, 8), (4, 127, 8)]  # r, M, T


def bound(arity: int, modulus: int, length: int) -> float:
    numbers = torch.randint(
        modulus, (SEQUENCES, length), generator=torch.Generator().manual_seed(1)
    )
    labels = torch.zeros(SEQUENCES, length, dtype=torch.bool)
    found = labels.clone()
    for others in itertools.combinations_with_replacement(range(length), arity - 1):
        matched = (numbers + numbers[:, list(others)].sum(1, keepdim=True)) % modulus == 0
        labels |= matched
        for i in range(length):
            if len(set(others) - {i}) < arity - 1:
                found[:, i] |= matched[:, i]
    balanced = labels.sum(1) == length // 2
    return (labels == found)[balanced].float().mean().item()


def main() -> None:
    for arity, modulus, length in TASKS:
        print(f"match{arity}  M {modulus:3}  T {length}  {bound(arity, modulus, length):.3f}")


if __name__ == "__main__":
    main()
