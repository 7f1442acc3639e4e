"""The logit of a single tuple has no gradient in the kernels either: they read 16 bits of out."""

from __future__ import annotations

import itertools

import pytest
import test_single_tuples as plain
import torch

import nsimplex

pytestmark = pytest.mark.interpreted

DENSE = [way for way in plain.WAYS if "indices" not in plain.WAYS[way](1)]
#: One of each kind; the others take longer together.
QUICK = {
    ("window", 1, torch.bfloat16),
    ("mask", 2, torch.float16),
    ("mean of values", 2, torch.bfloat16),
    ("relu", 1, torch.float16),
    ("dropout", 2, torch.bfloat16),
}


def cases() -> list:
    every = itertools.product(DENSE, plain.ORDERS, plain.HALVES)
    return [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in every]


@pytest.fixture(autouse=True)
def on_cpu(bench):
    from kernels_on_cpu import put_under_cpu

    put_under_cpu()
    yield
    assert bench.launches["attention_backward_rows_kernel"] > 0


@pytest.mark.parametrize("way, order, dtype", cases())
def test_the_logit_of_a_single_tuple_has_no_gradient(way, order, dtype):
    plain.assert_no_gradient(way, order, dtype, nsimplex.attention)


@pytest.mark.parametrize("dtype", plain.HALVES)
def test_large_logits_have_no_gradient(dtype):
    """As large as the rounding of lse allows."""
    problem = plain.problem_of("window", 2, dtype)
    with torch.no_grad():
        query, *keys = problem.inputs[:3]
        query.copy_(torch.linspace(7, 11, query[..., :1].numel()).view(query[..., :1].shape))
        for key in keys:
            key.fill_(3.0)
    out, lse = problem.run(nsimplex.attention)
    assert 390 < lse.max() < 400
    gradients = torch.autograd.grad(out, problem.inputs[:3], torch.randn_like(out))
    assert all(gradient.count_nonzero() == 0 for gradient in gradients)


@pytest.mark.parametrize("dtype", plain.HALVES)
def test_a_tuple_with_nearly_all_of_the_weight(dtype):
    plain.test_a_tuple_with_nearly_all_of_the_weight(dtype, nsimplex.attention)


def test_a_value_that_is_no_number_is_not_hidden():
    plain.test_a_value_that_is_no_number_is_not_hidden(torch.bfloat16)
