"""The pages on equivariant layers say the truth of pictures and counts."""

import re


def test_the_pictures_exist(root):
    folder = root / "docs" / "equivariant"
    pictures = re.findall(r"\]\((images/[^)]+)\)", (folder / "classes.md").read_text())
    assert len(set(pictures)) == 15 and all((folder / p).exists() for p in pictures)


def test_the_table_of_counts_is_true(root):
    from nsimplex import TensorKind, equivariant_classes

    kinds = {
        "ordered": lambda order: TensorKind(order),
        "ordered, light": lambda order: TensorKind(order),
        "loop_free": lambda order: TensorKind(order, "loop_free"),
        "undirected": lambda order: TensorKind(order, "undirected"),
        "undirected, no loops": lambda order: TensorKind(order, "undirected", loops=False),
    }
    page = (root / "docs" / "equivariant" / "classes.md").read_text()
    layers = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (3, 3)]
    for name, kind in kinds.items():
        (row,) = re.findall(rf"^\| {name} \|(.*)\|$", page, re.MULTILINE)
        told = [int(cell) for cell in row.split("|")[: len(layers)]]
        which = "light" if name.endswith("light") else "all"
        assert told == [len(equivariant_classes(kind(k), kind(l), which)) for k, l in layers], name
