"""causal_effect and check_causal_graph: true effects in simulated tables, bounds and own graphs."""

import math
import re

import pytest
import torch

from nsimplex import causal


def truth(made):
    """The total effects [M, M] of a linear simulation."""
    unit = torch.eye(len(made.weights), dtype=torch.float64)
    effects = torch.linalg.inv(unit - made.weights) - unit
    return torch.where(effects.abs() > 1e-12, effects, 0)


def chain(rows=400, seed=0):
    torch.manual_seed(seed)
    x = torch.randn(rows, 3, dtype=torch.float64)
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] += 0.5 * x[:, 1]
    return x


PATH = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=torch.float64)


def coverage(noise, tables, seed=0):
    """How many intervals of true graphs hold the true effect, and of how many."""
    held = all_of_them = 0
    for table in range(tables):
        made = causal.simulate(
            nodes=8, observations=100, noise=noise, equal_variances=False, seed=seed + table
        )
        effects = truth(made)
        for i, j in (effects != 0).nonzero().tolist():
            found = causal.causal_effect(made.table, made.weights, i, j)
            held += bool(found.low <= effects[i, j] <= found.high)
            all_of_them += 1
    return held, all_of_them


@pytest.mark.parametrize("noise", ["gaussian", "exponential"])
def test_intervals_of_the_true_graph_hold_as_often_as_they_say(noise):
    held, count = coverage(noise, 15)
    # Three standard deviations, of 200 or so effects.
    assert abs(held / count - 0.95) < 3 * math.sqrt(0.95 * 0.05 / count) + 0.01


@pytest.mark.slow
def test_two_thousand_intervals_hold_in_93_to_97_percent():
    held, count = coverage("gaussian", 100, seed=1000)
    assert count >= 2000
    assert 0.93 <= held / count <= 0.97


def test_the_effect_is_that_of_an_intervention():
    kwargs = dict(nodes=8, observations=100_000, seed=3)
    made = causal.simulate(**kwargs)
    i, j = (truth(made).abs() > 0.5).nonzero()[0].tolist()
    means = [
        causal.simulate(**kwargs, interventions={i: value}).table[:, j].mean() for value in (0, 1)
    ]
    found = causal.causal_effect(made.table, made.weights, i, j)
    assert found.effect == pytest.approx((means[1] - means[0]).item(), abs=0.05)
    assert found.least == found.most == found.effect and len(found.possible) == 1


def test_columns_have_names_and_units():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(chain().numpy(), columns=["dose", "level", "growth"])
    found = causal.causal_effect(frame, PATH, "dose", "growth")
    assert (found.cause, found.affected) == ("dose", "growth")
    assert found.possible[0].causes == [] and found.possible[0].adjustment == []
    assert found.low < 0.4 < found.high
    later = causal.causal_effect(frame, PATH, "level", "growth")
    assert later.possible[0].causes == ["dose"]
    frame["dose"] *= 100
    again = causal.causal_effect(frame, PATH, "dose", "growth")
    assert again.effect == pytest.approx(found.effect / 100)
    assert again.low == pytest.approx(found.low / 100)
    assert "One unit more of dose changes growth by" in found.report()
    assert found.to_frame().effect[0] == found.effect


def test_without_a_path_there_is_no_effect():
    found = causal.causal_effect(chain(), PATH, 2, 0)
    assert (found.effect, found.low, found.high) == (0, 0, 0)
    assert "no directed path" in found.report()


def test_open_directions_give_bounds():
    # 0 - 1 -> 2 <- 3: 0 acts on 2 through 1, or 1 acts alone.
    torch.manual_seed(1)
    x = torch.randn(2000, 4, dtype=torch.float64)
    x[:, 1] += x[:, 0]
    x[:, 2] += 2 * x[:, 1] + x[:, 3]
    graph = torch.zeros(4, 4, dtype=torch.float64)
    graph[0, 1] = graph[1, 0] = graph[1, 2] = graph[3, 2] = 1
    found = causal.causal_effect(x, graph, 0, 2)
    assert sorted(each.causes for each in found.possible) == [["x1"], []][::-1]
    assert found.least == 0 and found.most == pytest.approx(2, abs=0.2)
    assert found.low == 0 and found.high > found.most
    assert found.effect == pytest.approx(found.most / 2)
    assert "directions are open" in found.report()


