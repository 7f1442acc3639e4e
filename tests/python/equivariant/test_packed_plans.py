"""Packed plans: the same results, and one compiled or exported program for every batch."""

import pytest
import torch
from torch._dynamo.utils import counters

import nsimplex
from nsimplex import graph
from nsimplex.nn import EquivariantEncoder

FORMS = "softmax", "kernel"


def lists(nodes, seed=0):
    """Random graphs with loops in one batch."""
    draw = torch.Generator().manual_seed(seed)
    own = []
    for n in nodes:
        pairs = torch.triu_indices(n, n, 1).t()
        kept = pairs[torch.rand(len(pairs), generator=draw) < 0.6]
        own.append(graph.edge_tuples(kept, n, loops=True).batch)
    return graph.concatenate_graphs(own)


def plan(batch, form, output=2):
    return nsimplex.equivariant_encoder_plan(
        batch, batch if output == 2 else graph.project_tuples(batch, output), form=form
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("output", [0, 1, 2])
def test_a_packed_plan_gives_the_same(form, output):
    torch.manual_seed(0)
    layer = EquivariantEncoder(2, output, 4, 4, heads=2, form=form).double()
    own = plan(lists((3, 5, 1, 2)), form, output)
    assert own.packed().attention.rows == () and own.packed().packed().light.rows == ()
    x = torch.randn(own.attention.rows[0], 4, dtype=torch.float64, requires_grad=True)
    found = []
    for each in (own, own.packed()):
        out = layer(x, each)
        found.append([out, *torch.autograd.grad(out.sin().sum(), [x, *layer.parameters()])])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("form", FORMS)
def test_compiled_steps_of_twenty_batches(form):
    """Forward and backward are compiled for the first batch, and for any sizes at the second."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    layer = EquivariantEncoder(2, 2, 4, 4, heads=2, form=form)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for seed in range(20):
        batch = lists([2 + seed % 3, *(3 + (seed * k) % 4 for k in range(2 + seed % 4))], seed)
        own = plan(batch, form).packed()
        x = torch.randn(len(batch), 4, requires_grad=True)
        ours, exact = (f(x, own) for f in (compiled, layer))
        torch.testing.assert_close(ours, exact)
        for one, other in zip(
            *(
                torch.autograd.grad(out.sin().sum(), [x, *layer.parameters()])
                for out in (ours, exact)
            ),
            strict=True,
        ):
            torch.testing.assert_close(one, other)
    assert counters["stats"]["unique_graphs"] <= 2


def test_an_exported_program_takes_other_lists():
    torch.manual_seed(0)
    layer = EquivariantEncoder(2, 2, 4, 4, heads=2)
    calls = [
        (torch.randn(len(batch), 4), plan(batch, "softmax").packed())
        for batch in (lists((3, 4), 1), lists((5, 2, 6), 2))
    ]
    shapes = torch.export.ShapesCollection()
    for tensor in torch.utils._pytree.tree_leaves(calls[0]):
        if isinstance(tensor, torch.Tensor):
            shapes[tensor] = {0: torch.export.Dim.AUTO}
    program = torch.export.export(layer, calls[0], dynamic_shapes=shapes).module()
    for x, own in calls:
        torch.testing.assert_close(program(x, own), layer(x, own))


def test_autocast_in_a_compiled_layer():
    torch.manual_seed(0)
    torch._dynamo.reset()
    layer = EquivariantEncoder(2, 1, 4, 4, heads=2)
    batch = lists((3, 4))
    own = plan(batch, "softmax", 1)
    x = torch.randn(len(batch), 4)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, exact = compiled(x, own.packed()), layer(x, own)
    assert ours.dtype == exact.dtype
    torch.testing.assert_close(ours, exact, rtol=2e-2, atol=2e-2)
