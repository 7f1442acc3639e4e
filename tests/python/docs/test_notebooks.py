"""The notebooks run in one process without Jupyter, and their pictures and figures say what the
texts say."""

import ast
import importlib.util
import json
import re

import pytest

NOTEBOOKS = (
    "1-first-contact",
    "2-language-model",
    "3-upcycling",
    "4-your-graph",
    "5-your-table",
    "6-your-model",
    "7-molecules",
    "8-hyperedges",
    "9-point-sets",
)


@pytest.fixture(scope="module")
def notebooks(root):
    spec = importlib.util.spec_from_file_location("notebooks", root / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source(root, name):
    return root / "docs" / "notebooks" / f"{name}.ipynb"


def test_every_notebook_has_a_test_and_a_place_in_the_map(root):
    found = sorted(path.stem for path in (root / "docs" / "notebooks").glob("*.ipynb"))
    assert found == list(NOTEBOOKS)
    listed = (root / "docs" / "README.md").read_text(encoding="utf-8")
    assert [name for name in NOTEBOOKS if f"notebooks/{name}.ipynb" not in listed] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_short_and_committed_without_outputs(root, notebooks, name):
    read = json.loads(source(root, name).read_text(encoding="utf-8"))
    assert (read["nbformat"], read["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in read["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in read["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    code = [text for kind, text in notebooks.cells(source(root, name)) if kind == "code"]
    assert sum(bool(line.strip()) for text in code for line in text.splitlines()) < 60
    for text in code:
        ast.parse(text)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_of_notebooks_lead_to_files(root, notebooks, name):
    for kind, text in notebooks.cells(source(root, name)):
        for link in re.findall(r"\]\(([^)#\s]+)", text) if kind == "markdown" else ():
            assert (source(root, name).parent / link).exists(), link


def run(root, notebooks, name):
    results = [result for result in notebooks.execute(source(root, name)) if result is not None]
    pictures = [picture for result in results for picture in result.pictures]
    assert pictures == [] or all("<svg" in picture for picture in pictures)
    return "".join(result.printed for result in results), len(pictures)


def numbers(pattern, printed):
    return [float(number) for number in re.findall(pattern, printed)]


def test_first_contact(root, notebooks):
    printed, pictures = run(root, notebooks, "1-first-contact")
    ordinary, pairs, guess = numbers(r"(?:accuracy|answer:) (0\.\d+)", printed)
    assert guess < pairs and ordinary < 0.85 < 0.9 < pairs
    assert pictures == 1


def test_language_model(root, notebooks):
    printed, pictures = run(root, notebooks, "2-language-model")
    ((first, last),) = re.findall(r"byte: (\S+) at first, (\S+) at the end", printed)
    assert float(last) < 3 < 5 < float(first)
    assert "def add_argument(self" in printed and pictures == 1


def test_upcycling(root, notebooks):
    printed, _ = run(root, notebooks, "3-upcycling")
    before, after = numbers(r"accuracy (0\.\d+)", printed)
    assert after > before
    assert float(re.search(r"change of a logit: (\S+)", printed)[1]) < 1e-4


def test_your_graph(root, notebooks):
    pytest.importorskip("networkx")
    printed, pictures = run(root, notebooks, "4-your-graph")
    assert numbers(r"test \{'accuracy': (\d\.\d+)", printed)[0] > 0.5 and pictures == 2
    assert "heaviest tuples of the read-out" in printed
    assert numbers(r"women: \{'auc': (\d\.\d+)", printed)[0] > 0.5


@pytest.mark.filterwarnings("ignore::nsimplex.causal.VarianceOrderWarning")
def test_your_table(root, notebooks):
    pytest.importorskip("pandas")
    printed, pictures = run(root, notebooks, "5-your-table")
    found = set(re.findall(r"(\w+) -> (\w+):", printed))
    assert found == {("sun", "grass"), ("rain", "grass"), ("grass", "sheep"), ("sheep", "wool")}
    assert pictures == 1 and "(5, 2, 2)" in printed


def test_your_model(root, notebooks):
    printed, pictures = run(root, notebooks, "6-your-model")
    lasts = numbers(r"ratio \S+ to (\S+)", printed)
    assert max(lasts[:2]) < 1e-4 < 0.1 < min(lasts[2:]) and pictures == 1
    assert 0.9 < numbers(r"found: tensor\(\[(\d\.\d+)", printed)[0] <= 1 + 1e-6


def test_molecules(root, notebooks):
    printed, pictures = run(root, notebooks, "7-molecules")
    error, guess = numbers(r"(?:degrees|test|mean): (\d+\.\d)", printed)
    assert error < guess / 2 and pictures == 1
    assert len(re.findall(r"^C[C()]*: -?\d+, measured ", printed, re.MULTILINE)) == 6


def test_hyperedges(root, notebooks):
    pytest.importorskip("networkx")
    printed, _ = run(root, notebooks, "8-hyperedges")
    assert numbers(r"test \{'auc': (\d\.\d+)", printed)[0] > 0.75
    assert len(re.findall("(?:met|did not meet)$", printed, re.MULTILINE)) == 6


def test_point_sets(root, notebooks):
    printed, pictures = run(root, notebooks, "9-point-sets")
    assert numbers(r"test \{'auc': (\d\.\d+)", printed)[0] > 0.6 and pictures == 1
