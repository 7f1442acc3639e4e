"""The tile table by measurement: candidates per pass, dtype, channels and order.

Writes tiles.json: for every key the fastest candidate, and all that were measured.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import torch
from correctness import relative
from setups import Setup
from timings import Shape, call_of, square

from nsimplex.gpu import gpu_tiles

WARM = "required"
#: A candidate whose results differ more from those of the table is wrong, not fast.
LIMITS = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 1e-4}

WIDE, CUBE = (32, 512), (8, 8, 64)
#: Keys of the table (G: query heads per key head), and the shape to be measured for each.
KEYS: list[tuple[str, Shape]] = [
    ("bf16 D128 order 2 G64", square(1, 64, 1, 8192, 128, WIDE)),
    ("bf16 D128 order 2 G1", square(1, 8, 8, 8192, 128, WIDE)),
    ("bf16 D64 order 2 G64", square(1, 64, 1, 8192, 64, WIDE)),
    ("bf16 D64 order 2 G1", square(1, 8, 8, 8192, 64, WIDE)),
    ("bf16 D128 order 1 G1", square(1, 16, 16, 8192, 128, None, order=1)),
    ("bf16 D64 order 1 G1", square(1, 16, 16, 8192, 64, None, order=1)),
    ("bf16 D64 order 3 G8", square(1, 16, 2, 8192, 64, CUBE)),
    ("bf16 D128 order 3 G8", square(1, 16, 2, 8192, 128, CUBE)),
    ("fp32 D64 order 2 G8", square(1, 8, 1, 4096, 64, WIDE, dtype=torch.float32)),
    ("fp32 D128 order 2 G8", square(1, 8, 1, 4096, 128, WIDE, dtype=torch.float32)),
]
#: Entries of the table to try, per step; the most likely first.
FIELDS = ("rows", "inner", "warps", "stages", "tuples", "segment", "registers")
TRIED: dict[str, list[tuple[int, ...]]] = {
    "heads": [
        (128, 64, 8, 1, 1, 64, 128), (64, 64, 4, 1, 1, 64, 255), (64, 64, 4, 2, 1, 64, 255),
        (64, 64, 8, 1, 1, 64, 128), (128, 64, 8, 2, 1, 64, 128), (128, 128, 8, 1, 1, 64, 255),
        (64, 128, 8, 1, 1, 64, 128), (128, 32, 8, 1, 1, 64, 128), (64, 64, 4, 1, 1, 64, 168),
    ],
    "forward": [
        (64, 64, 4, 2, 32), (64, 64, 4, 3, 32), (64, 64, 4, 1, 32), (128, 64, 8, 2, 32),
        (64, 128, 4, 2, 32), (64, 64, 4, 2, 8), (128, 64, 4, 2, 32), (64, 32, 4, 3, 32),
        (64, 64, 8, 2, 32), (128, 128, 8, 2, 32), (64, 64, 4, 2, 1),
    ],
    "rows": [
        (64, 64, 4, 2, 32, 64), (64, 32, 4, 3, 32, 64), (64, 64, 4, 1, 32, 64),
        (64, 64, 4, 2, 32, 128), (64, 64, 4, 2, 32, 32), (64, 32, 4, 2, 32, 64),
        (32, 64, 4, 2, 32, 64), (64, 64, 8, 2, 32, 64), (128, 64, 8, 1, 32, 64),
    ],
    "keys": [
        (64, 64, 4, 1, 32), (64, 64, 4, 2, 32), (64, 64, 8, 1, 32), (64, 128, 8, 1, 32),
        (64, 128, 4, 1, 32), (128, 64, 8, 1, 32), (32, 64, 4, 2, 32), (64, 64, 4, 1, 1),
    ],
}  # fmt: skip
SHAPES = dict(KEYS)


def items(setup: Setup) -> list[str]:
    names = []
    for key, _ in KEYS:
        for kind, entries in TRIED.items():
            if kind == ("forward" if "G64" in key else "heads"):
                continue  # the kernel of other groups
            if "order 1" in key:  # without leading tuples
                entries = list(dict.fromkeys((*entry[:4], 1, *entry[5:]) for entry in entries))
            entries = [{}] + [dict(zip(FIELDS, values)) for values in entries]
            names += [f"{kind} | {key} | {json.dumps(entry)}" for entry in entries]
    return names[::60] if setup.rehearse else names


class Replaced:
    """The table with other fields for one pass, inside a with statement."""

    def __init__(self, kind: str, fields: dict) -> None:
        self.kind, self.fields, self.lookup = kind, fields, gpu_tiles.tiles

    def __enter__(self) -> None:
        def tiles(kind, *arguments, **named):
            entry = self.lookup(kind, *arguments, **named)
            return dataclasses.replace(entry, **self.fields) if kind == self.kind else entry

        gpu_tiles.tiles = tiles

    def __exit__(self, *_) -> None:
        gpu_tiles.tiles = self.lookup


def parsed(item: str, setup: Setup) -> tuple[str, Shape, dict]:
    kind, key, fields = item.split(" | ")
    shape = SHAPES[key]
    return kind, shape.small() if setup.rehearse else shape, json.loads(fields)


def direction_of(kind: str) -> str:
    return "forward" if kind in ("forward", "heads") else "backward"


def tensors_of(result) -> list[torch.Tensor]:
    flat = []
    for value in result:
        flat += value if isinstance(value, (list, tuple)) else [value]
    return [t for t in flat if t is not None and t.numel()]


def warm(item: str, setup: Setup) -> dict:
    """Compiles a candidate and compares its results with the table's."""
    kind, shape, fields = parsed(item, setup)
    call = call_of(direction_of(kind), shape, setup)
    expected = tensors_of(call())
    with Replaced(kind, fields):
        found = tensors_of(call())
    setup.synchronize()
    worst = max(relative(a, b) for a, b in zip(found, expected))
    record = {"ok": worst <= LIMITS[shape.dtype], "worst": worst}
    return record if record["ok"] else record | {"error": f"relative error {worst:.1e}"}


