"""Trained Transformers models that get tuples of keys, and start as the same function."""

import copy
import pickle

import pytest
import torch
from every_model import classes_of
from every_model import tiny_model as tiny_model_of
from safetensors.torch import load_file, save_file
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

import nsimplex.transformers
from nsimplex.nn import HigherOrderPart
from nsimplex.transformers import convert, from_pretrained, order_shares
from nsimplex.transformers.families import FAMILIES, layers_of

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


def tiny_model(kind):
    return tiny_model_of(classes_of(kind)["causal"], kind)


def close(own, expected):
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=2e-5)


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


AUTO = transformers.models.auto.modeling_auto
MAPPINGS = [
    AUTO.MODEL_MAPPING,
    AUTO.MODEL_FOR_CAUSAL_LM_MAPPING,
    AUTO.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AUTO.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    AUTO.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
]
#: The classes that Transformers has for each family, and those of ours.
CLASSES = {
    mapping[config].__name__: kind
    for kind in FAMILIES
    for config in [transformers.CONFIG_MAPPING[kind]]
    for mapping in MAPPINGS
    if config in mapping
}
CLASSES["GPT2DoubleHeadsModel"] = "gpt2"
CLASSES |= dict.fromkeys(("SimplicialForCausalLM", "SimplicialModel"), "simplicial")


def saved(name, folder, **options):
    """A model of a class with tuples that take part, in a folder."""
    kind = CLASSES[name]
    torch.manual_seed(0)
    cls = getattr(nsimplex.transformers, name, None) or getattr(transformers, name)
    model = cls(shape(kind, num_hidden_layers=2, **options)).eval()
    if kind != "simplicial":
        convert(model, every=2, window=(4, 9))
        for part in parts_of(model):
            part.start.fill_(-2.0)
    model.save_pretrained(folder)
    return model


def outputs(model, ids):
    with torch.no_grad():
        return {
            name: each
            for name, each in model(ids, use_cache=False).items()
            if isinstance(each, torch.Tensor)
        }


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_loaded_as_what_was_saved(name, tmp_path):
    model, ids = saved(name, tmp_path / "model"), tokens()
    again = from_pretrained(tmp_path / "model")
    assert type(again) is type(model) and not again.training
    torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(outputs(again, ids), outputs(model, ids), rtol=1e-5, atol=1e-6)
    now, before = again.config.to_dict(), model.config.to_dict()
    for config in (now, before):
        config.pop("_name_or_path", None)
        config.pop("architectures", None)
    assert now == before
    again.save_pretrained(tmp_path / "again")
    assert from_pretrained(tmp_path / "again").config.architectures == [name]


@pytest.mark.parametrize("window", [4, None, -1, (3, 5)])
def test_every_window_is_saved(window, tmp_path):
    model = convert(build("llama"), every=4, window=window)
    model.save_pretrained(tmp_path)
    (own,), (again,) = parts_of(model), parts_of(from_pretrained(tmp_path))
    assert own.window == again.window


def test_what_belongs_to_a_model_is_saved_with_it(tmp_path):
    model = convert(build("llama", tie_word_embeddings=True), every=2, window=(4, 9))
    model.generation_config.update(max_new_tokens=3, repetition_penalty=1.5)
    model.save_pretrained(tmp_path)
    again = from_pretrained(tmp_path)
    assert again.lm_head.weight is again.model.embed_tokens.weight
    assert again.generation_config.to_dict() == model.generation_config.to_dict()
    assert again.generate(tokens(), pad_token_id=0).size(1) == 19 + 3


def test_options_are_passed_on(tmp_path):
    model, ids = saved("LlamaForCausalLM", tmp_path), tokens()
    expected = logits(model, ids)
    for options in (
        dict(attn_implementation="eager"),
        dict(attn_implementation="nsimplex", device_map="cpu"),
        dict(config=transformers.AutoConfig.from_pretrained(tmp_path)),
        dict(config=str(tmp_path), revision="main"),
    ):
        again = from_pretrained(tmp_path, **options)
        close(logits(again, ids), expected)
        wanted = options.get("attn_implementation", "sdpa")
        assert again.config._attn_implementation == wanted
    half = from_pretrained(str(tmp_path), dtype=torch.bfloat16)
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    half.save_pretrained(tmp_path / "half")
    assert from_pretrained(tmp_path / "half", dtype="auto").dtype == torch.bfloat16
    again, info = from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and type(again) is type(model)


