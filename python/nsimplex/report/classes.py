"""Pictures of the classes of equivariant layers: ``python -m nsimplex.report.classes FOLDER [--orders 4]``.

One SVG for every k -> l, drawn from the classes themselves: a node for every block, the input tuple as a path
i1, i2, .. and the output tuple as a path j1, j2, .. over them. What only the input has is on the left, what both
have in the middle, what only the output has on the right.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..equivariant import EquivariantClass, Kind, equivariant_classes

__all__ = ["class_picture", "main"]

_CELL, _TITLE, _COLUMNS, _RADIUS = (170, 150), 22, 5, 15
_INPUT, _OUTPUT, _TEXT = "#3366aa", "#d9772b", "#333333"

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" fill="{text}">
<defs>
<marker id="i" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="{input}"/></marker>
<marker id="j" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0L8 4L0 8z" fill="{output}"/></marker>
</defs>
<rect width="{width}" height="{height}" fill="#ffffff"/>"""


def _places(member: tuple[int, ...], inputs: int) -> dict[int, tuple[float, float]]:
    """Where the node of every block is: three columns, each centred."""
    first, second = set(member[:inputs]), set(member[inputs:])
    columns = [sorted(first - second), sorted(first & second), sorted(second - first)]
    filled = [c for c in columns if c]
    places = {}
    for x, column in enumerate(filled):
        for y, block in enumerate(column):
            places[block] = (
                _CELL[0] * (x + 1) / (len(filled) + 1),
                _TITLE + (_CELL[1] - _TITLE) * (y + 1) / (len(column) + 1),
            )
    return places


def _step(start, end, bend: float) -> str:
    """A path from node to node, bent to one side; from a node to itself a loop on that side."""
    (x, y), (u, v) = start, end
    if start == end:
        side = -1 if bend > 0 else 1
        return f"M{x - 7:.1f} {y + side * 14:.1f}c-14 {side * 26} 28 {side * 26} 14 {side}"
    length = ((u - x) ** 2 + (v - y) ** 2) ** 0.5
    dx, dy = (u - x) / length, (v - y) / length
    across = dy * bend, -dx * bend
    near, far = _RADIUS, _RADIUS + 3
    points = (
        (x + dx * near + across[0] / 3, y + dy * near + across[1] / 3),
        ((x + u) / 2 + across[0], (y + v) / 2 + across[1]),
        (u - dx * far + across[0] / 3, v - dy * far + across[1] / 3),
    )
    return "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*(c for p in points for c in p))


def _cell(each: EquivariantClass) -> str:
    member, inputs = each.members[0], each.inputs
    places = _places(member, inputs)
    parts = [f'<text x="{_CELL[0] / 2}" y="14" text-anchor="middle">{each.name}</text>']
    sides = (("i", member[:inputs], _INPUT, 12.0), ("j", member[inputs:], _OUTPUT, -12.0))
    for side, path, colour, bend in sides:
        for start, end in zip(path, path[1:]):
            parts.append(
                f'<path d="{_step(places[start], places[end], bend)}" fill="none" stroke="{colour}" '
                f'stroke-width="1.8" marker-end="url(#{side})"/>'
            )
    for block, (x, y) in places.items():
        names = [f"i{p + 1}" if p < inputs else f"j{p - inputs + 1}" for p, b in enumerate(member) if b == block]
        is_input, is_output = block in member[:inputs], block in member[inputs:]
        stroke = _INPUT if is_input else _OUTPUT
        # Dashed: this node runs through all others that there are, and the class sums over it.
        dash = "" if is_output else ' stroke-dasharray="3 2"'
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="#ffffff" stroke="{stroke}" stroke-width="1.8"{dash}/>'
        )
        if is_input and is_output:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS - 3}" fill="none" stroke="{_OUTPUT}" stroke-width="1.8"/>'
            )
        size = 9 if len(names) < 3 else 6
        parts.append(
            f'<text x="{x:.1f}" y="{y + 3:.1f}" text-anchor="middle" font-size="{size}">{" ".join(names)}</text>'
        )
    return "\n".join(parts)


def class_picture(input: Kind, output: Kind, classes: str = "all") -> str:
    """All classes of a layer between two kinds of tensors, as one SVG, in canonical order.

    Blue is the input tuple, orange the output tuple. A dashed node is one that the class sums over: it runs
    through all nodes that are not in the picture already.
    """
    every = equivariant_classes(input, output, classes)
    columns = min(len(every), _COLUMNS)
    rows = -(-len(every) // columns)
    size = {"width": columns * _CELL[0], "height": rows * _CELL[1]}
    lines = [_HEAD.format(**size, text=_TEXT, input=_INPUT, output=_OUTPUT)]
    for number, each in enumerate(every):
        x, y = number % columns * _CELL[0], number // columns * _CELL[1]
        lines.append(f'<g transform="translate({x} {y})">\n{_cell(each)}\n</g>')
    return "\n".join([*lines, "</svg>\n"])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m nsimplex.report.classes", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=int, default=4, help="largest k + l")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for total in range(options.orders + 1):
        for inputs in range(total + 1):
            path = options.folder / f"classes-{inputs}-{total - inputs}.svg"
            path.write_text(class_picture(inputs, total - inputs))


if __name__ == "__main__":
    main()
