"""Identities that hold whatever the numbers: one thing said in two ways."""

import itertools

import pytest
import torch
from problems import Problem, random_problem

import nsimplex

BOTH = pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 2e-5)])
NORMALIZERS = ["softmax", "softmax_sink", "sigmoid", "relu"]
SINK = torch.tensor([0.3, -1.0])


def with_normalizer(name):
    return {"normalizer": name} | ({"sink": SINK} if name == "softmax_sink" else {})


def assert_same(one, other, tolerance):
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=tolerance, atol=tolerance, msg=name)


def outcome(problem, dtype, **options):
    return Problem(problem.inputs, options).to(dtype).outcome()


def interval(queries, keys, left, right):
    position = torch.arange(queries)[:, None] + keys - queries
    index = torch.arange(keys)[None, :]
    return (index > position - left) & (index <= position + right)


@BOTH
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_one_mask_said_in_many_ways(normalizer, dtype, tolerance):
    """Windows, lengths, key masks and documents are boolean masks; those are additive ones of
    -inf."""
    problem = random_problem(2, batch=2, queries=12, lengths=[12, 12])
    both = lambda a, b: a.unsqueeze(-1) & b.unsqueeze(-2)
    lengths = torch.tensor([[12, 7], [9, 12]])
    valid = torch.arange(12) < lengths.unsqueeze(-1)  # [axis, batch, T]
    padding = both(valid[0], valid[1])[:, None, None]
    document = torch.tensor([0] * 5 + [1] * 3 + [2] * 4)
    together = document[:, None] == document
    index = torch.arange(12)
    ways = {
        "window": (
            dict(window=[(3, 2), (5, 0)]),
            both(interval(12, 12, 3, 2), interval(12, 12, 5, 0)),
        ),
        "lengths": (dict(key_lengths=lengths), padding),
        "key masks": (dict(key_masks=[valid[0], valid[1]]), padding),
        "documents": (dict(cu_seqlens=torch.tensor([0, 5, 8, 12])), both(together, together)),
        "distinct": (dict(distinct="axes"), (index[:, None] != index)[None, None, None]),
        "no loops": (
            dict(distinct="with_query"),
            both(index[:, None] != index, index[:, None] != index) & (index[:, None] != index),
        ),
    }
    without = outcome(problem, dtype, **with_normalizer(normalizer))
    for options, mask in ways.values():
        options = options | with_normalizer(normalizer)
        said = outcome(problem, dtype, **options)
        boolean = outcome(problem, dtype, mask=mask, **with_normalizer(normalizer))
        additive = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -torch.inf)
        assert_same(said, boolean, tolerance)
        assert_same(
            said, outcome(problem, dtype, mask=additive, **with_normalizer(normalizer)), tolerance
        )
        assert not torch.allclose(said["out"], without["out"], atol=1e-3)