def spoiled(folder, change):
    """Changes the weights in a folder."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


PROJ = "model.layers.1.self_attn.higher.proj.weight"


@pytest.mark.parametrize(
    "change, said",
    [
        (
            lambda weights: weights.pop(PROJ),
            f"expected every weight of the model, got 1 missing ({PROJ})",
        ),
        (lambda weights: weights.pop("lm_head.weight"), "got 1 missing (lm_head.weight)"),
        (
            lambda weights: weights.update({"model.more": torch.ones(2)}),
            "expected weights of the model alone, got 1 unexpected (model.more)",
        ),
        (
            lambda weights: weights.update({PROJ: torch.ones(3, 3)}),
            f"expected weights of the model's shapes, got 1 mismatched ({PROJ})",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(change, said, tmp_path):
    saved("LlamaForCausalLM", tmp_path)
    spoiled(tmp_path, change)
    with pytest.raises(ValueError) as caught:
        from_pretrained(tmp_path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_folders_that_do_not_fit_are_refused_in_one_line(tmp_path):
    build("llama").save_pretrained(tmp_path / "plain")
    saved("LlamaForCausalLM", tmp_path / "own")
    build("simplicial").save_pretrained(tmp_path / "simplicial")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "own")
    others = [copy.deepcopy(config) for _ in range(3)]
    for other, names in zip(others, (["MyLlama"], ["Qwen2ForCausalLM"], None)):
        other.architectures = names
    for folder, options, said in (
        ("plain", {}, "folder: expected a converted model, got llama"),
        ("none", {}, "folder: expected a folder of save_pretrained or a name on the hub"),
        ("own", dict(config="nowhere"), "config: expected a folder of save_pretrained"),
        ("own", dict(config=others[0]), "expected a class of Transformers for llama, got MyLlama"),
        ("own", dict(config=others[1]), "expected a class of Transformers for llama, got Qwen2"),
        ("own", dict(config=others[2]), "expected a class of Transformers for llama, got None"),
        ("own", dict(attention_dropout=0.1), "attention_dropout: expected an option of Transf"),
        ("simplicial", dict(window=(1, 1)), "window: expected an option of Transformers'"),
    ):
        with pytest.raises(ValueError) as caught:
            from_pretrained(tmp_path / folder, **options)
        assert "[from_pretrained] " in str(caught.value) and said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_head_that_asks_for_more_is_converted_too():
    """A classifier without a token of padding takes single rows."""
    model = transformers.LlamaForSequenceClassification(shape("llama", pad_token_id=None))
    model.eval().score.train()
    convert(model, every=2)
    assert len(order_shares(model, tokens())) == 2
    with pytest.raises(ValueError, match=r"\[order_shares\] tokens: expected at most 64 tokens"):
        order_shares(converted("gpt2"), tokens(1, 65))
    assert [name for name, each in model.named_modules() if each.training] == ["score"]


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


ROTARY = dict(rope_theta=100.0, original_max_position_embeddings=16, factor=4.0)
SCALED = {
    "linear": {},
    "dynamic": {},
    "yarn": dict(beta_fast=4.0),
    "llama3": dict(low_freq_factor=1.0, high_freq_factor=4.0),
    "longrope": dict(short_factor=[1.0, 1.5, 2.0, 3.0], long_factor=[2.0, 3.0, 4.0, 5.0]),
    "proportional": dict(partial_rotary_factor=0.5),
}
CONFIGS = [
    ("llama", dict(attention_bias=True, mlp_bias=True)),
    ("llama", dict(head_dim=12, tie_word_embeddings=True, attn_implementation="eager")),
    ("llama", dict(attn_implementation="nsimplex", num_key_value_heads=1)),
    ("gpt2", dict(scale_attn_weights=False, n_positions=23)),
    ("gpt2", dict(scale_attn_by_inverse_layer_idx=True, attn_implementation="eager")),
    ("gpt2", dict(reorder_and_upcast_attn=True, attn_implementation="eager")),
    ("qwen3", dict(attention_bias=True)),
    ("cohere", dict(use_qk_norm=False, attention_bias=True)),
    ("gemma2", dict(attn_logit_softcapping=None, query_pre_attn_scalar=3)),
    ("gemma2", dict(attn_implementation="nsimplex", final_logit_softcapping=1.0)),
    ("gpt_neox", dict(use_parallel_residual=False, attention_bias=False)),
    ("opt", dict(do_layer_norm_before=False, enable_bias=False)),
    ("phi", dict(qk_layernorm=False, tie_word_embeddings=True)),
    (
        "phi3",
        dict(
            rope_parameters=dict(
                rope_type="longrope",
                rope_theta=100.0,
                partial_rotary_factor=0.5,
                short_factor=[1.0, 1.5],
                long_factor=[2.0, 3.0],
                original_max_position_embeddings=16,
            ),
        ),
    ),
    (
        "gemma3_text",
        dict(
            rope_parameters=dict(
                full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000.0),
                sliding_attention=dict(rope_type="default", rope_theta=10.0),
            ),
            sliding_window=5,
            layer_types=["sliding_attention", "full_attention"] * 2,
        ),
    ),
    (
        "qwen2",
        dict(
            use_sliding_window=True,
            sliding_window=4,
            layer_types=["sliding_attention", "full_attention"] * 2,
        ),
    ),
    *[
        (
            "llama",
            dict(
                rope_parameters=dict(rope_type=name, **ROTARY, **options),
                max_position_embeddings=16,
            ),
        )
        for name, options in SCALED.items()
    ],
]


@pytest.mark.parametrize("kind, options", CONFIGS)
def test_every_field_of_a_config_is_obeyed(kind, options):
    ids, mask, _ = padded((5, 23, 9))
    model = build(kind, gain=2.0, **options)
    expected = logits(model, ids), logits(model, ids, mask)
    convert(model, every=2, window=(4, 9), sample=None if kind == "gpt2" else ids)
    own = logits(model, ids), logits(model, ids, mask)
    torch.testing.assert_close(own[0], expected[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(own[1][mask.bool()], expected[1][mask.bool()], rtol=0, atol=1e-6)


class OwnAttention(transformers.models.llama.modeling_llama.LlamaAttention):
    """Somebody's own layer."""


