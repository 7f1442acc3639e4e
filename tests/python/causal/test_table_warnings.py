"""Warnings of tables that have what a fit does not assume."""

import warnings

import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, TableWarning


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def chain(rows=300):
    """a -> b -> c, with noises of one variance."""
    noise = normal(rows, 3)
    b = 1.5 * noise[:, 0] + noise[:, 1]
    return torch.stack([noise[:, 0], b, -1.2 * b + noise[:, 2]], 1)


def with_columns(*columns):
    return torch.cat([chain(), *(column[:, None] for column in columns)], 1)


def grown(factor):
    """Each row has a share of the row before."""
    rows = normal(300, 6)
    for row in range(1, 300):
        rows[row] += factor * rows[row - 1]
    return rows


def classes():
    return torch.arange(300) % 3


def said_of(table, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        causal.causal_fit(table, **options)
    return [str(each.message) for each in caught if each.category is TableWarning]


SORTED = normal(300, 5)
SORTED = SORTED[SORTED[:, 2].argsort()]


@pytest.mark.parametrize(
    "table, says",
    [
        (grown(0.9), "The rows have an order, as of time or of batches: the noises of 6 of 6"),
        (normal(300, 6).cumsum(0), "The rows have an order"),
        (normal(60, 6).repeat_interleave(5, 0), "240 of 300 rows repeat earlier ones"),
        (normal(300, 6) * normal(300, 1, seed=1).exp(), "The rows have unequal scales"),
        (with_columns(chain()[:, 0] + chain()[:, 1]), "x3 = x0 + x1: edges among these columns"),
        (with_columns(100 * chain()[:, 2] - 7), "x3 = 100 x2 - 7: "),
        (with_columns(*(1.0 * (classes() == k) for k in range(3))), "x5 = 1 - x3 - x4: "),
        (chain()[:, :2], "Variances alone tell the direction of the edges"),
        (with_columns(torch.arange(300.0).double()[torch.randperm(300)]), "x3 numbers the rows"),
    ],
)
def test_says_what_the_table_has(table, says):
    said = said_of(table)
    assert any(sentence.startswith(f"[causal_fit] table: {says}") for sentence in said) or any(
        says in sentence for sentence in said
    ), said


def test_columns_of_few_values_are_named_unless_they_have_kinds():
    table = with_columns(1.0 * classes())
    words = "kinds make them binary, counts or categories: x3 (3 values)"
    assert any(words in said for said in said_of(table, estimator="order"))
    assert not any(words in said for said in said_of(table))
    assert causal.causal_fit(table).choices.findings == ["x3 is a category, by the values"]


@pytest.mark.parametrize(
    "table, options",
    [
        (normal(300, 6), {}),
        (SORTED, {}),
        (1e200 * normal(300, 6), {}),
        (torch.tan(1.5 * (normal(300, 6) * 9).sin()), {}),
        ((1.0 * torch.randint(60, (2000, 2), generator=torch.Generator().manual_seed(0))), {}),
        (1.0 * (normal(300, 6) > 0.5), dict(kinds=["binary"] * 6)),
        (chain(12), dict(standardise=True)),
    ],
)
def test_says_nothing_of_other_tables(table, options):
    said = [each for each in said_of(table, **options) if "direction" not in each]
    assert said == []


def test_groups_explain_an_order():
    offsets = 5 * (torch.arange(300) // 100)[:, None].double()
    table = normal(300, 4) + offsets
    assert any("an order" in each for each in said_of(table))
    assert not any(
        "an order" in each for each in said_of(table, groups=[k // 100 for k in range(300)])
    )


def test_estimators_and_samples_warn_with_the_names_of_columns():
    table = with_columns(chain()[:, 0] + chain()[:, 1])
    with pytest.warns(TableWarning, match=r"\[CausalGraph\] X: total = a \+ b: .* leave out total"):
        CausalGraph().fit(table, names=["a", "b", "c", "total"])
    with pytest.warns(TableWarning, match=r"\[edge_confidence\] table: x3 = x0 \+ x1: "):
        causal.edge_confidence(table, replicates=2)


def test_derived_columns_are_left_out():
    parts = [1.0 * (classes() == k) for k in range(3)]
    table = with_columns(chain()[:, 0] + chain()[:, 1], *parts, 2 - parts[0])
    graph = CausalGraph(drop=True).fit(table, names=["a", "b", "c", "sum", "d0", "d1", "d2", "e"])
    assert graph.dropped_ == ['"sum": = "a" + "b"', '"d2": = 1 - "d0" - "d1"', '"e": = 2 - "d0"']
    assert graph.names_ == ["a", "b", "c", "d0", "d1"] and graph.columns_ == [0, 1, 2, 4, 5]
    pairs = {edge[:2] for edge in graph.edges()}
    assert {("a", "b"), ("b", "c")} <= pairs
    assert not [each for each in said_of(graph.transform(table)) if "=" in each]
