"""Times of attention, forward and backward, beside a matrix product, SDPA and the composite.

TFLOP/s count 2 (D + Dv) per query, head and admissible tuple forward, and three times as much
backward (six products; five, hence 2.5 times, at N = 1, where flash attention counts so, too).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from setups import Launches, Setup
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import nsimplex

WARM = "optional"
operators = torch.ops.nsimplex


@dataclass(frozen=True)
class Shape:
    batch: int
    heads: int
    kv_heads: int
    queries: int
    lengths: tuple[int, ...]
    dim: int
    window: tuple[int, ...] | None  #: one per axis, causal; None: causal only
    dtype: torch.dtype = torch.bfloat16

    def small(self) -> Shape:
        least = lambda value, most: min(value, most)
        return replace(
            self,
            batch=1,
            heads=self.heads // self.kv_heads * least(self.kv_heads, 2) if self.heads < 9 else 4,
            kv_heads=least(self.kv_heads, 2) if self.heads < 9 else 1,
            queries=least(self.queries, 24),
            lengths=tuple(least(length, 24) for length in self.lengths),
            dim=16,
            window=self.window and tuple(least(width, 8) for width in self.window),
            dtype=torch.float32,
        )

    @property
    def flat_window(self) -> list[int] | None:
        return self.window and [side for width in self.window for side in (width, 0)]

    @property
    def options(self) -> dict:
        return dict(causal=True, window=self.flat_window)

    def flops(self, kind: str) -> float:
        tuples = operators.attention_tuples(self.queries, list(self.lengths), **self.options)
        forward = 4.0 * self.dim * self.batch * self.heads * tuples
        if kind == "forward":
            return forward
        return forward * (2.5 if len(self.lengths) == 1 else 3.0)


def square(batch, heads, kv_heads, n, dim, window, **options) -> Shape:
    order = len(window) if window else options.pop("order")
    return Shape(batch, heads, kv_heads, n, (n,) * order, dim, window, **options)


WIDE = (32, 512)
#: name: (shape, f and b for forward and backward)
OURS: dict[str, tuple[Shape, str]] = {
    "B4 n8192 128/1 heads D128 32x512": (square(4, 128, 1, 8192, 128, WIDE), "fb"),
    "32/32 heads (G 1) D128 32x512": (square(1, 32, 32, 8192, 128, WIDE), "fb"),
    "32/8 heads (G 4) D128 32x512": (square(1, 32, 8, 8192, 128, WIDE), "fb"),
    "32/4 heads (G 8) D128 32x512": (square(1, 32, 4, 8192, 128, WIDE), "fb"),
    "B2 64/1 heads D64 32x512": (square(2, 64, 1, 8192, 64, WIDE), "fb"),
    "16/16 heads order 1 causal D128": (square(2, 16, 16, 8192, 128, None, order=1), "fb"),
    "32/4 heads order 3 8x8x64 D64": (square(1, 32, 4, 8192, 64, (8, 8, 64)), "fb"),
    "32/4 heads order 3 8x8x64 D128": (square(1, 32, 4, 8192, 128, (8, 8, 64)), "fb"),
    "compared 16/1 heads n2048 D128 32x512": (square(1, 16, 1, 2048, 128, WIDE), "fb"),
    "B16 12/12 heads n1024 D64 16x256": (square(16, 12, 12, 1024, 64, (16, 256)), "fb"),
    "fp16 32/4 heads D128 32x512": (
        square(1, 32, 4, 8192, 128, WIDE, dtype=torch.float16),
        "fb",
    ),
    "fp32 32/4 heads n4096 D64 32x512": (
        square(1, 32, 4, 4096, 64, WIDE, dtype=torch.float32),
        "fb",
    ),
    "order 2 causal n1024 8/8 heads D64": (square(1, 8, 8, 1024, 64, None, order=2), "fb"),
    "decode B32 128/1 heads 32x512": (Shape(32, 128, 1, 1, (8192, 8192), 128, WIDE), "f"),
    "decode B8 128/1 heads 256x4096": (Shape(8, 128, 1, 1, (8192,) * 2, 128, (256, 4096)), "f"),
    "decode B1 32/4 heads 32x512": (Shape(1, 32, 4, 1, (8192, 8192), 128, WIDE), "f"),
}
COMPOSITE = "compared 16/1 heads n2048 D128 32x512"
FLASH = "16/16 heads order 1 causal D128"


#: Of scaled_dot_product_attention.
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def items(setup: Setup) -> list[str]:
    names = ["matmul bf16"]
    for name, (_, passes) in OURS.items():
        names += [f"forward | {name}"] + ([f"backward | {name}"] if "b" in passes else [])
    names[4:4] = [f"{name} {kind}" for name in BACKENDS for kind in ("forward", "backward")]
    names += [f"composite forward | {COMPOSITE}", f"composite backward | {COMPOSITE}", "graph"]
    return names


def tensors(shape: Shape, setup: Setup):
    """Query, keys and values, with the heads inside the rows of memory."""
    generator = torch.Generator(setup.device).manual_seed(1)

    def draw(heads, length):
        made = torch.randn(
            shape.batch, length, heads, shape.dim, generator=generator, device=setup.device
        )
        return made.to(shape.dtype).transpose(1, 2)

    keys = [draw(shape.kv_heads, length) for length in shape.lengths]
    values = [draw(shape.kv_heads, length) for length in shape.lengths]
    return draw(shape.heads, shape.queries), keys, values


def call_of(kind: str, shape: Shape, setup: Setup):
    """The call to be timed, of the operators themselves."""
    query, keys, values = tensors(shape, setup)
    options = shape.options
    forward = lambda: operators.attention(query, keys, values, **options)
    if kind == "forward":
        return forward
    out, lse = forward()
    grad_out = torch.randn_like(out)
    wanted = [True] * (1 + 2 * len(keys)) + [False, False]
    return lambda: operators.attention_backward(
        query, keys, values, out, lse, grad_out, None, wanted, **options
    )


def composite_of(kind: str, shape: Shape, setup: Setup):
    query, keys, values = tensors(shape, setup)
    leaves = [t.detach().requires_grad_() for t in (query, *keys, *values)]
    count, options = len(keys), dict(causal=True, window=shape.window and list(shape.window))

    def forward():
        return nsimplex.reference(leaves[0], leaves[1 : 1 + count], leaves[1 + count :], **options)

    if kind == "forward":
        return torch.no_grad()(forward)
    out = forward()
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)


def sdpa_of(backend: SDPBackend, kind: str, shape: Shape, setup: Setup):
    query, keys, values = tensors(shape, setup)
    leaves = [t.contiguous().requires_grad_() for t in (query, keys[0], values[0])]

    def forward():
        return scaled_dot_product_attention(*leaves, is_causal=True)

    def chosen(call):
        def run():
            with sdpa_kernel([backend if setup.device == "cuda" else SDPBackend.MATH]):
                return call()

        return run

    if kind == "forward":
        return chosen(torch.no_grad()(forward))
    out = chosen(forward)()
    grad = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)


def shape_of(name: str, setup: Setup) -> Shape:
    shape = OURS[name][0]
    return shape.small() if setup.rehearse else shape


def captured(setup: Setup) -> dict:
    """Forward and backward in a CUDA graph: the same bits as outside, and no synchronisation."""
    shape = square(1, 8, 1, 1024, 64, (16, 128))
    if setup.device != "cuda":
        return {"skipped": True}
    generator = lambda: tensors(shape, setup)
    query, keys, values = generator()
    count, options = len(keys), dict(causal=True, window=list(shape.window))
    leaves = [t.detach().requires_grad_() for t in (query, *keys, *values)]

    def step():
        out = nsimplex.attention(leaves[0], leaves[1 : 1 + count], leaves[1 + count :], **options)
        return [out, *torch.autograd.grad(out, leaves, out.detach())]

    plain = [t.detach().clone() for t in step()]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    graph.replay()
    torch.cuda.synchronize()
    same = all(torch.equal(a, b) for a, b in zip(results, plain))
    alone = setup.milliseconds(step, 100)
    replayed = setup.milliseconds(graph.replay, 100)
    return {"ok": same, "ms": replayed, "eager_ms": alone, "error": "" if same else "other bits"}


def in_graph(call, setup: Setup) -> float:
    """Milliseconds of a short call without the host's share."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return setup.milliseconds(graph.replay, 50)


