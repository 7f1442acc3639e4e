"""Lipschitz constants from Python: closed forms, bounds, modules."""

import math

import pytest
import torch

import nsimplex
from nsimplex import analysis

pytestmark = pytest.mark.usefixtures("double")


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


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: analysis.jacobian_norm(torch.sin, torch.ones(3)), "expected floating"),
        (
            lambda: analysis.lipschitz_constant(torch.sin, torch.ones(1, 2), 0),
            "radius: expected a positive",
        ),
        (
            lambda: analysis.lipschitz_bound(0, 1, 1, 1, 1, 1),
            r"^\[lipschitz_bound\] order: expected 1 or more, got 0$",
        ),
        (lambda: analysis.lipschitz_bound(1, 1, 1, 1, 1, 1, "other"), "form: expected printed"),
        (
            lambda: analysis.pair_lipschitz_bound(0, 1, 1, 1),
            r"^\[pair_lipschitz_bound\] tokens: expected 1 or",
        ),
    ],
)
def test_errors_name_the_argument(call, text):
    with pytest.raises(ValueError, match=text):
        call()
