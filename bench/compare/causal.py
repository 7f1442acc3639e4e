"""Causal structure learning beside its peers: the same tables, one process, one JSON object a line.

    python bench/compare/causal.py linear --features 10 20 --seeds 30
    python bench/compare/causal.py linear --standardise --methods order DAGMA
    python bench/compare/causal.py curved dream4 sachs syntren

Rows: linear (random graphs of 2 edges a column, noises of variance 1, n = 1000), wide (the same
    with 1000 columns and
2000 observations), few (more columns than rows), noise (independent columns), additive (sums of
functions drawn from Gaussian processes, 20 columns, n = 1000, noises of one variance and of free
ones), curved (Barabasi and Albert's graph of 10 columns, networks of 100 sigmoids, n = 5000),
dream4, sachs and syntren (read from causal/ below the folder NSIMPLEX_DATA). Other tables are
`nsimplex.causal.simulate`'s of seeds 0, 1, ...

Peers run as their packages come (`pip install dagma scikit-learn causal-learn lingam`; `notears`
from its authors' repository, on PYTHONPATH), with the penalties and thresholds of their examples;
one that is not installed is named and left out. `forest` ranks causes by the importances of a
random forest for each column, as GENIE3 does. Figures are means over seeds, `cyclic` the answers
that are no DAG, `seconds` the median and `most` the maximum of the processor time of a fit.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from edge_confidence import syntren as networks
from torch import Tensor

from nsimplex import causal

PEER_THRESHOLD = 0.3  # of the examples of both packages


class Answer(NamedTuple):
    graph: Tensor
    scores: Tensor


class Problem(NamedTuple):
    name: str
    table: Tensor
    truth: Tensor


def ours(estimator: str, **options: Any) -> Callable[[Tensor], Answer]:
    def fit(table: Tensor) -> Answer:
        found = causal.causal_fit(table, estimator=estimator, **options)
        return Answer(found.adjacency, found.scores)

    return fit


def thresholded(weights: np.ndarray) -> Answer:
    scores = torch.from_numpy(np.ascontiguousarray(weights)).double().abs()
    return Answer(scores * (scores >= PEER_THRESHOLD), scores)


def dagma(table: Tensor) -> Answer:
    model = importlib.import_module("dagma.linear").DagmaLinear(loss_type="l2")
    return thresholded(model.fit(table.numpy().copy(), lambda1=0.03, w_threshold=0))


def dagma_networks(table: Tensor) -> Answer:
    package = importlib.import_module("dagma.nonlinear")
    networks = package.DagmaMLP(dims=[table.size(1), 10, 1], bias=True, dtype=torch.double)
    model = package.DagmaNonlinear(networks, dtype=torch.double)
    return thresholded(model.fit(table.numpy().copy(), lambda1=0.02, lambda2=0.005, w_threshold=0))


def notears(table: Tensor) -> Answer:
    fit = importlib.import_module("notears.linear").notears_linear
    return thresholded(fit(table.numpy().copy(), lambda1=0.1, loss_type="l2", w_threshold=0))


def notears_networks(table: Tensor) -> Answer:
    package = importlib.import_module("notears.nonlinear")
    networks = package.NotearsMLP(dims=[table.size(1), 10, 1], bias=True)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)  # as the package's own example does
    try:
        fit = package.notears_nonlinear
        return thresholded(
            fit(networks.double(), table.numpy().copy(), lambda1=0.01, lambda2=0.01, w_threshold=0)
        )
    finally:
        torch.set_default_dtype(before)


def of_marks(marks: np.ndarray) -> Answer:
    """A class of graphs from causal-learn's marks, -1 for a tail and 1 for an arrow head; both
    directions where either end may be the cause, or PC finds contradictory directions."""
    directed = (marks == -1) & (marks.T == 1)
    either = (marks != 0) & (marks == marks.T)
    graph = torch.from_numpy((directed | either).astype(np.float64))
    return Answer(graph, graph)


def one_direction(graph: Tensor) -> Tensor:
    """A class of graphs in which the columns' order decides where either direction is possible."""
    return graph * ~((graph != 0) & (graph.T != 0)).tril()


def boss(table: Tensor) -> Answer:
    search = importlib.import_module("causallearn.search.PermutationBased.BOSS").boss
    return of_marks(search(table.numpy().copy(), verbose=False).graph)


def grasp(table: Tensor) -> Answer:
    search = importlib.import_module("causallearn.search.PermutationBased.GRaSP").grasp
    return of_marks(search(table.numpy().copy(), verbose=False).graph)


def ges(table: Tensor) -> Answer:
    search = importlib.import_module("causallearn.search.ScoreBased.GES").ges
    return of_marks(search(table.numpy().copy())["G"].graph)


def pc(table: Tensor) -> Answer:
    search = importlib.import_module("causallearn.search.ConstraintBased.PC").pc
    return of_marks(search(table.numpy().copy(), alpha=0.05, show_progress=False).G.graph)


