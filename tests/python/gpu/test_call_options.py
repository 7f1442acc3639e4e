"""What kernels take of a call's options."""

import pytest
import torch
from torch import Tensor, tensor

call_options = pytest.importorskip("nsimplex.gpu.call_options", reason="needs Triton")
axes = pytest.importorskip("nsimplex.gpu.axes", reason="needs Triton")


def mask_of(mask: Tensor) -> Tensor:
    heads = torch.zeros(1, 1, 1, 2)
    keys = [torch.zeros(1, 1, mask.shape[-1], 2)]
    known = axes.axes_of(1, 1, [mask.shape[-1]], causal=False, window=None)
    return call_options.mask_argument(mask, heads, keys, known)[1].flatten()


def test_only_infinity_excludes_a_tuple():
    """The smallest float64 is a finite number, and fp32 has none of its size."""
    lowest = torch.finfo(torch.float64).min
    mask = mask_of(tensor([[[[lowest, -torch.inf, 0.5, -lowest]]]], dtype=torch.float64))
    largest = torch.finfo(torch.float32).max
    assert mask.tolist() == [-largest, -torch.inf, 0.5, largest]
