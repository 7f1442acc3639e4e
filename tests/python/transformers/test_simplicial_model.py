"""SimplicialForCausalLM: a Transformers model with simplicial layers."""

import json

import pytest
import torch
from tiny_models import (
    CACHE,
    VOCABULARY,
    build,
    generate,
    logits_in_steps,
    padded,
    positions_of,
    shape,
    tokens,
    transformers,
)
from torch.nn import functional as F

import nsimplex
from nsimplex.nn import LanguageModelOptions
from nsimplex.transformers import (
    SimplicialConfig,
    SimplicialForCausalLM,
    SimplicialModel,
    convert,
)
from nsimplex.transformers.simplicial_config import OF_LAYER

SHAPES = {
    "product": {},
    "order 3, three windows": dict(order=3, window=(3, 4, 5), norm="qkv", scale="unit"),
    "all tokens": dict(window=None, norm="none"),
    "determinant": dict(form="determinant", rotary=True, hidden_size=48),
    "sink": dict(normalizer="softmax_sink"),
    "relu": dict(normalizer="relu"),
    "sigmoid": dict(normalizer="sigmoid"),
    "order 1": dict(order=1, window=6, rotary=True),
    "eager": dict(attn_implementation="eager"),
    "nsimplex": dict(attn_implementation="nsimplex"),
    "no simplicial layer": dict(every=0),
    "orders": dict(orders=[1, 1, 2, 2], normalizer="softmax_sink"),
    "orders 1 and 3": dict(orders=[1, 3, 3, 3], window=4, num_key_value_heads=4, reduce="sum"),
    "orders that rotate": dict(
        orders=[1, 1, 2, 2], form="determinant", rotary=True, hidden_size=48, unit_layer=True
    ),
    "window and sinks": dict(sparse="window+sinks", window=4, sinks=2, normalizer="softmax_sink"),
    "sinks for orders": dict(orders=[1, 1, 2, 2], sparse="window+sinks", window=3, reduce="mean"),
    "face": dict(face=True, reduce="sum"),
    "distinct": dict(distinct="with_query", softcap=3.0),
}
SOME = ["product", "determinant", "sink", "nsimplex", "orders", "window and sinks", "face"]


def logits(model, ids, mask=None):
    positions = None if mask is None else positions_of(mask)
    with torch.no_grad():
        return model(ids, attention_mask=mask, position_ids=positions).logits


def compiled(model):
    """A model that compiles whole, and the graphs of its calls so far."""
    torch._dynamo.reset()
    graphs = []

    def counting(graph, _):
        graphs.append(graph)
        return graph.forward

    return torch.compile(model, fullgraph=True, backend=counting), graphs


def close(own, expected):
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=2e-5)


def test_a_simplicial_layer_is_the_operator_between_its_projections():
    model = build("simplicial", norm="qk")
    layer = model.model.layers[1].self_attn
    x = torch.randn(2, 7, 32, generator=torch.Generator().manual_seed(3))
    q = layer.q_proj(x).view(2, 7, 4, 8).transpose(1, 2)
    k = layer.k_proj(x).view(2, 7, 2, 2, 8).permute(2, 0, 3, 1, 4)
    v = layer.v_proj(x).view(2, 7, 2, 2, 8).permute(2, 0, 3, 1, 4)
    q, k = (each / (each.square().mean(-1, keepdim=True) + 1e-6).sqrt() for each in (q, k))
    out = nsimplex.reference(q, [*k], [*v], causal=True, window=[4, 9])
    close(layer(x)[0], layer.o_proj(out.transpose(1, 2).flatten(2)))
    assert type(model.model.layers[0].self_attn).__name__ == "LlamaAttention"


@pytest.mark.parametrize("name", SHAPES)
def test_caches_give_the_logits_of_the_whole_text(name):
    model, ids = build("simplicial", **SHAPES[name]), tokens()
    whole = logits(model, ids)
    for cache in (
        transformers.DynamicCache(config=model.config),
        transformers.StaticCache(config=model.config, max_cache_len=40),
    ):
        with torch.no_grad():
            close(logits_in_steps(model, ids, cache), whole)


@pytest.mark.parametrize("name", SHAPES)
def test_no_token_sees_a_later_one(name):
    model, ids = build("simplicial", **SHAPES[name]), tokens()
    other = ids.clone()
    other[:, 10:] = other[:, 10:].flip(1) // 2 + 1
    close(logits(model, other)[:, :10], logits(model, ids)[:, :10])


