"""Derivatives beside the gates of all operators: of lse alone, of second order, batched."""

import pytest
import torch
from problems import naive, random_problem

import nsimplex

ORDERS = [1, 2, 3]


def small(order, **options):
    return random_problem(
        order,
        heads=2,
        kv_heads=1,
        queries=3,
        lengths=[4, 3, 5][:order],
        dim=3,
        value_dim=2,
        **options,
    ).to(torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_second_derivatives_do_not_depend_on_the_kernel(dtype):
    """d/dq of |d out / d q|^2, the penalty that needs create_graph, against the definition's."""
    results = []
    for function in (nsimplex.attention, naive):
        problem = small(2).to(dtype)
        out, _ = problem.run(function)
        (grad,) = torch.autograd.grad(out.square().sum(), problem.inputs[0], create_graph=True)
        results.append(torch.autograd.grad(grad.square().sum(), problem.inputs))
    for ours, expected in zip(*results):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lse_alone_has_gradients(dtype):
    problem, check = small(2).to(dtype), small(2)
    grads = torch.autograd.grad(problem.run()[1].sum(), problem.inputs[:3])
    expected = torch.autograd.grad(check.run(naive)[1].sum(), check.inputs[:3])
    for ours, exact in zip(grads, expected):
        torch.testing.assert_close(ours.double(), exact, rtol=1e-4, atol=1e-6)
    _out, lse = problem.run()
    for value_grad in torch.autograd.grad(lse.sum(), problem.inputs[3:]):
        assert not value_grad.any()


def test_no_grad_builds_no_graph():
    problem = small(2)
    with torch.no_grad():
        out, lse = problem.run()
    assert out.grad_fn is None and lse.grad_fn is None


def test_hessian():
    problem = small(2)
    query, *rest = (t.detach() for t in problem.inputs)
    losses = [
        lambda q, f=f: f(q, rest[:2], rest[2:], return_lse=True)[0].square().sum()
        for f in (nsimplex.attention, naive)
    ]
    ours, expected = (torch.func.hessian(loss)(query) for loss in losses)
    torch.testing.assert_close(ours, expected)