def lingam(table: Tensor) -> Answer:
    model = importlib.import_module("lingam").DirectLiNGAM().fit(table.numpy().copy())
    weights = torch.from_numpy(np.ascontiguousarray(model.adjacency_matrix_.T)).double()
    return Answer(weights, weights.abs())


def forest(table: Tensor) -> Answer:
    regressor = importlib.import_module("sklearn.ensemble").RandomForestRegressor
    columns = table.size(1)
    scores = torch.zeros(columns, columns, dtype=torch.float64)
    for effect in range(columns):
        others = [column for column in range(columns) if column != effect]
        trees = regressor(n_estimators=1000, max_features="sqrt", random_state=0)
        trees.fit(table[:, others].numpy(), (table[:, effect] / table[:, effect].std()).numpy())
        scores[others, effect] = torch.from_numpy(trees.feature_importances_)
    return Answer(torch.zeros_like(scores), scores)  # a ranking alone: no graph is claimed


def correlation(table: Tensor) -> Answer:
    scores = torch.corrcoef(table.T).abs()
    return Answer(torch.zeros_like(scores), scores)


METHODS: dict[str, tuple[Callable[[Tensor], Answer], str]] = {  # with the module that must be there
    **{name: (ours(name), "") for name in ("order", "logdet", "spectral", "notears", "lowrank")},
    **{name: (ours(name), "") for name in ("paper", "paper-lowrank")},
    "paper-rank-3": (ours("paper-lowrank", rank=3), ""),
    "order-nonlinear": (ours("order", nonlinear=True), ""),
    "logdet-nonlinear": (ours("logdet", nonlinear=True), ""),
    "BOSS": (boss, "causallearn.search.PermutationBased.BOSS"),
    "GRaSP": (grasp, "causallearn.search.PermutationBased.GRaSP"),
    "GES": (ges, "causallearn.search.ScoreBased.GES"),
    "PC": (pc, "causallearn.search.ConstraintBased.PC"),
    "DirectLiNGAM": (lingam, "lingam"),
    "DAGMA": (dagma, "dagma.linear"),
    "NOTEARS": (notears, "notears.linear"),
    "DAGMA-MLP": (dagma_networks, "dagma.nonlinear"),
    "NOTEARS-MLP": (notears_networks, "notears.nonlinear"),
    "forest": (forest, "sklearn.ensemble"),
    "correlation": (correlation, ""),
}
CLASSES = ("BOSS", "GRaSP", "GES", "PC")  # methods that answer a class of graphs


def linear(options: argparse.Namespace) -> Iterator[Problem]:
    for features in options.features:
        for seed in range(options.seeds):
            made = causal.simulate(
                nodes=features, degree=2, observations=options.observations, seed=seed
            )
            yield Problem(f"linear {features}", made.table, made.weights)


def wide(options: argparse.Namespace) -> Iterator[Problem]:
    for seed in range(options.seeds):
        made = causal.simulate(nodes=1000, degree=2, observations=2000, seed=seed)
        yield Problem("wide", made.table, made.weights)


def few(options: argparse.Namespace) -> Iterator[Problem]:
    for rows, features, degree in ((30, 60, 1), (60, 100, 1), (100, 1000, 2), (1000, 1500, 2)):
        for seed in range(options.seeds if features <= 100 else 1):
            made = causal.simulate(nodes=features, degree=degree, observations=rows, seed=seed)
            yield Problem(f"few {rows} x {features}", made.table, made.weights)


def noise(options: argparse.Namespace) -> Iterator[Problem]:
    for rows, features in ((20, 60), (50, 100), (1000, 20)):
        for seed in range(options.seeds):
            draws = torch.Generator().manual_seed(seed)
            table = torch.randn(rows, features, generator=draws, dtype=torch.float64)
            yield Problem(
                f"noise {rows} x {features}",
                table,
                torch.zeros(features, features, dtype=torch.float64),
            )


def additive(options: argparse.Namespace) -> Iterator[Problem]:
    for equal in (True, False):
        for seed in range(options.seeds):
            made = causal.simulate(
                nodes=20,
                degree=1,
                observations=1000,
                mechanism="gp",
                equal_variances=equal,
                seed=seed,
            )
            yield Problem(
                f"additive, {'one variance' if equal else 'free variances'}",
                made.table,
                made.weights,
            )


def curved(options: argparse.Namespace) -> Iterator[Problem]:
    for seed in range(options.seeds):
        made = causal.simulate(
            graph="sf", nodes=10, degree=2, observations=5000, mechanism="mlp", seed=seed
        )
        yield Problem("curved", made.table, made.weights)


