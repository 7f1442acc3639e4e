"""The heaviest tuples of a graph transformer's predictions, and their drawing."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

from nsimplex import graph, viz
from nsimplex.graph import complete_tuples, with_loops
from nsimplex.nn import GraphTransformer, MessagePassing
from nsimplex.viz.graph_drawing import MOST_NODES, graph_drawing, nearby_nodes


def rings(*sizes):
    """Rings, each with a chord, so that they have a triangle."""
    torch.manual_seed(2)
    made = []
    for n in sizes:
        ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        index = torch.cat([ring, torch.tensor([[0], [2]])], 1)
        made.append(graph.from_edge_index(index, n, torch.randn(n + 1, 2), directions="both"))
    return graph.collate_graphs(made)


def model(task, **options):
    torch.manual_seed(3)
    return GraphTransformer(task, edge_channels=2, width=8, heads=2, layers=1, **options).eval()


def coefficients(own, data, queries=None):
    """All of the read-out, [classes, heads, rows, tuples], by the plan of all rows."""
    inputs = own.prepare(data, queries)
    reader = next(iter(own.readers.values()))
    x = reader.norm_attention(own.hidden(inputs)[2])
    return reader.attention.coefficients(x, inputs.readouts[0].attention)


def without_weights(found):
    return replace(found, tuples=[each._replace(weight=0) for each in found.tuples])


@pytest.mark.parametrize("form", ["softmax", "kernel"])
@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_the_heaviest_tuples_are_those_of_all_coefficients(task, form):
    data, own = rings(5, 6), model(task, form=form)
    every = coefficients(own, data).detach()
    loops = with_loops(own._list(data, 2)[0]).batch
    found = viz.heaviest_graph_tuples(own, data, 10**6)
    assert [each.row for each in found] == list(range(own.predict(data).size(0)))
    for each in found:
        mine = every[:, :, each.row]
        several = (mine != 0).sum(-1, keepdim=True) > 1
        expected = mine[several.expand_as(mine) & (mine > 0)].sort(descending=True).values
        weights = torch.tensor([own.weight for own in each.tuples])
        torch.testing.assert_close(weights, expected, atol=1e-6, rtol=1e-5)
        start = int(data.node_offsets[each.graph])
        place = {tuple(nodes): row for row, nodes in enumerate((loops.tuples - start).tolist())}
        names = next(iter(own.readers.values())).attention.class_names()
        for heavy in each.tuples:
            nodes = heavy.nodes if len(heavy.nodes) == 2 else heavy.nodes * 2
            same = mine[names.index(heavy.name), heavy.head]
            assert same[place[nodes]] == pytest.approx(heavy.weight, abs=1e-6)
            assert heavy.among == int((same != 0).sum()) > 1


def test_rows_of_edges_name_their_nodes_and_chosen_rows_come_in_their_order():
    data, own = rings(5, 6), model("edge")
    every, some = (viz.heaviest_graph_tuples(own, data, 3, rows=r) for r in (None, [15, 2, 15]))
    assert [each.row for each in some] == [15, 2, 15]
    assert some[0] == some[2]
    for one, of_all in zip(some, [every[15], every[2], every[15]]):
        assert without_weights(one) == without_weights(of_all)
        weights, expected = ([each.weight for each in own.tuples] for own in (one, of_all))
        assert weights == pytest.approx(expected, abs=1e-6)  # torch's products depend on the sizes
    starts = data.node_offsets[torch.tensor([each.graph for each in every])]
    assert [each.target for each in every] == [
        tuple(nodes) for nodes in (data.batch.tuples - starts[:, None]).tolist()
    ]
    queries = complete_tuples(data.node_offsets.diff(), 2)
    assert len(viz.heaviest_graph_tuples(own, data, 1, queries=queries)) == 25 + 36


def test_hyperedges_of_several_sizes_and_sets_have_tuples_too():
    own = GraphTransformer("hyperedge", "binary", order=[2, 3], width=8, heads=2, layers=1)
    data = graph.from_hyperedges([("a", "b"), ("b", "c", "d"), ("c", "e")])
    found = viz.heaviest_graph_tuples(own, data, 2)
    assert [len(each.target) for each in found] == [2, 2, 3]
    assert all(len(each.tuples) == 2 for each in found)
    assert found[0].name(found[0].target) == "a, b"
    assert "for a, b: heaviest tuples" in found[0].text()
    points = GraphTransformer("node", order=1, width=8, heads=2, layers=1)
    alone = graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 4)
    nodes = viz.heaviest_graph_tuples(points, alone, 3)[2]
    assert all(each.among == 3 and each.nodes != (2,) for each in nodes.tuples)


def test_a_class_with_one_tuple_is_left_out_and_said_to_be():
    own = model("node", global_classes=False)
    data = graph.from_edge_index(torch.tensor([[0], [1]]), 2, torch.ones(1, 2), directions="both")
    (found,) = viz.heaviest_graph_tuples(own, data, rows=[0])
    assert found.tuples == [] and "none" in found.text()


def test_dropout_and_the_mode_of_the_model_stay():
    data, own = rings(5), model("graph", dropout=0.5)
    first = viz.heaviest_graph_tuples(own, data)
    assert viz.heaviest_graph_tuples(own.train(), data) == first and own.training


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(count=0), "count: expected 1 or more, got 0"),
        (dict(rows=[2]), "rows: expected numbers from 0 to 1, got 2"),
        (dict(rows=[-1]), "rows: expected numbers from 0 to 1, got -1"),
        (dict(model=MessagePassing()), "model: expected a GraphTransformer, got MessagePassing"),
        (dict(data=3), "data: expected a GraphData, got"),
    ],
)
def test_bad_arguments(change, message):
    call = dict(model=model("graph"), data=rings(4, 5)) | change
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        viz.heaviest_graph_tuples(call.pop("model"), call.pop("data"), **call)


def points_of(picture):
    root = ElementTree.fromstring(picture)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    nodes = [own for own in root.iter("{http://www.w3.org/2000/svg}circle") if own.get("r") == "4"]
    found = [(float(own.get("cx")), float(own.get("cy"))) for own in nodes]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in found)
    return found


def test_a_drawing_puts_neighbours_near_each_other():
    edges = [(i, i + 1) for i in range(7)]
    points = points_of(graph_drawing([f"n{i}" for i in range(8)], edges, [((0, 1), 0.5)], (3,)))
    length = lambda a, b: sum((x - y) ** 2 for x, y in zip(points[a], points[b])) ** 0.5
    near = [length(a, b) for a, b in edges]
    assert max(near) < 1.2 * min(near) and length(0, 7) > 6 * max(near)
    text = graph_drawing(["<a>", "b", "c"], [(0, 1, 2)], [((2,), 1.0), ((0, 1), 0.5)], (1,))
    assert "<a>" not in text and text.count('class="tuple"') == 2 and "font-size: 12px" in text
    assert text.count("polygon points") == 1 and 'r="9"' in text and len(points_of(text)) == 3


@pytest.mark.parametrize("nodes", [0, 1, 2, 3])
def test_small_graphs_without_edges_are_drawn(nodes):
    assert len(points_of(graph_drawing(["x"] * nodes, [], []))) == nodes


def test_parts_without_a_path_stay_apart():
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
    points = points_of(graph_drawing(list("abcdef"), edges, []))
    left = [x for x, _ in points[:3]]
    right = [x for x, _ in points[3:]]
    assert max(left) < min(right) or max(right) < min(left)


def test_a_large_graph_shows_what_is_near_its_tuples():
    edges = [(i, i + 1) for i in range(499)]
    kept = nearby_nodes(500, edges, [(250,), (300, 301)])
    assert len(kept) == MOST_NODES and {249, 250, 299, 300, 301, 302} <= set(kept)
    picture = graph_drawing([str(i) for i in range(500)], edges, [((300, 301), 0.5)], (250,))
    assert len(points_of(picture)) == MOST_NODES and f"{MOST_NODES} of 500 nodes" in picture
    assert ">300<" in picture and ">290<" not in picture  # only nodes of tuples have labels
