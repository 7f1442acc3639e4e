"""What calls say of the columns of a table: names, tiers, kinds and pairs."""

import numpy as np
import pytest
import torch

from nsimplex import causal
from nsimplex.causal import CausalGraph, sc

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame():
    """Dose causes growth and colour, in two batches."""
    random = np.random.default_rng(3)
    frame = pandas.DataFrame({"dose": random.normal(size=300)})
    frame["batch"] = ["x", "y"] * 150
    frame["growth"] = 1.5 * frame["dose"] + random.normal(size=300) + 9 * (frame["batch"] == "y")
    frame["set"] = ["growth", "", None] * 100
    frame["colour"] = np.where(frame["dose"] + random.normal(size=300) > 0, "red", "green")
    return frame


def fit(table, **options):
    return causal.causal_fit(table, **options)


def sure(table, **options):
    return causal.edge_confidence(table, replicates=4, **options)


KINDS = {"colour": "category"}


@pytest.mark.parametrize("function", [fit, sure])
@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_names_and_numbers_are_one(frame, function, package):
    plain = pandas.DataFrame(
        {"dose": frame["dose"], "growth": frame["growth"], "colour": frame["colour"] == "red"}
    ).astype(float)
    expected = function(
        plain,
        kinds={np.int64(2): "category"},
        groups=[0, 1] * 150,
        targets=[1, None, None] * 100,
        forbidden=[(2, 1)],
        required=[(0, 1)],
    )
    table = frame
    if package == "polars":
        table = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    found = function(
        table,
        kinds=KINDS,
        groups="batch",
        targets="set",
        forbidden=[("colour", "growth")],
        required=[("dose", "growth")],
    )
    torch.testing.assert_close(found.adjacency, expected.adjacency)
    assert found.adjacency[0, 1] != 0 and found.adjacency[2, 1] == 0
    listed = list(frame["set"])
    again = function(plain, kinds=KINDS, groups=list(frame["batch"]), targets=listed,
                     forbidden=[("colour", 1)], required=[(0, "growth")])  # fmt: skip
    assert torch.equal(again.adjacency, expected.adjacency)


@pytest.mark.parametrize("function", [fit, sure])
@pytest.mark.parametrize(
    "options, says",
    [
        (dict(kinds={"zz": "count"}), "kinds: expected columns 0 to 1 or their names, got 'zz'"),
        (dict(groups="zz"), "groups: expected one value per row, or the name of a column"),
        (dict(targets="zz"), "targets: expected one value per row, or the name of a column"),
        (dict(targets=["zz"] * 300), "targets: expected columns 0 to 1 or their names, got zz"),
        (dict(forbidden=[("dose", "zz")]), "forbidden: expected names of columns, got 'zz'"),
        (dict(required=[("zz", 1)]), "required: expected names of columns, got 'zz'"),
    ],
)
def test_other_names_are_refused(frame, function, options, says):
    name = "causal_fit" if function is fit else "edge_confidence"
    with pytest.raises(ValueError, match=rf"^\[{name}\] {says}"):
        function(frame[["dose", "growth"]], **options)


def test_directions_by_noise_take_names(frame):
    table = frame[["dose", "growth"]].assign(dose=frame["dose"] ** 3)
    graph = [[0, 0], [1, 0]]
    by_name = causal.orient_by_noise(table, graph, required=[("growth", "dose")])
    by_number = causal.orient_by_noise(table, graph, required=[(1, 0)])
    assert torch.equal(by_name.adjacency, by_number.adjacency) and by_name.turned == []
    with pytest.raises(ValueError, match=r"^\[orient_by_noise\] forbidden: expected names of col"):
        causal.orient_by_noise(table, graph, forbidden=[("zz", "dose")])


@pytest.fixture(scope="module")
def chain():
    """c -> b -> a."""
    random = np.random.default_rng(0)
    table = random.normal(size=(300, 3))
    table[:, 1] += 2 * table[:, 2]
    table[:, 0] += 2 * table[:, 1]
    return pandas.DataFrame(table, columns=list("abc"))


