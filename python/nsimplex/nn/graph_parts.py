"""The rows of a split as inputs of a model of graphs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from .._arguments import describe, learned_words
from .._choices import GraphLoss, Level
from ..graph import GraphData, Split, TupleBatch
from ..graph.batches import widened
from .graph_losses import graph_loss, graph_metrics, mean_scaled_error, require_targets
from .graph_models import GraphInputs, GraphModel
from .graph_ranks import GraphRanks

#: Inputs, targets, and the rows of the answers that have them; None: all.
Batch: TypeAlias = tuple[GraphInputs, Tensor, Tensor | None]


class LossOptions(Protocol):
    """The options of a training that its loss reads."""

    @property
    def loss(self) -> GraphLoss: ...

    @property
    def class_weights(self) -> tuple[float, ...]: ...


class GraphParts:
    """The rows of a split as inputs of a model, which are prepared once. Several ranks divide every
    batch of the training among them, and take turns at the batches of the other parts."""

    def __init__(
        self,
        model: GraphModel,
        data: GraphData,
        split: Split | None,
        queries: TupleBatch | Sequence[TupleBatch] | None,
        targets: Tensor | None,
        batch_size: int,
    ) -> None:
        at = "[fit_graphs] "
        self.model, self.batch_size = model, batch_size
        self.columns: Sequence[str] = ()  # names of several columns of numbers, for their metrics
        self.ranks = GraphRanks()
        wanted: Level = "edge" if model.task == "hyperedge" else model.task
        if targets is None:
            if queries is not None:
                raise ValueError(f"{at}targets: expected one per query, got none")
            if data.level != wanted:
                raise ValueError(
                    f"{at}data: expected targets of {wanted}s, got "
                    + (f"targets of {data.level}s" if data.level else "none")
                )
            targets = data.targets
        assert targets is not None
        features = [data.node_features, *data.edge_features]
        for name, each in [("targets", targets), *(("data", own) for own in features)]:
            if each is not None and each.requires_grad:
                raise ValueError(
                    f"{at}{name}: expected numbers of the data alone, got {learned_words(each)}; "
                    "detach() gives its numbers"
                )
        self.whole = data.num_graphs == 1 and wanted != "graph"
        if queries is not None and not self.whole:
            raise ValueError(f"{at}queries: expected a single graph, got {data.num_graphs}")
        if not self.whole and data.targets is not targets:
            raise ValueError(f"{at}targets: expected those of data for {data.num_graphs} graphs")
        rows = _row_count(wanted, data, queries)
        if split is None:
            split = _masked_split(f"{at}split: ", data, wanted)
        split = _numbered(f"{at}split: ", split, rows if self.whole else data.num_graphs)
        require_apart(f"{at}split", split, "row" if self.whole else "graph")
        self.split = split
        self.data, self.targets, self.level = data, targets, wanted
        kept = torch.cat([self._target_rows(part) for part in split])
        require_targets(at, targets, model.target, rows, model.options["outputs"], kept)
        for name in ("training", "validation"):
            own = targets[self._target_rows(getattr(split, name))]
            if own.isnan().all():
                raise ValueError(
                    f"{at}targets: expected a known target in the {name} rows, got none in "
                    f"{len(own)} rows"
                )
        if self.whole:
            self.inputs = model.prepare(data, queries).to(model.target_mean.device)
            self.steps = 1
        else:
            self.steps = -(-len(split.training) // batch_size)
            self.kept = {
                name: [
                    self._batch(part, place % self.ranks.size == self.ranks.rank)
                    for place, part in enumerate(chosen.split(batch_size))
                ]
                for name, chosen in zip(Split._fields[1:], split[1:])
            }
        for said in self._missing_classes():
            warnings.warn(f"{at}targets: {said}", stacklevel=4)

    def _missing_classes(self) -> Iterator[str]:
        """What the parts lack that a model learns from, or that its best epoch is chosen by."""
        own = self.training_targets()
        if self.model.target == "classes":
            known = self.targets[self.targets >= 0].unique().tolist()
            unseen = sorted(set(known) - set(own.unique().tolist()))
            if unseen:
                yield f"no training row has the classes {unseen}"
            elif _has_one_class(own):
                yield "all training rows have one class"
        if self.model.target == "binary":
            if _has_one_class(own):
                yield "all training rows have one class"
            if _has_one_class(self._validation_targets()):
                yield (
                    "all validation rows have one class, so that there is no AUC, and the "
                    "validation loss chooses the epoch; split_rows splits each class by itself if "
                    "it gets the classes"
                )

        for name in ("training", "validation", "test"):
            own = self.targets[self._target_rows(getattr(self.split, name))]
            unknown = own.view(len(own), *own.shape[1:] or (1,)).isnan().all(0).nonzero()
            if len(own) and len(unknown):
                yield f"no {name} row has a target in the columns {unknown.flatten().tolist()}"

    def _target_rows(self, part: Tensor) -> Tensor:
        """The rows of the targets of a part of the split."""
        if self.whole or self.level == "graph":
            return part
        own = replace(self.data, targets=torch.arange(len(self.targets)))[part].targets
        assert own is not None
        return own

    def _batch(self, chosen: Tensor, prepared: bool) -> tuple[GraphInputs | None, Tensor]:
        """Graphs as inputs of the model, if this rank prepares them, and their targets."""
        own, device = self.data[chosen], self.model.target_mean.device
        assert own.targets is not None
        return self.model.prepare(own).to(device) if prepared else None, own.targets.to(device)

    def training_targets(self) -> Tensor:
        if self.whole:
            return self.targets[self.split.training]
        own = self.data[self.split.training].targets
        assert own is not None
        return own

    def _validation_targets(self) -> Tensor:
        if self.whole:
            return self.targets[self.split.validation]
        return torch.cat([own for _, own in self.kept["validation"]])

    def training(self, generator: torch.Generator) -> Iterator[Batch | None]:
        """This rank's part of every batch of an epoch; None if it has no graph."""
        if self.whole:
            rows, device = self.split.training, self.model.target_mean.device
            yield self.inputs, self.targets[rows].to(device), rows.to(device)
            return
        chosen = self.split.training
        chosen = chosen[torch.randperm(len(chosen), generator=generator)]
        for each in chosen.split(self.batch_size):
            part = each.tensor_split(self.ranks.size)[self.ranks.rank]
            inputs, wanted = self._batch(part, True) if len(part) else (None, part)
            yield None if inputs is None else (inputs, wanted, None)

    @torch.no_grad()
    def judge(self, name: str, options: LossOptions) -> tuple[dict[str, float], float]:
        """Metrics and loss of a part; neither if it is empty."""
        rows = getattr(self.split, name)
        if not len(rows):
            return {}, math.nan
        self.model.eval()
        if self.whole:
            answers, wanted = self.model(self.inputs)[rows], self.targets[rows]
        else:
            batches = self.kept[name]
            wanted = torch.cat([own for _, own in batches])
            columns = self.model.options["outputs"]
            parts = [
                self.model.target_mean.new_zeros(len(own), columns)
                if inputs is None
                else self.model(inputs)
                for inputs, own in batches
            ]
            answers = self.ranks.sum(torch.cat(parts))
        wanted = wanted.to(answers.device)
        metrics = self._metrics(self.model.values(answers).cpu(), wanted.cpu())
        scaled = self.model.scaled(wanted, answers)
        value = graph_loss(
            answers,
            scaled,
            self.model.target,
            loss=options.loss,
            class_weights=options.class_weights,
        ).item()
        *judged, value = self.ranks.of_first([*metrics.values(), value])
        return dict(zip(metrics, judged)), value

    def _metrics(self, values: Tensor, wanted: Tensor) -> dict[str, float]:
        """Metrics of predictions. Several columns of numbers may have different units, so their
        common error is in deviations of the training targets."""
        found = graph_metrics(values, wanted, self.model.target, columns=self.columns)
        if self.model.target != "number" or values.size(1) == 1:
            return found
        scale = self.model.target_scale.cpu()
        return {"scaled_mae": mean_scaled_error(values, wanted, scale)} | found


