"""Results as data frames of pandas."""

import sys

import pytest

from nsimplex import causal, read_table
from nsimplex.nn import GraphFit

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def made():
    return causal.simulate(nodes=5, observations=200, seed=1)


@pytest.fixture(scope="module")
def graph(made):
    table = pandas.DataFrame(made.table.numpy(), columns=list("abcde"))
    return causal.CausalGraph(standardise=True, confidence=4).fit(table)


def test_edges(graph):
    edges = graph.edges()
    frame = edges.to_frame()
    assert edges and frame.columns.to_list() == list(edges[0]._fields)
    assert [tuple(row) for row in frame.itertuples(index=False)] == edges
    assert edges == list(edges) and repr(edges) == repr(list(edges))
    empty = type(edges)().to_frame()
    assert len(empty) == 0 and empty.columns.to_list() == frame.columns.to_list()


def test_confidence(graph):
    sure = graph.confidence_
    frame = sure.to_frame(list("abcde"))
    assert len(frame) == int((sure.frequencies > 0).sum())
    assert frame.frequency.is_monotonic_decreasing
    for row in frame.itertuples():
        at = "abcde".index(row.cause), "abcde".index(row.effect)
        assert (row.frequency, row.weight) == (sure.frequencies[at], sure.adjacency[at])
    assert sure.to_frame().cause.str.match(r"x\d$").all()
    with pytest.raises(
        ValueError, match=r"^\[EdgeConfidence\] names: expected 5, one per column, "
    ):
        sure.to_frame(["a", "b"])


def test_limits(made, graph):
    limits = graph.limits(pandas.DataFrame(made.table.numpy(), columns=list("abcde")))
    frame = limits.to_frame()
    pairs = [("abcde"[i], "abcde"[j]) for i, j, *_ in [*limits.reversible, *limits.dependent]]
    assert list(zip(frame.cause, frame.effect)) == pairs
    assert set(frame.finding) <= {"reversible", "dependent noises"}


@pytest.mark.parametrize(
    "call",
    [
        lambda made: causal.causal_metrics(made.weights, made.weights),
        lambda made: causal.edge_curves(made.weights.abs(), made.weights),
        lambda made: causal.causal_sortability(made.table, made.weights),
    ],
)
def test_metrics_are_one_row(made, call):
    metrics = call(made)
    (row,) = metrics.to_frame().to_dict("records")
    assert row == metrics._asdict()


def test_a_training_of_graphs():
    frame = GraphFit(9, 4, {"mae": 1.0, "rmse": 2.0}, {"mae": 3.0, "rmse": 4.0}).to_frame()
    assert frame.index.to_list() == ["validation", "test"] and frame.loc["test", "rmse"] == 4.0
    assert GraphFit(9, 4, {"auc": 1.0}, {}).to_frame().index.to_list() == ["validation"]


def test_a_table_of_a_file(tmp_path):
    (tmp_path / "t.csv").write_text("name,a,b\none,1,2\ntwo,3,\n")
    frame = read_table(tmp_path / "t.csv").to_frame()
    assert frame.columns.to_list() == ["a", "b"] and frame.index.to_list() == ["one", "two"]
    assert frame.loc["one", "b"] == 2 and pandas.isna(frame.loc["two", "b"])


def test_a_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError) as error:
        causal.CausalMetrics(*range(11)).to_frame()
    assert str(error.value) == (
        "[to_frame] expected the package pandas, which is not installed: pip install pandas "
        "(the extra tables)"
    )
