"""Losses and metrics of models of graphs, by the kind of target."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from .._arguments import checked, describe
from .._choices import GraphLoss, GraphTarget
from ..graph import average_precision, roc_auc, soft_f1_loss

__all__ = ["graph_loss", "graph_metrics"]

#: The metric that stops the training, and whether more of it is better.
JUDGE = {
    "number": ("mae", False),
    "binary": ("auc", True),
    "classes": ("accuracy", True),
    "labels": ("auc", True),
}


#: Losses other than the default, and the kinds of targets that have them.
_LOSSES = {"squared": ("number",), "soft_f1": ("binary", "labels")}


def require_loss(at: str, loss: str, target: str) -> None:
    """Refuses a loss that there is not, or not for this kind of target."""
    if loss and loss not in _LOSSES:
        raise ValueError(f'{at}loss: expected "", squared or soft_f1, got {loss!r:.40}')
    if loss and target not in _LOSSES[loss]:
        raise ValueError(
            f"{at}loss: expected a target of kind {' or '.join(_LOSSES[loss])} for {loss}, got "
            f"{target}"
        )


def judge_of(at: str, metric: str, target: str, columns: int) -> tuple[str, bool]:
    """The metric that chooses the best epoch, and whether more of it is better.

    Args:
        metric: "": the usual one of the kind of target; "loss": the validation loss.
        columns: outputs of the model. Several of numbers have one usual metric, scaled_mae.
    """
    usual, more = JUDGE[target]
    if target == "number":
        names: tuple[str, ...] = ("mae", "rmse") if columns == 1 else ("scaled_mae",)
        usual = names[0]
    else:
        names = ("accuracy",) if target == "classes" else ("auc", "aupr", "accuracy", "f1")
    if metric not in ("", "loss", *names):
        raise ValueError(
            f"{at}metric: expected {', '.join(names)} or loss of a {target} target, got "
            f"{metric!r:.40}"
        )
    return metric or usual, more and metric != "loss"


def require_class_weights(
    at: str, class_weights: Sequence[float], loss: str, target: str, outputs: int
) -> None:
    """Refuses weights that are not those of the classes, or of the value 1 in each column."""
    if not len(class_weights):
        return
    at = f"{at}class_weights: "
    if target == "number" or loss == "soft_f1":
        got = "a number target" if target == "number" else "the loss soft_f1"
        raise ValueError(f"{at}expected classes, binary targets or labels, got {got}")
    if len(class_weights) != outputs:
        of = "class" if target == "classes" else "column"
        raise ValueError(f"{at}expected one per {of}, {outputs}, got {len(class_weights)}")
    for place, weight in enumerate(class_weights):
        if not 0 < weight < math.inf:
            raise ValueError(f"{at}expected numbers above 0, got {weight} in place {place}")


def require_targets(
    at: str, targets: Tensor, target: str, rows: int, outputs: int, kept: Tensor | None = None
) -> None:
    """Refuses targets that do not fit their kind, and names the first row that does not.

    Args:
        rows, outputs: how many rows and outputs the targets belong to.
        kept: numbers of the rows that need a class; None: all. In others a number below 0 is an
            unknown class.

    Raises:
        TypeError: another dtype.
        ValueError: another shape, classes outside 0 to outputs - 1, numbers that are infinite or
            beyond float32, others than 0, 1 and NaN in a binary target or labels.
    """
    at = f"{at}targets: "
    if target == "classes":
        if targets.dtype != torch.int64:
            raise TypeError(f"{at}expected int64 of classes, got {targets.dtype}")
        if targets.shape != (rows,):
            raise ValueError(f"{at}expected a class per row, [{rows}], got {list(targets.shape)}")
        unknown = targets < 0
        if kept is not None:
            needed = torch.zeros_like(unknown)
            needed[kept] = True
            unknown &= needed
        bad = unknown | (targets >= outputs)
        wanted = f"classes 0 to {outputs - 1}"
    else:
        if targets.is_complex() or (target == "number" and targets.dtype == torch.bool):
            raise TypeError(f"{at}expected real numbers, got {targets.dtype}")
        if targets.dim() == 0 or len(targets) != rows or targets.numel() != rows * outputs:
            raise ValueError(f"{at}expected shape [{rows}, {outputs}], got {list(targets.shape)}")
        targets = targets.reshape(rows, outputs).double()
        if target == "number":
            bad = (targets.abs() > torch.finfo(torch.float32).max).any(1)
            wanted = "finite numbers of float32, or NaN"
        else:
            bad = ~((targets == 0) | (targets == 1) | targets.isnan()).all(1)
            wanted = f"0, 1 or NaN of a {target} target"
    first = bad.nonzero()
    if len(first):
        row = int(first[0])
        raise ValueError(f"{at}expected {wanted}, got {targets[row].tolist()} in row {row}")


@checked
def graph_loss(
    answers: Tensor,
    targets: Tensor,
    target: GraphTarget,
    *,
    loss: GraphLoss = "",
    class_weights: Sequence[float] = (),
) -> Tensor:
    """The mean loss over the rows whose targets are known.

    Args:
        answers: [rows, outputs] of a model: numbers or logits.
        targets: [rows, outputs] or [rows], where NaN is unknown; int64 [rows] of classes.
        target: "number": L1; "binary" and "labels": binary cross-entropy; "classes":
            cross-entropy.
        loss: "": the one above; "squared" for numbers; "soft_f1" for binary targets and labels.
        class_weights: factors of the loss of a row: one per class, or one per column of binary
            targets and labels, for rows with the value 1. (): 1. The mean stays one over rows.

    Raises:
        ValueError: shapes, names or targets that do not fit, such as infinite ones.
        TypeError: targets of another dtype.
    """
    at = "[graph_loss] "
    if target not in JUDGE:
        raise ValueError(f"{at}target: expected one of {', '.join(JUDGE)}, got {target!r:.40}")
    require_loss(at, loss, target)
    if answers.dim() != 2 or not answers.is_floating_point():
        raise ValueError(
            f"{at}answers: expected floating [rows, outputs], got {list(answers.shape)}"
        )
    require_targets(at, targets, target, len(answers), answers.size(1))
    require_class_weights(at, class_weights, loss, target, answers.size(1))
    weights = answers.new_tensor(class_weights) if len(class_weights) else None
    if target == "classes":
        losses = F.cross_entropy(answers, targets, weight=weights, reduction="none")
        return losses.mean() if len(targets) else answers.sum() * 0
    wanted = targets.reshape_as(answers).to(answers.dtype)
    known = ~wanted.isnan()
    own, wanted = answers[known], wanted[known]
    if not len(own):
        return answers.sum() * 0
    if target == "number":
        return F.mse_loss(own, wanted) if loss == "squared" else F.l1_loss(own, wanted)
    if loss == "soft_f1":
        return soft_f1_loss(own, wanted)
    ones = None if weights is None else weights.expand_as(answers)[known]
    return F.binary_cross_entropy_with_logits(own, wanted, pos_weight=ones)


def mean_and_scale(targets: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the deviation of every column of the known targets; 1 for a constant column."""
    rows = targets.reshape(len(targets), -1).double()
    known = ~rows.isnan()
    count = known.sum(0).clamp(min=1)
    mean = torch.where(known, rows, 0).sum(0) / count
    spread = (torch.where(known, rows - mean, 0).square().sum(0) / count).sqrt()
    return mean, torch.where(spread > 0, spread, 1)


