"""``nsimplex analyze model --page``: the report about every attention layer of a trained model."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import torch

from .._command_channel import Channel, serve
from ..analysis.layer_report import table_cells
from ..analysis.model_report import report
from ..nn import LanguageModel

_LONG = 20  # seconds of work that are announced
#: Passes of the model that a report takes: without derivatives, with them, and more per step. These
#: are measured ratios of a model with layers of orders 1 and 2.
_PASSES, _DERIVATIVES, _STEP = 8, 45, 37


def _estimate(model: LanguageModel, windows: torch.Tensor, steps: int | None) -> float:
    """Seconds that the report will take, from one pass of the model."""
    passed = 0.0
    for _ in range(2):  # the first pass also prepares
        start = time.perf_counter()
        with torch.no_grad():
            model(windows)
        passed = time.perf_counter() - start
    return passed * (_PASSES if steps is None else _DERIVATIVES + _STEP * steps)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds, -1), 10):.0f} seconds"
    return f"{seconds / 60:.0f} minutes; --skip-derivatives takes much less"


def write_page(request: dict[str, Any], channel: Channel) -> None:
    """Measures the layers of a model over windows of tokens, as the options of the command say.

    Raises:
        ValueError: a model that cannot be used.
    """
    windows = torch.tensor(channel.given())
    model = LanguageModel.from_run(request["model"])
    seconds = _estimate(model, windows, request["steps"] if request["derivatives"] else None)
    if seconds >= _LONG:
        print(f"nsimplex: the report takes about {_duration(seconds)}", file=sys.stderr, flush=True)
    made = report(
        model,
        windows,
        derivatives=request["derivatives"],
        queries=request["samples"],
        steps=request["steps"],
    )
    channel.file("--page", made.html())
    for place, layer in enumerate(made.layers):
        numbers = dataclasses.asdict(layer)
        channel.line(
            "attention_layer",
            step=request["step"],
            layer=place,
            module=numbers.pop("name"),
            module_kind=numbers.pop("kind"),
            **numbers,
        )
    channel.table(table_cells(made.layers))


def main() -> int:
    """Runs the program with the options of the command and returns its exit code."""
    return serve(write_page, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
