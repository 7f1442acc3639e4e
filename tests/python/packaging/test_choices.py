"""The names in the types of options are those that the library's messages list, and the types of
options that are passed on are those of the signatures."""

import inspect
import re
import typing

import pytest
import torch

import nsimplex
from nsimplex import (
    _choices,
    _options,
    analysis,
    causal,
    distributed,
    graph,
    nn,
)
from nsimplex.nn import attention_options, equivariant_encoder, feature_options

X = torch.randn(1, 1, 4, 4)
AXES = [X, X]
SETS = torch.zeros(1, 4, 2, dtype=torch.int64)
TABLE = torch.randn(20, 4)
PAIRS = torch.tensor([[0, 1], [1, 2]])
GRAPH = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]])


def language(**options):
    return nn.LanguageModel(nn.LanguageModelOptions(vocabulary=9, **options))


def simplicial_config(**options):
    pytest.importorskip("transformers")
    from nsimplex.transformers import SimplicialConfig

    return SimplicialConfig(**options)


def features(**options):
    return nn.FeatureTransformer(nn.FeatureTransformerOptions(features=9, **options))


def equivariant(**options):
    return nn.EquivariantAttention(1, 1, 4, 4, **options)


#: A call per type, with a name that nobody knows.
CALLS = {
    "Activation": lambda: nn.FeedForward(8, activation="x"),
    "Aggregate": lambda: features(aggregate="x"),
    "Backbone": lambda: features(backbone="x"),
    "ClassSet": lambda: nsimplex.equivariant_classes(1, 1, "x"),
    "ColumnKind": lambda: causal.causal_fit(TABLE, kinds=["x"] * 4),
    "Dangling": lambda: causal.causal_embed(GRAPH, dangling="x"),
    "Directions": lambda: graph.from_edge_index(PAIRS, directions="x"),
    "Distinct": lambda: nsimplex.attention(X, AXES, AXES, distinct="x"),
    "Duplicates": lambda: graph.from_hyperedge_index(PAIRS, duplicates="x"),
    "EquivariantEncoderForm": lambda: nn.EquivariantEncoder(1, 1, 4, 4, encoder="x"),
    "EquivariantFeatures": lambda: equivariant(feature_map="x"),
    "EquivariantForm": lambda: equivariant(form="x"),
    "EquivariantKeys": lambda: nsimplex.equivariant_attention_classes(1, 1, keys="x"),
    "EquivariantMlp": lambda: nn.EquivariantEncoder(1, 1, 4, 4, mlp="x"),
    "Estimator": lambda: causal.causal_fit(TABLE, estimator="x"),
    "FeatureEncoding": lambda: features(encoding="x"),
    "FeatureName": lambda: nsimplex.feature_map(X, "x"),
    "FeaturePreset": lambda: nn.FeatureTransformerOptions.preset("x", 9),
    "FeatureValues": lambda: features(values="x"),
    "FlowMethod": lambda: analysis.attention_flow(torch.neg, X, 1.0, method="x"),
    "Form": lambda: nsimplex.attention(X, AXES, AXES, form="x"),
    "GraphKernel": lambda: nn.MessagePassing(kind="x"),
    "GraphLoss": lambda: nn.graph_loss(GRAPH, GRAPH, "number", loss="x"),
    "GraphModel": lambda: causal.simulate(graph="x"),
    "GraphTarget": lambda: nn.GraphTransformer(target="x"),
    "GraphTask": lambda: nn.GraphTransformer("x"),
    "IndexerSource": lambda: nn.Indexer(8, source="x"),
    "LanguageSelection": lambda: language(sparse="x"),
    "LearnedReduce": lambda: nsimplex.sparse_attention(
        X, AXES, AXES, SETS, pattern="product", reduce="x"
    ),
    "LearningSchedule": lambda: nn.fit_graphs(
        nn.MessagePassing(),
        graph.from_edge_index(PAIRS),
        graph.Split(*torch.arange(3).split(1)),
        schedule="x",
    ),
    "Level": lambda: graph.from_edge_index(PAIRS, level="x"),
    "LipschitzForm": lambda: analysis.lipschitz_bound(2, 4, 4, 1.0, 1.0, 1.0, form="x"),
    "ListedDirections": lambda: graph.from_networkx([], directions="x"),
    "LogWriter": lambda: nn.TrainingLog("x", ["x"]),
    "Mechanism": lambda: causal.simulate(mechanism="x"),
    "ModelSelection": lambda: simplicial_config(sparse="x"),
    "MoleculeDirections": lambda: graph.read_molecules("x", directions="x"),
    "Noise": lambda: causal.simulate(noise="x"),
    "Norm": lambda: nn.SimplicialAttention(8, norm="x"),
    "Normalizer": lambda: nsimplex.attention(X, AXES, AXES, normalizer="x"),
    "Optimiser": lambda: causal.causal_embed(GRAPH, optimiser="x"),
    "PairSymmetry": lambda: nn.SetToGraph(symmetry="x"),
    "PairTask": lambda: nn.MessagePassing("x"),
    "PairWeight": lambda: causal.causal_embed(GRAPH, weight="x"),
    "Pattern": lambda: nsimplex.sparse_attention(X, AXES, AXES, SETS, pattern="x"),
    "Pooling": lambda: nsimplex.equivariant_linear(
        torch.randn(1, 3, 2), torch.randn(2, 2, 2), input=1, output=1, pooling="x"
    ),
    "ReadOut": lambda: nn.GraphTransformer(readout="x"),
    "Reduce": lambda: nsimplex.attention(X, AXES, AXES, reduce="x"),
    "Resampling": lambda: causal.edge_confidence(TABLE, resampling="x"),
    "ScaleName": lambda: nsimplex.attention(X, AXES, AXES, scale="x"),
    "ScreenBy": lambda: causal.screen_columns(TABLE, 2, by="x"),
    "Scores": lambda: nsimplex.topk_keys(X, X, 2, scores="x"),
    "SetPattern": lambda: nsimplex.indexer_loss(X, X, X, AXES, pattern="x", indices=SETS),
    "Side": lambda: causal.causal_embed(GRAPH, side="x"),
    "Symmetry": lambda: nsimplex.graph.tuple_batch(SETS[0], 4, symmetry="x"),
    "TupleSymmetry": lambda: nn.GraphTransformer(symmetry="x"),
    "TupleTarget": lambda: nn.HyperSAGNN(target="x"),
    "TupleTask": lambda: nn.SetToGraph("x"),
    "Unbounded": lambda: distributed.ContextParallel(None, "x"),
    "WidthRecipe": lambda: nn.parameter_groups(torch.nn.Linear(2, 2), recipe="x"),
    "Missing": lambda: causal.CausalGraph(missing="x").fit(TABLE),
}


