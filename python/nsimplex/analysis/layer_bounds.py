"""Upper bounds of the Lipschitz constant of a whole attention layer, from its projections."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .._options import options_set
from ..nn import SimplicialAttention
from .attention_calls import AttentionCall
from .call_recorder import RecordedCall
from .lipschitz import lipschitz_bound, pair_lipschitz_bound

_NAMES = (
    ("q_proj", "k_proj", "v_proj", ("o_proj", "out_proj")),
    ("query", "key", "value", ()),
    ("q_lin", "k_lin", "v_lin", ("out_lin",)),
    ("to_q", "to_k", "to_v", ()),
)


class _Projections(NamedTuple):
    """Matrices that map a row of tokens, with a one at its end, to all heads."""

    query: Tensor  #: [Hq, D, C + 1]
    keys: list[Tensor]  #: N of [Hk, D, C + 1], Hk a divisor of Hq
    values: list[Tensor]  #: N of [Hk, Dv, C + 1]
    output: Tensor | None  #: [E, Hq Dv]


def layer_lipschitz_bound(record: RecordedCall, radius: float) -> float | None:
    r"""An upper bound of the Lipschitz constant of an attention layer on the ball {every token has
    norm <= radius}, or None if no theorem covers the layer.

    .. math:: \mathrm{bound} = \sum_h \|W^O_h\| \, L_h

    L_h is the bound "all_factors" of :func:`nsimplex.analysis.lipschitz_bound` for head h. For
    ordinary attention without a mask it is the smaller one of this and
    :func:`nsimplex.analysis.pair_lipschitz_bound`. Three steps adapt the theorem. A product of
    projections keeps its value if they are scaled to one common norm, so K is the geometric mean
    of the norms of W_K^(0), .., W_K^(N), and V that of the values. A bias is a column of the
    projection beside a channel of ones, which adds 1 to the squared norm of a token. A mask is a
    constant beside the logits; it leaves the weights a distribution. A rotation of queries and
    keys changes no norm.
    """
    call = record.call
    if call is None or not has_plain_weights(call):
        return None
    found = projections(record.module, call)
    if found is None or record.before is None:
        return None
    found = _as_recorded(found, record.before, call)
    if found is None:
        return None
    biased = any(bool(part[..., -1].any()) for part in (found.query, *found.keys, *found.values))
    radius = math.sqrt(radius**2 + 1) if biased else radius
    tokens, dim = call.keys[0].size(2), call.query.size(-1)
    order, heads = call.order, call.query.size(1)
    logit, output = call.scale
    shared = heads // found.keys[0].size(0)
    free = set(options_set(call.options)) <= {"logit_scale", "output_scale"}
    total = 0.0
    for head in range(heads):
        keys = [_norm(found.query[head])] + [_norm(k[head // shared]) for k in found.keys]
        values = [_norm(v[head // shared]) for v in found.values]
        form = abs(logit) * math.sqrt(dim) * math.prod(keys)
        outer = output
        if found.output is not None:
            width = found.values[0].size(1)
            outer *= _norm(found.output[:, head * width : (head + 1) * width])
        value = math.prod(values) ** (1 / order)
        one = lipschitz_bound(
            order, tokens, dim, radius, form ** (1 / (order + 1)), value, "all_factors", outer
        )
        if order == 1 and free:
            pair = pair_lipschitz_bound(tokens, radius, form / math.sqrt(dim), value)
            one = min(one, pair * outer)
        total += one
    return total


def _as_recorded(found: _Projections, tokens: Tensor, call: AttentionCall) -> _Projections | None:
    """The projections times the factors between their rows and the recorded ones, such as D^-1/2 of
    a query. None if the norms of the rows do not have one ratio: the layer does something else."""
    rows = torch.cat([tokens, torch.ones_like(tokens[..., :1])], -1).double()
    scaled = []
    for matrices, recorded in zip(
        [found.query, *found.keys, *found.values],
        [call.query, *call.keys, *call.values],
        strict=True,
    ):
        heads = recorded.size(1)
        if heads % matrices.size(0) != 0 or recorded.size(2) != rows.size(1):
            return None
        own = torch.einsum("btc,hdc->bhtd", rows, matrices).norm(dim=-1)
        own = own.repeat_interleave(heads // matrices.size(0), 1)
        given = recorded.double().norm(dim=-1)
        if own.shape != given.shape:
            return None
        factor = float(given.norm() / own.norm()) if own.norm() > 0 else 1.0
        if bool(((given - factor * own).abs() > 0.02 * given.max()).any()):
            return None
        scaled.append(matrices * factor)
    order = len(found.keys)
    return found._replace(query=scaled[0], keys=scaled[1 : order + 1], values=scaled[order + 1 :])


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))


def has_plain_weights(call: AttentionCall) -> bool:
    """Whether the weights are softmaxes of products of channels, as the bounds require."""
    return set(options_set(call.options)) <= _ADMITTING


#: The options that say which tuples a query sees, and what is added to their logits.
_ADMITTING = frozenset(
    "causal window key_lengths key_masks cu_seqlens query_positions mask pair_masks alibi_slopes "
    "distinct logit_scale output_scale dropout_p seed".split()
)


def projections(module: nn.Module, call: AttentionCall) -> _Projections | None:
    """The projections of a layer that is known, as self-attention of one tensor."""
    heads, shared, order = call.query.size(1), call.keys[0].size(1), call.order
    dim, width = call.query.size(-1), call.values[0].size(-1)
    if isinstance(module, SimplicialAttention):
        plain = module.norm == "none" and module.select is None and module.orders is None
        if not plain or module.context_dims:
            return None
        counts = [heads * dim] + [shared * dim] * order + [shared * width] * order
        parts = list(_augmented(module.qkv).split(counts))
        output: Tensor | None = module.output.weight / (2 * order + 1 if module.unit_layer else 1)
    elif isinstance(module, nn.MultiheadAttention):
        if module.in_proj_weight is None:
            return None
        bias = module.in_proj_bias
        parts = list(_with_bias(module.in_proj_weight, bias).chunk(3))
        output = module.out_proj.weight
    else:
        found = _named(module)
        if found is None:
            return None
        parts, output = found
    if len(parts) != 2 * order + 1 or any(part.size(1) != parts[0].size(1) for part in parts):
        return None
    matrices = []
    for place, part in enumerate(parts):
        rows = width if place > order else dim
        count = part.size(0) // rows  # the call may have repeated heads of keys
        if part.size(0) != count * rows or count == 0 or heads % count != 0:
            return None
        matrices.append(part.detach().double().unflatten(0, (count, rows)))
    if len({matrix.size(0) for matrix in matrices[1:]}) > 1 or matrices[0].size(0) != heads:
        return None
    if output is not None and output.size(1) != heads * width:
        return None
    return _Projections(
        matrices[0],
        matrices[1 : order + 1],
        matrices[order + 1 :],
        None if output is None else output.detach().double(),
    )


def _named(module: nn.Module) -> tuple[list[Tensor], Tensor | None] | None:
    """Projections of Transformers' modules, by their names."""
    if any(hasattr(module, name) for name in ("q_norm", "k_norm", "q_layernorm", "norm_q")):
        return None
    for *names, outer in _NAMES:
        layers = [getattr(module, str(name), None) for name in names]
        if all(isinstance(layer, nn.Linear) for layer in layers):
            parts = [_augmented(layer) for layer in layers]
            last = next((getattr(module, name) for name in outer if hasattr(module, name)), None)
            return parts, last.weight if isinstance(last, nn.Linear) else None
    packed, last = getattr(module, "c_attn", None), getattr(module, "c_proj", None)
    if packed is not None and last is not None and hasattr(packed, "nf"):  # GPT-2's Conv1D
        return list(_with_bias(packed.weight.t(), packed.bias).chunk(3)), last.weight.t()
    return None


def _augmented(layer: nn.Module | None) -> Tensor:
    assert isinstance(layer, nn.Linear)
    return _with_bias(layer.weight, layer.bias)


def _with_bias(weight: Tensor, bias: Tensor | None) -> Tensor:
    column = weight.new_zeros(weight.size(0)) if bias is None else bias
    return torch.cat([weight, column[:, None]], 1)
