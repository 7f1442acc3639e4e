"""Masks as hypergraphs: ways and gaps of known masks, against an independent computation."""

import math

import pytest
import torch

import nsimplex
from nsimplex import analysis, graph


def batch_of(mask):
    return graph.tuple_batch(mask.nonzero(), nodes=mask.size(0))


def causal_window(n, width):
    i, j = torch.arange(n).unsqueeze(1), torch.arange(n)
    return (j <= i) & (j > i - width)


@pytest.mark.parametrize("width, radius", [(2, 9), (3, 5), (4, 3), (10, 1)])
@pytest.mark.parametrize("order", [1, 2])
def test_causal_window(width, radius, order):
    mask = causal_window(10, width)
    if order == 2:
        mask = mask.unsqueeze(2) & mask.unsqueeze(1)
    found = analysis.mask_extent(batch_of(mask))
    assert found.radii.tolist() == [radius]
    assert found.eccentricities.tolist() == [radius] + [-1] * 9  # only the first token reaches all
    assert found.loops.all()


def powers_until(reach, n):
    """Distances by powers of the relation j -> i."""
    distances = torch.full((n, n), -1)
    reached = torch.eye(n, dtype=torch.bool)
    for steps in range(n):
        distances[reached & (distances < 0)] = steps
        reached = reached | ((reached.double() @ reach.double()) > 0)
    return distances


def test_distances_of_random_masks():
    generator = torch.Generator().manual_seed(0)
    for density in (0.02, 0.05, 0.2):
        mask = torch.rand(9, 9, 9, generator=generator) < density
        expected = powers_until((mask.any(2) | mask.any(1)).T, 9)
        batch = batch_of(mask)
        torch.testing.assert_close(analysis.mask_distances(batch), expected)
        found = analysis.mask_extent(batch)
        farthest = torch.where((expected < 0).any(1), -1, expected.amax(1))
        torch.testing.assert_close(found.eccentricities, farthest)
        centres = farthest[farthest >= 0]
        assert found.radii.item() == (centres.min().item() if len(centres) else -1)
        own = mask.any(2).diagonal() | mask.any(1).diagonal()
        assert torch.equal(found.loops, own)


def test_gap_is_the_second_eigenvalue_of_the_laplacian():
    grown = graph.barabasi_albert_graph(40, 2, seed=3)
    adjacency = torch.zeros(40, 40, dtype=torch.float64)
    adjacency[grown.tuples[:, 0], grown.tuples[:, 1]] = 1
    adjacency += adjacency.T.clone()
    degrees = adjacency.sum(1).rsqrt()
    laplacian = torch.eye(40, dtype=torch.float64) - degrees.unsqueeze(1) * adjacency * degrees
    expected = torch.linalg.eigvalsh(laplacian)[1]
    torch.testing.assert_close(analysis.mask_extent(grown).gaps, expected.unsqueeze(0))


def test_masks_of_a_batch_stand_alone():
    chains = graph.chain_graphs([5, 3, 1])
    found = analysis.mask_extent(chains)
    assert found.radii.tolist() == [2, 1, 0]
    assert found.diameters.tolist() == [4, 2, 0]
    assert found.gaps[1].item() == pytest.approx(1) and math.isnan(found.gaps[2])
    assert analysis.mask_distances(chains)[0, 5:].tolist() == [-1] * 4


def test_refuses_what_is_no_mask():
    points = graph.tuple_batch(torch.zeros(1, 1, dtype=torch.int64), nodes=1)
    with pytest.raises(ValueError, match=r"\[mask_extent\] masks: expected tuples of a query"):
        analysis.mask_extent(points)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.2, 0.7, 1.5])
def test_weights_stay_within_the_bounds_of_their_entries(order, radius):
    torch.manual_seed(order)
    x = torch.nn.functional.normalize(torch.randn(1, 1, 6, 4).double(), dim=-1) * radius
    matrices = torch.randn(order + 1, 4, 4).double()
    key_norm = float(torch.linalg.matrix_norm(matrices, 2).max())
    query, *keys = [x @ matrix for matrix in matrices]
    weights = nsimplex.attention_weights(query, keys, scale=0.5)
    found = analysis.weight_bounds(order, 6**order, radius, key_norm, 0.5)
    assert found.logit == pytest.approx(0.5 * (key_norm * radius) ** (order + 1))
    assert found.lower <= weights.min() and weights.max() <= found.upper
    masked = nsimplex.attention_weights(query, keys, scale=0.5, causal=True)[0, 0]
    for i in range(6):
        own = masked[(i, *[slice(i + 1)] * order)]
        found = analysis.weight_bounds(order, (i + 1) ** order, radius, key_norm, 0.5)
        assert found.lower <= own.min() and own.max() <= found.upper


def test_bounds_of_weights_are_reached():
    found = analysis.weight_bounds(1, 4, 1.0, 1.2, 0.5)
    logits = found.logit * torch.tensor([-1.0, 1, 1, 1], dtype=torch.float64)
    assert float(logits.softmax(0)[0]) == pytest.approx(found.lower, rel=1e-12)
    assert float((-logits).softmax(0)[0]) == pytest.approx(found.upper, rel=1e-12)
    assert analysis.weight_bounds(1, 1, 1e300, 1.0, 1.0)[1:] == (1.0, 1.0)


@pytest.mark.parametrize(
    "values, said",
    [
        ((0, 1, 1.0, 1.0, 1.0), "order: expected at least 1, got 0"),
        ((1, 0, 1.0, 1.0, 1.0), "tuples: expected at least 1, got 0"),
        ((1, 1, -1.0, 1.0, 1.0), "radius: expected a finite number of at least 0, got -1"),
        ((1, 1, 1.0, math.inf, 1.0), "key_norm: expected a finite number of at least 0, got inf"),
        ((1, 1, 1.0, 1.0, math.nan), "scale: expected a finite number of at least 0, got nan"),
    ],
)
def test_what_the_bounds_of_weights_refuse(values, said):
    with pytest.raises(ValueError) as caught:
        analysis.weight_bounds(*values)
    assert str(caught.value) == f"[weight_bounds] {said}"
