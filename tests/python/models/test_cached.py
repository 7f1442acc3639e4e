"""Models that go on from a cache: the logits of the whole text, however it is cut."""

import itertools

import pytest
import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions, SimplicialAttention

SHAPE = dict(vocabulary=50, layers=4, heads=4, kv_heads=2, dim=32, context=24, every=2)


def model(**options):
    torch.manual_seed(1)
    options = LanguageModelOptions(**{**SHAPE, "window": (3, 6), **options})
    return LanguageModel(options).double().requires_grad_(False)


def cached(language_model, caches, tokens, cuts):
    return torch.cat(
        [language_model(tokens[:, a:b], caches) for a, b in itertools.pairwise(cuts)], 1
    )


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(order=3, window=(2, 3, 4)),
        dict(every=0),
        dict(window=(5,), norm="qkv", scale="unit"),
        dict(window=(-1, 4)),
        dict(order=1, every=1, window=(-1,)),
        dict(sparse="linear"),
        dict(sparse="linear", order=3, every=1, norm="qkv"),
        dict(sparse="linear", order=1, every=1),
        dict(sparse="topk", topk=4),
        dict(sparse="topk", topk=4, indexer="light", indexer_scores="relu", order=3, every=1),
        dict(sparse="path", topk=3, indexer_scores="relu"),
        dict(sparse="path", topk=3, indexer="light", indexer_loss=1.0, every=1),
        dict(sparse="path", topk=3, order=1, every=1, indexer="light"),
    ],
)
@pytest.mark.parametrize(
    "cuts", [[0, 24], [0, 5, 6, 13, 24], [*range(25)], [0, 16, *range(17, 25)]]
)
def test_logits_are_those_of_the_whole_text(options, cuts):
    language_model = model(**options)
    tokens = torch.randint(50, (3, 24))
    actual = cached(language_model, language_model.make_cache(), tokens, cuts)
    torch.testing.assert_close(actual, language_model(tokens), rtol=1e-9, atol=1e-9)


def test_beyond_the_context():
    language_model = model()
    tokens = torch.randint(50, (1, 60))
    whole = language_model(tokens)
    unbounded = cached(
        language_model, language_model.make_cache(-1), tokens, [0, 20, *range(21, 61)]
    )
    torch.testing.assert_close(unbounded, whole, rtol=1e-9, atol=1e-9)

    # By default an ordinary layer sees the last `context` tokens, wherever the text is cut.
    bounded = cached(language_model, language_model.make_cache(), tokens, [0, 60])
    torch.testing.assert_close(bounded[:, :24], whole[:, :24], rtol=1e-9, atol=1e-9)
    assert (bounded - whole)[:, 24:].abs().amax(-1).min() > 1e-6
    steps = cached(language_model, language_model.make_cache(), tokens, [0, 7, 50, *range(51, 61)])
    torch.testing.assert_close(steps, bounded, rtol=1e-9, atol=1e-9)


def test_a_single_ordinary_layer_forgets_what_left_its_window():
    language_model = model(layers=1, every=0, context=8)
    tokens = torch.randint(50, (1, 20))
    last = cached(language_model, language_model.make_cache(), tokens, range(21))[:, -1]
    torch.testing.assert_close(last, language_model(tokens[:, -8:])[:, -1], rtol=1e-9, atol=1e-9)


def test_beam_search_moves_whole_texts():
    language_model = model()
    tokens = torch.randint(50, (3, 12))
    caches = language_model.make_cache()
    cached(language_model, caches, tokens, [0, 9])
    order = torch.tensor([1, 1, 0, 2])
    caches.select(order)
    rest = cached(language_model, caches, tokens[order], [9, 10, 12])
    torch.testing.assert_close(rest, language_model(tokens[order])[:, 9:], rtol=1e-9, atol=1e-9)


def test_saved_caches_go_on(tmp_path):
    language_model = model()
    tokens = torch.randint(50, (2, 20))
    caches = language_model.make_cache()
    cached(language_model, caches, tokens, [0, 11])
    caches.save(tmp_path / "caches.safetensors")
    torch.save(caches.state_dict(), tmp_path / "caches.pt")
    again, third = language_model.make_cache(), language_model.make_cache()
    again.load(tmp_path / "caches.safetensors")
    third.load_state_dict(torch.load(tmp_path / "caches.pt", weights_only=True))
    expected = language_model(tokens)[:, 11:]
    for loaded in (again, third):
        assert (loaded.position, loaded.nbytes > 0) == (11, True)
        rest = cached(language_model, loaded, tokens, [11, 14, *range(15, 21)])
        torch.testing.assert_close(rest, expected, rtol=1e-9, atol=1e-9)


def test_rotary_of_order_two_counts_positions():
    torch.manual_seed(1)
    layer = (
        SimplicialAttention(36, 4, causal=True, window=(3, 5), form="determinant", rotary=True)
        .double()
        .requires_grad_(False)
    )
    x = torch.randn(2, 14, 36, dtype=torch.float64)
    cache = layer.make_cache()
    cuts = [0, 6, *range(7, 15)]
    steps = torch.cat([layer(x[:, a:b], cache=cache) for a, b in itertools.pairwise(cuts)], 1)
    torch.testing.assert_close(steps, layer(x), rtol=1e-10, atol=1e-10)


def test_half_precision_layers_decode():
    torch.manual_seed(1)
    layer = SimplicialAttention(24, 4, causal=True, window=(3, 5)).bfloat16().requires_grad_(False)
    x = torch.randn(2, 9, 24).bfloat16()
    cache = layer.make_cache()
    steps = torch.cat([layer(x[:, t : t + 1], cache=cache) for t in range(9)], 1)
    torch.testing.assert_close(steps, layer(x), rtol=3e-2, atol=3e-2)


def test_what_cannot_be_cached_is_refused():
    for options in (dict(), dict(causal=True, context_dims=(24, 24))):
        layer = SimplicialAttention(24, 4, **options)
        with pytest.raises(ValueError, match="cache: only causal self-attention"):
            layer.make_cache()
    language_model, other = model(), model(layers=2)
    with pytest.raises(ValueError, match="caches: expected one for each of 4 layers, got 2"):
        language_model(torch.randint(50, (1, 3)), other.make_cache())
    trained = LanguageModel(LanguageModelOptions(**SHAPE))
    with pytest.raises(ValueError, match="requires a gradient.*inference only"):
        trained(torch.randint(50, (1, 3)), trained.make_cache())
