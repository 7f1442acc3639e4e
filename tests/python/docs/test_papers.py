"""docs/guide/papers.md names functions, commands and sections that exist."""

import importlib
import re

import pytest

import nsimplex

PAPERS = 5


@pytest.fixture
def page(root):
    return (root / "docs" / "guide" / "papers.md").read_text(encoding="utf-8")


@pytest.fixture
def here(page):
    """The code in the second column of the tables of sections."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| \[[^|]+ \|$", page, re.M)
    return [code for row in rows for code in re.findall(r"`([^`]*)`", row)]


def exists(name):
    """Whether nsimplex, or one of its modules, has this name."""
    *modules, last = name.split(".")
    try:
        owner = importlib.import_module(".".join(["nsimplex", *modules]))
    except ModuleNotFoundError:
        return False
    return hasattr(owner, last)


def test_every_function_and_class_exists(here):
    names = [code for code in here if re.fullmatch(r"[A-Za-z_]+(\.[A-Za-z_]+)*", code)]
    options = {"context_dims"}  # of nn.SimplicialAttention
    assert len(names) > 60
    assert [name for name in names if name not in options and not exists(name)] == []


def test_every_command_has_its_place_in_the_command_line(here, root):
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (nsimplex .*)$", page, re.M)
    known = set()
    for heading in headings:
        first, *others = heading.split(", ")
        known |= {first} | {f"{first.rsplit(' ', 1)[0]} {other}" for other in others}
    commands = {code for code in here if code.startswith("nsimplex ")}
    assert len(commands) > 20 and sorted(commands - known) == []


def test_the_page_leads_to_every_experiment(page, root):
    """The laboratory tests papers, and the page says what else it does."""
    commands = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    experiments = set(re.findall(r"^## (nsimplex lab [\w-]+)", commands, re.M))
    experiments.discard("nsimplex lab match2")  # in one heading with match3
    named = set(re.findall(r"`(nsimplex lab [\w-]+)`", page))
    assert sorted(experiments - named) == []


def test_the_papers_have_authors_and_addresses(page):
    rows = re.findall(r"^\| \[(\d)\]\(#[\w-]+\) \| (.+) \| (.+) \| \[.*\]\((.*)\)", page, re.M)
    assert [int(number) for number, *_ in rows] == list(range(1, PAPERS + 1))
    for _, title, authors, address in rows:
        assert title and authors and address.startswith("https://")


#: What each paper numbers in its body, and what its appendix states.
NUMBERED = {
    "How Smoothing is N-simplicial Attention": {
        "Algorithm": [1, 2],
        "Theorem": ["3.1", "3.4", "3.7"],
        "Corollary": ["3.2"],
        "Definition": ["3.3", "3.5", "3.6"],
        "Remark": ["3.8"],
        "Lemma": ["A.1", "A.2", "B.1", "C.1", "C.2"],
        "Figure": range(1, 7),
    },
    "Sensitivity and Sharpness": {
        "Definition": [1, 2, 3, 7],
        "Claim": [4, 9, 10],
        "Proposition": [5, 8],
        "Lemma": [6],
    },
    "Beyond Attention as a Graph": {"Figure": range(1, 11)},
    "Higher-order transformers": {
        "Equation": range(1, 32),
        "Proposition": [1, 2],
        "Theorem": [2],
        "Corollary": [1],
        "Lemma": [1, 2],
        "Figure": range(1, 6),
        "Table": range(1, 5),
    },
    "CAPE": {
        "Equation": range(1, 30),
        "Proposition": ["4.1", "4.2", "4.3", *(f"A.{i}" for i in range(1, 11))],
        "Definition": ["4.1", "A.1", "A.2", "A.3"],
        "Remark": ["4.1", "4.2", *(f"A.{i}" for i in range(1, 5))],
        "Lemma": [f"A.{i}" for i in range(1, 5)],
        "Corollary": [f"A.{i}" for i in range(1, 4)],
        "Figure": [1, 2, 3, *(f"S{i}" for i in range(1, 6))],
        "Table": [1, 2, 3, "S1", "S2", "S3"],
    },
}
KINDS = "Algorithm|Theorem|Corollar|Definition|Remark|Lemma|Figure|Claim|Proposition|Equation|Table"


def named(text):
    """(kind, number) of all that a text names, as "Lemmas A.1 and A.2" or "Figures 1 to 3"."""
    found = set()
    number = r"[A-Z]?\.?\d+(?:\.\d+)?"
    for kind, rest in re.findall(
        rf"({KINDS})(?:y|ies|s)? ({number}(?:(?:,| and| to) {number})*)", text
    ):
        kind = "Corollary" if kind == "Corollar" else kind
        for part in re.split(r", | and ", rest):
            first, _, last = part.partition(" to ")
            head, start = re.fullmatch(r"(.*?)(\d+)", first).groups()
            stop = re.fullmatch(r"(.*?)(\d+)", last or first)[2]
            found |= {(kind, f"{head}{i}") for i in range(int(start), int(stop) + 1)}
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_everything_that_a_paper_numbers_has_a_line(page, paper):
    section = re.search(rf"^## {paper}$(.*?)(?=^## |\Z)", page, re.M | re.S)[1]
    expected = {(kind, str(n)) for kind, all_of in NUMBERED[paper].items() for n in all_of}
    lines = named(section[section.index("Line by line:") :])
    assert sorted(expected - lines) == [] and sorted(lines - expected) == []


def test_options_and_names_in_quotes_are_accepted():
    from nsimplex import causal

    for estimator in ("paper", "paper-lowrank"):
        assert f'"{estimator}"' in causal.causal_fit.__doc__
    for preset in ("paper-scbert", "paper-scgpt"):
        nsimplex.nn.FeatureTransformerOptions.preset(preset, 10)
