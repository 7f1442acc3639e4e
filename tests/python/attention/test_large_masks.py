"""Masks and sinks that are large numbers and not minus infinity: everything is as fp64 has it."""

from __future__ import annotations

import math

import pytest
import torch
from problems import Problem, naive, random_problem
from test_accuracy import relative_error
from test_kernel_options import run_script

import nsimplex

LOWEST = torch.finfo(torch.float32).min
EVERY_DTYPE = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
FLOATS = pytest.mark.parametrize("dtype", EVERY_DTYPE)
ORDERS = pytest.mark.parametrize("order", [1, 2, 3])
FUNCTIONS = pytest.mark.parametrize("function", [nsimplex.attention, nsimplex.reference])
LENGTHS = {1: [66], 2: [5, 70], 3: [3, 4, 20]}

#: Of outputs and of gradients. At -1e9 fp64 itself has scores to 1e-7.
LIMITS = {
    torch.float64: (2e-7, 1e-6),
    torch.float32: (1e-5, 1e-4),
    torch.float16: (2e-3, 4e-3),
    torch.bfloat16: (1e-2, 2e-2),
}


def by_turns(even, odd):
    return lambda n: torch.where(torch.arange(n) % 2 == 0, even, odd)


def until_last(value, last):
    return lambda n: torch.cat([torch.full((n - 1,), value), torch.tensor([last])])


#: One query each: the mask of its n tuples.
ROWS = [
    *[
        lambda n, value=value: torch.full((n,), value)
        for value in (0.0, -1e4, -65504.0, -1e6, -1e9, -1e30, -3.3895314e38, LOWEST, 1e9, -LOWEST)
    ],
    by_turns(-1e9, -2e9),
    by_turns(-1e9, 0.0),
    by_turns(-torch.inf, -1e9),
    by_turns(LOWEST, LOWEST / 2),
    until_last(LOWEST, 0.0),
    until_last(0.0, -LOWEST),
    until_last(-1e9, -1e9 + 64),
    until_last(-torch.inf, LOWEST),
    lambda n: torch.full((n,), -torch.inf),
    lambda n: -1e4 - 0.5 * torch.arange(n),
    lambda n: -0.5 * torch.arange(n - 1, -1, -1),
    lambda n: -40.0 * torch.arange(n - 1, -1, -1),
]


def row_masks(lengths: list[int]) -> torch.Tensor:
    """[queries, T_1, .., T_N]"""
    tuples = math.prod(lengths)
    return torch.stack([row(tuples).float() for row in ROWS]).view(-1, *lengths)


def masked_problem(order: int, lengths=None, dtype=torch.float32, **options) -> Problem:
    lengths = lengths or LENGTHS[order]
    problem = random_problem(
        order, heads=4, kv_heads=2, queries=len(ROWS), lengths=lengths, dim=8, dtype=dtype
    )
    return Problem(problem.inputs, dict(mask=row_masks(lengths)) | options)


def assert_as_defined(problem: Problem, dtype: torch.dtype, function, limits=None) -> None:
    """Every row of the output by itself, everything else as a whole."""
    wide = problem.to(torch.float64)
    for name, option in wide.options.items():
        if isinstance(option, torch.Tensor) and option.is_floating_point():
            wide.options = wide.options | {name: option.double()}
    expected, found = wide.outcome(naive), problem.to(dtype).outcome(function)
    of_outputs, of_gradients = limits or LIMITS[dtype]
    lse, exact_lse = found.pop("lse").double(), expected.pop("lse")
    assert ((lse - exact_lse).abs() <= of_outputs + 2e-7 * exact_lse.abs()).all()
    out, exact = found.pop("out"), expected.pop("out")
    for i in range(len(exact[0, 0])):
        error = relative_error(out[:, :, i], exact[:, :, i])
        assert error <= of_outputs, f"row {i}: {error:.1e}"
    for name, gradient in found.items():
        error = relative_error(gradient, expected[name])
        assert error <= of_gradients, f"{name}: {error:.1e}"


@ORDERS
@FLOATS
@FUNCTIONS
def test_rows_of_large_masks(order, dtype, function):
    assert_as_defined(masked_problem(order, dtype=dtype), dtype, function)


@FUNCTIONS
@pytest.mark.parametrize(
    "lengths, options",
    [
        ([12, 70], dict(window=[(12, 9), (60, 40)])),
        ([22, 22], dict(distinct="with_query", reduce="sum")),
        ([9, 40], dict(key_masks=[torch.arange(9)[None] % 3 > 0, torch.arange(40)[None] % 5 > 0])),
        ([9, 40], dict(dropout_p=0.3, seed=5, reduce="mean")),
        ([9, 40], dict(normalizer="sigmoid")),
    ],
)
def test_beside_other_options(lengths, options, function):
    assert_as_defined(masked_problem(2, lengths, **options), torch.float32, function)


@pytest.mark.parametrize("lengths", [[70, 90, 400], [3000, 2]])
def test_the_plain_version_merges_tiles_of_a_row(lengths):
    problem = random_problem(len(lengths), heads=1, queries=2, lengths=lengths, dim=3)
    mask = torch.full((2, *lengths), -1e9)
    mask[1] = LOWEST
    problem.options = dict(mask=mask)
    assert_as_defined(problem, torch.float32, nsimplex.reference)


