"""Graphs in files beside the lines of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .run import Row, file_name, number, read_text

_LARGEST = 1e300

RIGHT, REVERSED, EXTRA, MISSING = "right", "reversed", "extra", "missing"

_LIMITS, _NOISES = "causal_limits", "noise_directions"  # kinds of lines

_FIGURES = ("frequency", "connected", "low", "high")  # of confidence.csv

LEARNED = ""  #: of edges where no true graph is known


@dataclass(frozen=True)
class Confidence:
    """What samples of the rows say about an edge; NaN is unknown."""

    frequency: float  #: share that have it in this direction
    connected: float  #: share that have it in either direction
    low: float  #: of the interval of the weight
    high: float


@dataclass(frozen=True)
class Edge:
    cause: int
    effect: int
    weight: float  #: that was learned; the true one of a missing edge
    score: float  #: NaN if there is none
    kind: str = LEARNED
    sure: Confidence | None = None
    open: bool = False  #: whether the table cannot tell its direction


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
    sure: dict[tuple[str, str], Confidence] = field(default_factory=dict)
    reversible: set[tuple[str, str]] = field(default_factory=set)  #: cause and effect

    def edges(self) -> list[Edge]:
        """Learned edges and missing ones. The surest edges come first where samples were drawn, or
        else the highest score; edges without either come last."""
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
            weight = self.weights[i, j]
            if not there[i, j] and self.truth is not None:
                weight = self.truth[i, j]
            score = float("nan") if self.scores is None else float(self.scores[i, j])
            pair = (self.names[i], self.names[j])
            loose = bool(there[i, j]) and pair in self.reversible
            edges.append(Edge(i, j, float(weight), score, kinds[i, j], self.sure.get(pair), loose))
        return sorted(edges, key=_rank)


def _rank(edge: Edge) -> tuple[float, ...]:
    """Of an edge in a table; a smaller one comes first."""
    sure = edge.sure
    sampled = (-sure.frequency, -sure.connected) if sure else (0.0, 0.0)
    return (*sampled, -edge.score if edge.score == edge.score else np.inf, -abs(edge.weight))


def _cleaned(matrix: np.ndarray, missing: float) -> np.ndarray:
    """Zeros on the diagonal, large numbers for infinite ones, and `missing` for NaN."""
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
    for i, j, weight in found:
        weights[i, j] = weight
    return list(place), weights


def _confidence(path: Path) -> dict[tuple[str, str], Confidence]:
    """By cause and effect, of confidence.csv; lines that are broken are left out."""
    rows = _cells_of(path, ",")
    found = {}
    for row in rows[1:]:
        own = dict(zip(rows[0], row))
        try:
            figures = [float(own[name] or "nan") for name in _FIGURES]
            found[own["cause"], own["effect"]] = Confidence(*figures)
        except (KeyError, ValueError):
            continue
    return {pair: each for pair, each in found.items() if 0 <= each.frequency <= 1}


def _reversible(rows: Sequence[Row]) -> set[tuple[str, str]]:
    """Edges whose direction the table of a run cannot tell: those of its last line about limits,
    which is about covariances, unless noises turned edges."""
    if any((number(row, "gain") or 0) > 0 for row in rows if row.get("kind") == _NOISES):
        return set()
    own = [row for row in rows if row.get("kind") == _LIMITS]
    pairs = own[-1].get("reversible") if own else None
    return {
        (pair[0], pair[1])
        for pair in (pairs if isinstance(pairs, list) else [])
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, str) for n in pair)
    }


def read_learned(folder: Path, has_truth: bool, rows: Sequence[Row] = ()) -> LearnedGraph | None:
    """The graph of a run directory, of graph.csv or else of graph.tsv, with what the lines of the
    run say about it; None where neither can be read."""
    found = _matrix(folder / "graph.csv") or _edge_list(folder / "graph.tsv")
    if found is None:
        return None
    graph = LearnedGraph(file_name(folder), found[0], _cleaned(found[1], 0.0))
    for key, missing in (("scores", np.nan), ("truth", 0.0)):
        other = _matrix(folder / f"{key}.csv") if key != "truth" or has_truth else None
        if other is not None and other[0] == graph.names:
            setattr(graph, key, _cleaned(other[1], missing))
    graph.sure = _confidence(folder / "confidence.csv")
    graph.reversible = _reversible(rows)
    return graph
