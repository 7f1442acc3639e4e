"""How sure an edge is: the graph is learned again from many samples of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, checked_methods, describe
from .._choices import Resampling
from .._data_frames import DataFrame, data_frame
from .._library import operators
from .._progress import progress_calls
from .few_rows import warn_of_few_rows
from .frames import row_labels
from .rows import row_blocks, taken_column
from .structure import FitCall, call_arguments, fit_quietly, settled, table_of, takes
from .table_warnings import warn_of_table

_MOST = 100_000  # samples; frequencies are then exact to 0.002


@checked_methods
class EdgeConfidence(NamedTuple):
    """What samples of the rows say about a graph of M columns. Entry ``[i, j]`` is about i -> j."""

    adjacency: Tensor  #: float64 [M, M]: the graph of all rows
    #: float64 [M, M]: share of the samples whose graph has the edge i -> j; an edge of open
    #: direction counts a half, and so does its reverse
    frequencies: Tensor
    connected: Tensor  #: float64 [M, M]: share whose graph has an edge in either direction
    #: float64 [M, M]: share whose graph has a directed path from i to j; one that needs an edge of
    #: open direction counts a half
    ancestors: Tensor
    low: Tensor  #: float64 [M, M]: lower end of the interval of the weight; NaN without an edge
    high: Tensor  #: float64 [M, M]: upper end
    edges: float  #: mean number of edges per sample
    replicates: int  #: number of samples
    #: per sample, int64 [k, 2], the edges of its graph; none in a file of C++
    graphs: tuple[Tensor, ...] = ()

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

    def stable(self, min_frequency: float = 0.9, *, min_connected: float = 0.0) -> Tensor:
        """The graph of all rows without the edges whose direction has a smaller frequency, or whose
        connection is found less often. ``stable(0, min_connected=0.9)`` keeps sure connections of
        open direction."""
        check_frequency("stable", min_frequency)
        check_frequency("stable", min_connected, "min_connected")
        often = (self.frequencies >= min_frequency) & (self.connected >= min_connected)
        return torch.where(often, self.adjacency, 0.0)

    def expected_false(self, min_frequency: float = 0.9, *, connections: bool = False) -> float:
        """An upper bound of the expected number of false edges among those of at least this
        frequency.

        It is q^2 / ((2 f - 1) p) for a frequency f above 1/2 and q edges per sample, and at most
        the number of these edges. p is M (M - 1) for directions, where a reversed edge is false.
        With ``connections`` the frequency is ``connected``, the edge may point either way, and p is
        M (M - 1) / 2. The bound holds for ``resampling="halves"`` if false edges are exchangeable
        and found no more often than by chance. Otherwise it is a guide.

        Source: Meinshausen, Buehlmann, "Stability selection", JRSS B 2010, theorem 1. Its proof
        needs numbers from 0 to 1 in each sample, so halves are right.
        """
        if not 0.5 < min_frequency <= 1:
            raise ValueError(
                f"[expected_false] min_frequency: expected above 0.5, at most 1, got "
                f"{min_frequency}"
            )
        count = len(self.adjacency)
        shares = self.connected.triu(1) if connections else self.frequencies
        tried = count * (count - 1) / (2 if connections else 1)
        bound = self.edges**2 / ((2 * min_frequency - 1) * tried)
        return min(bound, float((shares >= min_frequency).sum()))


@dataclass(kw_only=True, eq=False, repr=False)
class _Sampling:
    replicates: int = 100
    resampling: Resampling = "halves"
    blocks: Any = None
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
    that all samples share: a wrong model, or an unobserved common cause.

    A direction is open in a sample if an equally good graph of the same model has it the other way
    (:func:`causal_limits`). Such an edge counts a half each way, so its frequency is at most 1/2 in
    these samples, whereas ``connected`` counts it as one. Directions are told by models of curved
    effects, by noises of one variance, by interventions that set one end alone, and by constraints;
    with ``kinds`` also between columns of different kinds and between counts. If the variances of
    all columns are equal up to chance, as in a standardised table, they tell no direction.

    Args:
        table: [n, M], as in :func:`causal_fit`; n >= 4.
        replicates: number of samples, 2 or more.
        resampling: "halves" (half of the rows, without replacement, in complementary pairs) or
            "bootstrap" (n rows, with replacement).
        blocks: rows that stay together in a sample: the length of blocks of rows that follow each
            other, for time series, or the block of each row, such as a person who was measured
            several times; or the name of a column, as for ``groups``. Halves are of the blocks, and
            "bootstrap" draws as many blocks as there are.
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
    given = table_of("edge_confidence", call)
    table, blocks = taken_column("edge_confidence", "blocks", given, call.blocks)
    if isinstance(call.blocks, str) and call.blocks == call.groups:
        table = given  # groups take the column out
    labels = row_labels(table)
    values, names, arguments = call_arguments("edge_confidence", replace(call, table=table))
    rows = len(values) if values.dim() > 0 else 0
    blocks = row_blocks("edge_confidence", blocks, rows, labels)
    warn_of_few_rows("[edge_confidence] table", values, names, stacklevel=4)
    fitted = fit_quietly(values, arguments, names=names)
    arguments = settled(arguments, fitted.choices)
    place = "[edge_confidence] table"
    warn_of_table(place, values, fitted.adjacency, fitted.model, arguments, names, stacklevel=4)
    with progress_calls("edge_confidence", call.progress) as told:
        return confidence_of(
            values,
            fitted.adjacency,
            arguments,
            replicates=call.replicates,
            resampling=call.resampling,
            blocks=blocks,
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
    blocks: Sequence[int] = (),
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
    if blocks and len(set(blocks)) < 4:
        raise ValueError(
            f"[{label}] blocks: expected at least 4 to sample from, got {len(set(blocks))}"
        )
    samples = _Samples(values, adjacency, arguments, resampling, list(blocks))
    sums = [torch.zeros(count, count, dtype=torch.float64) for _ in range(3)]
    weights, graphs = [], []
    for *found, own in _in_parallel(label, samples, replicates, n_jobs):
        for total, each in zip(sums, found, strict=True):
            total += each
        weights.append(own)
        graphs.append(found[0].nonzero())
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
        adjacency,
        frequencies,
        connected,
        ancestors,
        low,
        high,
        mean_edges,
        replicates,
        tuple(graphs),
    )


@dataclass(frozen=True)
class _Samples:
    """The fits of samples; an object, so that joblib can send it to another process."""

    values: Tensor
    adjacency: Tensor
    arguments: dict[str, Any]
    resampling: Resampling
    blocks: list[int]

    def __call__(self, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """How far sample ``number`` has an edge, an edge in either direction and a path between two
        columns, 0 to 1, and the weights [1, E] of the whole table's edges in it."""
        return operators.causal_edge_samples(
            self.values,
            **self.arguments,
            graph=self.adjacency,
            resampling=self.resampling,
            first=number,
            count=1,
            blocks=self.blocks,
        )


def check_frequency(label: str, frequency: float, argument: str = "min_frequency") -> None:
    """Raises a ValueError for a number outside the range of a frequency."""
    if not 0 <= frequency <= 1:
        raise ValueError(
            f"[{label}] {argument}: expected a number from 0 to 1, got {describe(frequency)}"
        )


def check_samples(label: str, fit: Any, blocks: Any) -> None:
    """Raises a ValueError for parameters of an estimator and blocks of its fit that are wrong, even
    without samples."""
    check_sampling(label, fit.resampling, fit.n_jobs)
    given = dict(min_frequency=fit.min_frequency, blocks=blocks)
    for name, value in given.items():
        if value is not None and not fit.confidence:
            raise ValueError(f"[{label}] {name}: expected a number of samples, confidence, too")
    if fit.min_frequency is not None:
        check_frequency(label, fit.min_frequency)


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
