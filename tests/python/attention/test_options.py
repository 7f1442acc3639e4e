"""Every option against the definition, and through every gate of an operator."""

import inspect

import pytest
import torch
import torch._dynamo.compiled_autograd
from definition import definition
from options import EACH, OPTIONS, option_problem
from torch.autograd import gradcheck, gradgradcheck

import nsimplex
from nsimplex._options import operator_options

ALL = pytest.mark.parametrize("name", OPTIONS)
ONE_OF_EACH = pytest.mark.parametrize("name", EACH)


def finite(problem):
    """(out, lse) of the leaves, 0 where lse is minus infinity: finite differences need numbers."""

    def function(*leaves):
        out, lse = problem.call(*leaves)
        return out, torch.where(lse.isneginf(), 0.0, lse)

    return function


@ALL
def test_reference_is_the_definition(name):
    problem = option_problem(name).to(torch.float64)
    expected = problem.outcome(definition)
    for tensor, value in problem.outcome(nsimplex.reference).items():
        torch.testing.assert_close(value, expected[tensor], rtol=1e-10, atol=1e-12, msg=tensor)


@ALL
@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float64, 1e-11), (torch.float32, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02)],
)
def test_attention_is_the_reference(name, dtype, tolerance):
    problem = option_problem(name).to(dtype)
    expected = problem.to(torch.float64).outcome(nsimplex.reference)
    for tensor, value in problem.outcome().items():
        # By the whole tensor: a logit of relu that rounds across 0 changes single gradients at
        # once.
        error = (value.double() - expected[tensor]).norm().item()
        assert error <= tolerance * max(expected[tensor].norm().item(), 1), (tensor, error)


@ALL
def test_gradcheck(name):
    problem = option_problem(name).to(torch.float64)
    if "mask" in problem.learned:  # no finite difference at minus infinity
        problem.learned["mask"] = problem.learned["mask"].detach().clamp_min(-3).requires_grad_()
    assert gradcheck(finite(problem), problem.leaves, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(finite(problem), problem.leaves, fast_mode=True)


def test_defaults_are_those_of_the_operator():
    """An option that is not given is not passed on, so that the operator's default counts."""
    schema = torch.ops.nsimplex.attention.default._schema
    theirs = {
        argument.name: argument.default_value
        for argument in schema.arguments
        if argument.kwarg_only
    }
    ours = {
        name: parameter.default
        for name, parameter in inspect.signature(nsimplex.attention).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
        and name not in ("scale", "layout", "return_lse")
    }
    assert ours == {
        name: default for name, default in theirs.items() if not name.endswith("_scale")
    }


# All options in one call, another normalizer and order, and a mask; make test-all has the others.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[] if name in ("everything", "relu-3", "additive-mask-2") else pytest.mark.slow,
        )
        for name in EACH
    ],
)
def test_opcheck(name):
    problem = option_problem(name).to(torch.float32)
    order = problem.order
    keys, values = problem.inputs[1 : 1 + order], problem.inputs[1 + order :]
    options = operator_options(
        problem.inputs[0], keys, values, **problem.options, **problem.learned
    )
    inputs = (problem.inputs[0], keys, values)
    torch.library.opcheck(torch.ops.nsimplex.attention.default, inputs, options)
    with torch.no_grad():
        out, lse = torch.ops.nsimplex.attention(*inputs, **options)
    wanted = [True] * (1 + 2 * order) + [key in problem.learned for key in ("mask", "sink")]
    torch.library.opcheck(
        torch.ops.nsimplex.attention_backward.default,
        (*inputs, out, lse, out, None, wanted),
        options,
    )


@ONE_OF_EACH
def test_compile_without_graph_breaks(name):
    problem = option_problem(name).to(torch.float32)

    def step(*leaves):
        out, lse = problem.call(*leaves)
        return out.cos().sum() + torch.where(lse.isneginf(), 0.0, lse).sin().sum()

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    ours = torch.autograd.grad(compiled(*problem.leaves), problem.leaves)
    for a, b in zip(ours, torch.autograd.grad(step(*problem.leaves), problem.leaves)):
        torch.testing.assert_close(a, b)


def test_export_of_every_option_at_once():
    problem = option_problem("everything").to(torch.float32)
    leaves = tuple(t.detach() for t in problem.leaves)

    class Layer(torch.nn.Module):
        def forward(self, *leaves):
            return problem.call(*leaves)

    program = torch.export.export(Layer(), leaves)
    fresh = tuple(1.5 * t for t in leaves)
    for ours, expected in zip(program.module()(*fresh), problem.call(*fresh)):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def test_compiled_autograd_of_every_option_at_once():
    problem = option_problem("everything").to(torch.float32)
    loss = lambda: finite(problem)(*problem.leaves)[0].sum()
    expected = torch.autograd.grad(loss(), problem.leaves)
    torch._dynamo.reset()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        loss().backward()
    for tensor, exact in zip(problem.leaves, expected):
        torch.testing.assert_close(tensor.grad, exact)


@ONE_OF_EACH
def test_vmap_is_a_loop(name):
    problem = option_problem(name)
    stacked = [torch.stack([t, 0.5 * t, 2 * t]) for t in problem.leaves]
    out, lse = torch.vmap(problem.call)(*stacked)
    for i in range(3):
        expected = problem.call(*(t[i] for t in stacked), function=nsimplex.reference)
        for ours, exact in zip((out[i], lse[i]), expected):
            torch.testing.assert_close(ours, exact)


