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


def test_every_experiment_belongs_to_a_paper(here, root):
    """The laboratory tests papers, so the page leads to each of its commands, a task for all."""
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    experiments = set(re.findall(r"^## (nsimplex lab [\w-]+)", page, re.M))
    experiments.discard("nsimplex lab match2")  # in one heading with match3
    assert sorted(experiments - set(here)) == []


def test_the_papers_have_authors_and_addresses(page):
    rows = re.findall(r"^\| \[(\d)\]\(#[\w-]+\) \| (.+) \| (.+) \| \[.*\]\((.*)\)", page, re.M)
    assert [int(number) for number, *_ in rows] == list(range(1, PAPERS + 1))
    for _, title, authors, address in rows:
        assert title and authors and address.startswith("https://")


def test_options_and_names_in_quotes_are_accepted():
    from nsimplex import causal

    for estimator in ("paper", "paper-lowrank"):
        assert f'"{estimator}"' in causal.causal_fit.__doc__
    for preset in ("paper-scbert", "paper-scgpt"):
        nsimplex.nn.FeatureTransformerOptions.preset(preset, 10)
