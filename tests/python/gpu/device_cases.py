"""What runs on a device beside the calls of operator_cases and module_cases: options of attention,
caches, and the continuation of texts."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "packaging"))

import module_cases
import operator_cases
from operator_cases import draw, heads

import nsimplex
from nsimplex import nn

#: By option: two axes of 6 keys, two query heads.
ATTENTION_OPTIONS = {
    "window": dict(causal=True, window=[(2, 3), (4, -1)]),
    "form": dict(form="determinant"),
    "reduce, sum": dict(reduce="sum", causal=True),
    "reduce, mean": dict(reduce="mean"),
    "normalizer, sigmoid": dict(normalizer="sigmoid", causal=True),
    "normalizer, relu": dict(normalizer="relu"),
    "sink": dict(normalizer="softmax_sink", sink=draw(2, seed=8), causal=True),
    "key_lengths": dict(key_lengths=torch.tensor([4])),
    "key_masks": dict(key_masks=[draw(1, 6, seed=s) > -0.5 for s in (1, 2)]),
    "cu_seqlens": dict(cu_seqlens=torch.tensor([0, 2, 6]), causal=True),
    "mask of bool": dict(mask=draw(6, 6, 6, seed=4) > -1),
    "mask of numbers": dict(mask=draw(6, 6, 6, seed=4)),
    "distinct": dict(distinct="with_query"),
    "augment": dict(augment=[1], causal=True),
    "augment of all": dict(augment=[0, 1], window=[3, 4]),
    "order_bias": dict(augment=[0], order_bias=draw(2, 2, seed=5)),
    "dropout_p": dict(dropout_p=0.4, seed=5, causal=True),
    "query_positions": dict(query_positions=torch.tensor([[0, 1, 2, 2, 4, 9]]), window=[3, 4]),
}


def attention(name, **more):
    q, k1, k2, v1, v2 = heads(width=6)
    return (q, [k1, k2], [v1, v2]), dict(return_lse=True, **ATTENTION_OPTIONS[name], **more)


def _product_sets(length, queries, heads, kv_heads, order, groups, entries, k):
    batch, width = 2, 8
    generator = torch.Generator().manual_seed(3)
    q = draw(batch, heads, queries, width, seed=1)
    keys = [draw(batch, kv_heads, length, width, seed=2 + m) for m in range(order)]
    values = [draw(batch, kv_heads, length, 5, seed=9 + m) for m in range(order)]
    sets = torch.rand(entries, groups, queries, length, generator=generator).argsort(-1)[..., :k]
    filled = torch.randint(k + 1, (*sets.shape[:-1], 1), generator=generator)
    sets = sets.masked_fill(torch.arange(k) >= filled, -1)  # some are short, some empty
    return (q, keys, values, sets), dict(pattern="product")


#: Sets of keys per query: grouped heads, lists per entry and group, order 1 to 3.
SETS = {
    "one list": lambda: _product_sets(7, 5, 4, 2, 2, 1, 1, 3),
    "lists of entries": lambda: _product_sets(9, 6, 2, 2, 2, 1, 2, 4),
    "lists of groups": lambda: _product_sets(9, 6, 4, 2, 2, 2, 2, 4),
    "order 1": lambda: _product_sets(9, 6, 4, 1, 1, 1, 2, 4),
    "order 3": lambda: _product_sets(6, 4, 2, 1, 3, 1, 2, 3),
}


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
MODULES = module_cases.CASES
