"""Diagnostics of token collapse, for tensors and for every layer of a running model.

Tokens are rows of X [.., n, d]. Batch entries are independent. Functions compute in float64, and
all except ``minimal_residual`` support gradients. Errors name the argument, the expected value and
the value received.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import checked, checked_methods
from .._compiled_models import require_modules
from .._library import operators

__all__ = [
    "CollapseBound",
    "LayerSmoothing",
    "MinimalResidual",
    "SmoothingMonitor",
    "collapse_bound",
    "composite_norm",
    "dirichlet_energy",
    "effective_rank",
    "mean_cosine",
    "mean_residual",
    "minimal_residual",
]


class MinimalResidual(NamedTuple):
    """The smallest ||X - 1 u^T||_{1,inf} over u."""

    norm: Tensor  #: [..], attained by ``offset``
    lower: Tensor  #: [..], certified: no u gives a smaller norm
    offset: Tensor  #: u, [.., d]


#: Of a row of the logits' remainder, scaled: up to here the lemma of Theorem 3.1 is proven.
LARGEST_RANGE = 1.256


class CollapseBound(NamedTuple):
    """Both sides of Theorem 3.1 for one head and one X."""

    residual: float  #: ||res(X)||, a lower bound
    next_residual: float  #: ||res(X')||, the value attained
    next_norm: float  #: ||X'||
    bound: float  #: the right side, with an upper bound of ||res(X)||
    gamma: float
    beta: float  #: beta'
    logit_range: float  #: the largest range of a row of the logits' remainder E, scaled

    @property
    def assumption_holds(self) -> bool:
        """Whether the assumption of the theorem's lemma holds: |E_ij - E_ij'| <= 1.256."""
        return self.logit_range <= LARGEST_RANGE


@checked
def collapse_bound(
    keys: Sequence[Tensor], values: Sequence[Tensor], tokens: Tensor, output: Tensor | None = None
) -> CollapseBound:
    r"""The token collapse by one head of attention, and the bound of Theorem 3.1:

    .. math:: \|res(X')\| \le \frac{4 \gamma}{\sqrt d} \beta' \|X\|^{2(N-1)} \|res(X)\|^3

    Args:
        keys: W_K^(0), the queries', to W_K^(N), each [C, d].
        values: W_V^(1) to W_V^(N), each [C, Dv].
        tokens: X [n, C].
        output: [Dv, E], a head's slice of an output projection. X' is multiplied by it, and the
            bound by its norm.

    The theorem is for product form and values, softmax, logits over sqrt(d), no mask and no skip.
    The function computes in float64 on the CPU, without gradients. It takes O(n^(2N+1)) and is
    meant for few tokens: n^(N+1) is at most 2^29. Source: "How Smoothing is N-simplicial
    Attention?", Theorem 3.1.
    """
    return CollapseBound(*operators.collapse_bound(list(keys), list(values), tokens, output))


@checked
def composite_norm(tokens: Tensor) -> Tensor:
    """||X||_{1,inf} = sqrt(||X||_1 ||X||_inf), [..]: the geometric mean of the largest column sum
    and the largest row sum of magnitudes.

    It is not a norm, because it is neither convex nor subadditive. Source: Dong et al., "Attention
    is not all you need".
    """
    return operators.composite_norm(tokens)


@checked
def mean_residual(tokens: Tensor) -> Tensor:
    """X - 1 mean(X)^T, [.., n, d]. Its ``composite_norm`` is an upper bound of the smallest
    residual."""
    return operators.mean_residual(tokens)


@checked
def minimal_residual(tokens: Tensor, tolerance: float = 1e-7) -> MinimalResidual:
    """The smallest ||X - 1 u^T||_{1,inf} over u, up to a relative gap of ``tolerance``, with a
    certified lower bound.

    It runs on the CPU and without gradients. It takes 1 ms per matrix at n = d = 8, and is meant
    for n and d up to a few hundred.
    """
    return MinimalResidual(*operators.minimal_residual(tokens, tolerance))


@checked
def effective_rank(tokens: Tensor) -> Tensor:
    """exp of the entropy of the singular values' shares, [..]: 1 for one direction, min(n, d) at
    most, 0 for X = 0, NaN if X holds a NaN or an infinity.

    Source: Roy and Vetterli, "The effective rank: a measure of effective dimensionality".
    """
    return operators.effective_rank(tokens)


@checked
def mean_cosine(tokens: Tensor) -> Tensor:
    """Mean cosine of all pairs of different tokens, [..]; NaN for fewer than two tokens."""
    return operators.mean_cosine(tokens)


@checked
def dirichlet_energy(tokens: Tensor) -> Tensor:
    """1/n sum_i sum_j ||x_i - x_j||^2 over all pairs of tokens, [..]. Source: Rusch et al., "A
    survey on oversmoothing in graph neural networks", with all tokens neighbours of each other."""
    return operators.dirichlet_energy(tokens)


def _minimal_norm(tokens: Tensor) -> Tensor:
    """The norm of the minimal residual; NaN for tokens that are not finite."""
    bad = ~tokens.isfinite().flatten(-2).all(-1)
    return minimal_residual(tokens.masked_fill(bad[..., None, None], 0)).norm.masked_fill(
        bad, torch.nan
    )


class LayerSmoothing(NamedTuple):
    """Metrics of one output of a module. Each is one number per batch element, float64 on the CPU,
    and NaN if the element's output has a NaN or an infinity."""

    name: str  #: name of the module
    residual: Tensor  #: ||X - 1 u^T||_{1,inf}
    ratio: Tensor  #: residual over ||X||_{1,inf}
    effective_rank: Tensor
    mean_cosine: Tensor
    dirichlet_energy: Tensor


@checked_methods
class SmoothingMonitor:
    """Measures the outputs of a model's modules while the model runs.

    >>> with SmoothingMonitor(model) as monitor:
    ...     model(batch)
    >>> [float(layer.ratio.mean()) for layer in monitor.layers]

    Args:
        model: any ``torch.nn.Module``.
        modules: names (as in ``model.named_modules()``) of the modules to watch. By default, all
            entries of every ``ModuleList``, because models keep their layers there.
        exact: use the smallest residual instead of the mean residual. It is slower and meant for
            small matrices.

    ``layers`` has one entry per run of a watched module, in the order of the runs. If an output is
    a tuple or a list, its first entry is measured. An output that is not a floating point tensor
    [.., n, d] is refused. Outputs are read but never changed, and the metrics have no gradients.

    A model that torch compiled runs without its compiled code while it is watched, because that
    code leaves out hooks. A scripted, traced or exported model is refused.

    Raises:
        ValueError: a name that the model does not have, or on leaving, if no watched module ran, or
            one that was named did not.
    """

    def __init__(
        self, model: torch.nn.Module, *, modules: Iterable[str] | None = None, exact: bool = False
    ) -> None:
        require_modules("[SmoothingMonitor] ", model)
        known = dict(model.named_modules())
        self._named = modules is not None
        if modules is None:
            modules = [
                f"{name}.{place}".removeprefix(".")
                for name, module in known.items()
                if isinstance(module, torch.nn.ModuleList)
                for place in range(len(module))
            ]
        self._names = list(modules)
        if not self._names:
            raise ValueError(
                "[SmoothingMonitor] modules: expected names, since the model has no ModuleList"
            )
        for name in self._names:
            if name not in known:
                raise ValueError(f"[SmoothingMonitor] modules: the model has no module {name!r}")
        self._modules = [known[name] for name in self._names]
        self._exact = exact
        self._watching = ExitStack()
        self._ran: set[str] = set()
        self.layers: list[LayerSmoothing] = []

    def __enter__(self) -> SmoothingMonitor:
        self._ran = set()
        self._watching.enter_context(torch.compiler.set_stance("force_eager"))
        for name, module in zip(self._names, self._modules, strict=True):
            handle = module.register_forward_hook(self._hook(name))
            self._watching.callback(handle.remove)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._watching.close()
        missing = [name for name in self._names if name not in self._ran]
        if kind is None and missing and (self._named or not self._ran):
            raise ValueError(
                f"[SmoothingMonitor] model: expected a run of {', '.join(missing[:4])} while "
                "it is watched, got none; a copy, or a program traced from the model, does not "
                "count"
            )

    def _hook(self, name: str):
        def hook(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
            self._ran.add(name)
            self.layers.append(self._measure(name, output))

        return hook

    @torch.no_grad()
    def _measure(self, name: str, output: Any) -> LayerSmoothing:
        tokens = output[0] if isinstance(output, (tuple, list)) else output
        if not isinstance(tokens, Tensor) or not tokens.is_floating_point() or tokens.dim() < 2:
            what = (
                f"shape {list(tokens.shape)}"
                if isinstance(tokens, Tensor)
                else type(tokens).__name__
            )
            raise ValueError(
                f"[SmoothingMonitor] {name}: expected an output [.., tokens, channels], got {what}"
            )
        tokens = tokens.to("cpu", torch.float64)
        residual = _minimal_norm(tokens) if self._exact else composite_norm(mean_residual(tokens))
        return LayerSmoothing(
            name,
            residual,
            residual / composite_norm(tokens),
            effective_rank(tokens),
            mean_cosine(tokens),
            dirichlet_energy(tokens),
        )
