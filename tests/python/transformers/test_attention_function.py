"""attn_implementation="nsimplex": ordinary attention of Transformers models."""

import pytest
import torch
from every_model import classes_of, inputs_of, result_of, tiny_model
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


@pytest.mark.parametrize("cached", [True, False])
def test_logits_are_capped(cached):
    ids, mask, _ = padded()
    own, eager = pair("gemma2", "eager")
    texts = [generate(model, ids, mask, use_cache=cached) for model in (own, eager)]
    assert torch.equal(*texts)
    results = [model(ids, attention_mask=mask).logits[mask.bool()] for model in (own, eager)]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    plain = build("gemma2", attn_implementation="nsimplex", attn_logit_softcapping=None)
    assert (plain(ids, attention_mask=mask).logits[mask.bool()] - results[0]).abs().max() > 0.01


#: Decoders, encoders and pairs of them; some that Transformers does not run with SDPA, because
#: their layers say nothing of causality or the contrary of what holds.
TYPES = [
    "llama",
    "bigbird_pegasus",
    "deepseek_v4",
    "git",
    "nllb-moe",
    "pegasus_x",
    "splinter",
    "t5",
]
TYPES += ["bert", "vit", "wav2vec2"]


def compare_with_eager(kind):
    """The number of comparisons for the classes of a type of model."""
    compared = 0
    for cls in classes_of(kind).values():
        model = tiny_model(cls, kind)
        for padding in (None, "left", "right"):
            given, results = inputs_of(model, padding), []
            for implementation in ("eager", "nsimplex"):
                model.set_attn_implementation(implementation)
                results.append(result_of(model, given))
            expected, own = results
            scale = float(expected.abs().max())
            torch.testing.assert_close(own, expected, rtol=0, atol=1e-4 * scale, equal_nan=True)
            compared += 1
            if "input_ids" not in given:
                break
    return compared


@pytest.mark.parametrize("kind", TYPES)
def test_models_of_many_types_compute_what_eager_attention_computes(kind):
    assert compare_with_eager(kind) > 0


@pytest.mark.slow
def test_models_of_every_type_compute_what_eager_attention_computes():
    compared, wrong = 0, {}
    for kind in transformers.CONFIG_MAPPING:
        try:
            compared += compare_with_eager(kind)
        except AssertionError as error:
            if "not close" in str(error):
                wrong[kind] = str(error)
        except Exception as error:  # no small model of this type, or a refusal
            if "[nsimplex]" in str(error) and "\n" in str(error):
                wrong[kind] = str(error)
    assert not wrong and compared > 700


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kind", ["nllb-moe", "bigbird_pegasus", "t5", "git"])
def test_generated_logits_are_those_of_eager_attention(kind, cached):
    classes = classes_of(kind)
    model = tiny_model(classes.get("seq2seq") or classes["causal"], kind)
    given, logits = inputs_of(model, "left"), []
    given.pop("position_ids", None)
    if "decoder_input_ids" in given:
        given["decoder_input_ids"] = given["decoder_input_ids"][:, :3]
    for implementation in ("eager", "nsimplex"):
        model.set_attn_implementation(implementation)
        out = model.generate(
            **given,
            max_new_tokens=5,
            do_sample=False,
            use_cache=cached,
            eos_token_id=None,
            pad_token_id=0,
            decoder_start_token_id=1,
            output_logits=True,
            return_dict_in_generate=True,
        )
        logits.append(torch.stack(out.logits))
    own, expected = logits
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("kind", ["nllb-moe", "bigbird_pegasus"])
def test_no_token_of_a_decoder_sees_a_later_one(kind):
    model = tiny_model(classes_of(kind)["seq2seq"], kind)
    model.set_attn_implementation("nsimplex")
    given = inputs_of(model)
    before = result_of(model, given)
    given["decoder_input_ids"] = given["decoder_input_ids"].clone()
    given["decoder_input_ids"][:, -1] = 5
    after = result_of(model, given)
    torch.testing.assert_close(after[:, :-1], before[:, :-1], rtol=0, atol=1e-6)
    assert (after[:, -1] - before[:, -1]).abs().max() > 0.01


