"""Whether the tokens of a layer's input are a shard of a sequence, and who holds the others.

:func:`nsimplex.distributed.context_parallel` sets it. It is kept here so that layers can ask
without importing ``torch.distributed``.
"""

from __future__ import annotations

from typing import Any

__all__ = ["sequence_shards", "set_sequence_shards"]

_current: Any = None


def sequence_shards() -> Any:
    """The :class:`nsimplex.distributed.ContextParallel` that is entered, or None."""
    return _current


def set_sequence_shards(context: Any) -> Any:
    """Enter a context, or leave with None. Returns the one that was entered before."""
    global _current
    before, _current = _current, context
    return before
