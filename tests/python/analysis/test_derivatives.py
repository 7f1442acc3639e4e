"""Lipschitz constants, sensitivity and sharpness from Python: closed forms, bounds, modules."""

import math

import pytest
import torch

import nsimplex
from nsimplex import analysis


@pytest.fixture(autouse=True)
def double():
    torch.manual_seed(1)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def attention_of(order, scale):
    def call(query, *others):
        return nsimplex.attention(query, list(others[:order]), list(others[order:]), scale=scale)

    return call


def aligned_inputs(order, problems, tokens, dim):
    """Normal queries; all keys near one axis and all values near another, of either sign."""
    inputs = [torch.randn(problems, 1, tokens, dim)]
    for i in range(2 * order):
        x = 0.01 * torch.randn(problems, 1, tokens, dim)
        x[..., 0 if i < order else 1] += math.sqrt(dim) * torch.randn(problems, 1, tokens).sign()
        inputs.append(x)
    return inputs


def test_linear_maps_have_their_spectral_norm():
    weight = torch.randn(6, 4)
    exact = torch.linalg.matrix_norm(weight, 2)
    found = analysis.jacobian_norm(lambda x: x @ weight, torch.randn(3, 5, 6))
    torch.testing.assert_close(found.value, exact.expand(3), rtol=1e-6, atol=0)
    found = analysis.lipschitz_constant(lambda x: x @ weight, torch.randn(3, 5, 6), 2.0)
    torch.testing.assert_close(found.value, exact.expand(3), rtol=1e-6, atol=0)


@pytest.mark.parametrize("order", [1, 2])
def test_a_layer_has_the_singular_value_of_its_whole_jacobian(order):
    layer = nsimplex.nn.SimplicialAttention(8, heads=2, order=order).double()
    x = torch.randn(1, 3, 8)
    jacobian = torch.autograd.functional.jacobian(layer, x).reshape(24, 24)
    found = analysis.jacobian_norm(layer, x, analysis.Ascent(steps=400)).value
    torch.testing.assert_close(
        found, torch.linalg.matrix_norm(jacobian, 2)[None], rtol=1e-6, atol=0
    )


def test_the_constant_of_a_ball_stays_in_it_and_below_the_bound():
    weights = [w / torch.linalg.matrix_norm(w, 2) for w in torch.randn(5, 3, 3)]

    def function(x):
        q, *others = ((x @ w).unsqueeze(1) for w in weights)
        return nsimplex.attention(q, others[:2], others[2:]).squeeze(1)

    found = analysis.lipschitz_constant(
        function, torch.randn(4, 3, 3), 0.5, analysis.Ascent(steps=30)
    )
    assert found.input.norm(dim=-1).max() <= 0.5 * (1 + 1e-12)
    start = analysis.jacobian_norm(function, 0.1 * torch.randn(4, 3, 3)).value
    assert found.value.max() > start.max()
    for form in ("printed", "proof", "all_factors"):
        assert found.value.max() <= analysis.lipschitz_bound(2, 3, 3, 0.5, 1, 1, form)


def test_forms_of_the_bound():
    # n = 2, d = 4, N = 2, R = K = V = 1: a = 2.
    assert analysis.lipschitz_bound(2, 2, 4, 1, 1, 1) == pytest.approx(4 * 2 * math.sqrt(17))
    assert analysis.lipschitz_bound(2, 2, 4, 1, 1, 1, "proof") == pytest.approx(
        2 * math.sqrt(2) * 6
    )
    assert analysis.lipschitz_bound(2, 2, 4, 1, 1, 1, "all_factors") == pytest.approx(
        2 * math.sqrt(2) * 8
    )
    assert analysis.pair_lipschitz_bound(2, 1, 1, 1) == pytest.approx(math.sqrt(33))


