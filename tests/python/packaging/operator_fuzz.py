"""Makes calls of operator_mutations in this process:  python operator_fuzz.py SEED FIRST [LAST]

Before each call its number goes to standard output, so that whoever reads knows which call ended
the process. A single call is printed as Python first.
"""

from __future__ import annotations

import resource
import sys
import warnings
from pathlib import Path

import operator_mutations
import torch
from torch.utils import _pytree as pytree

_MEMORY = (
    2 * 2**30
)  # beyond what the libraries take: larger allocations are refused, as on a smaller machine


def changed(tensor, element, value):
    """A copy with another value at one place."""
    copy = tensor.clone(memory_format=torch.contiguous_format)
    copy.view(-1)[element] = value
    return copy


def differentiated(a, o):
    for tensor in pytree.tree_leaves((a, o)):
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.is_leaf:
            tensor.requires_grad_()


def call(name, lines):
    """Makes one call, and its backward where something asks for gradients; errors in Python's words
    are answers."""
    given, options = operator_mutations.CALLED[name]()
    a, o = pytree.tree_map(
        lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (list(given), dict(options))
    )
    exec(
        "\n".join(lines),
        {"torch": torch, "a": a, "o": o, "changed": changed, "differentiated": differentiated},
    )
    out = pytree.tree_leaves(getattr(torch.ops.nsimplex, name)(*a, **o))
    wanted = [x for x in out if isinstance(x, torch.Tensor) and x.requires_grad]
    if wanted:
        torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])


def limit_memory(more):
    """Lets this process take no more than some bytes besides what it has."""
    torch.set_num_threads(2)
    torch.ones(2**16).exp()  # with the threads that there will be
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")


def answer(compute):
    """The error of a call in one line; empty if there is none."""
    try:
        compute()
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", "\\n")
    return ""


def main(seed, first, last):
    limit_memory(_MEMORY)
    for number in range(first, last):
        name, lines = operator_mutations.case(seed, number)
        print(number, name, flush=True)
        if last == first + 1:
            print("\n".join(lines), flush=True)
        said = answer(lambda name=name, lines=lines: call(name, lines))
        if last == first + 1:
            print(said or "returns")
    print("done", flush=True)


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(words[0], words[1], words[2] if len(words) > 2 else words[1] + 1)
