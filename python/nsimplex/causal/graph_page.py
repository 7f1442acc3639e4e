"""Pictures of causal graphs as HTML pages in which weak edges can be hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._page import counted, figure, page, readable, section, table
from .._printable import printable

if TYPE_CHECKING:
    from .._graph_picture import Sketch

__all__ = ["EdgeFacts", "page_text", "pictures"]


class EdgeFacts(NamedTuple):
    """An edge of a picture, with the numbers that are known of it."""

    cause: str
    effect: str
    weight: float
    score: float | None = None
    frequency: float | None = None
    low: float | None = None
    high: float | None = None
    kind: str | None = None  #: right, reversed, extra or missing, beside a known graph


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


def page_text(sketch: Sketch, edges: Sequence[EdgeFacts], hidden: int) -> str:
    """One HTML page with the picture of these edges, in its order, for wide and for narrow screens.
    It loads nothing, and without scripts it shows all edges."""
    largest = max((abs(edge.weight) for edge in edges), default=0.0)
    fields = _field("weight", "Smallest |weight|", largest)
    if any(edge.frequency is not None for edge in edges):
        fields += _field("frequency", "Smallest share of the samples", 1.0)
    picture = section(
        "Graph",
        '<p id="said" class="muted" aria-live="polite">Point at an edge or a column, or touch it, '
        "to read its numbers. A touch of a column shows its edges alone; a touch beside the graph "
        f'shows all.</p><form id="controls" hidden>{fields}<output id="count"></output></form>',
        pictures(sketch),
    )
    lead = f"{counted(len(edges), 'edges')}, from causes at the top down to their effects."
    return page(
        f"Causal graph of {counted(len(sketch.columns), 'columns')}",
        "nsimplex causal graph",
        lead + (f" {hidden:,} more {'is' if hidden == 1 else 'are'} left out." if hidden else ""),
        picture + section("Edges", _table(edges)),
        "Written by nsimplex.causal.",
        script=_SCRIPT,
    )


def pictures(sketch: Sketch) -> str:
    """The picture for wide and for narrow screens, as a page shows it."""
    wide = readable(sketch.svg(), "wide", largest=1.2)
    return wide + readable(sketch.narrow_svg(), "narrow")


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
    rows = [
        [*map(printable, edge[:2]), *(_cell(getattr(edge, name)) for name in shown)]
        for edge in edges
    ]
    return table(["cause", "effect", *shown], rows, kind="names")


def _cell(value: float | str | None) -> str:
    return value if isinstance(value, str) else figure(value)
