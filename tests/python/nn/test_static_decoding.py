"""Layers and blocks that decode sequences of different lengths from fixed slots."""

import pytest
import torch
import torch._dynamo.testing

from nsimplex.nn import (
    FeedForward,
    LanguageModel,
    LanguageModelOptions,
    Linear,
    Neighbours,
    Path,
    SimplicialAttention,
    Sinks,
    TopK,
    TransformerBlock,
    Window,
)

LIGHT = dict(heads=2, index_dim=4)
LAYERS = {
    "order 1, rotary": dict(order=1, rotary=True),
    "windows": dict(order=2, window=[4, 9], kv_heads=2),
    "determinant, rotary": dict(order=2, form="determinant", rotary=True, head_dim=6),
    "sink, orders 1 and 2": dict(order=2, normalizer="softmax_sink", augment=True, window=[-1, 5]),
    "order 3": dict(order=3, window=3, norm="qkv", scale="unit"),
    "orders": dict(orders=[1, 1, 2, 2], rotary=True, window=6),
    "topk": dict(select=TopK(3, LIGHT | dict(rotary=True))),
    "topk, softmax": dict(select=TopK(3, LIGHT | dict(scores="softmax")), kv_heads=2),
    "topk per axis": dict(select=TopK((2, 4), LIGHT)),
    "topk, a reducer and a sink": dict(
        select=TopK(3, LIGHT), reduce="mlp", normalizer="softmax_sink"
    ),
    "path": dict(select=Path(2, LIGHT)),
    "path, order 3": dict(select=Path(2, LIGHT), order=3, kv_heads=2),
    "union": dict(select=Window(2) | Sinks(2) | TopK(2, LIGHT)),
    "union per axis": dict(select=Window(2) | TopK((1, 2), LIGHT)),
    "union without scores": dict(select=Window(3) | Sinks(1)),
    "orders, topk": dict(orders=[1, 1, 2, 2], select=TopK(3, LIGHT)),
    "linear": dict(select=Linear()),
    "linear, windows": dict(select=Linear("relu"), window=[3, 7], kv_heads=2),
    "linear, random": dict(select=Linear("random")),
}
LENGTHS = [11, 7, 14]


def layer_of(name):
    torch.manual_seed(0)
    return SimplicialAttention(16, 4, causal=True, dtype=torch.float64, **LAYERS[name]).eval()


def padded(texts, firsts, counts):
    rows = [text[:, f : f + c] for text, f, c in zip(texts, firsts, counts)]
    most = max(counts)
    pad = torch.nn.functional.pad
    return torch.cat([pad(row, (0, 0, 0, most - row.size(1)), value=1e3) for row in rows])


@torch.no_grad()
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_each_sequence_is_what_it_is_alone(name, block):
    model = layer_of(name)
    if block:
        model = TransformerBlock(model, FeedForward(16)).double().eval()
    texts = [torch.randn(1, length, 16, dtype=torch.float64) for length in LENGTHS]
    expected = [model(text) for text in texts]
    cache, done = model.make_static_cache(3, 16), [0, 0, 0]
    for counts in ([5, 2, 7], [0, 4, 3], [1, 1, 1], [5, 0, 3]):
        given = torch.tensor(counts)
        out = model(padded(texts, done, counts), cache=cache, counts=given)
        for b, count in enumerate(counts):
            torch.testing.assert_close(
                out[b : b + 1, :count], expected[b][:, done[b] : done[b] + count]
            )
            done[b] += count
    assert done == LENGTHS and cache.lengths.tolist() == LENGTHS


