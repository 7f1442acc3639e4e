"""Weights of tuples and their sums, against the operator itself."""

import pytest
import torch
from problems import random_problem
from torch.autograd import gradcheck, gradgradcheck

import nsimplex

OPTIONS = [
    {},
    {"causal": True, "window": [3, 4, 2]},
    {"normalizer": "sigmoid"},
    {"normalizer": "relu", "causal": True},
    {
        "normalizer": "softmax_sink",
        "sink": torch.tensor([0.5, -0.5, 1.0, 2.0], dtype=torch.float64),
    },
    {"distinct": "axes"},
    {"dropout_p": 0.4, "seed": 3},
]


def make(order, options=None, **shape):
    shape = dict(batch=2, heads=4, kv_heads=2, queries=5, dim=6, value_dim=3) | shape
    options = dict(options or {})
    if "window" in options:
        options["window"] = options["window"][:order]
    problem = random_problem(order, **shape)
    return (
        problem,
        problem.inputs[0],
        problem.inputs[1 : 1 + order],
        problem.inputs[1 + order :],
        options,
    )


def weighted(weights, values, groups):
    """sum_J w_J v1_{j1} .. vN_{jN}"""
    letters = "uvwxyz"[: len(values)]
    operands = ",".join(f"bh{axis}d" for axis in letters)
    repeated = [value.repeat_interleave(groups, 1) for value in values]
    return torch.einsum(f"bht{letters},{operands}->bhtd", weights, *repeated)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
def test_weights_make_the_output(order, options):
    _, query, keys, values, options = make(order, options)
    weights = nsimplex.attention_weights(query, keys, **options)
    assert (
        weights.shape == (2, 4, 5, *(key.size(2) for key in keys))
        and weights.dtype == torch.float64
    )
    torch.testing.assert_close(
        weighted(weights, values, 2), nsimplex.attention(query, keys, values, **options)
    )


def test_weights_of_the_determinant_and_of_rows_without_tuples():
    _, query, keys, values, _ = make(2)
    weights = nsimplex.attention_weights(query, keys, form="determinant")
    out = nsimplex.attention(query, keys, values, form="determinant")
    torch.testing.assert_close(weighted(weights, values, 2), out)
    none = nsimplex.attention_weights(query, keys, key_lengths=torch.tensor([0, 5]))
    assert not none[0].any() and (none[1].sum((-1, -2)) - 1).abs().max() < 1e-12
    assert nsimplex.attention_weights(query, [keys[0][:, :, :0], keys[1]]).shape == (2, 4, 5, 0, 6)
    half = nsimplex.attention_weights(query.bfloat16(), [key.bfloat16() for key in keys])
    assert half.dtype == torch.float32


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
def test_marginals_are_sums_of_weights(order, options):
    _, query, keys, _, options = make(order, options)
    weights = nsimplex.attention_weights(query, keys, **options)
    for axis in range(order):
        others = [3 + m for m in range(order) if m != axis]
        exact = weights.sum(others) if others else weights
        for scale in ("standard", (query.size(-1) ** -0.5, 7.0)):
            marginals = nsimplex.attention_marginals(query, keys, axis=axis, scale=scale, **options)
            torch.testing.assert_close(marginals, exact)
            received = nsimplex.attention_received(query, keys, axis=axis, scale=scale, **options)
            torch.testing.assert_close(received, exact.unflatten(1, (2, 2)).sum((2, 3)))


def test_marginals_by_the_kernel():
    _, query, keys, _, _ = make(2, queries=70, lengths=[80, 33])
    options = {"causal": True, "window": [9, 20]}
    single = [t.float() for t in (query, *keys)]
    for axis in range(2):
        for function in (nsimplex.attention_marginals, nsimplex.attention_received):
            exact = function(query, keys, axis=axis, **options)
            ours = function(single[0], single[1:], axis=axis, **options)
            torch.testing.assert_close(ours.double(), exact, rtol=1e-4, atol=1e-5)


def test_marginals_of_real_keys_beside_rows_of_ones():
    _, query, keys, values, _ = make(2)
    first = nsimplex.attention_marginals(query, keys, axis=0, augment=True)
    torch.testing.assert_close(first.sum(-1), torch.ones(2, 4, 5, dtype=torch.float64))
    _, whole = nsimplex.attention(query, keys, values, augment=True, return_lse=True)
    _, pairs = nsimplex.attention(query, keys, values, return_lse=True)
    second = nsimplex.attention_marginals(query, keys, axis=1, augment=True)
    torch.testing.assert_close(second.sum(-1), (pairs - whole).exp())


@pytest.mark.parametrize("function", [nsimplex.attention_marginals, nsimplex.attention_received])
def test_derivatives_of_sums(function):
    problem = random_problem(2, heads=2, kv_heads=1, queries=3, lengths=[3, 3], dim=2)
    inputs = problem.to(torch.float64).inputs[:3]
    call = lambda query, *keys: function(query, keys, axis=1, causal=True)
    assert gradcheck(call, inputs) and gradgradcheck(call, inputs)
    stacked = [torch.stack([t, 2 * t]).detach() for t in inputs]
    for i, ours in enumerate(torch.vmap(call)(*stacked)):
        torch.testing.assert_close(ours, call(*(t[i] for t in stacked)))
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), call(*inputs))


def test_errors():
    x = torch.zeros(1, 1, 2**9, 2)
    with pytest.raises(ValueError, match="expected at most 67108864 weights"):
        nsimplex.attention_weights(x, [x, x])
    with pytest.raises(ValueError, match="augment"):
        nsimplex.attention_weights(x, [x], augment=[0])
    for function in (nsimplex.attention_marginals, nsimplex.attention_received):
        for axis in (-1, 2):
            with pytest.raises(ValueError, match=f"axis: expected 0 to 1, got {axis}"):
                function(x, [x, x], axis=axis)
