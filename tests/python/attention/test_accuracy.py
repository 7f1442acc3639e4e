"""The values: against the oracle, and against identities that hold exactly."""

import math

import pytest
import torch
from problems import Problem, from_case, naive, random_problem, table

import nsimplex

# For |logit| <= 30, which standard normal inputs keep to.
FORWARD_GATE, GRADIENT_GATE = 2e-5, 1e-4


def relative_error(value, exact):
    scale = exact.norm().item()
    difference = (value.double() - exact).norm().item()
    return difference / scale if scale > 0 else difference


@pytest.mark.parametrize("name", table())
def test_error_is_within_twice_the_reference_s(name):
    case = table()[name]
    problem, dtype = from_case(case)
    exact = problem.to(torch.float64).outcome(nsimplex.reference)
    plain = problem.to(dtype).outcome(nsimplex.reference)
    ours = problem.to(dtype).outcome()
    tuples = max(2, math.prod(key.size(2) for key in problem.inputs[1 : 1 + problem.order]))
    noise = 4 * torch.finfo(dtype).eps * math.sqrt(math.log2(tuples))
    # Gradients come from exp(logit - lse), and lse is held to half an epsilon of its size. Beyond
    # 256 they come from the maximum and the sum.
    held = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    largest = exact["lse"].abs().max().item() if exact["lse"].numel() else 0.0
    lse_noise = 0.5 * held * min(largest, 256)
    for tensor, expected in exact.items():
        limit = 2 * relative_error(plain[tensor], expected) + noise
        if tensor not in ("out", "lse"):
            limit += lse_noise
        if dtype == torch.float32 and case.amplitude <= 1:
            limit = min(limit, FORWARD_GATE if tensor in ("out", "lse") else GRADIENT_GATE)
        error = relative_error(ours[tensor], expected)
        assert error <= limit, f"{tensor}: {error:.2e} > {limit:.2e}"


@pytest.mark.parametrize("amplitude", [1, 3, 5, 10])
@pytest.mark.parametrize("queries, causal", [(256, False), (130, True)])
def test_bf16_is_as_accurate_as_scaled_dot_product_attention(amplitude, queries, causal):
    problem = random_problem(1, heads=4, queries=queries, lengths=[queries], dim=64, causal=causal)
    problem.inputs[:2] = [amplitude * t for t in problem.inputs[:2]]
    problem = problem.to(torch.bfloat16)

    def torchs_own(query, keys, values, **options):
        out = torch.nn.functional.scaled_dot_product_attention(
            query, keys[0], values[0], is_causal=causal
        )
        return out, torch.zeros(out.shape[:-1], requires_grad=True)

    def gradients(function, dtype):
        own = problem.to(dtype)
        out = own.run(function)[0]
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(7)).to(dtype)
        return [out, *torch.autograd.grad(out, own.inputs, weight)]

    exact = gradients(nsimplex.reference, torch.float64)
    theirs, ours = (
        gradients(torchs_own, torch.bfloat16),
        gradients(nsimplex.attention, torch.bfloat16),
    )
    for name, expected, peer, found in zip(["out", "query", "key", "value"], exact, theirs, ours):
        limit = 1.5 * relative_error(peer, expected)
        error = relative_error(found, expected)
        assert error <= limit, f"{name}: {error:.2e} > {limit:.2e}"


