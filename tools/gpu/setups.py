"""Where a process runs: the device, the sizes, and what measures there."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Setup:
    root: Path
    out: Path
    device: str
    rehearse: bool  #: tiny sizes
    plain: bool
    interpret: bool

    def size(self, real: int, tiny: int) -> int:
        return tiny if self.rehearse else real

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, call, budget: float = 300.0) -> float:
        """The median time of a call. Events of the device, no flush of its cache (inputs are much
        larger than it), three calls at least."""
        call()
        self.synchronize()
        begin = time.perf_counter()
        call()
        self.synchronize()
        once = 1e3 * (time.perf_counter() - begin)
        if once > 2000:
            return once
        repeats = 1 if self.rehearse else max(3, min(50, int(budget / max(once, 1e-3))))
        times = []
        for _ in range(repeats):
            if self.device == "cuda":
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                call()
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last))
            else:
                begin = time.perf_counter()
                call()
                times.append(1e3 * (time.perf_counter() - begin))
        return statistics.median(times)

    def peak(self, call) -> float:
        """Gigabytes that a call takes beyond what was allocated before."""
        if self.device != "cuda":
            call()
            return 0.0
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 1e9


class Launches:
    """Counts the kernels of Triton that run inside a with statement; empty after a fallback."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        try:
            import triton

            self.chain = triton.knobs.runtime.launch_enter_hook
        except (ImportError, AttributeError):
            self.chain = None

    def _enter(self, metadata) -> None:
        self.names[metadata.get()["name"]] += 1

    def __enter__(self) -> Launches:
        if self.chain is not None:
            self.chain.add(self._enter)
        return self

    def __exit__(self, *_) -> None:
        if self.chain is not None:
            self.chain.remove(self._enter)


def clean() -> None:
    if torch.cuda.is_available():
        with contextlib.suppress(RuntimeError):  # the device failed, and the answer said so
            torch.cuda.empty_cache()


def make() -> Setup:
    rehearse = bool(os.environ.get("GPU_DAY_REHEARSE"))
    interpret = bool(os.environ.get("GPU_DAY_INTERPRET"))
    if not rehearse and not torch.cuda.is_available():
        raise RuntimeError("gpu_day: this machine has no GPU that torch can use (see --rehearse)")
    import nsimplex  # noqa: F401

    if interpret:  # the kernels under the key of the CPU, in Triton's interpreter
        from kernels_on_cpu import put_under_cpu

        put_under_cpu()
    return Setup(
        root=Path(os.environ["GPU_DAY_ROOT"]),
        out=Path(os.environ["GPU_DAY_OUT"]),
        device="cpu" if rehearse else "cuda",
        rehearse=rehearse,
        plain=bool(os.environ.get("GPU_DAY_PLAIN")),
        interpret=interpret,
    )
