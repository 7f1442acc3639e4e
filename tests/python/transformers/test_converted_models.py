"""Trained Transformers models that get tuples of keys, and start as the same function."""

import copy
import pickle

import pytest
import torch
from tiny_models import (
    CACHE,
    build,
    generate,
    logits_in_steps,
    padded,
    positions_of,
    shape,
    tokens,
    transformers,
)

from nsimplex.nn import HigherOrderPart
from nsimplex.transformers import convert, from_pretrained, order_shares

KINDS = ["llama", "mistral", "qwen2", "qwen3", "gpt2"]
SOME = ["llama", "qwen3", "gpt2"]


def parts_of(model):
    return [module for module in model.modules() if isinstance(module, HigherOrderPart)]


def converted(kind, bias=None, **options):
    """A converted model; with a bias, its tuples take part."""
    model = convert(build(kind, gain=4.0, **options), every=2, window=(4, 9))
    with torch.no_grad():
        for part in parts_of(model):
            if bias is not None:
                part.start.fill_(bias)
    return model


def logits(model, ids, mask=None):
    positions = None if mask is None else positions_of(mask)
    with torch.no_grad():
        return model(ids, attention_mask=mask, position_ids=positions).logits


def close(own, expected):
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_converted_model_starts_as_the_same_function(kind):
    plain, ids = build(kind, gain=4.0), tokens()
    expected, names = logits(plain, ids), {*plain.state_dict()}
    model = converted(kind)
    torch.testing.assert_close(logits(model, ids), expected, rtol=0, atol=1e-5)
    assert names < {*model.state_dict()}
    assert len(parts_of(model)) == 2
    model(ids, labels=ids).loss.backward()
    for part in parts_of(model):
        assert (part.order_bias.grad != 0).all() and (part.proj.weight.grad != 0).any()


@pytest.mark.parametrize("implementation", ["eager", "sdpa", "nsimplex"])
@pytest.mark.parametrize("kind", SOME)
def test_caches_give_the_logits_of_the_whole_text(kind, implementation):
    model, ids = converted(kind, -2.0, attn_implementation=implementation), tokens()
    whole = logits(model, ids)
    assert (whole - logits(build(kind, gain=4.0), ids)).abs().max() > 0.01
    for cache in (
        transformers.DynamicCache(config=model.config),
        transformers.StaticCache(config=model.config, max_cache_len=40),
    ):
        with torch.no_grad():
            close(logits_in_steps(model, ids, cache), whole)
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad():
        model(ids, use_cache=True, **{CACHE: cache})
        cache.crop(-5)
        close(model(ids[:, -5:], use_cache=True, **{CACHE: cache}).logits, whole[:, -5:])


@pytest.mark.parametrize("kind", SOME)
def test_a_padded_row_is_the_row_alone(kind):
    model = converted(kind, -2.0)
    ids, mask, rows = padded()
    own = logits(model, ids, mask)
    for i, row in enumerate(rows):
        close(own[i, -row.size(1) :], logits(model, row)[0])
    texts = [
        generate(model, ids, mask, **options)
        for options in ({}, dict(cache_implementation="static"), dict(use_cache=False))
    ]
    assert torch.equal(texts[0], texts[1]) and torch.equal(texts[0], texts[2])
    for i, row in enumerate(rows):
        alone = generate(model, row)[0]
        assert torch.equal(texts[0][i, -alone.numel() :], alone)


def test_beams_are_the_same_with_every_cache():
    model = converted("llama", -2.0)
    ids, mask, _ = padded()
    beams = [
        generate(model, ids, mask, num_beams=3, **options)
        for options in ({}, dict(cache_implementation="static"), dict(use_cache=False))
    ]
    assert torch.equal(beams[0], beams[1]) and torch.equal(beams[0], beams[2])


def test_packed_documents_are_those_alone():
    model = converted("llama", -2.0)
    documents = [tokens(1, length, length) for length in (7, 1, 11)]
    positions = torch.cat([torch.arange(each.size(1)) for each in documents])[None]
    with torch.no_grad():
        own = model(torch.cat(documents, 1), position_ids=positions, use_cache=False).logits
    close(own[0], torch.cat([logits(model, each)[0] for each in documents]))