def test_the_kernel_merges_parts_of_a_row():
    """Few queries and many keys, which are cut."""
    problem = random_problem(1, heads=1, queries=2, lengths=[3000], dim=8)
    mask = torch.full((2, 3000), -1e9)
    mask[1, :1500] = -2e9
    problem.options = dict(mask=mask)
    assert_as_defined(problem, torch.float32, nsimplex.attention)


@pytest.mark.parametrize("mask_dtype", EVERY_DTYPE)
@FLOATS
@FUNCTIONS
def test_the_smallest_number_of_any_dtype(mask_dtype, dtype, function):
    """A row of nothing else is a row without masks to its scores' last digit, in fp64."""
    query, key, value = random_problem(1, queries=4, lengths=[6], dim=8, dtype=dtype).inputs
    mask = torch.zeros(1, 1, 4, 6, dtype=mask_dtype)
    mask[:, :, 2] = torch.finfo(mask_dtype).min
    mask[:, :, 3, :2] = torch.finfo(mask_dtype).min
    mask[:, :, 3, 2:] = torch.finfo(mask_dtype).min / 2
    out, lse = function(query, [key], [value], mask=mask, return_lse=True)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(t.double() for t in (query, key, value)), attn_mask=mask.double()
    )
    if mask_dtype == torch.float64 != dtype:  # both are the smallest float32
        expected[:, :, 3] = value.double().mean(2)
    assert relative_error(out, expected) <= LIMITS[dtype][0]
    assert lse.isfinite().all()


def test_causal_padding_on_the_left_as_models_build_it():
    """[B, 1, T, T] of the smallest number: the rows of padding are whole."""
    problem = random_problem(1, batch=2, heads=4, kv_heads=2, queries=16, lengths=[16], dim=8)
    hidden = torch.ones(16, 16).triu(1).bool().repeat(2, 1, 1, 1)
    hidden[0, ..., :5] = True
    problem.options = dict(mask=torch.zeros(2, 1, 16, 16).masked_fill(hidden, LOWEST))
    for function in (nsimplex.attention, nsimplex.reference):
        assert_as_defined(problem, torch.float32, function)


@FUNCTIONS
@pytest.mark.parametrize("sink", [LOWEST, -1e9, -1e4, 0.0, 1e4, 1e9, -LOWEST, -torch.inf])
def test_sinks_of_any_size(sink, function):
    problem = masked_problem(1, [40], normalizer="softmax_sink")
    problem.learned = dict(sink=torch.full((4,), sink, dtype=torch.float64))
    assert_as_defined(problem, torch.float32, function)


@ORDERS
def test_the_mask_s_own_gradient(order):
    problem = masked_problem(order)
    mask = problem.options.pop("mask")
    problem.learned = dict(mask=mask.double())
    for function in (nsimplex.attention, nsimplex.reference):
        assert_as_defined(problem, torch.float32, function)


@ORDERS
def test_weights_and_their_sums(order):
    problem = masked_problem(order)
    query, keys, mask = problem.inputs[0], problem.inputs[1 : 1 + order], problem.options["mask"]
    of_double = [key.double() for key in keys]
    wide = nsimplex.attention_weights(query.double(), of_double, mask=mask.double())
    weights = nsimplex.attention_weights(query, keys, mask=mask)
    torch.testing.assert_close(weights.double(), wide, rtol=1e-5, atol=1e-6)
    sums = weights.flatten(3).sum(-1)
    some = ~mask.flatten(1).isneginf().all(-1)
    assert (sums[:, :, some] - 1).abs().max() < 1e-5 and not sums[:, :, ~some].any()
    for axis in range(order):
        others = [3 + m for m in range(order) if m != axis]
        exact = wide.sum(others) if others else wide
        marginals = nsimplex.attention_marginals(query, keys, axis=axis, mask=mask)
        received = nsimplex.attention_received(query, keys, axis=axis, mask=mask)
        torch.testing.assert_close(marginals.double(), exact, rtol=1e-5, atol=1e-6)
        of_keys = exact.unflatten(1, (2, 2)).sum((2, 3))
        torch.testing.assert_close(received.double(), of_keys, rtol=1e-5, atol=1e-5)


@ORDERS
def test_faces(order):
    problem = masked_problem(order)
    query, keys, mask = problem.inputs[0], problem.inputs[1 : 1 + order], problem.options["mask"]
    ones = [torch.ones_like(key) for key in keys]
    out, lse = nsimplex.face_attention(query, keys, ones, mask=mask, return_lse=True)
    some = ~mask.flatten(1).isneginf().all(-1)
    torch.testing.assert_close(out[:, :, some], torch.ones_like(out[:, :, some]), rtol=1e-5, atol=0)
    assert not out[:, :, ~some].any() and not lse[:, :, some].isnan().any()


