"""Accuracy of models of graphs beside PyTorch Geometric's, of equal width and as many epochs.

    python bench/compare/graph_accuracy.py nodes --models pyg-gcn,gcn,kernel-local --seeds 5
    python bench/compare/graph_accuracy.py molecules --file esol.npz --models pyg-gine,gin,kernel
    python bench/compare/graph_accuracy.py table RESULTS.jsonl ..

`nodes` is one graph of 600 nodes, 2,822 edges and four classes: three quarters of the edges join
nodes of one class, and the 16 features are the class's mean and noise. 200 nodes are for training,
100 for validation, 300 for the test. Every seed draws a graph, a split and weights. `molecules`
reads what `python -m nsimplex.molecules` wrote, and splits it 8 : 1 : 1.

Every model has the same loop, `fit_graphs`: AdamW, a warm-up, a cosine, clipping, and the epoch
that is best on the validation rows. `table` takes the point of the grid of rates, dropout and
decay with the best mean validation, and prints the test metric of the same seeds. Models whose
names begin with `pyg-` need PyTorch Geometric. They see the same features, but not the degrees that
our models add.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nsimplex import graph, molecules
from nsimplex.nn import GraphTransformer, MessagePassing, fit_graphs
from nsimplex.nn.graph_models import GraphInputs, GraphModel, graph_rows

NODES, EDGES, CLASSES, FEATURES = 600, 2822, 4, 16


def planted(seed: int, directions: Any = "both") -> graph.GraphData:
    """A graph with four classes that edges and features both betray, but neither alone."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(CLASSES, (NODES,), generator=generator)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < EDGES:
        i, j = torch.randint(NODES, (2,), generator=generator).tolist()
        inside = torch.rand((), generator=generator).item() < 0.75
        if i != j and (label[i] == label[j]).item() == inside:
            pairs.add((min(i, j), max(i, j)))
    means = torch.randn(CLASSES, FEATURES, generator=generator) * 0.5
    noise = torch.randn(NODES, FEATURES, generator=generator)
    return graph.from_edge_index(
        torch.tensor(sorted(pairs)).t(),
        NODES,
        node_features=means[label] + noise,
        targets=label,
        level="node",
        directions=directions,
    )


class Peer(GraphModel):
    """GCN, GIN and GINE of PyTorch Geometric between this package's input layers and `fit_graphs`.

    For nodes these are its ready models `GCN` and `GIN`. For molecules they are `GINEConv` or
    `GCNConv` with batch norm, relu and dropout, and the mean over nodes before a linear layer.
    """

    def __init__(self, task: str, target: str, outputs: int, *, kind: str, **own: Any) -> None:
        super().__init__()
        from torch_geometric import nn as pyg

        filled = dict(node_channels=0, edge_channels=0, node_codes=[], edge_codes=[])
        filled |= dict(random_walk=0, laplacian=0, task=task, target=target, outputs=outputs) | own
        self._start(filled)
        self.head = self.encoding_input = nn.Identity()
        width, layers, dropout = filled["width"], filled["layers"], filled["dropout"]
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        self.rate, self.whole, self.pool = dropout, None, pyg.global_mean_pool
        if task == "node":
            made = pyg.GCN if kind == "gcn" else pyg.GIN
            self.whole = made(filled["node_channels"], width, layers, outputs, dropout=dropout)
            self.node_input = self.edge_input = nn.Identity()
            return
        for _ in range(layers):
            if kind == "gcn":
                self.convolutions.append(pyg.GCNConv(width, width))
            else:
                small = nn.Sequential(
                    nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
                )
                self.convolutions.append(pyg.GINEConv(small, train_eps=True, edge_dim=width))
            self.norms.append(nn.BatchNorm1d(width))
        self.linear = nn.Linear(width, outputs)

    def prepare(self, data: graph.GraphData, queries: Any = None) -> GraphInputs:
        assert data.node_features is not None
        edges = [*data.edge_features] if data.edge_features else []
        rows = [data.edges[0].tuples.t().contiguous()]
        none = torch.empty(0)
        return GraphInputs([], [], data.node_features, none, edges, rows, **graph_rows(data))

    def forward(self, data: graph.GraphData | GraphInputs, queries: Any = None) -> Tensor:
        inputs = self._inputs(data, queries)
        index = inputs.rows[0]
        if self.whole is not None:
            return self.whole(inputs.nodes, index)
        h = self.node_input(inputs.nodes)
        for convolve, norm in zip(self.convolutions, self.norms):
            features = [self.edge_input(inputs.edges[0])] * hasattr(convolve, "lin")
            if type(convolve).__name__ == "GCNConv":
                features = []
            h = nn.functional.dropout(
                norm(convolve(h, index, *features)).relu(), self.rate, self.training
            )
        return self.linear(self.pool(h, inputs.graph_of_nodes, inputs.graphs.size(0)))


