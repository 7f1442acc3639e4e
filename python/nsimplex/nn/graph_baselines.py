"""Message passing on graphs: the ordinary models that higher-order transformers are compared
with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import GraphKernel, GraphTarget, PairTask
from ..graph import TupleBatch
from .checks import require, require_name, require_whole
from .graph_models import GraphInputs, GraphModel, graph_rows, mean_over_graphs, query_lists


@checked_methods
class MessagePassing(GraphModel):
    r"""A graph neural network that predicts something of graphs, nodes or pairs of nodes.

    With the embeddings x_i of nodes, e_ij of edges, and the neighbours j of i that have an edge
    (j, i), a layer computes y_i, and x_i + dropout(relu(norm(y_i))) is its result.

    - gcn: :math:`y_i = \sum_{j \in N(i) \cup i} W (x_j + e_{ji}) / \sqrt{d_j d_i}`, where d counts
      the loop.
    - gin: :math:`y_i = \mathrm{MLP}((1 + \epsilon) x_i + \sum_j \mathrm{relu}(x_j + e_{ji}))`,
      which is GINE, and GIN with features of edges left out.
    - gat: :math:`y_i = \sum_{j \in N(i) \cup i} \alpha_{ji} W x_j`, with a softmax per head over j
      of :math:`\mathrm{leakyrelu}(a \cdot [W x_j, W x_i, W_e e_{ji}])`.

    Graphs are read out as the mean of their nodes, and pairs as the product of their two nodes.

    Args:
        task, target, outputs, node_channels, edge_channels, node_codes, edge_codes, width, layers,
        heads, virtual_node, random_walk, laplacian, dropout: as in :class:`GraphTransformer`.
            Features of edges are for pairs in both directions.
        kind: "gcn", "gin" or "gat".

    Raises:
        ValueError: options that do not fit, hyperedges.

    Complexity: O(m width + n width^2) per layer.

    Sources: Kipf and Welling, arXiv 1609.02907; Xu et al., arXiv 1810.00826; Hu et al., arXiv
        1905.12265 (GINE); Velickovic et al., arXiv 1710.10903.
    """

    def __init__(
        self,
        task: PairTask = "graph",
        target: GraphTarget = "number",
        outputs: int = 1,
        *,
        kind: GraphKernel = "gcn",
        node_channels: int = 0,
        edge_channels: int = 0,
        node_codes: Sequence[int] = (),
        edge_codes: Sequence[int] = (),
        width: int = 64,
        layers: int = 3,
        heads: int = 4,
        virtual_node: bool = False,
        random_walk: int = 0,
        laplacian: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        at = "[MessagePassing] "
        require_name(at, "task", task, get_args(PairTask))
        self._start(own)
        require_name(at, "kind", kind, get_args(GraphKernel))
        require_whole(at, heads=heads)
        require(
            width % heads == 0 or kind != "gat",
            f"{at}heads: expected a divisor of width {width}, got {heads}",
        )
        self.kind, self.heads, self.dropout = kind, heads, dropout
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            block = nn.ModuleDict({"norm": nn.LayerNorm(width), "edge": nn.Linear(width, width)})
            if kind == "gin":
                block["mlp"] = nn.Sequential(
                    nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
                )
            else:
                block["linear"] = nn.Linear(width, width)
            if kind == "gat":
                block["score"] = nn.Linear(3 * (width // heads), 1, bias=False)
            if virtual_node:
                block["virtual"] = nn.Sequential(
                    nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
                )
            self.blocks.append(block)
        self.epsilon = nn.Parameter(torch.zeros(layers)) if kind == "gin" else None
        self.virtual_start = nn.Parameter(torch.zeros(width)) if virtual_node else None

    def prepare(
        self, data: Any, queries: TupleBatch | Sequence[TupleBatch] | None = None
    ) -> GraphInputs:
        """Features and edges of a batch. Undirected pairs become both directions.

        Args:
            data: graphs, or what :func:`from_pyg` takes.
            queries: the pairs to predict, for the task on edges; None: those of data.

        Raises:
            ValueError: hyperedges of other sizes than 2, or features that are not the model's.
        """
        at, data = "[MessagePassing] ", self._graphs(data)
        others = [each.order for each in data.edges if each.order != 2 and len(each)]
        require(not others, f"{at}data: expected edges of size 2, got sizes {others}")
        pairs = [place for place, each in enumerate(data.edges) if each.order == 2]
        index, own = torch.empty(2, 0, dtype=torch.int64), None
        if pairs:
            batch = data.edges[pairs[0]]
            index = batch.tuples.t()
            own = data.edge_features[pairs[0]] if data.edge_features else None
            if batch.symmetry == "undirected":
                proper = index[0] != index[1]
                own = None if own is None else torch.cat([own, own[proper]])
                index = torch.cat([index, index[:, proper].flip(0)], 1)
        if own is not None or index.size(1):
            own = self.edge_input.check(at, "edge_features", own, index.size(1))
        else:
            own = self.edge_input.none()
        rows = [index[0].contiguous(), index[1].contiguous()]
        if self.task == "edge":
            asked = [each for each in query_lists(self, data, queries) if each.order == 2]
            require(len(asked) == 1, f"{at}queries: expected one list of pairs")
            rows += [asked[0].tuples[:, 0].contiguous(), asked[0].tuples[:, 1].contiguous()]
        else:
            require(queries is None, f"{at}queries: expected none for a task on {self.task}s")
        nodes, encodings = self._node_inputs(data)
        own = own if not own.is_floating_point() else own.to(encodings.dtype)
        return GraphInputs([], [], nodes, encodings, [own], rows, **graph_rows(data))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Does nothing: the model has no random features."""

    def forward(
        self,
        data: Any,
        queries: TupleBatch | Sequence[TupleBatch] | None = None,
    ) -> Tensor:
        """Graphs, or what :meth:`prepare` made of them, to [rows, outputs]."""
        inputs = self._inputs(data, queries)
        h = self.node_input(inputs.nodes) + self.encoding_input(inputs.encodings)
        shared = self._shared(h, inputs)
        virtual = None
        if self.virtual_start is not None:
            virtual = self.virtual_start.expand(inputs.graphs.size(0), -1)
        for number, block in enumerate(self.blocks):
            if virtual is not None:
                h = h + virtual[inputs.graph_of_nodes]
            moved = self._layer(number, block, h, shared)
            moved = torch.relu(block["norm"](moved))
            h = h + nn.functional.dropout(moved, self.dropout, self.training)
            if virtual is not None:
                virtual = virtual + block["virtual"](virtual + mean_over_graphs(h, inputs))
        if self.task == "graph":
            h = mean_over_graphs(h, inputs)
        elif self.task == "edge":
            h = h.index_select(0, inputs.rows[2]) * h.index_select(0, inputs.rows[3])
        return self.head(h)

    def _shared(self, h: Tensor, inputs: GraphInputs) -> _Shared:
        """What all layers need of the edges. Those of gcn add e_ji up before a product."""
        source, target = inputs.rows[:2]
        edges = inputs.edges[0]
        if self.kind != "gcn":
            return _Shared(source, target, edges)
        degree = h.new_ones(h.size(0)).index_add(0, target, h.new_ones(target.size(0)))
        root = degree.rsqrt()[:, None]
        share = root.index_select(0, source)
        mass = _sums(share, target, root)
        if self.edge_input.constant is None:
            sums = _sums(self.edge_input(edges) * share, target, h)
        else:
            sums = mass * self.edge_input.constant
        return _Shared(source, target, edges, root, sums, mass)

    def _layer(self, number: int, block: Any, h: Tensor, of: _Shared) -> Tensor:
        if self.kind == "gcn":
            assert of.root is not None and of.sums is not None and of.mass is not None
            moved = h * of.root
            sums = _sums(moved.index_select(0, of.source), of.target, h) + moved
            edges = nn.functional.linear(of.sums, block["edge"].weight)
            sums = sums + edges + of.mass * block["edge"].bias
            return block["linear"](sums * of.root)
        edges = self.edge_input.through(block["edge"], of.edges)
        if self.epsilon is None:
            return self._attend(block, h, edges, of)
        if self.edge_input.constant is not None:  # one row is added to nodes, which are fewer
            sent = torch.relu(h + edges).index_select(0, of.source)
        else:
            sent = torch.relu(h.index_select(0, of.source) + edges)
        return block["mlp"]((1 + self.epsilon[number]) * h + _sums(sent, of.target, h))

    def _attend(self, block: Any, h: Tensor, edges: Tensor, of: _Shared) -> Tensor:
        """Attention among the neighbours. A score is a sum of a number per sender, receiver and
        edge. The loops are apart, because they have no features."""
        nodes, width = h.size(0), h.size(1) // self.heads
        moved = block["linear"](h)
        values = moved.view(nodes, self.heads, width)
        sender, receiver, of_edge = block["score"].weight.view(3, width)
        sent, own = values @ sender, values @ receiver
        loop = nn.functional.leaky_relu(sent + own, 0.2)
        each = sent.index_select(0, of.source) + own.index_select(0, of.target)
        each = each + edges.view(-1, self.heads, width) @ of_edge
        each = nn.functional.leaky_relu(each, 0.2)
        index = of.target[:, None].expand_as(each)
        most = loop.detach().scatter_reduce(0, index, each.detach(), "amax")
        weight, own_weight = (each - most.index_select(0, of.target)).exp(), (loop - most).exp()
        total = own_weight + _sums(weight, of.target, most)
        sums = weight[..., None] * moved.index_select(0, of.source).view(-1, self.heads, width)
        out = own_weight[..., None] * values + _sums(sums.flatten(1), of.target, h).view_as(values)
        return (out / total[..., None]).reshape_as(h)


class _Shared(NamedTuple):
    """Edges as all layers of a model read them."""

    source: Tensor  # int64 [m]
    target: Tensor
    edges: Tensor  # features or codes [m, d]
    root: Tensor | None = None  # [n, 1], of gcn: 1 / sqrt(degree)
    sums: Tensor | None = None  # [n, width]: sums of the embeddings of edges, by root of the sender
    mass: Tensor | None = None  # [n, 1]: sums of root of the senders


def _sums(rows: Tensor, target: Tensor, like: Tensor) -> Tensor:
    """The sums of the rows with the same target."""
    index = target[:, None].expand_as(rows)
    return torch.zeros_like(like, dtype=rows.dtype).scatter_add(0, index, rows)
