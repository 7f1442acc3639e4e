// Declares the arguments of operators that fit a causal graph.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal_options.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nsimplex::causal {

/// The arguments of operators that fit a causal graph, in the order of their schemas. Options are
/// names, and edges are tables of two columns.
inline constexpr char kFitSchema[] =
    "Tensor table, str estimator, bool nonlinear, bool standardise, float? threshold, float? "
    "sparsity, int rank, bool sample, int seed, Tensor forbidden, Tensor required, int[] tiers, "
    "int[] groups, Tensor? targets, bool soft, str[] kinds, str missing";

/// Options from the arguments after the table, which has `rows` rows. c10::ValueError "[function]
/// ARGUMENT: ..".
CausalFitOptions parse_fit_options(const char* function, int64_t rows, std::string_view estimator,
                                   bool nonlinear, bool standardise,
                                   std::optional<double> threshold, std::optional<double> sparsity,
                                   int64_t rank, bool sample, int64_t seed,
                                   const at::Tensor& forbidden, const at::Tensor& required,
                                   at::IntArrayRef tiers, at::IntArrayRef groups,
                                   const std::optional<at::Tensor>& targets, bool soft,
                                   const std::vector<std::string>& kinds, std::string_view missing);

/// Constraints from tables of two columns, the edges, and numbers of tiers. c10::ValueError
/// "[function] ARGUMENT: ..".
EdgeConstraints parse_constraints(const char* function, const at::Tensor& forbidden,
                                  const at::Tensor& required, at::IntArrayRef tiers);

/// int64 [edges, 2]: cause and effect.
at::Tensor edge_table(const std::vector<CausalEdge>& edges);

/// The columns of each row that pairs [targets, 2] of a row and a column name. c10::ValueError
/// "[function] targets: ..".
std::vector<std::vector<int64_t>> parse_targets(const char* function, const at::Tensor& pairs,
                                                int64_t rows);

/// Refuses options that the estimator would not use. They need no table. Throws InputError
/// "ARGUMENT: ..".
void check_estimator_options(const CausalFitOptions& options);

/// Checks the options of a fit of a table of this shape: what is out of range, what does not go
/// together or with the estimator, and the lengths of what belongs to rows and columns. Throws
/// InputError "ARGUMENT: ..".
void check_fit_options(const CausalFitOptions& options, int64_t rows, int64_t columns);

}  // namespace nsimplex::causal
