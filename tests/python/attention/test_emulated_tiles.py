"""bf16 by matrix tiles, which tests run in plain C++: the level AMX_EMULATED, against fp64.

A process chooses its level once, so one subprocess runs every case and prints what it found.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess

import pytest
import torch
from lists import masked, sparse_problem
from problems import Problem, naive, random_problem
from test_accuracy import relative_error
from test_kernel_options import run_script
from test_kv_cache import decode, one_shot
from test_kv_cache import problem as cached_problem
from test_large_masks import assert_as_defined, masked_problem

import nsimplex

BF16 = torch.bfloat16
LEVEL = "AMX_EMULATED"
LENGTHS = {1: [97], 2: [9, 70], 3: [3, 5, 40]}
#: Relative errors of outputs and gradients for moderate logits: bf16 has 2^-9.
OF_OUTPUTS, OF_GRADIENTS = 2.0**-7, 2.0**-6
#: The output of one query alone, which may be small beside its terms.
OF_ROWS = 2.0**-6


def check(problem: Problem, of_outputs=OF_OUTPUTS, of_gradients=OF_GRADIENTS) -> None:
    """That every result is as fp64 has it from the same bf16 numbers."""
    problem = problem.to(BF16)
    exact = problem.to(torch.float64).outcome(naive)
    for name, found in problem.outcome().items():
        error = relative_error(found, exact[name])
        limit = of_outputs if name in ("out", "lse") else of_gradients
        assert error <= limit, f"{name}: {error:.1e} > {limit:.1e}"


def shaped(order: int, **options) -> Problem:
    lengths = options.pop("lengths", LENGTHS[order])
    sizes = dict(heads=4, kv_heads=2, queries=19, lengths=lengths, dim=40, value_dim=24)
    return random_problem(order, **sizes, **options)


def large_masks(order: int) -> None:
    assert_as_defined(masked_problem(order, dtype=BF16), BF16, nsimplex.attention)


def large_masks_and_more(order: int) -> None:
    for options in (dict(dropout_p=0.3, seed=5), dict(normalizer="sigmoid")):
        problem = masked_problem(order, dtype=BF16, **options)
        assert_as_defined(problem, BF16, nsimplex.attention, (OF_ROWS, OF_GRADIENTS))


def scaled(order: int, times: float) -> None:
    """Where a query meets leading keys, their product is rounded, so that scores err in proportion
    to their size (docs/numerics.md)."""
    rounded = 0.0 if order == 1 else times * 2.0**-8
    scale = times / 40**0.5
    check(shaped(order, scale=(scale, 1.0)), OF_OUTPUTS + rounded, OF_GRADIENTS + rounded)


def windows(order: int) -> None:
    same = [90, 30, 19][order - 1]
    window = [(same // 3, 0), (7, 2), (3, 4)][:order]
    for causal in (False, True):
        problem = random_problem(
            order, heads=4, kv_heads=1, queries=same, lengths=[same] * order, dim=33
        )
        problem.options = dict(causal=causal, window=window)
        check(problem)


def dropout(order: int) -> None:
    problem = shaped(order)
    problem.options = dict(dropout_p=0.3, seed=11)
    check(problem)


def options(order: int) -> None:
    check(shaped(order, normalizer="sigmoid", reduce="sum"))
    # A score that is rounded to the other side of 0 gets or loses a slope of 1.
    check(shaped(order, normalizer="relu"), of_gradients=4 * OF_GRADIENTS)
    sink = torch.randn(4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    check(shaped(order, normalizer="softmax_sink", sink=sink.float()))


def chosen_keys(order: int) -> None:
    """Sets of keys below, at and beyond one panel, for heads that share them."""
    for size in (9, 64, 70) if order < 3 else (5, 12):
        sizes = dict(queries=9, size=size, lengths=[size + 11] * order, dim=40, value_dim=24)
        problem, mask = sparse_problem("product", order, batch=1, heads=8, kv_heads=1, **sizes)
        exact = masked(problem.to(BF16), mask).to(torch.float64).outcome(nsimplex.reference)
        for name, found in problem.to(BF16).outcome(nsimplex.sparse_attention).items():
            error = relative_error(found, exact[name])
            limit = OF_OUTPUTS if name in ("out", "lse") else OF_GRADIENTS
            assert error <= limit, f"{size} keys, {name}: {error:.1e} > {limit:.1e}"


def one_token_at_a_time(order: int) -> None:
    window = [(40,), (5, 40), (2, 3, 12)][order - 1]
    query, keys, values = cached_problem(order, 45, dim=32, value_dim=32, dtype=BF16)
    exact = one_shot(
        query.double(), [k.double() for k in keys], [v.double() for v in values], window
    )
    for cuts in (range(46), [0, 30, 31, 45]):
        cache = nsimplex.KeyValueCache(window)
        for found, expected in zip(decode(cache, query, keys, values, cuts), exact):
            error = relative_error(found, expected)
            assert error <= OF_OUTPUTS, f"{error:.1e}"


def threads(order: int) -> None:
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(shaped(order).to(BF16).outcome())
    for name, of_three in results[2].items():
        assert torch.equal(of_three, results[0][name]), name
        assert torch.equal(of_three, results[1][name]), name


CASES = {
    f"{check.__name__}, order {order}": functools.partial(check, order)
    for check in (
        *(large_masks, large_masks_and_more, windows, dropout, options),
        *(chosen_keys, one_token_at_a_time, threads),
    )
    for order in (1, 2, 3)
} | {
    f"{times} times the scale, order {order}": functools.partial(scaled, order, times)
    for order, times in itertools.product((1, 2, 3), (1, 3, 10))
}


def run_all() -> None:
    """In the subprocess: one JSON object, an empty string for every case that holds."""
    said = {}
    for name, case in CASES.items():
        said[name] = ""
        try:
            case()
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    print("\n" + json.dumps(said))


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    code = "import test_emulated_tiles; test_emulated_tiles.run_all()"
    try:
        text = run_script(code, NSIMPLEX_SIMD=LEVEL, NSIMPLEX_WARN_FALLBACK="1")
    except subprocess.CalledProcessError as error:
        pytest.fail(error.stdout)
    if "unavailable SIMD level" in text:
        pytest.skip("the emulated tiles need AVX2")
    assert "fallback" not in text and "reference version" not in text, text
    return json.loads(text.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_tiles(said, name):
    assert said[name] == ""


def test_the_level_is_the_emulated_one(said):
    code = """
import torch, nsimplex
q, k, v = torch.randn(3, 1, 1, 40, 32, dtype=torch.bfloat16)
nsimplex.attention(q, [k, k], [v, v])
"""
    assert f"simd={LEVEL}" in run_script(code, NSIMPLEX_SIMD=LEVEL, NSIMPLEX_PLAN="1")
