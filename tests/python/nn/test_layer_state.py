"""State that is set on, or read from, what holds attention layers."""

import copy
import io
import pickle

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import nsimplex
from nsimplex import nn
from nsimplex.nn import ExpertChoice, SimplicialAttention, TopK, TransformerBlock

LOSING = TopK(2, dict(heads=2, index_dim=4), loss=0.1)


def layer(select=LOSING, **options):
    return SimplicialAttention(16, 4, causal=True, select=select, **options)


def block(attention):
    return TransformerBlock(attention, nn.FeedForward(16))


def chosen(inner):
    return ExpertChoice(inner, tokens=5, allow_leak=True)


def language_model(select=LOSING):
    options = dict(sparse="window", window=[4]) if select is None else dict(sparse="topk", topk=2)
    options |= dict(dim=16, heads=4, layers=2, every=1, context=8, vocabulary=16)
    return nn.LanguageModel(nn.LanguageModelOptions(indexer="light", indexer_loss=0.1, **options))


WRAPPERS = {
    "layer": layer,
    "orders": lambda select=LOSING: layer(select, orders=[1, 2, 2, 1]),
    "block": lambda select=LOSING: block(layer(select)),
    "block of orders": lambda select=LOSING: block(layer(select, orders=[1, 1, 2, 2])),
    "ExpertChoice": lambda select=LOSING: chosen(layer(select)),
    "ExpertChoice of a block": lambda select=LOSING: chosen(block(layer(select))),
    "block of ExpertChoice": lambda select=LOSING: block(chosen(layer(select))),
    "LanguageModel": language_model,
}
MODELS = {
    **WRAPPERS,
    "Sequential": lambda: torch.nn.Sequential(block(layer()), chosen(layer(orders=[1, 1, 2, 2]))),
    "compiled": lambda: torch.compile(block(layer()), backend="eager", fullgraph=True),
    "DataParallel": lambda: torch.nn.DataParallel(block(layer())),
    "copy": lambda: copy.deepcopy(block(layer(orders=[1, 1, 2, 2]))),
    "pickle": lambda: pickle.loads(pickle.dumps(language_model())),
}


@pytest.fixture(autouse=True)
def one_seed():
    torch.manual_seed(0)


def tokens(model):
    if isinstance(model, nn.LanguageModel):
        return torch.randint(16, (2, 7))
    return torch.randn(2, 7, 16)


def innermost(model):
    found = [each for each in model.modules() if isinstance(each, SimplicialAttention)]
    return [each for each in found if each.orders is None]


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_a_model_is_the_sum_of_its_layers(name):
    model = MODELS[name]()
    x = tokens(model)
    assert nn.auxiliary_loss(model) is None
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "block"):
        model(x)
    loss, parts = nn.auxiliary_loss(model), [each.auxiliary_loss for each in innermost(model)]
    assert len(parts) == {"orders": 2, "LanguageModel": 2}.get(name, len(parts))
    torch.testing.assert_close(loss, sum(parts))
    if name in WRAPPERS:
        torch.testing.assert_close(model.auxiliary_loss, loss)
    loss.backward()
    for each in innermost(model):
        assert all(p.grad is not None and p.grad.any() for p in each.indexer.parameters())
    with torch.no_grad():
        model(x)
    assert nn.auxiliary_loss(model) is None


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize(
    "state, value, wrong",
    [
        ("warms_up", True, 1),
        ("measures_mass", True, "yes"),
        ("keep_pairs", True, None),
        ("loss_weight", 0.5, -1.0),
        ("dropout", 0.25, 1.0),
    ],
)
def test_state_reaches_every_layer(name, state, value, wrong):
    off = WRAPPERS[name](None if state == "dropout" else LOSING)
    model, x = copy.deepcopy(off), tokens(off)
    if (name, state) == ("LanguageModel", "dropout"):
        with pytest.raises(ValueError, match="dropout: expected the option that it was made with"):
            model.dropout = value
        return
    setattr(model, state, value)
    assert getattr(model, state) == value
    assert [getattr(each, state) for each in innermost(model)] == [value] * len(innermost(model))
    with pytest.raises(ValueError, match=rf"\[\w+\] {state}: expected .* got "):
        setattr(model, state, wrong)
    out, before = model(x), off(x)
    if state == "warms_up" or state == "dropout":
        assert not torch.equal(out, before)
    elif state == "loss_weight":
        torch.testing.assert_close(model.auxiliary_loss, 5 * off.auxiliary_loss)
    for each in innermost(model):
        assert (each.retained_mass is None) == (state != "measures_mass")
        assert (each.pairs is None) == (state != "keep_pairs")
    setattr(model, state, type(value)())
    if state == "dropout":
        torch.testing.assert_close(model(x), before)
    setattr(model, state, value)
    model.eval()
    assert getattr(model, state) == value  # whichever mode


