"""Prior knowledge of a fit: tiers, exogenous columns, sinks, paths, edges of networkx and DOT."""

import re

import numpy
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph
from nsimplex.causal.prior_knowledge import dot_edges


def table(seed=0):
    torch.manual_seed(seed)
    x = torch.randn(300, 4, dtype=torch.float64)
    x[:, 1] += 1.5 * x[:, 0]
    x[:, 2] += 1.5 * x[:, 1]
    x[:, 3] += 1.5 * x[:, 2]
    return x


NAMES = ["age", "dose", "level", "growth"]


def edges_with(**known):
    fit = CausalGraph(standardise=True).fit(table(), names=NAMES, **known)
    return {(edge.cause, edge.effect) for edge in fit.edges()}


def test_columns_that_a_dict_of_tiers_leaves_out_come_last():
    assert not any(effect == "age" for _, effect in edges_with(tiers={"age": 0}))
    assert not any(effect == "growth" for _, effect in edges_with(tiers={"growth": 5}))
    assert edges_with(tiers={"growth": 0, "level": 1}) == edges_with(tiers=[2, 2, 1, 0])


def test_exogenous_columns_have_no_causes_and_sinks_no_effects():
    found = edges_with(exogenous=["growth", "age"], sinks=["dose"])
    assert not any(effect in ("growth", "age") or cause == "dose" for cause, effect in found)
    assert found == edges_with(exogenous=[3, 0], sinks=numpy.array([1]))


def test_a_path_is_found_or_made():
    def reaches(graph, i, j):
        return bool(torch.linalg.matrix_exp((graph != 0).double())[i, j] > 0)

    x = table()
    fit = causal.causal_fit(x, standardise=True, paths=[(3, 0)])
    assert reaches(fit.adjacency, 3, 0) and not reaches(fit.adjacency, 0, 3)
    right = causal.causal_fit(x, standardise=True, exogenous=[0])
    same = causal.causal_fit(x, standardise=True, exogenous=[0], paths=[(0, 3)])
    assert torch.equal(right.adjacency, same.adjacency)
    noise = torch.randn(100, 3, dtype=torch.float64)
    assert causal.causal_fit(noise, paths=[(2, 1)]).adjacency[2, 1] != 0


def test_edges_come_from_networkx_and_from_dot(tmp_path):
    networkx = pytest.importorskip("networkx")
    pairs = [("growth", "level"), ("dose", "age")]
    expected = edges_with(required=pairs)
    text = 'digraph { "growth" -> level [weight=2]; dose -> age }'
    path = tmp_path / "known.dot"
    path.write_text(text)
    for known in (networkx.DiGraph(pairs), text, path, str(path)):
        assert edges_with(required=known) == expected
        assert not set(pairs) & edges_with(forbidden=known)


def test_dot_is_read_as_graphviz_and_dagitty_write_it():
    text = """strict digraph "a graph" { // a comment
      node [shape=box, label="x -> y"]; a -> b -> c-1
      "two \\"words\\"" -> b [label="]"] /* and
      another */ # one more
      d;
    }"""
    assert dot_edges("x", text) == [("a", "b"), ("b", "c-1"), ('two "words"', "b")]
    assert dot_edges("x", "dag { x1 [exposure] x1 -> y.2 }") == [("x1", "y.2")]
    graph = causal.graph_text(torch.tensor([[0.0, 1.5], [0, 0]]), ["a b", "c"])
    assert dot_edges("x", graph) == [("a b", "c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -> b }", "expected digraph { a -> b }, got"),
        ("digraph { a -- b }", "expected edges a -> b, got 'a -- b'"),
        ("digraph { a <-> b }", "expected edges a -> b, got"),
        ("digraph { a -> { b c } }", "expected one pair of braces, without subgraphs"),
        ("digraph { a -> }", "expected edges a -> b, got"),
        ("digraph { a -> b", "expected one pair of braces"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        dot_edges("[causal_fit] required", text)


@pytest.mark.parametrize(
    ("known", "error", "message"),
    [
        (dict(exogenous="age"), TypeError, "exogenous: expected a list of"),
        (dict(exogenous=["sex"]), ValueError, "exogenous: expected names of columns, got 'sex'"),
        (dict(sinks=[4]), ValueError, "sinks: expected columns 0 to 3 or their names, got 4"),
        (dict(required=[("age", "dose"), ("dose", "age")]), ValueError, "got (age, dose)"),
        (dict(paths=[("age", "dose"), ("dose", "age")]), ValueError, "paths[0]: expected paths"),
        (
            dict(sinks=["age"], required=[("age", "dose")]),
            ValueError,
            "required[0]: expected an edge that neither `forbidden`, tiers, exogenous nor sinks",
        ),
        (
            dict(paths=[("growth", "age")], forbidden=[("growth", "age")], exogenous=["age"]),
            ValueError,
            "paths[0]: expected a path that the table shows, or one whose edge is allowed, got "
            "(growth, age)",
        ),
    ],
)
def test_contradictions_have_the_names_of_columns(known, error, message):
    with pytest.raises(error, match=re.escape(message)):
        edges_with(**known)


def test_columns_that_are_dropped_do_not_count():
    x = torch.cat([table(), torch.ones(300, 1, dtype=torch.float64)], 1)
    graph = CausalGraph(drop=True).fit(x, exogenous=[4, 0], sinks=[4])
    assert graph.columns_ == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"paths: expected columns that are kept, got 4"):
        CausalGraph(drop=True).fit(x, paths=[(0, 4)])


def test_noises_turn_no_edge_of_a_required_path():
    made = causal.simulate(nodes=6, degree=1, observations=500, noise="exponential", seed=3)
    i, j = made.weights.nonzero()[0].tolist()
    known = dict(paths=[(j, i)])
    fit = causal.causal_fit(made.table, standardise=True, **known)
    found = causal.orient_by_noise(made.table, fit.adjacency, **known)
    assert torch.linalg.matrix_exp((found.adjacency != 0).double())[j, i] > 0
    with pytest.raises(ValueError, match=r"graph: expected a path"):
        causal.orient_by_noise(made.table, torch.zeros(6, 6, dtype=torch.float64), **known)


def test_samples_and_pipelines_have_the_same_knowledge():
    pipeline = causal.CausalPipeline(dimension=2, steps=2, confidence=4, standardise=True)
    pipeline.fit(table(), names=NAMES, exogenous=["growth"], sinks=["age"])
    assert float(pipeline.frequencies_[:, 3].sum()) == 0
    assert float(pipeline.frequencies_[0].sum()) == 0
