"""The sparse equivariant linear layer 2 -> 2 beside plain PyTorch; one JSON object a line.

    python bench/compare/equivariant_linear_sparse.py --threads 1
    python bench/compare/equivariant_linear_sparse.py --nodes 410 --nodes 3277 --dim 32

Graphs are Barabasi-Albert with 5 links a new node, both directions of each link and a loop of every
node: 410 nodes are 4,4xx rows, 3277 are 36 thousand. The peer is the same layer in tensor
    operations, from a plan that is its own:
group sums by index_add, look-ups of nodes by index_select and of reversed pairs through a binary
search, classes by inclusion and exclusion, means by counts; results are compared first. Both take
turns in one process; medians, with one thread of its processor time. "backward" is forward and
backward together. "plan" is what is done once a graph. Megabytes are what the process grows by, at
most, during one call.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import Tensor
from turns import growth, medians

import nsimplex
from nsimplex.graph import TupleBatch, tuple_batch

CLASSES = [c.name for c in nsimplex.equivariant_classes(2, 2)]


def graph(nodes: int, links: int = 5) -> TupleBatch:
    """Preferential attachment: a new node draws its neighbours from the ends of all links so
    far."""
    generator = torch.Generator().manual_seed(nodes)
    ends, pairs = list(range(links)), []
    for node in range(links, nodes):
        chosen = set()
        while len(chosen) < links:
            chosen.add(ends[int(torch.randint(len(ends), (), generator=generator))])
        for other in sorted(chosen):
            pairs += [(node, other), (other, node)]
            ends += [node, other]
    tuples = torch.tensor(sorted([*pairs, *((i, i) for i in range(nodes))]))
    return tuple_batch(tuples, nodes)


class Peer:
    """Ordered 2 -> 2 on one list of pairs that has every loop."""

    def __init__(self, list_: TupleBatch) -> None:
        first, second = list_.tuples.unbind(1)
        nodes = list_.nodes
        loop = first == second
        self.loops, self.edges = loop.nonzero()[:, 0], (~loop).nonzero()[:, 0]
        i, j = first[self.edges], second[self.edges]
        self.i, self.j, self.nodes = i, j, nodes
        keys, reverse = i * nodes + j, j * nodes + i
        found = torch.searchsorted(keys, reverse).clamp_max(len(keys) - 1)
        self.reverse, self.has_reverse = found, (keys[found] == reverse).float()[:, None]
        one = torch.ones(len(i), 1)
        self.counts = {n: c.clamp_min(1) for n, c in self.sums(torch.ones(nodes, 1), one).items()}

    def sums(self, loops: Tensor, edges: Tensor) -> dict[str, Tensor]:
        """Of every class, from features of loops and of edges: at nodes for classes with {.. j1 j2
        ..} and else at edges."""
        i, j = self.i, self.j
        zero = edges.new_zeros(self.nodes, edges.size(1))
        out, into = zero.index_add(0, i, edges), zero.index_add(0, j, edges)
        all_edges, all_loops = edges.sum(0), loops.sum(0)
        back = edges[self.reverse] * self.has_reverse
        at_i, at_j = out[i], out[j]
        to_i, to_j = into[i], into[j]
        return {
            "{i1 i2 j1 j2}": loops,
            "{i1 i2}{j1 j2}": all_loops - loops,
            "{i1 j1 j2}{i2}": out,
            "{i1}{i2 j1 j2}": into,
            "{i1}{i2}{j1 j2}": all_edges - out - into,
            "{i1 i2 j1}{j2}": loops[i],
            "{i1 i2 j2}{j1}": loops[j],
            "{i1 i2}{j1}{j2}": all_loops - loops[i] - loops[j],
            "{i1 j1}{i2 j2}": edges,
            "{i1 j2}{i2 j1}": back,
            "{i1 j1}{i2}{j2}": at_i - edges,
            "{i1}{i2 j1}{j2}": to_i - back,
            "{i1 j2}{i2}{j1}": at_j - back,
            "{i1}{i2 j2}{j1}": to_j - edges,
            "{i1}{i2}{j1}{j2}": all_edges - at_i - at_j - to_i - to_j + edges + back,
        }

    def __call__(self, x: Tensor, weight: Tensor) -> Tensor:
        sums = self.sums(x[self.loops], x[self.edges])
        at_nodes = [n for n in CLASSES if "j1 j2}" in n]
        at_edges = [n for n in CLASSES if n not in at_nodes]
        parts = []
        for names in (at_nodes, at_edges):
            every = torch.cat([sums[n] / self.counts[n] for n in names], 1)
            parts.append(every @ weight[[CLASSES.index(n) for n in names]].flatten(0, 1))
        out = x.new_empty(len(x), weight.size(2))
        return out.index_copy(0, self.loops, parts[0]).index_copy(0, self.edges, parts[1])


def compare(list_: TupleBatch, dim: int, repeats: int):
    generator = torch.Generator().manual_seed(1)
    rows = len(list_)
    x = torch.randn(rows, dim, generator=generator).requires_grad_()
    weight = (torch.randn(15, dim, dim, generator=generator) / dim).requires_grad_()
    plan, peer = nsimplex.equivariant_plan(list_, list_), Peer(list_)
    layers = {
        "ours": lambda: nsimplex.equivariant_linear_sparse(x, weight, None, plan),
        "peer": lambda: peer(x, weight),
    }
    ours, other = (layer() for layer in layers.values())
    error = ((ours - other).norm() / other.norm()).item()
    assert error < 1e-4, f"results differ by {error:.1e}"

    def backward(layer):
        return torch.autograd.grad(layer().sum(), (x, weight))

    def forward(layer):
        with torch.no_grad():
            return layer()

    passes = {
        "plan": {
            "ours": lambda: nsimplex.equivariant_plan(list_, list_),
            "peer": lambda: Peer(list_),
        },
        "forward": {name: lambda layer=layer: forward(layer) for name, layer in layers.items()},
        "backward": {name: lambda layer=layer: backward(layer) for name, layer in layers.items()},
    }
    for name, calls in passes.items():
        times = medians(calls, repeats)
        yield {
            "operator": "equivariant_linear_sparse",
            "pass": name,
            "nodes": list_.nodes,
            "rows": rows,
            "dim": dim,
            "threads": torch.get_num_threads(),
            "milliseconds": times["ours"],
            "peer_milliseconds": times["peer"],
            "speedup": times["peer"] / times["ours"],
            "megabytes": growth(calls["ours"]),
            "peer_megabytes": growth(calls["peer"]),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="default: 410 and 3277")
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for nodes in arguments.nodes or [410, 3277]:
        for line in compare(graph(nodes), arguments.dim, arguments.repeats):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
