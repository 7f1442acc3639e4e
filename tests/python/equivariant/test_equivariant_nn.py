"""nsimplex.nn.EquivariantLinear and the pictures of its classes."""

import xml.etree.ElementTree as xml

import pytest
import torch
from equivariant_definition import draw, stored
from equivariant_lists import batch

from nsimplex import TensorKind, equivariant_classes, equivariant_plan
from nsimplex.class_pictures import class_picture, main
from nsimplex.nn import EquivariantLinear


def complete(kind, nodes):
    return batch(kind, [stored(kind, nodes)], [nodes])


def test_dense_and_sparse_forward_are_one_layer():
    layer = EquivariantLinear(2, 1, 3, 4).double()
    x = draw(1, 5, 5, 3)
    plan = equivariant_plan(complete(TensorKind(2), 5), complete(TensorKind(1), 5))
    torch.testing.assert_close(layer(x.view(25, 3), plan), layer(x)[0], rtol=1e-9, atol=1e-9)
    assert layer(x, node_counts=torch.tensor([3]))[0, 3:].eq(0).all()
    assert repr(layer) == "EquivariantLinear(2 -> 1, 5 classes, 3 -> 4 channels)"


def test_parameters():
    layer = EquivariantLinear(TensorKind(2, "undirected"), 3, 16, 64, classes="light", bias=False)
    kinds = TensorKind(2, "undirected"), TensorKind(3)
    assert (
        layer.weight.shape == (len(equivariant_classes(*kinds, "light")), 16, 64)
        and layer.bias is None
    )
    full = EquivariantLinear(2, 2, 64, 64)
    assert full.weight.std().item() == pytest.approx((3 * 15 * 64) ** -0.5, rel=0.02)
    assert not full.bias.any() and full.bias.shape == (2, 64)


def test_a_deep_network_learns_from_a_permuted_copy():
    """An invariant of a relabelled graph is that of the graph, through layers and derivatives."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        EquivariantLinear(2, 2, 2, 8),
        torch.nn.GELU(),
        EquivariantLinear(2, 1, 8, 8),
        torch.nn.GELU(),
        EquivariantLinear(1, 0, 8, 1),
    ).double()
    x = draw(1, 6, 6, 2).requires_grad_()
    order = torch.tensor([4, 0, 5, 1, 3, 2])
    permuted = x.detach()[:, order][:, :, order].requires_grad_()
    one, other = net(x), net(permuted)
    torch.testing.assert_close(one, other)
    (grad,), (other_grad,) = (
        torch.autograd.grad(one.sum(), x),
        torch.autograd.grad(other.sum(), permuted),
    )
    torch.testing.assert_close(grad[:, order][:, :, order], other_grad)


def test_a_plan_of_other_classes_is_refused():
    layer = EquivariantLinear(2, 2, 1, 1)
    pairs = complete(TensorKind(2), 2)
    with pytest.raises(ValueError, match="plan: expected all classes"):
        layer(torch.ones(4, 1), equivariant_plan(pairs, pairs, classes="light"))


@pytest.mark.parametrize(
    "input, output", [(2, 2), (0, 0), (4, 0), (1, 3), (TensorKind(2, "undirected"), 2)]
)
def test_pictures_show_every_class(input, output):
    picture = xml.fromstring(class_picture(input, output))
    cells = picture.findall("{*}g")
    classes = equivariant_classes(input, output)
    assert [c.find("{*}text").text for c in cells] == [c.name for c in classes]
    for cell, each in zip(cells, classes):
        assert len(set(each.members[0])) == len(
            {(c.get("cx"), c.get("cy")) for c in cell.findall("{*}circle")}
        )
        steps = max(each.inputs - 1, 0) + max(len(each.members[0]) - each.inputs - 1, 0)
        assert len(cell.findall("{*}path")) == steps


def test_pictures_of_the_documentation_are_up_to_date(root, tmp_path):
    main([str(tmp_path)])
    made = {p.name: p.read_text() for p in tmp_path.iterdir()}
    kept = {p.name: p.read_text() for p in (root / "docs" / "equivariant" / "images").glob("*.svg")}
    assert made == kept and len(made) == 15


@pytest.mark.parametrize(
    "orders, folder, said",
    [
        ("8", "made", "--orders: expected 0 to 7, got 8"),
        ("-1", "made", "--orders: expected 0 to 7, got -1"),
        ("1", "file", "File exists"),
    ],
)
def test_pictures_refuse_bad_arguments_in_one_line(tmp_path, capsys, orders, folder, said):
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / folder), "--orders", orders]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "made").exists()
