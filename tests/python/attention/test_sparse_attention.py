"""The sparse operator: the dense one under the mask of the same tuples, and what lists alone can
do."""

import math

import pytest
import torch
from lists import masked, sparse_problem
from problems import naive, random_problem
from test_accuracy import relative_error
from torch.utils.flop_counter import FlopCounterMode

import nsimplex

PATTERNS = ["list", "product", "path"]
ORDERS = [1, 2, 3]
REDUCERS = ["product", "sum", "mean"]
OPERATORS = [nsimplex.sparse_attention, nsimplex.sparse_reference]


def assert_same(ours, expected, rtol=1e-10, atol=1e-11):
    for name, value in ours.items():
        torch.testing.assert_close(
            value, expected[name], rtol=rtol, atol=atol, msg=lambda m: f"{name}: {m}"
        )


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", ["product", "determinant"])
@pytest.mark.parametrize("reduce", REDUCERS)
@pytest.mark.parametrize("function", OPERATORS)
def test_equals_dense_under_the_same_mask(pattern, order, form, reduce, function):
    problem, mask = sparse_problem(
        pattern, order, form=form, reduce=reduce, scale=(0.6, 1.4), seed=order
    )
    assert not mask.flatten(3).any(-1).all(), "some query has no tuple"
    dense = masked(problem, mask).to(torch.float64)
    assert_same(problem.to(torch.float64).outcome(function), dense.outcome(naive))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("heads, kv_heads, groups", [(4, 4, 4), (8, 4, 2), (3, 1, 1), (6, 2, 2)])
@pytest.mark.parametrize("entries", [1, 2])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_lists_of_batch_entries_and_head_groups(
    pattern, heads, kv_heads, groups, entries, index_dtype
):
    problem, mask = sparse_problem(
        pattern,
        2,
        heads=heads,
        kv_heads=kv_heads,
        groups=groups,
        entries=entries,
        index_dtype=index_dtype,
    )
    dense = masked(problem, mask).to(torch.float64)
    for function in OPERATORS:
        assert_same(problem.to(torch.float64).outcome(function), dense.outcome(naive))


@pytest.mark.parametrize("size", [3, 8, 33, 40])
@pytest.mark.parametrize("order, dim", [(1, 20), (2, 16), (2, 33), (3, 32)])
def test_products_of_sets_of_every_size(size, order, dim):
    """Sets around the register tiles' edges, with repeated rows of blocks."""
    size = min(size, 8) if order == 3 else size
    problem, mask = sparse_problem(
        "product",
        order,
        batch=1,
        heads=3,
        kv_heads=1,
        queries=9,
        size=size,
        lengths=[45 if order < 3 else 12] * order,
        dim=dim,
        value_dim=18,
    )
    dense = masked(problem, mask).to(torch.float64)
    ours = problem.to(torch.float64).outcome(nsimplex.sparse_attention)
    assert_same(ours, dense.outcome(nsimplex.reference))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_error_is_within_twice_the_reference_s(pattern, order, dtype):
    problem, mask = sparse_problem(
        pattern,
        order,
        queries=20,
        lengths=[24, 24, 12][:order] if pattern != "path" else [20] * order,
        size=10 if order < 3 else 6,
        dim=24,
        value_dim=20,
    )
    problem.inputs = [tensor.to(dtype) for tensor in problem.inputs]
    exact = problem.to(torch.float64).outcome(nsimplex.sparse_reference)
    plain = problem.to(dtype).outcome(nsimplex.sparse_reference)
    ours = problem.to(dtype).outcome(nsimplex.sparse_attention)
    noise = (
        4 * torch.finfo(dtype).eps * math.sqrt(math.log2(mask.flatten(3).sum(-1).max().item() + 2))
    )
    for name, expected in exact.items():
        error, limit = (
            relative_error(ours[name], expected),
            2 * relative_error(plain[name], expected),
        )
        assert error <= limit + noise, f"{name}: {error:.2e}"
        if dtype == torch.float32:
            assert error <= (2e-5 if name in ("out", "lse") else 1e-4), name


