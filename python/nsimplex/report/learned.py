"""Graphs in files beside the lines of a run, and where the nodes of a learned one lie in layers."""

from __future__ import annotations

import csv
import io
import itertools
from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .run import file_name, read_text

_LARGEST = 1e300

RIGHT, REVERSED, EXTRA, MISSING = "right", "reversed", "extra", "missing"

LEARNED = ""  #: of edges where no true graph is known


@dataclass(frozen=True)
class Edge:
    cause: int
    effect: int
    weight: float  #: that was learned; the true one of a missing edge
    score: float  #: NaN where there is none
    kind: str = LEARNED


@dataclass
class Ball:
    """Points of ball.csv and edges of edges.tsv, as ``nsimplex causal embed --out`` writes them."""

    name: str
    names: list[str]
    generality: np.ndarray  #: [M]
    radius: np.ndarray  #: [M], hyperbolic
    points: np.ndarray  #: [M, d], in the unit ball
    edges: list[tuple[int, int, float]]  #: cause, effect, weight; the heaviest first


def _cells_of(path: Path, delimiter: str) -> list[list[str]]:
    try:
        return [
            row
            for row in csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
            if row
        ]
    except csv.Error:
        return []


def read_ball(folder: Path) -> Ball | None:
    """The ball of a run directory; None where there is none that can be drawn."""
    rows = _cells_of(folder / "ball.csv", ",")
    if len(rows) < 2 or rows[0][:3] != ["name", "generality", "radius"]:
        return None
    try:
        numbers = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    except ValueError:
        return None
    if numbers.ndim != 2 or numbers.shape[1] < 4 or not np.isfinite(numbers).all():
        return None
    names = [row[0] for row in rows[1:]]
    place = {name: at for at, name in enumerate(names)}
    edges = []
    for row in _cells_of(folder / "edges.tsv", "\t")[1:]:
        try:
            edges.append((place[row[0]], place[row[1]], float(row[2])))
        except (IndexError, KeyError, ValueError):
            continue
    edges.sort(key=lambda edge: -abs(edge[2]))
    return Ball(file_name(folder), names, numbers[:, 0], numbers[:, 1], numbers[:, 2:], edges)


@dataclass
class LearnedGraph:
    """Matrices [M, M] of causes in rows and effects in columns."""

    name: str  #: of the folder
    names: list[str]
    weights: np.ndarray
    scores: np.ndarray | None = None
    truth: np.ndarray | None = None

    def edges(self) -> list[Edge]:
        """Learned edges and missing ones, the highest score first; edges without a score come
        last."""
        there = self.weights != 0
        kinds = np.full(there.shape, LEARNED, dtype=object)
        shown = there
        if self.truth is not None:
            true = self.truth != 0
            missing = true & ~there & ~there.T
            kinds[there] = EXTRA
            kinds[there & true.T] = REVERSED
            kinds[there & true] = RIGHT
            kinds[missing] = MISSING
            shown = there | missing
        edges = []
        for i, j in np.argwhere(shown).tolist():
            weight = self.weights[i, j] if there[i, j] else self.truth[i, j]
            score = float("nan") if self.scores is None else float(self.scores[i, j])
            edges.append(Edge(i, j, float(weight), score, kinds[i, j]))
        return sorted(
            edges, key=lambda e: (-e.score if e.score == e.score else np.inf, -abs(e.weight))
        )


def _cleaned(matrix: np.ndarray, missing: float) -> np.ndarray:
    """Without a diagonal, infinite numbers as large ones, and `missing` for what is no number."""
    cleaned = np.clip(
        np.nan_to_num(matrix, nan=missing, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST
    )
    np.fill_diagonal(cleaned, 0)
    return cleaned


def _matrix(path: Path) -> tuple[list[str], np.ndarray] | None:
    """Names and numbers of a square matrix; a first column of names is left out. None where there
    is no such matrix."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        names = next(reader, [])
        cells = [row for row in reader if row]
        if names and names[0] == "" and len(cells) == len(names) - 1:
            names, cells = names[1:], [row[1:] for row in cells]
        numbers = np.array([np.array(row, dtype=float) for row in cells])
    except (csv.Error, ValueError):
        return None
    return (names, numbers) if names and numbers.shape == (len(names), len(names)) else None


def _edge_list(path: Path) -> tuple[list[str], np.ndarray] | None:
    """The same from a list of edges; lines that are broken are left out."""
    place: dict[str, int] = {}
    found = []
    try:
        for row in csv.reader(io.StringIO(read_text(path), newline=""), delimiter="\t"):
            try:
                cause, effect, weight = row[0], row[1], float(row[2])
            except (IndexError, ValueError):
                continue
            found.append(
                (place.setdefault(cause, len(place)), place.setdefault(effect, len(place)), weight)
            )
    except csv.Error:
        pass  # what was read before is whole
    if not found or len(place) > 5000:
        return None
    weights = np.zeros((len(place), len(place)))
    for cause, effect, weight in found:
        weights[cause, effect] = weight
    return list(place), weights


def read_learned(folder: Path, has_truth: bool) -> LearnedGraph | None:
    """The graph of a run directory, of graph.csv or else of graph.tsv; None where neither can be
    read."""
    found = _matrix(folder / "graph.csv") or _edge_list(folder / "graph.tsv")
    if found is None:
        return None
    graph = LearnedGraph(file_name(folder), found[0], _cleaned(found[1], 0.0))
    for key, missing in (("scores", np.nan), ("truth", 0.0)):
        other = _matrix(folder / f"{key}.csv") if key != "truth" or has_truth else None
        if other is not None and other[0] == graph.names:
            setattr(graph, key, _cleaned(other[1], missing))
    return graph


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
                [np.mean(x[n]) if n else x[own] for own, n in zip(rows[at], near)], distances[at]
            )
    y = np.zeros(len(width))
    for at, row in enumerate(rows):
        y[row] = -_LAYER * at
    places = np.stack([x, y], axis=1)
    return places[:count], [[tuple(places[node]) for node in chain] for chain in bends]
