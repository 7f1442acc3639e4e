"""Models that score tuples of nodes from the nodes alone: baselines of hyperedge prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import ClassSet, GraphTarget, PairSymmetry, TupleTarget, TupleTask
from ..equivariant_classes import TensorKind
from ..equivariant_linear import equivariant_plan
from ..graph import GraphData, TupleBatch, complete_tuples
from .checks import require, require_name, require_whole
from .equivariant_linear_layer import EquivariantLinear
from .graph_models import GraphInputs, GraphModel, graph_rows, judged_lists, query_lists

_LOGIT_EPS = 1e-6  # keeps probabilities in float32 away from 0 and 1, which have no logit
_MOST_QUERY = 6


@checked_methods
class HyperSAGNN(GraphModel):
    r"""Hyper-SAGNN: a tuple's score says how much attention among its nodes changes them.

    With the embeddings x_1, .., x_k of the nodes of a tuple, a_p is attention of node p to the
    other nodes of the tuple, and

    .. math::
        d_p = \mathrm{LN}(a_p + \mathrm{MLP}(a_p)), \quad
        s_p = \mathrm{LN}(\mathrm{MLP}'(x_p)), \quad
        P = \frac{1}{k} \sum_p \sigma(w \cdot (\mathrm{LN}(d_p) - \mathrm{LN}(s_p))^2 + b).

    The output is the logit of P. Queries, keys and values have a norm of x each, and the MLPs are
    linear - tanh - linear. Tuples may have any number of nodes from 2 on, and their order does not
    matter. Features of edges are refused, because they would not be read.

    Args:
        task: "edge" or "hyperedge".
        target: "binary" or "labels", with an independent w and b per label.
        outputs, node_channels, node_codes, width, random_walk, laplacian: as in
            :class:`GraphTransformer`.
        heads, head_dim: of the attention.
        dropout: rate of the attention's output and within the MLPs; the authors' code has 0.3 and
            0.4.

    Raises:
        ValueError: options that do not fit, tuples of one node.

    Complexity: O(m k (width heads head_dim + k heads head_dim)) for m tuples of k nodes.

    Source: Zhang, Zou and Ma, "Hyper-SAGNN: a self-attention based graph neural network for
        hypergraphs", ICLR 2020, arXiv 1911.02613.
    """

    def __init__(
        self,
        task: TupleTask = "hyperedge",
        target: TupleTarget = "binary",
        outputs: int = 1,
        *,
        node_channels: int = 0,
        node_codes: Sequence[int] = (),
        width: int = 64,
        heads: int = 8,
        head_dim: int = 16,
        random_walk: int = 0,
        laplacian: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        at = "[HyperSAGNN] "
        require_name(at, "task", task, get_args(TupleTask))
        require_name(at, "target", target, get_args(TupleTarget))
        self._start(own)
        require_whole(at, most=2**16, heads=heads, head_dim=head_dim)
        self.heads, self.head_dim, self.dropout = heads, head_dim, dropout
        self.head = self.edge_input = nn.Identity()
        inner = heads * head_dim
        norm = lambda: nn.LayerNorm(width)
        self.query = nn.Sequential(norm(), nn.Linear(width, inner, bias=False))
        self.key = nn.Sequential(norm(), nn.Linear(width, inner, bias=False))
        self.value = nn.Sequential(norm(), nn.Linear(width, inner, bias=False))
        self.mix = nn.Linear(inner, width, bias=False)
        mlp = lambda: nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Dropout(dropout), nn.Linear(width, width)
        )
        self.dynamic, self.static = mlp(), mlp()
        self.dynamic_norm, self.static_norm = norm(), norm()
        self.left_norm, self.right_norm = norm(), norm()
        self.judge = nn.Linear(width, outputs)
        for each in (self.query, self.key, self.value):
            projection: Any = each[1]
            nn.init.normal_(projection.weight, std=math.sqrt(2 / (width + head_dim)))

    def prepare(
        self, data: Any, queries: TupleBatch | Sequence[TupleBatch] | None = None
    ) -> GraphInputs:
        """Features and tuples of a batch.

        Args:
            data: graphs or hypergraphs, or what :func:`from_pyg` takes.
            queries: the tuples to predict; None: those of data.

        Raises:
            ValueError: tuples of one node, or features that are not the model's.
        """
        data = self._graphs(data)
        _require_no_edge_features("[HyperSAGNN] ", data)
        lists = query_lists(self, data, queries)
        small = [each.order for each in lists if each.order < 2 and len(each)]
        require(not small, f"[HyperSAGNN] queries: expected at least 2 nodes, got {small}")
        asked = sorted((each for each in lists if each.order > 1), key=lambda each: each.order)
        nodes, encodings = self._node_inputs(data)
        rows = [each.tuples for each in asked]
        return GraphInputs([], [], nodes, encodings, [], rows, **graph_rows(data))

    def forward(
        self,
        data: Any,
        queries: TupleBatch | Sequence[TupleBatch] | None = None,
    ) -> Tensor:
        """Graphs, or what :meth:`prepare` made of them, to logits [rows, outputs]. Rows are in the
        order of the lists, by size."""
        inputs = self._inputs(data, queries)
        x = self.node_input(inputs.nodes) + self.encoding_input(inputs.encodings)
        none = x.new_empty(0, self.judge.out_features)
        return torch.cat([none, *(self._logits(x[tuples]) for tuples in inputs.rows)])

    def _logits(self, x: Tensor) -> Tensor:
        attended = self._attend(x)
        changed = self.dynamic_norm(attended + self.dynamic(attended))
        alone = self.static_norm(self.static(x))
        difference = self.left_norm(changed) - self.right_norm(alone)
        return self.judge(difference.square()).sigmoid().mean(1).logit(_LOGIT_EPS)

    def _attend(self, x: Tensor) -> Tensor:
        """[m, k, width] -> [m, k, width]: every node attends to the others of its tuple."""
        split = lambda own: own.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        itself = torch.eye(x.size(1), dtype=torch.bool, device=x.device)
        scores = (q @ k.transpose(2, 3)) / math.sqrt(self.head_dim)
        weights = scores.masked_fill(itself, -math.inf).softmax(-1)
        mixed = self.mix((weights @ v).transpose(1, 2).flatten(2))
        return nn.functional.dropout(mixed, self.dropout, self.training)


@checked_methods
class SetToGraph(GraphModel):
    r"""S2G and S2G+: equivariant linear layers from the nodes to the tuples that are scored.

    .. math::
        H_0 = X, \quad H_t = \mathrm{relu}(L_{1 \to 1} H_{t-1}), \quad
        Y_k = \mathrm{head}(L_{1 \to k} H_T)

    Each size k has its own layer L, and all share the head. With ``classes="light"`` this is
    S2G, whose last layer reads the nodes of a tuple alone. With "all" it is S2G+, whose last layer
    also reads the mean of the other nodes. Edges are read only by the encodings of nodes, and
    features of edges are refused.

    Args:
        task: "edge" or "hyperedge".
        classes: "light" or "all".
        target, outputs, node_channels, node_codes, width, random_walk, laplacian: as in
            :class:`GraphTransformer`.
        layers: number of layers 1 -> 1.
        symmetry: of pairs of the task "edge": "ordered" or "undirected".
        dropout: rate after every layer 1 -> 1.
        query_sizes: for hyperedges, the sizes to predict, 2 to 6.

    Raises:
        ValueError: options that do not fit, tuples of other sizes.

    Complexity: O((layers n + m) width^2) for n nodes and m tuples.

    Source: Serviansky et al., "Set2Graph: learning graphs from sets", arXiv 2002.08772.
    """

    def __init__(
        self,
        task: TupleTask = "hyperedge",
        target: GraphTarget = "binary",
        outputs: int = 1,
        *,
        classes: ClassSet = "all",
        node_channels: int = 0,
        node_codes: Sequence[int] = (),
        width: int = 64,
        layers: int = 1,
        symmetry: PairSymmetry = "ordered",
        random_walk: int = 0,
        laplacian: int = 0,
        dropout: float = 0.0,
        query_sizes: Sequence[int] = (2,),
    ) -> None:
        super().__init__()
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        at = "[SetToGraph] "
        require_name(at, "task", task, get_args(TupleTask))
        self._start(own)
        require_name(at, "classes", classes, get_args(ClassSet))
        require_name(at, "symmetry", symmetry, get_args(PairSymmetry))
        require(bool(query_sizes), f"{at}query_sizes: expected a size")
        for place, size in enumerate(query_sizes):
            require_whole(at, least=2, most=_MOST_QUERY, **{f"query_sizes[{place}]": size})
        self.query_sizes = [2] if task == "edge" else sorted(set(query_sizes))
        require(
            task == "edge" or len(self.query_sizes) == len(query_sizes),
            f"{at}query_sizes: expected each size once",
        )
        self.classes: ClassSet = classes
        self.symmetry: PairSymmetry = symmetry
        self.dropout = dropout
        self.edge_input = nn.Identity()
        self.layers = nn.ModuleList(EquivariantLinear(1, 1, width, width) for _ in range(layers))
        self.readers = nn.ModuleDict(
            {
                f"to_{size}": EquivariantLinear(1, self._kind(size), width, width, classes=classes)
                for size in self.query_sizes
            }
        )

    def _kind(self, size: int) -> TensorKind:
        if self.task == "edge":
            return TensorKind(2, self.symmetry, True)
        return TensorKind(size, "undirected", False)

    def prepare(
        self, data: Any, queries: TupleBatch | Sequence[TupleBatch] | None = None
    ) -> GraphInputs:
        """Plans and features of a batch, computed on the CPU.

        Args:
            data: graphs or hypergraphs, or what :func:`from_pyg` takes.
            queries: the tuples to predict; None: those of data.

        Raises:
            ValueError: features, sizes or symmetries that are not the model's, in one line.
        """
        data = self._graphs(data)
        _require_no_edge_features("[SetToGraph] ", data)
        nodes = complete_tuples(data.node_offsets.diff(), 1)
        kinds = {size: self._kind(size) for size in self.query_sizes}
        lists = judged_lists(self, data, queries, kinds)
        plans = [equivariant_plan(nodes, nodes).packed()]
        readouts = [
            equivariant_plan(
                nodes, lists[size], classes=self.classes, output_loops=kinds[size].loops
            ).packed()
            for size in self.query_sizes
        ]
        own, encodings = self._node_inputs(data)
        return GraphInputs(plans, readouts, own, encodings, [], [], **graph_rows(data))

    def forward(
        self,
        data: Any,
        queries: TupleBatch | Sequence[TupleBatch] | None = None,
    ) -> Tensor:
        """Graphs, or what :meth:`prepare` made of them, to [rows, outputs]. Rows are in the order
        of the lists, by size."""
        inputs = self._inputs(data, queries)
        h = self.node_input(inputs.nodes) + self.encoding_input(inputs.encodings)
        for layer in self.layers:
            h = torch.relu(layer(h, inputs.plans[0]))
            h = nn.functional.dropout(h, self.dropout, self.training)
        readers = self.readers.values()
        return self.head(torch.cat([own(h, plan) for own, plan in zip(readers, inputs.readouts)]))


def _require_no_edge_features(at: str, data: GraphData) -> None:
    """Refuses features of edges, which models of nodes alone would not read."""
    for own in data.edge_features:
        require(
            not own.size(1),
            f"{at}edge_features: expected none, because the model reads nodes alone, got "
            f"{own.dtype} {list(own.shape)}",
        )
