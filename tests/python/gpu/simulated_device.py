"""A device that a machine without a GPU can simulate, for tests of composites.

Inside `SimulatedDevice()` the numbers of a tensor on the device (torch calls it "meta") lie on the
CPU, out of reach. Every operator on such tensors comes to the mode below autograd. Of operators of
nsimplex the mode runs the composite in C++, whose own calls come back to the mode one by one.
Operators of torch run on the numbers, so the results are those of the CPU. What a GPU refuses is
refused here: tensors of two devices in one call, and pointers to the data. What makes the CPU wait
for a GPU is counted in `waits`: values that are read, copies between the devices, and results whose
shape depends on values.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from unittest import mock

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "meta"

#: Their shapes depend on values, or they look at their result.
WAITING = {
    "_linalg_eigh",
    "_linalg_svd",
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "masked_select",
    "nonzero",
    "unique_consecutive",
    "unique_dim",
}
#: These take tensors of several devices; the CPU's indices are copied.
COPYING = {"copy_", "_to_copy", "index", "index_put_", "_index_put_impl_"}


class OnDevice(torch.Tensor):
    """A tensor on the simulated device; `numbers` has the same on the CPU."""

    @staticmethod
    def __new__(cls, numbers: torch.Tensor, requires_grad: bool = False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=NAME,
            requires_grad=requires_grad,
        )

    def __init__(self, numbers: torch.Tensor, requires_grad: bool = False) -> None:
        self.numbers = numbers

    def tolist(self) -> list:
        return self.to("cpu").tolist()

    def __repr__(self) -> str:
        return f"OnDevice({self.numbers!r})"

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        raise RuntimeError(f"{function}: outside of the simulated device")


def is_on_device(value: object) -> bool:
    return isinstance(value, OnDevice)


def _is_device(given: object) -> bool:
    return given is not None and torch.device(given).type == NAME


class SimulatedDevice(TorchDispatchMode):
    """The mode."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.own: Counter[str] = Counter()  #: operators of nsimplex that computed on the device
        self.launches = 0  #: operators of torch on the device

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        there = any(map(is_on_device, pytree.tree_leaves((arguments, options))))
        if function.namespace != "nsimplex":
            with self:  # what is made of other operators, below autograd
                result = function.decompose(*arguments, **options)
            if result is not NotImplemented:
                return result
            return self._run(function, arguments, options, there)
        if there:
            self.own[function._opname] += 1
        keys = torch._C.DispatchKey
        order = [keys.CompositeExplicitAutograd, keys.CompositeImplicitAutograd]
        for key in order if there else [keys.CPU, *order]:
            if function.has_kernel_for_dispatch_key(key):
                with self:
                    return function._op_dk(key, *arguments, **options)
        raise NotImplementedError(f"{function}: no kernel for devices")

    def _run(self, function, arguments, options, there):
        name = function._opname
        tensors = [
            x for x in pytree.tree_leaves((arguments, options)) if isinstance(x, torch.Tensor)
        ]
        # A single number of the CPU may meet tensors of a device.
        here = [x for x in tensors if not is_on_device(x) and x.dim() > 0]
        wanted = options.get("device")
        if there:
            self.launches += 1
            self._count(name, tensors, here, options)
            if here and name not in COPYING:
                raise RuntimeError(f"{function}: tensors of two devices")
        if name == "_to_copy" and wanted is not None and _is_device(wanted) != there:
            self.waits["copy between devices"] += 1
        if _is_device(wanted):
            options = {**options, "device": "cpu"}
        take = lambda x: x.numbers if is_on_device(x) else x
        result = function(*pytree.tree_map(take, arguments), **pytree.tree_map(take, options))
        if not (_is_device(wanted) or (there and wanted is None)):
            return result
        known = {id(x.numbers): x for x in tensors if is_on_device(x)}

        def give(x):
            if not isinstance(x, torch.Tensor):
                return x
            return known[id(x)] if id(x) in known else OnDevice(x)

        return pytree.tree_map(give, result)

    def _count(self, name, tensors, here, options):
        if name in WAITING:
            self.waits[name] += 1
        if name == "repeat_interleave" and options.get("output_size") is None:
            self.waits["repeats whose sum is read"] += 1
        if here and name in COPYING:
            self.waits["copy between devices"] += 1
        masks = any(x.dtype in (torch.bool, torch.uint8) for x in tensors[1:])
        if name == "index" and masks:
            self.waits["index by a mask"] += 1


@contextmanager
def simulated():
    """The mode; Python functions take its tensors, though "meta" otherwise has no data and no
    autocast."""
    is_meta = property(lambda self: False)
    with (
        mock.patch.object(torch.Tensor, "is_meta", is_meta),
        mock.patch.object(torch, "is_autocast_enabled", lambda device=None: False),
        SimulatedDevice() as device,
    ):
        yield device


def on_device(tree):
    """Copies of the tensors of a tree on the simulated device."""
    move = lambda x: OnDevice(x.detach().clone(), x.requires_grad)
    return pytree.tree_map(lambda x: move(x) if isinstance(x, torch.Tensor) else x, tree)


def on_host(tree):
    """The same tensors on the CPU."""
    return pytree.tree_map(lambda x: x.numbers if is_on_device(x) else x, tree)
