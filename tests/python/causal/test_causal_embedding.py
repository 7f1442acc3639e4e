"""nsimplex.causal: hyperbolic embeddings and their angles."""

import math
import os
import pathlib
import warnings

import pytest
import torch

import nsimplex
from nsimplex import causal
from nsimplex.causal.pipeline import CausalPipeline


def chain(*weights):
    return torch.diag(torch.tensor(weights, dtype=torch.float64), 1)


def tree_closure(nodes=31):
    adjacency = torch.zeros(nodes, nodes, dtype=torch.float64)
    for child in range(1, nodes):
        above = child
        while above:
            above = (above - 1) // 2
            adjacency[above, child] = 1
    return adjacency


def points(*shape, size=2.0):
    return size * torch.randn(
        *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )


def test_embeds_a_closure():
    tree = tree_closure()
    made = causal.causal_embed(tree)
    assert (made.hops, made.side, made.without_negatives) == (1, "causes", 0)
    ranking = causal.causal_ranking(made.tangents, tree)
    assert ranking.mean_rank < 1.4 and ranking.map > 0.85
    assert ranking.pairs == int(tree.sum())
    assert made.generality.argmax() == 0 and made.tangents.norm(dim=1).argmin() == 0
    torch.testing.assert_close(made.generality.sum(), torch.tensor(1.0, dtype=torch.float64))


def test_ranks_all_ancestors_of_a_graph_that_is_no_closure():
    z = torch.tensor([[0.0, 0.0], [1.0, 0.0], [2.1, 0.0], [-1.0, 0.0]])
    assert causal.causal_ranking(z, torch.nn.functional.pad(chain(1, 1), (0, 1, 0, 1))).pairs == 3


def test_sparse_and_dense_graphs_are_one():
    tree = tree_closure(7)
    dense, sparse = (
        causal.causal_embed(each, steps=20).tangents for each in (tree, tree.to_sparse())
    )
    assert dense.equal(sparse)


def test_bits_do_not_depend_on_threads():
    threads = torch.get_num_threads()
    try:
        made = []
        for count in (1, 2, 3, 1):
            torch.set_num_threads(count)
            made.append(causal.causal_embed(tree_closure(127), steps=5, negatives=20).tangents)
    finally:
        torch.set_num_threads(threads)
    assert all(each.equal(made[0]) for each in made)


def test_ball_and_hyperboloid_are_isometric():
    z = points(8, 3)
    e, p = causal.ball_points(z), causal.hyperboloid_points(z)
    torch.testing.assert_close(e, p[:, 1:] / (p[:, :1] + 1))  # A.22
    squares = e.square().sum(1, keepdim=True)
    torch.testing.assert_close(p, torch.cat([1 + squares, 2 * e], 1) / (1 - squares))  # A.23
    torch.testing.assert_close(causal.ball_tangents(e), z)
    gaps = (e[:, None] - e).square().sum(2) / ((1 - squares) * (1 - squares.T))
    torch.testing.assert_close(
        causal.hyperbolic_distances(z), torch.acosh(1 + 2 * gaps), atol=1e-6, rtol=1e-6
    )  # Eq. 28
    metric = torch.diag(torch.tensor([-1.0, 1, 1, 1], dtype=torch.float64))
    torch.testing.assert_close((p @ metric * p).sum(1), -torch.ones(8, dtype=torch.float64))


def test_maps_are_differentiable_at_the_origin_too():
    z = points(4, 3)
    z[0] = 0
    z.requires_grad_()
    for function in (causal.ball_points, causal.hyperboloid_points):
        assert torch.autograd.gradcheck(function, (z,))
    e = causal.ball_points(z).detach().requires_grad_()
    assert torch.autograd.gradcheck(causal.ball_tangents, (e,))


def test_distances_are_differentiable():
    """Near the origin and each other and far from both; a distance 0 has derivative 0."""
    z = points(6, 3)
    z[0], z[1], z[2], z[3] = 0, 0.02 * z[1], 0.05 * z[2], 10 * z[3]
    plain = causal.hyperbolic_distances(z)
    z.requires_grad_()
    torch.testing.assert_close(causal.hyperbolic_distances(z), plain)
    assert torch.autograd.gradcheck(causal.hyperbolic_distances, (z,), check_forward_ad=True)
    above = torch.triu_indices(6, 6, 1).unbind()
    apart = lambda z: causal.hyperbolic_distances(z)[above]
    assert torch.autograd.gradgradcheck(apart, (z,), atol=1e-4)
    both = torch.stack([z, 2 * z]).detach()
    first = lambda z: apart(z).sum()
    expected = torch.stack([torch.func.grad(first)(each) for each in both])
    torch.testing.assert_close(torch.vmap(torch.func.grad(first))(both), expected)
    same = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    causal.hyperbolic_distances(same).sum().backward()
    assert torch.equal(same.grad, torch.zeros(2, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="tangents: expected rows of norm 300 or less"):
        causal.hyperbolic_distances(torch.full((1, 2), 400.0, requires_grad=True))


LENGTHS = [
    0,
    1e-30,
    1e-3,
    1,
    5,
    10,
    14,
    15.25,
    17,
    17.4,
    20,
    35.4,
    38,
    88.8,
    100,
    300,
    720,
    1e10,
    1e30,
]


def at_lengths(lengths, dtype, dimension):
    """A tangent of every length in three directions, an axis among them: [3, lengths,
    dimension]."""
    directions = torch.nn.functional.normalize(
        torch.randn(3, 1, dimension, dtype=torch.float64), dim=-1
    )
    directions[0] = 0
    directions[0, 0, -1] = -1
    limit = torch.finfo(dtype).max
    return (
        directions
        * torch.tensor([min(length, limit) for length in lengths], dtype=torch.float64)[:, None]
    ).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 100, 1000])
