"""Calls that take turns in one process, timed."""

from __future__ import annotations

import statistics
import time

import torch


def medians(calls: dict, repeats: int) -> dict:
    """Milliseconds of each call: the median of processor time with one thread, else of the time of the clock."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            begin = clock()
            call()
            times[name].append(1e3 * (clock() - begin))
    return {name: statistics.median(of_name) for name, of_name in times.items()}
