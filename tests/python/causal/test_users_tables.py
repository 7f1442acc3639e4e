"""What users of single cells and of surveys do with their tables."""

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, sc

pandas = pytest.importorskip("pandas")
NUMBERS = {"country": 0, "wage": 1, "school": 2, "age": 3, "rent": 4}


@pytest.fixture(scope="module")
def survey():
    """A column that says nothing stands first."""
    table = causal.simulate(nodes=4, degree=1, observations=300, seed=1).table.numpy()
    frame = pandas.DataFrame(table, columns=["wage", "school", "age", "rent"])
    frame.insert(0, "country", 1.0)
    return frame


def test_constraints_may_name_columns_that_are_dropped(survey):
    plain = survey.drop(columns="country")
    graph = CausalGraph(drop=True)
    cause, effect = CausalGraph().fit(plain).edges()[0][:2]
    forbidden = [("country", "wage"), (cause, effect), ("age", "country")]
    expected = CausalGraph().fit(plain, forbidden=[(cause, effect)])
    assert graph.fit(survey, forbidden=forbidden).names_ == list(plain.columns)
    assert torch.equal(graph.adjacency_, expected.adjacency_)
    says = "required: expected columns that are kept, got 'country', which is left out"
    with pytest.raises(ValueError, match=says):
        graph.fit(survey, required=[("country", "wage")])
    with pytest.raises(ValueError, match="forbidden: expected names of columns, got 'city'"):
        graph.fit(survey, forbidden=[("city", "wage")])
    screened = CausalGraph(drop=True, screen=2).fit(survey)
    (away, *_) = set(plain.columns) - set(screened.names_)
    again = CausalGraph(drop=True, screen=2).fit(survey, forbidden=[(away, screened.names_[0])])
    assert torch.equal(again.adjacency_, screened.adjacency_)


