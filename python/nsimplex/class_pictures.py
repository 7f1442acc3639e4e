"""Pictures of the classes of equivariant layers: ``python -m nsimplex.class_pictures FOLDER
[--orders 4]``.

The command writes one SVG for every k -> l, drawn from the classes. Every block is a node. The
input tuple is a path i1, i2, .. over the nodes, and the output tuple is a path j1, j2, .. Nodes of
the input alone are on the left, nodes of both tuples in the middle, and nodes of the output alone
on the right.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from pathlib import Path

from ._choices import ClassSet
from ._printable import exit_code
from ._whole_file import whole_file
from .equivariant_classes import EquivariantClass, Kind, equivariant_classes

__all__ = ["class_picture", "main"]

_CELL, _TITLE, _COLUMNS, _RADIUS, _SPACING = 216, 22, 5, 18, 64
_INPUT, _OUTPUT, _TEXT = "#3366aa", "#d9772b", "#333333"

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" fill="{text}">
<defs>
<marker id="i" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" \
markerWidth="9" markerHeight="9" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="{input}"/></marker>
<marker id="j" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" \
markerWidth="9" markerHeight="9" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="{output}"/></marker>
</defs>
<rect width="{width}" height="{height}" fill="#ffffff"/>"""


def _columns(each: EquivariantClass) -> list[list[int]]:
    """Blocks of the input alone, of both tuples, and of the output alone. Empty columns are left
    out."""
    member, inputs = each.members[0], each.inputs
    first, second = set(member[:inputs]), set(member[inputs:])
    return [sorted(c) for c in (first - second, first & second, second - first) if c]


def _places(columns: list[list[int]], height: float) -> dict[int, tuple[float, float]]:
    """Position of the node of every block. Each column is centred."""
    return {
        block: (
            _CELL * (x + 1) / (len(columns) + 1),
            (height + _TITLE + (2 * y + 1 - len(column)) * _SPACING) / 2,
        )
        for x, column in enumerate(columns)
        for y, block in enumerate(column)
    }


def _step(start, end, bend: float) -> str:
    """A path from node to node, bent to one side. A path from a node to itself is a loop on that
    side."""
    (x, y), (u, v) = start, end
    if start == end:
        side = -1 if bend > 0 else 1
        return f"M{x - 7:.1f} {y + side * (_RADIUS - 1)}c-14 {side * 26} 28 {side * 26} 14 0"
    along = math.atan2(v - y, u - x)
    # The path leaves and enters a little to the side, so that steps in opposite directions do not
    # meet.
    turn = -math.copysign(0.45, bend)
    points = (
        (x + _RADIUS * math.cos(along + turn), y + _RADIUS * math.sin(along + turn)),
        ((x + u) / 2 + bend * math.sin(along), (y + v) / 2 - bend * math.cos(along)),
        (u - _RADIUS * math.cos(along - turn), v - _RADIUS * math.sin(along - turn)),
    )
    return "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*(c for p in points for c in p))


def _names(x: float, y: float, names: list[str]) -> str:
    """Labels of a node in the two tuples. They take two lines if one line is too short."""
    inputs, outputs = ([n for n in names if n[0] == side] for side in "ij")
    lines = [names]
    if len(names) > 2:
        lines = [inputs, outputs] if inputs and outputs else [names[:2], names[2:]]
    size = 9 if all(len(line) < 3 for line in lines) else 7
    return "\n".join(
        f'<text x="{x:.1f}" y="{y + 3 + 10 * row - 5 * (len(lines) - 1):.1f}" text-anchor="middle" '
        f'font-size="{size}">{" ".join(line)}</text>'
        for row, line in enumerate(lines)
    )


def _cell(each: EquivariantClass, height: float) -> str:
    member, inputs = each.members[0], each.inputs
    places = _places(_columns(each), height)
    parts = [f'<text x="{_CELL / 2}" y="14" text-anchor="middle">{each.name}</text>']
    steps = set(itertools.pairwise(member[:inputs]))
    sides = (("i", member[:inputs], _INPUT, 12.0), ("j", member[inputs:], _OUTPUT, -12.0))
    for side, path, colour, usual in sides:
        for start, end in itertools.pairwise(path):
            # The steps of input and output lie on opposite sides, for any direction of the input's.
            bend = abs(usual) if start != end and (end, start) in steps else usual
            parts.append(
                f'<path d="{_step(places[start], places[end], bend)}" fill="none" '
                f'stroke="{colour}" '
                f'stroke-width="1.8" marker-end="url(#{side})"/>'
            )
    for block, (x, y) in places.items():
        names = [
            f"i{p + 1}" if p < inputs else f"j{p - inputs + 1}"
            for p, b in enumerate(member)
            if b == block
        ]
        is_input, is_output = block in member[:inputs], block in member[inputs:]
        stroke = _INPUT if is_input else _OUTPUT
        # A dashed node runs through all other nodes, and the class sums over it.
        dash = "" if is_output else ' stroke-dasharray="3 2"'
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="#ffffff" stroke="{stroke}" '
            f'stroke-width="1.8"{dash}/>'
        )
        if is_input and is_output:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS - 3}" fill="none" '
                f'stroke="{_OUTPUT}" stroke-width="1.8"/>'
            )
        parts.append(_names(x, y, names))
    return "\n".join(parts)


def class_picture(input: Kind, output: Kind, classes: ClassSet = "all") -> str:
    """All classes of a layer between two kinds of tensors as one SVG, in canonical order.

    The input tuple is blue and the output tuple is orange. The class sums over a dashed node, which
    runs through all nodes that are not already in the picture.
    """
    every = equivariant_classes(input, output, classes)
    columns = min(len(every), _COLUMNS)
    rows = -(-len(every) // columns)
    height = (
        _TITLE + 64 + _SPACING * max((len(c) for each in every for c in _columns(each)), default=1)
    )
    size = {"width": columns * _CELL, "height": rows * height}
    lines = [_HEAD.format(**size, text=_TEXT, input=_INPUT, output=_OUTPUT)]
    for number, each in enumerate(every):
        x, y = number % columns * _CELL, number // columns * height
        lines.append(f'<g transform="translate({x} {y})">\n{_cell(each, height)}\n</g>')
    return "\n".join([*lines, "</svg>\n"])


def _run(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m nsimplex.class_pictures",
        description="Draw the classes of equivariant layers as one SVG for every k -> l",
    )
    parser.add_argument("folder", type=Path, help="folder to write, which is made if it is missing")
    parser.add_argument("--orders", type=int, default=4, help="largest k + l, at most 7 (4)")
    options = parser.parse_args(arguments)
    if not 0 <= options.orders <= 7:
        raise ValueError(f"--orders: expected 0 to 7, got {options.orders}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for total in range(options.orders + 1):
        for inputs in range(total + 1):
            path = options.folder / f"classes-{inputs}-{total - inputs}.svg"
            with whole_file(path, encoding="utf-8") as file:
                file.write(class_picture(inputs, total - inputs))


def main(arguments: list[str] | None = None) -> int:
    """Draws the pictures; returns the exit code."""
    return exit_code(lambda: _run(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
