// Declares the linear model of a graph: each column regressed on its causes.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_effects.h>

#include <cstdint>
#include <span>
#include <vector>

namespace nsimplex::causal {

using LinearModel = LinearCausalModel;

/// Regressions of all columns of a table [n, M], float64, on their causes in a graph [M, M].
///
/// `groups` has the number of each row's group, or is empty; slopes then come from values within
/// groups, and variances are those about one intercept. `targets` has the columns that were
/// intervened on in each row, or is empty; such a row is left out of the regression of these
/// columns. With missing values (NaN), the rows of a regression are those that have all of its
/// columns. The pseudo-inverse accepts causes that determine each other.
///
/// Throws InputError "ARGUMENT: .." for groups or targets of another table.
///
/// Complexity: O(n M^2 + M p^3) for p causes, and O(n M^2) more for each column that was intervened
/// on.
LinearModel linear_model(const at::Tensor& table, const at::Tensor& graph,
                         std::span<const int64_t> groups = {},
                         const std::vector<std::vector<int64_t>>& targets = {});

/// The noises [n, M] of the rows of a table without missing values: x - x coefficients, less their
/// means, within `groups` if there are some.
at::Tensor noises(const at::Tensor& table, const LinearModel& model,
                  std::span<const int64_t> groups = {});

}  // namespace nsimplex::causal
