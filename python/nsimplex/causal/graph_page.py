"""Pictures of causal graphs as HTML pages in which weak edges can be hidden."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from .._printable import printable

__all__ = ["EdgeFacts", "page_text"]


class EdgeFacts(NamedTuple):
    """An edge of a picture, with the numbers that are known of it."""

    cause: str
    effect: str
    weight: float
    score: float | None = None
    frequency: float | None = None
    low: float | None = None
    high: float | None = None


_STYLE = (
    "body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; } "
    "main { max-width: 72rem; margin: auto; padding: 1rem; } "
    "h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; } "
    "label { display: block; margin: .5rem 0; } "
    "input { width: 16rem; max-width: 60vw; height: 2rem; vertical-align: middle; } "
    ".scroll { overflow: auto; border: 1px solid #ccc; max-height: 80vh; } "
    ".scroll svg { display: block; } .narrow { display: none; } "
    "@media (max-width: 600px) { .wide { display: none; } "
    ".narrow { display: block; overflow-x: auto; } } "
    "#said { min-height: 3em; margin: .5rem 0; overflow-wrap: anywhere; } "
    "table { border-collapse: collapse; } "
    "th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ddd; } "
    "th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; } "
    "[data-edge], [data-column] { cursor: pointer; } "
    ".far { opacity: .15; } [hidden], .gone { display: none; }"
)

# A page may have a picture for wide and another for narrow screens. Both have the edges in the
# order of the table. Edges below a limit disappear from the pictures and from the table. Under the
# pointer, at a touch and with the keyboard, an edge or a column says its numbers; a column that was
# chosen leaves its own edges alone.
_SCRIPT = """
const all = (what) => [...document.querySelectorAll(what)];
const find = (id) => document.getElementById(id);
const edges = all('svg [data-edge]'), rows = all('tbody tr'), limits = all('input');
const columns = all('svg [data-column]'), said = find('said'), first = said.textContent;
let chosen = null;
const least = (name) => { const field = find(name); return field ? Number(field.value) : 0; };
const titleOf = (what) => what.querySelector('title').textContent;
function update() {
  let shown = 0;
  const near = new Set(chosen === null ? [] : [chosen]);
  edges.forEach((edge, k) => {
    const own = edge.dataset;
    const weak = Math.abs(Number(own.weight)) < least('weight') ||
        (own.frequency !== undefined && Number(own.frequency) < least('frequency'));
    const far = chosen !== null && own.cause !== chosen && own.effect !== chosen;
    edge.classList.toggle('gone', weak);
    edge.classList.toggle('far', far);
    if (k < rows.length) { rows[k].hidden = weak || far; shown += !weak; }
    if (!weak && !far) { near.add(own.cause); near.add(own.effect); }
  });
  columns.forEach((each) =>
    each.classList.toggle('far', chosen !== null && !near.has(each.dataset.column)));
  limits.forEach((field) => { find(field.id + '-said').textContent = field.value; });
  find('count').textContent = shown + ' of ' + rows.length + ' edges';
}
function choose(column) { chosen = chosen === column ? null : column; update(); }
limits.forEach((field) => field.addEventListener('input', update));
[...edges, ...columns].forEach((each) => {
  each.setAttribute('tabindex', '0');
  const say = () => { said.textContent = titleOf(each); };
  const act = () => { say(); if (each.dataset.column !== undefined) choose(each.dataset.column); };
  each.addEventListener('pointerenter', say);
  each.addEventListener('focus', say);
  each.addEventListener('click', (event) => { event.stopPropagation(); act(); });
  each.addEventListener('keydown', (event) => { if (event.key === 'Enter') act(); });
});
all('svg').forEach((picture) => picture.addEventListener('click', () => {
  chosen = null; said.textContent = first; update();
}));
find('controls').hidden = false;
update();
"""


def page_text(svg: str, narrow: str, edges: Sequence[EdgeFacts], title: str) -> str:
    """One HTML page with the picture of these edges, in its order, and another picture for narrow
    screens, unless that is empty. It loads nothing, and without scripts it shows all edges."""
    largest = max((abs(edge.weight) for edge in edges), default=0.0)
    fields = _field("weight", "Smallest |weight|", largest)
    if any(edge.frequency is not None for edge in edges):
        fields += _field("frequency", "Smallest share of the samples", 1.0)
    picture = f'<div class="scroll">{svg}</div>'
    if narrow:
        picture = f'<div class="scroll wide">{svg}</div><div class="narrow">{narrow}</div>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>"
        f'<form id="controls" hidden>{fields}<output id="count"></output></form>'
        '<p id="said" aria-live="polite">Point at an edge or a column, or touch it, to read its '
        "numbers. A touch of a column shows its edges alone; a touch beside the graph shows "
        f"all.</p>{picture}"
        f'<h2>Edges</h2><div class="scroll">{_table(edges)}</div></main>'
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _field(name: str, label: str, largest: float) -> str:
    step = f"{largest / 100:.2g}" if largest > 0 else "1"
    return (
        f'<label>{label} <input id="{name}" type="range" min="0" max="{largest:.6g}" '
        f'step="{step}" value="0"> <output id="{name}-said">0</output></label>'
    )


def _table(edges: Sequence[EdgeFacts]) -> str:
    shown = [
        name
        for name in EdgeFacts._fields[2:]
        if name == "weight" or any(getattr(edge, name) is not None for edge in edges)
    ]
    heads = "".join(f"<th>{name}</th>" for name in ("cause", "effect", *shown))
    lines = "".join(
        f"<tr><td>{escape(printable(edge.cause))}</td><td>{escape(printable(edge.effect))}</td>"
        + "".join(f"<td>{_number(getattr(edge, name))}</td>" for name in shown)
        + "</tr>"
        for edge in edges
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3g}".replace("-", "−")
