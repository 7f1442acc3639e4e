"""What targets mean: whole numbers as classes, and errors of several columns."""

import numpy
import pytest
import torch
from graph_sets import predicted, trained, write

from nsimplex.graph_command.tables import Table, targets_of
from nsimplex.molecules import ATOM_FEATURES, BOND_FEATURES, SYMBOLS


@pytest.mark.parametrize(
    ("cells", "whole", "kind"),
    [
        ("0 1 2 0 1 2", None, "classes"),
        ("0 1 2 0 1 2", False, "number"),
        ("0 1 2 0 1", None, "number"),  # each twice on average, or they are numbers
        ("1 2 3 1 2 3", None, "number"),  # classes of a text begin at 0
        ("0 1.5 0 1.5 1 1", None, "number"),
        ("0 1 0 1 0 1", None, "binary"),
        ("0 1 0 1 0 1", True, "binary"),
        ("5 7 9", True, "classes"),
        ("5 7 ?", True, "classes"),
        ("a b a", None, "classes"),
    ],
)
def test_whole_numbers_are_classes_in_arrays_and_if_few_in_texts(cells, whole, kind):
    table = Table("t", {"y": cells.split()}, whole={None: None, True: {"y"}, False: set()}[whole])
    assert targets_of(table, ["y"], "auto", ()).kind == kind


def _arrays(y):
    ring = numpy.arange(12)
    index = numpy.stack([ring, (ring + 1) % 12])
    return {"edge_index": index, "y": y}


@pytest.mark.parametrize("container", ["npz", "pt"])
def test_whole_numbers_of_arrays_are_said_to_be_classes(tmp_path, container):
    path = tmp_path / f"data.{container}"
    said = "targets: whole numbers taken as 4 classes; --kind number takes them as numbers"
    for y, kind, warnings in (
        (numpy.arange(12) % 4 + 3, "classes", [said]),
        (numpy.arange(12) % 4 + 0.0, "number", []),
    ):
        own = _arrays(y)
        if container == "npz":
            numpy.savez(path, **own)
        else:
            torch.save({name: torch.as_tensor(each) for name, each in own.items()}, path)
        found = trained(data=path, target="y", validation=0.3, test=0.0)
        (about,) = found.of_kind("graph_data")
        assert (about["target_kind"], found.warnings) == (kind, warnings)


def test_columns_of_other_units_have_separate_errors_and_an_equal_say(tmp_path):
    """The second column is a thousand times the first, so that a common error would be its own."""
    edges = write(tmp_path / "e.csv", "a,b\n" + "".join(f"n{i},n{i + 1}\n" for i in range(39)))
    rows = "".join(f"n{i},{i % 7},{i % 7 / 7 + 0.01},{1000 * (i % 5)}\n" for i in range(40))
    nodes = write(tmp_path / "n.csv", "name,x,small,large\n" + rows)
    own = dict(data=edges, nodes=nodes, target="small,large", folder=tmp_path, epochs=12)
    said = trained(**own, patience=0)
    epochs = said.of_kind("graph_epoch")
    names = ["mae small", "mae large", "rmse small", "rmse large"]
    assert list(epochs[0]) == ["kind", "epoch", "loss", "scaled_mae", *names]
    (fit,) = said.of_kind("graph_fit")
    best = min(epochs, key=lambda row: row["scaled_mae"])
    assert fit["epoch"] == best["epoch"] and fit["mae small"] == best["mae small"]
    assert {"test_mae small", "test_mae large", "test_scaled_mae"} <= fit.keys()
    (about,) = said.of_kind("graph_data")
    assert 0.5 < about["constant_scaled_mae"] < 1.5 and about["constant_mae large"] > 500
    (judged,) = predicted(tmp_path, data=edges, nodes=nodes).of_kind("graph_evaluation")
    assert set(names) < judged.keys()


def _molecules(path, pairs):
    """Molecules of two atoms each; those with a dot between the symbols have no bond."""
    symbols = [name for own in pairs for name in own.replace(".", " ").split()]
    atoms = numpy.zeros((len(symbols), len(ATOM_FEATURES)), numpy.uint8)
    atoms[:, 0] = [SYMBOLS.index(name) for name in symbols]
    bonds = ["." not in own for own in pairs]
    numpy.savez(
        path,
        atoms=atoms,
        atom_offsets=numpy.arange(len(pairs) + 1) * 2,
        bonds=numpy.tile(numpy.array([[0, 1]], numpy.int32), (sum(bonds), 1)),
        bond_types=numpy.zeros((sum(bonds), len(BOND_FEATURES)), numpy.uint8),
        bond_offsets=numpy.cumsum([0, *bonds]),
        targets=numpy.arange(len(pairs)) / 2,
    )
    return path


def test_elements_and_salts_that_the_training_lacks_are_said(tmp_path):
    data = _molecules(tmp_path / "m.npz", ["C O", "C N"] * 8)
    own = dict(task="graph", target="targets", model="gin", folder=tmp_path, epochs=1)
    trained(data=data, **own)
    new = _molecules(tmp_path / "new.npz", ["C O", "Na . Cl", "U O"])
    assert predicted(tmp_path, data=new).warnings == [
        f"{new}: 2 molecules have atoms Na, Cl, U, which no molecule of the training has; first in "
        "molecule 1",
        f"{new}: 1 molecule has several parts without a bond between them, as salts have, which no "
        "molecule of the training has; first in molecule 1",
    ]
    assert predicted(tmp_path, data=data).warnings == []
    trained(data=_molecules(tmp_path / "s.npz", ["Na . Cl", "U O"] * 8), **own)
    assert predicted(tmp_path, data=new).warnings[0].startswith(f"{new}: 1 molecule has atoms C,")
    assert len(predicted(tmp_path, data=new).warnings) == 1
