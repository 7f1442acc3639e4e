"""Files and data frames with groups, targets and words give one graph, and other tables, too."""

import random

import numpy as np
import pytest
import torch
from stored_changes import mutated, sweep

from nsimplex import ReadingWarning
from nsimplex.causal import CausalGraph, CausalPipeline, read_h5ad

pandas = pytest.importorskip("pandas")

KINDS = {"colour": "category"}
ROWS = dict(groups="batch", targets="set")


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(3)
    frame = pandas.DataFrame({"dose": random.normal(size=120)})
    frame["batch"] = ["first, x", 'second "y"'] * 60
    frame["growth"] = 1.5 * frame["dose"] + random.normal(size=120) + 9 * (random.random(120) < 0.5)
    frame["set"] = ["growth", None, "dose;growth", "-1"] * 30
    frame["colour"] = np.where(frame["dose"] + random.normal(size=120) > 0, "red", "light green")
    return frame


@pytest.fixture(scope="module")
def expected(frame):
    targets = [["growth"], [], ["dose", "growth"], []] * 30
    return CausalGraph(kinds=KINDS).fit(frame.assign(set=targets), **ROWS)


def csv(path, frame, **options):
    frame.to_csv(path, **options)
    return path


WRITTEN = [
    dict(index=False),
    dict(index=True),
    dict(index=True, index_label="row"),
    dict(index=False, sep="\t"),
    dict(index=False, sep=";"),
    dict(index=False, sep="|"),
    dict(index=False, sep=" ", na_rep="NA"),
    dict(index=False, encoding="utf-16"),
    dict(index=False, encoding="utf-8-sig"),
    dict(index=False, lineterminator="\r\n"),
    dict(index=False, lineterminator="\r"),
    dict(index=False, quoting=1),
]


def test_columns_of_true_and_false_are_numbers(frame, tmp_path):
    own = frame[["dose", "growth"]].assign(ill=frame["colour"] == "red", batch=frame["batch"])
    path = csv(tmp_path / "x.csv", own, index=False)
    for columns, rows in (["dose", "growth", "ill"], {}), (list(own), dict(groups="batch")):
        table = path if rows else csv(tmp_path / "y.csv", own[columns], index=False)
        found = CausalGraph().fit(table, **rows)
        assert found.names_ == ["dose", "growth", "ill"]
        expected = CausalGraph().fit(own[columns], **rows)
        torch.testing.assert_close(found.adjacency_, expected.adjacency_)
        torch.testing.assert_close(found.transform(table), found.transform(path))
    mixed = csv(tmp_path / "z.csv", own.assign(ill=["True", "maybe"] * 60), index=False)
    with pytest.raises(ValueError, match='line 2, column ill: expected a number, got "True"$'):
        CausalGraph().fit(mixed, groups="batch")


@pytest.mark.parametrize("options", WRITTEN, ids=repr)
def test_texts_are_read_like_frames(frame, expected, options, tmp_path):
    own = frame.set_index(np.array([f"r{at}" for at in range(120)])) if options["index"] else frame
    path = csv(tmp_path / "x.txt", own, **options)
    graph = CausalGraph(kinds=KINDS).fit(path, **ROWS)
    assert graph.names_ == ["dose", "growth", "colour"] and graph.row_columns_ == ["batch", "set"]
    assert graph.words_ == expected.words_ == {2: ["light green", "red"]}
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)
    assert torch.equal(graph.transform(path), torch.tensor(expected.transform(frame)))
    assert torch.equal(expected.transform(path), graph.transform(path))
    assert graph.score(frame) == pytest.approx(expected.score(frame))


def test_comments_above_the_first_row(frame, expected, tmp_path):
    path = csv(tmp_path / "x.csv", frame, index=False)
    path.write_text("# of 2024, by hand\n\n" + path.read_text())
    graph = CausalGraph(kinds=KINDS).fit(path, **ROWS)
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)


def test_texts_are_read_by_the_rules_of_every_text(frame, expected, tmp_path):
    """Also where these say more than that words are names: numbers as names, an empty last field,
    and a first line that names the delimiter."""
    own = frame[["dose", "growth", "batch"]]
    path = csv(tmp_path / "x.csv", own.set_axis([0, 1, 2], axis=1), index=False)
    grouped = CausalGraph().fit(own, groups="batch")
    with pytest.warns(ReadingWarning, match="its numbers are consecutive") as said:
        graph = CausalGraph().fit(path, groups="2")
    assert {warning.filename for warning in said} == {__file__}
    assert graph.names_ == ["0", "1"] and graph.row_columns_ == ["2"]
    torch.testing.assert_close(graph.adjacency_, grouped.adjacency_)
    csv(path, frame, index=False)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line + "," for line in lines))
    with pytest.warns(ReadingWarning, match="the last field of every row is empty"):
        graph = CausalGraph(kinds=KINDS).fit(path, **ROWS)
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)
    csv(path, frame, index=False, sep=";")
    path.write_text("sep=;\n" + path.read_text())
    graph = CausalGraph(kinds=KINDS).fit(path, **ROWS)
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)


