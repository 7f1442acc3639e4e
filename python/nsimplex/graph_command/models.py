"""Models of ``nsimplex graph train``, from the options of the command."""

from __future__ import annotations

from typing import Any

from ..graph import GraphData
from ..nn.graph_baselines import MessagePassing
from ..nn.graph_models import GraphModel
from ..nn.graph_set_models import HyperSAGNN, SetToGraph
from ..nn.graph_transformer import GraphTransformer
from .records import Recipe
from .tables import Targets

_SET_MODELS = ("hyper-sagnn", "s2g", "s2g-plus")  # judge tuples by their nodes alone


def make_model(
    request: dict[str, Any], recipe: Recipe, data: GraphData, targets: Targets
) -> GraphModel:
    """A model for the columns of the data.

    Raises:
        ValueError: options that do not fit, named as those of the command.
    """
    width = lambda own: 0 if own is None or not own.is_floating_point() else own.size(1)
    of_edges = next((own for own in data.edge_features if own.size(1)), None)
    common: dict[str, Any] = dict(
        node_channels=width(data.node_features),
        edge_channels=width(of_edges),
        node_codes=recipe.node_codes,
        edge_codes=recipe.edge_codes,
        **{
            name: request[name]
            for name in ("width", "layers", "heads", "virtual_node", "random_walk", "laplacian")
        },
        dropout=request["dropout"],
    )
    _require_used(request)
    order = _order(request["order"], data, recipe)
    what: tuple[Any, ...] = (recipe.task, targets.kind, targets.outputs)
    symmetry: Any = "undirected" if recipe.task == "edge" and not recipe.directed else ""
    try:
        if request["model"] in _SET_MODELS:
            return _set_model(request, what, common, order, symmetry or "ordered")
        if request["model"] != "transformer":
            return MessagePassing(*what, kind=request["model"], **common)
        return GraphTransformer(
            *what,
            order=order,
            form=request["form"],
            readout="" if request["readout"] == "same" else request["readout"],
            symmetry=symmetry,
            global_classes=not request["local"],
            **common,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"--{str(error).partition('] ')[2].replace('_', '-')}") from None


def _require_used(request: dict[str, Any]) -> None:
    """Refuses options that the model does not have."""
    model = request["model"]
    for name, unset in (
        ("order", "data"),
        ("form", "softmax"),
        ("readout", "same"),
        ("local", False),
    ):
        models = ("transformer", "s2g", "s2g-plus") if name == "order" else ("transformer",)
        if request[name] != unset and model not in models:
            wanted = "transformer or s2g" if name == "order" else "transformer"
            raise ValueError(f"--{name}: expected --model {wanted}, got {model}")


def _set_model(
    request: dict[str, Any],
    what: tuple[Any, ...],
    common: dict[str, Any],
    order: list[int],
    symmetry: Any,
) -> GraphModel:
    """A model that judges tuples by their nodes alone."""
    name = request["model"]
    if common.pop("edge_channels") or common.pop("edge_codes"):
        raise ValueError(
            f"[] model: expected no features of edges for {name}, got some; see --ignore"
        )
    if common.pop("virtual_node"):
        raise ValueError(f"[] model: expected no --virtual-node with {name}")
    if name == "hyper-sagnn":
        del common["layers"]
        return HyperSAGNN(*what, **common)
    del common["heads"]
    sizes = [size for size in order if size > 1] or [2]
    classes: Any = "light" if name == "s2g" else "all"
    return SetToGraph(*what, classes=classes, symmetry=symmetry, query_sizes=sizes, **common)


def _order(text: str, data: GraphData, recipe: Recipe) -> list[int]:
    if text == "data":
        return sorted({*data.sizes}) or [2]
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise ValueError(f"--order: expected sizes such as 2 or 2,3, got {text!r:.40}") from None
