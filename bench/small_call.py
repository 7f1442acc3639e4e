"""What a small call costs from Python: the whole call beside the time its flops take at the rate of
a large one.

    python bench/small_call.py

One batch entry, one head, 64 queries, D = 64, windows 8 x 32, causal, fp32, one thread; medians of
2000 calls, in microseconds. `empty` is the same call with one key: what checks, dispatch and
allocation take.
"""

import json
import statistics
import time

import torch

import nsimplex


def median_microseconds(call, count: int = 2000) -> float:
    times = []
    for _ in range(count + 200):
        begin = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times[200:])


def make_call(length: int):
    query, k1, k2, v1, v2 = (torch.randn(1, 1, length, 64) for _ in range(5))
    return lambda: nsimplex.attention(query, [k1, k2], [v1, v2], causal=True, window=[8, 32])


def main() -> None:
    torch.set_num_threads(1)
    tuples = sum(min(i + 1, 8) * min(i + 1, 32) for i in range(64))
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    with torch.inference_mode():
        gflops = 2 * 1024**3 / 1e3 / median_microseconds(lambda: a @ b, 20)
        call = median_microseconds(make_call(64))
        empty = median_microseconds(make_call(1))
    flop_time = tuples * 4 * 64 / 1e3 / gflops
    row = {
        "call": call,
        "flop_time": flop_time,
        "above_flop_time": call - flop_time,
        "empty": empty,
    }
    print(json.dumps({name: round(value, 1) for name, value in row.items()}))


if __name__ == "__main__":
    main()
