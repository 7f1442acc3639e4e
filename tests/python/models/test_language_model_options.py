"""Options of the simplicial layers that the language model passes on."""

import pytest
import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions

SHAPE = dict(vocabulary=50, layers=4, heads=4, kv_heads=2, dim=32, context=24, every=2)

LIGHT = dict(indexer="light", indexer_loss=0.5)

KINDS = {
    "determinant": dict(form="determinant", rotary=True, heads=2, kv_heads=1, dim=36),
    "sink": dict(normalizer="softmax_sink"),
    "augment": dict(normalizer="sigmoid", augment=True),
    "orders": dict(orders=[1, 1, 2, 2], softcap=4.0),
    "orders of chosen keys": dict(orders=[1, 1, 2, 2], sparse="topk", topk=3, **LIGHT),
    "orders, reuse": dict(orders=[1, 1, 3, 3], sparse="path", topk=3, every=1, **LIGHT),
    "window and sinks": dict(sparse="window+sinks", window=(4,), sinks=2, reduce="mlp"),
    "window and chosen keys": dict(sparse="window+topk", window=[(3, 0)], topk=3),
    "sinks and chosen keys": dict(sparse="sinks+topk", topk=3, reduce="mlp_symmetric", **LIGHT),
    "all parts": dict(sparse="window+sinks+topk", window=(2,), topk=3, unit_layer=True),
    "face": dict(face=True, reduce="sum", head_dim=6, bias=True),
    "axes": dict(distinct="axes", softcap=2.0, reduce="mean"),
    "with query": dict(distinct="with_query", every=1, rotary_base=100.0),
}


