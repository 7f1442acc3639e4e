"""Plans as one tensor each, so that a compiled or exported program takes the plan of any batch.

A plan is a list of tensors and a tuple of integers, and both differ from batch to batch. A compiler
checks the integers and every size, and compiles again where they differ. A packed plan is one int64
tensor, whose length alone the compiler sees, and an empty tensor that says how many rows the result
has. Operators in Python, beside those of the library, take packed plans and unpack them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

__all__ = ["as_autocast", "pack", "unpack"]

_DTYPES = (torch.int64, torch.int32, torch.bool, torch.uint8)


def pack(tensors: Sequence[Tensor], parts: Sequence[int], rows: int) -> list[Tensor]:
    """(the plan as int64 [length], an empty tensor [rows, 0])."""
    counts, data = [len(tensors), len(parts)], []
    for tensor in tensors:
        counts += [_DTYPES.index(tensor.dtype), tensor.dim(), *tensor.shape]
        flat = tensor.contiguous().view(-1).view(torch.uint8)
        data.append(torch.nn.functional.pad(flat, (0, -flat.numel() % 8)))
    head = torch.tensor([len(counts) + len(parts) + 1, *counts, *parts])
    body = torch.cat([*data, torch.empty(0, dtype=torch.uint8)]).view(torch.int64)
    return [torch.cat([head, body]), torch.empty(rows, 0)]


_unpacked: WeakIdKeyDictionary = WeakIdKeyDictionary()  # of plans that are in use


def unpack(packed: Tensor) -> tuple[list[Tensor], list[int]]:
    """The tensors and the parts. They are kept as long as the packed tensor, whose copies they are,
    because every layer and step unpacks the same plan."""
    found = _unpacked.get(packed)
    if found is None:
        found = _unpacked[packed] = _unpack(packed.detach().clone())
    return found


def _unpack(packed: Tensor) -> tuple[list[Tensor], list[int]]:
    start = int(packed[0])
    count, integers, *head = packed[1:start].tolist()
    tensors, at = [], 0
    for _ in range(count):
        dtype, dims = _DTYPES[head[at]], head[at + 1]
        shape = head[at + 2 : at + 2 + dims]
        at += 2 + dims
        numel = 1
        for extent in shape:
            numel *= extent
        words = -(-numel * dtype.itemsize // 8)
        own = packed[start : start + words]
        tensors.append((own if dtype == torch.int64 else own.view(dtype)[:numel]).view(shape))
        start += words
    return tensors, head[at : at + integers]


def as_autocast(*tensors: Tensor | None) -> list[Tensor | None]:
    """The tensors as autocast gives them to the operators of the library: in float32."""
    device = next(each for each in tensors if each is not None).device.type
    if not torch.is_autocast_enabled(device):
        return list(tensors)
    halves = torch.bfloat16, torch.float16
    return [each.float() if each is not None and each.dtype in halves else each for each in tensors]