def test_points_stay_inside_the_ball_at_any_length(dtype, dimension):
    lengths = LENGTHS + [1e200, 1.7e308] * (dtype == torch.float64)
    z = at_lengths(lengths, dtype, dimension).requires_grad_()
    e = causal.ball_points(z)
    assert (e.norm(dim=-1) < 1).all() and (e.double().norm(dim=-1) < 1).all()
    back = causal.ball_tangents(e)
    assert back.isfinite().all() and e.dtype == back.dtype == dtype
    # As exact as coordinates of the dtype are: 1 - |e| is 2 e^-r.
    epsilon, radius = torch.finfo(dtype).eps, z.detach().double().norm(dim=-1)
    near = radius < math.log(0.5 / epsilon)
    error = (back.detach().double() - z.detach().double()).norm(dim=-1)
    assert (error <= epsilon * (radius.exp() + 2 * radius))[near].all()
    (slope,) = torch.autograd.grad(back.sum(), z)
    assert slope.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("length", [1 - 1e-7, 1, 1 + 1e-6, 5, 1e30])
def test_points_on_and_outside_the_sphere_have_tangents(dtype, length):
    e = at_lengths([length], dtype, 3).requires_grad_()
    z = causal.ball_tangents(e)
    (slope,) = torch.autograd.grad(z.sum(), e)
    assert z.isfinite().all() and slope.isfinite().all()
    direction = lambda x: torch.nn.functional.normalize(x.detach().double(), dim=-1)
    torch.testing.assert_close(direction(z), direction(e), rtol=1e-5, atol=1e-7)
    if length >= 1:
        epsilon = torch.finfo(dtype).eps
        torch.testing.assert_close(
            z.norm(dim=-1), torch.full_like(z[..., 0], math.log(4 / epsilon)), rtol=1e-3, atol=0
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_hyperboloid_is_finite_at_any_length(dtype):
    z = at_lengths(LENGTHS, dtype, 3).requires_grad_()
    p = causal.hyperboloid_points(z)
    assert p.isfinite().all() and (p[..., 0] >= 1).all()
    near = z.detach().norm(dim=-1) < 40
    exact = z.detach().double().norm(dim=-1).cosh()
    torch.testing.assert_close(p[..., 0].double()[near], exact[near], rtol=1e-5, atol=0)
    (slope,) = torch.autograd.grad(p.sum(), z)
    assert slope.isfinite().all()


def test_angles_split_over_heads():
    e = causal.ball_points(points(5, 6))
    assert causal.causal_angles(e).equal(math.pi / 4 * e)
    angles = causal.causal_angles(e, heads=2, by_dimension=True, leading=1)
    assert angles.shape == (6, 2, 3) and not angles[0].any()
    torch.testing.assert_close(angles[1:], math.pi / 4 * math.sqrt(6) * e.reshape(5, 2, 3))
    scale = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda e, scale: causal.causal_angles(e, heads=2, head_scale=scale, leading=1),
        (e.requires_grad_(), scale),
    )