@pytest.mark.parametrize("name", SHAPES)
def test_a_padded_row_is_the_row_alone(name):
    model = build("simplicial", **SHAPES[name])
    ids, mask, rows = padded()
    own = logits(model, ids, mask)
    for i, row in enumerate(rows):
        close(own[i, -row.size(1) :], logits(model, row)[0])
    after = torch.stack([each.roll(int(each.sum()), 0) for each in mask])  # the same, behind
    behind = torch.stack([row.roll(int(each.sum()), 0) for row, each in zip(ids, mask)])
    own = logits(model, behind, after)
    for i, row in enumerate(rows):
        close(own[i, : row.size(1)], logits(model, row)[0])


@pytest.mark.parametrize("name", ["product", "nsimplex"])
def test_a_padded_text_and_a_chunk_of_a_static_cache_compile_whole(name):
    model = build("simplicial", **SHAPES[name])
    ids, mask, _ = padded()
    expected = logits(model, ids, mask)
    whole, graphs = compiled(model)
    close(logits(whole, ids, mask)[mask.bool()], expected[mask.bool()])
    assert len(graphs) == 1
    cache = transformers.StaticCache(config=model.config, max_cache_len=20)
    given = dict(attention_mask=mask, use_cache=True, **{CACHE: cache})
    places = positions_of(mask)
    with torch.no_grad():
        model(ids[:, :7], **{**given, "attention_mask": mask[:, :7]}, position_ids=places[:, :7])
        chunk, graphs = compiled(model)
        own = chunk(ids[:, 7:], **given, position_ids=places[:, 7:]).logits
    close(own, expected[:, 7:])
    assert len(graphs) == 1


@pytest.mark.parametrize("kind", ["simplicial", "mistral"])
def test_packed_documents_compile_whole(kind):
    model = build(kind, num_hidden_layers=1, **(dict(every=1) if kind == "simplicial" else {}))
    if kind == "mistral":
        model = build(kind, num_hidden_layers=1, sliding_window=5)
        convert(model, every=1, window=(4, 9))
    ids, lengths = tokens(2, 19), [[7, 1, 11], [11, 8]]
    places = torch.stack([torch.cat([torch.arange(n) for n in row]) for row in lengths])
    whole, graphs = compiled(model)
    with torch.no_grad():
        close(
            whole(ids, position_ids=places, use_cache=False).logits,
            model(ids, position_ids=places, use_cache=False).logits,
        )
    assert len(graphs) == 1


def test_compiled_code_refuses_masks_that_it_does_not_take():
    model, ids = build("simplicial", num_hidden_layers=1, every=1), tokens(1, 9)
    whole, _ = compiled(model)
    hole, bias = torch.ones(1, 9, dtype=torch.long), torch.zeros(1, 1, 9, 9)
    hole[0, 4] = 0
    bias.masked_fill_(torch.ones(9, 9).triu(1).bool(), -torch.inf)
    bias[..., 5, 1] = 0.5
    for given, said in (
        (dict(attention_mask=hole), "a causal mask in compiled code"),
        (dict(attention_mask=bias), "got a bias of logits"),
        (dict(attention_mask=torch.ones(1, 1, 9, 9, dtype=torch.bool)), "a causal mask"),
    ):
        with pytest.raises(RuntimeError, match=rf"\[nsimplex\] attention_mask: .*{said}") as caught:
            whole(ids, use_cache=False, **given)
        assert "\n" not in str(caught.value)
    cache = transformers.StaticCache(config=model.config, max_cache_len=12)
    with torch.no_grad(), pytest.raises(RuntimeError, match="padding before or after the tokens"):
        model(ids[:, :3], use_cache=True, **{CACHE: cache})
        whole(ids[:, 3:], attention_mask=hole, use_cache=True, **{CACHE: cache})


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(ids, attention_mask=mask, use_cache=False).logits


