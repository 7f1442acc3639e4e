"""One or more of every module of nsimplex.nn, with what a training step makes of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from operator_cases import NODES, PAIRS, draw

import nsimplex
from nsimplex import graph, nn


class Step(NamedTuple):
    """A module and a loss of it and its inputs; what is floating among the inputs takes the
    module's dtype. Plans are keywords of the loss."""

    module: torch.nn.Module
    inputs: tuple
    loss: Callable[..., torch.Tensor]


def higher_order_part(module, x):
    """The part beside an ordinary one of zeros."""
    keys, values = module.extra(x)
    query = module.unit(keys[0].repeat(1, 2, 1, 1))
    out, lse = nsimplex.attention(
        query, keys * 2, values * 2, causal=True, window=module.window, return_lse=True
    )
    return module.join((0 * out, 0 * lse), (out, lse)).float().square().mean()


def mean_square(module, *inputs, **plans):
    return module(*inputs, *plans.values()).float().square().mean()


def simple(module, *inputs, **plans):
    return Step(module, inputs, partial(mean_square, **plans))


def indexer(**options):
    """What learns from its loss alone."""
    q, k1, k2, *_ = draw(5, 1, 2, 6, 4, seed=3)
    source = None
    if options.get("source") == "reuse":
        source = nn.IndexSource(q, k1)

    def loss(module, x, q, k1, k2, source):
        chosen = module(x, 3, causal=True, source=source)
        return module.loss(x, q, [k1, k2], causal=True, source=source, indices=chosen)

    return Step(
        nn.Indexer(8, heads=2, index_dim=4, **options), (draw(1, 6, 8), q, k1, k2, source), loss
    )


def sparse(warms_up=False, **options):
    layer = nn.SparseAttention(
        8,
        2,
        order=2,
        keys=3,
        causal=True,
        loss_weight=1.0,
        indexer={"heads": 2, "index_dim": 4, **options.pop("indexer", {})},
        **options,
    )
    layer.warms_up = warms_up

    def loss(module, x):
        out = module(x).float().square().mean()
        return out + module.auxiliary_loss.float()

    return Step(layer, (draw(1, 6, 8),), loss)


def language_model(**options):
    shape = nn.LanguageModelOptions(
        vocabulary=11, layers=2, heads=2, dim=8, context=6, every=2, **options
    )
    tokens = torch.randint(11, (1, 6), generator=torch.Generator().manual_seed(0))
    return Step(nn.LanguageModel(shape), (tokens, tokens), lambda module, x, y: module.loss(x, y))


def features(values="bins", **options):
    shape = nn.FeatureTransformerOptions(
        features=5, dim=12, heads=2, layers=1, outputs=2, values=values, **options
    )
    model = nn.FeatureTransformer(shape)
    if shape.encoding == "rotary":
        model.set_table(draw(5, shape.planes))
    x = (
        torch.randint(6, (3, 5), generator=torch.Generator().manual_seed(0))
        if values == "bins"
        else draw(3, 5)
    )
    return Step(model, (x,), lambda module, x: module.predict(module(x)).float().square().mean())


def encoder(**options):
    form = options.get("form", "softmax")
    plan = nsimplex.equivariant_encoder_plan(
        PAIRS, NODES, form=form, mlp=options.get("mlp", "automatic")
    )
    module = nn.EquivariantEncoder(2, 1, 8, 8, heads=2, **options)
    return simple(module, draw(len(PAIRS), 8), plan=plan)


def attention_of_pairs(**options):
    form = options.get("form", "softmax")
    plan = nsimplex.equivariant_attention_plan(PAIRS, NODES, form=form)
    light = nsimplex.equivariant_plan(PAIRS, NODES, classes="light")
    module = nn.EquivariantAttention(2, 1, 8, 8, heads=2, **options)
    return simple(module, draw(len(PAIRS), 8), plan=plan, light=light)


def linear_on_a_list():
    plan = nsimplex.equivariant_plan(PAIRS, NODES)
    return simple(nn.EquivariantLinear(2, 1, 8, 4), draw(len(PAIRS), 8), plan=plan)


def random_features():
    def loss(module, x):
        return (x @ module.directions.to(x.dtype)).float().square().mean()

    return Step(nn.RandomFeatures(4), (draw(5, 4).requires_grad_(),), loss)


