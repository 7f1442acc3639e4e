"""[B, heads, T, D] and [B, T, heads, D]: the same tensors seen two ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import Tensor

from ._arguments import describe

Layout = Literal["bhtd", "bthd"]


def heads_first(
    function: str, layout: Layout, *arguments: Tensor | Sequence[Tensor]
) -> Sequence[Any]:
    """Tensors and lists of tensors in the layout -> [B, heads, T, D]."""
    if layout == "bhtd":
        return arguments
    if layout != "bthd":
        raise ValueError(f"[{function}] layout: expected 'bhtd' or 'bthd', got {describe(layout)}")
    return [_swapped(each) for each in arguments]


def in_layout(layout: Layout, out: Tensor) -> Tensor:
    """A result [B, heads, T, D] in the layout."""
    return out if layout == "bhtd" else _swapped(out)


def _swapped(tensors: Any) -> Any:
    """Views; what has other than 4 dimensions is left for the operator to refuse."""
    if isinstance(tensors, Tensor):
        return tensors.transpose(1, 2) if tensors.dim() == 4 else tensors
    return [_swapped(each) for each in tensors]
