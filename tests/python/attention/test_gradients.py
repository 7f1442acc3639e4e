"""Derivatives beside the gates of all operators: of lse alone, of second order, batched."""

import pytest
import torch
from problems import naive, random_problem

import nsimplex

ORDERS = [1, 2, 3]


def function_of(problem):
    """(query, keys.., values..) -> (out, lse), with the problem's options."""
    order = problem.order

    def function(query, *rest):
        return nsimplex.attention(
            query, rest[:order], rest[order:], return_lse=True, **problem.options
        )

    return function


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


@pytest.mark.parametrize("order", ORDERS)
def test_vmap_is_a_loop(order):
    problem = small(order, causal=True)
    function = function_of(problem)
    inputs = [torch.stack([t.detach() * (1 + 0.1 * i) for i in range(3)]) for t in problem.inputs]
    out, lse = torch.vmap(function)(*inputs)
    for i in range(3):
        expected_out, expected_lse = function(*(t[i] for t in inputs))
        torch.testing.assert_close(out[i], expected_out)
        torch.testing.assert_close(lse[i], expected_lse)
    only_keys = torch.vmap(function, in_dims=(None, 0, *[None] * (2 * order - 1)))(
        inputs[0][0], inputs[1], *(t[0] for t in inputs[2:])
    )
    torch.testing.assert_close(only_keys[0][0], function(*(t[0] for t in inputs))[0])


def test_per_sample_gradients():
    problem = small(2)
    query, *rest = (t.detach() for t in problem.inputs)
    queries = torch.stack([query, 2 * query])
    loss = lambda q: nsimplex.attention(q, rest[:2], rest[2:]).square().sum()
    grads = torch.vmap(torch.func.grad(loss))(queries)
    for q, grad in zip(queries, grads):
        torch.testing.assert_close(grad, torch.func.grad(loss)(q))


def test_hessian():
    problem = small(2)
    query, *rest = (t.detach() for t in problem.inputs)
    losses = [
        lambda q, f=f: f(q, rest[:2], rest[2:], return_lse=True)[0].square().sum()
        for f in (nsimplex.attention, naive)
    ]
    ours, expected = (torch.func.hessian(loss)(query) for loss in losses)
    torch.testing.assert_close(ours, expected)
