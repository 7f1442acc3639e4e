"""One self-contained HTML page about a run directory: ``python -m nsimplex.report DIR``.

The page holds the curves (SVG, drawn by matplotlib), samples, measured rates, the machine and the
commands that repeat everything. It needs no network and no script. A run directory may hold
these files, at its top or in folders below it. None is required, and a broken line is left out:

    metrics.jsonl   of ``nsimplex lm train``, ``nsimplex graph``, ``nsimplex causal``,
                    ``nsimplex analyze`` or ``nsimplex lab``
    graph.csv       beside the lines of ``nsimplex causal fit``, or graph.tsv; scores.csv, truth.csv
    samples.jsonl   lines of ``nsimplex lm sample --json``
    bench.jsonl     lines of ``nsimplex bench attention --json``
    compare.jsonl   lines of the peers in bench/compare
    info.json       of a run: the build and the machine; the line of ``nsimplex info --json``
    config.toml     of a run; its first comment is the command
    command.txt     the command that made the directory
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from html import escape
from pathlib import Path

from .._build_info import TORCH_VERSION, VERSION
from .._page import counted, page, section, table, tile
from .._printable import printable
from .._whole_file import whole_file
from .analyses import (
    analysis_sections,
    attenuation_sections,
    complexity_sections,
    robustness_sections,
)
from .ball import ball_section, placement_sections
from .causal import (
    certainty_sections,
    effect_sections,
    embedded_sections,
    fit_headline,
    fit_sections,
    predicted_sections,
    simulated_sections,
)
from .curvature_section import curvature_sections
from .dag import learned_section
from .elements import amount, megabytes
from .graph_sections import encoding_sections, graph_sections
from .language import comparison_sections, language_runs, language_sections, scaling_sections
from .learned import LearnedGraph, read_ball, read_learned
from .match import match_runs, match_sections, match_tiles
from .monitored_layers import monitor_sections
from .run import Folder, Row, Run, number, read_run
from .trained_graphs import trained_graph_sections, trained_headline

__all__ = ["write_report"]

#: Sections in their order on the page: the function that makes them, the kinds of lines that it
#: reads, and a title for a run that has them.
_SECTIONS: list[tuple[Callable[[list[Folder]], list[str]], str, str]] = [
    (match_sections, "match_point match_result", "Match task"),
    (language_sections, "training", "Language model"),
    (
        comparison_sections,
        "comparison_point comparison_result comparison_pair comparison_speed_up",
        "Language models compared",
    ),
    (scaling_sections, "scaling_point scaling_fit", "Losses by size"),
    (
        graph_sections,
        "graph_point graph_result graph_reference graph_mean graph_cost graph_cost_fit",
        "Graph models compared",
    ),
    (
        trained_graph_sections,
        "graph_data graph_epoch graph_fit graph_evaluation graph_tuples",
        "Model of graphs",
    ),
    (fit_sections, "fit", ""),
    (
        certainty_sections,
        "causal_choices confidence edge_confidence causal_limits noise_directions causal_warnings"
        " graph_check",
        "",
    ),
    (effect_sections, "effect", "Total effects"),
    (simulated_sections, "simulate", "Made-up tables"),
    (embedded_sections, "embed", "Embedded graph"),
    (placement_sections, "structure placement placement_mean", "Graphs in the ball"),
    (attenuation_sections, "attenuation", "Attenuation"),
    (robustness_sections, "robustness", "Robustness"),
    (complexity_sections, "complexity complexity_fit", "Cost of graphs"),
    (predicted_sections, "predict", "Answers for new rows"),
    (encoding_sections, "encoding_trial encoding_mean", "Causal encodings compared"),
    (curvature_sections, "curvature", "Curvature of graphs"),
    (
        analysis_sections,
        "lipschitz sensitivity sharpness smoothing layer transfer transfer_best statement",
        "Analysis of attention",
    ),
    (monitor_sections, "attention_layer", "Layers over a training"),
]

SECTIONS = {kind: make for make, kinds, _ in _SECTIONS for kind in kinds.split()}


def write_report(directory: str | os.PathLike, *, columns: Sequence[str] = ()) -> Path:
    """Writes ``report.html`` into a run directory, replacing an earlier one, and returns its path.

    Args:
        columns: names of columns of a learned graph. Its picture then shows the strongest part
            around them.

    Raises:
        NotADirectoryError: there is no such directory.
        ValueError: nothing in it can be reported, or no learned graph has such a column.
        OSError: the page cannot be written.
    """
    root = Path(directory)
    if not root.is_dir():
        raise NotADirectoryError(f"report: {root} is not a directory")
    run = read_run(root)
    sections = sections_of(run, columns)
    if not sections:
        raise ValueError(
            f"report: {root} holds nothing to report (no metrics, samples or measurements)"
        )
    page = render(run, sections)
    target = root / "report.html"
    with whole_file(target, encoding="utf-8", errors="replace") as file:
        file.write(page)
    return target


def sections_of(run: Run, columns: Sequence[str] = ()) -> list[str]:
    """All that a run directory tells, but for the machine. Pictures of learned graphs show the part
    around ``columns`` if there are some."""
    graphs = _learned(run)
    for name in columns:
        if not any(name in graph.names for graph in graphs):
            raise ValueError(
                f"[write_report] columns: expected names of columns of a learned graph, got "
                f"{printable(name)[:60]!r}"
            )
    sections = [learned_section(graph, columns, len(graphs) == 1) for graph in graphs]
    for make, kinds, _ in _SECTIONS:
        if folders := run.having_kinds(set(kinds.split())):
            sections += make(folders)
    sections += [ball_section(ball) for each in run.folders if (ball := read_ball(each.path))]
    if run.samples:
        sections.append(samples_section(run.samples))
    if run.bench or run.compare:
        sections.append(_speed(run))
    return [each for each in sections if each]


def _learned(run: Run) -> list[LearnedGraph]:
    """The learned graphs of a run directory."""
    found = []
    for folder in run.folders:
        fits = [row for row in folder.rows if row["kind"] == "fit"]
        if fits:
            has_truth = fits[-1].get("sortability_of") == "truth"
            found.append(read_learned(folder.path, has_truth, folder.rows))
    return [graph for graph in found if graph is not None]


def samples_section(samples: list[Row]) -> str:
    figures = []
    for sample in samples:
        text, prompt = sample["text"], str(sample.get("prompt") or "")
        shown = escape(text)
        if prompt and text.startswith(prompt):
            shown = f"<mark>{escape(prompt)}</mark>{escape(text[len(prompt) :])}"
        settings = [
            f"{name} {sample[name]}"
            for name in ("temperature", "top_p", "top_k", "seed")
            if name in sample
        ]
        caption = ", ".join([f"prompt “{prompt}”" if prompt else "no prompt", *settings])
        figures.append(
            f'<figure class="sample"><figcaption>{escape(caption)}</figcaption>'
            f'<pre class="sample">{shown}</pre></figure>'
        )
    return section("Samples", f'<div class="samples">{"".join(figures)}</div>')


def shape_label(row: Row) -> str:
    """What a measurement is about: order 2, windows 32 × 512, T = 2048, 4 heads, 1 thread,
    forward."""
    parts = [f"order {row.get('order', '?')}"]
    window = [w for w in row.get("window") or [] if isinstance(w, int)]
    if any(w > 0 for w in window):
        parts.append("windows " + " × ".join("all" if w < 0 else str(w) for w in window))
    if "seq" in row:
        parts.append(f"T = {row['seq']}")
    for name in ("heads", "threads"):
        if (count := number(row, name)) is not None:
            parts.append(counted(count, name))
    return ", ".join(parts + [str(row.get("pass", ""))]).rstrip(", ")


def _tiles(run: Run) -> str:
    tiles = []
    for match in match_runs(run.having_kinds({"match_point", "match_result"}))[:1]:
        tiles += match_tiles(match)
    for language in language_runs(run.having_kinds({"training"}))[:1]:
        losses = [v for row in language.metrics if (v := number(row, "val_loss")) is not None]
        step = language.metrics[-1]["step"]
        if losses:
            tiles.append(
                tile(f"{losses[-1]:.3f}", "Validation loss", f"nats per token, step {step:,}")
            )
    kernel = [r for r in run.compare if r.get("peer") == "composite" and r.get("pass") == "forward"]
    if kernel:
        tiles.append(
            tile(
                f"{kernel[0]['speedup']:.1f}×",
                "Faster than PyTorch",
                "best composite, " + shape_label(kernel[0]),
            )
        )
    elif run.bench and (ratio := number(run.bench[0], "ratio")) is not None:
        tiles.append(tile(f"{ratio:.2f}", "Of sgemm's own rate", shape_label(run.bench[0])))
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _speed(run: Run) -> str:
    parts = []
    if run.bench:
        rows = [
            [
                shape_label(row),
                amount(number(row, "milliseconds"), 1, " ms"),
                amount(number(row, "gflops")),
                amount(number(row, "sgemm_gflops")),
                amount(number(row, "ratio"), 2),
                megabytes(number(row, "workspace_bytes")),
            ]
            for row in run.bench
        ]
        header = ["operator", "time", "GFLOP/s", "sgemm GFLOP/s", "of sgemm", "workspace"]
        parts.append(table(header, rows))
    if run.compare:
        rows = [
            [
                row["setting"] if isinstance(row.get("setting"), str) else shape_label(row),
                str(row.get("peer", "?")),
                amount(number(row, "milliseconds"), 1, " ms"),
                amount(number(row, "peer_milliseconds"), 1, " ms"),
                amount(number(row, "speedup"), 1, "×"),
                megabytes(number(row, "peak_bytes")),
                megabytes(number(row, "peer_peak_bytes")),
            ]
            for row in run.compare
        ]
        header = ["", "peer in PyTorch", "nsimplex", "peer", "speed-up", "peak memory", "peer's"]
        parts.append("<h3>Beside plain PyTorch, in one process, taking turns</h3>")
        faster = [at for at, row in enumerate(run.compare) if row["speedup"] > 1]
        parts.append(table(header, rows, strong=4, good=faster))
    return section(
        "Speed",
        '<p class="muted">Medians of runs that take turns, so that a busy machine slows both '
        "sides. sgemm is this machine's own single-precision product of two matrices with 1024 "
        "rows and columns each.</p>",
        *parts,
    )


def machine_facts() -> Row:
    """The machine this runs on, as far as it says."""
    facts = {"system": f"{platform.system()} {platform.release()}", "cores": os.cpu_count()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts["processor"] = next(
            l.partition(":")[2].strip() for l in lines if l.startswith("model name")
        )
    except (OSError, StopIteration):
        facts["processor"] = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(int(l.split()[1]) for l in lines if l.startswith("MemTotal"))
        facts["memory"] = f"{kilobytes / 2**20:.1f} GiB"
    except (OSError, StopIteration, ValueError):
        pass
    return facts


def _machine(run: Run) -> str:
    machine = machine_facts()
    if (processor := run.info.get("processor")) and processor != machine.get("processor"):
        machine = {"processor": processor}  # the run comes from another machine
    written = datetime.fromtimestamp(run.written, timezone.utc)
    facts = {
        "Last line": f"{written:%Y-%m-%d %H:%M} UTC" if run.written else None,
        "Seed" if len(set(run.seeds)) == 1 else "Seeds": ", ".join(dict.fromkeys(run.seeds)),
        "Processor": machine.get("processor"),
        "Cores": machine.get("cores"),
        "Memory": machine.get("memory"),
        "System": machine.get("system"),
        "SIMD level": run.info.get("simd"),
        "Threads": run.info.get("threads"),
        "nsimplex": run.info.get("version"),
        "Commit": run.info.get("commit"),
        "Compiler": run.info.get("compiler"),
        "torch": run.info.get("torch"),
        "Page": f"written with nsimplex {VERSION}, torch {TORCH_VERSION}",
    }
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>"
        for name, value in facts.items()
        if value
    )
    commands = "\n".join([run.command] if run.command else run.commands)
    repeat = f"<h3>To repeat this</h3><pre>{escape(commands)}</pre>" if commands else ""
    return section("Machine", f"<dl>{items}</dl>", repeat)


def headline(run: Run) -> tuple[str, str]:
    """The title of the page and the words below it, by what the run did."""
    fits = [row for folder in run.folders for row in folder.rows if row["kind"] == "fit"]
    if len(fits) == 1:
        return fit_headline(fits[0])
    if fits:
        return f"{len(fits)} causal graphs", "Learned from tables, with what is known about them."
    trained = [f for f in run.folders if any(row["kind"] == "graph_fit" for row in f.rows)]
    if len(trained) == 1:
        return trained_headline(trained[0].rows)
    found = [t for _, kinds, t in _SECTIONS if t and run.having_kinds(set(kinds.split()))]
    found += ["Speed"] if run.bench or run.compare else []
    title = ", ".join([*found[:1], *(each[0].lower() + each[1:] for each in found[1:])])
    return title or f"Run {run.name}", "What this run trained and measured."


def render(run: Run, sections: list[str]) -> str:
    """The whole page."""
    title, lead = headline(run)
    return page(
        title,
        f"nsimplex run report · {run.name}",
        lead,
        f"{_tiles(run)}{''.join(sections)}{_machine(run)}",
        "Written by nsimplex report.",
    )
