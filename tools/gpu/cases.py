"""The problems of the correctness check, by name; each is built when it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from problems import Problem, random_problem
from setups import Setup

ALL = -1  # unbounded

#: name: (batch, query heads, key heads, queries, lengths, D, Dv, window per axis, causal)
PLAIN = {
    "two axes, grouped heads": (1, 4, 1, 40, (40, 40), 16, 16, (8, 20), True),
    "two axes, one head each": (2, 2, 2, 33, (33, 33), 16, 16, (5, 13), True),
    "six heads, D 24, Dv 8": (1, 6, 1, 21, (21, 21), 24, 8, (7, 16), True),
    "long axis first": (1, 2, 1, 30, (30, 30), 16, 16, (19, 4), True),
    "one position": (2, 2, 1, 1, (1, 1), 16, 16, (8, 8), True),
    "windows of one key": (1, 2, 2, 19, (19, 19), 16, 16, (1, 1), True),
    "windows beyond the sequence": (1, 3, 1, 17, (17, 17), 16, 16, (64, 512), True),
    "causal without windows": (1, 2, 1, 18, (18, 18), 16, 16, None, True),
    "no mask, other lengths": (1, 4, 2, 11, (7, 23), 16, 32, None, False),
    "one query": (1, 4, 1, 1, (37, 50), 16, 16, (9, 33), True),
    "queries without keys": (1, 2, 1, 24, (15, 10), 16, 16, (6, 8), True),
    "two-sided windows": (1, 2, 1, 26, (26, 26), 16, 16, ((4, 3), (9, 5)), False),
    "windows in the future": (1, 2, 1, 20, (20, 20), 16, 16, ((ALL, ALL), (1, 6)), False),
    "a leading window of 24": (1, 2, 1, 40, (40, 40), 16, 16, (24, 32), True),
    "twelve heads in a group": (1, 12, 1, 14, (14, 14), 16, 16, (8, 10), True),
    "order 1": (2, 4, 2, 45, (45,), 16, 16, None, True),
    "order 1, two-sided": (1, 3, 3, 20, (31,), 32, 16, ((9, 2),), False),
    "order 3": (1, 4, 2, 22, (22, 22, 22), 16, 16, (3, 4, 9), True),
    "order 3, other lengths": (1, 2, 1, 12, (9, 12, 14), 16, 16, (5, ALL, (6, 2)), False),
    "order 4": (1, 2, 1, 9, (9, 9, 9, 9), 16, 16, (2, 2, 3, 4), True),
    "D 80, Dv 72": (1, 4, 2, 50, (50, 50), 80, 72, (6, 30), True),
    "D 256": (1, 2, 1, 40, (40, 40), 256, 256, (8, 32), True),
}

#: The same, longer; at the sizes of training.
LARGE = {
    "2048, 32 x 512": (1, 8, 1, 2048, (2048, 2048), 128, 128, (32, 512), True),
    "2048, 32 x 512, D 64": (1, 4, 4, 2048, (2048, 2048), 64, 64, (32, 512), True),
    "2047, two-sided": (1, 8, 2, 2047, (2047, 2047), 64, 64, ((20, 9), (200, 60)), False),
    "2048, order 3": (1, 4, 1, 2048, (2048, 2048, 2048), 64, 64, (8, 8, 64), True),
    "2048, order 1": (1, 8, 2, 2048, (2048,), 128, 128, None, True),
    "long keys, few queries": (1, 8, 1, 3, (2048, 2048), 128, 128, (64, 1500), True),
    "one query, 32 x 512": (2, 8, 1, 1, (2048, 2048), 128, 128, (32, 512), True),
    "160 without windows": (1, 2, 1, 160, (160, 160), 64, 64, None, True),
}


def plain(row, factor: float = 1.0, heads_inside: bool = True) -> Problem:
    batch, heads, kv_heads, queries, lengths, dim, value_dim, window, causal = row
    problem = random_problem(
        len(lengths),
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        queries=queries,
        lengths=list(lengths),
        dim=dim,
        value_dim=value_dim,
        causal=causal,
        scale=(dim**-0.5, 1.25),
    )
    if window is not None:
        problem.options["window"] = list(window)
    problem.inputs[0] = problem.inputs[0] * factor
    if heads_inside:  # [B, T, heads, D] in memory, as projections leave them
        problem.inputs = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in problem.inputs]
    return problem


def of_sizes(queries: int, dim: int, *, lengths=None, order: int = 2, **options) -> Problem:
    problem = random_problem(
        order,
        batch=2,
        heads=4,
        kv_heads=2,
        queries=queries,
        lengths=lengths or [queries] * order,
        dim=dim,
    )
    problem.learned = options.pop("learned", {})
    problem.options = options
    return problem


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


def large_options(t: int) -> dict[str, Callable[[], Problem]]:
    """Every option on t positions, in several tiles of keys."""
    some = lambda *shape: draw(*shape) > -0.6
    positions = torch.arange(t).repeat(2, 1) + torch.tensor([[0], [5]])
    windows = dict(causal=True, window=[16, 96])
    build = lambda dim=64, **options: partial(of_sizes, t, dim, **options)
    return {
        "key lengths": build(**windows, key_lengths=torch.tensor([t, t // 2 + 3])),
        "lengths per axis": build(key_lengths=torch.tensor([[9, 5], [t, t // 3]]), window=[9, 80]),
        "key masks": build(**windows, key_masks=[some(2, t), some(2, t)]),
        "documents": build(**windows, cu_seqlens=torch.tensor([0, t // 3, t // 3 + 1, t])),
        "boolean mask": build(**windows, mask=some(1, t, 1, t)),
        "mask of heads": build(**windows, mask=draw(4, 1, t, 1)),
        "largest mask": build(
            **windows, mask=torch.where(some(1, t, 1, t), 0.0, torch.finfo(torch.float32).min)
        ),
        "distinct": build(**windows, distinct="axes"),
        "distinct with query": build(**windows, distinct="with_query"),
        "sink": build(**windows, normalizer="softmax_sink", learned=dict(sink=draw(4))),
        "sigmoid": build(**windows, normalizer="sigmoid", scale=(0.1, 0.01)),
        "relu": build(**windows, normalizer="relu"),
        "dropout": build(**windows, dropout_p=0.3, seed=2**62 + 7),
        "positions": build(window=[(16, 0), (96, 0)], query_positions=positions),
        "determinant": build(48, **windows, form="determinant"),
        "sum": build(**windows, reduce="sum"),
        "mean": build(**windows, reduce="mean"),
        "order 3, mean, distinct": build(
            window=[4, 8, 40], causal=True, order=3, reduce="mean", distinct="axes"
        ),
        "order 3, determinant": build(
            32, window=[3, 4, 20], causal=True, order=3, form="determinant"
        ),
        "together": build(
            48,
            **windows,
            form="determinant",
            normalizer="softmax_sink",
            learned=dict(sink=draw(4)),
            dropout_p=0.2,
            seed=3,
            key_masks=[some(2, t), some(2, t)],
            cu_seqlens=torch.tensor([0, t // 2 + 1, t]),
            reduce="sum",
            distinct="with_query",
        ),
    }


def from_module(name: str) -> dict[str, Callable[[], Problem]]:
    """Option tables of the tests."""
    if name == "options":
        from options import OPTIONS, option_problem

        return {key: partial(option_problem, key) for key in OPTIONS}
    import test_kernel_options as table

    def build(lengths, options):
        options = dict(options)
        sink = options.pop("sink", None)
        problem = random_problem(
            len(lengths),
            batch=table.B,
            heads=table.HEADS,
            kv_heads=2,
            queries=table.QUERIES,
            lengths=lengths,
            dim=2 * (len(lengths) + 1),
        )
        problem.options = options
        problem.learned = {} if sink is None else {"sink": sink}
        return problem

    return {key: partial(build, *row) for key, row in table.OPTIONS.items()}


def builders(setup: Setup) -> dict[str, Callable[[], Problem]]:
    large = {} if setup.rehearse else LARGE
    found = {f"plain: {name}": partial(plain, row) for name, row in (large | PLAIN).items()}
    found["plain: logits of 1e4"] = partial(plain, PLAIN["two axes, grouped heads"], 3e3)
    found["plain: heads outside"] = partial(
        plain, PLAIN["two axes, one head each"], heads_inside=False
    )
    if setup.plain:
        return found
    t = setup.size(200, 24)
    found |= {f"long: {name}": build for name, build in large_options(t).items()}
    found |= {f"option: {name}": build for name, build in from_module("options").items()}
    found |= {
        f"kernel option: {name}": build
        for name, build in from_module("test_kernel_options").items()
    }
    return found
