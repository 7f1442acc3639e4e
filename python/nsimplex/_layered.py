"""Places of the nodes and edges of a causal graph: layers from causes down to effects."""

from __future__ import annotations

import itertools
import unicodedata
from bisect import bisect_right, insort
from collections import defaultdict

import numpy as np

_SWEEPS = 16

_GAP = 16.0  # between neighbours of a layer, in points

_LAYER = 66.0  # from layer to layer

_BEND = 6.0  # room that an edge takes where it passes a layer

Pair = tuple[int, int]


def causal_order(count: int, edges: list[Pair]) -> list[int]:
    """Nodes with causes before effects; a cycle is entered at the node with the fewest causes
    left."""
    effects: dict[int, list[int]] = defaultdict(list)
    left = [0] * count
    for cause, effect in edges:
        effects[cause].append(effect)
        left[effect] += 1
    waiting = set(range(count))
    ready = [node for node in range(count) if left[node] == 0][::-1]
    order = []
    while waiting:
        node = ready.pop() if ready else min(waiting, key=lambda n: (left[n], n))
        if node not in waiting:
            continue
        waiting.remove(node)
        order.append(node)
        for effect in effects[node]:
            left[effect] -= 1
            if left[effect] == 0 and effect in waiting:
                ready.append(effect)
    return order


def layers_of(count: int, edges: list[Pair], order: list[int]) -> list[int]:
    """The length of the longest path to each node, over the edges that go along the order."""
    rank = {node: at for at, node in enumerate(order)}
    layer = [0] * count
    for cause, effect in sorted(edges, key=lambda edge: rank[edge[0]]):
        if rank[cause] < rank[effect]:
            layer[effect] = max(layer[effect], layer[cause] + 1)
    return layer


def crossings(upper: list[int], lower: list[int], below: dict[int, list[int]]) -> int:
    """How many pairs of edges between two neighbouring layers cross."""
    place = {node: at for at, node in enumerate(lower)}
    seen: list[int] = []
    count = 0
    for node in upper:
        ends = [place[other] for other in below[node]]
        count += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return count


def _ordered(
    rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]
) -> list[list[int]]:
    """Layers by barycentre sweeps, down and up in turn; the sweep with the fewest crossings is
    kept."""

    def total() -> int:
        return sum(crossings(upper, lower, below) for upper, lower in itertools.pairwise(rows))

    best, least = [list(row) for row in rows], total()
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        steps = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for at in steps:
            place = {node: x for x, node in enumerate(rows[at - 1 if down else at + 1])}
            own = {node: x for x, node in enumerate(rows[at])}
            middle = {
                n: np.mean([place[o] for o in neighbours[n]]) if neighbours[n] else own[n]
                for n in rows[at]
            }
            rows[at].sort(key=lambda node: (middle[node], own[node]))
        if (count := total()) < least:
            best, least = [list(row) for row in rows], count
        if least == 0:
            break
    return best


def _apart(wanted: list[float], distances: list[float]) -> np.ndarray:
    """Places nearest to the wanted ones, by squares, in this order and at least so far apart."""
    offsets = np.concatenate([[0.0], np.cumsum(distances)])
    blocks: list[list[float]] = []  # sum, count
    for value in np.asarray(wanted) - offsets:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    return np.concatenate([np.full(int(count), total / count) for total, count in blocks]) + offsets


