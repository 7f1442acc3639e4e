"""Graphs that torch saved. The files of pyg_2_8 are those of PyTorch Geometric 2.8.1, which
reading does not need."""

import pathlib

import numpy
import pytest
import torch
from graph_sets import predicted, predictions, trained, write

from nsimplex.graph_command.tensor_files import read_tensors

FILES = pathlib.Path(__file__).parent / "pyg_2_8"
ENDS = [[0, 1, 1, 2, 4, 5, 6, 5, 6, 7], [1, 2, 0, 1, 5, 6, 7, 4, 5, 6]]


def ring(nodes, **own):
    """A ring in both directions, as PyTorch Geometric's Data have it."""
    at = torch.arange(nodes)
    ends = torch.stack([at, (at + 1) % nodes])
    fields = dict(
        x=torch.arange(2.0 * nodes).view(nodes, 2),
        edge_index=torch.cat([ends, ends.flip(0)], 1),
        edge_attr=torch.arange(nodes).repeat(2)[:, None] / 8,
        y=torch.tensor([float(nodes)]),
    )
    return {name: value for name, value in {**fields, **own}.items() if value is not None}


def rings(count=20, **own):
    return [ring(3 + k % 6, **own) for k in range(count)]


def saved(path, content):
    torch.save(content, path)
    return path


@pytest.mark.parametrize("name", ["list", "batch", "dataset"])
def test_three_graphs_of_pytorch_geometric_are_one_batch(name):
    found = read_tensors(str(FILES / f"{name}.pt"))
    assert found["edge_index"].tolist() == ENDS
    assert found["batch"].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert found["y"].tolist() == [0.5, -1.0, 2.0]
    assert found["edge_attr"].flatten().tolist() == [
        own / 8 for own in (0, 1, 0, 1, 0, 1, 2, 0, 1, 2)
    ]
    assert torch.equal(found["x"][:3], torch.arange(6.0).view(3, 2) / 16)


def test_a_graph_of_pytorch_geometric_has_its_attributes():
    found = read_tensors(str(FILES / "data.pt"))
    assert set(found) == {"x", "edge_index", "edge_attr", "y"}
    assert found["edge_index"].tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]


def test_a_dataset_without_features_keeps_the_numbers_of_nodes():
    found = read_tensors(str(FILES / "bare.pt"))
    assert found["batch"].tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert found["edge_index"].tolist() == [[0, 2], [1, 3]]


def test_files_of_the_installed_version_are_read(tmp_path):
    pyg = pytest.importorskip("torch_geometric.data")
    graphs = [pyg.Data(**own) for own in rings(12)]
    pyg.InMemoryDataset.save(graphs, tmp_path / "dataset.pt")
    files = [saved(tmp_path / "list.pt", graphs), tmp_path / "dataset.pt"]
    files.append(saved(tmp_path / "batch.pt", pyg.Batch.from_data_list(graphs)))
    said = [trained(data=file, task="graph", target="y").of_kind("graph_fit") for file in files]
    assert said[0] == said[1] == said[2]
    one = dict(data=saved(tmp_path / "one.pt", graphs[5]), task="node", target="x")
    (about,) = trained(**one).of_kind("graph_data")
    assert (about["nodes"], about["edges"], about["target"]) == (8, 8, "x[0], x[1]")


def test_a_list_is_trained_on_and_a_graph_without_edges_predicted(tmp_path):
    data = saved(tmp_path / "list.pt", rings())
    (about,) = trained(data=data, task="graph", target="y", folder=tmp_path).of_kind("graph_data")
    assert (about["graphs"], about["target_kind"]) == (20, "number")
    nothing = torch.empty(2, 0, dtype=torch.int64)
    for name, own in (("bare", dict(edge_index=nothing, edge_attr=None, y=None)), ("ring", {})):
        for content in (ring(4, **own), [ring(4, **own)]):
            new = saved(tmp_path / f"{name}.pt", content)
            predicted(tmp_path, data=new, folder=tmp_path)
            assert len(predictions(tmp_path)) == 1


def test_a_flat_vector_per_graph_is_a_row_of_targets(tmp_path):
    data = saved(tmp_path / "list.pt", [ring(4, y=torch.tensor([k, 2.0 * k])) for k in range(20)])
    (about,) = trained(data=data, task="graph", target="y").of_kind("graph_data")
    assert about["target"] == "y[0], y[1]"


