"""Static SVG of a graph, set or hypergraph with weighted tuples of its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .._page import drawing_file, short
from .tuple_drawing import INK, LONGEST, MUTED, QUERY, RING, TUPLE, Point, dot, shape, text

#: Nodes of a drawing: more cannot be told apart at the width of a telephone.
MOST_NODES = 40
_MOST_LABELS = 24  # nodes that all have labels; above, only those of tuples have
_WIDTH, _MARGIN = 360, 34  # letters of 12 pixels stay readable where a picture is 360 pixels wide
_NAME = 15 + RING  # the foot of a node's name below the node and its ring
_STEPS = 150  # of the layout
#: Of classes of nodes: none is that of a tuple or of the prediction.
_CLASSES = [
    f"var({name})" for name in ("--series-3", "--series-4", "--bad", "--series-5", "--muted")
]
_Tuple = tuple[Sequence[int], float]


def nearby_nodes(
    nodes: int, edges: Sequence[Sequence[int]], tuples: Sequence[Sequence[int]]
) -> list[int]:
    """At most 40 nodes, in ascending order: those of the first tuples, and then those near
    them."""
    if nodes <= MOST_NODES:
        return list(range(nodes))
    near = _neighbours(nodes, edges)
    kept = dict.fromkeys(node for each in tuples for node in each)
    queue = list(kept) or [0]
    kept.setdefault(queue[0])
    for node in queue:
        if len(kept) >= MOST_NODES:
            break
        for other in sorted(near[node]):
            if other not in kept:
                kept[other] = None
                queue.append(other)
    return sorted(list(kept)[:MOST_NODES])


def graph_drawing(
    labels: Sequence[str],
    edges: Sequence[Sequence[int]],
    tuples: Sequence[_Tuple],
    target: Sequence[int] = (),
    classes: Sequence[str] = (),
) -> str:
    """A graph, and on it the tuples, heaviest on top, and the nodes of a prediction.

    Args:
        labels: of the nodes.
        edges: sets of two or more nodes.
        tuples: nodes and weight of each.
        target: nodes that are orange.
        classes: of the nodes, which up to five classes tell apart by colours; "" is not known.
    """
    order = nearby_nodes(len(labels), edges, [target, *(nodes for nodes, _ in tuples)])
    place = {node: at for at, node in enumerate(order)}
    inside = lambda nodes: all(node in place for node in nodes)
    own_edges = [[place[node] for node in each] for each in edges if inside(each)]
    points, height = _fitted(_layout(len(order), own_edges))
    at = {node: points[number] for node, number in place.items()}
    parts = []
    for each in (each for each in edges if inside(each)):
        style = f"fill: {MUTED}; fill-opacity: 0.08; stroke: {MUTED}; stroke-opacity: 0.45"
        parts.append(shape([at[node] for node in each], style, "edge", ""))
    most = max((weight for _, weight in tuples), default=0.0)
    drawn: dict[tuple[int, ...], float] = {}  # a tuple of several heads and orders is drawn once
    for nodes, weight in tuples:
        key = tuple(sorted(set(nodes)))
        if inside(key):
            drawn[key] = max(weight, drawn.get(key, 0.0))
    for nodes, weight in sorted(drawn.items(), key=lambda own: own[1]):
        strength = 0.25 + 0.75 * weight / most if most > 0 else 0.25
        style = (
            f"fill: {TUPLE}; fill-opacity: {0.35 * strength:.2f}; stroke: {TUPLE}; "
            f"stroke-opacity: {strength:.2f}; stroke-width: {1.5 + 3 * strength:.1f}px"
        )
        note = (
            f"({', '.join(short(labels[node], LONGEST) for node in nodes)}): {100 * weight:.2f} %"
        )
        parts.append(shape([at[node] for node in nodes], style, "tuple", note))
    named = {*target, *(node for nodes in drawn for node in nodes)}
    every = len(order) <= _MOST_LABELS
    names = sorted(set(classes) - {""})
    paints = dict(zip(names, _CLASSES)) if len(names) <= len(_CLASSES) else {}
    for node in order:
        colour = QUERY if node in target else INK
        fill = paints.get(classes[node], INK) if paints else colour
        x, y = at[node]
        ring = f"; stroke: {QUERY}; stroke-width: 2.5px" if paints and node in target else ""
        note = short(classes[node]) if paints and classes[node] else ""
        parts.append(dot(x, y, f"fill: {fill}{ring}", 5 if paints else 4, note))
        if every or node in named:
            parts.append(text(short(labels[node], LONGEST), x, y + _NAME, colour))
    across = _MARGIN / 2
    for name, paint in paints.items():
        label = short(name, LONGEST)
        if across + 18 + 7 * len(label) > _WIDTH:
            across, height = _MARGIN / 2, height + 18
        parts.append(dot(across, height, f"fill: {paint}", 5))
        parts.append(text(label, across + 10, height + 4, MUTED, "start"))
        across += 30 + 7 * len(label)
    height += 14 if paints else 0
    shown = f"{len(order)} of {len(labels)}" if len(order) < len(labels) else str(len(labels))
    title = f"A graph of {shown} nodes with its {len(drawn)} heaviest tuples"
    return drawing_file(title, _WIDTH, height, parts)


def _neighbours(nodes: int, edges: Sequence[Sequence[int]]) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in range(nodes)]
    for each in edges:
        for node in each:
            near[node].update(each)
    return near


def _distances(nodes: int, edges: Sequence[Sequence[int]]) -> Tensor:
    """Steps between nodes [n, n]. Parts without a path are two steps more apart than the longest
    path."""
    near = _neighbours(nodes, edges)
    found = torch.full((nodes, nodes), -1.0, dtype=torch.float64)
    for start in range(nodes):
        steps, front = {start: 0}, [start]
        for node in front:
            for other in near[node]:
                if other not in steps:
                    steps[other] = steps[node] + 1
                    front.append(other)
        for node, count in steps.items():
            found[start, node] = count
    return torch.where(found < 0, found.max().clamp(min=0) + 2, found)


def _layout(nodes: int, edges: Sequence[Sequence[int]]) -> Tensor:
    """Places [n, 2] whose distances are near the numbers of steps: stress majorisation with weights
    1 / d^2, from a circle.

    Source: Gansner, Koren and North, Graph Drawing 2004.
    """
    angle = torch.arange(nodes, dtype=torch.float64) * (2 * math.pi / max(nodes, 1)) - math.pi / 2
    x = torch.stack([angle.cos(), angle.sin()], 1)
    if nodes < 3 or not edges:
        return x
    distance = _distances(nodes, edges)
    # The principal coordinates are a better start; the circle keeps equal ones apart.
    centred = torch.eye(nodes, dtype=torch.float64) - 1 / nodes
    values, vectors = torch.linalg.eigh(-0.5 * centred @ distance.square() @ centred)
    x = vectors[:, -2:] * values[-2:].clamp(min=0).sqrt() + 0.1 * x
    weight = torch.where(distance > 0, distance, 1).pow(-2).fill_diagonal_(0)
    inverse = torch.linalg.pinv(torch.diag(weight.sum(1)) - weight)
    for _ in range(_STEPS):
        length = torch.cdist(x, x).clamp(min=1e-9)
        pull = -(weight * distance / length).fill_diagonal_(0)
        x = inverse @ ((pull - torch.diag(pull.sum(1))) @ x)
    return x


def _fitted(x: Tensor) -> tuple[list[Point], float]:
    """Places in pixels, the longer side across, and the height of the picture."""
    if not len(x):
        return [], 2.0 * _MARGIN
    span = x.amax(0) - x.amin(0)
    if span[1] > span[0]:
        x = x.flip(1)
        span = span.flip(0)
    room = _WIDTH - 2 * _MARGIN
    scale = room / float(span[0].clamp(min=1e-9)) if len(x) > 1 else 0.0
    x = (x - x.amin(0)) * scale + _MARGIN
    if len(x) == 1:
        x[:, 0] = _WIDTH / 2
    return [(a, b) for a, b in x.tolist()], float(span[1]) * scale + 2.0 * _MARGIN
