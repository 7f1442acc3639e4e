"""What the estimator "order" finds: ``python bench/causal_order.py [ROW...] [--seeds 30]``; docs/causal/structure.md
has its table.

Rows: linear (random graphs of 2 edges a node, as measured and standardised), wide (1000 columns), curved (what
networks make of their causes), dream4 and sachs (read from causal/ below the folder NSIMPLEX_DATA). Means over seeds;
seconds are processor time of one thread.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import torch
from torch import Tensor

from nsimplex import causal


def acyclic(edges: list[tuple[int, int]], nodes: int, random: torch.Generator) -> tuple[Tensor, list[int]]:
    """Every edge turned along a random order: [nodes, nodes] of zeros and ones, and that order."""
    order = torch.randperm(nodes, generator=random).tolist()
    place = {node: k for k, node in enumerate(order)}
    graph = torch.zeros(nodes, nodes, dtype=torch.float64)
    for a, b in edges:
        graph[(a, b) if place[a] < place[b] else (b, a)] = 1
    return graph, order


def uniform_or_negative(shape: tuple[int, ...], random: torch.Generator) -> Tensor:
    """Numbers of -2 .. -0.5 and 0.5 .. 2."""
    size = 0.5 + 1.5 * torch.rand(shape, generator=random, dtype=torch.float64)
    return size * (2.0 * torch.randint(2, shape, generator=random) - 1)


def linear(nodes: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Exactly 2 edges a node between random pairs, noises of variance 1."""
    random = torch.Generator().manual_seed(seed)
    pairs = torch.tril_indices(nodes, nodes, -1).T
    chosen = pairs[torch.randperm(len(pairs), generator=random)[: 2 * nodes]]
    graph, order = acyclic(chosen.tolist(), nodes, random)
    weights = graph * uniform_or_negative((nodes, nodes), random)
    table = torch.randn(rows, nodes, generator=random, dtype=torch.float64)
    for node in order:
        table[:, node] += table @ weights[:, node]
    return table, graph


