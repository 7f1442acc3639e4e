"""Readers, on files that numpy, torch and people write."""

import json
import struct
import warnings

import pytest
import torch

import nsimplex

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reads_what_numpy_saves(tmp_path, dtype, order):
    values = numpy.arange(12).reshape(3, 4).astype(dtype, order=order)
    numpy.save(tmp_path / "a.npy", values)
    numpy.savez(tmp_path / "b.npz", values=values)
    numpy.savez_compressed(tmp_path / "c.npz", values=values, other=numpy.zeros(3))
    for name in ("a.npy", "b.npz", "c.npz"):
        table = nsimplex.read_table(tmp_path / name)
        assert table.values.tolist() == values.astype("float64").tolist()
    tuples = nsimplex.read_tuples(tmp_path / "c.npz", "values", width=4)
    assert tuples.tuples.tolist() == values.astype("int64").tolist()


def test_reads_typed_tuples_beside_pickles(tmp_path):
    path = tmp_path / "edges.npz"
    labels = numpy.array([{"a": 1}, None], dtype=object)
    numpy.savez(
        path, train_data=numpy.array([[0.0, 3.0], [2.0, 0.0]]), nums_type=[3, 4], labels=labels
    )
    file = nsimplex.read_tuples(path)
    assert (file.tuples.tolist(), file.nodes, file.type_sizes.tolist()) == (
        [[0, 6], [2, 3]],
        7,
        [3, 4],
    )
    with pytest.raises(
        ValueError,
        match="array labels: its elements are pickled Python objects, which are never read",
    ):
        nsimplex.read_tuples(path, "labels")