def warm(item: str, setup: Setup) -> dict:
    """Compiles the kernels of an item, on one batch entry."""
    kind, _, name = item.partition(" | ")
    if kind not in ("forward", "backward"):
        return {}
    shape = shape_of(name, setup)
    call_of(kind, replace(shape, batch=min(shape.batch, 1)), setup)()
    setup.synchronize()
    return {}


def run(item: str, setup: Setup) -> dict:
    if item == "graph":
        return captured(setup)
    if item == "matmul bf16":
        n = setup.size(8192, 64)
        a, b = (torch.randn(n, n, device=setup.device).bfloat16() for _ in range(2))
        ms = setup.milliseconds(lambda: a @ b)
        return {"ms": ms, "tflops": 2 * n**3 / ms / 1e9, **card(setup)}
    kind, _, name = item.partition(" | ")
    shape, kind = shape_of(name or FLASH, setup), kind.rpartition(" ")[2]
    make = call_of
    if item.split()[0] in BACKENDS:
        make = partial(sdpa_of, BACKENDS[item.split()[0]])
    if item.startswith("composite"):
        make = composite_of
    call = make(kind, shape, setup)
    with Launches() as launches:
        peak = setup.peak(call)
    ms = setup.milliseconds(call)
    record = {"ms": ms, "tflops": shape.flops(kind) / ms / 1e9, "peak_gb": peak}
    if item.startswith("forward") and ms < 1 and setup.device == "cuda":
        try:
            record["graph_ms"] = in_graph(call, setup)
        except RuntimeError as error:  # the time outside a graph is known
            record["graph_error"] = str(error)[:200]
    return record | {"launches": dict(launches.names), **card(setup)}


