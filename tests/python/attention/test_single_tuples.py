"""A query with one tuple has the weight 1 whatever its logit is, so the logit has no gradient.

Backward finds the gradients from the output, of which 16 bits are left: without care the rounding
of the output would be all that these gradients consist of.
"""

import functools
import json
import math
import os
import subprocess
import sys

import pytest
import torch
from problems import random_problem
from test_accuracy import relative_error

import nsimplex
from nsimplex._library import PREFIX

HALVES = [torch.bfloat16, torch.float16]
ORDERS = [1, 2, 3]
DENSE = [nsimplex.attention, nsimplex.reference]
SPARSE = [nsimplex.sparse_attention, nsimplex.sparse_reference]


def masked(order: int) -> dict:
    """Of all tuples each query sees one."""
    mask = torch.zeros(1, 1, 5, *[5] * order, dtype=torch.bool)
    for i in range(5):
        mask[(0, 0, i, *[(3 * i + 1) % 5] * order)] = True
    return dict(mask=mask)


def indexed(order: int, pattern: str) -> dict:
    """The same tuples as lists, sets or paths of one key."""
    keys = torch.tensor([(3 * i + 1) % 5 for i in range(5)])
    if pattern == "list":
        return dict(indices=keys[:, None].expand(5, order).contiguous()[None, None].flatten(0, 2),
                    offsets=torch.arange(6).view(1, 1, 6), pattern=pattern)  # fmt: skip
    return dict(indices=keys.view(1, 1, 5, 1), pattern=pattern)


#: Ways to see one tuple, by name: options of the order.
WAYS = {
    "window": lambda order: dict(causal=True, window=[1] * order),
    "key lengths": lambda order: dict(key_lengths=torch.ones(order, 1, dtype=torch.int64)),
    "mask": masked,
    "documents": lambda order: dict(cu_seqlens=torch.arange(6)),
    "mean of values": lambda order: dict(causal=True, window=[1] * order, reduce="mean"),
    "relu": lambda order: masked(order) | dict(normalizer="relu"),
    "dropout": lambda order: masked(order) | dict(dropout_p=0.25, seed=3),
    "list": lambda order: indexed(order, "list"),
    "product": lambda order: indexed(order, "product"),
    "path": lambda order: indexed(order, "path"),
}


def problem_of(way: str, order: int, dtype: torch.dtype):
    """Inputs of scale 3: of the output, the 16 bits leave out much."""
    problem = random_problem(order, queries=5, lengths=[5] * order, dim=16, **WAYS[way](order))
    problem.inputs = [3 * each for each in problem.inputs]
    if way == "relu":  # logits above 0
        problem.inputs = [each.abs() for each in problem.inputs]
    return problem.to(dtype)


def assert_no_gradient(way: str, order: int, dtype: torch.dtype, function) -> None:
    problem = problem_of(way, order, dtype)
    out, _ = problem.run(function)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    of_logits = torch.autograd.grad(out, problem.inputs, weight)
    for gradient in of_logits[: 1 + order]:
        assert gradient.count_nonzero() == 0, gradient.abs().max().item()
    assert all(gradient.count_nonzero() > 0 for gradient in of_logits[1 + order :])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "plain"])
def test_the_logit_of_a_single_tuple_has_no_gradient(way, order, dtype, kernel):
    functions = SPARSE if "indices" in WAYS[way](order) else DENSE
    assert_no_gradient(way, order, dtype, functions[0 if kernel else 1])


def test_neither_at_other_simd_levels():
    """Of these the emulated tiles round the factors of every product."""
    code = """
from test_single_tuples import *
for way in WAYS:
    for order in ORDERS:
        for dtype in HALVES:
            sparse = "indices" in WAYS[way](order)
            assert_no_gradient(way, order, dtype, (SPARSE if sparse else DENSE)[0])
print("done")
"""
    for names in (["AMX_EMULATED"], ["SCALAR", "EMU128"]):  # compilers differ in the lowest one's
        for level in names:
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                env={
                    **os.environ,
                    "NSIMPLEX_SIMD": level,
                    "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
                },
            )
            if "unavailable SIMD level" not in done.stderr:
                break
        assert done.stdout == "done\n", done.stderr