def test_reads_tuples_of_safetensors(tmp_path):
    path = tmp_path / "t.safetensors"
    data = torch.tensor([[0, 2], [1, 2]], dtype=torch.int32)
    header = json.dumps(
        {"edges": {"dtype": "I32", "shape": [2, 2], "data_offsets": [0, 16]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data.numpy().tobytes())
    assert nsimplex.read_tuples(path).tuples.tolist() == data.tolist()
    with pytest.raises(ValueError, match='expected a tensor "x"'):
        nsimplex.read_tuples(path, "x")
    with pytest.raises(ValueError, match="expected tuples of 3 nodes, got 2"):
        nsimplex.read_tuples(path, width=3)


def test_tuples_stay_when_their_file_changes(tmp_path):
    """A view of a mapped file would end the process here, or change with the file."""
    path = tmp_path / "t.safetensors"
    data = torch.arange(100_000).view(-1, 2)
    header = json.dumps(
        {"edges": {"dtype": "I64", "shape": [50_000, 2], "data_offsets": [0, 800_000]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data.numpy().tobytes())
    tuples = nsimplex.read_tuples(path).tuples
    path.write_bytes(b"")
    assert torch.equal(tuples, data)


def test_refuses_nodes_that_cannot_be_counted(tmp_path):
    path = tmp_path / "t.safetensors"
    header = json.dumps(
        {"edges": {"dtype": "I64", "shape": [1, 2], "data_offsets": [0, 16]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2q", 0, 2**63 - 1))
    with pytest.raises(
        ValueError, match=r"expected nodes below 2\^63 - 1, got 9223372036854775807"
    ):
        nsimplex.read_tuples(path)


def test_weights_are_no_nodes(tmp_path):
    path = tmp_path / "t.csv"
    for name in ("weight", "Weights", "score"):
        path.write_text(f"source,target,{name}\n0,1,3\n1,2,4\n")
        with pytest.raises(ValueError) as error:
            nsimplex.read_tuples(path)
        assert str(error.value) == (
            f"cannot read {path}: column {name!r}: expected nodes in all columns, got weights; "
            "leave it out, or read lists of edges, which may have weights"
        ).replace("'", '"')
    for header in ("u,v,w\n", ""):  # a third node, and no word about the columns
        path.write_text(header + "0,1,3\n1,2,4\n")
        assert nsimplex.read_tuples(path).tuples.tolist() == [[0, 1, 3], [1, 2, 4]]


def test_names_in_messages_are_printable(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a\x1b]0;x\a\nb\u202e",c\nx,1\n1,2\n')
    with pytest.raises(ValueError, match="column a") as error:
        nsimplex.read_table(path)
    assert str(error.value).endswith(
        'column a\\x1b]0;x\\x07\\nb\\u202e: expected a number, got "x"'
    )


def test_nodes_that_are_far_apart_are_names(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("0 1000000000\n")
    assert nsimplex.read_edges(path).nodes == 2


def test_reads_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(',a,"b,c"\nr1,1,NA\nr2,2.5,-3e2\n')
    table = nsimplex.read_table(path)
    assert (table.columns, table.labels) == (["a", "b,c"], ["r1", "r2"])
    torch.testing.assert_close(
        table.values,
        torch.tensor([[1, torch.nan], [2.5, -300]], dtype=torch.float64),
        equal_nan=True,
    )
    with pytest.raises(
        ValueError, match="line 2, column b,c: expected a number, got a missing value"
    ):
        nsimplex.read_table(path, allow_missing=False)
    path.write_text("4,8\n1,2\n")
    assert len(nsimplex.read_table(path).values) == 2
    assert nsimplex.read_table(path, header=True).columns == ["4", "8"]


def test_reads_graphs(tmp_path):
    path = tmp_path / "g.g6"
    path.write_text(">>graph6<<A_\nDQc\n")
    batch = nsimplex.read_graphs(path)
    assert batch.tuples.tolist() == [[0, 1], [2, 4], [3, 5], [2, 6], [5, 6]]
    assert batch.node_offsets.tolist() == [0, 2, 7]
    assert batch.symmetry == "undirected"
    for dtype in ("S", "U"):
        numpy.save(tmp_path / "g.npy", numpy.array([["A_", "DQc"]], dtype=dtype))
        assert torch.equal(nsimplex.read_graphs(tmp_path / "g.npy").tuples, batch.tuples)


def test_reads_edges(tmp_path):
    path = tmp_path / "e.tsv"
    path.write_text("# a graph\ndog\tmammal\t1\ncat\tmammal\t0.5\n")
    file = nsimplex.read_edges(path)
    assert (file.edges.tolist(), file.weights.tolist()) == ([[0, 1], [2, 1]], [1, 0.5])
    assert (file.names, file.nodes) == (["dog", "mammal", "cat"], 3)


ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "byte order mark": lambda text: text.encode("utf-8-sig"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16, big-endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "windows": lambda text: text.replace("\n", "\r\n").encode(),
    "old mac": lambda text: text.replace("\n", "\r").encode(),
}


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_every_reader_takes_every_encoding(tmp_path, encode):
    path = tmp_path / "f"
    path.write_bytes(encode("Source,Target\nä,b\nb,c\n"))
    assert nsimplex.read_edges(path).names == ["ä", "b", "c"]
    path.write_bytes(encode("ä,b\n1,2\n3,4\n"))
    assert nsimplex.read_table(path).columns == ["ä", "b"]
    assert nsimplex.read_tuples(path).tuples.tolist() == [[1, 2], [3, 4]]
    path.write_bytes(encode("DQc\nA_\n"))
    assert nsimplex.read_graphs(path).node_offsets.tolist() == [0, 5, 7]


@pytest.mark.parametrize(
    "reader", [nsimplex.read_table, nsimplex.read_tuples, nsimplex.read_edges, nsimplex.read_graphs]
)
def test_bytes_that_are_no_text_are_one_line_with_the_file(tmp_path, reader):
    path = tmp_path / "latin.csv"
    path.write_bytes("1,2\ntempérature,3\n".encode("latin-1"))
    with pytest.raises(ValueError) as caught:
        reader(path)
    assert (
        str(caught.value)
        == f"cannot read {path}: line 2: not UTF-8: byte 0xe9; save the file as UTF-8"
    )


def test_reads_tables_as_it_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,1,2\n5,6,7\n8,9,9\n")
    with pytest.warns(
        nsimplex.graph_files.ReadingWarning,
        match="first row taken as names.*header=False to read it as data",
    ):
        assert nsimplex.read_table(path).columns == ["0", "1", "2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(nsimplex.read_table(path, header=False).values) == 3
        assert nsimplex.read_table(path, header=True, index=True).labels == ["5", "8"]
    path.write_text("day;a;b\n2020-01-01;1;?\n! none\n2020-01-02;unknown;4\n")
    table = nsimplex.read_table(
        path, comment="!", missing_words=["unknown"], leave_out=["day"], delimiter="semicolon"
    )
    assert (table.columns, table.values.isnan().tolist()) == (
        ["a", "b"],
        [[False, True], [True, False]],
    )
    assert nsimplex.read_table(path, comment="!", use_columns=["b"]).values.shape == (2, 1)
    for argument, match in (
        ({"delimiter": "bar"}, "delimiter: expected comma"),
        ({"comment": "//"}, "comment: expected one"),
        ({"comment": "!", "use_columns": ["c"]}, 'no column is called "c"'),
    ):
        with pytest.raises(ValueError, match=match):
            nsimplex.read_table(path, **argument)


def test_reads_what_pandas_and_numpy_write(tmp_path):
    path = tmp_path / "t.csv"
    values = numpy.random.default_rng(0).normal(size=(20, 4)).round(4)
    numpy.savetxt(path, values)
    assert nsimplex.read_table(path).values.tolist() == values.tolist()
    pandas = pytest.importorskip("pandas")
    for names in (
        [0, 1, 2, 3],
        [2018, 2019, 2020, 2021],
        [5, 7, 11, 13],
        list("abcd"),
        ["a,b", 'q"t', "x y", "0"],
    ):
        for index in (True, False):
            frame = pandas.DataFrame(values, columns=names)
            frame.to_csv(path, index=index)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nsimplex.graph_files.ReadingWarning)
                table = nsimplex.read_table(path)
            assert table.columns == [str(name) for name in names], (names, index)
            assert table.values.tolist() == values.tolist()


def test_node_numbers_need_no_memory_for_what_is_between(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("45670945678 12345678901\n12345678901 45670945679\n")
    with pytest.warns(nsimplex.graph_files.ReadingWarning, match="taken as names of 3 nodes"):
        file = nsimplex.read_edges(path)
    assert (file.nodes, file.names) == (3, ["12345678901", "45670945678", "45670945679"])
    path.write_text("0,9007199254740993\n")
    assert nsimplex.read_tuples(path).tuples.tolist() == [[0, 9007199254740993]]


def test_names_the_file(tmp_path):
    for read in (
        nsimplex.read_table,
        nsimplex.read_tuples,
        nsimplex.read_graphs,
        nsimplex.read_edges,
    ):
        with pytest.raises(
            ValueError, match=f"cannot read {tmp_path / 'none'}: No such file or directory"
        ):
            read(tmp_path / "none")
