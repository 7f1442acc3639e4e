// Declares the test whether effects of a graph are curves.

#pragma once

#include "causal/matrix.h"

namespace nsimplex::causal {

/// The p-value of the hypothesis that every column of a table [n, M] is linear in its causes in an
/// acyclic graph [M, M]: the functions exp(-z^2 / 2) and tanh(2 z) of the standardised causes z are
/// added to the regression of each column, an F-test looks whether they lower its squared residuals,
/// and Bonferroni's correction is for M columns. 1 without causes, or where rows do not suffice.
/// Complexity: O(n p^2) per column of p causes.
double curvature_p_value(TableView table, TableView graph);

}  // namespace nsimplex::causal
