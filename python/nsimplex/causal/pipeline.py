"""From a table to the rotary angles of its columns, with an interface like scikit-learn's."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from torch import Tensor, nn

from .._arguments import checked_methods
from .._choices import Dangling, Optimiser, PairWeight, Side
from .._library import operators
from .._paths import operator_path
from .._printable import printable
from .._progress import progress_calls
from .arrays import Table, graph_matrix
from .columns import Names, Pairs, Tiers
from .embedding import ball_points, causal_angles, causal_embed
from .estimators import CausalGraph
from .frames import frame_labels
from .hooks import CausalEncoding, attach_encoding
from .pipeline_files import fitted_state, read_state, saved_parameters
from .prior_knowledge import PriorKnowledge

# Fitted attributes that say nothing about a graph that the user gives.
_OF_THE_FIT = (
    "scores_",
    "model_",
    "linear_",
    "curves_",
    "confidence_",
    "frequencies_",
    "noise_directions_",
    "choices_",
    "cpdag_",
)


@checked_methods
@dataclass(kw_only=True, eq=False, repr=False)
class CausalPipeline(CausalGraph):
    """Learns a causal graph of a table's columns, embeds it, and computes the rotary angles of each
    column.

        pipeline = CausalPipeline(dimension=8).fit(table)   # structure, then embedding
        angles = pipeline.encode(heads=4, leading=1)        # [1 + M, 4, 2], for nsimplex.rotary
        values = pipeline.transform(other)                  # the same columns; accepts a file, too

    It is a :class:`CausalGraph` with an embedding, and a transformer of scikit-learn like it.

    Args:
        estimator to seed: as in :class:`CausalGraph`.
        dimension to dangling: as in :func:`causal_embed`.
        scale, by_dimension: as in :func:`causal_angles`.

    ``fit`` sets the attributes of a fitted :class:`CausalGraph`, and the embedding's ``tangents_``
    [M, d] and ``generality_`` [M].
    """

    dimension: int = 3
    optimiser: Optimiser = "tangent"
    steps: int = 300
    learning_rate: float | None = None
    hops: int | None = None
    side: Side | None = None
    weight: PairWeight = "paths"
    decay: float = 0.5
    negatives: int | None = None
    balanced: bool = True
    generality: float = 0.7
    relative: bool = True
    restart: float = 0.15
    dangling: Dangling = "uniform"
    scale: float = math.pi / 4
    by_dimension: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        names: Names = (),
        forbidden: Pairs = (),
        required: Pairs = (),
        tiers: Tiers = (),
        exogenous: Names | Sequence[int] = (),
        sinks: Names | Sequence[int] = (),
        paths: Pairs = (),
        groups: Any = None,
        targets: Any = None,
        blocks: Any = None,
        progress: bool | Callable[[int, int], Any] | None = None,
    ) -> CausalPipeline:
        """Learns and embeds the graph of a table [n, M]; the arguments are those of
        :meth:`CausalGraph.fit`. After Ctrl-C, :meth:`embed` embeds the graph that was reached."""
        self._check(X, groups, targets, blocks)
        known = PriorKnowledge(
            forbidden=forbidden,
            required=required,
            tiers=tiers,
            exogenous=exogenous,
            sinks=sinks,
            paths=paths,
        )
        given = dict(groups=groups, targets=targets, blocks=blocks)
        table = self._table.read_for_fit(X, names, given)
        with progress_calls(type(self).__name__, progress) as told:
            self._learn(*table, known, told)
        return self.embed()

    def embed(self, adjacency: Any = None) -> CausalPipeline:
        """Embeds the learned graph again, for example with other parameters. With ``adjacency``,
        embeds that graph instead and needs no fit. After a fit it must have the fit's columns;
        names of a data frame are matched with theirs."""
        graph = None if adjacency is None else self._given(adjacency)
        embedded = self._fitted("adjacency_") if graph is None else graph.values
        result = causal_embed(embedded, **self._embedding())
        if graph is not None:
            for name in _OF_THE_FIT:
                self.__dict__.pop(name, None)  # of another graph
            self.adjacency_ = graph.values
            if not hasattr(self, "columns_"):
                self.names_ = graph.names
        self.tangents_, self.generality_ = result.tangents, result.generality
        return self

    def _embedding(self) -> dict[str, Any]:
        """The parameters of :func:`causal_embed`."""
        known = inspect.signature(causal_embed).parameters
        return {name: value for name, value in self.get_params().items() if name in known}

    def _given(self, adjacency: Any) -> Table:
        """A graph that the user gives, in the order of the fit's columns if there was one."""
        columns = getattr(self, "columns_", None)
        names = [] if columns is None else self.names_
        if columns is not None and not names:  # as edges() and columns_ call them
            labels = {str(label) for label in frame_labels(adjacency)}
            known = ([f"x{column}" for column in columns], [str(column) for column in columns])
            names = next((own for own in known if set(own) == labels), [])
        graph = graph_matrix("CausalPipeline", "adjacency", adjacency, names, "the fit")
        if columns is not None and graph.values.shape != (len(columns), len(columns)):
            raise ValueError(
                f"[CausalPipeline] adjacency: expected [{len(columns)}, {len(columns)}], the "
                f"columns of the fit, got {list(graph.values.shape)}"
            )
        return graph

    def points(self) -> Tensor:
        """The columns as points [M, d] of the open unit ball."""
        return ball_points(self._fitted("tangents_"))

    def angle_scale(self) -> float:
        """The factor from coordinates of the ball to angles, with ``by_dimension`` in it."""
        return self.scale * (math.sqrt(self.dimension) if self.by_dimension else 1.0)

    @overload
    def encode(self, model: int | None = None, *, leading: int = 0) -> Tensor: ...

    @overload
    def encode(
        self,
        model: nn.Module,
        *,
        heads: int | None = None,
        leading: int = 0,
        gene_ids: str | nn.Module | None = None,
        vocabulary: Mapping[str, int] | None = None,
    ) -> CausalEncoding: ...

    def encode(
        self,
        model: int | nn.Module | None = None,
        *,
        heads: int | None = None,
        leading: int = 0,
        gene_ids: str | nn.Module | None = None,
        vocabulary: Mapping[str, int] | None = None,
    ) -> Tensor | CausalEncoding:
        """The rotary angles of the columns, or a model whose queries and keys turn by them.

        Without a model, these are the angles from :func:`causal_angles`, [leading + M, ..]; the
        first argument may be the number of heads. With a model, every self-attention in it turns
        queries and keys after their projections, until the result's ``remove`` is called. The
        model may have nn.MultiheadAttention (scGPT), projections ``to_q`` and ``to_k`` (scBERT),
        ``q_proj`` and ``k_proj``, ``query`` and ``key``, or one projection ``Wqkv`` or ``qkv``.

        Args:
            model: a module whose tokens are columns, [B, T, D] inside.
            heads: of the table; for a model: only if its layers do not say how many they have.
            leading: tokens before the columns that do not turn, such as <cls>. Tokens after the
                columns do not turn either.
            gene_ids: the module, or its name, whose first input has the gene of each token as an
                id [B, T], such as "encoder" in scGPT. None: tokens are the columns in order.
            vocabulary: the id of each name, together with ``gene_ids``. Other ids do not turn.

        The pipeline's ``dimension`` is the number of planes of all heads, H D / 2, or at most that
        of one head. The planes of a head that are left do not turn.

        Raises:
            ValueError, TypeError: the message names the argument; a model that an encoding turns
                already.
        """
        if not isinstance(model, nn.Module):
            if model is not None and heads is not None:
                raise ValueError("[CausalPipeline] heads: expected once, got two numbers of heads")
            for name, value in (("gene_ids", gene_ids), ("vocabulary", vocabulary)):
                if value is not None:
                    raise ValueError(
                        f"[CausalPipeline] {name}: expected together with a model, got none"
                    )
            return causal_angles(
                self.points(),
                heads=heads if model is None else model,
                scale=self.scale,
                by_dimension=self.by_dimension,
                leading=leading,
            )
        return attach_encoding(
            model,
            self.points() * self.angle_scale(),
            self.names_,
            heads=heads,
            leading=leading,
            gene_ids=gene_ids,
            vocabulary=vocabulary,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters and fitted attributes to a safetensors file, completely or not at
        all. C++ can read it, too."""
        text, tensors = fitted_state(self)
        operators.causal_pipeline_write(
            operator_path(path),
            json.dumps({"parameters": saved_parameters(self)} | text),
            list(tensors),
            list(tensors.values()),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CausalPipeline:
        """Reads a file that ``save`` wrote, here or in C++. It never reads anything but tensors and
        plain values.

        Raises:
            ValueError: the file cannot be read, or something in it has another type, shape or range
                than ``save`` writes; the message names the file.
        """
        text, names, tensors = operators.causal_pipeline_read(operator_path(path))
        try:
            return read_state(cls, text, names, tensors)
        except (ValueError, TypeError, OverflowError) as error:
            why = str(error).removeprefix(f"[{cls.__name__}] ")
            raise ValueError(f"cannot read {printable(os.fspath(path))}: {why}") from None
