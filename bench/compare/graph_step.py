"""Training steps of models of graphs beside PyTorch Geometric's, in turns.

    python bench/compare/graph_step.py digits --models gcn,gin,gat
    python bench/compare/graph_step.py molecules --file esol.npz
    python bench/compare/graph_step.py digits --models local,local-kernel --repeats 5

`digits` is the graph of the 8 nearest neighbours among the 1,797 digits of scikit-learn.
`molecules` is a batch of 64 from a file that `python -m nsimplex.molecules` wrote; without a file
they are random trees with rings, with as many atoms, bonds and codes.

A step is a forward pass, a backward pass and AdamW. The peer of `gcn`, `gin` and `gat` is the
convolution of PyTorch Geometric between the same layers: an embedding of width 64, a LayerNorm,
relu and identity connection around each convolution, and the same head. Its GCN does not read
features of edges, and ours does. The peer of transformers is the GCN. Prints medians of the
processor time and of the ratios of the turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nsimplex import graph, molecules
from nsimplex.nn import GraphTransformer, MessagePassing

TRANSFORMERS: dict[str, dict[str, Any]] = {
    "local": dict(global_classes=False),
    "local-kernel": dict(global_classes=False, form="kernel"),
    "kernel": dict(form="kernel"),
    "softmax": {},
}


def digits(directions: Any) -> graph.GraphData:
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    pixels, labels = load_digits(return_X_y=True)
    near = kneighbors_graph(pixels, 8)
    return graph.from_scipy(
        ((near + near.T) > 0).astype("float32"),
        node_features=torch.tensor(pixels / 16, dtype=torch.float32),
        targets=torch.tensor(labels),
        directions=directions,
    )


def random_molecules(directions: Any, count: int = 64) -> graph.GraphData:
    """Trees of 13 atoms with two more bonds, and random codes."""
    draw = torch.Generator().manual_seed(0)
    codes = lambda rows, names: torch.stack(
        [torch.randint(most, (rows,), generator=draw) for most in names.values()], 1
    )
    made = []
    for _ in range(count):
        bonds = [(torch.randint(own, (), generator=draw).item(), own) for own in range(1, 13)]
        edges = torch.tensor([*bonds, (0, 5), (2, 8)]).unique(dim=0)
        made.append(
            graph.from_edge_index(
                edges.t(),
                13,
                codes(len(edges), molecules.BOND_FEATURES),
                node_features=codes(13, molecules.ATOM_FEATURES),
                targets=torch.randn(1, generator=draw),
                directions=directions,
                duplicates="first",
            )
        )
    return graph.collate_graphs(made)


class Peer(nn.Module):
    """Convolutions of PyTorch Geometric between the layers of :class:`MessagePassing`."""

    def __init__(self, like: MessagePassing, edges: bool) -> None:
        super().__init__()
        from torch_geometric import nn as pyg

        self.like, self.edges, self.kind = like, edges, like.kind
        width = like.options["width"]
        for block in like.blocks:
            made: Any
            if self.kind == "gin":
                own = block["mlp"]
                made = pyg.GINEConv(own, edge_dim=width) if edges else pyg.GINConv(own)
            elif self.kind == "gcn":
                made = pyg.GCNConv(width, width)
            else:
                extra = {"edge_dim": width} if edges else {}
                made = pyg.GATConv(width, width // like.heads, like.heads, **extra)
            block["peer"] = made
            for name in ("edge", "linear", "score", "mlp"):
                if name in block:
                    del block[name]

    def forward(self, inputs: Any) -> Tensor:
        own = self.like
        h = own.node_input(inputs.nodes) + own.encoding_input(inputs.encodings)
        index = torch.stack(inputs.rows[:2])
        features = [own.edge_input(inputs.edges[0])] if self.edges and self.kind != "gcn" else []
        for block in own.blocks:
            moved = torch.relu(block["norm"](block["peer"](h, index, *features)))
            h = h + F.dropout(moved, own.dropout, self.training)
        if own.task == "graph":
            from torch_geometric.nn import global_mean_pool

            h = global_mean_pool(h, inputs.graph_of_nodes, inputs.graphs.size(0))
        return own.head(h)


def step_of(model: nn.Module, inputs: Any, targets: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        answers = model(inputs)
        whole = not targets.is_floating_point()
        loss = F.cross_entropy(answers, targets) if whole else F.l1_loss(answers[:, 0], targets)
        loss.backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=["digits", "molecules"])
    parser.add_argument("--models", default="gcn,gin,gat")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = "node" if options.data == "digits" else "graph"

    def read(directions: Any) -> graph.GraphData:
        if task == "node":
            return digits(directions)
        if options.file is None:
            return random_molecules(directions)
        return graph.read_molecules(options.file, directions=directions)[:64]

    ordered, undirected = read("both"), read("undirected")
    targets = ordered.targets
    assert targets is not None
    targets = targets.reshape(-1)
    print(f"{ordered.num_graphs} graphs, {ordered.num_nodes} nodes, {ordered.num_edges} edges")
    print("| model | ms | peer ms | ratio |\n| --- | --- | --- | --- |")
    for name in options.models.split(","):
        torch.manual_seed(0)
        own: Any = dict(layers=options.layers)
        kind: Any = "gcn" if name in TRANSFORMERS else name
        other = MessagePassing.for_data(ordered, task, kind=kind, **own)
        peer = Peer(other, bool(ordered.edge_features))
        if name in TRANSFORMERS:
            model = GraphTransformer.for_data(undirected, task, **own, **TRANSFORMERS[name])
            inputs = model.prepare(undirected)
        else:
            model = MessagePassing.for_data(ordered, task, kind=kind, **own)
            inputs = model.prepare(ordered)
        calls = [
            step_of(model, inputs, targets),
            step_of(peer, other.prepare(ordered), targets),
        ]
        times: list[list[float]] = [[], []]
        for turn in range(options.repeats + 1):
            for call, found in zip(calls, times):
                begin = time.thread_time()
                call()
                if turn:  # the first one warms up
                    found.append(1e3 * (time.thread_time() - begin))
        ratios = [mine / theirs for mine, theirs in zip(*times)]
        mine, theirs = (statistics.median(each) for each in times)
        print(
            f"| {name} | {mine:.2f} | {theirs:.2f} | {statistics.median(ratios):.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
