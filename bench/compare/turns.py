"""Calls that take turns in one process, timed; and how much memory a call takes."""

from __future__ import annotations

import ctypes
import statistics
import time

import torch


def medians(calls: dict, repeats: int) -> dict:
    """Milliseconds of each call: the median of processor time with one thread, else of the time of
    the clock."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            begin = clock()
            call()
            times[name].append(1e3 * (clock() - begin))
    return {name: statistics.median(of_name) for name, of_name in times.items()}


def megabytes(field: str) -> float:
    """Of this process, as the operating system counts them: VmRSS, or VmHWM since reset_peak()."""
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def reset_peak() -> None:
    ctypes.CDLL(None).malloc_trim(
        0
    )  # or the call would first fill what making its inputs has freed
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def growth(call) -> float:
    """Megabytes that the process grows by, at most, during a call."""
    reset_peak()
    before = megabytes("VmRSS")
    call()
    return max(megabytes("VmHWM") - before, 0)
