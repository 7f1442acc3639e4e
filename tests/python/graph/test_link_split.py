"""Link prediction: the split of edges, and the metrics of a ranking."""

import pytest
import torch

from nsimplex import graph
from nsimplex.nn import MessagePassing, fit_graphs

RING = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])


def rows(batches):
    return {tuple(row) for each in batches for row in each.tuples.tolist()}


def data(kind):
    features = torch.arange(40.0)[:, None]
    if kind == "hyperedges":
        sets = [[i, (i + 1) % 40, (i + 3) % 40][: 2 + i % 2] for i in range(40)]
        return graph.from_hyperedges(sets, num_nodes=40, edge_features=features)
    directions = kind if kind in ("both", "undirected") else "given"
    return graph.from_edge_index(RING, 40, features, directions=directions)


@pytest.mark.parametrize("kind", ["both", "undirected", "given", "hyperedges"])
def test_no_tuple_that_is_predicted_is_an_edge_of_the_graph(kind):
    whole = data(kind)
    links = graph.split_links(whole, (0.5, 0.2, 0.3), supervision=0.4, seed=3)
    known, kept, asked = rows(whole.edges), rows(links.data.edges), rows(links.queries)
    link = tuple if kind == "given" else lambda row: tuple(sorted(row))
    assert not {link(row) for row in kept} & {link(row) for row in asked}
    truth = [tuple(row) in known for each in links.queries for row in each.tuples.tolist()]
    assert links.targets.tolist() == [float(each) for each in truth]
    halves = [int(links.targets[part].sum()) for part in links.split]
    assert halves == [8, 8, 12] if kind != "hyperedges" else sum(halves) == 28
    assert [len(part) for part in links.split] == [2 * half for half in halves]
    assert sorted(torch.cat([*links.split]).tolist()) == list(range(len(truth)))
    wholes = zip(whole.edges, whole.edge_features)
    for batch, own, (source, features) in zip(links.data.edges, links.data.edge_features, wholes):
        place = {tuple(row): at for at, row in enumerate(source.tuples.tolist())}
        numbers = [place[tuple(row)] for row in batch.tuples.tolist()]
        assert torch.equal(own, features[numbers])
    if kind == "both":
        assert links.data.is_symmetric
    assert rows(graph.split_links(whole, seed=3).queries) == rows(
        graph.split_links(whole, seed=3).queries
    )


def test_a_model_learns_links_in_two_calls():
    torch.manual_seed(0)
    links = graph.split_links(graph.from_edge_index(RING, 40, directions="both"))
    model = MessagePassing.for_data(links.data, "edge", "binary", width=8, laplacian=4)
    found = fit_graphs(
        model, links.data, links.split, queries=links.queries, targets=links.targets, epochs=3
    )
    assert 0 <= found.test["auc"] <= 1


def test_metrics_of_a_ranking():
    scores = torch.tensor([0.9, 0.8, 0.7, 0.7, 0.1])
    truth = torch.tensor([0, 1, 0, 1, 0])
    assert [graph.hits_at(scores, truth, k) for k in (1, 2, 3, 4)] == [0, 0.5, 1, 1]
    assert graph.mean_reciprocal_rank(scores, truth) == pytest.approx((1 / 2 + 1 / 2.5) / 2)
    none = torch.zeros(5)
    assert graph.hits_at(scores, none, 1) != graph.hits_at(scores, none, 1)
    assert graph.mean_reciprocal_rank(scores, none) != graph.mean_reciprocal_rank(scores, none)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: graph.split_links(graph.collate_graphs([data("both"), data("both")])),
            "[split_links] data: expected one graph, got 2",
        ),
        (
            lambda: graph.split_links(data("both"), supervision=1.0),
            "[split_links] supervision: expected above 0 and below 1, got 1.0",
        ),
        (
            lambda: graph.split_links(data("undirected"), ratio=60.0),
            "[split_links] ratio: expected at most the tuples of size 2 without an edge, 740, got",
        ),
        (
            lambda: graph.split_links(graph.from_edge_index(RING[:, :2], 40)),
            "[split_links] data: expected enough edges for ",
        ),
        (
            lambda: graph.hits_at(torch.rand(3), torch.ones(3), 0),
            "[hits_at] k: expected at least 1, got 0",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message)
