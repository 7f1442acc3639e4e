"""What an operator says of tensors that it cannot take, and inside the transforms of torch: one
line of its own, never the words of torch, of its dispatcher or of an allocator."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import operator_mutations
import pytest
import torch
from torch.utils import _pytree as pytree

import nsimplex  # noqa: F401 - the operators

_SEED = 20261128
_FEW = 16

#: Words of others.
_FOREIGN = (
    "file an issue",
    "INTERNAL ASSERT",
    "report a bug",
    "Internal error",
    "data pointer of Tensor",
    "Could not run",
    "aten::",
    "schema",
    "allocat",
    "vector::",
    "bad_alloc",
    "c10::",
    "not implemented for",
    "vmap: ",
)


def nested(x):
    return torch.nested.nested_tensor([x, x])


def quantised(x):
    return torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8)


#: What stands in for a tensor, by name.
WRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "integers": lambda x: x.to(torch.int64),
    "int16": lambda x: x.to(torch.int16),
    "bool": lambda x: x.to(torch.bool),
    "complex": lambda x: x.to(torch.complex64),
    "float8": lambda x: x.to(torch.float8_e4m3fn),
    "float16": lambda x: x.to(torch.float16),
    "float64": lambda x: x.to(torch.float64),
    "sparse": lambda x: x.to_sparse(),
    "sparse rows": lambda x: x.to_sparse_csr(),
    "mkldnn": lambda x: x.float().to_mkldnn(),
    "nested": nested,
    "quantised": quantised,
    "meta": lambda x: x.to("meta"),
    "number": lambda x: x.sum(),
    "more axes": lambda x: x.unsqueeze(0),
    "fewer axes": lambda x: x.flatten(),
    "empty first axis": lambda x: x.narrow(0, 0, 0),
    "empty last axis": lambda x: x.narrow(-1, 0, 0),
    "empty": lambda x: x.new_zeros(0),
}


def differentiable(leaves):
    return [i for i, x in enumerate(leaves) if is_tensor(x) and x.is_floating_point()]


def is_tensor(x):
    return isinstance(x, torch.Tensor)


def total(out, inputs):
    """A scalar of all results, which depends on the inputs whatever the results are."""
    terms = [
        x.double().nan_to_num(0, 0, 0).sum()
        for x in pytree.tree_leaves(out)
        if is_tensor(x) and x.is_floating_point()
    ]
    return sum(terms) + sum(0 * x.double().sum() for x in inputs)


def plainly(function, leaves):
    function(leaves)


def backward(function, leaves):
    inputs = [leaves[i].detach().requires_grad_() for i in differentiable(leaves)]
    total(function(replaced(leaves, inputs)), inputs).backward()


def replaced(leaves, inputs):
    changed = list(leaves)
    for i, x in zip(differentiable(leaves), inputs):
        changed[i] = x
    return changed


def of_inputs(function, leaves):
    """The call as a function of its floating tensors, and these."""
    inputs = [leaves[i].detach() for i in differentiable(leaves)]
    return lambda *given: total(function(replaced(leaves, given)), given), inputs


def grad(function, leaves):
    call, inputs = of_inputs(function, leaves)
    torch.func.grad(call, tuple(range(len(inputs))))(*inputs)


def jvp(function, leaves):
    call, inputs = of_inputs(function, leaves)
    torch.func.jvp(call, tuple(inputs), tuple(torch.ones_like(x) for x in inputs))


def vmap(function, leaves):
    call, inputs = of_inputs(function, leaves)
    torch.vmap(call)(*(torch.stack([x, x]) for x in inputs))


def vmap_of_grad(function, leaves):
    call, inputs = of_inputs(function, leaves)
    of_one = torch.func.grad(call, tuple(range(len(inputs))))
    torch.vmap(of_one)(*(torch.stack([x, x]) for x in inputs))


def vmap_of_integers(function, leaves):
    """Over one of the tensors that hold no floating numbers."""
    places = [i for i, x in enumerate(leaves) if is_tensor(x) and not x.is_floating_point()]
    for place in places[:2]:
        x = leaves[place]

        def call(own, place=place):
            return total(function([*leaves[:place], own, *leaves[place + 1 :]]), [own])

        torch.vmap(call)(torch.stack([x, x]))


def functionalize(function, leaves):
    call, inputs = of_inputs(function, leaves)
    torch.func.functionalize(call)(*inputs)


TRANSFORMS = {
    f.__name__: f
    for f in (plainly, backward, grad, jvp, vmap, vmap_of_grad, vmap_of_integers, functionalize)
}


#: Those that need no floating tensor among the arguments.
WITHOUT_NUMBERS = ("plainly", "backward", "vmap_of_integers")


#: torch itself cannot wrap these for a derivative or a map.
UNWRAPPABLE = {"sparse", "sparse rows", "mkldnn", "nested", "quantised", "float8"}
WRAPPING = {"grad", "jvp", "vmap", "vmap_of_grad", "functionalize"}

#: It writes into an argument, of which functionalize knows nothing.
NOT_FUNCTIONAL = {"causal_fit_rows"}


def fault_of(error: Exception) -> str | None:
    """What is wrong with a message."""
    text = str(error)
    foreign = [word for word in _FOREIGN if word in text]
    if foreign:
        return f"says {foreign[0]!r}"
    return "more than one line" if "\n" in text else None


def cases(name: str) -> list[tuple[str, str, int | None, str | None]]:
    """(operator, transform, number of a tensor among the arguments, what stands in for it)"""
    leaves = pytree.tree_leaves(operator_mutations.CALLED[name]())
    tensors = [i for i, x in enumerate(leaves) if is_tensor(x)]
    usable = [t for t in TRANSFORMS if t in WITHOUT_NUMBERS or differentiable(leaves)]
    if name in NOT_FUNCTIONAL:
        usable.remove("functionalize")
    every = [(name, transform, None, None) for transform in usable]
    return every + [
        (name, transform, place, wrong)
        for transform in usable
        for place in tensors
        for wrong in WRONG
        if transform not in WRAPPING or wrong not in UNWRAPPABLE
    ]


def complaint(name: str, transform: str, place: int | None, wrong: str | None) -> str | None:
    leaves, tree = pytree.tree_flatten(operator_mutations.CALLED[name]())
    if place is not None:
        try:
            leaves[place] = WRONG[wrong](leaves[place])
        except (RuntimeError, IndexError, ValueError, NotImplementedError):
            return None  # there is no such tensor

    own = []  # what the operator itself raised, and not the test around it

    def function(leaves):
        given, options = pytree.tree_unflatten(leaves, tree)
        try:
            return getattr(torch.ops.nsimplex, name)(*given, **options)
        except Exception as error:
            own.append(error)
            raise

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TRANSFORMS[transform](function, leaves)
    except Exception as error:
        if place is None and not own:  # a derivative
            own.append(error)
    for error in own:
        if fault := fault_of(error):
            what = "" if place is None else f", tensor {place} {wrong}"
            return (
                f"{name}, {transform}{what}: {fault}: {type(error).__name__}: {str(error)[:300]!r}"
            )
    return None


def assert_own_words(chosen) -> None:
    complaints = [text for case in chosen if (text := complaint(*case))]
    assert not complaints, f"{len(complaints)} messages:\n" + "\n".join(complaints[:50])


@pytest.mark.parametrize("name", sorted(operator_mutations.CALLED))
def test_operators_speak_for_themselves(name):
    """Without a wrong tensor in every transform, and with some of the wrong ones."""
    every = cases(name)
    bare = [case for case in every if case[2] is None]
    some = random.Random(f"{_SEED} {name}").sample(every, min(_FEW, len(every)))
    assert_own_words(bare + some)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(operator_mutations.CALLED))
def test_operators_always_speak_for_themselves(name):
    assert_own_words(cases(name))


@pytest.mark.parametrize("option", ["key_masks", "pair_masks"])
@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_lists_that_may_be_absent_are_looked_into(option, make):
    """The dispatcher does not choose a kernel by the tensors of an optional list."""
    x = torch.randn(1, 1, 4, 4)
    masks = [make(torch.ones(4, 4)), torch.ones(4, 4)]
    with pytest.raises(ValueError, match=rf"^\[attention\] {option}\[0\]: expected a dense tensor"):
        torch.ops.nsimplex.attention(x, [x, x], [x, x], **{option: masks})
