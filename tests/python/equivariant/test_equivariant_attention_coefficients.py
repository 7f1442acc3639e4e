"""Attention coefficients of the classes: they reproduce the layer, and belong to the class."""

import pytest
import torch

import nsimplex
from nsimplex import graph
from nsimplex.nn import EquivariantAttention


def setting(output, form, normalise=True):
    torch.manual_seed(0)
    index = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]])
    pairs = graph.from_edge_index(index, 5, directions="both").batch
    batch = graph.concatenate_graphs([graph.with_loops(pairs).batch] * 2)
    target = batch if output == 2 else graph.project_tuples(batch, output)
    layer = EquivariantAttention(2, output, 3, 4, heads=2, form=form, normalise=normalise).double()
    plan = nsimplex.equivariant_attention_plan(batch, target, form=form)
    return batch, target, layer, plan, torch.randn(len(batch), 3, dtype=torch.float64)


@pytest.mark.parametrize("form", ["softmax", "kernel"])
@pytest.mark.parametrize("output", [0, 1, 2])
def test_they_are_the_coefficients_of_the_sum(output, form):
    batch, target, layer, plan, x = setting(output, form)
    found = layer.coefficients(x, plan)
    assert found.shape == (len(layer.class_names()), 2, len(target), len(batch))
    values = (x @ layer.value_weight).unflatten(-1, (2, -1))  # [classes, m, heads, e]
    heads = torch.einsum("chji,cihe->cjhe", found, values).flatten(2)
    expected = nsimplex.equivariant_attention(x, layer._weights(), plan, **layer._options(x))
    torch.testing.assert_close((heads @ layer.output_weight).sum(0), expected)
    sums = found.sum(-1)
    torch.testing.assert_close(sums, torch.where(sums == 0, 0.0, 1.0).double())
    assert torch.equal(layer.coefficients(x, plan.packed()), found)


def test_only_tuples_of_the_class_have_some():
    batch, target, layer, plan, x = setting(2, "softmax")
    found = layer.coefficients(x, plan)
    for number, name in enumerate(layer.class_names()):
        for j, out in enumerate(target.tuples.tolist()):
            for i, own in enumerate(batch.tuples.tolist()):
                blocks: dict[int, set] = {}
                for place, node in zip(("i1", "i2", "j1", "j2"), own + out):
                    blocks.setdefault(node, set()).add(place)
                pattern = {frozenset(each) for each in blocks.values()}
                wanted = {frozenset(part.split()) for part in name.strip("{}").split("}{")}
                same = (own[0] < 5) == (out[0] < 5)
                assert bool((found[number, :, j, i] > 0).all()) == (same and pattern == wanted)


def test_gradients():
    *_, layer, plan, x = setting(1, "kernel", normalise=False)
    call = lambda x: layer.coefficients(x, plan)
    assert torch.autograd.gradcheck(call, [x[:, :].clone().requires_grad_()], fast_mode=True)
