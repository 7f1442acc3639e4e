"""Calls every operator with one number in turn far too large:  python operator_sizes.py

Whole numbers are those of arguments, of lists and of tensors, whose last entry is changed. Before
each call its name and what is changed go to standard output, and after it its answer: an empty line
for a result, or the type and the words of the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import operator_fuzz
import operator_mutations
import torch
from torch.utils import _pytree as pytree

NUMBERS = (2**31, 2**40, 2**53, 2**63 - 1)
#: Places of numbers that are no sizes: the steps of an optimiser, which ask for work, and a list of
#: rows in a plan.
_NO_SIZES = {
    ("causal_embed", 3),
    ("equivariant_linear_sparse", 13),
    ("equivariant_linear_sparse_backward", 14),
}
#: Beyond what the libraries take. The library's own limit of a result is below it.
_MEMORY = 6 * 2**30


def cases() -> Iterator[tuple[str, int, int]]:
    """An operator, the place of a number in its call, and the number that comes there."""
    for name in sorted(operator_mutations.CALLED):
        for place, leaf in enumerate(pytree.tree_leaves(operator_mutations.CALLED[name]())):
            whole = isinstance(leaf, int) and not isinstance(leaf, bool)
            tensor = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64 and leaf.numel()
            for number in NUMBERS if (whole or tensor) and (name, place) not in _NO_SIZES else ():
                yield name, place, number


def changed(name: str, place: int, number: int) -> tuple[list, dict]:
    """The operator's call with the number at this place."""
    leaves, structure = pytree.tree_flatten(operator_mutations.CALLED[name]())
    if isinstance(leaves[place], torch.Tensor):
        leaves[place] = leaves[place].clone(memory_format=torch.contiguous_format)
        leaves[place].view(-1)[-1] = number
    else:
        leaves[place] = number
    return pytree.tree_unflatten(leaves, structure)


def main() -> None:
    operator_fuzz.limit_memory(_MEMORY)
    for name, place, number in cases():
        print(f"{name} with {number} at place {place}", flush=True)
        arguments, options = changed(name, place, number)
        operator = partial(getattr(torch.ops.nsimplex, name), *arguments, **options)
        print(operator_fuzz.answer(operator), flush=True)


if __name__ == "__main__":
    main()
