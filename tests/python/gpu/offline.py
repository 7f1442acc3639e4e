"""Compiles the kernels that a call would launch, for a GPU that is not here, and reads the code.

``launches_of`` runs the launch code of nsimplex.gpu on fake CUDA tensors and notes every kernel
with its arguments, so that the specialisations are those of the tile table. ``compile_launch``
compiles one as Triton would on that GPU. ``Code`` has what matters of the result.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from unittest import mock

import torch
from torch import Tensor

#: Instructions of matrix products, per architecture: all, and those of a whole warpgroup, without
#: which sm_90 and sm_100 have a fraction of their speed.
MATRIX = {
    "sm_80": r"\bHMMA",
    "sm_90": r"\bHG?MMA",
    "sm_100": r"\b(HMMA|UTC\w*MMA)",
    "gfx942": r"\bv_mfma_",
}
WIDE = r"\b(HGMMA|UTC\w*MMA)"
#: Bytes of shared memory that a program may have; an NVIDIA block may use 1 KB less than a
#: multiprocessor has.
SHARED = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10, "gfx942": 64 << 10}
TENSOR_COLUMNS = 512  #: of tensor memory on sm_100; more is no error of the compiler


def target(arch: str):
    """Triton's description of a GPU."""
    from triton.backends.compiler import GPUTarget

    if arch.startswith("sm_"):
        return GPUTarget("cuda", int(arch[3:]), 32)
    return GPUTarget("hip", arch, 64)


@dataclass
class Launched:
    """A kernel with the arguments of one launch."""

    kernel: object
    signature: dict
    constexprs: dict
    attributes: dict
    options: dict

    @property
    def name(self) -> str:
        return self.kernel.fn.__name__


def launches_of(arch: str, call) -> list[Launched]:
    """The kernels that ``call`` launches on this GPU, each specialisation once. ``call`` takes a
    function that makes tensors: ``make(*shape, dtype=..)``."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from triton.compiler import make_backend
    from triton.runtime import jit

    from nsimplex.gpu import axes, gpu_tiles

    backend, found = make_backend(target(arch)), {}

    def stand_in(value):
        if isinstance(value, Tensor):  # without data, aligned as the allocator does it
            return jit.MockTensor(value.dtype, tuple(value.shape))
        return tuple(map(stand_in, value)) if isinstance(value, tuple) else value

    def note(self, *args, grid, warmup, **named):
        named = {name: stand_in(value) for name, value in named.items()}
        bind = jit.create_function_from_signature(self.signature, self.params, backend)
        bound, kinds, _ = bind(*map(stand_in, args), **named, debug=False)
        options, signature, constexprs, attributes = self._pack_args(
            backend, named | {"debug": False}, bound, kinds, None
        )
        launched = Launched(self, signature, constexprs, attributes, options.__dict__)
        found.setdefault((launched.name, str(launched)), launched)

    def table(batch, queries, given, *rest):  # which torch computes, on the device
        return torch.empty(len(given), batch, queries, 2, dtype=torch.int32, device="cuda")

    hip = None if arch.startswith("sm_") else "6.4"
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(mock.patch.object(jit.JITFunction, "run", note))
        enter(mock.patch.object(gpu_tiles, "architecture", lambda device: arch))
        enter(mock.patch.object(axes, "_table", table))
        enter(mock.patch.object(torch.version, "hip", hip))
        enter(FakeTensorMode())
        call(lambda *shape, dtype: torch.empty(*shape, dtype=dtype, device="cuda"))
    return list(found.values())


@dataclass(frozen=True)
class Code:
    """Counts of a compiled kernel. Loops are the innermost ones with matrix instructions."""

    registers: int
    shared: int  #: bytes
    tensor_columns: int
    matrix: int  #: matrix instructions
    loop_matrix: int  #: of them in loops
    loop_wide: int  #: of those, the ones of a whole warpgroup
    loop_spills: int  #: loads and stores of local memory in loops (AMD: spilled registers)
    loop_waits: int  #: WARPGROUP instructions in loops, of sm_90
    unequal_sums: int  #: sums over threads that each round another term; see ``unequal_sums``

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items())


def compile_launch(launched: Launched, arch: str) -> Code:
    """Compiles a kernel with Triton's own assembler, without a driver."""
    import triton
    from triton.compiler import ASTSource

    source = ASTSource(
        fn=launched.kernel,
        signature=launched.signature,
        constexprs=launched.constexprs,
        attrs=launched.attributes,
    )
    made = triton.compile(source, target=target(arch), options=launched.options)
    metadata = made.metadata
    columns = getattr(metadata, "tmem_size", 0) or 0
    if not arch.startswith("sm_"):
        text = made.asm["amdgcn"]
        number = lambda key: int(re.search(rf"\.{key}:\s+(\d+)", text).group(1))
        matrix = len(re.findall(MATRIX[arch], text))
        return Code(
            number("vgpr_count"),
            metadata.shared,
            0,
            matrix,
            matrix,
            0,
            number("vgpr_spill_count"),
            0,
            0,
        )
    instructions, registers = disassemble(made.asm["cubin"])
    wanted = re.compile(MATRIX[arch])
    count = lambda pattern, lines: sum(bool(re.search(pattern, line)) for _, line in lines)
    loops = innermost_loops(instructions, wanted)
    in_loops = lambda pattern: sum(count(pattern, body) for body in loops)
    return Code(
        registers,
        metadata.shared,
        columns,
        count(wanted, instructions),
        in_loops(wanted),
        in_loops(WIDE),
        in_loops(r"\b(LDL|STL)\b"),
        in_loops(r"\bWARPGROUP"),
        unequal_sums(instructions),
    )


