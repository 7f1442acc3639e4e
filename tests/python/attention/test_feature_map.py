"""Feature maps: their values, digits, derivatives and bits."""

import itertools

import pytest
import torch
from separable import ORDERS, draw
from torch.autograd import gradcheck, gradgradcheck

import nsimplex


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_random_features_estimate_the_exponential_of_pairwise_products(orthogonal, order):
    vectors = [0.3 * draw(6, seed=s) for s in range(order + 1)]
    features = [
        nsimplex.feature_map(x, "random", features=60000, seed=4, orthogonal=orthogonal, scale=1.0)
        for x in vectors
    ]
    product = torch.stack(features).prod(0) * 60000 ** ((order - 1) / 2)
    pairs = sum(a @ b for a, b in itertools.combinations(vectors, 2))
    assert product.sum().item() == pytest.approx(pairs.exp().item(), rel=0.06)


def test_random_features_are_a_function_of_the_seed():
    x = draw(5, 8)
    one = nsimplex.feature_map(x, "random", features=20, seed=1)
    torch.manual_seed(5)
    assert torch.equal(one, nsimplex.feature_map(x, "random", features=20, seed=1))
    assert not torch.equal(one, nsimplex.feature_map(x, "random", features=20, seed=2))
    first = torch.ops.nsimplex.random_directions(x, 3, 1, False)[0, :3]
    torch.testing.assert_close(first, torch.tensor(FIRST_DIRECTIONS, dtype=torch.float64))
    rows = torch.ops.nsimplex.random_directions(x, 20, 1, True)
    torch.testing.assert_close((rows[:8] @ rows[:8].T).triu(1), torch.zeros(8, 8).double())
    torch.testing.assert_close(
        rows.norm(dim=1), torch.ops.nsimplex.random_directions(x, 20, 1, False).norm(dim=1)
    )


#: Of seed 1: they must never change, or models trained with them would.
FIRST_DIRECTIONS = [0.8986774254906462, 0.05220700661023098, 0.10739985963303605]


ELU_ERRORS = {torch.float64: 4e-16, torch.float32: 2e-7, torch.bfloat16: 4e-3, torch.float16: 5e-4}


def exact_elu(x, scale=1.0):
    z = x.double() * scale
    return torch.where(z > 0, z + 1, z.clamp_max(0).exp())


@pytest.mark.parametrize("dtype", ELU_ERRORS, ids=str)
@pytest.mark.parametrize("path", ["kernel", "plain"])
def test_small_elu_features_keep_their_digits(dtype, path):
    """exp below 0: 0 in no dtype before its own exp is, and as exact as the dtype."""
    least = {torch.float64: -700, torch.float16: -9}.get(dtype, -80)
    x = torch.cat([torch.linspace(least, 0, 1001), torch.linspace(0, 30, 333)]).to(dtype)
    make = nsimplex.feature_map if path == "kernel" else torch.func.vmap(nsimplex.feature_map)
    found = make(x[:, None])[:, 0]
    assert found.dtype == dtype and (found > 0).all()
    assert ((found.double() - exact_elu(x)).abs() <= ELU_ERRORS[dtype] * exact_elu(x)).all()
    ends = nsimplex.feature_map(
        torch.tensor([-torch.inf, torch.inf, torch.nan, -1e4, 0.0], dtype=dtype)
    )
    assert ends[[0, 1, 3, 4]].tolist() == [0, torch.inf, 0, 1] and ends[2].isnan()


@pytest.mark.parametrize("scale", [None, 0.5])
def test_derivatives_of_elu_features(scale):
    function = lambda x: nsimplex.feature_map(x, scale=scale)
    x = draw(3, 7).mul(4).requires_grad_()
    assert gradcheck(function, (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, (x,))
    deep = torch.tensor([-80.0, -18.0, -1.0, 2.0], requires_grad=True)
    (slope,) = torch.autograd.grad(function(deep).sum(), deep, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), deep)
    s = scale or 1
    exact = exact_elu(deep.detach(), s)
    torch.testing.assert_close(slope.double(), s * exact.clamp_max(1), rtol=2e-7, atol=0)
    torch.testing.assert_close(
        second.double(), torch.where(deep < 0, s * s * exact, 0), rtol=3e-7, atol=0
    )


@pytest.mark.parametrize("dtype, error", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("shift", [-4, -6, -18, -60])
@pytest.mark.parametrize("function", [nsimplex.separable_attention, nsimplex.separable_reference])
def test_keys_far_below_zero_still_weigh(dtype, error, shift, function):
    q, k, v = (draw(1, 1, 8, 4, seed=s) for s in range(3))
    inputs = [t.to(dtype).requires_grad_() for t in (q, 0.2 * k + shift, v)]
    exact_inputs = [t.detach().double().requires_grad_() for t in inputs]
    ours, exact = (function(a[0], [a[1]], [a[2]]) for a in (inputs, exact_inputs))
    assert (ours.double() - exact).norm() <= error * exact.norm()
    for a, b in zip(
        torch.autograd.grad(ours.sum(), inputs), torch.autograd.grad(exact.sum(), exact_inputs)
    ):
        assert (a.double() - b).norm() <= 2 * error * b.norm() + 1e-6


@pytest.mark.parametrize("dtype", ELU_ERRORS, ids=str)
def test_bits_of_elu_features_do_not_depend_on_threads_or_place(dtype, same_bits):
    """Nor on where a number lies: torch's elementwise loops take what is left of a vector by other
    instructions."""
    x = (4 * draw(3, 4, 701, 33) - 2).to(dtype)
    q, k, v = x.chunk(3)
    found = same_bits(
        lambda: (
            nsimplex.feature_map(x),
            nsimplex.separable_attention(q, [k, k], [v, v], causal=True),
        )
    )
    flat = x.flatten()[:1000]
    assert torch.equal(
        torch.cat([nsimplex.feature_map(part) for part in flat.split([1, 2, 3, 5, 7, 11, 971])]),
        nsimplex.feature_map(flat),
    )
    turned = x.transpose(1, 2)
    assert torch.equal(nsimplex.feature_map(turned), found[0].transpose(1, 2))
    assert nsimplex.feature_map(turned).stride() == turned.stride()
    assert torch.equal(nsimplex.feature_map(x[..., ::2]), found[0][..., ::2])


def test_feature_kinds():
    x = draw(4, 3)
    torch.testing.assert_close(nsimplex.feature_map(x), torch.nn.functional.elu(x) + 1)
    torch.testing.assert_close(nsimplex.feature_map(x, "relu", scale=2.0), (2 * x).relu())
    assert (nsimplex.feature_map(100 * x) >= 0).all()
    with pytest.raises(ValueError, match="of kind random only"):
        nsimplex.feature_map(x, "elu", features=3)
    with pytest.raises(TypeError, match="expected floating"):
        nsimplex.feature_map(x.long())