def test_vmap_over_masks_alone():
    problem = option_problem("boolean-mask-2")
    masks = torch.stack([problem.options.pop("mask"), torch.ones(2, 1, 5, 5, 5, dtype=torch.bool)])
    n = problem.order
    query, keys, values = problem.inputs[0], problem.inputs[1 : 1 + n], problem.inputs[1 + n :]
    out = torch.vmap(lambda mask: nsimplex.attention(query, keys, values, mask=mask))(masks)
    for mask, ours in zip(masks, out):
        torch.testing.assert_close(ours, nsimplex.reference(query, keys, values, mask=mask))


def test_vmap_over_key_masks_alone():
    """The dispatcher does not look into an optional list of tensors."""
    query, keys, values = (
        torch.randn(1, 2, 3, 4),
        [torch.randn(1, 2, 5, 4)],
        [torch.randn(1, 2, 5, 4)],
    )
    masks = torch.rand(3, 1, 5) < 0.6
    out = torch.vmap(lambda mask: nsimplex.attention(query, keys, values, key_masks=[mask]))(masks)
    for mask, ours in zip(masks, out):
        exact = nsimplex.attention(query, keys, values, key_masks=[mask])
        torch.testing.assert_close(ours, exact)


@ONE_OF_EACH
def test_functorch_transforms_agree_with_autograd(name):
    problem = option_problem(name).to(torch.float64)
    function = finite(problem)
    primals = tuple(t.detach() for t in problem.leaves)
    tangents = tuple(torch.ones_like(t) for t in primals)
    (out, lse), (out_tangent, lse_tangent) = torch.func.jvp(function, primals, tangents)
    _, pullback = torch.func.vjp(function, *primals)
    grads = pullback((torch.ones_like(out), torch.ones_like(lse)))
    forward = out_tangent.sum() + lse_tangent.sum()
    torch.testing.assert_close(forward, sum(grad.sum() for grad in grads))
    expected = torch.autograd.grad(sum(t.sum() for t in function(*problem.leaves)), problem.leaves)
    for ours, exact in zip(grads, expected):
        torch.testing.assert_close(ours, exact)


@ALL
def test_same_bits_twice_and_for_every_number_of_threads(name):
    before = torch.get_num_threads()
    try:
        outcomes = []
        for count in (1, 1, 2, 3, 5):
            torch.set_num_threads(count)
            outcomes.append(option_problem(name).to(torch.float32).outcome())
    finally:
        torch.set_num_threads(before)
    for outcome in outcomes[1:]:
        for tensor, value in outcome.items():
            assert torch.equal(value, outcomes[0][tensor]), tensor


@ALL
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_queries_without_a_tuple(name, dtype):
    """No key takes part in the second batch entry, whatever the options; NaN there never shows."""
    problem = option_problem(name)
    nobody = torch.tensor([[True] * 5, [False] * 5])
    masks = problem.options.get("key_masks", [nobody] * problem.order)
    problem.options = problem.options | {"key_masks": [mask & nobody for mask in masks]}
    problem = problem.to(dtype)
    for tensor in problem.inputs[1:]:
        tensor.data[1] = torch.nan
    outcome = problem.outcome()
    out, lse = problem.run()
    assert not out[1].any() and lse[1].isneginf().all()
    for tensor, value in outcome.items():
        assert not value.isnan().any(), tensor
    for tensor in list(outcome)[2 : 2 + len(problem.inputs)]:
        assert not outcome[tensor][1].any(), tensor


@ONE_OF_EACH
def test_gradients_that_nobody_wants_change_nothing(name):
    problem = option_problem(name).to(torch.float32)
    expected = problem.outcome()
    for wanted, tensor in zip(problem.leaves, list(expected)[2:]):
        for leaf in problem.leaves:
            leaf.requires_grad_(leaf is wanted)
        out, lse = problem.run()
        generator = torch.Generator().manual_seed(7)
        weights = [
            torch.randn(t.shape, generator=generator, dtype=torch.float64) for t in (out, lse)
        ]
        weights[1] = weights[1].masked_fill(lse.isneginf(), 0)
        (grad,) = torch.autograd.grad([out, lse], [wanted], [w.float() for w in weights])
        torch.testing.assert_close(grad, expected[tensor], rtol=1e-5, atol=1e-6, msg=tensor)


def test_a_seed_is_drawn_from_torch_s_generator():
    problem = option_problem("dropout-2").to(torch.float32)
    seed = problem.options.pop("seed")
    run = lambda: problem.run()[0]
    torch.manual_seed(seed)
    one = run()
    assert not torch.equal(one, run())
    torch.manual_seed(seed)
    assert torch.equal(one, run())
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(problem.call)(*(t.detach().unsqueeze(0) for t in problem.leaves))


def test_compiled_and_exported_code_draws_a_seed_and_takes_one():
    x = torch.randn(1, 2, 6, 4)

    class Layer(torch.nn.Module):
        def forward(self, x, seed=None):
            return nsimplex.attention(x, [x, x], [x, x], dropout_p=0.4, seed=seed)

    layer = Layer()
    torch._dynamo.reset()
    for draws in (
        torch.compile(layer, fullgraph=True, backend="aot_eager"),
        torch.export.export(layer, (x,)).module(),
    ):
        torch.manual_seed(1)
        one = draws(x)
        assert not torch.equal(one, draws(x))
        torch.manual_seed(1)
        assert torch.equal(one, layer(x))
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch._dynamo.utils.counters.clear()
    for seed in range(3, 8):
        assert torch.equal(compiled(x, seed), layer(x, seed))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2  # no graph a seed
