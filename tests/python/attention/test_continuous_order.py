"""Orders between two whole ones: the ends are whole, and the way between them is continuous."""

import itertools
import math

import pytest
import torch
from problems import random_problem

import nsimplex
from nsimplex import analysis


def run(problem, order, **options):
    n = problem.order
    keys, values, scale = nsimplex.continuous_order(
        problem.inputs[1 : 1 + n], problem.inputs[1 + n :], order
    )
    return nsimplex.attention(
        problem.inputs[0], keys, values, scale=scale, return_lse=True, **options
    )


def whole(problem, order, **options):
    n = problem.order
    keys, values = problem.inputs[1 : 1 + order], problem.inputs[1 + n : 1 + n + order]
    return nsimplex.attention(
        problem.inputs[0], keys, values, scale="unit", return_lse=True, **options
    )


@pytest.mark.parametrize("order", [2, 3])
def test_ends_are_whole_orders(order):
    problem = random_problem(order, heads=4, kv_heads=2, dim=4, value_dim=6)
    for ours, exact in zip(run(problem, order), whole(problem, order)):
        torch.testing.assert_close(ours, exact)
    out, lse = run(problem, order - 1)
    below, lse_below = whole(problem, order - 1)
    torch.testing.assert_close(out, below)
    torch.testing.assert_close(lse, lse_below + math.log(problem.inputs[order].size(2)))


def test_lower_end_under_windows_counts_the_keys_that_are_seen():
    problem = random_problem(2, queries=6, lengths=[6, 6])
    out, lse = run(problem, 1, causal=True, window=[4, 3])
    below, lse_below = whole(problem, 1, causal=True, window=[4])
    torch.testing.assert_close(out, below)
    seen = torch.tensor([1, 2, 3, 3, 3, 3], dtype=torch.float64)
    torch.testing.assert_close(lse, lse_below + seen.log())


def test_between_the_ends():
    problem = random_problem(2, heads=1)
    steps = [run(problem, 1 + a / 64)[0] for a in range(65)]
    moves = torch.stack([(a - b).norm() for a, b in itertools.pairwise(steps)])
    assert moves.min() > 0 and moves.max() < 0.2 * moves.sum()
    problem = random_problem(2, heads=1, queries=3, lengths=[3, 2], dim=2).to(torch.float64)

    def function(*inputs):
        return run(type(problem)(list(inputs)), 1.3)

    assert torch.autograd.gradcheck(function, problem.inputs)


@pytest.mark.parametrize("order", [1.3, 1.5, 1.8])
@pytest.mark.parametrize("dim", [4, 64])
def test_sensitivity_is_one_at_every_order(dim, order):
    def function(q, *others):
        keys, values, scale = nsimplex.continuous_order(others[:2], others[2:], order)
        return nsimplex.attention(q, keys, values, scale=scale)

    def along(axis, draws):
        x = 0.01 * torch.randn(4, 1, 2, dim, dtype=torch.float64)
        x[..., axis] += math.sqrt(dim) * draws
        return x

    torch.manual_seed(3)
    ones, signs = torch.ones(4, 1, 2), torch.randn(2, 4, 1, 2).sign()
    inputs = [
        along(0, ones),
        along(0, signs[0]),
        along(0, ones),
        along(1, signs[1]),
        along(1, ones),
    ]
    found = analysis.sensitivity(
        function, inputs, input_rms=[1] * 5, options=analysis.Ascent(40)
    ).value.max()
    assert 0.999 < found < 1 + 1e-9


@pytest.mark.parametrize(
    "count, order, words",
    [
        (1, 1.0, "keys: expected at least 2, got 1"),
        (2, 0.9, "order: expected 1 to 2, .* got 0.9"),
        (2, float("nan"), "got nan"),
    ],
)
def test_errors(count, order, words):
    x = [torch.zeros(1, 1, 2, 2)] * count
    with pytest.raises(ValueError, match=words):
        nsimplex.continuous_order(x, x, order)
    with pytest.raises(ValueError, match="values: expected 2, one for each of the keys, got 1"):
        nsimplex.continuous_order([x[0]] * 2, x[:1], 1.0)
