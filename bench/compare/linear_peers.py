"""Structural errors and seconds on standardised linear tables, beside every peer that is installed.

    python bench/compare/linear_peers.py --out linear_peers.jsonl --columns 20 --seeds 3
    python bench/compare/linear_peers.py --out linear_peers.jsonl --columns 50 \\
        --methods order order+noise BOSS DirectLiNGAM
    python bench/compare/linear_peers.py --out linear_peers.jsonl --columns 100 \\
        --methods order order+noise BOSS
    python bench/compare/linear_peers.py --out linear_peers.jsonl --table

Graphs: ER1 and ER4 (Erdos and Renyi, 1 and 4 edges per column) and SF2 (Barabasi and Albert, 2
links per column). Weights have magnitudes from 0.5 to 2 and either sign. Noises are Gaussian,
Laplace or uniform, with deviations from 0.5 to 2. Every column is divided by its standard
deviation.

`errors` counts the pairs of columns that are not as in the true graph, as the structural Hamming
distance does; a pair that is connected in the true graph and whose direction an answer leaves open
counts one half. `skeleton` counts the pairs that are connected in one of the two graphs only.
`order+noise` is `order` followed by `causal.orient_by_noise`.

Each fit runs in a process of its own, which ends after `--limit` seconds of processor time. A
method that reaches the limit is not asked again about the same kind of table. Every fit is a line
of the file `--out`, and a later call goes on where the file ends.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from causal import METHODS, Answer, installed, standardised
from forks import limited
from torch import Tensor

from nsimplex import causal

GRAPHS = {
    "ER1": dict(graph="er", degree=1),
    "ER4": dict(graph="er", degree=4),
    "SF2": dict(graph="sf", degree=2),
}
NOISES = ("gaussian", "laplace", "uniform")
KEYS = ("columns", "rows", "graph", "noise", "seed", "method")


def oriented(table: Tensor) -> Answer:
    found = causal.causal_fit(table, estimator="order")
    graph = causal.orient_by_noise(table, found.adjacency).adjacency
    return Answer(graph, graph)


METHODS["order+noise"] = (oriented, "")
DEFAULT = (
    "order", "order+noise", "BOSS", "GRaSP", "PC", "DirectLiNGAM", "DAGMA", "GES", "NOTEARS",
)  # fmt: skip


def drawn(columns: int, rows: int, graph: str, noise: str, seed: int) -> tuple[Tensor, Tensor]:
    weights = causal.simulate(nodes=columns, observations=2, seed=seed, **GRAPHS[graph]).weights
    draws = np.random.default_rng([seed, columns, rows])
    noises = {
        "gaussian": draws.normal,
        "laplace": draws.laplace,
        "uniform": lambda size: draws.uniform(-1, 1, size),
    }[noise](size=(rows, columns))
    noises = noises / noises.std() * draws.uniform(0.5, 2, columns)
    mixing = torch.linalg.inv(torch.eye(columns, dtype=torch.float64) - weights)
    return standardised(torch.from_numpy(noises) @ mixing), weights


def errors(graph: Tensor, truth: Tensor) -> dict[str, float]:
    found, true = graph != 0, truth != 0
    connected, real = found | found.T, true | true.T
    open_ended = found & found.T & real
    different = ((found != true) | (found != true).T) & ~open_ended
    return {
        "errors": float(different.triu(1).sum()) + 0.5 * float(open_ended.triu(1).sum()),
        "skeleton": float((connected != real).triu(1).sum()),
        "edges": float(connected.triu(1).sum()),
        "true_edges": float(real.triu(1).sum()),
    }


def fitted(method: str, table: Tensor, truth: Tensor, limit: int) -> dict:
    made = limited(lambda: errors(METHODS[method][0](table).graph, truth), limit)
    return made.pop("answer", {}) | made


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def cells(options: argparse.Namespace) -> Iterator[dict]:
    for seed, rows, graph, noise in itertools.product(
        range(options.seeds), options.rows, options.graphs, NOISES
    ):
        yield dict(columns=options.columns, rows=rows, graph=graph, noise=noise, seed=seed)


def measure(options: argparse.Namespace) -> None:
    lines = read(options.out)
    done = {tuple(line[key] for key in KEYS) for line in lines}
    without_seed = lambda line: tuple(line[key] for key in KEYS if key != "seed")
    given_up = {without_seed(line) for line in lines if "seconds" not in line}
    methods = installed(options.methods)
    warm_up, _ = drawn(10, 100, "ER1", "laplace", 0)
    for method in methods:
        METHODS[method][0](warm_up)
    with options.out.open("a") as file:
        for cell in cells(options):
            table, truth = drawn(**cell)
            for method in methods:
                line = cell | {"method": method}
                if tuple(line[key] for key in KEYS) in done or without_seed(line) in given_up:
                    continue
                random.seed(0)
                np.random.seed(0)
                line |= fitted(method, table, truth, options.limit)
                if "seconds" not in line:
                    given_up.add(without_seed(line))
                print(json.dumps(line), file=file, flush=True)


def entry(lines: list[dict]) -> str:
    whole = [line for line in lines if "seconds" in line]
    if not whole:
        return "limit" if any("limit" in line for line in lines) else "fails" if lines else ""
    mean = statistics.fmean(line["errors"] for line in whole)
    seconds = statistics.median(line["seconds"] for line in whole)
    return f"{mean:.1f} ({len(whole)}; {seconds:.2g} s)"


def print_table(lines: list[dict], columns: int) -> None:
    lines = [line for line in lines if line["columns"] == columns]
    present = {line["method"] for line in lines}
    methods = [method for method in DEFAULT if method in present]
    print(f"| {columns} columns: graph, noise, rows | " + " | ".join(methods) + " |")
    print("| --- " * (len(methods) + 1) + "|")
    for graph, noise, rows in itertools.product(GRAPHS, NOISES, (100, 1000)):
        own = [line for line in lines if (line["graph"], line["noise"]) == (graph, noise)]
        own = [line for line in own if line["rows"] == rows]
        entries = [entry([line for line in own if line["method"] == name]) for name in methods]
        print(f"| {graph}, {noise}, {rows} | " + " | ".join(entries) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines, continued")
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0, 1, ...")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(DEFAULT))
    parser.add_argument("--limit", type=int, default=30, help="seconds of processor time of a fit")
    parser.add_argument("--table", action="store_true", help="print what the file has, and end")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.table:
        lines = read(options.out)
        for columns in sorted({line["columns"] for line in lines}):
            print_table(lines, columns)
            print()
    else:
        measure(options)


if __name__ == "__main__":
    main()
