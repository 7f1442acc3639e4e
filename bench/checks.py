"""What the checks cost that keep a kernel inside of its arrays, and checksums: beside the calls
that they are part of.

    python bench/checks.py

One thread, medians of processor time in milliseconds, calls in turns. `refused` is the same call
with one wrong number in the place that is looked at last: it takes what copies and checks take. Of
it `at once`, a call that is refused for its shape, is what raising the error takes; `share` is the
rest in the time of the call.
"""

import json
import struct
import sys
import tempfile
from pathlib import Path

import torch

import nsimplex

sys.path.insert(0, str(Path(__file__).parent / "compare"))
from turns import medians

REPEATS = 31


def refused(call):
    def run():
        try:
            call()
        except (ValueError, IndexError, RuntimeError):
            return
        raise AssertionError("the call was not refused")

    return run


def row(name: str, call, wrong, at_once) -> dict:
    times = medians({"call": call, "refused": refused(wrong), "at once": refused(at_once)}, REPEATS)
    share = (times["refused"] - times["at once"]) / times["call"]
    return {
        "what": name,
        **{key: round(value, 3) for key, value in times.items()},
        "share": round(share, 4),
    }


def lists(dtype) -> dict:
    """64 pairs of 2048 keys for each of 2048 queries, 4 heads, D = 64."""
    x = torch.randn(1, 4, 2048, 64)
    indices = torch.randint(0, 2048, (64 * 2048, 2), dtype=dtype)
    offsets = torch.arange(0, 64 * 2048 + 1, 64)[None, None]
    wrong = indices.clone()
    wrong[-1, -1] = 2048
    call = lambda indices: lambda: nsimplex.sparse_attention(x, [x, x], [x, x], indices, offsets)
    return row(
        f"sparse_attention, list of {str(dtype)[6:]}",
        call(indices),
        call(wrong),
        call(indices[:, :1]),
    )


def links(nodes: int = 2000, each: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(0, nodes, (nodes * each, 2), generator=generator)
    return torch.unique(pairs, dim=0)


def linear(channels: int) -> dict:
    graph = nsimplex.graph.tuple_batch(links(), 2000)
    plan = nsimplex.equivariant_plan(graph, graph)
    x, weight = (
        torch.randn(plan.rows[0], channels),
        torch.randn(plan.class_counts[0], channels, channels),
    )
    bounds, wrong = plan.tensors[6].tolist(), list(plan.tensors)
    last = max(
        s for s in range(len(bounds) - 1) if bounds[s + 1] - bounds[s] > 1
    )  # its look-ups must rise
    wrong[7] = wrong[7].clone()
    wrong[7][bounds[last]], wrong[7][bounds[last] + 1] = (
        plan.tensors[7][bounds[last] + 1],
        plan.tensors[7][bounds[last]],
    )
    call = lambda x, tensors: (
        lambda: torch.ops.nsimplex.equivariant_linear_sparse(
            x, weight, None, tensors, plan.parts, "mean"
        )
    )
    return row(
        f"equivariant_linear_sparse, {channels} channels",
        call(x, plan.tensors),
        call(x, wrong),
        call(x[0], plan.tensors),
    )


def attention(channels: int, heads: int) -> dict:
    """The kernel form, 16 features."""
    graph = nsimplex.graph.tuple_batch(links(), 2000)
    plan = nsimplex.equivariant_attention_plan(graph, graph, form="kernel")
    width = lambda count, *shape: torch.randn(count, *shape) / channels
    queries, keys, classes = plan.weight_counts
    weights = nsimplex.EquivariantAttentionWeights(
        width(queries, channels, channels),
        width(classes, channels),
        width(keys, channels, channels),
        width(classes, channels),
        width(classes, channels, channels),
        width(classes, channels, channels),
    )
    directions = nsimplex.orthogonal_directions(channels // heads, 16)
    x, fingerprint = torch.randn(len(graph.tuples), channels), plan.tensors[-1]
    call = lambda x: nsimplex.equivariant_attention(
        x, weights, plan, heads=heads, form="kernel", directions=directions
    )

    def wrong():
        fingerprint.add_(1)
        try:
            call(x)
        finally:
            fingerprint.sub_(1)

    return row(
        f"equivariant_attention, {channels} channels", lambda: call(x), wrong, lambda: call(x[0])
    )


def without_checksums(path: Path) -> Path:
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    for name in ("tensor_checksums", "header_checksum"):
        del header["__metadata__"][name]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)  # tensors lie as they did
    plain = path.with_name("plain.safetensors")
    plain.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    return plain


def file(megabytes: int) -> dict:
    """A cache of keys and values, read from a file that the system has in memory."""
    with tempfile.TemporaryDirectory() as folder:
        caches = lambda: nsimplex.LayerCaches([nsimplex.KeyValueCache([-1])])
        rows = megabytes * 2**20 // (2 * 4 * 64)
        x = torch.randn(1, 1, rows, 64)
        full = caches()
        full[0].append([x], [x])
        path = Path(folder) / "cache.safetensors"
        full.save(path)
        plain = without_checksums(path)
        times = medians(
            {"with": lambda: caches().load(path), "without": lambda: caches().load(plain)}, REPEATS
        )
    share = 1 - times["without"] / times["with"]
    return {
        "what": f"{megabytes} MB of safetensors",
        **{key: round(value, 2) for key, value in times.items()},
        "share": round(share, 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    with torch.inference_mode():
        for measure, arguments in (
            (lists, [torch.int64]),
            (lists, [torch.int32]),
            (linear, [4]),
            (linear, [64]),
            (attention, [8, 2]),
            (attention, [64, 4]),
            (file, [64]),
        ):
            print(json.dumps(measure(*arguments)), flush=True)


if __name__ == "__main__":
    main()
