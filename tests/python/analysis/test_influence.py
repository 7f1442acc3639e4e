"""The influence of tokens on each other through functions, layers and stacks."""

import pytest
import torch

from nsimplex import analysis, graph
from nsimplex.nn import SimplicialAttention


def test_it_is_the_norm_of_the_blocks_of_the_jacobian(double):
    layer, x = SimplicialAttention(4, 2, order=2), torch.randn(2, 3, 4)
    made = analysis.token_influence(layer, x)
    for batch in range(2):
        jacobian = torch.autograd.functional.jacobian(lambda y: layer(y[None])[0], x[batch])
        torch.testing.assert_close(made[batch], jacobian.square().sum((1, 3)).sqrt())
    torch.testing.assert_close(analysis.token_influence(layer, x, rows=[2]), made[:, [2]])


def test_no_token_acts_before_its_distance_under_a_mask(double):
    """Two layers with a window of 2: a token reaches the next two."""
    layers = torch.nn.Sequential(
        *[SimplicialAttention(4, 1, order=2, causal=True, window=2) for _ in range(2)]
    )
    made = analysis.token_influence(layers, torch.randn(1, 6, 4))[0]
    pairs = [[i, j, k] for i in range(6) for j in (i - 1, i) for k in (i - 1, i) if min(j, k) >= 0]
    mask = graph.tuple_batch(torch.tensor(sorted(pairs)), 6)
    distance = analysis.mask_distances(mask).t()  # [i, j]
    reached = (distance >= 0) & (distance <= 2)
    assert bool((made[~reached] == 0).all()) and bool((made[reached] > 0).all())


def test_constants_have_no_influence():
    x = torch.ones(1, 2, 3)
    none = analysis.token_influence(lambda y: 0 * y.sum() + torch.ones(1, 4, 2), x)
    assert none.shape == (1, 4, 2) and not none.any()
    first = analysis.token_influence(lambda y: y[:, :1], x)
    assert first[0, 0].tolist() == pytest.approx([3**0.5, 0])


@pytest.mark.parametrize(
    "arguments, options, said",
    [
        ((lambda x: x, torch.ones(2, 3)), {}, "x: expected floating"),
        ((lambda x: x[0], torch.ones(1, 2, 3)), {}, "function: expected an output"),
        ((lambda x: x, torch.ones(1, 2, 3)), dict(rows=[2]), "rows: expected rising"),
        ((lambda x: x, torch.ones(1, 2, 3)), dict(rows=[1, 0]), "rows: expected rising"),
    ],
)
def test_errors_name_the_argument(arguments, options, said):
    with pytest.raises(ValueError, match=rf"\[token_influence\] {said}"):
        analysis.token_influence(*arguments, **options)