def test_sampled_graphs_widen_the_interval():
    x, none = chain(), torch.zeros(3, 3, dtype=torch.float64)
    alone = causal.causal_effect(x, PATH, 0, 2)
    same = causal.causal_effect(x, PATH, 0, 2, samples=[PATH] * 4)
    assert (same.low, same.high) == pytest.approx((alone.low, alone.high))
    assert same.paths == 1 and math.isnan(alone.paths)
    mixed = causal.causal_effect(x, PATH, 0, 2, samples=[PATH, none])
    assert mixed.paths == 0.5 and mixed.low == 0 < mixed.high < alone.high
    assert "50% of the samples" in mixed.report()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (dict(cause=3), ValueError, "[causal_effect] cause: expected columns 0 to 2 or"),
        (dict(effect="x"), ValueError, "[causal_effect] effect: expected a name of a column"),
        (dict(effect=0), ValueError, "[causal_effect] effect: expected another column than"),
        (dict(level=1.0), ValueError, "[causal_effect] level: expected a number in (0, 1)"),
        (dict(graph=PATH + PATH.T.roll(1, 0)), ValueError, "[causal_effect] graph: expected"),
        (dict(samples=[torch.zeros(2, 2)]), ValueError, "[causal_effect] samples: expected"),
        (dict(table=chain()[:3]), ValueError, "[causal_effect] table: expected at least 4 rows"),
    ],
)
def test_wrong_arguments_are_named(given, error, message):
    call = dict(table=chain(), graph=PATH, cause=0, effect=2) | given
    with pytest.raises(error, match=re.escape(message)):
        causal.causal_effect(**call)


def test_groups_do_not_count_as_effects():
    x = chain()
    groups = [row % 2 for row in range(len(x))]
    x[1::2, 2] += 10
    x[1::2, 0] += 10
    within = causal.causal_effect(x, PATH, 0, 2, groups=groups)
    assert within.low < 0.4 < within.high
    assert causal.causal_effect(x, PATH, 0, 2).low > 0.5


def test_a_right_graph_passes_and_a_wrong_one_does_not():
    made = causal.simulate(nodes=8, degree=1, observations=500, seed=4)
    right = causal.check_causal_graph(made.table, made.weights, permutations=50)
    assert not right.violated and not right.superfluous
    assert right.independences + right.edges == 28
    assert right.p_value <= 2 / 51 and right.bic < right.permuted_bic.min()

    wrong = made.weights.clone()
    i, j = wrong.abs().argmax().item() // 8, wrong.abs().argmax().item() % 8
    wrong[i, j] = 0
    spare = (((made.weights != 0) | (made.weights.T != 0)).logical_not()).nonzero()
    extra = next((a, b) for a, b in spare.tolist() if a < b and _acyclic(wrong, a, b))
    wrong[extra] = 1
    found = causal.check_causal_graph(
        made.table, wrong, learned=made.weights, permutations=50, names=list("abcdefgh")
    )
    assert {"abcdefgh"[i], "abcdefgh"[j]} in [{test.first, test.second} for test in found.violated]
    assert ("abcdefgh"[extra[0]], "abcdefgh"[extra[1]]) in [
        (test.first, test.second) for test in found.superfluous
    ]
    assert found.learned_bic < found.bic
    assert any("may be missing between" in line for line in found.report())
    assert set(found.to_frame().finding) == {"violated independence", "superfluous edge"}


def _acyclic(graph, cause, effect):
    edges = (graph != 0).double()
    edges[cause, effect] = 1
    return torch.linalg.matrix_power(edges, len(edges)).sum() == 0 and not _cyclic(edges)


def _cyclic(edges):
    return torch.linalg.matrix_exp(edges).trace() > len(edges) + 1e-9


def test_implied_independences_are_contradicted_at_the_level():
    """Holm's correction: a right graph has a finding in at most about 5 % of tables."""
    tables = 200
    found = 0
    for seed in range(tables):
        made = causal.simulate(nodes=6, degree=1, observations=60, seed=seed)
        check = causal.check_causal_graph(made.table, made.weights, permutations=1)
        found += bool(check.violated)
    assert found / tables < 0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)
    assert found > 0


def test_a_check_names_wrong_arguments():
    with pytest.raises(ValueError, match=r"\[check_causal_graph\] permutations: expected 1 to"):
        causal.check_causal_graph(chain(), PATH, permutations=0)
    with pytest.raises(ValueError, match=r"\[check_causal_graph\] graph: expected no cycle"):
        causal.check_causal_graph(chain(), PATH + PATH.T @ PATH.T)
