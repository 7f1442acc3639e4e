"""How much the output at one token depends on the input at another, through a whole model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

import torch
from torch import Tensor

from .._arguments import checked
from .ascent import leaf, require_gradient

__all__ = ["token_influence"]


@checked
def token_influence(
    function: Callable[[Tensor], Tensor], x: Tensor, *, rows: Sequence[int] | None = None
) -> Tensor:
    r"""The influence of every token of x on some tokens of ``function(x)``.

    .. math:: \mathrm{influence}_{bij} = \Bigl\| \frac{\partial f(x_b)_i}{\partial x_{bj}}
        \Bigr\|_F

    A token that is too far away for the masks and the number of layers has influence 0. An
    influence that falls fast with the distance is over-squashing. :func:`mask_distances` gives the
    number of layers that information needs.

    Args:
        function: takes x and returns [B, T', C']. Entry b depends on entry b of x alone. For a
            model that takes numbers of tokens, it starts from their embeddings.
        x: [B, T, C], floating.
        rows: indices of output tokens, rising; None: all.

    Returns:
        [B, rows, T] in the dtype of x.

    Raises:
        ValueError: x or the output is not [B, .., C], an index out of range, or an output that
            autograd does not connect with x.

    Complexity: one forward pass, and one backward pass for each row and output channel. Memory is
        that of one backward pass.

    Source: "How Smoothing is N-simplicial Attention?", section 3.1; Topping et al., "Understanding
        over-squashing and bottlenecks on graphs via curvature".

    Example:
        >>> token_influence(lambda x: x.cumsum(1), torch.zeros(1, 3, 4), rows=[1])
        tensor([[[2., 2., 0.]]])
    """
    if x.dim() != 3 or not x.is_floating_point():
        raise ValueError(
            f"[token_influence] x: expected floating [B, T, C], got {x.dtype} {list(x.shape)}"
        )
    with torch.inference_mode(False), torch.enable_grad():
        given = leaf(x)
        out = function(given.clone())  # it may write to it
        if not isinstance(out, Tensor) or out.dim() != 3 or out.size(0) != x.size(0):
            shape = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(
                f"[token_influence] function: expected an output [{x.size(0)}, T, C], got {shape}"
            )
        chosen = list(range(out.size(1))) if rows is None else [index(row) for row in rows]
        if any(not 0 <= row < out.size(1) for row in chosen) or chosen != sorted(set(chosen)):
            raise ValueError(
                "[token_influence] rows: expected rising indices from 0 to "
                f"{out.size(1) - 1}, got {chosen[:8]}"
            )
        require_gradient("token_influence", out)
        squares = x.new_zeros(x.size(0), len(chosen), x.size(1))
        for place, row in enumerate(chosen):
            for channel in range(out.size(2)):
                (slope,) = torch.autograd.grad(
                    out[:, row, channel].sum(), given, retain_graph=True, allow_unused=True
                )
                if slope is not None:
                    squares[:, place] += slope.square().sum(-1)
    return squares.sqrt()
