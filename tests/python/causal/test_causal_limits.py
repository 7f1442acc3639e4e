"""What a table cannot tell: equivalent graphs, units, and common causes outside the table."""

import itertools
import math
import warnings

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, CausalPipeline, VarianceOrderWarning


def acyclic(edges):
    return not torch.matrix_exp(edges.double()).diagonal().gt(1 + 1e-9).any()


def colliders(edges):
    joined = edges | edges.T
    pairs = itertools.combinations(range(len(edges)), 2)
    return {
        (i, k, j)
        for i, j in pairs
        if not joined[i, j]
        for k in range(len(edges))
        if edges[i, k] and edges[j, k]
    }


@pytest.mark.parametrize("seed", range(30))
def test_the_cpdag_has_what_all_equivalent_graphs_share(seed):
    """All orientations of the skeleton that are acyclic and have the same colliders."""
    generator = torch.Generator().manual_seed(seed)
    count = 5
    order = torch.randperm(count, generator=generator)
    density = 0.4 + 0.5 * torch.rand(1, generator=generator)
    edges = torch.rand(count, count, generator=generator).lt(density).triu(1)[order][:, order]
    pairs = edges.nonzero().tolist()
    shared = torch.zeros_like(edges)
    for flips in itertools.product([False, True], repeat=len(pairs)):
        other = torch.zeros_like(edges)
        for (i, j), flip in zip(pairs, flips):
            other[(j, i) if flip else (i, j)] = True
        if acyclic(other) and colliders(other) == colliders(edges):
            shared |= other
    table = torch.randn(20, count, generator=generator)
    assert causal.causal_limits(table, edges.double()).cpdag.equal(shared)


def test_directions_that_cannot_be_told_are_named():
    made = causal.simulate(
        torch.tensor([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]]), observations=500
    )
    found = causal.causal_limits(made.table, made.weights, names=list("abcd"))
    assert found.reversible == [(0, 1)] and found.cpdag[0, 1] and found.cpdag[1, 0]
    assert found.cpdag[1, 2] and not found.cpdag[2, 1]
    assert "The direction of 1 of 3 edges cannot be told" in found.report()[1]
    assert found.report()[1].endswith("data: a - b")


def test_equivalent_graphs_have_the_same_bic():
    made = causal.simulate(torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), observations=300)
    bic = [causal.causal_limits(made.table, g).bic for g in (made.weights, made.weights.T)]
    assert bic[0] == pytest.approx(bic[1])
    assert bic[0] < causal.causal_limits(made.table, torch.zeros(3, 3)).bic
    total = torch.distributions.MultivariateNormal(
        made.table.mean(0), torch.cov(made.table.T, correction=0)
    ).log_prob(made.table)
    full = torch.ones(3, 3).triu(1)  # it has the likelihood of any Gaussian
    expected = -2 * total.sum() + 9 * math.log(300)
    assert causal.causal_limits(made.table, full).bic == pytest.approx(float(expected))


