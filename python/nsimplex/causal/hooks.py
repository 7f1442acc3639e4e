"""Causal encodings in models of other authors: queries and keys of every self-attention turn."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._arguments import checked_methods, describe
from .._compiled_models import forget_compiled_code, require_modules
from ..rotary import rotary

#: Names of the projections to queries and keys, and of one projection to queries, keys and values.
_PAIRS = (("to_q", "to_k"), ("q_proj", "k_proj"), ("query", "key"), ("W_q", "W_k"))
_PACKED = ("Wqkv", "qkv", "in_proj", "qkv_proj")
_HEADS = ("heads", "num_heads", "num_attention_heads", "n_heads", "n_head", "nhead")


@checked_methods
class CausalEncoding:
    """Rotations of queries and keys in a model, until ``remove`` is called.

    The model keeps its parameters and their names. ``attentions`` has the names of the layers whose
    queries and keys turn. Copies and pickles of the model turn, too, with their own weights;
    ``remove`` does not change them. Code that torch compiled before is compiled again at its next
    run, with the rotations, and once more after ``remove``.
    """

    def __init__(
        self,
        model: nn.Module,
        angles: Tensor,
        *,
        leading: int,
        gene_ids: str | nn.Module | None,
        rows: Tensor | None,
        heads: int | None,
    ):
        require_modules("[encode] ", model)
        tokens = _Tokens(leading, rows)
        self._undo: list[Callable[[], None]] = []
        self.attentions: list[str] = []
        found = [(name, module, plan) for name, module in model.named_modules()
                 if (plan := _plan(name, module, heads)) is not None]  # fmt: skip
        if not found:
            raise ValueError(
                "[encode] model: expected layers of attention with projections "
                f"{', '.join('/'.join(pair) for pair in _PAIRS)}, {', '.join(_PACKED)} or "
                f"nn.MultiheadAttention, got none in {type(model).__name__}"
            )
        turns = {}
        for name, module, (kind, count, planes) in found:
            if _turns(module, kind):
                raise ValueError(
                    f"[encode] model: expected one without an encoding, got one that turns {name}; "
                    "remove() of that encoding gives the model back"
                )
            turns[count, planes] = _Turn(tokens, count, _table(name, angles, count, planes))
        if gene_ids is not None:
            handle = _module(model, gene_ids).register_forward_pre_hook(
                tokens.read, with_kwargs=True
            )
            self._undo.append(handle.remove)
        for name, module, (kind, count, planes) in found:
            self._attach(module, kind, turns[count, planes])
            self.attentions.append(name)
        for module in model.modules():  # whose fast path computes attention by itself
            if isinstance(module, nn.TransformerEncoder):
                self._set(module, "use_nested_tensor", False)
            if isinstance(module, nn.TransformerEncoderLayer):
                self._set(module, "activation_relu_or_gelu", 0)
        forget_compiled_code()

    def remove(self) -> None:
        """Gives the model back as it was."""
        while self._undo:
            self._undo.pop()()
        forget_compiled_code()

    def __enter__(self) -> CausalEncoding:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()

    def _set(self, module: nn.Module, name: str, value: Any) -> None:
        before = getattr(module, name, None)
        setattr(module, name, value)
        self._undo.append(lambda: setattr(module, name, before))

    def _attach(self, module: Any, kind: str, turn: _Turn) -> None:
        """Only objects that can be copied and pickled enter the module: no function inside of
        another one. A copy of the partial call has the copy of the module."""
        if kind == "torch":
            module.forward = functools.partial(_attend, module, turn)
            self._undo.append(lambda: module.__dict__.pop("forward", None))
            return
        hook = turn.all_of_three if "/" not in kind else turn.output
        for name in kind.split("/"):
            self._undo.append(getattr(module, name).register_forward_hook(hook).remove)


def _module(model: nn.Module, gene_ids: str | nn.Module) -> nn.Module:
    if not isinstance(gene_ids, str):
        return gene_ids
    modules = dict(model.named_modules())
    if gene_ids not in modules:
        raise ValueError(
            f"[encode] gene_ids: expected the name of a module, got {describe(gene_ids)}"
        )
    return modules[gene_ids]


class _Tokens:
    """Which column each token is: in order, or by the ids that a module of the model reads."""

    def __init__(self, leading: int, rows: Tensor | None):
        self._leading, self._rows = leading, rows
        self._ids: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_ids": None}  # a copy reads its own ids

    def read(self, _: nn.Module, inputs: tuple, named: dict) -> None:
        """Remembers the ids of the genes; a hook of the module that reads them."""
        ids: Any = next(iter([*inputs, *named.values()]), None)
        if not isinstance(ids, Tensor) or ids.is_floating_point():
            raise TypeError(f"[encode] gene_ids: expected ids of genes, got {describe(ids)}")
        self._ids = ids

    def angles(self, table: Tensor, batch: int, tokens: int) -> Tensor:
        """The rows of the table that belong to the tokens."""
        if self._rows is not None:
            ids = self._ids
            if ids is None or tuple(ids.shape) != (batch, tokens):
                raise ValueError(
                    f"[encode] gene_ids: expected ids [{batch}, {tokens}], one per token, got "
                    f"{describe(ids)}"
                )
            rows = self._rows.to(ids.device)
            known = (ids >= 0) & (ids < len(rows))
            at = torch.where(known, rows[ids.clamp(0, len(rows) - 1)], len(table) - 1)
            return table[at]
        if tokens < self._leading + len(table) - 1:
            raise ValueError(
                f"[encode] model: expected {self._leading + len(table) - 1} tokens or more, got "
                f"{tokens}; gene_ids tells which gene a token is"
            )
        after = tokens - self._leading - len(table) + 1
        return F.pad(table[:-1], (0, 0, 0, 0, self._leading, after))


class _Turn:
    """Turns queries and keys by the angles of their tokens."""

    def __init__(self, tokens: _Tokens, heads: int, table: Tensor):
        self._tokens, self._heads, self._table = tokens, heads, table

    def __call__(self, x: Tensor) -> Tensor:
        """Queries or keys [B, T, heads * D], turned."""
        if x.dim() != 3:
            raise ValueError(f"[encode] model: expected activations [B, T, D], got {describe(x)}")
        # rotary computes in float32 at least, and so takes angles that low precision would round
        table = self._table.to(x.device, torch.promote_types(x.dtype, torch.float32))
        angles = self._tokens.angles(table, *x.shape[:2])
        return rotary(x.unflatten(-1, (self._heads, -1)), angles=angles, layout="bthd").flatten(2)

    def output(self, _: nn.Module, __: Any, out: Tensor) -> Tensor:
        """A hook of a projection to queries or to keys."""
        return self(out)

    def all_of_three(self, _: nn.Module, __: Any, out: Tensor) -> Tensor:
        """A hook of one projection to queries, keys and values."""
        q, k, v = out.chunk(3, dim=-1)
        return torch.cat([self(q), self(k), v], -1)


def attach_encoding(
    model: nn.Module,
    angles: Tensor,
    names: list[str],
    *,
    heads: int | None = None,
    leading: int = 0,
    gene_ids: str | nn.Module | None = None,
    vocabulary: Mapping[str, int] | None = None,
) -> CausalEncoding:
    """Puts angles [M, d] of columns into the attentions of a model; :meth:`CausalPipeline.encode`
    has the arguments."""
    if (gene_ids is None) != (vocabulary is None):
        raise ValueError("[encode] gene_ids: expected together with vocabulary")
    rows = None
    if vocabulary is not None:
        if not names:
            raise ValueError("[encode] vocabulary: expected a fit of a table with names")
        place = {name: at for at, name in enumerate(names)}
        of_columns = [(id, place[name]) for name, id in vocabulary.items() if name in place]
        own = dict(of_columns)
        if len(own) < len(of_columns):
            raise ValueError(
                f"[encode] vocabulary: expected different ids of the columns, got {len(own)} for "
                f"{len(of_columns)} names"
            )
        if not own:
            raise ValueError("[encode] vocabulary: expected names of the columns, got none of them")
        if min(own) < 0:
            raise ValueError(f"[encode] vocabulary: expected ids of 0 or more, got {min(own)}")
        rows = torch.full((max(own) + 1,), len(names))  # the last row of the table does not turn
        rows[torch.tensor(list(own))] = torch.tensor(list(own.values()))
    if leading < 0:
        raise ValueError(f"[encode] leading: expected 0 or more, got {leading}")
    return CausalEncoding(model, angles, leading=leading, gene_ids=gene_ids, rows=rows, heads=heads)


def _plan(name: str, module: nn.Module, heads: int | None) -> tuple[str, int, int] | None:
    """How a layer of attention projects, its heads, and planes per head; None for other modules."""
    if isinstance(module, nn.MultiheadAttention):
        if not module._qkv_same_embed_dim or module.bias_k is not None or module.add_zero_attn:
            raise ValueError(
                f"[encode] model: expected self-attention in {name} without bias_k, add_zero_attn, "
                "kdim and vdim"
            )
        kind, width, count = "torch", module.embed_dim, module.num_heads
    else:
        own: dict[Any, Any] = dict(module.named_children())
        pair = next((p for p in _PAIRS if all(hasattr(own.get(n), "weight") for n in p)), None)
        packed = next((n for n in _PACKED if hasattr(own.get(n), "weight")), None)
        if pair is None and packed is None:
            return None
        if pair is not None:
            kind = "/".join(pair)
            widths = {len(own[each].weight) for each in pair}
            if len(widths) != 1:
                raise ValueError(
                    f"[encode] model: expected as many heads of keys as of queries in {name}"
                )
            width = widths.pop()
        else:
            kind, width = str(packed), len(own[packed].weight) // 3
        count = next((getattr(module, n) for n in _HEADS if hasattr(module, n)), heads)
        if count is None:
            raise ValueError(f"[encode] heads: expected the number of heads of {name}, got None")
    if heads is not None and heads != count:
        raise ValueError(f"[encode] heads: expected the {count} of {name or 'model'}, got {heads}")
    if width % count or (width // count) % 2:
        raise ValueError(
            f"[encode] model: expected heads of an even width in {name}, got {width} / {count}"
        )
    return kind, count, width // count // 2


def _turns(module: nn.Module, kind: str) -> bool:
    """Whether an encoding is attached to a layer of attention, or to the layer that it copies."""
    if kind == "torch":
        return getattr(module.__dict__.get("forward"), "func", None) is _attend
    hooks = [
        hook for name in kind.split("/") for hook in getattr(module, name)._forward_hooks.values()
    ]
    return any(isinstance(getattr(hook, "__self__", None), _Turn) for hook in hooks)


def _table(name: str, angles: Tensor, heads: int, planes: int) -> Tensor:
    """Angles [M + 1, heads or 1, planes]; the last row, of other tokens, is 0."""
    count = angles.size(1)
    if count == heads * planes:
        table = angles.unflatten(1, (heads, planes))
    elif count <= planes:
        table = F.pad(angles, (0, planes - count)).unsqueeze(1)  # the same for all heads
    else:
        raise ValueError(
            f"[encode] dimension: expected {heads * planes} (planes of all heads) or at most "
            f"{planes} (of one head) for {name}, got {count}"
        )
    return F.pad(table, (0, 0, 0, 0, 0, 1))


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """torch's masks say True for what is not seen, or add numbers."""
    if mask.dtype is torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)
    return mask.to(like.dtype)


