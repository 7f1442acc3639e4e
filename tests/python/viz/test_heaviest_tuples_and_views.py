"""Heaviest tuples, views of layers, and their drawings."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import nsimplex
from nsimplex import viz
from nsimplex.nn import SimplicialAttention
from nsimplex.viz.page import page_text

T = 6
OPTIONS = {
    "plain": {},
    "causal": dict(causal=True),
    "window": dict(causal=True, window=[(3, 1), 2]),
    "lengths": dict(key_lengths=torch.tensor([4, 6])),
    "masks": dict(key_masks=[torch.arange(12).view(2, 6) % 3 > 0] * 2),
    "documents": dict(cu_seqlens=torch.tensor([0, 2, 6])),
    "distinct": dict(distinct="with_query"),
    "bias": dict(mask=torch.linspace(-9, 9, 216).view(6, 6, 6).sin() * 3),
    "heads": dict(mask=torch.linspace(-9, 9, 864).view(4, 6, 6, 6).cos()),
    "large": dict(mask=torch.zeros(6, 6, 6).masked_fill(torch.arange(6) > 3, -1e9)),
    "forbidden": dict(mask=torch.arange(216).view(1, 1, 6, 6, 6) % 4 > 1),
    "unit": dict(scale="unit"),
    "negative": dict(scale=-0.5),
    "sigmoid": dict(normalizer="sigmoid"),
    "relu": dict(normalizer="relu"),
    "sink": dict(normalizer="softmax_sink", sink=torch.tensor([0.0, 1.0, -1.0, 2.0])),
    "determinant": dict(form="determinant"),
    "softcap": dict(
        softcap=0.4, mask=torch.zeros(6, 6, 6).masked_fill(torch.eye(6) > 0, -torch.inf)
    ),
    "pairs": dict(
        pair_masks=[torch.linspace(-9, 9, 36).view(6, 6).sin(), torch.arange(36).view(6, 6) % 3 > 0]
    ),
    "alibi": dict(alibi_slopes=torch.tensor([0.5, 0.1, -0.2, 0.0]), causal=True),
    "positions": dict(causal=True, query_positions=torch.tensor([[0, 1, 1, 2, 4, 5]] * 2)),
}


def draw(dim=6, order=2, kv_heads=2, seed=1):
    torch.manual_seed(seed)
    query = torch.randn(2, 4, T, dim, dtype=torch.float64)
    return query, [torch.randn(2, kv_heads, T, dim, dtype=torch.float64) for _ in range(order)]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_heaviest_tuples_are_those_of_all_weights(name):
    query, keys = draw()
    options = {
        n: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        for n, v in OPTIONS[name].items()
    }
    weights = nsimplex.attention_weights(query, keys, **options)
    best = viz.heaviest_tuples(query, keys, 40, **options)
    expected = weights.flatten(3).topk(36).values
    torch.testing.assert_close(best.weights[..., :36], expected, atol=1e-9, rtol=1e-7)
    assert not best.weights[..., 36:].any()
    b, h, q, c = (best.weights > 0).nonzero(as_tuple=True)
    j = best.indices[b, h, q, c]
    torch.testing.assert_close(weights[b, h, q, j[:, 0], j[:, 1]], best.weights[b, h, q, c],
                               atol=1e-9, rtol=1e-7)  # fmt: skip
    assert bool(((best.indices < 0).any(-1) == (best.weights == 0)).all())


@pytest.mark.parametrize("order", [1, 3])
def test_other_orders(order):
    query, keys = draw(order=order, kv_heads=1)
    weights = nsimplex.attention_weights(query, keys, causal=True)
    best = viz.heaviest_tuples(query, keys, 3, queries=[2, 5], causal=True)
    expected = weights[:, :, [2, 5]].flatten(3).topk(3).values
    torch.testing.assert_close(best.weights, expected)
    assert best.indices.shape == (2, 4, 2, 3, order)


def test_logits_far_below_zero_keep_their_order():
    """topk_tuples alone takes all negative scores for equal."""
    query = torch.ones(1, 1, 1, 1)
    keys = [torch.tensor([-30.0, -10.0, -20.0]).view(1, 1, 3, 1)]
    best = viz.heaviest_tuples(query, keys, 3)
    assert best.indices.flatten().tolist() == [1, 2, 0]


class Largest(TorchDispatchMode):
    """The size of the largest tensor that an operation returns."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor):
                self.numbers = max(self.numbers, each.untyped_storage().nbytes() // each.itemsize)
        return result


def test_no_tensor_is_as_large_as_all_weights():
    """Storages have at most 2^17 numbers, up to the candidates beside a block of scores."""
    length = 96
    query, first, second = torch.randn(3, 1, 2, length, 4)
    with Largest() as seen:
        made = viz.view(query, [first, second], queries=range(length), count=5, causal=True)
    assert made.tuples.indices.shape == (2, length, 5, 2)
    assert 2**12 < seen.numbers <= 2**18 < 2 * length**3 / 4


def test_a_view_has_the_marginals_sinks_and_edges_of_the_weights():
    query, keys = draw(kv_heads=4)
    labels = list("abcdef")
    made = viz.view(query, keys, labels=labels, queries=[1, 4], count=3, name="x", causal=True)
    weights = nsimplex.attention_weights(query[:1], [k[:1] for k in keys], causal=True)[0]
    for axis in range(2):
        marginal = weights.sum(3 - axis).float()
        torch.testing.assert_close(made.marginals[axis], marginal[:, [1, 4]])
        torch.testing.assert_close(made.received[axis], marginal.mean(1))
    mean = (weights.sum(3) + weights.sum(2)).mean(0) / 2
    assert made.sinks(1)[0][0] == int(mean.mean(0).argmax())
    chosen = mean[made.edges[:, 0], made.edges[:, 1]]
    torch.testing.assert_close(made.edge_weights, chosen)
    assert made.edges[made.edges[:, 0] == 5][:, 1].tolist() == sorted(
        mean[5].topk(3).indices.tolist()
    )
    loops = made.edges[:, 0] == made.edges[:, 1]
    assert bool((made.curvatures.isnan() == loops).all())
    assert (made.order, made.heads, made.queries, made.label(2)) == (2, 4, [1, 4], "c")


def test_rows_and_text_say_the_same():
    query, keys = draw()
    made = viz.view(query, keys, labels=["<b>", "x\ny", "", "d", "e", "f"], queries=[3], count=4)
    rows = made.rows(head=1)
    assert len(rows) == 4 and rows == sorted(rows, key=lambda row: -row[1])
    text = made.text(head=1)
    assert f"{100 * rows[0][1]:.1f} %" in text and "head 1, query 3" in text and "█" in text
    assert len([line for line in text.splitlines() if "\x1b" in line]) == 0
    for wrong, said in ((dict(head=4), "head"), (dict(query=0), "query")):
        with pytest.raises(ValueError, match=rf"\[TupleView\] {said}: expected"):
            made.text(**wrong)


@pytest.mark.parametrize("order, shape", [(1, "path"), (2, "polygon"), (3, "polygon")])
def test_drawings_are_svg_with_one_shape_per_tuple(order, shape, tmp_path):
    query, keys = draw(order=order)
    made = viz.view(query, keys, labels=["<b>", "&", '"', "d", "e", "f"], count=5)
    tree = ElementTree.parse(made.save(tmp_path / "tuples.svg"))
    spaces = {"s": "http://www.w3.org/2000/svg"}
    notes = [each.text for each in tree.iterfind(".//s:title", spaces)][1:]
    rows = made.rows()
    assert len(notes) == len(rows) == 5
    assert sorted(notes, key=lambda note: -float(note.split()[-2]))[0].endswith(
        f"{100 * rows[0][1]:.2f} %"
    )
    distinct = [keys for keys, _ in rows if len({5, *keys}) > min(order, 2)]
    assert len(tree.findall(f".//s:{shape}", spaces)) == len(distinct)
    if order == 2:
        assert {"triangle"} == {each.get("class") for each in tree.iterfind(".//s:polygon", spaces)}
    graph = ElementTree.fromstring(made.graph_svg())
    assert len(graph.findall(".//s:title", spaces)) == 1 + len(made.edges)


def test_views_of_a_model_and_its_page(tmp_path):
    torch.manual_seed(3)
    layers = [SimplicialAttention(8, 2, order=n, causal=True) for n in (1, 2)]
    model = torch.nn.Sequential(*layers, SimplicialAttention(8, 2, augment=True))
    labels = ["</script>", "<img src=x>", "c", "d", "e"]
    made = viz.views(model, torch.randn(1, 5, 8), labels=labels, count=3)
    assert [(each.name, each.order) for each in made] == [("0", 1), ("1", 2), ("2", 2)]
    page = viz.save_page(made, tmp_path / "page.html", title="a < b").read_text()
    assert "<title>a &lt; b" in page and "<img" not in page
    assert not re.search(r'(src|href)="?(http|//)', page)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert [each["order"] for each in data] == [1, 2, 2]
    assert data[1]["labels"] == labels and data[0]["queries"] == [0, 1, 2, 3, 4]
    assert 'const begins = {"layer": 2, "head": 0, "query": 4}' in page  # the last of order 2
    third = page_text(made, "x", opens=1, head=1, query=3)
    assert 'const begins = {"layer": 1, "head": 1, "query": 3}' in third
    assert "3 layers, opened at 1, of order 2." in third
    keys, weight = data[1]["tuples"][1][4][0]
    first = made[1].rows(head=1, query=4)[0]
    assert tuple(keys) == first[0] and weight == pytest.approx(first[1], rel=1e-5)


@pytest.mark.slow
def test_the_page_draws_in_a_browser(tmp_path, opened):
    query, keys = draw()
    made = [viz.view(query, keys, count=5, name="second"), viz.view(query, keys[:1], count=4)]
    single = torch.tensor([[0.0] * 4, [-60.0] * 4])  # only tuples without a second key weigh
    made.append(viz.view(query, keys, count=4, augment=True, order_bias=single))
    page = viz.save_page(made, tmp_path / "page.html").read_text()
    # What a user does, and what is drawn then.
    extra = """<script>
      const shapes = () => document.querySelectorAll("#drawing title").length;
      const seen = [Number(field("layer").value)];
      field("layer").value = 0; field("layer").dispatchEvent(new Event("input"));
      seen.push(shapes(), field("query").value, field("sentence").children.length,
                document.querySelectorAll("table").length,
                document.querySelectorAll("table thead th").length > 10);
      field("sentence").children[2].click(); seen.push(field("query").value);
      field("query").value = 5;
      field("count").value = 2; field("count").dispatchEvent(new Event("input"));
      seen.push(shapes());
      field("layer").value = 1; field("layer").dispatchEvent(new Event("input"));
      seen.push(document.querySelectorAll("#drawing path.arc").length,
                document.querySelectorAll("#marginals h3").length);
      field("layer").value = 2; field("layer").dispatchEvent(new Event("input"));
      seen.push(shapes(), field("table").textContent.split("left out").length - 1,
                field("drawing").textContent.split("left out").length - 1);
      document.body.dataset.seen = JSON.stringify(seen);
    </script></body>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", extra))
    left = opened(tmp_path / "page.html")
    assert left["ready"] == "yes"
    arcs = sum(keys != (5,) for keys, _ in made[1].rows()[:2])
    # It opens with the last layer of the highest order, and shows the text.
    assert json.loads(left["seen"]) == [2, 5, "5", 6, 6, True, "2", 2, arcs, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda q, k: viz.heaviest_tuples(q, k, 0), r"\[heaviest_tuples\] count: expected"),
        (lambda q, k: viz.heaviest_tuples(q, k, 1, queries=[6]), r"\[heaviest_tuples\] queries"),
        (lambda q, k: viz.view(q, k, labels=["a"]), r"\[view\] labels: expected 6 texts, got 1"),
        (lambda q, k: viz.view(q, k, count=0), r"\[view\] count: expected 1 or more, got 0"),
        (
            lambda q, k: viz.view(q, k, softcap=1.0, mask=torch.eye(T)[None, None, None]),
            r"\[view\] softcap",
        ),
        (
            lambda q, k: viz.heaviest_tuples(q, k, 1, softcap=1.0, mask=torch.ones(1, 1, T, T, T)),
            r"\[heaviest_tuples\] softcap",
        ),
        (
            lambda q, k: viz.view(q, k, softcap=1.0, pair_masks=[torch.eye(T)] * 2),
            r"\[view\] softcap",
        ),
        (
            lambda q, k: viz.heaviest_tuples(q, k, 1, softcap=1.0, alibi_slopes=torch.ones(4)),
            r"\[heaviest_tuples\] softcap",
        ),
        (lambda q, k: viz.view(q, k).sinks(-1), r"\[TupleView\] count: expected 0 or more, got -1"),
        (lambda q, k: viz.views(torch.nn.Linear(2, 2), torch.ones(1, 2)), r"\[views\] model"),
        (lambda q, k: viz.save_page([], "x.html"), r"\[save_page\] views: expected"),
    ],
)
def test_errors_name_the_argument(call, said):
    with pytest.raises(ValueError, match=said):
        call(*draw())