@BOTH
@pytest.mark.parametrize("order", [1, 2, 3])
def test_packed_documents_are_documents_one_by_one(order, dtype, tolerance):
    bounds = [0, 7, 8, 8, 31, 40]
    options = dict(causal=order != 2, window=[(5, 2), (20, -1), (4, 1)][:order])
    problem = random_problem(order, batch=2, heads=4, kv_heads=2, queries=40, lengths=[40] * order)
    problem = problem.to(dtype)
    packed = Problem(problem.inputs, options | {"cu_seqlens": torch.tensor(bounds)})
    out, lse = packed.run()
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(4)).to(dtype)
    grads = torch.autograd.grad((out * weights).sum() + lse.sum(), problem.inputs)
    for begin, end in itertools.pairwise(bounds):
        part = Problem(
            [t.detach()[:, :, begin:end].requires_grad_() for t in problem.inputs], options
        )
        part_out, part_lse = part.run()
        torch.testing.assert_close(out[:, :, begin:end], part_out, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(lse[:, :, begin:end], part_lse, rtol=tolerance, atol=tolerance)
        loss = (part_out * weights[:, :, begin:end]).sum() + part_lse.sum()
        for whole, own in zip(grads, torch.autograd.grad(loss, part.inputs)):
            torch.testing.assert_close(
                whole[:, :, begin:end], own, rtol=tolerance, atol=10 * tolerance
            )


@BOTH
@pytest.mark.parametrize("form", ["product", "determinant"])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_keys_can_be_permuted_with_their_values_and_masks(form, normalizer, dtype, tolerance):
    problem = random_problem(2, queries=9, lengths=[13, 8], dim=6).to(dtype)
    query, k1, k2, v1, v2 = problem.inputs
    generator = torch.Generator().manual_seed(5)
    order = torch.randperm(13, generator=generator)
    valid = [torch.rand(1, n, generator=generator) > 0.3 for n in (13, 8)]
    options = with_normalizer(normalizer) | {"form": form, "return_lse": True}
    one = nsimplex.attention(query, [k1, k2], [v1, v2], key_masks=valid, **options)
    other = nsimplex.attention(
        query,
        [k1[:, :, order], k2],
        [v1[:, :, order], v2],
        key_masks=[valid[0][:, order], valid[1]],
        **options,
    )
    for a, b in zip(one, other):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@BOTH
def test_exchanged_axes_turn_the_sign_of_the_determinant(dtype, tolerance):
    query, k1, k2, k3, v1, v2, v3 = random_problem(3, queries=7, dim=8).to(dtype).inputs
    run = lambda keys, values, s1: nsimplex.attention(
        query, keys, values, form="determinant", scale=s1, return_lse=True
    )
    straight = run([k1, k2, k3], [v1, v2, v3], 0.4)
    swapped = run([k3, k2, k1], [v3, v2, v1], -0.4)
    cycled = run([k2, k3, k1], [v2, v3, v1], 0.4)
    for other in (swapped, cycled):
        for a, b in zip(straight, other):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    unsigned = run([k3, k2, k1], [v3, v2, v1], 0.4)
    assert not torch.allclose(straight[0], unsigned[0], atol=1e-3)


@BOTH
@pytest.mark.parametrize("order", [1, 2, 3])
def test_determinants_are_invariant_under_a_common_rotation(order, dtype, tolerance):
    chunk = order + 1
    problem = random_problem(order, queries=6, dim=3 * chunk).to(dtype)
    generator = torch.Generator().manual_seed(2)
    turns, _ = torch.linalg.qr(
        torch.randn(3, chunk, chunk, generator=generator, dtype=torch.float64)
    )
    turns[:, 0] *= torch.linalg.det(turns).sign().unsqueeze(-1)  # one rotation for each chunk
    turn = lambda t: torch.einsum(
        "bhtcp,cqp->bhtcq", t.unflatten(-1, (3, chunk)), turns.to(dtype)
    ).flatten(-2)
    turned = [turn(t) for t in problem.inputs[: 1 + order]] + problem.inputs[1 + order :]
    one = Problem(problem.inputs, {"form": "determinant"}).run()
    for a, b in zip(one, Problem(turned, {"form": "determinant"}).run()):
        torch.testing.assert_close(a, b, rtol=10 * tolerance, atol=10 * tolerance)


@BOTH
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_an_axis_of_one_row_of_ones_lowers_the_order(normalizer, dtype, tolerance):
    query, k1, k2, v1, v2 = random_problem(2, queries=9, lengths=[11, 6]).to(dtype).inputs
    one = torch.ones(1, 2, 1, 4, dtype=dtype)
    options = with_normalizer(normalizer) | {"scale": (0.6, 0.8), "return_lse": True}
    lower = nsimplex.attention(query, [k1, k2], [v1, v2], **options)
    higher = nsimplex.attention(query, [k1, one, k2], [v1, one, v2], **options)
    for a, b in zip(lower, higher):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@BOTH
@pytest.mark.parametrize("normalizer", ["softmax", "relu", "sigmoid"])
def test_disjoint_sets_of_tuples_merge(normalizer, dtype, tolerance):
    """The tuples of a mask and those of its complement."""
    problem = random_problem(2, queries=9, lengths=[10, 7]).to(dtype)
    mask = torch.rand(9, 10, 7, generator=torch.Generator().manual_seed(6)) > 0.6
    run = lambda **o: Problem(problem.inputs, {"normalizer": normalizer} | o).run()
    (whole, whole_lse), parts = run(), [run(mask=mask), run(mask=~mask)]
    if normalizer == "sigmoid":
        merged = parts[0][0] + parts[1][0]
    else:
        lse = torch.logaddexp(parts[0][1], parts[1][1])
        torch.testing.assert_close(lse, whole_lse, rtol=tolerance, atol=tolerance)
        merged = sum((part_lse - lse).exp().unsqueeze(-1) * out for out, part_lse in parts)
    torch.testing.assert_close(merged, whole, rtol=tolerance, atol=tolerance)


@BOTH
@pytest.mark.parametrize("logit", [-1.0, 3.0, 1e4])
def test_a_sink_is_one_more_tuple_with_values_of_zero(logit, dtype, tolerance):
    query, key, value = random_problem(1, queries=5, lengths=[8]).to(dtype).inputs
    sink = torch.tensor([logit, 0.5 * logit], dtype=dtype)
    nothing = torch.zeros(1, 2, 1, 4, dtype=dtype)
    bias = torch.zeros(2, 1, 9, dtype=dtype)
    bias[:, :, 8] = sink[:, None]
    expected = nsimplex.attention(
        query,
        [torch.cat([key, nothing], 2)],
        [torch.cat([value, nothing], 2)],
        mask=bias,
        return_lse=True,
    )
    ours = nsimplex.attention(
        query, [key], [value], normalizer="softmax_sink", sink=sink, return_lse=True
    )
    for a, b in zip(ours, expected):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    plain = nsimplex.attention(query, [key], [value])
    off = nsimplex.attention(
        query, [key], [value], normalizer="softmax_sink", sink=torch.full((2,), -torch.inf)
    )
    torch.testing.assert_close(off, plain, rtol=tolerance, atol=tolerance)


@BOTH
def test_distinct_tuples_are_counted_by_lse(dtype, tolerance):
    """Logits of zero: exp(lse) counts the admissible tuples."""
    x = torch.zeros(1, 1, 6, 2, dtype=dtype)
    counts = {
        ("none", 2): 36,
        ("axes", 2): 30,
        ("with_query", 2): 20,
        ("axes", 3): 120,
        ("with_query", 3): 60,
        ("with_query", 1): 5,
        ("axes", 1): 6,
    }
    for (distinct, order), count in counts.items():
        _, lse = nsimplex.attention(x, [x] * order, [x] * order, distinct=distinct, return_lse=True)
        torch.testing.assert_close(lse.exp(), torch.full_like(lse, count), rtol=tolerance, atol=0)


@BOTH
@pytest.mark.parametrize("order", [1, 2, 3])
def test_dropout_keeps_its_share_and_the_mean(order, dtype, tolerance):
    """One query with 4096 tuples of weight 1/4096: the output is the kept share over 1 - p."""
    length = round(4096 ** (1 / order))
    x, ones = torch.zeros(1, 8, 4, 2, dtype=dtype), torch.ones(1, 8, length, 2, dtype=dtype)
    plain_lse = nsimplex.attention(x, [ones] * order, [ones] * order, return_lse=True)[1]
    for p in (0.1, 0.5, 0.9):
        out, lse = nsimplex.attention(
            x, [ones] * order, [ones] * order, dropout_p=p, seed=17, return_lse=True
        )
        torch.testing.assert_close(lse, plain_lse, rtol=tolerance, atol=tolerance)
        share = out[..., 0] * (1 - p)
        deviation = (p * (1 - p) / 4096) ** 0.5
        assert (share - (1 - p)).abs().max() < 4.5 * deviation  # 32 rows
        assert share.unique().numel() > 8  # rows differ
        again = nsimplex.attention(x, [ones] * order, [ones] * order, dropout_p=p, seed=18)
        assert not torch.equal(out, again)
