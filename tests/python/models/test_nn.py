"""The Python modules: the same weights give what the C++ modules give."""

import pytest
import torch

import nsimplex
from nsimplex.nn import (
    ExpertChoice,
    FeedForward,
    Indexer,
    IndexSource,
    LanguageModel,
    LanguageModelOptions,
    Linear,
    Neighbours,
    Path,
    SeparableAttention,
    SimplicialAttention,
    Sinks,
    SparseAttention,
    TopK,
    TransformerBlock,
    Window,
)


@pytest.mark.parametrize(
    "name",
    [
        "tied",
        "untied",
        "linear",
        "topk",
        "path",
        "turned",
        "sink",
        "sigmoid",
        "chosen_sink",
        "orders_topk",
        "all_parts",
        "orders_window",
        "face_model",
    ],
)
def test_language_model_repeats_cpp(exported, name):
    weights, (tokens,), output, metadata = exported(name)
    model = LanguageModel(LanguageModelOptions.from_map(metadata)).eval()
    model.load_state_dict(weights)  # strict: names and shapes are the same
    torch.testing.assert_close(model(tokens), output, rtol=1e-5, atol=1e-6)


def test_defaults_of_the_language_model_are_those_of_cpp(exported):
    *_, metadata = exported("defaults")
    assert LanguageModelOptions().to_map() == metadata


def test_cross_attention_repeats_cpp(exported):
    weights, (x, a, b, lengths), output, _ = exported("cross_attention")
    layer = SimplicialAttention(24, 4, kv_heads=2, context_dims=(10, 16), norm="qkv", scale="unit")
    layer.load_state_dict(weights)
    torch.testing.assert_close(layer(x, (a, b), lengths), output, rtol=1e-5, atol=1e-6)


def test_determinant_with_rotary_positions_repeats_cpp(exported):
    weights, (x,), output, _ = exported("determinant")
    layer = SimplicialAttention(24, 4, kv_heads=2, form="determinant", rotary=True, causal=True)
    layer.load_state_dict(weights)
    torch.testing.assert_close(layer(x), output, rtol=1e-5, atol=1e-6)


LIGHT = dict(heads=2, index_dim=6, rotary=True)
SOFTMAX = LIGHT | dict(scores="softmax")
LAYERS = {
    "face": lambda _: dict(face=True, window=4, bias=True),
    "orders": lambda _: dict(
        orders=[2, 1, 1, 3], window=4, rotary=True, causal=True, normalizer="softmax_sink"
    ),
    "orders_augment": lambda _: dict(orders=[1, 2, 1, 2], augment=[1]),
    "mlp": lambda edges: dict(kv_heads=2, reduce="mlp", select=Neighbours(edges, nodes=9)),
    "mlp_symmetric": lambda edges: dict(
        kv_heads=2,
        reduce="mlp_symmetric",
        normalizer="softmax_sink",
        select=Neighbours(edges, nodes=9),
    ),
    "topk_axes": lambda _: dict(causal=True, select=TopK([2, 4], LIGHT, loss=0.5)),
    "topk_softmax": lambda _: dict(select=TopK(2, SOFTMAX, loss=0.5)),
    "path_layer": lambda _: dict(causal=True, select=Path(3, LIGHT, loss=0.5)),
    "path_softmax": lambda _: dict(causal=True, select=Path(3, SOFTMAX, loss=0.5)),
    "union": lambda _: dict(
        causal=True,
        normalizer="softmax_sink",
        select=Window(3) | Sinks(2) | TopK(2, LIGHT, loss=0.5),
    ),
    "union_graph": lambda edges: dict(select=Window(2, 1) | Neighbours(edges, nodes=9)),
    "linear_layer": lambda _: dict(select=Linear("relu")),
}


