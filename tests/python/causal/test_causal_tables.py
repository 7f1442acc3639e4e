"""Tables as users have them: data frames, AnnData, sparse matrices, and scikit-learn's contract."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, CausalPipeline
from nsimplex.causal.arrays import read_columns
from nsimplex.causal.contract import HAS_SKLEARN, NotFittedError

ESTIMATORS = [CausalGraph(), CausalPipeline(steps=5)]
NAMES = [f"g{i}" for i in range(6)]


@pytest.fixture(scope="module")
def table():
    return causal.simulate(nodes=6, degree=1, observations=400, seed=4).table


@pytest.fixture(scope="module")
def expected(table):
    return CausalGraph().fit(table).adjacency_


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_passes_the_checks_of_scikit_learn(estimator):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(estimator, on_skip=None)
        more = [
            checks.check_dataframe_column_names_consistency,
            checks.check_n_features_in_after_fitting,
            checks.check_transformer_get_feature_names_out,
            checks.check_transformer_get_feature_names_out_pandas,
            checks.check_set_output_transform,
            checks.check_set_output_transform_pandas,
            checks.check_set_output_transform_polars,
            checks.check_global_output_transform_pandas,
        ]
        for check in more:
            check(type(estimator).__name__, estimator)
    assert len(results) > 40
    assert {each["check_name"] for each in results if each["status"] != "passed"} <= {
        "check_array_api_input"
    }


def frames(table):
    """The same table in every form."""
    yield "array", table.numpy()
    yield "float32", table.numpy().astype(np.float32)
    yield "list", table.tolist()
    yield "fortran", np.asfortranarray(table.numpy())
    yield "torch", table
    yield "torch sparse", table.to_sparse()
    yield "object", table.numpy().astype(object)


def test_every_form_gives_the_same_graph(table, expected):
    for name, form in frames(table):
        fitted = CausalGraph().fit(form)
        torch.testing.assert_close(
            fitted.adjacency_, expected, atol=1e-5, rtol=1e-5, msg=lambda text, n=name: f"{n}{text}"
        )
        assert fitted.n_features_in_ == 6 and not hasattr(fitted, "feature_names_in_")
        assert list(fitted.get_feature_names_out()) == [f"x{i}" for i in range(6)]
        kind = torch.Tensor if name.startswith("torch") else np.ndarray
        assert type(fitted.transform(form)) is kind


def test_scipy_matrices_are_expanded(table, expected):
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        assert CausalGraph().fit(kind(table.numpy())).adjacency_.equal(expected)
    with pytest.raises(ValueError, match=r"X: 300000 x 300000 numbers need 671 GiB, and this"):
        CausalGraph().fit(sparse.csr_matrix((300_000, 300_000), dtype=np.float32))


def test_frames_of_pandas(table, expected):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table.numpy(), columns=NAMES, index=[f"r{i}" for i in range(400)])
    fitted = CausalGraph().fit(frame)
    assert fitted.adjacency_.equal(expected) and fitted.names_ == NAMES
    assert list(fitted.feature_names_in_) == list(fitted.get_feature_names_out()) == NAMES
    nullable = frame.astype("Float64")
    assert CausalGraph().fit(nullable).adjacency_.equal(expected)
    nullable.iloc[3, 2] = pandas.NA
    with pytest.raises(ValueError, match="got NaN in row 3, column g2"):
        CausalGraph().fit(nullable)
    filled = CausalGraph(missing="means").fit(nullable)
    assert filled.transform(nullable)[3, 2] == pytest.approx(float(filled.mean_[2]))
    assert causal.causal_fit(frame).adjacency.equal(expected)
    if HAS_SKLEARN:
        out = CausalGraph().set_output(transform="pandas").fit_transform(frame)
        pandas.testing.assert_frame_equal(out, frame)
        out = CausalGraph().set_output(transform="pandas").fit(table).transform(table)
        assert list(out.columns) == [f"x{i}" for i in range(6)]


def test_frames_of_polars(table, expected):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table.numpy(), schema=NAMES)
    fitted = CausalGraph().fit(frame)
    assert fitted.adjacency_.equal(expected) and fitted.names_ == NAMES
    with pytest.raises(TypeError, match=r"got a LazyFrame; call collect\(\) first"):
        CausalGraph().fit(frame.lazy())
    holes = frame.with_columns(polars.lit(None).cast(polars.Float64).alias("g5"))
    with pytest.raises(ValueError, match="got NaN in row 0, column g5"):
        CausalGraph().fit(holes)
    words = frame.with_columns(polars.lit("a").alias("g1"))
    with pytest.raises(TypeError, match="got String in column g1; drop it or encode it"):
        CausalGraph().fit(words)
    if HAS_SKLEARN:
        out = CausalGraph().set_output(transform="polars").fit_transform(frame)
        assert isinstance(out, polars.DataFrame) and out.columns == NAMES


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda f: f.assign(g1="word"), "expected numbers in every column, got "),
        (lambda f: f.assign(g1=f.g1.astype("category")), "got category in column g1"),
        (
            lambda f: f.assign(g1=np.datetime64("2020-01-01")),
            r"got datetime64\[.*\] in column g1; drop it or encode it as numbers",
        ),
        (lambda f: f.set_axis([*NAMES[:5], "g0"], axis=1), "got 2 columns 'g0'"),
        (lambda f: f.assign(g1=1.0), "g1.*constant"),
        (lambda f: f * 0, "constant"),
        (lambda f: f.assign(g1=np.inf), "got inf in row 0, column g1"),
        (lambda f: f.assign(g1=-np.inf), "got -inf in row 0, column g1"),
        (lambda f: f.assign(g1=np.nan), 'column g1; missing="rows", "means" or "likelihood" acc'),
        (lambda f: f[["g1"]], r"1 feature\(s\) \(shape=\(400, 1\)\)"),
        (lambda f: f[:0], r"0 sample\(s\)"),
        (lambda f: f[:1], r"1 sample\(s\)"),
        (lambda f: f.g1, "Reshape your data"),
        (lambda f: f.astype(complex), "g0"),
        (lambda f: {"a": 1}, "expected numbers, got dict"),
        (lambda f: None, "expected numbers, got None"),
        (lambda f: torch.zeros(3, 3, device="meta"), "expected a tensor on the CPU"),
    ],
)
def test_tables_that_cannot_be_used_get_one_line(table, change, says):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table.numpy(), columns=NAMES)
    for estimator in (CausalGraph(), CausalPipeline(steps=2)):
        with pytest.raises((TypeError, ValueError), match=says) as raised:
            estimator.fit(change(frame))
        assert "\n" not in str(raised.value) and str(raised.value).startswith("[")


def test_other_tables_must_have_the_columns_of_the_fit(table):
    fitted = CausalGraph().fit(table)
    with pytest.raises(ValueError, match="X has 5 features, but CausalGraph is expecting 6") as e:
        fitted.transform(table[:, :5])
    assert "\n" not in str(e.value)
    with pytest.raises(ValueError, match="got NaN in row 1, column 2"):
        fitted.transform(torch.where(torch.arange(2400).view(400, 6) == 8, np.nan, table))
    for call in (lambda: CausalGraph().transform(table), lambda: CausalGraph().score(table)):
        with pytest.raises(NotFittedError, match=r"\[CausalGraph\] not fitted: call fit first"):
            call()
        with pytest.raises(AttributeError):
            call()


def test_constraints_by_name(table):
    fitted = CausalGraph().fit(table, names=NAMES, required=[("g5", "g0")], forbidden=[(1, "g2")])
    assert fitted.adjacency_[5, 0] != 0 and fitted.adjacency_[1, 2] == 0
    with pytest.raises(ValueError, match="required: expected names of columns, got 'x'"):
        CausalGraph().fit(table, names=NAMES, required=[("x", "g0")])


def test_the_score_is_the_likelihood_of_the_linear_model(table):
    fitted = CausalGraph(standardise=True).fit(table)
    values = (table - table.mean(0)) / table.std(0, correction=0)
    total = torch.zeros(len(values), dtype=torch.float64)
    for j in range(6):
        causes = fitted.adjacency_[:, j].nonzero().flatten()
        design = torch.cat([values[:, causes], torch.ones(len(values), 1)], 1).double()
        fit = design @ torch.linalg.lstsq(design, values[:, j : j + 1]).solution
        noise = (values[:, j] - fit[:, 0]).square().mean().sqrt()
        total += torch.distributions.Normal(fit[:, 0], noise).log_prob(values[:, j])
    units = table.std(0, correction=0).double().log().sum()
    assert fitted.score(table) == pytest.approx(float(total.mean() - units), rel=1e-6)
    empty = CausalGraph(standardise=True, threshold=1e6).fit(table)
    assert empty.score(table) < fitted.score(table)


@pytest.mark.skipif(not HAS_SKLEARN, reason="needs scikit-learn")
def test_works_in_pipelines_and_searches(table):
    import joblib
    from sklearn.base import clone
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    search = GridSearchCV(CausalGraph(), {"threshold": [0.0, 100.0]}, cv=3, n_jobs=2)
    with joblib.parallel_config("threading"):  # processes would import torch
        search.fit(table.numpy())
    assert search.best_params_ == {"threshold": 0.0}
    chain = make_pipeline(CausalPipeline(steps=2, drop=True), LinearRegression())
    assert chain.fit(table.numpy(), table[:, 0].numpy()).score(table, table[:, 0]) > 0.99
    copy = clone(CausalPipeline(steps=3, dimension=4).fit(table))
    assert copy.dimension == 4 and not hasattr(copy, "adjacency_")
    again = pickle.loads(pickle.dumps(CausalGraph().fit(table)))
    assert again.adjacency_.equal(CausalGraph().fit(table).adjacency_)
    assert repr(CausalGraph(seed=3)) == "CausalGraph(seed=3)"


def test_is_not_imported_with_the_package(subprocess_env):
    program = (
        "import sys, nsimplex, nsimplex.causal as c; before = 'sklearn' in sys.modules\n"
        "c.CausalPipeline; print(before, 'CausalGraph' in dir(c))"
    )
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, env=subprocess_env, check=True)
    assert done.stdout == "False True\n"


def test_works_without_the_other_packages(subprocess_env):
    program = """
