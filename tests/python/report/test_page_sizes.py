"""Letters of at least 11 pixels on every page, at the widths of a phone and of a desk."""

import json
import re

import pytest
import torch

pytest.importorskip("matplotlib")

import test_report
import test_report_graphs
import test_report_learned
from report_page import write_lines

from nsimplex import analysis, causal, viz
from nsimplex._page import LEAST_TEXT, PAGE_STYLE, PHONE
from nsimplex.nn import SimplicialAttention
from nsimplex.report import write_report

DESK = 980 - 2 * 24 - 2 * 26 - 2  # pixels of a card on a wide screen


def graph_page(folder):
    made = causal.simulate(nodes=40, degree=2, observations=50, seed=3)
    names = [f"a gene of name {at}" for at in range(40)]
    causal.draw_graph(made.weights, names, truth=made.weights.T).save(folder / "page.html")
    return folder / "page.html"


def attention_page(folder):
    torch.manual_seed(1)
    query, *keys = torch.randn(3, 1, 9, 30, 4)
    labels = [f"token {at % 7}" for at in range(30)]
    views = [viz.view(query, keys[:n], labels=labels, count=20) for n in (1, 2)]
    return viz.save_page(views, folder / "page.html")


def model_page(folder):
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[SimplicialAttention(8, 2, order=n) for n in (1, 2)])
    return analysis.report(model, torch.randn(1, 6, 8), steps=1).save(folder / "page.html")


def fit_page(folder):
    names = [f"column number {at}" for at in range(8)]
    graph, truth = (test_report_learned.random_dag(8, 14, seed) for seed in (1, 2))
    test_report_learned.write_run(folder, names, graph, abs(graph) * 1e6, truth)
    return write_report(folder)


def run_page(folder):
    rows = [*test_report.match3_rows(), *test_report.language_rows()]
    write_lines(folder / "metrics.jsonl", [*rows, *test_report_graphs.trained_rows()])
    return write_report(folder)


PAGES = {
    "a picture of a causal graph": graph_page,
    "attention": attention_page,
    "layers of a model": model_page,
    "a learned graph": fit_page,
    "a run": run_page,
}


@pytest.mark.parametrize("name", PAGES)
def test_letters_of_drawings_stay_readable(tmp_path, name):
    text = PAGES[name](tmp_path).read_text(encoding="utf-8").partition("</style>")[2]
    text = text.partition('<script type="application/json"')[0]
    pattern = r'(<div class="scroll ?(\w*)"><div style="min-width: (\d+)px[^>]*>)?<svg [^>]*'
    pattern += r'viewBox="\S+ \S+ ([\d.]+) .*?</svg>'
    drawings = list(re.finditer(pattern, text, re.DOTALL))
    assert drawings
    for drawing in drawings:
        sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", drawing[0])]
        if sizes and "<text" in drawing[0]:
            assert drawing[1], drawing[0][:200]  # a box that is never narrower than is readable
            screens = {"wide": [DESK], "narrow": [PHONE], "": [DESK, PHONE]}[drawing[2]]
            for room in screens:
                shown = max(room, float(drawing[3]))
                assert min(sizes) * shown / float(drawing[4]) >= LEAST_TEXT - 0.01


def test_letters_of_the_style_are_large_enough():
    sizes = re.findall(r"font(?:-size)?: ([\d.]+)px", PAGE_STYLE)
    assert len(sizes) > 5 and min(map(float, sizes)) >= LEAST_TEXT


#: What a browser measures in a frame of each width: too wide pages, and the smallest letters.
_MEASURE = """<!doctype html><body><script>
const widths = [390, 1440], found = [];
const measure = width => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:2000px;border:0`;
  frame.onload = () => setTimeout(() => {
    const root = frame.contentDocument, view = frame.contentWindow;
    let least = 99;
    for (const each of root.querySelectorAll("body *")) {
      const own = [...each.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
      if (!own || !each.getClientRects().length || ["SCRIPT", "STYLE"].includes(each.tagName))
        continue;
      const svg = each.ownerSVGElement;
      const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      least = Math.min(least, scale * parseFloat(view.getComputedStyle(each).fontSize));
    }
    found.push([width, root.documentElement.scrollWidth, least]);
    done();
  }, 300);
  frame.src = "page.html";
  document.body.append(frame);
});
(async () => {
  for (const width of widths) await measure(width);
  document.body.dataset.found = JSON.stringify(found);
})();
</script></body>"""


@pytest.mark.slow
def test_pages_fit_their_screens_in_a_browser(tmp_path, opened):
    options = "--allow-file-access-from-files --virtual-time-budget=9000 --window-size=1600,2200"
    for number, make in enumerate(PAGES.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder).rename(folder / "page.html")
        (folder / "measure.html").write_text(_MEASURE)
        found = json.loads(opened(folder / "measure.html", *options.split())["found"])
        assert len(found) == 2
        for width, wide, least in found:
            assert wide <= width and least >= LEAST_TEXT - 0.1, (make.__name__, width, wide, least)
