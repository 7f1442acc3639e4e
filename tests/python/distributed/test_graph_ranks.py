"""`nn.fit_graphs` on several ranks: the losses of one process, equal bits, and what is refused."""

from __future__ import annotations

import json

import pytest
import torch
from rank_processes import assert_close
from ranks import run_on_ranks

from nsimplex import graph
from nsimplex.nn import GraphTransformer, MessagePassing, fit_graphs

SHAPE = dict(node_channels=2, width=8, layers=1)
#: Targets of every kind; those of labels and numbers are unknown in some places.
KINDS = {
    "number": ("graph", "number", 2),
    "binary": ("graph", "binary", 1),
    "labels": ("graph", "labels", 2),
    "classes": ("node", "classes", 3),
}


def rings(kind, count=23):
    """Rings of three to seven nodes with targets of a kind."""
    made = []
    for k in range(count):
        nodes = 3 + k % 5
        at = torch.arange(nodes)
        unknown = float("nan") if k % 4 == 1 else 0.0
        targets = {
            "number": torch.tensor([[nodes + unknown, float(k % 3)]]),
            "binary": torch.tensor([float(nodes % 2)]),
            "labels": torch.tensor([[float(k % 2), nodes % 2 + unknown]]),
            "classes": (at + k) % 3,
        }[kind]
        made.append(
            graph.from_edge_index(
                torch.stack([at, (at + 1) % nodes]),
                nodes,
                node_features=torch.stack([at / 8, (at * k) % 7 / 8], 1),
                targets=targets,
                level="node" if kind == "classes" else "graph",
                directions="both",
            )
        )
    return graph.collate_graphs(made)


def fitted(folder, kind="binary", model="gat", seed=3, **options):
    torch.manual_seed(seed)
    own = dict(SHAPE, heads=2, dropout=options.pop("dropout", 0.0))
    task, target, outputs = KINDS[kind]
    if model == "transformer":
        made = GraphTransformer(task, target, outputs, order=[2], form="kernel", **own)
    else:
        made = MessagePassing(task, target, outputs, kind=model, **own)
    split = graph.split_rows(23, (0.6, 0.3, 0.1))
    options = {"epochs": 4, "batch_size": 5, "learning_rate": 1e-2, "warmup": 2, **options}
    return fit_graphs(made, rings(kind), split, folder=folder, **options)


def on_rank(rank, ranks, folder, own, options):
    """The result of a training. The ranks begin with different weights."""
    return fitted(folder, seed=3 + rank, **{**options, **own.get(rank, {})})


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "kind, model, count",
    [
        ("number", "gin", 2),
        ("labels", "gat", 3),
        ("classes", "gcn", 2),
        ("binary", "transformer", 2),
    ],
)
def test_ranks_have_the_losses_of_one_process_and_equal_bits(tmp_path, kind, model, count):
    folders = [tmp_path / name for name in ("one", "first", "again")]
    one = fitted(folders[0], kind, model)
    own = dict(kind=kind, model=model)
    found = [run_on_ranks(count, on_rank, str(folder), {}, own) for folder in folders[1:]]
    assert all(each == found[0][0] for every in found for each in every)
    assert found[0][0].epochs == one.epochs == 4
    assert_close(lines(folders[1]), lines(folders[0]))
    for name in ("metrics.jsonl", "model.safetensors", "checkpoint.safetensors", "config.toml"):
        assert (folders[1] / name).read_bytes() == (folders[2] / name).read_bytes(), name
    assert sorted(path.name for path in folders[0].iterdir()) == sorted(
        path.name for path in folders[1].iterdir()
    )


def interrupted(rank, ranks, folder):
    """A training whose second rank fails in the third epoch, and then one that goes on."""
    import nsimplex.nn.graph_training as training

    training._SAVE_SECONDS = 0.0
    options = dict(folder=folder, resume=True, patience=0, epochs=5)
    redraw, said = MessagePassing.redraw, ""

    def fail(model, generator=None):
        model.steps = getattr(model, "steps", 0) + 1
        if rank == 1 and model.steps > 7:
            raise ValueError("this rank fails")

    MessagePassing.redraw = fail if rank == 1 else redraw
    try:
        fitted(**options)
    except (RuntimeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
    MessagePassing.redraw = redraw
    return said


def test_a_run_of_ranks_goes_on_with_the_same_bits(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = dict(epochs=5, patience=0)
    run_on_ranks(2, on_rank, str(whole), {}, options)
    said = run_on_ranks(2, interrupted, str(broken))
    assert said == ["RanksLost: ", "ValueError: this rank fails"]
    assert not (broken / "model.safetensors").exists()
    assert [line["epoch"] for line in lines(broken)] == [1, 2]
    run_on_ranks(2, on_rank, str(broken), {}, {**options, "resume": True})
    for name in ("metrics.jsonl", "model.safetensors", "checkpoint.safetensors"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def refused(rank, ranks, own, options):
    try:
        on_rank(rank, ranks, None, own, options)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "own, options, message",
    [
        ({}, dict(dropout=0.1), "model: expected dropout 0 with several ranks, got 0.1"),
        (
            {},
            dict(loss="soft_f1"),
            "loss: expected a mean over rows with several ranks, got soft_f1",
        ),
        ({}, dict(batch_size=1), "batch_size: expected at least the 2 ranks, got 1"),
        ({1: dict(epochs=9)}, {}, "others on rank 1 than on rank 0"),
        ({0: dict(kind="labels")}, dict(kind="binary"), "others on rank 1 than on rank 0"),
    ],
)
def test_what_ranks_refuse(own, options, message):
    for said in run_on_ranks(2, refused, own, options):
        assert said.startswith("[fit_graphs] ") and message in said and "\n" not in said


def single_graph(rank, ranks):
    at = torch.arange(12)
    data = graph.from_edge_index(
        torch.stack([at, (at + 2) % 12]),
        12,
        node_features=torch.ones(12, 2),
        targets=at % 2,
        level="node",
        directions="both",
    )
    model = MessagePassing("node", "classes", 2, **SHAPE)
    try:
        fit_graphs(model, data, graph.Split(at[:4], at[4:8], at[8:]), epochs=1)
    except ValueError as error:
        return str(error)


def test_a_single_graph_is_refused():
    said = "[fit_graphs] data: expected several graphs for 2 ranks, got one"
    assert run_on_ranks(2, single_graph) == [said] * 2


def folders_apart(rank, ranks, folder):
    try:
        fitted(f"{folder}/{rank}", resume=True, epochs=2)
    except ValueError as error:
        return str(error)


def test_a_folder_that_ranks_do_not_share_is_refused(tmp_path):
    fitted(tmp_path / "0", epochs=2)
    said = run_on_ranks(2, folders_apart, str(tmp_path))
    assert "rank 1 found 0 epochs in it and rank 0 found 2" in said[0]
    assert "rank 0 found 2 epochs in it and rank 1 found 0" in said[1]
