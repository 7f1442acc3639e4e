"""Directions that noise tells where covariances do not."""

import math

import numpy as np
import pytest
import torch

from nsimplex import causal


def drawn(weights, noise, rows, seed):
    weights = torch.as_tensor(weights, dtype=torch.float64)
    draws = np.random.default_rng(seed)
    noises = getattr(draws, noise)(size=(rows, len(weights)))
    if noise == "uniform":
        noises -= 0.5
    return torch.from_numpy(noises) @ torch.linalg.inv(torch.eye(len(weights)) - weights)


def edges(graph):
    return {(i, j) for i, j in (graph != 0).nonzero().tolist()}


CHAIN = [[0, 1.2, 0], [0, 0, -0.8], [0, 0, 0]]
BACKWARDS = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def defined_cost(table, graph):
    """The docstring's formula, by numpy."""
    values = table.numpy() - table.numpy().mean(axis=0)
    total = 0.0
    for j in range(values.shape[1]):
        causes = np.flatnonzero(graph[:, j].numpy())
        slopes = np.linalg.lstsq(values[:, causes], values[:, j], rcond=None)[0]
        noise = values[:, j] - values[:, causes] @ slopes
        u = noise / noise.std()
        negentropy = 79.047 * (np.log(np.cosh(u)).mean() - 0.37457) ** 2
        negentropy += 7.4129 * (u * np.exp(-(u**2) / 2)).mean() ** 2
        # Deviations of the whole columns are the same in every graph.
        total += len(u) * (math.log(noise.var()) - 2 * negentropy)
        total += 2 * math.log(len(u)) * len(causes)
    return total


@pytest.mark.parametrize("noise", ["laplace", "uniform", "exponential"])
def test_a_chain_that_stands_backwards_is_turned(noise):
    table = drawn(CHAIN, noise, 1000, 0)
    found = causal.orient_by_noise(table, BACKWARDS)
    assert edges(found.adjacency) == {(0, 1), (1, 2)} == set(found.turned)
    assert found.p_value < 1e-6
    expected = torch.tensor(CHAIN, dtype=torch.float64)
    torch.testing.assert_close(found.adjacency, expected, atol=0.1, rtol=0)
    cost = defined_cost(table, torch.tensor(BACKWARDS)) - defined_cost(table, found.adjacency)
    assert found.gain == pytest.approx(cost, abs=1e-6) and found.gain > 10


def test_weights_are_those_of_regressions():
    table = drawn(CHAIN, "laplace", 300, 1)
    found = causal.orient_by_noise(table, CHAIN)
    assert found.turned == [] and found.gain == 0
    centred = table - table.mean(dim=0)
    for cause, effect in ((0, 1), (1, 2)):
        slope = centred[:, cause] @ centred[:, effect] / centred[:, cause].square().sum()
        assert float(found.adjacency[cause, effect]) == pytest.approx(float(slope))


def test_gaussian_noise_turns_nothing():
    table = drawn(CHAIN, "normal", 1000, 2)
    found = causal.orient_by_noise(table, BACKWARDS)
    assert edges(found.adjacency) == {(1, 0), (2, 1)} and found.turned == []
    assert found.gain == 0 and found.p_value > 0.01


def test_the_level_is_that_of_gaussian_tables():
    values = [
        causal.orient_by_noise(drawn(CHAIN, "normal", 400, seed), CHAIN).p_value
        for seed in range(100)
    ]
    share = sum(value < 0.05 for value in values) / len(values)
    assert 0.01 <= share <= 0.12
    assert 0.35 < sum(value < 0.5 for value in values) / len(values) < 0.65


def test_units_change_weights_only():
    table = drawn(CHAIN, "uniform", 500, 3)
    units = torch.tensor([1e-200, 7.0, 1e100], dtype=torch.float64)
    found, scaled = (causal.orient_by_noise(each, BACKWARDS) for each in (table, table * units))
    assert scaled.turned == found.turned
    torch.testing.assert_close(scaled.adjacency, found.adjacency * units / units[:, None])


@pytest.mark.parametrize("noise", ["laplace", "uniform"])
def test_corrects_graphs_of_covariances(noise):
    """20 columns of scale-free graphs, standardised: the covariance leaves wrong directions, and
    the edges that they bring along."""
    before = after = 0
    for seed in range(3):
        weights = causal.simulate(graph="sf", nodes=20, observations=2, seed=seed).weights
        table = drawn(weights, noise, 1000, seed)
        fit = causal.causal_fit(table, standardise=True)
        found = causal.orient_by_noise(table, fit.adjacency)
        before += causal.causal_metrics(fit.adjacency, weights).shd
        after += causal.causal_metrics(found.adjacency, weights).shd
        assert causal.causal_metrics(found.adjacency, weights).sid is not None  # acyclic
    assert after < before / 2


def test_columns_that_others_determine_are_accepted():
    table = drawn(CHAIN, "laplace", 200, 4)
    table = torch.cat([table, table[:, :1] * 2, table[:, :1] + table[:, 1:2]], dim=1)
    full = torch.ones(5, 5).triu(1)
    found = causal.orient_by_noise(table, full)
    assert found.adjacency.isfinite().all()
    assert causal.causal_metrics(found.adjacency, full).sid is not None


@pytest.mark.parametrize(
    "table, graph, says",
    [
        (torch.randn(9, 3), torch.zeros(2, 2), r"graph: expected \[M, M\] for a table \[n, M\]"),
        (torch.randn(9, 2), torch.tensor([[0, 1], [1, 0]]), "graph: expected no cycle"),
        (torch.full((9, 2), torch.nan), torch.zeros(2, 2), "table: expected finite numbers"),
        (torch.ones(9, 2), torch.zeros(2, 2), "table: column 0 is constant"),
        (torch.randn(3, 2), torch.zeros(2, 2), "table: expected at least 4 rows, got 3"),
    ],
)
def test_names_what_cannot_be(table, graph, says):
    with pytest.raises(ValueError, match=says):
        causal.orient_by_noise(table, graph)
    with pytest.raises(ValueError, match=r"level: expected a number in \(0, 1\), got 1.5"):
        causal.orient_by_noise(torch.randn(9, 2), torch.zeros(2, 2), level=1.5)