def test_numbers_are_those_of_the_table(survey):
    """Also if a column is dropped, and those behind it have other numbers among the kept ones."""
    graph = CausalGraph(drop=True).fit(survey.to_numpy())
    (dropped,) = set(range(survey.shape[1])) - set(graph.columns_)
    assert dropped < graph.columns_[-1]
    cause, effect = (graph.names_ or graph.get_feature_names_out()).tolist()[-2:]
    cause, effect = (int(name[1:]) for name in (cause, effect))
    here = graph.columns_.index
    for a, b in ((cause, effect), (effect, cause)):
        found = CausalGraph(drop=True).fit(survey.to_numpy(), required=[(a, b)])
        assert found.adjacency_[here(a), here(b)] != 0
    targets = [-1, effect, dropped] * (len(survey) // 3) + [-1] * (len(survey) % 3)
    kept = [each if each != dropped else -1 for each in targets]
    own = [here(each) if each in graph.columns_ else -1 for each in kept]
    found = CausalGraph(drop=True).fit(survey.to_numpy(), targets=targets)
    expected = CausalGraph().fit(survey.to_numpy()[:, graph.columns_], targets=own)
    assert torch.equal(found.adjacency_, expected.adjacency_)
    limits = [
        each.limits(table, targets=of)
        for each, table, of in (
            (found, survey.to_numpy(), targets),
            (expected, survey.to_numpy()[:, graph.columns_], own),
        )
    ]
    assert limits[0].bic == limits[1].bic
    with pytest.raises(ValueError, match=f"expected columns that are kept, got {dropped}, which"):
        CausalGraph(drop=True).fit(survey.to_numpy(), required=[(dropped, effect)])


def test_tiers_may_be_those_of_all_columns(survey):
    plain = survey.drop(columns="country")
    tiers = [1, 0, 0, 1]
    expected = CausalGraph().fit(plain, tiers=tiers)
    for own in (tiers, [5, *tiers]):
        graph = CausalGraph(drop=True).fit(survey, tiers=own)
        assert torch.equal(graph.adjacency_, expected.adjacency_)
    with pytest.raises(ValueError, match="tiers: expected 4"):
        CausalGraph(drop=True).fit(survey, tiers=[1, 0])


def test_words_that_are_no_columns_are_told_what_they_may_be(survey):
    with pytest.raises(ValueError, match=r"got control in row 0; None and -1 mean no intervention"):
        CausalGraph(drop=True).fit(survey, targets=["control", "wage"] * 150)


def test_columns_that_say_nothing_are_named_with_what_helps(survey):
    for frame, says in (
        (survey, r'column "country" is constant; drop=True leaves such columns out'),
        (
            survey.assign(country=survey["wage"]),
            r'column "wage" equals "country"; drop=True leaves',
        ),
    ):
        with pytest.raises(ValueError, match=rf"^\[CausalGraph\] X: {says}"):
            CausalGraph().fit(frame)
    frame = survey[["country", "wage"]]
    with pytest.raises(
        ValueError, match=r"^\[CausalGraph\] X: expected at least two columns .*, got 1$"
    ):
        CausalGraph(drop=True).fit(frame)


def cells(survey):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(survey.set_index(survey.index.astype(str)))
    data.obs["guide"] = pandas.Categorical([None, "age", "rent"] * 100)
    data.var["used"] = [True, True, True, False, True]
    return data


def test_interventions_on_genes_that_are_not_used_do_not_count(survey):
    data = cells(survey)
    sc.fit(data, mask_var="used", targets="guide", steps=2)
    used = survey[["wage", "school", "rent"]]
    expected = CausalGraph().fit(used, targets=[None, None, "rent"] * 100)
    found = data.varp["causal_graph"].toarray()[np.ix_([1, 2, 4], [1, 2, 4])]
    assert np.array_equal(found, expected.adjacency_.numpy())
    data.obs["guide"] = ["school;age"] * 300
    with pytest.raises(ValueError, match=r"targets: expected columns .*, got school;age in row 0"):
        sc.fit(data, mask_var="used", targets="guide", steps=2)
    numbers = np.array([-1, 3, 4] * 100)  # of all genes
    sc.fit(data, mask_var="used", targets=numbers, steps=2)
    found = data.varp["causal_graph"].toarray()[np.ix_([1, 2, 4], [1, 2, 4])]
    assert np.array_equal(found, expected.adjacency_.numpy())
    sc.fit(data, mask_var="used", targets=[["age", "rent"], [], ["wage"]] * 100, steps=2)


def test_genes_have_constraints_and_kinds(survey):
    data = cells(survey)
    used = survey[["wage", "school", "rent"]]
    (cause, effect, *_), *_ = CausalGraph().fit(used).edges()
    kinds = {"wage": "continuous", "age": "count"}
    for options in (
        dict(forbidden=[(cause, effect), ("age", "rent")]),
        dict(forbidden=[(NUMBERS[cause], NUMBERS[effect]), (3, 4)]),
        dict(tiers=[0, 1, 0, 5, 1]),
    ):
        sc.fit(data, mask_var="used", steps=2, kinds=kinds, **options)
        own = options if "forbidden" not in options else dict(forbidden=[(cause, effect)])
        own = own if "tiers" not in own else dict(tiers=[1, 0, 1])
        expected = CausalGraph().fit(used, **own).adjacency_.numpy()
        found = data.varp["causal_graph"].toarray()[np.ix_([1, 2, 4], [1, 2, 4])]
        assert np.array_equal(found, expected)
    sc.fit(data, mask_var="used", steps=2, required=[("rent", "wage")])
    assert data.varp["causal_graph"].toarray()[4, 1] != 0
    named = data.varp["causal_graph"].toarray()
    sc.fit(data, mask_var="used", steps=2, required=[(4, 1)])
    assert np.array_equal(data.varp["causal_graph"].toarray(), named)
    with pytest.raises(ValueError, match=r"^\[fit\] tiers: expected 5, one per gene, got 3"):
        sc.fit(data, mask_var="used", steps=2, tiers=[1, 0, 1])
    with pytest.raises(ValueError, match="required: expected names of columns, got 'age'"):
        sc.fit(data, mask_var="used", steps=2, required=[("age", "wage")])


def test_messages_of_a_fit_name_the_columns_of_the_table(survey):
    words = survey.assign(town=[*"abc"] * 100)
    for kind, column, says in (
        ("binary", "town", "kinds: expected two values in column town, got 3"),
        ("count", "wage", "kinds: expected whole numbers from 0 in column wage, got "),
    ):
        with pytest.raises(ValueError, match=rf"^\[CausalGraph\] {says}"):
            CausalGraph(drop=True, kinds={column: kind, "town": "binary"}).fit(words)
    table = torch.tensor(survey.to_numpy())
    with pytest.raises(ValueError, match=r"^\[CausalGraph\] kinds: .* from 0 in column 1, got"):
        CausalGraph(drop=True, kinds={1: "count"}).fit(table)
    wide = survey.assign(rent=survey["rent"] * 1e-200)
    with pytest.raises(ValueError, match=r"^\[CausalGraph\] X: column rent varies 2\^.* column "):
        CausalGraph(drop=True).fit(wide)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_a_switch_is_true_or_false(survey, value):
    says = r"^\[CausalGraph\] orient_by_noise: expected True or False, got "
    with pytest.raises(TypeError, match=says):
        CausalGraph(drop=True, orient_by_noise=value).fit(survey)
    CausalGraph(drop=True, orient_by_noise=np.bool_(True)).fit(survey)


def test_the_depth_of_cells_is_taken_out_of_raw_counts():
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    depth = rng.lognormal(0, 0.5, 500)
    counts = rng.poisson(depth[:, None] * rng.lognormal(1, 1, 40)).astype(float)

    def edges(matrix, **options):
        data = anndata.AnnData(matrix)
        sc.fit(data, dimension=2, steps=2, standardise=True, **options)
        return data.varp["causal_graph"].nnz

    with pytest.warns(sc.RawCountsWarning, match="depth=True takes it out"):
        raw = edges(counts)
    assert raw > 60 and edges(counts, depth=True) < 10
    assert edges(counts, depth=False) == raw  # asked for, so that nothing warns
    with pytest.raises(ValueError, match=r"\[fit\] depth: expected raw counts"):
        edges(counts + 0.5, depth=True)