import sys
for name in ("sklearn", "pandas", "polars", "anndata", "joblib", "scipy"):
    sys.modules[name] = None
import torch
from nsimplex import causal
table = causal.simulate(nodes=4, observations=200, seed=1).table
fitted = causal.CausalPipeline(steps=3).fit(table)
assert fitted.fit_transform(table).shape == (200, 4) and fitted.get_params()["steps"] == 3
print(repr(fitted.set_params(seed=2)))
class Frame:
    columns = list("abcd")
    shape = (200, 4)
    def __array__(self, dtype=None, copy=None):
        return table.numpy()
fitted.fit(Frame())
other = Frame()
other.columns = list("abdc")
for call in (lambda: causal.CausalGraph().transform(table), lambda: fitted.transform(other)):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, env=subprocess_env, check=True)
    assert done.stdout.splitlines() == [
        "CausalPipeline(seed=2, steps=3)",
        "[CausalGraph] not fitted: call fit first",
        "[CausalPipeline] X: expected the columns of the fit in the same order, got 'd' for 'c' in "
        "column 2",
    ]


def genes(table, names=NAMES):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(table.numpy().copy())
    data.var_names = names
    return data


def test_anndata_objects_and_files_are_tables(table, expected, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    data = genes(table)
    fitted = CausalPipeline(steps=2).fit(data)
    assert fitted.adjacency_.equal(expected) and fitted.names_ == NAMES
    assert fitted.transform(data).shape == (400, 6)
    data.layers["log"], data.X = sparse.csr_matrix(data.X), np.zeros((400, 6))
    assert CausalGraph(layer="log").fit(data).adjacency_.equal(expected)
    with pytest.raises(ValueError, match=r"expected a layer of \['log'\], got 'counts'"):
        CausalGraph(layer="counts").fit(data)
    with pytest.raises(ValueError, match="it has no raw"):
        CausalGraph(raw=True).fit(data)
    data.write_h5ad(tmp_path / "x.h5ad")
    file = CausalGraph(layer="log").fit(tmp_path / "x.h5ad")
    assert file.adjacency_.equal(expected) and file.names_ == NAMES
    assert file.transform(tmp_path / "x.h5ad").equal(table)
    with pytest.raises(ValueError, match="expected an AnnData object for layer, got a torch"):
        read_columns("fit", "X", table, layer="log")


def test_graphs_of_genes_are_added_to_the_data(table, expected):
    from nsimplex.causal import sc

    anndata = pytest.importorskip("anndata")
    wide = torch.cat([table[:, :3], torch.ones(400, 1), table[:, 3:], table[:, :1] ** 2], 1)
    data = genes(wide, ["a", "b", "c", "flat", "d", "e", "f", "no"])
    data.var["chosen"] = data.var_names != "no"
    assert sc.fit(data, mask_var="chosen", steps=20, dimension=4) is None
    graph = data.varp["causal_graph"].toarray()
    kept = [0, 1, 2, 4, 5, 6]
    assert np.array_equal(graph[np.ix_(kept, kept)], expected.numpy()) and graph[3].sum() == 0
    assert data.varm["X_causal"].shape == (8, 4) and np.isnan(data.varm["X_causal"][[3, 7]]).all()
    assert data.var["causal_used"].tolist() == [True] * 3 + [False] + [True] * 3 + [False]
    assert data.var["causal_generality"].sum() == pytest.approx(1)
    angles, names = sc.encode(data, heads=2, leading=1)
    pipeline = CausalPipeline(steps=20, dimension=4).fit(table)
    torch.testing.assert_close(angles, pipeline.encode(heads=2, leading=1))
    assert names == list("abcdef")
    data.raw = anndata.AnnData(table.numpy(), var=data.var.iloc[kept])
    data.X = np.zeros((400, 8))
    copied = sc.fit(data, use_raw=True, key_added="other", copy=True, steps=2, by_dimension=True)
    assert np.array_equal(copied.varp["other_graph"].toarray(), graph)
    assert "other" not in data.uns and "other" in copied.uns
    assert sc.encode(copied, key="other")[0].shape == (6, 3)


def test_data_with_a_graph_can_be_written(table, tmp_path):
    from nsimplex.causal import sc

    anndata = pytest.importorskip("anndata")
    data = genes(table)
    sc.fit(data, steps=2)
    data.write_h5ad(tmp_path / "x.h5ad")
    again = anndata.read_h5ad(tmp_path / "x.h5ad")
    torch.testing.assert_close(sc.encode(again)[0], sc.encode(data)[0])


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(mask_var="none"), r"\[fit\] mask_var: expected a column of var"),
        (dict(mask_var=[True]), r"\[fit\] mask_var: expected one value for each of 6 genes, got 1"),
        (dict(use_raw=True), r"\[fit\] use_raw: it has no raw"),
        (dict(layer="x"), r"X: expected a layer of \[\], got 'x'"),
        (dict(stepss=3), "stepss"),
    ],
)
def test_fits_of_genes_that_cannot_be(table, options, says):
    from nsimplex.causal import sc

    with pytest.raises((TypeError, ValueError), match=says):
        sc.fit(genes(table), **options)
    with pytest.raises(TypeError, match="expected an AnnData object, got Tensor"):
        sc.fit(table)
    with pytest.raises(ValueError, match="expected a fit in varm"):
        sc.encode(genes(table))
