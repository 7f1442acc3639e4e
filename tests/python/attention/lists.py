"""Lists of tuples for the sparse tests, and the boolean masks that mean the same."""

from __future__ import annotations

import itertools

import torch
from problems import Problem, random_problem
from torch import Tensor


def mask_of(options: dict, batch: int, kv_heads: int, queries: int, lengths: list[int]) -> Tensor:
    """bool [B, Hk, Tq, T_1, .., T_N], tuple by tuple from what the patterns are defined as."""
    indices, offsets, pattern = options["indices"], options.get("offsets"), options["pattern"]
    rows = offsets if pattern == "list" else indices
    entries, groups = rows.shape[:2]
    mask = torch.zeros(batch, kv_heads, queries, *lengths, dtype=torch.bool)
    for b, h, i in itertools.product(range(batch), range(kv_heads), range(queries)):
        at = (b if entries > 1 else 0, h // (kv_heads // groups))
        if pattern == "list":
            mask[b, h, i][indices[offsets[at][i] : offsets[at][i + 1]].long().unbind(-1)] = True
            continue
        if pattern == "product":
            keys = [j for j in indices[at][i].tolist() if j >= 0]
            tuples = itertools.product(keys, repeat=len(lengths))
        else:
            sets = [[j for j in row if j >= 0] for row in indices[at].tolist()]
            tuples = [()]
            for _ in lengths:
                tuples = [
                    (*t, j) for t in tuples for j in sets[t[-1] if t else i + len(sets) - queries]
                ]
        for t in tuples:
            mask[(b, h, i, *t)] = True
    return mask


def random_sets(shape, length: int, generator, dtype=torch.int64) -> Tensor:
    """Sets [.., k] of distinct keys below `length`, filled up with -1 from a random place on."""
    *rows, size = shape
    order = torch.rand(*rows, max(length, size), generator=generator).argsort(-1)[..., :size]
    kept = torch.randint(0, size + 1, (*rows, 1), generator=generator)
    kept = torch.minimum(kept, torch.tensor(length))
    # A key beyond the axis stands where k > T: there is none.
    sets = torch.where(order < length, order, length).sort(-1).values
    return sets.masked_fill((torch.arange(size) >= kept) | (sets >= length), -1).to(dtype)


def random_tuples(entries: int, groups: int, queries: int, lengths, generator, share=0.3):
    """(indices, offsets) of a random selection of all tuples."""
    chosen = torch.rand(entries, groups, queries, *lengths, generator=generator) < share
    if queries > 2:
        chosen[:, :, 0] = False  # a query without tuples
    counts = chosen.flatten(3).sum(-1).flatten()
    places = chosen.nonzero()
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    rows = torch.arange(entries * groups).view(entries, groups, 1) * queries
    offsets = ends[rows + torch.arange(queries + 1)]
    indices = places[:, 3:]
    # Not sorted within a query: neither is what a user gives.
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist()):
        indices[begin:end] = indices[begin:end][torch.randperm(end - begin, generator=generator)]
    return indices.contiguous(), offsets


def sparse_problem(
    pattern: str,
    order: int,
    *,
    batch: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    groups: int = 1,
    entries: int | None = None,
    queries: int = 5,
    size: int = 4,
    index_dtype=torch.int64,
    seed: int = 0,
    dim: int = 12,
    value_dim: int = 5,
    lengths=None,
    **options,
) -> tuple[Problem, Tensor]:
    """A call of the sparse operator, and the mask [B, Hq, Tq, T_1, .., T_N] of the same tuples."""
    generator = torch.Generator().manual_seed(100 + seed)
    entries = entries or batch
    if lengths is None:
        lengths = [7] * order if pattern == "path" else [6 + m for m in range(order)]
    lists: dict = {"pattern": pattern}
    if pattern == "list":
        lists["indices"], lists["offsets"] = random_tuples(
            entries, groups, queries, lengths, generator
        )
        lists["indices"] = lists["indices"].to(index_dtype)
    else:
        rows = queries if pattern == "product" else lengths[0]
        lists["indices"] = random_sets(
            (entries, groups, rows, size), min(lengths), generator, index_dtype
        )
        if queries > 2:
            lists["indices"][:, :, -queries] = -1
    problem = random_problem(
        order,
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        queries=queries,
        lengths=lengths,
        dim=dim,
        value_dim=value_dim,
        seed=seed,
    )
    problem.options = {**lists, **options}
    mask = mask_of(lists, batch, kv_heads, queries, lengths)
    return problem, mask.repeat_interleave(heads // kv_heads, 1)


def masked(problem: Problem, mask: Tensor) -> Problem:
    """The same call of the dense operator."""
    drop = ("indices", "offsets", "pattern")
    options = {name: value for name, value in problem.options.items() if name not in drop}
    return Problem(problem.inputs, {**options, "mask": mask})
