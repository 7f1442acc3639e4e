// Declares the arguments of operators that fit a causal graph.

#pragma once

#include <ATen/core/Tensor.h>
#include <nsimplex/causal.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "support/flat_call.h"

namespace nsimplex::causal {

/// How an operator passes an option: an enum by its name.
template <class Value>
using ArgumentOf = std::conditional_t<std::is_enum_v<Value>, std::string_view, Value>;

#define NSIMPLEX_CAUSAL_ARGUMENT(type, name, ...) ArgumentOf<type> name = {};

/// The options of a fit as operators take them (support/flat_call.h). Edges are tables of two
/// columns.
struct FitArguments {
  NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_CAUSAL_ARGUMENT)
  int64_t seed = 0;
  at::Tensor forbidden, required;
  at::IntArrayRef tiers, exogenous, sinks;
  at::Tensor paths;
  at::IntArrayRef groups;
  OptionalTensor targets;
  bool soft = false;
  std::vector<std::string> kinds;
  std::string_view missing;
  bool orient_by_noise = false;

  static auto fields(auto& self) {
    return std::tuple_cat(NSIMPLEX_CAUSAL_FIT_OPTIONS(NSIMPLEX_TIE_OPTION) std::tie(
        self.seed, self.forbidden, self.required, self.tiers, self.exogenous, self.sinks,
        self.paths, self.groups, self.targets, self.soft, self.kinds, self.missing,
        self.orient_by_noise));
  }
};

/// The schema of these arguments.
std::string fit_schema();

/// The options in them for a table of `rows` rows. c10::ValueError "[function] ARGUMENT: ..".
CausalFitOptions fit_options(const char* function, const FitArguments& given, int64_t rows);

/// The part of a schema that parse_constraints() takes.
inline constexpr const char* kConstraintSchema =
    "Tensor forbidden, Tensor required, int[] tiers, int[] exogenous, int[] sinks, Tensor paths";

/// Constraints from tables of two columns, the edges and paths, and numbers. c10::ValueError
/// "[function] ARGUMENT: ..".
EdgeConstraints parse_constraints(const char* function, const at::Tensor& forbidden,
                                  const at::Tensor& required, at::IntArrayRef tiers,
                                  at::IntArrayRef exogenous, at::IntArrayRef sinks,
                                  const at::Tensor& paths);

/// int64 [edges, 2]: cause and effect.
at::Tensor edge_table(const std::vector<CausalEdge>& edges);

/// The columns of each row that pairs [targets, 2] of a row and a column name. c10::ValueError
/// "[function] targets: ..".
std::vector<std::vector<int64_t>> parse_targets(const char* function, const at::Tensor& pairs,
                                                int64_t rows);

/// The options of the estimator `order` that repeat what a fit with `options` assumed. Those of
/// other estimators stay.
CausalFitOptions settled_options(CausalFitOptions options, const FitChoices& choices);

/// Refuses options that the estimator would not use. They need no table. Throws InputError
/// "ARGUMENT: ..".
void check_estimator_options(const CausalFitOptions& options);

/// Checks the options of a fit of a table of this shape: what is out of range, what does not go
/// together or with the estimator, and the lengths of what belongs to rows and columns. Throws
/// InputError "ARGUMENT: ..".
void check_fit_options(const CausalFitOptions& options, int64_t rows, int64_t columns);

}  // namespace nsimplex::causal
