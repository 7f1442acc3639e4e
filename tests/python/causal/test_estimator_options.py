"""Options that estimators share with `causal_fit` and with `nsimplex causal fit`."""

import json
import pickle
import warnings

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex._library import operators
from nsimplex.causal import CausalGraph, CausalPipeline
from nsimplex.causal.contract import clone

NAMES = [f"g{at}" for at in range(8)]


@pytest.fixture(scope="module")
def made():
    """Covariances leave directions open here, and noises tell them."""
    options = dict(nodes=8, observations=400, noise="exponential", seed=1)
    return causal.simulate(**options)


@pytest.fixture(scope="module")
def graph(made):
    return CausalGraph(orient_by_noise=True, standardise=True).fit(made.table, names=NAMES)


def test_noises_turn_edges_of_the_fit(made, graph):
    plain = CausalGraph(estimator="order", standardise=True).fit(made.table)
    scaled = torch.from_numpy(plain.transform(made.table.numpy()))
    found = causal.orient_by_noise(scaled, plain.adjacency_)
    assert found.turned and graph.noise_directions_.turned == found.turned
    torch.testing.assert_close(graph.adjacency_, found.adjacency)
    assert torch.equal(graph.scores_, graph.adjacency_.abs())
    wrong = [causal.causal_metrics(each.adjacency_, made.weights).shd for each in (plain, graph)]
    assert wrong[1] < wrong[0]
    torch.testing.assert_close(graph.linear_.coefficients, graph.adjacency_)
    assert graph.score(made.table) != plain.score(made.table)
    assert not hasattr(plain, "noise_directions_")


def test_gaussian_noises_leave_the_fit_as_it_is():
    table = causal.simulate(nodes=8, observations=400, graph="sf", seed=5).table
    plain = CausalGraph(standardise=True).fit(table)
    graph = CausalGraph(standardise=True, orient_by_noise=True).fit(table)
    assert graph.noise_directions_.gain == 0 and graph.noise_directions_.turned == []
    assert torch.equal(graph.adjacency_, plain.adjacency_)
    assert torch.equal(graph.scores_, plain.scores_)


def test_turned_edges_respect_constraints(made, graph):
    cause, effect = (NAMES[column] for column in graph.noise_directions_.turned[0])
    for options in (
        dict(forbidden=[(cause, effect)]),
        dict(required=[(effect, cause)]),
        dict(tiers=[1 if name == cause else 0 for name in NAMES]),
    ):
        own = clone(graph).fit(made.table, names=NAMES, **options)
        pairs = {edge[:2] for edge in own.edges()}
        assert (cause, effect) not in pairs and (
            "required" not in options or (effect, cause) in pairs
        )


def test_other_graphs_have_nothing_of_the_noises(made, graph):
    again = clone(graph).fit(made.table)
    assert torch.equal(again.adjacency_, graph.adjacency_)
    again.set_params(orient_by_noise=False, estimator="order").fit(made.table)
    assert not hasattr(again, "noise_directions_")
    pipeline = CausalPipeline(orient_by_noise=True, standardise=True, steps=2).fit(made.table)
    assert torch.equal(pipeline.adjacency_, graph.adjacency_)
    assert not hasattr(pipeline.embed(made.weights), "noise_directions_")
    copy = pickle.loads(pickle.dumps(graph))
    assert torch.equal(copy.noise_directions_.adjacency, graph.adjacency_)


@pytest.mark.parametrize(
    "options, rows, says",
    [
        (dict(nonlinear=True), {}, "linear effects, got nonlinear"),
        ({}, dict(groups=[0, 1] * 200), "rows of one group, got groups"),
        ({}, dict(targets=[None, 1] * 200), "rows without interventions, got targets"),
        (dict(kinds={0: "count"}), {}, "continuous columns, got kinds"),
        (dict(missing="likelihood"), {}, 'a table without gaps, got missing="likelihood"'),
    ],
)
def test_what_noises_cannot_take_into_account_is_refused(made, options, rows, says):
    graph = CausalGraph(orient_by_noise=True, **options)
    with pytest.raises(ValueError, match=rf"^\[CausalGraph\] orient_by_noise: expected {says}$"):
        graph.fit(made.table, **rows)