@pytest.mark.parametrize("name", LAYERS)
def test_selections_repeat_cpp(exported, name):
    weights, (x, lengths, edges), output, _ = exported(name)
    layer = SimplicialAttention(24, 4, **LAYERS[name](edges)).eval()
    layer.load_state_dict(weights)  # strict: names and shapes are the same
    real = torch.arange(9) < lengths[:, None]
    out = layer(x, key_lengths=lengths)
    torch.testing.assert_close(out[real], output[real], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masks", ["key_lengths", "key_masks", "cu_seqlens", "adjacency", "all"])
@pytest.mark.parametrize("name", LAYERS)
def test_masked_selections_repeat_cpp(exported, name, masks):
    """Outputs, losses and retained mass; some tokens have no key, and one entry has no token."""
    without = {
        "linear_layer": ("cu_seqlens", "adjacency", "all"),
        "orders_augment": ("adjacency", "all"),
    }
    if masks in without.get(name, ()):
        pytest.skip("the layer takes no such masks")
    weights, (x, _lengths, edges), _, _ = exported(name)
    given, _, output, _ = exported(f"{name}.{masks}")
    figures = {key: given.pop(key) for key in ("warm_up_loss", "loss", "mass") if key in given}
    given |= {key: given[key].bool() for key in given.keys() & {"key_masks", "adjacency"}}
    layer = SimplicialAttention(24, 4, **LAYERS[name](edges)).eval()
    layer.load_state_dict(weights)
    if figures:
        layer.warms_up = True
        layer(x, **given)
        figures["warm_up_loss"] -= layer.auxiliary_loss.detach()
        layer.warms_up, layer.measures_mass = False, True
    out = layer(x, **given)
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    if "key_lengths" in given:
        real &= torch.arange(9) < given["key_lengths"][:, None]
    torch.testing.assert_close(out[real], output[real], rtol=1e-5, atol=1e-6)
    if figures:
        figures["loss"] -= layer.auxiliary_loss.detach()
        figures["mass"] -= layer.retained_mass
        assert max(abs(difference) for difference in figures.values()) < 1e-6, figures


def test_indexer_repeats_cpp(exported):
    weights, (x,), output, _ = exported("indexer")
    indexer = Indexer(24, 3, index_dim=6, scores="softmax", rotary=True)
    indexer.load_state_dict(weights)
    assert torch.equal(indexer(x, 3, causal=True), output)


def test_expert_choice_repeats_cpp(exported):
    weights, (x, lengths), output, _ = exported("expert_choice")
    layer = SimplicialAttention(24, 4, window=[(3, 2)] * 2, form="determinant", rotary=True)
    choice = ExpertChoice(layer, tokens=0.5)
    choice.load_state_dict(weights)
    torch.testing.assert_close(choice(x, lengths), output, rtol=1e-5, atol=1e-6)


def test_expert_choice_around_and_in_blocks_repeats_cpp(exported):
    weights, (x, lengths), output, _ = exported("expert_block")
    make = lambda: SimplicialAttention(24, 4)
    block = TransformerBlock(make(), FeedForward(24))
    choice = ExpertChoice(block, tokens=3, sigmoid=True)
    choice.load_state_dict(weights)
    torch.testing.assert_close(choice(x, lengths), output, rtol=1e-5, atol=1e-6)

    weights, (x, lengths), output, _ = exported("choosing_block")
    block = TransformerBlock(ExpertChoice(make(), tokens=0.5), FeedForward(24))
    block.load_state_dict(weights)
    torch.testing.assert_close(block(x, key_lengths=lengths), output, rtol=1e-5, atol=1e-6)


def test_a_language_model_that_chooses_tokens_repeats_cpp(exported):
    weights, (tokens,), output, metadata = exported("choosing_model")
    model = LanguageModel(LanguageModelOptions.from_map(metadata)).eval()
    block = model.blocks[1]
    block.attention = ExpertChoice(block.attention, tokens=5, allow_leak=True)
    model.load_state_dict(weights)
    torch.testing.assert_close(model(tokens), output, rtol=1e-4, atol=1e-5)


def test_gradients_reach_every_parameter():
    torch.manual_seed(1)
    model = LanguageModel(LanguageModelOptions(dim=32, every=2, window=(3, 6)))
    tokens = torch.randint(256, (2, 12))
    model.loss(tokens, tokens.roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda own: own + 300, "expected -100 or 0 to 255, got 300 to"),
        (
            lambda own: own[:, 1:],
            "expected int64 of shape [2, 12], got torch.int64 of shape [2, 11]",
        ),
        (lambda own: own.float(), "expected int64 of shape [2, 12], got torch.float32 of"),
    ],
)
def test_targets_that_do_not_fit_are_named(change, says):
    model, tokens = LanguageModel(LanguageModelOptions(dim=32)), torch.zeros(2, 12).long()
    with pytest.raises(ValueError) as caught:
        model.loss(tokens, change(tokens))
    assert str(caught.value).startswith(f"[LanguageModel] targets: {says}")


