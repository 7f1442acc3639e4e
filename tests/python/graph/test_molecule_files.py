"""Graphs of the npz files that `python -m nsimplex.molecules` writes."""

import numpy as np
import pytest
import torch

from nsimplex import graph
from nsimplex.molecules import ATOM_FEATURES, BOND_FEATURES


def arrays():
    """Carbon monoxide, a lone oxygen, and water with its hydrogens."""
    atoms = np.zeros((6, len(ATOM_FEATURES)), np.uint8)
    atoms[:, 0] = [6, 8, 8, 1, 8, 1]
    types = np.zeros((3, len(BOND_FEATURES)), np.uint8)
    types[:, 0] = [2, 0, 1]
    return {
        "atoms": atoms,
        "atom_offsets": np.array([0, 2, 3, 6]),
        "bonds": np.array([[0, 1], [0, 1], [1, 2]], np.int32),
        "bond_types": types,
        "bond_offsets": np.array([0, 1, 1, 3]),
        "targets": np.array([0.5, 1.5, -2.0]),
    }


def written(path, **changed):
    own = {name: each for name, each in (arrays() | changed).items() if each is not None}
    np.savez(path, **own)
    return path


def test_molecules_are_graphs_with_codes_and_targets(tmp_path):
    data = graph.read_molecules(written(tmp_path / "m.npz"))
    assert data.node_offsets.tolist() == [0, 2, 3, 6]
    pairs = [[0, 1], [1, 0], [3, 4], [4, 3], [4, 5], [5, 4]]
    assert data.batch.tuples.tolist() == pairs
    assert data.edge_features[0][:, 0].tolist() == [2, 2, 0, 0, 1, 1]
    assert torch.equal(data.node_features, torch.from_numpy(arrays()["atoms"]).long())
    assert data.targets.tolist() == [0.5, 1.5, -2.0] and data.level == "graph"
    assert data.names == ("C0", "O1", "O0", "H0", "O1", "H2")
    one = graph.read_molecules(tmp_path / "m.npz", directions="undirected")
    assert one.batch.tuples.tolist() == [[0, 1], [3, 4], [4, 5]]
    assert one.batch.symmetry == "undirected"


def test_molecules_without_bonds_are_kept(tmp_path):
    none = dict(bonds=np.zeros((0, 2), np.int32), bond_types=arrays()["bond_types"][:0])
    path = written(tmp_path / "m.npz", **none, bond_offsets=np.zeros(4, np.int64))
    data = graph.read_molecules(path)
    assert (data.num_graphs, data.num_nodes, data.num_edges) == (3, 6, 0)


def changed(name, place, value):
    own = arrays()[name].copy()
    own[place] = value
    return {name: own}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(targets=None), "expected the npz file of: python -m nsimplex.molecules; .* targets$"),
        (dict(targets=np.zeros(2)), "array targets: expected one number per molecule$"),
        (dict(targets=np.array(["a", "b", "c"])), "array targets: expected one number"),
        (dict(atoms=np.zeros((6, 2), np.uint8)), r"array atoms: expected 9 columns, .*\[6, 2\]$"),
        (dict(atoms=np.zeros((6, 9))), "array atoms: expected whole numbers, got float64$"),
        (changed("atoms", (4, 0), 119), "array atoms: row 4: .* atomic_number below 119, got 119$"),
        (changed("bond_types", (1, 0), 5), "array bond_types: row 1: .* type below 5, got 5$"),
        (changed("atom_offsets", 1, 4), "array atom_offsets: expected numbers that rise from 0 to"),
        (changed("bond_offsets", 3, 2), "array bond_offsets: expected .* rise from 0 to 3$"),
        (changed("bonds", (0, 1), 2), "bonds: row 0: .* of molecule 0, 0 to 1, got 2$"),
        (changed("bonds", (2, 0), -1), "bonds: row 2: .* of molecule 2, 0 to 2, got -1$"),
        (dict(bonds=np.zeros((2, 2), np.int32)), r"array bonds: expected shape \[3, 2\], got"),
        (dict(bond_offsets=np.array([0, 3])), "array bond_offsets: expected 3 molecules, got 1$"),
        (dict(bond_offsets=np.array(3)), "array bond_offsets: expected numbers that rise"),
        (changed("targets", 1, np.inf), "array targets: expected finite numbers of float32$"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, wrong, said):
    path = written(tmp_path / "m.npz", **wrong)
    with pytest.raises(ValueError, match=rf"^cannot read .*m\.npz: .*{said}") as found:
        graph.read_molecules(path)
    assert "\n" not in str(found.value)


def test_what_is_no_npz_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"^cannot read .*none\.npz: No such file"):
        graph.read_molecules(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("smiles,gap\nC,1\n")
    with pytest.raises(ValueError, match=r"^cannot read .*text\.npz: "):
        graph.read_molecules(tmp_path / "text.npz")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"one\.npy: expected an npz file, got a single array$"):
        graph.read_molecules(tmp_path / "one.npy")
    with pytest.raises(ValueError, match=r"^\[read_molecules\] directions: expected"):
        graph.read_molecules(written(tmp_path / "m.npz"), directions="given")
