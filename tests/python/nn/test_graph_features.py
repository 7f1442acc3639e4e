"""What data say about their model, and graphs of PyTorch Geometric in place of a GraphData."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nsimplex import graph
from nsimplex.nn import GraphTransformer, HyperSAGNN, MessagePassing, SetToGraph, fit_graphs
from nsimplex.nn.graph_features import FeatureEmbedding

sys.path.append(str(Path(__file__).parents[1] / "graph"))
from pyg_like import Batch, path

SMALL = dict(width=8, layers=1)


def nodes(**own):
    """A path of six nodes with a class per node and masks, as PyTorch Geometric has them."""
    made = path(6)
    made.y = torch.tensor([0, 1, 2, 0, 1, 2])
    for name, flags in dict(train="111000", val="000110", test="000001").items():
        setattr(made, f"{name}_mask", torch.tensor([flag == "1" for flag in flags]))
    for name, value in own.items():
        setattr(made, name, value)
    return made


def edges(targets, **own):
    index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    return graph.from_edge_index(index, 4, targets=targets, level="edge", **own)


CODES = torch.tensor([[0, 4], [2, 1], [1, 0], [0, 0]])
IMPLIED = [
    (MessagePassing, nodes(), "node", dict(target="classes", outputs=3, node_channels=3)),
    (MessagePassing, path(4), "graph", dict(target="number", outputs=1, edge_channels=2)),
    (MessagePassing, edges(torch.ones(3, 2)), "edge", dict(target="labels", outputs=2)),
    (MessagePassing, edges(torch.rand(3, 2)), "edge", dict(target="number", outputs=2)),
    (
        MessagePassing,
        edges(torch.tensor([0.0, 1, torch.nan]), node_features=CODES),
        "edge",
        dict(target="binary", outputs=1, node_codes=[3, 5], node_channels=0),
    ),
    (
        GraphTransformer,
        edges(torch.rand(3), directions="undirected"),
        "edge",
        dict(target="number", symmetry="undirected", order=[2]),
    ),
    (
        GraphTransformer,
        graph.from_hyperedges([[0, 1, 2], [1, 3]], targets=torch.tensor([1.0, 0.0])),
        "hyperedge",
        dict(target="binary", order=[2, 3], query_sizes=[2, 3]),
    ),
    (HyperSAGNN, edges(torch.tensor([True, False, True])), "edge", dict(target="binary")),
    (
        SetToGraph,
        edges(torch.ones(3), directions="undirected"),
        "edge",
        dict(symmetry="undirected"),
    ),
]


@pytest.mark.parametrize(("kind", "data", "task", "expected"), IMPLIED)
def test_a_model_for_data(kind, data, task, expected):
    model = kind.for_data(data, task, width=8)
    assert {name: model.options[name] for name in expected} == expected
    assert model(data).size(1) == model.options["outputs"]


def test_options_that_are_given_count():
    data = edges(torch.tensor([0.0, 1, 1]), node_features=CODES)
    own = MessagePassing.for_data(data, "edge", "number", node_codes=[9, 9], **SMALL)
    assert own.options["node_codes"] == [9, 9] and own.target == "number"
    asked = MessagePassing.for_data(nodes(), "edge", "classes", outputs=4, **SMALL)
    assert asked.options["outputs"] == 4
    names = replace(graph.from_pyg(nodes()), classes=("a", "b", "c", "d"))
    assert MessagePassing.for_data(names, "node").options["outputs"] == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MessagePassing.for_data(nodes(), "nodes"),
            "[MessagePassing] task: expected graph",
        ),
        (
            lambda: MessagePassing.for_data(nodes(), "edge"),
            "[MessagePassing] data: expected targets of edges, got targets of nodes",
        ),
        (
            lambda: MessagePassing.for_data(nodes(x=CODES.repeat(2, 1)[:6] - 1), "node"),
            "[MessagePassing] node_features: expected codes from 0 on, got -1 in row 0, column 0",
        ),
        (
            lambda: MessagePassing.for_data(nodes(x=torch.full((6, 1), 10_000)), "node"),
            "[MessagePassing] node_features: expected codes below 10000, got 10000 in row 0",
        ),
        (
            lambda: MessagePassing.for_data(nodes(y=torch.full((6, 2), 7)), "node"),
            "[MessagePassing] data: expected one column of classes, got",
        ),
        (
            lambda: MessagePassing("node")(3),
            "[MessagePassing] data: expected GraphData or graphs of PyTorch Geometric, got 3",
        ),
        (
            lambda: fit_graphs(MessagePassing("node"), 3),
            "[fit_graphs] data: expected GraphData or graphs of PyTorch Geometric, got 3",
        ),
        (
            lambda: fit_graphs(MessagePassing.for_data(path(4), "graph"), path(4)),
            "[fit_graphs] split: expected a Split, or train_mask and val_mask of the nodes",
        ),
    ],
)
def test_mistakes(call, message):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize("symmetry", ["ordered", "undirected"])
def test_graphs_of_pytorch_geometric_in_place_of_a_record(symmetry):
    torch.manual_seed(0)
    samples = [path(3, 1), path(1, 2), path(5, 3)]
    directions = "undirected" if symmetry == "undirected" else "given"
    data = graph.from_pyg(Batch(samples), directions=directions)
    model = GraphTransformer.for_data(samples, "graph", symmetry=symmetry, heads=2, **SMALL)
    for each in (samples, tuple(samples), Batch(samples)):
        torch.testing.assert_close(model(each), model(data))
    assert torch.equal(model.predict(samples[0]), model.predict(data[0]))


def test_masks_are_a_split():
    data = nodes()
    record = graph.from_pyg(data)
    masks = data.train_mask, data.val_mask, data.test_mask
    rows = graph.Split(*(mask.nonzero().squeeze(1) for mask in masks))
    short = graph.Split(*(part.int() for part in rows))
    losses = []
    for own, split in (
        (data, None),
        (record, rows),
        (record, short),
        (record, graph.Split(*masks)),
    ):
        torch.manual_seed(0)
        model = MessagePassing.for_data(own, "node", **SMALL)
        losses.append(fit_graphs(model, own, split, epochs=2).validation)
    assert all(each == losses[0] for each in losses)
    with pytest.raises(TypeError, match="expected row numbers or 6 flags of test, got"):
        fit_graphs(model, record, graph.Split(*masks[:2], masks[2][:5]), epochs=1)
    with pytest.raises(ValueError, match=r"got masks train_mask \[6, 2\], val_mask \[6\]"):
        wide = data.train_mask[:, None].expand(-1, 2)
        fit_graphs(model, nodes(train_mask=wide), epochs=1)


@pytest.mark.parametrize(("channels", "codes"), [(0, ()), (2, ()), (9, ()), (0, (3, 4))])
def test_weights_that_are_multiplied_first(channels, codes):
    torch.manual_seed(0)
    embedding = FeatureEmbedding(channels, codes, 8).double()
    after = torch.nn.Linear(8, 8).double()
    x = torch.randn(5, channels).double()
    if codes:
        x = torch.stack([torch.randint(each, (5,)) for each in codes], 1)
    found = embedding.through(after, x).expand(5, -1)
    torch.testing.assert_close(found, after(embedding(x)))


@pytest.mark.parametrize("kind", ["gcn", "gin", "gat"])
def test_edges_without_features_cost_no_products(kind):
    torch.manual_seed(0)
    model, counts = MessagePassing("node", kind=kind, heads=1, **SMALL), []
    for edges in (20, 80):
        with FlopCounterMode(display=False) as counter:
            model(graph.from_edge_index(torch.arange(2 * edges).view(2, -1) % 40, 40))
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1]


def test_whole_numbers_of_fewer_bits():
    index = torch.tensor([[0, 1], [1, 2]])
    of = lambda dtype: graph.from_edge_index(
        index.to(dtype), 3, batch=torch.zeros(3, dtype=dtype), targets=torch.ones(3, dtype=dtype)
    )
    for name in ("edges", "node_offsets", "targets"):
        for own, other in zip(getattr(of(torch.int32), name), getattr(of(torch.int64), name)):
            assert torch.equal(getattr(own, "tuples", own), getattr(other, "tuples", other))
    assert graph.from_edge_index(torch.tensor([[], []]), 2).num_edges == 0
