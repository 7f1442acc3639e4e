"""One interactive HTML page about the views of layers, without a network."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from .._arguments import checked
from .._page import page, readable, section, table
from .._printable import printable
from .._whole_file import require_kind, whole_file
from .head_comparison import comparable, head_distances, heads_drawing
from .tuple_drawing import tuples_svg
from .view import TupleView

__all__ = ["save_page"]

_KEYS = 12  # keys per bar chart of marginals
_MOST_HEADS = 64  # whose distances are drawn


@checked
def save_page(
    views: Sequence[TupleView], path: str | os.PathLike, *, title: str = "Attention"
) -> Path:
    """Writes a page that shows the tuples, marginals, sinks and graphs of layers.

    The page is one file, light or dark, and loads nothing. It shows the text with the keys that a
    query weighs. Fields select the layer, the head, the query and the number of tuples; a table
    compares the heads for a query, and a drawing their distances. The page opens with the last view
    of the highest order, which it also shows without scripts.

    Args:
        views: of :func:`view` or :func:`views`, one or more.
        path: of the file. A failure leaves an earlier file as it was.
        title: of the page.

    Returns:
        The path.

    Raises:
        ValueError: no views.
        OSError: the file cannot be written.

    Complexity: the file has a few bytes per tuple, kept marginal and edge: O(Hq Q (count + 12 N)).

    Example:
        >>> q, k = torch.randn(2, 1, 2, 9, 4)
        >>> save_page([view(q, [k], name="first")], "attention.html")
    """
    if not views or not all(isinstance(each, TupleView) for each in views):
        raise ValueError("[save_page] views: expected one TupleView or more, got none")
    require_kind(path, ".html", "save_page")
    target, page = Path(path), page_text(list(views), title)
    with whole_file(target, encoding="utf-8", errors="replace") as file:
        file.write(page)
    return target


def page_text(
    views: list[TupleView],
    title: str,
    *,
    opens: int | None = None,
    head: int = 0,
    query: int | None = None,
) -> str:
    """The page of :func:`save_page` as a text. It begins with a head and a query of the view of
    number ``opens``; None: the last view of the highest order, and its last query."""
    highest = max(view.order for view in views)
    if opens is None:
        opens = max(at for at, view in enumerate(views) if view.order == highest)
    first = views[opens]
    at = len(first.queries) - 1 if query is None else first.queries.index(query)
    data = json.dumps([_data(each) for each in views], ensure_ascii=True, allow_nan=False)
    data = data.replace("<", "\\u003c")  # no text can end the script
    fields = "".join(
        f'<label>{name} <select id="{name}"></select></label>'
        for name in ("layer", "head", "query")
    )
    drawing = tuples_svg(first.queries[at], first.rows(head=head, query=query), first.label)
    parts = [
        section(
            "Heaviest tuples",
            _muted(
                "The text, with the query in orange. A touch of an underlined token chooses "
                "another one. A key is darker the more weight the tuples below put on it. Each "
                "arc, triangle or polygon joins the query with one tuple of keys; the stronger the "
                "colour, the larger the weight."
            ),
            f'<p id="sentence" class="sentence">{escape(_sentence(first))}</p>',
            f'<div id="drawing" class="scroll">{readable(drawing, largest=1.3)}</div>',
            '<div id="table" class="scroll"></div>',
        ),
        *(_part(*each) for each in _PARTS[:2]),
        *_differences(views),
        _part(*_PARTS[2]),
        _part(*_PARTS[3], readable(first._graph())),
    ]
    form = f'<form>{fields}<label>tuples <input id="count" type="range" min="1"></label></form>'
    begins = json.dumps({"layer": opens, "head": head, "query": at})
    return page(
        title,
        "nsimplex attention",
        f"{len(views)} layers, opened at {printable(first.name) or 'attention'}, of order "
        f"{first.order}."
        if len(views) > 1
        else f"One layer of order {first.order}.",
        "".join([form, *parts]) + f'<script type="application/json" id="data">{data}</script>',
        "Written by nsimplex.viz.",
        script=f"const begins = {begins};{_SCRIPT}",
    )


#: Headings, words and places of parts that the script fills.
_PARTS = (
    (
        "Keys per axis",
        "The weight that the query puts on a key of one axis, summed over the other axes.",
        "marginals",
    ),
    (
        "Heads",
        "How the heads differ for this query: a large first weight is a head that chooses, and a "
        "small one is a head that averages.",
        "heads",
    ),
    ("Sinks", "The keys that receive most weight from all queries, over axes and heads.", "sinks"),
    (
        "Attention graph",
        "An arc leads from each query to its heaviest keys; red edges have negative curvature and "
        "are bottlenecks.",
        "graph",
    ),
)


def _part(heading: str, see: str, place: str, content: str = "") -> str:
    return section(heading, _muted(see), f'<div id="{place}" class="scroll">{content}</div>')


def _muted(text: str) -> str:
    return f'<p class="muted">{text}</p>'


def _sentence(view: TupleView) -> str:
    """The text of a view, for browsers without scripts."""
    spaced = any(len(label) > 1 for label in view.labels)
    return (" " if spaced else "").join(map(printable, view.labels))


def _differences(views: list[TupleView]) -> list[str]:
    """The section that compares the heads of all layers that can be compared: a matrix, and for
    phones a table."""
    shown = comparable(views, _MOST_HEADS)
    if sum(each.heads for each in shown) < 2:
        return []
    layers = ", ".join(
        f"{place} {printable(v.name)} (order {v.order})" for place, v in enumerate(shown)
    )
    see = (
        "The share of attention that two heads put on different keys, as a mean over the queries: "
        "0 is the same keys, 1 is no key in common. Axes are taken together. Heads are called "
        f"layer.head, and the layers are: {escape(layers)}."
    )
    names = [f"{at}.{head}" for at, each in enumerate(shown) for head in range(each.heads)]
    distances, rows = head_distances(shown).tolist(), []
    for name, row in zip(names, distances, strict=True):
        others = [(d, other) for d, other in zip(row, names, strict=True) if other != name]
        known = sorted((d, other) for d, other in others if d == d)
        ends = [known[0], known[-1]] if known else []
        rows.append(
            [name, *(f"{other} ({d:.2f})" for d, other in ends)] if ends else [name, "", ""]
        )
    listed = table(["head", "most alike", "most different"], rows)
    return [
        section(
            "Differences between heads",
            _muted(see),
            readable(heads_drawing(shown, distances), "wide", largest=1.3),
            f'<div class="narrow">{listed}</div>',
        )
    ]


def _data(view: TupleView) -> dict[str, Any]:
    def round_all(values: list[float]) -> list[float]:
        return [float(f"{value:.6g}") for value in values]

    tuples: list[list[list[list[Any]]]] = [
        [
            [[list(keys), float(f"{weight:.6g}")] for keys, weight in view.rows(head=h, query=q)]
            for q in view.queries
        ]
        for h in range(view.heads)
    ]
    marginals: list[list[Any]] = []
    for h in range(view.heads):
        marginals.append([])
        for q in range(len(view.queries)):
            best = [m[h, q].topk(min(_KEYS, m.size(-1))) for m in view.marginals]
            marginals[h].append([[b.indices.tolist(), round_all(b.values.tolist())] for b in best])
    keys = {k for head in tuples for row in head for ks, _ in row for k in ks}
    count = max([*view.queries, *keys, len(view.labels) - 1]) + 1
    return dict(
        name=printable(view.name) or "attention",
        order=view.order,
        labels=[printable(view.label(key)) for key in range(count)],
        queries=view.queries,
        tuples=tuples,
        marginals=marginals,
        sinks=[[key, float(f"{mass:.6g}")] for key, mass in view.sinks(_KEYS)],
        graph=readable(view._graph()),
        curvatures=[None if math.isnan(c) else c for c in view.curvatures.tolist()],
    )


_SCRIPT = r"""
"use strict";
const views = JSON.parse(document.getElementById("data").textContent);
const field = id => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";
function element(parent, name, attributes, text) {
  const made = parent.namespaceURI === NS || name === "svg"
    ? document.createElementNS(NS, name) : document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}
