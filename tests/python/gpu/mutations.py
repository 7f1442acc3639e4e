"""Deliberate faults in the kernels of nsimplex.gpu, made in memory.

``MUTATIONS`` maps what goes wrong to a Mutation: one place of one source file, and a call whose
check must find it. ``mutated`` gives the modules of the package the changed code for a while.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_cases import Case, left

#: Modules that hold kernels or import them, each after those that it takes names from.
MODULES = [
    "tuple_terms", "attention_forward_tile", "attention_forward_merge", "attention_forward_kernels",
    "attention_heads_kernels", "attention_heads", "attention_forward", "attention_backward_terms",
    "attention_merge", "attention_backward_plan", "attention_backward_rows",
    "attention_backward_keys", "attention_backward",
]  # fmt: skip

PLAIN = Case(1, 2, 1, 11, (11, 11), window=left(3, 7))
GROUPED = Case(1, 4, 1, 9, (9, 9), window=left(8, 9))
SEGMENTS = Case(1, 2, 1, 12, (12, 12), window=left(3, 7), tiles={"segment": 5})
CHUNKS = Case(
    1, 1, 1, 6, (20, 20), window=left(20, 9), tiles={"rows": 16, "tuples": 8}, split=False
)
SPLITS = Case(1, 2, 1, 1, (5, 140), window=left(4, 130))
THREE = Case(1, 2, 1, 7, (7, 7, 7), window=left(2, 3, 5))


@dataclass(frozen=True)
class Mutation:
    """``old`` occurs once in the source of ``module`` and is replaced by ``new``."""

    module: str
    old: str
    new: str
    case: Case
    key_masks: bool = False


MUTATIONS = {
    "a window begins one key late": Mutation(
        "tuple_terms", "return tl.maximum(i + low, 0)", "return tl.maximum(i + low + 1, 0)", PLAIN
    ),
    "the edge of a block of queries is one key too far": Mutation(
        "attention_forward_kernels",
        "pair = pair & (inner[None, :] < to_key[:, None])",
        "pair = pair & (inner[None, :] <= to_key[:, None])",
        PLAIN,
    ),
    "the edge of one query is one key too far": Mutation(
        "attention_forward_kernels", "column = inner < hi", "column = inner <= hi", GROUPED
    ),
    "keys beyond the end are loaded": Mutation(
        "attention_backward_keys",
        "key_ok = key < end_of(queries - 1, high, length, inner_bounds, queries, TABLE)",
        "key_ok = key >= 0",
        PLAIN,
    ),
    "rows beyond the last query are stored": Mutation(
        "attention_forward_kernels",
        "tl.store(lse + stat, value, mask=stat_ok)",
        "tl.store(lse + stat, value)",
        PLAIN,
    ),
    "two segments share a part": Mutation(
        "attention_backward_rows",
        "part = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + seg",
        "part = tl.program_id(1).to(tl.int64) * tl.num_programs(0)",
        SEGMENTS,
    ),
    "a sum has no order": Mutation(
        "attention_backward_terms",
        "tl.store(place, tl.load(place, mask=ok, other=0.0) + acc, mask=ok)",
        "tl.atomic_add(place, acc, mask=ok)",
        SEGMENTS,
    ),
    "the last segment is not merged": Mutation(
        "attention_merge",
        "for seg in range(from_seg, to_seg):",
        "for seg in range(from_seg, to_seg - 1):",
        SEGMENTS,
    ),
    "the first part of a split call is not merged": Mutation(
        "attention_forward_merge",
        "for split in range(0, splits):",
        "for split in range(1, splits):",
        SPLITS,
    ),
    "sums of earlier tuples keep their old maximum": Mutation(
        "attention_forward_kernels",
        "o = o * carry[:, None] + tl.sum(tl.reshape(y, (QH, BJ, DVP)), 1)",
        "o = o + tl.sum(tl.reshape(y, (QH, BJ, DVP)), 1)",
        CHUNKS,
    ),
    "the common term of a query's gradients is left out": Mutation(
        "attention_backward_keys",
        "ds = (slope * (dp * output_scale - delta[None, :])).to(type)",
        "ds = (slope * (dp * output_scale)).to(type)",
        PLAIN,
    ),
    "a product is rounded to bfloat16": Mutation(
        "attention_backward_rows",
        "u, g = u.to(type), g.to(type)",
        "u, g = u.to(tl.bfloat16).to(type), g.to(type)",
        PLAIN,
    ),
    "weights are rounded to bfloat16 before their sum": Mutation(
        "attention_forward_tile",
        "total += tl.sum(p, 1)",
        "total += tl.sum(p.to(tl.bfloat16).to(tl.float32), 1)",
        PLAIN,
    ),
    "the second leading key of a tuple is the first": Mutation(
        "attention_backward_keys",
        "flat = flat // at(MOSTS, m)",
        "flat = flat % at(MOSTS, m)",
        THREE,
    ),
    "the mask of leading keys is forgotten": Mutation(
        "attention_forward_kernels",
        "ok = admitted(lead_masks[m] + batch * lead_axes[m][0], j, ok)",
        "ok = ok & (j >= 0)",
        PLAIN,
        key_masks=True,
    ),
}


@contextlib.contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """The package's modules with the fault, from source text in memory."""
    modules = {name: importlib.import_module(f"nsimplex.gpu.{name}") for name in MODULES}
    before = {name: dict(vars(module)) for name, module in modules.items()}
    from_there = MODULES.index(mutation.module)
    try:
        for name in MODULES[from_there:]:
            module = modules[name]
            text = Path(module.__file__).read_text()
            if name == mutation.module:
                count = text.count(mutation.old)
                assert count == 1, f"{name} has {count} times: {mutation.old}"
                text = text.replace(mutation.old, mutation.new)
            # Triton reads the source of a kernel again, where Python's traceback would.
            file = f"<{name} with a fault>"
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            exec(compile(text, file, "exec"), vars(module))
        yield
    finally:
        for name in MODULES[from_there:]:
            vars(modules[name]).clear()
            vars(modules[name]).update(before[name])
