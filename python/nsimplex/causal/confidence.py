"""How sure an edge is: the graph is learned again from many samples of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, checked_methods, describe
from .._choices import Resampling
from .._data_frames import DataFrame, data_frame
from .._library import operators
from .._progress import progress_calls
from .few_rows import warn_of_few_rows
from .structure import FitCall, call_arguments, fit_quietly, takes

_MOST = 100_000  # samples; frequencies are then exact to 0.002


@checked_methods
class EdgeConfidence(NamedTuple):
    """What samples of the rows say about a graph of M columns. Entry ``[i, j]`` is about i -> j."""

    adjacency: Tensor  #: float64 [M, M]: the graph of all rows
    frequencies: Tensor  #: float64 [M, M]: share of the samples whose graph has the edge i -> j
    connected: Tensor  #: float64 [M, M]: share whose graph has an edge in either direction
    ancestors: Tensor  #: float64 [M, M]: share whose graph has a directed path from i to j
    low: Tensor  #: float64 [M, M]: lower end of the interval of the weight; NaN without an edge
    high: Tensor  #: float64 [M, M]: upper end
    edges: float  #: mean number of edges per sample
    replicates: int  #: number of samples

    def to_frame(self, names: Sequence[str] = ()) -> DataFrame:
        """A data frame of pandas with a row per pair i -> j that some sample has, the most frequent
        first. Columns without ``names`` are x0, x1, .."""
        count = len(self.adjacency)
        if names and len(names) != count:
            raise ValueError(
                f"[EdgeConfidence] names: expected {count}, one per column, got {len(names)}"
            )
        own = list(names) or [f"x{column}" for column in range(count)]
        matrices = (self.adjacency, self.frequencies, self.connected, self.low, self.high)
        pairs = self.frequencies.nonzero().tolist()
        rows = [(own[i], own[j], *(each[i, j].item() for each in matrices)) for i, j in pairs]
        rows.sort(key=lambda row: -row[3])
        columns = ["cause", "effect", "weight", "frequency", "connected", "low", "high"]
        return data_frame(rows, columns)

    def stable(self, min_frequency: float = 0.9) -> Tensor:
        """The graph of all rows without the edges of a smaller frequency."""
        check_frequency("stable", min_frequency)
        return torch.where(self.frequencies >= min_frequency, self.adjacency, 0.0)

    def expected_false(self, min_frequency: float = 0.9) -> float:
        """An upper bound of the expected number of false edges of at least this frequency.

        It is q^2 / ((2 f - 1) M (M - 1)) for a frequency f above 1/2 and q edges per sample. It
        holds for ``resampling="halves"`` if false edges are exchangeable and found no more often
        than by chance. Otherwise it is a guide.

        Source: Meinshausen, Buehlmann, "Stability selection", JRSS B 2010, theorem 1.
        """
        if not 0.5 < min_frequency <= 1:
            raise ValueError(
                f"[expected_false] min_frequency: expected above 0.5, at most 1, got "
                f"{min_frequency}"
            )
        count = len(self.adjacency)
        return self.edges**2 / ((2 * min_frequency - 1) * count * (count - 1))


@dataclass(kw_only=True, eq=False, repr=False)
class _Sampling:
    replicates: int = 100
    resampling: Resampling = "halves"
    level: float = 0.95
    n_jobs: int | None = None


@dataclass(eq=False, repr=False)
class _ConfidenceCall(FitCall, _Sampling):
    """The arguments of :func:`edge_confidence`."""


@checked(operator="causal_fit")
@takes(_ConfidenceCall)
def edge_confidence(call: _ConfidenceCall) -> EdgeConfidence:
    """Learns the graph of a table and of many samples of its rows.

    An edge that most samples have does not depend on a few rows. That says nothing about errors
    that all samples share: a wrong model, an unobserved common cause, or a direction that no data
    of this kind can tell (:func:`causal_limits`).

    Args:
        table: [n, M], as in :func:`causal_fit`; n >= 4.
        replicates: number of samples, 2 or more.
        resampling: "halves" (half of the rows, without replacement, in complementary pairs) or
            "bootstrap" (n rows, with replacement).
        level: of the intervals of weights.
        n_jobs: number of samples to fit at the same time, as in joblib, which is needed unless this
            is None or 1. They run in threads, or in the backend of ``joblib.parallel_config``. The
            result does not depend on it.
        estimator to missing: as in :func:`causal_fit`.
        seed: seed of the samples and of the fits.
        progress: a bar, as in :func:`causal_fit`. A function is called with the number of samples
            that are done, and ``replicates``, after each sample. With ``n_jobs`` of several, the
            calls come together after the last sample.

    The interval of a weight belongs to the graph of all rows: the columns of each sample are
    regressed on their causes in that graph. With ``nonlinear`` or ``kinds`` it is the range of the
    weights that samples with this edge have. A column has no edges in a sample in which it is
    constant (within groups, and in rows without an intervention on it) or has too few values.

    Raises:
        ValueError, TypeError: the message names the argument.
        ModuleNotFoundError: ``n_jobs`` needs joblib.

    O(replicates) fits, and O(M^2 replicates) memory for the intervals' edges.

    Sources: Friedman, Goldszmidt, Wyner, UAI 1999; Meinshausen, Buehlmann, JRSS B 2010; Shah,
        Samworth, JRSS B 2013 (complementary pairs).
    """
    values, names, arguments = call_arguments("edge_confidence", call)
    warn_of_few_rows("[edge_confidence] table", values, names, stacklevel=4)
    fitted = fit_quietly(values, arguments)
    with progress_calls("edge_confidence", call.progress) as told:
        return confidence_of(
            values,
            fitted.adjacency,
            arguments,
            replicates=call.replicates,
            resampling=call.resampling,
            level=call.level,
            n_jobs=call.n_jobs,
            label="edge_confidence",
            progress=told,
        )


def confidence_of(
    values: Tensor,
    adjacency: Tensor,
    arguments: dict[str, Any],
    *,
    replicates: int,
    resampling: Resampling = "halves",
    level: float = 0.95,
    n_jobs: int | None = None,
    label: str,
    argument: str = "replicates",
    progress: Callable[[int, int], Any] | None = None,
) -> EdgeConfidence:
    """The confidence in a graph that was learned from these values with these arguments. The seed
    is theirs."""
    rows, count = values.shape
    if not 2 <= replicates <= _MOST:
        raise ValueError(f"[{label}] {argument}: expected 2 to {_MOST}, got {replicates}")
    check_sampling(label, resampling, n_jobs)
    if not 0 < level < 1:
        raise ValueError(f"[{label}] level: expected a number in (0, 1), got {level}")
    if rows < 4:
        raise ValueError(f"[{label}] table: expected at least 4 rows to sample from, got {rows}")
    edges = adjacency.nonzero()
    samples = _Samples(values, adjacency, arguments, resampling)
    sums = [torch.zeros(count, count, dtype=torch.float64) for _ in range(3)]
    weights = []
    for *found, own in _in_parallel(label, samples, replicates, n_jobs):
        for total, each in zip(sums, found, strict=True):
            total += each
        weights.append(own)
        if progress is not None:
            progress(len(weights), replicates)
    frequencies, connected, ancestors = (total / replicates for total in sums)
    low, high = torch.full_like(frequencies, torch.nan), torch.full_like(frequencies, torch.nan)
    if len(edges) > 0:
        ends = torch.tensor([0.5 - level / 2, 0.5 + level / 2], dtype=torch.float64)
        bounds = torch.cat(weights).nanquantile(ends, dim=0)
        low[edges[:, 0], edges[:, 1]], high[edges[:, 0], edges[:, 1]] = bounds
    mean_edges = float(sums[0].sum()) / replicates
    return EdgeConfidence(
        adjacency, frequencies, connected, ancestors, low, high, mean_edges, replicates
    )


@dataclass(frozen=True)
class _Samples:
    """The fits of samples; an object, so that joblib can send it to another process."""

    values: Tensor
    adjacency: Tensor
    arguments: dict[str, Any]
    resampling: Resampling

    def __call__(self, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Whether sample ``number`` has an edge, an edge in either direction and a path between two
        columns, and the weights [1, E] of the whole table's edges in it."""
        return operators.causal_edge_samples(
            self.values,
            **self.arguments,
            graph=self.adjacency,
            resampling=self.resampling,
            first=number,
            count=1,
        )