def test_a_mask_that_is_written_to_is_read_again():
    model = build("llama", attn_implementation="nsimplex")
    masks = {}
    layer = model.model.layers[0].self_attn
    layer.register_forward_pre_hook(
        lambda _, args, given: masks.update(mask=given["attention_mask"]), with_kwargs=True
    )
    ids = tokens(rows=1)
    with torch.no_grad():
        expected = model(ids).logits
    mask = masks["mask"]
    x = torch.randn(1, 4, ids.size(1), 8)
    plain = attention_forward(layer, x, x, x, mask)[0]
    whole = attention_forward(layer, x, x, x, mask.clone())[0]  # which says nothing of its making
    torch.testing.assert_close(plain, whole, rtol=1e-4, atol=1e-5)
    mask[..., 1] = torch.finfo(mask.dtype).min
    own = attention_forward(layer, x, x, x, mask)[0]
    assert (own - plain).abs().max() > 0.01
    with torch.inference_mode():  # where writes are not counted
        torch.testing.assert_close(model(ids).logits, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", ["bool", "floating", "causal", "none"])
def test_a_position_bias_is_added_to_the_logits(masked):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, 5, 8, generator=generator)
    bias = torch.randn(1, 4, 5, 5, generator=generator, requires_grad=True)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    if masked == "bool":
        mask: torch.Tensor | None = causal
    elif masked == "floating":
        mask = torch.zeros(1, 1, 5, 5).masked_fill(~causal, torch.finfo(torch.float32).min)
    else:
        mask = None
    options = dict(is_causal=masked == "causal", position_bias=bias, scaling=0.3)
    out, _ = attention_forward(torch.nn.Module(), x, x, x, mask, **options)
    scores = x @ x.mT * 0.3 + bias
    if masked != "none":
        scores = scores.masked_fill(~causal, -torch.inf)
    expected = (scores.softmax(-1) @ x).transpose(1, 2)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    (own,) = torch.autograd.grad(out.square().sum(), bias, retain_graph=True)
    (gradient,) = torch.autograd.grad(expected.square().sum(), bias)
    torch.testing.assert_close(own, gradient, rtol=1e-3, atol=1e-5)


def test_dropout_is_drawn_anew_in_training_alone():
    model, ids = build("llama", attn_implementation="nsimplex", attention_dropout=0.4), tokens()
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    assert not torch.equal(model(ids).logits, model(ids).logits)


@pytest.mark.parametrize(
    "option",
    [
        dict(normalizer="sigmoid"),
        dict(sinks=torch.zeros(1, 1, 3, 1)),
        dict(indices=torch.zeros(1, 3, 2)),
        dict(block_indices=torch.zeros(1, 3, 2)),
        dict(head_mask=torch.ones(1)),
        dict(output_attentions=True),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(option):
    query = torch.randn(1, 1, 3, 4)
    (name,) = option
    with pytest.raises(ValueError) as caught:
        attention_forward(torch.nn.Module(), query, query, query, None, **option)
    assert f"[nsimplex] {name}: expected" in str(caught.value) and "\n" not in str(caught.value)
    none = attention_forward(torch.nn.Module(), query, query, query, None, **{name: None})
    assert torch.equal(none[0], attention_forward(torch.nn.Module(), *[query] * 3, None)[0])


def test_a_factor_that_learns_is_refused():
    query, factor = torch.randn(1, 1, 3, 4), torch.tensor(0.3)
    own = attention_forward(torch.nn.Module(), *[query] * 3, None, scaling=factor)[0]
    assert torch.equal(
        own, attention_forward(torch.nn.Module(), *[query] * 3, None, scaling=0.3)[0]
    )
    with pytest.raises(TypeError, match="scale: .* requires a gradient, which it would not get"):
        attention_forward(torch.nn.Module(), *[query] * 3, None, scaling=factor.requires_grad_())


def test_boundaries_of_documents_that_no_mask_has_are_refused():
    model, ids = build("llama", attn_implementation="nsimplex"), tokens(1, 9)
    boundaries = torch.tensor([0, 4, 9])
    with pytest.raises(ValueError, match=r"cu_seq_lens_q: expected one document, got 2") as caught:
        model(ids, cu_seq_lens_q=boundaries, use_cache=False)
    assert "\n" not in str(caught.value)
    places = torch.cat([torch.arange(4), torch.arange(5)])[None]
    own = model(ids, position_ids=places, cu_seq_lens_q=boundaries, use_cache=False).logits
    torch.testing.assert_close(own[:, :4], model(ids[:, :4]).logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own[:, 4:], model(ids[:, 4:]).logits, rtol=1e-4, atol=1e-5)
