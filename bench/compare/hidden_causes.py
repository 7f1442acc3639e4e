"""How often `causal_limits` finds noises that depend on each other: in true graphs, in learned
graphs, and in graphs learned from tables that lack one of the causes.

    python bench/compare/hidden_causes.py

Random graphs of 12 columns and one edge per column, one table per seed. `hidden` leaves out a
column without causes that has two or more effects; graphs without such a column are left out. Each
line has the number of tables with a finding at the level 0.05, and in `named` those that name a
pair with the hidden cause.
"""

from __future__ import annotations

import argparse
import json

from nsimplex import causal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    for noise in ("gaussian", "exponential", "gumbel"):
        for rows in (200, 1000):
            for kind in ("true", "learned", "hidden"):
                print(json.dumps(counted(noise, rows, kind, options.seeds)), flush=True)


def counted(noise: str, rows: int, kind: str, seeds: int) -> dict:
    tables = findings = named = 0
    for seed in range(seeds):
        made = causal.simulate(
            nodes=12, degree=1, observations=rows, noise=noise, seed=seed, sample_seed=seed
        )
        table, edges, effects = made.table, made.weights != 0, set()
        if kind == "hidden":
            roots = (edges.sum(0) == 0) * edges.sum(1)
            root = int(roots.argmax())
            if roots[root] < 2:
                continue
            kept = [column for column in range(12) if column != root]
            effects = {kept.index(effect) for effect in edges[root].nonzero().flatten().tolist()}
            table = table[:, kept]
        graph = (
            edges.double()
            if kind == "true"
            else causal.causal_fit(table, estimator="order").adjacency
        )
        found = causal.causal_limits(table, graph).dependent
        tables += 1
        findings += bool(found)
        named += any({i, j} <= effects for i, j, _ in found)
    line = dict(noise=noise, rows=rows, graph=kind, tables=tables, findings=findings)
    return line | (dict(named=named) if kind == "hidden" else {})


if __name__ == "__main__":
    main()
