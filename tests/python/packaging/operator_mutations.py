"""Calls of operators that nobody would write, each as lines of Python: ``a`` are the arguments,
``o`` the options.

A case is decided by a seed and a number alone. Its lines change the call of operator_cases; whoever
runs them has the call.
"""

from __future__ import annotations

import random

import operator_cases
import torch

CALLED = {
    name: make
    for name, make in (operator_cases.CASES | operator_cases.ON_THE_HOST).items()
    if make is not None
}

#: Lengths of views that take no memory; honest loops over the larger ones would not end within the
#: test.
_LENGTHS = ["2**12", "2**31", "2**40", "2**53", "2**57", "2**59", "2**61", "2**62"]
_WHOLE = [
    "-1",
    "0",
    "1",
    "2",
    "3",
    "5",
    "13",
    "64",
    "1000",
    "10**6",
    "10**12",
    "2**31 - 1",
    "2**31",
    "2**32",
    "2**53",
]
_WHOLE += ["2**61", "2**62", "2**63 - 1", "-(2**62)", "-(2**63)"]
_SMALL = ["-(2**63)", "-1", "0", "1", "2", "7", "20"]
_FRACTIONS = [
    "float('nan')",
    "float('inf')",
    "-float('inf')",
    "0.0",
    "-1.0",
    "0.5",
    "1e-320",
    "1e308",
    "-1e30",
]
_DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
]
_VALUES = ["float('nan')", "float('inf')", "-float('inf')", "0", "-1", "1", "1e30", "1e-30", "5"]
_INTEGERS = [
    "-(2**63)",
    "2**63 - 1",
    "2**62",
    "2**53",
    "2**32",
    "2**31",
    "-2",
    "-1",
    "0",
    "1",
    "2",
    "4",
    "100",
]

#: Arguments that name an amount of work: the larger ones would be done, and take what they take.
WORK = {
    "steps",
    "observations",
    "sets",
    "count",
    "features",
    "leading",
    "heads",
    "nodes",
    "queries",
    "most",
    "links",
}
WORK |= {"degree", "hops", "negatives", "rank", "dimension", "k"}

_WORDS = {
    "form": ["product", "determinant", "diagonal", "kernel", "softmax"],
    "reduce": ["product", "sum", "mean", "mlp", "mlp_symmetric"],
    "normalizer": ["softmax", "entmax", "softmax_sink", "relu", "sigmoid"],
    "pattern": ["list", "product", "path"],
    "distinct": ["none", "all", "keys", "ordered"],
    "scores": ["relu", "softmax"],
    "kind": ["elu", "random", "relu", "softmax"],
    "classes": ["all", "paper", "reduced", "constant", "local"],
    "keys": ["paper", "all"],
    "pooling": ["mean", "sum"],
    "estimator": [
        "order",
        "logdet",
        "lowrank",
        "notears",
        "spectral",
    ],  # "paper", "paper-lowrank" take minutes on any table
    "optimiser": ["tangent", "radam", "rsgd"],
    "mechanism": ["linear", "mlp", "gp"],
    "noise": ["gaussian", "exponential", "gumbel"],
    "missing": ["refuse", "rows", "means"],
    "weight": ["direct", "paths"],
    "side": ["both", "causes", "effects"],
    "dangling": ["eigenvector", "uniform"],
    "graph": ["er", "sf"],
}
_SYMMETRIES = ["ordered", "undirected", "loop_free"]
_ANY_WORDS = ["''", "'\\0'", "'é' * 3", "'x' * 5000", "'\\n\\x1b[0m'"]


