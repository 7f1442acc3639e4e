"""Models of graphs: symmetry, batches, files, training, mistakes, and one compilation."""

import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

from nsimplex import graph
from nsimplex.nn import (
    GraphTransformer,
    MessagePassing,
    fit_graphs,
    graph_loss,
    graph_metrics,
)

sys.path.append(str(Path(__file__).parents[1] / "graph"))
from pyg_like import Batch, path

SHAPE = dict(node_channels=3, edge_channels=2, width=8, layers=2, heads=2)
MODELS = {
    "softmax": lambda **o: GraphTransformer(**SHAPE | o),
    "kernel": lambda **o: GraphTransformer(**SHAPE | dict(form="kernel", readout="softmax") | o),
    "mixed": lambda **o: GraphTransformer(**SHAPE | dict(order=[1, 2, 4], virtual_node=True) | o),
    "gcn": lambda **o: MessagePassing(**SHAPE | dict(kind="gcn", virtual_node=True) | o),
    "gin": lambda **o: MessagePassing(**SHAPE | dict(kind="gin", random_walk=2) | o),
    "gat": lambda **o: MessagePassing(**SHAPE | dict(kind="gat") | o),
}
TRANSFORMERS = "kernel", "mixed"


def batch():
    return graph.from_pyg(Batch([path(3, 1), path(1, 2), path(5, 3), path(4, 4)]))


def renumbered(data, order):
    """One graph with its nodes in another order."""
    new = order.argsort()
    return graph.from_edge_index(
        new[data.batch.tuples.t()],
        data.num_nodes,
        data.edge_features[0],
        node_features=data.node_features[order],
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["graph", "node"])
def test_equivariance_and_batches(name, task):
    torch.manual_seed(0)
    model, data = MODELS[name](task=task).double().eval(), batch()
    whole = model(data)
    apart = torch.cat([model(each) for each in data])
    torch.testing.assert_close(whole, apart)
    own, order = data[2], torch.tensor([3, 0, 4, 2, 1])
    expected = model(own)
    moved = model(renumbered(own, order))
    torch.testing.assert_close(moved, expected if task == "graph" else expected[order])


@pytest.mark.parametrize("symmetry", ["ordered", "undirected"])
def test_models_without_global_classes_tell_graphs_apart(symmetry):
    torch.manual_seed(0)
    own = [path(3, 1), path(5, 3)]
    directions = "undirected" if symmetry == "undirected" else "given"
    data = graph.from_pyg(Batch(own), directions=directions)
    model = GraphTransformer("graph", global_classes=False, symmetry=symmetry, **SHAPE)
    first, second = model(data)[:, 0].tolist()
    assert first != second


def test_sets_of_three_are_undirected_and_pairs_are_ordered_unless_told_otherwise():
    weights = lambda **own: sum(
        each.numel() for each in GraphTransformer(width=8, layers=1, heads=2, **own).parameters()
    )
    assert weights(order=3) == weights(order=3, symmetry="undirected")
    assert weights(order=3, symmetry="ordered") > 5 * weights(order=3)
    assert weights(order=2) == weights(order=2, symmetry="ordered")
    data = graph.from_hyperedges([[0, 1, 2], [1, 2], [2, 3, 0], [1, 3, 2, 0, 4]])
    model = GraphTransformer("node", order=[2, 3, 5], symmetry="undirected", width=8, heads=2)
    assert model(data).shape == (5, 1)


