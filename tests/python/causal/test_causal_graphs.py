"""Figures, made-up tables and readers of nsimplex.causal."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import nsimplex.causal as causal
from nsimplex.causal import cells


def test_a_fit_is_compared_with_the_graph_it_came_from():
    made = causal.simulate(nodes=8, degree=1, observations=2000, seed=4)
    assert made.table.shape == (2000, 8) and made.table.dtype == torch.float64
    fit = causal.causal_fit(made.table)
    found = causal.causal_metrics(fit.adjacency, made.weights)
    assert found.shd == 0 and found.sid == 0 and found.f1 == 1.0 and found.edges == 8
    assert causal.edge_curves(fit.scores, made.weights).auroc == 1.0
    empty = causal.causal_metrics(torch.zeros(8, 8), made.weights)
    assert empty.shd == 8 and empty.recall == 0.0 and empty.missing == 8
    both = torch.ones(8, 8) - torch.eye(8)
    assert causal.causal_metrics(both, made.weights).sid is None


def test_scales_tell_the_order_until_they_are_changed():
    made = causal.simulate(nodes=10, degree=2, observations=3000, seed=1)
    raw = causal.causal_sortability(made.table, made.weights)
    scaled = made.table / made.table.std(dim=0)
    again = causal.causal_sortability(scaled * torch.arange(10, 0, -1), made.weights)
    assert raw.variance > 0.8 and raw.variance != again.variance
    assert abs(raw.r2 - again.r2) < 1e-12
    assert math.isnan(causal.causal_sortability(made.table, torch.zeros(10, 10)).r2)
    baselines = causal.causal_baselines(made.table)
    assert list(baselines) == ["empty", "variance_sort", "r2_sort"]
    assert causal.causal_metrics(baselines["variance_sort"][0], made.weights).f1 > 0.7


@pytest.mark.parametrize("mechanism", ["linear", "mlp", "gp"])
def test_interventions_move_descendants_alone(mechanism):
    dag = torch.zeros(4, 4)
    dag[0, 1] = dag[1, 2] = 1
    options = {"mechanism": mechanism, "observations": 30, "seed": 2, "noise": "gumbel"}
    plain = causal.simulate(dag, **options)
    moved = causal.simulate(dag, interventions={1: 2.5}, **options)
    assert torch.equal(plain.table[:, [0, 3]], moved.table[:, [0, 3]])
    assert (moved.table[:, 1] == 2.5).all() and not (plain.table[:, 2] == moved.table[:, 2]).any()
    assert torch.equal(plain.weights, moved.weights)
    assert not torch.equal(causal.simulate(dag, sample_seed=1, **options).table, plain.table)


@pytest.mark.parametrize("drop", [False, True])
def test_columns_without_rows_are_refused_at_once(drop):
    table = torch.empty(0, 1, dtype=torch.float64).expand(0, 2**40)
    with pytest.raises(ValueError, match="expected at least two rows"):
        causal.usable_table(table, drop=drop)


def test_a_usable_table_is_whole_and_varies(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n1,7,1,2\n3,7,3,\n0,7,0,5\n")
    with pytest.raises(ValueError, match=r'1 value is missing, the first in row 2, column "d"'):
        causal.usable_table(path)
    with pytest.raises(ValueError, match=r'column "b" is constant'):
        causal.usable_table(path, missing="rows")
    table = causal.usable_table(path, missing="means", drop=True)
    assert table.names == ["a", "d"] and table.columns == [0, 3] and table.filled == 1
    assert table.values.tolist() == [[1, 2], [3, 3.5], [0, 5]]
    assert table.dropped == ['"b": constant', '"c": equals "a"']


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: causal.simulate(nodes=0),
            r"\[simulate\] nodes: expected at least 1, got 0",
        ),
        (lambda: causal.simulate(graph="ring"), 'graph: expected one of "er", "sf"'),
        (lambda: causal.simulate(torch.ones(2, 2)), "dag: expected no cycles"),
        (
            lambda: causal.simulate(nodes=3, interventions={3: 1.0}),
            "interventions: expected columns 0 to 2 or their names, got 3",
        ),
        (
            lambda: causal.causal_metrics(torch.zeros(2, 3), torch.zeros(2, 3)),
            "graph: expected as many rows",
        ),
        (
            lambda: causal.causal_metrics(torch.zeros(2, 2), torch.zeros(3, 3)),
            "truth: expected shape",
        ),
        (
            lambda: causal.causal_sortability(torch.zeros(5, 2), torch.zeros(3, 3)),
            "one over 2 columns, got 3",
        ),
        (
            lambda: causal.usable_table(
                torch.eye(8).repeat(3, 1), list("abcd"), missing="means", drop=True
            ),
            "names: expected 8, one per column, got 4",
        ),
        (
            lambda: causal.usable_table(torch.eye(3), missing="guess"),
            'missing: expected one of "refuse", "rows", "means"',
        ),
    ],
)
def test_what_cannot_be_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()


LOOP = torch.tensor([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: causal.simulate(interventions={0: float("nan")}),
            "[simulate] interventions: expected finite numbers, got nan for 0",
        ),
        (lambda: causal.simulate(nodes=0), "[simulate] nodes: expected at least 1, got 0"),
        (lambda: causal.simulate(LOOP), "[simulate] dag: expected no cycles, got a graph with one"),
        (
            lambda: causal.causal_fit(torch.randn(20, 2), tiers=[2**70, 0]),
            "[causal_fit] tiers: expected whole numbers from -2^63 to 2^63 - 1, got "
            "1180591620717411303424",
        ),
    ],
)
def test_the_function_and_the_argument_are_those_of_the_call(call, said):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == said


def test_h5ad_files_are_tables(tmp_path):
    anndata = pytest.importorskip("anndata")
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    data = anndata.AnnData(values)
    data.var_names, data.obs_names = ["g1", "g2"], ["c1", "c2", "c3"]
    data.obs["type"] = ["b", "t", "b"]
    data.obs["n"] = [1, 2, 3]
    data.layers["twice"] = 2 * values
    path = tmp_path / "x.h5ad"
    data.write_h5ad(path)
    table = cells.read_h5ad(path)
    assert table.values.tolist() == values.tolist() and table.names == ["g1", "g2"]
    assert table.labels == {"type": ["b", "t", "b"]} and table.cells == ["c1", "c2", "c3"]
    assert cells.read_h5ad(path, "twice").values.sum() == 30
    with pytest.raises(ValueError, match="expected a layer of"):
        cells.read_h5ad(path, "thrice")
    assert cells.main([str(path), str(tmp_path / "x.csv"), "--columns", "1"]) == 0
    read = causal.usable_table  # a table of one column is none to learn from
    with pytest.raises(ValueError, match="at least two columns"):
        read(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == ",g1"


def test_real_cells(capsys):
    pytest.importorskip("anndata")
    folder = os.environ.get("NSIMPLEX_DATA")
    if not folder:
        pytest.skip("NSIMPLEX_DATA is not set")
    table = cells.read_h5ad(Path(folder) / "cells/pbmc68k_reduced.h5ad")
    assert table.values.shape == (700, 765) and "bulk_labels" in table.labels


def test_files_that_are_no_h5ad(tmp_path, capsys):
    (tmp_path / "x.h5ad").write_text("nothing")
    assert cells.main([str(tmp_path / "x.h5ad"), str(tmp_path / "x.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "x.csv").exists()


def test_sparse_cells_that_have_no_room_are_refused_before_they_take_it(tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    anndata.AnnData(sparse.csr_matrix((300_000, 300_000), dtype=np.float32)).write_h5ad(
        tmp_path / "x.h5ad"
    )
    assert cells.main([str(tmp_path / "x.h5ad"), str(tmp_path / "x.csv")]) == 2
    error = capsys.readouterr().err
    assert (
        "x.h5ad: 300000 x 300000 numbers need 671 GiB, and this machine has" in error
        and error.count("\n") == 1
    )
    assert not (tmp_path / "x.csv").exists()


def test_cells_are_ranked_by_what_is_there(tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(1)
    values = rng.normal(size=(30, 5)) * [0.01, 5.0, 0.02, 1.0, 0.0]
    values[3, 0] = values[4, 2] = np.nan
    values[:, 4] = np.nan
    data = anndata.AnnData(values)
    data.var_names = ["tiny", "big", "tiny2", "mid", "none"]
    data.write_h5ad(tmp_path / "x.h5ad")
    paths = [str(tmp_path / "x.h5ad"), str(tmp_path / "x.csv")]
    for count, expected in [
        (2, ",big,mid"),
        (4, ",tiny,big,tiny2,mid"),
        (9, ",tiny,big,tiny2,mid,none"),
    ]:
        assert cells.main([*paths, "--columns", str(count)]) == 0
        assert (tmp_path / "x.csv").read_text().splitlines()[0] == expected
    capsys.readouterr()
    assert cells.main([*paths, "--columns", "-3"]) == 2
    assert (
        capsys.readouterr().err == "nsimplex.causal.cells: --columns: expected 0 or more, got -3\n"
    )


def test_cells_have_labels_and_say_what_they_took(tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    data = anndata.AnnData(np.arange(12, dtype=np.float32).reshape(4, 3))
    data.raw = data
    data = data[:, :2].copy()
    data.obs["type"] = ["b, 1", "t", "b, 1", 'q"']
    data.obs["age"] = [3, 4, 5, 6]
    data.obs["gap"] = ["a", None, "b", "c"]
    data.write_h5ad(tmp_path / "x.h5ad")
    source, table, labels, ages = (
        str(tmp_path / name) for name in ("x.h5ad", "x.csv", "l.csv", "a.csv")
    )
    assert cells.main([source, table, "--labels", f"type={labels}", "--labels", f"age={ages}"]) == 0
    said = capsys.readouterr().out
    assert (
        f"{table}: 4 cells, 2 of 2 genes of X\n" in said
        and "--raw" in said
        and "3 different labels of type" in said
    )
    assert (tmp_path / "l.csv").read_text().splitlines() == [
        ",type",
        '0,"b, 1"',
        "1,t",
        '2,"b, 1"',
        '3,"q"""',
    ]
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "0,3"
    assert cells.main([source, table, "--raw"]) == 0
    assert "3 of 3 genes of raw.X" in capsys.readouterr().out
    for more, says in [
        (
            ["--labels", "kind=k.csv"],
            "expected a column of obs, which are type, age, gap, got 'kind'",
        ),
        (["--labels", "type"], "--labels: expected OBS_COLUMN=FILE, got 'type'"),
        (["--labels", f"type={table}"], "a file of its own"),
        (["--labels", "gap=k.csv"], "obs column 'gap' has no value for 1 cells, first '1'"),
    ]:
        assert cells.main([source, table, *more]) == 2
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1


