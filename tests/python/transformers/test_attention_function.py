"""attn_implementation="nsimplex": ordinary attention of Transformers models."""

import pytest
import torch
from tiny_models import build, generate, logits_in_steps, padded, positions_of, tokens, transformers

from nsimplex.transformers import attention_forward

KINDS = ["llama", "gpt2", "qwen2", "qwen3"]
OTHERS = ["eager", "sdpa"]


def pair(kind, other, **options):
    """The same model with two implementations."""
    return build(kind, attn_implementation="nsimplex", **options), build(
        kind, attn_implementation=other, **options
    )


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_gradients_are_those_of_others(kind, other):
    ids, results = tokens(), []
    for model in pair(kind, other):
        out = model(ids, labels=ids)
        out.loss.backward()
        results.append((out.logits, [weight.grad for weight in model.parameters()]))
    (own, gradients), (logits, expected) = results
    torch.testing.assert_close(own, logits, rtol=1e-4, atol=1e-5)
    for a, b in zip(gradients, expected):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_left_padding(kind, other):
    ids, mask, _ = padded()
    own, expected = (
        model(ids, attention_mask=mask, position_ids=positions_of(mask)).logits[mask.bool()]
        for model in pair(kind, other)
    )
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"cache_implementation": "static"}])
@pytest.mark.parametrize("kind", KINDS)
def test_generated_tokens_are_those_of_sdpa(kind, options):
    ids, mask, _ = padded()
    own, expected = (generate(model, ids, mask, **options) for model in pair(kind, "sdpa"))
    assert torch.equal(own, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_static_cache_gives_the_logits_of_the_whole_text(kind):
    model = build(kind, attn_implementation="nsimplex")
    ids = tokens()
    cache = transformers.StaticCache(config=model.config, max_cache_len=30)
    with torch.no_grad():
        torch.testing.assert_close(
            logits_in_steps(model, ids, cache), model(ids).logits, rtol=1e-4, atol=1e-5
        )


def test_a_sliding_window_is_kept():
    options = dict(use_sliding_window=True, sliding_window=4, max_window_layers=0)
    own, eager = (model(tokens()).logits for model in pair("qwen2", "eager", **options))
    torch.testing.assert_close(own, eager, rtol=1e-4, atol=1e-5)
    plain = build("qwen2", attn_implementation="nsimplex")(tokens()).logits
    assert (own - plain).abs().max() > 0.01


def test_sinks_are_logits_of_the_softmax():
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    sink = torch.randn(4)
    out, _ = attention_forward(torch.nn.Module(), query, key, value, None, s_aux=sink)
    scores = query @ key.repeat_interleave(2, 1).mT / 8**0.5
    scores.masked_fill_(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    scores = torch.cat([scores, sink[:, None, None].expand(2, 4, 5, 1)], -1)
    expected = scores.softmax(-1)[..., :-1] @ value.repeat_interleave(2, 1)
    torch.testing.assert_close(out, expected.transpose(1, 2), rtol=1e-4, atol=1e-5)


def test_what_it_cannot_do_is_refused():
    query = torch.randn(1, 1, 3, 4)
    with pytest.raises(ValueError, match="softcap"):
        attention_forward(torch.nn.Module(), query, query, query, None, softcap=30.0)