_best: dict[str, float] = {}
_calls: dict[tuple, object] = {}


def run(item: str, setup: Setup) -> dict:
    """Times a candidate; one that is much slower than the best so far is timed once."""
    kind, shape, fields = parsed(item, setup)
    key = item.rpartition(" | ")[0]
    direction = direction_of(kind)
    if (direction, shape) not in _calls:
        _calls.clear()
        _calls[direction, shape] = call_of(direction, shape, setup)
    call = _calls[direction, shape]
    with Replaced(kind, fields):
        call()
        ms = setup.milliseconds(call, 5.0)
        if ms < 1.3 * _best.get(key, float("inf")):
            ms = setup.milliseconds(call, 100.0)
    _best[key] = min(ms, _best.get(key, ms))
    return {"ms": ms, "tflops": shape.flops(direction) / ms / 1e9, "fields": fields}


def lines(records: list[dict]) -> list[str]:
    measured: dict[str, list[dict]] = {}
    for record in records:
        if "ms" in record:
            measured.setdefault(record["item"].rpartition(" | ")[0], []).append(record)
    chosen, table = {}, []
    for key, own in measured.items():
        own.sort(key=lambda r: r["ms"])
        default = next((r for r in own if not r["fields"]), None)
        keep = lambda r: {name: r[name] for name in ("ms", "tflops", "fields")}
        chosen[key] = {
            "best": keep(own[0]),
            "table": default and keep(default),
            "measured": [keep(r) for r in own],
        }
        said = " ".join(f"{name} {value}" for name, value in own[0]["fields"].items())
        table.append(
            f"{key}: {own[0]['tflops']:.0f} TFLOP/s with {said or 'the table'}"
            + (f" (table {default['tflops']:.0f})" if default else "")
            + f", {len(own)} measured"
        )
    Path(os.environ["GPU_DAY_OUT"], "tiles.json").write_text(json.dumps(chosen, indent=1) + "\n")
    return table