def card(setup: Setup) -> dict:
    if setup.device != "cuda":
        return {"card": "none"}
    return {"card": torch.cuda.get_device_name(), "torch": torch.__version__}


def cell(record: dict | None) -> str:
    if record is None:
        return f"{'-':>28}"
    kernel = "" if record.get("launches") else " no kernel"
    return f"{record['ms']:9.3f} ms {record['tflops']:6.1f}{kernel:10} {record['peak_gb']:5.2f} GB"


def lines(records: list[dict]) -> list[str]:
    timed = {r["item"]: r for r in records if "ms" in r}
    cards = {r["card"] for r in records if r.get("card")}
    table = [f"card: {', '.join(sorted(cards)) or '?'}; forward | backward: ms, TFLOP/s, memory"]
    if "matmul bf16" in timed:
        table.append(f"torch bf16 product 8192^3: {timed['matmul bf16']['tflops']:.0f} TFLOP/s")
    pairs = [(f"forward | {name}", f"backward | {name}", name) for name in OURS]
    pairs += [(f"{b} forward", f"{b} backward", f"SDPA, {b}: {FLASH}") for b in BACKENDS]
    pairs.append(
        tuple(f"composite {kind} | {COMPOSITE}" for kind in ("forward", "backward"))
        + ("composite: " + COMPOSITE,)
    )
    for forward, backward, name in pairs:
        if "graph_ms" in timed.get(forward, {}):
            name += f" (in a CUDA graph {timed[forward]['graph_ms']:.3f} ms)"
        if forward in timed or backward in timed:
            table.append(f"{cell(timed.get(forward))} |{cell(timed.get(backward))}  {name}")
    for kind in ("forward", "backward"):
        ours, other = (
            timed.get(f"{prefix}{kind} | {COMPOSITE}", {}).get("ms")
            for prefix in ("", "composite ")
        )
        if ours and other:
            table.append(f"{kind}: {other / ours:.1f} times as fast as the composite")
    if "graph" in timed:
        graph = timed["graph"]
        table.append(
            f"CUDA graph: {graph['ms']:.3f} ms, eager {graph['eager_ms']:.3f} ms, same bits"
        )
    return table
