"""How often edges of a given frequency are true: the reliability of `edge_confidence`.

    python bench/compare/edge_confidence.py --seeds 10
    python bench/compare/edge_confidence.py measured

`edge_confidence` was built on Erdos and Renyi's random graphs with Gaussian noise of one variance.
The tables here have none of these: scale-free graphs, noise that is exponential, Gumbel's, uniform
or of free variances, effects that are curved. `measured` has simulated gene networks (SynTReN, 20
genes, 10 networks) and Sachs' proteins, from causal/ below the folder NSIMPLEX_DATA. Every table is
standardised, so that variances do not tell the order.

A row has all ordered pairs whose frequency lies in a range: their number, the share that is an edge
of the true graph, and the share that is an edge of it in either direction. `interval` is the share
of true weights inside the 95 % interval, over the edges found that are true.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nsimplex import causal

BOUNDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0)
KINDS = {
    "scale-free, exponential noise": dict(graph="sf", noise="exponential"),
    "scale-free, Gumbel noise, free variances": dict(
        graph="sf", noise="gumbel", equal_variances=False
    ),
    "sparse, weak effects, free variances": dict(
        degree=1, weights=(0.1, 0.6), equal_variances=False
    ),
    "networks of sigmoids": dict(graph="sf", mechanism="mlp"),
}


def simulated(name: str, rows: int, seeds: int) -> Iterator[tuple[Tensor, Tensor]]:
    for seed in range(seeds):
        made = causal.simulate(nodes=20, observations=rows, seed=1000 + seed, **KINDS[name])
        yield made.table, made.weights


def uniform(rows: int, seeds: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Random weights on scale-free graphs, and noise that is uniform on an interval."""
    for seed in range(seeds):
        weights = causal.simulate(graph="sf", nodes=20, observations=2, seed=1000 + seed).weights
        generator = torch.Generator().manual_seed(seed)
        noise = torch.rand(rows, 20, generator=generator, dtype=torch.float64) * 2 - 1
        yield noise @ torch.linalg.inv(torch.eye(20, dtype=torch.float64) - weights), weights


def syntren(folder: Path) -> Iterator[tuple[Tensor, Tensor]]:
    with zipfile.ZipFile(folder / "syntren_p20.zip") as archive:
        for number in range(1, 11):
            table, truth = (
                np.load(io.BytesIO(archive.read(f"syntren/{name}{number}.npy")))
                for name in ("data", "DAG")
            )
            yield torch.from_numpy(table).double(), torch.from_numpy(truth).double()


def sachs(folder: Path) -> Iterator[tuple[Tensor, Tensor]]:
    read = lambda name: np.loadtxt(folder / name, delimiter=",", skiprows=1)
    yield torch.from_numpy(read("sachs.csv")), torch.from_numpy(read("sachs_dag.csv"))


def reliability(
    name: str,
    tables: Iterator[tuple[Tensor, Tensor]],
    options: argparse.Namespace,
    true_weights: bool,
) -> None:
    frequencies, directed, either, inside = [], [], [], []
    for table, truth in tables:
        scale = table.std(0, correction=0)
        found = causal.edge_confidence(
            table,
            estimator="order",
            replicates=options.replicates,
            resampling=options.resampling,
            standardise=True,
            n_jobs=options.jobs,
        )
        edges = truth != 0
        off = ~torch.eye(len(edges), dtype=torch.bool)
        frequencies.append(found.frequencies[off])
        directed.append(edges[off])
        either.append((edges | edges.T)[off])
        weights = truth * scale[:, None] / scale  # in the units of the fit
        both = edges & (found.adjacency != 0)
        inside.append(((found.low <= weights) & (weights <= found.high))[both])
    frequency, true, joined = (torch.cat(each) for each in (frequencies, directed, either))
    for low, high in itertools.pairwise(BOUNDS):
        own = (frequency > low) & (frequency <= high)
        print(
            json.dumps(
                {
                    "tables": name,
                    "above": low,
                    "to": high,
                    "pairs": int(own.sum()),
                    "mean frequency": round(float(frequency[own].mean()), 3),
                    "true": round(float(true[own].double().mean()), 3),
                    "either direction": round(float(joined[own].double().mean()), 3),
                }
            )
        )
    never = frequency == 0
    summary = {"tables": name, "never": int(never.sum())}
    summary["true"] = round(float(true[never].double().mean()), 4)
    if true_weights:
        summary["interval"] = round(float(torch.cat(inside).double().mean()), 3)
        summary["weights"] = len(torch.cat(inside))
    print(json.dumps(summary), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=("simulated", "measured"), default="simulated")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--resampling", default="halves")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.kind == "measured":
        folder = Path(os.environ["NSIMPLEX_DATA"]) / "causal"
        reliability("SynTReN", syntren(folder), options, False)
        reliability("Sachs", sachs(folder), options, False)
        return
    for rows in options.rows:
        for name in KINDS:
            linear = KINDS[name].get("mechanism") is None
            tables = simulated(name, rows, options.seeds)
            reliability(f"{name}, {rows} rows", tables, options, linear)
        tables = uniform(rows, options.seeds)
        reliability(f"scale-free, uniform noise, {rows} rows", tables, options, True)


if __name__ == "__main__":
    main()