@pytest.mark.parametrize("kind", ["simplicial", "llama"])
def test_a_model_is_exported_for_texts_of_every_length(kind):
    model = build(kind) if kind == "simplicial" else convert(build(kind), every=2, window=(4, 9))
    ids, mask, _ = padded()
    length = {1: torch.export.Dim("length", min=3, max=64)}
    with torch.no_grad():
        program = torch.export.export(
            Logits(model), (ids, mask), dynamic_shapes=dict(ids=length, mask=length)
        )
        ids, mask, _ = padded((17, 2, 9))
        own = program.module()(ids, mask)
        close(own[mask.bool()], Logits(model)(ids, mask)[mask.bool()])


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_generated_rows_of_a_padded_batch_are_those_alone(name, static):
    model = build("simplicial", **SHAPES[name])
    ids, mask, rows = padded()
    options = dict(cache_implementation="static") if static else {}
    together = generate(model, ids, mask, **options)
    for i, row in enumerate(rows):
        expected = row
        for _ in range(8):  # without any cache
            expected = torch.cat([expected, logits(model, expected)[:, -1:].argmax(-1)], 1)
        assert torch.equal(together[i, -expected.size(1) :], expected[0])


@pytest.mark.parametrize("given", ["a mask", "no mask"])
@pytest.mark.parametrize("name", SOME)
def test_a_step_with_a_static_cache_compiles_whole(name, given):
    """One graph for all lengths, with and without padding."""
    model = build("simplicial", **SHAPES[name])
    ids, mask, _ = padded()
    if given == "no mask":
        ids, mask = tokens(3, 12), torch.ones(3, 12, dtype=torch.int64)
    new = tokens(3, 4, seed=5)
    whole = torch.cat([mask, torch.ones_like(new)], 1)
    places = positions_of(whole)
    expected = logits(model, torch.cat([ids, new], 1), whole)[:, -4:]
    cache = transformers.StaticCache(config=model.config, max_cache_len=20)
    step, graphs = compiled(model)
    with torch.no_grad():
        model(
            ids, attention_mask=mask, position_ids=places[:, :12], use_cache=True, **{CACHE: cache}
        )
        for t in range(4):
            now = None if given == "no mask" else F.pad(whole[:, : 13 + t], (0, 7 - t))
            own = step(
                new[:, t : t + 1],
                attention_mask=now,
                position_ids=places[:, 12 + t : 13 + t],
                use_cache=True,
                **{CACHE: cache},
            ).logits
            close(own[:, 0], expected[:, t])
    assert len(graphs) == 1


@pytest.mark.parametrize("name", SOME)
def test_beams_are_the_same_with_and_without_caches(name):
    model = build("simplicial", **SHAPES[name])
    ids, mask, _ = padded()
    beams = [
        generate(model, ids, mask, num_beams=3, **options)
        for options in ({}, dict(cache_implementation="static"), dict(use_cache=False))
    ]
    assert torch.equal(beams[0], beams[1]) and torch.equal(beams[0], beams[2])


def test_prompt_lookup_gives_the_same_text():
    model, ids = build("simplicial"), tokens(1, 12).repeat(1, 2)
    plain, assisted = generate(model, ids), generate(model, ids, prompt_lookup_num_tokens=3)
    assert torch.equal(plain, assisted)


@pytest.mark.parametrize("implementation", ["sdpa", "nsimplex", "eager"])
def test_packed_documents_are_those_alone(implementation):
    model = build("simplicial", attn_implementation=implementation)
    documents = [tokens(1, length, length) for length in (7, 1, 11)]
    packed = torch.cat(documents, 1)
    positions = torch.cat([torch.arange(each.size(1)) for each in documents])
    twice = torch.cat([packed, packed.flip(1)])  # another row, with boundaries of its own
    lengths = [each.size(1) for each in documents]
    places = torch.stack([positions, torch.cat([torch.arange(n) for n in lengths[::-1]])])
    with torch.no_grad():
        own = model(twice, position_ids=places, use_cache=False).logits
    close(own[0], torch.cat([logits(model, each)[0] for each in documents]))
    close(own[1], torch.cat([logits(model, each.flip(1))[0] for each in documents[::-1]]))


def test_any_other_mask_admits_the_pairs_it_names():
    model, ids = build("simplicial"), tokens(1, 9)
    causal = torch.ones(9, 9, dtype=torch.bool).tril()
    hidden = causal.clone()
    hidden[5:, 2] = False  # later tokens do not see this one
    with torch.no_grad():
        own = model(ids, attention_mask=hidden[None, None]).logits
        plain = model(ids, attention_mask=causal[None, None]).logits
    close(plain, logits(model, ids))
    close(own[:, :5], plain[:, :5])
    assert (own[:, 5:] - plain[:, 5:]).abs().max() > 0.01
    changed = ids.clone()
    changed[0, 2] = 59
    layer = model.model.layers[1].self_attn
    x = model.model.embed_tokens(torch.cat([ids, changed]))
    out, _ = layer(x, attention_mask=hidden[None, None].expand(2, 1, 9, 9))
    close(out[0, 5:], out[1, 5:])
    assert (out[0, 2:5] - out[1, 2:5]).abs().max() > 1e-3


