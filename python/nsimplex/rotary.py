"""Rotary position encodings for any number of key axes."""

from __future__ import annotations

from torch import Tensor

from ._arguments import checked
from ._layout import Layout, heads_first, in_layout
from ._library import operators

__all__ = ["rotary"]

_BASE = 10000.0


@checked
def rotary(
    x: Tensor,
    *,
    chunk: int = 2,
    base: float = _BASE,
    offset: int = 0,
    positions: Tensor | None = None,
    angles: Tensor | None = None,
    inverse: bool = False,
    layout: Layout = "bhtd",
) -> Tensor:
    r"""Rotates queries or keys by their positions, for attention over tuples of any order.

    The head's channels are cut into chunks of p. A chunk contains floor(p / 2) planes, made of
    channels 0-1, 2-3, ...; the last channel of an odd p does not rotate. With P planes in the head,
    plane c of row t rotates by :math:`\theta_{tc} = t\, \mathrm{base}^{-c/P}`:

    .. math::
        y_a = x_a \cos\theta - x_b \sin\theta, \qquad y_b = x_a \sin\theta + x_b \cos\theta

    Every chunk is rotated by an element of SO(p). Determinants of p = N + 1 vectors therefore keep
    their values when all positions move together: with ``form="determinant"`` the logits of order N
    depend on relative positions alone. The same holds for the dot product (N = 1, p = 2: the usual
    RoPE). It does not hold for the product form of N >= 2.

    Args:
        x: [B, H, T, D], D a multiple of ``chunk``; float32, float64, bfloat16 or float16; any
            strides.
        chunk: p, the number of channels that rotate together: N + 1 for the determinant form, 2 for
            the dot product.
        base: base of the frequencies.
        offset: position of the first row. Only differences between positions matter. For keys of
            different lengths that end at the same time, use offset = -T_m, and -T_q for queries.
        positions: [T] or [B, T], integers or floating, instead of offset, offset + 1, ...; no
            gradient.
        angles: angles in radians, learned or supplied, instead of position times frequency:
            [T, P], [T, H, P] or [B, T, H, P], where B and H may be 1. Not together with
            ``positions``, ``offset`` or ``base``.
        inverse: rotate in the opposite direction. This undoes the same call without ``inverse``.
        layout: of x and the result: "bhtd", [B, H, T, D], or "bthd", [B, T, H, D].

    Returns:
        A tensor like ``x`` in shape, dtype and memory order. Low precision is rotated in float32;
        angles from positions are computed in float64. The result is differentiable in ``x`` and
        ``angles``, any number of times.

    Raises:
        ValueError: a shape or number that does not fit, or two of positions, offset and angles,
            or a base beside angles.
        TypeError: a dtype that is not supported.

    Complexity: one pass over ``x``; 6 operations per pair of channels.

    Source: Su et al., "RoFormer" (arXiv 2104.09864), for p = 2.

    Example:
        >>> q, k1, k2, v1, v2 = torch.randn(5, 1, 2, 8, 6)
        >>> turned = [rotary(t, chunk=3) for t in (q, k1, k2)]  # order 2: chunks of 3
        >>> later = [rotary(t, chunk=3, offset=100) for t in (q, k1, k2)]
        >>> a, b = (attention(q, [k1, k2], [v1, v2], form="determinant")
        ...         for q, k1, k2 in (turned, later))
        >>> torch.allclose(a, b, atol=1e-4)
        True
    """
    if angles is not None and base != _BASE:
        raise ValueError(f"[rotary] base: given beside angles, expected one of them, got {base}")
    (x,) = heads_first("rotary", layout, x)
    turned = operators.rotary(
        x,
        chunk=chunk,
        base=base,
        offset=offset,
        positions=positions,
        angles=angles,
        inverse=inverse,
    )
    return in_layout(layout, turned)
