"""Attention orders between two integers (experimental)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ._arguments import checked

__all__ = ["continuous_order"]


@checked
def continuous_order(
    keys: Sequence[Tensor], values: Sequence[Tensor], order: float
) -> tuple[list[Tensor], list[Tensor], tuple[float, float]]:
    r"""Keys, values and scale for attention of order n = N - 1 + a with 0 <= a <= 1.

    .. math::
        k^{(N)} &\leftarrow (1 - a)\,1 + a\,k^{(N)}, \qquad v^{(N)} \leftarrow (1 - a)\,1 +
        a\,v^{(N)} \\ s_1 &= D^{-N/2} / ((1 - a) + a \sqrt{D}), \qquad s_2 = D_v^{-(N-2)/2} / ((1 -
        a) + a \sqrt{D_v})

    a = 1 is order N and a = 0 is order N - 1, each with its unit scales. At every order between
    them, the sensitivity to inputs of unit root mean square is also 1. The function can change the
    order of a trained model gradually. It applies to the product form and the product reducer.
    Unless ``mask`` or ``distinct`` couples the axes, a = 0 gives exactly the output of order N - 1.
    Its lse is then larger by the log of the number of keys that the query sees on the last axis.

    Args:
        keys, values: N >= 2 tensors each, as for :func:`nsimplex.attention`.
        order: n, from N - 1 to N.

    Returns:
        (keys, values, scale) for ``attention(query, keys, values, scale=scale)``. Only the last key
        and the last value differ from the given ones.

    Raises:
        ValueError: fewer than 2 keys, or an order outside [N - 1, N].

    Example:
        >>> q, k1, k2, v1, v2 = torch.randn(5, 1, 2, 8, 4)
        >>> keys, values, scale = continuous_order([k1, k2], [v1, v2], 1.0)
        >>> torch.allclose(attention(q, keys, values, scale=scale),
        ...                attention(q, [k1], [v1], scale="unit"), atol=1e-6)
        True
    """
    count = len(keys)
    if count < 2:
        raise ValueError(f"[continuous_order] keys: expected at least 2, got {count}")
    if len(values) != count:
        raise ValueError(
            f"[continuous_order] values: expected {count}, one for each of the keys, got "
            f"{len(values)}"
        )
    if not count - 1 <= order <= count:
        raise ValueError(
            f"[continuous_order] order: expected {count - 1} to {count}, one less than the keys or "
            "as many, "
            f"got {order}"
        )
    a = order - (count - 1)
    dim, value_dim = keys[-1].size(-1), values[-1].size(-1)
    # The product of N rows of unit root mean square has a norm of at most D^(N/2). Multiplying it
    # by the blended key increases this bound by a factor of at most (1 - a) + a sqrt(D).
    blended = lambda width: (1 - a) + a * width**0.5
    scale = (
        dim ** (-0.5 * count) / blended(dim),
        value_dim ** (-0.5 * (count - 2)) / blended(value_dim),
    )
    blend = lambda x: (1 - a) + a * x
    return [*keys[:-1], blend(keys[-1])], [*values[:-1], blend(values[-1])], scale
