"""Tables with interventions, groups, missing values and columns of several kinds.

    python bench/compare/rows_and_kinds.py interventions soft groups missing kinds --seeds 10
    python bench/compare/rows_and_kinds.py kinds --rows 300 --seeds 5 --limit 120

Random linear graphs of 12 columns, one edge per column, noises of free variances, every column
divided by its deviation, 1,000 rows. `wrong` is the mean number of pairs of columns that are not as
in the true graph; an edge without a direction, as peers may answer, counts one half. Peers take
part if they are installed (`pip install gies causal-learn graphical_model_learning`), each fit for
at most `--limit` seconds of processor time.

- interventions: half of the rows set one column, in turns, to noise of deviation 2 about 1. The
  peer is GIES.
- soft: half of the rows shift one column, in turns, by 1 and give its noise a deviation of 2, while
  its causes still act. The peers are IGSP of graphical_model_learning, with tests at the level of
  0.001 for independence and invariance, and GIES, which takes the interventions for perfect ones.
- groups: 20 batches, each with an offset of deviation 3 in every column. The peer is CD-NOD of
  causal-learn, to which the number of the batch is a column.
- missing: a share of the values is missing completely at random. The peer is MV-PC of causal-learn.
- kinds: every second column is two values (a logit), a count (a Poisson rate of a log link that
  varies by a Gamma variable of shape 2) or three categories (a multinomial logit), in turns. The
  peers are GES of causal-learn with its kernel score for mixed data, and PC with a chi-squared test
  of columns cut into thirds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
from collections.abc import Callable

import numpy as np
from causal import of_marks
from forks import limited

from nsimplex import causal

COLUMNS = 12
PEERS = (
    "gies",
    "conditional_independence",
    "graphical_model_learning",
    "causallearn.search.ConstraintBased.CDNOD",
    "causallearn.search.ConstraintBased.PC",
    "causallearn.search.ScoreBased.GES",
)
Answers = dict[str, Callable[[], np.ndarray]]


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


def linear(weights, rng, rows: int, targets=None, soft: bool = False) -> np.ndarray:
    """With targets, rows whose column is set from outside, or shifted where its causes still
    act."""
    noise = rng.normal(size=(rows, COLUMNS)) * rng.uniform(0.5, 2, COLUMNS)
    table = np.zeros((rows, COLUMNS))
    for column in order_of(weights):
        table[:, column] = table @ weights[:, column] + noise[:, column]
        if targets is not None:
            set_here = targets == column
            outside = 1 + 2 * rng.normal(size=set_here.sum())
            caused = table[set_here] @ weights[:, column] if soft else 0
            table[set_here, column] = caused + outside
    return table


def fitted(table: np.ndarray, **options) -> np.ndarray:
    return causal.causal_fit(
        table, estimator="order", standardise=True, **options
    ).adjacency.numpy()


def gies(table: np.ndarray, targets: np.ndarray) -> np.ndarray:
    sets = sorted(set(targets.tolist()))
    data = [table[targets == each] for each in sets]
    names = [[] if each < 0 else [each] for each in sets]
    return importlib.import_module("gies").fit_bic(data, names)[0]


def igsp(table: np.ndarray, targets: np.ndarray) -> np.ndarray:
    tests = importlib.import_module("conditional_independence")
    search = importlib.import_module("graphical_model_learning").igsp
    sets = sorted(set(targets.tolist()) - {-1})
    rows = table[targets < 0]
    independence = tests.MemoizedCI_Tester(
        tests.partial_correlation_test, tests.partial_correlation_suffstat(rows), alpha=1e-3
    )
    changed = tests.gauss_invariance_suffstat(rows, [table[targets == each] for each in sets])
    invariance = tests.MemoizedInvarianceTester(tests.gauss_invariance_test, changed, alpha=1e-3)
    settings = [{"interventions": [each]} for each in sets]
    found = search(settings, set(range(table.shape[1])), independence, invariance)
    return found.to_amat(list(range(table.shape[1])))[0]


def cd_nod(table: np.ndarray, groups: np.ndarray) -> np.ndarray:
    search = importlib.import_module("causallearn.search.ConstraintBased.CDNOD").cdnod
    found = search(table, groups[:, None].astype(float), show_progress=False)
    return of_marks(found.G.graph).graph.numpy()[:COLUMNS, :COLUMNS]


def pc(table: np.ndarray, **options) -> np.ndarray:
    search = importlib.import_module("causallearn.search.ConstraintBased.PC").pc
    return of_marks(search(table, show_progress=False, **options).G.graph).graph.numpy()


def kernel_ges(table: np.ndarray) -> np.ndarray:
    search = importlib.import_module("causallearn.search.ScoreBased.GES").ges
    found = search(table, score_func="local_score_marginal_general")
    return of_marks(found["G"].graph).graph.numpy()


def in_thirds(table: np.ndarray) -> np.ndarray:
    """Columns of more than three values cut at two quantiles."""
    cut = table.copy()
    for column in cut.T:
        if len(np.unique(column)) > 3:
            column[:] = np.searchsorted(np.quantile(column, [1 / 3, 2 / 3]), column)
    return cut


def interventions(rng, rows: int) -> tuple[np.ndarray, Answers]:
    weights = weights_of(rng)
    targets = np.where(np.arange(rows) % 2, np.arange(rows) // 2 % COLUMNS, -1)
    table = linear(weights, rng, rows, targets)
    table /= table.std(axis=0)
    return weights, {
        "targets": lambda: fitted(table, targets=targets),
        "rows as observations": lambda: fitted(table),
        "rows without interventions": lambda: fitted(table[targets < 0]),
        "GIES": lambda: gies(table, targets),
    }


def soft(rng, rows: int) -> tuple[np.ndarray, Answers]:
    weights = weights_of(rng)
    targets = np.where(np.arange(rows) % 2, np.arange(rows) // 2 % COLUMNS, -1)
    table = linear(weights, rng, rows, targets, soft=True)
    table /= table.std(axis=0)
    return weights, {
        "targets, soft": lambda: fitted(table, targets=targets, soft=True),
        "targets, as perfect": lambda: fitted(table, targets=targets),
        "rows as observations": lambda: fitted(table),
        "rows without interventions": lambda: fitted(table[targets < 0]),
        "IGSP": lambda: igsp(table, targets),
        "GIES": lambda: gies(table, targets),
    }


def groups(rng, rows: int) -> tuple[np.ndarray, Answers]:
    weights = weights_of(rng)
    number = np.arange(rows) % 20
    table = linear(weights, rng, rows) + 3 * rng.normal(size=(20, COLUMNS))[number]
    scaled = table / table.std(axis=0)
    return weights, {
        "groups": lambda: fitted(table, groups=number),
        "without": lambda: fitted(table),
        "CD-NOD": lambda: cd_nod(scaled, number),
    }


def missing(share: float):
    def make(rng, rows: int) -> tuple[np.ndarray, Answers]:
        weights = weights_of(rng)
        table = linear(weights, rng, rows)
        gaps = rng.random(table.shape) < share
        table[gaps] = np.nan
        means = np.where(gaps, np.nanmean(table, axis=0), table)
        whole = table[~gaps.any(axis=1)]
        scaled = table / np.nanstd(table, axis=0)
        return weights, {
            'missing="likelihood"': lambda: fitted(table, missing="likelihood"),
            'missing="rows"': lambda: fitted(whole),
            'missing="means"': lambda: fitted(means),
            "MV-PC": lambda: pc(scaled, mvpc=True),
        }

    return make


def kinds(rng, rows: int) -> tuple[np.ndarray, Answers]:
    weights = weights_of(rng)
    of = {1: "binary", 5: "count", 9: "category", 3: "binary", 7: "count", 11: "category"}
    table = np.zeros((rows, COLUMNS))
    effect = np.zeros((rows, COLUMNS))  # of each column on others
    for column in order_of(weights):
        mean = effect @ weights[:, column]
        kind = of.get(column, "continuous")
        if kind == "continuous":
            value = mean + rng.normal(size=rows)
            effect[:, column] = value
        elif kind == "binary":
            value = (rng.random(rows) < 1 / (1 + np.exp(-2 * mean))).astype(float)
            effect[:, column] = 2 * value - 1
        elif kind == "count":
            rate = np.exp(np.clip(0.8 + 0.7 * mean, -5, 5)) * rng.gamma(2, 0.5, rows)
            value = rng.poisson(rate).astype(float)
            effect[:, column] = np.log1p(value) - 1
        else:
            logits = np.stack([np.zeros(rows), 2 * mean, -2 * mean], axis=1)
            chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            level = (rng.random((rows, 1)) > chance.cumsum(axis=1)).sum(axis=1)
            value = level.astype(float)
            effect[:, column] = np.array([0, 1.5, -1.5])[level]
        table[:, column] = value
    return weights, {
        "kinds": lambda: fitted(table, kinds=of),
        "all columns as numbers": lambda: fitted(table),
        "GES, kernel score": lambda: kernel_ges(table / table.std(axis=0)),
        "PC, columns in thirds": lambda: pc(in_thirds(table), indep_test="chisq"),
    }


TABLES = {
    "interventions": interventions,
    "soft": soft,
    "groups": groups,
    "missing": missing(0.1),
    "missing-30": missing(0.3),
    "kinds": kinds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=60, help="seconds of processor time of a fit")
    parser.add_argument("--answers", nargs="+", help="only these; all if left out")
    given = parser.parse_args()
    for module in PEERS:  # loading is no part of the times
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    fitted(np.random.default_rng(0).normal(size=(50, 3)))
    print("| table | answer | tables | wrong | seconds |\n| --- | --- | --- | --- | --- |")
    for name in given.tables:
        found: dict[str, list[tuple[float, float]]] = {}
        ended: dict[str, str] = {}
        for seed in range(given.seeds):
            weights, answers = TABLES[name](np.random.default_rng(seed), given.rows)
            for label, answer in answers.items():
                if label in ended or (given.answers and label not in given.answers):
                    continue
                made = limited(answer, given.limit)
                if "answer" in made:
                    of_seed = wrong(made["answer"], weights), made["seconds"]
                    found.setdefault(label, []).append(of_seed)
                else:  # not asked again
                    ended[label] = made.get("failed", f"no answer in {given.limit} s")
        for label, figures in found.items():
            mean = np.mean(figures, axis=0)
            row = f"{name} | {label} | {len(figures)} | {mean[0]:.2f} | {mean[1]:.2g}"
            print(f"| {row} |", flush=True)
        for label, reason in ended.items():
            print(f"| {name} | {label} | stopped | {reason} | |", flush=True)


if __name__ == "__main__":
    main()
