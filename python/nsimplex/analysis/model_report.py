"""A report about every attention layer of a model, from one pass over a batch."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._arguments import checked, checked_methods
from .._whole_file import require_kind, whole_file
from .ascent import Ascent, NoGradient
from .attention_calls import AttentionCall
from .call_recorder import RecordedCall, run_recorded
from .layer_bounds import has_plain_weights, layer_lipschitz_bound
from .layer_report import LayerReport, table_cells
from .lipschitz import jacobian_norm
from .sensitivity import inf_rms, sensitivity, sensitivity_bounds, sharpness, sharpness_bounds
from .smoothing import composite_norm, effective_rank, mean_cosine, mean_residual

__all__ = ["ModelReport", "report"]

#: Tuples of the queries and heads whose sensitivity and sharpness are measured.
_MOST_TUPLES = 2**15


@checked_methods
@dataclass(frozen=True)
class ModelReport:
    """The result of :func:`nsimplex.analysis.report`."""

    model: str  #: class of the model
    layers: list[LayerReport]
    forward_seconds: float  #: the recorded pass
    seconds: float  #: everything
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """The time of the report over that of the recorded forward pass."""
        return self.seconds / max(self.forward_seconds, 1e-9)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per layer, with the fields of :class:`LayerReport`."""
        return [asdict(layer) for layer in self.layers]

    def table(self) -> str:
        """The layers as a table of text."""
        rows = table_cells(self.layers)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def html(self) -> str:
        """The report as one HTML page without a network. It needs matplotlib."""
        from ..report.model_page import model_page

        return model_page(
            self.model,
            self.layers,
            seconds=self.seconds,
            forward_seconds=self.forward_seconds,
            cost=self.cost,
            settings=self.settings,
        )

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the HTML page and returns its path. A failure leaves an earlier file as it was."""
        require_kind(path, ".html")
        target, page = Path(path), self.html()
        with whole_file(target, encoding="utf-8", errors="replace") as file:
            file.write(page)
        return target

    def __str__(self) -> str:
        return self.table()


@checked
@torch.inference_mode(False)
def report(
    model: nn.Module,
    batch: Tensor | Mapping | Sequence,
    *,
    derivatives: bool = True,
    queries: int = 32,
    steps: int = 6,
) -> ModelReport:
    r"""Measures every attention layer of a model while it reads a batch.

    Hooks find the layers, so any ``torch.nn.Module`` will do. A layer is recorded if it calls
    :func:`nsimplex.attention` (our modules), ``scaled_dot_product_attention``,
    ``torch.nn.MultiheadAttention``, or a softmax between two products of matrices (the eager
    attention of Transformers and of most own code). Layers of chosen tuples,
    one softmax per face, or weights that are not a softmax over the keys have only the metrics of
    their tokens and |J|. The model runs in evaluation mode and is not changed.

    For X the tokens [T, C] before a layer, after it and after its block:

    .. math::
        \mathrm{ratio} = \frac{\|X - 1 \bar x^T\|_{1,\infty}}{\|X\|_{1,\infty}}, \qquad
        \mathrm{rank} = \exp\Bigl(-\sum_i p_i \log p_i\Bigr), \quad
        p = \mathrm{sv}(X) / \textstyle\sum \mathrm{sv}(X)

    Args:
        model: called as ``model(batch)``, ``model(*batch)`` for a tuple or list, or
            ``model(**batch)`` for a mapping.
        batch: floating or integer inputs. Its entries are independent of each other.
        derivatives: whether to measure |J|, sensitivity and sharpness, which cost most of the time.
        queries: number of queries, evenly spaced, whose weights are measured: entropy and sinks.
        steps: steps of each power iteration. Derivatives are lower bounds that grow with it.

    Returns:
        A :class:`ModelReport`. ``print`` shows its table, ``save`` writes its page.

    If tokens of a layer hold NaN or infinity, a warning names it.

    Raises:
        ValueError: the model calls no attention, queries < 1 or steps < 1.
        TypeError: an argument of another type.

    Complexity: without derivatives the cost is one forward pass, three forward passes of the
        attention operators for the sampled queries of the first entry, and the singular values of
        the tokens. |J| adds about 12 passes of each attention layer per step. Sensitivity and
        sharpness take as many queries of the first entry as have at most 2^15 tuples in all heads
        (at least one), for each of 2N + 1 inputs and (2N + 1)(N + 1) pairs of inputs.
        ``ModelReport.cost`` is the measured cost, as a multiple of the forward pass. Memory: the
        inputs and outputs of all attention layers, as when gradients are recorded.

    Sources: the functions of :mod:`nsimplex.analysis` that have the same names; for the bounds,
        "How Smoothing is N-simplicial Attention?", Theorem 3.7, and Cesista, "Sensitivity and
        Sharpness of n-Simplicial Attention", Claims 9 and 10.

    Example:
        >>> layer = nsimplex.nn.SimplicialAttention(16, heads=2, causal=True)
        >>> made = report(layer, torch.randn(2, 12, 16))
        >>> made.layers[0].order, made.layers[0].jacobian <= made.layers[0].lipschitz_bound
        (2, True)
    """
    for name, value in (("queries", queries), ("steps", steps)):
        if value < 1:
            raise ValueError(f"[report] {name}: expected 1 or more, got {value}")
    if not isinstance(model, nn.Module):
        raise TypeError(f"[report] model: expected a torch.nn.Module, got {type(model).__name__}")
    start = time.perf_counter()
    recorder = run_recorded(model, batch, "report")
    forward = time.perf_counter() - start
    for call in recorder.calls:
        if call.before is not None and call.before.numel() == 0:
            raise ValueError(
                f"[report] batch: expected entries and tokens, got {list(call.before.shape)} at "
                f"the layer {call.name or '(model)'}"
            )
    _warn_of_nan(recorder.calls)
    options = Ascent(steps=steps, tolerance=0.0)
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        layers = []
        for call in recorder.calls:
            with torch.random.fork_rng(), torch.compiler.set_stance("force_eager"):
                torch.manual_seed(0)  # directions that derivatives start from
                layers.append(measure(call, queries, options if derivatives else None))
    finally:
        for module, was in training.items():
            module.training = was
    seconds = time.perf_counter() - start
    settings = dict(derivatives=derivatives, queries=queries, steps=steps)
    return ModelReport(type(model).__name__, layers, forward, seconds, settings)


def _warn_of_nan(calls: Sequence[RecordedCall]) -> None:
    """Names the first layer whose numbers are missing because its tokens are no numbers."""
    for call in calls:
        for place, tokens in (("before", call.before), ("after", call.after)):
            if tokens is not None and not bool(tokens.isfinite().all()):
                warnings.warn(
                    f"[report] tokens {place} the layer {call.name or '(model)'} hold NaN or "
                    "infinity: what cannot be measured is left out",
                    stacklevel=4,
                )
                return


def measure(record: RecordedCall, queries: int, derivatives: Ascent | None) -> LayerReport:
    """All numbers of one recorded call."""
    found: dict[str, Any] = {}
    for place, tokens in (
        ("before", record.before),
        ("after", record.after),
        ("block", record.block_after),
    ):
        if tokens is not None:
            found |= {f"{name}_{place}": x for name, x in smoothing_of(tokens).items()}
    known = {each.name for each in fields(LayerReport)}
    found = {name: value for name, value in found.items() if name in known}
    if record.before is not None:
        found["radius"] = _number(record.before.float().norm(dim=-1).max())
    call = None if record.call is None else record.call.entry(0)
    if call is not None and _complete(call):
        found |= weights_of(call, queries)
    if derivatives is not None:
        found |= _jacobian(record, derivatives, found.get("radius"))
        if call is not None and _complete(call):
            found |= operator_derivatives(call, derivatives)
    return LayerReport(
        name=record.name,
        kind=type(record.module).__name__,
        order=record.order,
        heads=record.heads,
        tokens=0 if record.before is None else record.before.size(-2),
        block=record.block,
        **found,
    )


def smoothing_of(tokens: Tensor) -> dict[str, float | None]:
    """ratio, rank and cosine of tokens [B, T, C], means over the entries."""
    rows = tokens.detach().to("cpu", torch.float64)
    return dict(
        ratio=_number((composite_norm(mean_residual(rows)) / composite_norm(rows)).mean()),
        rank=_number(effective_rank(rows).mean()),
        cosine=_number(mean_cosine(rows).mean()),
    )


def _number(value: Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _complete(call: AttentionCall) -> bool:
    return call.query.size(2) > 0 and all(key.size(2) > 0 for key in call.keys)


def spaced(count: int, most: int, device: torch.device | None = None) -> Tensor:
    """Up to `most` indices of 0 .. count - 1, evenly spaced, with the last one."""
    if count <= most:
        return torch.arange(count, device=device)
    places = torch.linspace(0, count - 1, most + 1, device=device)[1:]
    return places.round().long().unique()


@torch.no_grad()
def weights_of(call: AttentionCall, queries: int) -> dict[str, Any]:
    """Entropy and sinks of the weights of some queries of a call of one entry."""
    call = call.rows(spaced(call.query.size(2), queries, call.query.device))
    found: dict[str, Any] = {}
    if call.options.get("normalizer", "softmax") == "softmax":
        entropy, uniform = call.entropy()
        share = torch.where(uniform > 1e-6, entropy / uniform, torch.nan)
        found["entropy"] = _number(share.nanmean())
    masses = [call.marginals(axis).float().mean((0, 1, 2)) for axis in range(call.order)]
    sinks = [(float(mass.max()), int(mass.argmax())) for mass in masses if mass.numel()]
    if sinks and all(math.isfinite(mass) for mass, _ in sinks):
        found["sink_mass"], found["sink_key"] = max(sinks)
    return found


def _jacobian(record: RecordedCall, options: Ascent, radius: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if radius is not None:
        found["lipschitz_bound"] = layer_lipschitz_bound(record, radius)
    if record.before is None or record.after is None:
        return found
    with suppress(NoGradient):  # a layer that computes without gradients has no |J|
        value = jacobian_norm(record.again, record.before.detach(), options).value
        found["jacobian"] = _number(value.max())
    return found


def operator_derivatives(call: AttentionCall, options: Ascent) -> dict[str, Any]:
    """Sensitivity and sharpness of a call of one entry at its q, k and v, for some queries."""
    tuples = call.query.size(1) * math.prod(key.size(2) for key in call.keys)
    count = max(1, _MOST_TUPLES // max(tuples, 1))
    call = call.rows(spaced(call.query.size(2), count, call.query.device)).double()
    inputs = [call.query, *call.keys, *call.values]
    order = call.order

    def function(query: Tensor, *rest: Tensor) -> Tensor:
        return call.run(query, list(rest[:order]), list(rest[order:]))[0]

    found: dict[str, Any] = dict(
        sensitivity=_number(sensitivity(function, inputs, options=options).value.max()),
        sharpness=_number(sharpness(function, inputs, options=options).value.max()),
    )
    if has_plain_weights(call):
        rms = [float(inf_rms(x)) for x in inputs]
        sizes = (order, call.query.size(-1), call.values[0].size(-1), call.scale, rms)
        if all(each > 0 for each in rms):
            found["sensitivity_bound"] = max(sensitivity_bounds(*sizes))
            found["sharpness_bound"] = max(sharpness_bounds(*sizes))
    return found