FORWARD = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def genes_fit(table, **options):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(table.set_axis(map(str, table.index)))
    sc.fit(data, steps=2, **options)
    return torch.from_numpy(data.varp["causal_graph"].toarray())


#: Everything that takes what is said of columns: the edges of a graph of a table with names.
READERS = {
    "CausalGraph": lambda table, **said: CausalGraph().fit(table, **said).adjacency_,
    "causal_fit": lambda table, **said: causal.causal_fit(table, **said).adjacency,
    "edge_confidence": lambda table, **said: sure(table, **said).adjacency,
    "orient_by_noise": lambda table, **said: (
        causal.orient_by_noise(table, FORWARD, **said).adjacency
    ),
    "fit": genes_fit,
}
readers = pytest.mark.parametrize("reader", READERS)


@readers
@pytest.mark.parametrize(
    "tiers",
    [
        [2, 1, 0],
        (2, 1, 0),
        range(2, -1, -1),
        np.array([2.0, 1.0, 0.0]),
        torch.tensor([2, 1, 0]),
        pandas.Series([0, 1, 2], index=[2, 1, 0]),
        pandas.Series([0, 2, 1], index=list("cab")),
        {0: 2, 1: 1, 2: 0},
        {"c": 0, "a": np.int64(2), 1: 1},
    ],
    ids=str,
)
def test_tiers_are_those_of_their_columns(chain, reader, tiers):
    found = READERS[reader](chain, tiers=tiers)
    assert found.ne(0).int().tolist() == FORWARD


def test_tiers_of_polars(chain):
    polars = pytest.importorskip("polars")
    found = causal.causal_fit(chain, tiers=polars.Series([2, 1, 0])).adjacency
    assert found.ne(0).int().tolist() == FORWARD


@readers
@pytest.mark.parametrize(
    "said, message",
    [
        (dict(tiers={2, 1, 0}), "tiers: expected .*, got set"),
        (dict(tiers=iter([2, 1, 0])), "tiers: expected .*, got list_iterator"),
        (dict(tiers={"a": 2, "b": 1, "c": 0}.values()), "tiers: expected .*, got dict_values"),
        (dict(tiers="abc"), "tiers: expected .*, got 'abc'"),
        (dict(tiers=b"\2\1\0"), "tiers: expected .*, got bytes"),
        (dict(tiers=np.array([[2, 1, 0]])), r"tiers: expected .* shape \[1, 3\]"),
        (dict(tiers=pandas.DataFrame([[2, 1, 0]])), r"tiers: expected .*, got DataFrame"),
        (dict(tiers=[True, False, False]), "tiers.*: expected .*, got True"),
        (dict(tiers=np.array([True, False, False])), "tiers: expected .*, got True"),
        (dict(tiers=[1.5, 0, 1]), "tiers.*: expected .*, got 1.5"),
        (dict(tiers=np.array([1, np.nan, 0])), "tiers: expected .*, got nan"),
        (dict(tiers=[1, None, 0]), "tiers.*: expected .*, got None"),
        (dict(tiers={0: 2, 1: 1, 2: 0, 3: 0}), "tiers: expected columns 0 to 2 or their .*, got 3"),
        (dict(tiers={"a": 2, "b": 1, "z": 0}), "tiers: expected columns 0 to 2 or .*, got 'z'"),
        (dict(tiers={"a": 2, 0: 1, 2: 0}), "tiers: .*, got 0, a column that has a value"),
        (dict(tiers=pandas.Series([2, 1, 0], index=[0, 1, 1])), "tiers: .* a label twice"),
        (dict(forbidden={("a", "b"): True}), "forbidden: expected .*, got dict"),
        (dict(forbidden=("a", "b")), "forbidden: expected pairs .*, got 'a' for a pair"),
        (dict(forbidden=["ab"]), "forbidden: expected pairs .*, got 'ab' for a pair"),
        (dict(forbidden=[{"a", "b"}]), "forbidden: expected pairs .*, got set for a pair"),
        (dict(forbidden=pandas.DataFrame([["a", "b"]])), "forbidden: expected .*, got DataFrame"),
        (dict(required=[("a", "b", "c")]), "required: expected pairs .*, got 3 entries"),
        (dict(required=[(True, False)]), "required: expected columns 0 to 2 .*, got True"),
        (dict(required=[(0.5, 1)]), "required: expected columns 0 to 2 or .*, got 0.5"),
        (dict(required=np.array([[0, 1.5]])), "required: expected columns 0 to 2 .*, got 1.5"),
        (dict(required=[(0, 3)]), "required: expected columns 0 to 2 or their names, got 3"),
        (dict(required=[(-1, 0)]), "required: expected columns 0 to 2 or their names, got -1"),
    ],
)
def test_what_says_nothing_clear_of_columns_is_refused(chain, reader, said, message):
    with pytest.raises((TypeError, ValueError), match=rf"^\[(\w+)\] {message}") as raised:
        READERS[reader](chain, **said)
    assert "\n" not in str(raised.value)