def test_too_few_rows_for_noises_are_named(made):
    says = r"^\[CausalGraph\] X: expected at least 4 rows, got 3$"
    with warnings.catch_warnings(), pytest.raises(ValueError, match=says):
        warnings.simplefilter("ignore")
        CausalGraph(orient_by_noise=True).fit(made.table[:3])


@pytest.mark.parametrize(
    "options",
    [
        dict(estimator="logdet", sparsity=0.3),
        dict(estimator="lowrank", rank=2),
        dict(estimator="lowrank", rank=2, sparsity=0.0),
    ],
)
def test_options_of_estimators_reach_the_fit(made, options):
    expected = causal.causal_fit(made.table, **options)
    other = causal.causal_fit(made.table, estimator=options["estimator"])
    assert not torch.equal(expected.adjacency, other.adjacency)
    found = CausalGraph(**options).fit(made.table)
    assert torch.equal(found.adjacency_, expected.adjacency)
    sure = causal.edge_confidence(made.table, replicates=4, **options)
    own = CausalGraph(confidence=4, **options).fit(made.table)
    assert torch.equal(own.frequencies_, sure.frequencies)
    assert torch.equal(sure.adjacency, expected.adjacency)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(rank=3), "rank: expected estimator lowrank or paper-lowrank with it, got auto"),
        (
            dict(rank=3, estimator="paper"),
            "rank: expected estimator lowrank or paper-lowrank with it, got paper",
        ),
        (
            dict(sample=True, estimator="lowrank"),
            "sample: expected estimator paper or paper-lowrank with it, got lowrank",
        ),
        (
            dict(sparsity=0.1, nonlinear=True),
            "sparsity: expected estimator logdet, paper, paper-lowrank, lowrank, notears or "
            "spectral with it, got auto",
        ),
        (
            dict(nonlinear=True, estimator="spectral"),
            "nonlinear: expected estimator auto, order or logdet with it, got spectral",
        ),
    ],
)
def test_an_option_that_the_estimator_would_not_use_is_refused(made, options, said):
    for name, call in (
        ("causal_fit", causal.causal_fit),
        ("edge_confidence", causal.edge_confidence),
        ("CausalGraph", lambda table, **own: CausalGraph(**own).fit(table)),
        ("CausalPipeline", lambda table, **own: CausalPipeline(**own).fit(table)),
    ):
        with pytest.raises(ValueError) as error:
            call(made.table, **options)
        assert str(error.value) == f"[{name}] {said}"


def test_sample_reaches_the_fit(made):
    table = made.table[:40, :3]
    options = dict(estimator="paper", threshold=0.0)
    found = [CausalGraph(sample=own, **options).fit(table).adjacency_ for own in (False, True)]
    assert not torch.equal(*found)
    assert torch.equal(found[1], causal.causal_fit(table, sample=True, **options).adjacency)


def test_options_are_saved_and_older_files_have_none(made, tmp_path):
    options = dict(orient_by_noise=True, sparsity=0.25, rank=np.int64(7), sample=np.bool_(True))
    kind = dict(estimator="paper-lowrank", steps=2, standardise=True)
    pipeline = CausalPipeline(**kind, **options).fit(made.table[:40])
    pipeline.save(tmp_path / "p")
    again = CausalPipeline.load(tmp_path / "p")
    assert {name: again.get_params()[name] for name in options} == options
    text, names, tensors = operators.causal_pipeline_read(str(tmp_path / "p"))
    older = json.loads(text)
    for name in options:
        del older["parameters"][name]
    operators.causal_pipeline_write(str(tmp_path / "older"), json.dumps(older), names, tensors)
    loaded = CausalPipeline.load(tmp_path / "older")
    default = CausalPipeline().get_params()
    assert {name: loaded.get_params()[name] for name in options} == {
        name: default[name] for name in options
    }
    assert torch.equal(loaded.adjacency_, pipeline.adjacency_)


def test_searches_compare_options(made):
    selection = pytest.importorskip("sklearn.model_selection")
    grid = {"orient_by_noise": [False, True], "sparsity": [None, 0.1]}
    graph = CausalGraph(estimator="logdet", standardise=True)
    search = selection.GridSearchCV(graph, grid, cv=3)
    search.fit(made.table.numpy())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
