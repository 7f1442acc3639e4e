"""How far the heads of one layer, or of several layers and orders, are from each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .._arguments import checked
from .._page import alone
from .._printable import printable
from .tuple_drawing import matrix_svg
from .view import TupleView

__all__ = ["head_distances", "heads_svg"]


@checked
def head_distances(views: TupleView | Sequence[TupleView]) -> Tensor:
    r"""The distance of every two heads: the mean over queries of the total variation of their keys.

    .. math::
        p_g(t \mid i) = \frac{\sum_m w^{(m)}_{g i t}}{\sum_{m, u} w^{(m)}_{g i u}}, \qquad
        d_{gh} = \operatorname{mean}_i \tfrac12 \sum_t |p_g(t \mid i) - p_h(t \mid i)|

    :math:`w^{(m)}` are the marginals of axis m. 0: both heads weigh the same keys; 1: they have no
    key in common. Layers of different orders compare, because all axes are taken together. Two
    heads may weigh the same keys and yet join them into other tuples; their distance is 0.

    Args:
        views: of :func:`view` or :func:`views`, with the same queries and numbers of keys.

    Returns:
        float64 [H, H], symmetric, for the heads of all views one after the other. A query counts
        for two heads if both give it weight; NaN if there is no such query.

    Raises:
        ValueError: no views, or views of different queries or numbers of keys.

    Complexity: O(H^2 Q T) for the Q queries of the views; memory O(H Q T).

    Example:
        >>> q, k1, k2 = torch.randn(3, 1, 2, 9, 4)
        >>> head_distances([view(q, [k1, k2]), view(q, [k1])]).shape
        torch.Size([4, 4])
    """
    found = _views_of(views, "head_distances")
    first = _sizes(found[0])
    for each in found[1:]:
        if _sizes(each) != first:
            raise ValueError(
                f"[head_distances] views: expected the {len(first[0])} queries and {first[1]} keys "
                f"of the first one, got {len(each.queries)} queries and {_sizes(each)[1]} keys"
            )
    mass = torch.cat([torch.stack([m.double() for m in each.marginals]).sum(0) for each in found])
    total = mass.sum(-1)  # [H, Q]
    share = mass / total.clamp_min(1e-300)[..., None]
    alive = total > 0
    rows = []
    for head in range(len(mass)):
        both = alive & alive[head]
        distance = (share - share[head]).abs().sum(-1) / 2
        rows.append((distance * both).sum(-1) / both.sum(-1))
    return torch.stack(rows)


@checked
def heads_svg(views: TupleView | Sequence[TupleView]) -> str:
    """A drawing of :func:`head_distances` as a whole SVG file: one square per two heads, the darker
    the farther apart. Up to 16 heads are called layer.head, by the places of the views, and have
    their distance written into the square; more are called by their layers.

    Args:
        views: as in :func:`head_distances`.

    Returns:
        The text of the file.

    Raises:
        ValueError: what :func:`head_distances` refuses.

    Complexity: :func:`head_distances`; the file has about 150 bytes per two heads.

    Example:
        >>> q, k = torch.randn(2, 1, 2, 9, 4)
        >>> heads_svg(view(q, [k]))[:4]
        '<svg'
    """
    found = _views_of(views, "heads_svg")
    return alone(heads_drawing(found, head_distances(found).tolist()))


def heads_drawing(views: Sequence[TupleView], distances: Sequence[Sequence[float]]) -> str:
    """The drawing of :func:`heads_svg` in the colours of a page, of :func:`head_distances`."""
    notes = [
        f"{printable(each.name) or 'attention'}, order {each.order}, head {head}"
        for each in views
        for head in range(each.heads)
    ]
    return matrix_svg("distances between heads", distances, notes, [v.heads for v in views])


def comparable(views: Sequence[TupleView], most: int) -> list[TupleView]:
    """The views up to the first whose heads do not compare with the others', or are too many."""
    found: list[TupleView] = []
    for each in views:
        if len(set(_keys(each))) > 1 or (found and _sizes(each) != _sizes(found[0])):
            break
        if sum(own.heads for own in found) + each.heads > most:
            break
        found.append(each)
    return found


def _views_of(views: TupleView | Sequence[TupleView], function: str) -> list[TupleView]:
    found = [views] if isinstance(views, TupleView) else list(views)
    if not found or not all(isinstance(each, TupleView) for each in found):
        raise ValueError(f"[{function}] views: expected one TupleView or more, got none")
    for each in found:
        if len(set(_keys(each))) > 1:
            raise ValueError(
                f"[{function}] views: expected axes with the same number of keys, got {_keys(each)}"
            )
    return found


def _keys(view: TupleView) -> list[int]:
    return [marginal.size(-1) for marginal in view.marginals]


def _sizes(view: TupleView) -> tuple[list[int], int]:
    return view.queries, _keys(view)[0]
