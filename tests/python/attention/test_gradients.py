"""Derivatives: of both outputs, again, forward, batched, and only those that somebody wants."""

import pytest
import torch
from problems import naive, random_problem
from torch.autograd import gradcheck, gradgradcheck

import nsimplex

ORDERS = [1, 2, 3]
REDUCERS = ["product", "sum", "mean"]


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


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reduce", REDUCERS)
def test_gradcheck_of_both_outputs(order, reduce):
    problem = small(order, reduce=reduce, scale=(0.7, 1.3), window=[(3, 1)] * order)
    assert gradcheck(function_of(problem), problem.inputs, check_forward_ad=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reduce", REDUCERS)
def test_gradgradcheck_of_both_outputs(order, reduce):
    problem = random_problem(
        order,
        heads=1,
        queries=2,
        lengths=[2, 3, 2][:order],
        dim=2,
        causal=order == 2,
        reduce=reduce,
    ).to(torch.float64)
    if problem.options["causal"]:
        problem.options["causal"] = (
            False  # a row without tuples has lse = -inf, no finite difference
        )
        problem.options["window"] = [(2, 1)] * order
    assert gradgradcheck(function_of(problem), problem.inputs)


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
@pytest.mark.parametrize("reduce", ["product", "sum"])
def test_gradients_that_nobody_wants_change_nothing(dtype, reduce):
    full = random_problem(3, heads=2, queries=9, dim=5, reduce=reduce).to(dtype)
    expected = full.outcome()
    names = [name for name in expected if name not in ("out", "lse")]
    for wanted in range(len(full.inputs)):
        problem = full.to(dtype)
        for i, tensor in enumerate(problem.inputs):
            tensor.requires_grad_(i == wanted)
        out, lse = problem.run()
        generator = torch.Generator().manual_seed(7)
        weights = [
            torch.randn(t.shape, generator=generator, dtype=torch.float64).to(dtype)
            for t in (out, lse)
        ]
        torch.autograd.backward([out, lse], weights)
        for i, tensor in enumerate(problem.inputs):
            if i == wanted:
                torch.testing.assert_close(tensor.grad, expected[names[i]], rtol=1e-6, atol=1e-6)
            else:
                assert tensor.grad is None


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


@pytest.mark.parametrize("order", ORDERS)
def test_functorch_transforms_agree_with_autograd(order):
    problem = small(order)
    function = function_of(problem)
    primals = tuple(t.detach() for t in problem.inputs)
    tangents = tuple(torch.ones_like(t) for t in primals)
    (out, _), (out_tangent, lse_tangent) = torch.func.jvp(function, primals, tangents)
    _, pullback = torch.func.vjp(function, *primals)
    grads = pullback((torch.ones_like(out), torch.ones_like(out[..., 0])))
    forward = out_tangent.sum() + lse_tangent.sum()
    backward = sum((grad * tangent).sum() for grad, tangent in zip(grads, tangents))
    torch.testing.assert_close(forward, backward)

    loss = [problem.run()[0].sum() + problem.run()[1].sum()]
    for ours, expected in zip(grads, torch.autograd.grad(loss, problem.inputs)):
        torch.testing.assert_close(ours, expected)


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
