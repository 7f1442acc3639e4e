"""Tables and graphs that say more than their numbers: masks, dates, names, matrices."""

import datetime
import re

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


@pytest.mark.parametrize(
    "entry, kind",
    [
        (np.datetime64(5, "s"), "datetime64"),
        (np.timedelta64(5, "s"), "timedelta64"),
        (np.complex128(1j), "complex128"),
    ],
)
def test_entries_of_an_array_of_objects_are_real_numbers(table, entry, kind):
    objects = table.astype(object)
    objects[3, 1] = entry
    with pytest.raises(TypeError, match=rf"X: expected numbers, got .* of {kind}"):
        CausalGraph().fit(objects)


@pytest.mark.filterwarnings("ignore::nsimplex.causal.TableWarning")
@pytest.mark.filterwarnings("error::UserWarning")
def test_lists_of_arrays(table):
    """They are tables like the array of these rows: complex ones are refused, masks count."""
    expected = CausalGraph().fit(table).adjacency_
    assert CausalGraph().fit(list(table)).adjacency_.equal(expected)
    for rows in (list(table + 1j), tuple(table + 1j), [*table, table[0] + 1j]):
        with pytest.raises(ValueError, match=r"X: expected real numbers"):
            CausalGraph().fit(rows)
    masked = np.ma.array(table, mask=False)
    masked[3, 1] = np.ma.masked
    kept = CausalGraph(missing="rows").fit(masked).adjacency_
    assert CausalGraph(missing="rows").fit(list(masked)).adjacency_.equal(kept)
    with pytest.raises(TypeError, match="X: expected numbers, got list"):
        CausalGraph().fit([table[0], table[1, :2]])


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_masked_tensors_are_named(table):
    masked = torch.masked.masked_tensor(torch.tensor(table), torch.tensor(table > 0))
    with pytest.raises(TypeError, match=r"X: expected numbers, got a masked tensor; to_tensor"):
        CausalGraph().fit(masked)


def test_columns_of_one_name_stay_apart(table):
    with pytest.raises(ValueError, match=r"names: expected different names of columns, got 2 col"):
        causal.to_networkx(weights(), names=["a", "a", "b", "c"])
    assert causal.draw_graph(weights(), names=["a", "a", "b", "c"]).edges


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
        (dict(kinds="binary"), "kinds: expected a list of .*, got 'binary'"),
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
    with pytest.raises(ValueError, match="score: expected the model of a fit, .* call fit first"):
        pipeline.score(table)
    alone = CausalPipeline(steps=5).embed(weights())
    assert [edge[:2] for edge in alone.edges()] == [("x0", "x2"), ("x2", "x3")]


@pytest.mark.parametrize("name", ["graph.eps", "graph.JPG", "html.gif"])
def test_pictures_are_saved_as_what_they_are(name, tmp_path):
    expected = r"\[save\] path: expected a name that ends in \.svg, \.html, \.png or \.pdf, got"
    with pytest.raises(ValueError, match=expected):
        causal.draw_graph(weights()).save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    causal.draw_graph(weights()).save(tmp_path / "graph.svg")


