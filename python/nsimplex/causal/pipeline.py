"""From a table to the rotary angles of its columns, in scikit-learn's manner."""

from __future__ import annotations

import inspect
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .embedding import ball_points, causal_angles, causal_embed
from .graphs import usable_table
from .structure import causal_fit

_FITTED = ("names_", "columns_", "mean_", "deviation_", "adjacency_", "scores_", "model_", "tangents_", "generality_")
_FORMAT = "nsimplex causal pipeline 1"


class CausalPipeline:
    """Learns a causal graph of a table's columns, embeds it, and gives each column its rotary angles.

        pipeline = CausalPipeline(dimension=8).fit(table)   # structure, then embedding
        angles = pipeline.encode(heads=4, leading=1)        # [1 + M, 4, 2], for nsimplex.rotary
        values = pipeline.transform(other)                  # the same columns, scaled as in the fit

    Args:
        estimator, nonlinear, standardise, threshold, seed: of :func:`causal_fit`.
        missing, drop: of :func:`usable_table`.
        dimension, optimiser, steps, generality: of :func:`causal_embed`.
        scale, by_dimension: of :func:`causal_angles`.

    After ``fit``: ``names_`` (empty where the table has none), ``columns_`` (numbers of the columns kept), ``adjacency_``
    and ``scores_`` [M, M], ``model_``; and of the embedding ``tangents_`` [M, d] and ``generality_`` [M].
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
        generality: float = 3.0,
        scale: float = math.pi / 4,
        by_dimension: bool = False,
        seed: int = 0,
    ):
        self.estimator, self.nonlinear, self.standardise, self.threshold = estimator, nonlinear, standardise, threshold
        self.missing, self.drop = missing, drop
        self.dimension, self.optimiser, self.steps, self.generality = dimension, optimiser, steps, generality
        self.scale, self.by_dimension, self.seed = scale, by_dimension, seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"}

    def set_params(self, **params: Any) -> CausalPipeline:
        """Changes arguments of the constructor; what was fitted stays until the next ``fit``."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"[CausalPipeline] expected parameters of {', '.join(known)}, got {name!r}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        table: Tensor | str | os.PathLike[str],
        target: None = None,
        *,
        names: Sequence[str] = (),
        forbidden: Iterable[tuple[int, int]] = (),
        required: Iterable[tuple[int, int]] = (),
    ) -> CausalPipeline:
        """Learns the graph of a table [n, M] or a file of one, and embeds it.

        Args:
            target: not used; scikit-learn's pipelines pass it.
            names: of the columns; a file has its own.
            forbidden, required: edges (cause, effect), by the numbers of the columns kept.
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
        )
        self.names_, self.columns_ = kept.names, kept.columns
        self.mean_, self.deviation_ = kept.values.mean(dim=0), kept.values.std(dim=0, correction=0)
        self.adjacency_, self.scores_, self.model_ = fitted.adjacency, fitted.scores, fitted.model
        return self.embed()

    def embed(self, adjacency: Tensor | None = None) -> CausalPipeline:
        """Embeds the learned graph again, with other parameters or weights; or one that is given, without a fit."""
        if adjacency is not None:
            self.adjacency_ = torch.as_tensor(adjacency, dtype=torch.float64)
        result = causal_embed(
            self._fitted("adjacency_"),
            dimension=self.dimension,
            optimiser=self.optimiser,
            steps=self.steps,
            generality=self.generality,
            seed=self.seed,
        )
        self.tangents_, self.generality_ = result.tangents, result.generality
        return self

    def encode(self, heads: int | None = None, *, leading: int = 0) -> Tensor:
        """Angles of the columns, as :func:`causal_angles` gives them; ``leading`` tokens before them do not turn."""
        ball = ball_points(self._fitted("tangents_"))
        return causal_angles(ball, heads=heads, scale=self.scale, by_dimension=self.by_dimension, leading=leading)

    def transform(self, table: Tensor) -> Tensor:
        """The columns of another table [n, all columns] that were kept, float64; with ``standardise`` less their means and
        divided by their deviations of the fit. Missing values stay nan."""
        columns = self._fitted("columns_")
        values = torch.as_tensor(table, dtype=torch.float64)
        if values.dim() != 2 or values.size(1) <= max(columns):
            raise ValueError(f"[CausalPipeline] table: expected [n, more than {max(columns)}], got {tuple(values.shape)}")
        values = values[:, columns]
        return (values - self.mean_) / self.deviation_ if self.standardise else values

    def fit_transform(self, table: Tensor, target: None = None, **fit: Any) -> Tensor:
        """``fit``, then ``transform`` of the same table."""
        return self.fit(table, target, **fit).transform(table)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes parameters and what was fitted, whole or not at all."""
        state = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        target = Path(path)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            torch.save({"format": _FORMAT, "parameters": self.get_params(), "fitted": state}, file)
        os.replace(file.name, target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CausalPipeline:
        """What ``save`` wrote; nothing but tensors and plain values is ever read."""
        try:
            state = torch.load(path, weights_only=True)
        except FileNotFoundError:
            raise
        except Exception as error:  # of many kinds, by what is wrong with the bytes
            raise ValueError(f"cannot read {os.fspath(path)}: no pipeline ({type(error).__name__})") from None
        if not isinstance(state, dict) or state.get("format") != _FORMAT:
            raise ValueError(f"cannot read {os.fspath(path)}: expected {_FORMAT!r}")
        pipeline = cls(**state["parameters"])
        for name, value in state["fitted"].items():
            setattr(pipeline, name, value)
        return pipeline

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, name):
            raise ValueError("[CausalPipeline] not fitted: call fit first")
        return getattr(self, name)
