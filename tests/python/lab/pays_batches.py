"""Sequences of the benchmark of orders for its tests."""

from __future__ import annotations

import torch

from nsimplex.lab.pays import TASKS


def drawn(name, count=8, seed=3, split="train"):
    return TASKS[name].draw(count, torch.Generator().manual_seed(seed), split)
