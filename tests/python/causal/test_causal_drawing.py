"""Pictures of graphs, and graphs for networkx and igraph."""

import itertools
import re
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph

SVG = "{http://www.w3.org/2000/svg}"
CHAIN = torch.tensor([[0, 2.0, -0.5, 0], [0, 0, 1.0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def parts(picture):
    """Titles, boxes, edges and texts of a picture that is well-formed XML."""
    assert "var(" not in picture.svg  # a file has no page to take colours from
    root = ElementTree.fromstring(picture.svg)
    return (
        [each.text for each in root.iter(f"{SVG}title")],
        [each for each in root.iter(f"{SVG}rect") if each.get("rx")],
        [each for each in root.iter(f"{SVG}path") if each.get("class") == "edge"],
        [each.text for each in root.iter(f"{SVG}text")],
    )


def test_shows_names_weights_and_signs():
    picture = causal.draw_graph(CHAIN, ["sun & <moon>", "b", "c", "alone"])
    titles, boxes, edges, texts = parts(picture)
    assert picture.columns == [0, 1, 2] and len(boxes) == 3 and len(edges) == 3
    assert sorted(picture.edges) == [(0, 1), (0, 2), (1, 2)] and picture.hidden == 0
    assert "sun & <moon>" in texts and "1 column has no edges" in texts
    assert "sun & <moon> → b: weight 2" in titles
    by_title = dict(zip([each for each in titles if "→" in each], edges))
    widths = {title: float(edge.get("stroke-width")) for title, edge in by_title.items()}
    assert max(widths, key=widths.get) == "sun & <moon> → b: weight 2"
    assert by_title["sun & <moon> → c: weight −0.5"].get("stroke-dasharray")
    assert picture._repr_svg_() == picture.svg and "3 columns, 3 edges" in repr(picture)


def test_causes_stand_above_their_effects_and_edges_lead_from_one_to_the_other():
    made = causal.simulate(nodes=20, degree=2, observations=300, seed=2)
    picture = causal.draw_graph(made.weights)
    root = ElementTree.fromstring(picture.svg)
    box = {}
    for group in root.iter(f"{SVG}g"):
        for rect in group.iter(f"{SVG}rect"):
            x, y, width, height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
            box[group.find(f"{SVG}title").text] = (x, x + width, y, y + height)
    _, _, width, height = map(float, root.get("viewBox").split())
    for left, right, top, bottom in box.values():
        assert left >= 0 and right <= width and top >= 0 and bottom <= height
    seen = 0
    for group in root.iter(f"{SVG}g"):
        path = group.find(f"{SVG}path")
        if path is None:
            continue
        cause, effect = re.match(r"(\w+) → (\w+):", group.find(f"{SVG}title").text).groups()
        numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d"))]
        tip = [float(number) for number in re.findall(r"[\d.]+", group[2].get("d"))][:2]
        assert box[cause][3] < box[effect][2]
        assert box[cause][0] <= numbers[0] <= box[cause][1]
        assert abs(numbers[1] - box[cause][3]) < 2 and abs(tip[1] - box[effect][2]) < 2
        assert box[effect][0] <= tip[0] <= box[effect][1]
        seen += 1
    assert seen == int((made.weights != 0).sum())


def test_confidence_is_colour():
    made = causal.simulate(nodes=6, degree=1, observations=60, seed=4)
    graph = CausalGraph(confidence=20, standardise=True).fit(made.table, names=list("abcdef"))
    titles, _, edges, texts = parts(graph.draw())
    assert "pale colour: in few samples" in texts
    assert any("% of the samples, and in 100% in either direction" in title for title in titles)
    assert any("[" in title for title in titles)
    faint = {}
    root = ElementTree.fromstring(graph.draw().svg)
    for group in root.iter(f"{SVG}g"):
        if group.get("data-edge") is not None:
            faint[float(group.get("data-frequency"))] = float(group.get("opacity", 1))
    shares = sorted(faint)
    assert len(shares) > 1 and [faint[s] for s in shares] == sorted(faint.values())
    assert len({edge.get("style") for edge in edges}) == 1  # one colour


def test_a_known_graph_is_compared_by_colours_and_marks():
    learned, known = torch.zeros(2, 4, 4)
    learned[0, 1], learned[1, 2], learned[2, 3] = 1.0, -2.0, 0.5
    known[0, 1], known[2, 1], known[0, 3] = 1.0, 1.0, -3.0
    picture = causal.draw_graph(learned, truth=known)
    kinds = {(each.cause, each.effect): each.kind for each in picture.facts}
    assert kinds == {
        ("x0", "x1"): "right",
        ("x1", "x2"): "reversed",
        ("x2", "x3"): "extra",
        ("x0", "x3"): "missing",
    }
    titles, _, edges, texts = parts(picture)
    assert "x0 → x3: true weight −3, missing" in titles
    assert len({edge.get("style") for edge in edges}) == 4
    assert {"right: in the known graph too (1)", "reversed in the known graph (1)"} <= set(texts)


def test_a_fitted_graph_is_drawn_beside_a_known_one():
    made = causal.simulate(nodes=4, degree=1, observations=200, seed=4)
    graph = CausalGraph(standardise=True).fit(made.table)
    own = graph.adjacency_
    assert {each.kind for each in graph.draw(truth=own).facts} == {"right"}
    assert {each.kind for each in graph.draw(truth=own.T).facts} == {"reversed"}
    pairs = [(int(i), int(j)) for i, j in own.nonzero()]
    for loose in (pairs, []):
        assert graph.draw(reversible=loose).svg == causal.draw_graph(graph, reversible=loose).svg


def heads_of(svg):
    """Left and right ends of arrow heads by the height of their tips."""
    found = {}
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if path.get("class") == "head":
            numbers = [float(number) for number in re.findall(r"[\d.]+", path.get("d"))]
            found.setdefault(numbers[1], []).append((min(numbers[::2]), max(numbers[::2])))
    return found


def test_arrow_heads_into_one_node_are_apart():
    graph = torch.zeros(9, 9)
    graph[:8, 8] = torch.linspace(-3, 2, 8)
    (heads,) = heads_of(causal.draw_graph(graph).svg).values()
    assert len(heads) == 8
    heads.sort()
    assert all(left[1] < right[0] for left, right in itertools.pairwise(heads))


def test_a_small_graph_fills_its_page_and_has_a_readable_legend():
    made = causal.simulate(nodes=12, degree=2, observations=50, seed=3)
    root = ElementTree.fromstring(causal.draw_graph(made.weights).svg)
    boxes = [each for each in root.iter(f"{SVG}rect") if each.get("rx")]
    ends = [float(b.get("x")) + end * float(b.get("width")) for b in boxes for end in (0, 1)]
    assert float(root.get("width")) == 760 and max(ends) - min(ends) > 300


def test_edges_without_a_direction_have_no_head():
    heads = [
        causal.draw_graph(CHAIN, reversible=pairs).svg.count('class="head"')
        for pairs in ([], [(0, 1)])
    ]
    assert heads == [3, 2]
    assert "the direction cannot be told" in causal.draw_graph(CHAIN, reversible=[(0, 1)]).svg


def test_large_graphs_are_reduced_to_what_is_strong_or_asked_for():
    chain = torch.zeros(100, 100)
    chain[torch.arange(99), torch.arange(1, 100)] = torch.linspace(1, 2, 99)
    picture = causal.draw_graph(chain)
    assert picture.columns == list(range(40, 100)) and picture.hidden == 99 - 59
    assert "59 of 99 edges shown" in picture.svg
    picture = causal.draw_graph(chain, columns=["x50"], most=5)
    assert picture.columns == [50, 51, 52, 53, 54]
    assert picture.svg.count('class="chosen"') == 1
    weak = causal.draw_graph(chain, columns=[50, 3], most=6, scores=chain.flip(0, 1).T)
    assert weak.columns[0] < 3 and 50 in weak.columns and len(weak.columns) == 6
    assert causal.draw_graph(chain, columns=[99], most=200).columns == list(range(100))


def test_graphs_without_edges_and_with_hostile_names(tmp_path):
    picture = causal.draw_graph(torch.zeros(3, 3))
    assert "no edges; 3 columns have no edges" in picture.svg and picture.columns == []
    names = ["a\nb\x1b[31m", "漢字" * 30, ""]
    graph = torch.tensor([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]])
    picture = causal.draw_graph(graph, names)
    assert len(parts(picture)[1]) == 3 and "\x1b" not in picture.svg
    picture.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == picture.svg


def test_networkx_gets_everything_known():
    networkx = pytest.importorskip("networkx")
    made = causal.simulate(nodes=6, degree=1, observations=200, seed=4)
    graph = CausalGraph(confidence=10, standardise=True).fit(made.table, names=list("abcdef"))
    found = graph.to_networkx()
    assert networkx.is_directed_acyclic_graph(found) and list(found) == list("abcdef")
    for edge in graph.edges():
        attributes = found.edges[edge.cause, edge.effect]
        assert attributes == {
            "weight": edge.weight,
            "score": edge.score,
            "frequency": edge.frequency,
            "connected": edge.connected,
            "low": edge.low,
            "high": edge.high,
        }
    weights = networkx.to_numpy_array(found, weight="weight")
    assert np.array_equal(weights, graph.adjacency_.numpy())
    bare = causal.to_networkx(CHAIN)
    assert bare.edges["x0", "x1"] == {"weight": 2.0} and "x3" in bare


def test_a_page_is_one_file_with_every_number(tmp_path):
    made = causal.simulate(nodes=6, degree=1, observations=200, seed=4)
    names = ["a<b", *"bcdef"]
    graph = CausalGraph(confidence=10, standardise=True).fit(made.table, names=names)
    picture = graph.draw()
    picture.save(tmp_path / "graph.HTML")
    page = (tmp_path / "graph.HTML").read_text(encoding="utf-8")
    assert (
        page.startswith("<!doctype html>")
        and f"<h1>Causal graph of {len(picture.columns)} " in page
    )
    assert "prefers-color-scheme: dark" in page and "stroke: var(--edge)" in page
    assert 'name="viewport"' in page and "http" not in page.replace(
        'xmlns="http://www.w3.org/2000/svg"', ""
    )
    assert page.count('<input id="weight"') == page.count('<input id="frequency"') == 1
    assert page.count("<tbody><tr>") == 1 and "a&lt;b" in page and "a<b" not in page
    known = {(e.cause, e.effect): e for e in graph.edges()}
    assert len(picture.facts) == len(picture.edges) == len(known) > 0
    for (i, j), facts in zip(picture.edges, picture.facts):
        edge = known[facts.cause, facts.effect]
        assert (names[i], names[j]) == (edge.cause, edge.effect)
        known_of = (edge.weight, edge.score, edge.frequency, edge.low, edge.high)
        assert facts == (*edge[:2], *known_of, None)
        place = f'data-cause="{i}" data-effect="{j}" data-weight="{edge.weight:.6g}"'
        assert f'{place} data-frequency="{edge.frequency:.6g}"' in page


def test_a_page_of_many_columns_has_a_picture_for_phones(tmp_path):
    made = causal.simulate(nodes=40, degree=2, observations=50, seed=3)
    names = [f"a gene of name {at}" for at in range(40)]
    picture = causal.draw_graph(made.weights, names, columns=[names[1]])
    picture.save(tmp_path / "graph.html")
    page = (tmp_path / "graph.html").read_text(encoding="utf-8")
    wide, narrow = (
        ElementTree.fromstring(each) for each in re.findall(r"<svg.*?</svg>", page, re.S)
    )
    assert float(wide.get("width")) <= 940 and float(narrow.get("width")) == 328
    for root in (wide, narrow):
        edges = [each for each in root.iter(f"{SVG}g") if each.get("data-edge") is not None]
        pairs = [(int(each.get("data-cause")), int(each.get("data-effect"))) for each in edges]
        assert pairs == picture.edges  # the order of the table, by which the script hides them
    texts = {each.text: float(each.get("y")) for each in narrow.iter(f"{SVG}text")}
    for i, j in picture.edges:
        assert texts[names[i]] < texts[names[j]]
    assert "font-size: 12px" in page


def test_a_page_of_a_bare_matrix(tmp_path):
    causal.draw_graph(CHAIN).save(tmp_path / "graph.html")
    page = (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert '<input id="weight" type="range" min="0" max="2"' in page
    assert 'id="frequency"' not in page and ">score</th>" not in page
    causal.draw_graph(torch.zeros(2, 2)).save(tmp_path / "empty.html")
    assert "no edges" in (tmp_path / "empty.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"ends in \.svg, \.html, \.png or \.pdf, got .*gif'"):
        causal.draw_graph(CHAIN).save(tmp_path / "graph.gif")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty.html", "graph.html"]


def test_every_kind_of_file_has_all_columns(tmp_path):
    pytest.importorskip("matplotlib")
    picture = causal.draw_graph(CHAIN, ["sun", "$moon_", "tides", "alone"])
    begins = {"svg": b"<svg ", "html": b"<!doctype html>", "png": b"\x89PNG\r\n", "pdf": b"%PDF-"}
    files = {}
    for kind, magic in begins.items():
        picture.save(tmp_path / f"graph.{kind.upper()}")
        files[kind] = (tmp_path / f"graph.{kind.upper()}").read_bytes()
        assert files[kind].startswith(magic)
    streams = re.findall(rb"stream\r?\n(.*?)endstream", files["pdf"], re.DOTALL)
    shown = b"".join(zlib.decompressobj().decompress(each) for each in streams if each[:1] == b"x")
    letters = b"".join(re.findall(rb"\(([^()]*)\)", shown))  # each text may be in several parts
    for name in (b"sun", b"$moon_", b"tides"):
        assert name in files["svg"] and name in files["html"] and name in letters
    assert len(list(tmp_path.iterdir())) == 4
    with pytest.raises(OSError, match="cannot write .*graph.png"):
        picture.save(tmp_path / "none" / "graph.png")


def test_axes_of_matplotlib_have_the_same_picture():
    figures = pytest.importorskip("matplotlib.figure")
    picture = causal.draw_graph(CHAIN, reversible=[(0, 1)], truth=CHAIN.T)
    ax = figures.Figure(figsize=(4, 3)).subplots()
    assert picture.to_axes(ax) is ax
    assert [text.get_text() for text in ax.texts] == ["x0", "x1", "x2"]
    kinds = [type(patch).__name__ for patch in ax.patches]
    assert (kinds.count("PathPatch"), kinds.count("Polygon")) == (3, 2)
    assert kinds.count("FancyBboxPatch") == 3 and len(ax.lines) == 3  # a mark per reversed edge
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == [text for text in parts(picture)[3] if text not in ("x0", "x1", "x2")][:-1]
    with pytest.raises(TypeError, match=r"\[to_axes\] ax: expected axes of matplotlib, got 3"):
        picture.to_axes(3)


def test_without_matplotlib_a_png_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    says = r"save to \.png needs matplotlib: python -m pip install matplotlib"
    with pytest.raises(ModuleNotFoundError, match=says):
        causal.draw_graph(CHAIN).save(tmp_path / "graph.png")
    assert not list(tmp_path.iterdir())


def test_igraph_gets_everything_known():
    pytest.importorskip("igraph")
    made = causal.simulate(nodes=6, degree=1, observations=200, seed=4)
    graph = CausalGraph(confidence=10, standardise=True).fit(made.table, names=list("abcdef"))
    found = graph.to_igraph()
    assert found.is_dag() and found.vs["name"] == list("abcdef")
    edges = {(e.cause, e.effect): e for e in graph.edges()}
    for edge in found.es:
        own = edges[found.vs[edge.source]["name"], found.vs[edge.target]["name"]]
        assert (edge["weight"], edge["frequency"]) == (own.weight, own.frequency)
    assert causal.to_igraph(torch.zeros(2, 2)).ecount() == 0


def test_igraph_is_optional(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "igraph", None)
    with pytest.raises(ModuleNotFoundError, match="to_igraph needs igraph: python -m pip install"):
        causal.to_igraph(CHAIN)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: causal.draw_graph(torch.zeros(2, 3)), r"graph: expected \[M, M\] or a fitted"),
        (lambda: causal.draw_graph(torch.full((2, 2), torch.nan)), "graph: expected finite"),
        (lambda: causal.draw_graph(CHAIN, ["a"]), "names: expected 4, one per column, got 1"),
        (lambda: causal.draw_graph(CHAIN, columns=["z"]), "columns: expected names of columns"),
        (
            lambda: causal.draw_graph(CHAIN, columns=[4]),
            "columns: expected columns 0 to 3 or their names, got 4",
        ),
        (lambda: causal.draw_graph(CHAIN, most=1), "most: expected at least 2, got 1"),
        (lambda: causal.draw_graph(CHAIN, scores=torch.zeros(2, 2)), r"scores: expected \[4, 4\]"),
        (lambda: CausalGraph().draw(), "not fitted: call fit first"),
    ],
)
def test_names_what_cannot_be(call, says):
    with pytest.raises(ValueError, match=says):
        call()