@pytest.mark.parametrize("name", WRAPPERS)
def test_state_without_an_effect_is_refused(name):
    plain = WRAPPERS[name](None)
    for state, value in (("warms_up", True), ("measures_mass", True), ("loss_weight", 1.0)):
        with pytest.raises(ValueError, match=rf"\[\w+\] {state}: expected \S+ without .* got"):
            setattr(plain, state, value)
        setattr(plain, state, type(value)())
    losing = WRAPPERS[name]()
    if name != "LanguageModel":
        with pytest.raises(ValueError, match=r"dropout: expected 0.0 without a layer of all"):
            losing.dropout = 0.5
    for option, value in dict(window=3, causal=False, scale=2.0, order=1, heads=2, k=3).items():
        with pytest.raises(ValueError, match=rf"\[\w+\] {option}: expected the option that it was"):
            setattr(losing, option, value)
    losing.place = 3  # any other name is the user's


@pytest.mark.parametrize("held", [lambda made: made, block], ids=["layer", "block"])
def test_layers_with_a_forward_of_their_own_refuse_what_they_do_not_read(held):
    made = held(nn.UpcycledAttention(layer(None, order=1)))
    for state, value in (("dropout", 0.5), ("keep_pairs", True)):
        with pytest.raises(ValueError, match=rf"\[\w+\] {state}: expected \S+ without .* got"):
            setattr(made, state, value)
    choice = chosen(held(layer()))
    for state, value in (("tokens", 0), ("tokens", 1.5), ("sigmoid", "yes")):
        with pytest.raises(ValueError, match=rf"\[ExpertChoice\] {state}: expected .* got"):
            setattr(choice, state, value)
    choice.tokens = 3


def test_caches_of_orders_are_caches_of_a_model(tmp_path):
    model, x = layer(None, orders=[1, 2, 2, 1], window=5).eval(), torch.randn(1, 9, 16)
    expected = model(x)
    caches = nsimplex.LayerCaches([model.make_cache()])
    with torch.no_grad():
        model(x[:, :4], cache=caches[0])
        assert caches.position == 4 and caches.nbytes > 0
        caches.save(tmp_path / "caches.safetensors")
        model(x[:, 4:6], cache=caches[0])
        with pytest.raises(ValueError, match="axis 0 has dropped the keys"):
            caches[0].crop(1)
        assert [part.position for part in caches[0].caches] == [6, 6]
        again = nsimplex.LayerCaches([model.make_cache()])
        again.load(tmp_path / "caches.safetensors")
        again[0].crop(3)
        torch.testing.assert_close(model(x[:, 3:], cache=again[0]), expected[:, 3:])
        caches.reset()
        torch.testing.assert_close(model(x, cache=caches[0]), expected)
    with pytest.raises(ValueError, match=r"\[GroupCache\] crop: expected a layer without select"):
        layer(orders=[1, 1, 2, 2]).make_cache().crop(0)


def test_a_layer_of_orders_measures_and_warms_up_as_its_groups():
    model, x = layer(orders=[1, 2, 2, 2]), torch.randn(2, 7, 16)
    dense = layer(None, orders=[1, 2, 2, 2])
    dense.load_state_dict(model.state_dict(), strict=False)
    model.measures_mass = model.keep_pairs = True
    model(x)
    first, second = model.groups
    expected = (first.retained_mass + 3 * second.retained_mass) / 4
    torch.testing.assert_close(model.retained_mass, expected)
    query, key = model.pairs
    torch.testing.assert_close(query, torch.cat([first.pairs[0], second.pairs[0]], 1))
    assert query.shape == key.shape == (2, 4, 7, 4)
    model.warms_up = True
    torch.testing.assert_close(model(x), dense(x))
    model.auxiliary_loss = None
    assert model.auxiliary_loss is None and first.auxiliary_loss is None


def test_models_take_options_at_construction_alone():
    model = language_model()
    options = nn.LanguageModelOptions(**vars(model.options))
    options.layers = 3
    assert options != model.options == pickle.loads(pickle.dumps(model)).options
    for name, own, says in (
        ("tied", model.options, r"\[LanguageModel\] options.tied: expected the option"),
        ("windows", options, r"\[LanguageModelOptions\] windows: no such option"),
        ("norm", language_model(), r"\[LanguageModel\] norm: .* got"),
    ):
        if name == "norm":
            own.norm = torch.nn.LayerNorm(16)  # a module
            continue
        with pytest.raises(ValueError, match=says):
            setattr(own, name, False)
    with pytest.raises(TypeError, match="does not support item assignment"):
        layer().attention_options["window"] = 3


