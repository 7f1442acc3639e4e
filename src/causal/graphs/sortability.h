#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The population variance of every column. O(n M).
Vector column_variances(TableView table);

/// R^2 of the regression of every column on all others, 1 - 1 / (v_j (S^-1)_jj) for the covariance
/// S with variances v. Where columns explain each other wholly, as with fewer observations than
/// columns, it is 1 but for rounding. O(n M^2 + M^3).
Vector column_r2(TableView table);

/// How well numbers of the columns tell the causal order: of all pairs (i, j) with a directed path
/// of exactly k edges, for each k = 1 .. M - 1 anew, the share with a lower number at i; equal ones
/// count half. NaN of a graph without edges; 0.5 is chance.
///
/// With variances it is varsortability (Reisach, Seiler, Weichwald, "Beware of the simulated DAG",
/// NeurIPS 2021), with R^2 it is R2-sortability (Reisach et al., "A scale-invariant sorting
/// criterion to find a causal order in additive noise models", NeurIPS 2023).
///
/// Complexity: O(M edges L / 64) for paths of at most L edges.
double sortability(const Vector& numbers, const Matrix& graph);

}  // namespace nsimplex::causal
