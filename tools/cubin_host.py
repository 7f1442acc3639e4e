"""The Python host of the GPU kernels, with its launches recorded in place of being done."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cubin_programs import Trace

OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg"}


@dataclass(frozen=True)
class Launch:
    """One call of a kernel: kernel[grid](**arguments, **options)."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    options: dict[str, int]


@contextlib.contextmanager
def recorded_launches(run: bool = False, trace: Trace | None = None) -> Iterator[list[Launch]]:
    """Within it each launch of a kernel is appended to the list, and is a step of the trace. It is
    done where `run` says so."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    launches: list[Launch] = []
    before = {kind: kind.run for kind in (JITFunction, InterpretedFunction)}

    def record(self, *args, grid, warmup=False, **kwargs):
        given = dict(kwargs)
        options = {name: given.pop(name) for name in list(given) if name in OPTIONS}
        arguments = dict(zip(self.arg_names, args, strict=False)) | given
        sizes = grid(arguments) if callable(grid) else grid
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(self.fn).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        arguments = defaults | arguments
        ordered = {name: arguments[name] for name in self.arg_names}
        assert len(ordered) == len(arguments), set(arguments) - set(ordered)
        launches.append(Launch(self, tuple(sizes), ordered, options))
        if trace is not None:
            trace.steps.append({"launch": launches[-1]})
        if run:
            before[type(self)](self, *args, grid=grid, warmup=warmup, **kwargs)

    for kind in before:
        kind.run = record
    try:
        yield launches
    finally:
        for kind, method in before.items():
            kind.run = method


def constant_names(kernel: Any) -> set[str]:
    """The parameters of a kernel that are constants of its machine code."""
    parameters = inspect.signature(kernel.fn).parameters
    return {name for name, each in parameters.items() if "constexpr" in str(each.annotation)}


def host_modules() -> list[Any]:
    """The modules of nsimplex.gpu, in which sizes are computed."""
    import nsimplex.gpu

    names = [found.name for found in pkgutil.iter_modules(nsimplex.gpu.__path__)]
    return [
        importlib.import_module(f"nsimplex.gpu.{name}") for name in names if name != "registration"
    ]


@contextlib.contextmanager
def tiles_for(architecture: str) -> Iterator[None]:
    """Within it the host takes the tiles of this architecture, whatever the device is."""
    from nsimplex.gpu import gpu_tiles

    before = gpu_tiles.architecture
    gpu_tiles.architecture = lambda device: architecture
    try:
        yield
    finally:
        gpu_tiles.architecture = before


def run_host(order: int, forward: bool, tensors: dict[str, Any], numbers: dict[str, Any]):
    """The results of a pass as a list, unless a kernel is only recorded."""
    from nsimplex.gpu import attention_backward, attention_forward, call_options

    options = call_options.Options(
        window=[numbers[f"{side}.{m}"] for m in range(order) for side in ("left", "right")],
        logit_scale=numbers["logit_scale"],
        output_scale=numbers["output_scale"],
    )
    keys, values = ([tensors[f"{name}.{m}"] for m in range(order)] for name in ("keys", "values"))
    if forward:
        return list(attention_forward.forward(tensors["query"], keys, values, options))
    wanted = [True] * (1 + 2 * order) + [False, False]
    grad_query, grad_keys, grad_values, _ = attention_backward.backward(
        tensors["query"], keys, values, tensors["out"], tensors["lse"], tensors["grad_out"],
        tensors.get("grad_lse"), wanted, options,
    )  # fmt: skip
    return [grad_query, *grad_keys, *grad_values]
