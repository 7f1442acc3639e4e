"""What the error of a failed call tells of the tensors among its arguments.

Calls are not searched for such tensors before they run, because most calls succeed. Only the error
of torch leads to the argument that torch could not take, which is then named.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

from ._hints import is_dense

__all__ = ["describe", "learned_words", "placed_fault", "tensor_fault"]

_WORDED = (bool, int, float, str, type(None))  # entries that a message shows
# How torch words that an operation has no rule for tensors that are placed on ranks.
_UNPLACED = re.compile("DTensor|[Ss]harding|data is not allocated|Tensors to FakeTensors")


def tensor_fault(label: str, given: dict, error: Exception) -> Exception | None:
    """The error that names the argument which torch could not take; None if none stands out."""
    return (
        _wrong_tensor(label, given)
        or _plain_beside_sharded(label, given, error)
        or placed_fault(label, given, error)
        or _wrong_device(label, given)
        or _wrong_dtype(label, given, error)
    )


def learned_words(value: Tensor) -> str:
    """The words for a tensor that would lose its gradient if it became a number."""
    return f"{describe(value)} that requires a gradient, which it would not get"


def describe(value: object) -> str:
    """A value in a few words, without the numbers of a tensor."""
    if isinstance(value, Tensor) and not is_dense(value):
        if value.is_nested:
            return "a nested one"
        return f"layout {value.layout}" if not value.is_quantized else f"one of {value.dtype}"
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor of shape {list(value.shape)}"
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:36]} .."
    if isinstance(value, (list, tuple)) and all(isinstance(each, _WORDED) for each in value):
        text = f"{type(value).__name__} {value!r}"
        return text if len(text) <= 40 else f"{text[:36]} .."
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" of shape {list(shape)}" if isinstance(shape, tuple) else "")


def _wrong_tensor(label: str, given: dict) -> Exception | None:
    """Tensors of a kind that some operation could not take."""
    for name, tensor in _tensors(given):
        if not is_dense(tensor):
            return ValueError(f"[{label}] {name}: expected a dense tensor, got {describe(tensor)}")
    for name, tensor in _tensors(given):
        if tensor.is_meta:
            return ValueError(
                f"[{label}] {name}: expected a tensor that holds data, got one on device meta"
            )
    return None


def _plain_beside_sharded(label: str, given: dict, error: Exception) -> Exception | None:
    """A plain tensor for a layer whose weights are divided among ranks."""
    if "DTensor" not in str(error) or not isinstance(given.get("self"), torch.nn.Module):
        return None
    for name, tensor in _tensors(given):
        if type(tensor) is Tensor:
            return TypeError(
                f"[{label}] {name}: expected a DTensor, as the weights are, got "
                f"{describe(tensor)}; FSDP gathers the weights in a call of the module itself"
            )
    return None


def placed_fault(label: str, given: dict, error: Exception) -> Exception | None:
    """A tensor that is placed on ranks, for a function that has no rule for it."""
    text, kind = str(error), getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    if kind is None or not _UNPLACED.search(text):
        return None
    tensors = [*_tensors(given), *_tensors_inside(given)]
    plain = [x for _, x in tensors if x.is_floating_point() and not isinstance(x, kind)]
    name = next((name for name, x in tensors if isinstance(x, kind)), None)
    if name is None or (plain and "beside DTensors" in text):
        return None
    expected, hint = "a plain tensor", "; its full_tensor() is one"
    if isinstance(given.get("self"), torch.nn.Module):
        expected, hint = "a plain tensor, as the weights are", ""
    elif "nsimplex.distributed" not in sys.modules and "nsimplex" in text:
        hint = "; import nsimplex.distributed, which says how operators take it"
    elif "mixed" in text or "beside DTensors" in text:
        hint = (
            ", beside which the function makes plain ones; call it under "
            "torch.distributed.tensor.experimental.implicit_replication()"
        )
    return TypeError(f"[{label}] {name}: expected {expected}, got a DTensor{hint}")


def _wrong_device(label: str, given: dict) -> Exception | None:
    """The input of a layer whose weights lie elsewhere, or arguments that lie apart. A single
    number on the CPU fits every device."""
    layer = given.get("self")
    first: Tensor | None = None
    if isinstance(layer, torch.nn.Module):
        first = next(layer.parameters(), None)
    whose = "the layer's device" if first is not None else "the first argument's device"
    for name, tensor in _tensors(given):
        first = tensor if first is None else first
        if tensor.device != first.device and tensor.dim() > 0:
            return ValueError(
                f"[{label}] {name}: expected {whose} {first.device}, got {tensor.device}"
            )
    return None


def _wrong_dtype(label: str, given: dict, error: Exception) -> Exception | None:
    """The input of a layer whose weights have another dtype; autocast, where it is on, has seen to
    that before. Integers may be tokens, which are right: then torch must have spoken of dtypes."""
    layer = given.get("self")
    if not isinstance(layer, torch.nn.Module):
        return None
    dtypes = {parameter.dtype for parameter in layer.parameters()}
    of_dtypes = re.search("dtype|scalar type|not implemented for", str(error)) is not None
    for name, tensor in _tensors(given):
        if not (of_dtypes or tensor.is_floating_point()):
            return None
        if len(dtypes) == 1 and tensor.dtype not in dtypes:
            return TypeError(
                f"[{label}] {name}: expected the layer's dtype {dtypes.pop()}, got {tensor.dtype}"
            )
        break
    return None


def _tensors(given: dict) -> Iterator[tuple[str, Tensor]]:
    for name, value in given.items():
        if isinstance(value, Tensor):
            yield name, value
        for place, entry in enumerate(value) if isinstance(value, (list, tuple)) else ():
            if isinstance(entry, Tensor):
                yield f"{name}[{place}]", entry


def _tensors_inside(given: dict) -> Iterator[tuple[str, Tensor]]:
    """The tensors of graphs and other objects among the arguments."""
    for name, value in given.items():
        for field, entry in getattr(value, "__dict__", {}).items():
            if name != "self" and isinstance(entry, Tensor):
                yield f"{name}.{field.lstrip('_')}", entry
