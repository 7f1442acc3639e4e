"""What the Python host of the GPU kernels does, as a program of numbers that C++ can carry out.

The host runs once with tensors that have no data and sizes that remember where they come from.
What it allocates and launches is written down with these formulas, and each decision that it takes
on the way becomes a condition. A call that satisfies all conditions takes the same decisions, so
its launches are what the formulas say. There is no second plan that could differ from the host's.

A formula is a number, the name of a size ("query.size.2", "keys.0.stride.1", "left.0"), or a list:
["+", a, b], also with - * // % <<, and ["neg", a], ["bits", a] (the binary digits of a). Division
rounds down. A condition is ["<", a, b], also with <= > >= == !=. A file keeps each formula once
(Formulas).
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

import torch

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
COMPUTE = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
}


def evaluate(formula: Any, numbers: dict[str, Any]) -> Any:
    if isinstance(formula, str):
        return numbers[formula]
    if not isinstance(formula, list):
        return formula
    if formula[0] in ("neg", "bits"):
        value = evaluate(formula[1], numbers)
        return -value if formula[0] == "neg" else value.bit_length()
    function = COMPUTE.get(formula[0]) or COMPARE[formula[0]]
    return function(evaluate(formula[1], numbers), evaluate(formula[2], numbers))


class Formulas:
    """A list in which each formula stands once, after those that it refers to by their places."""

    def __init__(self):
        self.list: list[Any] = []
        self.places: dict[Any, int] = {}

    def place(self, formula: Any) -> int:
        if isinstance(formula, list):
            formula = (formula[0], *(self.place(each) for each in formula[1:]))
        key = (type(formula), formula)
        if key not in self.places:
            self.places[key] = len(self.list)
            self.list.append(list(formula) if isinstance(formula, tuple) else formula)
        return self.places[key]


class Trace:
    """The steps and conditions of one run."""

    def __init__(self):
        self.conditions: list[list[Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.buffers = 0

    def decide(self, name: str, a: Any, b: Any) -> bool:
        outcome = COMPARE[name](plain(a), plain(b))
        condition = [name if outcome else OPPOSITE[name], formula_of(a), formula_of(b)]
        if condition not in self.conditions:
            self.conditions.append(condition)
        return outcome

    def settled(self, x: Any) -> Any:
        """The plain number; from here on the call must have this one."""
        if isinstance(x, Number):
            self.decide("==", x, x.value)
        return plain(x)


class Number:
    """A number with the formula that it comes from. It is not an int, so that nothing can take its
    value without a condition."""

    def __init__(self, trace: Trace, value: int | float, formula: Any):
        self.trace, self.value, self.formula = trace, value, formula

    def __repr__(self):
        return f"Number({self.value}, {self.formula})"

    def __bool__(self):
        return self.trace.decide("!=", self, 0)

    def __lt__(self, other):
        return self.trace.decide("<", self, other)

    def __le__(self, other):
        return self.trace.decide("<=", self, other)

    def __gt__(self, other):
        return self.trace.decide(">", self, other)

    def __ge__(self, other):
        return self.trace.decide(">=", self, other)

    def __eq__(self, other):
        return isinstance(other, Number | int | float) and self.trace.decide("==", self, other)

    def __ne__(self, other):
        return not isinstance(other, Number | int | float) or self.trace.decide("!=", self, other)

    def __hash__(self):
        return hash(self.value)

    def _made(self, name, a, b):
        formula = [name, formula_of(a), formula_of(b)]
        if (formula[0], formula[1]) in (("*", 1), ("+", 0)):
            formula = formula[2]
        return Number(self.trace, COMPUTE[name](plain(a), plain(b)), formula)

    def __add__(self, other):
        return self._made("+", self, other)

    def __radd__(self, other):
        return self._made("+", other, self)

    def __sub__(self, other):
        return self._made("-", self, other)

    def __rsub__(self, other):
        return self._made("-", other, self)

    def __mul__(self, other):
        return self._made("*", self, other)

    def __rmul__(self, other):
        return self._made("*", other, self)

    def __floordiv__(self, other):
        return self._made("//", self, other)

    def __rfloordiv__(self, other):
        return self._made("//", other, self)

    def __mod__(self, other):
        return self._made("%", self, other)

    def __rmod__(self, other):
        return self._made("%", other, self)

    def __lshift__(self, other):
        return self._made("<<", self, other)

    def __rlshift__(self, other):
        return self._made("<<", other, self)

    def __neg__(self):
        return Number(self.trace, -self.value, ["neg", self.formula])

    def __abs__(self):
        return -self if self < 0 else self

    def bit_length(self):
        return Number(self.trace, self.value.bit_length(), ["bits", self.formula])

    def __index__(self):
        return operator.index(self.trace.settled(self))

    def __int__(self):
        return int(self.trace.settled(self))

    def __float__(self):
        return float(self.trace.settled(self))


def plain(x: Any) -> Any:
    return x.value if isinstance(x, Number) else x


def formula_of(x: Any) -> Any:
    return x.formula if isinstance(x, Number) else x


def symbol(trace: Trace, name: str, value: Any) -> Any:
    return Number(trace, value, name)


class Shadow:
    """A tensor without data: an input of the call, or a buffer of the program."""

    def __init__(self, trace, name, shape, strides, dtype, offset=0):
        self.trace, self.name, self.dtype, self.offset = trace, name, dtype, offset
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.device = torch.device("cuda", 0)
        self.is_cuda, self.requires_grad, self.ndim = True, False, len(self.shape)

    def __repr__(self):
        return f"Shadow({self.name}, {[plain(n) for n in self.shape]})"

    def view(self):
        """How to see the tensor of this name as this one."""
        sizes, strides = ([formula_of(n) for n in each] for each in (self.shape, self.strides))
        return {"tensor": self.name, "sizes": sizes, "strides": strides}

    def size(self, d=None):
        return self.shape if d is None else self.shape[d]

    def stride(self, d=None):
        return self.strides if d is None else self.strides[d]

    def dim(self):
        return self.ndim

    def numel(self):
        count = 1
        for n in self.shape:
            count = count * n
        return count

    def element_size(self):
        return self.dtype.itemsize

    def is_contiguous(self):
        return all(
            bool(have == want) or bool(n == 1)
            for n, have, want in zip(self.shape, self.strides, dense(self.shape), strict=True)
        )

    def contiguous(self):
        return self if self.is_contiguous() else self.copied(dense(self.shape), self.dtype)

    def to(self, dtype):
        return self if dtype == self.dtype else self.copied(self.strides, dtype)

    def float(self):
        return self.to(torch.float32)

    def copied(self, strides, dtype):
        copy = buffer(self.trace, self.shape, strides, dtype)
        self.trace.steps.append({"copy": [copy.view(), self.view()]})
        return copy

    def transpose(self, a, b):
        shape, strides = list(self.shape), list(self.strides)
        shape[a], shape[b], strides[a], strides[b] = shape[b], shape[a], strides[b], strides[a]
        return Shadow(self.trace, self.name, shape, strides, self.dtype, self.offset)

    def storage_offset(self):
        return self.offset

    def __getitem__(self, places):
        everything, channels = places
        if everything is not Ellipsis or channels != slice(None, channels.stop):
            raise TypeError(f"the host takes {places} of {self.name}: no view says this yet")
        shape = [*self.shape[:-1], channels.stop]
        return Shadow(self.trace, self.name, shape, self.strides, self.dtype, self.offset)

    def copy_(self, other):
        self.trace.steps.append({"copy": [self.view(), other.view()]})
        return self

    def new_empty(self, *sizes, dtype=None):
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
        return buffer(self.trace, sizes, dense(sizes), dtype or self.dtype)

    def new_zeros(self, *sizes, dtype=None):
        result = self.new_empty(*sizes, dtype=dtype)
        self.trace.steps[-1]["zero"] = True
        return result


def dense(shape):
    strides, step = [], 1
    for n in reversed(list(shape)):
        strides.insert(0, step)
        step = step * n
    return strides


def buffer(trace, shape, strides, dtype, zero=False):
    name = f"buffer.{trace.buffers}"
    trace.buffers += 1
    trace.steps.append(
        {
            "new": name,
            "sizes": [formula_of(n) for n in shape],
            "strides": [formula_of(n) for n in strides],
            "type": str(dtype).removeprefix("torch."),
            "zero": zero,
        }
    )
    return Shadow(trace, name, shape, strides, dtype)


class ShadowTorch:
    """Stands for torch in the modules of the host."""

    def __init__(self, trace):
        self.trace = trace

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty(self, *sizes, dtype, device=None, zero=False):
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
        return buffer(self.trace, sizes, dense(sizes), dtype, zero)

    def zeros(self, *sizes, dtype, device=None):
        return self.empty(*sizes, dtype=dtype, zero=True)

    def empty_strided(self, sizes, strides, dtype, device=None):
        return buffer(self.trace, sizes, strides, dtype)

    def empty_like(self, like, dtype=None, memory_format=None, device=None):
        keep = like.strides if memory_format is None else dense(like.shape)
        return buffer(self.trace, like.shape, keep, dtype or like.dtype)

    def zeros_like(self, like, dtype=None):
        result = self.empty_like(like, dtype)
        self.trace.steps[-1]["zero"] = True
        return result


def counted(trace):
    """range() whose number of passes is a condition."""

    def steps(*bounds):
        begin, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        count = -((begin - end) // step)
        count = max(0, trace.settled(count))
        return [begin + i * step for i in range(count)]

    return steps


@contextlib.contextmanager
def shadowed(trace: Trace, modules: list[Any]) -> Iterator[None]:
    """Within it the modules allocate buffers of the program in place of tensors."""
    before = [(module, dict(vars(module))) for module in modules]
    for module in modules:
        if "torch" in vars(module):
            module.torch = ShadowTorch(trace)
        module.range = counted(trace)
        module.float = lambda x: x if isinstance(x, Number) else float(x)
    try:
        yield
    finally:
        for module, names in before:
            for name in set(vars(module)) - set(names):
                delattr(module, name)
            vars(module).update(names)
