"""The classes of equivariant layers: how many, in which order, and that they are the equality
patterns."""

import itertools
from math import comb, factorial

import pytest
import torch
from equivariant_definition import pattern

from nsimplex import TensorKind, equivariant_classes

BELL = [1, 1, 2, 5, 15, 52, 203, 877]
ORDERS = [(k, l) for k in range(8) for l in range(8 - k)]


@pytest.mark.parametrize("k, l", ORDERS)
def test_ordered_classes_are_the_equality_patterns_in_order(k, l):
    classes = equivariant_classes(k, l)
    assert len(classes) == BELL[k + l]
    members = [c.members[0] for c in classes]
    assert members == sorted(members)
    if k + l <= 6:
        nodes = range(max(k + l, 1))
        assert set(members) == {pattern(t) for t in itertools.product(nodes, repeat=k + l)}


@pytest.mark.parametrize("k, l", ORDERS)
def test_loop_free_classes(k, l):
    classes = equivariant_classes(TensorKind(k, "loop_free"), TensorKind(l, "loop_free"))
    assert len(classes) == sum(comb(k, r) * comb(l, r) * factorial(r) for r in range(min(k, l) + 1))
    nodes = range(k + l)
    distinct = [
        (*i, *j) for i in itertools.permutations(nodes, k) for j in itertools.permutations(nodes, l)
    ]
    if len(distinct) < 50_000:
        assert {c.members[0] for c in classes} == {pattern(t) for t in distinct}


@pytest.mark.parametrize("k, l", ORDERS)
def test_undirected_classes_are_orbits(k, l):
    undirected = [TensorKind(order, "undirected") for order in (k, l)]
    classes = equivariant_classes(*undirected)
    every = [m for c in classes for m in c.members]
    assert sorted(every) == [c.members[0] for c in equivariant_classes(k, l)]
    for each in classes[:60]:
        first = each.members[0]
        orbit = {
            pattern([first[p] for p in i] + [first[k + p] for p in j])
            for i in itertools.permutations(range(k))
            for j in itertools.permutations(range(l))
        }
        assert orbit == set(each.members) and list(each.members) == sorted(each.members)
    without = [TensorKind(order, "undirected", loops=False) for order in (k, l)]
    assert len(equivariant_classes(*without)) == min(k, l) + 1


def test_published_counts():
    undirected = lambda order: TensorKind(order, "undirected")
    assert len(equivariant_classes(undirected(2), undirected(2))) == 9
    assert len(equivariant_classes(undirected(3), undirected(3))) == 31
    assert len(equivariant_classes(2, 2, "light")) == 5
    assert len(equivariant_classes(1, 2, "light")) == 3
    assert len(equivariant_classes(TensorKind(1), TensorKind(3, "loop_free"))) == 4
    assert len(equivariant_classes(5, 5, "light")) == 1 + 15 * 2**5 + 25 * 3**5 + 10 * 4**5 + 5**5


def test_kinds_may_differ():
    """The inputs alone may be permuted: what the paper's Figure 2 shows of symmetric edges and
    nodes."""
    names = [c.name for c in equivariant_classes(TensorKind(2, "undirected"), TensorKind(1))]
    assert names == ["{i1 i2 j1}", "{i1 i2}{j1}", "{i1 j1}{i2}", "{i1}{i2}{j1}"]


def test_names():
    assert [c.name for c in equivariant_classes(1, 1)] == ["{i1 j1}", "{i1}{j1}"]
    assert [c.name for c in equivariant_classes(0, 0)] == ["{}"]
    names = [c.name for c in equivariant_classes(2, 2)]
    assert len(set(names)) == 15 and names[0] == "{i1 i2 j1 j2}" and names[-1] == "{i1}{i2}{j1}{j2}"
    assert "{i1 j2}{i2 j1}" in names


@pytest.mark.parametrize("k, l", [(k, l) for k, l in ORDERS if k + l <= 6])
def test_light_classes_name_every_input_by_the_output(k, l):
    light = equivariant_classes(k, l, "light")
    assert light == [c for c in equivariant_classes(k, l) if c.light]
    assert [c.members[0] for c in light] == [
        c.members[0]
        for c in equivariant_classes(k, l)
        if all(b in c.members[0][k:] for b in c.members[0][:k])
    ]


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((-1, 2), "input, output: expected orders of 0 or more"),
        ((4, 4), "k + l <= 7, got 4 -> 4"),
        ((6, 5, "light"), "k + l <= 10"),
        ((1, 1, "heavy"), "classes: expected one of all, light, got heavy"),
        (
            (TensorKind(1, "odd"), 1),
            'symmetry: expected "ordered", "loop_free" or "undirected", got "odd"',
        ),
    ],
)
def test_errors(arguments, words):
    with pytest.raises(ValueError, match="equivariant_classes") as error:
        equivariant_classes(*arguments)
    assert words in str(error.value)


def test_operators_tell_torch_compile_nothing_new():
    members = torch.ops.nsimplex.equivariant_classes(2, 1)
    assert members.dtype == torch.int64 and members.shape == (5, 4)
