"""The attention module that chooses its tuples."""

from __future__ import annotations

import math

from typing_extensions import Unpack

from .._arguments import checked_methods, describe
from .._choices import SetPattern
from .attention_options import LayerOptions
from .checks import require, require_name, require_whole
from .layers import SimplicialAttention
from .select import Path, TopK


@checked_methods
class SparseAttention(SimplicialAttention):
    """N-simplicial attention over the tuples that an :class:`Indexer` chooses, k^N per query. It is
    ``SimplicialAttention(select=TopK(keys, ..))`` or ``select=Path(keys, ..)``.

    Projections and their parameters are those of :class:`SimplicialAttention` with the same
    arguments, without contexts and windows. The indexer's parameters are ``indexer.*``. No gradient
    passes through the choice. The indexer learns from :attr:`auxiliary_loss` alone, and the
    gradient of that loss reaches nothing else.

    Args:
        pattern: "product", I_i x .. x I_i of the k keys chosen for query i; or "path", j1 in I_i,
            j2 in I_{j1}, ..
        keys: k.
        indexer: arguments of :class:`Indexer`. With source "reuse", it scores the pairs of the
            layer passed to :meth:`set_source`. That layer must have run before in the same pass.
        loss_weight: weight of :func:`nsimplex.indexer_loss`; above 0, "reuse" learns w.
        options: arguments of :class:`SimplicialAttention`.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        *,
        pattern: SetPattern = "product",
        keys: int = 64,
        indexer: dict | None = None,
        loss_weight: float = 0.0,
        **options: Unpack[LayerOptions],
    ) -> None:
        at = "[SparseAttention] "
        require_name(at, "pattern", pattern, ("product", "path"))
        require_whole(at, keys=keys)
        number = isinstance(loss_weight, (int, float)) and not isinstance(loss_weight, bool)
        require(
            number and 0 <= loss_weight < math.inf,
            f"{at}loss_weight: expected 0 or more, got {describe(loss_weight)}",
        )
        select = (TopK if pattern == "product" else Path)(keys, indexer, loss_weight)
        super().__init__(dim, heads, select=select, **options)

    @property
    def chosen_keys(self) -> int:
        assert isinstance(self.select, (TopK, Path)) and isinstance(self.select.k, int)
        return self.select.k