def curved(nodes: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Barabasi and Albert's graph with 2 edges a new node; a network of 100 sigmoids for each effect."""
    random = torch.Generator().manual_seed(seed)
    edges: list[tuple[int, int]] = []
    ends, targets = [], {0, 1}
    for node in range(2, nodes):
        edges += [(node, target) for target in targets]
        ends += [*targets, node, node]
        targets = set()
        while len(targets) < 2:
            targets.add(ends[int(torch.randint(len(ends), (), generator=random))])
    graph, order = acyclic(edges, nodes, random)
    table = torch.randn(rows, nodes, generator=random, dtype=torch.float64)
    for node in order:
        causes = graph[:, node].nonzero().flatten()
        if len(causes) == 0:
            continue
        hidden = torch.sigmoid(table[:, causes] @ uniform_or_negative((len(causes), 100), random))
        table[:, node] += hidden @ uniform_or_negative((100,), random)
    return table, graph


def shd(found: Tensor, truth: Tensor) -> int:
    """Pairs whose edge is missing, too many or turned."""
    wrong = (found != 0) != (truth != 0)
    return int((wrong | wrong.T).sum()) // 2


def ranked(scores: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Of all pairs of columns by falling score: which are edges, and which are the last of their score."""
    pairs = ~torch.eye(len(truth), dtype=torch.bool)
    sorted_scores, order = scores[pairs].sort(descending=True, stable=True)
    last = torch.ones(len(order), dtype=torch.bool)
    last[:-1] = sorted_scores[1:] != sorted_scores[:-1]
    return (truth[pairs] != 0)[order].double(), last


def auroc(scores: Tensor, truth: Tensor) -> float:
    edges, last = ranked(scores, truth)
    hits = torch.cat([torch.zeros(1), (edges.cumsum(0) / edges.sum())[last]])
    misses = torch.cat([torch.zeros(1), ((1 - edges).cumsum(0) / (1 - edges).sum())[last]])
    return float(torch.trapezoid(hits, misses))


def auprc(scores: Tensor, truth: Tensor) -> float:
    edges, last = ranked(scores, truth)
    found = edges.cumsum(0)[last]
    precision = found / (1 + torch.arange(len(edges)))[last]
    return float((precision * torch.diff(found, prepend=torch.zeros(1))).sum() / edges.sum())


def measured(tables, **options) -> str:
    """Means over (table, truth)."""
    figures = []
    for table, truth in tables:
        begin = time.thread_time()
        fit = causal.causal_fit(table, **options)
        taken = time.thread_time() - begin
        edges, right = int((fit.adjacency != 0).sum()), int(((fit.adjacency != 0) & (truth != 0)).sum())
        figures.append(
            [
                shd(fit.adjacency, truth),
                right / int((truth != 0).sum()),
                right / max(edges, 1),
                auroc(fit.scores, truth),
                taken,
            ]
        )
    mean, most = torch.tensor(figures, dtype=torch.float64).mean(0), max(row[-1] for row in figures)
    return (
        f"SHD {mean[0]:6.2f}  recall {mean[1]:.3f}  precision {mean[2]:.3f}  AUROC {mean[3]:.3f}  "
        f"{mean[4]:.4f} s, at most {most:.4f}"
    )


def linear_rows(seeds: int) -> None:
    for standardise in (False, True):
        for nodes in (10, 20, 50, 100):
            tables = (linear(nodes, 1000, seed) for seed in range(seeds))
            scale = "standardised" if standardise else "as measured "
            print(f"linear  M {nodes:4}  n 1000  {scale}  {measured(tables, standardise=standardise)}", flush=True)


def wide_rows(seeds: int) -> None:
    tables = (linear(1000, 2000, seed) for seed in range(min(seeds, 5)))
    print(f"wide    M 1000  n 2000  as measured   {measured(tables)}", flush=True)


def curved_rows(seeds: int) -> None:
    for nonlinear in (False, True):
        tables = (curved(10, 5000, seed) for seed in range(seeds))
        model = "nonlinear   " if nonlinear else "linear      "
        print(f"curved  M   10  n 5000  {model}  {measured(tables, nonlinear=nonlinear)}", flush=True)


def read(folder: Path, name: str, delimiter: str = ",") -> list[list[str]]:
    with (folder / name).open(newline="") as file:
        return [row for row in csv.reader(file, delimiter=delimiter) if row]


def table_of(rows: list[list[str]]) -> Tensor:
    """The numbers below a line of names, of which a column without a name comes first or not at all."""
    return torch.tensor([[float(cell) for cell in row[-len(rows[0]) :]] for row in rows[1:]], dtype=torch.float64)


def dream4_rows(folder: Path) -> None:
    for network in (1, 2):
        rows = read(folder, f"dream4/expression_{network}.tsv", "\t")
        table, names = table_of(rows), {name: k for k, name in enumerate(rows[0])}
        truth = torch.zeros(len(names), len(names))
        for cause, effect, there in (row for row in read(folder, f"dream4/gold_{network}.csv") if row[0] in names):
            truth[names[cause], names[effect]] = float(there)
        correlation = auprc(torch.corrcoef(table.T).abs(), truth)
        found = auprc(causal.causal_fit(table).scores, truth)
        print(f"dream4  network {network}  AUPRC {found:.3f}, of |correlation| {correlation:.3f}", flush=True)


def sachs_rows(folder: Path) -> None:
    truth = table_of(read(folder, "sachs_dag.csv"))
    table = table_of(read(folder, "sachs.csv"))
    print(f"sachs   M   11  n  853  as measured   {measured([(table, truth)])}", flush=True)


def main() -> None:
    rows = {"linear": linear_rows, "wide": wide_rows, "curved": curved_rows}
    files = {"dream4": dream4_rows, "sachs": sachs_rows}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join([*rows, *files])}; all")
    parser.add_argument("--seeds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.rows or [*rows, *files]:
        if name in rows:
            rows[name](options.seeds)
        elif name in files:
            files[name](Path(os.environ["NSIMPLEX_DATA"]) / "causal")
        else:
            parser.error(f"no row {name}")


if __name__ == "__main__":
    main()
