"""What a table cannot tell about a learned graph."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import checked
from .._hints import Numbers
from .arrays import column_names, graph_matrix, read_columns
from .confidence import closure
from .graphs import causal_baselines, causal_sortability
from .linear_model import log_likelihood, regress, residuals

_SORTED = 0.9  # varsortability from which variances count as telling the order
_EDGES = 5  # a graph with fewer edges may be sorted by chance


class VarianceOrderWarning(UserWarning):
    """Variances alone order the columns, so the graph may follow units instead of causes."""


class CausalLimits(NamedTuple):
    """Facts about a graph of M columns that its adjacency does not show."""

    bic: float  #: of the linear Gaussian model of the graph; smaller is better
    cpdag: Tensor  #: bool [M, M]: ``[i, j]`` and ``[j, i]`` if the direction cannot be told
    reversible: list[tuple[int, int]]  #: edges (cause, effect) whose direction cannot be told
    varsortability: float  #: share of paths along which the variance rises; 0.5 is chance
    sorted_by_variance: tuple[int, int]  #: edges that sorting by variance gives too, and all edges
    dependent: list[tuple[int, int, float]]  #: columns with dependent noises, and the p-value
    tests: int  #: number of pairs of noises tested
    names: list[str]

    def report(self) -> list[str]:
        """The findings as sentences."""
        edges = self.sorted_by_variance[1]
        found = [f"BIC of the linear Gaussian model: {self.bic:.1f}"]
        if self.reversible:
            pairs = self._joined([f"{self._name(i)} - {self._name(j)}" for i, j in self.reversible])
            found.append(
                f"The direction of {len(self.reversible)} of {edges} edges cannot be told from "
                f"linear Gaussian data: {pairs}"
            )
        else:
            found.append("Linear Gaussian data tell the direction of every edge")
        if evidence := variance_evidence(self.varsortability, *self.sorted_by_variance):
            found.append(evidence)
        if self.dependent:
            pairs = self._joined(
                [f"{self._name(i)} - {self._name(j)} (p = {p:.1g})" for i, j, p in self.dependent]
            )
            found.append(
                f"The noises of {len(self.dependent)} of {self.tests} pairs of columns depend on "
                "each other, which a common cause outside the table, a curved effect, a missing "
                f"edge or a wrong direction explains: {pairs}"
            )
        else:
            found.append(
                f"No dependence between the noises of {self.tests} pairs of columns was found; "
                "with Gaussian noise a common cause outside the table may stay hidden"
            )
        return found

    def _name(self, column: int) -> str:
        return self.names[column] if self.names else f"x{column}"

    @staticmethod
    def _joined(parts: list[str]) -> str:
        more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
        return ", ".join(parts[:8]) + more


@checked
def causal_limits(
    table: Numbers, graph: Numbers, *, names: list[str] | None = None, level: float = 0.05
) -> CausalLimits:
    """Says what a table [n, M] cannot tell about an acyclic graph [M, M] of its columns.

    - **Direction.** The completed partially directed graph (CPDAG) has the edges whose direction
      all graphs share that linear Gaussian data cannot distinguish from this one. It comes from the
      colliders of the graph by Meek's rules.
    - **Units.** Varsortability is the share of directed paths along which the variance rises. A
      number near 1 means that units may have decided the order.
    - **Common causes outside the table.** With the right graph, linear effects and no common cause
      outside the table, the noises of all columns are independent. Each pair of residuals e_i, e_j
      is tested: by the correlation of tanh(e_i) and tanh(e_j) if no edge joins them, and by the
      correlations of f(e_i) and g(e_j), with f and g among tanh(2 e) and exp(-e^2 / 2), each minus
      the multiple of tanh(e) that makes its mean slope 0. Such a correlation does not depend on
      errors of the weights to first order. Holm's method aims at a probability of at most ``level``
      for one false finding. For edges between Gaussian columns this test has no power.

    Args:
        graph: [M, M], entries other than 0 are edges i -> j.
        names: of the columns; None: those of the table, if it has some.
        level: of the tests.

    Raises:
        ValueError, TypeError: the message names the argument. A graph with a cycle is refused.

    O(n M^2 + M^3), and O(M^4) at worst for the CPDAG.

    Sources: Meek, UAI 1995; Chickering, JMLR 2002 (CPDAG); Reisach, Seiler, Weichwald, NeurIPS 2021
        (varsortability); Shimizu et al., JMLR 2011 (independence of residuals); Holm 1979.
    """
    values, own_names, _ = read_columns("causal_limits", "table", table)
    adjacency = graph_matrix("causal_limits", "graph", graph, own_names, "table").values
    if values.dim() != 2 or adjacency.shape != (values.size(1), values.size(1)):
        raise ValueError(
            f"[causal_limits] graph: expected [M, M] for a table [n, M], got "
            f"{list(adjacency.shape)} and {list(values.shape)}"
        )
    if not values.isfinite().all():
        raise ValueError("[causal_limits] table: expected finite numbers")
    if len(values) < 4:
        raise ValueError(f"[causal_limits] table: expected at least 4 rows, got {len(values)}")
    if not 0 < level < 1:
        raise ValueError(f"[causal_limits] level: expected a number in (0, 1), got {level}")
    edges = (adjacency != 0).fill_diagonal_(False)
    if closure(edges).diagonal().any():
        raise ValueError("[causal_limits] graph: expected no cycle")
    if names is not None and len(names) != len(edges):
        raise ValueError(
            f"[causal_limits] names: expected {len(edges)}, one per column, got {len(names)}"
        )
    model = regress(values, edges.double())
    cpdag = completed(edges)
    reversible = (edges & cpdag & cpdag.T).nonzero().tolist()
    dependent, tests = _dependent_noises(residuals(values, model), edges, level)
    parameters = int(edges.sum()) + 2 * len(edges)
    return CausalLimits(
        float(-2 * log_likelihood(values, model).sum() + math.log(len(values)) * parameters),
        cpdag,
        [(i, j) for i, j in reversible],
        *variance_order(values, edges),
        dependent,
        tests,
        list(names) if names is not None else column_names(table),
    )


def variance_order(values: Tensor, edges: Tensor) -> tuple[float, tuple[int, int]]:
    """Varsortability, and how many edges sorting by variance gives, of how many."""
    count = int(edges.sum())
    if count == 0:
        return math.nan, (0, 0)
    by_variance = causal_baselines(values)["variance_sort"][0] != 0
    shared = int((by_variance & edges).sum())
    return causal_sortability(values, edges.double()).variance, (shared, count)


def variance_evidence(varsortability: float, shared: int, edges: int) -> str:
    """A sentence if variances alone order the columns; else nothing."""
    if edges < _EDGES or not varsortability >= _SORTED:
        return ""
    return (
        f"Variances alone order the columns: they rise along {varsortability:.0%} of the directed "
        f"paths, and sorting by variance gives {shared} of the {edges} edges; standardise=True "
        "shows what remains in other units"
    )


def completed(edges: Tensor) -> Tensor:
    """The CPDAG [M, M] of an acyclic graph: both entries of a pair whose direction can differ."""
    joined = edges | edges.T
    # Colliders i -> k <- j of columns i, j that no edge joins.
    apart = (~joined).fill_diagonal_(False).double()
    fixed = edges & ((apart @ edges.double()) > 0)
    while True:
        loose = joined & ~fixed & ~fixed.T
        arrows, lines = fixed.double(), loose.double()
        # i -> j - k and no edge i, k: then j -> k.
        first = loose & ((arrows.T @ apart) > 0)
        # i -> j -> k and i - k: then i -> k.
        second = loose & ((arrows @ arrows) > 0)
        # i - k, i - j -> k, i - l -> k and no edge j, l: then i -> k.
        third = torch.zeros_like(fixed)
        for i, k in (loose & ~first & ~second & ((lines @ arrows) > 0)).nonzero().tolist():
            between = (loose[i] & fixed[:, k]).nonzero().flatten()
            third[i, k] = bool(apart[between[:, None], between].any())
        found = first | second | third
        if not found.any():
            return fixed | loose
        fixed = fixed | found


def _dependent_noises(
    noise: Tensor, edges: Tensor, level: float
) -> tuple[list[tuple[int, int, float]], int]:
    """Pairs of columns whose noises depend on each other, the smallest p-value first, and the
    number of pairs."""
    rows, count = noise.shape
    noise = _standardised(noise)
    bounded = noise.tanh()
    bell = (-noise.square() / 2).exp()
    slope = (1 - bounded.square()).mean(dim=0)
    steep = (2 - 2 * (2 * noise).tanh().square()).mean(dim=0)
    curved = [
        (2 * noise).tanh() - bounded * steep / slope,
        bell + bounded * (noise * bell).mean(dim=0) / slope,
    ]
    curved, bounded = [_standardised(each) for each in curved], _standardised(bounded)
    largest = torch.stack([(a.T @ b / rows).abs() for a in curved for b in curved]).amax(dim=0)
    curved_p = (len(curved) ** 2 * _two_sided(largest, rows)).clamp(max=1)
    plain_p = _two_sided((bounded.T @ bounded / rows).abs(), rows)
    plain_p = torch.where(edges | edges.T, 1.0, plain_p)
    p = (2 * torch.minimum(curved_p, plain_p)).clamp(max=1)
    upper = torch.triu_indices(count, count, 1)
    own = torch.minimum(p, p.T)[upper[0], upper[1]]
    order = own.argsort(stable=True)
    limits = level / torch.arange(len(own), 0, -1, dtype=torch.float64)
    passed = int((own[order] <= limits).double().cumprod(dim=0).sum())
    found = [(int(upper[0, at]), int(upper[1, at]), float(own[at])) for at in order[:passed]]
    return found, len(own)


def _standardised(values: Tensor) -> Tensor:
    centred = values - values.mean(dim=0)
    return centred / centred.std(dim=0, correction=0).clamp(min=1e-12)


def _two_sided(correlations: Tensor, rows: int) -> Tensor:
    """P-values of correlations of independent numbers, by Fisher's transformation."""
    z = correlations.clamp(max=1 - 1e-15).atanh() * math.sqrt(rows - 3)
    return torch.special.erfc(z / math.sqrt(2))