WINDOWS = [None, [(3, 0), (5, 1), (2, 2)], [(1, 0), (-1, 2), (4, -1)]]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("reduce", ["product", "sum", "mean"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("padded", [False, True])
def test_reference_is_the_definition(order, causal, reduce, window, padded):
    lengths = [9, 7, 4][:order]
    options = {"causal": causal, "reduce": reduce, "scale": (0.4, 1.7)}
    if window is not None:
        options["window"] = window[:order]
    if padded:
        lengths = [8] * order  # what goes by place then has as many keys as queries
        options["key_lengths"] = torch.tensor([[8, 0, 3], [2, 7, 5], [4, 4, 1]])[:order]
    problem = random_problem(
        order, batch=3, heads=4, kv_heads=2, queries=8, lengths=lengths, value_dim=3, **options
    ).to(torch.float64)
    expected = problem.outcome(naive)
    for name, value in problem.outcome(nsimplex.reference).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-11, atol=1e-12)


def test_tiles_of_leading_tuples_merge_exactly():
    """One query with more tuples than a tile holds: the axes are cut and partial results merged."""
    problem = random_problem(3, heads=1, queries=2, lengths=[70, 90, 400], dim=3).to(torch.float64)
    expected = problem.outcome(naive)
    for name, value in problem.outcome(nsimplex.reference).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_order_one_is_scaled_dot_product_attention(dtype):
    problem = random_problem(1, batch=2, heads=4, queries=33, lengths=[33], dim=16, causal=True)
    query, key, value = problem.to(dtype).inputs
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    out = nsimplex.attention(query, [key], [value], causal=True)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("length", [5, 200])
def test_additive_logits_factor_over_the_axes(order, length):
    """Lemma: where e_iJ = sum_m e^(m)_{i j_m}, o = prod_m softmax(e^(m)) V^(m), whatever the size.

    Keys made of one-hot channels: channel m of axis m holds e^(m), all other axes hold 1 there.
    """
    generator = torch.Generator().manual_seed(1)
    scores = [torch.randn(1, 1, length, generator=generator) for _ in range(order)]
    values = [torch.randn(1, 1, length, 8, generator=generator) for _ in range(order)]
    keys = []
    for m in range(order):
        key = torch.ones(1, 1, length, order)
        key[..., m] = scores[m]
        keys.append(key)
    query = torch.ones(1, 1, 1, order)
    out = nsimplex.attention(query, keys, values, scale=1.0, window=None)
    expected = torch.ones(1, 1, 1, 8, dtype=torch.float64)
    for score, value in zip(scores, values):
        expected = expected * (score.double().softmax(-1).unsqueeze(-2) @ value.double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("reduce", ["product", "sum"])
def test_axes_can_be_exchanged_with_their_values_and_windows(reduce):
    problem = random_problem(3, queries=20, lengths=[20, 14, 17], dim=8, dtype=torch.float32)
    query, k1, k2, k3, v1, v2, v3 = problem.inputs
    one = nsimplex.attention(
        query, [k1, k2, k3], [v1, v2, v3], reduce=reduce, window=[4, (6, 2), -1]
    )
    other = nsimplex.attention(
        query, [k3, k1, k2], [v3, v1, v2], reduce=reduce, window=[-1, 4, (6, 2)]
    )
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_disjoint_sets_of_tuples_merge_by_their_lse():
    problem = random_problem(2, queries=9, lengths=[30, 40], dim=8, dtype=torch.float32)
    query, k1, k2, v1, v2 = problem.inputs
    whole, whole_lse = problem.run()
    parts = [
        nsimplex.attention(query, [k1[:, :, a:b], k2], [v1[:, :, a:b], v2], return_lse=True)
        for a, b in ((0, 11), (11, 30))
    ]
    lse = torch.logaddexp(parts[0][1], parts[1][1])
    merged = sum((part_lse - lse).exp().unsqueeze(-1) * out for out, part_lse in parts)
    torch.testing.assert_close(lse, whole_lse, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(merged, whole, rtol=1e-4, atol=1e-5)


def test_uniform_weights_average_integers_exactly():
    """Zero logits weigh 16 x 16 tuples by 1/256, a power of two: nothing is rounded."""
    generator = torch.Generator().manual_seed(3)
    values = [torch.randint(-4, 5, (1, 1, 16, 4), generator=generator).float() for _ in range(2)]
    query, key = torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 16, 4)
    out, lse = nsimplex.attention(query, [key, key], values, return_lse=True)
    expected = values[0].mean(2, keepdim=True) * values[1].mean(2, keepdim=True)
    torch.testing.assert_close(out, expected.expand_as(out), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(lse, torch.full_like(lse, math.log(256)), rtol=1e-6, atol=0)


def test_unit_scale_is_what_the_docstring_says():
    problem = random_problem(3, dim=4, value_dim=9, queries=5)
    for reduce, s2 in (("product", 9**-1.0), ("sum", 1 / 3), ("mean", 1.0)):
        unit, explicit = (
            Problem(problem.inputs, {"reduce": reduce, "scale": scale}).run()[0]
            for scale in ("unit", (4**-2.0, s2))
        )
        torch.testing.assert_close(unit, explicit, rtol=1e-12, atol=0)
