"""What runs on a device beside the calls of operator_variants and module_cases: long separable
calls, caches, and the continuation of texts."""

from __future__ import annotations

import module_cases
import operator_cases
import torch
from operator_cases import draw, heads
from operator_variants import VARIANTS

import nsimplex
from nsimplex import nn


def separable(length, queries, heads, kv_heads, order, **options):
    batch, features = 2, 4
    q = draw(batch, heads, queries, features, seed=1).exp()
    keys = [draw(batch, kv_heads, length, features, seed=2 + m).exp() for m in range(order)]
    values = [draw(batch, kv_heads, length, 5, seed=9 + m) for m in range(order)]
    return (q, keys, values), options


#: Lengths around the blocks of the composite, every kind of window.
SEPARABLE = {
    "causal": lambda: separable(150, 150, 4, 2, 2, causal=True),
    "causal, more keys": lambda: separable(150, 37, 2, 1, 2, causal=True),
    "causal, fewer keys": lambda: separable(70, 140, 2, 2, 2, causal=True),
    "all": lambda: separable(70, 33, 2, 2, 2),
    "windows": lambda: separable(300, 300, 2, 2, 2, causal=True, window=[5, 0, 130, 0]),
    "two sides": lambda: separable(200, 200, 2, 1, 1, window=[70, 3]),
    "left only": lambda: separable(200, 180, 2, 2, 2, window=[40, -1, -1, 20]),
    "far windows": lambda: separable(64, 128, 2, 2, 1, window=[200, 100]),
    "no keys": lambda: separable(3, 200, 2, 2, 2, window=[2, 0, 3, 1]),
    "order 3": lambda: separable(66, 66, 2, 2, 3, causal=True),
}


def key_value_cache(device):
    """A prompt in two chunks, one more token, and one after the cache was shortened."""
    cache, outs, move = nsimplex.KeyValueCache([12, -1]), [], device.move
    for n, tokens in enumerate((4, 3, 1)):
        q, k1, k2, v1, v2 = (move(x) for x in heads(tokens, seed=n))
        outs.append(cache.attend(q, [k1, k2], [v1, v2]))
    cache.select(move(torch.tensor([0])))
    cache.crop(6)
    q, k1, k2, v1, v2 = (move(x) for x in heads(1, seed=9))
    return [*outs, cache.attend(q, [k1, k2], [v1, v2])]


def static_cache(device):
    sizes = dict(batch=2, slots=9, kv_heads=2, head_dim=8)
    cache, outs, move = nsimplex.StaticCache([3, -1], **sizes, device=device.type), [], device.move
    for n, counts in enumerate(([3, 1], [1, 1], None)):
        q, k1, k2, v1, v2 = (move(x) for x in draw(5, 2, 2, 3 if n == 0 else 1, 8, seed=n))
        given = None if counts is None else move(torch.tensor(counts))
        outs.append(cache.attend(q, [k1, k2], [v1, v2], given)[:, :, :1])
    return outs


def paged_cache(device):
    sizes = dict(pages=5, page=4, kv_heads=2, head_dim=8)
    cache, outs, move = nsimplex.PagedCache([3, -1], **sizes, device=device.type), [], device.move
    table, lengths = move(torch.tensor([[4, 0], [2, 1]])), move(torch.tensor([0, 0]))
    for n in range(3):
        q, k1, k2, v1, v2 = (move(x) for x in draw(5, 2, 2, 2, 8, seed=n))
        outs.append(cache.attend(q, [k1, k2], [v1, v2], table, lengths))
        lengths = lengths + 2
    return outs


def language_model(device, **options):
    torch.manual_seed(0)
    shape = nn.LanguageModelOptions(
        vocabulary=11, layers=2, heads=2, dim=8, context=12, every=2, **options
    )
    return nn.LanguageModel(shape).to(device.type)


def generate(device, **options):
    model = language_model(device, **options)
    prompts = device.move(torch.tensor([[1, 2, 3], [4, 5, 6]]))
    sampled = model.generate(prompts, 4, seed=3, temperature=0.7, top_k=5, top_p=0.9)
    likeliest = model.generate([[1, 2, 3], [4]], 3, temperature=0.0)
    return [sampled, device.move(torch.tensor([row[-3:] for row in likeliest]))]


def places(device):
    """Padding and packed documents."""
    model = language_model(device)
    tokens, mask, bounds = device.move(
        [
            torch.tensor([[1, 2, 3, 4, 5, 6]]),
            torch.tensor([[0, 0, 1, 1, 1, 1]]),
            torch.tensor([0, 2, 6]),
        ]
    )
    device.forget()
    padded = model(tokens, attention_mask=mask)[:, 2:]
    return [padded, model(tokens, cu_seqlens=bounds)]


#: By their row in the table of the documentation: function(device) -> results.
PROCESSES = {
    "KeyValueCache": key_value_cache,
    "StaticCache": static_cache,
    "PagedCache": paged_cache,
    "LanguageModel.forward with padding or documents": places,
    "LanguageModel.generate": generate,
    "LanguageModel.generate, topk": lambda device: generate(
        device, sparse="topk", topk=3, indexer="light"
    ),
    "LanguageModel.generate, linear": lambda device: generate(device, sparse="linear"),
}

OPERATORS = operator_cases.CASES | operator_cases.ON_THE_HOST
__all__ = ["MODULES", "OPERATORS", "PROCESSES", "SEPARABLE", "VARIANTS", "language_model"]
MODULES = module_cases.CASES
