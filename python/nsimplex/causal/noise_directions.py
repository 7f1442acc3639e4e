"""Directions of edges by noise that is not Gaussian."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._hints import Numbers
from .arrays import as_double
from .confidence import closure

# Hyvaerinen's approximation of negentropy: the squared excesses of two means over those of a
# standard normal variable, divided by twice their variances.
_LOG_COSH, _LOG_COSH_FACTOR = 0.37457, 79.047
_ODD_FACTOR = 7.4129
_LEAST = 1e-12  # share of a column's variance that a noise may have
_MOST_ORDERED = 50  # columns up to which a second start is tried
_ORDER_ROWS = 300  # rows that decide the order of the second start


class NoiseDirections(NamedTuple):
    """A causal graph whose directions take account of the shape of the noise."""

    adjacency: Tensor  #: float64 [M, M]: coefficients of the regressions; 0 means no edge
    turned: list[tuple[int, int]]  #: edges (cause, effect) of the result that were reversed
    gain: float  #: decrease of the cost from the given graph
    p_value: float  #: of the hypothesis that all noises of the given graph are Gaussian


@checked
def orient_by_noise(table: Numbers, graph: Numbers, *, level: float = 0.01) -> NoiseDirections:
    r"""Reverses edges of an acyclic graph [M, M] while noise that is not Gaussian speaks for it.

    Covariances do not tell the direction of every edge. In a linear model with independent noises
    of which at most one is Gaussian, the noises do. The cost of a graph is

    .. math::
        \sum_j \big[ n \log \hat\sigma_j^2 - 2 n J(\hat e_j / \hat\sigma_j) + 2 \log n\, p_j \big]

    with the residuals :math:`\hat e_j` of column j regressed on its :math:`p_j` causes and the
    approximate negentropy :math:`J(u) = 79.047 (\mathrm{mean} \log\cosh u - 0.37457)^2 + 7.4129
    (\mathrm{mean}\, u e^{-u^2/2})^2`. A step reverses one edge i -> j that no other path joins.
    Both columns may then have the causes of either, and those are dropped whose absence lowers the
    Gaussian part of the cost. After each sweep over the edges, every column may also gain causes. A
    step is kept if the whole cost falls. With at most 50 columns, a second search starts from the
    order that the noises of 300 rows suggest, as in DirectLiNGAM; the result of lower cost counts.

    If all noises are Gaussian, the sum of 2 n J is nearly a chi-squared variable of 2 M degrees of
    freedom. The graph is returned as it was given if this sum is not significant.

    Args:
        table: [n, M], linear effects, n >= 4, finite, no column constant.
        graph: [M, M], entries other than 0 are edges i -> j, such as the adjacency of
            :func:`causal_fit`.
        level: of the test.

    Raises:
        ValueError, TypeError: the message names the argument, the expected value and the value
            received.

    O(n M^2 + M^3), and per edge and sweep O(n p + p^4) for at most p causes. The second start takes
    O(300 M^3) and about 10 M^2 kilobytes.

    Sources: Shimizu et al., JMLR 2006 and 2011 (LiNGAM, DirectLiNGAM); Hyvaerinen, NIPS 1998
        (negentropy); Chickering, JMLR 2002 (reversals).
    """
    values = as_double("orient_by_noise", "table", table)
    given = as_double("orient_by_noise", "graph", graph)
    if values.dim() != 2 or given.shape != (values.size(1), values.size(1)):
        raise ValueError(
            "[orient_by_noise] graph: expected [M, M] for a table [n, M], got "
            f"{list(given.shape)} and {list(values.shape)}"
        )
    if len(values) < 4:
        raise ValueError(f"[orient_by_noise] table: expected at least 4 rows, got {len(values)}")
    if not values.isfinite().all():
        raise ValueError("[orient_by_noise] table: expected finite numbers")
    if not 0 < level < 1:
        raise ValueError(f"[orient_by_noise] level: expected a number in (0, 1), got {level}")
    edges = (given != 0).fill_diagonal_(False)
    if closure(edges).diagonal().any():
        raise ValueError("[orient_by_noise] graph: expected no cycle")
    constant = (values == values[0]).all(dim=0).nonzero().flatten().tolist()
    if constant:
        raise ValueError(f"[orient_by_noise] table: column {constant[0]} is constant")
    units = values.abs().amax(dim=0)  # squares of large numbers would be infinite
    scaled = values / units
    scaled = scaled - scaled.mean(dim=0)
    deviations = scaled.square().mean(dim=0).sqrt()
    search = _Search(scaled / deviations, edges)
    deviations = deviations * units
    p_value = search.p_value()
    gain = 0.0
    if p_value < level:
        start, gain = list(search.causes), search.improve()
        if len(edges) <= _MOST_ORDERED:
            found, search.causes = search.causes, start
            other = search.restart() + search.improve()
            if other > gain + 1e-9 * len(values):
                gain = other
            else:
                search.causes = found
    return NoiseDirections(
        search.coefficients() * deviations / deviations[:, None],
        [(i, j) for j, causes in enumerate(search.causes) for i in sorted(causes) if edges[j, i]],
        gain,
        p_value,
    )


class _Regression(NamedTuple):
    """Of a column on its causes, in the order of their numbers."""

    variance: float  #: of the residual
    slopes: Tensor  #: [p]
    inverse: Tensor  #: [p]: diagonal of the inverse covariance of the causes


class _Search:
    """Steps from one graph to the next; columns have mean 0 and variance 1."""

    def __init__(self, columns: Tensor, edges: Tensor) -> None:
        self.columns = columns.T.contiguous()  # [M, n]
        self.rows = len(columns)
        self.covariance = columns.T @ columns / self.rows
        self.price = 2 * math.log(self.rows)
        self.causes = [
            frozenset(edges[:, j].nonzero().flatten().tolist()) for j in range(len(edges))
        ]
        self._fitted: dict[tuple[int, frozenset[int]], _Regression] = {}
        self._negentropies: dict[tuple[int, frozenset[int]], float] = {}

    def p_value(self) -> float:
        total = sum(self._negentropy(j, causes) for j, causes in enumerate(self.causes))
        half = torch.tensor([len(self.causes), self.rows * total], dtype=torch.float64)
        return float(torch.special.gammaincc(half[0], half[1]))  # of chi-squared

    def improve(self) -> float:
        """Sweeps over all edges and columns until nothing changes; the decrease of the cost."""
        total, before = 0.0, -1.0
        while total > before:
            before = total
            for effect in range(len(self.causes)):
                for cause in sorted(self.causes[effect]):
                    if cause in self.causes[effect]:
                        total += self._reverse(cause, effect)
            for effect in range(len(self.causes)):
                total += self._regrow(effect, self._descendants(effect))
        return total

    def restart(self) -> float:
        """The graph of lowest Gaussian cost in the order that the noises suggest; the decrease of
        the whole cost."""
        before = sum(self._cost(j, causes) for j, causes in enumerate(self.causes))
        later = set(range(len(self.causes)))
        self.causes = [frozenset()] * len(later)
        for column in noise_order(self.columns[:, :_ORDER_ROWS]):
            self._regrow(column, later)
            later.remove(column)
        return before - sum(self._cost(j, causes) for j, causes in enumerate(self.causes))

    def coefficients(self) -> Tensor:
        found = torch.zeros_like(self.covariance)
        for effect, causes in enumerate(self.causes):
            found[torch.tensor(sorted(causes), dtype=torch.int64), effect] = self._fit(
                effect, causes
            ).slopes
        return found

    def _reverse(self, cause: int, effect: int) -> float:
        if self._joined_otherwise(cause, effect):
            return 0.0
        both = (self.causes[cause] | self.causes[effect]) - {cause}
        of_effect = self._pruned(effect, both)
        of_cause = self._pruned(cause, both | {effect}, keep=effect)
        old = self._cost(cause, self.causes[cause]) + self._cost(effect, self.causes[effect])
        gain = old - self._cost(cause, of_cause) - self._cost(effect, of_effect)
        if gain <= 1e-9 * self.rows:
            return 0.0
        self.causes[cause], self.causes[effect] = of_cause, of_effect
        return gain

    def _regrow(self, effect: int, barred: set[int]) -> float:
        """Adds causes that lower the Gaussian cost, the best first, and drops others."""
        own = self.causes[effect]
        while len(own) < max(self.rows // 10, 1):
            left = [j for j in range(len(self.causes)) if j not in barred and j not in own]
            fit, known = self._fit(effect, own), torch.tensor(sorted(own), dtype=torch.int64)
            if not left:
                break
            others = self.covariance[known][:, left]
            inverse = _inverse(self.covariance[known[:, None], known])
            shared = self.covariance[effect, left] - fit.slopes @ others
            free = (1 - (others * (inverse @ others)).sum(dim=0)).clamp(min=_LEAST)
            explained = (shared.square() / free).tolist()
            most, cause = max(zip(explained, left))
            after = max(fit.variance - most, _LEAST)
            if self.rows * math.log(fit.variance / after) <= self.price:
                break
            own = own | {cause}
        own = self._pruned(effect, own)
        gain = self._cost(effect, self.causes[effect]) - self._cost(effect, own)
        if gain <= 1e-9 * self.rows:
            return 0.0
        self.causes[effect] = own
        return gain

    def _descendants(self, column: int) -> set[int]:
        found, before = {column}, 0
        while len(found) > before:
            before = len(found)
            found |= {j for j, causes in enumerate(self.causes) if causes & found}
        return found

    def _joined_otherwise(self, cause: int, effect: int) -> bool:
        """Whether a path of two or more edges leads from cause to effect."""
        waiting, seen = list(self.causes[effect] - {cause}), set()
        while waiting:
            column = waiting.pop()
            if column == cause:
                return True
            if column not in seen:
                seen.add(column)
                waiting.extend(self.causes[column])
        return False

    def _pruned(self, effect: int, causes: frozenset[int], keep: int = -1) -> frozenset[int]:
        """Causes, one after the other, are dropped while that lowers the Gaussian cost."""
        while causes - {keep}:
            fit = self._fit(effect, causes)
            added = (fit.slopes.square() / fit.inverse).tolist()  # variance without each cause
            least, cause = min((a, c) for a, c in zip(added, sorted(causes)) if c != keep)
            if self.rows * math.log1p(least / fit.variance) >= self.price:
                break
            causes = causes - {cause}
        return causes

    def _cost(self, effect: int, causes: frozenset[int]) -> float:
        gaussian = self._gaussian_cost(effect, causes)
        return gaussian - 2 * self.rows * self._negentropy(effect, causes)

    def _gaussian_cost(self, effect: int, causes: frozenset[int]) -> float:
        return self.rows * math.log(self._fit(effect, causes).variance) + self.price * len(causes)

    def _fit(self, effect: int, causes: frozenset[int]) -> _Regression:
        key = effect, causes
        if key not in self._fitted:
            own = torch.tensor(sorted(causes), dtype=torch.int64)
            right = self.covariance[own, effect]
            inverse = _inverse(self.covariance[own[:, None], own])
            slopes = inverse @ right
            variance = max(1.0 - float(slopes @ right), _LEAST)
            self._fitted[key] = _Regression(variance, slopes, inverse.diagonal())
        return self._fitted[key]

    def _negentropy(self, effect: int, causes: frozenset[int]) -> float:
        key = effect, causes
        if key not in self._negentropies:
            fit = self._fit(effect, causes)
            if fit.variance < 10 * _LEAST:
                return 0.0  # the causes determine the column, and what is left is rounding
            noise = self.columns[effect] - fit.slopes @ self.columns[sorted(causes)]
            noise /= math.sqrt(fit.variance)
            self._negentropies[key] = float(negentropy(noise))
        return self._negentropies[key]


def negentropy(values: Tensor) -> Tensor:
    """Of values [.., n] of mean 0 and variance 1: [..]."""
    size = values.abs()
    log_cosh = (size + torch.log1p(torch.exp(-2 * size))).mean(dim=-1) - math.log(2)
    odd = (values * torch.exp(-0.5 * values.square())).mean(dim=-1)
    return _LOG_COSH_FACTOR * (log_cosh - _LOG_COSH).square() + _ODD_FACTOR * odd.square()


def noise_order(columns: Tensor) -> list[int]:
    """Columns [M, n] from causes to effects: next comes the one whose regressions explain the
    others best by independent noises, and then the others lose their part of it. O(M^3 n)."""
    left, order = list(range(len(columns))), []
    rest = columns - columns.mean(dim=1, keepdim=True)
    while left:
        scaled = rest / rest.square().mean(dim=1, keepdim=True).sqrt().clamp(min=_LEAST**0.5)
        shared = scaled @ scaled.T / scaled.size(1)
        free = (1 - shared.square()).clamp(min=_LEAST).sqrt()
        # [i, j]: column i without its part of column j
        without = (scaled[:, None] - shared[..., None] * scaled) / free[..., None]
        gained = negentropy(scaled)[:, None] + negentropy(without).T
        against = (gained - gained.T).clamp(max=0).fill_diagonal_(0).square().sum(dim=1)
        at = int(against.argmin())
        order.append(left.pop(at))
        keep = [row for row in range(len(rest)) if row != at]
        rest = scaled[keep] - shared[keep, at, None] * scaled[at]
    return order


def _inverse(covariance: Tensor) -> Tensor:
    """The inverse, or of causes that determine each other the pseudo-inverse."""
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if failed or (factor.diagonal() < _LEAST**0.5).any():
        return torch.linalg.pinv(covariance, hermitian=True)
    return torch.cholesky_inverse(factor)
