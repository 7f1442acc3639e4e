"""The problems of the correctness check, by name; each is built when it runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from gpu_cases import CASES, Case, left
from problems import Problem, random_problem
from setups import Setup

#: Beside the shapes of the interpreter's tests: group sizes and channels of other kernels, and
#: lengths of training.
MORE = {
    "forty heads in a group": Case(1, 40, 1, 30, (30, 30), window=left(7, 20)),
    "seventy heads, order 3": Case(1, 70, 1, 12, (12,) * 3, window=left(3, 4, 9)),
    "D 80, Dv 72": Case(1, 4, 2, 50, (50, 50), 80, 72, left(6, 30)),
    "D 256": Case(1, 2, 1, 40, (40, 40), 256, 256, left(8, 32)),
}
LARGE = {
    "2048, 64 heads in a group": Case(1, 64, 1, 2048, (2048,) * 2, 128, 128, left(32, 512)),
    "2048, 8 heads in a group": Case(1, 8, 1, 2048, (2048,) * 2, 128, 128, left(32, 512)),
    "2048, one head each": Case(1, 4, 4, 2048, (2048,) * 2, 64, 64, left(32, 512)),
    "2047, two-sided": Case(1, 8, 2, 2047, (2047,) * 2, 64, 64, ((20, 9), (200, 60)), False),
    "2048, order 3": Case(1, 4, 1, 2048, (2048,) * 3, 64, 64, left(8, 8, 64)),
    "2048, order 1": Case(1, 8, 2, 2048, (2048,), 128, 128),
    "long keys, few queries": Case(1, 8, 1, 3, (2048,) * 2, 128, 128, left(64, 1500)),
    "one query of 2048": Case(2, 8, 1, 1, (2048,) * 2, 128, 128, left(32, 512)),
    "160 without windows": Case(1, 2, 1, 160, (160,) * 2, 64, 64),
}


def plain(case: Case, heads_inside: bool = True) -> Problem:
    problem = random_problem(
        len(case.lengths),
        batch=case.batch,
        heads=case.heads,
        kv_heads=case.kv_heads,
        queries=case.queries,
        lengths=list(case.lengths),
        dim=case.dim,
        value_dim=case.value_dim,
        causal=case.causal,
        scale=(case.dim**-0.5, 1.25),
    )
    if case.window is not None:  # for the operator, the query's own position counts as left
        problem.options["window"] = [(before or 1, after) for before, after in case.window]
    problem.inputs[0] = problem.inputs[0] * case.factor
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
    shapes = ({} if setup.rehearse else LARGE) | MORE | CASES
    found = {f"plain: {name}": partial(plain, case) for name, case in shapes.items()}
    outside = CASES["one head each, odd windows"]
    found["plain: heads outside rows"] = partial(plain, outside, heads_inside=False)
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
