"""``nsimplex causal fit --confidence`` and ``--limits``: how sure edges are, and what the
table cannot tell about them.

The command reads the table and fits the graph. It starts this program, which answers in lines of
JSON.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from .._command_channel import Channel, serve
from .confidence import EdgeConfidence, confidence_of
from .limits import causal_limits
from .structure import fit_options

_SHOWN = 40  # edges of the table in a terminal
_STABLE = 0.9  # the frequency from which an edge counts as stable
_FIGURES = ("weight", "frequency", "connected", "ancestor", "low", "high")


def measure(request: dict[str, Any], channel: Channel) -> None:
    """Measures what the options of the command ask for.

    Raises:
        ValueError: a table with too few rows or, for ``--limits``, with gaps.
    """
    given = channel.given()
    names: list[str] = given["names"]
    values, adjacency = _numbers(given["values"]), _numbers(given["adjacency"])
    if request["confidence"]:
        found = confidence_of(
            values,
            adjacency,
            fit_options(**request["options"]),
            replicates=request["confidence"],
            resampling=request["resampling"],
            n_jobs=_jobs(),
            seed=request["options"]["seed"],
            label="causal fit",
            done=lambda count: channel.progress(count, request["confidence"], ""),
        )
        _show_confidence(found, names, request, channel)
    if request["limits"]:
        _show_limits(values, adjacency, names, channel)


def _numbers(rows: list[list[float | None]]) -> Tensor:
    """float64 [n, M]; a gap is NaN."""
    wide = [[math.nan if cell is None else cell for cell in row] for row in rows]
    return torch.tensor(wide, dtype=torch.float64).reshape(len(rows), -1)


def _jobs() -> int | None:
    """As many fits at a time as there are threads, where joblib is installed."""
    return torch.get_num_threads() if find_spec("joblib") else None


def _edges(found: EdgeConfidence, names: list[str]) -> list[dict[str, Any]]:
    """The pairs that the graph or a sample has, the most frequent first."""
    known = (found.adjacency != 0) | (found.frequencies > 0)
    rows: list[dict[str, Any]] = []
    matrices = (found.adjacency, found.frequencies, found.connected, found.ancestors)
    matrices += (found.low, found.high)
    for i, j in known.nonzero().tolist():
        figures = {name: float(each[i, j]) for name, each in zip(_FIGURES, matrices)}
        rows.append({"cause": names[i], "effect": names[j]} | figures)
    return sorted(rows, key=lambda row: (row["weight"] == 0, -row["frequency"]))


def _show_confidence(
    found: EdgeConfidence, names: list[str], request: dict[str, Any], channel: Channel
) -> None:
    rows = _edges(found, names)
    edges = [row for row in rows if row["weight"] != 0]
    stable = sum(row["frequency"] >= _STABLE for row in edges)
    false = found.expected_false(_STABLE)
    guide = "" if request["resampling"] == "halves" else ", which is a guide for bootstrap samples"
    finding = (
        f"{stable} of {len(edges)} edges are in at least {_STABLE:.0%} of {found.replicates} "
        f"samples; of such edges, at most {false:.2g} are expected to be false{guide}"
    )
    channel.line(
        "confidence",
        replicates=found.replicates,
        resampling=request["resampling"],
        edges=len(edges),
        edges_per_sample=found.edges,
        stable=stable,
        stable_from=_STABLE,
        expected_false=false,
        findings=[finding],
    )
    for row in edges:
        channel.line("edge_confidence", **row)
    channel.file("confidence.csv", _csv(rows))
    channel.table(
        [
            ["edge", "weight", "95 % interval", "frequency", "either way"],
            *(_cells(row) for row in edges[:_SHOWN]),
        ]
    )
    where = "in confidence.csv" if request["out"] else "not shown"
    more = f"{len(edges) - _SHOWN} more edges are {where}\n" if len(edges) > _SHOWN else ""
    channel.text(more + finding)


def _cells(row: dict[str, Any]) -> list[str]:
    interval = "-" if math.isnan(row["low"]) else f"{row['low']:.3f} to {row['high']:.3f}"
    return [
        f"{row['cause']} -> {row['effect']}",
        f"{row['weight']:.3f}",
        interval,
        f"{row['frequency']:.2f}",
        f"{row['connected']:.2f}",
    ]


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["cause", "effect", *_FIGURES])
    for row in rows:
        figures = ("" if math.isnan(row[name]) else repr(row[name]) for name in _FIGURES)
        writer.writerow([row["cause"], row["effect"], *figures])
    return text.getvalue()


def _show_limits(values: Tensor, adjacency: Tensor, names: list[str], channel: Channel) -> None:
    found = causal_limits(values, adjacency, names=names)
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


def main() -> int:
    """Runs the program with the options of the command and returns its exit code."""
    return serve(measure, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