def place_nodes(
    edges: list[Pair], widths: list[float]
) -> tuple[np.ndarray, list[list[tuple[float, float]]]]:
    """Middles [M, 2] of nodes, in points, y from 0 down, and for every edge the points that it
    passes in between."""
    count = len(widths)
    layer = layers_of(count, edges, causal_order(count, edges))
    rows: list[list[int]] = [[] for _ in range(max(layer, default=0) + 1)]
    for node in range(count):
        rows[layer[node]].append(node)
    width = list(widths)
    above, below = defaultdict(list), defaultdict(list)
    bends = []
    for cause, effect in edges:
        high, low = sorted((cause, effect), key=lambda node: layer[node])
        chain = []
        for at in range(layer[high] + 1, layer[low]):
            chain.append(len(width))
            rows[at].append(len(width))
            width.append(_BEND)
        path = [high, *chain, low]
        if layer[high] < layer[low]:
            for upper, lower in itertools.pairwise(path):
                below[upper].append(lower)
                above[lower].append(upper)
        bends.append(chain if high == cause else chain[::-1])
    rows = _ordered(rows, above, below)
    x = np.zeros(len(width))
    distances = [
        [(width[a] + width[b]) / 2 + _GAP for a, b in itertools.pairwise(row)] for row in rows
    ]
    for row, apart in zip(rows, distances):
        x[row] = _apart([0.0] * len(row), apart)
    for sweep in range(_SWEEPS):
        for at in range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1):
            near = [above[n] + below[n] for n in rows[at]]
            x[rows[at]] = _apart(
                [float(np.mean(x[n])) if n else x[own] for own, n in zip(rows[at], near)],
                distances[at],
            )
    y = np.zeros(len(width))
    for at, row in enumerate(rows):
        y[row] = -_LAYER * at
    places = np.stack([x, y], axis=1)
    return places[:count], [[tuple(places[node]) for node in chain] for chain in bends]


def letters(text: str) -> float:
    """The width of a text, in letters."""
    return sum(2.0 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def _ports(ends: list[tuple[int, int, float]], widths: list[float]) -> dict[tuple[int, int], float]:
    """Shifts of the ends of edges along the border of their node, so that they do not all meet in
    one point; an end is (node with its side, edge, where the edge comes from)."""
    by_side = defaultdict(list)
    for side, edge, x in ends:
        by_side[side].append((x, edge))
    shifts = {}
    for side, own in by_side.items():
        step = min(9.0, 0.7 * widths[abs(side) - 1] / len(own))
        for at, (_, edge) in enumerate(sorted(own)):
            shifts[side, edge] = step * (at - (len(own) - 1) / 2)
    return shifts


def edge_curves(
    edges: list[Pair], places: np.ndarray, bends: list, widths: list[float], height: float
) -> list[np.ndarray]:
    """Points that each edge passes, from the border of its cause to that of its effect."""
    routes, ends = [], []
    for number, ((cause, effect), passed) in enumerate(zip(edges, bends)):
        route = [tuple(places[cause]), *passed, tuple(places[effect])]
        # Sides of nodes: the lower one is node + 1, the upper one is -(node + 1).
        falls = route[0][1] >= route[-1][1]
        level = route[0][1] == route[-1][1]
        start = (cause + 1) * (1 if falls else -1)
        end = (effect + 1) * (-1 if falls and not level else 1)
        routes.append((route, start, end))
        ends += [(start, number, route[1][0]), (end, number, route[-2][0])]
    shifts = _ports(ends, widths)
    curves = []
    for number, (route, start, end) in enumerate(routes):
        points = np.array(route, dtype=float)
        for at, side in ((0, start), (-1, end)):
            points[at] += (shifts[side, number], -np.sign(side) * (height / 2 + 1))
        if route[0][1] == route[-1][1]:  # within a layer: below it and back
            points = np.insert(points, 1, (points[0] + points[-1]) / 2 - (0, 16), axis=0)
        curves.append(points)
    return curves


def bezier_pieces(points: np.ndarray) -> list[list[np.ndarray]]:
    """Cubic pieces through the points of an edge, after the first one: two controls and an end."""
    pieces = []
    level = points[0][1] == points[-1][1]
    for a, b in itertools.pairwise(points):
        half = np.array([0, (b[1] - a[1]) / 2])
        # Nodes are left and entered straight from above or below; within a layer, the bend is
        # passed level.
        controls = (
            [a + half, b - half]
            if not level
            else [
                np.array([a[0], min(a[1], b[1])]),
                np.array([b[0], min(a[1], b[1])]),
            ]
        )
        pieces.append([*controls, b])
    return pieces
