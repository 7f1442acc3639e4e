"""The operator as a citizen of PyTorch: windows made of lengths, autocast, memory order,
counters."""

import math
import subprocess
import sys

import pytest
import torch
import torch._dynamo.compiled_autograd
import torch.utils.checkpoint
from problems import random_problem
from torch.utils.flop_counter import FlopCounterMode

import nsimplex

DTYPES = [torch.float32, torch.float64]


def heads_inside(tensor):
    return tensor.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()


class Layer(torch.nn.Module):
    def forward(self, query, key, value):
        length = query.size(2)
        return nsimplex.attention(
            query, [key, key], [value, value], causal=True, window=[length // 2, 3]
        )


def test_export_with_dynamic_lengths_and_a_window_made_of_them():
    length = torch.export.Dim("length", min=4, max=512)
    inputs = tuple(torch.randn(1, 2, 16, 8) for _ in range(3))
    program = torch.export.export(Layer(), inputs, dynamic_shapes=({2: length},) * 3)
    for queries in (5, 16, 40):
        fresh = tuple(torch.randn(1, 2, queries, 8) for _ in range(3))
        torch.testing.assert_close(program.module()(*fresh), Layer()(*fresh), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inside", [False, True])
def test_out_and_gradients_have_the_memory_order_of_their_inputs(dtype, inside):
    problem = random_problem(2, batch=2, heads=3, queries=5, dim=4, value_dim=6).to(dtype)
    inputs = [heads_inside(t) if inside else t for t in problem.inputs]
    for device in ("cpu", "meta"):
        query, k1, k2, v1, v2 = (t.detach().to(device).requires_grad_() for t in inputs)
        out, lse = nsimplex.attention(query, [k1, k2], [v1, v2], return_lse=True)
        expected = heads_inside(torch.empty(out.shape)) if inside else torch.empty(out.shape)
        assert out.stride() == expected.stride() and out.dtype == dtype
        assert lse.is_contiguous()
        assert lse.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        grads = torch.autograd.grad(out, [query, k1, k2, v1, v2], torch.empty_like(out))
        for grad, tensor in zip(grads, inputs):
            assert grad.stride() == tensor.stride() and grad.dtype == dtype


def test_float16_computes_in_float32():
    """Against fp64 on the rounded inputs only the output's own rounding remains."""
    problem = random_problem(2, queries=64, lengths=[64, 64], dim=8).to(torch.float16)
    out, lse = problem.run()
    expected_out, expected_lse = problem.to(torch.float64).run(nsimplex.reference)
    assert (out.double() - expected_out).abs().max() <= 2**-11 * expected_out.abs().max() * 1.01
    torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-5, atol=1e-5)


def test_bfloat16_rounds_operands_and_sums_in_float32():
    problem = random_problem(2, queries=64, lengths=[64, 64], dim=8).to(torch.bfloat16)
    out, _ = problem.run()
    expected, _ = problem.to(torch.float64).run(nsimplex.reference)
    assert (out.double() - expected).norm() <= 2**-6 * expected.norm()
    # 4096 equal weights: a sum held in bfloat16 would stop at 256.
    query, one = torch.zeros(1, 1, 3, 8).bfloat16(), torch.ones(1, 1, 64, 8).bfloat16()
    mean, lse = nsimplex.attention(query, [one, one], [one, one], return_lse=True)
    torch.testing.assert_close(mean, torch.ones_like(mean), rtol=0, atol=0)
    torch.testing.assert_close(lse, torch.full_like(lse, math.log(4096)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("inputs", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_its_dtype(inputs, dtype):
    problem = random_problem(2, queries=8).to(inputs)
    with torch.autocast("cpu", dtype=dtype):
        out, lse = problem.run()
    assert out.dtype == dtype and lse.dtype == torch.float32
    expected, _ = problem.to(dtype).run()
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
    out.sum().backward()
    assert all(t.grad.dtype == inputs for t in problem.inputs)


def test_flops_are_counted():
    problem = random_problem(
        2,
        batch=3,
        heads=4,
        kv_heads=2,
        queries=20,
        lengths=[20, 20],
        dim=8,
        value_dim=6,
        causal=True,
        window=[3, 5],
    ).to(torch.float32)
    tuples = sum(min(i + 1, 3) * min(i + 1, 5) for i in range(20))
    forward = 2 * (8 + 6) * 3 * 4 * tuples
    with FlopCounterMode(display=False) as counter:
        out, _ = problem.run()
    assert counter.get_total_flops() == forward
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert counter.get_total_flops() == 3 * forward


def test_compiled_autograd_and_checkpointing():
    problem = random_problem(2, causal=True, window=[3, 4]).to(torch.float32)
    expected = torch.autograd.grad(problem.run()[0].sum(), problem.inputs)
    loss = torch.utils.checkpoint.checkpoint(lambda: problem.run()[0].sum(), use_reentrant=False)
    for ours, exact in zip(torch.autograd.grad(loss, problem.inputs), expected):
        torch.testing.assert_close(ours, exact, rtol=0, atol=0)
    torch._dynamo.reset()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        problem.run()[0].sum().backward()
    for tensor, exact in zip(problem.inputs, expected):
        torch.testing.assert_close(tensor.grad, exact)


def test_inputs_changed_in_place_before_backward_are_noticed():
    query, key, value = random_problem(1).to(torch.float32).inputs
    changed = query * 1
    loss = nsimplex.attention(changed, [key], [value]).sum()
    changed.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_inference_mode_and_frozen_inputs():
    problem = random_problem(2, dtype=torch.float32)
    with torch.inference_mode():
        out, _ = problem.run()
    torch.testing.assert_close(out, problem.run()[0], rtol=0, atol=0)


def test_no_floating_dtype_falls_back_on_the_cpu(subprocess_env):
    script = (
        "import torch, nsimplex\n"
        "for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):\n"
        "    x = torch.ones(1, 1, 2, 2, dtype=dtype, requires_grad=True)\n"
        "    nsimplex.attention(x, [x], [x]).sum().backward()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**subprocess_env, "NSIMPLEX_WARN_FALLBACK": "1"},
    )
    assert "nsimplex: warning:" not in run.stderr


def test_package_metadata():
    assert nsimplex.__version__ == nsimplex._build_info.VERSION
    folder = nsimplex.__path__[0]  # wheels have one more per further version of torch
    own = ".".join(torch.__version__.split(".")[:2])
    assert nsimplex.cmake_prefix_path in (folder, f"{folder}/torch{own}")