# A.50: scores depend on differences of angles; A.55: how a pair of channels turns.
def test_turned_scores_are_the_rotated_product():
    e = causal.ball_points(points(5, 4))
    angles = causal.causal_angles(e)
    q, k = torch.randn(2, 1, 1, 5, 8, dtype=torch.float64)
    turned = nsimplex.rotary(q, angles=angles)
    cos, sin = angles.cos().repeat_interleave(2, 1), angles.sin().repeat_interleave(2, 1)
    swapped = torch.stack([-q[..., 1::2], q[..., ::2]], -1).flatten(-2)
    torch.testing.assert_close(turned, cos * q + sin * swapped)
    scores = turned @ nsimplex.rotary(k, angles=angles).transpose(-1, -2)
    for m in range(5):
        for n in range(5):
            relative = nsimplex.rotary(k[:, :, n : n + 1], angles=(angles[n] - angles[m])[None])
            torch.testing.assert_close(scores[0, 0, m, n], (q[0, 0, m] * relative[0, 0, 0]).sum())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_determinant_attention_takes_the_table(order):
    """The scores of order N depend on differences of angles alone, and on these they do depend."""
    chunk, heads, width = order + 1, 2, 12
    planes = width // chunk * (chunk // 2)
    e = causal.ball_points(
        causal.causal_embed(tree_closure(7), dimension=heads * planes, steps=30).tangents
    )
    angles = causal.causal_angles(e, heads=heads, leading=1)
    query, *pairs = torch.randn(1 + 2 * order, 1, heads, 8, width, dtype=torch.float64)
    keys, values = pairs[:order], pairs[order:]
    form = {"form": "determinant"} if order > 1 else {}

    def attend(table):
        turned = [nsimplex.rotary(x, chunk=chunk, angles=table) for x in (query, *keys)]
        return nsimplex.attention(turned[0], turned[1:], values, **form)

    shift = torch.randn(1, heads, planes, dtype=torch.float64)
    torch.testing.assert_close(attend(angles), attend(angles + shift))
    assert not torch.allclose(attend(angles), attend(torch.zeros_like(angles)), atol=1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: causal.causal_embed(torch.ones(2, 3)), r"adjacency: expected shape \[M, M\]"),
        (
            lambda: causal.causal_embed(torch.full((2, 2), math.nan)),
            "adjacency: expected finite numbers",
        ),
        (
            lambda: causal.causal_embed(chain(1), dimension=1),
            "dimension: expected 2 or more, got 1",
        ),
        (
            lambda: causal.causal_embed(chain(1), optimiser="sgd"),
            'optimiser: expected one of .*"rsgd", got "sgd"',
        ),
        (
            lambda: causal.causal_ranking(torch.zeros(3, 2), chain(1)),
            "tangents: expected 2 rows, one per node, got 3",
        ),
        (
            lambda: causal.hyperbolic_distances(torch.full((1, 2), 400.0)),
            "tangents: expected rows of norm 300 or less",
        ),
        (
            lambda: causal.causal_angles(torch.zeros(2, 3), heads=2),
            "heads: expected 0 or a divisor of the dimension 3",
        ),
    ],
)
def test_names_what_cannot_be(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def units_changed(adjacency, seed):
    generator = torch.Generator().manual_seed(seed)
    units = 10 ** (6 * torch.rand(len(adjacency), dtype=torch.float64, generator=generator) - 3)
    return adjacency * units / units[:, None]


@pytest.fixture(scope="module")
def fitted():
    return causal.causal_fit(causal.simulate(nodes=15, observations=1000, seed=4).table).adjacency


@pytest.mark.parametrize("factor", [1, 1e-6, 1e6, 1e-150])
def test_points_do_not_depend_on_units_or_size_of_weights(fitted, factor):
    made = causal.causal_embed(fitted, dimension=8)
    torch.testing.assert_close(
        causal.causal_embed(factor * units_changed(fitted, 1), dimension=8).tangents, made.tangents
    )
    assert (made.tangents.norm(dim=1) >= 0.05).double().mean() > 0.9


def test_given_weights_count_where_asked_for(fitted):
    printed = {"balanced": False, "relative": False, "generality": 0.1}
    with pytest.warns(causal.EmbeddingWarning):
        made = [causal.causal_embed(factor * fitted, **printed) for factor in (1, 1e-3)]
    assert made[0].tangents.norm() > 10 * made[1].tangents.norm()
    with pytest.raises(ValueError, match="adjacency: expected weights whose paths are finite"):
        causal.causal_embed(chain(1e200, 1e200), balanced=False)


def test_warns_where_an_embedding_carries_nothing():
    with pytest.warns(
        causal.EmbeddingWarning, match="4 of 4 nodes with edges lie within 0.05 of the origin"
    ):
        causal.causal_embed(chain(0.1, 0.1, 0.1), balanced=False, relative=False, generality=100)
    with pytest.warns(causal.EmbeddingWarning, match="no edges") as caught:
        CausalPipeline(steps=5).embed(torch.zeros(3, 3))
    assert len(caught) == 1 and issubclass(causal.EmbeddingWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        causal.causal_embed(chain(0.1, 0.1, 0.1))


def test_proteins_are_apart():
    """Eleven proteins of Sachs et al., of a file that others wrote."""
    path = pathlib.Path(os.environ.get("NSIMPLEX_DATA", "")) / "causal/sachs.csv"
    if not os.environ.get("NSIMPLEX_DATA") or not path.exists():
        pytest.skip("NSIMPLEX_DATA has no causal/sachs.csv")
    for standardise in (False, True):
        pipeline = CausalPipeline(dimension=8, standardise=standardise).fit(path)
        ranking = causal.causal_ranking(pipeline.tangents_, pipeline.adjacency_)
        assert ranking.mean_rank <= 1.5 and ranking.map >= 0.8
        assert pipeline.encode(heads=2).abs().max() > 0.1
