"""The CPU kernel takes every option, forward and backward, and agrees with the reference in
fp64."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from problems import random_problem

import nsimplex

B, HEADS, QUERIES = 2, 4, 9


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def booleans(*shape):
    return draw(*shape) > -0.8


def additive(*shape):
    return draw(*shape).masked_fill(~booleans(*shape), -torch.inf)


#: name: (lengths, options)
OPTIONS = {
    "determinant": ([5, 40], dict(form="determinant")),
    "determinant, first axis inner": ([40, 5], dict(form="determinant", causal=True)),
    "determinant, order 3": ([4, 40, 5], dict(form="determinant")),
    "documents": ([9, 9], dict(cu_seqlens=torch.tensor([0, 2, 2, 6, 9]), window=[3, (4, 1)])),
    "key masks": ([5, 40], dict(key_masks=[booleans(B, 5), booleans(B, 40)])),
    "key masks and lengths": (
        [5, 40],
        dict(
            key_masks=[torch.tensor([[False] * 3 + [True] * 2] * B), booleans(B, 40)],
            key_lengths=torch.tensor([[3, 5], [40, 7]]),
        ),
    ),
    "boolean mask": ([5, 40], dict(mask=booleans(B, HEADS, QUERIES, 5, 40))),
    "mask of pairs": ([5, 40], dict(mask=additive(1, 5, 40))),
    "mask of queries": ([5, 40], dict(mask=additive(1, HEADS, QUERIES, 1, 1).float())),
    "transposed mask": ([5, 40], dict(mask=booleans(40, 5).t()[None])),
    "distinct": ([9, 9], dict(distinct="with_query")),
    "sink": ([5, 40], dict(normalizer="softmax_sink", sink=draw(HEADS))),
    "sigmoid": ([5, 40], dict(normalizer="sigmoid", reduce="sum", causal=True)),
    "relu": ([5, 40], dict(normalizer="relu")),
    "softcap": ([5, 40], dict(softcap=0.7, causal=True)),
    "dropout": ([5, 40], dict(dropout_p=0.3, seed=11)),
    "dropout, first axis inner": ([40, 5], dict(dropout_p=0.3, seed=-11, reduce="mean")),
    "together": (
        [9, 9],
        dict(
            normalizer="softmax_sink",
            sink=draw(HEADS).float(),
            dropout_p=0.2,
            seed=5,
            distinct="axes",
            cu_seqlens=torch.tensor([0, 4, 9]),
            mask=additive(1, 1, 1, 9, 9),
            form="determinant",
        ),
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_kernel_and_reference_agree(name):
    lengths, options = OPTIONS[name]
    order = len(lengths)
    problem = random_problem(
        order,
        batch=B,
        heads=HEADS,
        kv_heads=2,
        queries=QUERIES,
        lengths=lengths,
        dim=6 * (order + 1),
        value_dim=5,
    ).to(torch.float64)
    problem.options = dict(options)
    extra = []
    if "sink" in options:
        extra = [options["sink"].clone().requires_grad_()]
        problem.options["sink"] = extra[0]
    found, expected = [], []
    for function, results in [(nsimplex.attention, found), (nsimplex.reference, expected)]:
        out, lse = problem.run(function)
        finite = lse.masked_fill(lse.isneginf(), 0)
        loss = (out * out.detach()).sum() + finite.sin().sum()
        results += [out, lse, *torch.autograd.grad(loss, problem.inputs + extra)]
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype
        tolerance = 1e-5 if one.dtype == torch.float32 else 1e-11
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def run_script(code, **environment):
    """What a fresh interpreter writes: the library reads its environment once."""
    path = os.pathsep.join([os.path.dirname(__file__), os.path.dirname(nsimplex.__path__[0])])
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


def test_no_option_falls_back():
    """But for the gradient of a mask that is the same for all queries."""
    code = """
import torch, nsimplex
from test_kernel_options import OPTIONS, B, HEADS, QUERIES
from problems import random_problem
for lengths, options in OPTIONS.values():
    sizes = dict(batch=B, heads=HEADS, kv_heads=2, queries=QUERIES, lengths=lengths)
    problem = random_problem(len(lengths), **sizes,
                             dim=2 * (len(lengths) + 1)).to(torch.float32)
    problem.options = options
    problem.run()[0].sum().backward()
print("next", flush=True)
mask = torch.zeros(1, 2, 3, requires_grad=True)
problem = random_problem(2, lengths=[2, 3], mask=mask).to(torch.float32)
problem.run()[0].sum().backward()
"""
    before, after = run_script(code, NSIMPLEX_WARN_FALLBACK="1").split("next")
    assert before == ""
    assert "gradient of a mask that is the same for all queries" in after


def test_plans_are_printed_on_request():
    code = """
import torch, nsimplex
q, k, v = torch.randn(3, 1, 1, 2048, 16)
nsimplex.attention(q.requires_grad_(), [k, k], [v, v], causal=True, window=[64, 3]).sum().backward()
nsimplex.attention(q[:, :, :1].double(), [k.double()], [v.double()])
"""
    assert run_script(code) == ""
    lines = run_script(code, NSIMPLEX_PLAN="1", NSIMPLEX_SIMD="AVX2").splitlines()
    plans = [dict(field.split("=") for field in line.split() if "=" in field) for line in lines]
    assert [line.split()[:3] for line in lines] == [
        ["nsimplex:", "plan:", name] for name in ("attention", "attention_backward", "attention")
    ]
    for plan in plans[:2]:  # the longer window is the inner axis
        assert (plan["axes"], plan["inner"], plan["splits"], plan["fused"]) == (
            "1,0",
            "0",
            "1",
            "0",
        )
        assert int(plan["blocks"]) > 1 and int(plan["workspace"]) > 0
        assert plan["simd"] == "AVX2"
    assert int(plans[2]["splits"]) > 1  # decoding