def test_numbers_of_columns_and_texts_without_names(frame, expected, tmp_path):
    path = csv(tmp_path / "x.csv", frame, index=False)
    graph = CausalGraph(kinds={2: "category"}).fit(path, **ROWS)
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)
    csv(path, frame.drop(columns="set"), index=False, header=False)
    targets = [[1], [], [0, 1], []] * 30
    graph = CausalGraph(kinds={2: "category"}).fit(path, groups="x1", targets=targets)
    assert graph.names_ == [] and graph.words_ == {2: ["light green", "red"]}
    torch.testing.assert_close(graph.adjacency_, expected.adjacency_)


def test_words_that_are_missing_or_numbers(frame, tmp_path):
    gaps = frame.drop(columns=["batch", "set"])
    gaps.loc[[3, 8], "colour"] = None
    expected = CausalGraph(kinds=KINDS, missing="rows").fit(gaps)
    graph = CausalGraph(kinds=KINDS, missing="rows").fit(csv(tmp_path / "x", gaps, na_rep="NA"))
    assert torch.equal(graph.adjacency_, expected.adjacency_) and graph.words_ == expected.words_
    numbers = gaps.assign(colour=gaps["colour"].map({"red": 7.0, "light green": 2.0}))
    graph = CausalGraph(kinds=KINDS, missing="rows").fit(csv(tmp_path / "x", numbers))
    assert graph.words_ == {}
    assert torch.equal(graph.transform(tmp_path / "x")[0], torch.tensor(numbers.to_numpy()[0]))


MISSING = [
    "",
    "NA",
    "n/a",
    "NaN",
    "null",
    "nil",
    "None",
    "<NA>",
    "#N/A",
    "#NA",
    "-nan",
    "?",
    "-",
    ".",
]


@pytest.mark.parametrize("word", MISSING)
def test_what_is_missing_in_numbers_is_missing_in_words(frame, word, tmp_path):
    gaps = frame[["dose", "growth", "colour"]].astype({"growth": object})
    gaps.loc[[3, 8], "colour"] = gaps.loc[[4], "growth"] = word
    graph = CausalGraph(kinds=KINDS, missing="rows").fit(csv(tmp_path / "x", gaps, index=False))
    assert graph.words_ == {2: ["light green", "red"]}
    assert (
        graph.transform(tmp_path / "x").isnan().nonzero() == torch.tensor([[3, 2], [4, 1], [8, 2]])
    ).all()


def test_tables_of_words_alone(tmp_path):
    random = np.random.default_rng(1)
    words = pandas.DataFrame(random.choice(["no", "yes"], (200, 3)), columns=list("abc"))
    words["b"] = np.where(random.random(200) < 0.9, words["a"], words["b"])
    kinds = dict.fromkeys("abc", "binary")
    expected = CausalGraph(kinds=kinds).fit(words)
    graph = CausalGraph(kinds=kinds).fit(csv(tmp_path / "x", words, index=False))
    assert graph.words_ == expected.words_ and torch.equal(graph.adjacency_, expected.adjacency_)


def test_columns_of_the_rows_may_be_in_other_tables(frame, tmp_path):
    pipeline = CausalPipeline(kinds=KINDS, steps=2)
    values = pipeline.fit_transform(frame.assign(set=""), **ROWS)
    assert values.shape == (120, 3)
    pipeline.save(tmp_path / "p")
    other = frame[["set", "colour", "growth", "dose"]].head(9)
    for own in (pipeline, CausalPipeline.load(tmp_path / "p")):
        for table in (frame, frame.drop(columns="batch"), frame.drop(columns=["set", "batch"])):
            assert np.array_equal(own.transform(table), values)
            assert np.array_equal(own.transform(csv(tmp_path / "x", table)), values)
        assert np.array_equal(own.transform(csv(tmp_path / "x", other)), values[:9])
    assert pipeline.score(frame) == pipeline.score(frame[["dose", "growth", "colour"]])
    polars = pytest.importorskip("polars")
    assert np.array_equal(pipeline.transform(polars.DataFrame(frame.to_dict("list"))), values)
    plain = frame[["dose", "growth", "colour"]]
    assert pipeline.fit(plain).row_columns_ == []
    with pytest.raises(TypeError, match="expected numbers in every column, got .* column batch"):
        pipeline.fit(frame)


