"""The kernels compile for GPUs that are not here, and their code is as good as it was recorded.

recorded_code.json holds, per architecture, call and kernel, what the compiler made with the tiles
of the table. After a change of kernels or tiles look at the new numbers, then record them:

    NSIMPLEX_RECORD=1 python -m pytest tests/python/gpu/test_gpu_compile.py

More spills in a loop, more shared memory, or more waits for matrix instructions than recorded fail,
and so does a kernel of matrix products without matrix instructions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from offline import SHARED, TENSOR_COLUMNS, compile_launch, launches_of

pytestmark = pytest.mark.compiled

RECORD = Path(__file__).with_name("recorded_code.json")
BF16, FP32 = torch.bfloat16, torch.float32
#: Kernels without a matrix product.
PLAIN = {
    "attention_row_statistics",
    "attention_merge",
    "attention_add_splits",
    "attention_forward_merge",
}


def both(
    make, batch, heads, kv_heads, queries, lengths, dim, dtype,
    backward=True, of_lse=True, **options,
):  # fmt: skip
    """Forward and backward pass of a call; ``of_lse``: the latter has a gradient of lse."""
    from nsimplex.gpu import attention_backward, attention_forward

    query = make(batch, heads, queries, dim, dtype=dtype)
    keys, values = (
        [make(batch, kv_heads, length, dim, dtype=dtype) for length in lengths] for _ in "kv"
    )
    given = {
        name: value(make) if callable(value) else value
        for name, value in ({"causal": True, "logit_scale": 0.1} | options).items()
    }
    call = attention_forward.Options(**given)
    out, lse = attention_forward.forward(query, keys, values, call)
    if backward:
        wanted = [True] * (1 + 2 * len(keys)) + [False, call.sink is not None]
        grad_out, grad_lse = torch.empty_like(out), lse if of_lse else None
        attention_backward.backward(query, keys, values, out, lse, grad_out, grad_lse, wanted, call)


T = 2048
WINDOW = [32, -1, 512, -1]
#: name: a function that calls the launch code
CALLS = {
    "128 heads, D 128": lambda make: both(
        make, 4, 128, 1, T, (T, T), 128, BF16, window=WINDOW, of_lse=False
    ),
    "groups of 4, D 64": lambda make: both(
        make, 2, 16, 4, T, (T, T), 64, BF16, window=WINDOW, of_lse=False
    ),
    "one head each, D 64": lambda make: both(
        make, 2, 8, 8, T, (T, T), 64, BF16, window=WINDOW, of_lse=False
    ),
    "groups of 4, D 256": lambda make: both(make, 2, 16, 4, T, (T, T), 256, BF16, window=WINDOW),
    "fp32, one head each, D 64": lambda make: both(
        make, 2, 8, 8, T, (T, T), 64, FP32, window=WINDOW
    ),
    "order 1, D 128": lambda make: both(make, 2, 16, 4, T, (T,), 128, torch.float16),
    "order 3, D 64": lambda make: both(
        make, 1, 16, 1, T, (T, T, T), 64, BF16, window=[8, -1, 8, -1, 64, -1]
    ),
    "few channels": lambda make: both(
        make, 1, 4, 1, 40, (40, 40), 16, BF16, window=[8, -1, 20, -1]
    ),
    "one query": lambda make: both(
        make, 1, 16, 2, 1, (T, T), 128, BF16, backward=False, window=[32, -1, 1500, -1]
    ),
    "documents, masks, dropout, sink": lambda make: both(
        make, 2, 16, 4, T, (T, T), 64, BF16,
        window=WINDOW,
        cu_seqlens=lambda make: make(9, dtype=torch.int64),
        key_masks=lambda make: [make(2, T, dtype=torch.bool) for _ in range(2)],
        mask=lambda make: make(1, 16, T, 1, T, dtype=FP32),
        sink=lambda make: make(16, dtype=FP32),
        normalizer="softmax_sink",
        distinct="with_query",
        dropout_p=0.1,
        seed=7,
        reduce="sum",
    ),
    "positions, boolean mask, sigmoid": lambda make: both(
        make, 2, 16, 4, 64, (T, T), 64, BF16,
        window=WINDOW,
        query_positions=lambda make: make(2, 64, dtype=torch.int64),
        key_lengths=lambda make: make(2, 2, dtype=torch.int64),
        mask=lambda make: make(2, 1, 64, T, T, dtype=torch.bool),
        normalizer="sigmoid",
    ),
}  # fmt: skip
#: The calls that are compiled for an architecture, and those of them in the quick tests.
COMPILED = {
    "sm_80": [
        "128 heads, D 128", "groups of 4, D 64", "one head each, D 64", "fp32, one head each, D 64"
    ],
    "sm_90": list(CALLS),
    "sm_100": ["128 heads, D 128"],
    "gfx942": ["128 heads, D 128", "one query"],
}  # fmt: skip
QUICK = {("sm_90", "128 heads, D 128"), ("sm_90", "few channels"), ("gfx942", "one query")}
GRID = [
    pytest.param(arch, name, marks=() if (arch, name) in QUICK else pytest.mark.slow)
    for arch, names in COMPILED.items()
    for name in names
]


@pytest.fixture(autouse=True)
def cache(root, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(root / "build" / "triton"))


def compiled(arch: str, name: str) -> dict[str, list[dict[str, int]]]:
    """Per kernel the codes of its specialisations, in the order of their launches."""
    codes: dict[str, list[dict[str, int]]] = {}
    for launched in launches_of(arch, CALLS[name]):
        codes.setdefault(launched.name, []).append(vars(compile_launch(launched, arch)))
    return codes


def faults(arch: str, kernel: str, code: dict[str, int], recorded: dict[str, int]) -> list[str]:
    """What is worse than recorded, or beyond the GPU."""
    found = []
    if kernel not in PLAIN and not code["loop_matrix"]:
        found.append("no matrix instructions in its loops")
    if recorded["loop_wide"] and not code["loop_wide"]:
        found.append("no matrix instructions of a warpgroup")
    if code["shared"] > SHARED[arch]:
        found.append(f"{code['shared']} bytes of shared memory, at most {SHARED[arch]}")
    if code["tensor_columns"] > TENSOR_COLUMNS:
        found.append(f"{code['tensor_columns']} columns of tensor memory")
    for what in ("loop_spills", "shared", "tensor_columns"):
        if code[what] > recorded[what]:
            found.append(f"{what} {code[what]}, recorded {recorded[what]}")
    if code["unequal_sums"]:
        found.append("threads round a sum differently: see offline.unequal_sums")
    # A wait after every wgmma halves the speed: the assembler serialises them if registers lack.
    waits = recorded["loop_waits"] * code["loop_matrix"]
    if code["loop_waits"] * recorded["loop_matrix"] > waits:
        found.append(f"loop_waits {code['loop_waits']}, recorded {recorded['loop_waits']}")
    return [f"{kernel}: {each}" for each in found]


@pytest.mark.parametrize("arch, name", GRID)
def test_code(arch, name):
    codes = compiled(arch, name)
    table = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("NSIMPLEX_RECORD"):
        table.setdefault(arch, {})[name] = codes
        RECORD.write_text(lines_of(table))
    recorded = table[arch][name]
    assert {k: len(v) for k, v in codes.items()} == {k: len(v) for k, v in recorded.items()}
    found = [
        fault
        for kernel, made in codes.items()
        for code, before in zip(made, recorded[kernel])
        for fault in faults(arch, kernel, code, before)
    ]
    assert not found, "\n".join(found)


def lines_of(table: dict) -> str:
    """JSON with one code a line."""
    parts = []
    for arch in sorted(table):
        calls = []
        for name in sorted(table[arch]):
            kernels = [
                f'   "{kernel}": [\n    ' + ",\n    ".join(json.dumps(code) for code in made) + "]"
                for kernel, made in table[arch][name].items()
            ]
            calls.append(f'  "{name}": {{\n' + ",\n".join(kernels) + "}")
        parts.append(f' "{arch}": {{\n' + ",\n".join(calls) + "}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def test_a_kernel_without_matrix_instructions_fails():
    good = dict(
        registers=255, shared=1024, tensor_columns=0, matrix=8, loop_matrix=8, loop_wide=8,
        loop_spills=0, loop_waits=2, unequal_sums=0,
    )  # fmt: skip
    assert not faults("sm_90", "attention_forward_kernel", good, good)
    worse = (
        dict(loop_matrix=0),
        dict(loop_wide=0),
        dict(loop_spills=1),
        dict(loop_waits=8),
        dict(shared=10**6),
        dict(unequal_sums=1),
    )
    for change in worse:
        assert faults("sm_90", "attention_forward_kernel", good | change, good), change
