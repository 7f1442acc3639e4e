"""Seconds per training step of several models, measured by turns in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

__all__ = ["EACH", "ROUNDS", "by_turns", "ratios"]

#: Rounds of a measurement, and the steps that a model takes before the next one has its turn.
ROUNDS, EACH = 15, 2


def by_turns(
    steps: Sequence[Callable[[], None]],
    rounds: int = ROUNDS,
    each: int = EACH,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds per call of every function, a number per round.

    All functions are called in every round, so that what else the processor does meets them
    alike. Every other round goes backwards. Two calls of each before the first round do not count.
    """
    for step in steps:
        step()
        step()
    found: list[list[float]] = [[] for _ in steps]
    for turn in range(rounds):
        order = range(len(steps)) if turn % 2 == 0 else reversed(range(len(steps)))
        for place in order:
            started = clock()
            for _ in range(each):
                steps[place]()
            found[place].append((clock() - started) / each)
    return found


def ratios(times: Sequence[Sequence[float]]) -> list[float]:
    """Seconds of every function relative to the first one: the median over rounds of the ratio
    within a round."""
    first = times[0]
    return [statistics.median(own / one for own, one in zip(each, first)) for each in times]
