"""Causal structure learning beside DAGMA and NOTEARS: the same tables, one process, one JSON object a line.

    python bench/compare/causal.py --features 10 20 --seeds 30
    python bench/compare/causal.py --features 1000 --observations 2000 --seeds 1 --methods order spectral

Each seed gives a random graph of 2 M edges whose weights are +-[0.5, 2], and a linear table with Gaussian noise
of variance 1, as DAGMA and NOTEARS were published with; `--standardise` takes its scales away. Peers run as
their packages come (`pip install dagma`; `notears` from its authors' repository, on PYTHONPATH), with the
penalties and thresholds of their examples. One that is not installed is named and left out. `shd` counts a
reversed edge once, `seconds` is the fit alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time

import numpy as np
import torch

from nsimplex.causal import causal_fit

OURS = ("order", "logdet", "spectral", "notears", "lowrank", "paper")
PEERS = {"DAGMA": "dagma.linear", "NOTEARS": "notears.linear"}


def made_table(features: int, observations: int, seed: int, standardise: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights [M, M] of a random acyclic graph and a table [n, M] of its linear model."""
    random = np.random.default_rng(seed)
    pairs = [(cause, effect) for effect in range(features) for cause in range(effect)]
    chosen = random.choice(len(pairs), size=min(2 * features, len(pairs)), replace=False)
    ordered = np.zeros((features, features))
    for index in chosen:
        ordered[pairs[index]] = random.uniform(0.5, 2) * random.choice([-1, 1])
    table = random.standard_normal((observations, features))
    for effect in range(features):
        table[:, effect] += table[:, :effect] @ ordered[:effect, effect]
    table -= table.mean(0)
    if standardise:
        table /= table.std(0)
    places = random.permutation(features)  # column k of what comes out was column places[k]
    return ordered[np.ix_(places, places)], table[:, places].copy()


def scores(found: np.ndarray, truth: np.ndarray) -> dict:
    edges, true_edges = found != 0, truth != 0
    upper = np.triu_indices(len(truth), 1)
    wrong = (edges != true_edges) | (edges != true_edges).T
    right = int((edges & true_edges).sum())
    return {
        "shd": int(wrong[upper].sum()),
        "precision": right / max(int(edges.sum()), 1),
        "recall": right / max(int(true_edges.sum()), 1),
    }


def fit(method: str, table: np.ndarray, threshold: float | None) -> tuple[np.ndarray, float]:
    """The delivered graph and the seconds it took."""
    if method in OURS:
        answer = causal_fit(torch.from_numpy(table), estimator=method, threshold=threshold)
        return answer.adjacency.numpy(), answer.seconds
    module = importlib.import_module(PEERS[method])
    start = time.perf_counter()
    if method == "DAGMA":
        found = module.DagmaLinear(loss_type="l2").fit(table, lambda1=0.03, w_threshold=0.3)
    else:
        found = module.notears_linear(table, lambda1=0.1, loss_type="l2", w_threshold=0.3)
    return found, time.perf_counter() - start


def installed(methods: list[str]) -> list[str]:
    present = []
    for method in methods:
        try:
            if method in PEERS:
                importlib.import_module(PEERS[method])
            present.append(method)
        except ImportError as error:
            print(f"{method} is left out: {error}", file=sys.stderr)
    return present


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--observations", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=30, help="seeds 0, 1, ...")
    parser.add_argument("--methods", nargs="+", default=["order", "logdet", *PEERS], choices=[*OURS, *PEERS])
    parser.add_argument("--standardise", action="store_true")
    parser.add_argument("--threshold", type=float, help="of our estimators; their own where it is left out")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    methods = installed(arguments.methods)
    for features in arguments.features:
        results: dict[str, list[dict]] = {method: [] for method in methods}
        for seed in range(arguments.seeds):
            truth, table = made_table(features, arguments.observations, seed, arguments.standardise)
            for method in methods:
                found, seconds = fit(method, table.copy(), arguments.threshold)
                results[method].append(scores(found, truth) | {"seconds": seconds})
        for method, rows in results.items():
            line = {"features": features, "observations": arguments.observations, "seeds": len(rows), "method": method}
            for name in ("shd", "precision", "recall"):
                line[name] = round(statistics.fmean(row[name] for row in rows), 4)
            line["seconds"] = round(statistics.median(row["seconds"] for row in rows), 5)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