REUSE = TopK(2, dict(heads=4, source="reuse"), loss=0.1)


@pytest.mark.parametrize("source", ["plain", "orders"])
@pytest.mark.parametrize("reader", ["plain", "orders"])
@pytest.mark.parametrize("held", [False, True], ids=["layers", "blocks"])
def test_a_source_reaches_every_indexer(source, reader, held):
    made = dict(plain={}, orders=dict(orders=[1, 2, 1, 2]))
    first, second = layer(None, **made[source]), layer(REUSE, **made[reader])
    if held:
        first, second = block(first), block(second)
    second.set_source(first)
    x = torch.randn(2, 7, 16)
    with pytest.raises(ValueError, match=r"source: expected a layer that ran over the same \[2, 7"):
        second(x)
    second(first(x))
    nn.auxiliary_loss(second).backward()
    assert all(each.indexer.weight.weight.grad.any() for each in innermost(second))
    with pytest.raises(ValueError, match=r"the same \[1, 7\] tokens just before, got .* \[2, 7\]"):
        second(x[:1])
    for wrong, says in (
        (lambda: first.set_source(second), "source: expected none, because the layer has no"),
        (lambda: innermost(second)[0].set_source(x), "source: expected another attention layer"),
        (lambda: block(chosen(layer(REUSE))).set_source(first), "because an ExpertChoice"),
    ):
        with pytest.raises(ValueError, match=says):
            wrong()


def reentrant(model, x):
    return checkpoint(model, x.requires_grad_(), use_reentrant=True)


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, model):
        return model(x)


@pytest.mark.parametrize("name", ["layer", "orders", "ExpertChoice of a block", "LanguageModel"])
@pytest.mark.parametrize(
    "run, says",
    [
        (reentrant, "a checkpoint with use_reentrant=False"),
        (lambda model, x: Own.apply(x.requires_grad_(), model), "a checkpoint with use"),
        (
            lambda model, x: torch.compile(lambda x: reentrant(model, x), backend="eager")(x),
            "a checkpoint with use_reentrant=False",
        ),
        (lambda model, x: torch.func.grad(lambda x: model(x).sum())(x), "no transform of torch."),
    ],
    ids=["reentrant", "Function", "compiled reentrant", "torch.func.grad"],
)
def test_a_loss_that_is_lost_is_not_none(name, run, says):
    inner = MODELS[name]()
    model = inner
    if name == "LanguageModel":
        model = torch.nn.Sequential(*inner.blocks)
    out = run(model, torch.randn(2, 7, 16))
    for read in (lambda: inner.auxiliary_loss, lambda: nn.auxiliary_loss(model)):
        with pytest.raises(ValueError, match=rf"\[\w+\] auxiliary_loss: expected {says}"):
            read()
        with torch.no_grad():
            assert read() is None
    if out.requires_grad and run is reentrant:
        out.sum().backward()  # which runs the layers with gradients
        assert inner.auxiliary_loss > 0
    model(torch.randn(2, 7, 16))
    assert inner.auxiliary_loss > 0


def test_ways_that_keep_the_loss():
    model, x = block(layer(orders=[1, 1, 2, 2])), torch.randn(2, 7, 16)
    model(x)
    expected = model.auxiliary_loss.detach()
    parameters = {name: p.detach().clone() for name, p in model.named_parameters()}

    def broken(x):
        torch._dynamo.graph_break()
        return model(x) + 1

    for run in (
        lambda: checkpoint(model, x, use_reentrant=False),
        lambda: torch.compile(broken, backend="eager")(x),
        lambda: torch.func.functional_call(model, parameters, (x,)),
    ):
        with torch.no_grad():
            model(x)
        assert model.auxiliary_loss is None
        run()
        torch.testing.assert_close(nn.auxiliary_loss(model).detach(), expected)
    stored = io.BytesIO()
    torch.save(model, stored)
    stored.seek(0)
    again = torch.load(stored, weights_only=False)
    assert again.auxiliary_loss is None
    exported = torch.export.export(torch.nn.Linear(16, 16), (x,)).module()
    with pytest.raises(ValueError, match=r"\[auxiliary_loss\] model: expected modules of Python"):
        nn.auxiliary_loss(exported)
    replica = layer()._replicate_for_data_parallel()
    with pytest.raises(ValueError, match="auxiliary_loss: expected DistributedDataParallel"):
        replica(x)
