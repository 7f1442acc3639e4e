"""Splits, negatives, losses and metrics against scikit-learn and the definitions."""

import math

import pytest
import torch
from sklearn import metrics

from nsimplex import graph


def drawn(rows=200, levels=0, seed=0):
    draw = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, generator=draw)
    scores = (scores * levels).round() if levels else scores
    return scores, torch.rand(rows, generator=draw) < 0.3


@pytest.mark.parametrize("levels", [0, 2])  # without and with ties
def test_curves_are_those_of_scikit_learn(levels):
    scores, truth = drawn(levels=levels)
    assert graph.roc_auc(scores, truth) == pytest.approx(metrics.roc_auc_score(truth, scores))
    assert graph.average_precision(scores, truth) == pytest.approx(
        metrics.average_precision_score(truth, scores)
    )
    assert math.isnan(graph.roc_auc(scores, torch.ones(200)))
    assert math.isnan(graph.average_precision(scores, torch.zeros(200)))


def test_partitions():
    draw = torch.Generator().manual_seed(0)
    found, truth = torch.randint(4, (2, 60), generator=draw)
    expected = metrics.adjusted_rand_score(truth, found)
    assert graph.adjusted_rand_index(found, truth) == pytest.approx(expected)
    assert graph.adjusted_rand_index(truth + 7, truth) == 1
    assert graph.adjusted_rand_index(truth * 0, truth * 0) == 1


def test_soft_f1_is_f1_of_certain_answers():
    _, truth = drawn()
    answers = truth.clone()
    answers[:30] = ~answers[:30]
    logits = (answers.float() * 2 - 1) * 50
    expected = 1 - metrics.f1_score(truth, answers)
    assert float(graph.soft_f1_loss(logits, truth)) == pytest.approx(expected, abs=1e-6)


def test_splits_keep_shares_of_classes():
    classes = torch.tensor([0] * 50 + [3] * 10)
    split = graph.split_rows(classes, (0.6, 0.2, 0.2), seed=1)
    assert torch.equal(torch.cat(split).sort().values, torch.arange(60))
    assert [int((classes[part] == 3).sum()) for part in split] == [6, 2, 2]
    assert [len(part) for part in graph.split_rows(10, (0.5, 0.5, 0))] == [5, 5, 0]
    assert torch.equal(graph.split_rows(60, seed=3).test, graph.split_rows(60, seed=3).test)
    with pytest.raises(ValueError, match=r"\[split_rows\] fractions: expected a sum of 1"):
        graph.split_rows(10, (0.5, 0.1, 0.1))


@pytest.mark.parametrize("symmetry", ["undirected", "ordered"])
@pytest.mark.parametrize("size", [2, 3])
def test_negatives_are_no_positives(symmetry, size):
    index = torch.randint(8, (2, 60), generator=torch.Generator().manual_seed(0))
    rows = torch.cat([index.t()] + [index.t()[:, :1] + 1] * (size - 2), 1).sort(1).values
    rows = rows[(rows.diff(dim=1) > 0).all(1)].unique(dim=0)
    starts = torch.searchsorted(rows[:, 0].contiguous(), torch.tensor([0, 9, 12]))
    batch = graph.tuple_batch(
        rows, tuple_offsets=starts, node_offsets=torch.tensor([0, 9, 12]), symmetry=symmetry
    )
    found = graph.negative_tuples(batch, 0.25, seed=2)
    graph.tuple_batch(
        found.tuples,
        tuple_offsets=found.tuple_offsets,
        node_offsets=found.node_offsets,
        symmetry=symmetry,
    )
    assert (
        len(found) == math.ceil(len(rows) / 4)
        and found.tuple_offsets.tolist()[1:] == [len(found)] * 2
    )
    assert not set(map(tuple, rows.tolist())) & set(map(tuple, found.tuples.tolist()))
    assert all(len(set(row)) == size for row in found.tuples.tolist())


def test_a_complete_graph_has_no_negatives():
    every = graph.complete_tuples([4, 3], 2, symmetry="undirected", loops=False)
    assert len(graph.negative_tuples(every)) == 0


@pytest.mark.parametrize("score", [graph.roc_auc, graph.average_precision, graph.soft_f1_loss])
@pytest.mark.parametrize("value", [-1.0, 0.5, 2.0, float("nan"), float("inf")])
def test_a_truth_is_true_or_false(score, value):
    scores, truth = drawn(8)
    truth = truth.float()
    assert score(scores, truth) == score(scores, truth.bool())
    truth[3] = value
    with pytest.raises(
        ValueError, match=rf"truth: expected True and False or 1 and 0, got {value}"
    ):
        score(scores, truth)


def test_the_soft_score_compiles_and_transforms():
    logits, truth = drawn(8)
    truth = truth.float()
    expected = graph.soft_f1_loss(logits, truth)
    compiled = torch.compile(graph.soft_f1_loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, truth), expected)
    many = torch.func.vmap(graph.soft_f1_loss)(logits.expand(2, 8), truth.expand(2, 8))
    torch.testing.assert_close(many, expected.expand(2))
