"""Places of the nodes and edges of a causal graph: rows from causes down to effects."""

from __future__ import annotations

import itertools
import unicodedata
from bisect import bisect_right, insort
from collections import defaultdict

import numpy as np

_SWEEPS = 16

_GAP = 16.0  # between neighbours of a row, in points

_BEND_GAP = 4.0  # between edges that pass a row; half of this more beside a node

_LAYER = 66.0  # from row to row

_BEND = 6.0  # room that an edge takes where it passes a row

_SHARES = (1.0, 0.8, 0.6, 0.45)  # of the widest row, for nodes; the rest is left to passing edges

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


def lines_of(count: int, pairs: list[Pair]) -> dict[int, int]:
    """The line of each node, below those of its causes: near its causes or near its effects,
    whichever makes edges shorter."""
    early = causal_order(count, pairs)
    late = causal_order(count, [(effect, cause) for cause, effect in pairs])[::-1]
    both = [{node: at for at, node in enumerate(order)} for order in (early, late)]
    return min(both, key=lambda line: sum(abs(line[i] - line[j]) for i, j in pairs))


def layers_of(count: int, edges: list[Pair], order: list[int]) -> list[int]:
    """The length of the longest path to each node, over the edges that go along the order."""
    rank = {node: at for at, node in enumerate(order)}
    layer = [0] * count
    for cause, effect in sorted(edges, key=lambda edge: rank[edge[0]]):
        if rank[cause] < rank[effect]:
            layer[effect] = max(layer[effect], layer[cause] + 1)
    return layer


def rows_of(edges: list[Pair], order: list[int], widths: list[float], widest: float) -> list[int]:
    """The row of each node, below those of its causes, where the nodes of a row with the gaps
    between them are at most so wide. Of the nodes whose causes have rows, those with the longest
    path to an effect come first (Coffman and Graham, 1972)."""
    rank = {node: at for at, node in enumerate(order)}
    along = [(cause, effect) for cause, effect in edges if rank[cause] < rank[effect]]
    down = layers_of(len(widths), [(effect, cause) for cause, effect in along], order[::-1])
    causes, effects = defaultdict(list), defaultdict(list)
    for cause, effect in along:
        causes[effect].append(cause)
        effects[cause].append(effect)
    left = [len(causes[node]) for node in range(len(widths))]
    ready = [node for node in order if left[node] == 0]
    row = [0] * len(widths)
    at, room = 0, widest
    while ready:
        ready.sort(key=lambda node: (-down[node], rank[node]))
        fits = [
            node
            for node in ready
            if all(row[cause] < at for cause in causes[node])
            and (widths[node] <= room or room == widest)
        ]
        if not fits:
            at, room = at + 1, widest
            continue
        node = fits[0]
        ready.remove(node)
        row[node] = at
        room -= widths[node] + _GAP
        for effect in effects[node]:
            left[effect] -= 1
            if left[effect] == 0:
                ready.append(effect)
    return row


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


