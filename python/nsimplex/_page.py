"""The frame and the style of every HTML page, and what pages and their drawings are made of.

A page is one file that loads nothing. Its colours are variables of the style sheet, which a browser
takes light or dark. Drawings name these variables, too; :func:`alone` gives a drawing that leaves
its page the light colours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from html import escape

from ._printable import printable

__all__ = [
    "LEAST_TEXT", "PAGE_STYLE", "PHONE", "VIOLATED", "alone", "colour", "counted", "drawing_file",
    "figure", "page", "readable", "section", "short", "table", "tile",
]  # fmt: skip

LEAST_TEXT = 11  #: pixels of the smallest letters, on every screen
PHONE = 328  #: pixels that a card leaves on a screen of 390 pixels

PAGE_STYLE = """
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #171a21; --muted: #667085; --line: #e3e6eb;
  --accent: #2563eb; --good: #0f8a5f; --bad: #b42318; --code: #f2f4f7; --edge: #0b3a82;
  --series-1: #2563eb; --series-2: #d9580d; --series-3: #0f8a5f; --series-4: #9333ea;
  --series-5: #0891b2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1115; --card: #171a21; --ink: #eceef2; --muted: #98a2b3; --line: #2a2f3a;
    --accent: #6ea0ff; --good: #4cc38a; --bad: #ff8a7a; --code: #0f1218; --edge: #a9c8ff;
    --series-1: #6ea0ff; --series-2: #ff9552; --series-3: #4cc38a; --series-4: #c58bff;
    --series-5: #4dd0e1;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans",
    sans-serif;
}
main { max-width: 980px; margin: 0 auto; padding: 48px 24px 72px; }
header p.kind { margin: 0; color: var(--accent); font-size: 13px; font-weight: 650;
  letter-spacing: .09em; text-transform: uppercase; overflow-wrap: anywhere; }
h1 { margin: 2px 0 4px; font-size: 36px; line-height: 1.2; letter-spacing: -.02em; }
h2 { margin: 0 0 6px; font-size: 21px; letter-spacing: -.01em; }
h1, h2, h3 { overflow-wrap: anywhere; }
h3 { margin: 20px 0 6px; font-size: 15px; }
p { margin: 0 0 14px; max-width: 72ch; }
.muted { color: var(--muted); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 14px;
  margin: 26px 0 0; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 14px; }
