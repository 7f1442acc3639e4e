"""Files of CausalPipeline, and the parameters that they and AnnData objects hold."""

import json

import numpy as np
import pytest
import torch

from nsimplex._library import operators
from nsimplex.causal import CausalPipeline, sc

pandas = pytest.importorskip("pandas")


@pytest.fixture
def frame():
    """Whether c is "y" depends on a."""
    random = np.random.default_rng(5)
    frame = pandas.DataFrame(random.normal(size=(200, 2)), columns=["a", "b"])
    frame["c"] = np.where(frame["a"] + random.normal(size=200) > 0, "y", "x")
    return frame


def saved(pipeline, tmp_path):
    pipeline.save(tmp_path / "p")
    return CausalPipeline.load(tmp_path / "p")


@pytest.mark.parametrize("kinds", [{"c": "binary"}, {2: "binary"}, {np.int64(2): "binary"}])
def test_words_and_kinds_are_loaded(frame, kinds, tmp_path):
    pipeline = CausalPipeline(kinds=kinds, steps=2).fit(frame)
    again = saved(pipeline, tmp_path)
    assert again.words_ == {2: ["x", "y"]} and again.kinds == kinds
    same = frame[frame["c"] == "y"].head(3)
    assert again.transform(same)[:, 2].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="column c: expected one of the 2 words of the fit"):
        again.transform(same.assign(c="z"))
    assert again.fit(frame).adjacency_.equal(pipeline.adjacency_)


def test_lists_of_kinds_and_dropped_columns_are_loaded(frame, tmp_path):
    kinds = ("continuous", "continuous", "binary", "continuous")
    pipeline = CausalPipeline(kinds=kinds, drop=True, steps=2).fit(frame.assign(flat=1.0))
    again = saved(pipeline, tmp_path)
    assert again.kinds == list(kinds) and again.dropped_ == pipeline.dropped_ != []


@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "2", "c"]])
def test_numbers_of_columns_in_older_files_are_numbers(names, tmp_path):
    parameters = CausalPipeline(kinds={"2": "binary", "c": "count"}).get_params()
    text = json.dumps({"parameters": parameters, "names": names})
    operators.causal_pipeline_write(str(tmp_path / "p"), text, ["mean"], [torch.zeros(3)])
    column = 2 if "2" not in names else "2"
    assert CausalPipeline.load(tmp_path / "p").kinds == {column: "binary", "c": "count"}


def test_parameters_of_numpy_are_saved_as_numbers(frame, tmp_path):
    options = dict(threshold=np.float32(0.5), steps=np.int64(2), drop=np.bool_(True))
    again = saved(CausalPipeline(**options).fit(frame[["a", "b"]]), tmp_path)
    own = {name: again.get_params()[name] for name in options}
    assert own == options and [type(each) for each in own.values()] == [float, int, bool]


def test_parameters_that_no_file_can_hold_are_named(frame, tmp_path):
    pipeline = CausalPipeline(steps=2).fit(frame[["a", "b"]]).set_params(restart=1j)
    with pytest.raises(TypeError, match=r"^\[CausalPipeline\] restart: expected a number, .* comp"):
        pipeline.save(tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def genes(frame):
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(frame[["a", "b"]].set_index(frame.index.astype(str)))


def test_numbers_of_numpy_fit_genes(frame):
    data = genes(frame)
    sc.fit(data, steps=np.int64(2), threshold=np.float32(0.5), kinds={0: "continuous"})
    parameters = json.loads(data.uns["causal"]["params"])
    assert parameters["steps"] == 2 and parameters["threshold"] == 0.5
    assert parameters["kinds"] == [[0, "continuous"]]


def test_genes_stay_as_they_are_unless_all_succeeds(frame, monkeypatch):
    data = genes(frame)
    monkeypatch.setattr(CausalPipeline, "get_params", lambda self, deep=True: {"x": object()})
    with pytest.raises(TypeError, match=r"^\[fit\] x: expected a number, a text, None or a list"):
        sc.fit(data, steps=2)
    assert not data.varp and not data.varm and not data.uns and list(data.var.columns) == []


def test_nothing_of_an_earlier_fit_of_genes_remains(frame):
    data = genes(frame)
    sc.fit(data, steps=2, confidence=4)
    assert "causal_frequencies" in data.varp
    data.varp["other_frequencies"] = np.zeros((2, 2))
    sc.fit(data, steps=2)
    assert set(data.varp) == {"causal_graph", "causal_scores", "other_frequencies"}
