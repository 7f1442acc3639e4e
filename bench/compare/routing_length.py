"""Time and memory of choosing tuples, and of attending to them, against the length at fixed k.

    python bench/compare/routing_length.py
    python bench/compare/routing_length.py --lengths 2048,4096,8192,16384,32768 --k 32 --order 2

One line for every length: milliseconds and peak megabytes of

- `indexer`: topk_keys over all earlier tokens (every pair is scored, slope 2 in T; memory O(T k),
  slope 1);
- `attention`: sparse attention of the chosen tuples, k^N a query (slope 1 in both), where this
  build has it;
- `dense`: dense attention under windows of k on every axis, the same number of tuples (slope 1).

The last lines are slopes of log time and of log memory in log T, least squares over the lengths.
Time is the best of --repeats of the thread's own processor time with one thread, else of the clock;
memory is what the call's process grew by at most, counted by the operating system (VmHWM), each
measurement in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time

import torch
from turns import megabytes, reset_peak

import nsimplex


def parts(arguments, length: int) -> dict:
    """name -> a call of one head group, everything it needs made beforehand."""
    torch.manual_seed(1)
    order, k = arguments.order, arguments.k
    index_query = torch.randn(1, arguments.index_heads, length, arguments.index_dim)
    index_key = torch.randn(1, 1, length, arguments.index_dim)
    weights = torch.rand(1, arguments.index_heads, length)
    query, *keys = (
        torch.randn(1, arguments.heads, length, arguments.dim) for _ in range(order + 1)
    )
    values = [torch.randn_like(key) for key in keys]

    def choose():
        return nsimplex.topk_keys(index_query, index_key, k, weights=weights, causal=True)

    calls = {"indexer": choose}
    if hasattr(nsimplex, "sparse_attention"):
        # Random earlier keys: what is chosen does not change the cost.
        table = (torch.rand(1, 1, length, k) * torch.arange(1, length + 1)[:, None]).long()
        table = table.masked_fill(torch.arange(k) > torch.arange(length)[:, None], -1)
        calls["attention"] = lambda: nsimplex.sparse_attention(
            query, keys, values, table, pattern="product"
        )
    calls["dense"] = lambda: nsimplex.attention(
        query, keys, values, causal=True, window=[k] * order
    )
    return calls


def measure(arguments) -> dict:
    torch.set_num_threads(arguments.threads)
    clock = time.thread_time if arguments.threads == 1 else time.perf_counter
    call = parts(arguments, arguments.length)[arguments.part]
    reset_peak()
    before, best = megabytes("VmHWM"), math.inf
    for _ in range(arguments.repeats):
        begin = clock()
        call()
        best = min(best, clock() - begin)
    return {"ms": 1e3 * best, "mb": megabytes("VmHWM") - before}


def slope(lengths: list[int], values: list[float]) -> float:
    x = [math.log(length) for length in lengths]
    y = [math.log(max(value, 1e-3)) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum(
        (a - mean_x) ** 2 for a in x
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", default="2048,4096,8192,16384,32768")
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--index-heads", type=int, default=4)
    parser.add_argument("--index-dim", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        return print(json.dumps(measure(arguments)))

    lengths = [int(length) for length in arguments.lengths.split(",")]
    names = list(parts(arguments, 2 * arguments.k))
    results = {name: [] for name in names}
    for length in lengths:
        for name in names:
            command = [sys.executable, *sys.argv, "--part", name, "--length", str(length)]
            out = subprocess.run(
                command, check=True, capture_output=True, text=True, env=os.environ
            )
            results[name].append(json.loads(out.stdout))
        line = {
            name: {unit: round(value, 1) for unit, value in results[name][-1].items()}
            for name in names
        }
        print(json.dumps({"length": length, **line}), flush=True)
    for name in names:
        time_slope = slope(lengths, [result["ms"] for result in results[name]])
        memory_slope = slope(lengths, [result["mb"] for result in results[name]])
        print(
            json.dumps(
                {"slopes": name, "time": round(time_slope, 3), "memory": round(memory_slope, 3)}
            )
        )


if __name__ == "__main__":
    main()