def test_masks_that_it_cannot_keep_are_refused():
    model, ids = build("simplicial"), tokens(1, 6)
    bias = torch.zeros(1, 1, 6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    bias[..., 3, 1] = 0.5
    for mask, said in (
        (torch.tensor([[1, 1, 0, 0, 1, 1]]), "padding between"),
        (bias, "a bias of logits"),
        (torch.ones(1, 4, 6, 6, dtype=torch.bool).tril(), "one mask for all heads"),
    ):
        with pytest.raises(ValueError, match=said) as caught:
            model(ids, attention_mask=mask)
        assert "\n" not in str(caught.value)


def test_it_is_saved_and_loaded_by_the_auto_classes(tmp_path):
    for name in SHAPES:
        model = build("simplicial", **SHAPES[name])
        model.save_pretrained(tmp_path / name)
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name)
        assert type(again) is SimplicialForCausalLM
        for field in OF_LAYER:
            own, given = getattr(again.config, field), getattr(model.config, field)
            assert own == (list(given) if isinstance(given, tuple) else given), field
        torch.testing.assert_close(again.state_dict(), model.state_dict(), rtol=0, atol=0)
        close(logits(again, tokens()), logits(model, tokens()))
    config = transformers.AutoConfig.from_pretrained(tmp_path / "product")
    assert type(config) is SimplicialConfig
    assert type(transformers.AutoModel.from_config(config)) is SimplicialModel


def test_defaults_are_those_of_the_language_model():
    config, options = SimplicialConfig(), LanguageModelOptions()
    for name in OF_LAYER:
        assert getattr(config, name) == getattr(options, name), name


def test_a_config_of_a_file_without_norm_has_the_former_default(tmp_path):
    written = SimplicialConfig(norm="qkv").to_dict()
    assert SimplicialConfig.from_dict(written).norm == "qkv"
    del written["norm"]
    assert SimplicialConfig.from_dict(written).norm == "qk"
    (tmp_path / "config.json").write_text(json.dumps(written))
    assert transformers.AutoConfig.from_pretrained(tmp_path).norm == "qk"


def test_checkpointing_changes_no_gradient():
    model, ids = build("simplicial"), tokens()
    gradients = []
    for checkpoint in (False, True):
        model.train()
        model.zero_grad()
        if checkpoint:
            model.gradient_checkpointing_enable()
        model(ids, labels=ids, use_cache=False).loss.backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
    assert all(grad.abs().sum() > 0 for grad in gradients[0].values())
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_bfloat16_is_near_float32():
    model, ids = build("simplicial", gain=2.0), tokens()
    expected = logits(model, ids)
    own = logits(model.to(torch.bfloat16), ids).float()
    assert (own - expected).abs().max() < 0.1 * expected.abs().max()


