"""A fit that tells how far it is, and that Ctrl-C ends with the best graph so far."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._library import operators

#: Seconds between two calls of ``progress``.
_PERIOD = 0.1
# Places in the tensor that is shared with the operator.
_DONE = 0
_ALL = 1
_ASKED_TO_END = 2
_ENDED_EARLY = 3


def run_watched(
    values: Tensor, arguments: dict[str, Any], progress: Callable[[int, int], Any] | None
) -> tuple[tuple[Any, ...], bool, BaseException | None]:
    """Calls the operator that fits a graph. Returns its answer, whether it ended early with the
    best graph so far, and what ended it: KeyboardInterrupt, or what ``progress`` raised.

    The operator runs in a thread, because Python delivers Ctrl-C to the main thread alone, and only
    between two of its own steps.
    """
    watch = torch.zeros(4, dtype=torch.int64)
    answer: list[tuple[Any, ...]] = []
    failed: list[BaseException] = []
    # Ctrl-C in Thread.join makes Python 3.11 take the thread for finished.
    finished = threading.Event()

    def fit() -> None:
        try:
            answer.append(operators.causal_fit_rows(values, **arguments, watch=watch))
        except BaseException as error:  # raised again by the caller's thread
            failed.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=fit, name="causal_fit", daemon=True)
    reason: BaseException | None = None
    try:
        thread.start()
        done = False
        while not done:
            done = finished.wait(_PERIOD)
            if progress is not None:
                progress(*_steps(watch))
    except BaseException as error:
        reason = error
        watch[_ASKED_TO_END] = 1
        finished.wait()
    if answer:
        return answer[0], bool(watch[_ENDED_EARLY]), reason
    if reason is not None:
        raise reason
    raise failed[0]


def _steps(watch: Tensor) -> tuple[int, int]:
    return int(watch[_DONE]), int(watch[_ALL])