class _Case:
    def __init__(self, name: str, rng: random.Random):
        self.rng = rng
        self.arguments = getattr(torch.ops.nsimplex, name).default._schema.arguments
        self.given, self.options = CALLED[name]()
        self.lines: list[str] = []
        self.endless: set[str] = (
            set()
        )  # places of views that torch's own changes would take for ever to read

    def mutate(self) -> None:
        at = self.rng.randrange(len(self.arguments))
        argument = self.arguments[at]
        keyword = argument.kwarg_only or at >= len(self.given)
        place = f"o[{argument.name!r}]" if keyword else f"a[{at}]"
        if place in self.endless:
            return
        value = self.options.get(argument.name) if keyword else self.given[at]
        kind = str(argument.type)
        new = (
            self._tensors(kind, place, value)
            if "Tensor" in kind
            else self._plain(kind, argument.name, place, value)
        )
        if new is not None:
            self.lines.append(f"{place} = {new}")
            if is_endless(new):
                self.endless.add(place)

    def _any_tensor(self) -> str:
        """Another tensor of the same call, or one of any shape."""
        tensors = [i for i, value in enumerate(self.given) if isinstance(value, torch.Tensor)]
        places = [f"a[{i}]" for i in tensors if f"a[{i}]" not in self.endless]
        if places and self.rng.random() < 0.5:
            return self.rng.choice(places)
        shape = [self.rng.choice([0, 1, 1, 2, 3, 4, 5, 6, 8]) for _ in range(self.rng.randrange(6))]
        return self.rng.choice(
            [
                f"torch.ones({shape})",
                f"torch.zeros({shape}, dtype=torch.int64)",
                f"torch.ones({shape}) > 0",
            ]
        )

    def _tensors(self, kind: str, place: str, value: object) -> str | None:
        if "Optional" in kind and self.rng.random() < 0.15:
            return "None"
        if "List" not in kind:
            return self._tensor(place, value)
        if not value or self.rng.random() < 0.35:
            return self._list(place, value, self._any_tensor())
        at = self.rng.randrange(len(value))
        return (
            f"[*{place}[:{at}], {self._tensor(f'{place}[{at}]', value[at])}, *{place}[{at + 1}:]]"
        )

    def _list(self, place: str, value: object, entry: str) -> str:
        if not value:
            return self.rng.choice(["[]", f"[{entry}]", f"[{entry}] * 3", "None"])
        return self.rng.choice(
            [
                "[]",
                f"{place}[:1]",
                f"{place}[:-1]",
                f"{place} + {place}[:1]",
                f"{place}[::-1]",
                f"{place} * 9",
                "[None]",
                f"[{entry}]",
            ]
        )

    def _tensor(self, place: str, value: object) -> str:
        if not isinstance(value, torch.Tensor):
            return self._any_tensor()
        rng, dims = self.rng, value.dim()
        d = rng.randrange(dims) if dims else 0
        e = rng.randrange(dims) if dims else 0
        number = rng.choice(_VALUES if value.is_floating_point() else _INTEGERS)
        lengths = ", ".join(rng.choice(_LENGTHS) if axis == d else "-1" for axis in range(dims))
        changes = [
            f"{place}.to(torch.{rng.choice(_DTYPES)})",
            f"{place}.to('meta')",
            f"{place}.to_sparse()",
            f"{place}.unsqueeze({d})",
            f"{place}.flatten()",
            f"{place}.sum()",
            f"torch.full_like({place}, {number})",
            self._any_tensor(),
        ]
        if value.numel():
            element = rng.randrange(value.numel())
            changes += [f"changed({place}, {element}, {number})"] * 3
        if dims and value.numel():
            changes += [
                f"{place}.narrow({d}, 0, {rng.choice([0, 1, max(value.size(d) - 1, 0)])})",
                f"{place}.narrow({d}, 0, 1).expand({lengths})",
                f"{place}.narrow({d}, 0, 1).expand({lengths})",
                f"{place}.narrow({d}, 0, 1).expand({list(value.shape)})",
                f"torch.cat([{place}] * {rng.choice([2, 3, 17])}, {d})",
                f"{place}.select({d}, 0)",
                f"{place}.transpose({d}, {e})",
                f"{place}.transpose({d}, {e}).contiguous().transpose({d}, {e})",
                f"{place}.flip({d})",
                f"torch.stack([{place}, {place}], -1)[..., 1]",
                f"torch.cat([{place}.flatten()[:1], {place}.flatten()])[1:].view({place}.shape)",
            ]
        return rng.choice(changes)

    def _plain(self, kind: str, name: str, place: str, value: object) -> str | None:
        rng = self.rng
        whole = _SMALL if name in WORK else _WHOLE
        if "Optional" in kind and rng.random() < 0.2:
            return "None"
        if "str" in kind and "List" not in kind:
            known = _SYMMETRIES if "symmetry" in name or name == "to" else _WORDS.get(name, [])
            return rng.choice([*map(repr, known)] * 3 + _ANY_WORDS)
        if "List" in kind:
            entry = rng.choice(
                {"str": ["'a'", "''"], "float": _FRACTIONS, "bool": ["True", "False"]}.get(
                    next((word for word in ("str", "float", "bool") if word in kind), ""), whole
                )
            )
            if value and rng.random() < 0.6:
                at = rng.randrange(len(value))
                return f"[*{place}[:{at}], {entry}, *{place}[{at + 1}:]]"
            return self._list(place, value, entry)
        if "bool" in kind:
            return f"not {place}" if value is not None else "True"
        if "float" in kind:
            return rng.choice(_FRACTIONS)
        return rng.choice(whole) if "int" in kind.lower() else None


def is_endless(line: str) -> bool:
    """Whether a line makes a view whose length is not the one of any tensor in memory."""
    return ".expand(" in line and any(length in line for length in _LENGTHS)


def case(seed: int, number: int) -> tuple[str, list[str]]:
    """The operator of a case, and the lines that change its arguments."""
    rng = random.Random(f"{seed}:{number}")
    name = sorted(CALLED)[number % len(CALLED)]
    made = _Case(name, rng)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4])):
        made.mutate()
    if rng.random() < 0.3:
        made.lines.append("differentiated(a, o)")
    return name, made.lines
