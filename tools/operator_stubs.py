#!/usr/bin/env python3
"""Writes python/nsimplex/ops.pyi, the signatures of the operators, from the schemas of the library:

    PYTHONPATH=build/release/python tools/operator_stubs.py

Editors and type checkers read that file. A test compares it with the library.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).parent.parent / "python" / "nsimplex" / "ops.pyi"
WIDTH = 100

HEAD = '''"""The operators under their registered names, written by tools/operator_stubs.py."""

from collections.abc import Sequence

import torch
from torch import Tensor
'''
_NAMES = {
    "Tensor": "Tensor",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "number": "int | float",
    "Device": "torch.device",
    "Generator": "torch.Generator",
}


def stubs() -> str:
    """The text of ops.pyi."""
    import nsimplex  # noqa: F401, registers the operators

    every = [each for each in torch._C._jit_get_all_schemas() if each.name.startswith("nsimplex::")]
    return HEAD + "".join(f"\n{signature(each)}" for each in sorted(every, key=lambda s: s.name))


def signature(schema: Any) -> str:
    """The stub of one operator."""
    arguments: list[str] = []
    for each in schema.arguments:
        if each.kwarg_only and "*" not in arguments:
            arguments.append("*")
        default = f" = {each.default_value!r}" if each.has_default_value() else ""
        arguments.append(f"{each.name}: {written(str(each.type), 'Sequence')}{default}")
    results = [written(str(each.type), "list") for each in schema.returns]
    result = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
    start = f"def {schema.name.partition('::')[2]}("
    end = f") -> {result if results else None}: ..."
    line = start + ", ".join(arguments) + end
    return f"{line}\n" if len(line) <= WIDTH else "\n".join([start, *rows_of(arguments), end, ""])


def rows_of(arguments: list[str]) -> list[str]:
    """Arguments in rows, with as many in each row as fit."""
    rows = [""]
    for each in arguments:
        if len(rows[-1]) + len(each) + 2 > WIDTH:
            rows.append("")
        rows[-1] += f" {each}," if rows[-1] else f"    {each},"
    return rows


def written(kind: str, sequence: str) -> str:
    """A type of a schema as Python writes it; lists are of the kind ``sequence``."""
    if kind in _NAMES:
        return _NAMES[kind]
    match = re.fullmatch(r"(Optional|List)\[(.*)\]", kind)
    if match is None:
        raise ValueError(f"operator_stubs: no type in Python for {kind}")
    inside = written(match[2], sequence)
    return f"{inside} | None" if match[1] == "Optional" else f"{sequence}[{inside}]"


if __name__ == "__main__":
    FILE.write_text(stubs(), encoding="utf-8")
