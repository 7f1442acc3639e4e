"""Inputs for the attention tests: random problems, the table of bench/cases, and an oracle of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor

import nsimplex

TABLE = Path(__file__).resolve().parents[3] / "bench" / "cases" / "attention.txt"


@dataclass
class Problem:
    """Arguments of one call. ``inputs`` is query, keys.., values.."""

    inputs: list[Tensor]
    options: dict = field(default_factory=dict)

    @property
    def order(self) -> int:
        return len(self.inputs) // 2

    def to(self, dtype: torch.dtype) -> Problem:
        """The same numbers, as leaves that want gradients."""
        return Problem([t.detach().to(dtype).requires_grad_() for t in self.inputs], self.options)

    def run(self, function=nsimplex.attention) -> tuple[Tensor, Tensor]:
        n = self.order
        query, keys, values = self.inputs[0], self.inputs[1 : 1 + n], self.inputs[1 + n :]
        return function(query, keys, values, return_lse=True, **self.options)

    def outcome(self, function=nsimplex.attention) -> dict[str, Tensor]:
        """Both outputs and the gradient of every input of a loss that weighs all of both."""
        out, lse = self.run(function)
        generator = torch.Generator().manual_seed(7)
        grad_out = torch.randn(out.shape, generator=generator, dtype=torch.float64)
        grad_lse = torch.randn(lse.shape, generator=generator, dtype=torch.float64)
        grad_lse = grad_lse.masked_fill(lse.isneginf(), 0)
        grads = torch.autograd.grad(
            [out, lse], self.inputs, [grad_out.to(out.dtype), grad_lse.to(lse.dtype)]
        )
        named = {"out": out.detach(), "lse": lse.detach().masked_fill(lse.isneginf(), 0)}
        n = self.order
        names = ["query"] + [f"key {m}" for m in range(n)] + [f"value {m}" for m in range(n)]
        return named | dict(zip(names, grads))


def random_problem(
    order: int = 2, *, batch: int = 1, heads: int = 2, kv_heads: int | None = None, queries: int = 6,
    lengths=None, dim: int = 4, value_dim: int | None = None, dtype=torch.float64, seed: int = 0,
    **options,
) -> Problem:  # fmt: skip
    """Normal inputs; every axis has a length of its own unless ``lengths`` says otherwise."""
    generator = torch.Generator().manual_seed(seed)
    lengths = lengths or [queries + m for m in range(order)]
    kv_heads = kv_heads or heads

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    return Problem(
        [draw(batch, heads, queries, dim)]
        + [draw(batch, kv_heads, length, dim) for length in lengths]
        + [draw(batch, kv_heads, length, value_dim or dim) for length in lengths],
        options,
    )


def naive(query, keys, values, *, causal=False, window=None, reduce="product", scale="standard",
          key_lengths=None, return_lse=True):  # fmt: skip
    """The definition with all tuples at once, by einsum: independent of the library's own reference."""
    order, queries, dim = len(keys), query.size(2), query.size(3)
    groups = query.size(1) // keys[0].size(1)
    keys = [key.repeat_interleave(groups, 1) for key in keys]
    values = [value.repeat_interleave(groups, 1) for value in values]
    axes = "uvwxyz"[:order]
    s1, s2 = (dim**-0.5, 1.0) if scale == "standard" else scale
    operands = ",".join(f"bh{axis}d" for axis in axes)
    logits = s1 * torch.einsum(f"bhtd,{operands}->bht{axes}", query, *keys)
    for m, key in enumerate(keys):
        position = torch.arange(queries)[:, None] + key.size(2) - queries
        index = torch.arange(key.size(2))[None, :]
        seen = torch.ones(1, queries, key.size(2), dtype=torch.bool)
        left, right = (-1, -1) if window is None else window[m]
        if left >= 0:
            seen = seen & (index > position - left)
        if right >= 0:
            seen = seen & (index <= position + right)
        if causal:
            seen = seen & (index <= position)
        if key_lengths is not None:
            seen = seen & (index < key_lengths[m][:, None, None])
        shape = [seen.size(0), 1, queries] + [1] * order
        shape[3 + m] = key.size(2)
        logits = logits.masked_fill(~seen.view(shape), -torch.inf)
    flat = logits.flatten(3)
    lse = flat.logsumexp(-1)
    empty = lse.isneginf()
    weights = (flat - lse.masked_fill(empty, 0)[..., None]).exp().view_as(logits)
    if reduce == "product":
        out = torch.einsum(f"bht{axes},{operands}->bhtd", weights, *values)
    else:
        out = sum(
            torch.einsum(f"bht{axes},bh{axis}d->bhtd", weights, value)
            for axis, value in zip(axes, values)
        )
        out = out / order if reduce == "mean" else out
    return s2 * out, lse


#: Flags of the table and what they are without being named; a list is what has commas.
DEFAULTS = {
    "order": 2, "batch": 1, "heads": 4, "kv-heads": 0, "seq": 2048, "keys": [], "dim": 64,
    "value-dim": 0, "window": [], "key-lengths": [], "causal": False, "reduce": "product",
    "scale": "standard", "dtype": "float32", "amplitude": 1.0, "heads-inside": False,
}  # fmt: skip


def table() -> dict[str, SimpleNamespace]:
    """The shapes that `nsimplex verify` runs, by name."""
    cases = {}
    for line in TABLE.read_text().splitlines():
        name, *flags = line.partition("#")[0].split() or [""]
        values = dict(DEFAULTS)
        for position, word in enumerate(flags):
            if not word.startswith("--"):
                continue
            kind = type(DEFAULTS[word[2:]])
            if kind is bool:
                values[word[2:]] = True
            elif kind is list:
                values[word[2:]] = [int(number) for number in flags[position + 1].split(",")]
            else:
                values[word[2:]] = kind(flags[position + 1])
        if name:
            cases[name] = SimpleNamespace(**{k.replace("-", "_"): v for k, v in values.items()})
    return cases


def from_case(case: SimpleNamespace) -> tuple[Problem, torch.dtype]:
    """A problem of the table, its numbers rounded to the case's dtype."""
    order, dtype = case.order, getattr(torch, case.dtype)
    lengths = case.keys or [case.seq]
    lengths = lengths * order if len(lengths) == 1 else lengths
    options = {"causal": case.causal, "reduce": case.reduce, "scale": case.scale}
    if case.window:
        window = case.window * order if len(case.window) == 1 else case.window
        options["window"] = window
    if case.key_lengths:
        options["key_lengths"] = torch.tensor(case.key_lengths)
    problem = random_problem(
        order, batch=case.batch, heads=case.heads, kv_heads=case.kv_heads, queries=case.seq,
        lengths=lengths, dim=case.dim, value_dim=case.value_dim, **options,
    )  # fmt: skip
    problem.inputs = [(t * case.amplitude).to(dtype) for t in problem.inputs]
    if case.heads_inside:
        problem.inputs = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in problem.inputs]
    return problem, dtype