def _attend(
    module: nn.MultiheadAttention,
    turn: Callable[[Tensor], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """nn.MultiheadAttention with queries and keys that turn."""
    if query is not key or key is not value or query.dim() != 3:
        raise ValueError("[encode] model: expected self-attention of batches, [B, T, D]")
    x = query if module.batch_first else query.transpose(0, 1)
    q, k, v = F.linear(x, module.in_proj_weight, module.in_proj_bias).chunk(3, dim=-1)
    q, k, v = (
        each.unflatten(-1, (module.num_heads, -1)).transpose(1, 2) for each in (turn(q), turn(k), v)
    )
    bias = None
    if attn_mask is not None:
        mask = _additive(attn_mask, q)
        bias = mask if mask.dim() == 2 else mask.unflatten(0, (len(x), -1))
    if key_padding_mask is not None:
        padding = _additive(key_padding_mask, q)[:, None, None, :]
        bias = padding if bias is None else bias + padding
    dropout = module.dropout if module.training else 0.0
    if need_weights:
        logits = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
        weights = F.dropout((logits if bias is None else logits + bias).softmax(-1), dropout)
        out, shown = weights @ v, weights.mean(1) if average_attn_weights else weights
    else:
        out, shown = F.scaled_dot_product_attention(q, k, v, bias, dropout), None
    out = module.out_proj(out.transpose(1, 2).flatten(2))
    return out if module.batch_first else out.transpose(0, 1), shown
