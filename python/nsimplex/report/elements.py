"""What sections are made of: HTML, and inline SVG in the colours of the page, light or dark."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
import warnings
from collections.abc import Callable
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedFormatter,
    FuncFormatter,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
)

from .._page import POWERS, alone, readable, short
from .run import Row, number


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def amount(value: float | None, digits: int = 1, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


def megabytes(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e6:,.1f} MB"


def whole(row: Row, key: str) -> str:
    """A number of a line without digits behind the point."""
    return amount(number(row, key), 0)


matplotlib.use("svg")  # no display is needed, nor looked for

# matplotlib draws in these stand-ins; the page's style sheet says what they look like.
INK, LINE, MUTED, CARD = "#010101", "#020202", "#030303", "#050505"

SERIES = ["#040401", "#040402", "#040403", "#040404"]

_VARIABLES = {
    INK: "var(--ink)",
    LINE: "var(--line)",
    MUTED: "var(--muted)",
    CARD: "var(--card)",
} | {color: f"var(--series-{i + 1})" for i, color in enumerate(SERIES)}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.parse_math": False,  # names come from files, and a $ in one is a $
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
}


def dashes(index: int) -> str | tuple:
    """The style of the line of a curve; curves of one colour differ by it."""
    return ("-", (0, (4, 2)), (0, (1, 2)))[index // len(SERIES) % 3]


def sentence(text: str) -> str:
    """The sentence above a chart that says what to see in it."""
    return f'<p class="see">{escape(text)}</p>' if text else ""


def svg(
    figure: Figure, name: str, alt: str, see: str, arrange: Callable[[], None] | None = None
) -> str:
    """The figure as an element of the page, below a sentence that says what to see. ``alt`` is what
    it shows, in words, and ``see`` is empty for a picture that stands by itself. Axes that
    matplotlib arranges itself are drawn twice: for wide screens and, narrower, for phones.
    ``arrange`` is called before each drawing. Names that leave a narrow drawing no room make it one
    drawing, which a phone scrolls."""
    return sentence(see) + _pictures(figure, name, alt, arrange or (lambda: None))


def _pictures(figure: Figure, name: str, alt: str, arrange: Callable[[], None]) -> str:
    for axes in figure.axes:
        _write_powers_out(axes.xaxis)
        _write_powers_out(axes.yaxis)
    arrange()
    wide = _drawn(figure, name, alt)
    if figure.get_layout_engine() is None:
        return readable(wide)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _make_narrow(figure)
        arrange()
        narrow = _drawn(figure, f"{name}-narrow", alt)
    if any("not applied" in str(warning.message) for warning in said):
        return readable(wide)
    return readable(wide, "wide") + readable(narrow, "narrow")


def _drawn(figure: Figure, name: str, alt: str) -> str:
    buffer = io.StringIO()
    # The salt keeps the ids of two figures apart and one figure's ids the same every time.
    with (
        matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}),
        warnings.catch_warnings(),
    ):
        # The browser has the letters of every script, whatever matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = _shorter(re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL))
    # Presentation attributes do not know var(); inline styles do, and matplotlib writes those.
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, variable)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


def _shorter(svg: str) -> str:
    """A drawing of matplotlib with numbers to a hundredth of a pixel, fewer lines, no comments."""
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    brief = lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", " ".join(tag[0].split()))
    svg = re.sub(r"<[^>]*>", brief, svg)
    return re.sub(r"\s+(</)|(<(?:g|defs)\b[^>/]*>)\s+", r"\1\2", svg)


_NARROW = 3.75  # inches: letters of 9 points have 11 pixels on a phone, which leaves 330 pixels
_TITLE = 40  # letters of a line


def _make_narrow(figure: Figure) -> None:
    """Arranges a figure anew for a phone: axes below each other, names on several lines. A warning
    of matplotlib says that names leave the axes no room."""
    width, height = figure.get_size_inches()
    row = figure.axes
    places = [axes.get_subplotspec() for axes in row]
    side_by_side = len({place.rowspan.start for place in places if place is not None}) == 1
    if len(row) > 1 and side_by_side:
        grid = figure.add_gridspec(len(row), 1)
        for number, axes in enumerate(row):
            axes.set_subplotspec(grid[number])
        height *= len(row)
    figure.set_size_inches(min(width, _NARROW), height)
    for legend in figure.legends:
        legend.set_ncols(1)
    for axes in row:
        if title := axes.get_title(loc="left"):
            name_axes(axes, textwrap.fill(title, _TITLE))
        axes.set_xlabel(textwrap.fill(axes.get_xlabel(), _TITLE - 8))
    figure.draw_without_rendering()
    for axes in row:
        _part_ticks(axes)


def _part_ticks(axes) -> None:
    """Fewer numbers below the axes, or names at an angle, if they would touch."""
    labels = axes.get_xticklabels(which="both")
    boxes = [text.get_window_extent() for text in labels if text.get_text()]
    boxes.sort(key=lambda box: box.x0)
    if all(left.x1 + 4 < right.x0 for left, right in itertools.pairwise(boxes)):
        return
    if isinstance(axes.xaxis.get_major_formatter(), FixedFormatter):
        for text in axes.get_xticklabels():
            text.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")
    elif axes.get_xscale() == "log":
        axes.xaxis.set_minor_locator(LogLocator(subs=(3.0,)))
    else:
        axes.locator_params(axis="x", nbins=3)


def picture(text: str, width: int = 0) -> str:
    """The picture of :func:`svg` as a separate file, on white. ``width`` in pixels; 0: as wide as
    there is room."""
    text = alone(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])
    wide = f' width="{width}"' if width else ""
    return text.replace(">", f'{wide} font-family="sans-serif">', 1) + "\n"


class _Powers(LogFormatterSciNotation):
    """Powers as text: matplotlib's own are mathematics, which no text here is read as."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = re.sub(
            r"\^\{([^}]*)\}", lambda found: found[1].translate(POWERS), super().__call__(x, pos)
        )
        return (
            re.sub(r"\$?\\mathdefault\{(.*)\}\$?", r"\1", text).replace(r"\times", "×").strip("$")
        )


