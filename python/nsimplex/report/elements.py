"""What figures are made of: inline SVG that follows the page, whose colours text and lines take, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from html import escape

import matplotlib

matplotlib.use("svg")  # no display is needed, nor looked for

from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, MaxNLocator  # noqa: E402

# matplotlib draws in these stand-ins; the page's style sheet says what they look like.
INK, LINE, MUTED, CARD = "#010101", "#020202", "#030303", "#050505"
SERIES = ["#040401", "#040402", "#040403", "#040404"]
_VARIABLES = {INK: "var(--ink)", LINE: "var(--line)", MUTED: "var(--muted)", CARD: "var(--card)"} | {
    color: f"var(--series-{i + 1})" for i, color in enumerate(SERIES)
}

STYLE = {
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


def svg(figure: Figure, name: str, alt: str) -> str:
    """The figure as an element of the page; `alt` is what it shows, in words."""
    buffer = io.StringIO()
    for axes in figure.axes:
        _write_powers_out(axes.xaxis)
        _write_powers_out(axes.yaxis)
    # The salt keeps the ids of two figures apart and one figure's ids the same every time.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}), warnings.catch_warnings():
        # The browser has the letters of every script, whatever matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Presentation attributes do not know var(); inline styles do, and matplotlib writes those.
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, variable)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)


class _Powers(LogFormatterSciNotation):
    """Powers as text: matplotlib's own are mathematics, which no text here is read as."""

    _DIGITS = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = re.sub(r"\^\{([^}]*)\}", lambda found: found[1].translate(self._DIGITS), super().__call__(x, pos))
        return re.sub(r"\$?\\mathdefault\{(.*)\}\$?", r"\1", text).replace(r"\times", "×").strip("$")


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


def label(axes, x: float, y: float, text: str, color: str, shift: float = 0) -> None:
    """Names a curve at its right end, so that no legend is needed."""
    axes.annotate(
        text,
        (x, y),
        xytext=(8, shift),
        textcoords="offset points",
        va="center",
        color=color,
        fontweight="bold",
        annotation_clip=False,
    )


def spread_labels(axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Names curves that end close together, one above the other."""
    for rank, (x, y, name, color) in enumerate(sorted(ends, key=lambda end: end[1])):
        label(axes, x, y, name, color, shift=14 * (rank - (len(ends) - 1) / 2))
