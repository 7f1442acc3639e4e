"""Inputs at the edges of the contract: nothing here may raise, leak or turn into NaN by itself."""

import pytest
import torch
from problems import naive, random_problem

import nsimplex

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # the kernel, the reference


def assert_matches(problem, dtype, rtol=1e-4, atol=1e-5):
    expected = problem.to(torch.float64).outcome(nsimplex.reference)
    for name, value in problem.to(dtype).outcome().items():
        assert not value.isnan().any(), name
        torch.testing.assert_close(value.double(), expected[name], rtol=rtol, atol=atol, msg=name)


@BOTH
@pytest.mark.parametrize(
    "shape",
    [
        dict(order=1, queries=5, lengths=[0]),
        dict(order=2, queries=5, lengths=[4, 0]),
        dict(order=3, queries=5, lengths=[0, 0, 0]),
        dict(order=2, queries=0, lengths=[4, 3]),
        dict(order=2, queries=0, lengths=[0, 0]),
        dict(order=2, batch=0, queries=5, lengths=[4, 3]),
    ],
)
def test_empty_axes(shape, dtype):
    problem = random_problem(**shape).to(dtype)
    outcome = problem.outcome()
    out, lse = problem.run()
    assert out.shape == problem.inputs[0].shape and lse.shape == out.shape[:3]
    assert not out.any() and (lse == -torch.inf).all()
    for name, tensor in zip(list(outcome)[2:], problem.inputs):
        assert outcome[name].shape == tensor.shape and not outcome[name].any()


@BOTH
@pytest.mark.parametrize("queries, lengths", [(1, [1]), (1, [1, 1]), (7, [1, 9]), (1, [20, 1, 3])])
@pytest.mark.parametrize("causal", [False, True])
def test_axes_of_one_key(queries, lengths, causal, dtype):
    assert_matches(
        random_problem(len(lengths), queries=queries, lengths=lengths, causal=causal), dtype
    )


@BOTH
@pytest.mark.parametrize("dim, value_dim", [(1, 1), (1, 17), (65, 3), (15, 16)])
def test_odd_channel_counts(dim, value_dim, dtype):
    assert_matches(random_problem(2, queries=20, dim=dim, value_dim=value_dim, causal=True), dtype)


@BOTH
@pytest.mark.parametrize("window", [10**6, 2**62, 2**63 - 1, [(2**63 - 1, 2**63 - 1), 3]])
def test_windows_wider_than_the_sequence(window, dtype):
    problem = random_problem(2, queries=9, lengths=[9, 9], window=window)
    assert_matches(problem, dtype)
    if isinstance(window, int):
        causal = random_problem(2, queries=9, lengths=[9, 9], causal=True)
        torch.testing.assert_close(problem.run(), causal.run())


@BOTH
@pytest.mark.parametrize("order", [1, 2, 3])
def test_queries_without_a_tuple(order, dtype):
    """More queries than keys, aligned at the ends: the first ones see nothing."""
    problem = random_problem(order, queries=9, lengths=[4, 6, 5][:order], causal=True).to(dtype)
    out, lse = problem.run()
    empty = 5
    assert not out[:, :, :empty].any() and (lse[:, :, :empty] == -torch.inf).all()
    assert lse[:, :, empty:].isfinite().all()
    (out.sum() + lse[:, :, empty:].sum()).backward()
    assert not problem.inputs[0].grad[:, :, :empty].any()
    assert all(t.grad.isfinite().all() for t in problem.inputs)
    assert_matches(problem, dtype)


@BOTH
def test_gradients_of_second_order_stay_finite_beside_empty_rows(dtype):
    problem = random_problem(2, queries=6, lengths=[3, 4], causal=True).to(dtype)
    out, _ = problem.run()
    (grad,) = torch.autograd.grad(out.square().sum(), problem.inputs[0], create_graph=True)
    for second in torch.autograd.grad(grad.square().sum(), problem.inputs):
        assert second.isfinite().all()


@BOTH
@pytest.mark.parametrize("size", [1e4, -1e4])
def test_logits_of_ten_thousand(size, dtype):
    problem = random_problem(2, queries=12, lengths=[12, 12], dim=4, scale=1.0)
    problem.inputs[0] = torch.full_like(problem.inputs[0], size / 4)
    problem.inputs[1] = torch.ones_like(problem.inputs[1])
    key = torch.ones_like(problem.inputs[2])
    key[:, :, 5:] = 0.99  # within 100 of the largest logit and far below it
    problem.inputs[2] = key
    assert_matches(problem, dtype, rtol=1e-3, atol=1e-3)


