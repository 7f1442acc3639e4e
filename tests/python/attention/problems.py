"""Inputs for the attention tests: random problems and the table of bench/cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import torch
from definition import definition
from torch import Tensor

import nsimplex

naive = definition  #: what most tests compare with
TABLE = Path(__file__).resolve().parents[3] / "bench" / "cases" / "attention.txt"


@dataclass
class Problem:
    """Arguments of one call.

    ``inputs`` is query, keys.., values..; ``learned`` are the options with gradients. "masks.1" is
    entry 1 of a list, which ``options`` has with None in that place.
    """

    inputs: list[Tensor]
    options: dict = field(default_factory=dict)
    learned: dict[str, Tensor] = field(default_factory=dict)

    @property
    def order(self) -> int:
        return len(self.inputs) // 2

    @property
    def leaves(self) -> list[Tensor]:
        return [*self.inputs, *self.learned.values()]

    def to(self, dtype: torch.dtype) -> Problem:
        """The same numbers, as leaves that want gradients."""
        leaves = [t.detach().to(dtype).requires_grad_() for t in self.leaves]
        n = len(self.inputs)
        return Problem(leaves[:n], self.options, dict(zip(self.learned, leaves[n:])))

    def call(self, *leaves: Tensor, function=nsimplex.attention) -> tuple[Tensor, Tensor]:
        """(out, lse) as a function of the leaves."""
        n = self.order
        options = self.options_with(leaves[1 + 2 * n :])
        return function(
            leaves[0],
            leaves[1 : 1 + n],
            leaves[1 + n : 1 + 2 * n],
            return_lse=True,
            **options,
        )

    def options_with(self, learned: Sequence[Tensor]) -> dict:
        """All options, with these in place of the learned ones."""
        options = dict(self.options)
        for name, leaf in zip(self.learned, learned):
            name, _, entry = name.partition(".")
            options[name] = leaf if not entry else _with_entry(options[name], int(entry), leaf)
        return options

    def run(self, function=nsimplex.attention) -> tuple[Tensor, Tensor]:
        return self.call(*self.leaves, function=function)

    def outcome(self, function=nsimplex.attention) -> dict[str, Tensor]:
        """Both outputs and the gradient of every input of a loss that weighs all of both."""
        out, lse = self.run(function)
        generator = torch.Generator().manual_seed(7)
        grad_out = torch.randn(out.shape, generator=generator, dtype=torch.float64)
        grad_lse = torch.randn(lse.shape, generator=generator, dtype=torch.float64)
        grad_lse = grad_lse.masked_fill(lse.isneginf(), 0)
        grads = torch.autograd.grad(
            [out, lse], self.leaves, [grad_out.to(out.dtype), grad_lse.to(lse.dtype)]
        )
        named = {"out": out.detach(), "lse": lse.detach().masked_fill(lse.isneginf(), 0)}
        n = self.order
        names = ["query"] + [f"key {m}" for m in range(n)] + [f"value {m}" for m in range(n)]
        return named | dict(zip([*names, *self.learned], grads))


def _with_entry(entries: list, index: int, entry: Tensor) -> list:
    return [entry if i == index else each for i, each in enumerate(entries)]


def random_problem(
    order: int = 2,
    *,
    batch: int = 1,
    heads: int = 2,
    kv_heads: int | None = None,
    queries: int = 6,
    lengths=None,
    dim: int = 4,
    value_dim: int | None = None,
    dtype=torch.float64,
    seed: int = 0,
    **options,
) -> Problem:
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


#: Flags of the table and what they are without being named; a list is what has commas.
DEFAULTS = {
    "order": 2,
    "batch": 1,
    "heads": 4,
    "kv-heads": 0,
    "seq": 2048,
    "keys": [],
    "width": 64,
    "value-width": 0,
    "window": [],
    "key-lengths": [],
    "causal": False,
    "reduce": "product",
    "scale": "standard",
    "dtype": "float32",
    "amplitude": 1.0,
    "heads-inside": False,
    "form": "product",
    "normalizer": "softmax",
    "distinct": "none",
    "documents": [],
    "key-masks": False,
    "mask": "none",
    "dropout": 0.0,
    "softcap": 0.0,
}


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


def _options(case: SimpleNamespace, lengths: list[int]) -> tuple[dict, dict]:
    """Options of a case, without and with gradients; masks keep two thirds of what they cover."""
    same = ("causal", "reduce", "scale", "form", "normalizer", "distinct")
    options = {name: getattr(case, name) for name in same}
    learned = {}
    generator = torch.Generator().manual_seed(5)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    if case.window:
        options["window"] = case.window * case.order if len(case.window) == 1 else case.window
    if case.key_lengths:
        options["key_lengths"] = torch.tensor(case.key_lengths)
    if case.documents:
        options["cu_seqlens"] = torch.tensor([0, *case.documents]).cumsum(0)
    if case.key_masks:
        options["key_masks"] = [draw(case.batch, length) > -0.43 for length in lengths]
    if case.mask == "boolean":
        options["mask"] = draw(case.batch, case.heads, case.seq, *lengths) > -0.43
    if case.mask == "additive":
        mask = draw(case.batch, 1, case.seq, *lengths)
        learned["mask"] = mask.masked_fill(draw(*mask.shape) < -0.43, -torch.inf)
    if case.normalizer == "softmax_sink":
        learned["sink"] = draw(case.heads)
    if case.softcap > 0:
        options["softcap"] = case.softcap
    if case.dropout > 0:
        options |= {"dropout_p": case.dropout, "seed": 20250711}
    return options, learned


def from_case(case: SimpleNamespace) -> tuple[Problem, torch.dtype]:
    """A problem of the table, its numbers rounded to the case's dtype."""
    order, dtype = case.order, getattr(torch, case.dtype)
    lengths = case.keys or [case.seq]
    lengths = lengths * order if len(lengths) == 1 else lengths
    options, learned = _options(case, lengths)
    problem = random_problem(
        order,
        batch=case.batch,
        heads=case.heads,
        kv_heads=case.kv_heads,
        queries=case.seq,
        lengths=lengths,
        dim=case.width,
        value_dim=case.value_width,
    )
    problem.options = options
    problem.learned = {name: t.to(dtype) for name, t in learned.items()}
    problem.inputs = [(t * case.amplitude).to(dtype) for t in problem.inputs]
    if case.heads_inside:
        problem.inputs = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in problem.inputs]
    return problem, dtype
