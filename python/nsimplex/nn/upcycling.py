"""From a trained ordinary model to a simplicial one that starts as the same function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked, checked_methods, describe
from ..attention import attention
from ..kv_cache import KeyValueCache, LayerCache
from ..merge_attention import merge
from ..rotary import rotary as rotate
from ..static_cache import StaticCache
from .blocks import TransformerBlock
from .checks import (
    MOST_AXES,
    require,
    require_rows,
    require_tokens,
    require_whole,
    require_window,
)
from .layers import SimplicialAttention

__all__ = ["HigherOrderPart", "UpcycledAttention", "calibrate", "convert", "order_shares"]

_EPSILON = 1e-6
_START_SHARE = 3e-7  # mean share of the part at step 0: near the rounding of fp32
_SAMPLE = (2, 64)  # token ids drawn where none are given


def _unit_rms(heads: Tensor) -> Tensor:
    return F.rms_norm(heads, (heads.size(-1),), eps=_EPSILON)


def windows_of(window: Any, order: int, function: str) -> list[int]:
    """One causal window per axis, from an int, None or ``order`` ints."""
    entries = list(window) if isinstance(window, (list, tuple)) else [window] * order
    lefts = [-1 if entry is None else entry for entry in entries]
    require(
        len(lefts) == order
        and all(isinstance(left, int) and (left == -1 or left > 0) for left in lefts),
        f"[{function}] window: expected a positive integer, -1 or {order} of them, got "
        f"{describe(window)}",
    )
    require_window(function, lefts, order)
    return lefts


@checked_methods
class HigherOrderPart(nn.Module):
    r"""The tuples of order N that join the ordinary softmax of an attention layer.

    .. math::
        e_{ij} &= s\, q_i \cdot k_j, \qquad
        e_{iJ} = b_h + D^{-1/2} \sum_a \hat q_{ia} \hat k^{(1)}_{j_1 a} \cdots
            \hat k^{(N)}_{j_N a} \\
        o_i &= \frac{\sum_j e^{e_{ij}} v_j + \sum_J e^{e_{iJ}}
            v^{(1)}_{j_1} \cdots v^{(N)}_{j_N}}{\sum_j e^{e_{ij}} + \sum_J e^{e_{iJ}}}

    The hat divides a head by its root mean square. q, k^(1) = k and v^(1) = v are the layer's own,
    before rotary positions. The further keys and values are 1 + x W, so the part starts near
    ordinary attention without positions. b_h is one logit bias per head. It starts so low that the
    part vanishes in rounding, and training raises it where pairs of keys help.

    Parameters: ``proj.weight`` [2 (N - 1) Hk D, C], rows k^(2)..k^(N), v^(2)..v^(N), and
        ``order_bias`` x [Hq], which starts at 0. Buffer: ``start`` [Hq]. The bias is
        start + bias_unit max(x, 0), with the gradient of bias_unit x for negative x too. An
        optimizer with steps of one size, such as AdamW, raises the bias by lr * bias_unit per step,
        so tuples enter within some hundred steps at the learning rates of the weights. A head that
        has no use for them yet stays at its start and can still use them later.

    The first gradients of ``proj`` are as small as the tuples' share of the mass. AdamW's ``eps``
    must be far below them, such as 1e-15 (``adam_epsilon`` of ``TrainingArguments``).

    Args:
        dim: C, the width of the layer's input.
        heads, kv_heads, head_dim: Hq, Hk, D.
        order: N >= 2.
        window: the last keys that a query sees, one number per axis or one for all; -1: all.
    """

    #: Natural units of logit per unit of a positive ``order_bias``.
    bias_unit = 100.0

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        order: int = 2,
        window: int | Sequence[int] | None = (32, 512),
    ) -> None:
        super().__init__()
        at = "[HigherOrderPart] "
        require_whole(at, dim=dim, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
        require_whole(at, least=2, most=MOST_AXES, order=order)
        self.window = windows_of(window, order, "HigherOrderPart")
        self.heads, self.kv_heads, self.head_dim, self.order = heads, kv_heads, head_dim, order
        self.proj = nn.Linear(dim, 2 * (order - 1) * kv_heads * head_dim, bias=False)
        self.order_bias = nn.Parameter(torch.empty(heads))
        self.start = nn.Buffer(torch.empty(heads))
        #: Where :func:`calibrate` or :func:`order_shares` wants them: the log of the ratio of the
        #: two parts' sums, before the bias, [B, Hq, T].
        self.records = False
        self.ratios: list[Tensor] = []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Also the bias, which then only fits logits near 0: :func:`calibrate` fits it to a
        model."""
        with torch.no_grad():
            self.proj.weight.normal_(0.0, 1.0 / math.sqrt(3.0 * self.proj.in_features))
            tuples = sum(math.log(left) for left in self.window if left > 0)
            self.order_bias.zero_()
            self.start.fill_(math.log(_START_SHARE) - tuples)

    @property
    def logit_bias(self) -> Tensor:
        """b_h in natural units, [Hq]."""
        x = self.order_bias
        return self.start + self.bias_unit * (x + (x.relu() - x).detach())

    def extra(self, x: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Keys and values of the axes 2..N of x [B, T, C], each [B, Hk, T, D]."""
        heads = 1 + self.proj(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        parts = heads.split(self.kv_heads, 1)
        keys, values = parts[: self.order - 1], parts[self.order - 1 :]
        return [_unit_rms(key) for key in keys], [*values]

    @staticmethod
    def unit(heads: Tensor) -> Tensor:
        """Heads divided by their root mean square, as queries and first keys must be."""
        return _unit_rms(heads)

    def join(self, ordinary: tuple[Tensor, Tensor], higher: tuple[Tensor, Tensor]) -> Tensor:
        """One softmax from the two parts' (out, lse): [B, Hq, T, Dv]."""
        (out, lse), (higher_out, higher_lse) = ordinary, higher
        bias = self.logit_bias.to(higher_lse.dtype)[:, None]
        if self.records:
            self.ratios.append((higher_lse - lse).detach().nan_to_num(nan=-math.inf))
        return merge([out, higher_out], [lse, higher_lse + bias])[0]

    def extra_repr(self) -> str:
        return f"order={self.order}, window={self.window}"


# What ordinary layers may differ in.
_SHAPES = {"dim", "heads", "kv_heads", "head_dim", "norm", "rotary", "rotary_base", "unit_layer"}
_SHAPES |= {"keep_pairs", "pairs", "training", "attention_options"}


def _require_ordinary(layer: Any) -> None:
    """Check that an upcycled layer computes all that the layer computes."""
    at = "[UpcycledAttention] layer: expected causal self-attention of order 1 without "
    require(type(layer) is SimplicialAttention, f"{at}further options, got {describe(layer)}")
    with torch.device("meta"):
        usual = SimplicialAttention(layer.dim, layer.heads, order=1, causal=True)
    known = vars(usual)
    odd = [
        name
        for name, value in vars(layer).items()
        if not name.startswith("_") and name not in _SHAPES and known.get(name) != value
    ]
    options = layer.attention_options
    odd += [
        name
        for name in options
        if name != "scale" and options[name] != usual.attention_options.get(name)
    ]
    odd += sorted({*layer.state_dict()} ^ {*usual.state_dict()})
    require(not odd, f"{at}further options, got {odd[0] if odd else None}")


@checked_methods
class UpcycledAttention(SimplicialAttention):
    """An ordinary causal self-attention layer with a :class:`HigherOrderPart` in its softmax.

    It takes over the given layer's parameters under their names, and adds those of ``higher``.

    Args:
        layer: a causal :class:`SimplicialAttention` of order 1 without window and contexts.
        order, window: of the part.
    """

    _unread = ("dropout", "keep_pairs")
    has_slots = False

    def __init__(
        self,
        layer: SimplicialAttention,
        order: int = 2,
        window: int | Sequence[int] | None = (32, 512),
    ) -> None:
        nn.Module.__init__(self)
        _require_ordinary(layer)
        self.__dict__.update(
            {k: v for k, v in layer.__dict__.items() if not k.startswith(("_forward", "_backward"))}
        )
        self._modules = dict(layer._modules)
        self._parameters = dict(layer._parameters)
        self.higher = HigherOrderPart(
            self.dim, self.heads, self.kv_heads, self.head_dim, order, window
        ).to(self.qkv.weight)

    def reset_parameters(self, *args, **kwargs) -> None:
        super().reset_parameters(*args, **kwargs)
        self.higher.reset_parameters()

    def make_cache(self, unbounded: int = -1) -> LayerCache:
        """An empty cache. Its first axis serves the ordinary part, the others the tuples."""
        return KeyValueCache(self._cache_window(unbounded))

    def make_static_cache(self, batch: int, slots: int) -> StaticCache:
        """Refused: the layer goes on from caches of :meth:`make_cache` alone."""
        raise ValueError("[UpcycledAttention] cache: expected one of make_cache(), it has no slots")

    def _cache_window(self, unbounded: int) -> list[int]:
        return [unbounded if left == -1 else left for left in (-1, *self.higher.window)]

    def _parts(self, x: Tensor, offset: int) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Queries of the two parts, and keys and values of the axes: the ordinary one first."""
        axes = self.kv_heads
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        q, k, v = heads.split((self.heads, axes, axes), 1)
        if self.norm != "none":
            q, k = _unit_rms(q), _unit_rms(k)
        if self.norm == "qkv":
            v = _unit_rms(v)
        further, values = self.higher.extra(x)
        turned = [q, k]
        if self.rotary:
            turned = [rotate(each, base=self.rotary_base, offset=offset) for each in turned]
        keys = [turned[1], self.higher.unit(k), *further]
        return [turned[0], self.higher.unit(q)], keys, [v, v, *values]

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        contexts: Sequence[Tensor] = (),
        key_lengths: Tensor | None = None,
        *,
        cache: LayerCache | None = None,
        **others,
    ) -> Tensor:
        """x [B, T, C] -> [B, T, C], with or without a cache of :meth:`make_cache`."""
        given = [name for name, value in others.items() if value is not None]
        if len(contexts) or key_lengths is not None:
            given.append("contexts" if len(contexts) else "key_lengths")
        require(not given, f"[UpcycledAttention] {''.join(given[:1])}: expected none")
        require_rows("UpcycledAttention", "x", x, self.dim, 3)
        cache = None if cache is None else self._fitting(cache, KeyValueCache)
        queries, keys, values = self._parts(x, 0 if cache is None else cache.position)
        windows = [-1, *self.higher.window]
        causal = True
        if cache is not None:
            keys, values, flat = cache._cache.extend(queries[0], keys, values)
            windows, causal = flat[::2], bool(flat)  # a single query sees all that is kept
        scale = self._options["scale"]
        # Two calls: one call with ``augment`` and ``order_bias`` has the same queries, first keys,
        # scale and first window for both orders. The keys of order 1 are rotated, and all of them
        # are seen; the product form of order 2 must not be rotated, and is normalised and windowed.
        options: dict[str, Any] = dict(causal=causal)
        ordinary = attention(
            queries[0],
            keys[:1],
            values[:1],
            scale=scale,
            window=[*windows[:1]] if causal else None,
            return_lse=True,
            **options,
        )
        higher = attention(
            queries[1],
            keys[1:],
            values[1:],
            window=[*windows[1:]] if causal else None,
            return_lse=True,
            **options,
        )
        out = self.output(self.higher.join(ordinary, higher).transpose(1, 2).flatten(2))
        return out / 3 if self.unit_layer else out


def _parts_of(model: nn.Module) -> list[HigherOrderPart]:
    return [module for module in model.modules() if isinstance(module, HigherOrderPart)]


@contextmanager
def _recorded(model: nn.Module) -> Iterator[list[HigherOrderPart]]:
    parts = _parts_of(model)
    trained = [module for module in model.modules() if module.training]
    model.eval()
    try:
        for part in parts:
            part.records, part.ratios = True, []
        with torch.no_grad():
            yield parts
    finally:
        for module in trained:
            module.training = True
        for part in parts:
            part.records, part.ratios = False, []


def _run(model: nn.Module, tokens: Tensor) -> None:
    """Gives the tokens to a model, or to all of a model of Transformers but its head, which may ask
    for more than tokens."""
    decoder = getattr(model, "base_model", None)
    (decoder if isinstance(decoder, nn.Module) else model)(tokens)


def most_tokens(model: Any) -> int | None:
    """The tokens in a row of a model of Transformers with learned positions; None: any number."""
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in ("wpe", "embed_positions"):
            return module.num_embeddings - getattr(module, "offset", 0)
    return None


def require_sample(at: str, name: str, tokens: Tensor, model: Any) -> None:
    """Check tokens that a model is run on, also that it has positions for them."""
    require_tokens(at, name, tokens, model)
    most = most_tokens(model)
    require(
        most is None or tokens.size(1) <= most,
        f"{at}{name}: expected at most {most} tokens in a row, got {tokens.size(1)}",
    )


@checked
def order_shares(model: nn.Module, tokens: Tensor) -> list[Tensor]:
    """Mean share of the softmax mass that tuples of higher order hold, [Hq] per converted layer.

    Args:
        model: a converted model.
        tokens: int64 [B, T], given to the model in one forward pass.
    """
    with _recorded(model) as parts:
        require(len(parts) > 0, "[order_shares] model: expected a converted model")
        require_sample("[order_shares] ", "tokens", tokens, model)
        _run(model, tokens)
        return [
            torch.sigmoid(torch.cat(part.ratios) + part.logit_bias[:, None]).mean((0, 2))
            for part in parts
            if part.ratios  # PEFT keeps copies that are not used
        ]


@checked
def calibrate(model: nn.Module, tokens: Tensor, share: float = _START_SHARE) -> None:
    """Sets where the logit biases start, so that the tuples hold this mean share of the mass on
    ``tokens``.

    Args:
        model: a converted model, whose biases are still so low that its parts do nothing.
        tokens: int64 [B, T], best a text like those the model was trained on.
        share: mean over the tokens, for every head; above 0, below 1.
    """
    require(0 < share < 1, f"[calibrate] share: expected 0 < share < 1, got {share}")
    with _recorded(model) as parts:
        require(len(parts) > 0, "[calibrate] model: expected a converted model")
        require_sample("[calibrate] ", "tokens", tokens, model)
        before = [part.start.clone() for part in parts]
        for part in parts:
            part.start.fill_(-math.inf)
        try:
            _run(model, tokens)
        except BaseException:
            for part, start in zip(parts, before):
                part.start.copy_(start)
            raise
        for part, start in zip(parts, before):
            if not part.ratios:
                part.start.copy_(start)
                continue
            ratio = torch.cat(part.ratios)
            count = ratio.size(0) * ratio.size(2)
            mean = ratio.transpose(0, 1).flatten(1).logsumexp(1) - math.log(count)
            part.start.copy_(math.log(share) - mean)
            part.order_bias.zero_()


def chosen_layers(function: str, layers: int, every: int) -> list[int]:
    require_whole(f"[{function}] ", most=layers, every=every)
    return [layer for layer in range(layers) if (layer + 1) % every == 0]


@checked
def convert(
    model: nn.Module,
    every: int = 4,
    order: int = 2,
    window: int | Sequence[int] | None = (32, 512),
    sample: Tensor | None = None,
) -> nn.Module:
    """Gives every ``every``-th ordinary layer of a :class:`LanguageModel` tuples of order N,
    without a change of the function that it computes.

    The layers become :class:`UpcycledAttention`, in place. Their former parameters keep their
    names. Continue to train the model with any optimizer: the tuples enter as their biases rise.

    Args:
        model: a :class:`LanguageModel`. ``nsimplex.transformers.convert`` takes models of
            Transformers.
        every, order, window: which layers, N, and the windows of its axes.
        sample: tokens int64 [B, T] to which the biases are fitted (:func:`calibrate`); None draws
            some.

    Returns:
        The model. Its logits for ``sample`` are the same to about 1e-6.
    """
    language_model: Any = model
    blocks: Any = getattr(model, "blocks", None)
    ours = isinstance(blocks, nn.ModuleList)
    if not ours or not all(isinstance(block, TransformerBlock) for block in blocks):
        raise ValueError(f"[convert] model: expected a LanguageModel, got {describe(model)}")
    if sample is not None:
        require_tokens("[convert] ", "sample", sample, model)
    at = chosen_layers("convert", len(blocks), every)
    every_block: list[Any] = [*blocks]
    layers = {i: UpcycledAttention(every_block[i].attention, order, window) for i in at}
    for i, layer in layers.items():
        every_block[i].attention = layer
    if sample is None:
        sample = torch.randint(
            language_model.options.vocabulary, _SAMPLE, generator=torch.Generator().manual_seed(0)
        ).to(language_model.embedding.weight.device)
    calibrate(model, sample)
    return model
