"""Every option against the definition, and what is special to an option."""

import inspect

import pytest
import torch
import torch._dynamo.compiled_autograd
from definition import definition
from options import OPTIONS, option_problem

import nsimplex

ALL = pytest.mark.parametrize("name", OPTIONS)


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


def test_compiled_autograd_of_every_option_at_once():
    problem = option_problem("everything").to(torch.float32)
    loss = lambda: finite(problem)(*problem.leaves)[0].sum()
    expected = torch.autograd.grad(loss(), problem.leaves)
    torch._dynamo.reset()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        loss().backward()
    for tensor, exact in zip(problem.leaves, expected):
        torch.testing.assert_close(tensor.grad, exact)


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


def test_a_seed_is_drawn_from_torch_s_generator():
    problem = option_problem("dropout-2").to(torch.float32)
    seed = problem.options.pop("seed")
    run = lambda: problem.run()[0]
    torch.manual_seed(seed)
    one = run()
    assert not torch.equal(one, run())
    torch.manual_seed(seed)
    assert torch.equal(one, run())
    with pytest.raises(ValueError, match="randomness"):
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