@pytest.mark.cpu_kernel  # kernels of GPUs leave the rounding there (docs/attention/gpu.md)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("way", ["window", "mask", "product"])
def test_the_gradient_of_lse_is_all_that_is_left(way, order, dtype):
    """As in float64, in which a query of one tuple has lse = logit."""
    ours, exact = (
        problem_of(way, order, kind).outcome(SPARSE[0] if way == "product" else DENSE[0])
        for kind in (dtype, torch.float64)
    )
    for name, expected in exact.items():
        if name == "query" or name.startswith("key"):
            assert relative_error(ours[name], expected) <= 2 * torch.finfo(dtype).eps, name


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("function", [*DENSE, *SPARSE])
def test_a_tuple_with_nearly_all_of_the_weight(dtype, function):
    """What is left for the others is below the rounding of the output, and so is the gradient."""
    options = {}
    if function in SPARSE:
        options = dict(indices=torch.arange(5).expand(1, 1, 5, 5).contiguous(), pattern="product")
    problem = random_problem(2, queries=5, lengths=[5, 5], dim=16, scale=1.0, **options)
    with torch.no_grad():  # logits of 20 to the pair (2, 2) and about 0 to the others
        for each in problem.inputs[:3]:
            each *= 0.1
        problem.inputs[0][..., 0] = 5.0
        for key in problem.inputs[1:3]:
            key[..., 0] = torch.tensor([0.0, 0, 2, 0, 0])
    problem = problem.to(dtype)
    out, _ = problem.run(function)
    gradients = torch.autograd.grad(out, problem.inputs, torch.ones_like(out))
    values = [value[:, :, 2].abs().sum().item() for value in problem.inputs[3:]]
    for gradient in gradients[:3]:
        assert gradient.abs().max() <= 2**-16 * max(values)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_value_that_is_no_number_is_not_hidden(dtype):
    problem = problem_of("window", 1, dtype)
    with torch.no_grad():
        problem.inputs[2][0, 0, 3] = torch.nan
    for function in DENSE:
        out, _ = problem.run(function)
        (gradient,) = torch.autograd.grad(out.sum(), problem.inputs[:1])
        assert gradient[0, 0, 3].isnan().all()


@functools.cache
def simd_level() -> str:
    info = subprocess.run([PREFIX / "bin" / "nsimplex", "info", "--json"], capture_output=True)
    return json.loads(info.stdout)["simd"]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("function", DENSE)
def test_gradients_of_sharp_rows_hold_to_the_bound(order, dtype, function):
    """Beside a plain version whose output is rounded to float32: the bound has no room for an error
    of delta that 16 bits would share.

    Levels that multiply in bfloat16 round the product of a query and its leading keys. A score then
    loses 2^-9 of the length of its terms, which is 3^(order + 1) here.
    """
    rounded = dtype is torch.bfloat16 and order > 1 and "BF16" in simd_level()
    of_scores = 3 ** (order + 1) / 2**9 if rounded and function is nsimplex.attention else 0.0
    options = dict(causal=True, window=[3] * order)
    problem = random_problem(order, queries=64, lengths=[64] * order, dim=32, **options)
    problem.inputs = [3 * each for each in problem.inputs]
    given = problem.to(dtype)
    exact = given.to(torch.float64).outcome(nsimplex.reference)
    plain = given.to(torch.float32).outcome(nsimplex.reference)
    ours = given.outcome(function)
    eps = torch.finfo(dtype).eps
    for name, expected in exact.items():
        limit = 2 * relative_error(plain[name], expected) + 4 * eps * math.sqrt(math.log2(3**order))
        error, limit = relative_error(ours[name], expected), limit + of_scores
        assert error <= limit, f"{name}: {error:.2e} > {limit:.2e}"
