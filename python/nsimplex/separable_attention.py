"""Attention in time linear in the length, with separable kernels instead of the softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from torch import Tensor
from typing_extensions import Unpack

from ._arguments import checked, checked_methods, describe
from ._choices import FeatureName
from ._layout import Layout, heads_first, in_layout
from ._library import classes, operators
from ._options import FeatureMap, SeparableOptions, Window, flat_window
from .kv_cache import LayerCache

__all__ = ["SeparableCache", "feature_map", "separable_attention", "separable_reference"]


@checked
def feature_map(
    x: Tensor,
    kind: FeatureName = "elu",
    *,
    features: int = 0,
    seed: int = 0,
    orthogonal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""Non-negative features of x [.., D], for :func:`separable_attention`.

    .. math::
        \text{elu: } \mathrm{elu}(s x) + 1 = \max(s x, 0) + \exp(\min(s x, 0)) \qquad \text{relu: }
        \max(s x, 0) \qquad \text{random: } \exp(w_r \cdot s x - |s x|^2 / 2) / \sqrt{R}

    Over N keys the expectation of the ``random`` kernel is exp of the sum of all dot products among
    the query and the keys of the tuple. For N = 1 this is the kernel of softmax attention. For more
    keys it differs from the multilinear form of :func:`nsimplex.attention`.

    Args:
        x: [.., D], floating. With ``random``, vectors far longer than sqrt(D) underflow: normalise
            them.
        kind: "elu", "relu" or "random".
        features: R of ``random``; 0: D.
        seed: of ``random``. w_r is standard normal. It is a function of seed, R and D alone, and is
            the same on every machine.
        orthogonal: of ``random``: w_r are orthogonal within blocks of D, and their lengths are
            drawn at random.
        scale: s; None: D^-1/4 for ``random``, so that dot products are scaled by D^-1/2, and 1
            otherwise.

    Returns:
        [.., D], or [.., R] for ``random``, in the dtype of x; differentiable, any number of times.
        ``elu`` is exact to a few ulp, even for tiny results, and is 0 only if exp is 0 in the
        dtype. 16-bit types are computed in float32. The bits of ``elu`` and ``relu`` do not depend
        on the number of threads; ``random`` uses torch's matrix product.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Sources: Katharopoulos et al., arXiv 2006.16236, equation 7 (elu); Choromanski et al., arXiv
        2009.14794, lemma 1 and section 2.4 (random, orthogonal).

    Example:
        >>> feature_map(torch.randn(1, 4, 128, 32), "random", features=64, orthogonal=True).shape
        torch.Size([1, 4, 128, 64])
    """
    return operators.feature_map(
        x, kind, features=features, seed=seed, orthogonal=orthogonal, scale=scale
    )


def _features(function: str, query: Tensor, keys: Sequence[Tensor], features: FeatureMap):
    if features is None:
        return query, [*keys]
    if isinstance(features, str):
        if features not in ("elu", "relu", "random"):
            raise ValueError(
                f"[{function}] features: expected elu, relu, random, a function or None, got "
                f"{features!r}"
            )
        for name, x in [("query", query), *((f"keys[{m}]", key) for m, key in enumerate(keys))]:
            if not x.is_floating_point() or x.dim() != 4:
                raise ValueError(
                    f"[{function}] {name}: expected floating numbers [batch, heads, length, "
                    f"channels], got {x.dtype} "
                    f"of shape {list(x.shape)}"
                )
        return feature_map(query, features), [feature_map(key, features) for key in keys]
    made = [_made_by(function, features, x) for x in (query, *keys)]
    return made[0], made[1:]


def _made_by(function: str, features: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The features of x that a function of the caller's makes."""
    made: Any = features(x)
    numbers = isinstance(made, Tensor) and made.is_floating_point()
    if not numbers or made.shape[:-1] != x.shape[:-1]:
        rows = ", ".join(map(str, x.shape[:-1]))
        raise ValueError(
            f"[{function}] features: expected a function that makes floating numbers [{rows}, R] "
            f"of {list(x.shape)}, got {describe(made)}"
        )
    return made


def _computed_by(operator: Callable, function: str) -> Callable:
    """Returns a function that calls ``operator`` with the arguments of :func:`separable_attention`.
    Error messages name ``function``."""

    def compute(
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        *,
        features: FeatureMap = "elu",
        window: Window = None,
        return_normalizer: bool = False,
        layout: Layout = "bhtd",
        **options: Any,
    ) -> Tensor | tuple[Tensor, Tensor]:
        query, keys, values = heads_first(function, layout, query, keys, values)
        query, keys = _features(function, query, keys, features)
        window = flat_window(window, len(keys), "separable_attention")
        out, normalizer = operator(query, keys, [*values], window=window, **options)
        out = in_layout(layout, out)
        return (out, normalizer) if return_normalizer else out

    return compute


@overload
def separable_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_normalizer: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SeparableOptions],
) -> Tensor: ...


