"""``nsimplex analyze attention``: the tuples of a text that a trained model attends to."""

from __future__ import annotations

import sys
from typing import Any

import torch

from .._command_channel import Channel, serve
from ..analysis.model_report import spaced
from ..nn import LanguageModel
from ..viz import TupleView, views
from ..viz.page import page_text

_QUERIES = 16  # of a page, evenly spaced


def show(request: dict[str, Any], channel: Channel) -> None:
    """Shows what the layers of a model attend to, as the options of the command say.

    Raises:
        ValueError: options that do not fit the model or the text.
    """
    given = channel.given()
    tokens, labels = given["tokens"], given["labels"]
    length, query = len(tokens), request["query"]
    if query is not None and query >= length:
        raise ValueError(f"--query: expected 0 to {length - 1}, got {query}")
    query = length - 1 if query is None else query
    queries = {query}
    if request["page"]:
        queries |= set(spaced(length, _QUERIES).tolist())
    model = LanguageModel.from_run(request["model"])
    found = views(
        model,
        torch.tensor([tokens]),
        labels=labels,
        queries=sorted(queries),
        count=request["count"],
    )
    place, view = _chosen(found, request["layer"])
    head = request["head"]
    if head >= view.heads:
        raise ValueError(f"--head: expected 0 to {view.heads - 1}, got {head}")
    if request["page"]:
        at = next(number for number, each in enumerate(found) if each is view)
        text = page_text(found, "Attention", opens=at, head=head, query=query)
        channel.file("--page", text)
    if request["svg"]:
        channel.file("--svg", view.svg(head=head, query=query))
    for keys, weight in view.rows(head=head, query=query):
        channel.line(
            "attention_tuple",
            layer=place,
            order=view.order,
            head=head,
            query=query,
            keys=list(keys),
            texts=[view.label(key) for key in keys],
            weight=weight,
        )
    channel.text(view.text(head=head, query=query))


def _chosen(found: list[TupleView], layer: int | None) -> tuple[int, TupleView]:
    """The layer of a number, and that number; by default the last layer."""
    shown = {_block(view): view for view in found}
    place = max(shown) if layer is None else layer
    if place not in shown:
        raise ValueError(
            f"--layer: expected one of {', '.join(map(str, shown))}, whose tuples have weights, "
            f"got {place}"
        )
    return place, shown[place]


def _block(view: TupleView) -> int:
    """The number of the block, from the name: blocks.3.attention."""
    return int(view.name.split(".")[1])


def main() -> int:
    """Runs the program with the options of the command and returns its exit code."""
    return serve(show, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
