"""Checks of the modules: their options at construction and their input tensors."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch._C._functorch as functorch
from torch import Tensor

from .._arguments import describe
from .._options import flat_window

MOST_AXES = 8  # the operators take at most this many


def require(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


def require_whole(at: str, least: int = 1, most: int | None = None, **numbers: object) -> None:
    """Check that every named number is an integer in the range ``least`` to ``most``."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{at}{name}: expected an integer, got {describe(value)}")
        if value < least or (most is not None and value > most):
            range_ = f"at least {least}" if most is None else f"{least} to {most}"
            raise ValueError(f"{at}{name}: expected {range_}, got {value}")


def require_positive(at: str, **numbers: object) -> None:
    for name, value in numbers.items():
        if not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise ValueError(f"{at}{name}: expected a positive number, got {describe(value)}")


def require_tokens(at: str, name: str, tokens: Tensor, model: Any) -> None:
    """Check token ids [B, T] of a language model, ours or one of Transformers."""
    whole = tokens.dtype in (torch.int64, torch.int32)
    if not whole or tokens.dim() != 2 or tokens.numel() == 0:
        raise ValueError(f"{at}{name}: expected int64 [B, T] of tokens, got {describe(tokens)}")
    own = getattr(model, "get_input_embeddings", lambda: getattr(model, "embedding", None))()
    if (count := getattr(own, "num_embeddings", None)) is not None:
        low, high = (int(each) for each in tokens.aminmax())
        fits = low >= 0 and high < count
        require(fits, f"{at}{name}: expected tokens 0 to {count - 1}, got {low} to {high}")


def factory(at: str, device: Any, dtype: Any) -> dict[str, Any]:
    """The arguments device and dtype of a module's parameters, checked."""
    fits = dtype is None or (isinstance(dtype, torch.dtype) and dtype.is_floating_point)
    require(fits, f"{at}dtype: expected a floating dtype, got {describe(dtype)}")
    if device is not None and not isinstance(device, torch.device):
        try:
            device = torch.device(device)
        except (RuntimeError, TypeError, ValueError, OverflowError):
            device = describe(device)
            raise ValueError(f"{at}device: expected a device, got {device}") from None
    return dict(device=device, dtype=dtype)


def require_name(at: str, name: str, value: object, names: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in names:
        words = [each or '""' for each in names]
        known = ", ".join(words[:-1]) + f" or {words[-1]}"
        raise ValueError(f"{at}{name}: expected {known}, got {describe(value)}")


def require_scale(at: str, scale: object) -> None:
    """Check that scale is "standard", "unit", or one or two finite numbers."""
    factors = scale if isinstance(scale, (list, tuple)) else (scale,)
    numbers = len(factors) in (1, 2) and all(
        isinstance(each, (int, float)) and not isinstance(each, bool) and math.isfinite(each)
        for each in factors
    )
    if not numbers and not (isinstance(scale, str) and scale in ("standard", "unit")):
        raise ValueError(
            f"{at}scale: expected standard, unit, a finite number or two, got {describe(scale)}"
        )


def require_window(function: str, window: Any, order: int) -> None:
    flat = flat_window(window, order, function) or []
    for place, number in enumerate(flat):
        side, least = ("left", 1) if place % 2 == 0 else ("right", 0)
        if number != -1 and number < least:
            raise ValueError(
                f"[{function}] window[{place // 2}]: expected {side} >= {least} or -1, got {number}"
            )


def require_rows(function: str, name: str, x: Tensor, width: int, dims: int | None = None) -> None:
    """Check that x has ``width`` channels. With ``dims`` 3, x must be [B, T, C]."""
    if x.size(-1) == width if dims is None and x.dim() else x.dim() == dims and x.size(-1) == width:
        return
    lead = {None: "..", 2: "rows", 3: "B, T"}[dims]
    raise ValueError(f"[{function}] {name}: expected shape [{lead}, {width}], got {list(x.shape)}")


def require_lengths(lengths: Tensor, x: Tensor) -> None:
    """Check that lengths are integers [B].

    Also check that they lie in 0 to T, where they can be read.
    """
    if lengths.dtype not in (torch.int64, torch.int32) or lengths.shape != x.shape[:1]:
        raise ValueError(
            f"[ExpertChoice] lengths: expected int64 of shape {[x.size(0)]}, got {lengths.dtype} "
            "of shape "
            f"{list(lengths.shape)}"
        )
    if not can_be_read(lengths):
        return
    low, high = (int(each) for each in lengths.aminmax())
    if low < 0 or high > x.size(1):
        raise ValueError(
            f"[ExpertChoice] lengths: expected 0 to {x.size(1)}, the tokens of x, got {low} to "
            f"{high}"
        )


def require_padding(at: str, mask: Tensor, packed: bool) -> None:
    """Check that an attention mask [B, T] holds 0 and 1 alone, where it can be read. Unless
    documents are packed, its zeros are on the left or on the right: positions and windows would
    count padding between tokens."""
    if not can_be_read(mask):
        return
    low, high = (int(each) for each in mask.aminmax())
    require(
        low >= 0 and high <= 1,
        f"{at}attention_mask: expected 0 and 1, got {low} to {high}; boundaries of documents are "
        "cu_seqlens",
    )
    if packed:
        return
    kept = mask.bool()
    runs = kept[:, :1].sum(1) + (kept[:, 1:] & ~kept[:, :-1]).sum(1)
    if (runs > 1).any():
        row = int((runs > 1).int().argmax())
        raise ValueError(
            f"{at}attention_mask: expected padding on the left or on the right, got some between "
            f"the tokens of row {row}"
        )


def is_mapped(values: Tensor) -> bool:
    """Whether vmap maps over a tensor, in compiled code never."""
    while not torch.compiler.is_compiling() and functorch.is_functorch_wrapped_tensor(values):
        if functorch.is_batchedtensor(values):
            return True
        values = functorch.get_unwrapped(values)
    return False


def can_be_read(values: Tensor) -> bool:
    """Whether a check may look at the values: on the CPU, outside of transforms and compiled
    code. On another device it would wait for all that has been computed there."""
    # This test stands alone because the compiler cannot trace the next one.
    if torch.compiler.is_compiling():
        return False
    plain = type(values) is Tensor and not functorch.is_functorch_wrapped_tensor(values)
    return plain and values.is_cpu and values.numel() > 0
