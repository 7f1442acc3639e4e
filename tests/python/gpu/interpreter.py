"""Makes Triton's interpreter a test bench for kernels: ``install()`` before a kernel is defined.

The interpreter of Triton 3.7.1 runs a kernel on the CPU, one program after the other. It lacks some
of the hardware's arithmetic and checks nothing. This module adds both:

- bfloat16 arithmetic. The interpreter keeps bfloat16 as uint16 and computes with the bit patterns;
  it also truncates where the hardware rounds to nearest even.
- The maximum of a number and NaN: the number.
- ``input_precision`` of ``tl.dot``: tf32, tf32x3 and bf16x3 round fp32 operands as the hardware.
- Bounds: every element that a load or a store touches lies in a tensor of the launch.
- Races: no two programs write one element, none reads what another writes, and no two lanes of one
  store write one element. Atomic operations are refused, as they make results depend on the order.
- Any order of programs: ``settings.order`` is the seed of a shuffle.

Invisible here: barriers within a program, what the compiler makes of a kernel, and every type error
that only the compiler reports. test_gpu_compile.py compiles the kernels therefore.
"""

from __future__ import annotations

import collections
import inspect
import os
from dataclasses import dataclass

#: The version whose internals are patched here.
VERSION = "3.7.1"


@dataclass
class Settings:
    """What the test bench does; tests change the fields of ``settings``."""

    bounds: bool = True
    races: bool = True
    order: int | None = None  #: seed that shuffles the programs of a launch; None leaves them


settings = Settings()

#: Launches per kernel since the last ``launches.clear()``.
launches: collections.Counter[str] = collections.Counter()


def missing() -> str | None:
    """Why this process cannot run kernels in the interpreter, or None."""
    try:
        import triton
    except ImportError:
        return "Triton is not installed"
    if triton.__version__ != VERSION:
        return f"the interpreter of Triton {VERSION} is needed, this is {triton.__version__}"
    if not triton.knobs.runtime.interpret:
        return "TRITON_INTERPRET=1 was not set when Triton was imported"
    return None


# ---- Arithmetic ----