def with_own_attention(index):
    model = build("llama")
    model.model.layers[index].self_attn.__class__ = OwnAttention
    return model


def with_kind(kind):
    model = build("qwen2")
    model.config.layer_types = [kind] * 4
    return model


def with_own_forward():
    model = build("llama")
    layer = model.model.layers[1].self_attn
    layer.forward = layer.forward
    return model


def with_adapter():
    peft = pytest.importorskip("peft")
    model = build("llama")
    peft.inject_adapter_in_model(peft.LoraConfig(target_modules=["q_proj"]), model)
    return model


def with_integers():
    model = build("llama")
    own = model.model.layers[1].self_attn
    own.q_proj.weight = torch.nn.Parameter(own.q_proj.weight.to(torch.int8), requires_grad=False)
    return model


REFUSED = [
    (
        lambda: build("gpt2", n_positions=8),
        dict(every=2, sample=tokens(1, 9)),
        "sample: expected at most 8 tokens in a row, got 9",
    ),
    (with_adapter, dict(every=2), "model: expected no adapters"),
    (with_integers, dict(every=2), "expected layer 1 to have floating weights"),
    (lambda: build("llama").to("meta"), dict(every=2), "some on the device meta"),
    (lambda: torch.compile(build("llama")), dict(every=2), "got OptimizedModule"),
    (lambda: torch.nn.Linear(2, 2), {}, "[convert] model: expected a"),
    (
        lambda: transformers.BloomModel(
            transformers.BloomConfig(vocab_size=9, hidden_size=8, n_layer=1, n_head=2)
        ),
        dict(every=1),
        "got bloom, whose layers have ALiBi",
    ),
    (
        lambda: tiny_model("gpt_oss"),
        dict(every=1),
        "got gpt_oss, whose layers have attention sinks",
    ),
    (lambda: tiny_model("llama4_text"), dict(every=1), "got llama4_text"),
    (
        lambda: transformers.T5ForConditionalGeneration(
            transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
        ),
        dict(every=1),
        "got t5, whose layers have position biases",
    ),
    (
        lambda: build("gpt2", add_cross_attention=True),
        dict(every=1),
        "a decoder without cross-attention",
    ),
    (
        lambda: build("gemma", use_bidirectional_attention=True),
        dict(every=1),
        "expected layer 0 to see no later token, got use_bidirectional_attention",
    ),
    (
        lambda: build("opt", max_position_embeddings=8),
        dict(every=2, sample=tokens(1, 9)),
        "sample: expected at most 8 tokens in a row, got 9",
    ),
    (lambda: build("llama"), dict(every=5), "[convert] every"),
    (lambda: build("llama"), dict(every=2, window=(1, 2, 3)), "window"),
    (lambda: build("llama"), dict(every=2, order=1), "order"),
    (lambda: converted("llama"), dict(every=2), "got a converted one"),
    (
        lambda: build("llama"),
        dict(every=2, sample=tokens() + 10**6),
        "[convert] sample: expected tokens 0 to",
    ),
    (
        lambda: build("llama"),
        dict(every=2, sample=tokens().float()),
        "[convert] sample: expected int64 [B, T]",
    ),
    (
        lambda: with_kind("chunked_attention"),
        dict(every=2),
        "expected layer 1 to have full or sliding attention, got chunked_attention",
    ),
    *[
        (lambda kind=kind: build(kind, is_causal=False), dict(every=2), "is_causal: expected True")
        for kind in KINDS
    ],
    (lambda: with_own_attention(1), dict(every=2), "the attention of llama, got OwnAttention"),
    (with_own_forward, dict(every=2), "a layer with another forward"),
    (
        lambda: build("llama", attn_implementation="flex_attention"),
        dict(every=2),
        "attn_implementation: expected eager, sdpa or nsimplex, got flex_attention",
    ),
]


