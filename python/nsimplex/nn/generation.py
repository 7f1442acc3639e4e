"""Continues texts with a language model: which tokens may come next, and one step after the other.

The rules are those of ``nsimplex lm sample`` (src/train/inference.h), so equal seeds give equal
texts there and here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import describe
from ..text import StreamDecoder, Tokenizer
from .checks import require, require_whole

_AT = "[LanguageModel] "
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Sampling(NamedTuple):
    """How the next token is drawn."""

    temperature: float
    top_k: int | None
    top_p: float | None
    eos: frozenset[int]


def sampling(
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    eos: int | Sequence[int] | None,
    vocabulary: int,
) -> Sampling:
    require(
        not isinstance(temperature, bool) and 0 <= temperature < math.inf,
        f"{_AT}temperature: expected 0 or more, got {describe(temperature)}",
    )
    if top_k is not None:
        require_whole(_AT, top_k=top_k)
    require(
        top_p is None or 0 < top_p <= 1,
        f"{_AT}top_p: expected a number in (0, 1], got {describe(top_p)}",
    )
    ends = () if eos is None else (eos,) if isinstance(eos, int) else tuple(eos)
    for token in ends:
        require_whole(_AT, least=0, most=vocabulary - 1, eos=token)
    return Sampling(temperature, top_k, top_p, frozenset(ends))


def distribution(logits: Tensor, options: Sampling) -> Tensor:
    """Logits [.., V] -> probabilities [.., V] in float64 with which the next token is drawn.

    softmax(logits / temperature), then all but the ``top_k`` likeliest removed, then of the rest,
    renormalised, the smallest set of likeliest tokens whose sum reaches ``top_p``; renormalised. Of
    equally likely tokens the smaller number goes first. O(V log V).
    """
    sorted_, order = torch.sort(logits.double(), descending=True, stable=True)
    if options.temperature == 0:
        return torch.zeros_like(sorted_).scatter_(-1, order[..., :1], 1.0)
    weights = torch.exp((sorted_ - sorted_[..., :1]) / options.temperature)
    if options.top_k is not None:
        weights[..., options.top_k :] = 0.0
    weights = weights / _sum(weights)
    if options.top_p is not None and options.top_p < 1:
        before = torch.cat([torch.zeros_like(weights[..., :1]), weights.cumsum(-1)[..., :-1]], -1)
        weights = weights.masked_fill(before >= options.top_p, 0.0)
        weights = weights / _sum(weights)
    return torch.zeros_like(weights).scatter_(-1, order, weights)


def _sum(weights: Tensor) -> Tensor:
    return weights.cumsum(-1)[..., -1:]  # one number after the other, as the C++ library adds


def drawn(logits: Tensor, options: Sampling, uniforms: Sequence[float]) -> list[int]:
    """One token per row of the logits [B, V]: the first at which the running sum of probabilities
    passes the row's uniform number.

    Raises:
        ValueError: a logit that is NaN or +inf, from which no token can be drawn.
    """
    if not bool((logits < math.inf).all()):  # NaN is not below it, either
        raise ValueError(
            f"{_AT}logits: expected numbers, got NaN or infinity; the weights hold some, or are so "
            "large that the dtype of the model overflows"
        )
    if options.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = distribution(logits, options)
    sums = probabilities.cumsum(-1)
    passed = sums > torch.tensor(uniforms, dtype=torch.float64).unsqueeze(-1)
    passed &= probabilities > 0
    # Rounding may leave the whole sum below the number: then the last possible token.
    last = probabilities.size(-1) - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    return torch.where(passed.any(-1), passed.int().argmax(-1), last).tolist()


def uniform(seed: int, index: int) -> float:
    """The ``index``-th random number of a seed, in [0, 1): ``random_unit(random_bits(..))`` of
    src/support/random.h."""

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
        return z ^ (z >> 31)

    bits = mix((mix((seed + _GOLDEN) & _MASK) + (index + 1) * _GOLDEN) & _MASK)
    return (bits >> 11) * 2.0**-53


class _Group:
    """Prompts of one length, which are continued together."""

    def __init__(self, model, rows: list[int], prompts: Sequence[Sequence[int]], cached: bool):
        self.rows = rows  # their places among all prompts
        self._model = model
        self._device = model.embedding.weight.device
        self._caches = model.make_cache() if cached else None
        self._tokens = torch.tensor([[*prompts[row]] for row in rows])  # those to read next

    def next_logits(self) -> Tensor:
        """Logits [rows, V] in float64 on the CPU. O(1) passes, or for the prompt one per chunk of
        the context, as it was trained."""
        context = self._model.options.context
        tokens = self._tokens.to(self._device)
        if self._caches is None:
            logits = self._model(tokens[:, -context:])
        else:
            logits = tokens
            for part in tokens.split(context, 1):  # at least one
                logits = self._model(part, self._caches)
        return logits[:, -1].double().cpu()

    def append(self, tokens: Sequence[int]) -> None:
        added = torch.tensor(tokens).unsqueeze(1)
        cached = self._caches is not None
        self._tokens = added if cached else torch.cat([self._tokens, added], 1)

    def keep(self, kept: list[int]) -> None:
        """Leaves out the rows that are not named."""
        if len(kept) == len(self.rows):
            return
        self.rows = [self.rows[row] for row in kept]
        chosen = torch.tensor(kept, dtype=torch.int64)
        self._tokens = self._tokens[chosen]
        if self._caches is not None and kept:
            self._caches.select(chosen.to(self._device))


class _Slots:
    """Prompts of different lengths, which are continued together from caches of fixed size."""

    def __init__(self, model, prompts: Sequence[Sequence[int]], slots: int):
        self.rows = [*range(len(prompts))]  # those that have not ended
        self._model = model
        self._device = model.embedding.weight.device
        self._caches = model.make_static_caches(len(prompts), slots)
        self._counts = torch.tensor([len(prompt) for prompt in prompts])
        longest = int(self._counts.max())
        self._tokens = torch.tensor([[*p, *[0] * (longest - len(p))] for p in prompts])

    def next_logits(self) -> Tensor:
        """Logits [rows, V] in float64 on the CPU, from one pass over all rows."""
        counts = self._counts.to(self._device)
        logits = self._model(self._tokens.to(self._device), self._caches, counts=counts)
        for cache in self._caches:
            cache.check()  # a compiled model cannot raise everywhere
        rows = torch.tensor(self.rows)
        return logits[rows, self._counts[rows] - 1].double().cpu()

    def append(self, tokens: Sequence[int]) -> None:
        self._counts = torch.zeros_like(self._counts)  # a row that has ended pauses
        self._tokens = self._counts.unsqueeze(1).clone()
        self._counts[self.rows] = 1
        self._tokens[self.rows, 0] = torch.tensor(tokens)

    def keep(self, kept: list[int]) -> None:
        """Leaves out the rows that are not named."""
        left = [self.rows[row] for row in kept]
        self._counts[[row for row in self.rows if row not in left]] = 0
        self.rows = left


def _groups(
    model, prompts: Sequence[Sequence[int]], count: int, cached: bool
) -> list[_Group] | list[_Slots]:
    """Prompts that are continued together: all of them where slots can hold them, else those of
    one length."""
    by_length: dict[int, list[int]] = {}
    for row, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(row)
    slots = max(by_length) + count
    fits = model.options.sparse != "linear" and slots <= model.options.context
    fits = fits and all(block.attention.has_slots for block in model.blocks)
    autocast = torch.is_autocast_enabled(model.embedding.weight.device.type)
    if cached and len(by_length) > 1 and fits and not autocast:  # it would store other dtypes
        return [_Slots(model, prompts, slots)]
    return [_Group(model, rows, prompts, cached) for rows in by_length.values()]


def steps(
    model, prompts: Sequence[Sequence[int]], count: int, options: Sampling, seed: int, cached: bool
) -> Iterator[list[int | None]]:
    """At most ``count`` times the next token of each prompt; None for a prompt that has ended."""
    groups: Sequence[_Group | _Slots] = _groups(model, prompts, count, cached)
    for number in range(count):
        step: list[int | None] = [None] * len(prompts)
        for group in groups:
            logits = _in_evaluation(model, group.next_logits)
            tokens = drawn(logits, options, [uniform(seed + row, number) for row in group.rows])
            for row, token in zip(group.rows, tokens):
                step[row] = token
            group.append(tokens)
            group.keep([i for i, token in enumerate(tokens) if token not in options.eos])
        yield step
        groups = [group for group in groups if group.rows]
        if not groups:
            return


def _in_evaluation(model, call: Callable[[], Tensor]) -> Tensor:
    """The call without gradients and dropout; whoever gets the next token finds the model as it
    was."""
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        with torch.no_grad():
            return call()
    finally:
        for module in training:
            module.training = True


class Prompts(NamedTuple):
    """What is continued, as tokens."""

    rows: list[list[int]]
    shown: list[int]  #: how many of a row's last tokens belong to the result
    kind: str  #: "text", "texts", "tokens", "lists", "vector" or "matrix": the form of the result
    device: torch.device | None = None  #: of a vector or matrix


def prompts_of(prompts: Any, tokenizer: Tokenizer | None, vocabulary: int) -> Prompts:
    rows: list[Any]
    if isinstance(prompts, Tensor):
        require(
            prompts.dim() in (1, 2) and prompts.dtype in (torch.int64, torch.int32),
            f"{_AT}prompts: expected int64 of shape [B, T] or [T], got {prompts.dtype} of shape "
            f"{[*prompts.shape]}",
        )
        kind, rows = "matrix", prompts.tolist()
        if prompts.dim() == 1:
            kind, rows = "vector", [rows]
    elif isinstance(prompts, str):
        kind, rows = "text", [prompts]
    elif isinstance(prompts, (list, tuple)) and prompts and isinstance(prompts[0], str):
        kind, rows = "texts", [*prompts]
    elif isinstance(prompts, (list, tuple)) and prompts and isinstance(prompts[0], int):
        kind, rows = "tokens", [[*prompts]]
    elif isinstance(prompts, (list, tuple)):
        kind, rows = "lists", [*prompts]
    else:
        raise TypeError(f"{_AT}prompts: expected tokens or texts, got {describe(prompts)}")
    require(len(rows) > 0, f"{_AT}prompts: expected one or more, got none")
    if kind in ("text", "texts"):
        return _encoded([*rows], tokenizer, kind)
    for place, row in enumerate(rows):
        _require_tokens(row, place, vocabulary)
    device = prompts.device if isinstance(prompts, Tensor) else None
    tokens: list[Any] = [[*row] for row in rows]
    return Prompts(tokens, [len(row) for row in rows], kind, device)


def _encoded(texts: Sequence[object], tokenizer: Tokenizer | None, kind: str) -> Prompts:
    if tokenizer is None:
        raise ValueError(
            f"{_AT}prompts: expected token numbers, got text and no tokenizer; set model.tokenizer"
        )
    rows: list[list[int]] = []
    shown: list[int] = []
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{_AT}prompts[{place}]: expected a string, got {describe(text)}")
        tokens = tokenizer.encode(text)
        shown.append(len(tokens))
        if not tokens and tokenizer.separator is not None:  # as texts start after one another
            tokens = [tokenizer.separator]
        rows.append(tokens or tokenizer.encode("\n") or [0])
    return Prompts(rows, shown, kind)


def _require_tokens(row: Any, place: int, vocabulary: int) -> None:
    fits = isinstance(row, (list, tuple)) and all(type(token) is int for token in row)
    if not fits:
        raise TypeError(f"{_AT}prompts[{place}]: expected a list of integers, got {describe(row)}")
    require(len(row) > 0, f"{_AT}prompts[{place}]: expected at least one token, got none")
    for token in row:
        require(
            0 <= token < vocabulary,
            f"{_AT}prompts[{place}]: expected tokens 0 to {vocabulary - 1}, got {token}",
        )


def stream(
    prompts: Prompts, tokenizer: Tokenizer | None, tokens: Iterator[list], ends: frozenset[int]
) -> Iterator:
    """What each step adds, in the form of the prompts."""
    if prompts.kind in ("text", "texts"):
        assert tokenizer is not None
        decoders = [
            StreamDecoder(tokenizer, row[len(row) - shown :])
            for row, shown in zip(prompts.rows, prompts.shown)
        ]
        for step in tokens:
            pieces = [
                "" if token is None or token in ends else decoder.next(token)
                for decoder, token in zip(decoders, step)
            ]
            yield pieces[0] if prompts.kind == "text" else pieces
        rest = [decoder.finish() for decoder in decoders]
        if any(rest):
            yield rest[0] if prompts.kind == "text" else rest
        return
    for step in tokens:
        yield step[0] if prompts.kind in ("tokens", "vector") else step


def whole(
    prompts: Prompts, tokenizer: Tokenizer | None, tokens: Iterator[list], ends: frozenset[int]
) -> str | list | Tensor:
    """Prompts and what follows them, in the form of the prompts."""
    rows = [row[len(row) - shown :] for row, shown in zip(prompts.rows, prompts.shown)]
    are_texts = prompts.kind in ("text", "texts")
    for step in tokens:
        for row, token in zip(rows, step):
            if token is not None and not (are_texts and token in ends):
                row.append(token)
    if are_texts:
        assert tokenizer is not None
        texts = [tokenizer.decode(row) if row else "" for row in rows]
        return texts[0] if prompts.kind == "text" else texts
    if prompts.kind in ("vector", "matrix"):
        longest = max(map(len, rows))  # a row that has ended repeats its last token
        filled = torch.tensor([row + row[-1:] * (longest - len(row)) for row in rows])
        filled = filled.to(prompts.device)
        return filled[0] if prompts.kind == "vector" else filled
    return rows[0] if prompts.kind == "tokens" else rows