OURS: dict[str, dict[str, Any]] = {
    "kernel": dict(form="kernel"),
    "kernel-local": dict(form="kernel", global_classes=False),
    "kernel-places": dict(form="kernel", global_classes=False, laplacian=8),
    "kernel-walks": dict(form="kernel", random_walk=8),
    "kernel-undirected": dict(form="kernel", symmetry="undirected"),
    "undirected": dict(form="softmax", symmetry="undirected"),
    "undirected-places": dict(
        form="softmax", symmetry="undirected", global_classes=False, laplacian=8
    ),
    "undirected-virtual": dict(
        form="softmax", symmetry="undirected", global_classes=False, virtual_node=True
    ),
    "undirected-local": dict(form="softmax", symmetry="undirected", global_classes=False),
    "nodes-places": dict(form="kernel", order=1, laplacian=8),
    "kernel-softmax": dict(form="kernel", readout="softmax"),
    "softmax": dict(form="softmax"),
    "softmax-local": dict(form="softmax", global_classes=False),
    "softmax-places": dict(form="softmax", global_classes=False, laplacian=8),
}


def model_of(name: str, task: str, target: str, outputs: int, **own: Any) -> GraphModel:
    if name.startswith("pyg-"):
        return Peer(task, target, outputs, kind=name[4:], **own)
    if name in ("gcn", "gin", "gat", "gin-virtual", "gcn-places"):
        more = {"virtual": dict(virtual_node=True), "places": dict(laplacian=8)}.get(name[4:], {})
        return MessagePassing(task, target, outputs, kind=name[:3], **own, **more)
    return GraphTransformer(task, target, outputs, **own, **OURS[name])


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    nodes = options.command == "nodes"
    undirected = any("undirected" in name for name in options.models.split(","))
    directions = "undirected" if undirected else "both"
    data = None if nodes else graph.read_molecules(options.file, directions=directions)
    grid = itertools.product(
        options.rates.split(","), options.dropouts.split(","), options.decays.split(",")
    )
    for rate, dropout, decay in grid:
        for seed, name in itertools.product(range(options.seeds), options.models.split(",")):
            if nodes:
                own = planted(seed, directions)
                parts = dict(node_channels=FEATURES)
                shares, target = (
                    (200 / NODES, 100 / NODES, 300 / NODES),
                    ("node", "classes", CLASSES),
                )
            else:
                own = data
                parts = dict(
                    node_codes=list(molecules.ATOM_FEATURES.values()),
                    edge_codes=list(molecules.BOND_FEATURES.values()),
                )
                shares, target = (0.8, 0.1, 0.1), ("graph", "number", 1)
            torch.manual_seed(seed)
            model = model_of(
                name, *target, **parts, width=options.width, layers=options.layers,
                dropout=float(dropout),
            ).to(options.device)  # fmt: skip
            begin = time.monotonic()
            found = fit_graphs(
                model,
                own,
                graph.split_rows(own.targets if nodes else len(own), shares, seed=seed),
                epochs=options.epochs,
                batch_size=options.batch,
                learning_rate=float(rate),
                weight_decay=float(decay),
                patience=0,
                seed=seed,
            )
            metric = "accuracy" if nodes else "mae"
            line = dict(
                data=options.command, model=name, seed=seed, rate=rate, dropout=dropout,
                decay=decay, epochs=options.epochs, best=found.best, width=options.width,
                layers=options.layers, validation=found.validation[metric],
                test=found.test[metric], seconds=round(time.monotonic() - begin, 1),
                parameters=sum(each.numel() for each in model.parameters()),
            )  # fmt: skip
            print(json.dumps(line), flush=True)


def table(options: argparse.Namespace) -> None:
    lines = [json.loads(each) for file in options.files for each in file.read_text().splitlines()]
    points: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
    for line in lines:
        at = (line["data"], line["model"], line["rate"], line["dropout"], line["decay"])
        points.setdefault(at, {})[line["seed"]] = line
    for kind in sorted({at[0] for at in points}):
        print(f"| {kind} | rate | dropout | decay | validation | test | parameters | seeds |")
        print("| --- " * 8 + "|")
        own = {at: found for at, found in points.items() if at[0] == kind}
        most = max(len(found) for found in own.values())
        for name in dict.fromkeys(at[1] for at in own):
            full = {at: s for at, s in own.items() if at[1] == name and len(s) == most}
            if not full:
                print(f"no point of the grid of {name} has {most} seeds", file=sys.stderr)
                continue
            means = {
                at: statistics.fmean(line["validation"] for line in found.values())
                for at, found in full.items()
            }
            best = (max if kind == "nodes" else min)(means, key=means.__getitem__)
            tests = [line["test"] for line in full[best].values()]
            spread = statistics.stdev(tests) if most > 1 else 0.0
            count = next(iter(full[best].values()))["parameters"]
            print(
                f"| {name} | {' | '.join(best[2:])} | {means[best]:.3f} | "
                f"{statistics.fmean(tests):.3f} ± {spread:.3f} | {count} | {most} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("nodes", "molecules"):
        own = commands.add_parser(name)
        own.add_argument("--models", required=True)
        own.add_argument("--seeds", type=int, default=5)
        own.add_argument("--epochs", type=int, default=100 if name == "nodes" else 50)
        own.add_argument("--rates", default="0.001,0.003,0.01")
        own.add_argument("--dropouts", default="0,0.5" if name == "nodes" else "0")
        own.add_argument("--decays", default="0.01")
        own.add_argument("--width", type=int, default=64)
        own.add_argument("--layers", type=int, default=2 if name == "nodes" else 3)
        own.add_argument("--batch", type=int, default=64)
        own.add_argument("--threads", type=int, default=1)
        own.add_argument("--device", default="cpu")
        own.add_argument("--file", type=Path)
    own = commands.add_parser("table")
    own.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    table(options) if options.command == "table" else run(options)


if __name__ == "__main__":
    main()
