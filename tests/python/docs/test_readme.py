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


def block(page, containing):
    (found,) = [each for each in blocks(page, "python") if containing in each]
    return found


def run(snippet):
    names = {}
    exec(compile(snippet, "README.md", "exec"), names)
    return names


def test_the_snippet_of_the_readme_runs_with_gradients(readme):
    (snippet,) = blocks(readme, "python")
    names = run(snippet)
    assert names["out"].shape == names["q"].shape
    assert names["q"].grad.isfinite().all() and names["q"].grad.abs().sum() > 0
    assert names["Block"]().attention.order == 2


def test_the_readme_is_short(readme):
    assert len(readme.splitlines()) <= 90
    last = readme.rpartition("\n## ")[2]
    assert 0 < len(re.findall(r"\]\(", last)) <= 10


def test_the_sums_of_the_tour_are_those_found_by_search(tour, capsys):
    names = run(block(tour, "numbers"))
    assert f"```\n\n    {capsys.readouterr().out.strip()}\n" in tour
    numbers = names["numbers"].long().tolist()
    for own, found in zip(numbers, names["out"].flatten().tolist()):
        pairs = [(a, b) for a in numbers for b in numbers if a < b and own not in (a, b)]
        ((a, b),) = [pair for pair in pairs if (own + sum(pair)) % 20 == 0]
        assert abs(found - a * b) < 1e-3


def test_the_attention_snippet_runs(tour):
    names = run(block(tour, "window=[32, 512]"))
    assert names["out"].shape == names["query"].shape
    assert names["query"].grad.isfinite().all() and names["query"].grad.abs().sum() > 0


def test_the_snippet_from_table_to_angles_runs(tour):
    names = run(block(tour, "causal_angles"))
    assert names["fit"].adjacency.count_nonzero() > 0
    assert names["angles"].shape == (20, 2, 4) and names["angles"].abs().sum() > 0
    assert len(names["ratios"]) == 3 and all(0 < ratio < 2 for ratio in names["ratios"])


def test_the_cpp_snippet_is_the_program_that_the_consumer_test_builds(tour, root):
    (snippet,) = blocks(tour, "cpp")
    assert snippet == (root / "tests/consumer/call.cpp").read_text()


def test_pictures_exist(readme, root):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme)
    assert pictures and all((root / picture).exists() for picture in pictures)
