"""What a fitted CausalGraph answers: effects, samples, interventions and counterfactuals."""

import numpy
import pytest
import torch

from nsimplex.causal import CausalGraph

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame():
    rng = numpy.random.default_rng(0)
    table = pandas.DataFrame({"dose": rng.normal(size=2000)})
    table["level"] = 3 + 2 * table["dose"] + rng.normal(size=2000)
    table["growth"] = 5 - table["level"] + rng.normal(size=2000)
    return table


ORDER = {"dose": 0, "level": 1}  # growth comes last


@pytest.fixture(scope="module", params=[False, True], ids=["raw", "standardised"])
def graph(frame, request):
    return CausalGraph(standardise=request.param).fit(frame, tiers=ORDER)


def test_effects_are_in_the_units_of_the_table(graph, frame):
    found = graph.effect(frame, "dose", "growth")
    assert found.effect == pytest.approx(-2, abs=0.15)
    assert found.low < -2 < found.high
    assert graph.effect(frame, 0, 2).possible == found.possible


def test_samples_look_like_the_table(graph, frame):
    rows = graph.sample_rows(20_000, seed=1)
    assert isinstance(rows, numpy.ndarray) and rows.shape == (20_000, 3)
    numpy.testing.assert_allclose(rows.mean(axis=0), frame.to_numpy().mean(axis=0), atol=0.15)
    numpy.testing.assert_allclose(numpy.cov(rows.T), numpy.cov(frame.to_numpy().T), atol=0.4)
    assert numpy.array_equal(rows, graph.sample_rows(20_000, seed=1))


def test_interventions_act_on_effects_alone(graph):
    none, one = (graph.intervene({"level": value}, 5000) for value in (0.0, 1.0))
    assert numpy.array_equal(none[:, 0], one[:, 0])
    assert (none[:, 1] == 0).all() and (one[:, 1] == 1).all()
    numpy.testing.assert_allclose(one[:, 2] - none[:, 2], -1, atol=0.1)


def test_counterfactuals_keep_the_noise_of_a_row(graph, frame):
    same = graph.counterfactual(frame, {})
    numpy.testing.assert_allclose(same, frame.to_numpy())
    other = graph.counterfactual(frame, {"dose": 1.0})
    change = 1 - frame["dose"].to_numpy()
    assert (other[:, 0] == 1).all()
    numpy.testing.assert_allclose(other[:, 1] - frame["level"].to_numpy(), 2 * change, atol=0.3)
    # An intervention that sets what the rows have changes nothing below.
    row = frame.iloc[:1]
    own = graph.counterfactual(row, {"dose": row["dose"].item()})
    numpy.testing.assert_allclose(own, row.to_numpy())


def test_an_own_graph_is_tested_beside_the_learned_one(graph, frame):
    own = pandas.DataFrame(0.0, index=frame.columns, columns=frame.columns)
    own.loc["dose", "growth"] = own.loc["level", "growth"] = 1
    found = graph.check_graph(frame, own, permutations=20)
    assert {"dose", "level"} in [{test.first, test.second} for test in found.violated]
    assert [(test.first, test.second) for test in found.superfluous] == [("dose", "growth")]
    assert found.learned_bic < found.bic


def test_counterfactuals_of_a_tensor_are_a_tensor(frame):
    values = torch.tensor(frame.to_numpy())
    graph = CausalGraph().fit(values)
    assert isinstance(graph.counterfactual(values, {0: 1.0}), torch.Tensor)


def test_samples_of_the_confidence_give_the_interval(frame):
    graph = CausalGraph(confidence=20).fit(frame, tiers=ORDER)
    found = graph.effect(frame, "dose", "growth")
    assert found.paths == 1 and found.low < -2 < found.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, x: g.effect(x, "dos", "growth"), "cause: expected columns 0 to 2 or their"),
        (
            lambda g, x: g.intervene({"dose": "high"}, 5),
            r"do\['dose'\]: expected a number, got 'high'",
        ),
        (lambda g, x: g.intervene({"dose": 1, 0: 2}, 5), "interventions: expected one value per"),
        (lambda g, x: g.sample_rows(0), "rows: expected at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(graph, frame, call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(graph, frame)


def test_curved_effects_and_kinds_have_no_linear_model(frame):
    curved = CausalGraph(nonlinear=True).fit(frame[:200])
    with pytest.raises(
        ValueError, match="sample_rows: expected a fit with linear effects, got nonl"
    ):
        curved.sample_rows(5)
    table = frame.assign(sick=(frame["growth"] > 0).astype(int))
    kinds = CausalGraph(kinds={"sick": "binary"}).fit(table[:300])
    with pytest.raises(ValueError, match="effect: expected continuous columns, got one of kind"):
        kinds.effect(table, "dose", "growth")