def labels():
    """Labels of four columns that are no texts, or not all."""
    return {
        "integers": [10, 20, 30, 40],
        "negative": np.array([-1, -2, -3, -4]),
        "reversed": [3, 2, 1, 0],
        "numbers": [0.5, 1.0, 1.5, 2.0],
        "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)],
        "pairs": [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")],
        "mixed": ["a", 1, 2.5, None],
    }


def calls(fitted, table):
    """Everything that reads another table."""
    return (
        lambda: fitted.transform(table),
        lambda: fitted.score(table),
        lambda: fitted.limits(table),
    )


@pytest.mark.parametrize("estimator", [CausalGraph(), CausalPipeline(steps=2)], ids=type)
@pytest.mark.parametrize("kind", labels())
def test_labels_win_over_places(table, estimator, kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table).set_axis(labels()[kind], axis=1)
    fitted = estimator.fit(frame)
    assert fitted.names_ == [str(label) for label in labels()[kind]]
    expected = [call() for call in calls(fitted, frame)][:2]
    np.testing.assert_array_equal(expected[0], table)
    assert [call() for call in calls(fitted, table)][1] == expected[1]  # no labels
    others = [frame.iloc[:, [1, 0, 2, 3]], frame.iloc[:, :3], frame.set_axis([7, 8, 9, 6], axis=1)]
    if kind in ("integers", "negative", "reversed"):
        others.append(pandas.DataFrame(table))  # labels 0 to 3
    for other in others:
        for call in calls(fitted, other):
            with pytest.raises(ValueError, match="X: expected the columns of the fit in the same"):
                call()
    if isinstance(fitted, CausalPipeline):
        fitted.save(tmp_path / "p")
        with pytest.raises(ValueError, match="X: expected the columns of the fit in the same"):
            CausalPipeline.load(tmp_path / "p").transform(others[0])


def test_names_that_were_given_win_over_places(table, tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(table, columns=NAMES)
    frame.to_csv(tmp_path / "x.csv", index=False)
    for fitted in (CausalGraph().fit(table, names=NAMES), CausalGraph().fit(tmp_path / "x.csv")):
        np.testing.assert_allclose(fitted.transform(frame), table)
        for other in (frame[list("bacd")], polars.DataFrame(table, schema=list("bacd"))):
            for call in calls(fitted, other):
                with pytest.raises(
                    ValueError, match="in the same order, got 'b' for 'a' in column"
                ):
                    call()
    renamed = CausalGraph().fit(frame, names=list("wxyz"))
    assert renamed.names_ == list("wxyz")
    np.testing.assert_array_equal(renamed.transform(frame), table)


@pytest.mark.parametrize("columns", [[3, 2, 1, 0], [0, 1, 3, 2], [10, 20, 30, 40]])
def test_numbers_of_columns_in_another_order_are_labels(table, columns):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table)
    for fitted in (CausalGraph().fit(table), CausalGraph().fit(frame)):
        for call in calls(fitted, frame.set_axis(columns, axis=1)):
            with pytest.raises(
                ValueError, match=r"in the same order, got '\d+' for '\d' in column"
            ):
                call()


def test_integer_labels_in_constraints_are_names(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=[3, 2, 1, 0])
    by_place = CausalGraph().fit(
        table, forbidden=[(3, 2)], tiers=[1, 0, 0, 1], targets=[3, -1] * 100
    )
    by_label = CausalGraph().fit(
        frame, forbidden=[(0, 1)], tiers={3: 1, 2: 0, 1: 0, 0: 1}, targets=[0, -1] * 100
    )
    assert by_label.adjacency_.equal(by_place.adjacency_)
    ten = frame.set_axis([10, 20, 30, 40], axis=1)
    for said in (
        dict(forbidden=[(0, 1)]),
        dict(targets=[0] * 200),
        dict(tiers=dict.fromkeys(range(4), 0)),
    ):
        with pytest.raises(ValueError, match="expected names of columns, which win over .*, got 0"):
            causal.causal_fit(ten, **said)


@pytest.mark.parametrize("names", [[10, 20, 30, 40], [3, 2, 1, 0], range(4), NAMES], ids=str)
def test_labels_of_a_graph_say_which_columns_are_meant(table, names):
    pandas = pytest.importorskip("pandas")
    whole = pandas.DataFrame(weights().numpy(), index=names, columns=names)
    frame = pandas.DataFrame(table, columns=names)
    pipeline = CausalPipeline(steps=2).fit(frame)
    for graph in (whole, whole.iloc[[2, 0, 3, 1], [1, 3, 0, 2]], whole.iloc[[3, 2, 1, 0]]):
        assert pipeline.embed(graph).adjacency_.equal(weights())
        assert causal.causal_metrics(graph, whole).shd == 0
        assert causal.causal_sortability(frame, graph) == causal.causal_sortability(
            table, weights()
        )
        assert causal.edge_curves(whole.abs(), graph) == (1.0, 1.0)
        assert (
            causal.draw_graph(whole, scores=graph).facts
            == causal.draw_graph(whole, scores=whole).facts
        )
    if 0 not in names:  # else labels of rows are names, too
        for alone in (
            pandas.DataFrame(weights().numpy(), columns=names).iloc[:, [1, 0, 2, 3]],
            pandas.DataFrame(weights().numpy(), index=names).iloc[[1, 0, 2, 3]],
        ):
            with pytest.raises(ValueError, match=r"adjacency: expected .*"):
                pipeline.embed(alone)


def tables(table):
    """A table in forms of other packages, and of classes of this process."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=NAMES)

    class Mine(pandas.DataFrame):
        pass

    class Array(np.ndarray):
        pass

    yield "subclass", Mine(frame)
    yield "array subclass", table.view(Array)
    yield "matrix", np.asmatrix(table)
    yield "sparse columns", frame.astype(pandas.SparseDtype(float))
    yield "arrow columns", frame.convert_dtypes(dtype_backend="numpy_nullable")
    scipy = pytest.importorskip("scipy.sparse")
    yield "dictionary of keys", scipy.dok_matrix(table)
    arrow = pytest.importorskip("pyarrow")
    yield "pyarrow", arrow.Table.from_pandas(frame)
    yield "batch", arrow.RecordBatch.from_pandas(frame)


def test_every_form_of_a_table_is_one_table(table):
    expected = CausalGraph().fit(table)
    for name, form in tables(table):
        fitted = CausalGraph().fit(form)
        assert fitted.adjacency_.equal(expected.adjacency_), name
        if hasattr(form, "columns"):
            assert fitted.names_ == NAMES == causal.usable_table(form).names, name
            assert fitted.edges()[0][:2] == CausalGraph().fit(table, names=NAMES).edges()[0][:2]
        np.testing.assert_array_equal(fitted.transform(form), table)
        assert causal.causal_fit(form).adjacency.equal(expected.adjacency_), name


def test_tables_of_pyarrow_are_data_frames(table):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(table, columns=NAMES).assign(
        e=pandas.Categorical(np.where(table[:, 0] > 0, "up", "down")), f=table[:, 1] > 0
    )
    for make in (arrow.Table.from_pandas, arrow.RecordBatch.from_pandas):
        form, options = make(frame), dict(kinds={"e": "binary", "f": "binary"})
        expected = CausalGraph(**options).fit(frame)
        fitted = CausalGraph(**options).fit(form)
        assert fitted.words_ == {4: ["down", "up"]} and fitted.adjacency_.equal(expected.adjacency_)
        assert causal.causal_fit(form, **options).adjacency.equal(expected.adjacency_)
        grouped = CausalGraph().fit(make(frame[[*NAMES, "e"]]), groups="e", forbidden=[("a", "b")])
        assert grouped.names_ == NAMES
        with pytest.raises(TypeError, match="got category in column e; drop it or encode it"):
            CausalGraph().fit(form)
        with pytest.raises(ValueError, match="in the same order|same order as they were in fit"):
            CausalGraph().fit(make(frame[NAMES])).transform(make(frame[list("bacd")]))


def refused_tables(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=NAMES)
    yield "DataFrame", dict(frame)
    yield "DataFrame", frame.to_dict("records")
    yield "DataFrame", [row for _, row in frame.iterrows()]
    yield "DataFrame", frame.to_records(index=False)
    yield "DataFrame", np.array([(1.0, 2.0)] * 4, dtype=[("a", float), ("b", float)])
    yield "got ndarray of shape .* of words", table.astype(str).astype(object)
    yield "got ndarray of shape .* of <U", table.astype(str)
    yield "got ndarray of shape .* of |S", table.astype(bytes)
    yield "expected numbers, got set", {1.0, 2.0}
    yield "got list", table.astype(str).tolist()
    yield "nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    yield (
        "quantised",
        torch.quantize_per_tensor(torch.from_numpy(table).float(), 0.1, 0, torch.qint8),
    )
    yield "mkldnn", torch.from_numpy(table).float().to_mkldnn()
    xarray = pytest.importorskip("xarray")
    yield "to_pandas", xarray.DataArray(table, dims=["row", "gene"])
    yield "to_pandas", frame.to_xarray()


READERS = {
    "CausalGraph": lambda given: CausalGraph().fit(given),
    "transform": lambda given: CausalGraph().fit(np.eye(4)).transform(given),
    "causal_fit": causal.causal_fit,
    "edge_confidence": causal.edge_confidence,
    "usable_table": causal.usable_table,
    "screen_columns": lambda given: causal.screen_columns(given, 2),
    "causal_baselines": causal.causal_baselines,
    "causal_limits": lambda given: causal.causal_limits(given, np.zeros((4, 4))),
    "orient_by_noise": lambda given: causal.orient_by_noise(given, np.zeros((4, 4))),
    "causal_metrics": lambda given: causal.causal_metrics(given, np.zeros((4, 4))),
    "edge_curves": lambda given: causal.edge_curves(given, np.zeros((4, 4))),
    "causal_embed": causal.causal_embed,
    "draw_graph": causal.draw_graph,
}


@pytest.mark.parametrize("reader", READERS)
def test_tables_that_are_none_are_refused_in_one_line(table, reader):
    for says, form in refused_tables(table):
        with pytest.raises((TypeError, ValueError)) as raised:
            READERS[reader](form)
        said = str(raised.value)
        assert "\n" not in said and said.startswith("["), said
        if "expected a tensor, an array" not in said:  # by the annotation, before any reader
            assert re.search(says, said), said


def test_tables_of_true_and_false_are_numbers(table):
    yes = table > 0
    expected = causal.causal_fit(yes.astype(float)).adjacency
    for form in (yes, torch.from_numpy(yes), yes.tolist(), yes.astype(object)):
        assert causal.causal_fit(form).adjacency.equal(expected)


@pytest.mark.parametrize(
    "interventions, says",
    [
        ({True: 1.0}, "interventions.*True"),
        ({0.5: 1.0}, "interventions.*0.5"),
        ({4: 1.0}, "interventions: expected columns 0 to 3 or their names, got 4"),
        ({"z": 1.0}, "interventions: expected columns 0 to 3 or their names, got 'z'"),
        ({0: True}, "interventions.*True"),
        ({1.0, 2.0}, "interventions: expected .*, got set"),
    ],
)
def test_interventions_of_a_simulation_are_columns(interventions, says):
    with pytest.raises((TypeError, ValueError), match=rf"^\[simulate\] {says}"):
        causal.simulate(nodes=4, observations=5, interventions=interventions)


def test_interventions_by_name(table):
    pandas = pytest.importorskip("pandas")
    dag = pandas.DataFrame(weights().numpy(), index=NAMES, columns=NAMES)
    by_name = causal.simulate(dag, observations=9, interventions={"c": 2.0})
    by_number = causal.simulate(weights(), observations=9, interventions={2: 2.0})
    assert by_name.table.equal(by_number.table) and (by_name.table[:, 2] == 2).all()
    for column in (True, 0.5, "z", 9):
        with pytest.raises((TypeError, ValueError), match=r"^\[draw_graph\] columns"):
            causal.draw_graph(dag, columns=[column])
