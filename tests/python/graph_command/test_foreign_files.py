"""Files of graphs that other programs wrote: damaged, hostile and oversized ones. Each is read or
refused in one line, before it takes memory or time that it does not have bytes for."""

import gzip
import json
import pickle
import random
import zipfile

import numpy
import pytest
import torch
from stored_changes import limited, mutated

from nsimplex import graph
from nsimplex._foreign_files import FREE_BYTES
from nsimplex.graph_command.reading import read_data
from nsimplex.graph_command.records import Recipe

RING = numpy.array([[0, 1, 2, 3], [1, 2, 3, 0]])
ARRAYS = {"edge_index": RING, "x": numpy.arange(8.0).reshape(4, 2), "y": numpy.arange(4.0)}
HIF = {
    "nodes": [{"node": n, "attrs": {"y": n / 2}} for n in range(4)],
    "incidences": [{"node": n, "edge": e} for e, own in enumerate(RING.T.tolist()) for n in own],
}


def h5(path, fill=lambda file: None):
    h5py = pytest.importorskip("h5py", reason="the package h5py is missing")
    with h5py.File(path, "w") as file:
        for name, own in ARRAYS.items():
            file[name] = own
        fill(file)


def tensors(path, **changes):
    torch.save({name: torch.as_tensor(own) for name, own in ARRAYS.items()} | changes, path)


def archive(path, name, header, body=b"", method=zipfile.ZIP_DEFLATED):
    """An npz file whose array has this header, whatever its bytes are."""
    text = (repr(header) + "\n").encode()
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(f"{name}.npy", content)


WRITERS = {
    "npz": lambda path: numpy.savez(path, **ARRAYS),
    "packed npz": lambda path: numpy.savez_compressed(path, **ARRAYS),
    "h5": h5,
    "tensors": tensors,
    "hif": lambda path: path.write_text(json.dumps(HIF)),
    "packed hif": lambda path: path.write_bytes(gzip.compress(json.dumps(HIF).encode())),
    "csv": lambda path: path.write_text("a,b,y\n0,1,2\n1,2,3\n2,0,1\n"),
}


def read(path, kind):
    task = "edge" if kind == "csv" else "node"
    if kind == "packed hif":  # the command knows a format by its first bytes
        return graph.read_hif(path, target="y", ignore=["y"])
    return read_data(str(path), Recipe(task, ["y"]))


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_one_line(tmp_path, kind):
    good = tmp_path / "good.npz"
    WRITERS[kind](good)
    read(good, kind)
    content, draw, path = good.read_bytes(), random.Random(kind), tmp_path / "bad.npz"
    refused = 0
    for _ in range(60 if kind == "h5" else 120):
        path.write_bytes(mutated(content, draw))
        try:
            read(path, kind)
        except ValueError as error:
            refused += 1
            said = str(error)
            assert said.startswith(("cannot read ", "--")) and "\n" not in said, said
    assert refused > 10


@pytest.fixture
def little_memory():
    """Room for as much as the largest file of these tests may take, and no more."""
    with limited(8 * FREE_BYTES):
        yield


