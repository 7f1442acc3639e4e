"""How much of a trained layer's attention every selection keeps, against k.

    python bench/compare/retained_mass.py
    python bench/compare/retained_mass.py --text some.txt --steps 1000 --context 128 --k 4,8,16,32

Trains a small language model on bytes of --text (by default this repository's own documents and
headers), whose last block is dense and simplicial, then attends with that layer on held-out text
through each selection. One line for every
k: the mean share of the dense weights that lies on the selected tuples, all with at most k^N tuples
    a query:

- `window`: the last k keys on every axis;
- `reuse`: topk, scored by q and k of the ordinary layer before, softmax; `reuse relu`: relu;
- `light`: topk, scored by an indexer of its own, trained on the alignment loss for --indexer-steps;
- `path`: paths of what `reuse` chose;
- `marginal`: topk by the layer's own marginal mass, averaged over heads: what an indexer aims at;
- `naive`: the tuples that the layer itself scores best, each for itself.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

import nsimplex
from nsimplex.nn import Indexer, IndexSource, LanguageModel, LanguageModelOptions

ROOT = Path(__file__).resolve().parents[2]


def read_bytes(path: str | None) -> torch.Tensor:
    files = (
        [Path(path)]
        if path
        else sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("include/**/*.h"))
    )
    data = b"".join(file.read_bytes() for file in files)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


def batch_of(data: torch.Tensor, size: int, context: int) -> torch.Tensor:
    starts = torch.randint(len(data) - context - 1, (size,))
    return torch.stack([data[start : start + context + 1] for start in starts])


def trained_model(arguments, data: torch.Tensor) -> LanguageModel:
    torch.manual_seed(arguments.seed)
    options = LanguageModelOptions(
        layers=arguments.layers,
        dim=arguments.dim,
        heads=arguments.heads,
        context=arguments.context,
        order=arguments.order,
        every=arguments.layers,
        window=(),
    )
    model = LanguageModel(options)
    optimizer = torch.optim.AdamW(model.parameters(), arguments.rate)
    for step in range(arguments.steps):
        tokens = batch_of(data, arguments.batch, arguments.context)
        loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step + 1 == arguments.steps:
            print(json.dumps({"step": step, "loss": round(loss.item(), 4)}), flush=True)
    return model


def look_inside(model: LanguageModel, tokens: torch.Tensor):
    """(input of the last attention, its query and keys, query and key of the layer before)."""
    x, before = model.embedding(tokens), None
    for block in model.blocks:
        normed, attention = block.attention_norm(x), block.attention
        query, keys, _ = attention._heads_of(normed)
        if block is model.blocks[-1]:
            return normed, query, keys, before
        before = IndexSource(query, keys[0])
        x = block(x)


def trained_indexer(arguments, model: LanguageModel, data: torch.Tensor) -> Indexer:
    torch.manual_seed(arguments.seed)
    indexer = Indexer(arguments.dim, 4, index_dim=16, rotary=True)
    optimizer = torch.optim.Adam(indexer.parameters(), 3e-3)
    for step in range(arguments.indexer_steps):
        with torch.no_grad():
            x, query, keys, _ = look_inside(model, batch_of(data, 4, arguments.context)[:, :-1])
        loss = indexer.loss(x, query, keys, causal=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step + 1 == arguments.indexer_steps:
            print(
                json.dumps({"indexer step": step, "alignment loss": round(loss.item(), 4)}),
                flush=True,
            )
    return indexer


def masses(k: int, indexer: Indexer, x, query, keys, before: IndexSource) -> dict[str, float]:
    order = len(keys)
    dense = nsimplex.attention(query, keys, keys, causal=True, return_lse=True)[1]

    def mass(indices, offsets=None, pattern="product") -> float:
        lse = nsimplex.sparse_attention(
            query, keys, keys, indices, offsets, pattern=pattern, return_lse=True
        )[1]
        return round(nsimplex.retained_mass(lse, dense).item(), 4)

    def reuse(scores: str) -> torch.Tensor:
        return nsimplex.topk_keys(before.query, before.key, k, scores=scores, causal=True)

    marginal = sum(
        nsimplex.attention_marginals(query, keys, axis=m, causal=True) for m in range(order)
    ).mean(1)
    best = marginal.topk(k)
    window = nsimplex.attention(
        query, keys, keys, causal=True, window=[k] * order, return_lse=True
    )[1]
    return {
        "window": round(nsimplex.retained_mass(window, dense).item(), 4),
        "reuse": mass(reuse("softmax")),
        "reuse relu": mass(reuse("relu")),
        "light": mass(indexer(x, k, causal=True)),
        "path": mass(reuse("softmax"), pattern="path"),
        "marginal": mass(best.indices.masked_fill(best.values == 0, -1)),
        "naive": mass(*nsimplex.topk_tuples(query, keys, k**order, causal=True), pattern="list"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text")
    parser.add_argument("--k", default="2,4,8,16,32,64")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--indexer-steps", type=int, default=150)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    data = read_bytes(arguments.text)
    cut = len(data) * 9 // 10
    model = trained_model(arguments, data[:cut])
    indexer = trained_indexer(arguments, model, data[:cut])
    with torch.no_grad():
        torch.manual_seed(arguments.seed)
        inside = look_inside(model, batch_of(data[cut:], 4, arguments.context)[:, :-1])
        for k in map(int, arguments.k.split(",")):
            print(json.dumps({"k": k} | masses(k, indexer, *inside)), flush=True)


if __name__ == "__main__":
    main()