def check_frequency(label: str, min_frequency: float) -> None:
    """Raises a ValueError for a number outside the range of a frequency."""
    if not 0 <= min_frequency <= 1:
        raise ValueError(
            f"[{label}] min_frequency: expected a number from 0 to 1, got {describe(min_frequency)}"
        )


def check_samples(
    label: str,
    confidence: int,
    resampling: Resampling,
    min_frequency: float | None,
    n_jobs: int | None,
) -> None:
    """Raises a ValueError for options that are wrong, even if no samples are drawn."""
    check_sampling(label, resampling, n_jobs)
    if min_frequency is not None:
        if not confidence:
            raise ValueError(
                f"[{label}] min_frequency: expected a number of samples, confidence, too"
            )
        check_frequency(label, min_frequency)


def check_sampling(label: str, resampling: Resampling, n_jobs: int | None) -> None:
    """Raises a ValueError for samples that cannot be drawn."""
    if resampling not in ("halves", "bootstrap"):
        raise ValueError(
            f'[{label}] resampling: expected "halves" or "bootstrap", got {describe(resampling)}'
        )
    if n_jobs == 0:
        raise ValueError(f"[{label}] n_jobs: expected None or an integer other than 0, got 0")


def _in_parallel(label: str, call: Any, count: int, n_jobs: int | None) -> Iterable[Any]:
    """The results for 0 .. count - 1, in this order."""
    if n_jobs in (None, 1):
        return map(call, range(count))
    try:
        import joblib
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"[{label}] n_jobs: expected None or 1 without joblib, got {n_jobs} ({error})"
        ) from None
    # Fits release Python's lock, so that threads are enough and nothing is copied. This is no more
    # than a preference: a backend that the user has chosen may spread the fits over machines.
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads")
    return parallel(joblib.delayed(call)(number) for number in range(count))
