"""The training loop of models of graphs: which epoch is the best, and how a run goes on."""

import dataclasses
import json
import math

import pytest
import torch

import nsimplex
from nsimplex import graph
from nsimplex.nn import MessagePassing, fit_graphs, graph_loss, graph_metrics
from nsimplex.nn.graph_checkpoint import FitState
from nsimplex.nn.graph_parts import GraphParts

SHAPE = dict(node_channels=2, width=8, layers=1)


def rings(count=24):
    """Rings with two features of nodes; is the number of nodes odd?"""
    made = []
    for k in range(count):
        nodes = 3 + k % 5
        at = torch.arange(nodes)
        made.append(
            graph.from_edge_index(
                torch.stack([at, (at + 1) % nodes]),
                nodes,
                node_features=torch.stack([at / 8, (at * k) % 7 / 8], 1),
                targets=torch.tensor([float(nodes % 2)]),
                directions="both",
            )
        )
    return graph.collate_graphs(made)


def taken(scores):
    """The best epoch and the one that the patience counts from, after each (score, loss)."""
    state, found = FitState(), []
    for score, loss in scores:
        state.epoch += 1
        state.take(score, loss)
        found.append((state.best, state.better))
    return found


def test_the_loss_decides_between_equal_scores_and_the_patience_counts_scores():
    assert taken([(0.5, 3.0), (0.5, 2.0), (0.5, 2.5), (0.4, 1.0)]) == [
        (1, 1),
        (2, 1),
        (2, 1),
        (2, 1),
    ]
    assert taken([(0.5, 1.0), (0.6, 9.0), (0.6, 9.0)]) == [(1, 1), (2, 2), (2, 2)]


def test_without_a_score_the_loss_decides():
    nan = math.nan
    assert taken([(nan, 3.0), (nan, 2.0), (nan, 2.5)]) == [(1, 1), (2, 2), (2, 2)]
    assert taken([(nan, nan), (nan, 2.0), (nan, nan), (0.1, 5.0)])[-2:] == [(2, 2), (4, 4)]


def test_weights_are_those_of_the_lowest_loss_among_equal_accuracies():
    at = torch.arange(12)
    data = graph.from_edge_index(
        torch.stack([at, (at + 2) % 12]),
        12,
        node_features=torch.stack([at % 2, 1 - at % 2], 1).float(),
        targets=at % 2,
        level="node",
        directions="both",
    )
    split = graph.Split(at[:4], at[4:8], at[8:])
    torch.manual_seed(0)
    model = MessagePassing("node", "classes", 2, **SHAPE)
    found = fit_graphs(model, data, split, epochs=40, learning_rate=1e-2, patience=0)
    assert found.validation["accuracy"] == 1.0
    assert found.best > 30  # the loss of a task this easy falls to the end


class Interrupted(Exception):
    pass


class Fragile(MessagePassing):
    """A model whose training is interrupted before a step."""

    steps = 10**9

    def redraw(self, generator=None):
        self.steps -= 1
        if self.steps < 0:
            raise Interrupted


Fragile.__name__ = "MessagePassing"  # the class that its file names


def fitted(folder, steps=10**9, kind=MessagePassing, **options):
    torch.manual_seed(1)
    model = kind("graph", "binary", dropout=0.2, kind="gat", heads=2, **SHAPE)
    model.steps = steps
    split = graph.split_rows(24, (0.5, 0.25, 0.25))
    options = {"epochs": 6, "batch_size": 5, **options}
    return fit_graphs(model, rings(), split, folder=folder, **options)


