"""The page: sections of what a run holds, every text escaped."""

from __future__ import annotations

from html import escape

from . import plots
from .analyses import analysis_section
from .ball import ball_section
from .causal import causal_sections
from .comparison import comparison_section
from .data import LanguageRun, Row, Run, number
from .encodings import encoding_section
from .graphs import graph_sections
from .learned_section import learned_section
from .match import match_section, match_tiles
from .parts import amount, megabytes, section, table, tile
from .scaling import scaling_section
from .style import STYLE


def shape_label(row: Row) -> str:
    """What a measurement is about: "order 2, windows 32 × 512, T = 2048, forward"."""
    parts = [f"order {row.get('order', '?')}"]
    window = [w for w in row.get("window") or [] if isinstance(w, int)]
    if any(w > 0 for w in window):
        parts.append("windows " + " × ".join("all" if w < 0 else str(w) for w in window))
    if "seq" in row:
        parts.append(f"T = {row['seq']}")
    return ", ".join(parts + [str(row.get("pass", ""))]).rstrip(", ")


def _tiles(run: Run) -> str:
    tiles = []
    for match in run.match[:1]:
        tiles += match_tiles(match)
    for language in run.language[:1]:
        losses = [v for row in language.metrics if (v := number(row, "val_loss")) is not None]
        step = language.metrics[-1]["step"]
        if losses:
            tiles.append(tile(f"{losses[-1]:.3f}", "Validation loss", f"nats per token, step {step:,}"))
    kernel = [r for r in run.compare if r.get("peer") == "composite" and r.get("pass") == "forward"]
    if kernel:
        tiles.append(
            tile(f"{kernel[0]['speedup']:.1f}×", "Faster than PyTorch", "best composite, " + shape_label(kernel[0]))
        )
    elif run.bench and (ratio := number(run.bench[0], "ratio")) is not None:
        tiles.append(tile(f"{ratio:.2f}", "Of sgemm's own rate", shape_label(run.bench[0])))
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _language(run: LanguageRun, only: bool) -> str:
    speeds = sorted(v for row in run.metrics if (v := number(row, "tokens_per_second")) is not None)
    speed = f"{speeds[len(speeds) // 2]:,.0f} tokens per second (median). " if speeds else ""
    title = "Language model" if only else f"Language model: {run.name}"
    return section(
        title,
        f'<p class="muted">{escape(speed)}{run.metrics[-1]["step"]:,} steps. Validation is text that was '
        "never trained on.</p>",
        plots.loss_curves(run),
    )


def _samples(samples: list[Row]) -> str:
    figures = []
    for sample in samples:
        text, prompt = sample["text"], str(sample.get("prompt") or "")
        shown = escape(text)
        if prompt and text.startswith(prompt):
            shown = f"<mark>{escape(prompt)}</mark>{escape(text[len(prompt):])}"
        settings = [f"{name} {sample[name]}" for name in ("temperature", "top_p", "top_k", "seed") if name in sample]
        caption = ", ".join([f"prompt “{prompt}”" if prompt else "no prompt", *settings])
        figures.append(
            f'<figure class="sample"><figcaption>{escape(caption)}</figcaption>'
            f'<pre class="sample">{shown}</pre></figure>'
        )
    return section("Samples", f'<div class="samples">{"".join(figures)}</div>')


def _speed(run: Run) -> str:
    parts = []
    if run.bench:
        rows = [
            [
                shape_label(row),
                amount(number(row, "threads"), 0),
                amount(number(row, "milliseconds"), 1, " ms"),
                amount(number(row, "gflops")),
                amount(number(row, "sgemm_gflops")),
                amount(number(row, "ratio"), 2),
                megabytes(number(row, "workspace_bytes")),
            ]
            for row in run.bench
        ]
        header = ["operator", "threads", "time", "GFLOP/s", "sgemm GFLOP/s", "of sgemm", "workspace"]
        parts.append(table(header, rows, strong=5))
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
        parts.append(table(header, rows, strong=4))
    return section(
        "Speed",
        '<p class="muted">Medians of runs that take turns, so that a busy machine slows both sides. '
        "sgemm is this machine's own single-precision matrix product of 1024³.</p>",
        *parts,
    )


def _machine(run: Run) -> str:
    facts = {
        "Processor": run.machine.get("processor"),
        "Cores": run.machine.get("cores"),
        "Memory": run.machine.get("memory"),
        "System": run.machine.get("system"),
        "SIMD level": run.info.get("simd"),
        "Threads": run.info.get("threads"),
        "nsimplex": run.info.get("version"),
        "torch": run.info.get("torch"),
    }
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items() if value
    )
    commands = "\n".join([run.command] if run.command else run.commands)
    repeat = f"<h3>To repeat this</h3><pre>{escape(commands)}</pre>" if commands else ""
    return section("Machine", f"<dl>{items}</dl>", repeat)


def render(run: Run) -> str:
    """The whole page."""
    sections = [match_section(match) for match in run.match]
    sections += [_language(language, len(run.language) == 1) for language in run.language]
    sections += [comparison_section(each, len(run.comparisons) == 1) for each in run.comparisons]
    sections += [scaling_section(each) for each in run.scaling]
    sections += graph_sections(run.graphs)
    sections += causal_sections(run.causal)
    sections += [learned_section(graph) for graph in run.learned]
    sections += [ball_section(ball) for ball in run.balls]
    sections += [encoding_section(each, len(run.encodings) == 1) for each in run.encodings]
    sections += [analysis_section(each, len(run.analyses) == 1) for each in run.analyses]
    if run.samples:
        sections.append(_samples(run.samples))
    if run.bench or run.compare:
        sections.append(_speed(run))
    sections.append(_machine(run))
    title = escape(run.name)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title} – nsimplex</title><style>{STYLE}</style></head><body><main>"
        f'<header><p class="kind">nsimplex run report</p><h1>{title}</h1>'
        '<p class="muted">Higher-order attention: what this run trained, drew and measured.</p></header>'
        f"{_tiles(run)}{''.join(sections)}"
        "<footer>Written by nsimplex report. One file, nothing is loaded from elsewhere.</footer>"
        "</main></body></html>\n"
    )
