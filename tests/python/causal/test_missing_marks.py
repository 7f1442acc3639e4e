"""Marks for missing values beside a table, and names that it does not have."""

import numpy as np
import pytest
import torch

from nsimplex.causal import CausalGraph, sc

pandas = pytest.importorskip("pandas")

MARKS = [None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT, np.datetime64("NaT")]


@pytest.fixture
def frame():
    random = np.random.default_rng(2)
    return pandas.DataFrame(random.normal(size=(60, 4)), columns=list("abcd"))


@pytest.mark.parametrize("mark", MARKS, ids=repr)
def test_marks_are_no_group_and_no_intervention(frame, mark):
    with pytest.raises(ValueError, match=r"^\[CausalGraph\] groups: expected a group in row 1, "):
        CausalGraph().fit(frame, groups=["x", mark, "y"] * 20)
    expected = CausalGraph().fit(frame, targets=["b", "", "c"] * 20)
    for targets in (["b", mark, "c"], [["b"], [mark], ["c"]]):
        graph = CausalGraph().fit(frame, targets=targets * 20)
        assert torch.equal(graph.scores_, expected.scores_)


@pytest.mark.parametrize("dtype", ["string", "category", "Int64"])
def test_marks_of_nullable_columns(frame, dtype):
    values = [1, None, 2] if dtype == "Int64" else ["b", None, "c"]
    column = pandas.Series(values * 20, dtype=dtype)
    expected = CausalGraph().fit(frame, targets=["b", "", "c"] * 20)
    for given in (column, column.array, frame.assign(set=column)):
        own = given is not column and given is not column.array
        graph = CausalGraph().fit(given if own else frame, targets="set" if own else given)
        assert torch.equal(graph.scores_, expected.scores_)
        with pytest.raises(ValueError, match="groups: expected a group in row 1, got (<NA>|nan)"):
            CausalGraph().fit(given if own else frame, groups="set" if own else given)


@pytest.mark.parametrize("argument", ["groups", "targets"])
def test_names_that_obs_does_not_have(frame, argument):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(frame.set_index(frame.index.astype(str)))
    with pytest.raises(ValueError, match=rf"^\[fit\] {argument}: .* column of .* obs, got 'zz'$"):
        sc.fit(data, **{argument: "zz"})
    assert not data.varp and not data.uns


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(confidence=4.5), "confidence: expected an integer, got 4.5"),
        (dict(confidence="4"), "confidence: expected an integer, got '4'"),
        (dict(confidence=4, n_jobs=1.5), "n_jobs: expected an integer or None, got 1.5"),
        (
            dict(confidence=4, min_frequency="x"),
            "min_frequency: expected a number or None, got 'x'",
        ),
        (dict(kinds=3), "kinds: expected a list of .*, a dict, an array or None, got 3"),
    ],
)
def test_parameters_of_other_types_are_named(frame, options, says):
    graph = CausalGraph(**options)
    with pytest.raises(TypeError, match=rf"^\[CausalGraph\] {says}$"):
        graph.fit(frame)
    assert not hasattr(graph, "adjacency_")


@pytest.mark.parametrize("missing", ["rows", "means", "likelihood"])
def test_columns_of_polars_without_values_are_dropped(frame, missing):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(frame.to_dict("list")).with_columns(polars.lit(None).alias("no"))
    assert str(table["no"].dtype) == "Null"
    graph = CausalGraph(drop=True, missing=missing).fit(table)
    expected = CausalGraph(drop=True, missing=missing).fit(frame.assign(no=None))
    assert graph.dropped_ == expected.dropped_ == ['"no": no values']
    assert torch.equal(graph.adjacency_, expected.adjacency_)
