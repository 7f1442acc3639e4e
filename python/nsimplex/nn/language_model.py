"""The language model: every k-th block is simplicial, and the others are ordinary."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods
from ..kv_cache import LayerCaches
from ..static_cache import StaticCache
from ..text import Tokenizer
from .blocks import FeedForward, TransformerBlock
from .checks import require, require_padding, require_whole
from .language_options import LanguageModelOptions, check_model, layer_options
from .layer_state import STATE, HeldLayers, innermost_layers, retained_mass_of
from .layers import RMSNorm, SimplicialAttention
from .saved_model import read_saved_model, saved_language_model, write_language_model
from .select import Path, TopK, part_of
from .text_generator import TextGenerator

__all__ = ["LanguageModel", "LanguageModelOptions"]

_EMBEDDING_DEVIATION = 0.02


@checked_methods
class LanguageModel(TextGenerator, HeldLayers):
    """Decoder-only transformer with a simplicial layer every ``every``-th block.

    ``sparse`` selects the tuples that the simplicial layers compute. "window": the tuples in their
    windows. "topk" and "path": the tuples of ``topk`` keys that an indexer chooses. "linear": all
    tuples, as sums of separable features. Parts joined by "+": the tuples of the keys of a window,
    of the first ``sinks`` tokens, and of ``topk`` chosen keys.

    Ordinary layers rotate q and k (RoPE). Simplicial layers of order >= 2 get no positions, because
    the product form has no rotation invariance. They learn the order of tokens through their causal
    windows and through the outputs of the layers below. With ``form="determinant"`` and ``rotary``
    they rotate, too. Heads of order 1 always rotate; beside other orders in ``orders``, and with
    ``form="determinant"``, they rotate if ``rotary`` is set.

    Parameters: ``embedding.weight``, ``blocks.<i>.*``, ``norm.weight`` and, unless tied,
        ``head.weight``.

    ``auxiliary_loss`` is the sum of the indexers' losses in the last forward pass. ``loss_weight``,
    ``warms_up``, ``measures_mass`` and ``keep_pairs`` reach the layers. The options are fixed.
    """

    _state = tuple(name for name in STATE if name != "dropout")

    def __init__(
        self, options: LanguageModelOptions, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        o = self.options = options.of_model()
        check_model(o)
        self.tokenizer: Tokenizer | None = None
        self.embedding = nn.Embedding(o.vocabulary, o.dim)
        self.blocks = cast("Sequence[TransformerBlock]", nn.ModuleList(self._blocks()))
        self.norm = RMSNorm(o.dim)
        if not o.tied:
            self.head = nn.Linear(o.dim, o.vocabulary, bias=False)
        self.reset_parameters(generator)
        self._made = True

    @classmethod
    def from_run(
        cls,
        path: str | os.PathLike[str],
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        non_finite: bool = False,
    ) -> LanguageModel:
        """The trained model of a folder that ``nsimplex lm train`` writes, in evaluation mode.

        The checksums of the file are verified if it has them; files of version 0.1 have none. The
        names and shapes of all tensors must be those of the model. :attr:`tokenizer` is the one of
        the run; it is None if the run read token files.

        Args:
            path: the folder, its checkpoint.safetensors or a model.safetensors. Beside the latter,
                tokenizer.model is read if it exists.
            device, dtype: of the weights; None: the CPU, and as in the file.
            non_finite: accept weights that are not finite.

        Raises:
            ValueError: "cannot read PATH: WHY" or "cannot use PATH: WHY", in one line.
        """
        saved = read_saved_model(path)
        model: Any = saved_language_model(saved, cls, non_finite)
        model.tokenizer = saved.tokenizer
        model.to(device=device, dtype=dtype).eval()
        return model

    def save(self, folder: str | os.PathLike[str], *, step: int = 0) -> None:
        """Writes weights, options and tokenizer into a folder, which is made if it is not there.

        :meth:`from_run` reads it, and so do ``nsimplex lm eval``, ``lm sample`` and
        ``analyze model``.

        Args:
            folder: gets model.safetensors, and tokenizer.model for a tokenizer of SentencePiece.
                Set :attr:`tokenizer` before; None says that the model reads token numbers.
            step: the number of updates behind the model.

        Raises:
            ValueError: another kind of tokenizer, or a block that is not of the options.
            OSError: nothing can be written there.
        """
        require_whole("[LanguageModel] ", least=0, step=step)
        write_language_model(self, folder, step)

    def _attention(self, simplicial: bool) -> SimplicialAttention:
        o = self.options
        shared = ("kv_heads", "head_dim", "norm", "bias", "rotary_base")
        try:
            options: dict[str, Any] = layer_options(o) if simplicial else dict(order=1, rotary=True)
            options |= {name: getattr(o, name) for name in shared}
            return SimplicialAttention(o.dim, o.heads, causal=True, **options)
        except ValueError as error:  # of an option of the model, which is all that a user named
            raise ValueError(f"[LanguageModel] {str(error).partition('] ')[2]}") from None

    def _blocks(self) -> list[TransformerBlock]:
        o = self.options
        blocks: list[TransformerBlock] = []
        for layer in range(1, o.layers + 1):
            attention = self._attention(o.every > 0 and layer % o.every == 0)
            if part_of(attention.select, TopK, Path) is not None and o.indexer == "reuse":
                require(
                    layer > 1,
                    "[LanguageModel] indexer: reuse scores the pairs of the layer before, and the "
                    "first layer "
                    "has none; use light, or every of at least 2",
                )
                before = blocks[-1].attention
                assert isinstance(before, SimplicialAttention)
                attention.set_source(before)
            mlp = FeedForward(o.dim, math.floor(o.mlp_ratio * o.dim + 0.5), o.mlp)
            blocks.append(TransformerBlock(attention, mlp))
        return blocks

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        with torch.no_grad():
            self.embedding.weight.normal_(0.0, _EMBEDDING_DEVIATION, generator=generator)
            for block in self.blocks:
                block.reset_parameters(generator, 1.0 / math.sqrt(2.0 * self.options.layers))
            self.norm.reset_parameters()
            if not self.options.tied:
                self.head.weight.normal_(0.0, _EMBEDDING_DEVIATION, generator=generator)

    def make_cache(self, unbounded: int | None = None) -> LayerCaches:
        """Empty caches, one per layer, for ``model(tokens, caches)``.

        Windows bound the simplicial layers. An axis without a window holds ``unbounded`` tokens,
        and so do all axes of the ordinary layers. The default is the context; -1 means all tokens.
        In each such layer, a token of a longer text sees the last ``unbounded`` tokens, at the
        distances of the training. Through the layers below, it still depends on earlier tokens.
        """
        held = self.options.context if unbounded is None else unbounded
        return LayerCaches([block.make_cache(held) for block in self.blocks])

    def make_static_caches(self, batch: int, slots: int | None = None) -> list[StaticCache]:
        """Empty caches of fixed size, one per layer, for ``model(tokens, caches, counts=..)``.

        The sequences of the batch may have different lengths, up to ``slots`` tokens (None: the
        context), and a step of one token compiles with ``fullgraph=True``. For ``sparse="window"``.
        """
        slots = self.options.context if slots is None else slots
        return [block.make_static_cache(batch, slots) for block in self.blocks]

    def _embed(self, tokens: Tensor) -> Tensor:
        if tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"[LanguageModel] tokens: expected int64 of shape [B, T], got {tokens.dtype} of "
                f"shape {list(tokens.shape)}"
            )
        if torch.compiler.is_compiling():
            return self.embedding(tokens)
        try:
            return self.embedding(tokens)
        except IndexError:  # its message names no argument
            low, high = (int(each) for each in tokens.aminmax())
        raise ValueError(
            f"[LanguageModel] tokens: expected 0 to {self.options.vocabulary - 1}, got {low} to "
            f"{high}"
        )

    def _places(
        self, tokens: Tensor, attention_mask: Tensor | None, cu_seqlens: Tensor | None
    ) -> dict[str, Tensor]:
        """The masks as the layers take them."""
        if attention_mask is None:
            return {} if cu_seqlens is None else dict(cu_seqlens=cu_seqlens)
        wrong = attention_mask.is_floating_point() or attention_mask.is_complex()
        require(
            not wrong and attention_mask.shape == tokens.shape,
            "[LanguageModel] attention_mask: expected bool or integers of shape "
            f"{[*tokens.shape]}, got {attention_mask.dtype} of shape {[*attention_mask.shape]}",
        )
        require_padding("[LanguageModel] ", attention_mask, packed=cu_seqlens is not None)
        mask = dict(key_masks=attention_mask != 0)
        return mask if cu_seqlens is None else mask | dict(cu_seqlens=cu_seqlens)

    def forward(
        self,
        tokens: Tensor,
        caches: LayerCaches | list[StaticCache] | None = None,
        *,
        counts: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor:
        """tokens [B, T] -> logits [B, T, V]; position t sees tokens 0..t only.

        With caches (:meth:`make_cache`), tokens are the next T tokens, and the logits belong to
        them. To rounding, they equal the same rows of ``model(all tokens so far)``, for any split
        of the tokens into calls. This holds until an axis without a window drops a token. Use
        caches for inference only.

        Args:
            counts: int64 [B], with :meth:`make_static_caches`: how many of the T tokens of each row
                are real. Padding follows them, and its logits mean nothing. None: all.
            attention_mask: bool or integers [B, T], as the tokenizers of Transformers return them:
                0 marks padding, on the left or on the right. No token sees padding, so that the
                logits of a padded row equal those of the row alone, to rounding. Logits at padding
                mean nothing.
            cu_seqlens: int64 or int32 [documents + 1], 0 = first <= .. <= last = T: boundaries of
                documents that are packed along T, the same for every row. No token sees another
                document, so that the logits of a document equal those of the document alone, to
                rounding. ``sparse="linear"`` refuses them.

        The last two do not go with caches.
        """
        layers = self.options.layers
        require(
            caches is None or len(caches) == layers,
            f"[LanguageModel] caches: expected one for each of {layers} layers, "
            f"got {0 if caches is None else len(caches)}",
        )
        require(
            caches is None or (attention_mask is None and cu_seqlens is None),
            "[LanguageModel] attention_mask and cu_seqlens: expected none with caches",
        )
        x = self._embed(tokens)
        places = self._places(tokens, attention_mask, cu_seqlens)
        for layer, block in enumerate(self.blocks):
            cache = None if caches is None else caches[layer]
            x = block(x, cache=cache, counts=counts, **places)
        return F.linear(
            self.norm(x), self.embedding.weight if self.options.tied else self.head.weight
        )

    def loss(
        self,
        tokens: Tensor,
        targets: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> Tensor:
        """Mean cross entropy in nats, in fp32 or wider; targets of -100 are left out.

        Give padding the target -100, and so the last token of a packed document, because the next
        token belongs to another one. attention_mask and cu_seqlens are those of :meth:`forward`.
        :attr:`auxiliary_loss` is added while gradients are recorded.
        """
        places = dict(attention_mask=attention_mask, cu_seqlens=cu_seqlens)
        logits = self(tokens, **places).flatten(0, 1)
        if logits.dtype != torch.float64:
            logits = logits.float()
        loss = self._cross_entropy(logits, tokens, targets)
        auxiliary = self.auxiliary_loss if torch.is_grad_enabled() else None
        return loss if auxiliary is None else loss + auxiliary

    def _cross_entropy(self, logits: Tensor, tokens: Tensor, targets: Tensor) -> Tensor:
        if targets.dtype != torch.int64 or targets.shape != tokens.shape:
            raise ValueError(
                f"[LanguageModel] targets: expected int64 of shape {list(tokens.shape)}, got "
                f"{targets.dtype} of shape {list(targets.shape)}"
            )
        if torch.compiler.is_compiling():
            return F.cross_entropy(logits, targets.flatten())
        try:
            return F.cross_entropy(logits, targets.flatten())
        except IndexError:  # its message names no argument
            low, high = (int(each) for each in targets[targets != -100].aminmax())
        raise ValueError(
            f"[LanguageModel] targets: expected -100 or 0 to {self.options.vocabulary - 1}, got "
            f"{low} to {high}"
        )

    def set_warm_up(self, warms_up: bool) -> None:
        """Set whether the layers that choose keys attend to all tuples for now (see
        :class:`SparseAttention`). True is refused in a model without such layers."""
        self.warms_up = warms_up

    @torch.no_grad()
    def retained_mass(self, tokens: Tensor) -> list[float]:
        """Share of dense attention's weight on the chosen tuples, per layer that chooses keys.

        The call costs a forward pass over tokens [B, T], and dense attention in each of these
        layers.
        """
        layers = [
            layer for layer in innermost_layers(self) if layer._takes_state("measures_mass", True)
        ]
        before = [layer.measures_mass for layer in layers]
        for layer in layers:
            layer.measures_mass = True
        try:
            self(tokens)
        finally:
            for layer, was in zip(layers, before):
                layer.measures_mass = was
        masses = [retained_mass_of(block) for block in self.blocks]
        return [mass.item() for mass in masses if mass is not None]
