"""Files of CausalPipeline, and the parameters that they and AnnData objects hold."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch

from nsimplex._library import operators
from nsimplex.causal import CausalPipeline, sc
from nsimplex.causal.contract import NotFittedError, clone

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
    mean = torch.zeros(3, dtype=torch.float64)
    operators.causal_pipeline_write(str(tmp_path / "p"), text, ["mean"], [mean])
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


def numbers_table():
    """Noises that are not Gaussian: column 0 causes 1, which causes 2."""
    random = np.random.default_rng(2)
    table = random.exponential(size=(200, 3)) - 1
    table[:, 1] += table[:, 0]
    table[:, 2] += table[:, 1]
    return table


def fitted_pipelines(frame):
    """Pipelines with everything that a fit can set, the table of the fit, and what limits needs."""
    numbers, table = frame[["a", "b"]], numbers_table()
    labelled = pandas.DataFrame(table, columns=[10, 20, 30])
    grouped = labelled.set_axis(list("xyz"), axis=1).assign(batch=[0, 1] * 100)
    whole = dict(steps=2)
    yield "names", CausalPipeline(**whole).fit(numbers), numbers, {}
    yield "none", CausalPipeline(**whole, standardise=True).fit(table), table, {}
    yield "given", CausalPipeline(**whole).fit(table, names=("p", "q", "r")), table, {}
    yield "labels", CausalPipeline(**whole, missing="means").fit(labelled), labelled, {}
    yield "words", CausalPipeline(**whole, kinds={"c": "binary"}).fit(frame), frame, {}
    own = pandas.Series(["binary"], index=["c"])
    yield "series of kinds", CausalPipeline(**whole, kinds=own).fit(frame), frame, {}
    yield "groups", CausalPipeline(**whole).fit(grouped, groups="batch"), grouped, {}
    targets = [0, -1] * 100
    fit = CausalPipeline(**whole).fit(table, targets=targets)
    yield "targets", fit, table, dict(targets=targets)
    sure = CausalPipeline(**whole, confidence=4, min_frequency=0.5, resampling="bootstrap")
    yield "confidence", sure.fit(table), table, {}
    yield "noise", CausalPipeline(**whole, orient_by_noise=True).fit(table), table, {}
    drop = CausalPipeline(**whole, drop=True, screen=2)
    yield "dropped", drop.fit(grouped.assign(flat=1.0)), grouped.assign(flat=1.0), {}
    large = table * 1e200
    yield "exponents", CausalPipeline(**whole).fit(large), large, {}
    if hasattr(CausalPipeline, "set_output"):
        output = CausalPipeline(**whole).set_output(transform="pandas")
        yield "output", output.fit(numbers), numbers, {}
    yield "embedded", CausalPipeline(**whole).embed(torch.eye(3).roll(1)), table, {}
    yield "not fitted", CausalPipeline(**whole, scale=2.0), table, {}


def answers(pipeline, table, rows):
    """What all public methods say: a value, or the message of an error."""

    def said(call):
        try:
            return call()
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    calls = dict(
        transform=lambda: np.asarray(pipeline.transform(table)),
        output=lambda: type(pipeline.transform(table)).__name__,
        score=lambda: pipeline.score(table),
        limits=lambda: pipeline.limits(table, **rows).report(),
        edges=lambda: repr(pipeline.edges()),
        draw=lambda: pipeline.draw().svg,
        networkx=lambda: list(pipeline.to_networkx().edges(data=True)),
        names=lambda: list(pipeline.get_feature_names_out()),
        points=pipeline.points,
        encode=lambda: pipeline.encode(leading=1),
        scale=pipeline.angle_scale,
        embed=lambda: copy.deepcopy(pipeline).embed().tangents_,
        other=lambda: pipeline.transform(np.asarray(table)[:, ::-1][:, :1]),
    )
    return {name: said(call) for name, call in calls.items()}


def same(one, other):
    """Whether two values are equal, of any type that a pipeline has."""
    if isinstance(one, (torch.Tensor, np.ndarray)):
        return type(one) is type(other) and bool(
            np.array_equal(np.asarray(one), np.asarray(other), equal_nan=one.dtype != object)
        )
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def restored(pipeline, tmp_path):
    """The pipeline after every way through a file or a copy."""
    yield "file", saved(pipeline, tmp_path)
    yield "file of a file", saved(saved(pipeline, tmp_path), tmp_path)
    yield "pickle", pickle.loads(pickle.dumps(pipeline))
    yield "copy", copy.deepcopy(pipeline)


def test_everything_is_as_it_was(frame, tmp_path):
    for name, pipeline, table, rows in fitted_pipelines(frame):
        expected = answers(pipeline, table, rows)
        for way, again in restored(pipeline, tmp_path):
            found = answers(again, table, rows)
            for call, value in expected.items():
                assert same(found[call], value), (name, way, call, found[call], value)
            attributes = {key: value for key, value in vars(pipeline).items() if key.endswith("_")}
            for attribute, value in attributes.items():
                assert same(getattr(again, attribute), value), (name, way, attribute)
            assert {key for key in vars(again) if key.endswith("_")} == set(attributes), (name, way)
        if name not in ("embedded", "not fitted", "groups", "given", "targets"):
            for each in (pipeline, saved(pipeline, tmp_path)):
                expected = CausalPipeline(**each.get_params()).fit(table).adjacency_
                assert clone(each).fit(table).adjacency_.equal(expected)


def test_files_without_a_linear_model_say_so(frame, tmp_path):
    pipeline = CausalPipeline(steps=2).fit(frame[["a", "b"]])
    text, names, tensors = stored(pipeline, tmp_path)
    kept = [at for at, name in enumerate(names) if not name.startswith("linear.")]
    again = changed(tmp_path, text, [names[at] for at in kept], [tensors[at] for at in kept])
    with pytest.raises(
        NotFittedError, match=r"^\[CausalPipeline\] score: expected the model of a fit"
    ):
        again.score(frame[["a", "b"]])
    assert again.transform(frame[["a", "b"]]).shape == (200, 2)


def stored(pipeline, tmp_path):
    """The text, the names and the tensors of a pipeline's file."""
    pipeline.save(tmp_path / "p")
    text, names, tensors = operators.causal_pipeline_read(str(tmp_path / "p"))
    return json.loads(text), list(names), list(tensors)


