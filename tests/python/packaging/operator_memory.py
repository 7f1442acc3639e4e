"""Calls every operator with one tensor in turn that it cannot read:  python operator_memory.py

All of its memory or more than half is taken away, with and without a gradient that is asked for, or
it is a view of one number with 2^41 numbers. Before each call its name and the place go to standard
output, and after it its answer: an empty line for a result, or the type and the words of the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import operator_fuzz
import operator_mutations
import torch
from torch.utils import _pytree as pytree


def cases() -> Iterator[tuple[str, int, int, bool]]:
    """An operator, the place of a tensor in its call, by how much its bytes are divided (0: none is
    left; -1: it is the large view), and whether it requires a gradient."""
    for name in sorted(operator_mutations.CALLED):
        for place, leaf in enumerate(pytree.tree_leaves(operator_mutations.CALLED[name]())):
            if (
                not isinstance(leaf, torch.Tensor)
                or leaf.numel() == 0
                or leaf.layout != torch.strided
            ):
                continue
            yield name, place, 0, False
            yield name, place, 3, False
            if leaf.dim() > 0:
                yield name, place, -1, False
            if leaf.is_floating_point():
                yield name, place, 0, True


def changed(name: str, place: int, divisor: int, learned: bool) -> tuple[list, dict]:
    leaves, structure = pytree.tree_flatten(operator_mutations.CALLED[name]())
    tensor = leaves[place].clone().requires_grad_(learned)
    if divisor < 0:
        tensor = tensor.flatten()[:1].view([1] * tensor.dim()).expand(2**41, *tensor.shape[1:])
    else:
        memory = tensor.untyped_storage()
        memory.resize_(memory.nbytes() // divisor if divisor else 0)
    leaves[place] = tensor
    return pytree.tree_unflatten(leaves, structure)


def main() -> None:
    for name, place, divisor, learned in cases():
        print(f"{name} at place {place}, {divisor}, {learned}", flush=True)
        arguments, options = changed(name, place, divisor, learned)
        operator = partial(getattr(torch.ops.nsimplex, name), *arguments, **options)
        print(operator_fuzz.answer(operator), flush=True)


if __name__ == "__main__":
    main()
