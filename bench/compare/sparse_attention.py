"""Attention over lists beside a PyTorch composite that gathers: one process, taking turns, medians.

    python bench/compare/sparse_attention.py --threads 1
    python bench/compare/sparse_attention.py --pattern product --size 32 --pass backward

The composite gathers the keys and values of every tuple (for a block of queries at a time, the size
of which is tried out), multiplies, takes a softmax and sums. The pass "backward" is forward and
backward together on both sides; the composite differentiates block by block, so that it never holds
more than a block. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json

import torch
from attention import check_agreement
from torch import Tensor
from turns import medians

import nsimplex

#: Elements of a gathered tensor that a block may have; the fastest counts.
BLOCK_ELEMENTS = (1 << 18, 1 << 20, 1 << 22, 1 << 24)


def random_sets(length: int, size: int, generator) -> Tensor:
    """[length, size]: different keys up to each position, filled up with -1."""
    sets = torch.full((length, size), -1)
    for i in range(length):
        chosen = torch.randperm(i + 1, generator=generator)[:size].sort().values
        sets[i, : len(chosen)] = chosen
    return sets


def tuples_of(pattern: str, sets: Tensor, first: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """j1, j2 [count, k, k] of the queries of a block, and which are there."""
    j1 = sets[first : first + count]
    k = sets.size(1)
    if pattern == "product":
        j2 = j1.unsqueeze(1).expand(-1, k, -1)
    else:
        j2 = sets[j1.clamp_min(0)]
    j1 = j1.unsqueeze(2).expand_as(j2)
    return j1.clamp_min(0), j2.clamp_min(0), (j1 >= 0) & (j2 >= 0)


def block(
    query: Tensor, keys, values, pattern: str, sets: Tensor, first: int, count: int
) -> Tensor:
    """Out [H, count, D] of order 2 for queries [first, first + count), one batch entry."""
    j1, j2, there = tuples_of(pattern, sets, first, count)
    q = query[:, first : first + count] * query.size(-1) ** -0.5
    logits = torch.einsum("hid,hiabd,hiabd->hiab", q, keys[0][:, j1], keys[1][:, j2])
    weights = logits.masked_fill(~there, float("-inf")).flatten(2).softmax(-1).view_as(logits)
    return torch.einsum("hiab,hiabd,hiabd->hid", weights, values[0][:, j1], values[1][:, j2])


def gather_composite(inputs, pattern: str, sets: Tensor, elements: int, grad_out: Tensor | None):
    query, k1, k2, v1, v2 = (tensor[0] for tensor in inputs)
    length, k = sets.shape
    size = max(elements // (query.size(0) * k * k * query.size(-1)), 1)
    firsts = range(0, length, size)
    if grad_out is None:
        with torch.no_grad():
            blocks = [
                block(query, (k1, k2), (v1, v2), pattern, sets, f, min(size, length - f))
                for f in firsts
            ]
        return torch.cat(blocks, 1)[None]
    gradients = [torch.zeros_like(tensor) for tensor in inputs]
    for f in firsts:
        out = block(query, (k1, k2), (v1, v2), pattern, sets, f, min(size, length - f))
        for total, part in zip(
            gradients, torch.autograd.grad(out, inputs, grad_out[0, :, f : f + size])
        ):
            total += part
    return gradients


def ours(inputs, pattern: str, sets: Tensor, grad_out: Tensor | None):
    query, k1, k2, v1, v2 = inputs
    if grad_out is None:
        with torch.no_grad():
            return nsimplex.sparse_attention(query, [k1, k2], [v1, v2], sets[None], pattern=pattern)
    out = nsimplex.sparse_attention(query, [k1, k2], [v1, v2], sets[None], pattern=pattern)
    return torch.autograd.grad(out, inputs, grad_out)


def compare(arguments, pass_name: str) -> dict:
    generator = torch.Generator().manual_seed(1)
    shape = (1, arguments.heads, arguments.seq, arguments.dim)
    backward = pass_name == "backward"
    inputs = [torch.randn(shape, generator=generator).requires_grad_(backward) for _ in range(5)]
    grad_out = torch.randn(shape, generator=generator) if backward else None
    sets = random_sets(arguments.seq, arguments.size, generator)
    calls = {"nsimplex": lambda: ours(inputs, arguments.pattern, sets, grad_out)}
    for elements in BLOCK_ELEMENTS:
        calls[f"blocks of {elements}"] = lambda elements=elements: gather_composite(
            inputs, arguments.pattern, sets, elements, grad_out
        )
    check_agreement(calls)
    times = medians(calls, arguments.repeats)
    best = min((name for name in times if name != "nsimplex"), key=times.get)
    return {
        "operator": "sparse_attention",
        "pattern": arguments.pattern,
        "pass": pass_name,
        "heads": arguments.heads,
        "seq": arguments.seq,
        "dim": arguments.dim,
        "size": arguments.size,
        "threads": torch.get_num_threads(),
        "peer": "gather composite",
        "peer_form": best,
        "milliseconds": times["nsimplex"],
        "peer_milliseconds": times[best],
        "speedup": times[best] / times["nsimplex"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pattern", choices=["path", "product"], default="path")
    parser.add_argument("--pass", dest="passes", action="append", choices=["forward", "backward"])
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--size", type=int, default=16, help="keys of a set")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for pass_name in arguments.passes or ["forward", "backward"]:
        print(json.dumps(compare(arguments, pass_name)), flush=True)


if __name__ == "__main__":
    main()
