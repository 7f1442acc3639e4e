"""Sensitivity and sharpness from Python: closed forms and bounds."""

import math

import pytest
import torch

import nsimplex
from nsimplex import analysis

pytestmark = pytest.mark.usefixtures("double")


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
        (lambda: analysis.inf_rms(torch.ones(3).long()), r"^\[inf_rms\] x: expected floating"),
        (lambda: analysis.inf_op(torch.ones(3), 1), r"^\[inf_op\] weights"),
    ],
)
def test_errors_name_the_argument(call, text):
    with pytest.raises(ValueError, match=text):
        call()
