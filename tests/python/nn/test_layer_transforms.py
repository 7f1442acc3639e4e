"""Layers under the transforms of PyTorch: the table of docs/models.md, cell by cell.

``python tests/python/nn/test_layer_transforms.py`` writes the table anew.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "build" / "release" / "python")]

from layer_cases import (
    DIM,
    HEADS,
    assert_same_step,
    grads_of,
    graph,
    make,
    tokens,
)

from nsimplex import nn

PAGE = ROOT / "docs" / "models.md"
PADDING = dict(key_lengths=torch.tensor([7, 4]))
DOCUMENTS = dict(cu_seqlens=torch.tensor([0, 4, 7]))


class Row(NamedTuple):
    """A layer, and arguments of its forward: one entry per sequence, or one for all."""

    make: Callable[[], torch.nn.Module]
    each: dict = {}
    shared: dict = {}


def sparse_graph() -> torch.Tensor:
    return graph().float().to_sparse_csr()


ROWS = {
    "all tuples": Row(lambda: make("window")),
    "all tuples, padding": Row(lambda: make("window"), PADDING),
    "`face`": Row(lambda: make("faces")),
    "`face`, padding": Row(lambda: make("faces"), PADDING),
    "`augment` and a sink": Row(lambda: make("sink")),
    "`dropout`, training": Row(lambda: nn.SimplicialAttention(DIM, HEADS, dropout=0.5)),
    "`orders`": Row(lambda: make("orders")),
    "`TopK`": Row(lambda: make("topk")),
    "`TopK`, padding": Row(lambda: make("topk"), PADDING),
    "`TopK`, documents": Row(lambda: make("topk"), {}, DOCUMENTS),
    "`TopK`, scores softmax": Row(lambda: make("softmax indexer")),
    "`TopK`, one k per axis": Row(lambda: make("topk per axis")),
    "`TopK`, a learned reducer": Row(lambda: make("reducer")),
    "`Path`": Row(lambda: make("path")),
    "`Neighbours`": Row(lambda: make("neighbours")),
    "`Neighbours`, sparse CSR": Row(
        lambda: nn.SimplicialAttention(DIM, HEADS, select=nn.Neighbours(sparse_graph()))
    ),
    "`Neighbours`, sparse CSR in forward": Row(
        lambda: nn.SimplicialAttention(DIM, HEADS, select=nn.Neighbours()),
        {},
        dict(adjacency=sparse_graph()),
    ),
    "`Linear`": Row(lambda: make("linear")),
    "`Union`": Row(lambda: make("union")),
    "`ExpertChoice`": Row(lambda: make("expert choice")),
}


class Call:
    """A layer and its input, as functions of tensors."""

    def __init__(self, row: Row) -> None:
        self.row, self.module, self.x = row, row.make(), tokens(dtype=torch.float32)
        self.weights = {n: p.detach() for n, p in self.module.named_parameters()}
        generator = torch.Generator().manual_seed(4)
        self.directions = torch.randn(3, *self.x.shape, generator=generator)

    def run(self, x):
        torch.manual_seed(5)  # of the dropout
        return self.module(x, **self.row.each, **self.row.shared)

    def one(self, weights, x, *each):
        """The output for one sequence."""
        torch.manual_seed(5)
        given = {name: value[None] for name, value in zip(self.row.each, each)}
        return functional_call(self.module, weights, (x[None],), given | self.row.shared)[0]

    def loss(self, weights, x):
        torch.manual_seed(5)
        out = functional_call(self.module, weights, (x,), self.row.each | self.row.shared)
        return (out - 0.3).square().mean()

    def along(self, steps):
        """A number, by the steps in three directions."""
        return self.loss(self.weights, self.x + torch.einsum("s,sbtc->btc", steps, self.directions))


def close(ours, expected) -> None:
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-5)


def exact(call: Call):
    """The gradients of the loss by weights and input."""
    weights = {n: p.clone().requires_grad_() for n, p in call.weights.items()}
    x = call.x.clone().requires_grad_()
    leaves = [*weights.values(), x]
    found = torch.autograd.grad(
        call.loss(weights, x), leaves, allow_unused=True, materialize_grads=True
    )
    return dict(zip(weights, found)), found[-1]


def grad(call):
    close(torch.func.grad(call.loss, (0, 1))(call.weights, call.x), exact(call))


def vjp(call):
    _, pull = torch.func.vjp(call.loss, call.weights, call.x)
    close(pull(torch.ones(())), exact(call))


def jvp(call):
    tangent = call.directions[0]
    _, along = torch.func.jvp(lambda x: call.loss(call.weights, x), (call.x,), (tangent,))
    close(along, (exact(call)[1] * tangent).sum())


def jacobian(transform):
    def check(call):
        by_steps = torch.einsum("btc,sbtc->s", exact(call)[1], call.directions)
        close(transform(call.along)(torch.zeros(3)), by_steps)

    return check


def hessian(call):
    expected = torch.autograd.functional.hessian(call.along, torch.zeros(3))
    close(torch.func.hessian(call.along)(torch.zeros(3)), expected)


def vmap(call):
    each = [*call.row.each.values()]
    expected = [call.one(call.weights, *given) for given in zip(call.x, *each)]
    places = (None, 0, *[0] * len(each))
    close(torch.vmap(call.one, places)(call.weights, call.x, *each), torch.stack(expected))


def per_sample(call):
    each = [*call.row.each.values()]
    gradient = torch.func.grad(lambda *given: (call.one(*given) - 0.3).square().mean())
    expected = [gradient(call.weights, *given) for given in zip(call.x, *each)]
    ours = torch.vmap(gradient, (None, 0, *[0] * len(each)))(call.weights, call.x, *each)
    for name, value in ours.items():
        close(value, torch.stack([own[name] for own in expected]))


def ensemble(call):
    stacked = {name: torch.stack([value, 0.9 * value]) for name, value in call.weights.items()}
    ours = torch.vmap(call.loss, (0, None))(stacked, call.x)
    for entry, loss in enumerate(ours):
        close(loss, call.loss({n: value[entry] for n, value in stacked.items()}, call.x))


def same_step(call, run):
    x = call.x.clone().requires_grad_()
    assert_same_step(grads_of(call.module, run, x), grads_of(call.module, call.run, x))


def compiled(call):
    torch._dynamo.reset()
    given = call.row.each | call.row.shared
    run = torch.compile(call.module, backend="aot_eager", fullgraph=True)

    def seeded(x):
        torch.manual_seed(5)
        return run(x, **given)

    same_step(call, seeded)


def exported(call):
    given = call.row.each | call.row.shared
    with torch.no_grad():
        program = torch.export.export(call.module.eval(), (call.x,), given).module()
        torch.testing.assert_close(program(call.x + 1, **given), call.run(call.x + 1))


def checkpointed(call):
    given = call.row.each | call.row.shared

    def run(x):
        torch.manual_seed(5)
        return checkpoint(call.module, x, use_reentrant=False, **given)

    same_step(call, run)


def copied(call):
    expected = grads_of(call.module, call.run, call.x)  # leaves the tensors of a pass in the module
    own = copy.deepcopy(call.module)
    other = call.module
    call.module = own
    assert_same_step(grads_of(own, call.run, call.x), expected)
    call.module = other


COLUMNS = {
    "`grad`": grad,
    "`vjp`": vjp,
    "`jvp`": jvp,
    "`jacrev`": jacobian(torch.func.jacrev),
    "`jacfwd`": jacobian(torch.func.jacfwd),
    "`hessian`": hessian,
    "`vmap`": vmap,
    "`vmap(grad)`": per_sample,
    "`vmap`, weights": ensemble,
    "compile": compiled,
    "export": exported,
    "checkpoint": checkpointed,
    "`deepcopy`": copied,
}


def outcome(row: str, column: str) -> str:
    """Nothing where a cell works, or the line that refuses."""
    try:
        COLUMNS[column](Call(ROWS[row]))
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as refused:
        return str(refused).strip().splitlines()[0]
    return ""


BEGIN, END = "<!-- transforms of layers -->\n", "<!-- end of transforms -->"


def cells_of_page() -> dict[tuple[str, str], str]:
    """What the page says of each cell: nothing where it works, or the line that refuses."""
    text = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    lines = [line for line in text.splitlines() if line]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[0] == "|"
    ]
    notes = [line.split("`", 1)[1].rstrip("`") for line in lines if line[0] != "|"]
    return {
        (row[0], column): "" if cell == "yes" else notes[int(cell.strip("()")) - 1]
        for row in table[2:]
        for column, cell in zip(table[0][1:], row[1:], strict=True)
    }


def test_the_page_has_every_layer_and_transform():
    assert set(cells_of_page()) == {(row, column) for row in ROWS for column in COLUMNS}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_cell(row, column):
    assert outcome(row, column) == cells_of_page()[row, column]


def write_page() -> None:
    notes: list[str] = []

    def cell(row: str, column: str) -> str:
        said = outcome(row, column)
        if said and said not in notes:
            notes.append(said)
        return f"({notes.index(said) + 1})" if said else "yes"

    lines = ["| layer | " + " | ".join(COLUMNS) + " |", "| --- |" + " --- |" * len(COLUMNS)]
    lines += [f"| {row} | " + " | ".join(cell(row, c) for c in COLUMNS) + " |" for row in ROWS]
    lines += ["", *(f"{i}. `{note}`" for i, note in enumerate(notes, 1))]
    before, after = PAGE.read_text().split(BEGIN)[0], PAGE.read_text().split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    write_page()
