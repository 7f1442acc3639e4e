"""``python -m nsimplex.lab.scale``: predictions for many ranks and long contexts, by the cost model
of :mod:`nsimplex.distributed.costs`. Exit code 0, or 2 with one line for wrong input."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from .._printable import exit_code
from .._whole_file import whole_file
from ..distributed.costs import (
    LayerShape,
    context_parallel_bytes,
    data_parallel_bytes,
    exposed_share,
    layer_flops,
    tensor_parallel_bytes,
)

__all__ = ["Setting", "forward_table", "main", "step_table"]

#: Windows by order: none, 32 x 512, 8 x 8 x 64.
WINDOWS: dict[int, list[int] | None] = {1: None, 2: [32, 512], 3: [8, 8, 64]}
_MOST = 1 << 30


@dataclass(frozen=True)
class Setting:
    """Contexts and numbers of ranks, and what a rank computes and sends in a second."""

    contexts: Sequence[int] = (1 << 17, 1 << 20, 10 << 20)
    ranks: Sequence[int] = (64, 512, 4096)
    flops_per_second: float = 4e14
    bytes_per_second: float = 5e10

    def share(self, flops: float, sent: float) -> float:
        return exposed_share(flops, sent, self.flops_per_second, self.bytes_per_second)


def shape_of(order: int, tokens: int) -> LayerShape:
    """A block with C = 8192, 128 query heads and 1 key head of width 128, hidden 22528, in bf16."""
    return LayerShape(tokens, 8192, 128, 1, 128, order, WINDOWS[order], 22528)


class Forward(NamedTuple):
    """A forward pass of a block whose sequence is divided among ranks."""

    order: int
    tokens: int
    ranks: int
    flops: float  #: of a rank
    received: int  #: bytes of a rank in the middle, the mean of a causal gather
    share: float  #: seconds of messages per second of compute


def forward_table(setting: Setting) -> list[Forward]:
    """Context parallel layers: every order, context and number of ranks."""
    rows = []
    for order in WINDOWS:
        for tokens in setting.contexts:
            shape = shape_of(order, tokens)
            for ranks in setting.ranks:
                flops, received = layer_flops(shape) / ranks, context_parallel_bytes(shape, ranks)
                share = setting.share(flops, received)
                rows.append(Forward(order, tokens, ranks, flops, received, share))
    return rows


class Step(NamedTuple):
    """A training step of a block, divided in one way."""

    order: int
    tokens: int
    way: str
    shares: list[float | None]  #: seconds of messages per second of compute, by number of ranks


def step_table(setting: Setting) -> list[Step]:
    """The forward and the backward pass of a block, for every way to divide it. None: more ranks
    than heads."""
    rows = []
    for order in WINDOWS:
        for tokens in setting.contexts:
            shape = shape_of(order, tokens)
            products = 2.0 * shape.batch * shape.tokens * shape.weights
            flops = 3 * products + 4 * (layer_flops(shape) - products)
            context = [2 * context_parallel_bytes(shape, own) for own in setting.ranks]
            tensor = [2 * tensor_parallel_bytes(shape, own) for own in setting.ranks]
            shards = [data_parallel_bytes(shape, own, sharded=True) for own in setting.ranks]
            ways: list[tuple[str, list[float | None]]] = [
                (
                    "context parallel",
                    [setting.share(flops / own, sent) for own, sent in zip(setting.ranks, context)],
                ),
                (
                    "tensor parallel",
                    [
                        setting.share(flops / own, sent) if own <= shape.heads else None
                        for own, sent in zip(setting.ranks, tensor)
                    ],
                ),
                ("fully sharded", [setting.share(flops, sent) for sent in shards]),
            ]
            rows += [Step(order, tokens, way, shares) for way, shares in ways]
    return rows


def _lines(setting: Setting) -> list[str]:
    """Both tables as Markdown."""
    text = [
        "| order | tokens | ranks | flops per rank | bytes per rank | communication / compute |"
    ]
    text.append("| --- | --- | --- | --- | --- | --- |")
    for own in forward_table(setting):
        text.append(
            f"| {own.order} | {own.tokens} | {own.ranks} | {own.flops:.2e} | {own.received} | "
            f"{own.share:.2g} |"
        )
    counts = [f"{count} ranks" for count in setting.ranks]
    text += ["", "| order | tokens | divided by | " + " | ".join(counts) + " |"]
    text.append("| --- " * (3 + len(counts)) + "|")
    for step in step_table(setting):
        shares = ["-" if own is None else f"{own:.2g}" for own in step.shares]
        text.append(f"| {step.order} | {step.tokens} | {step.way} | " + " | ".join(shares) + " |")
    return text


def draw(setting: Setting, path: str | os.PathLike[str]) -> None:
    """An SVG with a field per order: communication / compute of context parallel layers against the
    number of ranks, a line per context. The number stands at the end of its line.

    Raises:
        ValueError: matplotlib is missing.
    """
    try:
        import matplotlib
    except ImportError:
        raise ValueError(
            "--figure needs matplotlib: python -m pip install matplotlib (the extra plots)"
        ) from None
    from matplotlib.figure import Figure

    from ..report.elements import INK, MUTED, SERIES, STYLE, picture, svg

    rows = forward_table(setting)
    style: dict[Any, Any] = {**STYLE, "font.size": 11}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        fields = figure.subplots(1, len(WINDOWS), sharey=True)
        for axes, (order, window) in zip(fields, WINDOWS.items()):
            for color, tokens in zip(SERIES * len(setting.contexts), setting.contexts):
                own = [row for row in rows if (row.order, row.tokens) == (order, tokens)]
                axes.plot([row.ranks for row in own], [row.share for row in own], color=color)
                last = own[-1]
                axes.annotate(
                    f"{last.share:.2g}",
                    (last.ranks, last.share),
                    (4, 0),
                    textcoords="offset points",
                    color=color,
                    va="center",
                )
            axes.axhline(1, color=MUTED, linewidth=1.2, linestyle="--")
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(list(setting.ranks), [str(count) for count in setting.ranks])
            axes.minorticks_off()
            axes.set_xlim(min(setting.ranks) * 0.8, max(setting.ranks) * 3)
            reach = "no window" if window is None else " x ".join(map(str, window))
            axes.set_title(f"order {order}, {reach}", color=INK, fontsize=11)
            axes.set_xlabel("ranks")
        fields[0].set_ylabel("communication / compute")
        names = [f"{tokens} tokens" for tokens in setting.contexts]
        lines = fields[0].get_lines()[: len(names)]
        figure.legend(lines, names, loc="outside upper center", ncols=len(names), frameon=False)
        alt = "Communication divided by compute of context parallel layers against the ranks"
        text = svg(figure, "scale", alt, "")
    with whole_file(path) as file:
        file.write(picture(text, 900))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _counts(option: str, text: str) -> list[int]:
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(1 <= value <= _MOST for value in values):
        raise ValueError(
            f"{option}: expected whole numbers from 1 to {_MOST}, with commas, got {text!r:.40}"
        )
    return sorted({*values})


def _run(arguments: list[str]) -> None:
    defaults = Setting()
    joined = {name: ",".join(map(str, getattr(defaults, name))) for name in ("contexts", "ranks")}
    parser = _Parser(
        prog="nsimplex.lab.scale", description="Print the predictions of the cost model"
    )
    said = {"contexts": "tokens of a sequence", "ranks": "numbers of ranks"}
    for name, text in joined.items():
        parser.add_argument(
            f"--{name}", default=text, metavar="N,..", help=f"{said[name]} ({text})"
        )
    parser.add_argument("--flops", type=float, default=defaults.flops_per_second, metavar="X",
                        help="flops per second and rank (4e14)")  # fmt: skip
    parser.add_argument("--bytes", type=float, default=defaults.bytes_per_second, metavar="X",
                        help="bytes per second and rank (5e10)")  # fmt: skip
    parser.add_argument("--figure", default="", metavar="SVG", help="also draw the first table")
    given = parser.parse_args(arguments)
    for name in ("flops", "bytes"):
        if not 0 < getattr(given, name) < float("inf"):
            raise ValueError(f"--{name}: expected a positive number, got {getattr(given, name)}")
    contexts, ranks = (_counts(f"--{name}", getattr(given, name)) for name in joined)
    if max(ranks) > min(contexts):
        raise ValueError(
            f"--ranks: expected at most the {min(contexts)} tokens of the shortest context, got "
            f"{max(ranks)}"
        )
    setting = Setting(contexts, ranks, given.flops, given.bytes)
    if given.figure:
        draw(setting, given.figure)
    print("\n".join(_lines(setting)))


def main(arguments: list[str] | None = None) -> int:
    return exit_code(lambda: _run(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
