"""Separable attention: the definition tuple by tuple, features, hostile inputs, threads."""

import itertools

import pytest
import torch
from separable import ORDERS, call, draw, problem
from torch.autograd import gradcheck

import nsimplex


def admissible(i, queries, length, causal, window):
    position = i + length - queries
    left, right = window
    return [
        j
        for j in range(length)
        if (left < 0 or j > position - left)
        and (right < 0 or j <= position + right)
        and (not causal or j <= position)
    ]


def definition(inputs, causal=False, window=None):
    """Every query and every tuple of keys, one at a time."""
    order = len(inputs) // 2
    query, keys, values = inputs[0], inputs[1 : 1 + order], inputs[1 + order :]
    batch, heads, queries, _ = query.shape
    group = heads // keys[0].size(1)
    windows = (
        [(w, 0) if isinstance(w, int) else w for w in window] if window else [(-1, -1)] * order
    )
    out = query.new_zeros(batch, heads, queries, values[0].size(-1))
    normalizer = query.new_zeros(batch, heads, queries)
    for b, h, i in itertools.product(range(batch), range(heads), range(queries)):
        sees = [admissible(i, queries, k.size(2), causal, w) for k, w in zip(keys, windows)]
        for js in itertools.product(*sees):
            weight, value = query[b, h, i], torch.ones_like(values[0][b, 0, 0]) if js else None
            for m, j in enumerate(js):
                weight = weight * keys[m][b, h // group, j]
                value = value * values[m][b, h // group, j]
            out[b, h, i] += weight.sum() * value
            normalizer[b, h, i] += weight.sum()
    return torch.where(normalizer.unsqueeze(-1) == 0, 0, out / normalizer.unsqueeze(-1)), normalizer


OPTIONS = [
    {},
    {"causal": True},
    {"causal": True, "window": [2, 3, 1]},
    {"window": [(2, 1), (-1, 2), (3, -1)]},
]


def of_order(options, order):
    return options | ({"window": options["window"][:order]} if "window" in options else {})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("function", [nsimplex.separable_attention, nsimplex.separable_reference])
def test_definition(order, options, function):
    options = of_order(options, order)
    inputs = [t.detach() for t in problem(order, batch=2, heads=4, kv_heads=2, queries=4)]
    for ours, exact in zip(call(inputs, function, **options), definition(inputs, **options)):
        torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "options", [{"causal": True}, {}, {"causal": True, "window": [7, 100, 33]}], ids=str
)
@pytest.mark.parametrize(
    "dtype, error",
    [(torch.float64, 1e-12), (torch.float32, 2e-5), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)],
)
@pytest.mark.parametrize("inside", [False, True])
def test_kernel_against_the_reference(order, options, dtype, error, inside):
    """At lengths of several chunks, with gradients, whatever the memory order."""
    options = of_order(options, order)
    inputs = problem(
        order,
        batch=2,
        heads=4,
        kv_heads=2,
        queries=150,
        lengths=[150] * order,
        features=12,
        value_dim=17,
        dtype=dtype,
    )
    if inside:
        inputs = [
            t.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for t in inputs
        ]
    exact_inputs = [t.detach().double().requires_grad_() for t in inputs]
    ours, exact = (
        call(inputs, **options),
        call(exact_inputs, nsimplex.separable_reference, **options),
    )
    weight = draw(*exact[0].shape, seed=99)
    ours_grads = torch.autograd.grad([ours[0]], inputs, [weight.to(dtype)])
    exact_grads = torch.autograd.grad([exact[0]], exact_inputs, [weight.to(dtype).double()])
    assert ours[0].dtype == dtype and ours[0].stride() == torch.empty_like(ours[0]).stride()
    for a, b in zip([*ours, *ours_grads], [*exact, *exact_grads]):
        assert (a.double() - b).norm() <= error * b.norm()
    for grad, tensor in zip(ours_grads, inputs):
        assert grad.dtype == dtype and grad.stride() == tensor.stride()


@pytest.mark.parametrize("kind", ["elu", "random"])
def test_derivatives_through_features_and_forward_mode(kind):
    query, k1, k2, v1, v2 = (draw(1, 1, 3, 3, seed=s).requires_grad_() for s in range(5))
    make = lambda q, a, b, v, w: nsimplex.separable_attention(
        q, [a, b], [v, w], features=kind, causal=True
    )
    assert gradcheck(make, (query, k1, k2, v1, v2), check_forward_ad=True)


