"""Attention over a set of tuples from the results over its parts."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ._arguments import checked
from ._library import operators

__all__ = ["merge"]


@checked
def merge(outs: Sequence[Tensor], lses: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    r"""Merges results of :func:`nsimplex.attention` over disjoint sets of tuples.

    .. math::
        \mathrm{lse} &= \log \sum_p \exp \mathrm{lse}_p \\
        o &= \sum_p \exp(\mathrm{lse}_p - \mathrm{lse})\, o_p

    Exact where no tuple belongs to two parts. For N >= 2 the parts are of tuples: cutting one key
    axis into blocks makes such parts, cutting two axes needs every pair of their blocks.

    Args:
        outs: P >= 1 tensors [.., Dv] of one floating dtype.
        lses: P tensors [..], float32 or float64: ``return_lse=True`` gives them.

    Returns:
        (out, lse), shaped like a part; ``out`` in the dtype and memory order of ``outs[0]``. A row
        with lse = -inf in a part gets nothing from it; one with -inf in all parts has out = 0 and
        lse = -inf. Differentiable in both arguments, any number of times, and under every
        transform.

    The normalisers softmax and relu merge so. With a sink only one part may have it. Results of
    sigmoid simply add.

    Raises:
        ValueError: no parts, or shapes that differ.
        TypeError: dtypes that differ, or lses in low precision.

    Complexity: P (Dv + 2) operations a row.

    Example:
        >>> q, k, v = torch.randn(3, 1, 2, 8, 4)
        >>> blocks = [attention(q, [k, kb], [v, vb], return_lse=True)
        ...           for kb, vb in zip(k.split(3, 2), v.split(3, 2))]
        >>> out, lse = merge(*zip(*blocks))
        >>> torch.allclose(out, attention(q, [k, k], [v, v]), atol=1e-6)
        True
    """
    return operators.merge_attention(outs, lses)