def names_of(kind):
    return set(typing.get_args(getattr(_choices, kind)))


@pytest.mark.parametrize("kind", CALLS)
def test_a_message_lists_the_names_of_the_type(kind):
    with pytest.raises(ValueError) as error:
        CALLS[kind]()
    listed = re.search(r"expected (?:one of )?(.*), got", str(error.value)).group(1)
    words = {word.strip("'\" ") for word in re.split(r", | or ", listed)}
    assert names_of(kind) <= words, listed
    assert words - names_of(kind) <= {"a number", "a pair", "a function"}, listed


def test_every_type_is_compared():
    kinds = {name for name in vars(_choices) if name[0].isupper() and name != "Literal"}
    assert kinds - set(CALLS) == {"PlanForm"}  # a part of EquivariantForm
    assert names_of("PlanForm") < names_of("EquivariantForm")


def named(function):
    """The names of the keyword arguments that a function does not pass on."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name for each in parameters if each.kind == each.KEYWORD_ONLY}


def left_out(path):
    """The options of attention that a path does not take, and the one that it has itself."""
    return {"return_lse"} | _options.DEFAULTS.keys() - _options.TAKEN[path]


@pytest.mark.parametrize(
    "options, function, own",
    [
        (_options.AttentionOptions, nsimplex.attention, {"return_lse", "layout"}),
        (_options.TupleOptions, nsimplex.attention, {"augment", "return_lse", "layout"}),
        (_options.FixedCacheOptions, nsimplex.attention, left_out("slots")),
        (_options.RingCacheOptions, nsimplex.attention, left_out("ring")),
        (
            _options.ShardOptions,
            nsimplex.attention,
            left_out("shards") | named(distributed.ContextParallel.attention),
        ),
        (
            _options.ShardSelectionOptions,
            nsimplex.topk_keys,
            {"adjacency", "candidates", "layout"} | named(distributed.ContextParallel.topk_keys),
        ),
        (_options.SparseOptions, nsimplex.sparse_attention, {"return_lse", "layout"}),
        (_options.SeparableOptions, nsimplex.separable_attention, {"return_normalizer", "layout"}),
        (_options.SelectionOptions, nsimplex.topk_keys, {"return_scores", "layout"}),
        (attention_options.LayerOptions, nn.SimplicialAttention.__init__, {"select"}),
        (equivariant_encoder.EquivariantOptions, nn.EquivariantAttention.__init__, set()),
    ],
)
def test_options_that_are_passed_on_are_those_of_the_signature(options, function, own):
    parameters = inspect.signature(function).parameters.values()
    keywords = {each.name: each for each in parameters if each.kind == each.KEYWORD_ONLY}
    declared = typing.get_type_hints(options)
    assert set(declared) == set(keywords) - own
    hints = typing.get_type_hints(function)
    assert {name: hints[name] for name in declared} == declared


def test_changes_of_a_preset_are_the_fields_of_the_options():
    fields = typing.get_type_hints(nn.FeatureTransformerOptions)
    changes = typing.get_type_hints(feature_options.FeatureChanges)
    assert changes | {"features": int} == fields


#: Parameters that take any text, such as the name of a column: by function or class.
TEXTS = {
    "ByteTokenizer.encode": "text",
    "CausalEncoding": "gene_ids",
    "CausalGraph": "layer",
    "CausalPipeline": "layer",
    "CausalPipeline.encode": "gene_ids",
    "EquivariantClass": "name",
    "JsonTokenizer": "separator",
    "JsonTokenizer.encode": "text",
    "LayerReport": "name kind block",
    "ModelReport": "model",
    "SentencePieceTokenizer": "name",
    "SentencePieceTokenizer.encode": "text",
    "Tokenizer.encode": "text",
    "Traffic": "operator",
    "TupleView": "name",
    "causal_effect": "cause effect",
    "check_features": "name",
    "from_dgl": "node_features edge_features target",
    "from_networkx": "target",
    "from_pyg": "target",
    "read_edges": "delimiter comment",
    "read_h5ad": "layer",
    "read_hif": "target",
    "read_table": "key delimiter comment",
    "read_tuples": "key delimiter comment",
    "save_page": "title",
    "view": "name",
    "fit_graphs": "metric",
}
MODULES = (nsimplex, analysis, causal, distributed, graph, nn, nsimplex.text, nsimplex.viz)


def public_calls():
    """Functions, constructors and methods, by name."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value):
                yield name, value.__init__
                for own, member in vars(value).items():
                    if own[0] != "_" and isinstance(member, (classmethod, staticmethod)):
                        yield f"{name}.{own}", member.__func__
                    elif own[0] != "_" and inspect.isfunction(member):
                        yield f"{name}.{own}", member
            elif callable(value):
                yield name, value


def test_only_parameters_of_any_text_are_plain_strings():
    found = {}
    for name, call in public_calls():
        for each in inspect.signature(call).parameters.values():
            kind = each.annotation  # of data classes a type, elsewhere its words
            words = kind if isinstance(kind, str) else inspect.formatannotation(kind)
            kinds = words.split(" | ")
            place = each.name == "device" or any("PathLike" in kind for kind in kinds)
            if "str" in kinds and not place:
                found[name] = f"{found.get(name, '')} {each.name}".strip()
    assert found == TEXTS