def round_bf16(x):
    """bfloat16 bits (uint16) of fp32 numbers: nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    up = ((bits >> 16) & 1) + np.uint32(0x7FFF)
    return np.where(nan, (bits >> 16) | 0x40, (bits + up) >> 16).astype(np.uint16)


def widen_bf16(bits):
    """fp32 numbers of bfloat16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_tf32(x):
    """fp32 numbers with 10 bits of mantissa: nearest, ties away from zero, as cvt.rna.tf32."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    finite = (bits & 0x7F800000) != 0x7F800000
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(finite, rounded, bits).view(np.float32)


def products(x, y, precision: str):
    """The product of fp32 matrices as ``input_precision`` computes it."""
    roundings = {"TF32": round_tf32, "TF32X3": round_tf32, "BF16X3": _rounded_to_bf16}
    if precision not in roundings:
        return np.matmul(x, y)
    rounded = roundings[precision]
    high_x, high_y = rounded(x), rounded(y)
    if precision == "TF32":
        return np.matmul(high_x, high_y)
    low_x, low_y = rounded(x - high_x), rounded(y - high_y)
    return np.matmul(low_x, high_y) + np.matmul(high_x, low_y) + np.matmul(high_x, high_y)


def _rounded_to_bf16(x):
    return widen_bf16(round_bf16(x))


def _numbers(handle):
    """The array of a handle, bfloat16 as fp32."""
    return widen_bf16(handle.data) if handle.dtype.scalar == tl.bfloat16 else handle.data


def _patch_arithmetic(builder) -> None:
    plain_cast, plain_binary, plain_fp_to_fp = (
        builder.cast_impl,
        builder.binary_op,
        builder.create_fp_to_fp,
    )
    handle = interpreter.TensorHandle

    def cast(self, source, target):
        kinds = source.dtype.scalar, target.scalar
        if tl.bfloat16 not in kinds or kinds[0] == kinds[1]:
            return plain_cast(self, source, target)
        data = _numbers(source)
        if kinds[1] == tl.bfloat16:
            return handle(round_bf16(data.astype(np.float32)), kinds[1])
        return handle(data.astype(interpreter._get_np_dtype(target)), kinds[1])

    def fp_to_fp(self, source, target, rounding):
        if tl.bfloat16 in (source.dtype.scalar, target.scalar):
            return cast(self, source, target)
        return plain_fp_to_fp(self, source, target, rounding)

    def binary(self, left, right, operation):
        if left.dtype.scalar != tl.bfloat16:
            return plain_binary(self, left, right, operation)
        result = operation(_numbers(left), _numbers(right))
        if result.dtype == np.float32:  # and not a comparison
            result = round_bf16(result)
        return handle(result, tl.bfloat16)

    def dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        x, y = _numbers(a), _numbers(b)
        if a.dtype.scalar == tl.float32:
            result = products(x, y, str(input_precision).split(".")[-1].upper())
        else:
            result = np.matmul(x.astype(d.data.dtype), y.astype(d.data.dtype))
        return handle(result + d.data, d.dtype.scalar)

    def refuse_atomics(self, *arguments):
        raise TypeError("atomic operations make results depend on the order of programs")

    def refuse_bf16(name):
        plain = getattr(builder, name)

        def checked(self, argument):
            if argument.dtype.scalar == tl.bfloat16:
                raise TypeError(f"{name} of bfloat16: convert to fp32 first")
            return plain(self, argument)

        setattr(builder, name, checked)

    builder.cast_impl, builder.create_fp_to_fp = cast, fp_to_fp
    builder.binary_op, builder.create_dot = binary, dot
    # Of a number and NaN, max and min of the hardware return the number.
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)
    builder.create_atomic_rmw = builder.create_atomic_cas = refuse_atomics
    for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "floor", "ceil"):
        refuse_bf16(f"create_{name}")

    plain_sum = interpreter.ReduceOps.sum

    def checked_sum(self, argument):
        if argument.dtype.scalar == tl.bfloat16:
            raise TypeError("sum of bfloat16: convert to fp32 first")
        return plain_sum(self, argument)

    interpreter.ReduceOps.sum = checked_sum


# ---- Memory ----


class Launch:
    """The memory of one launch: what programs may touch, and what they touched."""

    def __init__(self, arguments) -> None:
        ranges = sorted({each for value in arguments for each in _ranges(value)})
        self.begins = np.array([begin for begin, _ in ranges], dtype=np.uint64)
        self.ends = np.array([end for _, end in ranges], dtype=np.uint64)
        self.program = 0
        self.log: list[tuple[int, bool, np.ndarray]] = []  # program, whether it wrote, addresses

    def touch(self, pointers, mask, size: int, write: bool) -> None:
        pointers, mask = np.atleast_1d(pointers), np.atleast_1d(mask).astype(bool)
        used = pointers[np.broadcast_to(mask, pointers.shape)]
        if used.size == 0:
            return
        kind = "store" if write else "load"
        if settings.bounds:
            place = np.searchsorted(self.begins, used, side="right").astype(np.int64) - 1
            outside = place < 0
            if self.ends.size:
                outside |= used + np.uint64(size) > self.ends[np.maximum(place, 0)]
            if outside.any():
                raise IndexError(
                    f"{kind} outside the tensors of the launch: {int(outside.sum())} of "
                    f"{used.size} elements, program {self.program}"
                )
        if not (write or settings.races):
            return
        unique = np.unique(used)
        if write and unique.size != used.size:
            raise IndexError("two lanes of one store write the same element")
        if settings.races:
            self.log.append((self.program, write, unique))

    def finish(self) -> None:
        """Raises if two programs touched the same element and one of them wrote it."""
        writes = [(program, addresses) for program, wrote, addresses in self.log if wrote]
        if not writes:
            return
        written = np.concatenate([addresses for _, addresses in writes])
        owner = np.concatenate([np.full(addresses.size, p) for p, addresses in writes])
        rank = np.argsort(written, kind="stable")
        written, owner = written[rank], owner[rank]
        same = written[1:] == written[:-1]
        if (same & (owner[1:] != owner[:-1])).any():
            raise RuntimeError("race: two programs of one launch write the same element")
        for program, wrote, addresses in self.log:
            if wrote:
                continue
            place = np.minimum(np.searchsorted(written, addresses), written.size - 1)
            hit = written[place] == addresses
            if (hit & (owner[place] != program)).any():
                raise RuntimeError("race: a program reads what another of the same launch writes")


def _ranges(value):
    """Byte ranges of the tensors in an argument."""
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        if storage.nbytes():
            yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    elif hasattr(value, "base"):
        yield from _ranges(value.base)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _ranges(each)


_launch: Launch | None = None


def _patch_memory(builder) -> None:
    load, store = builder.create_masked_load, builder.create_masked_store

    def size_of(pointers) -> int:
        return max(1, pointers.get_element_ty().primitive_bitwidth // 8)

    def checked_load(self, pointers, mask, *rest, **named):
        _launch.touch(pointers.data, mask.data, size_of(pointers), False)
        return load(self, pointers, mask, *rest, **named)

    def checked_store(self, pointers, value, mask, *rest, **named):
        _launch.touch(pointers.data, mask.data, size_of(pointers), True)
        return store(self, pointers, value, mask, *rest, **named)

    builder.create_masked_load, builder.create_masked_store = checked_load, checked_store


def _run(self, *args, **kwargs) -> None:
    """A launch, in place of ``GridExecutor.__call__``: tensors are the CPU's and are not copied."""
    global _launch
    function, names = self.fn, inspect.getfullargspec(self.fn).args
    kwargs = {name: value for name, value in kwargs.items() if name in names}
    bound = inspect.getcallargs(function, *args, **kwargs)
    _launch = Launch(bound.values())
    launches[function.__name__] += 1
    arguments = {
        name: value if name in self.constexprs else interpreter._implicit_cvt(value)
        for name, value in bound.items()
    }
    grid = tuple(self.grid(arguments) if callable(self.grid) else self.grid)
    grid += (1,) * (3 - len(grid))
    patched = interpreter._patch_lang(function)
    try:
        interpreter.interpreter_builder.set_grid_dim(*grid)
        programs = list(np.ndindex(*grid))
        if settings.order is not None:
            np.random.default_rng(settings.order).shuffle(programs)
        with np.errstate(all="ignore"):
            for program in programs:
                _launch.program = int(np.ravel_multi_index(program, grid))
                interpreter.interpreter_builder.set_grid_idx(*map(int, program))
                function(**arguments)
        _launch.finish()
    finally:
        patched.restore()
        _launch = None


def install() -> None:
    """Patches the interpreter, once. ``missing()`` has returned None."""
    global np, tl, interpreter
    import numpy as np
    import triton.language as tl
    from triton.runtime import interpreter

    if interpreter.GridExecutor.__call__ is _run:
        return
    _patch_arithmetic(interpreter.InterpreterBuilder)
    _patch_memory(interpreter.InterpreterBuilder)
    interpreter.GridExecutor.__call__ = _run


def environment() -> dict[str, str]:
    """The environment of a process whose kernels run in the interpreter."""
    return {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
