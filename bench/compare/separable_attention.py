"""Separable attention beside plain PyTorch, and its time against the length; one JSON object a
line.

    python bench/compare/separable_attention.py --threads 1
    python bench/compare/separable_attention.py --slope --threads 1

The peer is what the formula is in PyTorch with memory that does not grow with T R Dv: blocks of
queries, states as cumulative sums of outer products within a block, carried from block to block
(order 1: matrix products of a block, as in chunked linear attention). Its backward is autograd
block by block from the last to the first, with states recomputed. Both take turns in one process;
medians, with one thread of its processor time, which other work on the machine disturbs least, else
of the time of the clock. The pass "backward" is forward and backward together. --slope fits the
exponent of time against T, from 1k to 32k.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics

import torch
from torch import Tensor
from turns import medians

import nsimplex


def block_states(keys: Tensor, values: Tensor, before: Tensor) -> Tensor:
    """States of every position of a block: [B, H, C, R, Dv + 1]."""
    return before.unsqueeze(2) + torch.einsum("bhcr,bhcd->bhcrd", keys, values).cumsum(2)


def block(query: Tensor, keys, values, before) -> Tensor:
    """num and den of a block of queries: [B, H, C, Dv + 1]."""
    if len(keys) == 1:
        inner = (query @ keys[0].transpose(-1, -2)).tril() @ values[0]
        return inner + query @ before[0]
    product = block_states(keys[0], values[0], before[0])
    for key, value, state in zip(keys[1:], values[1:], before[1:]):
        product = product * block_states(key, value, state)
    return torch.einsum("bhcr,bhcrd->bhcd", query, product)


def composite(query: Tensor, keys, values, size: int, grad_out: Tensor | None = None):
    """The output, or with `grad_out` the gradients of query, keys and values. All have one length
    T."""
    order, length = len(keys), query.size(2)
    ones = [torch.cat([v, torch.ones_like(v[..., :1])], -1) for v in values]
    state = [
        torch.zeros_like(k[..., :1, :].transpose(-1, -2) @ v[..., :1, :])
        for k, v in zip(keys, ones)
    ]
    states, outs = [], []
    for first in range(0, length, size):
        part = slice(first, first + size)
        states.append(state)
        if grad_out is None:
            sums = block(
                query[:, :, part],
                [k[:, :, part] for k in keys],
                [v[:, :, part] for v in ones],
                state,
            )
            outs.append(sums[..., :-1] / sums[..., -1:])
        state = [
            s + k[:, :, part].transpose(-1, -2) @ v[:, :, part]
            for s, k, v in zip(state, keys, ones)
        ]
    if grad_out is None:
        return torch.cat(outs, 2)

    gradients = [torch.empty_like(t) for t in (query, *keys, *values)]
    carried = [torch.zeros_like(s) for s in state]
    for index in reversed(range(len(states))):
        part = slice(index * size, (index + 1) * size)
        leaves = [t[:, :, part].detach().requires_grad_() for t in (query, *keys, *ones)]
        before = [s.detach().requires_grad_() for s in states[index]]
        with torch.enable_grad():
            sums = block(leaves[0], leaves[1 : 1 + order], leaves[1 + order :], before)
            out = sums[..., :-1] / sums[..., -1:]
            after = [
                s + k.transpose(-1, -2) @ v
                for s, k, v in zip(before, leaves[1 : 1 + order], leaves[1 + order :])
            ]
        grads = torch.autograd.grad(
            [out, *after], leaves + before, [grad_out[:, :, part], *carried]
        )
        for total, grad in zip(gradients, grads):
            total[:, :, part] = grad[..., : total.size(-1)]
        carried = grads[-order:]
    return gradients


def ours(query: Tensor, keys, values, window, grad_out: Tensor | None = None):
    if grad_out is None:
        return nsimplex.separable_attention(
            query, keys, values, features=None, causal=True, window=window
        )
    leaves = [t.detach().requires_grad_() for t in (query, *keys, *values)]
    order = len(keys)
    with torch.enable_grad():
        out = nsimplex.separable_attention(
            leaves[0],
            leaves[1 : 1 + order],
            leaves[1 + order :],
            features=None,
            causal=True,
            window=window,
        )
    return torch.autograd.grad(out, leaves, grad_out)


def draw(arguments, order: int, length: int):
    generator = torch.Generator().manual_seed(1)

    def features():
        x = torch.randn(1, arguments.heads, length, arguments.features, generator=generator)
        return nsimplex.feature_map(x)

    def numbers():
        return torch.randn(1, arguments.heads, length, arguments.dim, generator=generator)

    return (
        features(),
        [features() for _ in range(order)],
        [numbers() for _ in range(order)],
        numbers(),
    )


def compare(arguments, order: int, pass_name: str) -> dict:
    query, keys, values, grad_out = draw(arguments, order, arguments.seq)
    grad_out = grad_out if pass_name == "backward" else None
    # The best block of these; for order 1 they are matrix products and larger ones pay.
    calls = {"nsimplex": lambda: ours(query, keys, values, None, grad_out)}
    for size in (64, 128) if order == 1 else (4, 16, 64):
        calls[f"blocks of {size}"] = lambda size=size: composite(
            query, keys, values, size, grad_out
        )
    results = [[r] if isinstance(r, Tensor) else r for r in (call() for call in calls.values())]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            error = ((a - b).norm() / b.norm()).item()
            assert error < 1e-3, f"results differ by {error:.1e}"
    times = medians(calls, arguments.repeats)
    best = min((name for name in times if name != "nsimplex"), key=times.get)
    return describe(arguments, order, pass_name) | {
        "seq": arguments.seq,
        "peer_form": best,
        "milliseconds": times["nsimplex"],
        "peer_milliseconds": times[best],
        "speedup": times[best] / times["nsimplex"],
    }


def describe(arguments, order: int, pass_name: str) -> dict:
    return {
        "operator": "separable_attention",
        "order": order,
        "pass": pass_name,
        "heads": arguments.heads,
        "features": arguments.features,
        "dim": arguments.dim,
        "threads": torch.get_num_threads(),
    }


def slope(arguments, order: int, pass_name: str, window) -> dict:
    """The exponent p of time = c T^p, fitted by least squares in logarithms."""
    lengths, calls = [1 << power for power in range(10, 16)], {}
    for length in lengths:
        query, keys, values, grad_out = draw(arguments, order, length)
        grad_out = grad_out if pass_name == "backward" else None
        calls[length] = lambda inputs=(query, keys, values, window, grad_out): ours(*inputs)
        calls[length]()
    times = medians(calls, arguments.repeats)
    x, y = ([math.log(n) for n in numbers] for numbers in (lengths, times.values()))
    fitted = statistics.linear_regression(x, y).slope
    return describe(arguments, order, pass_name) | {
        "window": window,
        "slope": round(fitted, 4),
        "milliseconds": {length: round(ms, 2) for length, ms in times.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--order", type=int, action="append", help="default: 1, 2 and 3")
    parser.add_argument("--pass", dest="passes", action="append", choices=["forward", "backward"])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--window", type=int, help="keys of every axis, with --slope; default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slope", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with torch.no_grad():
        for order in arguments.order or [1, 2, 3]:
            for name in arguments.passes or ["forward", "backward"]:
                line = (
                    slope(arguments, order, name, arguments.window)
                    if arguments.slope
                    else compare(arguments, order, name)
                )
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
