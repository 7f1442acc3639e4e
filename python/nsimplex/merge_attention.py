"""Attention over a set of tuples, merged from the results over parts of the set."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ._arguments import checked
from ._library import operators

__all__ = ["merge"]


@checked(operator="merge_attention")
def merge(outs: Sequence[Tensor], lses: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    r"""Merges results of :func:`nsimplex.attention` over disjoint sets of tuples.

    .. math::
        \mathrm{lse} &= \log \sum_p \exp \mathrm{lse}_p \\
        o &= \sum_p \exp(\mathrm{lse}_p - \mathrm{lse})\, o_p

    The result is exact if no tuple belongs to two parts. For N >= 2 each part is a set of tuples.
    If one key axis is cut into blocks, every block is a part. If two axes are cut, every pair of
    their blocks is a part.

    Args:
        outs: P >= 1 tensors [.., Dv] of one floating dtype.
        lses: P tensors [..], float32 or float64, as returned with ``return_lse=True``.

    Returns:
        (out, lse), shaped like a part; ``out`` has the dtype and memory order of ``outs[0]``. If a
        row has lse = -inf in a part, that part contributes nothing to it. A row with -inf in all
        parts has out = 0 and lse = -inf. The results are differentiable in both arguments, any
        number of times, and under every transform.

    This formula holds for the normalisers softmax and relu. With softmax_sink, only one part may
    include the sink. With sigmoid, add the outputs instead.

    Raises:
        ValueError: no parts, or shapes that differ.
        TypeError: dtypes that differ, or lses in low precision.

    Complexity: P (Dv + 2) operations per row.

    Example:
        >>> q, k, v = torch.randn(3, 1, 2, 8, 4)
        >>> blocks = [attention(q, [k, kb], [v, vb], return_lse=True)
        ...           for kb, vb in zip(k.split(3, 2), v.split(3, 2))]
        >>> out, lse = merge(*zip(*blocks))
        >>> torch.allclose(out, attention(q, [k, k], [v, v]), atol=1e-6)
        True
    """
    return operators.merge_attention(outs, lses)