@readers
@pytest.mark.parametrize("kind", [list, set, np.array, lambda pairs: (pair for pair in pairs)])
def test_pairs_come_in_any_order(chain, reader, kind):
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    found = READERS[reader](chain, forbidden=kind(pairs))
    assert found.ne(0).int().tolist() == FORWARD


@pytest.mark.parametrize(
    "names",
    [
        ("x", "y", "z"),
        np.array(["x", "y", "z"]),
        pandas.Index(["x", "y", "z"]),
        pandas.Series(["z", "x", "y"], index=[2, 0, 1]),
        {2: "z", 0: "x", 1: "y"},
    ],
    ids=lambda names: type(names).__name__,
)
def test_names_are_given_by_position_or_number(chain, names):
    table = chain.to_numpy()
    assert CausalGraph().fit(table, names=names).names_ == ["x", "y", "z"]
    assert causal.usable_table(table, names).names == ["x", "y", "z"]
    assert causal.causal_limits(table, FORWARD, names=names).names == ["x", "y", "z"]
    assert list(causal.to_networkx(FORWARD, names)) == ["x", "y", "z"]


@pytest.mark.parametrize("names", [{"x", "y", "z"}, "xyz", [1, 2, 3], ["x", "y"], {0: "x"}])
def test_names_without_an_order_are_refused(chain, names):
    table = chain.to_numpy()
    for call in (
        lambda: CausalGraph().fit(table, names=names),
        lambda: causal.usable_table(table, names),
        lambda: causal.causal_limits(table, FORWARD, names=names),
        lambda: causal.draw_graph(FORWARD, names),
    ):
        with pytest.raises((TypeError, ValueError), match=r"^\[\w+\] names.*: expected") as raised:
            call()
        assert "\n" not in str(raised.value)


def test_tiers_and_kinds_of_dropped_columns_do_not_count(chain):
    table = chain.assign(flat=1.0, pole=np.sign(chain["a"]))[["flat", "a", "b", "c", "pole"]]
    graph = CausalGraph(drop=True)
    for tiers in ({"a": 2, "b": 1, "c": 0, "pole": 3}, {4: 3, 3: 0, 2: 1, 1: 2, "flat": 0}):
        found = graph.fit(table, tiers=tiers).adjacency_
        assert found.ne(0).int()[:3, :3].tolist() == FORWARD
    last = graph.fit(table, tiers={0: 0, 1: 1, 2: 2, 3: 3}).adjacency_
    assert torch.equal(last, graph.fit(table, tiers={0: 0, 1: 1, 2: 2, 3: 3, 4: 9}).adjacency_)
    kinds = pandas.Series(["binary", "continuous"], index=["pole", "flat"])
    expected = CausalGraph(drop=True, kinds={"pole": "binary"}).fit(table).adjacency_
    for own in (kinds, {4: "binary"}, np.array(["continuous"] * 4 + ["binary"])):
        assert CausalGraph(drop=True, kinds=own).fit(table).adjacency_.equal(expected)
        assert causal.causal_fit(table.drop(columns="flat"), kinds={"pole": "binary"}).model
    for kinds in ({"binary"}, {4: "binary", "pole": "count"}, {"pole": True}, {9: "count"}):
        with pytest.raises((TypeError, ValueError), match=r"^\[CausalGraph\] kinds.*: expected"):
            CausalGraph(drop=True, kinds=kinds).fit(table)
