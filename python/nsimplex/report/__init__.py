"""One self-contained HTML page about a run directory: ``python -m nsimplex.report DIR``.

The page holds the curves (SVG, drawn by matplotlib), samples, measured rates, the machine and the
commands that repeat everything. It needs no network and no script. What a run directory may hold, at its
top or in folders below it; nothing is required, and a broken line is left out:

    metrics.jsonl   of ``nsimplex lm train`` or ``nsimplex task match2``, ``match3``, ``match4``, or of ``nsimplex graph``
                    or ``nsimplex causal`` or ``nsimplex analyze``
    graph.csv       beside the lines of ``nsimplex causal fit``, or graph.tsv; scores.csv, truth.csv
    samples.jsonl   lines of ``nsimplex lm sample --json``
    bench.jsonl     lines of ``nsimplex bench attention --json``
    compare.jsonl   lines of the peers in bench/compare
    info.json       the line of ``nsimplex info --json``
    config.toml     of a run; its first comment is the command
    command.txt     the command that made the directory
"""

from __future__ import annotations

import os
from pathlib import Path

from .._whole_file import whole_file
from .data import read_run
from .page import render

__all__ = ["write_report"]


def write_report(directory: str | os.PathLike) -> Path:
    """Writes ``report.html`` into a run directory, replacing an earlier one, and returns its path.

    Raises:
        NotADirectoryError: there is no such directory.
        ValueError: nothing in it can be reported.
        OSError: the page cannot be written.
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"report: {root} is not a directory")
    run = read_run(root)
    if run.is_empty():
        raise ValueError(f"report: {root} holds nothing to report (no metrics, samples or measurements)")
    page = render(run)
    target = root / "report.html"
    with whole_file(target, encoding="utf-8", errors="replace") as file:
        file.write(page)
    return target