@BOTH
def test_equal_maxima(dtype):
    problem = random_problem(2, queries=70, lengths=[33, 65], dim=4)
    problem.inputs[:3] = [torch.ones_like(t) for t in problem.inputs[:3]]
    assert_matches(problem, dtype)


@BOTH
def test_nan_padding_never_shows(dtype):
    lengths = torch.tensor([[30, 0, 17], [12, 40, 1]])
    clean = random_problem(
        2, batch=3, heads=4, kv_heads=2, queries=33, lengths=[33, 41], key_lengths=lengths
    )
    dirty = clean.to(torch.float64)
    for axis in range(2):
        for entry in range(3):
            for tensor in (dirty.inputs[1 + axis], dirty.inputs[3 + axis]):
                tensor.data[entry, :, lengths[axis, entry] :] = torch.nan
    expected = clean.to(dtype).outcome()
    for name, value in dirty.to(dtype).outcome().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0, msg=name)
    out, _ = dirty.to(dtype).run()
    assert not out[1].any()  # its first axis has no key


@BOTH
@pytest.mark.parametrize("which", [1, 3])
def test_nan_stays_within_its_batch_entry_and_head(which, dtype):
    problem = random_problem(
        2, batch=2, heads=4, kv_heads=2, queries=20, lengths=[20, 20], causal=True
    )
    problem.inputs[which][1, 0, 7] = torch.nan
    outcome = problem.to(dtype).outcome()
    reached = torch.zeros(2, 4, dtype=torch.bool)
    reached[1, :2] = True  # the group of key head 0
    for name in ("out", "query"):
        assert not outcome[name][~reached].isnan().any(), name
    assert outcome["out"][1, :2, 7:].isnan().any(-1).all()
    for name in ("key 0", "key 1", "value 0", "value 1"):
        assert not outcome[name][0].isnan().any() and not outcome[name][1, 1].isnan().any(), name


def layouts(tensor):
    """The same numbers, stored otherwise."""
    batch, heads, rows, channels = tensor.shape
    wide = torch.full((batch, heads, rows, channels + 3), torch.nan, dtype=tensor.dtype)
    wide[..., 1 : 1 + channels] = tensor  # a slice of a fused projection, rows not aligned
    flat = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)
    flat[1:] = tensor.flatten()
    return {
        "heads inside rows": tensor.transpose(1, 2).contiguous().transpose(1, 2),
        "slice": wide[..., 1 : 1 + channels],
        "unaligned": flat[1:].view(tensor.shape),
        "channels outside": tensor.transpose(2, 3).contiguous().transpose(2, 3),
        "every second row": torch.stack([tensor, torch.full_like(tensor, torch.nan)], 3).flatten(
            2, 3
        )[:, :, ::2],
    }


@BOTH
@pytest.mark.parametrize("layout", layouts(torch.zeros(1, 1, 1, 1)))
def test_strided_and_unaligned_views(layout, dtype):
    problem = random_problem(2, batch=2, heads=4, kv_heads=2, queries=37, dim=9, causal=True).to(
        dtype
    )
    expected = problem.outcome()
    problem.inputs = [layouts(t.detach())[layout].requires_grad_() for t in problem.inputs]
    for name, value in problem.outcome().items():
        torch.testing.assert_close(value, expected[name], msg=name)


@BOTH
def test_expanded_inputs_and_gradients(dtype):
    """Strides of zero: keys shared by the batch, and the gradient that sum() sends."""
    problem = random_problem(2, batch=3, queries=8, lengths=[8, 8]).to(dtype)
    shared = [t.detach()[:1].requires_grad_() for t in problem.inputs[1:]]
    query = problem.inputs[0]
    results = []
    for function in (nsimplex.attention, naive):
        keys = [t.expand(3, -1, -1, -1) for t in shared]
        out = function(query, keys[:2], keys[2:], return_lse=True)[0]
        results.append(torch.autograd.grad(out.sum(), [query, *shared]))
    for ours, expected in zip(*results):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_inputs_are_not_written():
    problem = random_problem(2, queries=30, dtype=torch.float32).to(torch.float32)
    before = [t.detach().clone() for t in problem.inputs]
    problem.outcome()
    for tensor, copy in zip(problem.inputs, before):
        assert torch.equal(tensor, copy)


def test_one_tensor_may_be_everything():
    x = random_problem(1, queries=9, dtype=torch.float32).inputs[0].requires_grad_()
    (ours,) = torch.autograd.grad(nsimplex.attention(x, [x, x], [x, x]).sum(), x)
    (expected,) = torch.autograd.grad(naive(x, [x, x], [x, x])[0].sum(), x)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
