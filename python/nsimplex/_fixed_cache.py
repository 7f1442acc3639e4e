"""The base of caches of fixed size: windows, memory, and checks of a chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ._arguments import describe
from ._options import taken

__all__ = ["WHOLE", "FixedCache", "new_places"]

#: Of keys and values, as attention takes them.
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
WHOLE = (torch.int64, torch.int32)  # dtypes of lengths and counts


def _assert_async(holds: Tensor, message: str) -> None:
    """An error of compiled code unless one flag holds."""
    torch.ops.aten._assert_async.msg(holds, message)


class FixedCache:
    """The code of both caches: windows, options, memory, and checks of the shapes of a chunk."""

    def __init__(self, window: Sequence[int]) -> None:
        if not len(window):
            raise ValueError(f"[{self._name}] window: expected one int per axis, got none")
        for width in window:
            if not isinstance(width, int) or isinstance(width, bool) or width < -1 or width == 0:
                raise ValueError(
                    f"[{self._name}] window: expected widths of at least 1, or -1, got {width!r}"
                )
        self.window = [*window]
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self._wrong = torch.zeros(0)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _require_sizes(self, **sizes: int) -> None:
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"[{self._name}] {name}: expected at least 1, got {size}")

    def _allocate(self, rows: tuple[int, ...], key_width: int, value_width: int, **place) -> None:
        """Zeros [*rows, channels], one tensor of keys and one of values per axis."""
        dtype = place.get("dtype") or torch.get_default_dtype()
        if dtype not in _DTYPES:
            raise TypeError(
                f"[{self._name}] dtype: expected float32, float64, bfloat16 or float16, got {dtype}"
            )
        numbers = math.prod(rows) * (key_width + value_width) * len(self.window)
        try:
            if numbers >= 2**60:
                raise RuntimeError
            self.keys = [torch.zeros(*rows, key_width, **place) for _ in self.window]
            self.values = [torch.zeros(*rows, value_width, **place) for _ in self.window]
        except RuntimeError:  # the allocator's message names no argument
            raise ValueError(
                f"[{self._name}] {self._sizes}: expected a cache that fits into memory, got "
                f"{numbers} numbers"
            ) from None
        self._wrong = torch.zeros((), dtype=torch.bool, device=self.keys[0].device)

    _sizes = "slots"  # the argument that a user makes smaller

    def check(self) -> None:
        """Raises ValueError, once, if a compiled call did what other calls refuse, as filling more
        slots than there are. Results since then mean nothing.

        On the CPU the compiled call raises RuntimeError by itself. On other devices it goes on, so
        call this when the results are read. A call that is not compiled checks, too.
        """
        if bool(self._wrong):
            self._wrong.zero_()
            raise ValueError(
                f"[{self._name}] check: expected compiled calls within the cache, got more tokens "
                "than there is room for, or numbers out of their range"
            )

    def _require_all(self, fits: Tensor, rule: str, message: Callable[[], str]) -> None:
        """Refuse a call unless all of ``fits`` holds, with the message. Compiled code cannot read
        numbers, and has the rule alone."""
        if not torch.compiler.is_compiling():
            if not bool(fits.all()):
                raise ValueError(f"[{self._name}] {message()}")
            return
        right = fits.all()
        if right.is_cpu:
            _assert_async(right, f"[{self._name}] {rule}")
        with torch.no_grad():
            self._wrong.logical_or_(~right)

    @property
    def nbytes(self) -> int:
        """Memory of the stored keys and values, in bytes."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def _options(self, options: dict) -> dict:
        own = ("causal", "window", "query_positions")
        options = taken("slots", self._name, options, "with slots", own)
        pairs = [(width, 0 if width >= 0 else -1) for width in self.window]
        return options | {"causal": True, "window": pairs}

    def _check_chunk(self, query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        if not torch.compiler.is_compiling():
            self.check()
        order = len(self.window)
        if len(keys) != order or len(values) != order:
            raise ValueError(
                f"[{self._name}] keys and values: expected {order} of each, got {len(keys)} and "
                f"{len(values)}"
            )
        if query.dim() != 4:
            raise ValueError(
                f"[{self._name}] query: expected shape [B, heads, tokens, channels], got "
                f"{[*query.shape]}"
            )
        for name, chunk, stored in (("keys", keys, self.keys), ("values", values, self.values)):
            for m, (each, kept) in enumerate(zip(chunk, stored)):
                expected = [query.size(0), kept.size(1), query.size(2), kept.size(3)]
                if [*each.shape] != expected:
                    raise ValueError(
                        f"[{self._name}] {name}[{m}]: expected shape {expected}, got "
                        f"{[*each.shape]}"
                    )
                if each.dtype != kept.dtype:
                    raise TypeError(
                        f"[{self._name}] {name}[{m}]: expected {kept.dtype}, got {each.dtype}"
                    )
                if torch.is_grad_enabled() and each.requires_grad:
                    raise ValueError(
                        f"[{self._name}] {name}[{m}]: requires a gradient, but a cache is for "
                        "inference only: call it under no_grad, or detach"
                    )

    def _require_whole(self, name: str, given: int) -> None:
        known = isinstance(given, (int, torch.SymInt)) and not isinstance(given, bool)
        if not known or given < 0:
            raise ValueError(
                f"[{self._name}] {name}: expected an integer of at least 0, got {describe(given)}"
            )

    def _require_one_each(
        self, name: str, given: Tensor, batch: int, dtypes: Sequence[torch.dtype] = WHOLE
    ) -> None:
        """One integer per sequence of the batch."""
        if given.dtype not in dtypes or [*given.shape] != [batch]:
            raise ValueError(
                f"[{self._name}] {name}: expected int64 of shape [{batch}], got {given.dtype} of "
                f"shape {[*given.shape]}"
            )

    def _require_range(self, name: str, given: Tensor, most: int | None) -> None:
        def message() -> str:
            low, high = (int(each) for each in given.aminmax())
            upper = "or more" if most is None else f"to {most}"
            return f"{name}: expected 0 {upper}, got {low if low < 0 else high}"

        fits = given >= 0 if most is None else (given >= 0) & (given <= most)
        self._require_all(fits, f"{name}: expected numbers from 0 on, within their range", message)

    def _check_counts(self, counts: Tensor | None, batch: int, tokens: int) -> None:
        if counts is not None:
            self._require_one_each("counts", counts, batch)
            self._require_range("counts", counts, tokens)


def new_places(lengths: Tensor, tokens: int, counts: Tensor | None) -> tuple[Tensor, Tensor]:
    """(position of every token of a chunk, whether it is one): [B, t] each. A token beyond an
    entry's count has the position of the entry's last one."""
    steps = torch.arange(tokens, device=lengths.device).unsqueeze(0)
    real = torch.ones_like(steps, dtype=torch.bool).expand(lengths.size(0), -1)
    if counts is not None:
        real = steps < counts.unsqueeze(1)
        steps = torch.minimum(steps, counts.unsqueeze(1) - 1)
    return lengths.unsqueeze(1) + steps, real
