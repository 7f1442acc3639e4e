"""Sparse equivariant layers as PyTorch operators: the reference, compile and export, threads."""

import pytest
import torch
from equivariant_definition import draw
from equivariant_lists import KINDS, batch, some_of

from nsimplex import TensorKind, equivariant_linear_sparse, equivariant_plan

operators = torch.ops.nsimplex


def plan_of(k=2, l=2, kind="ordered", nodes=(5, 0, 7), share=0.5):
    lists = [
        batch(
            KINDS[kind](order),
            [some_of(KINDS[kind](order), n, share, seed=n) for n in nodes],
            list(nodes),
        )
        for order in (k, l)
    ]
    loops = kind != "undirected_loop_free"
    return equivariant_plan(*lists, input_loops=loops, output_loops=loops)


def reference(operator, *arguments):
    """What an operator gives where no kernel fits."""
    with torch.no_grad():
        return operator.default._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *arguments)


@pytest.mark.parametrize("k, l", [(1, 1), (2, 2), (3, 2), (1, 3), (2, 0), (0, 2)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("channels", [1, 3, 8, 37])
def test_kernels_agree_with_the_reference(k, l, kind, mean, channels):
    plan = plan_of(k, l, kind)
    x = draw(plan.rows[0], channels, seed=1)
    ours = operators.equivariant_sums(x, plan.tensors, plan.parts, mean)
    torch.testing.assert_close(
        ours, reference(operators.equivariant_sums, x, plan.tensors, plan.parts, mean)
    )
    grad = draw(*ours.shape, seed=2)
    back = operators.equivariant_sums_backward(grad, plan.tensors, plan.parts, mean)
    expected = reference(operators.equivariant_sums_backward, grad, plan.tensors, plan.parts, mean)
    torch.testing.assert_close(back, expected)
    torch.testing.assert_close(
        (ours * grad).sum(), (x * back).sum()
    )  # one is the other's transpose


def test_bits_do_not_depend_on_threads(same_bits):
    """With a hub and a list long enough that every pass is cut into several tasks."""
    leaves = 6000
    tuples = [(0, i) for i in range(leaves)] + [(i, (7 * i) % leaves) for i in range(1, leaves)]
    lists = batch(TensorKind(2), [sorted(set(tuples))], [leaves])
    plan = equivariant_plan(lists, lists)
    x = draw(plan.rows[0], 5, dtype=torch.float32).requires_grad_()
    weight = draw(15, 5, 4, dtype=torch.float32)

    def call():
        out = operators.equivariant_sums(x, plan.tensors, plan.parts, True)
        return out.detach(), *torch.autograd.grad(out.sin().sum(), x)

    found = same_bits(call)
    expected = reference(operators.equivariant_sums, x.detach(), plan.tensors, plan.parts, True)
    torch.testing.assert_close(found[0], expected)
    assert equivariant_linear_sparse(x, weight, None, plan).shape == (plan.rows[1], 4)


def test_a_plan_that_is_none():
    plan = plan_of()
    x = draw(plan.rows[0], 2)
    with pytest.raises(ValueError, match="plan: expected 11 tensors of an equivariant_plan, got 2"):
        operators.equivariant_sums(x, plan.tensors[:2], plan.parts, True)
    with pytest.raises(TypeError, match="plan\\[4\\]: expected contiguous Int"):
        operators.equivariant_sums(
            x, [*plan.tensors[:4], plan.tensors[4].long(), *plan.tensors[5:]], plan.parts, True
        )
