"""Tasks on graphs and relations: a fact or an edge is a token, and labels of nodes are random."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from .memory import choose, labels
from .task import Batch, Task

__all__ = ["TASKS"]

#: The permutations of three things: r1 r2 is in general not r2 r1.
_GROUP = list(itertools.permutations(range(3)))
_PRODUCT = torch.tensor(
    [[_GROUP.index(tuple(b[a[i]] for i in range(3))) for b in _GROUP] for a in _GROUP]
)
_ENTITIES, _ASKED = 8, 8


def _composition(count: int, generator: torch.Generator, split: str) -> Batch:
    names = choose(count, _ENTITIES, _ENTITIES, generator)  # the chain, from first to last
    facts = labels(count, len(_GROUP), _ENTITIES - 1, generator)
    least, most = (4, 6) if split == "long" else (1, 3)
    spans = labels(count, most - least + 1, _ASKED, generator) + least
    starts = (torch.rand(count, _ASKED, generator=generator) * (_ENTITIES - spans)).long()
    relation = facts.gather(1, starts)
    for further in range(1, most):
        place = (starts + further).clamp(max=_ENTITIES - 2)
        longer = _PRODUCT[relation, facts.gather(1, place)]
        relation = torch.where(spans > further, longer, relation)
    fields = torch.zeros(count, _ENTITIES - 1 + _ASKED, 4, dtype=torch.int64)
    known, asked = fields.split([_ENTITIES - 1, _ASKED], 1)
    order = choose(count, _ENTITIES - 1, _ENTITIES - 1, generator)
    known[..., 1], known[..., 2] = names.gather(1, order), names.gather(1, order + 1)
    known[..., 3] = facts.gather(1, order) + 1
    asked[..., 0] = 1
    asked[..., 1], asked[..., 2] = names.gather(1, starts), names.gather(1, starts + spans)
    targets = torch.full(fields.shape[:2], -1)
    targets[:, _ENTITIES - 1 :] = relation
    return Batch(fields, None, targets)


def _graphs(count: int, nodes: int, edges: int, generator: torch.Generator) -> Tensor:
    """bool [count, nodes, nodes]: symmetric, with `edges` edges."""
    pairs = torch.combinations(torch.arange(nodes))
    chosen = pairs[choose(count, len(pairs), edges, generator)]
    found = torch.zeros(count, nodes, nodes, dtype=torch.bool)
    row = torch.arange(count).unsqueeze(1)
    found[row, chosen[..., 0], chosen[..., 1]] = True
    return found | found.transpose(1, 2)


def _ends(graphs: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """int64 [count, pairs, 2]: ends of the True entries, each graph with new labels, shuffled."""
    count, nodes = graphs.shape[:2]
    pairs = graphs.flatten(1).sum(1)[0]
    mixed = torch.rand(graphs.flatten(1).shape, generator=generator) + graphs.flatten(1)
    places = mixed.topk(int(pairs), 1).indices
    names = choose(count, most, nodes, generator)
    return torch.stack([places // nodes, places % nodes, *_named(names, places, nodes)], -1)


def _named(names: Tensor, places: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    return names.gather(1, places // nodes), names.gather(1, places % nodes)


_NODES = 12


def _triangles(count: int, generator: torch.Generator, split: str) -> Batch:
    nodes, edges = (12, 16) if split == "long" else (8, 10)
    graphs = _graphs(count, nodes, edges, generator)
    ends = _ends(graphs, _NODES, generator)
    paths = graphs.long() @ graphs.long()
    row = torch.arange(count).unsqueeze(1)
    targets = (paths[row, ends[..., 0], ends[..., 1]] > 0).long()
    return Batch(ends[..., 2:].contiguous(), None, targets)


def _closure(count: int, generator: torch.Generator, split: str) -> Batch:
    nodes, edges, asked = (12, 14, 8) if split == "long" else (9, 10, 8)
    places = choose(count, nodes * nodes - nodes, edges, generator)
    places = places + places // nodes + 1  # no entry of the diagonal
    graphs = torch.zeros(count, nodes * nodes, dtype=torch.bool).scatter(1, places, True)
    step = graphs.view(count, nodes, nodes).long() + torch.eye(nodes, dtype=torch.int64)
    reached = (step @ step).clamp(max=1)
    reached = (reached @ step).clamp(max=1).bool()  # by at most three edges
    direct = graphs.view(count, nodes, nodes) | torch.eye(nodes, dtype=torch.bool)
    # Half of the questions have a path of two or three edges, as far as there are such pairs.
    yes, no = (reached & ~direct).flatten(1), (~reached).flatten(1)
    noise = torch.rand(yes.shape, generator=generator)
    half = asked // 2
    first = (noise + yes).topk(half, 1).indices
    second = (noise + no).topk(half, 1).indices
    questions = torch.cat([first, second], 1)
    names = choose(count, _NODES, nodes, generator)
    fields = torch.zeros(count, edges + asked, 3, dtype=torch.int64)
    for at, found in ((slice(0, edges), places), (slice(edges, None), questions)):
        fields[:, at, 1], fields[:, at, 2] = _named(names, found, nodes)
    fields[:, edges:, 0] = 1
    targets = torch.full(fields.shape[:2], -1)
    targets[:, edges:] = reached.flatten(1).gather(1, questions).long()
    return Batch(fields, None, targets)


TASKS = (
    Task(
        name="composition",
        reason="Seven facts x r y form a chain of eight entities, and a question asks for the "
        "relation of two entities that are one to three facts apart. Relations are permutations "
        "of three things. A tuple of two facts that share an entity is a fact of twice the "
        "length, so layers of order 2 double the length that they reach. The long split asks for "
        "four to six facts.",
        order=2,
        fields=(2, _ENTITIES, _ENTITIES, len(_GROUP) + 1),
        classes=len(_GROUP),
        draw=_composition,
        longer="chains of 4 to 6 facts in place of 1 to 3",
    ),
    Task(
        name="triangles",
        reason="Tokens are the edges of a graph in both directions. An edge (u, v) asks whether "
        "two other edges (v, w) and (w, u) exist, which is a condition on three tokens, of which "
        "one is the query. One layer of order 2 can test it.",
        order=2,
        fields=(_NODES, _NODES),
        classes=2,
        draw=_triangles,
        longer="12 nodes and 16 edges in place of 8 and 10",
    ),
    Task(
        name="closure",
        reason="Tokens are the edges of a directed graph and eight pairs of nodes. A pair asks "
        "whether a path of at most three edges leads from one to the other. A path of two edges "
        "is a tuple of two tokens; a path of three needs two layers of order 2.",
        order=2,
        fields=(2, _NODES, _NODES),
        classes=2,
        draw=_closure,
        longer="12 nodes and 14 edges in place of 9 and 10",
    ),
)
