"""A plugin of pytest: tensors that a test makes are on the device GPU_DAY_DEVICE.

The tests draw with generators of the CPU; such numbers are drawn there and moved.
"""

from __future__ import annotations

import os

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors


class OnDevice(TorchFunctionMode):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.makers = torch.device(device), _device_constructors()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function not in self.makers or kwargs.get("device") is not None:
            return function(*args, **kwargs)
        generator = kwargs.get("generator")
        if generator is None or generator.device == self.device:
            return function(*args, **kwargs, device=self.device)
        leaf = kwargs.pop("requires_grad", False)
        made = function(*args, **kwargs, device=generator.device).to(self.device)
        return made.requires_grad_() if leaf else made


def pytest_configure(config) -> None:
    device = os.environ.get("GPU_DAY_DEVICE", "cuda")
    if device == "cuda":  # tests that compare bits also call composites, whose sums need it
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    OnDevice(device).__enter__()