def hidden_cause(seed, rows=1000):
    """Two columns with a common cause that the table does not have, among independent ones."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.empty(rows, 6, dtype=torch.float64).exponential_(generator=generator)
    noise[:, :2] += 1.2 * noise[:, 5:]
    return noise[:, :5]


def test_a_common_cause_outside_the_table_shows_in_the_noises():
    for seed in range(5):
        table = hidden_cause(seed)
        for edges in ([], [(0, 1)], [(1, 0)]):
            graph = torch.zeros(5, 5)
            for i, j in edges:
                graph[i, j] = 1
            found = causal.causal_limits(table, graph)
            assert (0, 1) in [pair[:2] for pair in found.dependent], (seed, edges)
            assert found.dependent[0][2] < 1e-3 and found.tests == 10
            assert "x0 - x1 (p = " in found.report()[-1]


def test_a_missing_edge_shows_in_the_noises():
    made = causal.simulate(nodes=4, degree=1, observations=500, seed=3)
    i, j = made.weights.abs().argmax() // 4, made.weights.abs().argmax() % 4
    graph = made.weights.clone()
    graph[i, j] = 0
    pairs = [set(pair[:2]) for pair in causal.causal_limits(made.table, graph).dependent]
    assert {int(i), int(j)} in pairs


@pytest.mark.parametrize("noise", ["gaussian", "exponential", "gumbel"])
def test_right_graphs_are_seldom_accused(noise):
    """At most 5 % in the long run; 8 of 60 has a probability of less than 1 %."""
    false = 0
    for seed in range(60):
        made = causal.simulate(nodes=8, degree=1, observations=400, noise=noise, seed=seed)
        false += bool(causal.causal_limits(made.table, made.weights).dependent)
    assert false < 8


def test_units_that_tell_the_order_are_reported():
    made = causal.simulate(nodes=12, degree=2, observations=1000, seed=1)
    found = causal.causal_limits(made.table, made.weights)
    assert found.varsortability == causal.causal_sortability(made.table, made.weights).variance
    shared, edges = found.sorted_by_variance
    assert edges == int((made.weights != 0).sum()) and 0.8 * edges <= shared <= edges
    assert any("Variances alone order the columns" in line for line in found.report())
    for kind in (CausalGraph, lambda **o: CausalPipeline(steps=2, **o)):
        with pytest.warns(VarianceOrderWarning, match=r"sorting by variance gives \d+ of the"):
            kind().fit(made.table)
        with warnings.catch_warnings():
            warnings.simplefilter("error", VarianceOrderWarning)
            kind(standardise=True).fit(made.table)
            kind().fit(made.table[:, :3])


def test_estimators_say_what_the_table_cannot_tell():
    made = causal.simulate(nodes=6, degree=1, observations=300, seed=4)
    table = made.table.clone()
    table[3, 2] = torch.nan
    graph = CausalGraph(missing="rows", standardise=True).fit(table, names=list("abcdef"))
    found = graph.limits(table)
    assert found.names == list("abcdef")
    whole = table[~table.isnan().any(1)]
    scaled = (whole - whole.mean(0)) / whole.std(0, correction=0)
    assert found.bic == pytest.approx(causal.causal_limits(scaled, graph.adjacency_).bic)
    assert CausalGraph().fit(made.table).limits(made.table).names == [f"x{i}" for i in range(6)]


@pytest.mark.parametrize(
    "table, graph, says",
    [
        (torch.randn(9, 3), torch.zeros(2, 2), "graph: expected one over 3 columns, got 2"),
        (torch.randn(9, 2), torch.tensor([[0, 1], [1, 0]]), "graph: expected no cycle"),
        (torch.full((9, 2), torch.nan), torch.zeros(2, 2), "table: expected finite numbers"),
        (torch.randn(3, 2), torch.zeros(2, 2), "table: expected at least 4 rows, got 3"),
    ],
)
def test_names_what_cannot_be(table, graph, says):
    with pytest.raises(ValueError, match=says):
        causal.causal_limits(table, graph)
    with pytest.raises(ValueError, match="names: expected 2, one per column, got 1"):
        causal.causal_limits(torch.randn(9, 2), torch.zeros(2, 2), names=["a"])
    with pytest.raises(ValueError, match=r"level: expected a number in \(0, 1\), got 1.5"):
        causal.causal_limits(torch.randn(9, 2), torch.zeros(2, 2), level=1.5)


def test_wide_tables_are_not_compared(monkeypatch):
    """The comparison takes longer than the fit there."""
    from nsimplex.causal import estimators

    made = causal.simulate(nodes=12, degree=2, observations=1000, seed=1)
    monkeypatch.setattr(estimators, "_MOST_COMPARED", 11)
    with warnings.catch_warnings():
        warnings.simplefilter("error", VarianceOrderWarning)
        assert CausalGraph().fit(made.table).score(made.table) < 0


def batches(seed, size=20):
    """A table of a graph with an offset per batch and column, and the batches."""
    made = causal.simulate(nodes=6, degree=1, observations=200, noise="exponential", seed=seed)
    batch = torch.arange(200) // size
    offsets = 6 * torch.randn(200 // size, 6, generator=torch.Generator().manual_seed(seed))
    return made.table + offsets.double()[batch], made.weights, batch.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_differences_between_groups_are_no_common_cause(seed):
    table, weights, batch = batches(seed)
    assert causal.causal_limits(table, weights).dependent
    assert not causal.causal_limits(table, weights, groups=batch).dependent


def test_groups_pay_for_their_degrees_of_freedom():
    """Groups of two have one deviation each, and BIC is that of these rows."""
    table, weights, batch = batches(0, size=2)
    own = (table[1::2] - table[::2]) / math.sqrt(2)
    found = causal.causal_limits(table, weights, groups=batch)
    assert found.bic == pytest.approx(causal.causal_limits(own, weights).bic)
    found = causal.causal_limits(table, weights, groups=[0] * 3 + [1] * 197)
    assert found.bic == pytest.approx(causal.causal_limits(table[3:], weights).bic, rel=0.05)


def test_rows_with_interventions_are_left_out():
    table, weights, batch = batches(1)
    table, targets = table.clone(), [2] * 50 + [-1] * 150
    table[:50, 2] = 100.0
    found = causal.causal_limits(table, weights, groups=batch, targets=targets)
    rest = causal.causal_limits(table[50:], weights, groups=batch[50:])
    assert found.bic == rest.bic and found.dependent == rest.dependent


@pytest.mark.parametrize("kind", [CausalGraph, lambda **given: CausalPipeline(steps=2, **given)])
def test_estimators_know_the_groups_of_rows(kind):
    pandas = pytest.importorskip("pandas")
    table, _, batch = batches(2)
    frame = pandas.DataFrame(table.numpy(), columns=list("abcdef"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", VarianceOrderWarning)
        graph = kind(standardise=True).fit(frame, groups=batch)
    with pytest.raises(ValueError, match=r"groups: expected those of the rows of X, as the fit"):
        graph.limits(frame)
    found = graph.limits(frame, groups=batch)
    assert not found.dependent and not any("Variances alone" in said for said in found.report())
    frame["batch"] = batch
    again = kind(standardise=True).fit(frame, groups="batch").limits(frame)
    assert again.bic == found.bic and again.report() == found.report()


def test_rows_that_are_too_few_within_groups_are_refused():
    table, weights, _ = batches(0)
    expected = r"^\[causal_limits\] table: expected at least 4 rows within groups, got 0$"
    with pytest.raises(ValueError, match=expected):
        causal.causal_limits(table, weights, groups=list(range(200)))
    expected = r"expected at least 4 rows within groups and without interventions, got 2$"
    with pytest.raises(ValueError, match=expected):
        causal.causal_limits(table, weights, groups=[0] * 200, targets=[1] * 197 + [-1] * 3)


def test_columns_of_other_kinds_have_no_limits():
    table, _, _ = batches(0)
    table[:, 1] = table[:, 1].gt(0).double()
    graph = CausalGraph(kinds={1: "binary"}).fit(table)
    with pytest.raises(ValueError, match=r"limits: expected continuous columns, got column 1 of"):
        graph.limits(table)
    CausalGraph(kinds={0: "continuous"}).fit(table).limits(table)


@pytest.mark.parametrize("exponent", [-990, -400, 400, 990])
@pytest.mark.parametrize("standardise", [False, True])
def test_units_far_from_one_change_nothing_but_units(exponent, standardise):
    table, _, _ = batches(3)
    scale = 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)
    graph, large = (
        CausalGraph(standardise=standardise, confidence=4).fit(each)
        for each in (table, table * scale)
    )
    units = exponent * math.log(2)
    shift = 0.0 if standardise else units
    assert len(graph.edges()) > 0 and math.isfinite(graph.edges()[0].low)
    for one, other in zip(graph.edges(), large.edges(), strict=True):
        assert one[:2] == other[:2] and one[2:] == pytest.approx(other[2:], nan_ok=True)
    assert large.score(table * scale) == pytest.approx(graph.score(table) - 6 * units)
    limits, known = large.limits(table * scale), graph.limits(table)
    assert limits.bic == pytest.approx(known.bic + 2 * table.numel() * shift)
    assert limits.report()[0].endswith(f": {limits.bic:.1f}")
    assert limits.report()[1:] == known.report()[1:]


def test_one_column_of_large_units_is_standardised():
    table, _, _ = batches(3)
    large = table.clone()
    large[:, 2] *= 2.0**530
    graph, other = (CausalGraph(standardise=True, confidence=4).fit(t) for t in (table, large))
    assert other.adjacency_.equal(graph.adjacency_)
    expected = graph.score(table) - 530 * math.log(2)  # a density in the columns' units
    assert other.score(large) == pytest.approx(expected)
    assert len(graph.edges()) > 0 and math.isfinite(graph.edges()[0].low)
    for one, same in zip(graph.edges(), other.edges(), strict=True):
        assert one[:2] == same[:2] and one[2:] == pytest.approx(same[2:], nan_ok=True)
