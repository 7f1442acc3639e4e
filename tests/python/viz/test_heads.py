"""Distances between heads, and their drawing."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch

import nsimplex
from nsimplex import viz

T = 6


def draw(order=2, heads=3, seed=1):
    torch.manual_seed(seed)
    query = torch.randn(1, heads, T, 4, dtype=torch.float64)
    return query, [torch.randn(1, heads, T, 4, dtype=torch.float64) for _ in range(order)]


def shares(query, keys, **options):
    """[H, T, T]: how a query's weight is divided among keys, from all weights."""
    weights = nsimplex.attention_weights(query, keys, **options)[0]
    order = weights.dim() - 2
    mass = sum(
        weights.sum([2 + n for n in range(order) if n != m]) if order > 1 else weights
        for m in range(order)
    )
    return mass / mass.sum(-1, keepdim=True)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("normalizer", ["softmax", "sigmoid"])
def test_distances_are_those_of_all_weights(order, normalizer):
    query, keys = draw(order)
    options = dict(causal=True, normalizer=normalizer)
    made = viz.head_distances(viz.view(query, keys, queries=range(T), **options))
    share = shares(query, keys, **options)
    expected = (share[:, None] - share[None]).abs().sum(-1).mean(-1) / 2
    torch.testing.assert_close(made, expected, atol=1e-6, rtol=1e-5)  # marginals are fp32
    assert bool((made == made.T).all()) and not made.diagonal().any()
    assert 0.05 < made.max() <= 1


def test_heads_of_two_orders_compare():
    query, (first, second) = draw()
    pairs = viz.view(query, [first, second], queries=range(T))
    keys = viz.view(query, [first], queries=range(T))
    made = viz.head_distances([pairs, keys])
    both = torch.cat([shares(query, [first, second]), shares(query, [first])])
    expected = (both[:, None] - both[None]).abs().sum(-1).mean(-1) / 2
    torch.testing.assert_close(made, expected, atol=1e-6, rtol=1e-5)


def test_heads_that_read_different_keys_are_at_distance_one():
    query = torch.ones(1, 2, T, 1)
    sides = torch.full((2, T, T), -1e9)
    sides[0, :, :3] = sides[1, :, 3:] = 0
    options = dict(mask=sides, queries=range(T))
    made = viz.head_distances(viz.view(query, [torch.ones(1, 2, T, 1)], **options))
    torch.testing.assert_close(made, torch.tensor([[0.0, 1], [1, 0]], dtype=torch.float64))


def test_queries_without_keys_do_not_count():
    query, keys = draw(1)
    alive = torch.ones(T, T, dtype=torch.bool)
    alive[:4] = False
    made = viz.head_distances(viz.view(query, keys, queries=range(T), mask=alive))
    share = shares(query, keys)[:, 4:]
    expected = (share[:, None] - share[None]).abs().sum(-1).mean(-1) / 2
    torch.testing.assert_close(made, expected, atol=1e-6, rtol=1e-5)
    none = viz.view(query, keys, mask=torch.zeros(T, T, dtype=torch.bool))
    assert bool(viz.head_distances(none).isnan().all())
    assert viz.heads_svg(none).count(": none</title>") == 9


def test_the_drawing_has_a_square_per_two_heads():
    query, keys = draw()
    views = [viz.view(query, keys, name="<a>"), viz.view(query, keys[:1], name="b")]
    tree = ElementTree.fromstring(viz.heads_svg(views))
    spaces = {"s": "http://www.w3.org/2000/svg"}
    squares = tree.findall(".//s:rect", spaces)[1:]  # after the background
    distances = viz.head_distances(views)
    assert len(squares) == 36
    notes = [square.find("s:title", spaces).text for square in squares]
    assert notes[4] == f"<a>, order 2, head 0 and b, order 1, head 1: {distances[0, 4]:.2f}"
    opacity = [
        float(re.search(r"fill-opacity: ([\d.]+)", square.get("style"))[1]) for square in squares
    ]
    assert opacity == pytest.approx((0.75 * distances).flatten().tolist(), abs=0.006)
    texts = [each.text for each in tree.iterfind(".//s:text", spaces)]
    assert texts.count("1.2") == 2 and len(texts) == 36 + 12
    assert "font-size: 12px" in tree.get("style")
    assert len(tree.findall("s:path", spaces)) == 1  # between the layers
    many = ElementTree.fromstring(viz.heads_svg([views[0]] * 6))
    texts = [each.text for each in many.iterfind(".//s:text", spaces)]
    assert texts == [f"layer {place}" for place in range(6)]  # one per layer, which has room
    sides = [float(each.get("width")) for each in many.iterfind(".//s:rect[@x]", spaces)]
    assert min(sides) * 3 >= 12


def test_the_page_shows_the_layers_that_compare(tmp_path):
    query, keys = draw()
    views = [viz.view(query, keys, name="<a>"), viz.view(query, keys[:1], name="b")]
    other = viz.view(query, [keys[0][:, :, :4]], name="c")
    page = viz.save_page([*views, other], tmp_path / "page.html").read_text()
    assert 'aria-label="distances between heads"' in page
    assert "&lt;a&gt; (order 2), 1 b (order 1)." in page
    distances = viz.head_distances(views)[0, 1:]
    near, far = int(distances.argmin()) + 1, int(distances.argmax()) + 1
    cells = [f"{'0.' if at < 3 else '1.'}{at % 3} ({distances[at - 1]:.2f})" for at in (near, far)]
    assert f"<tr><td>0.0</td><td>{cells[0]}</td><td>{cells[1]}</td></tr>" in page
    one = viz.view(query[:, :1], [keys[0][:, :1]])
    page = viz.save_page([one], tmp_path / "page.html").read_text()
    assert not re.search("Differences between heads", page)


@pytest.mark.parametrize("call", [viz.head_distances, viz.heads_svg])
def test_errors_name_the_argument(call):
    query, keys = draw()
    made = viz.view(query, keys)
    others = [
        ([], "expected one TupleView or more, got none"),
        ([made, viz.view(query, [keys[0][:, :, :4]])], "6 queries and 6 keys of the first one"),
        ([made, viz.view(query, keys, queries=[2])], "got 1 queries and 6 keys"),
        (viz.view(query, [keys[0], keys[1][:, :, :4]]), r"same number of keys, got \[6, 4\]"),
    ]
    for views, said in others:
        with pytest.raises(ValueError, match=said) as found:
            call(views)
        assert "] views: " in str(found.value)
    with pytest.raises(TypeError, match="views"):
        call(3)
