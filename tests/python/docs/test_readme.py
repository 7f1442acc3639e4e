"""The README's snippets run, and its links lead somewhere."""

import re

import pytest


@pytest.fixture
def readme(root):
    return (root / "README.md").read_text()


def blocks(readme, language):
    return re.findall(rf"```{language}\n(.*?)```", readme, flags=re.DOTALL)


def run(snippet):
    names = {}
    exec(compile(snippet, "README.md", "exec"), names)
    return names


def test_the_attention_snippet_runs(readme):
    names = run(blocks(readme, "python")[0])
    assert names["out"].shape == names["query"].shape
    assert names["query"].grad.isfinite().all() and names["query"].grad.abs().sum() > 0


def test_the_snippet_from_table_to_angles_runs(readme):
    names = run(blocks(readme, "python")[1])
    assert names["fit"].adjacency.count_nonzero() > 0
    assert names["angles"].shape == (20, 2, 4) and names["angles"].abs().sum() > 0
    assert len(names["ratios"]) == 3 and all(0 < ratio < 2 for ratio in names["ratios"])


def test_the_cpp_snippet_is_the_program_that_the_consumer_test_builds(readme, root):
    (snippet,) = blocks(readme, "cpp")
    assert snippet == (root / "tests/consumer/call.cpp").read_text()


def test_pictures_exist(readme, root):
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme)
    assert pictures and all((root / picture).exists() for picture in pictures)
