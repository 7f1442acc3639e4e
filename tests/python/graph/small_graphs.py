"""Small batches that several tests of graphs share."""

import torch

from nsimplex import graph


def pairs(*rows):
    return torch.tensor(rows, dtype=torch.int64).view(-1, 2)


def two_graphs():
    """A triangle with a tail, and a chain of three."""
    return graph.tuple_batch(
        pairs((0, 1), (0, 2), (1, 2), (2, 3), (4, 5), (5, 6)),
        tuple_offsets=torch.tensor([0, 4, 6]),
        node_offsets=torch.tensor([0, 4, 7]),
        symmetry="undirected",
    )
