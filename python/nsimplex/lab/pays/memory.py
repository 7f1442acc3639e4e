"""Tasks of recall from a set of tokens, and two controls."""

from __future__ import annotations

import torch
from torch import Tensor

from .task import Batch, Task

__all__ = ["TASKS", "choose", "labels"]


def choose(count: int, most: int, size: int, generator: torch.Generator) -> Tensor:
    """int64 [count, size]: different numbers below ``most`` per row, in random order."""
    return torch.rand(count, most, generator=generator).argsort(1)[:, :size]


def labels(count: int, most: int, size: int, generator: torch.Generator) -> Tensor:
    """int64 [count, size]: numbers below ``most``, which may repeat."""
    return torch.randint(most, (count, size), generator=generator)


_KEYS, _SLOTS, _VALUES, _QUERIES = 2, 6, 6, 4


def _joint_recall(count: int, generator: torch.Generator, split: str) -> Batch:
    stored = _KEYS * _KEYS
    pairs = choose(count, stored, stored, generator)
    first, second = pairs // _KEYS, pairs % _KEYS
    slots = choose(count, _SLOTS, stored, generator)
    values = labels(count, _VALUES, stored, generator)
    asked = choose(count, stored, _QUERIES, generator)
    fields = torch.zeros(count, 2 * stored + _QUERIES, 5, dtype=torch.int64)
    # Code 0 of a field means that the token does not have it.
    left, right, query = fields.split([stored, stored, _QUERIES], 1)
    left[..., 1], left[..., 3] = first + 1, slots + 1
    right[..., 0], right[..., 2], right[..., 3] = 1, second + 1, slots + 1
    right[..., 4] = values + 1
    query[..., 0], query[..., 1] = 2, first.gather(1, asked) + 1
    query[..., 2] = second.gather(1, asked) + 1
    targets = torch.full(fields.shape[:2], -1)
    targets[:, 2 * stored :] = values.gather(1, asked)
    return Batch(fields, None, targets)


def _single_key_recall(count: int, generator: torch.Generator, split: str) -> Batch:
    stored = 12 if split == "long" else 8
    keys = choose(count, 16, stored, generator)
    values = labels(count, _VALUES, stored, generator)
    asked = choose(count, stored, _QUERIES, generator)
    fields = torch.zeros(count, stored + _QUERIES, 3, dtype=torch.int64)
    fields[:, :stored, 1], fields[:, :stored, 2] = keys + 1, values + 1
    fields[:, stored:, 0], fields[:, stored:, 1] = 1, keys.gather(1, asked) + 1
    targets = torch.full(fields.shape[:2], -1)
    targets[:, stored:] = values.gather(1, asked)
    return Batch(fields, None, targets)


def _copy(count: int, generator: torch.Generator, split: str) -> Batch:
    size = 12 if split == "long" else 8
    tokens = labels(count, _VALUES, size, generator)
    fields = torch.cat([tokens, torch.full_like(tokens, _VALUES)], 1).unsqueeze(-1)
    return Batch(fields, None, torch.cat([torch.full_like(tokens, -1), tokens], 1))


def _bag(count: int, generator: torch.Generator, split: str) -> Batch:
    size = 23 if split == "long" else 15
    tokens = labels(count, 6, size, generator)
    counts = torch.nn.functional.one_hot(tokens, 6).sum(1)
    # Where two tokens are equally frequent, the one of the lower code counts.
    most = (counts * 8 - torch.arange(6)).argmax(1)
    fields = torch.cat([torch.full((count, 1), 6), tokens], 1).unsqueeze(-1)
    targets = torch.full((count, size + 1), -1)
    targets[:, 0] = most
    return Batch(fields, None, targets)


TASKS = (
    Task(
        name="joint-recall",
        reason="A value is stored under a pair of keys. One token of a slot holds the first key, "
        "another holds the second key and the value, and each key alone occurs in several slots. "
        "The answer depends on two tokens that agree on a slot, so one layer of order 2 can find "
        "the pair. Order 1 needs a layer that brings the keys of a slot together, and one more.",
        order=2,
        fields=(3, _KEYS + 1, _KEYS + 1, _SLOTS + 1, _VALUES + 1),
        classes=_VALUES,
        draw=_joint_recall,
        steps=600,
    ),
    Task(
        name="single-key-recall",
        reason="Control. A token holds a key and its value, and every key is unique. The answer "
        "depends on the query and one token, which one layer of order 1 can find.",
        order=1,
        fields=(2, 17, _VALUES + 1),
        classes=_VALUES,
        draw=_single_key_recall,
        longer="12 keys in place of 8",
    ),
    Task(
        name="copy",
        reason="Control. The second half of the sequence asks for the tokens of the first half. "
        "Each answer is one token at a fixed distance.",
        order=1,
        fields=(_VALUES + 1,),
        classes=_VALUES,
        draw=_copy,
        ordered=True,
        causal=True,
        longer="12 tokens in place of 8",
    ),
    Task(
        name="bag-of-tokens",
        reason="Control. The target is the most frequent token. Counts are a mean over single "
        "tokens, so no pair matters.",
        order=1,
        fields=(7,),
        classes=6,
        draw=_bag,
        longer="23 tokens in place of 15",
    ),
)