def test_same_generator_same_weights():
    def make(seed):
        return LanguageModel(LanguageModelOptions(dim=32), torch.Generator().manual_seed(seed))

    first, again, other = (make(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


def test_layer_is_the_composed_call():
    torch.manual_seed(1)
    layer = SimplicialAttention(24, 4, order=2, causal=True, window=(3, 5)).double()
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    q, k1, k2, v1, v2 = (
        part.view(2, 7, 4, 6).transpose(1, 2) for part in layer.qkv(x).split(24, -1)
    )
    heads = nsimplex.attention(q, [k1, k2], [v1, v2], causal=True, window=(3, 5))
    torch.testing.assert_close(layer(x), layer.output(heads.transpose(1, 2).reshape(2, 7, 24)))


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(heads=5), "heads: expected a divisor of dim 24, got 5"),
        (dict(kv_heads=3), "kv_heads: expected a divisor of heads 4, got 3"),
        (dict(order=0), "order: expected 1 to 8, got 0"),
        (dict(norm="kq"), "norm: expected none, qk or qkv, got 'kq'"),
        (dict(context_dims=(8,)), "context_dims: expected 0 or 2 entries, got 1"),
        (dict(rotary=True), "set allow_non_invariant"),
        (dict(rotary=True, order=1, head_dim=3), "rotary: expected an even head_dim, got 3"),
        (dict(form="dot"), "form: expected product or determinant, got 'dot'"),
        (dict(form="determinant", head_dim=8), "expected a multiple of order + 1 = 3"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError) as error:
        SimplicialAttention(24, **{"heads": 4, **options})
    assert words in str(error.value)


def test_separable_layer_is_the_composed_call():
    torch.manual_seed(1)
    layer = SeparableAttention(
        24, 4, order=2, causal=True, window=(3, -1), features="relu"
    ).double()
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    q, k1, k2, v1, v2 = (
        part.view(2, 7, 4, 6).transpose(1, 2) for part in layer.qkv(x).split(24, -1)
    )
    heads = nsimplex.separable_attention(
        q, [k1, k2], [v1, v2], features="relu", causal=True, window=(3, -1)
    )
    torch.testing.assert_close(layer(x), layer.output(heads.transpose(1, 2).reshape(2, 7, 24)))
    for options, words in (
        (dict(form="determinant"), "form: expected product"),
        (dict(reduce="sum"), "reduce: expected product"),
        (dict(context_dims=(3, 4)), "context_dims: expected none"),
    ):
        with pytest.raises(ValueError, match=words):
            SeparableAttention(24, 4, **options)


@pytest.mark.parametrize("order", [1, 2])
def test_a_unit_layer_divides_by_its_projections(order):
    torch.manual_seed(1)
    plain = SimplicialAttention(24, 4, order=order, scale="unit")
    unit = SimplicialAttention(24, 4, order=order, scale="unit", unit_layer=True)
    unit.load_state_dict(plain.state_dict())
    x = torch.randn(2, 7, 24)
    torch.testing.assert_close(unit(x), plain(x) / (2 * order + 1))


def test_a_layer_leaves_its_pairs_for_an_indexer():
    torch.manual_seed(1)
    layer = SimplicialAttention(24, 4, order=1, causal=True, rotary=True)
    x = torch.randn(2, 7, 24)
    layer(x)
    assert layer.pairs is None
    layer.keep_pairs = True
    layer(x)
    query, key = layer.pairs
    assert not query.requires_grad and query.shape == key.shape == (2, 4, 7, 6)
    chosen = Indexer(24, 4, source="reuse")(x, 3, causal=True, source=IndexSource(query, key))
    scores = (
        (query @ key.transpose(-1, -2))
        .relu()
        .sum(1)
        .masked_fill(~torch.ones(7, 7).tril().bool(), -1)
    )
    best = scores.topk(3).values[:, 3:]  # equal scores may be chosen in another order
    torch.testing.assert_close(scores[:, 3:].gather(-1, chosen[:, 3:]), best)


def test_all_keys_chosen_are_dense_attention():
    torch.manual_seed(1)
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    dense = SimplicialAttention(24, 4, order=2, causal=True).double()
    sparse = SparseAttention(24, 4, order=2, causal=True, keys=7).double()
    sparse.load_state_dict(dense.state_dict(), strict=False)
    torch.testing.assert_close(sparse(x), dense(x))


@pytest.mark.parametrize("sparse", ["topk", "path"])
@pytest.mark.parametrize("indexer", ["reuse", "light"])
@pytest.mark.parametrize("scores", ["relu", "softmax"])
def test_indexers_learn_from_their_loss_alone(sparse, indexer, scores):
    torch.manual_seed(1)
    options = LanguageModelOptions(
        dim=32, every=2, sparse=sparse, topk=4, indexer=indexer, indexer_scores=scores
    )
    tokens = torch.randint(256, (2, 12))
    gradients = {}
    for weight in (0.0, 1.0):
        options.indexer_loss = weight
        model = LanguageModel(options, torch.Generator().manual_seed(3))
        model.loss(tokens, tokens.roll(-1, 1)).backward()
        gradients[weight] = {name: p.grad for name, p in model.named_parameters()}
    of_indexer = [name for name in gradients[1.0] if "indexer" in name]
    assert of_indexer
    for name in of_indexer:
        assert gradients[0.0].get(name) is None and gradients[1.0][name].abs().max() > 0, name
    if indexer == "light":  # the same weights otherwise: the loss reaches nothing else
        for name in gradients[0.0]:
            if name not in of_indexer:
                assert torch.equal(gradients[0.0][name], gradients[1.0][name]), name


@pytest.mark.parametrize("sparse", ["topk", "path"])
def test_a_layer_that_warms_up_is_dense(sparse):
    torch.manual_seed(1)
    options = LanguageModelOptions(
        dim=32, every=2, sparse=sparse, topk=2, indexer="light", indexer_loss=1.0
    )
    model = LanguageModel(options).double()
    dense = LanguageModel(LanguageModelOptions(dim=32, every=2, window=())).double()
    dense.load_state_dict({n: p for n, p in model.state_dict().items() if "indexer" not in n})
    tokens = torch.randint(256, (2, 12))
    assert not torch.allclose(model(tokens), dense(tokens))
    model.set_warm_up(True)
    torch.testing.assert_close(model(tokens), dense(tokens))
    model.loss(tokens, tokens).backward()
    assert model.auxiliary_loss > 0
    assert model.blocks[1].attention.indexer.query.weight.grad.abs().max() > 0
    model.set_warm_up(False)
    assert not torch.allclose(model(tokens), dense(tokens))


def test_retained_mass_is_the_dense_weight_of_the_chosen():
    torch.manual_seed(1)
    options = LanguageModelOptions(dim=32, every=2, layers=2, sparse="topk", topk=3)
    model = LanguageModel(options).double()
    tokens = torch.randint(256, (1, 9))
    layer = model.blocks[1].attention
    x = model.blocks[0](model.embedding(tokens))
    q, keys, _values = layer._heads_of(model.blocks[1].attention_norm(x))
    weights = nsimplex.attention_weights(q, keys, causal=True)
    chosen = layer._choose(layer._index_of(model.blocks[1].attention_norm(x), 0))[0]
    kept = torch.zeros(9, 9, dtype=torch.bool)
    for i, row in enumerate(chosen):
        kept[i, row[row >= 0]] = True
    mass = (weights[0] * (kept[:, :, None] & kept[:, None, :])).sum((-1, -2)).mean()
    (measured,) = model.retained_mass(tokens)
    assert measured == pytest.approx(mass.item(), abs=1e-9) and 0.1 < measured < 1
    assert LanguageModel(LanguageModelOptions(dim=32)).retained_mass(tokens) == []


def test_a_first_layer_has_nothing_to_reuse():
    with pytest.raises(ValueError, match="the first layer has none"):
        LanguageModel(LanguageModelOptions(dim=32, every=1, sparse="topk"))
