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
from .._printable import printable
from .._whole_file import require_kind, whole_file
from .heads import comparable, heads_svg
from .view import TupleView

__all__ = ["save_page"]

_KEYS = 12  # keys per bar chart of marginals
_MOST_HEADS = 64  # whose distances are drawn


@checked
def save_page(
    views: Sequence[TupleView], path: str | os.PathLike, *, title: str = "Attention"
) -> Path:
    """Writes a page that shows the tuples, marginals, sinks and graphs of layers.

    The page is one file and loads nothing. Fields select the layer, the head, the query and the
    number of tuples; a table compares the heads for a query, and a drawing their distances.
    Without scripts, the page shows the first view.

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


def page_text(views: list[TupleView], title: str) -> str:
    """The page of :func:`save_page` as a text."""
    data = json.dumps([_data(each) for each in views], ensure_ascii=True, allow_nan=False)
    data = data.replace("<", "\\u003c")  # no text can end the script
    shown = escape(title)
    fields = "".join(
        f'<label>{name} <select id="{name}"></select></label>'
        for name in ("layer", "head", "query")
    )
    sections = "".join(
        f'<section><h2>{heading}</h2><p>{see}</p><div id="{place}">{content}</div></section>'
        for heading, see, place, content in (
            (
                "Heaviest tuples",
                "Each arc, triangle or polygon joins the query (orange) with one tuple of keys; "
                "the stronger the colour, the larger the weight.",
                "drawing",
                views[0].svg(),
            ),
            ("Table", "The same tuples in numbers.", "table", ""),
            (
                "Keys per axis",
                "The weight that the query puts on a key of one axis, summed over the other axes.",
                "marginals",
                "",
            ),
            (
                "Heads",
                "How the heads differ for this query: a large first weight is a head that chooses, "
                "and a small one is a head that averages.",
                "heads",
                "",
            ),
            *_differences(views),
            (
                "Sinks",
                "The keys that receive most weight from all queries, over axes and heads.",
                "sinks",
                "",
            ),
            (
                "Attention graph",
                "An arc leads from each query to its heaviest keys; red edges have negative "
                "curvature and are bottlenecks.",
                "graph",
                views[0].graph_svg(),
            ),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{shown} – nsimplex</title><style>{_STYLE}</style></head><body><main>"
        f'<h1>{shown}</h1><form>{fields}<label>tuples <input id="count" type="range" min="1">'
        f"</label></form>{sections}</main>"
        f'<script type="application/json" id="data">{data}</script><script>{_SCRIPT}</script>'
        "</body></html>\n"
    )


def _differences(views: list[TupleView]) -> list[tuple[str, str, str, str]]:
    """The section that compares the heads of all layers that can be compared."""
    shown = comparable(views, _MOST_HEADS)
    if sum(each.heads for each in shown) < 2:
        return []
    layers = ", ".join(
        f"{place} {printable(v.name)} (order {v.order})" for place, v in enumerate(shown)
    )
    see = (
        "The share of attention that two heads put on different keys, as a mean over the queries: "
        "0 is the same keys, 1 is no key in common. Axes are taken together. Rows and columns are "
        f"layer.head: {escape(layers)}."
    )
    return [("Differences between heads", see, "differences", heads_svg(shown))]


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
        graph=view.graph_svg(),
        curvatures=[None if math.isnan(c) else c for c in view.curvatures.tolist()],
    )


_STYLE = """
:root { --ink: #171a21; --muted: #667085; --line: #e3e6eb; --accent: #2563eb; }
body { margin: 0; background: #f6f7f9; color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 32px 20px 60px; }
h1 { font-size: 30px; margin: 0 0 10px; } h2 { font-size: 18px; margin: 0; }
form { position: sticky; top: 0; background: #f6f7f9; padding: 8px 0; display: flex;
  flex-wrap: wrap; gap: 16px; }
section { background: #fff; border: 1px solid var(--line); border-radius: 12px;
  padding: 16px 20px; margin-top: 16px; overflow-x: auto; }
section p { color: var(--muted); margin: 0 0 8px; max-width: 75ch; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
td, th { padding: 3px 12px 3px 0; text-align: left; border-bottom: 1px solid var(--line); }
.bar { display: inline-block; height: 10px; background: var(--accent); border-radius: 3px; }
h3 { font-size: 14px; margin: 10px 0 4px; } svg { max-width: 100%; height: auto; }
"""

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
const cut = text => text === "" ? '""' : text.length <= 12 ? text : text.slice(0, 11) + "…";
const named = (view, key) => key < 0 ? "left out" : cut(view.labels[key]) + " " + key;
const percent = weight => (100 * weight).toFixed(2) + " %";
function fill(id, texts) {
  const old = Number(field(id).value) || 0;
  clear(id);
  texts.forEach((text, i) => element(field(id), "option", { value: i }, text));
  field(id).value = Math.min(old, texts.length - 1);
}
function bars(parent, view, keys, weights) {
  const most = Math.max(...weights, 1e-12);
  const table = element(parent, "table", {});
  keys.forEach((key, i) => {
    const row = element(table, "tr", {});
    element(row, "td", {}, key);
    element(row, "td", {}, cut(view.labels[key]));
    element(row, "td", {}, percent(weights[i]));
    element(element(row, "td", {}), "span", { class: "bar",
      style: "width:" + (180 * weights[i] / most).toFixed(0) + "px" });
  });
}
function draw(view, query, tuples) {
  const parent = clear("drawing");
  const nodes = [...new Set([query, ...tuples.flatMap(t => t[0])])].filter(n => n >= 0)
    .sort((a, b) => a - b);
  const most = Math.max(...tuples.map(t => t[1]), 1e-12);
  const strength = w => 0.15 + 0.85 * w / most;
  const line = view.order === 1, step = 46, radius = Math.max(110, 13 * nodes.length);
  const place = new Map(), spans = tuples.map(t =>
    step * Math.abs(nodes.indexOf(t[0][0]) - nodes.indexOf(query)));
  const ground = 30 + Math.min(Math.max(0, ...spans) / 2, 260);
  const wide = line ? 120 + step * (nodes.length - 1) : 2 * radius + 180;
  const high = line ? ground + 44 : wide;
  nodes.forEach((node, i) => {
    const angle = 2 * Math.PI * i / nodes.length - Math.PI / 2;
    place.set(node, line ? [60 + step * i, ground]
      : [wide / 2 + radius * Math.cos(angle), wide / 2 + radius * Math.sin(angle), angle]);
  });
  const svg = element(parent, "svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high,
    "font-family": "sans-serif", "font-size": 12 });
  for (const [keys, weight] of [...tuples].reverse()) {
    const s = strength(weight);
    const corners = nodes.filter(n => n === query || keys.includes(n));
    const points = corners.map(n => place.get(n));
    let made;
    const paint = { stroke: "#2563eb", "stroke-opacity": s, "stroke-width": 1 + 3 * s,
      fill: "#2563eb", "fill-opacity": line ? 0 : 0.45 * s, "stroke-linejoin": "round",
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
    const [x, y, angle] = place.get(node), color = node === query ? "#d9580d" : "#171a21";
    element(svg, "circle", { cx: x, cy: y, r: 4, fill: color });
    const side = line ? 0 : Math.cos(angle);
    element(svg, "text", { fill: color,
      x: line ? x : x + 14 * side, y: line ? y + 18 : y + 14 * Math.sin(angle) + 4,
      "text-anchor": Math.abs(side) < 0.2 ? "middle" : side > 0 ? "start" : "end" },
      cut(view.labels[node]) + (line ? "" : " " + node));
    if (line) element(svg, "text", { x, y: y + 32, fill: "#667085", "font-size": 9,
      "text-anchor": "middle" }, node);
  }
}
function show() {
  const view = views[Number(field("layer").value) || 0];
  fill("head", view.tuples.map((_, i) => "head " + i));
  fill("query", view.queries.map(q => q + " " + cut(view.labels[q])));
  const head = Number(field("head").value), at = Number(field("query").value);
  const query = view.queries[at];
  field("count").max = Math.max(1, ...view.tuples.flat().map(t => t.length));
  const tuples = view.tuples[head][at].slice(0, Number(field("count").value));
  draw(view, query, tuples);
  const table = element(clear("table"), "table", {});
  tuples.forEach(([keys, weight], i) => {
    const row = element(table, "tr", {});
    element(row, "td", {}, i + 1);
    for (const key of keys) element(row, "td", {}, named(view, key));
    element(row, "td", {}, percent(weight));
  });
  const marginals = clear("marginals");
  view.marginals[head][at].forEach(([keys, weights], axis) => {
    element(marginals, "h3", {}, "axis " + (axis + 1));
    bars(marginals, view, keys, weights);
  });
  const heads = element(clear("heads"), "table", {});
  view.tuples.forEach((all, i) => {
    const row = element(heads, "tr", {}), first = all[at][0];
    element(row, "td", {}, "head " + i);
    element(row, "td", {}, first ? first[0].map(k => named(view, k)).join(", ") : "nothing");
    element(row, "td", {}, first ? percent(first[1]) : "");
  });
  bars(clear("sinks"), view, view.sinks.map(s => s[0]), view.sinks.map(s => s[1]));
  field("graph").innerHTML = view.graph;
}
fill("layer", views.map((v, i) => i + " " + v.name + ", order " + v.order));
field("count").max = 1000;
field("count").value = 1000;
field("query").value = 0;
show();
field("query").value = views[0].queries.length - 1;
show();
for (const id of ["layer", "head", "query", "count"]) field(id).addEventListener("input", show);
document.body.dataset.ready = "yes";
"""