@pytest.mark.parametrize(
    "options, said",
    [
        (dict(every=-1), "every"),
        (dict(every=5, num_hidden_layers=4), "every: expected 0 to 4, got 5"),
        (dict(is_causal=False), "is_causal: expected True, got False"),
        (dict(sliding_window=64), "sliding_window: expected none"),
        (dict(layer_types=["sliding_attention"] * 32), "layer_types: expected full_attention"),
        (dict(attn_logit_softcapping=30.0), "attn_logit_softcapping: expected none"),
        (dict(query_pre_attn_scalar=64), "query_pre_attn_scalar: expected none"),
        (dict(causal=False), "causal: expected True, which no layer"),
        (dict(dropout=0.1), "dropout: expected none"),
        (dict(orders=[1, 2, 1]), "orders: expected one order for each of 4 heads, got 3"),
        (dict(orders=[1, 2, 2, 9]), "orders: expected 1 to 8, got 9"),
        (dict(orders=[1, 1, 3, 3]), "window: expected a positive integer, -1 or 3 of them"),
        (dict(orders=[1, 1, 2, 2], order=3), "order: expected none beside orders, got 3"),
        (dict(distinct="all"), "distinct: expected none, axes or with_query, got 'all'"),
        (dict(reduce="mlp"), "reduce: expected product, sum or mean, got 'mlp'"),
        (dict(face=True, normalizer="relu"), "normalizer: expected softmax beside face"),
        (dict(face=1), "face: expected True or False, got 1"),
        (dict(softcap=-1.0), "softcap: expected a positive number, got -1.0"),
        (dict(sparse="topk"), "sparse: expected window or window+sinks, got 'topk'"),
        (dict(sinks=3), "sinks: expected 1 with sparse 'window', got 3"),
        (dict(sparse="window+sinks"), "window: expected one positive integer, for the keys of"),
        (dict(sparse="window+sinks", window=4, sinks=0), "sinks: expected 1 to 2147483648, got 0"),
        (dict(sparse="window+sinks", window=4, face=True), "face: expected False with sparse"),
        (
            dict(sparse="window+sinks", window=4, attention_dropout=0.1),
            "attention_dropout: expected 0.0 with sparse 'window+sinks', got 0.1",
        ),
        (dict(use_qk_norm=True), "use_qk_norm: expected none"),
        (dict(embedding_multiplier=12.0), "embedding_multiplier: expected 1, which"),
        (dict(output_attentions=True), "output_attentions: expected False"),
        (dict(attention_dropout=1.5), "attention_dropout: expected a share in [0, 1), got 1.5"),
        (dict(attention_dropout=-0.1), "attention_dropout: expected a share in [0, 1), got -0.1"),
        (dict(rotary="false"), "rotary: expected True or False, got 'false'"),
        (dict(scale=True), "scale: expected standard, unit, a finite number or two, got True"),
        (dict(order=9), "order"),
        (dict(window=(3, 4, 5)), "window"),
        (dict(window=0), "window"),
        (dict(form="cross"), "form"),
        (dict(normalizer="max"), "normalizer"),
        (dict(norm="k"), "norm"),
        (dict(scale="big"), "scale"),
        (dict(form="determinant"), "head_dim"),
        (dict(hidden_size=36), "head_dim: expected an even number"),
        (dict(rotary=True), "rotary"),
        (dict(num_key_value_heads=3), "num_key_value_heads: expected a divisor"),
    ],
)
def test_a_config_that_does_not_fit_is_refused_in_one_line(options, said):
    with pytest.raises(ValueError) as caught:
        SimplicialConfig(**{**dict(hidden_size=32, num_attention_heads=4), **options})
    assert f"[SimplicialConfig] {said}" in str(caught.value) or f"] {said}" in str(caught.value)


def test_fields_of_others_may_say_what_is_so():
    config = shape("simplicial", causal=True, dropout=0.0, embedding_multiplier=1.0, select=None)
    assert SimplicialForCausalLM(config)(tokens(1, 5)).logits.shape == (1, 5, VOCABULARY)


@pytest.mark.parametrize(
    "change",
    [
        dict(window=(1, 1)),
        dict(orders=[1, 1, 2, 2]),
        dict(face=True),
        dict(norm="qkv"),
        dict(every=1),
        dict(scale=(0.1, 1.0)),
    ],
    ids=str,
)
def test_fields_that_layers_have_read_do_not_change(change):
    model, ids = build("simplicial"), tokens(1, 5)
    expected, ((name, value),) = model(ids).logits, change.items()
    model.config.window = list(model.config.window)
    assert torch.equal(model(ids).logits, expected)
    setattr(model.config, name, value)
    with pytest.raises(ValueError, match=rf"^\[nsimplex\] config.{name}: expected .* got "):
        model(ids)


@pytest.mark.parametrize("how", ["call", "config", "generate"])
@pytest.mark.parametrize("kind", ["simplicial", "llama", "llama by nsimplex"])
def test_weights_that_layers_do_not_return_are_not_left_out(kind, how):
    model, ids = build(kind.split()[0], attn_implementation="eager"), tokens(1, 5)
    if kind == "llama":
        convert(model, every=2)
    if how == "config":
        model.config.output_attentions = True
    if kind == "llama by nsimplex":
        model.set_attn_implementation("nsimplex")
    calls = {
        "call": lambda: model(ids, output_attentions=True),
        "config": lambda: model(ids),
        "generate": lambda: model.generate(
            ids, max_new_tokens=2, output_attentions=True, return_dict_in_generate=True
        ),
    }
    with pytest.raises(ValueError, match="output_attentions: expected False"):
        calls[how]()