def changed(tmp_path, text, names, tensors):
    """The pipeline of a file with something else in it, and right checksums."""
    text = text if isinstance(text, str) else json.dumps(text)
    operators.causal_pipeline_write(str(tmp_path / "changed"), text, names, tensors)
    return CausalPipeline.load(tmp_path / "changed")


TEXTS = [
    ("columns", [0, 1, 2, 99]),
    ("columns", [0, 1]),
    ("columns", [0, 0, 1]),
    ("columns", [0, 1, -1]),
    ("columns", [0, 1, 2.0]),
    ("columns", [0, 1, True]),
    ("columns", []),
    ("columns", None),
    ("columns", "012"),
    ("names", ["a", "b"]),
    ("names", ["a", "a", "b"]),
    ("names", ["a", "b", 3]),
    ("names", {"a": 0}),
    ("n_features_in", -4),
    ("n_features_in", 2),
    ("n_features_in", 2**70),
    ("n_features_in", "3"),
    ("n_features_in", 3.0),
    ("feature_names_in", ["a", "b"]),
    ("feature_names_in", [1, 2, 3]),
    ("table_names", ["a", "b", "c", "d"]),
    ("table_names", "abc"),
    ("dropped", [1]),
    ("row_columns", "batch"),
    ("rows_of_fit", {"fit": "x"}),
    ("rows_of_fit", {"groups": 1}),
    ("model", 3),
    ("words", {"9": ["a"]}),
    ("words", {"x": ["a"]}),
    ("words", {"0": ["a", "a"]}),
    ("words", [["a"]]),
    ("output", "__class__"),
    ("confidence", {"edges": "x", "replicates": 4}),
    ("confidence", {"edges": 1.0}),
    ("confidence", None),
    ("noise_directions", {"turned": [[0, 9]], "gain": 0.0, "p_value": 1.0}),
    ("noise_directions", {"turned": [0], "gain": 0.0, "p_value": 1.0}),
    ("noise_directions", {"turned": [], "gain": None, "p_value": 1.0}),
    ("parameters", None),
    ("parameters", [1]),
    ("parameters", {"__class__": 1}),
    ("parameters", {"fit": 1}),
    ("parameters", {"dimension": "x"}),
    ("parameters", {"dimension": 0}),
    ("parameters", {"dimension": True}),
    ("parameters", {"estimator": "best"}),
    ("parameters", {"side": "left"}),
    ("parameters", {"scale": float("nan")}),
    ("parameters", {"kinds": [["a", "count", "b"]]}),
    ("parameters", {"kinds": {"a": []}}),
    ("parameters", {"kinds": 3}),
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Text and tensors of a file that has everything."""
    folder = tmp_path_factory.mktemp("parts")
    options = dict(steps=2)
    table = numbers_table() * 1e200
    sure = CausalPipeline(confidence=4, **options).fit(table, names=list("abc"))
    noise = CausalPipeline(orient_by_noise=True, **options).fit(numbers_table(), names=list("abc"))
    sure.noise_directions_ = noise.noise_directions_
    return stored(sure, folder)


@pytest.mark.parametrize("name, value", TEXTS, ids=str)
def test_texts_of_a_file_are_compared_with_what_they_must_be(parts, name, value, tmp_path):
    text, names, tensors = parts
    with pytest.raises(ValueError, match=r"^cannot read .*changed: .*expected") as raised:
        changed(tmp_path, text | {name: value}, names, tensors)
    assert "\n" not in str(raised.value)
    assert type(value) is dict or "got dict" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"parameters": 1}', "{}"])
def test_files_with_other_texts_are_refused(parts, text, tmp_path):
    with pytest.raises(ValueError, match=r"^cannot read .*changed: ") as raised:
        changed(tmp_path, text, *parts[1:])
    assert "\n" not in str(raised.value)


def test_tensors_of_a_file_are_compared_with_what_they_must_be(parts, tmp_path):
    text, names, tensors = parts
    assert len(names) == 18 and changed(tmp_path, text, names, tensors).edges()
    loose = ("scores", "confidence.low", "confidence.high")
    for at, name in enumerate(names):
        own = tensors[at]
        wrong = {
            "narrow": own[:2],
            "flat": own.flatten()[:3] if own.dim() == 2 else own[:, None],
            "scalar": own.sum(),
            "float32": own.float(),
            "integers": own.nan_to_num().clamp(-9, 9).long(),
        }
        if name != "tangents":
            wrong["rectangle"] = torch.cat([own, own[..., :1]], dim=-1)
        if name not in loose[1:]:
            wrong["nan"] = torch.full_like(own, torch.nan)
        if name not in loose:
            wrong["infinite"] = torch.full_like(own, torch.inf)
        if name in ("deviation", "linear.variances", "confidence.frequencies", "cpdag"):
            wrong["negative"] = torch.full_like(own, -1.0)
        for kind, tensor in wrong.items():
            with pytest.raises(ValueError, match=rf"^cannot read .*changed: {name}: expected"):
                changed(tmp_path, text, names, [*tensors[:at], tensor, *tensors[at + 1 :]])
                pytest.fail(f"{name} {kind}")
        if name not in ("scores", "tangents", "generality", "linear.exponents", "cpdag"):
            left = [each for each in range(len(names)) if each != at]
            if name != "noise_directions.adjacency":
                with pytest.raises(
                    ValueError, match=rf"changed: {name}: expected a tensor, got None"
                ):
                    changed(tmp_path, text, [names[i] for i in left], [tensors[i] for i in left])


@pytest.mark.parametrize("name", ["__class_", "__class__", "fit", "load", "tangent", "dimension"])
def test_other_names_in_a_file_become_no_attributes(parts, name, tmp_path):
    text, names, tensors = parts
    plain = changed(tmp_path, text, names, tensors)
    again = changed(tmp_path, text | {name: [1]}, [*names, name], [*tensors, tensors[0]])
    assert vars(again).keys() == vars(plain).keys() and again.fit.__func__ is plain.fit.__func__
