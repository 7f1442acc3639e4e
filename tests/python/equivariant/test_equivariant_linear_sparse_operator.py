"""The sparse linear layer as one operator: kernel and reference, what it keeps, threads."""

import pytest
import torch
from equivariant_definition import draw
from equivariant_lists import KINDS, batch, some_of
from test_equivariant_pytorch import plan_of, reference
from torch.utils.flop_counter import FlopCounterMode

from nsimplex import TensorKind, equivariant_classes, equivariant_plan

operators = torch.ops.nsimplex


def inputs(plan, channels=3, out=4, dtype=torch.float64):
    x = draw(plan.rows[0], channels, seed=1, dtype=dtype)
    weight = draw(
        len(equivariant_classes(plan.input, plan.output)), channels, out, seed=2, dtype=dtype
    )
    bias = draw(len(equivariant_classes(0, plan.output)), out, seed=3, dtype=dtype)
    return x, weight, bias


def layer(plan, pooling="mean"):
    return lambda x, weight, bias: operators.equivariant_linear_sparse(
        x, weight, bias, plan.tensors, plan.parts, pooling
    )


@pytest.mark.parametrize("k, l", [(1, 1), (2, 2), (3, 2), (1, 3), (2, 0), (0, 2)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "sum"])
@pytest.mark.parametrize("biased", [True, False])
def test_kernels_agree_with_the_reference(k, l, kind, pooling, biased):
    plan = plan_of(k, l, kind)
    x, weight, bias = inputs(plan)
    call = (x, weight, bias if biased else None, plan.tensors, plan.parts, pooling)
    out = operators.equivariant_linear_sparse(*call)
    torch.testing.assert_close(out, reference(operators.equivariant_linear_sparse, *call))
    grad, mask = draw(*out.shape, seed=4), [True, True, biased]
    ours = operators.equivariant_linear_sparse_backward(grad, *call, mask)
    expected = reference(operators.equivariant_linear_sparse_backward, grad, *call, mask)
    for own, other in list(zip(ours, expected, strict=True))[: sum(mask)]:
        torch.testing.assert_close(own, other)


def star(leaves):
    """A node that is in every second tuple, and more tuples than fit into a chunk."""
    tuples = [(0, i) for i in range(leaves)] + [(i, (7 * i) % leaves) for i in range(1, leaves)]
    lists = batch(TensorKind(2), [sorted(set(tuples))], [leaves])
    return equivariant_plan(lists, lists)


def with_gradients(plan, arguments):
    out = layer(plan)(*arguments)
    return [out.detach(), *torch.autograd.grad(out.sin().sum(), arguments)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "leaves, channels, out", [(1, 256, 8), (2, 3, 5), (40, 33, 7), (1500, 16, 8), (9000, 20, 12)]
)
def test_bits_do_not_depend_on_threads(leaves, channels, out, dtype, same_bits):
    plan = star(leaves)
    arguments = [t.requires_grad_() for t in inputs(plan, channels, out, dtype)]
    same_bits(lambda: with_gradients(plan, arguments))


def test_long_lists(same_bits):
    """Several chunks and, of the gradients of look-ups, several blocks."""
    plan = star(6000)
    arguments = [t.requires_grad_() for t in inputs(plan, channels=64, out=5, dtype=torch.float32)]
    found = same_bits(lambda: with_gradients(plan, arguments))
    exact = [t.detach().double().requires_grad_() for t in arguments]
    out = reference(operators.equivariant_linear_sparse, *exact, plan.tensors, plan.parts, "mean")
    grads = reference(
        operators.equivariant_linear_sparse_backward,
        out.cos(),
        *exact,
        plan.tensors,
        plan.parts,
        "mean",
        [True] * 3,
    )
    for own, other in zip(found, [out, *grads], strict=True):
        torch.testing.assert_close(
            own.double(), other, rtol=1e-4, atol=1e-4 * other.abs().max().item()
        )


def test_no_sums_are_kept():
    plan = star(500)
    arguments = [t.requires_grad_() for t in inputs(plan, channels=8, out=8)]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: kept.append(t.numel()) or t, lambda t: t
    ):
        layer(plan)(*arguments)
    in_plan = sum(t.numel() for t in plan.tensors)
    assert sum(kept) == in_plan + sum(t.numel() for t in arguments)


@pytest.mark.parametrize("threads", [1, 2])
def test_inference_mode(threads):
    plan = star(500)
    arguments = inputs(plan, channels=64)
    expected = layer(plan)(*arguments)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            assert torch.equal(layer(plan)(*arguments), expected)
            assert torch.equal(layer(plan)(*(t.clone() for t in arguments)), expected)
    finally:
        torch.set_num_threads(before)