def chosen(lengths=None, **layer):
    module = nn.ExpertChoice(
        nn.SimplicialAttention(8, 2, **layer), tokens=0.5, sigmoid=lengths is not None
    )
    return simple(module, draw(2, 6, 8), *(() if lengths is None else (torch.tensor(lengths),)))


def graph_model(cls=nn.GraphTransformer, **options):
    """A model of two graphs with features of nodes and edges."""
    data = graph.from_edge_index(
        torch.tensor([[0, 1, 1, 2, 4], [1, 0, 2, 1, 5]]),
        7,
        draw(5, 3).float(),
        torch.tensor([0, 0, 0, 0, 1, 1, 1]),
        node_features=draw(7, 2).float(),
        directions=options.pop("directions", "given"),
        duplicates="first",
    )
    module = cls(node_channels=2, edge_channels=3, width=8, layers=2, heads=2, **options)
    return simple(module, module.prepare(data))


def set_model(cls, task="hyperedge", **options):
    """A model that judges hyperedges of two sizes, or pairs."""
    edges = [[0, 1], [1, 2], [0, 3]] if task == "edge" else [[0, 1], [1, 2, 3], [2, 3], [0, 2, 4]]
    data = graph.from_hyperedges(edges, 5, node_features=draw(5, 2).float())
    module = cls(task, node_channels=2, width=8, **options)
    return simple(module, module.prepare(data))


LIGHT = {"heads": 2, "index_dim": 4}


def selecting(select, **options):
    layer = nn.SimplicialAttention(8, 2, select=select, causal=True, **options)

    def loss(module, x):
        out = module(x).float().square().mean()
        return out if module.auxiliary_loss is None else out + module.auxiliary_loss.float()

    return Step(layer, (draw(1, 6, 8),), loss)


PATTERNS = [torch.tensor([0, 2, 4]), torch.tensor([1, 3])]

