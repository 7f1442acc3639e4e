"""Matrices as squares: the darker, the larger."""

from __future__ import annotations

from html import escape

import numpy as np

from .dag_figure import short

_MOST_CELLS = 60  # a side; larger matrices are drawn in blocks
_MOST_NAMES = 24
_LEVELS = 10
_CELL = 10


def _blocks(matrix: np.ndarray) -> np.ndarray:
    """A matrix of at most so many cells a side; a block is its entry of largest size, NaN where it has none."""
    count = len(matrix)
    if count <= _MOST_CELLS:
        return matrix
    starts = np.unique(np.linspace(0, count, _MOST_CELLS, endpoint=False).astype(int))
    least, most = np.fmin, np.fmax
    low = least.reduceat(least.reduceat(matrix, starts, axis=0), starts, axis=1)
    high = most.reduceat(most.reduceat(matrix, starts, axis=0), starts, axis=1)
    return np.where(np.abs(low) > np.abs(high), low, high)


def shades(matrix: np.ndarray) -> np.ndarray:
    """Sizes from 0 to 1, signed; NaN where nothing is drawn. On a logarithmic scale where sizes span more than a
    factor of 1000."""
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
                squares = "".join(f"M{_CELL * j} {_CELL * i}h{_CELL}v{_CELL}h-{_CELL}z" for i, j in at.tolist())
                opacity = 0.08 + 0.92 * level / _LEVELS
                parts.append(f'<path d="{squares}" style="fill: var({color}); fill-opacity: {opacity:.2f}"></path>')
    for at, name in enumerate(shown):
        middle = _CELL * (at + 0.75)
        parts.append(f'<text x="-3" y="{middle}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<text transform="translate({middle} -3) rotate(-90)">{escape(name)}</text>')
    view = f"{-margin:.0f} {-margin:.0f} {side + margin + 2:.0f} {side + margin + 2:.0f}"
    style = f"font-size: {_CELL - 1}px; fill: var(--ink)"
    return (
        f'<figure class="matrix"><figcaption>{escape(title)}</figcaption>'
        f'<svg role="img" aria-label="{escape(title)}: {count} by {count} squares" viewBox="{view}" style="{style}">'
        f"{''.join(parts)}</svg></figure>"
    )