def test_masks_of_nodes_are_the_split(tmp_path):
    masks = torch.arange(24) % 4
    own = dict(y=torch.arange(24) % 3, train_mask=masks == 0, val_mask=masks == 1)
    data = saved(tmp_path / "one.pt", ring(24, **own, test_mask=masks > 1))
    options = dict(task="node", target="y", kind="classes")
    said = trained(data=data, **options)
    (about,) = said.of_kind("graph_data")
    assert [about[name] for name in ("training", "validation", "test")] == [6, 6, 12]
    assert any("train_mask" in each for each in said.warnings)
    said = trained(data=saved(tmp_path / "no.pt", ring(24, **{**own, "val_mask": None})), **options)
    assert said.of_kind("graph_data")[0]["training"] > 6
    assert any(each.startswith("left out train_mask of DATA") for each in said.warnings)
    for kind in (torch.uint8, torch.int64, torch.float32):
        numbers = {name: own[name].to(kind) for name in ("train_mask", "val_mask")}
        said = trained(data=saved(tmp_path / "01.pt", ring(24, **{**own, **numbers})), **options)
        assert said.of_kind("graph_data")[0]["training"] == 6
    many = {name: own[name][:, None].repeat(1, 3) for name in ("train_mask", "val_mask")}
    said = trained(data=saved(tmp_path / "many.pt", ring(24, **{**own, **many})), **options)
    assert any(each.startswith("left out train_mask, val_mask of D") for each in said.warnings)
    short = saved(tmp_path / "short.pt", ring(24, **{**own, "val_mask": masks[:5] == 1}))
    with pytest.raises(ValueError, match="array val_mask: expected a row per node, 24, got 5"):
        trained(data=short, **options)
    empty = saved(tmp_path / "empty.pt", ring(24, **{**own, "val_mask": masks > 9}))
    with pytest.raises(ValueError, match="nodes with a target in the mask of validation, got none"):
        trained(data=empty, **options)


def test_whole_numbers_are_classes_and_said_to_be(tmp_path):
    data = saved(tmp_path / "l.pt", [ring(4, y=torch.tensor([k % 3])) for k in range(20)])
    own = dict(data=data, task="graph", target="y")
    assert "whole numbers taken as 3 classes; --kind number" in trained(**own).warnings[-1]
    assert not trained(**own, kind="number").warnings
    data = saved(tmp_path / "m.pt", [ring(4, y=torch.tensor([k / 1])) for k in range(20)])
    assert not trained(**{**own, "data": data}).warnings


GAP = torch.tensor([[0, 7], [1, 0]])
BAD = {
    "edges of some": (
        lambda: [ring(4, edge_attr=None), *rings()],
        "graph 0: expected edge_attr, which other graphs have, got none",
    ),
    "widths": (
        lambda: [*rings(3), ring(4, x=torch.zeros(4, 3))],
        "graph 3: expected x of shape [rows, 2], as in other graphs, got [4, 3]",
    ),
    "a node of another graph": (
        lambda: [ring(3, edge_index=GAP, edge_attr=None), *rings(edge_attr=None)],
        "graph 0: expected nodes 0 to 2 in edge_index, got 7",
    ),
    "a target of some": (lambda: [*rings(3), ring(3, y=None)], "graph 3: expected y"),
    "directions that differ": (
        lambda: [ring(4, edge_attr=torch.arange(8.0))],
        "--directed keeps both directions apart",
    ),
    "nothing": (lambda: [], "expected a list of graphs of PyTorch Geometric, got none"),
    "numbers": (lambda: [1, 2], "expected a list of graphs of PyTorch Geometric, got int"),
    "a tensor": (lambda: torch.zeros(3), "or graphs of PyTorch Geometric, got Tensor"),
    "a module": (lambda: torch.nn.Linear(2, 2), "got an object of torch.nn.modules.linear.Linear"),
    "a text": (lambda: [ring(3, y="a"), *rings(3)], "graph 0: expected numbers in y"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_told_in_one_line(tmp_path, name):
    content, message = BAD[name]
    data = saved(tmp_path / "data.pt", content())
    with pytest.raises(ValueError) as caught:
        trained(data=data, task="graph", target="y")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"cannot read {data}: ")


@pytest.mark.parametrize(
    ("name", "message"),
    [("hetero", "heterogeneous graphs are not supported"), ("hyper", "read from csv or HIF")],
)
def test_other_objects_of_pytorch_geometric_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        trained(data=FILES / f"{name}.pt", task="graph", target="y")


def test_nothing_in_a_file_is_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "made"), "w"))

    data = saved(tmp_path / "data.pt", [ring(3, y=Bomb())])
    with pytest.raises(ValueError, match="got an object of _?io.open"):
        trained(data=data, task="graph", target="y")
    assert not (tmp_path / "made").exists()


def test_columns_of_one_name_and_cells_are_one(tmp_path):
    text = "a,b,w,w\n" + "".join(f"{k},{(k + 1) % 9},{k},{k}\n" for k in range(9))
    own = dict(task="edge", target="w")
    trained(data=write(tmp_path / "e.csv", text), **own)
    with pytest.raises(ValueError, match="two columns with different cells are called 'w'"):
        trained(data=write(tmp_path / "f.csv", text.replace("8,8", "8,9")), **own)


def test_molecules_in_a_column_of_another_name_are_told_apart(tmp_path):
    data = write(tmp_path / "m.csv", "SMILES,x\nCCO,1\n")
    with pytest.raises(ValueError, match="a column 'smiles' of SMILES, got none; --smiles names"):
        trained(data=data, task="graph", target="x")


def test_arrays_of_numpy_may_have_masks(tmp_path):
    own = ring(12, y=torch.arange(12) % 2, train_mask=torch.arange(12) < 4)
    own["val_mask"] = ~own["train_mask"]
    numpy.savez(tmp_path / "a.npz", **{name: each.numpy() for name, each in own.items()})
    (about,) = trained(data=tmp_path / "a.npz", task="node", target="y").of_kind("graph_data")
    assert (about["training"], about["validation"], about["test"]) == (4, 8, 0)