def test_standard_scales_attain_eight_at_order_one_and_head_dim_64():
    scale = (64**-0.5, 1.0)
    assert max(analysis.sensitivity_bounds(1, 64, 64, scale)) == pytest.approx(8)
    found = analysis.sensitivity(
        attention_of(1, "standard"),
        aligned_inputs(1, 8, 2, 64),
        input_rms=[1, 1, 1],
        options=analysis.Ascent(60),
    )
    assert 0.99 * 8 < found.value.max() <= 8 * (1 + 1e-9)


def test_unit_scales_are_unit_sensitive_and_three_sharp():
    scale = (4**-1.5, 4**-0.5)
    inputs = aligned_inputs(2, 4, 2, 4)
    assert max(analysis.sensitivity_bounds(2, 4, 4, scale)) == pytest.approx(1)
    assert max(analysis.sharpness_bounds(2, 4, 4, scale)) == pytest.approx(3)
    once = analysis.sensitivity(
        attention_of(2, "unit"), inputs, input_rms=[1] * 5, options=analysis.Ascent(40)
    )
    twice = analysis.sharpness(
        attention_of(2, "unit"), inputs, input_rms=[1] * 5, options=analysis.Ascent(20)
    )
    assert 0.99 < once.value.max() <= 1 + 1e-9
    assert 1 < twice.value.max() <= 3
    for x in once.inputs:
        assert analysis.inf_rms(x) == pytest.approx(1)


def test_second_derivatives_of_a_product():
    found = analysis.sharpness(
        lambda x, y: x * y, [torch.randn(1, 2, 4), torch.randn(1, 2, 4)], starts=8
    )
    assert found.value.item() == pytest.approx(2)
    assert found.blocks[[0, 2]].max() == 0


def test_bounds_of_other_norms():
    # c1 = 0.5 * 4 * 6 = 12 and c2 = 3 * 5 = 15, see the formulas.
    assert analysis.sensitivity_bounds(1, 4, 4, (0.5, 3), [2, 3, 5]) == pytest.approx([90, 60, 3])
    assert analysis.sharpness_bounds(1, 4, 4, (0.5, 3), [2, 3, 5]) == pytest.approx(
        [1080, 750, 18, 480, 12, 0]
    )


def test_norms_of_small_tensors():
    x = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    assert analysis.inf_rms(x).item() == pytest.approx(5 / math.sqrt(2))
    assert analysis.inf_op(-x[None], 1).item() == 7
    assert analysis.inf_op(x[None], 2).item() == 8


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: analysis.jacobian_norm(torch.sin, torch.ones(3)), "expected floating"),
        (
            lambda: analysis.lipschitz_constant(torch.sin, torch.ones(1, 2), 0),
            "radius: expected a positive",
        ),
        (lambda: analysis.lipschitz_bound(0, 1, 1, 1, 1, 1), "lipschitz_bound: expected order"),
        (lambda: analysis.lipschitz_bound(1, 1, 1, 1, 1, 1, "other"), "form: expected printed"),
        (lambda: analysis.pair_lipschitz_bound(0, 1, 1, 1), "expected a token"),
        (
            lambda: analysis.sensitivity(torch.sin, [torch.ones(1, 2)], starts=0),
            "starts: expected one",
        ),
        (
            lambda: analysis.sensitivity(torch.add, [torch.ones(1, 2), torch.ones(2, 2)]),
            r"inputs\[1\]: expected 1 problems",
        ),
        (lambda: analysis.sensitivity(torch.sin, []), "expected an input"),
        (
            lambda: analysis.sharpness(torch.sin, [torch.ones(1, 2)], input_rms=[1, 1]),
            "input_rms: expected 1",
        ),
        (lambda: analysis.sensitivity_bounds(1, 4, 4, (1, 1), [1, 1]), "2 order"),
        (lambda: analysis.inf_op(torch.ones(3), 1), "inf_op: weights"),
    ],
)
def test_errors_name_the_argument(call, text):
    with pytest.raises(ValueError, match=text):
        call()
