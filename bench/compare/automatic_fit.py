"""The estimator "auto" beside the best option set by hand, on eight kinds of tables.

    python bench/compare/automatic_fit.py --seeds 20
    python bench/compare/automatic_fit.py --kinds mixed curved --columns 10 --rows 200

Graphs are Erdos and Renyi's, with two edges per column, or one where effects are curves or columns
have kinds. `linear` has noises of one variance, in its own units. The other tables are standardised
but for columns that have a kind: `scaled` (noises of deviations 0.5 to 2), `internal` (every column
is standardised before it is a cause, so that neither variances nor R^2 tell the order), `noise`
(Laplace, uniform, exponential or Student noise), `additive` (a random smooth function per edge),
`curved` (sigmoids of all causes), `mixed` (half of the columns binary, counts or categories), and
`set` (half of the rows have an intervention).

A row has the mean errors (missing, extra and reversed edges), and seconds of processor time.
`goal` is 1.1 times the errors of the best option plus one. `time` is the time of auto beside that
of the linear fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import torch

from nsimplex import causal

KINDS = ("linear", "scaled", "internal", "noise", "additive", "curved", "mixed", "set")
OF_A_COLUMN = ("continuous", "continuous", "continuous", "binary", "count", "category")
OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {"estimator": "auto"},
    "linear": {"estimator": "order"},
    "noise": {"estimator": "order", "orient_by_noise": True},
    "nonlinear": {"estimator": "order", "nonlinear": True},
}


def graph(rng: np.random.Generator, columns: int, degree: int) -> np.ndarray:
    """Whether i -> j is an edge; the columns are in causal order."""
    pairs = np.argwhere(np.triu(np.ones((columns, columns)), 1))
    edges = np.zeros((columns, columns), dtype=bool)
    for i, j in rng.choice(pairs, min(degree * columns, len(pairs)), replace=False):
        edges[i, j] = True
    return edges


def scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(0)) / values.std(0)


def signed(rng: np.random.Generator, low: float, high: float, *shape: int) -> np.ndarray:
    return rng.uniform(low, high, shape) * rng.choice([-1, 1], shape)


def noise(rng: np.random.Generator, rows: int, gaussian: bool) -> np.ndarray:
    if gaussian:
        return rng.normal(size=rows)
    return [
        lambda: rng.laplace(size=rows) / 2**0.5,
        lambda: rng.uniform(-(3**0.5), 3**0.5, rows),
        lambda: rng.exponential(size=rows) - 1,
        lambda: rng.standard_t(3, rows) / 3**0.5,
    ][rng.integers(4)]()


def smooth(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """A function drawn from a Gaussian process with kernel exp(-(x - y)^2 / 2), by 100 waves."""
    waves, phases = rng.normal(size=100), rng.uniform(0, 2 * np.pi, 100)
    return np.cos(np.outer(scaled(values), waves) + phases) @ rng.normal(size=100) / 50**0.5


def sigmoids(rng: np.random.Generator, causes: np.ndarray) -> np.ndarray:
    hidden = 1 / (1 + np.exp(-causes @ signed(rng, 0.5, 2, causes.shape[1], 50)))
    return hidden @ signed(rng, 0.5, 2, 50)


def mixed(
    rng: np.random.Generator, rows: int, edges: np.ndarray
) -> tuple[np.ndarray, dict[str, Any]]:
    count = len(edges)
    kinds = [str(kind) for kind in rng.choice(OF_A_COLUMN, count)]
    values, seen = np.zeros((rows, count)), [np.zeros((rows, 0))] * count
    for j in range(count):
        causes = np.concatenate([seen[i] for i in np.flatnonzero(edges[:, j])] or [seen[j]], axis=1)
        push = lambda causes=causes: causes @ signed(rng, 0.6, 1.5, causes.shape[1])
        if kinds[j] == "continuous":
            own = push() + rng.uniform(0.5, 1.5) * rng.normal(size=rows)
            seen[j] = own[:, None]
        elif kinds[j] == "binary":
            own = (rng.random(rows) < 1 / (1 + np.exp(-1.2 * push()))).astype(float)
            seen[j] = 2 * own[:, None] - 1
        elif kinds[j] == "count":
            rate = push()
            rate = np.clip(0.6 * (rate - rate.mean()) / max(1.0, rate.std()), -3, 2.5)
            own = rng.poisson(np.exp(0.8 + rate)).astype(float)
            seen[j] = np.log1p(own)[:, None]
        else:
            logits = np.stack([np.zeros(rows), 1.2 * push(), 1.2 * push()], axis=1)
            own = (logits + rng.gumbel(size=logits.shape)).argmax(1).astype(float)
            seen[j] = np.stack([own == 1, own == 2], axis=1).astype(float)
        values[:, j] = own
    return values, {"kinds": kinds}


def drawn(
    kind: str, columns: int, rows: int, seed: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """A table, its edges, and the option that knows what the table is."""
    rng = np.random.default_rng([KINDS.index(kind), columns, rows, seed])
    edges = graph(rng, columns, 1 if kind in ("additive", "curved", "mixed") else 2)
    weights = edges * signed(rng, 0.5, 2, columns, columns)
    known: dict[str, Any] = {}
    if kind == "mixed":
        values, known = mixed(rng, rows, edges)
    else:
        values = np.zeros((rows, columns))
        sets = np.full(rows, -1)
        if kind == "set":
            sets = np.where(rng.random(rows) < 0.5, rng.integers(0, columns, rows), -1)
            known = {"targets": list(sets)}
        for j in range(columns):
            causes = np.flatnonzero(edges[:, j])
            own = noise(rng, rows, kind != "noise")
            if kind in ("additive", "curved") and len(causes):
                if kind == "additive":
                    push = np.sum([smooth(rng, values[:, i]) for i in causes], axis=0)
                else:
                    push = sigmoids(rng, values[:, causes])
                own = scaled(push) + rng.uniform(0.4, 0.8) * own
            elif kind not in ("additive", "curved"):
                own = own * (1 if kind == "linear" else rng.uniform(0.5, 2))
                own = own + values @ weights[:, j]
            if kind == "internal":
                own = scaled(own)
            there = sets == j
            own[there] = 2 * rng.normal(size=there.sum()) + rng.choice([-3, 3])
            values[:, j] = own
        if kind != "linear":
            values = scaled(values)
    shuffled = rng.permutation(columns)
    if "kinds" in known:
        known["kinds"] = [known["kinds"][j] for j in shuffled]
    if "targets" in known:
        place = np.argsort(shuffled)
        known["targets"] = [int(place[j]) if j >= 0 else -1 for j in known["targets"]]
    return values[:, shuffled], edges[np.ix_(shuffled, shuffled)], known


def errors(found: np.ndarray, truth: np.ndarray) -> int:
    wrong = (found != truth) | (found.T != truth.T)
    return int(np.triu(wrong, 1).sum())


def measured(table: np.ndarray, truth: np.ndarray, options: dict[str, Any]) -> tuple[int, float]:
    begin = time.process_time()
    try:
        found = causal.causal_fit(table, progress=False, **options).adjacency
    except ValueError:  # options that do not suit the table
        return -1, 0.0
    return errors((found != 0).numpy(), truth), time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 30])
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for kind in given.kinds:
        for columns in given.columns:
            for rows in given.rows:
                counts: dict[str, list[int]] = {}
                seconds: dict[str, list[float]] = {}
                for seed in range(given.seeds):
                    table, truth, known = drawn(kind, columns, rows, seed)
                    calls = dict(OPTIONS)
                    if known:
                        calls["known"] = {"estimator": "order", **known}
                    if "targets" in known:  # nobody leaves interventions out
                        calls["auto"] = {"estimator": "auto", **known}
                    for name, options in calls.items():
                        wrong, took = measured(table, truth, options)
                        counts.setdefault(name, []).append(wrong)
                        seconds.setdefault(name, []).append(took)
                mean = {name: float(np.mean(own)) for name, own in counts.items() if min(own) >= 0}
                best = min((name for name in mean if name != "auto"), key=mean.__getitem__)
                goal = 1.1 * mean[best] + 1
                line = {"table": kind, "columns": columns, "rows": rows}
                line |= {name: round(own, 2) for name, own in mean.items()}
                line |= {"best": best, "goal": round(goal, 2), "reached": mean["auto"] <= goal}
                time_of = {name: float(np.median(own)) for name, own in seconds.items()}
                line["seconds"] = round(time_of["auto"], 4)
                line["time"] = round(time_of["auto"] / time_of["linear"], 2)
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