def _write_powers_out(axis) -> None:
    if axis.get_scale() == "log":
        axis.set_major_formatter(_Powers(axis.get_transform().base))
        axis.set_minor_formatter(_Powers(axis.get_transform().base))


def new_axes(height: float = 3.1, columns: int = 1):
    """A figure and its axes, several side by side where `columns` says so."""
    figure = Figure(figsize=(7.6, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def _thousands(value: float, _position: int) -> str:
    return f"{value:,.0f}"


def finish(axes, xlabel: str, ylabel: str) -> None:
    """Names the axes, the vertical one above the figure."""
    axes.set_xlabel(xlabel)
    axes.set_title(ylabel, loc="left", fontsize=10.5, color=MUTED, pad=10)
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.margins(x=0.02)


def legend_below(axes) -> None:
    """Names the curves of the only axes of a figure below them, where no curve is."""
    axes.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower left",
        ncols=2,
        frameon=False,
        labelcolor="linecolor",
        fontsize=9.5,
    )


def spread_labels(axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Names curves at their right ends, so that no legend is needed. Names of curves that end close
    together lie one above the other."""
    for rank, (x, y, name, color) in enumerate(sorted(ends, key=lambda end: end[1])):
        axes.annotate(
            name,
            (x, y),
            xytext=(8, 14 * (rank - (len(ends) - 1) / 2)),
            textcoords="offset points",
            va="center",
            color=color,
            fontweight="bold",
            annotation_clip=False,
        )


def spread_levels(axes, levels: list[tuple[float, str, str]]) -> None:
    """Dotted lines at heights, each named at its left: the lowest below its line, others above."""
    for rank, (height, name, color) in enumerate(sorted(levels)):
        axes.axhline(height, color=color, linewidth=1.4, linestyle=":")
        axes.annotate(
            name,
            (0.01, height),
            xycoords=("axes fraction", "data"),
            xytext=(0, 16 * rank - 8),
            textcoords="offset points",
            va="center",
            color=color,
        )


def name_axes(axes, text: str) -> None:
    """Names what axes show, at their left."""
    axes.set_title(text, loc="left", fontsize=10.5, color=MUTED, pad=10)


_MOST_CELLS = 60  # a side; larger matrices are drawn in blocks


_MOST_NAMES = 24


_LEVELS = 10


_CELL = 10


def _blocks(matrix: np.ndarray) -> np.ndarray:
    """A matrix of at most _MOST_CELLS cells a side. A block is its entry of largest size, or NaN
    if it has no number."""
    count = len(matrix)
    if count <= _MOST_CELLS:
        return matrix
    starts = np.unique(np.linspace(0, count, _MOST_CELLS, endpoint=False).astype(int))
    least, most = np.fmin, np.fmax
    low = least.reduceat(least.reduceat(matrix, starts, axis=0), starts, axis=1)
    high = most.reduceat(most.reduceat(matrix, starts, axis=0), starts, axis=1)
    return np.where(np.abs(low) > np.abs(high), low, high)


def shades(matrix: np.ndarray) -> np.ndarray:
    """Sizes from 0 to 1, signed; NaN where nothing is drawn. On a logarithmic scale where sizes
    span more than a factor of 1000."""
    sizes = np.abs(matrix)
    known = sizes[np.isfinite(sizes) & (sizes > 0)]
    if known.size == 0:
        return np.full(matrix.shape, np.nan)
    least, most = float(known.min()), float(known.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        if most > 1000 * least:
            least = max(least, most * 1e-6)
            share = np.clip(np.log(sizes / least) / np.log(most / least), 0, 1)
        else:
            share = sizes / most
    return np.where(np.isfinite(matrix) & (sizes > 0), np.sign(matrix) * share, np.nan)


def heat_map(title: str, matrix: np.ndarray, names: list[str]) -> str:
    """One matrix with rows of causes and columns of effects."""
    cells = shades(_blocks(matrix))
    count = len(cells)
    named = len(names) <= _MOST_NAMES and count == len(names)
    shown = [short(name, 12) for name in names] if named else []
    # Names are as large as squares, whose number the width is shared by.
    margin = 0.62 * _CELL * max(map(len, shown), default=0) + 4 if named else 2
    side = count * _CELL
    parts = [f'<rect x="0" y="0" width="{side}" height="{side}" style="fill: var(--code)"></rect>']
    levels = np.ceil(np.abs(np.nan_to_num(cells)) * _LEVELS).clip(1, _LEVELS)
    for sign, color in ((1, "--series-1"), (-1, "--series-2")):
        for level in range(1, _LEVELS + 1):
            at = np.argwhere(((cells >= 0) if sign > 0 else (cells < 0)) & (levels == level))
            if len(at):
                squares = "".join(
                    f"M{_CELL * j} {_CELL * i}h{_CELL}v{_CELL}h-{_CELL}z" for i, j in at.tolist()
                )
                opacity = 0.08 + 0.92 * level / _LEVELS
                parts.append(
                    f'<path d="{squares}" style="fill: var({color}); fill-opacity: '
                    f'{opacity:.2f}"></path>'
                )
    for place, name in enumerate(shown):
        middle = _CELL * (place + 0.75)
        parts.append(f'<text x="-3" y="{middle}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<text transform="translate({middle} -3) rotate(-90)">{escape(name)}</text>')
    view = f"{-margin:.0f} {-margin:.0f} {side + margin + 2:.0f} {side + margin + 2:.0f}"
    style = f"font-size: {_CELL - 1}px; fill: var(--ink)"
    picture = (
        f'<svg role="img" aria-label="{escape(title)}: {count} by {count} squares" '
        f'viewBox="{view}" style="{style}">{"".join(parts)}</svg>'
    )
    return (
        f'<figure class="matrix"><figcaption>{escape(title)}</figcaption>'
        f"{readable(picture) if named else picture}</figure>"
    )