@pytest.mark.parametrize("made, options, said", REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(made, options, said):
    model = made()
    parts = parts_of(model)
    with pytest.raises((TypeError, ValueError)) as caught:
        convert(model, **options)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert parts_of(model) == parts  # no refused call changed it


def test_layers_that_are_not_converted_may_be_others():
    ids, model = tokens(), with_own_attention(0)
    expected = logits(model, ids)
    close(logits(convert(model, every=2), ids), expected)
    assert type(model.model.layers[0].self_attn) is OwnAttention


@pytest.mark.parametrize("kind", ["llama", "simplicial"])
def test_a_later_change_to_a_model_that_is_not_causal_is_refused(kind):
    model = build(kind) if kind == "simplicial" else converted(kind)
    ids = tokens(1, 6)
    seen = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    with pytest.raises(ValueError, match="attention_mask: expected tokens that see none after"):
        model(ids, attention_mask=seen)
    model.config.is_causal = False
    with pytest.raises(ValueError, match="is_causal: expected True, got False"):
        model(ids)


def test_what_a_call_says_beside_its_mask_is_not_left_out():
    model, ids = converted("llama"), tokens(1, 6)
    for options, said in (
        (dict(cu_seq_lens_q=torch.tensor([0, 4, 6])), "cu_seq_lens_q: expected one document"),
        (dict(head_mask=torch.ones(1)), "head_mask: expected no mask of heads"),
        (dict(normalizer="sigmoid"), "normalizer: "),
    ):
        with pytest.raises((TypeError, ValueError), match=said) as caught:
            model(ids, use_cache=False, **options)
        assert "\n" not in str(caught.value)
    ordinary = build("llama")
    ordinary.set_attn_implementation("nsimplex_tuples")
    with pytest.raises(ValueError, match="nsimplex_tuples, which only converted layers have"):
        ordinary(ids)


def test_hooks_of_a_layer_stay():
    model, calls = build("llama"), []
    layer = model.model.layers[1].self_attn
    handle = layer.register_forward_hook(lambda *_: calls.append(1))
    convert(model, every=2)
    calls.clear()
    model(tokens())
    assert calls == [1]
    handle.remove()
    model(tokens())
    assert calls == [1]


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
        for layer in layers_of(each)[0]:
            if kind == "gpt2":
                layer.attn.attn_dropout.p = 0.9
            else:
                layer.self_attn.attention_dropout = 0.9
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