def model(**options):
    torch.manual_seed(1)
    options = LanguageModelOptions(**{**SHAPE, "window": (3, 6), **options})
    return LanguageModel(options).double()


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_the_layers_decode_and_generate(kind):
    language_model = model(**KINDS[kind]).requires_grad_(False)
    tokens = torch.randint(50, (1, 14))
    caches = language_model.make_cache()
    steps = torch.cat([language_model(tokens[:, t : t + 1], caches) for t in range(14)], 1)
    torch.testing.assert_close(steps, language_model(tokens), rtol=1e-9, atol=1e-9)
    prompts = [[1, 2, 3], [4]]
    cached = language_model.generate(prompts, 5, temperature=0)
    assert language_model.generate(prompts, 5, temperature=0, caches=False) == cached


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_the_layers_train(kind):
    language_model = model(**KINDS[kind]).float()
    optimizer = torch.optim.Adam(language_model.parameters(), 0.01)
    tokens = torch.arange(24).repeat(2, 1)
    targets, losses = tokens.roll(-1, 1), []
    for _ in range(12):
        loss = language_model.loss(tokens, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    weights = dict(language_model.named_parameters())
    idle = [name for name, weight in weights.items() if weight.grad is None]
    assert not [name for name in idle if "indexer" not in name or "indexer_loss" in KINDS[kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_options_are_read_from_their_text(kind):
    options = model(**KINDS[kind]).options
    read = LanguageModelOptions.from_map(options.to_map())
    assert read.to_map() == options.to_map() and len(read.to_map()) == len(vars(options))
    names = [name for name in KINDS[kind] if name != "window"]
    assert [getattr(read, name) for name in names] == [KINDS[kind][name] for name in names]


def test_heads_of_an_order_have_its_last_windows():
    attention = model(orders=[1, 1, 2, 2]).blocks[1].attention
    first, second = attention.groups
    assert first.attention_options["window"] == [6] and first.rotary
    assert second.attention_options["window"] == [3, 6] and not second.rotary


def test_dropout_acts_in_training_alone():
    language_model = model(dropout=0.5)
    tokens = torch.randint(50, (1, 24))
    assert not torch.equal(language_model(tokens), language_model(tokens))
    prompt = tokens[0, :4].tolist()
    trained = language_model.generate(prompt, 5, temperature=0)
    language_model.eval()
    assert torch.equal(language_model(tokens), language_model(tokens))
    assert language_model.generate(prompt, 5, temperature=0) == trained


def test_options_reach_the_simplicial_layers_alone():
    options = dict(form="determinant", rotary=True, dim=36, normalizer="softmax_sink", dropout=0.1)
    language_model = model(**options, heads=2, kv_heads=1)
    ordinary, simplicial = (language_model.blocks[i].attention for i in (0, 1))
    assert simplicial.attention_options["form"] == "determinant" and simplicial.rotary
    assert simplicial.sink is not None and simplicial.dropout == 0.1
    assert ordinary.attention_options["form"] == "product" and ordinary.sink is None
    assert ordinary.dropout == 0 and ordinary.rotary
    assert not model().blocks[1].attention.rotary
    read = LanguageModelOptions.from_map(
        dict(form="determinant", rotary="true", normalizer="sigmoid", augment="false")
    )
    assert (read.form, read.rotary, read.normalizer) == ("determinant", True, "sigmoid")
    assert (read.augment, read.dropout) == (False, 0.0)
    for wrong, words in (
        (dict(form="dot"), "form: expected product or determinant, got 'dot'"),
        (dict(normalizer="max"), "normalizer: expected softmax"),
        (dict(dropout=1.0), "dropout: expected a share"),
        (dict(rotary=True), "rotary: expected form determinant with order 2, because"),
        (dict(form="determinant", rotary=True), "head_dim: expected a multiple of order + 1 = 3"),
        (dict(sparse="topk", augment=True), "augment: expected False with sparse 'topk', got True"),
        (dict(sparse="topk", dropout=0.1), "dropout: expected 0.0 with sparse 'topk', got 0.1"),
        (dict(orders=[1, 2]), "orders: expected one order for each of 4 heads, got 2"),
        (dict(orders=[1, 1, 2, 0]), "orders: expected 1 to 8, got 0"),
        (dict(orders=[1, 1, 2, 2], order=3), "order: expected none beside orders, got 3"),
        (dict(orders=[1, 1, 3, 3]), "window: expected one entry for each of 3 axes, got 2"),
        (dict(orders=[1, 1, 2, 2], rotary=True), "rotary: expected form determinant with orders"),
        (dict(sinks=2), "sinks: expected 1 with sparse 'window', got 2"),
        (dict(sparse="sinks+topk", sinks=0), "sinks: expected 1 to 2147483648, got 0"),
        (dict(sparse="window+sinks"), "window: expected one entry, for the keys of all axes, with"),
        (dict(sparse="sinks"), "sparse: expected window, topk, path, linear, window+sinks"),
        (dict(sparse="topk", topk=0), "topk: expected 1 to 2147483648, got 0"),
        (dict(reduce="mlp"), "reduce: expected product, sum or mean with sparse 'window'"),
        (dict(reduce="max"), "reduce: expected product, sum, mean, mlp or mlp_symmetric"),
        (dict(sparse="linear", reduce="sum"), "reduce: expected 'product' with sparse 'linear'"),
        (dict(face=True, normalizer="relu"), "normalizer: expected softmax beside face"),
        (dict(sparse="path", face=True), "face: expected False with sparse 'path', got True"),
        (dict(distinct="all"), "distinct: expected none, axes or with_query, got 'all'"),
        (dict(softcap=0.0), "softcap: expected a positive number, got 0.0"),
        (dict(sparse="topk", softcap=2.0), "softcap: expected none with sparse 'topk', got 2.0"),
        (dict(head_dim=-1), "head_dim: expected 0 to 1048576, got -1"),
        (dict(rotary_base=0.0), "rotary_base: expected a positive number, got 0.0"),
        (dict(window=8), "[LanguageModelOptions] window: expected a list"),
        (dict(window="4,8"), "window: expected a list"),
        (dict(indexer_loss=float("inf")), "indexer_loss: expected 0 or more, got inf"),
        (dict(mlp_ratio=2.0**30), "mlp_ratio: expected 0 (the usual one) to 2097152, got"),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            model(**wrong)
        assert words in str(error.value) and str(error.value).startswith("[LanguageModel")
