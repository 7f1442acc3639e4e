"""Higher-order transformers of graphs and hypergraphs as whole models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import torch
from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import (
    EquivariantForm,
    GraphTarget,
    GraphTask,
    ReadOut,
    Symmetry,
    TupleSymmetry,
)
from ..equivariant_classes import TensorKind
from ..equivariant_encoder_plan import EquivariantEncoderPlan, equivariant_encoder_plan
from ..graph import (
    GraphData,
    TupleBatch,
    all_orders,
    complete_tuples,
    derived_features,
    with_loops,
)
from .checks import require, require_name, require_whole
from .equivariant_encoder import EquivariantEncoder, RandomFeatures
from .graph_cost import Use, say_cost
from .graph_models import GraphInputs, GraphModel, graph_rows, judged_lists, mean_over_graphs

_MOST_LOOPS = 3  # largest size whose tuples have loops and attend to each other
_MOST_SIZE = 5  # the classes of 6 -> 1 have keys of order 5, which are too many classes of 6 -> 5
_MOST_QUERY = 6


@checked_methods
class GraphTransformer(GraphModel):
    """A higher-order transformer that predicts something of graphs, nodes, edges or hyperedges.

    Nodes have embeddings that the tuples of all sizes share. For sizes up to 3, every layer is an
    encoder k -> k over the edges of this size and the loops (i, .., i), which carry the embeddings
    of nodes. The new embeddings are the means of the loops of all sizes. For sizes 4 and 5, a layer
    is an encoder from nodes to hyperedges, and one back. Size 1 is the set of all nodes, each
    attending to each. Read-outs are encoders to the graph, to the nodes or to the queried tuples,
    whose results are added, and a small network.

    Args:
        task: "graph", "node", "edge" or "hyperedge": what the outputs belong to.
        target: "number"; "binary", one logit; "classes", a logit per class; "labels", independent
            logits.
        outputs: numbers per row.
        order: the size of edges, at most 5, or a list of sizes.
        node_channels, edge_channels: columns of floating features; 0: none, and features
            in the data are an error.
        node_codes, edge_codes: number of codes in each column of int64 features, in place of
            channels.
        width: channels of all layers.
        layers: number of layers.
        heads: a divisor of width.
        form: "softmax", "kernel" or "decoupled", of the layers.
        readout: the same of the read-outs; "": that of the layers. The kernel models of the paper's
            Table 6 read out with "softmax".
        symmetry: "ordered" or "undirected": how tuples of sizes 2 and 3 are represented. Undirected
            edges are taken in all orders if "ordered". "": pairs ordered, and sets of three
            undirected, for these have 31 classes and ordered triples 203.
        skip: identity connections around attention.
        virtual_node: whether each graph has a vector that all its nodes read and write between
            layers.
        global_classes: whether tuples attend to tuples with which they share no node. Read-outs to
            graphs always do.
        random_walk, laplacian: numbers of encodings that :meth:`prepare` computes.
        dropout: rate in the layers.
        query_sizes: for hyperedges, the sizes to predict, at most 6; (): those of ``order``.

    Raises:
        ValueError: options that do not fit.

    Example:
        >>> model = GraphTransformer("graph", node_channels=4, edge_channels=2, width=16)
        >>> model(data).shape  # two graphs
        torch.Size([2, 1])

    Source: Kim, Oh and Hong, arXiv 2110.14416, section 5 and appendix A.2.
    """

    def __init__(
        self,
        task: GraphTask = "graph",
        target: GraphTarget = "number",
        outputs: int = 1,
        *,
        order: int | Sequence[int] = 2,
        node_channels: int = 0,
        edge_channels: int = 0,
        node_codes: Sequence[int] = (),
        edge_codes: Sequence[int] = (),
        width: int = 64,
        layers: int = 3,
        heads: int = 4,
        form: EquivariantForm = "softmax",
        readout: ReadOut = "",
        symmetry: TupleSymmetry = "",
        skip: bool = True,
        virtual_node: bool = False,
        global_classes: bool = True,
        random_walk: int = 0,
        laplacian: int = 0,
        dropout: float = 0.0,
        query_sizes: Sequence[int] = (),
    ) -> None:
        super().__init__()
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        at = "[GraphTransformer] "
        require_whole(at, heads=heads)
        require_whole(at, width=width)
        require(width % heads == 0, f"{at}heads: expected a divisor of width {width}, got {heads}")
        self._start(own)
        sizes = [order] if isinstance(order, int) else list(order)
        for name, numbers in (("order", sizes), ("query_sizes", list(query_sizes))):
            most = _MOST_SIZE if name == "order" else _MOST_QUERY
            require_whole(at, most=most, **{f"{name}[{i}]": n for i, n in enumerate(numbers)})
            require(len(set(numbers)) == len(numbers), f"{at}{name}: expected each size once")
        require(bool(sizes), f"{at}order: expected a size of edges")
        require_name(at, "form", form, get_args(EquivariantForm))
        require_name(at, "readout", readout, get_args(ReadOut))
        require_name(at, "symmetry", symmetry, get_args(TupleSymmetry))
        self.sizes = sorted(sizes)
        self.symmetry = symmetry
        self.form, self.readout = form, readout or form
        self.global_classes = global_classes
        self.query_sizes = sorted(query_sizes) or (
            [2] if task == "edge" else [size for size in self.sizes if size > 1] or [2]
        )
        head_dim = width // heads
        shared = None if form == self.readout == "softmax" else RandomFeatures(head_dim)
        self.features = shared

        def encoder(
            source: TensorKind, target: TensorKind, of: EquivariantForm, residual: bool = False
        ) -> EquivariantEncoder:
            features = None if of == "softmax" else shared
            return EquivariantEncoder(
                source,
                target,
                width,
                width,
                form=of,
                features=features,
                residual=residual,
                heads=heads,
                dropout=dropout,
                global_classes=global_classes or not target.order,
            )

        nodes = TensorKind(1)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            block = nn.ModuleDict()
            for size in self.sizes:
                kind = self._kind(size)
                if size <= _MOST_LOOPS:
                    block[f"tuples_{size}"] = encoder(kind, kind, form, skip)
                else:
                    block[f"to_{size}"] = encoder(nodes, kind, form)
                    block[f"from_{size}"] = encoder(kind, nodes, form)
            if virtual_node:
                block["virtual"] = nn.Sequential(
                    nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)
                )
                block["spread"] = nn.Linear(width, width)
            self.blocks.append(block)
        self.virtual_start = nn.Parameter(torch.zeros(width)) if virtual_node else None
        self.readers: Any = nn.ModuleDict()
        for source in self._sources():
            for size in self._targets():
                kinds = self._kind(source), self._target_kind(size)
                self.readers[f"from_{source}_to_{size}"] = encoder(*kinds, self.readout)

    def _symmetry(self, size: int) -> Symmetry:
        ordered = self.symmetry == "ordered" or (not self.symmetry and size == 2)
        return "ordered" if ordered else "undirected"

    def _kind(self, size: int) -> TensorKind:
        if size == 1:
            return TensorKind(1)
        if size <= _MOST_LOOPS:
            return TensorKind(size, self._symmetry(size), True)
        return TensorKind(size, "undirected", False)

    def _target_kind(self, size: int) -> TensorKind:
        if size < 2:
            return TensorKind(size)
        if self.task == "edge":
            return TensorKind(2, self._symmetry(2), True)
        return TensorKind(size, "undirected", False)

    def _sources(self) -> list[int]:
        """The lists that are read out: tuples with loops, or all nodes."""
        if self.task == "hyperedge" or self.sizes[-1] > _MOST_LOOPS:
            return [1]
        return self.sizes

    def _targets(self) -> list[int]:
        return {"graph": [0], "node": [1]}.get(self.task, self.query_sizes)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draws the random features anew; the training loop does so before every step."""
        if self.features is not None:
            self.features.redraw(generator)

    def prepare(
        self, data: Any, queries: TupleBatch | Sequence[TupleBatch] | None = None
    ) -> GraphInputs:
        """Plans and features of a batch, computed on the CPU. A DataLoader can do so beforehand.

        Args:
            data: graphs with edges of the model's sizes, or what :func:`from_pyg` takes.
            queries: the tuples to predict, for tasks on edges and hyperedges; None: those of
                data.

        Raises:
            ValueError: features, sizes or symmetries that are not the model's.

        A warning has the cost of a step that takes seconds or more.
        """
        at, data = "[GraphTransformer] ", self._graphs(data)
        for each in data.edges:
            require(
                each.order in self.sizes or not len(each) or self.sizes == [1],
                f"{at}data: expected edges of sizes {self.sizes}, got size {each.order}",
            )
        nodes = complete_tuples(data.node_offsets.diff(), 1)
        lists, features, rows = {1: nodes}, [], []
        for size in (each for each in self.sizes if each > 1):
            batch, own = self._list(data, size)
            if size <= _MOST_LOOPS:
                made = with_loops(batch)
                batch, numbers = made.batch, torch.arange(len(made.batch))
                loop = (batch.tuples == batch.tuples[:, :1]).all(1)
                edge = made.origin >= 0
                own = own[made.origin[edge]]
                rows += [numbers[loop], numbers[edge]]
            lists[size] = batch
            features.append(own if not own.is_floating_point() else own.to(self.target_mean.dtype))
        outputs = self._output_lists(data, nodes, queries)
        say_cost(self._uses(lists, outputs), sum(len(lists[size]) for size in self.sizes))
        plans: list[EquivariantEncoderPlan] = []
        for size in self.sizes:
            if size <= _MOST_LOOPS:
                plans.append(self._plan(lists[size], lists[size], self.form))
            else:
                plans.append(self._plan(nodes, lists[size], self.form))
                plans.append(self._plan(lists[size], nodes, self.form))
        readouts = [
            self._plan(lists[source], outputs[size], self.readout)
            for source in self._sources()
            for size in self._targets()
        ]
        own, encodings = self._node_inputs(data)
        return GraphInputs(plans, readouts, own, encodings, features, rows, **graph_rows(data))

    def _uses(self, lists: dict[int, TupleBatch], outputs: dict[int, TupleBatch]) -> Iterator[Use]:
        """The encoders with the numbers of the tuples that they read and write."""
        pairs = lambda a, b: int(a.tuple_offsets.diff().dot(b.tuple_offsets.diff()))
        use = lambda encoder, a, b: (encoder, len(a), len(b), pairs(a, b))
        for name, encoder in (own for block in self.blocks for own in block.items()):
            way, _, size = name.rpartition("_")
            ends = {"tuples": (size, size), "to": (1, size), "from": (size, 1)}.get(way)
            if ends is not None:
                yield use(encoder, lists[int(ends[0])], lists[int(ends[1])])
        for source in self._sources():
            for size in self._targets():
                yield use(self.readers[f"from_{source}_to_{size}"], lists[source], outputs[size])

    def _list(self, data: GraphData, size: int) -> tuple[TupleBatch, Tensor]:
        """The tuples of a size and their features, in the model's symmetry."""
        at = "[GraphTransformer] "
        place = data.sizes.index(size) if size in data.sizes else None
        symmetry = self._kind(size).symmetry
        if place is None:
            empty = torch.empty(0, size, dtype=torch.int64)
            batch = TupleBatch(
                empty, torch.zeros_like(data.node_offsets), data.node_offsets, symmetry
            )
            return batch, self.edge_input.none()
        batch = data.edges[place]
        own = data.edge_features[place] if data.edge_features else None
        own = self.edge_input.check(at, "edge_features", own, len(batch))
        if batch.symmetry == symmetry:
            return batch, own
        if batch.symmetry != "undirected":
            raise ValueError(
                f'{at}data: expected undirected edges of size {size}, as directions="undirected" '
                "gives them, got ordered ones"
            )
        made = all_orders(batch)
        if not own.is_floating_point():
            return made.batch, own[made.origin]
        empty = own.new_empty(len(made.batch), 0)
        return made.batch, derived_features(own, made.origin) if own.size(1) else empty

    def _output_lists(
        self, data: GraphData, nodes: TupleBatch, queries: TupleBatch | Sequence[TupleBatch] | None
    ) -> dict[int, TupleBatch]:
        at = "[GraphTransformer] "
        if self.task in ("graph", "node"):
            require(queries is None, f"{at}queries: expected none for a task on {self.task}s")
            if self.task == "node":
                return {1: nodes}
            return {0: complete_tuples(data.node_offsets.diff(), 0)}
        kinds = {size: self._target_kind(size) for size in self.query_sizes}
        return judged_lists(self, data, queries, kinds)

    def _plan(self, source: TupleBatch, target: TupleBatch, form: str) -> EquivariantEncoderPlan:
        loops = lambda batch: (
            batch.order < 2
            or batch.symmetry == "ordered"
            or (batch.order <= _MOST_LOOPS and not (self.task == "hyperedge" and batch is target))
        )
        same = source is target
        return equivariant_encoder_plan(
            source,
            target,
            form="kernel" if form == "kernel" else "softmax",
            global_classes=self.global_classes or not target.order,
            input_loops=loops(source) if not same else self._kind(source.order).loops,
            output_loops=loops(target) if not same else self._kind(source.order).loops,
        ).packed()

    def forward(
        self,
        data: Any,
        queries: TupleBatch | Sequence[TupleBatch] | None = None,
    ) -> Tensor:
        """Graphs, or what :meth:`prepare` made of them, to [rows, outputs]: numbers in units of the
        targets' deviation, or logits. Rows of queries are in the order of the lists, by size."""
        inputs = self._inputs(data, queries)
        lists = self.hidden(inputs)
        plans, targets = iter(inputs.readouts), self._targets()
        total: dict[int, Tensor] = {}
        for source in self._sources():
            for size in targets:
                own = self.readers[f"from_{source}_to_{size}"](lists[source], next(plans))
                total[size] = total[size] + own if size in total else own
        return self.head(torch.cat([total[size] for size in targets]))

    def hidden(self, inputs: GraphInputs) -> dict[int, Tensor]:
        """Embeddings of nodes (1) and of the tuples of every size after the last layer."""
        h = self.node_input(inputs.nodes) + self.encoding_input(inputs.encodings)
        edges = [size for size in self.sizes if size > 1]
        lists, loops, at = {}, {}, 0
        for size, own in zip(edges, inputs.edges):
            embedded = self.edge_input(own)
            if size <= _MOST_LOOPS:
                loop, edge = inputs.rows[at : at + 2]
                at += 2
                count = inputs.plans[self._place(size)].attention.tensors[1].size(0)
                start = h.new_zeros(count, h.size(1)).index_copy(0, edge, embedded.to(h.dtype))
                loops[size], lists[size] = loop, start.index_add(0, loop, h)
            else:
                lists[size] = embedded.to(h.dtype)
        virtual = None
        if self.virtual_start is not None:
            virtual = self.virtual_start.expand(inputs.graphs.size(0), -1)
        for number, block in enumerate(self.blocks):
            shares = []
            for size in self.sizes:
                place = self._place(size)
                if size == 1:
                    shares.append(block["tuples_1"](h, inputs.plans[place]))
                elif size <= _MOST_LOOPS:
                    if number:
                        lists[size] = lists[size].index_copy(
                            0, loops[size], h.to(lists[size].dtype)
                        )
                    lists[size] = block[f"tuples_{size}"](lists[size], inputs.plans[place])
                    shares.append(lists[size][loops[size]])
                else:
                    sent = block[f"to_{size}"](h, inputs.plans[place])
                    lists[size] = lists[size] + sent
                    back = block[f"from_{size}"](lists[size], inputs.plans[place + 1])
                    shares.append(h + back)
            h = torch.stack(shares).mean(0) if len(shares) > 1 else shares[0]
            if virtual is not None:
                virtual = virtual + block["virtual"](virtual + mean_over_graphs(h, inputs))
                h = h + block["spread"](virtual)[inputs.graph_of_nodes]
        for size, loop in loops.items():
            if len(self.sizes) > 1 or virtual is not None:
                lists[size] = lists[size].index_copy(0, loop, h.to(lists[size].dtype))
        return lists | {1: h}

    def _place(self, size: int) -> int:
        """The first plan of a size."""
        before = self.sizes[: self.sizes.index(size)]
        return sum(1 if each <= _MOST_LOOPS else 2 for each in before)