def test_chunks_of_the_reference_do_not_show():
    """More tuples than one chunk holds: gradients of keys add up over chunks."""
    problem, mask = sparse_problem(
        "product",
        2,
        batch=1,
        heads=8,
        kv_heads=8,
        queries=40,
        size=40,
        lengths=[40, 40],
        dim=32,
    )
    dense = masked(problem, mask).to(torch.float64)
    assert_same(
        problem.to(torch.float64).outcome(nsimplex.sparse_reference),
        dense.outcome(nsimplex.reference),
    )


def test_a_full_list_is_dense_attention():
    problem = random_problem(2, heads=4, kv_heads=2, queries=9, lengths=[9, 9]).to(torch.float64)
    expected = problem.outcome(nsimplex.reference)
    every = torch.arange(9).expand(1, 1, 9, 9)
    for pattern in ("product", "path"):
        problem.options = {"indices": every, "pattern": pattern}
        assert_same(problem.outcome(nsimplex.sparse_attention), expected)


def test_paths_of_the_last_positions_decode():
    """Queries are the last of the T positions: those rows of the whole result."""
    problem, _ = sparse_problem("path", 2, queries=7)
    query, k1, k2, v1, v2 = problem.inputs
    whole = nsimplex.sparse_attention(query, [k1, k2], [v1, v2], **problem.options)
    last = nsimplex.sparse_attention(query[:, :, -3:], [k1, k2], [v1, v2], **problem.options)
    torch.testing.assert_close(last, whole[:, :, -3:], rtol=0, atol=0)


def test_sets_without_heads_are_for_all():
    problem, _ = sparse_problem("product", 2)
    out, _ = problem.run(nsimplex.sparse_attention)
    problem.options["indices"] = problem.options["indices"].squeeze(1)
    torch.testing.assert_close(problem.run(nsimplex.sparse_attention)[0], out, rtol=0, atol=0)


def test_lists_may_share_tuples():
    """Every query with the whole list, whose offsets are the same positions again and again."""
    generator = torch.Generator().manual_seed(3)
    problem = random_problem(2, heads=2, kv_heads=2, queries=1, lengths=[6, 6])
    tuples = torch.randint(6, (11, 2), generator=generator).unique(dim=0)
    offsets = torch.tensor([[[0, len(tuples)], [0, len(tuples)]]])
    shared = {"indices": tuples, "offsets": offsets}
    alone = {"indices": tuples, "offsets": offsets[:, :1]}
    for function in OPERATORS:
        problem.options = shared
        ours = problem.to(torch.float64).outcome(function)
        problem.options = alone
        assert_same(ours, problem.to(torch.float64).outcome(function), rtol=0, atol=1e-14)


def test_a_tuple_that_stands_twice_counts_twice():
    problem = random_problem(2, heads=1, queries=1, lengths=[4, 4])
    query, k1, k2, v1, v2 = problem.to(torch.float64).inputs
    for function in OPERATORS:
        once, lse_once = function(
            query,
            [k1, k2],
            [v1, v2],
            torch.tensor([[1, 2], [3, 0]]),
            torch.tensor([[[0, 2]]]),
            return_lse=True,
        )
        twice, lse_twice = function(
            query,
            [k1, k2],
            [v1, v2],
            torch.tensor([[1, 2], [3, 0]] * 2),
            torch.tensor([[[0, 4]]]),
            return_lse=True,
        )
        torch.testing.assert_close(twice, once)
        torch.testing.assert_close(lse_twice, lse_once + math.log(2))


