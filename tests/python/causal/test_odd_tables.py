"""Tables and graphs that say more than their numbers: masks, dates, names of rows, matrices."""

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, CausalPipeline

NAMES = list("abcd")


@pytest.fixture(scope="module")
def table():
    return causal.simulate(nodes=4, degree=1, observations=200, seed=4).table.numpy()


def test_masked_values_are_missing(table):
    masked = np.ma.array(table, mask=np.abs(table) > 2.5)
    with pytest.raises(ValueError, match=r"X: expected finite numbers, got NaN in row \d+"):
        CausalGraph().fit(masked)
    gaps = np.where(masked.mask, np.nan, table)
    kept = CausalGraph(missing="rows").fit(masked).adjacency_
    assert kept.equal(CausalGraph(missing="rows").fit(gaps).adjacency_)
    whole = np.ma.array((table * 10).round().astype(int), mask=False)
    assert CausalGraph().fit(whole).adjacency_.equal(CausalGraph().fit(whole.data).adjacency_)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
def test_arrays_of_dates_are_no_numbers(table, kind):
    with pytest.raises(TypeError, match=rf"X: expected numbers, got .* of {kind[:-3]}"):
        CausalGraph().fit((table * 1000).astype(kind))


def test_a_complex_table_is_refused_once(table):
    with pytest.raises(TypeError) as error:
        CausalGraph().fit(torch.tensor(table).to(torch.complex64))
    said = str(error.value)
    assert said.count("complex64") == 1 and "expected real numbers" in said


def test_a_sparse_matrix_that_stays_in_its_file(table, tmp_path):
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    data = anndata.AnnData(sparse.csr_matrix(table))
    data.var_names = NAMES
    data.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    expected = CausalGraph().fit(table).adjacency_
    assert CausalGraph().fit(backed).adjacency_.equal(expected)
    assert CausalGraph().fit(backed[:100]).names_ == NAMES


@pytest.mark.parametrize("options", [dict(layer="counts"), dict(raw=True)])
def test_matrices_that_a_table_does_not_have(table, options, tmp_path):
    (name,) = options
    np.savetxt(tmp_path / "x.csv", table, delimiter=",", header="a,b,c,d", comments="")
    for given in (table, torch.tensor(table), tmp_path / "x.csv"):
        with pytest.raises(ValueError, match=rf"\] {name}: expected an AnnData object or an h5ad"):
            CausalGraph(**options).fit(given)
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(table, layers={"counts": table})
    data.raw = data.copy()
    fitted = CausalGraph(**options).fit(data)
    assert fitted.transform(table).shape == table.shape
    with pytest.raises(ValueError, match="expected layer or raw, got both"):
        CausalGraph(layer="counts", raw=True).fit(data)


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(screen_by="zz"), 'screen_by: expected "correlation" or "variance", got \'zz\''),
        (dict(resampling="zz"), 'resampling: expected "halves" or "bootstrap", got \'zz\''),
        (dict(n_jobs=0), "n_jobs: expected None or an integer other than 0, got 0"),
        (dict(n_jobs=0, confidence=4), "n_jobs: expected None or an integer other than 0, got 0"),
        (dict(confidence=4, min_frequency=2), "min_frequency: expected a number from 0 to 1"),
        (dict(confidence=4, min_frequency=float("nan")), "min_frequency: expected a number from"),
        (dict(kinds="binary"), "kinds: expected one kind per column, got 'binary'"),
        (dict(screen=1), r"\[CausalGraph\] screen: expected 0 or at least 2, got 1"),
        (dict(screen=-1), r"\[CausalGraph\] screen: expected 0 or at least 2, got -1"),
    ],
)
def test_options_are_checked_whether_they_are_used_or_not(table, options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        CausalGraph(**options).fit(table)


def test_frequencies_of_stable_graphs_are_shares(table):
    sure = causal.edge_confidence(table, replicates=4)
    for frequency in (2.0, -0.5, float("nan")):
        with pytest.raises(ValueError, match=r"\[stable\] min_frequency: expected a number from 0"):
            sure.stable(frequency)


def weights():
    made = torch.zeros(4, 4, dtype=torch.float64)
    made[0, 2], made[2, 3] = 1.5, -0.5
    return made


def test_names_of_a_graph_say_which_columns_are_meant(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(weights().numpy(), index=NAMES, columns=NAMES)
    mixed = frame.loc[list("dbca"), list("cadb")]
    pipeline = CausalPipeline(steps=5).fit(table, names=NAMES)
    assert pipeline.embed(mixed).adjacency_.equal(weights())
    assert {edge[:3] for edge in pipeline.edges()} == {("a", "c", 1.5), ("c", "d", -0.5)}
    assert causal.causal_metrics(mixed, frame).shd == 0
    assert causal.draw_graph(frame.loc[list("dbca")]).svg == causal.draw_graph(frame).svg
    assert set(causal.to_networkx(mixed).edges) == {("a", "c"), ("c", "d")}
    own = CausalPipeline(steps=5).embed(mixed)
    assert own.names_ == list("cadb")
    assert {edge[:2] for edge in own.edges()} == {("a", "c"), ("c", "d")}
    for bad, says in [
        (frame.set_axis(list("abcx")), "expected the same names of rows and columns, got 'x'"),
        (frame.set_axis(list("abcx")).set_axis(list("abcx"), axis=1), "expected the columns of"),
    ]:
        before = pipeline.adjacency_.clone()
        with pytest.raises(ValueError, match=rf"\[CausalPipeline\] adjacency: {says}"):
            pipeline.embed(bad)
        assert pipeline.adjacency_.equal(before)


def test_a_graph_that_cannot_be_embedded_changes_nothing(table):
    pipeline = CausalPipeline(steps=5).fit(table)
    before = pipeline.adjacency_.clone()
    with pytest.raises(ValueError, match="expected finite numbers"):
        pipeline.embed(np.full((4, 4), np.nan))
    with pytest.raises(ValueError, match=r"adjacency: expected \[4, 4\].*, got \[3, 3\]"):
        pipeline.embed(np.zeros((3, 3)))
    assert pipeline.adjacency_.equal(before) and pipeline.edges()


def test_a_given_graph_has_no_scores_of_another(table):
    pipeline = CausalPipeline(steps=5, confidence=4).fit(table).embed(weights())
    assert all(edge.frequency is None and edge.score != edge.score for edge in pipeline.edges())
    with pytest.raises(ValueError, match="not fitted: call fit first"):
        pipeline.score(table)
    alone = CausalPipeline(steps=5).embed(weights())
    assert [edge[:2] for edge in alone.edges()] == [("x0", "x2"), ("x2", "x3")]


@pytest.mark.parametrize("name", ["graph.png", "graph.PDF", "html.gif"])
def test_pictures_are_saved_as_what_they_are(name, tmp_path):
    expected = r"\[save\] path: expected a name that ends in \.svg or \.html, got"
    with pytest.raises(ValueError, match=expected):
        causal.draw_graph(weights()).save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    causal.draw_graph(weights()).save(tmp_path / "graph.svg")