def test_frozen_inputs_get_no_gradient():
    inputs = problem(2)
    inputs[1].requires_grad_(False)
    call(inputs, causal=True)[0].sum().backward()
    assert inputs[1].grad is None and inputs[0].grad is not None


def test_order_one_is_linear_attention():
    q, k, v = draw(3, 1, 2, 20, 8).unbind(0)
    phi_q, phi_k = (torch.nn.functional.elu(t) + 1 for t in (q, k))
    weights = (phi_q @ phi_k.transpose(-1, -2)).tril()
    expected = weights @ v / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(nsimplex.separable_attention(q, [k], [v], causal=True), expected)


def test_equal_features_give_the_product_of_means():
    inputs = [t.detach() for t in problem(3, queries=40, lengths=[40, 50, 60])]
    flat = [inputs[0], *(torch.ones_like(k) for k in inputs[1:4]), *inputs[4:]]
    expected = inputs[4].mean(2) * inputs[5].mean(2) * inputs[6].mean(2)
    torch.testing.assert_close(call(flat)[0], expected.unsqueeze(2).expand(-1, -1, 40, -1))


def test_order_of_the_axes_does_not_matter():
    q, k1, k2, v1, v2 = problem(2, queries=70)
    one = call([q, k1, k2, v1, v2], causal=True, window=[5, 40])
    other = call([q, k2, k1, v2, v1], causal=True, window=[40, 5])
    for a, b in zip(one, other):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("function", [nsimplex.separable_attention, nsimplex.separable_reference])
def test_queries_without_a_normaliser_are_zero_and_give_nothing(function):
    q, k1, k2, v1, v2 = problem(2, queries=6, lengths=[6, 3])  # axis 2: the first three see no key
    silent = q.detach().clone()
    silent[:, :, 4] = 0
    silent.requires_grad_()
    out, normalizer = call([silent, k1, k2, v1, v2], function, causal=True)
    assert (out[:, :, [0, 1, 2, 4]] == 0).all() and (normalizer[:, :, [0, 1, 2, 4]] == 0).all()
    assert (out[:, :, [3, 5]] != 0).all()
    grads = torch.autograd.grad(out.square().sum() + out.sum(), [silent, k1, k2, v1, v2])
    assert all(g.isfinite().all() for g in grads)
    assert not grads[0][:, :, [0, 1, 2, 4]].any()
    alone = [silent[:, :, [3, 5]], k1, k2, v1, v2]
    assert grads[1][:, :, :1].any() and alone[0].shape[2] == 2


def test_relu_features_that_are_all_zero():
    q, k, v = (draw(1, 1, 5, 3, seed=s).requires_grad_() for s in range(3))
    out = nsimplex.separable_attention(q, [-k.abs()], [v], features="relu")
    assert not out.any()
    assert not any(g.any() for g in torch.autograd.grad(out.sum(), (q, k, v)))


@pytest.mark.parametrize(
    "shape",
    [dict(queries=0, lengths=[3, 4]), dict(queries=3, lengths=[0, 4]), dict(batch=0)],
    ids=str,
)
def test_empty(shape):
    inputs = problem(2, **shape)
    out, normalizer = call(inputs, causal=True)
    assert out.shape[:3] == inputs[0].shape[:3] and not normalizer.any()
    out.sum().backward()
    assert all(t.grad.shape == t.shape and not t.grad.any() for t in inputs)


def test_windows_wider_than_the_sequence_are_none():
    inputs = [t.detach() for t in problem(2, queries=50, lengths=[50, 50])]
    for a, b in zip(call(inputs, causal=True), call(inputs, causal=True, window=[50, 2**40])):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