def test_limits_of_a_file_take_its_groups_and_targets(frame, tmp_path):
    frame = frame.drop(columns="colour")
    path = csv(tmp_path / "x.csv", frame, index=False)
    frame["set"] = [["growth"], [], ["dose", "growth"], []] * 30
    pipeline = CausalPipeline(steps=2).fit(path, **ROWS)
    pipeline.save(tmp_path / "p")
    found = CausalPipeline(steps=2).fit(frame, **ROWS).limits(frame)
    assert found.names == ["dose", "growth"]
    for own in (pipeline, CausalPipeline.load(tmp_path / "p")):
        assert own.limits(path).bic == pytest.approx(found.bic)
        assert own.limits(frame).bic == pytest.approx(found.bic)


def test_words_and_columns_that_cannot_be(frame, expected, tmp_path):
    path = csv(tmp_path / "x.csv", frame.replace("red", "violet"), index=False)
    with pytest.raises(ValueError, match="x.csv: column colour: expected one of the 2 words of th"):
        expected.transform(path)
    graph = CausalGraph(kinds=KINDS)
    for options, says in [
        (dict(groups="zz"), r"groups: .* the name of a column of .*x.csv, got 'zz'"),
        (dict(targets="zz"), r"targets: .* the name of a column of .*x.csv, got 'zz'"),
        (dict(groups="set"), "groups: expected a group in row 1, got None"),
        (dict(targets="batch"), "targets: expected columns 0 to .*, got first, x in row 0"),
        (dict(groups="set", targets="set"), "targets: expected another column than groups, got "),
    ]:
        names = {"batch", "set"} - set(options.values())
        csv(path, frame.drop(columns=list(names)), index=False)
        with pytest.raises(ValueError, match=rf"^\[CausalGraph\] {says}"):
            graph.fit(path, **options)
    csv(path, frame, index=False)
    with pytest.raises(ValueError, match=r"cannot read .*x.csv: line 2, column .*colour.*: expect"):
        CausalGraph().fit(path, **ROWS)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(9, 3)))
    with pytest.raises(ValueError, match=r"^\[CausalGraph\] groups: .* column of .*x.npy, got 'b'"):
        graph.fit(tmp_path / "x.npy", groups="b")
    (tmp_path / "bytes.csv").write_bytes(b"a,b,batch,set\n1,2,\xff,\n3,4,y,\n")
    for name in ("none.csv", "bytes.csv", "nu\0l.csv"):
        with pytest.raises(ValueError, match="^cannot (read|use) "):
            graph.fit(tmp_path / name, **ROWS)


def test_files_of_cells_have_groups_and_targets_in_obs(frame, tmp_path):
    anndata = pytest.importorskip("anndata")
    table = frame[["dose", "growth"]].set_index(frame.index.astype(str))
    data = anndata.AnnData(table, obs=pandas.DataFrame({"batch": [*"xy"] * 60}, table.index))
    data.obs["set"] = pandas.Categorical([None, "growth"] * 60)
    data.write_h5ad(tmp_path / "x.h5ad")
    expected = CausalGraph().fit(data, **ROWS)
    graph = CausalGraph().fit(tmp_path / "x.h5ad", **ROWS)
    assert torch.equal(graph.scores_, expected.scores_)
    assert not torch.equal(graph.scores_, CausalGraph().fit(data).scores_)
    with pytest.raises(ValueError, match=r"^\[CausalGraph\] groups: .* obs of .*x.h5ad, got 'zz'"):
        graph.fit(tmp_path / "x.h5ad", groups="zz")


def test_columns_that_the_fit_does_not_use_may_hold_anything_in_files(frame, tmp_path):
    """The columns of a file are matched by name, so that others do not matter."""
    plain = frame[["dose", "growth"]].copy()
    expected = CausalGraph().fit(plain)
    batches = list(frame["batch"])
    graphs = [expected, CausalGraph().fit(plain, groups=batches)]
    for options in (dict(index=False), dict(index=True), dict(index=False, sep=";")):
        path = csv(tmp_path / "x.csv", frame, **options)
        for graph in graphs:
            assert np.array_equal(graph.transform(path), plain.to_numpy())
            assert graph.score(path) == graph.score(plain)
    gaps = frame.assign(batch=np.inf, colour=np.nan)
    assert np.array_equal(expected.transform(csv(tmp_path / "x.csv", gaps)), plain.to_numpy())
    with pytest.raises(ValueError, match=r"x.csv: expected one column 'dose', got 0"):
        expected.transform(csv(tmp_path / "x.csv", frame[["growth", "batch", "colour"]]))
    with pytest.raises(ValueError, match=r"x.csv: expected one column 'dose', got 0"):
        expected.transform(csv(tmp_path / "x.csv", frame[["batch", "colour"]], index=False))
    with pytest.raises(ValueError, match=r"x.csv: .*growth.*"):
        expected.transform(csv(tmp_path / "x.csv", frame.assign(growth="tall"), index=False))


