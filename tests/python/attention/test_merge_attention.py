"""Merging partial results: exact for disjoint sets of tuples, and differentiable like the whole."""

import pytest
import torch
from problems import naive, random_problem

import nsimplex


def of_blocks(query, keys, values, cuts, attention=nsimplex.reference):
    """Attention as the merge over all combinations of blocks of the axes in ``cuts`` {axis:
    size}."""
    parts = [(list(keys), list(values))]
    for axis, size in cuts.items():
        split = []
        for part_keys, part_values in parts:
            for key, value in zip(part_keys[axis].split(size, 2), part_values[axis].split(size, 2)):
                block_keys, block_values = list(part_keys), list(part_values)
                block_keys[axis], block_values[axis] = key, value
                split.append((block_keys, block_values))
        parts = split
    results = [attention(query, k, v, return_lse=True) for k, v in parts]
    return nsimplex.merge(*zip(*results))


@pytest.mark.parametrize(
    "order, cuts", [(1, {0: 2}), (2, {1: 3}), (2, {0: 2, 1: 4}), (3, {0: 3, 2: 2})]
)
def test_blocks_of_keys_merge_to_the_whole(order, cuts):
    problem = random_problem(order, heads=4, kv_heads=2, queries=5).to(torch.float64)
    query, keys, values = (
        problem.inputs[0],
        problem.inputs[1 : 1 + order],
        problem.inputs[1 + order :],
    )
    whole, parts = naive(query, keys, values), of_blocks(query, keys, values, cuts)
    for ours, exact in zip(parts, whole):
        torch.testing.assert_close(ours, exact)
    weights = [torch.randn_like(t) for t in whole]
    ours, exact = (
        torch.autograd.grad(result, problem.inputs, weights) for result in (parts, whole)
    )
    for a, b in zip(ours, exact):
        torch.testing.assert_close(a, b)


def test_extreme_normalisers_and_rows_without_tuples():
    inf = float("inf")
    lses = [
        torch.tensor([1e4, -1e4, -inf, -inf, 88.0]),
        torch.tensor([-1e4, -1e4, 3.0, -inf, 89.0]),
    ]
    outs = [torch.full((5, 2), float(p)) for p in (1, 3)]
    lses = [lse.requires_grad_() for lse in lses]
    outs = [
        out.masked_fill(lse.isneginf()[:, None], 0).requires_grad_() for out, lse in zip(outs, lses)
    ]
    out, lse = nsimplex.merge(outs, lses)
    weight = torch.tensor([0.0, 0.5, 1.0, 0.0, torch.e / (1 + torch.e)])
    torch.testing.assert_close(
        out[:, 0], torch.tensor([1.0, 1, 3, 0, 1]) + weight * torch.tensor([0, 2, 0, 0, 2])
    )
    torch.testing.assert_close(lse, torch.stack(lses).logsumexp(0))
    (out.sum() + lse.masked_fill(lse.isneginf(), 0).sum()).backward()
    for part in range(2):
        assert lses[part].grad.isfinite().all() and outs[part].grad.isfinite().all()
        assert lses[part].grad[3] == 0 and not outs[part].grad[3].any()


def test_low_precision_and_memory_order():
    outs = [torch.randn(2, 5, 3, 8).bfloat16().transpose(1, 2) for _ in range(2)]
    lses = [torch.randn(2, 3, 5) for _ in range(2)]
    out, lse = nsimplex.merge(outs, lses)
    assert out.dtype == torch.bfloat16 and lse.dtype == torch.float32
    assert out.stride() == outs[0].stride()
    exact, _ = nsimplex.merge([t.double() for t in outs], [t.double() for t in lses])
    assert (out.double() - exact).abs().max() <= exact.abs().max() * 2**-8


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda o, s: ([], []), ValueError, "outs: expected at least one part, got none"),
        (lambda o, s: (o, s[:1]), ValueError, "lses: expected 2, one for each of outs, got 1"),
        (
            lambda o, s: ([o[0], o[1][:1]], s),
            ValueError,
            r"outs\[1\]: expected shape \[2, 3\], got",
        ),
        (lambda o, s: (o, [s[0], s[1][:1]]), ValueError, r"lses\[1\]: expected shape \[2\], got"),
        (
            lambda o, s: (o, [t.half() for t in s]),
            TypeError,
            "expected float32 or float64, got Half",
        ),
        (
            lambda o, s: ([o[0], o[1].half()], s),
            TypeError,
            r"outs\[1\]: expected dtype Float, got Half",
        ),
    ],
)
def test_errors(change, error, words):
    with pytest.raises(error, match=rf"^\[merge\] .*{words}"):
        nsimplex.merge(*change([torch.zeros(2, 3)] * 2, [torch.zeros(2)] * 2))
