"""Lists of tuples for the tests of sparse layers."""

import itertools

import torch
from equivariant_definition import draw, stored

from nsimplex import TensorKind, equivariant_classes
from nsimplex.graph import TupleBatch


class TupleLists(TupleBatch):
    """A batch, and the tuples of every graph with nodes from 0 on."""

    def __init__(self, *fields, lists):
        super().__init__(*fields)
        object.__setattr__(self, "lists", lists)


def batch(kind, graphs, nodes):
    """graphs: a list of tuples each; nodes: how many nodes each has."""
    first = [0, *itertools.accumulate(nodes)]
    rows = [tuple(first[g] + n for n in t) for g, tuples in enumerate(graphs) for t in tuples]
    return TupleLists(
        torch.tensor(rows, dtype=torch.int64).reshape(len(rows), kind.order),
        torch.tensor([0, *itertools.accumulate(len(g) for g in graphs)]),
        torch.tensor(first),
        kind.symmetry,
        lists=graphs,
    )


def some_of(kind, nodes, share, seed):
    """A random part of all tuples of a kind, in random order."""
    every = stored(kind, nodes)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(every), generator=generator).tolist()
    return [every[i] for i in order[: round(share * len(every))]]


def weights(input, output, channels=2, out=3, classes="all", dtype=torch.float64):
    weight = draw(
        len(equivariant_classes(input, output, classes)), channels, out, seed=2, dtype=dtype
    )
    return weight, draw(len(equivariant_classes(0, output)), out, seed=3, dtype=dtype)


KINDS = {
    "ordered": lambda order: TensorKind(order),
    "loop_free": lambda order: TensorKind(order, "loop_free"),
    "undirected": lambda order: TensorKind(order, "undirected"),
    "undirected_loop_free": lambda order: TensorKind(order, "undirected", loops=False),
}