def test_sizes_of_hyperedges_that_a_model_takes():
    asked = GraphTransformer("hyperedge", order=5, query_sizes=[6], width=8, layers=1, heads=2)
    data = graph.from_hyperedges([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    six = graph.from_hyperedges([[0, 1, 2, 3, 4, 5]]).edges
    assert asked(data, six).shape == (1, 1)
    with pytest.raises(ValueError, match=r"order\[1\]: expected 1 to 5, got 6"):
        GraphTransformer("hyperedge", order=[2, 6])
    with pytest.raises(ValueError, match=r"query_sizes\[0\]: expected 1 to 6, got 7"):
        GraphTransformer("hyperedge", query_sizes=[7])


@pytest.mark.parametrize("name", ["softmax", "kernel", "gcn"])
def test_edges_and_queries(name):
    torch.manual_seed(0)
    model, data = MODELS[name](task="edge").double(), batch()
    assert torch.equal(model(data), model(data, data.batch))
    nowhere = graph.negative_tuples(data.batch, seed=1)
    assert model(data, nowhere).shape == (len(nowhere), 1)
    with pytest.raises(ValueError, match="queries: expected the nodes of data"):
        model(data, data[0].batch)


def hypergraph():
    edges = [[0, 1], [1, 2, 3], [0, 2, 3, 4], [2, 3], [0, 4, 5]]
    return graph.from_hyperedges(edges, 7, torch.arange(5.0), node_features=torch.eye(7))


@pytest.mark.parametrize("task, rows", [("graph", 1), ("node", 7), ("hyperedge", 5)])
@pytest.mark.parametrize("form", ["softmax", "kernel"])
def test_hypergraphs_of_mixed_sizes(task, rows, form):
    torch.manual_seed(0)
    options = dict(order=[2, 3, 4], symmetry="undirected", width=8, layers=2, heads=2, form=form)
    model = GraphTransformer(task, node_channels=7, edge_channels=1, **options).double()
    out = model(hypergraph())
    assert out.shape == (rows, 1) and out.isfinite().all()
    missing = [
        name
        for name, own in model.named_parameters()
        if torch.autograd.grad(out.sum(), own, retain_graph=True, allow_unused=True)[0] is None
    ]
    assert missing == [] or task == "hyperedge"


def test_every_tuple_of_its_size_counts():
    """A change of the features of any edge of any size changes the answer."""
    torch.manual_seed(0)
    model = GraphTransformer(
        "graph",
        order=[2, 3, 4],
        symmetry="undirected",
        node_channels=7,
        edge_channels=1,
        width=8,
        heads=2,
    ).double()
    data, first = hypergraph(), None
    first = model(data)
    for place in range(3):
        changed = [each.clone() for each in data.edge_features]
        changed[place][0] += 1
        assert not torch.equal(model(dataclasses.replace(data, edge_features=changed)), first)


def test_codes():
    data = dataclasses.replace(batch(), node_features=torch.randint(3, (13, 2)))
    model = GraphTransformer(node_codes=[3, 3], edge_channels=2, width=8, layers=1, heads=2)
    assert model(data).shape == (4, 1)
    data.node_features[4, 1] = 3
    with pytest.raises(
        ValueError, match="node_features: expected codes 0 to 2 in column 1, got 0 to 3"
    ):
        model(data)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_predicts_the_same(name, tmp_path):
    torch.manual_seed(0)
    model = MODELS[name](target="binary", dropout=0.1)
    model.save(tmp_path / "run")
    again = type(model).from_run(tmp_path / "run")
    assert torch.equal(again.predict(batch()), model.predict(batch())) and model.training
    assert ((again.predict(batch()) > 0) & (again.predict(batch()) < 1)).all()
    other = MessagePassing if isinstance(model, GraphTransformer) else GraphTransformer
    with pytest.raises(ValueError, match=f"it holds a {type(model).__name__}, not a"):
        other.from_run(tmp_path / "run")


def test_damaged_files_are_one_line(tmp_path):
    model = MODELS["gcn"]()
    model.save(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    for place in (20, len(whole) // 2, len(whole) - 3):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"^cannot read [^\n]*model.safetensors: [^\n]+$"):
            MessagePassing.from_run(tmp_path)
    file.write_bytes(whole[:100])
    with pytest.raises(ValueError, match="damaged: the header"):
        MessagePassing.from_run(tmp_path)
    with pytest.raises(ValueError, match="No such file"):
        MessagePassing.from_run(tmp_path / "nothing")


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_training_steps_of_twenty_batches_compile_twice(name):
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    model = MODELS[name](layers=1)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for seed in range(20):
        sizes = [2 + (seed * k) % 5 for k in range(2 + seed % 3)]
        inputs = model.prepare(graph.from_pyg(Batch([path(n + 1, n) for n in sizes])))
        ours, exact = compiled(inputs), model(inputs)
        torch.testing.assert_close(ours, exact, rtol=1e-4, atol=1e-5)
        ours.sum().backward()
    assert counters["stats"]["unique_graphs"] <= 2


def karate(**options):
    networkx = pytest.importorskip("networkx")
    data = graph.from_networkx(networkx.karate_club_graph(), target="club", ignore=["weight"])
    return graph.with_laplacian_encodings(data, 4), graph.split_rows(
        data.targets, (0.4, 0.3, 0.3), seed=1
    )


@pytest.mark.parametrize("name", MODELS)
def test_features_that_a_model_does_not_take_are_refused(name):
    own = batch()
    codes = {
        "node_features": own.node_features.long(),
        "edge_features": [own.edge_features[0].long()],
    }
    for place, of in (("node_features", "node"), ("edge_features", "edge")):
        model = MODELS[name](**{f"{of}_channels": 0})
        for data, takes in ((own, "channels"), (dataclasses.replace(own, **codes), "codes")):
            data = dataclasses.replace(own, **{place: getattr(data, place)})
            with pytest.raises(ValueError) as error:
                model(data)
            assert re.fullmatch(
                rf"\[{type(model).__name__}\] {place}: expected none, because the model has no "
                rf"{of}_{takes}, got torch\.\w+ \[\d+, \d\]",
                str(error.value),
            )
        model(dataclasses.replace(own, **{place: None if of == "node" else []}))


def last_epoch(state):
    """A callback that makes every epoch better than those before it."""
    state.score = state.epoch


@pytest.mark.parametrize("name", ["kernel", "gcn"])
def test_node_classification_learns(name, tmp_path):
    torch.manual_seed(0)
    data, split = karate()
    model = MODELS[name](
        task="node", target="classes", outputs=2, node_channels=4, edge_channels=0, layers=1
    )
    found = fit_graphs(
        model, data, split, epochs=25, learning_rate=1e-2, folder=tmp_path, callbacks=[last_epoch]
    )
    assert 1 <= found.best <= found.epochs <= 25
    again = type(model).from_run(tmp_path)
    right = (again.predict(data).argmax(1) == data.targets).double()
    assert right[split.training].mean() >= 0.85
    assert right[split.validation].mean() == found.validation["accuracy"]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["graph_epoch"] * found.epochs + ["graph_fit"]
    assert lines[-1]["test_accuracy"] == found.test["accuracy"]
    assert "[model]" in (tmp_path / "config.toml").read_text()


def test_graph_regression_in_batches_learns():
    torch.manual_seed(0)
    sizes = [2 + seed % 7 for seed in range(60)]
    data = graph.from_pyg(Batch([path(n, seed) for seed, n in enumerate(sizes)]))
    data = dataclasses.replace(data, targets=100 + 10 * torch.tensor(sizes).float())
    model = MODELS["gin"]()
    split = graph.split_rows(60, (0.6, 0.2, 0.2))
    found = fit_graphs(model, data, split, epochs=30, batch_size=9, learning_rate=1e-2)
    assert found.validation["mae"] < 15  # 20 is the deviation of the targets
    assert model.predict(data).mean() == pytest.approx(150, abs=20)


def test_the_same_seed_gives_the_same_weights():
    data, split = karate()
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        model = MODELS["kernel"](
            task="node",
            target="classes",
            outputs=2,
            node_channels=4,
            edge_channels=0,
            dropout=0.1,
            layers=1,
        )
        fit_graphs(model, data, split, epochs=3, seed=5)
        weights.append(torch.cat([own.flatten() for own in model.parameters()]))
    assert torch.equal(*weights)


def test_classes_without_training_rows_and_missing_labels():
    data, split = karate()
    targets = data.targets.clone()
    targets[split.test] = 2
    model = MODELS["gcn"](
        task="node", target="classes", outputs=3, node_channels=4, edge_channels=0
    )
    with pytest.warns(UserWarning, match=r"no training row has the classes \[2\]"):
        fit_graphs(model, dataclasses.replace(data, targets=targets), split, epochs=1)
    labels = torch.stack([data.targets, 1 - data.targets], 1).float()
    labels[::3, 0] = torch.nan
    model = MODELS["gcn"](task="node", target="labels", outputs=2, node_channels=4, edge_channels=0)
    found = fit_graphs(
        model,
        dataclasses.replace(data, targets=labels),
        split,
        epochs=60,
        learning_rate=1e-2,
        patience=0,
    )
    assert found.validation["auc"] > 0.8  # 0.92 to 1 for five seeds
    with pytest.raises(ValueError, match=r"targets: expected classes 0 to 1, got 2"):
        fit_graphs(
            MODELS["gcn"](
                task="node", target="classes", outputs=2, node_channels=4, edge_channels=0
            ),
            dataclasses.replace(data, targets=targets),
            split,
        )


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_binary_target_of_one_class_is_told(part):
    data, split = karate()
    rows = getattr(split, part)
    targets = (data.targets > 0).float()
    targets[rows] = 1.0
    targets[[row for row in range(len(targets)) if row not in rows.tolist()][:2]] = 0.0
    model = MODELS["gcn"](task="node", target="binary", node_channels=4, edge_channels=0)
    given = dataclasses.replace(data, targets=targets, classes=())
    with pytest.warns(UserWarning, match=f"all {part} rows have one class"):
        found = fit_graphs(model, given, split, epochs=1)
    assert found.validation["accuracy"] >= 0


def test_losses_and_metrics():
    answers = torch.tensor([[0.5], [-2.0], [3.0]])
    truth = torch.tensor([1.0, torch.nan, 0.0])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        answers[[0, 2], 0], truth[[0, 2]]
    )
    assert graph_loss(answers, truth, "binary") == expected
    assert graph_loss(answers, truth, "number") == pytest.approx((0.5 + 3) / 2)
    assert graph_loss(answers, truth, "number", loss="squared") == pytest.approx((0.25 + 9) / 2)
    assert graph_metrics(answers, truth, "number") == pytest.approx(
        {"mae": 1.75, "rmse": ((0.25 + 9) / 2) ** 0.5}
    )
    scores = torch.tensor([[0.9], [0.2], [0.6]])
    numbers = torch.tensor([[1.0, 10], [3, 30]])
    assert graph_metrics(numbers, numbers + 1, "number", columns=["a", "b"]) == {
        "mae a": 1,
        "mae b": 1,
        "rmse a": 1,
        "rmse b": 1,
    }
    for values, kind, wanted in ((numbers, "number", "2 names"), (scores, "binary", "none")):
        with pytest.raises(ValueError, match=f"columns: expected {wanted}, got 1$"):
            graph_metrics(values, torch.zeros_like(values), kind, columns=["a"])
    found = graph_metrics(scores, torch.tensor([1, 0, 0]), "binary")
    assert found == pytest.approx({"auc": 1, "aupr": 1, "accuracy": 2 / 3, "f1": 2 / 3})
    one = graph_metrics(scores, torch.tensor([1, 1, 1]), "binary")
    assert math.isnan(one.pop("auc")) and math.isnan(one.pop("aupr"))
    assert one == pytest.approx({"accuracy": 2 / 3, "f1": 0.8})
    classes = torch.tensor([[0.2, 0.8], [0.9, 0.1]])
    assert graph_metrics(classes, torch.tensor([1, 1]), "classes") == {"accuracy": 0.5}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: GraphTransformer(heads=5),
            "[GraphTransformer] heads: expected a divisor of width 64, got 5",
        ),
        (
            lambda: GraphTransformer("graph", "binary", 2),
            "[GraphTransformer] outputs: expected 1 of a binary target, got 2",
        ),
        (
            lambda: MODELS["softmax"]()(graph.from_hyperedges([[0, 1, 2]])),
            "[GraphTransformer] data: expected edges of sizes [2], got size 3",
        ),
        (
            lambda: MODELS["softmax"]()(graph.from_edge_index(torch.tensor([[0], [1]]))),
            "[GraphTransformer] edge_features: expected floating numbers [1, 2], got none",
        ),
        (
            lambda: MODELS["gcn"]()(graph.from_hyperedges([[0, 1, 2]])),
            "[MessagePassing] data: expected edges of size 2, got sizes [3]",
        ),
        (
            lambda: MODELS["softmax"](symmetry="undirected")(batch()),
            "[GraphTransformer] data: expected undirected edges of size 2, as "
            'directions="undirected" gives them, got ordered ones',
        ),
        (
            lambda: fit_graphs(MODELS["gcn"](task="node"), batch(), graph.split_rows(4)),
            "[fit_graphs] data: expected targets of nodes, got targets of graphs",
        ),
        (
            lambda: fit_graphs(MODELS["gcn"](), batch(), graph.split_rows(4, (1, 0, 0))),
            "[fit_graphs] split: expected validation rows, got none",
        ),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert str(error.value) == message


def test_graphs_without_edges_and_empty_graphs():
    nothing = torch.empty(2, 0, dtype=torch.int64)
    data = graph.from_edge_index(
        nothing, 3, torch.empty(0, 2), torch.tensor([0, 0, 2]), node_features=torch.ones(3, 3)
    )
    for name, make in MODELS.items():
        assert make()(data).isfinite().all(), name


@pytest.mark.parametrize("assign", [False, True])
def test_weights_fill_a_model_of_the_meta_device(assign):
    shape = SHAPE | dict(node_channels=0, node_codes=[3, 4], task="node")
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    codes = torch.tensor([[0, 3], [2, 1], [1, 0], [2, 3]])
    data = graph.from_edge_index(edges, 4, torch.randn(3, 2), node_features=codes)
    expected = MessagePassing(**shape).eval()
    with torch.device("meta"):
        model = MessagePassing(**shape).eval()
    if not assign:
        model.to_empty(device="cpu")
        for buffer in model.buffers():  # to_empty() leaves what the memory held
            buffer.fill_(2)
    model.load_state_dict(expected.state_dict(), assign=assign)
    torch.testing.assert_close(model(data), expected(data))
