"""Layers say what is wrong with their options when they are built, and with a tensor when it comes,
in one line."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch
from impostors import complaints_about
from public_graph_calls import graph_data
from test_wrong_arguments import fault_of, wrong_values

import nsimplex
from nsimplex import graph, nn
from nsimplex.graph import edge_tuples

NOT_LAYERS = {"FeatureTransformerOptions", "IndexParts", "IndexSource", "LanguageModelOptions"}
NOT_LAYERS |= {"Linear", "Neighbours", "Path", "Select", "Sinks", "TopK", "Union", "Window"}
NOT_LAYERS |= {
    "ParameterGroups",
    "auxiliary_loss",
    "calibrate",
    "convert",
    "order_shares",
    "parameter_groups",
}
NOT_LAYERS |= {
    "TrainingCallback",
    "TrainingLog",
    "TrainingState",
    "GraphFit",
    "GraphInputs",
    "fit_graphs",
    "graph_loss",
    "graph_metrics",
}

BATCH = edge_tuples(torch.tensor([[0, 1], [1, 2]]), 3, loops=True).batch


def encoder_plan():
    return nsimplex.equivariant_encoder_plan(BATCH, BATCH)


def pattern_rows():
    return nsimplex.equivariant_encoder_plan(BATCH, BATCH, mlp="pointwise").pattern_rows


def x():
    return torch.randn(2, 5, 8)


def rows():
    return torch.randn(len(BATCH), 8)


SIMPLICIAL = dict(
    dim=8,
    heads=2,
    kv_heads=1,
    head_dim=4,
    order=2,
    context_dims=(),
    norm="qk",
    scale="unit",
    causal=True,
    window=[3, (2, 0)],
    form="product",
    reduce="sum",
    unit_layer=True,
    rotary=False,
    rotary_base=100.0,
    allow_non_invariant=False,
    normalizer="relu",
    face=False,
    augment=[1],
    distinct="axes",
    dropout=0.1,
    bias=True,
    softcap=1.5,
    device=None,
    dtype=None,
)
CHOOSING = {
    name: SIMPLICIAL[name]
    for name in ("dim", "heads", "order", "reduce", "scale", "causal", "form", "norm")
}


def coded():
    return graph.from_edge_index(
        torch.tensor([[0, 1], [1, 2]]),
        4,
        node_features=torch.arange(4),
        directions="undirected",
    )


#: name: (options, what forward takes)
LAYERS = {
    "SimplicialAttention": (SIMPLICIAL, lambda: [x()]),
    "SimplicialAttention, chosen": (
        CHOOSING | dict(reduce="mlp", scale="standard", select=nn.TopK(2)),
        lambda: [x()],
    ),
    "SimplicialAttention, orders": (dict(dim=8, heads=2, orders=[1, 2]), lambda: [x()]),
    "SparseAttention": (
        CHOOSING
        | dict(pattern="product", keys=2, indexer=dict(heads=2, index_dim=4), loss_weight=0.5),
        lambda: [x()],
    ),
    "SeparableAttention": (
        dict(dim=8, heads=2, order=2, window=3, causal=True, features="elu"),
        lambda: [x()],
    ),
    "Indexer": (
        dict(
            dim=8,
            heads=2,
            index_dim=4,
            source="light",
            scores="relu",
            learned=True,
            rotary=True,
            rotary_base=10.0,
            device=None,
            dtype=None,
        ),
        lambda: [x(), 2],
    ),
    "ExpertChoice": (
        dict(attention=nn.SimplicialAttention(8, 2), tokens=2, sigmoid=True, dim=8),
        lambda: [x()],
    ),
    "HigherOrderPart": (
        dict(dim=8, heads=2, kv_heads=1, head_dim=4, order=2, window=(3, 5)),
        None,
    ),
    "UpcycledAttention": (
        dict(layer=nn.SimplicialAttention(8, 2, order=1, causal=True), order=2, window=(3, 5)),
        lambda: [x()],
    ),
    "FeedForward": (dict(dim=8, hidden=16, activation="gelu"), lambda: [x()]),
    "RMSNorm": (dict(dim=8, eps=1e-6), lambda: [x()]),
    "TransformerBlock": (
        dict(attention=nn.SimplicialAttention(8, 2), mlp=nn.FeedForward(8)),
        lambda: [x()],
    ),
    "LanguageModel": (
        dict(options=nn.LanguageModelOptions(layers=2, every=2, dim=16, heads=2)),
        lambda: [torch.zeros(2, 5).long()],
    ),
    "FeatureTransformer": (
        dict(options=nn.FeatureTransformerOptions(features=5, dim=16, heads=2)),
        lambda: [torch.zeros(2, 5).long()],
    ),
    "EquivariantLinear": (
        dict(
            input=2,
            output=2,
            in_channels=8,
            out_channels=4,
            classes="light",
            pooling="sum",
            bias=True,
        ),
        lambda: [rows(), nsimplex.equivariant_plan(BATCH, BATCH, classes="light")],
    ),
    "EquivariantAttention": (
        dict(
            input=2,
            output=2,
            in_channels=8,
            out_channels=4,
            heads=2,
            head_dim=3,
            form="softmax",
            keys="paper",
            global_classes=True,
            normalise=True,
            feature_map="relu",
            features=None,
        ),
        lambda: [rows(), encoder_plan().attention, encoder_plan().light],
    ),
    "EquivariantEncoder": (
        dict(
            input=2,
            output=2,
            in_channels=8,
            out_channels=8,
            hidden=4,
            mlp="automatic",
            dropout=0.1,
            residual=True,
            encoder="paper",
            heads=2,
            form="softmax",
            keys="paper",
        ),
        lambda: [rows(), encoder_plan()],
    ),
    "PatternLinear": (
        dict(kind=2, in_channels=8, out_channels=4),
        lambda: [rows(), pattern_rows()],
    ),
    "RandomFeatures": (dict(dim=4, features=8), None),
    "GraphTransformer": (
        dict(
            task="graph",
            target="classes",
            outputs=3,
            order=[2],
            node_channels=2,
            edge_channels=3,
            width=8,
            layers=1,
            heads=2,
            form="kernel",
            readout="softmax",
            symmetry="ordered",
            skip=True,
            virtual_node=True,
            global_classes=False,
            random_walk=2,
            laplacian=1,
            dropout=0.1,
        ),
        lambda: [graph_data()],
    ),
    "GraphTransformer, codes": (
        dict(task="hyperedge", order=1, node_codes=[4], query_sizes=[2], width=8, layers=1),
        lambda: [coded(), coded().edges],
    ),
    "HyperSAGNN": (
        dict(task="hyperedge", target="labels", outputs=3, node_channels=2, width=8, heads=2)
        | dict(head_dim=3, random_walk=2, laplacian=1, dropout=0.1),
        lambda: [replace(graph_data(), edge_features=[])],
    ),
    "SetToGraph": (
        dict(task="hyperedge", target="classes", outputs=3, classes="light", node_codes=[4])
        | dict(width=8, layers=1, symmetry="ordered", dropout=0.1, query_sizes=[2]),
        lambda: [coded(), coded().edges],
    ),
    "MessagePassing": (
        dict(
            task="node",
            target="labels",
            outputs=3,
            kind="gat",
            node_channels=2,
            edge_channels=3,
            width=8,
            layers=1,
            heads=2,
            virtual_node=True,
            random_walk=2,
            laplacian=1,
            dropout=0.1,
        ),
        lambda: [graph_data()],
    ),
}


def class_of(name):
    return getattr(nn, name.split(",")[0])


def test_every_layer_has_a_case():
    assert {name.split(",")[0] for name in LAYERS} == set(nn.__all__) - NOT_LAYERS


@pytest.mark.parametrize("name", LAYERS)
def test_the_case_itself_works(name):
    options, inputs = LAYERS[name]
    layer = class_of(name)(**options)
    if inputs is not None:
        layer(*inputs())


@pytest.mark.parametrize(
    "name, option", [(name, option) for name, (options, _) in LAYERS.items() for option in options]
)
def test_wrong_options_get_one_line_when_built(name, option):
    options, _inputs = LAYERS[name]
    must_refuse = {"str", "object", "bytes", "dict", "array"}
    if isinstance(options[option], bool) or option in ("indexer", "features"):
        must_refuse = set()  # any value is true or false
    complaints = []
    for kind, value in wrong_values(options[option]).items():
        try:
            layer = class_of(name)(**(options | {option: value}))
        except Exception as error:
            fault = fault_of(error, set(options))
            if fault:
                complaints.append(
                    f"{option}={kind}: {fault}: {type(error).__name__}: {str(error)[:400]!r}"
                )
            continue
        if kind in must_refuse:
            complaints.append(f"{option}={kind} builds {type(layer).__name__}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "name", [name for name, (_, inputs) in LAYERS.items() if inputs is not None]
)
def test_wrong_inputs_get_one_line(name):
    options, inputs = LAYERS[name]
    layer = class_of(name)(**options)
    names = [*inspect.signature(layer.forward).parameters]
    complaints = []
    for place, good in enumerate(inputs()):
        for kind, value in wrong_values(good).items():
            arguments = inputs()
            arguments[place] = value
            try:
                layer(*arguments)
            except Exception as error:
                fault = fault_of(error, set(names))
                if fault:
                    complaints.append(
                        f"{names[place]}={kind}: {fault}: {type(error).__name__}: "
                        f"{str(error)[:400]!r}"
                    )
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("name", LAYERS)
def test_an_option_is_what_its_type_says(name):
    """An impostor builds the layer that the honest value builds, or is refused in one line."""
    options, inputs = LAYERS[name]

    def built(more):
        torch.manual_seed(3)
        layer = class_of(name)(**(options | more)).eval()
        state = dict(layer.state_dict())
        torch.manual_seed(5)
        return state if inputs is None else (state, layer(*inputs()))

    complaints = complaints_about(
        options.items(),
        lambda option, value: built({option: value}),
        built({}),
        lambda error: fault_of(error, set(options)),
    )
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "build, words",
    [
        (
            lambda: nn.SimplicialAttention(24, 4, reduce="bogus"),
            "reduce: expected product, sum or mean, got 'bogus'",
        ),
        (
            lambda: nn.SimplicialAttention(24, 4, scale="bogus"),
            "scale: expected standard, unit, a finite number or two",
        ),
        (lambda: nn.SimplicialAttention(24, 4, order=1.5), "order: expected an integer, got 1.5"),
        (lambda: nn.SimplicialAttention(24, 4, order=9), "order: expected 1 to 8, got 9"),
        (
            lambda: nn.SimplicialAttention(24, 4, window=[3]),
            r"window: expected one entry for each of 2 axes",
        ),
        (
            lambda: nn.SimplicialAttention(24, 4, window=[3, 0]),
            r"window\[1\]: expected left >= 1 or -1, got 0",
        ),
        (
            lambda: nn.SimplicialAttention(24, 4, reduce="mlp"),
            "reduce: expected product, sum or mean, got 'mlp'",
        ),
        (
            lambda: nn.SeparableAttention(24, 4, features="cosine"),
            "features: expected elu, relu, random",
        ),
        (
            lambda: nn.ExpertChoice(torch.relu, tokens=2),
            "attention: expected a Module, got",
        ),
        (
            lambda: nn.TransformerBlock(nn.FeedForward(8), nn.FeedForward(8)),
            "attention: expected a SimplicialAttention",
        ),
        (
            lambda: nn.EquivariantLinear(1, 1, 4, 4, pooling="most"),
            "pooling: expected mean or sum, got 'most'",
        ),
        (
            lambda: nn.LanguageModel(nn.LanguageModelOptions(order="two")),
            "order: expected an integer, got 'two'",
        ),
    ],
)
def test_options_are_refused_when_built(build, words):
    with pytest.raises((ValueError, TypeError), match=words):
        build()


def test_tensors_that_go_with_x():
    layer = nn.SimplicialAttention(8, 2)
    allowed = torch.rand(5, 5) > 0.3
    allowed |= torch.eye(5, dtype=torch.bool)
    torch.testing.assert_close(
        layer(x := torch.randn(2, 5, 8), adjacency=allowed),
        layer(x, adjacency=allowed.expand(2, 5, 5)),
    )
    for adjacency in (allowed.int(), allowed[:4], allowed.expand(3, 5, 5)):
        with pytest.raises(
            ValueError, match=r"adjacency: expected bool of shape \[5, 5\] or \[2, 5, 5\]"
        ):
            layer(x, adjacency=adjacency)
    with pytest.raises(ValueError, match=r"positions: expected int64 of shape \[2, 5\]"):
        layer(x, positions=torch.arange(5))
    choice = nn.ExpertChoice(layer, tokens=3)
    with pytest.raises(ValueError, match="lengths: expected 0 to 5, the tokens of x, got 4 to 100"):
        choice(x, torch.tensor([4, 100]))
    with pytest.raises(ValueError, match=r"adjacency: expected 5 tokens, got shape \[4, 5\]"):
        choice(x, adjacency=allowed[:4])
    torch.testing.assert_close(
        choice(x, torch.tensor([5, 3], dtype=torch.int32)), choice(x, torch.tensor([5, 3]))
    )
    model = nn.LanguageModel(nn.LanguageModelOptions(layers=1, dim=16, heads=2, vocabulary=7))
    with pytest.raises(ValueError, match="tokens: expected 0 to 6, got 0 to 9"):
        model(torch.tensor([[0, 9]]))


@pytest.mark.parametrize(
    "error", [RuntimeError("out of memory"), ValueError("unknown or unavailable SIMD level 'X'")]
)
def test_a_failure_that_no_argument_caused_keeps_its_words(monkeypatch, error):
    model = nn.LanguageModel(nn.LanguageModelOptions(vocabulary=9, dim=8, layers=1, heads=2))

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(model.blocks[0], "forward", fail)
    with pytest.raises(type(error)) as raised:
        model(torch.zeros(1, 3, dtype=torch.int64))
    assert raised.value is error


def test_plain_tokens_beside_sharded_weights(monkeypatch):
    model = nn.LanguageModel(nn.LanguageModelOptions(vocabulary=9, dim=8, layers=1, heads=2))

    def fail(*_, **__):
        raise RuntimeError("aten.mm.default: got mixed torch.Tensor and DTensor, need to convert")

    monkeypatch.setattr(model.blocks[0], "forward", fail)
    with pytest.raises(TypeError, match="tokens: expected a DTensor, as the weights are, got a t"):
        model(torch.zeros(1, 3, dtype=torch.int64))


@pytest.mark.parametrize("layer", [nn.SparseAttention, nn.SeparableAttention])
@pytest.mark.parametrize("option", ["nobody", "select"])
def test_an_option_that_a_layer_lacks_is_named(layer, option):
    """Layers that pass options on do so, too, whose base class would take some of them twice."""
    with pytest.raises(TypeError) as raised:
        layer(16, 4, **{option: nn.Window(2)})
    assert str(raised.value) == f"[{layer.__name__}] {option}: no such argument"