def test_flops_are_counted():
    """Those of the products: 10 classes apply to an edge and 5 to a loop."""
    tuples = batch(TensorKind(2), [[(0, 1), (1, 2), (2, 2)]], [3])
    plan = equivariant_plan(tuples, tuples)
    arguments = [t.requires_grad_() for t in inputs(plan)]
    forward = 2 * (2 * 10 + 5) * 3 * 4
    with FlopCounterMode(display=False) as counter:
        out = layer(plan)(*arguments)
    assert counter.get_total_flops() == forward
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert counter.get_total_flops() == 2 * forward


def test_empty_lists():
    kind = TensorKind(2)
    empty = batch(kind, [[]], [4])
    full = batch(kind, [some_of(kind, 4, 1.0, seed=1)], [4])
    for lists in ((empty, full), (full, empty), (empty, empty)):
        plan = equivariant_plan(*lists)
        arguments = [t.requires_grad_() for t in inputs(plan)]
        out = layer(plan)(*arguments)
        assert out.shape == (plan.rows[1], 4)
        grads = torch.autograd.grad(out.sum(), arguments)
        assert [g.shape for g in grads] == [a.shape for a in arguments]
        assert all(torch.isfinite(g).all() for g in grads)


def test_errors():
    plan = plan_of()
    x, weight, bias = inputs(plan)
    with pytest.raises(ValueError, match=r"bias: expected more than 1 classes, got 1"):
        layer(plan)(x, weight, bias[:1])
    with pytest.raises(ValueError, match=r"grad: expected \[\d+, 4\], got \[1, 4\]"):
        operators.equivariant_linear_sparse_backward(
            bias[:1], x, weight, bias, plan.tensors, plan.parts, "mean", [True] * 3
        )
    with pytest.raises(ValueError, match="output_mask: there is no bias"):
        operators.equivariant_linear_sparse_backward(
            draw(plan.rows[1], 4), x, weight, None, plan.tensors, plan.parts, "mean", [True] * 3
        )


PLAN = [
    "group_offsets",
    "group_rows",
    "row_offsets",
    "row_sources",
    "lookups",
    "counts",
    "source_offsets",
    "source_lookups",
    "terms",
    "output_places",
    "weight_classes",
]


@pytest.mark.parametrize(
    "which", [name for name in PLAN if name not in ("counts", "output_places", "weight_classes")]
)
@pytest.mark.parametrize("value", [2**31 - 1, -(2**31), 1000])
@pytest.mark.parametrize("place", [0, -1])
def test_a_plan_with_a_wrong_number_is_refused(which, value, place):
    """The kernels follow a plan without a look, so that every number that would lead out of an
    array is found."""
    plan = plan_of(2, 2, "ordered")
    x, weight, bias = inputs(plan)
    tensors = list(plan.tensors)
    tensors[PLAN.index(which)] = tensors[PLAN.index(which)].clone()
    tensors[PLAN.index(which)].view(-1)[place] = value
    if which == "terms" and place == -1:
        tensors[PLAN.index(which)].view(-1)[place - 1] = value  # the coefficient may be any number
    grad = draw(plan.rows[1], 4, seed=4)
    sums = operators.equivariant_sums(x, plan.tensors, plan.parts, True)
    for call in (
        lambda: operators.equivariant_sums(x, tensors, plan.parts, True),
        lambda: operators.equivariant_sums_backward(sums, tensors, plan.parts, True),
        lambda: operators.equivariant_linear_sparse(x, weight, bias, tensors, plan.parts, "mean"),
        lambda: operators.equivariant_linear_sparse_backward(
            grad, x, weight, bias, tensors, plan.parts, "mean", [True, True, True]
        ),
    ):
        with pytest.raises((ValueError, IndexError), match="plan|index"):
            call()


@pytest.mark.parametrize("tensor", range(11))
def test_a_plan_with_a_shortened_tensor_is_refused(tensor):
    plan = plan_of(2, 2, "ordered")
    x, weight, bias = inputs(plan)
    tensors = list(plan.tensors)
    tensors[tensor] = tensors[tensor][:-1].contiguous()
    with pytest.raises(ValueError, match="plan|x: expected"):
        operators.equivariant_linear_sparse(x, weight, bias, tensors, plan.parts, "mean")


@pytest.mark.parametrize("number", [-1, 2**31, 2**62, 2**63 - 1])
def test_a_plan_with_wrong_parts_is_refused(number):
    plan = plan_of(2, 2, "ordered")
    x, weight, bias = inputs(plan)
    for place in (0, 1, 2, 4):
        parts = list(plan.parts)
        parts[place] = number
        with pytest.raises(ValueError, match="parts|plan"):
            operators.equivariant_linear_sparse(x, weight, bias, plan.tensors, parts, "mean")


@pytest.mark.parametrize(
    "orders", [(2, 2**63 - 1), (2**63 - 1, 2), (2**62, 2**62), (2**63 - 1, 2**63 - 1)]
)
def test_orders_beyond_all_classes_are_refused(orders):
    with pytest.raises(ValueError, match="order: expected k \\+ l <= "):
        equivariant_classes(*orders)
