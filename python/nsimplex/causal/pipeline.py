"""From a table to the rotary angles of its columns, with an interface like scikit-learn's."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from .._arguments import checked_methods
from .._hints import Numbers
from .._library import operators
from .._paths import operator_path
from ..graph_files import read_table
from .arrays import as_double
from .embedding import ball_points, causal_angles, causal_embed
from .graphs import usable_table
from .structure import causal_fit

#: The parameters passed to :func:`causal_embed`.
_EMBEDDING = (
    "dimension",
    "optimiser",
    "steps",
    "learning_rate",
    "hops",
    "side",
    "weight",
    "decay",
    "negatives",
    "balanced",
    "generality",
    "relative",
    "restart",
    "dangling",
    "seed",
)
_PLAIN = ("names", "columns", "model")  # fitted attributes stored as JSON text in the file
_TENSORS = ("mean", "deviation", "adjacency", "scores", "tangents", "generality")


@checked_methods
class CausalPipeline:
    """Learns a causal graph of a table's columns, embeds it, and computes the rotary angles of each
    column.

        pipeline = CausalPipeline(dimension=8).fit(table)   # structure, then embedding
        angles = pipeline.encode(heads=4, leading=1)        # [1 + M, 4, 2], for nsimplex.rotary
        values = pipeline.transform(other)                  # the same columns; accepts a file, too

    Args:
        estimator, nonlinear, standardise, threshold, seed: as in :func:`causal_fit`.
        missing, drop: as in :func:`usable_table`.
        dimension, optimiser, steps, learning_rate, hops, side, weight, decay, negatives, balanced,
            generality, relative, restart, dangling: as in :func:`causal_embed`.
        scale, by_dimension: as in :func:`causal_angles`.

    ``fit`` sets ``names_`` (empty if the table has none), ``columns_`` (numbers of the columns
    kept), ``adjacency_`` and ``scores_`` [M, M] and ``model_``. It also sets the embedding's
    ``tangents_`` [M, d] and ``generality_`` [M].
    """

    def __init__(
        self,
        *,
        estimator: str = "order",
        nonlinear: bool = False,
        standardise: bool = False,
        threshold: float | None = None,
        missing: str = "refuse",
        drop: bool = False,
        dimension: int = 3,
        optimiser: str = "tangent",
        steps: int = 300,
        learning_rate: float | None = None,
        hops: int | None = None,
        side: str | None = None,
        weight: str = "paths",
        decay: float = 0.5,
        negatives: int | None = None,
        balanced: bool = True,
        generality: float = 0.7,
        relative: bool = True,
        restart: float = 0.15,
        dangling: str = "uniform",
        scale: float = math.pi / 4,
        by_dimension: bool = False,
        seed: int = 0,
    ):
        self.estimator, self.nonlinear, self.standardise, self.threshold = (
            estimator,
            nonlinear,
            standardise,
            threshold,
        )
        self.missing, self.drop = missing, drop
        self.dimension, self.optimiser, self.steps, self.learning_rate = (
            dimension,
            optimiser,
            steps,
            learning_rate,
        )
        self.hops, self.side, self.weight, self.decay, self.negatives = (
            hops,
            side,
            weight,
            decay,
            negatives,
        )
        self.balanced, self.generality, self.relative = balanced, generality, relative
        self.restart, self.dangling = restart, dangling
        self.scale, self.by_dimension, self.seed = scale, by_dimension, seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {
            name: getattr(self, name)
            for name in inspect.signature(type(self).__init__).parameters
            if name != "self"
        }

    def set_params(self, **params: Any) -> CausalPipeline:
        """Changes arguments of the constructor. Fitted attributes stay until the next ``fit``."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"[CausalPipeline] expected parameters of {', '.join(known)}, got {name!r}"
                )
            setattr(self, name, value)
        return self

    def fit(
        self,
        table: Numbers | str | os.PathLike[str],
        target: None = None,
        *,
        names: Sequence[str] = (),
        forbidden: Iterable[tuple[int, int]] = (),
        required: Iterable[tuple[int, int]] = (),
        tiers: Sequence[int] = (),
    ) -> CausalPipeline:
        """Learns and embeds the graph of a table [n, M] (a tensor, an array, a data frame) or of a
        file with a table.

        Args:
            target: not used; scikit-learn's pipelines pass it.
            names: names of the columns; a file and a data frame have their own.
            forbidden, required, tiers: as in :func:`causal_fit`, by the numbers of the columns
                kept.
        """
        kept = usable_table(table, names, missing=self.missing, drop=self.drop)
        fitted = causal_fit(
            kept.values,
            estimator=self.estimator,
            nonlinear=self.nonlinear,
            standardise=self.standardise,
            threshold=self.threshold,
            seed=self.seed,
            forbidden=forbidden,
            required=required,
            tiers=tiers,
        )
        self.names_, self.columns_ = kept.names, kept.columns
        self.mean_, self.deviation_ = kept.values.mean(dim=0), kept.values.std(dim=0, correction=0)
        self.adjacency_, self.scores_, self.model_ = fitted.adjacency, fitted.scores, fitted.model
        return self.embed()

    def embed(self, adjacency: Numbers | None = None) -> CausalPipeline:
        """Embeds the learned graph again, for example with other parameters. With ``adjacency``,
        embeds that graph instead and needs no fit."""
        if adjacency is not None:
            self.adjacency_ = as_double("CausalPipeline", "adjacency", adjacency)
        result = causal_embed(
            self._fitted("adjacency_"), **{name: getattr(self, name) for name in _EMBEDDING}
        )
        self.tangents_, self.generality_ = result.tangents, result.generality
        return self

    def encode(self, heads: int | None = None, *, leading: int = 0) -> Tensor:
        """Angles of the columns from :func:`causal_angles`. The ``leading`` tokens before them are
        not rotated."""
        ball = ball_points(self._fitted("tangents_"))
        return causal_angles(
            ball, heads=heads, scale=self.scale, by_dimension=self.by_dimension, leading=leading
        )

    def transform(self, table: Numbers | str | os.PathLike[str]) -> Tensor:
        """The kept columns of another table [n, all columns], float64.

        With ``standardise``, subtract the means of the fit and divide by its standard deviations.
        Missing values stay nan. If the file and the fit both have names, columns of a file are
        found by name, in any order.
        """
        columns = self._fitted("columns_")
        if isinstance(table, (str, os.PathLike)):
            file = read_table(table)
            table, columns = file.values, self._places(file.columns, columns, os.fspath(table))
        values = as_double("CausalPipeline", "table", table)
        if values.dim() != 2 or values.size(1) <= max(columns):
            raise ValueError(
                f"[CausalPipeline] table: expected [n, more than {max(columns)}], got "
                f"{tuple(values.shape)}"
            )
        values = values[:, columns]
        return (values - self.mean_) / self.deviation_ if self.standardise else values

    def _places(self, names: list[str], columns: list[int], path: str) -> list[int]:
        """Numbers of the fit's columns in a file whose columns have these names."""
        if not self.names_ or not names:
            return columns
        for name in self.names_:
            if names.count(name) != 1:
                raise ValueError(
                    f"cannot use {path}: expected one column {name!r}, got {names.count(name)}"
                )
        return [names.index(name) for name in self.names_]

    def fit_transform(
        self, table: Numbers | str | os.PathLike[str], target: None = None, **fit: Any
    ) -> Tensor:
        """Calls ``fit``, then ``transform`` on the same table."""
        return self.fit(table, target, **fit).transform(table)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters and fitted attributes to a safetensors file, completely or not at
        all. C++ can read it, too."""
        text = {"parameters": self.get_params()}
        text |= {name: getattr(self, f"{name}_") for name in _PLAIN if hasattr(self, f"{name}_")}
        tensors = {
            name: getattr(self, f"{name}_") for name in _TENSORS if hasattr(self, f"{name}_")
        }
        operators.causal_pipeline_write(
            operator_path(path), json.dumps(text), list(tensors), list(tensors.values())
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CausalPipeline:
        """Reads a file that ``save`` wrote, here or in C++. It never reads anything but tensors and
        plain values."""
        text, names, tensors = operators.causal_pipeline_read(operator_path(path))
        try:
            plain = json.loads(text)
            pipeline = cls(**plain["parameters"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"cannot read {os.fspath(path)}: {error}") from None
        fitted = {name: plain[name] for name in _PLAIN if name in plain} | dict(
            zip(names, tensors, strict=True)
        )
        for name, value in fitted.items():
            setattr(pipeline, f"{name}_", value)
        return pipeline

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, name):
            raise ValueError("[CausalPipeline] not fitted: call fit first")
        return getattr(self, name)
