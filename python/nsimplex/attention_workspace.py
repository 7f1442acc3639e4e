"""The memory of a dense attention call besides its inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked
from ._layout import Layout, heads_first
from ._library import operators
from ._options import AttentionOptions, operator_options
from .attention import attention
from .gpu import registration

__all__ = ["AttentionWorkspace", "attention_workspace"]


class AttentionWorkspace(NamedTuple):
    """Bytes that a call and its backward pass allocate besides inputs and results."""

    forward_bytes: int
    backward_bytes: int


@checked(options_of=attention)
def attention_workspace(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    layout: Layout = "bhtd",
    **options: Unpack[AttentionOptions],
) -> AttentionWorkspace:
    """Bytes that :func:`nsimplex.attention` and its backward pass allocate besides inputs and
    results, while they run.

    On the CPU these are the workspaces of the SIMD kernel at the current number of threads. On a
    GPU they are those of the Triton kernels: parts of split sums, the numbers of each query's
    softmax, and tables of bounds. Parts of the leading gradients take at most 512 MiB, or what one
    fp32 copy of these gradients takes. Copies of inputs whose rows are not aligned are left out.
    Both numbers are 0 for a call that runs :func:`nsimplex.reference`, and on a GPU with
    ``augment``.

    Arguments and options are those of :func:`nsimplex.attention`. The numbers follow from sizes,
    dtypes and options; no data is read.

    Returns:
        (forward_bytes, backward_bytes). The backward pass computes all gradients but the mask's.

    Raises:
        ValueError, TypeError: those of :func:`nsimplex.attention`.

    Complexity: O(1) on a GPU without lengths, documents and positions; at most the time that the
        CPU's plan takes, O(B Tq N), otherwise.

    Example:
        >>> q, k, v = (torch.randn(1, 2, 64, 16) for _ in range(3))
        >>> attention_workspace(q, [k], [v], causal=True).forward_bytes > 0
        True
    """
    query, keys, values = heads_first("attention_workspace", layout, query, keys, values)
    if options.get("seed") is None:
        options["seed"] = 0  # draws none: the seed changes no size
    given = operator_options(query, keys, values, **options)
    bytes_of_cpu = operators.attention_workspace(query, keys, values, **given)  # checks arguments
    return AttentionWorkspace(*(registration.workspace(query, keys, values, given) or bytes_of_cpu))