.tile { padding: 16px 18px; }
.tile b { display: block; font-size: 30px; line-height: 1.25; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; }
.tile .label { font-size: 14px; font-weight: 600; }
.tile .note { color: var(--muted); font-size: 13.5px; line-height: 1.4; }
section { padding: 24px 26px; margin-top: 22px; }
svg { display: block; width: 100%; height: auto; margin: 6px auto 0; font-family: inherit; }
/* A shadow at a side says that there is more to scroll to. */
.scroll { overflow-x: auto; background:
  linear-gradient(to right, var(--card) 40%, transparent) left / 40px 100% no-repeat local,
  linear-gradient(to left, var(--card) 40%, transparent) right / 40px 100% no-repeat local,
  linear-gradient(to right, #8886, transparent) left / 10px 100% no-repeat scroll,
  linear-gradient(to left, #8886, transparent) right / 10px 100% no-repeat scroll; }
table { width: 100%; border-collapse: collapse; font-size: 14.5px;
  font-variant-numeric: tabular-nums; }
th { color: var(--muted); font-weight: 600; font-size: 13px; text-align: right;
  white-space: nowrap; }
th, td { padding: 9px 10px; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child, .names td:nth-child(2), .names th:nth-child(2) {
  text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
td + td { white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
tbody tr:last-child td { border-bottom: 0; }
td.strong { color: var(--good); font-weight: 700; }
td.failed { color: var(--bad); font-weight: 700; }
.bar { display: inline-block; height: 10px; background: var(--series-1); border-radius: 3px; }
.samples { display: grid; gap: 14px; }
figure.sample { margin: 0; }
figure.sample figcaption { color: var(--muted); font-size: 13.5px; margin-bottom: 5px; }
pre { margin: 0; padding: 14px 16px; border-radius: 10px; background: var(--code); overflow-x: auto;
  font: 13px/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
pre.sample { max-height: 400px; overflow-y: auto; }
pre mark { background: none; color: var(--accent); font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 5px 22px; margin: 0 0 18px;
  font-size: 14.5px; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
.matrices { display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 270px), 1fr)); }
figure.matrix { margin: 0; }
figure.matrix figcaption { font-size: 14px; font-weight: 600; }
form { position: sticky; top: 0; z-index: 1; background: var(--page); padding: 8px 0; display: flex;
  flex-wrap: wrap; gap: 8px 18px; margin-top: 14px; }
section form { position: static; background: none; }
select, input { max-width: 60vw; font: inherit; }
.sentence { max-width: none; line-height: 2; white-space: pre-wrap; overflow-wrap: anywhere; }
.sentence span { border-radius: 4px; padding: 2px 0; }
.sentence .query { color: var(--series-2); font-weight: 700; outline: 1px solid; }
.sentence .choice { text-decoration: underline dotted var(--muted); text-underline-offset: 4px; }
.sentence .choice, [data-edge], [data-column] { cursor: pointer; }
#said { min-height: 3em; overflow-wrap: anywhere; }
[data-edge]:hover .edge { stroke-opacity: .6; }
.far { opacity: .15; } [hidden], .gone { display: none; }
footer { margin-top: 28px; color: var(--muted); font-size: 13px; }
.narrow { display: none; }
@media (max-width: 600px) {
  .wide { display: none; }
  .narrow { display: block; }
  main { padding: 28px 14px 48px; }
  section { padding: 18px 16px; }
  h1 { font-size: 28px; }
  .fold thead { display: none; }
  .fold tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 18px; padding: 8px 0;
    border-bottom: 1px solid var(--line); }
  .fold td { display: flex; justify-content: space-between; align-items: baseline; gap: 8px;
    padding: 1px 0; border: 0; white-space: normal; }
  .fold td:first-child { grid-column: 1 / -1; font-weight: 600; }
  .fold td + td::before { content: attr(data-of); color: var(--muted); font-size: 13px;
    text-align: left; }
}
@media print { body { background: #fff; } section, .tile { break-inside: avoid; } }
"""

_LIGHT = dict(re.findall(r"(--[\w-]+): (#\w+)", PAGE_STYLE.partition("@media")[0]))
_MOST_FOLDED = 24  # rows of a table that a phone shows as cards
_MOST_COLUMNS = 4  # of a table that a phone shows as it is

#: What a verdict says of a statement that does not hold.
VIOLATED = "violated"


def page(title: str, kind: str, lead: str, body: str, footer: str, *, script: str = "") -> str:
    """A whole page. `script` runs at its end."""
    shown = escape(title)
    run = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{shown} – nsimplex</title><style>{PAGE_STYLE}</style></head><body><main>"
        f'<header><p class="kind">{escape(kind)}</p><h1>{shown}</h1>'
        f'<p class="muted">{escape(lead)}</p></header>'
        f"{body}<footer>{escape(footer)} One file, nothing is loaded from elsewhere.</footer>"
        f"</main>{run}</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def tile(value: str, label: str, note: str) -> str:
    return (
        f'<div class="tile"><b>{escape(value)}</b><div class="label">{escape(label)}</div>'
        f'<div class="note">{escape(note)}</div></div>'
    )


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    strong: int | None = None,
    good: Collection[int] | None = None,
    *,
    kind: str = "",
) -> str:
    """A table, which scrolls in its own box where it is too wide. A phone shows a small one of many
    columns as cards.

    ``strong``: the column whose cells are green, in the rows ``good`` or else in all rows.
    ``kind``: "names" if the first two columns are names.
    """
    folds = len(header) > _MOST_COLUMNS and len(rows) <= _MOST_FOLDED

    def cell(row: int, index: int, text: str) -> str:
        marked = index == strong and text != "–" and (good is None or row in good)
        named = ' class="strong"' if marked else ""
        named = ' class="failed"' if marked and text == VIOLATED else named
        of = f' data-of="{escape(header[index])}"' if folds and index else ""
        return f"<td{of}{named}>{escape(text)}</td>"

    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    body = "".join(
        "<tr>" + "".join(cell(r, i, t) for i, t in enumerate(row)) + "</tr>"
        for r, row in enumerate(rows)
    )
    kinds = " ".join(filter(None, ["scroll", "fold" if folds else "", kind]))
    return (
        f'<div class="{kinds}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(value: float | None) -> str:
    """A number for people: three digits, or all before the point, 2,030 and not 2.03e+03."""
    if value is None or value != value:
        return "–"
    size = abs(value)
    if 999.5 <= size < 1e15:  # 999.5 is rounded to four digits
        text = f"{value:,.0f}"
    elif size == 0 or 1e-4 <= size < 999.5:
        text = f"{value:.3g}"
    elif math.isinf(value):
        text = f"{value}".replace("inf", "∞")
    else:
        mantissa, power = f"{value:.2e}".split("e")
        text = f"{mantissa} × 10" + str(int(power)).translate(POWERS)
    return text.replace("-", "−")


def counted(count: float | None, plural: str) -> str:
    """A number and its noun: 1 row, 2,030 rows."""
    if count is None:
        return f"– {plural}"
    return f"{count:,.0f} {plural.removesuffix('s') if count == 1 else plural}"


#: Digits of an exponent.
POWERS = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(name: str, most: int = 18) -> str:
    """A name on one line, its middle left out where it is long; quotation marks around an empty or
    blank one."""
    text = printable(name[: 2 * most] + name[-2 * most :] if len(name) > 4 * most else name)
    if not text.strip():
        return f'"{text}"'
    return text if len(text) <= most else f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


def colour(name: str) -> str:
    """The light colour of a variable, for drawings outside pages."""
    return _LIGHT[name]


def alone(drawing: str) -> str:
    """A drawing without a page to take colours from: on white, in the light colours."""
    drawing = re.sub(r"var\((--[\w-]+)\)", lambda found: _LIGHT[found[1]], drawing)
    head, rest = drawing.split(">", 1)
    return f'{head}><rect width="100%" height="100%" style="fill: {_LIGHT["--card"]}"/>{rest}'


def drawing_file(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    """The text of an SVG file of letters of 12 pixels, in the colours of the page."""
    shown = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{shown}" '
        f'font-family="sans-serif" style="font-size: 12px"><title>{shown}</title>'
        f"{''.join(parts)}</svg>\n"
    )


def readable(drawing: str, screens: str = "", largest: float = 0) -> str:
    """A drawing whose letters have at least 11 pixels: a narrow screen scrolls it sideways where it
    would have to shrink it further. ``screens``: "wide" or "narrow", those that show it.
    ``largest``: how much larger than its own size it becomes at most; 0: as wide as its box."""
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", drawing)]
    view = re.search(r'viewBox="\S+ \S+ ([\d.]+) ', drawing)
    kinds = f"scroll {screens}".rstrip()
    if not sizes or view is None:
        return f'<div class="{kinds}">{drawing}</div>' if screens else drawing
    least = math.ceil(float(view[1]) * LEAST_TEXT / min(sizes))
    most = f"; max-width: {float(view[1]) * largest:.0f}px; margin: auto" if largest else ""
    return f'<div class="{kinds}"><div style="min-width: {least}px{most}">{drawing}</div></div>'