def test_cells_are_written_as_other_files_are(tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    swapped = np.arange(6, dtype=np.float64).reshape(3, 2).astype(">f8")
    anndata.AnnData(swapped).write_h5ad(tmp_path / "x.h5ad")
    source = str(tmp_path / "x.h5ad")
    assert cells.main([source, str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text().splitlines()[1:] == [
        "0,0.0,1.0",
        "1,2.0,3.0",
        "2,4.0,5.0",
    ]
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "x.csv").stat().st_mode & 0o777 == 0o666 & ~umask
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    for target, why in [("absent/x.csv", "there is no folder"), ("folder", "it is a folder")]:
        assert cells.main([source, str(tmp_path / target)]) == 2
        error = capsys.readouterr().err
        assert f"cannot write {tmp_path / target}: {why}" in error and error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "values", [np.arange(9).reshape(3, 3) % 2, [[0, 1], [0, 0]], torch.ones(3, 3).triu(1).bool()]
)
def test_any_numbers_are_embedded(values):
    made = causal.causal_embed(values, steps=2)
    again = causal.causal_embed(torch.as_tensor(values, dtype=torch.float64), steps=2)
    assert torch.equal(made.tangents, again.tangents)
    assert causal.causal_ranking(made.tangents, values) == causal.causal_ranking(
        made.tangents, torch.as_tensor(values, dtype=torch.float64)
    )


def test_what_cannot_be_embedded_is_named():
    for bad in ("graph.csv", torch.zeros(2, 2, dtype=torch.complex64), object()):
        with pytest.raises(TypeError, match=r"adjacency: expected") as error:
            causal.causal_embed(bad)
        assert "\n" not in str(error.value)


NAMES = ["a\x01b", "caf\xe9", 'x<y>&"z"', "\x1b[0m", "]]>", "\ufffe", "漢字"]


def test_graphml_is_xml_whatever_the_names_are(tmp_path, executable):
    """Names with control characters, of another encoding, and with marks of XML."""
    import csv
    import subprocess
    import xml.etree.ElementTree as xml

    table = tmp_path / "table.csv"
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(torch.randn(50, len(NAMES)).tolist())
    done = subprocess.run(
        [executable, "causal", "fit", table, "--out", tmp_path / "run"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = xml.parse(tmp_path / "run" / "graph.graphml").getroot()
    nodes = [node[0].text for node in found.iter("{http://graphml.graphdrawing.org/xmlns}node")]
    expected = [
        name.replace("\x01", "␁").replace("\x1b", "␛").replace("\ufffe", "\ufffd" * 3)
        for name in NAMES
    ]
    assert nodes == expected


def test_a_score_that_is_no_number_has_no_rank():
    truth = torch.triu(torch.ones(3, 3, dtype=torch.float64), 1)
    with pytest.raises(ValueError, match="scores: expected numbers, got NaN"):
        causal.edge_curves(torch.full((3, 3), torch.nan, dtype=torch.float64), truth)


def hole(shape, bad):
    values = torch.rand(shape, generator=torch.Generator().manual_seed(0)).triu(1)
    values[0, 2] = bad
    return values


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_weights_that_are_no_numbers_are_no_edges(bad, layout):
    """They differ from 0, and so they would count as edges."""
    table, graph, odd = torch.rand(9, 4), torch.ones(4, 4).triu(1), hole((4, 4), bad)
    odd = odd.to_sparse() if layout == "sparse" else odd
    calls = {
        "causal_metrics] graph": lambda: causal.causal_metrics(odd, graph),
        "causal_metrics] truth": lambda: causal.causal_metrics(graph, odd),
        "edge_curves] truth": lambda: causal.edge_curves(graph, odd),
        "causal_sortability] graph": lambda: causal.causal_sortability(table, odd),
        "simulate] dag": lambda: causal.simulate(odd),
        "orient_by_noise] graph": lambda: causal.orient_by_noise(table, odd),
        "causal_embed] adjacency": lambda: causal.causal_embed(odd, steps=1),
    }
    for where, call in calls.items():
        says = f"[{where}: expected finite numbers, got {bad} in row 0, column 2"
        with pytest.raises(ValueError) as raised:
            call()
        assert str(raised.value) == says


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_table_with_gaps_has_no_sortability(bad):
    says = rf"\[causal_sortability\] table: expected finite numbers, got {bad} in row 0, column 2"
    with pytest.raises(ValueError, match=says):
        causal.causal_sortability(hole((9, 4), bad), torch.ones(4, 4).triu(1))


def test_a_negated_view_has_its_sign():
    values = torch.complex(torch.rand(9, 3), torch.rand(9, 3)).conj().imag
    assert values.is_neg()
    usable = causal.usable_table(values).values
    assert torch.equal(usable, values.double().resolve_neg()) and (usable < 0).all()
