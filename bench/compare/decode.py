"""One decode step of a simplicial layer, part by part: attention over the cache beside the
projections around it.

    python bench/compare/decode.py
    python bench/compare/decode.py --heads 32 --kv-heads 8 --dim 64 --window 32,512 --batch 1
    python bench/compare/decode.py --text 400

`attention` is KeyValueCache.attend of one token with full rings: appending, dispatch and the
operator. `projections` are the layer's own (q, k, v and output), `mlp` that of its block. The parts
take turns, so that a machine that is slower for a while is slower for all; `--layers` sets of
weights and caches are visited one after the other, so that weights and rings come from where a
model of that many layers has them. Medians of --repeats; with one thread of its processor time,
which other work on the machine disturbs least, else of the time of the clock. One JSON object.

--text N instead lets a language model of four layers (128 channels, context 512) write N tokens,
from the cache and by recomputing the text for every token, and prints both rates; the tokens must
be the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

import nsimplex
from nsimplex.nn import FeedForward, LanguageModel, LanguageModelOptions, SimplicialAttention


def measure(arguments) -> dict:
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    windows = [int(w) for w in arguments.window.split(",")]
    heads, kv_heads, dim = arguments.heads, arguments.kv_heads or arguments.heads, arguments.dim
    width, order = heads * dim, len(windows)
    layers = []
    for _ in range(arguments.layers):
        layer = SimplicialAttention(
            width, heads, kv_heads=kv_heads, order=order, causal=True, window=windows
        ).requires_grad_(False)
        cache = layer.make_cache()
        past = [torch.randn(arguments.batch, kv_heads, max(windows), dim) for _ in range(2 * order)]
        cache.append(past[:order], past[order:])
        layers.append((layer, cache, FeedForward(width).requires_grad_(False)))
    clock = time.thread_time if arguments.threads == 1 else time.perf_counter
    x = torch.randn(arguments.batch, 1, width)
    token = [
        torch.randn(arguments.batch, 1, kv_heads, dim).transpose(1, 2) for _ in range(2 * order)
    ]
    query = torch.randn(arguments.batch, 1, heads, dim).transpose(1, 2)

    parts = {
        "projections": lambda layer, cache, mlp: layer.output(layer.qkv(x)[..., :width]),
        "attention": lambda layer, cache, mlp: cache.attend(query, token[:order], token[order:]),
        "mlp": lambda layer, cache, mlp: mlp(x),
        "layer": lambda layer, cache, mlp: layer(x, cache=cache),
    }
    seconds = {name: [] for name in parts}
    for _ in range(arguments.repeats + 1):
        for name, part in parts.items():
            begin = clock()
            for each in layers:
                part(*each)
            seconds[name].append((clock() - begin) / len(layers))
    medians = {name: statistics.median(each[1:]) for name, each in seconds.items()}  # 0: warm-up
    tuples = heads * arguments.batch
    for window in windows:
        tuples *= window
    return {
        "benchmark": "decode",
        **{f"{name}_microseconds": round(1e6 * value, 1) for name, value in medians.items()},
        "ratio": round(medians["attention"] / medians["projections"], 3),
        "ratio_with_mlp": round(
            medians["attention"] / (medians["projections"] + medians["mlp"]), 3
        ),
        "attention_gflops": round(4 * dim * tuples / medians["attention"] / 1e9, 1),
        "batch": arguments.batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "dim": dim,
        "window": windows,
        "threads": arguments.threads,
        "clock": "processor" if arguments.threads == 1 else "wall",
        "cache_bytes": layers[0][1].nbytes,
        "torch": torch.__version__,
        "nsimplex": nsimplex.__version__,
    }


def write(model: LanguageModel, count: int, cached: bool) -> list[int]:
    """The likeliest continuation of one token."""
    text = torch.zeros(1, 1, dtype=torch.int64)
    caches = model.make_cache() if cached else None
    for _ in range(count):
        logits = model(text[:, -1:], caches) if cached else model(text)
        text = torch.cat([text, logits[:, -1:].argmax(-1)], 1)
    return text[0].tolist()


def compare_texts(arguments) -> dict:
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    windows = [int(w) for w in arguments.window.split(",")]
    shape = dict(layers=4, heads=4, dim=128, context=512, every=4, tied=False)
    model = LanguageModel(LanguageModelOptions(order=len(windows), window=windows, **shape))
    model.requires_grad_(False)
    texts, rates = [], {}
    for name, cached in {"cached": True, "recomputed": False}.items():
        begin = time.perf_counter()
        texts.append(write(model, arguments.text, cached))
        rates[f"{name}_tokens_per_second"] = arguments.text / (time.perf_counter() - begin)
    if texts[0] != texts[1]:
        raise SystemExit("decode.py: the cache changed the text")
    return {
        "benchmark": "decode text",
        "tokens": arguments.text,
        **{name: round(rate, 1) for name, rate in rates.items()},
        "ratio": round(
            rates["cached_tokens_per_second"] / rates["recomputed_tokens_per_second"], 1
        ),
        **shape,
        "window": windows,
        "threads": arguments.threads,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--kv-heads", type=int, default=0, help="0: as many as heads")
    parser.add_argument("--dim", type=int, default=64, help="channels of a head")
    parser.add_argument("--window", default="32,512", help="one entry an axis")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--text", type=int, default=0, metavar="N", help="at most 512")
    arguments = parser.parse_args()
    with torch.inference_mode():
        print(json.dumps(compare_texts(arguments) if arguments.text else measure(arguments)))


if __name__ == "__main__":
    main()
