"""Every Markdown page is reachable from docs/README.md, every relative link leads somewhere, and
lines are neither lists by accident nor too long."""

import itertools
import re

import pytest

PLACES = "*.md", "docs/**/*.md", "lab/**/*.md", "conformance/*.md"


@pytest.fixture(scope="module")
def pages(root):
    found = {path for place in PLACES for path in root.glob(place)}
    return {path: path.read_text(encoding="utf-8") for path in found}


def without_code(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text):
    """The targets that are no addresses of the web, each as its file and its anchor."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(text))
    return [target.partition("#")[::2] for target in targets if "://" not in target]


def anchors(text):
    """The names that GitHub gives to the headings."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    names = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        names.append(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return names


def test_every_page_is_reachable_from_the_map(root, pages):
    start = root / "docs" / "README.md"
    reached, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        for file, _ in links(pages[page]):
            target = (page.parent / file).resolve()
            if target in pages and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert sorted(str(page.relative_to(root)) for page in set(pages) - reached) == []


def test_the_map_itself_names_every_page_of_docs_and_lab(root, pages):
    start = root / "docs" / "README.md"
    named = {(start.parent / file).resolve() for file, _ in links(pages[start])}
    wanted = {page for page in pages if page.parent != root and page != start}
    assert sorted(str(page.relative_to(root)) for page in wanted - named) == []


def test_relative_links_lead_to_files_and_headings(root, pages):
    wrong = []
    for page, text in pages.items():
        for file, anchor in links(text):
            target = (page.parent / file).resolve() if file else page
            if not target.exists():
                wrong.append(f"{page.relative_to(root)}: {file}")
            elif anchor and target in pages and anchor not in anchors(pages[target]):
                wrong.append(f"{page.relative_to(root)}: {file}#{anchor}")
    assert wrong == []


def test_files_named_in_the_pages_exist(root, pages):
    """Except those of CONTRIBUTING.md, whose example is an operator that is not there."""
    named = r"`((?:src|python|tests|bench|lab|docs|tools|include|cmake|examples)/[\w./-]+)`"
    wrong = [
        f"{page.relative_to(root)}: {file}"
        for page, text in pages.items()
        if page.name != "CONTRIBUTING.md"
        for file in re.findall(named, text)
        if not (root / file).exists() and not any(root.glob(f"{file}*"))
    ]
    assert wrong == []


def test_no_line_within_a_sentence_begins_a_quotation_or_a_list(root, pages):
    """Such as the rest of "N >= 2", broken before ">="."""
    wrong = []
    for page, text in pages.items():
        lines = without_code(text).splitlines()
        for before, line in itertools.pairwise(lines):
            prose = before.strip() and not before.startswith(("    ", "#", "|", "<!--"))
            if prose and re.match(r" {0,3}(>|\+ |1[.)] )", line):
                wrong.append(f"{page.relative_to(root)}: {line}")
    assert wrong == []


def test_python_of_the_pages_fits_a_narrow_column(root, pages):
    """The site cuts longer lines on a small screen."""
    wrong = [
        f"{page.relative_to(root)}: {line}"
        for page, text in pages.items()
        if page.is_relative_to(root / "docs")
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        for line in code.splitlines()
        if len(line) > 88
    ]
    assert wrong == []