@pytest.mark.parametrize("function", OPERATORS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", [1, 2])
def test_no_tuples(function, pattern, order):
    """k = 0, sets of nothing but -1, empty lists: 0, -inf and zero gradients, never NaN."""
    problem = random_problem(order, queries=3, lengths=[3] * order)
    empty = {
        "list": [
            (torch.empty(0, order, dtype=torch.int64), torch.zeros(1, 1, 4, dtype=torch.int64))
        ],
        "product": [
            (torch.empty(1, 1, 3, 0, dtype=torch.int64), None),
            (torch.full((1, 1, 3, 5), -1), None),
        ],
    }
    for indices, offsets in empty["list" if pattern == "list" else "product"]:
        problem.options = {"indices": indices, "offsets": offsets, "pattern": pattern}
        own = problem.to(torch.float64)
        out, lse = own.run(function)
        assert not out.any() and lse.isneginf().all()
        grads = torch.autograd.grad(
            [out, lse.masked_fill(lse.isneginf(), 0)],
            own.inputs,
            [torch.ones_like(out), torch.ones_like(lse)],
        )
        assert not any(grad.any() for grad in grads)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_empty_sizes(pattern):
    for batch, queries, length in ((0, 3, 3), (2, 0, 3), (2, 0, 0), (1, 3, 0)):
        if pattern == "path" and queries > length:
            continue
        problem = random_problem(2, batch=batch, queries=queries, lengths=[length] * 2)
        rows = length if pattern == "path" else queries
        indices = torch.full((1, 1, rows, 2), 0 if length and queries else -1)
        offsets = None
        if pattern == "list":
            indices, offsets = (
                torch.empty(0, 2, dtype=torch.int64),
                torch.zeros(1, 1, queries + 1, dtype=torch.int64),
            )
        problem.options = {"indices": indices, "offsets": offsets, "pattern": pattern}
        for function in OPERATORS:
            own = problem.to(torch.float64)
            out, lse = own.run(function)
            assert out.shape == (batch, 2, queries, 4) and lse.shape == (batch, 2, queries)
            for grad, tensor in zip(torch.autograd.grad(out.sum(), own.inputs), own.inputs):
                assert grad.shape == tensor.shape and not grad.isnan().any()


def test_more_keys_asked_for_than_there_are():
    """k > T: a set has at most T keys and -1 behind them."""
    problem, mask = sparse_problem("product", 2, size=20)
    dense = masked(problem, mask).to(torch.float64)
    assert_same(problem.to(torch.float64).outcome(nsimplex.sparse_attention), dense.outcome(naive))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_no_list_names_is_never_read(pattern, dtype):
    problem, mask = sparse_problem(pattern, 2)
    clean = problem.to(dtype).outcome(nsimplex.sparse_attention)
    for m in (0, 1):
        named = mask.any(1).any(1).any(2 - m)  # [B, T_m]
        assert not named.all() or pattern != "path"
        for tensor in (problem.inputs[1 + m], problem.inputs[3 + m]):
            tensor.masked_fill_(~named[:, None, :, None], torch.nan)
    for name, value in problem.to(dtype).outcome(nsimplex.sparse_attention).items():
        assert torch.equal(value, clean[name]), name


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_extreme_logits(pattern, scale):
    problem, mask = sparse_problem(pattern, 2, scale=(scale, 1.0))
    dense = masked(problem, mask)
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 5e-2)):
        ours = problem.to(dtype).outcome(nsimplex.sparse_attention)
        assert all(value.isfinite().all() for value in ours.values())
        expected = dense.to(torch.float64).outcome(naive)
        torch.testing.assert_close(ours["lse"].double(), expected["lse"], rtol=tolerance, atol=0.1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_strided_inputs(pattern):
    problem, _ = sparse_problem(pattern, 2)
    expected = problem.to(torch.float32).outcome(nsimplex.sparse_attention)

    def scattered(tensor):
        wide = torch.full((*tensor.shape[:-1], tensor.size(-1) * 2 + 1), torch.nan)
        wide[..., 1::2] = tensor
        return wide[..., 1::2].transpose(1, 2).contiguous().transpose(1, 2)

    problem.inputs = [scattered(tensor) for tensor in problem.inputs]
    indices = problem.options["indices"]
    problem.options["indices"] = indices.repeat_interleave(2, -1)[..., ::2]
    for name, value in problem.to(torch.float32).outcome(nsimplex.sparse_attention).items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0)


