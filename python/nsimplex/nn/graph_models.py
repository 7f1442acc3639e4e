"""What all models of graphs share: how features enter, what they predict, and their file."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from .._arguments import describe
from .._choices import Directions, GraphTarget, GraphTask
from .._printable import printable
from .._pytree import TensorRecord, tensor_record
from .._safetensors import Safetensors, write_safetensors
from ..equivariant_classes import TensorKind
from ..graph import GraphData, TupleBatch, node_degrees
from ..graph.batches import numbers_of
from ..graph.frameworks import graphs_of
from ..graph.liftings import (
    _all_pairs,
    with_laplacian_encodings,
    with_random_walk_encodings,
)
from .checks import require, require_name, require_whole
from .graph_features import FeatureEmbedding, implied_options
from .saved_model import SavedModel, load_weights

MODEL_FILE, _FORMAT = "model.safetensors", "nsimplex graph model 2"


@tensor_record(
    "plans", "readouts", "nodes", "encodings", "edges", "rows", "graph_of_nodes", "graphs"
)
@dataclass(frozen=True)
class GraphInputs(TensorRecord):
    """A batch as models of graphs take it: plans, and features in the order of rows. ``prepare()``
    of the model makes it, on the CPU. It is a pytree, and compiled models take it."""

    plans: list  #: one per size of tuples
    readouts: list
    nodes: Tensor  #: features or codes of nodes [n, d]
    encodings: Tensor  #: [n, columns], degrees and positions
    edges: list[Tensor]  #: features or codes per size [m, d]
    rows: list[Tensor]  #: int64 tables of rows that the model needs
    graph_of_nodes: Tensor  #: int64 [n]
    graphs: Tensor  #: [B, 0]


class GraphModel(nn.Module):
    """Base of models of graphs. A model has the options of its constructor in ``options``."""

    blocks: Any  #: a ModuleList of layers, each a ModuleDict
    edge_input: Any  #: a FeatureEmbedding, or Identity in models without features of edges
    head: nn.Module
    target_mean: Tensor  #: [outputs], of numbers in the training
    target_scale: Tensor
    options: dict[str, Any]
    task: GraphTask
    target: GraphTarget

    def _start(self, options: dict[str, Any]) -> None:
        """Checks the options that all models share, and makes the input layers. Options that the
        model does not have are those of a model without features of edges."""
        at = f"[{type(self).__name__}] "
        self.options = {
            name: list(value) if isinstance(value, (tuple, list)) else value
            for name, value in options.items()
        }
        defaults: dict[str, Any] = {"layers": 1, "edge_channels": 0, "edge_codes": ()}
        options = defaults | options
        require_name(at, "task", options["task"], get_args(GraphTask))
        require_name(at, "target", options["target"], get_args(GraphTarget))
        most = {"layers": 1000, "outputs": 2**20, "width": 2**16}
        for name, number in most.items():
            require_whole(at, most=number, **{name: options[name]})
        for name in ("node_channels", "edge_channels", "random_walk", "laplacian"):
            require_whole(at, least=0, most=2**20, **{name: options[name]})
        for name in ("node", "edge"):
            codes = options[f"{name}_codes"]
            if not isinstance(codes, (list, tuple)):
                raise TypeError(f"{at}{name}_codes: expected a list, got {describe(codes)}")
            for place, count in enumerate(codes):
                require_whole(at, most=2**28, **{f"{name}_codes[{place}]": count})
            require(
                not (codes and options[f"{name}_channels"]),
                f"{at}{name}_codes: expected numbers or codes, got both",
            )
        if not 0 <= options["dropout"] < 1:
            raise ValueError(f"{at}dropout: expected in [0, 1), got {options['dropout']}")
        if options["target"] == "binary" and options["outputs"] != 1:
            raise ValueError(
                f"{at}outputs: expected 1 of a binary target, got {options['outputs']}"
            )
        width = options["width"]
        self.task, self.target = options["task"], options["target"]
        self.random_walk, self.laplacian = options["random_walk"], options["laplacian"]
        self.node_input = FeatureEmbedding(options["node_channels"], options["node_codes"], width)
        self.edge_input = FeatureEmbedding(options["edge_channels"], options["edge_codes"], width)
        self.encoding_input = nn.Linear(1 + self.random_walk + self.laplacian, width)
        self.head = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, options["outputs"]),
        )
        self.register_buffer("target_mean", torch.zeros(options["outputs"]))
        self.register_buffer("target_scale", torch.ones(options["outputs"]))

    def _node_inputs(self, data: GraphData) -> tuple[Tensor, Tensor]:
        """Features and encodings of the nodes: log(1 + degree), random walks, the Laplacian."""
        at = f"[{type(self).__name__}] "
        nodes = self.node_input.check(at, "node_features", data.node_features, data.num_nodes)
        bare = GraphData(data.edges, data.node_offsets)
        parts = [node_degrees(_all_pairs(bare)).float().log1p()[:, None]]
        if self.random_walk:
            walks = with_random_walk_encodings(bare, self.random_walk).node_features
            assert walks is not None
            parts.append(walks)
        if self.laplacian:
            places = with_laplacian_encodings(bare, self.laplacian).node_features
            assert places is not None
            parts.append(places)
        dtype = self.encoding_input.weight.dtype
        nodes = nodes.to(dtype) if nodes.is_floating_point() else nodes
        return nodes, torch.cat(parts, 1).to(dtype)

    @classmethod
    def for_data(
        cls, data: Any, task: GraphTask, target: GraphTarget | None = None, **options: Any
    ) -> Any:
        """A model with the channels, codes, sizes of edges, symmetry and outputs of the data.

        Whole numbers among features are codes, one more than the largest code of each column. Whole
        numbers among targets are classes. Flags, and numbers that are all 0, 1 or NaN, are "binary"
        in one column and "labels" in several. Other targets are numbers.

        Args:
            data: graphs, or what :func:`from_pyg` takes.
            task: what the outputs belong to.
            target: the kind of the targets; None: as above. Data without targets need it.
            **options: others of the constructor. They count before those of the data.

        Raises:
            ValueError: data without targets of the task; codes below 0 or from 10,000 on.

        Example:
            >>> MessagePassing.for_data(data, "graph", kind="gin").options["node_channels"]
            4
        """
        at = f"[{cls.__name__}] "
        require_name(at, "task", task, get_args(GraphTask))
        own = graphs_of(f"{at}data: ", data, _directions(options))
        known = set(inspect.signature(cls.__init__).parameters)
        given = {name: value for name, value in options.items() if value is not None}
        if target and "outputs" in given:
            found = implied_options(at, replace(own, targets=None, level=""), task, "binary", known)
            found["target"] = target
        else:
            found = implied_options(at, own, task, target, known)
        for of in ("node", "edge"):
            if {f"{of}_channels", f"{of}_codes"} & given.keys():
                found = {name: value for name, value in found.items() if name[:5] != f"{of}_"}
        return cls(task=task, **found | options)

    def prepare(
        self, data: Any, queries: TupleBatch | Sequence[TupleBatch] | None = None
    ) -> GraphInputs:
        raise NotImplementedError

    @property
    def directions(self) -> Directions:
        """How the model reads edges that are listed in both directions, as :func:`from_pyg` takes
        it."""
        return _directions(self.options)

    def _graphs(self, data: Any) -> GraphData:
        return graphs_of(f"[{type(self).__name__}] data: ", data, self.directions)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draws the random features of a model anew, if it has any."""

    def _inputs(self, data: Any, queries: Any) -> GraphInputs:
        if isinstance(data, GraphInputs):
            return data
        return self.prepare(data, queries).to(self.target_mean.device)

    def values(self, answers: Tensor) -> Tensor:
        """Answers of the model as predictions: numbers in the unit of the targets, probabilities
        of true or of labels [rows, outputs], probabilities of classes."""
        if self.target == "number":
            return answers * self.target_scale + self.target_mean
        return answers.softmax(-1) if self.target == "classes" else answers.sigmoid()

    def scaled(self, targets: Tensor, answers: Tensor) -> Tensor:
        """Targets in the unit of the outputs: numbers by their deviation, others as they are."""
        if self.target != "number":
            return targets
        return (targets.reshape_as(answers) - self.target_mean) / self.target_scale

    @torch.no_grad()
    def predict(
        self,
        data: Any,
        queries: TupleBatch | Sequence[TupleBatch] | None = None,
    ) -> Tensor:
        """Predictions [rows, outputs] for graphs, nodes, edges or hyperedges, without dropout. They
        are numbers in the unit of the targets, or probabilities.

        Args:
            data: graphs, what :func:`from_pyg` takes, or what :meth:`prepare` made of them.
            queries: the tuples to predict, for tasks on edges and hyperedges; None: those of
                data.
        """
        training = self.training
        self.eval()
        try:
            return self.values(self(data, queries))
        finally:
            self.train(training)

    def save(self, folder: str | os.PathLike[str], *, data: dict[str, Any] | None = None) -> None:
        """Writes ``model.safetensors`` with weights and options into a folder, which is made if it
        is not there.

        Args:
            folder: the run folder.
            data: how the data of the model are read, as JSON; ``nsimplex graph train`` gives it.

        Raises:
            OSError: nothing can be written there.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {"class": type(self).__name__, "options": self.options}
        if data is not None:
            state["data"] = data
        metadata = {"format": _FORMAT, "state": json.dumps(state, sort_keys=True)}
        weights = {name: own.detach().cpu() for name, own in self.state_dict().items()}
        write_safetensors(place / MODEL_FILE, weights, metadata)

    @classmethod
    def from_run(cls, path: str | os.PathLike[str]) -> Any:
        """The model of a run folder or of a model.safetensors, in evaluation mode.

        Raises:
            ValueError: "cannot read PATH: WHY", or "cannot use PATH: WHY" for weights that are not
                finite, in one line.
        """
        file, state = read_state(path)
        name, options = state["class"], state["options"]
        if name != cls.__name__:
            file.fail(f"it holds a {printable(str(name))[:40]}, not a {cls.__name__}")
        known = set(inspect.signature(cls.__init__).parameters) - {"self"}
        for option in options:
            if option not in known:
                file.fail(f"its option {printable(option)[:40]} is not known to this version")
        if missing := known - options.keys():
            file.fail(f"its option {min(missing)} is missing")
        weights = {name: file.tensor(name) for name in file.names}
        require_depth(file, options, len(weights))
        try:
            with torch.device("meta"):  # the options may state any size
                model = cls(**options)
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            why = str(error).partition("\n")[0]
            raise ValueError(f"cannot read {printable(file.path)}: {why}") from None
        load_weights(model, SavedModel(file.path, {}, weights, 0, None), None)
        return model.eval()


def _directions(options: dict[str, Any]) -> Directions:
    """How a model with these options reads edges that are listed in both directions."""
    return "undirected" if options.get("symmetry") == "undirected" else "given"


def read_state(path: str | os.PathLike[str]) -> tuple[Safetensors, dict[str, Any]]:
    """The file of a model, from a run folder or by itself, and its state: the class, the options,
    and how data are read if the command trained it.

    Raises:
        ValueError: "cannot read PATH: WHY", in one line.
    """
    place = Path(path)
    file = Safetensors(place / MODEL_FILE if place.is_dir() else place)
    if file.metadata.get("format") != _FORMAT:
        file.fail("not a model of graphs of nsimplex")
    if not file.checked:
        file.fail("damaged: its checksums are missing")
    try:
        state = json.loads(file.metadata["state"])
        if isinstance(state["options"], dict) and isinstance(state["class"], str):
            return file, state
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    file.fail("the header's state is damaged")


def require_depth(file: Safetensors, options: dict[str, Any], tensors: int) -> None:
    """Refuses more layers, or longer lists, than the tensors of a file could belong to: a model is
    built from its options before they are compared with the weights."""
    for name, value in options.items():
        parts = len(value) if isinstance(value, (list, str)) else value if name == "layers" else 0
        if isinstance(parts, int) and parts > max(tensors, 64):
            file.fail(f"its option {name} does not belong to its weights")


def mean_over_graphs(x: Tensor, inputs: GraphInputs) -> Tensor:
    """The mean of the nodes of every graph: [n, D] -> [B, D]; 0 for a graph without nodes."""
    graphs = inputs.graphs.size(0)
    total = x.new_zeros(graphs, x.size(1)).index_add(0, inputs.graph_of_nodes, x)
    count = x.new_zeros(graphs).index_add(0, inputs.graph_of_nodes, x.new_ones(x.size(0)))
    return total / count.clamp(min=1)[:, None]


def query_lists(
    model: GraphModel, data: GraphData, queries: TupleBatch | Sequence[TupleBatch] | None
) -> list[TupleBatch]:
    """The lists of tuples to predict."""
    at = f"[{type(model).__name__}] "
    if queries is None:
        return data.edges
    lists = [queries] if isinstance(queries, TupleBatch) else list(queries)
    for each in lists:
        if not isinstance(each, TupleBatch):
            raise TypeError(f"{at}queries: expected lists of tuples, got {describe(each)}")
        if not torch.equal(each.node_offsets, data.node_offsets):
            raise ValueError(f"{at}queries: expected the nodes of data, got other node_offsets")
    return lists


def judged_lists(
    model: GraphModel,
    data: GraphData,
    queries: TupleBatch | Sequence[TupleBatch] | None,
    kinds: dict[int, TensorKind],
) -> dict[int, TupleBatch]:
    """The tuples to predict, a list for every size of the model; empty lists if there are none.

    Raises:
        ValueError: sizes or symmetries that are not those of ``kinds``, or two lists of one size.
    """
    at = f"[{type(model).__name__}] "
    found: dict[int, TupleBatch] = {}
    for each in query_lists(model, data, queries):
        if not len(each) and (each.order not in kinds or each.order in found):
            continue
        require(
            each.order in kinds,
            f"{at}queries: expected sizes {[*kinds]}, got {each.order}",
        )
        wanted = kinds[each.order].symmetry
        if each.symmetry != wanted and each.order > 1:
            raise ValueError(
                f"{at}queries: expected {wanted} tuples of size {each.order}, got "
                f"{each.symmetry} ones"
            )
        require(
            not len(found.get(each.order, ())),
            f"{at}queries: expected one list of size {each.order}, got two",
        )
        found[each.order] = each
    for size, kind in kinds.items():
        if size not in found:
            found[size] = TupleBatch(
                torch.empty(0, size, dtype=torch.int64),
                torch.zeros_like(data.node_offsets),
                data.node_offsets,
                kind.symmetry,
            )
    return found


def graph_rows(data: GraphData) -> dict[str, Tensor]:
    return {"graph_of_nodes": numbers_of(data.node_offsets), "graphs": torch.empty(len(data), 0)}
