"""Hostile shapes of dense attention for the kernels of nsimplex.gpu. Nothing of Triton is imported.

``CASES`` maps a name to a Case; ``draw(case, dtype)`` makes its tensors. Shapes are small: the
interpreter takes about a second for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

ALL = -1  #: an unbounded side of a window


@dataclass(frozen=True)
class Case:
    """A call: query [batch, heads, queries, dim], keys[m] [batch, kv_heads, lengths[m], dim]."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    lengths: tuple[int, ...]
    dim: int = 16
    value_dim: int = 16
    window: tuple[tuple[int, int], ...] | None = None  #: (left, right) per axis
    causal: bool = True
    factor: float = 1.0  #: of the query, for large logits
    tiles: dict[str, int] = field(default_factory=dict)  #: fields of gpu_tiles.Tiles
    split: bool = True  #: whether few programs share the tuples of a query


def left(*sizes: int) -> tuple[tuple[int, int], ...]:
    return tuple((size, ALL) for size in sizes)


#: Names of cases in their order; the first ones of SHORT stand for all in other precisions.
CASES = {
    "grouped heads, windows": Case(1, 4, 1, 40, (40, 40), window=left(8, 20)),
    "one head each, odd windows": Case(2, 2, 2, 33, (33, 33), window=left(5, 13)),
    "six heads, D 24, Dv 8": Case(1, 6, 1, 21, (21, 21), 24, 8, left(7, 16)),
    "long axis first": Case(1, 2, 1, 30, (30, 30), window=left(19, 4)),
    "one position": Case(2, 2, 1, 1, (1, 1), window=left(8, 8)),
    "windows of one key": Case(1, 2, 2, 19, (19, 19), window=left(1, 1)),
    "windows beyond the sequence": Case(1, 3, 1, 17, (17, 17), window=left(64, 512)),
    "causal without windows": Case(1, 2, 1, 18, (18, 18)),
    "no mask, other lengths": Case(1, 4, 2, 11, (7, 23), 16, 32, causal=False),
    "one query": Case(1, 4, 1, 1, (37, 50), window=left(9, 33)),
    "queries without keys": Case(1, 2, 1, 24, (15, 10), window=left(6, 8)),
    "two-sided windows": Case(1, 2, 1, 26, (26, 26), window=((4, 3), (9, 5)), causal=False),
    "windows in the future": Case(1, 2, 1, 20, (20, 20), window=((ALL, ALL), (0, 6)), causal=False),
    "leading tuples in chunks": Case(
        1, 2, 1, 40, (40, 40), window=left(24, 32), tiles={"rows": 16, "tuples": 8}
    ),
    "leading tuples in chunks of one program": Case(
        1, 1, 1, 6, (20, 20), window=left(20, 9), tiles={"rows": 16, "tuples": 8}, split=False
    ),
    "small segments": Case(1, 4, 2, 37, (37, 37), window=left(6, 17), tiles={"segment": 5}),
    "group beyond a block": Case(
        1, 12, 1, 14, (14, 14), window=left(8, 10), tiles={"rows": 16, "segment": 6}
    ),
    "order 1": Case(2, 4, 2, 45, (45,)),
    "order 1, two-sided, other lengths": Case(
        1, 3, 3, 20, (31,), 32, 16, ((9, 2),), False, tiles={"rows": 16, "segment": 7}
    ),
    "order 3": Case(1, 4, 2, 22, (22, 22, 22), window=left(3, 4, 9)),
    "order 3, chunks, other lengths": Case(
        1, 2, 1, 12, (9, 12, 14), window=((5, ALL), (ALL, ALL), (6, 2)), causal=False,
        tiles={"rows": 16, "segment": 5},
    ),
    "order 4": Case(1, 2, 1, 9, (9, 9, 9, 9), window=left(2, 2, 3, 4)),
    "logits of 1e4": Case(1, 2, 1, 20, (20, 20), window=left(4, 12), factor=3000.0),
    "sixteen heads in a group": Case(1, 16, 1, 13, (13, 13), window=left(4, 9)),
}  # fmt: skip

#: Cases that run in every test run.
QUICK_CASES = [
    "grouped heads, windows",
    "no mask, other lengths",
    "one query",
    "leading tuples in chunks of one program",
    "small segments",
    "order 1",
    "order 4",
    "logits of 1e4",
]

#: Cases that stand for all in other precisions.
SHORT = [
    "six heads, D 24, Dv 8",
    "no mask, other lengths",
    "leading tuples in chunks",
    "order 3, chunks, other lengths",
    "logits of 1e4",
]


@dataclass
class Tensors:
    """Inputs and gradients of one call, as numbers of one dtype."""

    query: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    grad_out: Tensor
    grad_lse: Tensor


def draw(case: Case, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensors:
    """Normal numbers; inputs are [B, T, H, D] in memory, as projections leave them."""
    generator = torch.Generator().manual_seed(seed)

    def inputs(heads: int, rows: int, channels: int, factor: float = 1.0) -> Tensor:
        drawn = torch.randn(case.batch, rows, heads, channels, generator=generator) * factor
        return drawn.to(dtype).transpose(1, 2)

    def gradient(*channels: int) -> Tensor:
        return torch.randn(case.batch, case.heads, case.queries, *channels, generator=generator)

    return Tensors(
        inputs(case.heads, case.queries, case.dim, case.factor),
        [inputs(case.kv_heads, length, case.dim) for length in case.lengths],
        [inputs(case.kv_heads, length, case.value_dim) for length in case.lengths],
        gradient(case.value_dim).to(dtype),
        gradient(),
    )