const clear = id => { field(id).textContent = ""; return field(id); };
const cut = text => text.trim() === "" ? `"${text}"`
  : text.length <= 12 ? text : text.slice(0, 11) + "…";
const named = (view, key) => key < 0 ? "left out" : cut(view.labels[key]) + " " + key;
const percent = weight => (100 * weight).toFixed(2) + " %";
function fill(id, texts) {
  const old = Number(field(id).value) || 0;
  clear(id);
  texts.forEach((text, i) => element(field(id), "option", { value: i }, text));
  field(id).value = Math.min(old, texts.length - 1);
}
function tableIn(parent, heads, rows) {
  const made = element(parent, "table", {});
  const line = element(element(made, "thead", {}), "tr", {});
  for (const head of heads) element(line, "th", { scope: "col" }, head);
  const body = element(made, "tbody", {});
  for (const row of rows) {
    const own = element(body, "tr", {});
    for (const cell of row) element(own, "td", {}, cell);
  }
  return body;
}
function bars(parent, view, keys, weights) {
  const most = Math.max(...weights, 1e-12);
  const rows = keys.map((key, i) => [cut(view.labels[key]), key, percent(weights[i]), ""]);
  const body = tableIn(parent, ["key", "position", "weight", ""], rows);
  [...body.rows].forEach((row, i) => {
    row.cells[3].style.textAlign = "left";
    element(row.cells[3], "span", { class: "bar",
      style: "width:" + (120 * weights[i] / most).toFixed(0) + "px" });
  });
}
function sentence(view, at, tuples) {
  const parent = clear("sentence"), query = view.queries[at], mass = new Map();
  for (const [keys, weight] of tuples)
    for (const key of new Set(keys)) mass.set(key, (mass.get(key) || 0) + weight);
  const most = Math.max(...mass.values(), 1e-12), gap = view.labels.some(l => l.length > 1);
  view.labels.forEach((label, i) => {
    const share = (mass.get(i) || 0) / most, place = view.queries.indexOf(i);
    const made = element(parent, "span", { title: named(view, i) + (mass.has(i) ? ": "
        + percent(mass.get(i)) : ""), class: i === query ? "query" : place < 0 ? "" : "choice",
      style: "background: rgba(90, 140, 255, " + (0.75 * share).toFixed(2) + ")" },
      label === "" ? '""' : label);
    if (place >= 0) made.onclick = () => { field("query").value = place; show(); };
    if (gap) parent.append(" ");
  });
}
function draw(view, query, tuples) {
  const parent = clear("drawing");
  const nodes = [...new Set([query, ...tuples.flatMap(t => t[0])])].filter(n => n >= 0)
    .sort((a, b) => a - b);
  const most = Math.max(...tuples.map(t => t[1]), 1e-12);
  const strength = w => 0.15 + 0.85 * w / most;
  const line = view.order === 1, radius = Math.max(110, 13 * nodes.length);
  const letters = Math.max(...nodes.map(n => cut(view.labels[n]).length), 3);
  const least = 8 + 7 * letters, side = 24 + 7 * (letters + 4), rim = 14 + 3.5 * letters;
  const step = Math.max(least, Math.min(80, (parent.clientWidth - 2 * rim) / nodes.length));
  const place = new Map(), spans = tuples.map(t =>
    step * Math.abs(nodes.indexOf(t[0][0]) - nodes.indexOf(query)));
  const ground = 30 + Math.min(Math.max(0, ...spans) / 2, 260);
  const wide = line ? 2 * rim + step * (nodes.length - 1) : 2 * (radius + side);
  const high = line ? ground + 44 : 2 * radius + 60;
  nodes.forEach((node, i) => {
    const angle = 2 * Math.PI * i / nodes.length - Math.PI / 2;
    place.set(node, line ? [rim + step * i, ground]
      : [wide / 2 + radius * Math.cos(angle), high / 2 + radius * Math.sin(angle), angle]);
  });
  const svg = element(parent, "svg", { viewBox: `0 0 ${wide} ${high}`, style: "font-size: 12px; "
    + `min-width: ${Math.ceil(wide * 11 / 12)}px; max-width: ${Math.ceil(1.3 * wide)}px` });
  for (const [keys, weight] of [...tuples].reverse()) {
    const s = strength(weight);
    const corners = nodes.filter(n => n === query || keys.includes(n));
    const points = corners.map(n => place.get(n));
    let made;
    const paint = { style: "stroke: var(--series-1); fill: var(--series-1)", "stroke-opacity": s,
      "stroke-width": 1 + 3 * s, "fill-opacity": line ? 0 : 0.45 * s, "stroke-linejoin": "round",
      class: line ? "arc" : ["loop", "edge", "triangle"][corners.length - 1] || "hyperedge" };
    if (points.length === 1) {
      made = element(svg, "circle", { cx: points[0][0], cy: points[0][1] - (line ? 9 : 0), r: 8,
        ...paint });
    } else if (line) {
      const [x, y] = points[0], [u] = points[1], half = (u - x) / 2;
      made = element(svg, "path", { d: `M${x} ${y}A${half} ${Math.min(half, 260)} 0 0 1 ${u} ${y}`,
        ...paint });
    } else {
      made = element(svg, "polygon", { points: points.map(p => p.slice(0, 2).join(",")).join(" "),
        ...paint });
    }
    element(made, "title", {}, keys.map(k => named(view, k)).join(", ")
      + ": " + percent(weight));
  }
  for (const node of nodes) {
    const [x, y, angle] = place.get(node);
    const style = `fill: var(${node === query ? "--series-2" : "--ink"})`;
    element(svg, "circle", { cx: x, cy: y, r: 4, style });
    const side = line ? 0 : Math.cos(angle);
    element(svg, "text", { style,
      x: line ? x : x + 14 * side, y: line ? y + 18 : y + 14 * Math.sin(angle) + 4,
      "text-anchor": Math.abs(side) < 0.2 ? "middle" : side > 0 ? "start" : "end" },
      cut(view.labels[node]) + (line ? "" : " " + node));
    if (line) element(svg, "text", { x, y: y + 33, style: "fill: var(--muted)",
      "text-anchor": "middle" }, node);
  }
}
function show() {
  const view = views[Number(field("layer").value) || 0];
  fill("head", view.tuples.map((_, i) => "head " + i));
  fill("query", view.queries.map(q => q + " " + cut(view.labels[q])));
  const head = Number(field("head").value), at = Number(field("query").value);
  const query = view.queries[at];
  const count = field("count"), all = Number(count.value) >= Number(count.max);
  count.max = Math.max(1, ...view.tuples.flat().map(t => t.length));
  if (all) count.value = count.max;
  const tuples = view.tuples[head][at].slice(0, Number(field("count").value));
  sentence(view, at, tuples);
  draw(view, query, tuples);
  const axes = [...Array(view.order).keys()].map(n => view.order > 1 ? `key ${n + 1}` : "key");
  tableIn(clear("table"), ["rank", ...axes, "weight"], tuples.map(([keys, weight], i) =>
    [i + 1, ...keys.map(k => named(view, k)), percent(weight)]));
  const marginals = clear("marginals");
  view.marginals[head][at].forEach(([keys, weights], axis) => {
    element(marginals, "h3", {}, "axis " + (axis + 1));
    bars(marginals, view, keys, weights);
  });
  tableIn(clear("heads"), ["head", "heaviest tuple", "weight"], view.tuples.map((all, i) => {
    const first = all[at][0];
    return ["head " + i, first ? first[0].map(k => named(view, k)).join(", ") : "nothing",
      first ? percent(first[1]) : ""];
  }));
  bars(clear("sinks"), view, view.sinks.map(s => s[0]), view.sinks.map(s => s[1]));
  field("graph").innerHTML = view.graph;
}
fill("layer", views.map((v, i) => i + " " + v.name + ", order " + v.order));
field("layer").value = begins.layer;
field("count").max = field("count").value = 1000;
show();
field("head").value = begins.head;
field("query").value = begins.query;
show();
for (const id of ["layer", "head", "query", "count"]) field(id).addEventListener("input", show);
addEventListener("resize", show);
document.body.dataset.ready = "yes";
"""
