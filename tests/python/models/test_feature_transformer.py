"""The feature transformer in Python: it repeats the C++ module, and says what does not fit."""

import pytest
import torch

from nsimplex.nn import FeatureTransformer, FeatureTransformerOptions

SHAPE = dict(features=5, dim=24, heads=2)

EXPORTED = {
    "rotary": dict(encoding="rotary", learned_scale=True, identity=True),
    "simplicial": dict(encoding="rotary", learned_scale=True, identity=True, backbone="simplicial"),
    "performer": dict(
        encoding="rotary",
        learned_scale=True,
        identity=True,
        backbone="performer",
        values="periodic",
    ),
    "additive": dict(encoding="additive", backbone="performer", values="linear"),
    "relative": dict(encoding="relative", values="linear"),
    "sinusoidal": dict(encoding="sinusoidal", values="linear"),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_repeats_cpp(exported, name):
    weights, (x, masked, *table), output, _ = exported(f"features_{name}")
    model = FeatureTransformer(FeatureTransformerOptions(**SHAPE, **EXPORTED[name]))
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"positions.table"}  # a buffer: given as an input
    if table:
        model.set_table(table[0])
    marked = masked.bool().flip(1)
    torch.testing.assert_close(model(x, masked.bool(), marked), output, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backbone", ["softmax", "performer", "simplicial"])
@pytest.mark.parametrize("values", ["bins", "linear", "periodic"])
def test_gradients_reach_every_parameter(backbone, values):
    torch.manual_seed(1)
    options = FeatureTransformerOptions(
        **SHAPE,
        backbone=backbone,
        values=values,
        encoding="rotary",
        learned_scale=True,
        identity=True,
        outputs=2,
    )
    model = FeatureTransformer(options)
    model.set_table(torch.randn(5, options.planes))
    x = torch.randint(6, (3, 5)) if values == "bins" else torch.randn(3, 5)
    masked = torch.rand(3, 5) < 0.5
    masked[0, 0] = True
    loss = (
        model.reconstruction_loss(x, masked) + model.predict(model(x, marked=masked)).square().sum()
    )
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_state_holds_the_table():
    options = FeatureTransformerOptions(**SHAPE, encoding="rotary")
    model, other = FeatureTransformer(options), FeatureTransformer(options)
    model.set_table(torch.randn(5, 2, options.planes))
    other.load_state_dict(model.state_dict())
    x = torch.randint(6, (2, 5))
    assert torch.equal(model(x), other(x))


def test_general_values_are_those_of_a_trained_transformer():
    trained = FeatureTransformer(FeatureTransformerOptions(**SHAPE, values="linear"))
    model = FeatureTransformer(FeatureTransformerOptions(**SHAPE, values="general"))
    model.set_general(trained)
    model(torch.randn(2, 5))[:, 1].sum().backward()
    assert all(parameter.grad is None for parameter in trained.parameters())
    assert not any(name.startswith("_general") for name in model.state_dict())


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(features=0), "features: expected at least 1, got 0"),
        (dict(heads=5), "dim: expected a multiple of heads 5, got 24"),
        (dict(encoding="rope"), "encoding: expected one of none, sinusoidal, .*, got 'rope'"),
        (dict(encoding="relative", backbone="performer"), "relative needs backbone softmax"),
        (dict(learned_scale=True), "learned_scale: only of encoding rotary"),
        (dict(backbone="simplicial", order=4), "heads times order . 1 = 10"),
    ],
)
def test_options_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        FeatureTransformerOptions(**{**SHAPE, **options})


def test_tensors_that_cannot_be():
    model = FeatureTransformer(FeatureTransformerOptions(**SHAPE, encoding="rotary"))
    with pytest.raises(ValueError, match=r"x: expected shape \[B, 5\], got \[2, 4\]"):
        model(torch.zeros(2, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match="expected int64 numbers of bins, got torch.float32"):
        model(torch.zeros(2, 5))
    for wrong, says in ((6, "0 to 6"), (-1, "-1 to 0")):
        bins = torch.tensor([[0, 0, wrong, 0, 0]])
        with pytest.raises(ValueError, match=f"x: expected bins 0 to 5, got {says}$"):
            model(bins)
    with pytest.raises(ValueError, match=r"table: expected floating numbers of shape \[5, 2, 6\]"):
        model.set_table(torch.zeros(5, 7))
    with pytest.raises(ValueError, match="masked: expected a value to restore"):
        model.reconstruction_loss(
            torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 5, dtype=torch.bool)
        )


@pytest.mark.parametrize(
    ("name", "dim", "planes"), [("paper-scbert", 200, 10), ("paper-scgpt", 512, 32)]
)
def test_presets_have_the_papers_shapes(name, dim, planes):
    options = FeatureTransformerOptions.preset(name, 3, encoding="rotary", layers=1)
    assert (options.dim, options.planes, options.layers) == (dim, planes, 1)
    assert FeatureTransformer(options)(torch.zeros(2, 3, dtype=torch.int64)).shape == (2, 4, dim)
    with pytest.raises(ValueError, match="expected one of paper-scbert, paper-scgpt, got 'scbert'"):
        FeatureTransformerOptions.preset("scbert", 3)