def _masked_split(at: str, data: GraphData, level: Level) -> Split:
    """The split that masks of the data name."""
    names = "train_mask", "val_mask", "test_mask"
    training, validation, test = (data.masks.get(name) for name in names)
    flat = all(data.masks[name].dim() == 1 for name in names if name in data.masks)
    single = level == "node" and data.num_graphs == 1 and flat
    if training is None or validation is None or not single:
        got = ", ".join(f"{name} {list(data.masks[name].shape)}" for name in data.masks) or "none"
        raise ValueError(
            f"{at}expected a Split, or train_mask and val_mask of the nodes of one graph, got "
            f"masks {got} of {data.num_graphs} graphs for a task on {level}s"
        )
    return Split(training, validation, torch.zeros_like(training) if test is None else test)


def _numbered(at: str, split: Split, rows: int) -> Split:
    """The split with int64 numbers of rows in place of flags and of shorter numbers."""
    parts = []
    for name, part in zip(Split._fields, split):
        part = widened(part)
        if part.dtype == torch.bool and part.shape == (rows,):
            part = part.nonzero().squeeze(1)
        if part.dtype != torch.int64 or part.dim() != 1:
            raise TypeError(
                f"{at}expected row numbers or {rows} flags of {name}, got {describe(part)}"
            )
        if len(part) and not (part.min() >= 0 and part.max() < rows):
            raise ValueError(f"{at}expected {name} rows 0 to {rows - 1}")
        if not len(part) and name != "test":
            raise ValueError(f"{at}expected {name} rows, got none")
        parts.append(part)
    return Split(*parts)


def require_apart(argument: str, split: Split, row: str) -> None:
    """Refuses a split with a row in two parts, and names the first one.

    Args:
        argument: what the message begins with.
        row: how it calls a row.
    """
    for one, other in (("training", "validation"), ("training", "test"), ("validation", "test")):
        own, others = getattr(split, one), getattr(split, other)
        shared = own[torch.isin(own, others)]
        if len(shared):
            raise ValueError(
                f"{argument}: expected each {row} in one part, got {row} {int(shared.min())} in "
                f"{one} and {other}"
            )


def _row_count(
    level: Level, data: GraphData, queries: TupleBatch | Sequence[TupleBatch] | None
) -> int:
    """How many rows the targets of a level have."""
    if queries is not None:
        return sum(len(own) for own in ([queries] if isinstance(queries, TupleBatch) else queries))
    return {"graph": data.num_graphs, "node": data.num_nodes}.get(level, data.num_edges)


def _has_one_class(targets: Tensor) -> bool:
    return targets[~targets.isnan()].unique().numel() < 2
