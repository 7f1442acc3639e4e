"""The snippets of README.md and docs/tour.md run and print what the page says."""

import re

import pytest


@pytest.fixture
def readme(root):
    return (root / "README.md").read_text()


@pytest.fixture
def tour(root):
    return (root / "docs" / "tour.md").read_text()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def run(snippet):
    names = {}
    exec(compile(snippet, "README.md", "exec"), names)
    return names


def test_the_first_snippet_prints_what_stands_below_it(readme, capsys):
    (snippet,) = blocks(readme, "python")
    assert len([line for line in snippet.splitlines() if line.strip()]) == 8
    names = run(snippet)
    assert f"```\n\n    {capsys.readouterr().out.strip()}\n" in readme
    numbers = names["numbers"].long().tolist()
    for own, found in zip(numbers, names["out"].flatten().tolist()):  # by search
        pairs = [(a, b) for a in numbers for b in numbers if a < b and own not in (a, b)]
        ((a, b),) = [pair for pair in pairs if (own + sum(pair)) % 20 == 0]
        assert abs(found - a * b) < 1e-3


def test_the_attention_snippet_runs(tour):
    names = run(blocks(tour, "python")[0])
    assert names["out"].shape == names["query"].shape
    assert names["query"].grad.isfinite().all() and names["query"].grad.abs().sum() > 0


def test_the_snippet_from_table_to_angles_runs(tour):
    names = run(blocks(tour, "python")[1])
    assert names["fit"].adjacency.count_nonzero() > 0
    assert names["angles"].shape == (20, 2, 4) and names["angles"].abs().sum() > 0
    assert len(names["ratios"]) == 3 and all(0 < ratio < 2 for ratio in names["ratios"])


def test_the_cpp_snippet_is_the_program_that_the_consumer_test_builds(tour, root):
    (snippet,) = blocks(tour, "cpp")
    assert snippet == (root / "tests/consumer/call.cpp").read_text()


def test_pictures_exist(readme, root):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme)
    assert pictures and all((root / picture).exists() for picture in pictures)


def test_every_strong_claim_links_to_its_proof(readme):
    section = readme.partition("## Why this library\n")[2].partition("\n## ")[0]
    claims = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    assert len(claims) >= 6
    for claim in claims:
        assert claim.startswith("**") and re.search(r"\]\((docs|lab)/", claim), claim
