"""Rows of ones: lower orders in the same softmax, against the definition with the rows spelled
out."""

import pytest
import torch
from problems import random_problem
from torch.autograd import gradcheck, gradgradcheck

import nsimplex

CASES = [(1, [0]), (2, [1]), (2, [0]), (2, [0, 1]), (3, [1, 2]), (3, [2]), (3, [2, 0])]


def brute(
    query,
    keys,
    values,
    *,
    augment,
    causal=False,
    window=None,
    reduce="product",
    scale=(0.6, 1.2),
    key_lengths=None,
    key_masks=None,
    normalizer="softmax",
    sink=None,
    distinct="none",
    order_bias=None,
    return_lse=True,
):
    """Every tuple of keys and ones rows at once."""
    order, queries = len(keys), query.size(2)
    groups = query.size(1) // keys[0].size(1)
    letters = "uvwxyz"[:order]
    rows, row_values, seen, real = [], [], [], []
    for m, (key, value) in enumerate(zip(keys, values)):
        length = key.size(2)
        position = torch.arange(queries)[:, None] + length - queries
        index = torch.arange(length)[None, :]
        visible = torch.ones(query.size(0), queries, length, dtype=torch.bool)
        left, right = (-1, -1) if window is None else window[m]
        visible &= (index > position - left) if left >= 0 else True
        visible &= (index <= position + right) if right >= 0 else True
        visible &= (index <= position) if causal else True
        if key_lengths is not None:
            visible &= index < key_lengths[m][:, None, None]
        if key_masks is not None:
            visible &= key_masks[m][:, None]
        is_real = torch.ones(length, dtype=torch.bool)
        if m in augment:
            key = torch.cat([key, torch.ones_like(key[:, :, :1])], 2)
            neutral = torch.ones_like if reduce == "product" else torch.zeros_like
            value = torch.cat([value, neutral(value[:, :, :1])], 2)
            visible = torch.cat([visible, torch.ones_like(visible[..., :1])], -1)
            is_real = torch.cat([is_real, torch.zeros(1, dtype=torch.bool)])
        rows.append(key.repeat_interleave(groups, 1))
        row_values.append(value.repeat_interleave(groups, 1))
        shape = [visible.size(0), 1, queries] + [1] * order
        shape[3 + m] = visible.size(2)
        seen.append(visible.view(shape))
        shape[0] = shape[2] = 1
        real.append(is_real.view(shape))
    operands = ",".join(f"bh{axis}d" for axis in letters)
    logits = scale[0] * torch.einsum(f"bhtd,{operands}->bht{letters}", query, *rows)
    admissible = torch.stack([m.expand(logits.shape) for m in seen]).all(0)
    count = sum(m.long() for m in real)
    if order_bias is not None:
        rows = torch.cat([order_bias.new_zeros(1, order_bias.size(1)), order_bias])
        per_head = rows[count.expand(1, 1, *logits.shape[2:])].movedim(-1, 1).squeeze(2)
        logits = logits + per_head
    admissible = admissible & (count > 0)
    if distinct == "axes":
        for m in range(order):
            for n in range(m):
                shape = [
                    torch.arange(r.size(2)).view([-1 if a == p else 1 for a in range(order)])
                    for p, r in ((m, rows[m]), (n, rows[n]))
                ]
                same = (shape[0] == shape[1]) & real[m][0, 0, 0] & real[n][0, 0, 0]
                admissible = admissible & ~same
    if normalizer in ("softmax", "softmax_sink"):
        masked = logits.masked_fill(~admissible, -torch.inf)
        empty = ~admissible.flatten(3).any(-1)
        flat = masked.flatten(3)
        if sink is not None:
            flat = torch.cat([flat, sink.view(1, -1, 1, 1).expand(*flat.shape[:3], 1)], -1)
        lse = flat.logsumexp(-1).masked_fill(empty, -torch.inf)
        weights = (masked - lse.masked_fill(empty, 0).view(*lse.shape, *[1] * order)).exp()
    else:
        raw = logits.sigmoid() if normalizer == "sigmoid" else logits.relu()
        weights = raw * admissible
        total = weights.flatten(3).sum(-1)
        if normalizer == "relu":
            lse = total.log()
            weights = weights / total.view(*lse.shape, *[1] * order)
        else:
            lse = 0 * total
    if reduce == "product":
        out = torch.einsum(f"bht{letters},{operands}->bhtd", weights, *row_values)
    else:
        weights = weights / count.clamp(min=1) if reduce == "mean" else weights
        out = sum(
            torch.einsum(f"bht{letters},bh{axis}d->bhtd", weights, value)
            for axis, value in zip(letters, row_values)
        )
    return scale[1] * out, lse


def problem_of(order, augment, lengths=(6, 5, 4), **options):
    shape = dict(
        batch=2, heads=4, kv_heads=2, queries=5, lengths=[*lengths][:order], dim=3, value_dim=2
    )
    return random_problem(order, **shape, augment=augment, scale=(0.6, 1.2), **options).to(
        torch.float64
    )