def disassemble(cubin: bytes) -> tuple[list[tuple[int, str]], int]:
    """(address and text of every instruction, registers of a thread)."""
    import triton

    tools = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [os.path.join(tools, "cuobjdump"), "--dump-sass", "--dump-resource-usage", file.name],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", text, re.MULTILINE)
    registers = re.search(r"REG:(\d+)", text)
    return [(int(at, 16), line) for at, line in lines], int(registers.group(1) if registers else 0)


def innermost_loops(code: list[tuple[int, str]], wanted: re.Pattern) -> list[list]:
    """The instructions of every loop (a backward branch) that has a wanted one, and no smaller loop
    that has one."""
    ranges: dict[int, int] = {}
    for address, line in code:
        jump = re.search(r"\bBRA\b.*?\b0x([0-9a-f]+)", line)
        if jump and int(jump.group(1), 16) < address:
            begin = int(jump.group(1), 16)
            ranges[begin] = max(address, ranges.get(begin, 0))
    marks = [address for address, line in code if wanted.search(line)]
    spans = [span for span in ranges.items() if any(span[0] <= at <= span[1] for at in marks)]
    inside = lambda one, other: one != other and other[0] <= one[0] and one[1] <= other[1]
    inner = [span for span in spans if not any(inside(other, span) for other in spans)]
    return [[each for each in code if begin <= each[0] <= end] for begin, end in inner]


def unequal_sums(code: list[tuple[int, str]]) -> int:
    """How often a value of another thread is the addend of a fused product.

    Threads that add up a value by shuffles all hold the sum, as long as a + b is b + a. A product
    that is fused with the addition is not rounded in its own thread, but is in the others: their
    sums differ in the last bit, and it is open whose is stored.
    """
    shuffled, found = set(), 0
    for _, line in code:
        operation, _, operands = re.sub(r"^@!?U?P\w+\s+", "", line.strip()).partition(" ")
        registers = re.findall(r"\bR\d+\b", operands)
        if operation.startswith("SHFL"):
            shuffled.add(registers[0])
            continue
        found += operation.startswith("FFMA") and registers[-1] in shuffled
        if registers and not operation.startswith(("ST", "BRA")):
            shuffled.discard(registers[0])
    return found
