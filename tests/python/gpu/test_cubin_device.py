"""Compiled kernels on a GPU beside the composite version: run it with NSIMPLEX_CUBINS set to a file
and NSIMPLEX_WARN_FALLBACK=1, by pytest or as a program."""

import os

import pytest
import torch

import nsimplex  # noqa: F401  registers the operators

CASES = [  # of the shapes that tools/build_cubins compiles for
    # order, channels, batch, length, key heads, heads per key head, left and right by axis, layout
    (2, 128, 4, 1000, 8, 4, (32, 0, 512, 0), "bhtd"),
    (2, 128, 4, 1000, 8, 4, (32, 0, 512, 0), "bthd"),
    (2, 128, 32, 256, 4, 4, (32, 0, 512, 0), "bhtd"),
    (2, 64, 4, 1000, 8, 4, (32, 0, 512, 0), "bthd"),
    (1, 64, 4, 1000, 8, 4, (-1, 0), "bthd"),
    (1, 128, 4, 1000, 8, 4, (-1, 0), "bhtd"),
    (2, 128, 1, 8192, 1, 128, (32, 0, 512, 0), "bhtd"),
]

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or os.environ.get("NSIMPLEX_CUBINS", "off") == "off",
    reason="takes a GPU and NSIMPLEX_CUBINS",
)


def error(got, expected):
    return float((got.double() - expected.double()).norm() / expected.double().norm())


def inputs(order, channels, batch, length, kv_heads, group, layout):
    generator = torch.Generator(device="cuda").manual_seed(7)
    result = []
    for heads in [kv_heads * group] + [kv_heads] * 2 * order:
        sizes = [batch, heads, length, channels]
        if layout == "bthd":
            sizes[1:3] = sizes[2:0:-1]
        made = torch.randn(sizes, generator=generator, device="cuda").bfloat16()
        result.append(made.transpose(1, 2) if layout == "bthd" else made)
    return result


def run(operator, tensors, order, window):
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    scale = 0.5 / tensors[0].shape[3] ** 0.5
    out, lse = operator(
        leaves[0], leaves[1 : 1 + order], leaves[1 + order :], window=window, logit_scale=scale
    )
    grads = torch.autograd.grad((out.float() ** 2).sum() + lse.sum(), leaves)
    return [out.detach(), lse.detach(), *grads]


def compare():
    for order, channels, batch, length, kv_heads, group, window, layout in CASES:
        tensors = inputs(order, channels, batch, length, kv_heads, group, layout)
        got = run(torch.ops.nsimplex.attention, tensors, order, window)
        again = run(torch.ops.nsimplex.attention, tensors, order, window)
        same = all(torch.equal(a, b) for a, b in zip(got, again, strict=True))
        wide = [tensor.float() for tensor in tensors]
        expected = run(torch.ops.nsimplex.attention_reference, wide, order, window)
        errors = [error(a, b) for a, b in zip(got, expected, strict=True)]
        shown = " ".join(f"{each:.1e}" for each in errors)
        print(f"N{order} D{channels} B{batch} T{length} G{group} {layout}: {shown}", flush=True)
        assert same and max(errors) < 2e-2


def test_results_are_those_of_the_composite(capfd):
    compare()
    captured = capfd.readouterr()
    print(captured.out)
    if os.environ.get("NSIMPLEX_WARN_FALLBACK") == "1":
        assert "uses the reference version" not in captured.err


if __name__ == "__main__":
    compare()
