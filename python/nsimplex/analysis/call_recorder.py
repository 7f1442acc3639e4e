"""The attention calls of a running model, as calls of :func:`nsimplex.attention`.

A mode of torch sees every function that a model calls. Recorded are nsimplex's attention,
``scaled_dot_product_attention``, ``torch.nn.MultiheadAttention``, and a softmax between two
products (``matmul``, ``bmm``, ``baddbmm``, ``@`` or ``einsum``). Hooks tell which module called.
Weights between two products that are not a softmax over the keys are recorded without a call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .._arguments import describe
from .._compiled_models import require_modules
from .attention_calls import AttentionCall
from .listed_calls import ListedCall
from .other_calls import FaceCall, SeparableCall
from .torch_calls import four_axes, multi_head_call, scaled_dot_product_call

#: Arguments that hold the keys of earlier tokens; a call that is repeated goes without them.
_CACHES = ("past_key_value", "past_key_values", "layer_past", "cache")
_OPERATORS = ("attention", "face_attention", "separable_attention", "sparse_attention")
_ROUNDING = 2**-7  # of weights in bfloat16


@dataclass
class RecordedCall:
    """What a module did when it called attention."""

    name: str  #: of the module, as in ``model.named_modules()``
    module: nn.Module
    call: AttentionCall | None  #: None if the tuples were chosen, or the weights are no softmax
    order: int
    heads: int
    block: str | None = None  #: entry of a ModuleList around the module
    args: tuple = ()
    kwargs: dict[str, Any] | None = None
    before: Tensor | None = None  #: tokens [B, T, C]
    after: Tensor | None = None
    block_after: Tensor | None = None
    #: instead of ``call``
    other: ListedCall | FaceCall | SeparableCall | None = None

    def again(self, tokens: Tensor) -> Tensor:
        """The module's output for other tokens in the place of the recorded ones."""
        own = self.tokens_given()

        def swapped(value: Any) -> Any:
            return self.given(tokens) if value is own else value

        kwargs = {
            name: swapped(value)
            for name, value in (self.kwargs or {}).items()
            if name not in _CACHES
        }
        if "use_cache" in kwargs:
            kwargs["use_cache"] = False
        out = first_tensor(self.module(*map(swapped, self.args), **kwargs))
        assert out is not None
        return self.tokens_of(out)

    def tokens_given(self) -> Tensor | None:
        return first_tensor((self.args, self.kwargs or {}))

    def given(self, tokens: Tensor) -> Tensor:
        """Tokens in the layout in which the module takes them."""
        own = self.tokens_given()
        assert own is not None
        tokens = tokens.transpose(0, 1) if self._length_first(own) else tokens
        return tokens.reshape(own.shape)

    def tokens_of(self, tensor: Tensor) -> Tensor:
        """Tokens [B, T, C] of a tensor in the module's layout."""
        if tensor.dim() == 2:
            return tensor[None]
        return tensor.transpose(0, 1) if self._length_first(tensor) else tensor

    def _length_first(self, tensor: Tensor) -> bool:
        own = self.module
        return isinstance(own, nn.MultiheadAttention) and not own.batch_first and tensor.dim() == 3


def first_tensor(value: Any) -> Tensor | None:
    """The first floating tensor with rows in arguments or a result."""
    if isinstance(value, Tensor):
        return value if value.is_floating_point() and value.dim() >= 2 else None
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((t for each in value if (t := first_tensor(each)) is not None), None)
    return None


@dataclass
class _Product:
    """Where a tensor comes from: q k^T times a factor, or its softmax."""

    query: Tensor
    key: Tensor
    factor: float
    logits: Tensor | None = None  #: of a softmax


