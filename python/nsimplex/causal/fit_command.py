"""``nsimplex causal fit --limits``: what the table cannot tell about the edges of a graph.

The command reads the table and fits the graph. It starts this program, which answers in lines of
JSON.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch import Tensor

from .._command_channel import Channel, serve
from .limits import causal_limits


def measure(request: dict[str, Any], channel: Channel) -> None:
    """Measures the limits of the graph that the command gives.

    Raises:
        ValueError: a table with too few rows or with gaps.
    """
    given = channel.given()
    names: list[str] = given["names"]
    found = causal_limits(_numbers(given["values"]), _numbers(given["adjacency"]), names=names)
    sorted_edges, edges = found.sorted_by_variance
    channel.line(
        "causal_limits",
        bic=found.bic,
        edges=edges,
        reversible=[[names[i], names[j]] for i, j in found.reversible],
        varsortability=found.varsortability,
        sorted_by_variance=sorted_edges,
        dependent=[[names[i], names[j], p] for i, j, p in found.dependent],
        tests=found.tests,
        findings=found.report(),
    )
    channel.text("\n".join(found.report()))


def _numbers(rows: list[list[float | None]]) -> Tensor:
    """float64 [n, M]; a gap is NaN."""
    wide = [[math.nan if cell is None else cell for cell in row] for row in rows]
    return torch.tensor(wide, dtype=torch.float64).reshape(len(rows), -1)


def main() -> int:
    """Runs the program with the options of the command and returns its exit code."""
    return serve(measure, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