def mean_scaled_error(values: Tensor, targets: Tensor, scale: Tensor) -> float:
    """The mean over the columns of the mean absolute error in units of ``scale``, over the rows
    whose targets are known. It compares columns of different units."""
    errors = (values - targets.reshape_as(values)).double() / scale.double()
    return float(errors.abs().nanmean(0).nanmean())


def _errors(errors: Tensor, names: Sequence[str]) -> dict[str, float]:
    """The mean absolute error of every column, then the root of the mean square one. NaN is
    unknown."""
    means = {"mae": errors.abs().nanmean(0), "rmse": errors.square().nanmean(0).sqrt()}
    return {
        metric + name: value
        for metric, own in means.items()
        for name, value in zip(names, own.tolist())
    }


def known_targets(targets: Tensor) -> int:
    """The number of targets over which :func:`graph_loss` is a mean."""
    if not targets.is_floating_point():
        return targets.numel()
    return int(targets.isnan().logical_not().sum())


@checked
def graph_metrics(
    values: Tensor, targets: Tensor, target: GraphTarget, *, columns: Sequence[str] = ()
) -> dict[str, float]:
    """Metrics of predictions, over the rows whose targets are known.

    Args:
        values: [rows, outputs] of ``predict()``: numbers or probabilities.
        targets, target: as in :func:`graph_loss`.
        columns: names of several columns of numbers; (): their numbers from 0.

    Returns:
        "mae" and "rmse" of numbers; of several columns "mae NAME" and "rmse NAME" of each, because
        columns may have different units, and NaN if no row of a column is known. "auc", "aupr",
        "accuracy" and "f1" of binary targets, and of labels their means over the labels that have
        both values; "accuracy" of classes. If all rows of a binary target have one value, "auc" and
        "aupr" are NaN, and "f1" if it is 0.

    Raises:
        ValueError: shapes, names or targets that do not fit.
        TypeError: targets of another dtype.
    """
    at = "[graph_metrics] "
    several = target == "number" and values.size(-1) > 1
    if columns and not (several and len(columns) == values.size(-1)):
        expected = f"{values.size(-1)} names" if several else "none"
        raise ValueError(f"{at}columns: expected {expected}, got {len(columns)}")
    if target not in JUDGE:
        raise ValueError(f"{at}target: expected one of {', '.join(JUDGE)}, got {target!r:.40}")
    if values.dim() != 2 or not values.is_floating_point():
        raise ValueError(f"{at}values: expected floating [rows, outputs], got {describe(values)}")
    require_targets(at, targets, target, len(values), values.size(1))
    if target == "classes":
        right = values.argmax(1) == targets
        return {"accuracy": float(right.double().mean()) if len(right) else float("nan")}
    wanted = targets.reshape_as(values).double()
    if target == "number":
        errors = values.double() - wanted
        ends = [f" {name}" for name in columns or range(values.size(1))]
        return _errors(errors, ends if len(ends) > 1 else [""])
    found: list[list[float]] = []
    for own, truth in zip(values.t(), wanted.t()):
        known = ~truth.isnan()
        own, truth = own[known], truth[known] != 0
        both = bool(truth.any()) and not bool(truth.all())
        if both or (target == "binary" and len(own)):
            said = own > 0.5
            f1 = 2 * float((said & truth).sum()) / max(int(said.sum() + truth.sum()), 1)
            accuracy = float((said == truth).double().mean())
            areas = [roc_auc(own, truth), average_precision(own, truth)] if both else [math.nan] * 2
            found.append([*areas, accuracy, f1 if bool(truth.any()) else math.nan])
    names = "auc", "aupr", "accuracy", "f1"
    means = torch.tensor(found or [[float("nan")] * 4]).mean(0).tolist()
    return dict(zip(names, means))
