"""``nsimplex analyze model --page``: the report about every attention layer of a trained model."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import torch

from .._command_channel import Channel, serve
from ..analysis.model_report import report, table_cells
from ..nn import LanguageModel
from ..report.model import model_page


def write_page(request: dict[str, Any], channel: Channel) -> None:
    """Measures the layers of a model over windows of tokens, as the options of the command say.

    Raises:
        ValueError: a model that cannot be used.
    """
    windows = torch.tensor(channel.given())
    made = report(
        LanguageModel.from_run(request["model"]),
        windows,
        derivatives=request["derivatives"],
        queries=request["samples"],
        steps=request["steps"],
    )
    channel.file("--page", model_page(made))
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
