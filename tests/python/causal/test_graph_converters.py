"""Open directions (`cpdag_`): in pictures, and in texts and objects of other libraries."""

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph

NAMES = ["a", "b", "c"]


def table():
    torch.manual_seed(0)
    x = torch.randn(400, 3, dtype=torch.float64)
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] += 0.5 * x[:, 1]
    return x


@pytest.fixture(scope="module")
def graph():
    return CausalGraph(standardise=True).fit(table(), names=NAMES)


def pairs(cpdag):
    return {(NAMES[i], NAMES[j]) for i, j in torch.as_tensor(cpdag).nonzero().tolist()}


def test_covariances_leave_a_chain_open(graph):
    assert pairs(graph.cpdag_) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}


@pytest.mark.parametrize(
    ("options", "known", "told"),
    [
        ({}, {}, {("a", "b"), ("b", "c")}),  # noises of one variance
        (dict(standardise=True), dict(tiers={"a": 0, "b": 1}), {("a", "b"), ("b", "c")}),
        (dict(standardise=True), dict(exogenous=["a"], sinks=["c"]), {("a", "b"), ("b", "c")}),
        (
            dict(standardise=True),
            dict(required=[("a", "b")], forbidden=[("c", "b")]),
            {("a", "b"), ("b", "c")},
        ),
    ],
)
def test_variances_and_knowledge_tell_directions(options, known, told):
    assert pairs(CausalGraph(**options).fit(table(), names=NAMES, **known).cpdag_) == told


def test_interventions_tell_the_edges_of_their_column():
    x = table()
    torch.manual_seed(1)
    x[:200, 1] = torch.randn(200, dtype=torch.float64)
    x[:200, 2] = 0.5 * x[:200, 1] + torch.randn(200, dtype=torch.float64)
    fit = CausalGraph(standardise=True).fit(x, names=NAMES, targets=[1] * 200 + [-1] * 200)
    assert pairs(fit.cpdag_) == {("a", "b"), ("b", "c")}


def test_pictures_and_exports_show_open_directions(graph):
    assert all(edge.open for edge in graph.draw()._sketch.edges)
    assert not any(edge.open for edge in graph.draw(reversible=())._sketch.edges)
    assert {data["open"] for _, _, data in graph.to_networkx().edges(data=True)} == {True}
    assert causal.graph_text(graph).count("dir=none") == 2
    assert causal.graph_text(graph, format="gml").count(" open 1 ]") == 2
    assert causal.graph_text(graph, format="graphml").count('directed="false"') == 2
    told = torch.tensor([[0, 1, 0], [0, 0, 2], [0, 0, 0]], dtype=torch.float64)
    assert "dir=none" not in causal.graph_text(told, NAMES)
    both = torch.as_tensor(graph.cpdag_).double()
    assert causal.graph_text(both, NAMES).count(" -> ") == 2


def test_gml_has_any_name():
    networkx = pytest.importorskip("networkx")
    weights = torch.tensor([[0.0, 1e-5], [0, 0]], dtype=torch.float64)
    text = causal.graph_text(weights, ['\u00e9 "x" & y', "b"], format="gml")
    read = networkx.parse_gml(text)
    assert list(read.edges(data="weight")) == [('\u00e9 "x" & y', "b", 1e-5)]


def test_libraries_of_graphs_get_lines_and_arrows(graph):
    pytest.importorskip("causallearn")
    from causallearn.graph.Endpoint import Endpoint

    made = causal.to_causal_learn(graph)
    ends = {(edge.get_endpoint1(), edge.get_endpoint2()) for edge in made.get_graph_edges()}
    assert ends == {(Endpoint.TAIL, Endpoint.TAIL)}


def test_pgmpy_gets_a_partially_directed_graph(graph):
    pytest.importorskip("pgmpy")
    made = causal.to_pgmpy(graph)
    assert len(made.undirected_edges) == 2 and set(made.nodes()) == set(NAMES)
    told = torch.tensor([[0, 1, 0], [0, 0, 2], [0, 0, 0]], dtype=torch.float64)
    assert set(causal.to_pgmpy(told, NAMES).edges()) == {("a", "b"), ("b", "c")}


def test_pipelines_keep_the_result(graph, tmp_path):
    pipeline = causal.CausalPipeline(dimension=2, steps=2, standardise=True)
    pipeline.fit(table(), names=NAMES)
    assert torch.equal(pipeline.cpdag_, graph.cpdag_)
    pipeline.save(tmp_path / "pipeline.safetensors")
    again = causal.CausalPipeline.load(tmp_path / "pipeline.safetensors")
    assert torch.equal(again.cpdag_, graph.cpdag_)
    assert len(again.effect(table(), "a", "c").possible) == 2
