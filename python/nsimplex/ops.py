"""The operators under their registered names.

``nsimplex.ops.attention`` is ``torch.ops.nsimplex.attention``:

    from nsimplex import ops

    out, lse = ops.attention(query, keys, values, causal=True)

Editors and type checkers know nothing of the operators in ``torch.ops``. They read the signatures
of this module in ops.pyi, which tools/operator_stubs.py writes.
"""

from __future__ import annotations

from typing import Any

from ._library import operators


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(operators, name)
    except AttributeError:
        raise AttributeError(f"[ops] {name}: expected the name of an operator") from None
