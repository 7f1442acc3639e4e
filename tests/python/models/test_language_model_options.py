"""Options of the simplicial layers that the language model passes on."""

import pytest
import torch

from nsimplex.nn import LanguageModel, LanguageModelOptions

SHAPE = dict(vocabulary=50, layers=4, heads=4, kv_heads=2, dim=32, context=24, every=2)

KINDS = {
    "determinant": dict(form="determinant", rotary=True, heads=2, kv_heads=1, dim=36),
    "sink": dict(normalizer="softmax_sink"),
    "augment": dict(normalizer="sigmoid", augment=True),
}


def model(**options):
    torch.manual_seed(1)
    options = LanguageModelOptions(**{**SHAPE, "window": (3, 6), **options})
    return LanguageModel(options).double()


@pytest.mark.parametrize("kind", KINDS)
def test_options_of_the_layers_decode_and_generate(kind):
    language_model = model(**KINDS[kind]).requires_grad_(False)
    tokens = torch.randint(50, (1, 24))
    caches = language_model.make_cache()
    steps = torch.cat([language_model(tokens[:, t : t + 1], caches) for t in range(24)], 1)
    torch.testing.assert_close(steps, language_model(tokens), rtol=1e-9, atol=1e-9)
    prompts = [[1, 2, 3], [4]]
    cached = language_model.generate(prompts, 8, temperature=0)
    assert language_model.generate(prompts, 8, temperature=0, caches=False) == cached


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
        (dict(sparse="topk", augment=True), "augment: expected none"),
        (dict(sparse="topk", dropout=0.1), "dropout: expected 0 with sparse 'topk', because only"),
        (dict(window=8), "[LanguageModelOptions] window: expected a list"),
        (dict(window="4,8"), "window: expected a list"),
        (dict(indexer_loss=float("inf")), "indexer_loss: expected 0 or more, got inf"),
        (dict(mlp_ratio=2.0**30), "mlp_ratio: expected 0 (the usual one) to 2097152, got"),
    ):
        with pytest.raises((TypeError, ValueError)) as error:
            model(**wrong)
        assert words in str(error.value)
