"""The style sheet of every page, light and dark."""

PAGE_STYLE = """
:root {
  --page: #f6f7f9; --card: #ffffff; --ink: #171a21; --muted: #667085; --line: #e3e6eb;
  --accent: #2563eb; --good: #0f8a5f; --bad: #b42318; --code: #f2f4f7;
  --series-1: #2563eb; --series-2: #d9580d; --series-3: #0f8a5f; --series-4: #9333ea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1115; --card: #171a21; --ink: #eceef2; --muted: #98a2b3; --line: #2a2f3a;
    --accent: #6ea0ff; --good: #4cc38a; --bad: #ff8a7a; --code: #0f1218;
    --series-1: #6ea0ff; --series-2: #ff9552; --series-3: #4cc38a; --series-4: #c58bff;
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
  letter-spacing: .09em; text-transform: uppercase; }
h1 { margin: 2px 0 4px; font-size: 36px; line-height: 1.2; letter-spacing: -.02em; }
h2 { margin: 0 0 6px; font-size: 21px; letter-spacing: -.01em; }
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
svg { display: block; width: 100%; height: auto; margin: 6px 0 0; font-family: inherit; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 14.5px;
  font-variant-numeric: tabular-nums; }
th { color: var(--muted); font-weight: 600; font-size: 13px; text-align: right;
  white-space: nowrap; }
th, td { padding: 9px 10px; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td + td { white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
tbody tr:last-child td { border-bottom: 0; }
td.strong { color: var(--good); font-weight: 700; }
td.failed { color: var(--bad); font-weight: 700; }
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
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 22px; margin: 0 0 8px;
  padding: 0; font-size: 14px; }
svg.key { display: inline-block; width: 34px; margin: 0 8px 0 0; vertical-align: middle; }
.matrices { display: grid; gap: 18px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 270px), 1fr)); }
figure.matrix { margin: 0; }
figure.matrix figcaption { font-size: 14px; font-weight: 600; }
h3 { margin: 20px 0 6px; font-size: 15px; }
footer { margin-top: 28px; color: var(--muted); font-size: 13px; }
.narrow { display: none; }
@media (max-width: 600px) {
  .wide { display: none; }
  .narrow { display: block; }
  main { padding: 28px 14px 48px; }
  section { padding: 18px 16px; }
  h1 { font-size: 28px; }
}
@media print { body { background: #fff; } section, .tile { break-inside: avoid; } }
"""
