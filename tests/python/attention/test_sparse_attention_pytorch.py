"""The sparse operator as a citizen of PyTorch: derivatives, opcheck, compile, export, threads,
autocast."""

import itertools
import subprocess
import sys

import pytest
import torch
from lists import sparse_problem
from test_sparse_attention import PATTERNS, reducer_weights
from torch.autograd import gradcheck, gradgradcheck

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


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("form", ["product", "determinant"])
@pytest.mark.parametrize("reduce", ["product", "mean"])
def test_gradcheck_and_gradgradcheck(pattern, order, form, reduce):
    problem = small(pattern, order, form=form, reduce=reduce, scale=(0.7, 1.3))

    def function(*leaves):
        return problem.call(*leaves, function=nsimplex.sparse_attention)

    assert gradcheck(function, problem.inputs, check_forward_ad=True)
    assert gradgradcheck(function, problem.inputs)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("reduce", ["mlp", "mlp_symmetric"])
def test_gradcheck_of_learned_reducers(pattern, reduce):
    problem = small(pattern, 2)
    weights = reducer_weights(reduce, 2, 1, 2, torch.Generator().manual_seed(2))
    inputs = [*problem.inputs, *(weight.requires_grad_() for weight in weights)]

    def function(query, k1, k2, v1, v2, *weights):
        return nsimplex.sparse_attention(
            query,
            [k1, k2],
            [v1, v2],
            reduce=reduce,
            reducer_weights=weights,
            return_lse=True,
            **problem.options,
        )

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs, atol=1e-4)


def arguments(problem, order):
    options = dict(problem.options)
    inputs = (problem.inputs[0], problem.inputs[1 : 1 + order], problem.inputs[1 + order :])
    return (*inputs, options.pop("indices"), options.pop("offsets", None)), options


# Every pattern, order and dtype; the other combinations are in make test-all.
QUICK = [("list", 1, torch.float64), ("product", 2, torch.float32), ("path", 2, torch.float32)]


@pytest.mark.parametrize(
    "pattern, order, dtype",
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(PATTERNS, [1, 2], [torch.float32, torch.float64])
    ],
)
def test_opcheck(pattern, order, dtype):
    problem = sparse_problem(pattern, order)[0].to(dtype)
    given, options = arguments(problem, order)
    for operator in (
        torch.ops.nsimplex.sparse_attention,
        torch.ops.nsimplex.sparse_attention_reference,
    ):
        torch.library.opcheck(operator.default, given, options)
    # Second derivatives look into the list, which a traced graph does not know: eager only.
    problem.inputs = [tensor.detach() for tensor in problem.inputs]
    given, options = arguments(problem, order)
    out, lse = torch.ops.nsimplex.sparse_attention(*given, **options)
    mask = [i % 3 != 1 for i in range(1 + 2 * order)]
    for operator in (
        torch.ops.nsimplex.sparse_attention_backward,
        torch.ops.nsimplex.sparse_attention_reference_backward,
    ):
        torch.library.opcheck(operator.default, (*given, out, lse, out, None, mask), options)


def test_opcheck_of_learned_reducers():
    problem = sparse_problem("product", 2)[0].to(torch.float32)
    given, options = arguments(problem, 2)
    weights = reducer_weights("mlp", 2, 2, 5, torch.Generator().manual_seed(2))
    options |= {"reduce": "mlp", "reducer_weights": [w.float().requires_grad_() for w in weights]}
    torch.library.opcheck(torch.ops.nsimplex.sparse_attention.default, given, options)


@pytest.mark.parametrize("wanted", range(7))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_only_the_gradients_that_are_wanted(pattern, wanted):
    """Every input alone: the others' gradients are left out, and this one is the same."""
    problem = sparse_problem(pattern, 3)[0].to(torch.float32)
    out, _ = problem.run(nsimplex.sparse_attention)
    everything = torch.autograd.grad(out.sum(), problem.inputs)
    leaves = [tensor.detach() for tensor in problem.inputs]
    leaves[wanted].requires_grad_()
    out, _ = problem.call(*leaves, function=nsimplex.sparse_attention)
    (grad,) = torch.autograd.grad(out.sum(), [leaves[wanted]])
    torch.testing.assert_close(grad, everything[wanted], rtol=0, atol=0)


def test_compile_with_dynamic_lengths():
    def step(query, key, value, sets):
        out, lse = nsimplex.sparse_attention(
            query.sin(), [key, key], [value, value], sets, pattern="path", return_lse=True
        )
        return out.cos().sum() + lse.sum()

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (6, 9, 13):
        inputs = [torch.randn(1, 2, length, 4, requires_grad=True) for _ in range(3)]
        sets = torch.randint(length, (1, length, 3))
        ours = torch.autograd.grad(compiled(*inputs, sets), inputs)
        expected = torch.autograd.grad(step(*inputs, sets), inputs)
        for a, b in zip(ours, expected):
            torch.testing.assert_close(a, b)


class Layer(torch.nn.Module):
    def forward(self, query, key, value, indices, offsets):
        return nsimplex.sparse_attention(query, [key, key], [value, value], indices, offsets)


def test_export_with_dynamic_lengths_and_lists():
    def inputs(length, tuples):
        counts = torch.zeros(length, dtype=torch.int64)
        counts[1] = tuples
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).view(1, 1, -1)
        return (
            *(torch.randn(1, 2, length, 8) for _ in range(3)),
            torch.randint(length, (tuples, 2)),
            offsets,
        )

    length, tuples = (
        torch.export.Dim("length", min=4, max=512),
        torch.export.Dim("tuples", min=2, max=9999),
    )
    shapes = ({2: length}, {2: length}, {2: length}, {0: tuples}, {2: length + 1})
    program = torch.export.export(Layer(), inputs(16, 30), dynamic_shapes=shapes)
    for given in (inputs(5, 9), inputs(40, 100)):
        torch.testing.assert_close(program.module()(*given), Layer()(*given), rtol=0, atol=0)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_same_bits_twice_and_for_every_number_of_threads(pattern, order, dtype, threads):
    problem, _ = sparse_problem(
        pattern, order, queries=90, lengths=[90] * order, size=12, dim=16, value_dim=16, entries=1
    )
    outcomes = []
    for count in (1, 1, 2, 3, 5):
        threads(count)
        outcomes.append(problem.to(dtype).outcome(nsimplex.sparse_attention))
    for outcome in outcomes[1:]:
        for tensor, value in outcome.items():
            assert torch.equal(value, outcomes[0][tensor]), tensor


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


def test_vmap_over_inputs_that_share_a_list():
    problem = sparse_problem("path", 2)[0]
    stacked = [torch.stack([tensor, 2 * tensor]) for tensor in problem.inputs]
    outs, lses = torch.vmap(lambda *t: problem.call(*t, function=nsimplex.sparse_attention))(
        *stacked
    )
    for i in range(2):
        out, lse = problem.call(*(t[i] for t in stacked), function=nsimplex.sparse_attention)
        torch.testing.assert_close(outs[i], out)
        torch.testing.assert_close(lses[i], lse)


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