#: By class, then by what is special.
CASES = {
    "EquivariantAttention": lambda: attention_of_pairs(),
    "EquivariantAttention, kernel": lambda: attention_of_pairs(
        form="kernel", feature_map="exponential"
    ),
    "EquivariantEncoder": lambda: encoder(),
    "EquivariantEncoder, kernel": lambda: encoder(form="kernel", dropout=0.1),
    "EquivariantEncoder, pointwise": lambda: encoder(mlp="pointwise", encoder="paper"),
    "EquivariantLinear": lambda: simple(nn.EquivariantLinear(2, 1, 3, 4), draw(2, 4, 4, 3)),
    "EquivariantLinear, list": linear_on_a_list,
    "ExpertChoice": lambda: chosen(order=2),
    "ExpertChoice, block": lambda: simple(
        nn.TransformerBlock(
            nn.ExpertChoice(nn.SimplicialAttention(8, 2, select=nn.Linear()), tokens=3),
            nn.FeedForward(8),
        ),
        draw(2, 6, 8),
    ),
    "ExpertChoice, lengths": lambda: chosen([6, 3], order=1, rotary=True),
    "FeatureTransformer": lambda: features(encoding="rotary", learned_scale=True, identity=True),
    "FeatureTransformer, performer": lambda: features(
        backbone="performer", values="periodic", encoding="learned"
    ),
    "FeatureTransformer, simplicial": lambda: features(
        backbone="simplicial", values="linear", encoding="sinusoidal"
    ),
    "FeatureTransformer, relative": lambda: features(encoding="relative"),
    "GraphTransformer": lambda: graph_model(order=[1, 2, 4], virtual_node=True),
    "GraphTransformer, nodes": lambda: graph_model(
        task="node", target="classes", outputs=3, form="kernel", readout="softmax"
    ),
    "GraphTransformer, edges": lambda: graph_model(
        task="edge", directions="undirected", symmetry="undirected", random_walk=2
    ),
    "MessagePassing": lambda: graph_model(nn.MessagePassing, kind="gat", virtual_node=True),
    "MessagePassing, gin": lambda: graph_model(nn.MessagePassing, kind="gin", task="edge"),
    "MessagePassing, gcn": lambda: graph_model(nn.MessagePassing, kind="gcn", task="node"),
    "HyperSAGNN": lambda: set_model(nn.HyperSAGNN, heads=2, head_dim=3),
    "SetToGraph": lambda: set_model(nn.SetToGraph, query_sizes=[2, 3]),
    "SetToGraph, light": lambda: set_model(
        nn.SetToGraph, task="edge", classes="light", symmetry="undirected"
    ),
    "HigherOrderPart": lambda: Step(
        nn.HigherOrderPart(8, 2, 1, 4, window=(3, 5)), (draw(2, 6, 8),), higher_order_part
    ),
    "UpcycledAttention": lambda: simple(
        nn.UpcycledAttention(
            nn.SimplicialAttention(8, 2, order=1, causal=True, rotary=True), window=(3, 5)
        ),
        draw(2, 6, 8),
    ),
    "FeedForward": lambda: simple(nn.FeedForward(8), draw(2, 8)),
    "Indexer": lambda: indexer(rotary=True),
    "Indexer, softmax": lambda: indexer(scores="softmax"),
    "Indexer, reuse": lambda: indexer(source="reuse", learned=True, scores="softmax"),
    "LanguageModel": lambda: language_model(norm="qk", scale="unit"),
    "LanguageModel, topk": lambda: language_model(
        sparse="topk", topk=3, indexer="light", indexer_loss=1.0
    ),
    "LanguageModel, path": lambda: language_model(
        sparse="path", topk=3, indexer="reuse", indexer_loss=1.0
    ),
    "LanguageModel, linear": lambda: language_model(sparse="linear", tied=False),
    "PatternLinear": lambda: simple(nn.PatternLinear(2, 3, 4), draw(5, 3), PATTERNS),
    "RMSNorm": lambda: simple(nn.RMSNorm(8), draw(2, 8)),
    "RandomFeatures": random_features,
    "SeparableAttention": lambda: simple(
        nn.SeparableAttention(8, 2, order=2, causal=True), draw(2, 6, 8)
    ),
    "SeparableAttention, random": lambda: simple(
        nn.SeparableAttention(8, 2, features="random"), draw(2, 6, 8)
    ),
    "SimplicialAttention": lambda: simple(
        nn.SimplicialAttention(
            12, 2, order=2, form="determinant", rotary=True, window=[(3, 1)] * 2
        ),
        draw(2, 6, 12),
    ),
    "SimplicialAttention, contexts": lambda: simple(
        nn.SimplicialAttention(8, 2, order=2, kv_heads=1, norm="qk", context_dims=[4, 3]),
        draw(2, 6, 8),
        (draw(2, 5, 4), draw(2, 4, 3)),
    ),
    "SimplicialAttention, options": lambda: simple(
        nn.SimplicialAttention(
            8, 2, normalizer="softmax_sink", augment=True, bias=True, softcap=1.5
        ),
        draw(2, 6, 8),
    ),
    "SimplicialAttention, faces": lambda: simple(
        nn.SimplicialAttention(8, 2, face=True), draw(2, 6, 8)
    ),
    "SimplicialAttention, orders": lambda: simple(
        nn.SimplicialAttention(8, 2, orders=[1, 2], causal=True), draw(2, 6, 8)
    ),
    "SimplicialAttention, k per axis": lambda: selecting(nn.TopK((2, 3), LIGHT, loss=1.0)),
    "SimplicialAttention, reducer": lambda: selecting(nn.Path(3, LIGHT, loss=1.0), reduce="mlp"),
    "SimplicialAttention, neighbours": lambda: selecting(
        nn.Neighbours(torch.rand(6, 6, generator=torch.Generator().manual_seed(0)) > 0.5),
        normalizer="softmax_sink",
    ),
    "SimplicialAttention, union": lambda: selecting(
        nn.Window(2) | nn.Sinks(1) | nn.TopK(2, LIGHT, loss=1.0)
    ),
    "SparseAttention": lambda: sparse(),
    "SparseAttention, softmax path": lambda: sparse(
        pattern="path", indexer={"scores": "softmax", "rotary": True}
    ),
    "SparseAttention, warming up": lambda: sparse(warms_up=True, indexer={"scores": "softmax"}),
    "TransformerBlock": lambda: simple(
        nn.TransformerBlock(
            nn.SimplicialAttention(8, 2, order=2, causal=True), nn.FeedForward(8, activation="gelu")
        ),
        draw(2, 6, 8),
    ),
}