def lines(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(newline="") as file:
        return [row for row in csv.reader(file, delimiter=delimiter) if row]


def numbers(rows: list[list[str]]) -> Tensor:
    """What stands below a line of names, of which a column without a name comes first or not at
    all."""
    return torch.tensor(
        [[float(cell) for cell in row[-len(rows[0]) :]] for row in rows[1:]], dtype=torch.float64
    )


def dream4(options: argparse.Namespace) -> Iterator[Problem]:
    for network in (1, 2):
        rows = lines(options.data / f"dream4/expression_{network}.tsv", "\t")
        names = {name: column for column, name in enumerate(rows[0])}
        truth = torch.zeros(len(names), len(names), dtype=torch.float64)
        for cause, effect, there in lines(options.data / f"dream4/gold_{network}.csv"):
            if cause in names:
                truth[names[cause], names[effect]] = float(there)
        yield Problem(f"dream4 {network}", numbers(rows), truth)


def sachs(options: argparse.Namespace) -> Iterator[Problem]:
    yield Problem(
        "sachs",
        numbers(lines(options.data / "sachs.csv")),
        numbers(lines(options.data / "sachs_dag.csv")),
    )


def syntren(options: argparse.Namespace) -> Iterator[Problem]:
    for table, truth in networks(options.data):
        yield Problem("syntren", table, truth)


ROWS = {
    linear: ("order", "logdet", "DAGMA", "NOTEARS"),
    wide: ("order", "spectral"),
    few: ("order", "BOSS"),
    noise: ("order", "order-nonlinear", "BOSS"),
    additive: ("order-nonlinear", "order", "BOSS"),
    curved: ("order-nonlinear", "logdet-nonlinear", "DAGMA-MLP", "NOTEARS-MLP"),
    dream4: ("order", "correlation", "forest"),
    sachs: ("order", "logdet", "DAGMA", "NOTEARS"),
    syntren: ("order", "order-nonlinear", "BOSS"),
}


def standardised(table: Tensor) -> Tensor:
    return (table - table.mean(0)) / table.std(0)


def measured(method: str, problem: Problem) -> dict:
    begin = time.process_time()
    answer = METHODS[method][0](problem.table)
    seconds = time.process_time() - begin
    graph = one_direction(answer.graph) if method in CLASSES else answer.graph
    metrics = causal.causal_metrics(graph, problem.truth)
    curves = causal.edge_curves(answer.scores, problem.truth)
    figures = {
        name: getattr(metrics, name) for name in ("edges", "shd", "sid", "precision", "recall")
    }
    cyclic = causal.causal_metrics(graph, torch.zeros_like(graph)).sid is None
    return figures | {
        "auroc": curves.auroc,
        "auprc": curves.auprc,
        "cyclic": cyclic,
        "seconds": seconds,
    }


def summary(name: str, method: str, rows: list[dict]) -> dict:
    line = {"row": name, "method": method, "seeds": len(rows)}
    for figure in ("edges", "shd", "sid", "precision", "recall", "auroc", "auprc"):
        values = [row[figure] for row in rows if row[figure] is not None]
        line[figure] = round(statistics.fmean(values), 4) if values else None
    line["cyclic"] = sum(row["cyclic"] for row in rows)
    seconds = [row["seconds"] for row in rows]
    return line | {"seconds": round(statistics.median(seconds), 5), "most": round(max(seconds), 5)}


def installed(methods: list[str]) -> list[str]:
    present = []
    for method in methods:
        try:
            if METHODS[method][1]:
                importlib.import_module(METHODS[method][1])
            present.append(method)
        except ImportError as error:
            print(f"{method} is left out: {error}", file=sys.stderr)
    return present


def main() -> None:
    by_name = {row.__name__: row for row in ROWS}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="+", choices=by_name, metavar="ROW", help=", ".join(by_name))
    parser.add_argument(
        "--features", type=int, nargs="+", default=[10, 20, 50, 100], help="of linear"
    )
    parser.add_argument("--observations", type=int, default=1000, help="of linear")
    parser.add_argument("--seeds", type=int, default=30, help="seeds 0, 1, ...")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, help="those of the row where left out"
    )
    parser.add_argument(
        "--standardise", action="store_true", help="columns divided by their standard deviations"
    )
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("NSIMPLEX_DATA", ".")) / "causal"
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.rows:
        methods = installed(options.methods or list(ROWS[by_name[name]]))
        for problem_name, problems in itertools.groupby(
            by_name[name](options), key=lambda problem: problem.name
        ):
            results: dict[str, list[dict]] = {method: [] for method in methods}
            for problem in problems:
                scaled = (
                    problem._replace(table=standardised(problem.table))
                    if options.standardise
                    else problem
                )
                for method in methods:
                    results[method].append(measured(method, scaled))
            units = "standardised" if options.standardise else "as measured"
            for method, rows in results.items():
                print(
                    json.dumps(summary(problem_name, method, rows) | {"units": units}), flush=True
                )


if __name__ == "__main__":
    main()