class CallRecorder(TorchFunctionMode):
    """Records the attention calls of a model while it runs.

    >>> with CallRecorder(model) as recorder:
    ...     model(batch)
    >>> recorder.calls
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.calls: list[RecordedCall] = []
        self._model = model
        self._names = {module: name for name, module in model.named_modules()}
        lists = (nn.ModuleList, nn.Sequential)
        self._blocks = {
            entry for parent in model.modules() if isinstance(parent, lists) for entry in parent
        }
        self._stack: list[tuple[nn.Module, tuple, dict[str, Any], int]] = []
        self._handles: list[Any] = []
        self._products: dict[int, tuple[Tensor, _Product]] = {}

    def __enter__(self) -> CallRecorder:
        for module in self._names:
            self._handles.append(module.register_forward_pre_hook(self._enter, with_kwargs=True))
            self._handles.append(module.register_forward_hook(self._leave, with_kwargs=True))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        while self._handles:
            self._handles.pop().remove()
        self._products.clear()
        self._stack.clear()

    def _enter(self, module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        self._stack.append((module, args, kwargs, len(self.calls)))

    def _leave(self, module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
        if not self._stack or self._stack[-1][0] is not module:
            return
        first = self._stack.pop()[3]
        tokens = first_tensor(output)
        for call in self.calls[first:]:
            if tokens is None:
                continue
            if call.module is module and call.after is None:
                call.after = call.tokens_of(tokens).detach()
            elif call.block == self._names[module] and call.block_after is None:
                call.block_after = call.tokens_of(tokens).detach()
        if not self._stack or module in self._blocks:
            self._products.clear()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            self._add(multi_head_call(args, kwargs))
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if isinstance(func, torch._ops.OpOverloadPacket):
            self._operator(str(func), args, kwargs)
        elif func is F.scaled_dot_product_attention:
            self._add(scaled_dot_product_call(*args, **kwargs))
        elif isinstance(result, Tensor):
            self._follow(name.strip("_"), args, kwargs, result)
        return result

    def _operator(self, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
        name = name.removeprefix("nsimplex.").removesuffix("_reference")
        if name not in _OPERATORS:
            return
        query, keys, values = args[0], list(args[1]), list(args[2])
        if name == "attention":
            self._add(AttentionCall(query, keys, values, dict(kwargs)))
            return
        other: ListedCall | FaceCall | SeparableCall
        if name == "face_attention":
            other = FaceCall(query, keys, values, dict(kwargs))
        elif name == "separable_attention":
            other = SeparableCall.of(query, keys, values, kwargs)
        else:
            other = _listed(args, kwargs)
        self._add(None, len(keys), query.size(1), other)

    def _add(
        self,
        call: AttentionCall | None,
        order: int = 1,
        heads: int = 1,
        other: ListedCall | FaceCall | SeparableCall | None = None,
    ) -> None:
        if call is not None:
            order, heads = call.order, call.query.size(1)
        owner = next(
            (each for each in reversed(self._stack) if any(True for _ in each[0].parameters())),
            None,
        )
        if owner is None:
            return
        module, args, kwargs, _ = owner
        around = [each[0] for each in self._stack if each[0] in self._blocks]
        inner = [each for each in around if each is not module]
        record = RecordedCall(
            self._names[module],
            module,
            call,
            order,
            heads,
            self._names[inner[-1]] if inner else None,
            args,
            kwargs,
            other=other,
        )
        tokens = record.tokens_given()
        record.before = None if tokens is None else record.tokens_of(tokens).detach()
        self.calls.append(record)

    # A softmax between two products of matrices.

    def _follow(self, name: str, args: tuple, kwargs: dict[str, Any], result: Tensor) -> None:
        if name in ("matmul", "bmm", "baddbmm", "einsum"):
            left, right, key_rows = _operands(name, args)
            if left is None or right is None:
                return
            weights = self._products.get(id(left))
            if weights is not None and weights[1].logits is not None:
                self._end(weights[1], left, right)
            elif left.dim() >= 3 and right.dim() == left.dim():
                key = key_rows if key_rows is not None else right.transpose(-1, -2)
                factor = float(kwargs.get("alpha", 1.0))
                self._keep(result, _Product(left.detach(), key.detach(), factor))
            return
        source = next((a for a in args if isinstance(a, Tensor) and id(a) in self._products), None)
        if source is None or result.shape != source.shape:
            return
        known = self._products[id(source)][1]
        if name == "softmax":
            known = _Product(known.query, known.key, known.factor, source.detach())
        elif name in ("mul", "imul", "rmul", "multiply"):
            known = self._times(known, args, source, False)
        elif name in ("div", "truediv", "itruediv", "true_divide", "divide"):
            known = self._times(known, args, source, True)
        self._keep(result, known)

    def _times(self, known: _Product, args: tuple, source: Tensor, inverse: bool) -> _Product:
        for other in args:
            if other is source or isinstance(other, bool):
                continue
            if isinstance(other, Tensor) and other.numel() == 1:
                other = float(other)
            if isinstance(other, (int, float)):
                factor = known.factor / other if inverse else known.factor * other
                return _Product(known.query, known.key, factor, known.logits)
        return known

    def _keep(self, tensor: Tensor, product: _Product) -> None:
        # The tensor is stored too, because an id is free again once its object is gone.
        self._products[id(tensor)] = (tensor, product)

    def _end(self, product: _Product, weights: Tensor, value: Tensor) -> None:
        logits = product.logits
        assert logits is not None
        query, key = product.query, product.key
        if not (query.dim() == key.dim() == value.dim() == logits.dim() >= 3):
            return
        if query.is_complex() or key.is_complex():  # the real part of their product
            if logits.is_complex():
                return
            of_query, of_key = (torch.view_as_real(x + 0j).unbind(-1) for x in (query, key))
            query = torch.cat([of_query[0], -of_query[1]], -1)
            key = torch.cat(of_key, -1)
        heads = self._heads(query)
        query, key, value, logits = (
            four_axes(x.detach(), heads) for x in (query, key, value, logits)
        )
        if key.size(2) != value.size(2) or logits.shape[-2:] != (query.size(2), key.size(2)):
            return
        if not _is_softmax(four_axes(weights.detach(), heads), logits):
            self._add(None, 1, query.size(1))
            return
        dtype = torch.promote_types(query.dtype, logits.dtype)
        own = (query.to(dtype) @ key.to(dtype).transpose(-1, -2)) * product.factor
        added = (logits - own).to(dtype)
        small = 1e-4 * max(1.0, float(own.abs().max()) if own.numel() else 1.0)
        # Large negative masks, which forbid keys, are not counted as bias.
        added = added.masked_fill(
            logits < -1e8 if dtype != torch.float16 else logits < -6e4, -torch.inf
        )
        mask = None if bool((added.abs() <= small).all()) else added
        keys, values = [key.to(query.dtype)], [value.to(query.dtype)]
        self._add(
            AttentionCall(
                query, keys, values, dict(logit_scale=product.factor, mask=mask, causal=False)
            )
        )

    def _heads(self, query: Tensor) -> int:
        if query.dim() != 3:
            return 1
        for module, *_ in reversed(self._stack):
            for name in ("num_heads", "n_heads", "heads", "num_attention_heads", "n_head"):
                heads = getattr(module, name, None)
                if isinstance(heads, int) and heads > 0 and query.size(0) % heads == 0:
                    return heads
        return 1


def _is_softmax(weights: Tensor, logits: Tensor) -> bool:
    """Whether weights are those of the keys of each query: no softmax over another axis, turned,
    or changed since. A query without keys may have weights 0."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    change = weights.to(dtype).nan_to_num(0.0) - logits.softmax(-1, dtype).nan_to_num(0.0)
    return bool((change.abs() <= _ROUNDING).all())