def _apart(wanted: list[float], distances: list[float], least: float, most: float) -> np.ndarray:
    """Places nearest to the wanted ones, by squares, in this order, at least so far apart, and from
    ``least`` to ``most`` if there is room for that."""
    offsets = np.concatenate([[0.0], np.cumsum(distances)])
    blocks: list[list[float]] = []  # sum, count
    for value in np.asarray(wanted) - offsets:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] > blocks[-1][0] * blocks[-2][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    places = np.concatenate([np.full(int(count), total / count) for total, count in blocks])
    return np.clip(places, least, max(most - offsets[-1], least)) + offsets


def _with_bends(
    edges: list[Pair], row: list[int], widths: list[float]
) -> tuple[list[list[int]], list[float], dict[int, list[int]], dict[int, list[int]], list]:
    """Nodes and the places where edges pass, by rows; the widths of both, which of them edges join
    upwards and downwards, and where each edge passes."""
    rows: list[list[int]] = [[] for _ in range(max(row, default=0) + 1)]
    for node, own in enumerate(row):
        rows[own].append(node)
    width = list(widths)
    above, below = defaultdict(list), defaultdict(list)
    bends = []
    for cause, effect in edges:
        high, low = sorted((cause, effect), key=lambda node: row[node])
        chain = []
        for at in range(row[high] + 1, row[low]):
            chain.append(len(width))
            rows[at].append(len(width))
            width.append(_BEND)
        path = [high, *chain, low]
        if row[high] < row[low]:
            for upper, lower in itertools.pairwise(path):
                below[upper].append(lower)
                above[lower].append(upper)
        bends.append(chain if high == cause else chain[::-1])
    return rows, width, above, below, bends


def _distances(row: list[int], width: list[float], nodes: int) -> list[float]:
    """From each middle of a row to the next one."""
    gaps = {0: _BEND_GAP, 1: 1.5 * _BEND_GAP, 2: _GAP}  # by the number of nodes beside a gap
    return [
        (width[a] + width[b]) / 2 + gaps[(a < nodes) + (b < nodes)]
        for a, b in itertools.pairwise(row)
    ]


def place_nodes(
    edges: list[Pair], widths: list[float], widest: float = np.inf
) -> tuple[np.ndarray, list[list[tuple[float, float]]]]:
    """Middles [M, 2] of nodes, in points, y from 0 down, and for every edge the points that it
    passes in between. A layer that is wider than ``widest`` is parted into rows; many edges that
    pass a row may still need more room."""
    count = len(widths)
    order = causal_order(count, edges)

    def laid_out(row: list[int]) -> tuple:
        rows, width, above, below, bends = _with_bends(edges, row, widths)
        rows = _ordered(rows, above, below)
        distances = [_distances(each, width, count) for each in rows]
        room = max(
            sum(apart) + (width[each[0]] + width[each[-1]]) / 2 if each else 0.0
            for each, apart in zip(rows, distances)
        )
        return room, rows, width, above, below, bends, distances

    found = laid_out(layers_of(count, edges, order))
    shares = iter(_SHARES)
    while found[0] > widest and (share := next(shares, None)) is not None:
        other = laid_out(rows_of(edges, order, widths, share * widest))
        found = min(found, other, key=lambda each: each[0])
    room, rows, width, above, below, bends, distances = found
    half = max(room, widest) / 2
    x = np.zeros(len(width))
    for each, apart in zip(rows, distances):
        x[each] = _apart([0.0] * len(each), apart, -np.inf, np.inf)
    for sweep in range(_SWEEPS):
        for at in range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1):
            near = [above[n] + below[n] for n in rows[at]]
            wanted = [float(np.mean(x[n]) if n else x[own]) for own, n in zip(rows[at], near)]
            ends = (width[rows[at][0]] / 2 - half, half - width[rows[at][-1]] / 2)
            x[rows[at]] = _apart(wanted, distances[at], *ends)
    y = np.zeros(len(width))
    for at, row in enumerate(rows):
        y[row] = -_LAYER * at
    places = np.stack([x, y], axis=1)
    return places[:count], [[tuple(places[node]) for node in chain] for chain in bends]


def letters(text: str) -> float:
    """The width of a text, in letters."""
    return sum(2.0 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)


def _ports(
    ends: list[tuple[int, int, float]], widths: list[float]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Shifts of the ends of edges along the border of their node, so that they do not all meet in
    one point, and the room of each; an end is (node with its side, edge, where the edge comes
    from)."""
    by_side = defaultdict(list)
    for side, edge, x in ends:
        by_side[side].append((x, edge))
    ports = {}
    for side, own in by_side.items():
        step = min(12.0, 0.95 * widths[abs(side) - 1] / len(own))
        for at, (_, edge) in enumerate(sorted(own)):
            ports[side, edge] = (step * (at - (len(own) - 1) / 2), step)
    return ports


def edge_curves(
    edges: list[Pair], places: np.ndarray, bends: list, widths: list[float], height: float
) -> tuple[list[np.ndarray], list[float]]:
    """Points that each edge passes, from the border of its cause to that of its effect, and the
    room that its end has beside others."""
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
    ports = _ports(ends, widths)
    curves = []
    for number, (route, start, end) in enumerate(routes):
        points = np.array(route, dtype=float)
        for at, side in ((0, start), (-1, end)):
            points[at] += (ports[side, number][0], -np.sign(side) * (height / 2 + 1))
        if route[0][1] == route[-1][1]:  # within a layer: below it and back
            points = np.insert(points, 1, (points[0] + points[-1]) / 2 - (0, 16), axis=0)
        curves.append(points)
    return curves, [ports[end, number][1] for number, (_, _, end) in enumerate(routes)]


def bezier_points(points: np.ndarray) -> np.ndarray:
    """Cubic pieces through the points of an edge, y down: the first point, and two controls and an
    end per piece."""
    curve = [points[0]]
    level = points[0][1] == points[-1][1]
    for a, b in itertools.pairwise(points):
        # Nodes are left and entered straight from above or below; within a layer, the bend is
        # passed level.
        middle = max(a[1], b[1]) if level else (a[1] + b[1]) / 2
        curve += [np.array([a[0], middle]), np.array([b[0], middle]), b]
    return np.array(curve)