@FUNCTIONS
@pytest.mark.parametrize("value", [-1e4, -1e9, LOWEST])
def test_derivatives_of_second_order(value, function):
    """Of a gradient's squares, with rows of one large mask."""
    problem = random_problem(2, queries=5, lengths=[4, 6], dim=4)
    mask = torch.zeros(5, 4, 6)
    mask[1], mask[3, :2] = value, value
    results = []
    for each, dtype in ((function, torch.float32), (naive, torch.float64)):
        problem.options = dict(mask=mask.to(dtype))
        own = problem.to(dtype)
        out, lse = own.run(each)
        loss = out.square().sum() + lse.masked_fill(lse.abs() > 1e3, 0).sum()
        grads = torch.autograd.grad(loss, own.inputs, create_graph=True)
        results.append(torch.autograd.grad(sum(g.square().sum() for g in grads), own.inputs))
    for found, expected in zip(*results):
        assert relative_error(found, expected) <= 2e-4


def test_vmap_over_masks():
    query, k1, k2, v1, v2 = random_problem(2, queries=5, lengths=[4, 6], dtype=torch.float32).inputs
    masks = torch.stack([torch.full((5, 4, 6), value) for value in (0.0, -1e9, LOWEST)])

    def gradient(values, mask):
        return torch.func.grad(
            lambda v: nsimplex.attention(query, [k1, k2], [v, v2], mask=mask).square().sum()
        )(values)

    found = torch.func.vmap(gradient, in_dims=(None, 0))(v1, masks)
    for i, mask in enumerate(masks):
        torch.testing.assert_close(found[i], gradient(v1, mask), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


def simd_levels() -> list[str]:
    """Those of this machine, best first: what the refusal of an unknown one names."""
    code = """
import torch, nsimplex
try:
    nsimplex.attention(torch.ones(1, 1, 1, 1), [torch.ones(1, 1, 1, 1)], [torch.ones(1, 1, 1, 1)])
except Exception as error:
    print(str(error).split("available:")[1].split("\\n")[0])
"""
    return run_script(code, NSIMPLEX_SIMD="none").split()


def test_other_simd_levels():
    levels = simd_levels()
    code = """
import torch, nsimplex
from test_large_masks import assert_as_defined, masked_problem
for order in (1, 2, 3):
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        assert_as_defined(masked_problem(order, dtype=dtype), dtype, nsimplex.attention)
print("done")
"""
    for level in {*levels[1:3], levels[-1]}:
        assert run_script(code, NSIMPLEX_SIMD=level) == "done\n"


@pytest.mark.parametrize(
    "dtype, size",
    [
        *[(dtype, size) for dtype in EVERY_DTYPE for size in (1e2, 1e4)],
        (torch.float32, 1e9),
        (torch.float64, 1e9),
        # Kernels of GPUs have 16-bit weights from lse alone (docs/attention/gpu.md).
        pytest.param(torch.bfloat16, 1e9, marks=pytest.mark.cpu_kernel),
    ],
)
@FUNCTIONS
def test_equal_scores_of_any_size(dtype, size, function):
    """Without a mask: weights of a row add up to 1, however little lse says."""
    values = torch.randn(1, 1, 64, 4, generator=torch.Generator().manual_seed(2)).to(dtype)
    query = torch.full((1, 1, 3, 1), size, dtype=dtype)
    key = torch.ones(1, 1, 64, 1, dtype=dtype)
    value = values.clone().requires_grad_()
    out = function(query, [key], [value], scale=1.0)
    (gradient,) = torch.autograd.grad(out.sum(), value)
    expected = torch.full_like(gradient, 3 / 64)
    rtol = 4 * torch.finfo(dtype).eps + 2e-5
    torch.testing.assert_close(gradient, expected, rtol=rtol, atol=0)


@pytest.mark.parametrize("pattern", ["list", "product", "path"])
@pytest.mark.parametrize("function", [nsimplex.sparse_attention, nsimplex.sparse_reference])
@pytest.mark.parametrize("size", [1e4, 1e9])
def test_equal_scores_of_any_size_over_lists(pattern, function, size):
    query, key = torch.full((1, 4, 6, 1), size), torch.ones(1, 1, 6, 1)
    value = torch.randn(1, 1, 6, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    if pattern == "list":
        columns = torch.arange(6).repeat(6).unsqueeze(-1).expand(36, 2).contiguous()
        options = dict(indices=columns, offsets=torch.arange(0, 37, 6).view(1, 1, 7))
    else:
        options = dict(indices=torch.arange(6).expand(1, 1, 6, 6).contiguous(), pattern=pattern)
    out = function(query, [key, key], [value, torch.ones_like(value)], scale=1.0, **options)
    (gradient,) = torch.autograd.grad(out.sum(), value)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 4.0), rtol=2e-5, atol=0)


def test_lower_orders_in_the_same_softmax_with_large_scores():
    """The parts' backward is given the lse of all."""
    problem = random_problem(2, queries=6, lengths=[5, 7], dim=4, scale=(300.0, 1.0))
    problem.options["augment"] = True
    expected = problem.to(torch.float64).outcome(nsimplex.reference)
    assert expected["lse"].max() > 256
    for name, value in problem.to(torch.float32).outcome().items():
        assert relative_error(value, expected[name]) <= 2e-3, name