def agree(problem, function=nsimplex.attention, tolerance=None):
    exact = problem.to(torch.float64).outcome(brute)
    for name, ours in problem.outcome(function).items():
        tolerances = {} if tolerance is None else dict(rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(
            ours.double(), exact[name], msg=lambda t: f"{name}: {t}", **tolerances
        )


@pytest.mark.parametrize("order, augment", CASES)
@pytest.mark.parametrize("reduce", ["product", "sum", "mean"])
def test_definition(order, augment, reduce):
    problem = problem_of(order, augment, reduce=reduce)
    agree(problem)
    agree(problem, nsimplex.reference)
    agree(problem.to(torch.float32), tolerance=1e-4)


@pytest.mark.parametrize("order, augment", CASES)
def test_ones_rows_ignore_what_masks_keys(order, augment):
    lengths = torch.tensor([[0, 3], [5, 0], [2, 4]])[:order]
    places = dict(causal=True, window=[(2, 0)] * order, lengths=[5] * order)
    agree(problem_of(order, augment, key_lengths=lengths, **places))
    masks = [torch.rand(2, t, generator=torch.Generator().manual_seed(3)) < 0.5 for t in (6, 5, 4)]
    agree(problem_of(order, augment, key_masks=masks[:order], window=[(3, 2)] * order))


@pytest.mark.parametrize("normalizer", ["softmax_sink", "sigmoid", "relu"])
@pytest.mark.parametrize("order, augment", [(2, [1]), (3, [0, 2])])
def test_normalisers(order, augment, normalizer):
    options = (
        {"sink": torch.tensor([0.3, -1.0, 2.0, 0.0], dtype=torch.float64)}
        if normalizer == "softmax_sink"
        else {}
    )
    problem = problem_of(order, augment, normalizer=normalizer, **options)
    agree(problem)
    agree(problem.to(torch.float32), tolerance=1e-4)


def test_sink_has_its_gradient():
    grads = []
    for function in (nsimplex.attention, nsimplex.reference, brute):
        sink = torch.tensor([0.3, -1.0, 2.0, 0.0], dtype=torch.float64, requires_grad=True)
        problem = problem_of(2, [1], normalizer="softmax_sink", sink=sink)
        out, lse = problem.run(function)
        grads.append(torch.autograd.grad(out.square().sum() + lse.sum(), sink)[0])
    torch.testing.assert_close(grads[0], grads[2])
    torch.testing.assert_close(grads[1], grads[2])


def test_distinct_speaks_of_real_keys():
    agree(problem_of(3, [1, 2], distinct="axes"))


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


BIAS = torch.tensor([[0.4, -1.0, 2.0, 0.0], [-3.0, 0.5, 0.1, -0.2], [1.0, -2.0, 0.3, 0.0]]).double()


@pytest.mark.parametrize("order, augment", CASES)
@pytest.mark.parametrize("sink", [False, True])
def test_bias_of_orders(order, augment, sink):
    """Added to the logits of all tuples of as many keys, with a gradient of its own."""
    problem = problem_of(order, augment, causal=True, lengths=[5] * order)
    problem.learned["order_bias"] = BIAS[:order].clone().requires_grad_()
    if sink:
        problem.options["normalizer"] = "softmax_sink"
        problem.learned["sink"] = torch.tensor([0.3, -1.0, 2.0, 0.0]).double().requires_grad_()
    agree(problem)
    agree(problem, nsimplex.reference)
    agree(problem.to(torch.float32), tolerance=1e-4)
    with torch.no_grad():
        for ours, expected in zip(problem.run(), problem.run(brute)):
            torch.testing.assert_close(ours, expected)


def test_bias_of_orders_differentiates_and_transforms():
    problem = random_problem(2, heads=2, queries=2, lengths=[2, 3], dim=2, augment=[1])
    problem = problem.to(torch.float64)

    def function(bias, query, *rest):
        return nsimplex.attention(
            query, rest[:2], rest[2:], return_lse=True, augment=[1], order_bias=bias
        )

    inputs = (BIAS[:2, :2].clone().requires_grad_(), *problem.inputs)
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for ours, expected in zip(compiled(*inputs), function(*inputs)):
        torch.testing.assert_close(ours, expected)


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


def function_of(problem):
    n = problem.order
    return lambda query, *rest: nsimplex.attention(
        query, rest[:n], rest[n:], return_lse=True, **problem.options
    )


@pytest.mark.parametrize("order, augment", [(1, [0]), (2, [1]), (3, [1, 2])])
def test_derivatives_and_transforms(order, augment):
    problem = random_problem(
        order, heads=1, queries=2, lengths=[2, 3, 2][:order], dim=2, augment=augment
    ).to(torch.float64)
    function = function_of(problem)
    assert gradcheck(function, problem.inputs, check_forward_ad=True)
    assert gradgradcheck(function, problem.inputs)
    stacked = [torch.stack([t, 2 * t]).detach() for t in problem.inputs]
    for i, results in enumerate(zip(*torch.vmap(function)(*stacked))):
        for ours, expected in zip(results, function(*(t[i] for t in stacked))):
            torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize(
    "dtype, inside",
    [(torch.float32, False), pytest.param(torch.float64, True, marks=pytest.mark.slow)],
)
def test_opcheck(dtype, inside):
    problem = problem_of(2, [1]).to(dtype)
    inputs = [
        t.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() if inside else t
        for t in problem.inputs
    ]
    query, keys, values = inputs[0], inputs[1:3], inputs[3:]
    options = {"augment": [1], "window": [3, 0, 2, 1]}
    torch.library.opcheck(torch.ops.nsimplex.attention.default, (query, keys, values), options)
    with torch.no_grad():
        out, lse = torch.ops.nsimplex.attention(query, keys, values, **options)
    mask = [True, False, True, True, False, False, False]
    torch.library.opcheck(
        torch.ops.nsimplex.attention_backward.default,
        (query, keys, values, out, lse, out, lse, mask),
        options,
    )


def test_compile_with_dynamic_lengths():
    def step(query, k1, k2, v1, v2):
        return (
            nsimplex.attention(query, [k1, k2], [v1, v2], augment=True, causal=True).square().sum()
        )

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for queries in (6, 9):
        problem = random_problem(2, queries=queries, lengths=[queries] * 2).to(torch.float32)
        ours, expected = (
            torch.autograd.grad(f(*problem.inputs), problem.inputs) for f in (compiled, step)
        )
        for a, b in zip(ours, expected):
            torch.testing.assert_close(a, b)


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
