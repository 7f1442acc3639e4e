"""Puts the kernels of this folder under a dispatch key of the operators."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .._library import operators
from .._options import unhandled
from .._tuple_masks import folded, tuples_of_folded

__all__ = ["available", "register", "register_at_import", "workspace"]

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MOST_ORDER = 4
_MOST_CHANNELS = 256
#: Batch entries times heads are the second dimension of a grid, which CUDA limits.
_MOST_SEQUENCES = 65535
#: Numbers of a mask over tuples that stands for masks of pairs and ALiBi; the composite needs none.
_MOST_FOLDED = 2**28

#: The library objects that hold registrations, per dispatch key: they last as long as the process.
_libraries: dict[str, torch.library.Library] = {}


def available() -> bool:
    """Whether this process runs operators on CUDA tensors with the kernels of this folder: there is
    a GPU, Triton can be imported, and neither NSIMPLEX_GPU=off nor precompiled kernels
    (NSIMPLEX_CUBINS) stand against it."""
    if os.environ.get("NSIMPLEX_GPU", "").lower() == "off":
        return False
    if os.environ.get("NSIMPLEX_CUBINS", "").lower() not in ("", "off"):
        return False
    if not torch.cuda.is_available():
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def register_at_import() -> None:
    """Registers the kernels under CUDA, which ROCm shares, where :func:`available` says so."""
    if available():
        register()


def register(key: str = "CUDA", allow_override: bool = False) -> None:
    """Registers the kernels under a dispatch key, once.

    What a kernel lacks goes to the kernel that the key had before. Tests put the kernels under the
    CPU's key with ``allow_override``, where Triton's interpreter runs them.
    """
    if key in _libraries:
        return
    library = torch.library.Library("nsimplex", "IMPL")
    _libraries[key] = library
    extra = {"allow_override": True} if allow_override else {}
    for name, kernel in (("attention", _attention), ("attention_backward", _attention_backward)):
        prior = torch.library.get_kernel(f"nsimplex::{name}", key)
        library.impl(name, _with_prior(kernel, prior), key, with_keyset=True, **extra)


def workspace(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: dict
) -> tuple[int, int] | None:
    """Bytes of the forward and the backward pass of a checked call of ``nsimplex::attention``, or
    None where no kernel of this folder computes it."""
    key = "CUDA" if query.is_cuda else query.device.type.upper()
    if key not in _libraries or _refusal(query, keys, values, options) is not None:
        return None
    from .attention_backward import backward_workspace
    from .attention_forward import forward_workspace
    from .call_options import Options

    forms = Options.of_call(query, keys, folded(query, keys, options))
    if options.get("form") == "determinant":
        channels = query.shape[3] * (1, 1, 2, 6, 24)[len(keys)]
        query, *keys = (x[..., :1].expand(*x.shape[:3], channels) for x in (query, *keys))
    return (
        forward_workspace(query, keys, values, forms),
        backward_workspace(query, keys, values, forms),
    )


def _with_prior(kernel: Callable, prior) -> Callable:
    """A dispatcher kernel: ours where it takes the call, else the prior one."""

    def call(keyset, *args, **options):
        result = kernel(*args, **options)
        if result is None:
            result = prior.call_boxed(keyset, *args, **options)
        return result

    return call


@functools.cache
def _fall_back(operator: str, reason: str) -> None:
    """Warns once on standard error that a call uses the reference, as the operators do on the
    CPU: only with NSIMPLEX_WARN_FALLBACK=1."""
    if os.environ.get("NSIMPLEX_WARN_FALLBACK") == "1":
        print(
            f"nsimplex: warning: {operator} uses the reference version: the GPU kernel {reason}",
            file=sys.stderr,
        )


def _refusal(
    query: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor], options: dict
) -> str | None:
    """Why the kernels do not take a call, or None."""
    order, dim = len(keys), query.shape[3]
    if query.dtype not in _DTYPES:
        return "takes float32, bfloat16 and float16"
    if order > _MOST_ORDER:
        return f"takes at most {_MOST_ORDER} axes"
    name = unhandled("triton", options)
    if name is not None:
        return f"does not take the option {name}"
    if tuples_of_folded(query, keys, options) > _MOST_FOLDED:
        return f"takes pair_masks and alibi_slopes of at most {_MOST_FOLDED} tuples"
    channels = max(dim, values[0].shape[3])
    if options.get("form", "product") == "determinant":
        factorial = (1, 1, 2, 6, 24)[order]
        channels = max(dim * factorial, channels)
    if channels > _MOST_CHANNELS:
        return f"has at most {_MOST_CHANNELS} channels"
    if dim == 0 or values[0].shape[3] == 0:
        return "takes at least one channel"
    if any(key.shape[2] == 0 for key in keys):
        return "takes no empty axis"
    if query.shape[0] * query.shape[1] > _MOST_SEQUENCES:
        return f"takes at most {_MOST_SEQUENCES} batch entries times heads"
    return None


def _check_arguments(
    operator: Callable,
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    options: dict,
) -> None:
    """The errors of the operator: of devices, and those of its kernel for meta tensors."""
    options = dict(options)
    lists = {"keys": keys, "values": values}
    lists |= {name: options.get(name) or [] for name in ("key_masks", "pair_masks")}
    tensors = {f"{name}[{m}]": x for name, each in lists.items() for m, x in enumerate(each)}
    tensors |= {name: x for name, x in options.items() if isinstance(x, Tensor)}
    for name, tensor in tensors.items():
        if tensor.device != query.device:
            raise ValueError(
                f"[attention] {name}: expected the query's device {query.device}, got "
                f"{tensor.device}"
            )
        if name in options:
            options[name] = tensor.to("meta")
    for name in ("key_masks", "pair_masks"):
        if options.get(name) is not None:
            options[name] = [x.to("meta") for x in options[name]]
    operator(
        query.to("meta"), [x.to("meta") for x in keys], [x.to("meta") for x in values], **options
    )


def _attention(query: Tensor, keys, values, **options):
    _check_arguments(operators.attention.default, query, keys, values, options)
    reason = _refusal(query, keys, values, options)
    if reason is not None:
        _fall_back("attention", reason)
        return None
    from . import attention_forward, determinant_channels
    from .call_options import Options

    forms = Options.of_call(query, keys, folded(query, keys, options))
    operands = query, keys
    if options.get("form") == "determinant":
        operands = determinant_channels.expand(query, keys)
    return attention_forward.forward(*operands, values, forms, query)


def _attention_backward(
    query: Tensor, keys, values, out, lse, grad_out, grad_lse, output_mask, **options
):
    reason = _refusal(query, keys, values, options)
    order = len(keys)
    if reason is None and output_mask[1 + 2 * order]:
        reason = "has no gradient of the mask"
    if reason is not None:
        _fall_back("attention_backward", reason)
        return None
    from . import attention_backward, determinant_channels
    from .call_options import Options

    forms = Options.of_call(query, keys, folded(query, keys, options))
    determinant = options.get("form") == "determinant"
    operands = query, keys
    if determinant:
        operands = determinant_channels.expand(query, keys)
    grad_query, grad_keys, grad_values, grad_sink = attention_backward.backward(
        *operands, values, out, lse, grad_out, grad_lse, list(output_mask), forms
    )
    if determinant:
        grad_query, grad_keys = determinant_channels.reduce(query, keys, grad_query, grad_keys)
    empty = query.new_empty(0)

    def wanted(place: int, gradient: Tensor | None) -> Tensor:
        return gradient if output_mask[place] and gradient is not None else empty

    if grad_sink is not None:
        grad_sink = grad_sink.to(options["sink"].dtype)
    return (
        wanted(0, grad_query),
        [wanted(1 + m, gradient) for m, gradient in enumerate(grad_keys)],
        [wanted(1 + order + m, gradient) for m, gradient in enumerate(grad_values)],
        empty,
        grad_sink if output_mask[2 + 2 * order] and grad_sink is not None else lse.new_empty(0),
    )
