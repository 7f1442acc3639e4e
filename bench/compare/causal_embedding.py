"""The default pull of `causal_embed` to the origin beside the best of many strengths, one JSON
object a graph.

    python bench/compare/causal_embedding.py
    python bench/compare/causal_embedding.py random --random-seeds 1 --seeds 1

Graphs: random (Erdos and Renyi's with 0.5, 1 and 2 edges a node, weights 1, for 10, 20, 50 and 100
    nodes), weak (those
that `order` learns from `simulate(nodes=20, weights=(0.05, 0.2), observations=20000)` of three
seeds), units (of tables with noises of many variances, columns in units of 10^-3 to 10^3, learned
from standardised columns), sachs and pbmc (learned from causal/sachs.csv and
cells/pbmc68k_reduced.h5ad below the folder NSIMPLEX_DATA; the latter needs anndata).

`rank` and `map` are means over the graphs of a row and the seeds of the embedding, of how well
distances rank ancestors (`causal_ranking`) with the default strength. `rank_by_best` and
`map_by_best` divide them by the lowest mean rank and the highest mean MAP of any strength, each
chosen for the row (`best_for_rank`, `best_for_map`). `depth` is Spearman's correlation of radius
and number of descendants, `origin` the share of nodes within 0.05 of the origin. Both are of nodes
that have edges.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import json
import os
import statistics
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from nsimplex import causal

DEFAULT = inspect.signature(causal.causal_embed).parameters["generality"].default
NEAR = 0.05  # of the origin
STRENGTHS = (0.1, 0.3, 0.5, 0.55, 0.6, 0.65, 0.7, 1.0)
GENES = 100


class Row(NamedTuple):
    name: str
    graphs: list[Tensor]
    dimension: int = 8
    strengths: tuple[float, ...] = STRENGTHS
    seeds: int | None = None  # most of the embedding; None: as many as asked for


def random_graph(nodes: int, per_node: float, seed: int) -> Tensor:
    """A DAG of `per_node` edges a node and weights 1, every pair of nodes as likely."""
    draws = torch.Generator().manual_seed(seed)
    pairs = torch.triu_indices(nodes, nodes, 1)
    chosen = pairs[:, torch.randperm(pairs.size(1), generator=draws)[: round(per_node * nodes)]]
    graph = torch.zeros(nodes, nodes, dtype=torch.float64)
    graph[chosen[0], chosen[1]] = 1
    return graph


def learned(table: Tensor, standardise: bool = False) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", causal.FewRowsWarning)
        return causal.causal_fit(table, estimator="order", standardise=standardise).adjacency


def random(options: argparse.Namespace) -> Iterator[Row]:
    for per_node in (0.5, 1, 2):
        for nodes in (10, 20, 50, 100):
            graphs = [random_graph(nodes, per_node, seed) for seed in range(options.random_seeds)]
            yield Row(f"random, {per_node} edges a node, {nodes} nodes", graphs)


def weak(options: argparse.Namespace) -> Iterator[Row]:
    tables = [
        causal.simulate(nodes=20, weights=(0.05, 0.2), observations=20000, seed=seed).table
        for seed in range(3)
    ]
    yield Row("simulate, weights 0.05 to 0.2, fitted", [learned(table) for table in tables])


def units(options: argparse.Namespace) -> Iterator[Row]:
    graphs = []
    for seed in range(3):
        table = causal.simulate(nodes=20, equal_variances=False, seed=seed).table
        draws = torch.Generator().manual_seed(seed)
        table = table * 10 ** (
            6 * torch.rand(table.size(1), generator=draws, dtype=torch.float64) - 3
        )
        graphs.append(learned(table, standardise=True))
    yield Row("simulate, other units, standardised, fitted", graphs)


def sachs(options: argparse.Namespace) -> Iterator[Row]:
    with (options.data / "causal/sachs.csv").open(newline="") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    yield Row("sachs, fitted", [learned(torch.tensor(rows, dtype=torch.float64))])


def pbmc(options: argparse.Namespace) -> Iterator[Row]:
    from nsimplex.causal.cells import read_h5ad

    table = read_h5ad(options.data / "cells/pbmc68k_reduced.h5ad", raw=True).values
    table = table[:, table.std(0) > 0]
    variable = table.var(0).argsort(descending=True, stable=True)[:GENES].sort().values
    yield Row(f"pbmc68k, {GENES} genes, fitted", [learned(table[:, variable])], 16, seeds=3)
    strengths = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 2.0)
    yield Row(f"pbmc68k, {table.size(1)} genes, fitted", [learned(table)], 16, strengths, seeds=1)


ROWS = (random, weak, units, sachs, pbmc)


def descendants(graph: Tensor) -> Tensor:
    """Of every node, how many others a directed path leads to."""
    reached = graph != 0
    while True:
        farther = reached | (reached.double() @ reached.double() > 0)
        if farther.equal(reached):
            return reached.sum(1).double()
        reached = farther


def ranks(values: Tensor) -> Tensor:
    """1, 2, ..., equal values with the mean of their places."""
    below = (values.unsqueeze(0) < values.unsqueeze(1)).sum(1)
    return below + ((values.unsqueeze(0) == values.unsqueeze(1)).sum(1) + 1) / 2


def spearman(first: Tensor, second: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([ranks(first), ranks(second)]))[0, 1])


def measured(graph: Tensor, dimension: int, strength: float, seed: int) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", causal.EmbeddingWarning)
        made = causal.causal_embed(graph, dimension=dimension, generality=strength, seed=seed)
    ranking = causal.causal_ranking(made.tangents, graph)
    joined = ((graph != 0) | (graph.T != 0)).any(1)
    radii = made.tangents.norm(dim=1)[joined]
    depth = spearman(radii, descendants(graph)[joined])
    origin = float((radii < NEAR).double().mean())
    return {"rank": ranking.mean_rank, "map": ranking.map, "depth": depth, "origin": origin}


def summary(row: Row, seeds: int) -> dict:
    seeds = seeds if row.seeds is None else min(seeds, row.seeds)
    means: dict[float, dict[str, float]] = {}
    for strength in row.strengths:
        figures = [
            measured(graph, row.dimension, strength, seed)
            for graph in row.graphs
            for seed in range(seeds)
        ]
        means[strength] = {
            name: statistics.fmean(each[name] for each in figures) for name in figures[0]
        }
    ours = means[DEFAULT]
    line = {"graph": row.name, "graphs": len(row.graphs), "seeds": seeds}
    line |= {name: round(value, 4) for name, value in ours.items()}
    by_rank = min(means, key=lambda strength: means[strength]["rank"])
    by_map = max(means, key=lambda strength: means[strength]["map"])
    line["rank_by_best"] = round(ours["rank"] / means[by_rank]["rank"], 3)
    line["map_by_best"] = round(ours["map"] / means[by_map]["map"], 3)
    return line | {"best_for_rank": by_rank, "best_for_map": by_map}


def main() -> None:
    by_name = {row.__name__: row for row in ROWS}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"{', '.join(by_name)}; all where left out"
    )
    parser.add_argument(
        "--random-seeds", type=int, default=3, help="random graphs of each size: seeds 0, 1, ..."
    )
    parser.add_argument("--seeds", type=int, default=6, help="of the embedding: 0, 1, ...")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NSIMPLEX_DATA", ".")))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.rows or by_name:
        if name not in by_name:
            parser.error(f"unknown row {name}")
        try:
            for row in by_name[name](options):
                print(json.dumps(summary(row, options.seeds)), flush=True)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
