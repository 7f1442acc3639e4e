"""Tasks on sequences and formulas."""

from __future__ import annotations

import functools
import random
import sysconfig
from pathlib import Path

import torch
from torch import Tensor

from .memory import choose, labels
from .molecule_tasks import absent, data_file
from .task import Batch, Task

__all__ = ["TASKS"]

_SYMBOLS = 6


def _induction(count: int, generator: torch.Generator, split: str) -> Batch:
    length = 48 if split == "long" else 32
    drawn = labels(count, _SYMBOLS, length, generator)
    repeats = torch.rand(count, length, generator=generator) < 0.5
    x, targets = drawn.clone(), torch.full((count, length), -1)
    row = torch.arange(count)
    # Successor of the latest occurrence of each pair; -1: not seen yet.
    after = torch.full((count, _SYMBOLS, _SYMBOLS), -1)
    for place in range(2, length):
        before = x[:, place - 2], x[:, place - 1]
        known = after[row, before[0], before[1]]
        copied = repeats[:, place] & (known >= 0)
        x[:, place] = torch.where(copied, known, drawn[:, place])
        targets[:, place - 1] = torch.where(copied, known, -1)
        after[row, before[0], before[1]] = x[:, place]
    return Batch(x.unsqueeze(-1), None, targets)


_OPERATORS, _VALUES = 4, 4
#: Values of the functions f(a, b), drawn once: neither sums nor symmetric.
_FUNCTIONS = torch.randint(
    _VALUES, (_OPERATORS, _VALUES, _VALUES), generator=torch.Generator().manual_seed(17)
)
_NAMES = 20


def _formulas(count: int, generator: torch.Generator, split: str) -> Batch:
    leaves = 10 if split == "long" else 6
    size = 2 * leaves - 1
    names = choose(count, _NAMES, size, generator)
    values = torch.zeros(count, size, dtype=torch.int64)
    values[:, :leaves] = labels(count, _VALUES, leaves, generator)
    functions = labels(count, _OPERATORS, leaves - 1, generator)
    fields = torch.zeros(count, size, 5, dtype=torch.int64)
    fields[..., 0] = names
    fields[:, :leaves, 4] = values[:, :leaves] + 1
    targets = torch.full((count, size), -1)
    free = torch.arange(size).repeat(count, 1)  # the first ``left`` are nodes without a parent
    row = torch.arange(count).unsqueeze(1)
    for made in range(leaves - 1):
        left = leaves - made
        pair = choose(count, left, 2, generator)
        node, children = leaves + made, free.gather(1, pair)
        given = values.gather(1, children)
        values[:, node] = _FUNCTIONS[functions[:, made], given[:, 0], given[:, 1]]
        fields[:, node, 1:3] = names.gather(1, children) + 1
        fields[:, node, 3] = functions[:, made] + 1
        targets[:, node] = values[:, node]
        keep = torch.ones(count, left, dtype=torch.bool)
        keep[row, pair] = False
        rest = free[:, :left][keep].view(count, left - 2)
        free = torch.cat([rest, torch.full((count, 1), node)], 1)
    order = choose(count, size, size, generator)
    fields = fields.gather(1, order.unsqueeze(-1).expand_as(fields))
    return Batch(fields, None, targets.gather(1, order))


_KINDS = 3


def _brackets(count: int, generator: torch.Generator, split: str) -> Batch:
    length = 40 if split == "long" else 24
    opens = torch.rand(count, length, generator=generator) < 0.5
    kinds = labels(count, _KINDS, length, generator)
    x, targets = torch.zeros(count, length, dtype=torch.int64), torch.zeros(count, length).long()
    stack = torch.zeros(count, length + 1, dtype=torch.int64)
    depth, row = torch.zeros(count, dtype=torch.int64), torch.arange(count)
    for place in range(length):
        open_here = opens[:, place] | (depth == 0)
        top = stack[row, depth]
        x[:, place] = torch.where(open_here, kinds[:, place], _KINDS + top - 1)
        depth = depth + torch.where(open_here, 1, -1)
        pushed = torch.where(open_here, kinds[:, place] + 1, stack[row, depth])
        stack[row, depth] = torch.where(depth > 0, pushed, 0)
        targets[:, place] = stack[row, depth]
    return Batch(x.unsqueeze(-1), None, targets)


def _grammar(count: int, generator: torch.Generator, split: str) -> Batch:
    """Words of S -> f S S | value, with the value of every part."""
    leaves = 10 if split == "long" else 6
    size = 2 * leaves - 1
    draw = random.Random(int(torch.randint(2**31, (1,), generator=generator)))
    table = _FUNCTIONS.tolist()
    words, targets = [], []
    for _ in range(count):
        word, wanted = [0] * size, [-1] * size

        def grow(at: int, size: int, word=word, wanted=wanted) -> tuple[int, int]:
            """Writes a part with `size` leaves; returns its end and its value."""
            if size == 1:
                value = draw.randrange(_VALUES)
                word[at] = _OPERATORS + value
                return at + 1, value
            function, left = draw.randrange(_OPERATORS), draw.randrange(1, size)
            word[at] = function
            middle, a = grow(at + 1, left)
            end, b = grow(middle, size - left)
            wanted[at] = table[function][a][b]
            return end, wanted[at]

        grow(0, leaves)
        words.append(word)
        targets.append(wanted)
    return Batch(torch.tensor(words).unsqueeze(-1), None, torch.tensor(targets))


