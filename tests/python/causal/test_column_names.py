"""Names of columns in causal_fit, edge_confidence and orient_by_noise."""

import numpy as np
import pytest
import torch

from nsimplex import causal

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
