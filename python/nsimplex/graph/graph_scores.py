"""Splits, negative examples, losses and metrics for learning on graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, describe
from .._hints import has_data
from .batches import TupleBatch, numbers_of
from .conversion_checks import merged_rows

__all__ = [
    "Split",
    "adjusted_rand_index",
    "average_precision",
    "hits_at",
    "mean_reciprocal_rank",
    "negative_tuples",
    "roc_auc",
    "soft_f1_loss",
    "split_rows",
]

_TRIES = 20


class Split(NamedTuple):
    """Rows for training, validation and test: int64, each row once, in ascending order."""

    training: Tensor
    validation: Tensor
    test: Tensor


@checked
def split_rows(
    rows: int | Tensor, fractions: Sequence[float] = (0.8, 0.1, 0.1), *, seed: int = 0
) -> Split:
    """A random split of rows: graphs, nodes or edges.

    Args:
        rows: how many; or their classes int64 [rows], and then each class is split by itself.
        fractions: of training, validation and test; their sum is 1.
        seed: of the draw.

    Raises:
        ValueError: fractions below 0 or with another sum.
    """
    at = "[split_rows] "
    if len(fractions) != 3:
        raise ValueError(f"{at}fractions: expected three numbers, got {list(fractions)!r:.60}")
    if min(fractions) < 0 or not abs(sum(fractions) - 1) < 1e-6:
        raise ValueError(f"{at}fractions: expected a sum of 1, got {list(fractions)!r:.60}")
    if isinstance(rows, Tensor) and (rows.dim() != 1 or rows.dtype != torch.int64 or rows.is_meta):
        raise TypeError(f"{at}rows: expected int64 [rows] or a number, got {describe(rows)}")
    if not isinstance(rows, Tensor) and (rows < 0 or rows > 2**40):
        raise ValueError(f"{at}rows: expected a number of rows, got {rows}")
    draw = torch.Generator().manual_seed(seed)
    classes = rows if isinstance(rows, Tensor) else torch.zeros(rows, dtype=torch.int64)
    parts: list[list[Tensor]] = [[], [], []]
    for name in classes.unique():
        own = (classes == name).nonzero().squeeze(1)
        own = own[torch.randperm(len(own), generator=draw)]
        first = round(fractions[0] * len(own))
        second = min(len(own), first + round(fractions[1] * len(own)))
        if not fractions[2]:
            second = len(own)
        for part, kept in zip(parts, (own[:first], own[first:second], own[second:])):
            part.append(kept)
    empty = torch.empty(0, dtype=torch.int64)
    return Split(*(torch.cat([empty, *part]).sort().values for part in parts))


@checked
def negative_tuples(batch: TupleBatch, ratio: float = 1.0, *, seed: int = 0) -> TupleBatch:
    """Tuples of distinct nodes that are not in the list: negative examples for learning.

    Every graph gets ``ratio`` times as many as it has tuples, drawn uniformly, each once, in the
    order of a batch. A graph that has nearly all tuples may get fewer.

    Args:
        batch: edges or hyperedges of one size.
        ratio: negatives per tuple.
        seed: of the draw.

    Raises:
        ValueError: a ratio that is not positive.
    """
    if not 0 < ratio < 2**20:
        raise ValueError(f"[negative_tuples] ratio: expected a positive number, got {ratio!r:.40}")
    draw, order = torch.Generator().manual_seed(seed), batch.order
    sizes = batch.node_offsets.diff()
    wanted = (batch.tuple_offsets.diff() * ratio).ceil().to(torch.int64)
    wanted = torch.where(sizes >= order, wanted, 0)
    found = torch.empty(0, order, dtype=torch.int64)
    for _ in range(_TRIES):
        have = torch.searchsorted(found[:, :1].flatten().contiguous(), batch.node_offsets).diff()
        missing = (wanted - have).clamp(min=0)
        if not int(missing.sum()):
            break
        graphs = torch.repeat_interleave(torch.arange(len(sizes)), 2 * missing)
        chance = torch.rand(len(graphs), order, generator=draw, dtype=torch.float64)
        rows = (chance * sizes[graphs][:, None]).to(torch.int64) + batch.node_offsets[graphs][
            :, None
        ]
        ascending = rows.sort(1).values
        rows = ascending if batch.symmetry == "undirected" else rows
        rows = rows[(ascending.diff(dim=1) > 0).all(1)]
        merged = merged_rows(torch.cat([batch.tuples, found, rows]), batch.num_nodes)
        found = merged.rows[merged.first >= len(batch)]  # without the tuples of the batch
        found = _at_most(found, wanted, batch.node_offsets, draw)
    offsets = torch.searchsorted(found[:, :1].flatten().contiguous(), batch.node_offsets)
    return TupleBatch(found, offsets, batch.node_offsets, batch.symmetry)


@checked
def roc_auc(scores: Tensor, truth: Tensor) -> float:
    """Area under the curve of true against false positives: the chance that a true row has a
    higher score than a false one, ties counted half.

    Args:
        scores: [rows], floating.
        truth: [rows], bool or 0 and 1.

    Returns:
        NaN if all rows are true or all are false.
    """
    scores, truth = _rows("roc_auc", scores, truth)
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not positives or not negatives:
        return float("nan")
    _, inverse, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    last = counts.cumsum(0)
    ranks = (last - (counts - 1) / 2.0)[inverse].double()
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


@checked
def average_precision(scores: Tensor, truth: Tensor) -> float:
    """Area under the curve of precision against recall (AUPR), as a sum of steps: the mean, over
    the true rows, of the precision among the rows with at least their score.

    Args:
        scores, truth: as in :func:`roc_auc`.

    Returns:
        NaN if no row is true.
    """
    scores, truth = _rows("average_precision", scores, truth)
    if not truth.any():
        return float("nan")
    _, inverse, counts = torch.unique(-scores, return_inverse=True, return_counts=True)
    hits = torch.zeros(len(counts), dtype=torch.float64).index_add(0, inverse, truth.double())
    precision = hits.cumsum(0) / counts.cumsum(0)
    return float((precision * hits).sum() / hits.sum())


@checked
def hits_at(scores: Tensor, truth: Tensor, k: int) -> float:
    """Hits@k: the share of the true rows with a higher score than the k-th best false row.

    Args:
        scores, truth: as in :func:`roc_auc`.
        k: from 1 on. With fewer false rows every true row is a hit.

    Returns:
        NaN if no row is true.

    Source: Hu et al., "Open Graph Benchmark", arXiv 2005.00687.
    """
    if k < 1:
        raise ValueError(f"[hits_at] k: expected at least 1, got {k}")
    scores, truth = _rows("hits_at", scores, truth)
    if not truth.any():
        return float("nan")
    others = scores[~truth]
    if len(others) < k:
        return 1.0
    return float((scores[truth] > others.topk(k).values[-1]).double().mean())


@checked
def mean_reciprocal_rank(scores: Tensor, truth: Tensor) -> float:
    """MRR: the mean, over the true rows, of one over their rank among the false rows. A false row
    with the same score counts half.

    Args:
        scores, truth: as in :func:`roc_auc`.

    Returns:
        NaN if no row is true.
    """
    scores, truth = _rows("mean_reciprocal_rank", scores, truth)
    if not truth.any():
        return float("nan")
    others, own = scores[~truth].sort().values, scores[truth]
    above = len(others) - torch.searchsorted(others, own, right=True)
    ties = torch.searchsorted(others, own, right=True) - torch.searchsorted(others, own)
    return float((1 / (1 + above + ties / 2)).mean())


@checked
def adjusted_rand_index(found: Tensor, truth: Tensor) -> float:
    """Agreement of two partitions: 1 if they are equal, 0 on average if they are independent.

    Args:
        found, truth: int64 [rows], the part of every row, by any numbers.

    Source: Hubert and Arabie, "Comparing partitions", Journal of Classification 2 (1985).
    """
    at = "[adjusted_rand_index] "
    for name, labels in (("found", found), ("truth", truth)):
        if labels.dtype != torch.int64 or labels.shape != found.shape or labels.dim() != 1:
            raise ValueError(
                f"{at}{name}: expected int64 {list(found.shape)}, got {describe(labels)}"
            )
    pairs = lambda counts: float((counts.double() * (counts - 1) / 2).sum())
    both = torch.unique(torch.stack([found, truth]), dim=1, return_counts=True)[1]
    own, other = (torch.unique(each, return_counts=True)[1] for each in (found, truth))
    total = len(found) * (len(found) - 1) / 2
    expected = pairs(own) * pairs(other) / total if total else 0.0
    most = (pairs(own) + pairs(other)) / 2
    return 1.0 if most == expected else (pairs(both) - expected) / (most - expected)


@checked
def soft_f1_loss(logits: Tensor, truth: Tensor) -> Tensor:
    r"""One minus the F1 score, whose counts are sums of probabilities. Differentiable.

    .. math:: 1 - \frac{2 \sum_i p_i t_i}{\sum_i p_i + \sum_i t_i}, \quad p = \mathrm{sigmoid}(x)

    Args:
        logits: [rows], floating.
        truth: [rows], bool or 0 and 1.

    Source: Serviansky et al., "Set2Graph", arXiv 2002.08772.
    """
    if logits.shape != truth.shape or not logits.is_floating_point():
        raise ValueError(
            f"[soft_f1_loss] truth: expected shape {list(logits.shape)} of floating logits, got "
            f"{list(truth.shape)}"
        )
    _require_flags("soft_f1_loss", truth)
    chance, truth = logits.sigmoid(), truth.to(logits.dtype)
    return 1 - 2 * (chance * truth).sum() / (chance.sum() + truth.sum()).clamp(min=1e-12)


def _rows(name: str, scores: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    if scores.dim() != 1 or not scores.is_floating_point() or scores.is_meta:
        raise ValueError(f"[{name}] scores: expected floating [rows], got {describe(scores)}")
    if truth.shape != scores.shape or truth.is_meta or truth.is_complex():
        raise ValueError(
            f"[{name}] truth: expected shape {list(scores.shape)}, got {describe(truth)}"
        )
    if scores.isnan().any():
        raise ValueError(f"[{name}] scores: expected numbers, got nan")
    _require_flags(name, truth)
    return scores.detach().double(), truth != 0


def _require_flags(name: str, truth: Tensor) -> None:
    """Refuses a truth of other numbers than 0 and 1, such as -1 for false or NaN for unknown, where
    its numbers can be read: compiled code and transforms do without."""
    if torch.compiler.is_compiling() or not has_data(truth) or truth.dtype == torch.bool:
        return
    wrong = truth[(truth != 0) & (truth != 1)]
    if len(wrong):
        raise ValueError(f"[{name}] truth: expected True and False or 1 and 0, got {wrong[0]}")


def _at_most(rows: Tensor, wanted: Tensor, node_offsets: Tensor, draw: torch.Generator) -> Tensor:
    """A random choice of each graph's rows, as many as wanted, in ascending order."""
    offsets = torch.searchsorted(rows[:, :1].flatten().contiguous(), node_offsets)
    graph = numbers_of(offsets)
    order = torch.argsort(graph + torch.rand(len(rows), generator=draw, dtype=torch.float64))
    place = torch.arange(len(rows)) - offsets[:-1][graph]  # graphs stay together in this order
    return rows[order[place < wanted[graph]].sort().values]
