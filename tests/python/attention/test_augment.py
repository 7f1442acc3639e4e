"""Rows of ones: lower orders in the same softmax. The option table compares them with the
definition."""

import pytest
import torch
from problems import random_problem

import nsimplex


def problem_of(order, augment, lengths=(6, 5, 4), **options):
    shape = dict(
        batch=2, heads=4, kv_heads=2, queries=5, lengths=[*lengths][:order], dim=3, value_dim=2
    )
    return random_problem(order, **shape, augment=augment, scale=(0.6, 1.2), **options).to(
        torch.float64
    )


def test_orders_of_one_softmax_by_hand():
    """Order 2 with ones rows on the second axis: the tuples of order 2 and of order 1, merged."""
    problem = problem_of(2, [1])
    query, k1, k2, v1, v2 = problem.inputs
    parts = [
        nsimplex.attention(query, keys, values, scale=(0.6, 1.2), return_lse=True)
        for keys, values in (([k1, k2], [v1, v2]), ([k1], [v1]))
    ]
    for ours, exact in zip(problem.run(), nsimplex.merge(*zip(*parts))):
        torch.testing.assert_close(ours, exact)
    problem.options["augment"] = True  # the same: axes 2..N
    torch.testing.assert_close(problem.run()[0], nsimplex.merge(*zip(*parts))[0])
    for nothing in (False, None, []):
        problem.options["augment"] = nothing
        torch.testing.assert_close(problem.run()[0], parts[0][0])


def test_a_low_bias_removes_an_order():
    """The call computes what order 1 computes, before the tuples of order 2 have learned."""
    problem = problem_of(2, [1], lengths=[5, 5], causal=True)
    query, k1, _, v1, _ = problem.inputs
    low = torch.tensor([[0.0] * 4, [-60.0] * 4], requires_grad=True)
    ours = problem.run(lambda *a, **o: nsimplex.attention(*a, **o, order_bias=low))
    alone = nsimplex.attention(query, [k1], [v1], causal=True, scale=(0.6, 1.2), return_lse=True)
    for one, other in zip(ours, alone):
        torch.testing.assert_close(one, other)
    removed = torch.tensor([[0.0] * 4, [-torch.inf] * 4])
    ours = problem.run(lambda *a, **o: nsimplex.attention(*a, **o, order_bias=removed))
    for one, other in zip(ours, alone):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(augment=None), r"order_bias: .*, expected augment$"),
        (dict(normalizer="relu"), r"order_bias: expected normalizer 'softmax' or .*, got 'relu'$"),
        (dict(order_bias=torch.zeros(2, 3)), r"order_bias: expected shape \[2, 4\], got \[2, 3\]$"),
    ],
)
def test_wrong_biases_are_refused(options, message):
    problem = problem_of(2, [1])
    problem.options |= dict(order_bias=torch.zeros(2, 4)) | options
    with pytest.raises(ValueError, match=message):
        problem.run()


def test_dropout_draws_for_every_order_by_itself():
    """With uniform weights and values of one, out counts the kept tuples."""
    query, key = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 40, 2)
    value = torch.ones(1, 1, 40, 2)

    def run(seed, augment):
        return nsimplex.attention(
            query, [key, key], [value, value], augment=augment, dropout_p=0.5, seed=seed
        ).flatten()[0]

    assert run(1, [1]) == run(1, [1]) and run(1, [1]) != run(2, [1])
    mean = torch.stack([run(seed, [0, 1]) for seed in range(20)]).mean()
    assert abs(mean - 1) < 0.02  # 20 times 1680 tuples
    # The tuples of order 1 on either axis look alike, and yet are not dropped together.
    lone = [
        nsimplex.attention(
            query,
            [key[:, :, :0], key],
            [value[:, :, :0], value],
            augment=[0],
            dropout_p=0.5,
            seed=seed,
        )
        for seed in range(8)
    ]
    other = [
        nsimplex.attention(
            query,
            [key, key[:, :, :0]],
            [value, value[:, :, :0]],
            augment=[1],
            dropout_p=0.5,
            seed=seed,
        )
        for seed in range(8)
    ]
    assert any(not torch.equal(a, b) for a, b in zip(lone, other))


def test_flops_are_those_of_every_order():
    from torch.utils.flop_counter import FlopCounterMode

    problem = random_problem(2, queries=20, lengths=[20, 20], dim=8, augment=[1], window=[3, 5]).to(
        torch.float32
    )
    with FlopCounterMode(display=False) as counter:
        out, _ = problem.run()
    rows = [(min(i + 1, 3), min(i + 1, 5)) for i in range(20)]
    forward = 2 * (8 + 8) * 2 * sum(a * b + a for a, b in rows)
    assert counter.get_total_flops() == forward
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert counter.get_total_flops() == 3 * forward