@overload
def separable_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_normalizer: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SeparableOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(by=_computed_by(operators.separable_attention, "separable_attention"))
def separable_attention(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    features: FeatureMap = "elu",
    causal: bool = False,
    window: Window = None,
    return_normalizer: bool = False,
    layout: Layout = "bhtd",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""N-simplicial attention with a separable kernel: O(T) time and memory for any number of key
    axes.

    .. math::
        \mathrm{num}_i &= \sum_r \varphi_r(q_i) \prod_m
            \Big(\sum_{j \in A_m(i)} \varphi_r(k^{(m)}_j)\, v^{(m)}_j\Big) \\
        \mathrm{den}_i &= \sum_r \varphi_r(q_i) \prod_m \sum_{j \in A_m(i)} \varphi_r(k^{(m)}_j) \\
        o_i &= \mathrm{num}_i / \mathrm{den}_i

    The products are taken channel by channel. A tuple of keys has the weight sum_r phi_r(q)
    phi_r(k1) .. phi_r(kN), and its values are multiplied, as in :func:`nsimplex.attention`. These
    are the weights of this kernel, not of a softmax. N = 1 is linear attention.

    Args:
        query: [B, Hq, Tq, D], float32, float64, bfloat16 or float16.
        keys: N tensors [B, Hk, T_m, D], 1 <= N <= 8; Hq a multiple of Hk.
        values: N tensors [B, Hk, T_m, Dv].
        features: a kind of :func:`feature_map`; or a function of one tensor, applied to the query
            and every key; or None if query and keys already contain features.
        causal, window: as in :func:`nsimplex.attention`.
        return_normalizer: return (out, den).
        layout: of query, keys, values and out: "bhtd" or "bthd", as in :func:`nsimplex.attention`.
            ``features`` receives [B, heads, T, D] with either layout.

    Returns:
        out [B, Hq, Tq, Dv] in the query's dtype and memory order. With ``return_normalizer`` also
        den [B, Hq, Tq], float32 or float64. Both are differentiable, any number of times. A query
        with den = 0 (no key on some axis, or features that are all zero) has out = 0 and zero
        gradients.

    Raises:
        ValueError, TypeError: an argument that does not fit, in one line.

    Complexity: 2 R (Dv + 1) (N + Hq / Hk) flops per token and key head for R features. Windows take
        about three times as many, and the backward pass about five times as many. Nothing of size
        T R Dv is kept. The CPU runs a SIMD kernel in float32 or float64. Other devices and
        derivatives of second order run :func:`separable_reference`, whose work is quadratic. The
        bits do not depend on the number of threads, except with ``features="random"``.

    Sources: Katharopoulos et al., arXiv 2006.16236, equations 5 to 9, for N = 1.

    Example:
        >>> q, k1, k2, v1, v2 = torch.randn(5, 1, 4, 1000, 32)
        >>> separable_attention(q, [k1, k2], [v1, v2], causal=True).shape
        torch.Size([1, 4, 1000, 32])
    """
    raise NotImplementedError  # computed by what the decorator names


@overload
def separable_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_normalizer: Literal[False] = ...,
    layout: Layout = ...,
    **options: Unpack[SeparableOptions],
) -> Tensor: ...


@overload
def separable_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_normalizer: Literal[True],
    layout: Layout = ...,
    **options: Unpack[SeparableOptions],
) -> tuple[Tensor, Tensor]: ...


@checked(
    options_of=separable_attention,
    by=_computed_by(operators.separable_attention_reference, "separable_reference"),
)
def separable_reference(
    query: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    *,
    return_normalizer: bool = False,
    layout: Layout = "bhtd",
    **options: Unpack[SeparableOptions],
) -> Tensor | tuple[Tensor, Tensor]:
    """:func:`separable_attention` computed with plain tensor operations in O(Tq T_m), for every
    dtype and device. It is the reference for tests.

    Arguments, options and results are those of :func:`separable_attention`.
    """
    raise NotImplementedError  # computed by what the decorator names


@checked_methods
class SeparableCache(LayerCache):
    """Causal separable attention for one token after another. The memory does not grow with the
    number of tokens.

    >>> cache = SeparableCache([-1, 64])                  # -1: all keys; 64: the last 64 of them
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # the prompt, in chunks of any length
    >>> out = cache.attend(query, [k1, k2], [v1, v2])     # then one token after the other

    The outputs equal those of :func:`separable_attention` for the whole sequence with
    ``causal=True`` and the same windows, up to rounding, for any division into chunks. An axis
    without a window keeps its state, [B, Hk, R, Dv + 1] in float32 or wider. An axis with a window
    keeps the features and values of its last keys. For inference only.

    Args:
        window: one int per axis; -1: all keys.
        features: as in :func:`separable_attention`.
    """

    def __init__(self, window: Sequence[int], features: FeatureMap = "elu") -> None:
        super().__init__(classes.SeparableCache([*window]), [*window], features)
        self._map: FeatureMap = features

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        return_normalizer: Literal[False] = ...,
    ) -> Tensor: ...

    @overload
    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        return_normalizer: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...

    def attend(
        self,
        query: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        return_normalizer: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Appends t >= 1 tokens and attends with their queries [B, Hq, t, D]."""
        query, keys = _features("SeparableCache", query, keys, self._map)
        out, normalizer = self._cache.attend(query, keys, [*values])
        return (out, normalizer) if return_normalizer else out
