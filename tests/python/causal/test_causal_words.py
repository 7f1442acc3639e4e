"""Columns of words in data frames."""

import pickle

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph

pandas = pytest.importorskip("pandas")

KINDS = {"colour": "category", "sick": "binary"}


@pytest.fixture(scope="module")
def frame():
    """Dose and colour cause growth, and dose causes sickness."""
    random = np.random.default_rng(3)
    frame = pandas.DataFrame({"dose": random.normal(size=400)})
    frame["colour"] = random.choice(["red", "green", "blue"], 400)
    frame["growth"] = 1.5 * frame["dose"] + 2.0 * (frame["colour"] == "red")
    frame["growth"] += random.normal(size=400)
    frame["sick"] = np.where(2 * frame["dose"] + random.logistic(size=400) > 0, "yes", "no")
    return frame


def coded(frame, words):
    """The frame with the places of its words."""
    result = frame.copy()
    for column, own in words.items():
        result[column] = [own.index(word) for word in frame[column]]
    return result.astype(float)


WORDS = {"colour": ["blue", "green", "red"], "sick": ["no", "yes"]}


@pytest.mark.parametrize("kind", ["object", "category", "string", "polars"])
def test_words_are_places_among_the_words(frame, kind):
    expected = CausalGraph(kinds=KINDS).fit(coded(frame, WORDS))
    if kind == "polars":
        polars = pytest.importorskip("polars")
        table = polars.DataFrame(frame.to_dict("list"))
    else:
        table = frame.astype({"colour": kind, "sick": kind})
    graph = CausalGraph(kinds=KINDS).fit(table)
    assert graph.words_ == {1: WORDS["colour"], 3: WORDS["sick"]} and expected.words_ == {}
    assert torch.equal(graph.adjacency_, expected.adjacency_)
    assert {edge[:2] for edge in graph.edges()} >= {("dose", "growth"), ("colour", "growth")}
    numbers = {1: "category", 3: "binary"}
    for found in (
        causal.causal_fit(table, kinds=numbers),
        causal.edge_confidence(table, kinds=numbers, replicates=2),
    ):
        assert torch.equal(found.adjacency, expected.adjacency_)
    listed = CausalGraph(kinds=["continuous", "category", "continuous", "binary"]).fit(table)
    assert torch.equal(listed.adjacency_, expected.adjacency_)


def test_other_tables_have_the_numbers_of_the_fit(frame):
    graph = pickle.loads(pickle.dumps(CausalGraph(kinds=KINDS).fit(frame)))
    few = frame[(frame["colour"] != "green") & (frame["sick"] == "yes")].head(20)
    assert np.array_equal(graph.transform(few), coded(few, WORDS))
    few.loc[few.index[0], "colour"] = "violet"
    with pytest.raises(ValueError, match=r"column colour: expected one of the 3 words of the fit"):
        graph.transform(few)


def test_categories_that_are_numbers_stay_numbers(frame):
    numbers = frame.assign(colour=frame["colour"].map({"red": 7, "green": 2, "blue": 30}))
    graph = CausalGraph(kinds=KINDS).fit(numbers.astype({"colour": "category"}))
    assert graph.words_ == {3: WORDS["sick"]}
    assert graph.transform(numbers)[:, 1].tolist() == numbers["colour"].tolist()


def test_missing_words_are_missing(frame):
    gaps = frame.copy()
    gaps.loc[[3, 8, 21], "colour"] = None
    graph = CausalGraph(kinds=KINDS, missing="rows").fit(gaps)
    whole = CausalGraph(kinds=KINDS).fit(frame.drop(index=[3, 8, 21]))
    assert torch.equal(graph.adjacency_, whole.adjacency_)
    for kinds in (KINDS, ["continuous", "category", "continuous", "binary"]):
        with pytest.raises(ValueError, match="missing: expected refuse or rows for column .* mean"):
            CausalGraph(kinds=kinds, missing="means").fit(gaps)
    numbers = coded(frame, WORDS)
    numbers.loc[3, "growth"] = np.nan
    CausalGraph(kinds=KINDS, missing="means").fit(numbers)  # only a continuous column has a gap


@pytest.mark.parametrize("kinds", [None, {"colour": "category"}, {"sick": "count"}])
def test_words_elsewhere_are_refused_by_name(frame, kinds):
    with pytest.raises(TypeError, match="expected numbers in every column, got .* in column"):
        CausalGraph(kinds=kinds).fit(frame)