def test_a_run_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr("nsimplex.nn.graph_training._SAVE_SECONDS", 0.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    found = fitted(whole)
    for steps in (7, 6):  # in the third epoch, and in the fourth one
        with pytest.raises(Interrupted):
            fitted(broken, steps, Fragile, resume=True)
        assert not (broken / "model.safetensors").exists()
    with open(broken / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"kind": "graph_epoch", "epoch": 5, "loss": 1')  # of a process that was killed
    assert fitted(broken, resume=True) == found
    for name in ("metrics.jsonl", "model.safetensors", "config.toml"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
    assert fitted(broken, resume=True) == found  # a run that has ended is judged again
    assert (broken / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()


def test_a_run_says_what_it_was_made_with(tmp_path):
    fitted(tmp_path, epochs=1)
    told = json.loads((tmp_path / "info.json").read_text())
    assert told["kind"] == "info" and told["version"] == nsimplex.__version__
    assert told["torch"] == torch.__version__ and told["threads"] == torch.get_num_threads()


def test_a_folder_without_a_checkpoint_begins_and_one_without_resume_begins_anew(tmp_path):
    found = fitted(tmp_path, resume=True, epochs=2)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["graph_epoch"] * 2 + ["graph_fit"]
    assert fitted(tmp_path, epochs=2) == found
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == lines


def test_other_options_and_other_files_are_told_in_one_line(tmp_path):
    fitted(tmp_path, epochs=2)
    with pytest.raises(ValueError, match=r"resume: expected the options .* epochs = 2, got epochs"):
        fitted(tmp_path, epochs=3, resume=True)
    with pytest.raises(ValueError, match="folder: expected that of the run to resume, got none"):
        fitted(None, resume=True)
    checkpoint = tmp_path / "checkpoint.safetensors"
    checkpoint.write_bytes((tmp_path / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="not a checkpoint of a training of graphs"):
        fitted(tmp_path, epochs=2, resume=True)
    (tmp_path / "config.toml").unlink()
    with pytest.raises(ValueError, match=r"resume: cannot read .*config\.toml: No such file"):
        fitted(tmp_path, epochs=2, resume=True)


def test_rows_of_a_single_graph_are_learned_where_the_model_is():
    ring = torch.arange(6)
    data = graph.from_edge_index(
        torch.stack([ring, (ring + 1) % 6]),
        6,
        node_features=torch.ones(6, 2),
        targets=ring % 2,
        directions="both",
    )
    model = MessagePassing("node", "classes", 2, **SHAPE).to("meta")
    parts = GraphParts(model, data, graph.Split(ring[:4], ring[4:], ring[:0]), None, None, 1)
    ((inputs, wanted, rows),) = parts.training(torch.Generator())
    assert {each.device.type for each in (inputs.nodes, wanted, rows)} == {"meta"}


def ring(targets, level="node"):
    """One ring of six nodes, or six graphs of a node, with these targets."""
    at = torch.arange(6)
    return graph.from_edge_index(
        torch.stack([at, at if level == "graph" else (at + 1) % 6]),
        6,
        batch=at if level == "graph" else None,
        node_features=torch.ones(6, 2),
        targets=targets,
        level=level,
    )


NAN, INF = math.nan, math.inf
PARTS = graph.Split(torch.arange(3), torch.tensor([3, 4]), torch.tensor([5]))
CASES = [
    ("number", torch.full((6,), NAN), "targets: expected a known target in the training rows, got"),
    (
        "number",
        torch.tensor([1, 2, NAN, NAN, NAN, 1]),
        "targets: expected a known target in the validation rows, got none in 2 rows",
    ),
    (
        "number",
        torch.tensor([1, 2, 3, 4, 5, -INF]),
        "targets: expected finite numbers of float32, or NaN, got [-inf] in row 5",
    ),
    (
        "number",
        torch.tensor([1, 2, 1e39, 4, 5, 6], dtype=torch.float64),
        "targets: expected finite numbers of float32, or NaN, got [1e+39] in row 2",
    ),
    ("number", torch.arange(6) > 2, "targets: expected real numbers, got torch.bool"),
    (
        "number",
        torch.ones(6, 2),
        "targets: expected shape [6, 1], got [6, 2]",
    ),
    ("binary", torch.arange(6.0), "targets: expected 0, 1 or NaN of a binary target, got [2.0]"),
    (
        "binary",
        torch.full((6,), INF),
        "targets: expected 0, 1 or NaN of a binary target, got [inf]",
    ),
    ("binary", torch.full((6,), NAN), "targets: expected a known target in the training rows, got"),
    ("classes", torch.ones(6), "targets: expected int64 of classes, got torch.float32"),
    (
        "classes",
        torch.tensor([0, 1, 0, 1, -1, 0]),
        "targets: expected classes 0 to 1, got -1 in row 4",
    ),
    (
        "classes",
        torch.tensor([0, 1, 0, 1, 0, 2]),
        "targets: expected classes 0 to 1, got 2 in row 5",
    ),
    ("classes", torch.zeros(6, 2).long(), "targets: expected a class per row, [6], got [6, 2]"),
    (
        "number",
        torch.ones(6, requires_grad=True),
        "targets: expected numbers of the data alone, got a torch.float32 tensor of shape [6] that "
        "requires a gradient, which it would not get; detach() gives its numbers",
    ),
]


@pytest.mark.parametrize(("kind", "targets", "message"), CASES)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_targets_that_cannot_be_learned_are_told_before_the_model_changes(
    kind, targets, message, level
):
    model = MessagePassing(level, kind, 2 if kind == "classes" else 1, **SHAPE)
    before = {name: own.clone() for name, own in model.state_dict().items()}
    for given in ((), (targets,)) if level == "node" else ((),):
        data = ring(targets if not given else None, level if not given else "")
        with pytest.raises((ValueError, TypeError)) as error:
            fit_graphs(model, data, PARTS, targets=given[0] if given else None, epochs=1)
        assert str(error.value).startswith(f"[fit_graphs] {message}")
        assert "\n" not in str(error.value)
    assert all(torch.equal(own, before[name]) for name, own in model.state_dict().items())


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize(
    ("split", "said"),
    [
        (([2, 1, 0], [1, 3], [5]), "1 in training and validation"),
        (([0, 5], [3, 4], [4, 5]), "5 in training and test"),
        (([0, 1], [3, 4], [5, 4, 3]), "3 in validation and test"),
    ],
)
def test_a_row_is_in_one_part_of_the_split(level, split, said):
    model = MessagePassing(level, "number", **SHAPE)
    row = {"node": "row", "graph": "graph"}[level]
    with pytest.raises(ValueError) as error:
        fit_graphs(model, ring(torch.arange(6.0), level), graph.Split(*map(torch.tensor, split)))
    assert str(error.value) == (
        f"[fit_graphs] split: expected each {row} in one part, got {row} {said}"
    )


def test_features_that_learn_are_named_and_a_split_is_three_tensors():
    data = ring(torch.arange(6.0))
    learned = dataclasses.replace(data, node_features=torch.ones(6, 2, requires_grad=True))
    with pytest.raises(ValueError, match=r"^\[fit_graphs\] data: expected numbers of the data al"):
        fit_graphs(MessagePassing("node", "number", **SHAPE), learned, PARTS, epochs=1)
    results = []
    for split in (PARTS, tuple(PARTS)):
        torch.manual_seed(0)
        model = MessagePassing("node", "number", **SHAPE)
        results.append(fit_graphs(model, data, split, epochs=2))
    assert results[0] == results[1]
    with pytest.raises(TypeError, match=r"^\[fit_graphs\] split.validation: expected a tensor"):
        fit_graphs(model, data, (PARTS.training, [3, 4], PARTS.test), epochs=1)


def test_rows_without_a_target_may_stay():
    """Unknown targets beside known ones, unknown classes outside of the split, columns that only
    some rows have, and single classes, which a warning names."""
    known = torch.tensor([1.0, NAN, 3.0, 4.0, NAN, 6.0])
    fit_graphs(MessagePassing("node", "number", **SHAPE), ring(known), PARTS, epochs=1)
    outside = PARTS._replace(test=torch.empty(0, dtype=torch.int64))
    for unknown in (-1, -100):
        labels = torch.tensor([0, 1, 0, 1, 0, unknown])
        fit_graphs(MessagePassing("node", "classes", 2, **SHAPE), ring(labels), outside, epochs=1)
    for kind, targets, said in (
        ("number", torch.stack([known, known * NAN], 1), r"no training row .* the columns \[1\]"),
        ("classes", torch.zeros(6, dtype=torch.int64), "all training rows have one class"),
        ("number", torch.tensor([1, 2, 3, 4, 5, NAN]), r"no test row has .* the columns \[0\]"),
    ):
        model = MessagePassing("node", kind, targets.dim() if kind == "number" else 2, **SHAPE)
        with pytest.warns(UserWarning, match=said):
            fit_graphs(model, ring(targets), PARTS, epochs=1)


def test_targets_are_one_per_row_of_the_task():
    pairs = graph.tuple_batch(torch.tensor([[0, 1], [1, 3]]), 6)
    model = MessagePassing("edge", "number", **SHAPE)
    with pytest.raises(ValueError, match=r"targets: expected shape \[2, 1\], got \[6\]"):
        apart = graph.Split(torch.tensor([0]), torch.tensor([1]), torch.arange(0))
        fit_graphs(model, ring(None, ""), apart, queries=pairs, targets=torch.ones(6))
    with pytest.raises(ValueError, match=r"\[graph_loss\] targets: expected finite .* in row 1"):
        graph_loss(torch.zeros(2, 1), torch.tensor([0.0, INF]), "number")
    with pytest.raises(
        ValueError, match=r"\[graph_metrics\] targets: expected classes 0 to 1, got"
    ):
        graph_metrics(torch.rand(2, 2), torch.tensor([0, -1]), "classes")


def test_class_weights_are_factors_of_rows():
    torch.manual_seed(0)
    answers, classes = torch.randn(5, 3).double(), torch.tensor([0, 2, 1, 2, 0])
    weights = torch.tensor([1.0, 0.5, 4.0]).double()
    rows = torch.nn.functional.cross_entropy(answers, classes, reduction="none")
    found = graph_loss(answers, classes, "classes", class_weights=weights.tolist())
    torch.testing.assert_close(found, (weights[classes] * rows).mean())
    truth = torch.tensor([[1, 0, 1], [0, math.nan, 1], [1, 1, 0]]).double()
    found = graph_loss(answers[:3], truth, "labels", class_weights=[2.0, 3.0, 1.0])
    own = torch.where(truth == 1, torch.tensor([2.0, 3.0, 1.0]).double(), 1.0)
    chance = answers[:3].sigmoid()
    chance = torch.where(truth == 1, chance, 1 - chance)
    torch.testing.assert_close(found, (-own * chance.log())[~truth.isnan()].mean())


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("binary", dict(class_weights=[1.0, 2.0]), "class_weights: expected one per column, 1,"),
        ("binary", dict(class_weights=[-1.0]), "class_weights: expected numbers above 0, got -1"),
        ("binary", dict(class_weights=[1.0], loss="soft_f1"), "class_weights: expected classes,"),
        ("number", dict(class_weights=[1.0]), "class_weights: expected classes, binary targets"),
        ("number", dict(metric="auc"), "metric: expected mae, rmse or loss of a number target,"),
        ("binary", dict(metric="mae"), "metric: expected auc, aupr, accuracy, f1 or loss of a"),
    ],
)
def test_weights_and_metrics_that_do_not_fit(target, options, message):
    model, split = MessagePassing("graph", target, **SHAPE), graph.split_rows(24)
    with pytest.raises(ValueError) as error:
        fit_graphs(model, rings(), split, epochs=1, **options)
    assert str(error.value).startswith(f"[fit_graphs] {message}")


@pytest.mark.parametrize("metric", ["loss", "f1"])
def test_another_metric_chooses_the_epoch(metric, tmp_path):
    torch.manual_seed(0)
    model, seen = MessagePassing("graph", "binary", **SHAPE), []
    see = lambda state: seen.append(
        -state.validation_loss if metric == "loss" else state.metrics[metric]
    )
    options = dict(metric=metric, class_weights=[2.0], epochs=6, learning_rate=0.05)
    split = graph.split_rows(rings().targets.long(), (0.5, 0.5, 0))
    found = fit_graphs(model, rings(), split, callbacks=[see], folder=tmp_path, **options)
    assert seen[found.best - 1] == max(seen)
    config = (tmp_path / "config.toml").read_text()
    assert f'metric = "{metric}"' in config and "class_weights = [2.0]" in config