def big_npz(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("edge_index.npy", bytes(110 << 20))


def big_gzip(path):
    with gzip.open(path, "wb", compresslevel=6) as stream:
        stream.write(b"{")
        for _ in range(110):
            stream.write(b" " * (1 << 20))


def filled_h5(name, **options):
    def fill(file):
        file.create_dataset(name, dtype="f8", **options)

    return lambda path: h5(path, fill)


NUMBERS = {"descr": "<i8", "fortran_order": False}
HOSTILE = {
    "npz that unpacks to a lot": (big_npz, "expected at most"),
    "npz of 2^40 rows": (
        lambda path: archive(path, "edge_index", NUMBERS | {"shape": (2, 2**40)}, bytes(64)),
        "is cut off",
    ),
    "npz with a pickle": (
        lambda path: archive(path, "x", {**NUMBERS, "descr": "|O", "shape": (1,)}, b"x"),
        "is a pickle, never read",
    ),
    "npz with a deep header": (
        lambda path: archive(path, "x", NUMBERS | {"shape": (1,)}, b"", zipfile.ZIP_STORED),
        "a damaged npz file",
    ),
    "npz with a far node": (
        lambda path: numpy.savez(path, edge_index=RING + 4 * 10**8),
        "nodes in a file of its size, got 40000000",
    ),
    "npz with many nodes": (
        lambda path: numpy.savez(path, edge_index=RING, num_nodes=2**40),
        "nodes in a file of its size, got 1099511627776",
    ),
    "npz with many graphs": (
        lambda path: numpy.savez(path, edge_index=RING, num_graphs=2**31),
        "nodes in a file of its size, got 2147483648",
    ),
    "npz with one number for all nodes": (
        lambda path: numpy.savez(path, **ARRAYS | {"x": 3.0}),
        "array x: expected rows of numbers, got shape []",
    ),
    "npz with a broken count": (
        lambda path: numpy.savez(path, **ARRAYS, num_nodes=numpy.inf),
        "array num_nodes: expected a whole number, got inf",
    ),
    "npz with ends that are no numbers": (
        lambda path: numpy.savez(path, edge_index=RING / 0.0),
        "edge_index: expected int64, got torch.float32",
    ),
    "h5 of 2^40 rows": (filled_h5("z", shape=(2, 2**40), chunks=(2, 8)), "expected at most"),
    "h5 with a large chunk": (
        filled_h5("z", shape=(0,), maxshape=(None,), chunks=(2**24,)),
        "expected at most",
    ),
    "expanded edges": (
        lambda path: tensors(path, edge_index=torch.zeros(2, 1).long().expand(2, 2**40)),
        "expected at most",
    ),
    "expanded features": (
        lambda path: tensors(path, x=torch.zeros(3, 1).expand(3, 2**40)),
        "expected at most",
    ),
    "expanded slices": (
        lambda path: torch.save(
            (
                {"edge_index": torch.as_tensor(RING)},
                {"edge_index": torch.zeros(1).long().expand(2**40)},
            ),
            path,
        ),
        "expected at most",
    ),
    "quantised features": (
        lambda path: tensors(
            path, x=torch.quantize_per_tensor(torch.ones(4), 1.0, 0, torch.quint8)
        ),
        "expected dense tensors, got one of torch.quint8",
    ),
    "nested features": (
        lambda path: tensors(path, x=torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
        "expected dense tensors, got a nested one",
    ),
    "features without numbers": (
        lambda path: tensors(path, x=torch.ones(4, device="meta")),
        "expected dense tensors, got one on device meta",
    ),
    "sparse features": (
        lambda path: tensors(path, x=torch.ones(4, 2).to_sparse()),
        "expected dense tensors, got layout torch.sparse_coo",
    ),
    "nodes that are not there": (
        lambda path: torch.save([{"edge_index": torch.as_tensor(RING), "num_nodes": 2**40}], path),
        "nodes in a file of its size, got 1099511627776",
    ),
    "old torch.save": (
        lambda path: torch.save({"x": torch.ones(2)}, path, _use_new_zipfile_serialization=False),
        "a pickle, which is never read",
    ),
    "pickle": (
        lambda path: path.write_bytes(pickle.dumps(ARRAYS)),
        "a pickle, which is never read",
    ),
    "object": (
        lambda path: torch.save({"x": random.Random()}, path),
        "expected tensors by name, or graphs of PyTorch Geometric, got an object of random.Random",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("ignore")
def test_hostile_files_are_refused_before_they_take_memory(tmp_path, name, little_memory):
    write, says = HOSTILE[name]
    path = tmp_path / "data.npz"
    write(path)
    with pytest.raises(ValueError) as error:
        read_data(str(path), Recipe("node", ["y"]))
    said = str(error.value)
    assert said.startswith(f"cannot read {path}: ") and says in said and "\n" not in said
    assert len(said) < 300 + len(str(path))


def test_texts_that_unpack_to_a_lot_are_refused(tmp_path, little_memory):
    big_gzip(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"a\.json: expected at most \d+ bytes of data, 100 times"):
        graph.read_hif(tmp_path / "a.json")


@pytest.mark.parametrize("kind", ["external link", "soft link", "external storage", "virtual"])
def test_h5_files_are_not_followed_into_other_files(tmp_path, kind):
    h5py = pytest.importorskip("h5py", reason="the package h5py is missing")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["y"] = numpy.ones(4)
    (tmp_path / "secret.raw").write_bytes(numpy.ones(4).tobytes())

    def fill(file):
        del file["y"]
        if kind == "external link":
            file["y"] = h5py.ExternalLink(str(secret), "/y")
        elif kind == "soft link":
            file["own/y"] = h5py.ExternalLink(str(secret), "/y")
            file["y"] = h5py.SoftLink("/own/y")
        elif kind == "external storage":
            raw = [(str(tmp_path / "secret.raw"), 0, 32)]
            file.create_dataset("y", (4,), "f8", external=raw)
        else:
            layout = h5py.VirtualLayout((4,), "f8")
            layout[:] = h5py.VirtualSource(str(secret), "y", (4,))
            file.create_virtual_dataset("y", layout)

    h5(tmp_path / "data.h5", fill)
    with pytest.raises(ValueError, match=r"data\.h5: array y: expected data of this file, got"):
        read_data(str(tmp_path / "data.h5"), Recipe("node", ["y"]))


def test_node_numbers_cost_nothing_without_their_nodes(little_memory):
    far = graph.from_edge_index(torch.tensor([[4 * 10**8], [0]]))
    assert far.num_nodes == 4 * 10**8 + 1 and far.batch.tuples.tolist() == [[4 * 10**8, 0]]
    graph.from_hyperedge_index(torch.tensor([[4 * 10**8, 2], [0, 0]]))
    with pytest.raises(
        ValueError, match=r"num_nodes: expected nodes below 2\^31, got 1099511627776"
    ):
        graph.from_edge_index(torch.tensor([[2**40], [0]]))
    with pytest.raises(ValueError, match=r"num_nodes: expected a number of nodes, at most 2\^31"):
        graph.from_edge_index(torch.tensor([[0], [1]]), 2**40)


def test_arrays_that_nothing_takes_are_named(tmp_path):
    path = tmp_path / "data.npz"
    numpy.savez(path, **ARRAYS, edge_weight=numpy.array([1.0, 2, 3, 1]), pos=numpy.ones((4, 3)))
    with pytest.warns(
        graph.ConversionWarning, match=r"data\.npz: left out 'pos'; --ignore \.\. le"
    ):
        data = read_data(str(path), Recipe("node", ["y"], directed=True)).data
    assert [each.tolist() for each in data.edge_features] == [[[1], [2], [3], [1]]]
    data = read_data(str(path), Recipe("node", ["y"], ignore=["pos", "edge_weight"])).data
    assert data.edge_features == []
    torch.save(
        [
            {"edge_index": torch.as_tensor(RING), "y": torch.ones(4), "pos": torch.ones(4, own)}
            for own in (2, 3)
        ],
        tmp_path / "list.pt",
    )
    with pytest.warns(graph.ConversionWarning, match="left out 'pos', whose rows cannot be joined"):
        read_data(str(tmp_path / "list.pt"), Recipe("node", ["y"]))
    with pytest.raises(ValueError, match="--ignore: expected columns of pos, edge_weight, got 'z'"):
        read_data(str(path), Recipe("node", ["y"], ignore=["z"]))
