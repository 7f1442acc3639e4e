"""Directions that noise tells where covariances do not."""

import json
import math
import re
import subprocess

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


@pytest.mark.parametrize(
    "options, gain, p_value, turned",
    [
        (
            dict(graph="sf", nodes=20, observations=1000, noise="exponential", seed=5),
            1664.4530864765525,
            0.0,
            [(4, 9), (11, 15)],
        ),
        (  # too many columns for the second start
            dict(graph="er", nodes=60, observations=300, noise="exponential", seed=1),
            1228.035627386414,
            0.0,
            [(25, 2), (22, 6), (47, 12), (28, 26), (32, 41), (5, 47)],
        ),
        (
            dict(graph="er", nodes=5, observations=60, noise="exponential", seed=0),
            97.35863793331441,
            1.258971386308319e-12,
            [(4, 0), (2, 1), (3, 1), (4, 1), (3, 2)],
        ),
        (
            dict(graph="er", nodes=12, observations=200, noise="gumbel", seed=3),
            133.3760093275061,
            5.802150569861161e-96,
            [(3, 0), (6, 7)],
        ),
        (
            dict(graph="er", nodes=30, observations=150, noise="gaussian", seed=1),
            0.0,
            0.25883797493842325,
            [],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::nsimplex.causal.FewRowsWarning")
def test_numbers_are_those_of_an_earlier_implementation_in_python(options, gain, p_value, turned):
    made = causal.simulate(**options)
    fit = causal.causal_fit(made.table, estimator="order", standardise=True)
    found = causal.orient_by_noise(made.table, fit.adjacency)
    assert found.gain == pytest.approx(gain, rel=1e-6)
    assert found.p_value == pytest.approx(p_value, rel=1e-6)
    assert found.turned == turned


def test_constraints_hold():
    table = drawn(CHAIN, "exponential", 1000, 0)
    for constraints in (
        dict(forbidden=[(0, 1)]),
        dict(required=[(1, 0)]),
        dict(tiers=[1, 0, 0]),
    ):
        found = causal.orient_by_noise(table, BACKWARDS, **constraints)
        assert (0, 1) not in edges(found.adjacency)
        assert causal.causal_metrics(found.adjacency, CHAIN).sid is not None  # acyclic
        if "required" in constraints:
            assert (1, 0) in edges(found.adjacency)
    with pytest.raises(ValueError, match="graph: expected no forbidden edge, got 1 -> 0"):
        causal.orient_by_noise(table, BACKWARDS, forbidden=[(1, 0)])
    with pytest.raises(ValueError, match="graph: expected the required edge 0 -> 2, got none"):
        causal.orient_by_noise(table, BACKWARDS, required=[(0, 2)])
    with pytest.raises(ValueError, match="tiers: expected 3, one per column, got 2"):
        causal.orient_by_noise(table, BACKWARDS, tiers=[0, 1])


def fit_of(executable, env, *words):
    words = [executable, "causal", "fit", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, env=env)


@pytest.fixture
def file(tmp_path):
    made = causal.simulate(graph="sf", nodes=12, noise="exponential", seed=5)
    path = tmp_path / "table.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in made.table.tolist())
    path.write_text(",".join(f"c{n}" for n in range(12)) + "\n" + rows + "\n")
    return path


def test_the_command_turns_the_same_edges(executable, subprocess_env, file, tmp_path):
    done = fit_of(
        executable,
        subprocess_env,
        file,
        *("--standardise", "--orient-by-noise", "--json", "--out", tmp_path / "r"),
    )
    assert done.returncode == 0, done.stderr
    lines = {line["kind"]: line for line in map(json.loads, done.stdout.splitlines())}
    table = causal.usable_table(file).values
    table = (table - table.mean(dim=0)) / table.std(dim=0, correction=0)
    fit = causal.causal_fit(table, estimator="order")
    found = causal.orient_by_noise(table, fit.adjacency)
    said = lines["noise_directions"]
    assert said["turned"] == [f"c{i} -> c{j}" for i, j in found.turned] != []
    assert said["gain"] == pytest.approx(found.gain)
    assert said["p_value"] == pytest.approx(found.p_value)
    assert lines["fit"]["edges"] == int((found.adjacency != 0).sum())
    written = np.loadtxt(tmp_path / "r" / "graph.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(written, found.adjacency.numpy(), atol=1e-9)
    scores = np.loadtxt(tmp_path / "r" / "scores.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(scores, np.abs(written), atol=1e-9)


def test_the_command_respects_constraints_and_says_what_it_did(executable, subprocess_env, file):
    plain = fit_of(executable, subprocess_env, file, "--standardise", "--orient-by-noise")
    assert plain.returncode == 0, plain.stderr
    turned = re.findall(r"^turned (\S+) -> (\S+)$", plain.stdout, re.MULTILINE)
    assert turned and "noises are not Gaussian (p = " in plain.stdout
    forbidden = ",".join(f"{cause}:{effect}" for cause, effect in turned)
    done = fit_of(
        executable,
        subprocess_env,
        file,
        *("--standardise", "--orient-by-noise", "--forbid", forbidden),
    )
    assert done.returncode == 0, done.stderr
    again = re.findall(r"^turned (\S+) -> (\S+)$", done.stdout, re.MULTILINE)
    assert not set(turned) & set(again)


@pytest.mark.parametrize(
    "words, said",
    [
        (["--nonlinear"], "expected linear effects, got --nonlinear"),
        (["--groups", "c0"], "expected rows of one group, got --groups"),
        (["--targets", "c0"], "expected rows without interventions, got --targets"),
        (["--kind", "c0=count"], "expected continuous columns, got --kind"),
        (["--missing", "likelihood"], "expected a table without gaps, got --missing likelihood"),
    ],
)
def test_the_command_names_what_it_cannot_combine(executable, subprocess_env, file, words, said):
    done = fit_of(executable, subprocess_env, file, "--orient-by-noise", *words)
    assert done.returncode == 2 and "--orient-by-noise: " in done.stderr and said in done.stderr


@pytest.mark.parametrize("noise", ["laplace", "uniform"])
def test_corrects_graphs_of_covariances(noise):
    """20 columns of scale-free graphs, standardised: the covariance leaves wrong directions, and
    the edges that they bring along."""
    before = after = 0
    for seed in range(3):
        weights = causal.simulate(graph="sf", nodes=20, observations=2, seed=seed).weights
        table = drawn(weights, noise, 1000, seed)
        fit = causal.causal_fit(table, estimator="order", standardise=True)
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


def test_curved_effects_and_columns_of_few_values_turn_nothing():
    """Noises of curved effects are not Gaussian however edges point, and counts have shapes of
    their own."""
    made = causal.simulate(
        nodes=10, degree=1, observations=1000, mechanism="gp", equal_variances=False, seed=3
    )
    graph = causal.causal_fit(made.table, estimator="order", standardise=True).adjacency
    found = causal.orient_by_noise(made.table, graph)
    assert found.p_value < 0.01 and found.gain == 0 and found.turned == []
    assert found.finding.startswith("noises turned no edge: they are not Gaussian")
    assert (found.adjacency != 0).equal(graph != 0)
    generator = torch.Generator().manual_seed(0)
    few = (torch.randn(500, 3, generator=generator).cumsum(1) > 0.5).double()
    chain = torch.diag(torch.ones(2, dtype=torch.float64), 1)
    found = causal.orient_by_noise(few, chain)
    assert found.turned == [] and found.p_value == 1
    assert found.finding.endswith("edges of 3 columns of few values keep their directions")
