"""Tables with interventions, groups, missing values and columns of several kinds.

    python bench/compare/rows_and_kinds.py interventions groups missing kinds --seeds 10
    python bench/compare/rows_and_kinds.py interventions --peer /path/to/python   # with gies

Random linear graphs of 12 columns, one edge per column, noises of free variances, every column
divided by its deviation, 1,000 rows. `wrong` is the mean number of pairs of columns that are not as
in the true graph; an edge without a direction, as GIES may answer, counts one half.

- interventions: half of the rows set one column, in turns, to noise of deviation 2 about 1.
- groups: 20 batches, each with an offset of deviation 3 in every column.
- missing: a share of the values is missing completely at random.
- kinds: every second column is two values (a logit), a count (a Poisson rate of a log link that
  varies by a Gamma variable of shape 2) or three categories (a multinomial logit), in turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nsimplex import causal

COLUMNS, ROWS = 12, 1000
GIES = """
import json, sys, time
import gies, numpy
made = numpy.load(sys.argv[1])
targets, table = made["targets"], made["table"]
sets = sorted(set(targets.tolist()))
data = [table[targets == each] for each in sets]
begin = time.perf_counter()
graph, _ = gies.fit_bic(data, [[] if each < 0 else [each] for each in sets])
print(json.dumps([graph.tolist(), time.perf_counter() - begin]))
"""


def weights_of(rng: np.random.Generator) -> np.ndarray:
    """One edge per column, in a random order of the columns."""
    weights = np.zeros((COLUMNS, COLUMNS))
    pairs = [(i, j) for j in range(COLUMNS) for i in range(j)]
    for at in rng.choice(len(pairs), COLUMNS, replace=False):
        weights[pairs[at]] = rng.uniform(0.5, 1.5) * rng.choice([-1, 1])
    order = rng.permutation(COLUMNS)
    return weights[np.ix_(order, order)]


def order_of(weights: np.ndarray) -> list[int]:
    left, order = list(range(len(weights))), []
    while left:
        first = next(j for j in left if not weights[left, j].any())
        left.remove(first)
        order.append(first)
    return order


def wrong(graph: np.ndarray, weights: np.ndarray) -> float:
    total = 0.0
    for i in range(len(weights)):
        for j in range(i):
            found = bool(graph[i, j]), bool(graph[j, i])
            true = bool(weights[i, j]), bool(weights[j, i])
            total += 0.5 if found == (True, True) and any(true) else found != true
    return total


def linear(weights, rng, targets=None) -> np.ndarray:
    noise = rng.normal(size=(ROWS, COLUMNS)) * rng.uniform(0.5, 2, COLUMNS)
    table = np.zeros((ROWS, COLUMNS))
    for column in order_of(weights):
        table[:, column] = table @ weights[:, column] + noise[:, column]
        if targets is not None:
            rows = targets == column
            table[rows, column] = 1 + 2 * rng.normal(size=rows.sum())
    return table


def fitted(table: np.ndarray, **options) -> np.ndarray:
    return causal.causal_fit(table, standardise=True, **options).adjacency.numpy()


def interventions(rng, peer) -> tuple[np.ndarray, dict[str, Callable]]:
    weights = weights_of(rng)
    targets = np.where(np.arange(ROWS) % 2, np.arange(ROWS) // 2 % COLUMNS, -1)
    table = linear(weights, rng, targets)
    table /= table.std(axis=0)
    answers = {
        "targets": lambda: fitted(table, targets=targets),
        "rows as observations": lambda: fitted(table),
        "rows without interventions": lambda: fitted(table[targets < 0]),
    }
    if peer:
        answers["GIES (gies 0.0.3)"] = lambda: peer_answer(peer, table, targets)
    return weights, answers


def peer_answer(peer: str, table: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.npz"
        np.savez(file, table=table, targets=targets)
        run = subprocess.run(
            [peer, "-c", GIES, str(file)], capture_output=True, text=True, check=True
        )
    graph, seconds = json.loads(run.stdout.strip().splitlines()[-1])
    return np.array(graph), seconds


def groups(rng, peer):
    weights = weights_of(rng)
    number = np.arange(ROWS) % 20
    table = linear(weights, rng) + 3 * rng.normal(size=(20, COLUMNS))[number]
    return weights, {
        "groups": lambda: fitted(table, groups=number),
        "without": lambda: fitted(table),
    }


def missing(share: float):
    def make(rng, peer):
        weights = weights_of(rng)
        table = linear(weights, rng)
        gaps = rng.random(table.shape) < share
        table[gaps] = np.nan
        means = np.where(gaps, np.nanmean(table, axis=0), table)
        whole = table[~gaps.any(axis=1)]
        return weights, {
            'missing="likelihood"': lambda: fitted(table, missing="likelihood"),
            'missing="rows"': lambda: fitted(whole),
            'missing="means"': lambda: fitted(means),
        }

    return make


def kinds(rng, peer):
    weights = weights_of(rng)
    of = {1: "binary", 5: "count", 9: "category", 3: "binary", 7: "count", 11: "category"}
    table = np.zeros((ROWS, COLUMNS))
    effect = np.zeros((ROWS, COLUMNS))  # of each column on others
    for column in order_of(weights):
        mean = effect @ weights[:, column]
        kind = of.get(column, "continuous")
        if kind == "continuous":
            value = mean + rng.normal(size=ROWS)
            effect[:, column] = value
        elif kind == "binary":
            value = (rng.random(ROWS) < 1 / (1 + np.exp(-2 * mean))).astype(float)
            effect[:, column] = 2 * value - 1
        elif kind == "count":
            rate = np.exp(np.clip(0.8 + 0.7 * mean, -5, 5)) * rng.gamma(2, 0.5, ROWS)
            value = rng.poisson(rate).astype(float)
            effect[:, column] = np.log1p(value) - 1
        else:
            logits = np.stack([np.zeros(ROWS), 2 * mean, -2 * mean], axis=1)
            chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            level = (rng.random((ROWS, 1)) > chance.cumsum(axis=1)).sum(axis=1)
            value = level.astype(float)
            effect[:, column] = np.array([0, 1.5, -1.5])[level]
        table[:, column] = value
    return weights, {
        "kinds": lambda: fitted(table, kinds=of),
        "all columns as numbers": lambda: fitted(table),
    }


TABLES = {
    "interventions": interventions,
    "groups": groups,
    "missing": missing(0.1),
    "missing-30": missing(0.3),
    "kinds": kinds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--peer", help="a Python with gies, which is compared if this is given")
    given = parser.parse_args()
    print("| table | answer | wrong | seconds |\n| --- | --- | --- | --- |")
    for name in given.tables:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(given.seeds):
            weights, answers = TABLES[name](np.random.default_rng(seed), given.peer)
            for label, answer in answers.items():
                begin = time.perf_counter()
                graph = answer()
                seconds = time.perf_counter() - begin
                if isinstance(graph, tuple):
                    graph, seconds = graph
                found.setdefault(label, []).append((wrong(graph, weights), seconds))
        for label, figures in found.items():
            mean = np.mean(figures, axis=0)
            print(f"| {name} | {label} | {mean[0]:.2f} | {mean[1]:.2g} |", flush=True)


if __name__ == "__main__":
    main()