@pytest.mark.parametrize("kind", SOME)
def test_it_is_saved_and_loaded(kind, tmp_path):
    model, ids = converted(kind, -2.0), tokens()
    model.save_pretrained(tmp_path / "model")
    again = from_pretrained(tmp_path / "model").eval()
    assert type(again) is type(model) and again.config.nsimplex["every"] == 2
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
    close(logits(again, ids), logits(model, ids))
    plain = build(kind)
    plain.save_pretrained(tmp_path / "plain")
    with pytest.raises(ValueError, match="expected a converted model"):
        from_pretrained(tmp_path / "plain")


def test_dropout_and_checkpointing():
    model, ids = converted("llama", -2.0, attention_dropout=0.3).train(), tokens()
    gradients = []
    for checkpoint in (False, True):
        model.zero_grad()
        if checkpoint:
            model.gradient_checkpointing_enable()
        torch.manual_seed(0)
        model(ids, labels=ids, use_cache=False).loss.backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
    torch.testing.assert_close(*gradients, rtol=0, atol=0)
    torch.manual_seed(1)
    one = model(ids, use_cache=False).logits
    assert not torch.equal(one, model(ids, use_cache=False).logits)


def test_training_moves_the_bias_and_the_tuples_take_part():
    """A token that depends on the two before it: their product modulo 7."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 7, (48, 24), generator=generator)
    for t in range(2, 24, 3):
        ids[:, t] = ids[:, t - 1] * ids[:, t - 2] % 7
    model = convert(build("llama", gain=2.0), every=2, window=(4, 4), sample=ids[:4])
    before = torch.cat([part.logit_bias.detach() for part in parts_of(model)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, eps=1e-15)
    for _ in range(50):
        optimizer.zero_grad()
        model(ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
    moved = torch.cat([part.logit_bias for part in parts_of(model)]) - before
    assert (moved >= 0).all() and (moved > 3).sum() >= 2
    assert max(share.max() for share in order_shares(model, ids)) > 0.01


def test_what_does_not_fit_is_refused():
    sliding = dict(use_sliding_window=True, sliding_window=4, max_window_layers=0)
    other = transformers.AutoModelForCausalLM.from_config(
        transformers.OPTConfig(
            vocab_size=20, hidden_size=8, ffn_dim=8, num_hidden_layers=2, num_attention_heads=2
        )
    )
    plain = build("llama")
    for model, options, said in (
        (torch.nn.Linear(2, 2), {}, "[convert] model"),
        (other, dict(every=1), "got opt"),
        (build("qwen2", **sliding), dict(every=2), "sliding_attention"),
        (build("llama"), dict(every=5), "[convert] every"),
        (build("llama"), dict(every=2, window=(1, 2, 3)), "window"),
        (build("llama"), dict(every=2, order=1), "order"),
        (converted("llama"), dict(every=2), "got a converted one"),
        (plain, dict(every=2, sample=tokens() + 10**6), "[convert] sample: expected tokens 0 to"),
        (plain, dict(every=2, sample=tokens().float()), "[convert] sample: expected int64 [B, T]"),
    ):
        with pytest.raises(ValueError) as caught:
            convert(model, **options)
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert shape("llama").model_type == "llama"
    assert not parts_of(plain)  # no refused call changed it


@pytest.mark.parametrize("kind", SOME)
def test_a_copy_is_a_model_of_its_own(kind):
    model, ids = converted(kind, bias=-1.0), tokens()
    expected = logits(model, ids)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    for each in copies:
        close(logits(each, ids), expected)
        name = "attn_pdrop" if kind == "gpt2" else "attention_dropout"
        setattr(each.config, name, 0.9)
        each.train()
        assert not torch.equal(logits(each, ids), logits(each, ids))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_mask_may_be_written_to_between_calls(mode):
    model, ids = converted("llama", bias=-1.0), tokens()
    with mode():
        mask = torch.ones(2, 1, ids.size(1), ids.size(1), dtype=torch.bool).tril()
        model(ids, attention_mask=mask)
        mask[:, :, 3:, :3] = False
        expected = model(ids, attention_mask=mask.clone()).logits
        close(model(ids, attention_mask=mask).logits, expected)
