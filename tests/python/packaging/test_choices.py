"""The names in the types of options are those that the library's messages list, and the types of
options that are passed on are those of the signatures."""

import inspect
import re
import typing

import pytest
import torch

import nsimplex
from nsimplex import _choices, _options, analysis, causal, nn

X = torch.randn(1, 1, 4, 4)
AXES = [X, X]
SETS = torch.zeros(1, 4, 2, dtype=torch.int64)
TABLE = torch.randn(20, 4)
GRAPH = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]])


def language(**options):
    return nn.LanguageModel(nn.LanguageModelOptions(vocabulary=9, **options))


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
    "Dangling": lambda: causal.causal_embed(GRAPH, dangling="x"),
    "Distinct": lambda: nsimplex.attention(X, AXES, AXES, distinct="x"),
    "EquivariantEncoderForm": lambda: nn.EquivariantEncoder(1, 1, 4, 4, encoder="x"),
    "EquivariantFeatures": lambda: equivariant(feature_map="x"),
    "EquivariantForm": lambda: equivariant(form="x"),
    "EquivariantKeys": lambda: nsimplex.equivariant_attention_classes(1, 1, keys="x"),
    "EquivariantMlp": lambda: nn.EquivariantEncoder(1, 1, 4, 4, mlp="x"),
    "Estimator": lambda: causal.causal_fit(TABLE, estimator="x"),
    "FeatureEncoding": lambda: features(encoding="x"),
    "FeatureName": lambda: nsimplex.feature_map(X, "x"),
    "FeatureValues": lambda: features(values="x"),
    "Form": lambda: nsimplex.attention(X, AXES, AXES, form="x"),
    "GraphModel": lambda: causal.simulate(graph="x"),
    "IndexerSource": lambda: nn.Indexer(8, source="x"),
    "LanguageSelection": lambda: language(sparse="x"),
    "LearnedReduce": lambda: nsimplex.sparse_attention(
        X, AXES, AXES, SETS, pattern="product", reduce="x"
    ),
    "LipschitzForm": lambda: analysis.lipschitz_bound(2, 4, 4, 1.0, 1.0, 1.0, form="x"),
    "Mechanism": lambda: causal.simulate(mechanism="x"),
    "Noise": lambda: causal.simulate(noise="x"),
    "Norm": lambda: nn.SimplicialAttention(8, norm="x"),
    "Normalizer": lambda: nsimplex.attention(X, AXES, AXES, normalizer="x"),
    "Optimiser": lambda: causal.causal_embed(GRAPH, optimiser="x"),
    "PairWeight": lambda: causal.causal_embed(GRAPH, weight="x"),
    "Pattern": lambda: nsimplex.sparse_attention(X, AXES, AXES, SETS, pattern="x"),
    "Pooling": lambda: nsimplex.equivariant_linear(
        torch.randn(1, 3, 2), torch.randn(2, 2, 2), input=1, output=1, pooling="x"
    ),
    "Reduce": lambda: nsimplex.attention(X, AXES, AXES, reduce="x"),
    "Resampling": lambda: causal.edge_confidence(TABLE, resampling="x"),
    "ScaleName": lambda: nsimplex.attention(X, AXES, AXES, scale="x"),
    "ScreenBy": lambda: causal.screen_columns(TABLE, 2, by="x"),
    "Scores": lambda: nsimplex.topk_keys(X, X, 2, scores="x"),
    "SetPattern": lambda: nsimplex.indexer_loss(X, X, X, AXES, pattern="x", indices=SETS),
    "Side": lambda: causal.causal_embed(GRAPH, side="x"),
    "Symmetry": lambda: nsimplex.graph.tuple_batch(SETS[0], 4, symmetry="x"),
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
    assert words - names_of(kind) <= {"a number", "a pair"}, listed


def test_every_type_is_compared():
    kinds = {name for name in vars(_choices) if name[0].isupper() and name != "Literal"}
    assert kinds - set(CALLS) == {"PlanForm"}  # a part of EquivariantForm
    assert names_of("PlanForm") < names_of("EquivariantForm")


@pytest.mark.parametrize(
    "options, function, own",
    [
        ("AttentionOptions", nsimplex.attention, {"return_lse", "layout"}),
        ("SparseOptions", nsimplex.sparse_attention, {"return_lse", "layout"}),
        ("SeparableOptions", nsimplex.separable_attention, {"return_normalizer", "layout"}),
        ("SelectionOptions", nsimplex.topk_keys, {"return_scores", "layout"}),
    ],
)
def test_options_that_are_passed_on_are_those_of_the_signature(options, function, own):
    parameters = inspect.signature(function).parameters.values()
    keywords = {each.name: each for each in parameters if each.kind == each.KEYWORD_ONLY}
    declared = typing.get_type_hints(getattr(_options, options))
    assert set(declared) == set(keywords) - own
    hints = typing.get_type_hints(function)
    assert {name: hints[name] for name in declared} == declared
