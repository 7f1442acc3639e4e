"""Compiled kernels against the composite in double precision: outputs and gradients."""

from __future__ import annotations

from collections import Counter

import cases
import torch
from problems import Problem
from setups import Launches, Setup

import nsimplex

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp16": torch.float16}
#: Largest relative error in the 2-norm, of every result.
LIMITS = {"bf16": 2e-2, "fp32": 2e-5, "fp16": 3e-3}


#: The order of what is checked, in case the time ends.
KINDS = """bf16 plain, bf16 long, fp32 plain, bf16 option, fp32 option, fp32 long, fp16 plain, fp16
    long, fp32 kernel option, fp16 option, bf16 kernel option""".replace("\n   ", "").split(", ")


def items(setup: Setup) -> list[str]:
    names, ordered = list(cases.builders(setup)), []
    for kind in KINDS:
        label, _, group = kind.partition(" ")
        own = [f"{label} {name}" for name in names if name.startswith(f"{group}:")]
        # float16 is the same program with other instructions.
        ordered += own[::3] if label == "fp16" else own
    return ordered


def on_device(value, device: str):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(x, device) for x in value)
    return value


def outcome(problem: Problem, dtype: torch.dtype, device: str, function) -> dict:
    """Out, lse, and the gradients of a loss that weighs all of both."""
    leaves = [t.detach().to(device).to(dtype).requires_grad_() for t in problem.leaves]
    count = len(problem.inputs)
    options = {name: on_device(value, device) for name, value in problem.options.items()}
    moved = Problem(leaves[:count], options, dict(zip(problem.learned, leaves[count:])))
    out, lse = moved.run(function)
    draw = lambda like, seed: torch.randn(
        like.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(device)
    # The same gradients for every dtype: representable in all of them.
    grad_out = draw(out, 7).to(torch.bfloat16).to(dtype)
    grad_lse = draw(lse, 8).float().masked_fill(lse.isneginf(), 0).to(lse.dtype)
    grads = torch.autograd.grad([out, lse], leaves, [grad_out, grad_lse], allow_unused=True)
    names = ["query"]
    names += [f"{kind} {m}" for kind in ("key", "value") for m in range(problem.order)]
    names += list(problem.learned)
    results = {"out": out.detach(), "lse": lse.detach()}
    return results | {n: g for n, g in zip(names, grads) if g is not None}


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The relative error in the 2-norm; infinite where one has a NaN or infinity that the other
    lacks."""
    found, expected = found.double(), expected.double()
    if expected.numel() == 0:
        return 0.0 if found.shape == expected.shape else float("inf")
    finite = expected.isfinite()
    same = torch.equal(found.isfinite(), finite) and torch.equal(found[~finite], expected[~finite])
    if not same:
        return float("inf")
    size = expected[finite].norm().clamp_min(1e-6 * expected.numel() ** 0.5)
    return float((found - expected)[finite].norm() / size)


def rounded(problem: Problem, dtype: torch.dtype) -> Problem:
    """The numbers that the dtype can hold, in double precision."""
    double = lambda t: t.detach().to(dtype).double()
    return Problem(
        [double(t) for t in problem.inputs],
        problem.options,
        {name: double(t) for name, t in problem.learned.items()},
    )


def errors(problem: Problem, dtype: torch.dtype, device: str) -> tuple[dict, Counter]:
    problem = rounded(problem, dtype)
    with Launches() as launches:
        found = outcome(problem, dtype, device, nsimplex.attention)
    expected = outcome(problem, torch.float64, device, nsimplex.reference)
    return {name: relative(found[name], expected[name]) for name in expected}, launches.names


def run(item: str, setup: Setup) -> dict:
    label, _, name = item.partition(" ")
    problem = cases.builders(setup)[name]()
    worst, launches = errors(problem, DTYPES[label], setup.device)
    place = max(worst, key=worst.get)
    # A logit of 1e4 has an absolute error of a thousand times the precision.
    limit = LIMITS[label] * ((100 if label == "fp32" else 20) if "1e4" in name else 1)
    if "relu" in name and label != "fp32":
        # A share of the scores, as large as their rounding, changes its sign: the slopes of these
        # are wrong in full size, and the norm of the gradients by the root of the share.
        limit = max(limit, torch.finfo(DTYPES[label]).eps ** 0.5)
    record = {"ok": worst[place] <= limit, "worst": worst[place], "of": place}
    if not record["ok"]:
        shown = {n: f"{e:.1e}" for n, e in worst.items() if e > limit}
        record["error"] = f"relative errors {shown}"
    return record | {"launches": dict(launches)}


def lines(records: list[dict]) -> list[str]:
    done = [r for r in records if "worst" in r]
    table = []
    for kind in sorted(KINDS):
        own = [r for r in done if r["item"].startswith(f"{kind}:")]
        if not own:
            continue
        good = [r for r in own if r["ok"]]
        worst = max(good, key=lambda r: r["worst"], default=None)
        text = f"{kind:18} {len(good):3} of {len(own):3} right"
        if worst:
            text += f", worst {worst['worst']:.1e} ({worst['of']}, {worst['item'][5:45]})"
        without = sum(not r["launches"] for r in own)
        table.append(text + (f", {without} without a kernel" if without else ""))
    return table
