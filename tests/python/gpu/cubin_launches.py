"""The C++ host of compiled GPU kernels with a driver that a test writes: files without machine
code, and the launches that the host makes of them."""

import ctypes
import importlib.machinery
import importlib.util
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).parent
WIDTHS = {"i32": "<i", "i64": "<q", "fp32": "<f"}
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    *[ctypes.c_uint] * 5,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)


def load_tool(root):
    """tools/build_cubins as a module."""
    if "build_cubins" not in sys.modules:
        path = str(root / "tools" / "build_cubins")
        loader = importlib.machinery.SourceFileLoader("build_cubins", path)
        module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader(loader.name, loader)
        )
        sys.modules["build_cubins"] = module
        loader.exec_module(module)
    return sys.modules["build_cubins"]


def write_file(tool, path, collection):
    """The file of a collection, in which the machine code of a kernel is the kernel's name."""
    index = collection.index()
    entries = {f"code{place}": f"code{place}\0".encode() for place in range(len(index["kernels"]))}
    for code, entry in zip(entries, index["kernels"], strict=True):
        entry |= {"code": code, "function": entry["kernel"]}
        entry |= {"warps": 4, "shared": 70000, "scratch": 0}
    tool.write_archive(str(path), index | {"compiler": "none"}, entries)
    return {entry["code"]: entry for entry in index["kernels"]}


@dataclass
class Made:
    """A launch that reached the driver."""

    code: str
    grid: tuple[int, int, int]
    threads: int
    shared: int
    values: list  # of the arguments in their order; addresses are numbers


class FakeDriver:
    """Stands for libcuda.so.1 in this process once it is loaded."""

    def __init__(self, folder):
        library = Path(folder) / "libcuda.so.1"
        command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library)]
        subprocess.run([*command, str(HERE / "fake_cuda.c")], check=True)
        self.library = ctypes.CDLL(str(library))
        self.entries, self.made, self.action, self.failure = {}, [], None, None
        self.callback = LAUNCH(self.launch)
        self.set_capability(90)

    def set_capability(self, capability):
        self.library.fake_set(self.callback, capability)

    def expect(self, entries, action=None):
        """The index's entries by code; `action(made)` does what the kernel would."""
        self.entries, self.made, self.action, self.failure = entries, [], action, None

    def launch(self, code, function, x, y, z, threads, shared, stream, arguments):
        try:
            made = Made(code.decode(), (x, y, z), threads, shared, [])
            for place, argument in enumerate(self.entries[made.code]["arguments"]):
                form = WIDTHS.get(argument["type"], "<Q")
                raw = ctypes.string_at(arguments[place], struct.calcsize(form))
                made.values.append(struct.unpack(form, raw)[0])
            self.made.append(made)
            if self.action is not None:
                self.action(made)
        except BaseException as failure:  # ctypes would only print it
            self.failure = failure
            return 1
        return 0


def leaves(value):
    """The arguments of a launch as the kernel has them: tuples in order, no constants."""
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def runtime_values(tool, launch):
    constant = tool.constant_names(launch.kernel)
    return [
        leaf
        for name, value in launch.arguments.items()
        if name not in constant and value is not None
        for leaf in leaves(value)
    ]


def at_address(address, like):
    """A tensor over memory of the driver's, with the sizes and strides of `like`."""
    count = 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True))
    if like.numel() == 0:
        return torch.empty_like(like)
    memory = (ctypes.c_char * (count * like.element_size())).from_address(address)
    return torch.frombuffer(memory, dtype=like.dtype).as_strided(like.shape, like.stride())


def with_addresses(value, values):
    """`value` with its tensors moved to the addresses among the values, numbers replaced."""
    if isinstance(value, tuple):
        return tuple(with_addresses(each, values) for each in value)
    raw = next(values)
    return at_address(raw, value) if isinstance(value, torch.Tensor) else raw