@torch.no_grad()
@pytest.mark.parametrize("name", ["windows", "orders", "topk", "path", "union", "linear"])
def test_a_step_compiles_once(name):
    layer = layer_of(name)
    texts = [torch.randn(1, 9, 16, dtype=torch.float64) for _ in range(2)]
    expected = [layer(text) for text in texts]
    cache = layer.make_static_cache(2, 12)
    layer(padded(texts, [0, 0], [4, 1]), cache=cache, counts=torch.tensor([4, 1]))
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    step = torch.compile(lambda x: layer(x, cache=cache), fullgraph=True, backend=counter)
    for i in range(5):
        out = step(padded(texts, [4 + i, 1 + i], [1, 1]))
        torch.testing.assert_close(out[:1], expected[0][:, 4 + i : 5 + i])
        torch.testing.assert_close(out[1:], expected[1][:, 1 + i : 2 + i])
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: SimplicialAttention(8, 2).make_static_cache(1, 4), "only causal self-attention"),
        (
            lambda: SimplicialAttention(
                8, 2, causal=True, select=TopK(3, dict(source="reuse", heads=2))
            ).make_static_cache(1, 4),
            "source: expected set_source before make_static_cache",
        ),
        (
            lambda: SimplicialAttention(8, 2, causal=True, select=Neighbours()).make_static_cache(
                1, 4
            ),
            "select: Neighbours has no cache",
        ),
        (
            lambda: SimplicialAttention(8, 2, causal=True, select=TopK(3))(
                torch.randn(1, 2, 8),
                cache=SimplicialAttention(8, 2, causal=True).make_static_cache(1, 4),
            ),
            r"cache: expected one of this layer's make_static_cache\(\)",
        ),
        (
            lambda: (
                SimplicialAttention(8, 2, causal=True, orders=[1, 2])
                .make_static_cache(1, 4)
                .attend(None, [], [])
            ),
            "attend: expected a cache of one order",
        ),
        (
            lambda: SimplicialAttention(8, 2, causal=True)(
                torch.randn(1, 2, 8), counts=torch.tensor([1])
            ),
            "counts: expected none without a StaticCache",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@torch.no_grad()
@pytest.mark.parametrize("name", ["orders, topk", "path", "linear"])
def test_slots_are_cropped_selected_and_emptied(name):
    layer, text = layer_of(name), torch.randn(2, 9, 16, dtype=torch.float64)
    cache, expected = layer.make_static_cache(2, 9), layer(text)
    layer(text[:, :7], cache=cache)
    cache.crop(4)
    torch.testing.assert_close(layer(text[:, 4:6], cache=cache), expected[:, 4:6])
    cache.reorder(torch.tensor([1, 1]))
    torch.testing.assert_close(
        layer(text[1:, 6:].expand(2, -1, -1), cache=cache)[0], expected[1, 6:]
    )
    assert cache.lengths.tolist() == [9, 9] and cache.nbytes > 0
    with pytest.raises(ValueError, match="slots: expected room for 10 tokens, got 9 slots"):
        layer(text[:, :1], cache=cache)
    cache.reset()
    torch.testing.assert_close(layer(text, cache=cache), expected)
    cache.check()


@torch.no_grad()
@pytest.mark.parametrize(
    "sparse",
    [
        dict(window=[6]),
        dict(sparse="topk", topk=3, indexer="reuse"),
        dict(sparse="path", topk=2),
        dict(sparse="linear"),
    ],
    ids=str,
)
def test_a_language_model_decodes_texts_of_different_lengths(sparse):
    torch.manual_seed(0)
    options = LanguageModelOptions(vocabulary=17, layers=4, every=2, dim=16, context=20, **sparse)
    model = LanguageModel(options).double().eval()
    texts = [torch.randint(17, (1, length)) for length in LENGTHS]
    caches = model.make_static_caches(3)
    prompts = [length - 4 for length in LENGTHS]
    rows = [torch.nn.functional.pad(t[:, :n], (0, 10 - n)) for t, n in zip(texts, prompts)]
    model(torch.cat(rows), caches, counts=torch.tensor(prompts))
    for step in range(4):
        given = torch.cat([text[:, n + step : n + step + 1] for text, n in zip(texts, prompts)])
        logits = model(given, caches)
        for b, (text, n) in enumerate(zip(texts, prompts)):
            torch.testing.assert_close(logits[b, 0], model(text)[0, n + step])
