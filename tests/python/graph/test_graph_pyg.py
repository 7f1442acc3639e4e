"""Graphs from and to PyTorch Geometric itself; skipped where it is not installed."""

import warnings

import pytest
import torch
from pyg_like import path
from test_graph_conversions import checked, same

from nsimplex import graph

pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch, Data
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.loader import DataLoader
from torch_geometric.utils import is_undirected


def real(nodes, seed=0):
    own = path(nodes, seed)
    return Data(x=own.x, edge_index=own.edge_index, edge_attr=own.edge_attr, y=own.y)


def test_data_and_batches_go_both_ways():
    samples = [real(n, n) for n in (3, 1, 5)]
    batch = Batch.from_data_list(samples)
    data = checked(graph.from_pyg(batch))
    same(data, graph.from_pyg([path(n, n) for n in (3, 1, 5)]))
    again = graph.to_pyg(data)
    assert again.num_graphs == 3 and is_undirected(again.edge_index, again.edge_attr)
    same(graph.from_pyg(again), data)
    same(graph.from_pyg(graph.to_pyg(data[0])), data[0])
    undirected = graph.from_pyg(batch, directions="undirected")
    same(graph.from_pyg(graph.to_pyg(undirected)), data)


def test_names_that_are_lost_are_told():
    networkx = pytest.importorskip("networkx")
    numbered = networkx.path_graph(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.to_pyg(graph.from_networkx(numbered))
    networkx.set_node_attributes(numbered, {0: "u", 1: "v", 2: "u"}, "y")
    with pytest.warns(graph.ConversionWarning, match=r"\[to_pyg\] data: left out its classes"):
        graph.to_pyg(graph.from_networkx(numbered, target="y"))
    with pytest.warns(graph.ConversionWarning, match=r"\[to_pyg\] data: left out its names"):
        graph.to_pyg(graph.from_networkx(networkx.Graph([("a", "b")])))


def test_weights_masks_and_positions():
    sample = real(4)
    sample.edge_weight, sample.pos = torch.arange(6.0), torch.ones(4, 3)
    for data in (sample, Batch.from_data_list([sample, sample]), [sample, sample]):
        with pytest.raises(ValueError, match="expected 'edge_weight' to be taken or ignored"):
            graph.from_pyg(data)
    sample.val_mask = torch.tensor([True, False, False, True])
    again = graph.to_pyg(graph.from_pyg([sample, sample], ignore=["edge_weight"]))
    assert again.pos.shape == (8, 3) and torch.equal(again[1].val_mask, sample.val_mask)
    assert graph.from_pyg(again)[1].positions.shape == (4, 3)


def test_loaders():
    samples = [real(n) for n in (2, 3, 4, 5)]
    ours = torch.utils.data.DataLoader(samples, batch_size=2, collate_fn=graph.collate_graphs)
    theirs = DataLoader(samples, batch_size=2)
    for own, their in zip(ours, theirs, strict=True):
        same(own, graph.from_pyg(their))


def test_hypergraphs():
    index = torch.tensor([[0, 1, 2, 1, 2, 3], [0, 0, 0, 1, 1, 2]])
    sample = HyperGraphData(x=torch.randn(4, 2), edge_index=index, edge_attr=torch.randn(3, 2))
    data = checked(graph.from_pyg(sample))
    assert data.sizes == (1, 2, 3)
    same(graph.from_pyg(graph.to_pyg(data)), data)
    two = graph.from_pyg(Batch.from_data_list([sample, sample]))
    same(two[1], data)