class Layer(torch.nn.Module):
    def forward(self, query, key, value):
        return nsimplex.separable_attention(
            query,
            [key, key],
            [value, value],
            features="random",
            causal=True,
            window=[query.size(2) // 2, -1],
        ).sin()


def test_compile_and_export_with_dynamic_lengths():
    torch._dynamo.reset()
    compiled = torch.compile(Layer(), fullgraph=True, dynamic=True, backend="aot_eager")
    length = torch.export.Dim("length", min=4, max=512)
    example = tuple(draw(1, 2, 16, 8, seed=s, dtype=torch.float32) for s in range(3))
    program = torch.export.export(Layer(), example, dynamic_shapes=({2: length},) * 3)
    for count in (6, 40):
        inputs = [
            draw(1, 2, count, 8, seed=s, dtype=torch.float32).requires_grad_() for s in range(3)
        ]
        for function in (compiled, program.module()):
            torch.testing.assert_close(function(*inputs), Layer()(*inputs))
        ours, expected = (
            torch.autograd.grad(f(*inputs).sum(), inputs) for f in (compiled, Layer())
        )
        for a, b in zip(ours, expected):
            torch.testing.assert_close(a, b)


def test_autocast_computes_in_float32():
    inputs = problem(2, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _ = call(inputs, causal=True)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, call([t.float() for t in inputs], causal=True)[0])


@pytest.mark.parametrize("heads", [1, 16])
@pytest.mark.parametrize("order, window", [(1, None), (2, None), (2, [5, 100])])
@pytest.mark.parametrize("queries", [1, 200, 2000])
def test_bits_do_not_depend_on_threads(heads, order, window, queries, same_bits):
    inputs = problem(
        order,
        heads=heads,
        queries=queries,
        lengths=[queries] * order,
        features=24,
        value_dim=20,
        dtype=torch.float32,
    )

    def run():
        out, normalizer = call(inputs, causal=True, window=window)
        return out.detach(), normalizer, *torch.autograd.grad(out.square().sum(), inputs)

    same_bits(run)


@pytest.mark.parametrize(
    "change, error, words",
    [
        (dict(query=torch.ones(1, 2, 6)), ValueError, "query: expected 4 dimensions"),
        (dict(query=torch.ones(1, 2, 6, 4).long()), TypeError, "query: expected float32"),
        (dict(query=torch.ones(1, 3, 6, 4)), ValueError, "divisible by the 2 key heads, got 3"),
        (dict(keys=[]), ValueError, "keys: expected 1 to 8 tensors, got 0"),
        (
            dict(keys=[torch.ones(1, 2, 6, 4)]),
            ValueError,
            "values: expected one for each of the 1 keys",
        ),
        (
            dict(keys=[torch.ones(1, 2, 6, 4), torch.ones(1, 2, 6, 5)]),
            ValueError,
            r"keys\[1\]: expected features 4, got 5",
        ),
        (
            dict(values=[torch.ones(1, 2, 6, 3), torch.ones(1, 2, 7, 3)]),
            ValueError,
            r"values\[1\]: expected length 6, got 7",
        ),
        (
            dict(values=[torch.ones(1, 2, 6, 3), torch.ones(1, 2, 6, 2)]),
            ValueError,
            r"values\[1\]: expected value dim 3, got 2",
        ),
        (
            dict(values=[torch.ones(1, 2, 6, 3), torch.ones(1, 2, 6, 3).double()]),
            TypeError,
            "dtype",
        ),
        (dict(window=[0, 3]), ValueError, r"window\[0\]: left counts"),
        (dict(window=[3]), ValueError, "window: expected one entry for each of 2 axes"),
        (dict(window=[(3, -2), 1]), ValueError, r"window\[0\]: expected right"),
        (
            dict(features="softmax"),
            ValueError,
            "features: expected elu, relu, random, a function or None, got 'softmax'",
        ),
        *[
            (dict(features=features), ValueError, rf"\] features: .* \[1, 2, 6, R\] .*got {got}")
            for features, got in (
                (torch.nn.ReLU, "ReLU"),
                (lambda x: [x], "list"),
                (lambda x: x.int(), r"a torch.int32 tensor"),
                (lambda x: x.transpose(2, 3), r"a torch.float32 tensor of shape \[1, 2, 4, 6\]"),
                (lambda x: x[:, :, :3], r"a torch.float32 tensor of shape \[1, 2, 3, 4\]"),
            )
        ],
    ],
)
def test_errors(change, error, words):
    arguments = (
        dict(
            query=torch.ones(1, 2, 6, 4),
            keys=[torch.ones(1, 2, 6, 4)] * 2,
            values=[torch.ones(1, 2, 6, 3)] * 2,
            features=None,
        )
        | change
    )
    with pytest.raises(error, match=words):
        nsimplex.separable_attention(**arguments)
