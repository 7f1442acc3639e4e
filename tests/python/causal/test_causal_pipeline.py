"""CausalPipeline: from a table to angles, saved and loaded."""

import pytest
import torch

from nsimplex import causal
from nsimplex.causal.pipeline import CausalPipeline


@pytest.fixture(scope="module")
def made():
    return causal.simulate(nodes=8, degree=1, observations=1500, seed=4)


def test_from_a_table_to_angles(made):
    pipeline = CausalPipeline(dimension=8, steps=60).fit(made.table)
    assert causal.causal_metrics(pipeline.adjacency_, made.weights).shd == 0
    assert pipeline.tangents_.shape == (8, 8) and pipeline.model_
    angles = pipeline.encode(heads=4, leading=1)
    assert angles.shape == (9, 4, 2) and (angles[0] == 0).all()
    ball = causal.ball_points(pipeline.tangents_)
    assert torch.equal(angles, causal.causal_angles(ball, heads=4, leading=1))
    assert torch.equal(pipeline.transform(made.table), made.table)


def test_files_are_transformed_as_they_are_fitted(made, tmp_path):
    names = [f"g{i}" for i in range(8)]

    def write(name, columns):
        rows = made.table[:40, columns].tolist()
        text = [",".join(names[i] for i in columns), *(",".join(map(repr, row)) for row in rows)]
        (tmp_path / name).write_text("\n".join(text) + "\n")
        return tmp_path / name

    pipeline = CausalPipeline(steps=5, drop=True).fit(write("whole.csv", list(range(8))))
    expected = made.table[:40]
    assert torch.equal(pipeline.transform(tmp_path / "whole.csv"), expected)
    assert torch.equal(
        pipeline.transform(str(write("other.csv", [3, 0, 1, 2, 7, 6, 5, 4]))), expected
    )  # by name
    assert torch.equal(pipeline.fit_transform(tmp_path / "whole.csv"), expected)
    with pytest.raises(ValueError, match="fewer.csv: expected one column 'g7', got 0"):
        pipeline.transform(write("fewer.csv", list(range(7))))


def test_what_is_saved_is_loaded(made, tmp_path):
    pipeline = CausalPipeline(standardise=True, steps=40, seed=3).fit(
        made.table, names=[f"g{i}" for i in range(8)]
    )
    pipeline.save(tmp_path / "p")
    again = CausalPipeline.load(tmp_path / "p")
    assert again.get_params() == pipeline.get_params() and again.names_ == pipeline.names_
    assert torch.equal(again.encode(), pipeline.encode()) and torch.equal(
        again.adjacency_, pipeline.adjacency_
    )
    values = again.transform(made.table)
    torch.testing.assert_close(
        values.mean(dim=0), torch.zeros(8, dtype=torch.float64), atol=1e-9, rtol=0
    )
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    (tmp_path / "q").write_text("nothing")
    with pytest.raises(ValueError, match="cannot read .*q"):
        CausalPipeline.load(tmp_path / "q")
    with pytest.raises(ValueError, match="cannot read .*nothing"):
        CausalPipeline.load(tmp_path / "nothing")


def test_what_was_only_embedded_is_saved(made, tmp_path):
    pipeline = CausalPipeline(steps=20, threshold=0.3).embed(made.weights)
    pipeline.save(tmp_path / "p")
    again = CausalPipeline.load(tmp_path / "p")
    assert again.threshold == 0.3 and torch.equal(again.encode(), pipeline.encode())
    with pytest.raises(ValueError, match="call fit first"):
        again.transform(made.table)


def test_columns_left_out_are_left_out_of_other_tables(made):
    table = torch.cat([made.table[:, :2], torch.ones(1500, 1), made.table[:, 2:]], dim=1)
    pipeline = CausalPipeline(drop=True, steps=10)
    assert pipeline.fit_transform(table).shape == (1500, 8)
    assert pipeline.columns_ == [0, 1, 3, 4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match="X has 8 features, but CausalPipeline is expecting 9"):
        pipeline.transform(table[:, :8])


def test_parameters_and_order_of_calls(made):
    pipeline = CausalPipeline().set_params(dimension=4, steps=20)
    assert pipeline.get_params()["dimension"] == 4
    with pytest.raises(ValueError, match="got 'dimensions'"):
        pipeline.set_params(dimensions=4)
    for call in (pipeline.encode, pipeline.embed, lambda: pipeline.transform(made.table)):
        with pytest.raises(ValueError, match="call fit first"):
            call()
    assert pipeline.embed(made.weights).encode().shape == (8, 4)


def test_files_have_what_cpp_reads(made, tmp_path):
    """tests/causal/pipeline_test.cpp reads a file of these parameters."""
    assert set(CausalPipeline().get_params()) >= {
        "estimator",
        "nonlinear",
        "standardise",
        "threshold",
        "missing",
        "drop",
        "dimension",
        "optimiser",
        "steps",
        "learning_rate",
        "hops",
        "side",
        "weight",
        "decay",
        "negatives",
        "balanced",
        "generality",
        "relative",
        "restart",
        "dangling",
        "scale",
        "by_dimension",
        "seed",
    }
    CausalPipeline(steps=5).fit(made.table).save(tmp_path / "p")
    head = (tmp_path / "p").read_bytes()
    for name in (
        b"nsimplex causal pipeline 2",
        b"tangents",
        b"generality",
        b"adjacency",
        b"deviation",
    ):
        assert name in head


def test_takes_the_options_of_an_embedding(made):
    options = dict(
        hops=1,
        side="both",
        weight="direct",
        balanced=False,
        relative=False,
        generality=0.1,
        restart=0.3,
    )
    pipeline = CausalPipeline(steps=5, **options).embed(made.weights)
    assert pipeline.tangents_.equal(causal.causal_embed(made.weights, steps=5, **options).tangents)
    tiers = [0] * 4 + [1] * 4
    fitted = CausalPipeline(steps=5).fit(made.table[:, :8], tiers=tiers)
    assert not fitted.adjacency_[4:, :4].any()


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_a_sparse_graph_is_drawn_and_saved_as_a_dense_one(form, tmp_path):
    dense = torch.zeros(4, 4, dtype=torch.float64)
    dense[0, 2], dense[2, 3] = 1.5, -0.5
    one, other = (CausalPipeline(steps=5).embed(graph) for graph in (dense, getattr(dense, form)()))
    assert str(one.edges()) == str(other.edges()) and len(other.edges()) == 2
    assert one.draw().svg == other.draw().svg
    assert list(other.to_networkx().edges) == [("x0", "x2"), ("x2", "x3")]
    other.save(tmp_path / "graph")
    assert CausalPipeline.load(tmp_path / "graph").adjacency_.equal(dense)