@functools.cache
def _sources() -> tuple[Tensor, Tensor]:
    """Bytes of Python's own library: a text to train on, and one of other files."""
    folder = Path(sysconfig.get_path("stdlib"))
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    for number, path in enumerate(sorted(folder.glob("*.py"))[:120]):
        parts[number % 10 == 0].append(path.read_bytes())
    train, test = (
        torch.frombuffer(bytearray(b"\n".join(part)), dtype=torch.uint8) for part in parts
    )
    return train.long().clamp(max=127), test.long().clamp(max=127)


@functools.cache
def _plays() -> tuple[Tensor, Tensor]:
    """Bytes of a text: nine tenths to train on, and the end."""
    data = bytearray(data_file("text", "tinyshakespeare.txt").read_bytes())
    text = torch.frombuffer(data, dtype=torch.uint8).long().clamp(max=127)
    return text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]


def _code(count: int, generator: torch.Generator, split: str) -> Batch:
    return _windows(_sources()[split != "train"], count, generator)


def _text(count: int, generator: torch.Generator, split: str) -> Batch:
    return _windows(_plays()[split != "train"], count, generator)


def _windows(text: Tensor, count: int, generator: torch.Generator) -> Batch:
    """Windows of 32 bytes, and for each byte the next one."""
    length = 33
    starts = torch.randint(len(text) - length, (count, 1), generator=generator)
    window = text[starts + torch.arange(length)]
    return Batch(window[:, :-1].unsqueeze(-1), None, window[:, 1:])


def _no_sources() -> str:
    folder = Path(sysconfig.get_path("stdlib"))
    return "" if len(list(folder.glob("*.py"))) > 20 else f"no Python sources in {folder}"


TASKS = (
    Task(
        name="induction",
        reason="A symbol repeats what followed the latest occurrence of the same two symbols. "
        "One symbol alone has about six successors. A position knows only its own symbol, so "
        "every order needs a second layer, and then the condition is on a pair.",
        order=2,
        fields=(_SYMBOLS,),
        classes=_SYMBOLS,
        draw=_induction,
        ordered=True,
        causal=True,
        longer="48 symbols in place of 32",
    ),
    Task(
        name="formulas",
        reason="Nodes of a formula are shuffled tokens with a name, a function of two arguments "
        "and the names of its arguments. Every node asks for its value. A node reads two tokens "
        "at once, and the value is no sum over them. The depth of the formula asks for layers.",
        order=2,
        fields=(_NAMES, _NAMES + 1, _NAMES + 1, _OPERATORS + 1, _VALUES + 1),
        classes=_VALUES,
        draw=_formulas,
        longer="10 leaves in place of 6",
    ),
    Task(
        name="brackets",
        reason="A balanced sequence of brackets of three kinds. Each position asks for the kind "
        "of the innermost open bracket. A span is made of two shorter spans, which is a tuple; "
        "counting the depth, which one layer of order 1 can do, solves a part.",
        order=2,
        fields=(2 * _KINDS,),
        classes=_KINDS + 1,
        draw=_brackets,
        ordered=True,
        causal=True,
        longer="40 brackets in place of 24",
    ),
    Task(
        name="grammar",
        reason="Words of the grammar S -> f S S | value. Each f asks for the value of its part. "
        "The second argument begins where the first ends, so a position has to find a split "
        "point and read two values: one step of the CYK algorithm per layer of order 2.",
        order=2,
        fields=(_OPERATORS + _VALUES,),
        classes=_VALUES,
        draw=_grammar,
        ordered=True,
        longer="10 leaves in place of 6",
    ),
    Task(
        name="code",
        reason="The next byte of Python's own library, with 32 bytes of context. Identifiers and "
        "keywords are long runs of bytes, so conditions on several bytes help; whether tuples "
        "do better than layers is open.",
        order=2,
        fields=(128,),
        classes=128,
        draw=_code,
        ordered=True,
        causal=True,
        level=0.4,
        missing=_no_sources,
    ),
    Task(
        name="text",
        reason="The next byte of plays by Shakespeare, with 32 bytes of context. Letters of a word "
        "hang together in runs, as in the task code. Small language models of this repository "
        "gained nothing from order 2 on text, so little is expected.",
        order=2,
        fields=(128,),
        classes=128,
        draw=_text,
        ordered=True,
        causal=True,
        level=0.4,
        missing=functools.partial(absent, "text", "tinyshakespeare.txt"),
    ),
)
