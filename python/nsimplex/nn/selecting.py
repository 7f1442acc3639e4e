"""How an attention layer computes the tuples that its argument ``select`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._choices import SetPattern
from .._options import scales
from ..attention import attention
from ..face_attention import face_attention
from ..routing import indexer_loss, retained_mass, topk_keys
from ..separable_attention import feature_map, separable_attention
from ..sparse_attention import sparse_attention
from .checks import is_mapped, require
from .heads import HeadProjections, own_part
from .indexer import Indexer, IndexParts, IndexSource, normalised
from .induced import induced, joined
from .key_tables import (
    EVERYWHERE,
    Places,
    admissible,
    compact,
    documents_of,
    induced_table,
    neighbour_table,
    pairs_of,
    tuples_of,
    united,
    window_table,
)
from .layer_options import LEARNED, rotary_is_relative
from .place_checks import require_sparse_places
from .select import Linear, Neighbours, Path, Select, Sinks, TopK, Window, part_of, parts_of


class SelectedTuples(HeadProjections):
    """The part of an attention layer that attends, for every selection."""

    # The layer's constructor sets them.
    select: Select | None
    face: bool
    dropout: float
    indexer: Indexer
    neighbours: Tensor | None

    def _start_selecting(self, select: Select | None) -> None:
        chosen = part_of(select, TopK, Path)
        self.pattern: SetPattern = "path" if isinstance(select, Path) else "product"
        self.loss_weight = 0.0 if chosen is None else chosen.loss
        self._start_state()
        #: While true, a layer with an indexer attends to all admissible tuples, and the indexer
        #: learns over all admissible keys.
        self.warms_up = False
        #: While true, forward(x) stores ``retained_mass``, the share of dense attention's weight on
        #: the chosen tuples.
        self.measures_mass = False

    # All tuples in the window.

    def _attend_to_window(
        self,
        q: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        places: Places = EVERYWHERE,
        **more,
    ):
        options: dict[str, Any] = induced(
            self._options, self.order, places.positions, places.adjacency
        ) | dict(
            key_lengths=places.key_lengths, cu_seqlens=places.cu_seqlens, sink=own_part(self.sink)
        )
        options["mask"] = places.mask
        options["pair_masks"] = joined(places.pair_masks, options.get("pair_masks"))
        masks = places.key_masks
        options["key_masks"] = [masks] * self.order if isinstance(masks, Tensor) else masks
        if self.training and self.dropout > 0:
            options["dropout_p"] = self.dropout
        call = face_attention if self.face else attention
        return call(q, keys, values, **options | more)

    # A separable kernel.

    def _attend_linearly(
        self, q: Tensor, keys: list[Tensor], values: list[Tensor], places: Places
    ) -> Tensor:
        assert isinstance(self.select, Linear)
        options = {name: self._options[name] for name in ("causal", "window")}
        features = self.select.features
        kept = self._kept_keys(places, q.size(2))
        if kept is not None:  # a key without features has no weight
            if callable(features):
                q, keys = features(q), [features(key) for key in keys]
            elif features is not None:
                q, keys = feature_map(q, features), [feature_map(key, features) for key in keys]
            keys = [key * kept[:, None, :, None].to(key.dtype) for key in keys]
            features = None
        return separable_attention(q, keys, values, features=features, **options)

    def _kept_keys(self, places: Places, length: int) -> Tensor | None:
        kept = places.key_masks
        assert kept is None or isinstance(kept, Tensor)  # require_sparse_places
        if places.key_lengths is not None:
            inside = torch.arange(length, device=places.key_lengths.device)
            inside = inside < places.key_lengths[:, None]
            kept = inside if kept is None else kept & inside
        return kept

    # Chosen keys.

    def _index_of(
        self, x: Tensor, first_position: int, positions: Tensor | None = None
    ) -> IndexParts | None:
        if not hasattr(self, "indexer"):
            return None
        pairs = self._source_pairs(x)
        source = None if pairs is None else IndexSource(*pairs)
        return self.indexer.project(
            x.detach(), source, first_position=first_position, positions=positions
        )

    def _choose(
        self, index: IndexParts, places: Places = EVERYWHERE, causal: bool | None = None
    ) -> Tensor:
        """The table of the indexer's keys, best first."""
        chosen = part_of(self.select, TopK, Path)
        assert chosen is not None  # there is an indexer
        k = chosen.k
        adjacency = self._scored_pairs(places, index.key.size(2))
        with torch.no_grad():
            return topk_keys(
                index.query,
                index.key,
                k if isinstance(k, int) else max(k),
                weights=index.weights,
                lse=index.lse,
                scores=self.indexer.scores,
                causal=self._options["causal"] if causal is None else causal,
                key_lengths=places.key_lengths,
                adjacency=adjacency,
            )

    def _scored_pairs(self, places: Places, length: int) -> Tensor | None:
        """The pairs among which the indexer chooses, besides causality and key_lengths."""
        if part_of(self.select, Neighbours) is not None:  # then the adjacency is the graph
            places = places._replace(adjacency=None)
        sparse = places.adjacency is not None and places.adjacency.layout != torch.strided
        return places.adjacency if sparse else pairs_of(places, length)

    def _graph(self, part: Neighbours, places: Places, length: int) -> Tensor:
        """The table of neighbours of the tokens of this call."""
        if places.adjacency is not None:
            return neighbour_table(places.adjacency, length, part.self_loops)
        table, at = self.neighbours, f"[{type(self).__name__}] "
        if table is None:
            raise ValueError(f"{at}adjacency: expected the graph of select Neighbours, got None")
        if places.positions is not None:
            return induced_table(table, places.positions, places.key_lengths)
        require(
            table.size(1) == length,
            f"{at}x: expected the {table.size(1)} tokens of the graph of select, got {length}",
        )
        return table

    def _fixed_table(self, part: Select, queries: Tensor, length: int, places: Places) -> Tensor:
        """The admissible keys of a part that needs no scores."""
        causal = self._options["causal"]
        masks = places
        if part_of(self.select, Neighbours) is not None:  # then the adjacency is the graph
            masks = places._replace(adjacency=None)
        if isinstance(part, Neighbours):
            table = self._graph(part, places, length)
        elif isinstance(part, Window):
            table = window_table(queries, part.left, 0 if causal else part.right)
            if places.positions is not None:
                table = self._in_window(table, part, places.positions)
        else:
            assert isinstance(part, Sinks)
            first = torch.zeros_like(queries)
            if places.cu_seqlens is not None:
                _, first = documents_of(places.cu_seqlens, length)
            table = (first[:, None] + torch.arange(part.count, device=queries.device))[None]
            if places.positions is not None:
                inside = places.positions < part.count
                table = self._where(table, inside[:, None].expand(-1, length, -1))
        table = table.masked_fill(table >= length, -1)
        if not causal and not masks._replace(positions=None).given():
            return table
        return compact(table, admissible(table, queries, causal, masks))

    def _in_window(self, table: Tensor, part: Window, positions: Tensor) -> Tensor:
        """Tokens near each other among the chosen ones may be far apart in the sequence."""
        distance = positions[:, None, :] - positions[:, :, None]  # j - i
        return self._where(table, (distance > -part.left) & (distance <= part.right))

    def _where(self, table: Tensor, pairs: Tensor) -> Tensor:
        length = pairs.size(-1)
        table = table.masked_fill(table >= length, -1).expand(pairs.size(0), -1, -1)
        return table.masked_fill(~pairs.gather(2, table.clamp_min(0)), -1)

    def _tables(
        self, index: IndexParts | None, queries: Tensor, length: int, places: Places
    ) -> list[Tensor]:
        """The keys of every query: one table for all axes, or one per axis."""
        parts = parts_of(self.select)
        fixed = [
            self._fixed_table(part, queries, length, places)
            for part in parts
            if part is not None and not isinstance(part, (TopK, Path))
        ]
        chosen: list[Tensor] = []
        if index is not None:
            table = self._choose(index, places)
            part = part_of(self.select, TopK, Path)
            assert part is not None
            k = part.k
            chosen = [table] if isinstance(k, int) else [table[..., :each] for each in k]
        if isinstance(self.select, (TopK, Path)):
            return chosen
        if isinstance(self.select, Neighbours):
            return fixed
        return [united([*fixed, *more], length) for more in ([[t] for t in chosen] or [[]])]

    def _alignment_loss(
        self,
        index: IndexParts | None,
        q: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        chosen: Tensor | None,
        pattern: SetPattern = "product",
        places: Places = EVERYWHERE,
    ) -> Tensor | None:
        """The indexer's loss. If ``chosen`` is None, it covers all admissible keys."""
        self._lost = ""
        if index is None or self.loss_weight <= 0:
            return None
        self._lost = self._loses_loss()
        if self._lost or not torch.is_grad_enabled():
            return None
        options = self._options
        if self.indexer.scores == "softmax" and places._replace(positions=None).given():
            pairs = self._scored_pairs(places, index.key.size(2))
            index = normalised(index, options["causal"], places.key_lengths, pairs)
        reduce = options["reduce"]
        scale, _ = scales(options["scale"], q, values, "mean" if reduce in LEARNED else reduce)
        return self.loss_weight * indexer_loss(
            index.query,
            index.key,
            q,
            keys,
            weights=index.weights,
            lse=index.lse,
            scores=self.indexer.scores,
            causal=options["causal"],
            indices=chosen,
            pattern=pattern,
            form=options["form"],
            logit_scale=scale,
        )

    def _attend(
        self,
        q: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        tables: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """(out, lse) over the tuples of chosen keys; lse without the sink."""
        options: dict[str, Any] = {
            name: self._options[name] for name in ("form", "reduce", "scale")
        }
        options["reducer_weights"] = self._reducer_weights()
        if len(tables) == 1:
            out, lse = sparse_attention(
                q, keys, values, tables[0], pattern=self.pattern, return_lse=True, **options
            )
        else:
            require(
                not any(map(is_mapped, tables)),
                f"[{type(self).__name__}] select: expected one k for all axes under vmap, got one "
                "per axis, whose lists of tuples differ in length",
            )
            out, lse = sparse_attention(
                q, keys, values, *tuples_of(tables), return_lse=True, **options
            )
        if self.sink is not None:  # a separate tuple in the denominator, with value 0
            out = out * torch.sigmoid(lse - own_part(self.sink)[:, None])[..., None].to(out.dtype)
        return out, lse

    def _turn(self, places: Places, length: int) -> dict[str, Any]:
        """Options of rotary. Packed documents count from their own first token if the logits depend
        on more than differences of positions."""
        if places.positions is not None:
            return dict(positions=places.positions)
        relative = rotary_is_relative(self.order, self._options["form"])
        if places.cu_seqlens is None or not self.rotary or relative:
            return {}
        _, first = documents_of(places.cu_seqlens, length)
        return dict(positions=torch.arange(length, device=first.device) - first)

    def _attend_to_chosen(self, x: Tensor, places: Places) -> Tensor:
        assert self.select is not None
        require_sparse_places(type(self).__name__, x, places, self.select)
        length = x.size(1)
        q, keys, values = self._heads_of(x, **self._turn(places, length))
        index = self._index_of(x, 0, places.positions)
        queries = torch.arange(length, device=x.device)
        if self.warms_up and index is not None:
            return self._warm_up(index, q, keys, values, queries, places)
        tables = self._tables(index, queries, length, places)
        widest = tables[0]
        for table in tables[1:]:
            widest = table if table.size(-1) > widest.size(-1) else widest
        self._auxiliary_loss = self._alignment_loss(
            index, q, keys, values, self._of_tokens(widest, places), self.pattern, places
        )
        out, lse = self._attend(q, keys, values, tables)
        if self.measures_mass:
            with torch.no_grad():
                dense = self._attend_to_window(
                    q, keys, values, places, return_lse=True, **_WITHOUT_SINK
                )
                masses, kept = [lse, dense[1]], self._kept_keys(places, length)
                if kept is not None:  # rows of padding do not count as tokens
                    masses = [each.masked_fill(~kept[:, None], -torch.inf) for each in masses]
                self._retained_mass = retained_mass(*masses)
        return self._join_heads(out)

    def _of_tokens(self, table: Tensor, places: Places) -> Tensor:
        """The table without the rows of padding, from which an indexer learns nothing."""
        kept = self._kept_keys(places, table.size(1))
        return table if kept is None else table.masked_fill(~kept[..., None], -1)

    def _warm_up(
        self,
        index: IndexParts,
        q: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        queries: Tensor,
        places: Places,
    ) -> Tensor:
        reduce = self._options["reduce"]
        require(
            reduce not in LEARNED,
            f"[{type(self).__name__}] warms_up: dense attention has no reduce {reduce!r}",
        )
        every = None
        if places._replace(positions=None).given():  # the loss takes masks as a table alone
            table = queries.expand(1, queries.numel(), -1)
            causal = self._options["causal"]
            every = compact(table, admissible(table, queries, causal, places))
            every = self._of_tokens(every, places)
        self._auxiliary_loss = self._alignment_loss(index, q, keys, values, every, places=places)
        self._retained_mass = None  # nothing is chosen
        places = places._replace(positions=None)  # only windows need them, and there are none
        return self._join_heads(self._attend_to_window(q, keys, values, places))

    def _attend_self(self, x: Tensor, places: Places) -> Tensor:
        if isinstance(self.select, Select) and not isinstance(self.select, Linear):
            return self._attend_to_chosen(x, places)
        turn = self._turn(places, x.size(1))
        if self.select is None:
            heads = self._heads_of(x, **turn)
            return self._join_heads(self._attend_to_window(*heads, places))
        require_sparse_places(type(self).__name__, x, places, self.select)
        require(
            places.positions is None or self._options["window"] is None,
            f"[{type(self).__name__}] positions: not with a window beside select Linear",
        )
        return self._join_heads(self._attend_linearly(*self._heads_of(x, **turn), places))


_WITHOUT_SINK: dict[str, Any] = dict(normalizer="softmax", sink=None)