def mlp(values, weights):
    w1, b1, w2, b2 = weights
    hidden = torch.nn.functional.gelu(torch.cat(values, -1) @ w1.mT + b1[:, None])
    return hidden @ w2.mT + b2[:, None]


def mlp_symmetric(values, weights):
    w1, b1, w2, b2, w3, b3 = weights
    gelu = torch.nn.functional.gelu
    hidden = sum(gelu(value @ w1.mT + b1[:, None]) for value in values)
    return gelu(hidden @ w2.mT + b2[:, None]) @ w3.mT + b3[:, None]


def reducer_weights(reduce, order, heads, width, generator):
    layers = {"mlp": [(2, order), (1, 2)], "mlp_symmetric": [(2, 1), (2, 2), (1, 2)]}[reduce]
    weights = []
    for rows, columns in layers:
        weights.append(
            torch.randn(
                heads, rows * width, columns * width, generator=generator, dtype=torch.float64
            )
        )
        weights.append(torch.randn(heads, rows * width, generator=generator, dtype=torch.float64))
    return weights


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reduce", [mlp, mlp_symmetric])
def test_learned_reducers(pattern, order, reduce):
    """Against the definition with every tuple's values at once."""
    problem, mask = sparse_problem(pattern, order, groups=2, value_dim=3)
    generator = torch.Generator().manual_seed(5)
    weights = reducer_weights(reduce.__name__, order, 2, 3, generator)
    leaves = [t.requires_grad_() for t in (*problem.inputs, *weights)]
    query, keys, values = leaves[0], leaves[1 : 1 + order], leaves[1 + order : 1 + 2 * order]
    weights = leaves[1 + 2 * order :]
    ours = nsimplex.sparse_attention(
        query,
        keys,
        values,
        reduce=reduce.__name__,
        reducer_weights=weights,
        return_lse=True,
        **problem.options,
    )

    options = masked(problem, mask).options
    tuples = nsimplex.attention_weights(query, keys, **options).flatten(3)
    grids = torch.meshgrid(*[torch.arange(v.size(2)) for v in values], indexing="ij")
    rows = reduce([v[:, :, g.flatten()] for v, g in zip(values, grids)], weights)
    expected = tuples @ rows.repeat_interleave(2, 1)
    torch.testing.assert_close(ours[0], expected, rtol=1e-9, atol=1e-10)
    generator = torch.Generator().manual_seed(6)
    grad = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours[0], leaves, grad), torch.autograd.grad(expected, leaves, grad)
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


def test_the_symmetric_reducer_is():
    problem, _ = sparse_problem("path", 3, value_dim=3)
    weights = reducer_weights("mlp_symmetric", 3, 2, 3, torch.Generator().manual_seed(5))
    query, keys, values = problem.inputs[0], problem.inputs[1:4], problem.inputs[4:]
    every = {"indices": torch.arange(7).expand(1, 1, 5, 7), "pattern": "product"}
    options = {**every, "reduce": "mlp_symmetric", "reducer_weights": weights}
    out = nsimplex.sparse_attention(query, keys, values, **options)
    turned = nsimplex.sparse_attention(query, keys[::-1], values[::-1], **options)
    torch.testing.assert_close(turned, out)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_flops_are_counted(pattern):
    problem, mask = sparse_problem(pattern, 2, groups=2)
    room = mask.sum().item() if pattern == "list" else 2 * 4 * 5 * 4**2
    with FlopCounterMode(display=False) as counter:
        out, _ = problem.to(torch.float32).run(nsimplex.sparse_attention)
    assert counter.get_total_flops() == 2 * (12 + 5) * room
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert counter.get_total_flops() == 3 * 2 * (12 + 5) * room
