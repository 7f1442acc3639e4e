"""The sparse operator as a citizen of PyTorch: exported lists, transforms, autocast, memory
order."""

import subprocess
import sys

import pytest
import torch
from lists import sparse_problem
from test_sparse_attention import PATTERNS, reducer_weights

import nsimplex


def small(pattern, order, **options):
    """A problem whose queries all have tuples: lse = -inf has no finite difference."""
    for seed in range(50):
        problem, mask = sparse_problem(
            pattern,
            order,
            batch=1,
            heads=2,
            kv_heads=1,
            queries=2,
            size=2,
            seed=seed,
            value_dim=2,
            dim={1: 2, 2: 3, 3: 4}[order],
            lengths=[3] * order,
            **options,
        )
        if mask.flatten(3).any(-1).all():
            return problem.to(torch.float64)
    raise AssertionError("no such problem")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_its_dtype(dtype):
    problem = sparse_problem("product", 2)[0].to(torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        out, lse = problem.run(nsimplex.sparse_attention)
    assert out.dtype == dtype and lse.dtype == torch.float32
    expected, _ = problem.to(dtype).run(nsimplex.sparse_attention)
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
    out.sum().backward()
    assert all(t.grad.dtype == torch.float32 for t in problem.inputs)


@pytest.mark.parametrize("reduce", ["product", "mlp"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_transforms_give_what_autograd_gives(pattern, reduce):
    problem = small(pattern, 2, reduce=reduce)
    if reduce == "mlp":
        weights = reducer_weights(reduce, 2, 1, 2, torch.Generator().manual_seed(2))
        problem.options["reducer_weights"] = [w.double() for w in weights]
    inputs = [leaf.detach() for leaf in problem.inputs]

    def loss(*leaves):
        out, lse = problem.call(*leaves, function=nsimplex.sparse_attention)
        return out.sin().sum() + lse.cos().sum()

    places = tuple(range(len(inputs)))
    leaves = [leaf.clone().requires_grad_() for leaf in inputs]
    first = torch.autograd.grad(loss(*leaves), leaves)
    func, one = torch.func, lambda query: loss(query, *inputs[1:])
    tangents = [torch.randn_like(leaf) for leaf in inputs]
    along = sum((g * t).sum() for g, t in zip(first, tangents))
    many = torch.stack([inputs[0], 2 * inputs[0]])
    same = torch.testing.assert_close
    same(func.grad(loss, places)(*inputs), first)
    same(func.vjp(loss, *inputs)[1](torch.ones((), dtype=torch.float64)), first)
    same(func.jvp(loss, tuple(inputs), tuple(tangents))[1], along)
    same(func.jacrev(loss, places)(*inputs), first)
    same(func.jacfwd(loss, places)(*inputs), first)
    same(func.hessian(one)(inputs[0]), torch.autograd.functional.hessian(one, inputs[0]))
    same(func.vmap(one)(many), torch.stack([one(query) for query in many]))
    same(func.vmap(func.grad(one))(many), torch.stack([func.grad(one)(query) for query in many]))


@pytest.mark.parametrize("reduce", ["product", "mlp"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_vmap_over_lists(pattern, order, reduce):
    """Sets may have any -1, and tuples of a list may differ, in number the same."""
    problem = small(pattern, order, reduce=reduce)
    if reduce == "mlp":
        weights = reducer_weights(reduce, order, 1, 2, torch.Generator().manual_seed(2))
        problem.options["reducer_weights"] = [w.double() for w in weights]
    inputs = [leaf.detach() for leaf in problem.inputs]
    indices = problem.options["indices"]
    other = indices.flip(-1 if pattern == "list" else -2)
    if pattern != "list":
        other[..., 0, 1:] = -1
        inputs[1][:, :, 0] = torch.nan  # a key of no set where others have a -1
        indices, other = indices.clamp_min(1), other.masked_fill(other == 0, 1)
    many = torch.stack([indices, other])

    def loss(indices, query):
        options = {**problem.options, "indices": indices}
        made = nsimplex.sparse_attention(
            query, inputs[1 : 1 + order], inputs[1 + order :], return_lse=True, **options
        )
        return made[0].sin().sum() + made[1].cos().sum()

    def gradient(indices, query):
        query = query.clone().requires_grad_()
        return torch.autograd.grad(loss(indices, query), query)[0]

    query = inputs[0]
    torch.testing.assert_close(
        torch.vmap(loss, (0, None))(many, query), torch.stack([loss(i, query) for i in many])
    )
    torch.testing.assert_close(
        torch.vmap(torch.func.grad(loss, 1), (0, None))(many, query),
        torch.stack([gradient(i, query) for i in many]),
    )


def test_transforms_check_lists_too():
    q = torch.randn(1, 1, 2, 4)
    wrong, offsets = torch.tensor([[0], [7]]), torch.tensor([[[0, 1, 2]]])

    def loss(q, indices=wrong, offsets=offsets):
        return nsimplex.sparse_attention(q, [q], [q], indices, offsets).sum()

    for call in (
        lambda: torch.func.grad(loss)(q),
        lambda: torch.vmap(loss, (None, 0))(q, wrong[None]),
    ):
        with pytest.raises(
            ValueError, match=r"^\[sparse_attention\] indices\[1, 0\]: expected 0 to"
        ):
            call()
    with pytest.raises(ValueError, match=r"^\[sparse_attention\] offsets: .* dimension of vmap"):
        torch.vmap(loss, (None, None, 0))(q, wrong, offsets[None])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_memory_order_and_meta(pattern):
    problem = sparse_problem(pattern, 2)[0].to(torch.float32)
    inside = [
        t.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
        for t in problem.inputs
    ]
    for device in ("cpu", "meta"):
        leaves = [t.detach().to(device).requires_grad_() for t in inside]
        options = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value
            for name, value in problem.options.items()
        }
        out, lse = nsimplex.sparse_attention(
            leaves[0], leaves[1:3], leaves[3:], return_lse=True, **options
        )
        assert out.shape == (2, 4, 5, 5) and out.stride(1) < out.stride(2) and lse.is_contiguous()
        for grad, leaf in zip(torch.autograd.grad(out, leaves, torch.empty_like(out)), leaves):
            assert grad.stride() == leaf.stride() and grad.device.type == device


def test_only_learned_reducers_fall_back_on_the_cpu(subprocess_env):
    script = (
        "import torch, nsimplex\n"
        "sets = torch.zeros(1, 1, 2, 1, dtype=torch.int64)\n"
        "for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):\n"
        "    x = torch.ones(1, 1, 2, 2, dtype=dtype, requires_grad=True)\n"
        "    nsimplex.sparse_attention(x, [x], [x], sets, pattern='product').sum().backward()\n"
        "w = [torch.ones(1, 4, 2), torch.ones(1, 4), torch.ones(1, 2, 4), torch.ones(1, 2)]\n"
        "x = torch.ones(1, 1, 2, 2)\n"
        "nsimplex.sparse_attention(x, [x], [x], sets, pattern='product', reduce='mlp', "
        "reducer_weights=w)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**subprocess_env, "NSIMPLEX_WARN_FALLBACK": "1"},
    )
    warnings = [line for line in run.stderr.splitlines() if "warning:" in line]
    assert len(warnings) == 1 and "learned reducers" in warnings[0]
