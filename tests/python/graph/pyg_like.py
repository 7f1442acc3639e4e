"""Stand-ins with the attributes of PyTorch Geometric's objects, for tests without it."""

import torch


class Data:
    """Like ``torch_geometric.data.Data``."""

    def __init__(self, edge_index=None, x=None, edge_attr=None, y=None, num_nodes=None):
        self.edge_index, self.x, self.edge_attr, self.y = edge_index, x, edge_attr, y
        self.num_nodes = num_nodes if x is None else len(x)


class HyperGraphData(Data):
    """Like PyTorch Geometric's class of that name: its edge_index lists (node, hyperedge)."""


class Batch(Data):
    """Like ``torch_geometric.data.Batch.from_data_list``."""

    def __init__(self, samples):
        starts = torch.tensor([0, *(each.num_nodes for each in samples)]).cumsum(0)
        join = lambda name: (
            None
            if getattr(samples[0], name) is None
            else torch.cat([getattr(each, name) for each in samples])
        )
        super().__init__(
            torch.cat([each.edge_index + start for each, start in zip(samples, starts)], 1),
            join("x"),
            join("edge_attr"),
            join("y"),
            int(starts[-1]),
        )
        self.batch = torch.repeat_interleave(torch.arange(len(samples)), starts.diff())
        self.ptr, self.num_graphs = starts, len(samples)


def path(nodes, seed=0):
    """A path in both directions, with features of nodes and edges and a number to predict."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.arange(nodes - 1)
    index = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    weights = torch.randn(nodes - 1, 2, generator=draw)
    return Data(
        index,
        torch.randn(nodes, 3, generator=draw),
        torch.cat([weights, weights]),
        torch.randn(1, generator=draw),
    )
