"""The notebooks carry the outputs of their code, and these say what the texts say. They run in one
process without Jupyter; make test-all runs them all, and compares."""

import ast
import base64
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
def test_notebooks_are_short(root, notebooks, name):
    read = notebooks.read(source(root, name))
    assert (read["nbformat"], read["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in read["cells"]]
    assert len(set(ids)) == len(ids)
    code = [text for kind, text in notebooks.cells(source(root, name)) if kind == "code"]
    assert sum(bool(line.strip()) for text in code for line in text.splitlines()) < 60
    for text in code:
        ast.parse(text)


def shown(source):
    """Whether a cell prints, draws a figure, and ends with an SVG."""
    body = ast.parse(source).body
    called = [
        ast.unparse(node.func)
        for statement in body
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    ]
    last = ast.unparse(body[-1].value) if isinstance(body[-1], ast.Expr) else ""
    return (
        "print" in called,
        "plt.show" in called,
        bool(last) and not last.startswith(("print(", "plt.")),
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_have_the_outputs_of_their_code(root, notebooks, name):
    path = source(root, name)
    assert notebooks.is_current(path), "run tools/notebooks.py --write"
    for (kind, text), result in zip(notebooks.cells(path), notebooks.stored(path)):
        if kind == "code":
            kinds = [kind for kind, _ in result.pictures]
            found = bool(result.printed), notebooks.PNG in kinds, notebooks.SVG in kinds
            assert found == shown(text), text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_are_the_same_on_every_machine(root, notebooks, name, tmp_path):
    path = source(root, name)
    code = [cell for cell in notebooks.read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    text = json.dumps([cell["outputs"] for cell in code])
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"Warning|stderr|/(home|root|tmp|work|usr)/| at 0x|\d(ms| s)\b", text)
    copy = Path(shutil.copy(path, tmp_path))
    notebooks.write(copy, notebooks.stored(path))
    assert copy.read_bytes() == path.read_bytes()


def test_notebooks_are_small(root):
    sizes = [path.stat().st_size for path in (root / "docs" / "notebooks").iterdir()]
    assert sum(sizes) < 1_000_000


@pytest.fixture
def small(tmp_path):
    """A notebook of two cells."""
    cells = [("markdown", "# A page"), ("code", "print('a number:', 1.5)\nlist(range(3))")]
    path = tmp_path / "small.ipynb"
    content = [
        {"cell_type": kind, "id": kind, "metadata": {}, "source": [text]} for kind, text in cells
    ]
    path.write_text(json.dumps({"cells": content, "metadata": {}}))
    return path


def test_an_edited_cell_needs_new_outputs(notebooks, small):
    assert not notebooks.is_current(small)
    notebooks.write(small, notebooks.execute(small))
    assert notebooks.is_current(small)
    assert notebooks.differences(small, notebooks.execute(small)) == []
    other, words = ("a number: 2.5\n", "a name: 1.5\n")
    assert notebooks.differences(small, [None, notebooks.Result(other, [])]) == []
    (line,) = notebooks.differences(small, [None, notebooks.Result(words, [])])
    assert line.startswith("small.ipynb, cell 2: stored Result(printed='a number: 1.5")
    small.write_text(small.read_text().replace("A page", "The page"))
    assert notebooks.is_current(small)
    small.write_text(small.read_text().replace("range(3)", "range(4)"))
    assert notebooks.differences(small, notebooks.execute(small)) == [
        "small.ipynb: its code is newer than its outputs"
    ]


def test_the_command_writes_and_checks(root, notebooks, small):
    def command(*words):
        line = [sys.executable, root / "tools" / "notebooks.py", *words, small]
        ended = subprocess.run(line, capture_output=True, text=True)
        return ended.returncode, ended.stdout, ended.stderr

    assert command() == (0, "a number: 1.5\n", "")
    assert command("--check")[0] == 1
    assert command("--write") == (0, "", "")
    assert command("--check") == (0, "", "")
    assert notebooks.is_current(small)


def test_a_page_shows_the_stored_outputs(root, notebooks, tmp_path):
    page = notebooks.page(source(root, "1-first-contact"), tmp_path, "A line.").read_text()
    assert page.startswith("# First contact: attention to pairs\n\nA line.\n\nOrdinary")
    assert re.search(r"```text\norder 1: accuracy 0\.\d+\norder 2: accuracy 0\.\d+\n", page)
    pictures = re.findall(r"\]\((\S+\.png)\)", page)
    assert pictures == ["1-first-contact-1.png", "1-first-contact-2.png"]
    for name in pictures:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_of_notebooks_lead_to_files(root, notebooks, name):
    for kind, text in notebooks.cells(source(root, name)):
        for link in re.findall(r"\]\(([^)#\s]+)", text) if kind == "markdown" else ():
            assert (source(root, name).parent / link).exists(), link


stored_and_run = pytest.mark.parametrize(
    "how", ["stored", pytest.param("run", marks=pytest.mark.slow)]
)


@pytest.fixture
def outputs(root, notebooks):
    """What a notebook prints, and the number of its pictures: as stored, or after a run, which may
    differ from it in numbers only."""

    def of(name, how):
        results = notebooks.stored(source(root, name))
        if how == "run":
            results = notebooks.execute(source(root, name))
            assert notebooks.differences(source(root, name), results) == []
        results = [result for result in results if result is not None]
        pictures = [picture for result in results for picture in result.pictures]
        for kind, content in pictures:
            assert "<svg" in content if kind == notebooks.SVG else base64.b64decode(content)
        return "".join(result.printed for result in results), len(pictures)

    return of


def numbers(pattern, printed):
    return [float(number) for number in re.findall(pattern, printed)]


@pytest.mark.parametrize("how", ["stored", "run"])
def test_first_contact(outputs, how):
    printed, pictures = outputs("1-first-contact", how)
    ordinary, pairs, guess = numbers(r"(?:accuracy|answer:) (0\.\d+)", printed)
    assert guess < pairs and ordinary < 0.85 < 0.9 < pairs
    assert pictures == 2


@stored_and_run
def test_language_model(outputs, how):
    printed, pictures = outputs("2-language-model", how)
    ((first, last),) = re.findall(r"byte: (\S+) at first, (\S+) at the end", printed)
    assert float(last) < 3 < 5 < float(first)
    assert "def add_argument(self" in printed and pictures == 1


@stored_and_run
def test_upcycling(outputs, how):
    printed, _ = outputs("3-upcycling", how)
    before, after = numbers(r"accuracy (0\.\d+)", printed)
    assert after > before
    assert float(re.search(r"change of a logit: (\S+)", printed)[1]) < 1e-4


@stored_and_run
def test_your_graph(outputs, how):
    pytest.importorskip("networkx")
    printed, pictures = outputs("4-your-graph", how)
    assert numbers(r"test \{'accuracy': (\d\.\d+)", printed)[0] > 0.5 and pictures == 2
    assert "heaviest tuples of the read-out" in printed
    assert numbers(r"women: \{'auc': (\d\.\d+)", printed)[0] > 0.5


@stored_and_run
@pytest.mark.filterwarnings("ignore::nsimplex.causal.VarianceOrderWarning")
def test_your_table(outputs, how):
    pytest.importorskip("pandas")
    printed, pictures = outputs("5-your-table", how)
    found = set(re.findall(r"(\w+) -> (\w+):", printed))
    assert found == {("sun", "grass"), ("rain", "grass"), ("grass", "sheep"), ("sheep", "wool")}
    assert pictures == 1 and "(5, 2, 2)" in printed


@stored_and_run
def test_your_model(outputs, how):
    printed, pictures = outputs("6-your-model", how)
    lasts = numbers(r"ratio \S+ to (\S+)", printed)
    assert max(lasts[:2]) < 1e-4 < 0.1 < min(lasts[2:]) and pictures == 1
    assert 0.9 < numbers(r"found: tensor\(\[(\d\.\d+)", printed)[0] <= 1 + 1e-6


@stored_and_run
def test_molecules(outputs, how):
    printed, pictures = outputs("7-molecules", how)
    error, guess = numbers(r"(?:degrees|test|mean): (\d+\.\d)", printed)
    assert error < guess / 2 and pictures == 1
    assert len(re.findall(r"^C[C()]*: -?\d+, measured ", printed, re.MULTILINE)) == 6


@stored_and_run
def test_hyperedges(outputs, how):
    pytest.importorskip("networkx")
    printed, _ = outputs("8-hyperedges", how)
    assert numbers(r"test \{'auc': (\d\.\d+)", printed)[0] > 0.75
    assert len(re.findall("(?:met|did not meet)$", printed, re.MULTILINE)) == 6


@stored_and_run
def test_point_sets(outputs, how):
    printed, pictures = outputs("9-point-sets", how)
    assert numbers(r"test \{'auc': (\d\.\d+)", printed)[0] > 0.6 and pictures == 1