def test_fields_that_were_set_later_are_checked_when_a_model_is_built():
    config = SimplicialConfig(hidden_size=32, num_hidden_layers=4, num_attention_heads=4)
    config.num_hidden_layers = 3
    with pytest.raises(ValueError, match="every: expected 0 to 3, got 4"):
        SimplicialForCausalLM(config)


ROTARY = dict(rope_theta=100.0, factor=4.0, original_max_position_embeddings=16)
SCALED = {
    "default": {},
    "linear": {},
    "yarn": dict(beta_fast=4.0),
    "llama3": dict(low_freq_factor=1.0, high_freq_factor=4.0),
    "proportional": dict(partial_rotary_factor=0.5),
}


def with_rotary(name, **options):
    rope = dict(rope_type=name, **(ROTARY if name != "default" else {"rope_theta": 100.0}))
    return build(
        "simplicial", gain=3.0, rotary=True, rope_parameters={**rope, **SCALED[name]}, **options
    )


@pytest.mark.parametrize("name", SCALED)
def test_layers_of_order_1_rotate_as_ordinary_ones(name):
    """The planes are neighbours here and half a head apart in a Llama."""
    model = with_rotary(name, order=1, window=None, norm="none")
    ids = tokens()
    expected, planes = logits(model, ids), torch.arange(8).view(4, 2).mT.flatten()
    plain = with_rotary(name, every=0, order=1, window=None)
    weights = {**model.state_dict()}
    for layer in (1, 3):
        for part in ("q", "k"):
            weight = f"model.layers.{layer}.self_attn.{part}_proj.weight"
            weights[weight] = weights[weight].unflatten(0, (-1, 8))[:, planes].flatten(0, 1)
    plain.load_state_dict(weights)
    close(logits(plain, ids), expected)


@pytest.mark.parametrize("name", SCALED)
def test_every_kind_of_rotation_is_that_of_its_frequencies(name, tmp_path):
    model = with_rotary(name, form="determinant", hidden_size=48)
    ids = tokens()
    own = logits(model, ids)
    if name != "default":
        assert (
            own - logits(with_rotary("default", form="determinant", hidden_size=48), ids)
        ).abs().max() > 0.01
    moved = torch.arange(ids.size(1))[None].expand(2, -1) + 7
    with torch.no_grad():
        close(model(ids, position_ids=moved, use_cache=False).logits, own)
        cache = transformers.DynamicCache(config=model.config)
        close(logits_in_steps(model, ids, cache), own)
    model.save_pretrained(tmp_path)
    close(logits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path), ids), own)


def test_rotations_that_layers_would_not_share_are_refused():
    shape = dict(hidden_size=32, num_hidden_layers=4, num_attention_heads=4, order=1, window=4)
    dynamic = dict(rope_type="dynamic", factor=2.0, rope_theta=100.0)
    long = dict(ROTARY, rope_type="longrope", short_factor=[1.0] * 4, long_factor=[2.0] * 4)
    part = dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5)
    layers = dict(full_attention=dict(rope_type="default", rope_theta=100.0))
    for rope, rotary, said in (
        (dynamic, True, "rope_parameters['rope_type']: expected one of default, linear"),
        (long, True, "rope_parameters['rope_type']: expected one of default, linear"),
        (part, False, "rope_parameters['partial_rotary_factor']: expected 1"),
        (
            dict(rope_type="linear", rope_theta=100.0),
            False,
            "rope_parameters['factor']: expected one for rope_type linear, got none",
        ),
        (
            dict(rope_type="spiral", rope_theta=100.0),
            False,
            "rope_parameters['rope_type']: expected one of default, ",
        ),
        (layers, False, "rope_parameters: expected one set for all layers, got some for full"),
    ):
        with pytest.raises(ValueError) as caught:
            SimplicialConfig(rope_parameters=rope, rotary=rotary, **shape)
        assert said in str(caught.value) and "\n" not in str(caught.value)
    SimplicialConfig(rope_parameters=dynamic, **shape)  # for the ordinary layers alone


def test_a_cache_can_be_cropped():
    model, ids = build("simplicial"), tokens()
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad():
        model(ids, use_cache=True, **{CACHE: cache})
        cache.crop(-5)
        again = model(ids[:, -5:], use_cache=True, **{CACHE: cache}).logits
    close(again, logits(model, ids)[:, -5:])
