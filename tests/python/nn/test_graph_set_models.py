"""Hyper-SAGNN, S2G and S2G+ against their formulas; symmetry, files, training, mistakes."""

import math
from itertools import combinations

import pytest
import torch

from nsimplex import graph
from nsimplex.equivariant_classes import equivariant_classes
from nsimplex.nn import GraphTransformer, HyperSAGNN, SetToGraph, fit_graphs

NODES, CHANNELS = 6, 3
MODELS = {
    "hyper-sagnn": lambda **o: HyperSAGNN(**dict(width=8, heads=2, head_dim=3) | o),
    "s2g": lambda **o: SetToGraph(**dict(classes="light", width=8, query_sizes=[2, 3]) | o),
    "s2g-plus": lambda **o: SetToGraph(**dict(width=8, layers=2, query_sizes=[2, 3]) | o),
}


def hypergraph(nodes=NODES, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(nodes, CHANNELS, generator=generator)
    edges = [[0, 1], [1, 2, 3], [0, 4, 5], [2, 3], [0, 3, 5]]
    return graph.from_hyperedges(edges, nodes, node_features=features)


def asked(data, *lists):
    """All tuples of some sizes."""
    return [
        graph.tuple_batch(
            torch.tensor(list(combinations(range(data.num_nodes), size))),
            data.num_nodes,
            symmetry="undirected",
        )
        for size in lists
    ]


def embeddings(model, data):
    inputs = model.prepare(data)
    return model.node_input(inputs.nodes) + model.encoding_input(inputs.encodings)


def attended(model, own, p):
    """Attention of node p of a tuple to its other nodes, head by head."""
    q, k, v = (each(own) for each in (model.query, model.key, model.value))
    parts = []
    for head in range(model.heads):
        at = slice(head * model.head_dim, (head + 1) * model.head_dim)
        others = [i for i in range(len(own)) if i != p]
        scores = torch.stack([q[p, at] @ k[i, at] / math.sqrt(model.head_dim) for i in others])
        shares = scores.exp() / scores.exp().sum()
        parts.append(sum(share * v[i, at] for share, i in zip(shares, others)))
    return model.mix.weight @ torch.cat(parts)


def test_hyper_sagnn_is_its_formula():
    torch.manual_seed(0)
    model = (
        MODELS["hyper-sagnn"](node_channels=CHANNELS, target="labels", outputs=2).double().eval()
    )
    for own in model.parameters():
        torch.nn.init.normal_(own, std=0.5)
    data = hypergraph()
    x = embeddings(model, data)
    expected = []
    lists = asked(data, 2, 3, 4)
    for row in (row for each in lists for row in each.tuples):
        own, chances = x[row], []
        for p in range(len(row)):
            a = attended(model, own, p)
            d = model.dynamic_norm(a + model.dynamic(a))
            s = model.static_norm(model.static(own[p]))
            difference = (model.left_norm(d) - model.right_norm(s)) ** 2
            chances.append(torch.sigmoid(model.judge.weight @ difference + model.judge.bias))
        mean = sum(chances) / len(chances)
        expected.append((mean / (1 - mean)).log())
    torch.testing.assert_close(model(data, lists), torch.stack(expected))
    torch.testing.assert_close(model.predict(data, lists), torch.stack(expected).sigmoid())


def pattern(tuple_):
    """The number of the first equal entry, per entry."""
    return tuple(tuple_.index(node) for node in tuple_)


def linear(layer, x, rows, kind):
    """An equivariant layer from the nodes, class by class: the mean over the nodes of a class."""
    out = []
    for row in rows:
        total = torch.zeros(layer.weight.size(2), dtype=x.dtype)
        for weight, each in zip(layer.weight, equivariant_classes(1, kind, layer.classes)):
            inside = [
                i
                for i in range(len(x))
                if any(pattern((i, *row)) == pattern(member) for member in each.members)
            ]
            if inside:
                total = total + x[inside].mean(0) @ weight
        for bias, each in zip(layer.bias, equivariant_classes(0, kind)):
            if any(pattern(tuple(row)) == pattern(member) for member in each.members):
                total = total + bias
        out.append(total)
    return torch.stack(out)


@pytest.mark.parametrize("name", ["s2g", "s2g-plus"])
@pytest.mark.parametrize("task", ["hyperedge", "edge"])
def test_set_to_graph_is_its_formula(name, task):
    torch.manual_seed(0)
    model = MODELS[name](task=task, node_channels=CHANNELS, layers=2).double()
    for own in model.parameters():
        torch.nn.init.normal_(own, std=0.5)
    data = hypergraph()
    if task == "edge":
        lists = [graph.complete_tuples(data.node_offsets.diff(), 2)]  # ordered pairs and loops
        data = graph.from_edge_index(lists[0].tuples.t(), NODES, node_features=data.node_features)
    else:
        lists = asked(data, 2, 3)
    h = embeddings(model, data).detach()
    for layer in model.layers:
        h = linear(layer, h, [(i,) for i in range(len(h))], 1).relu()
    read = [
        linear(model.readers[f"to_{each.order}"], h, each.tuples.tolist(), model._kind(each.order))
        for each in lists
    ]
    torch.testing.assert_close(model(data, lists), model.head(torch.cat(read)))


def test_light_classes_read_the_nodes_of_a_tuple_alone():
    torch.manual_seed(0)
    data = hypergraph()
    (triple,) = asked(data, 3)
    triple = triple.__class__(
        triple.tuples[:1], torch.tensor([0, 1]), triple.node_offsets, triple.symmetry
    )
    for classes, changes in (("light", False), ("all", True)):
        model = SetToGraph(classes=classes, node_channels=CHANNELS, width=8, query_sizes=[3])
        x = torch.randn(NODES, 8, requires_grad=True)
        layer, plan = model.readers["to_3"], model.prepare(data, triple).readouts[0]
        (grad,) = torch.autograd.grad(layer(x, plan).sum(), x)
        assert grad[:3].abs().min() > 0
        assert bool(grad[3:].abs().max() > 0) == changes


@pytest.mark.parametrize("name", MODELS)
def test_equivariance_batches_and_files(name, tmp_path):
    torch.manual_seed(0)
    model = MODELS[name](node_channels=CHANNELS, random_walk=2, dropout=0.3).double().eval()
    data, other = hypergraph(), hypergraph(8, seed=1)
    answers = model(data, asked(data, 2, 3))
    order = torch.tensor([3, 5, 0, 4, 1, 2])  # the new node i is the old node order[i]
    place = order.argsort()
    edges = [[int(place[i]) for i in row] for each in data.edges for row in each.tuples.tolist()]
    moved = graph.from_hyperedges(edges, NODES, node_features=data.node_features[order])
    rows = [
        (each.tuples[:, None] == place[old.tuples].sort(1).values).all(-1).int().argmax(0)
        for each, old in zip(asked(moved, 2, 3), asked(data, 2, 3))
    ]
    rows[1] = rows[1] + math.comb(NODES, 2)
    torch.testing.assert_close(model(moved, asked(moved, 2, 3))[torch.cat(rows)], answers)

    apart = [model(each) for each in (data, other)]
    together = model(graph.collate_graphs([data, other]))
    sizes = [len(each.edges[0]) for each in (data, other)]
    pairs = torch.cat([own[:count] for own, count in zip(apart, sizes)])
    triples = torch.cat([own[count:] for own, count in zip(apart, sizes)])
    torch.testing.assert_close(together, torch.cat([pairs, triples]))

    model.float().save(tmp_path)
    again = type(model).from_run(tmp_path)
    assert torch.equal(again.predict(data), model.predict(data))


def test_the_order_of_nodes_does_not_matter_to_hyper_sagnn():
    torch.manual_seed(0)
    index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    data = graph.from_edge_index(index, NODES, node_features=torch.randn(NODES, CHANNELS))
    answers = MODELS["hyper-sagnn"](task="edge", node_channels=CHANNELS)(data)[:, 0]
    torch.testing.assert_close(answers[0], answers[1])
    torch.testing.assert_close(answers[2], answers[3])
    assert answers[0] != answers[2]


@pytest.mark.parametrize("name", MODELS)
def test_hyperedges_are_learned(name):
    """Triples with two nodes of a group or more are hyperedges; features betray the group."""
    torch.manual_seed(0)
    group = torch.arange(12) % 2
    features = torch.eye(2)[group] + 0.1 * torch.randn(12, 2)
    (triples,) = asked(graph.from_hyperedges([[0, 1]], 12), 3)
    truth = (group[triples.tuples].sum(1) >= 2).float()
    data = graph.from_hyperedges(
        triples.tuples.tolist(), 12, node_features=features, targets=truth, level="edge"
    )
    model = MODELS[name](node_channels=2, **({} if name == "hyper-sagnn" else {"query_sizes": [3]}))
    split = graph.split_rows(len(truth), (0.5, 0.25, 0.25), seed=1)
    found = fit_graphs(model, data, split, epochs=100, learning_rate=1e-2, patience=0)
    assert found.test["auc"] > 0.95


def test_a_probability_of_one_has_a_finite_logit():
    model = MODELS["hyper-sagnn"](node_channels=CHANNELS)
    with torch.no_grad():
        model.judge.bias.fill_(1e4)
    assert model(hypergraph()).isfinite().all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: HyperSAGNN("graph"),
            "[HyperSAGNN] task: expected edge or hyperedge, got 'graph'",
        ),
        (lambda: SetToGraph("node"), "[SetToGraph] task: expected edge or hyperedge, got 'node'"),
        (
            lambda: HyperSAGNN(target="number"),
            "[HyperSAGNN] target: expected binary or labels, got 'number'",
        ),
        (
            lambda: HyperSAGNN()(graph.from_hyperedges([[0], [0, 1]])),
            "[HyperSAGNN] queries: expected at least 2 nodes, got [1]",
        ),
        (
            lambda: SetToGraph()(graph.from_hyperedges([[0, 1, 2]])),
            "[SetToGraph] queries: expected sizes [2], got 3",
        ),
        (
            lambda: SetToGraph("edge")(
                graph.from_edge_index(torch.tensor([[0], [1]]), directions="undirected")
            ),
            "[SetToGraph] queries: expected ordered tuples of size 2, got undirected ones",
        ),
        *(
            (
                lambda kind=kind: kind("edge")(
                    graph.from_edge_index(torch.tensor([[0], [1]]), edge_features=torch.ones(1, 3))
                ),
                f"[{kind.__name__}] edge_features: expected none, because the model reads nodes "
                "alone, got torch.float32 [1, 3]",
            )
            for kind in (HyperSAGNN, SetToGraph)
        ),
        (
            lambda: SetToGraph(query_sizes=[2, 2]),
            "[SetToGraph] query_sizes: expected each size once",
        ),
        (
            lambda: GraphTransformer("hyperedge", order=[2, 3], width=8)(
                hypergraph(), asked(hypergraph(), 2, 2)
            ),
            "[GraphTransformer] queries: expected one list of size 2, got two",
        ),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert str(error.value) == message
