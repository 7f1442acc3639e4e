"""How often intervals of `causal_effect` hold the true total effect: of true graphs, of learned
graphs with open directions, and of learned graphs with those of samples of the rows.

    python bench/compare/effect_intervals.py true --tables 120
    python bench/compare/effect_intervals.py learned --tables 40
    python bench/compare/effect_intervals.py sampled --tables 20

Random graphs of 8 columns, 200 rows and noises of different variances: two edges per column for
`true`, and one for the others, which learn from standardised columns. `absent` counts the pairs
whose true effect is 0, in learned graphs alone.
"""

from __future__ import annotations

import argparse
import json

import torch

from nsimplex import causal

NODES, ROWS, SAMPLES = 8, 200, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", choices=("true", "learned", "sampled"))
    parser.add_argument("--tables", type=int, default=40)
    options = parser.parse_args()
    for noise in ("gaussian", "exponential"):
        print(json.dumps(counted(noise, options.graph, options.tables)), flush=True)


def counted(noise: str, kind: str, tables: int) -> dict:
    held, absent = [], []
    for seed in range(5000, 5000 + tables):
        made = causal.simulate(
            nodes=NODES,
            degree=2 if kind == "true" else 1,
            observations=ROWS,
            noise=noise,
            equal_variances=False,
            seed=seed,
        )
        unit = torch.eye(NODES, dtype=torch.float64)
        effects = torch.linalg.inv(unit - made.weights) - unit
        effects = torch.where(effects.abs() > 1e-12, effects, 0)
        graph, samples = (made.weights, []) if kind == "true" else learned(made.table, kind)
        for i, j in (unit == 0).nonzero().tolist():
            true = float(effects[i, j])
            if true == 0 and kind == "true":
                continue
            found = causal.causal_effect(made.table, graph, i, j, samples=samples)
            holds = found.low - 1e-9 <= true <= found.high + 1e-9
            (held if true else absent).append(holds)
    line = dict(noise=noise, graph=kind, effects=len(held), held=sum(held) / len(held))
    return line | (
        dict(absent=len(absent), absent_held=sum(absent) / len(absent)) if absent else {}
    )


def learned(table: torch.Tensor, kind: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The graph with open directions, and those of samples."""
    if kind == "learned":
        return opened(
            table, causal.causal_fit(table, estimator="order", standardise=True).adjacency
        ), []
    sure = causal.edge_confidence(table, estimator="order", standardise=True, replicates=SAMPLES)
    samples = []
    for pairs in sure.graphs:
        edges = torch.zeros_like(sure.adjacency)
        edges[pairs[:, 0], pairs[:, 1]] = 1
        samples.append(opened(table, edges))
    return opened(table, sure.adjacency), samples


def opened(table: torch.Tensor, graph: torch.Tensor) -> torch.Tensor:
    """Both entries of edges whose direction Gaussian data do not tell."""
    both = (graph != 0) & (graph.T != 0)  # of a sample, as edge_confidence has left it open
    directed = torch.where(both, graph.triu(1), graph)
    return causal.causal_limits(table, directed).cpdag.double()


if __name__ == "__main__":
    main()