def test_dropped_columns_of_words_may_hold_others(frame, tmp_path):
    table = frame[["dose", "growth"]].assign(ward="a", colour=frame["colour"])
    kinds = {"colour": "category", "ward": "category"}
    graph = CausalGraph(kinds=kinds, drop=True).fit(table)
    assert graph.names_ == ["dose", "growth", "colour"]
    values = graph.transform(table)
    pipeline = CausalPipeline(kinds=kinds, drop=True, steps=2).fit(table)
    pipeline.save(tmp_path / "p")
    for own in (graph, pipeline, CausalPipeline.load(tmp_path / "p")):
        for ward in ("a", "b", ["a", "b"] * 60, None):
            other = table.assign(ward=ward)
            assert np.array_equal(own.transform(other), values)
            assert np.array_equal(own.transform(csv(tmp_path / "x", other)), values)
    numbered = CausalGraph(kinds={2: "category", 3: "category"}, drop=True)
    path = csv(tmp_path / "x", table, index=False, header=False)
    values = numbered.fit_transform(path)
    assert numbered.columns_ == [0, 1, 3] and numbered.names_ == []
    csv(path, table.assign(ward=["a", "b"] * 60), index=False, header=False)
    assert torch.equal(numbered.transform(path), values)


def test_dropped_columns_may_have_gaps_later(frame):
    table = frame[["dose", "growth"]].assign(flat=1.0)
    graph = CausalGraph(drop=True).fit(table)
    assert np.array_equal(graph.transform(table.assign(flat=np.nan)), graph.transform(table))
    with pytest.raises(ValueError, match="got NaN in row 0, column growth"):
        graph.transform(table.assign(growth=np.nan))


@pytest.mark.parametrize("kind", ["huge", "chunk", "link", "external", "virtual", "cut", "number"])
def test_changed_h5ad_files_are_one_line_before_anything_is_allocated(kind, tmp_path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    path = tmp_path / "x.h5ad"
    anndata.AnnData(np.ones((3, 2), np.float32)).write_h5ad(path)
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        with h5py.File(path, "r+") as file:
            del file["X"]
            if kind == "huge":
                file.create_dataset("X", (2**20, 2**20), "f4", chunks=(8, 8))
            elif kind == "chunk":
                file.create_dataset("X", (3, 2), "f4", maxshape=(None, None), chunks=(2**14, 2**14))
            elif kind == "link":
                file["X"] = h5py.ExternalLink("other.h5", "X")
            elif kind == "external":
                file.create_dataset("X", (3, 2), "f4", external=[("other.bin", 0, 24)])
            elif kind == "virtual":
                layout = h5py.VirtualLayout((3, 2), "f4")
                layout[:] = h5py.VirtualSource("other.h5", "X", (3, 2))
                file.create_virtual_dataset("X", layout)
            else:
                del file["obs"]
                file["obs"] = 1
    with pytest.raises(ValueError, match=r"^cannot read [^\n]*x\.h5ad: [^\n]+$"):
        read_h5ad(path)


@pytest.mark.filterwarnings("ignore")
def test_damaged_h5ad_files_are_one_line(tmp_path):
    anndata = pytest.importorskip("anndata", reason="the package anndata is missing")
    good, path = tmp_path / "good.h5ad", tmp_path / "bad.h5ad"
    names = pandas.DataFrame({"batch": pandas.Categorical([*"xyx"])}, [*"123"])
    data = anndata.AnnData(np.arange(6, dtype=np.float32).reshape(3, 2), names)
    data.layers["raw"] = data.X + 1
    data.write_h5ad(good)
    content, draw = good.read_bytes(), random.Random(40)
    changes = ((f"file {i}", mutated(content, draw)) for i in range(40))
    tried, refused = sweep(changes, path.write_bytes, lambda: read_h5ad(path, "raw"), path)
    assert tried == 40 and refused > tried / 10