def _listed(args: tuple, kwargs: dict[str, Any]) -> ListedCall:
    query, keys, _, indices = args[:4]
    offsets = args[4] if len(args) > 4 else kwargs.get("offsets")
    options: dict[str, Any] = {}
    options.update((name, kwargs[name]) for name in ("form", "logit_scale") if name in kwargs)
    return ListedCall(query, list(keys), indices, offsets, kwargs.get("pattern", "list"), options)


def _operands(name: str, args: tuple) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(left, right as in left @ right, or None; rows of the right one if it is keys)."""
    if name == "einsum":
        equation, *tensors = args
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            tensors = list(tensors[0])
        return (
            _einsum_operands(equation, tensors) if isinstance(equation, str) else (None, None, None)
        )
    tensors = [a for a in args if isinstance(a, Tensor)]
    if name == "baddbmm":
        tensors = tensors[1:]
    return (tensors[0], tensors[1], None) if len(tensors) == 2 else (None, None, None)


def _einsum_operands(
    equation: str, tensors: list[Any]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    found = re.fullmatch(r"(\w+),(\w+)->(\w+)", equation.replace(" ", ""))
    if found is None or len(tensors) != 2:
        return None, None, None
    left, right, out = found.groups()
    shared = [c for c in left if c in right and c in out]
    summed = [c for c in left if c in right and c not in out]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    if not (len(summed) == len(rows) == len(columns) == 1 and shared):
        return None, None, None
    first = torch.einsum(f"{left}->{''.join(shared + rows + summed)}", tensors[0])
    second = torch.einsum(f"{right}->{''.join(shared + summed + columns)}", tensors[1])
    straight = left == "".join(shared + rows + summed)
    # The weights are looked up by the tensor itself.
    return (tensors[0] if straight else first), second, None


def run_recorded(model: nn.Module, batch: Any, function: str) -> CallRecorder:
    """Runs the model once, in evaluation mode and without gradients, and records its calls."""
    require_modules(f"[{function}] ", model)
    training = {module: module.training for module in model.modules()}
    config = getattr(model, "config", None)
    caches = getattr(config, "use_cache", None)
    model.eval()
    try:
        if caches:
            config.use_cache = False  # type: ignore[union-attr]
        eager = torch.compiler.set_stance("force_eager")  # a compiled model hides its calls
        with torch.no_grad(), eager, CallRecorder(model) as recorder:
            if isinstance(batch, Mapping):
                model(**batch)
            elif isinstance(batch, (tuple, list)):
                model(*batch)
            else:
                model(batch)
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError):
            raise
        raise type(error)(f"[{function}] batch: the model refuses it: {error}") from error
    finally:
        if caches:
            config.use_cache = caches  # type: ignore[union-attr]
        for module, was in training.items():
            module.training = was
    if not recorder.calls:
        raise ValueError(
            f"[{function}] model: expected a model that calls attention, got {describe(model)}"
        )
    return recorder
