"""The same bits twice, with other work on the device and other numbers in its memory between."""

from __future__ import annotations

import cases
import correctness
import torch
from setups import Setup

import nsimplex


def items(setup: Setup) -> list[str]:
    names = [n for n in cases.builders(setup) if n.startswith("plain: 2048")]
    names += ["plain: long keys, few queries"] if names else []
    names += ["plain: grouped heads, windows", "plain: order 3"]
    if not setup.plain:
        names += ["long: dropout", "long: key masks", "long: determinant", "long: sink"]
    return [f"{dtype} {name}" for name in names for dtype in ("bf16", "fp32")]


def run(item: str, setup: Setup) -> dict:
    label, _, name = item.partition(" ")
    problem, dtype = cases.builders(setup)[name](), correctness.DTYPES[label]
    results = []
    for turn in range(3):
        # What the allocator hands out next holds other numbers.
        noise = torch.full((setup.size(64 << 20, 1 << 10),), float(turn + 1), device=setup.device)
        del noise
        results.append(correctness.outcome(problem, dtype, setup.device, nsimplex.attention))
    differ = [
        key
        for key, first in results[0].items()
        if not all(torch.equal(first, other[key]) for other in results[1:])
    ]
    return {"ok": not differ, "error": f"other bits: {differ}" if differ else ""}


def lines(records: list[dict]) -> list[str]:
    return [f"same bits three times: {sum(bool(r['ok']) for r in records)} of {len(records)}"]
