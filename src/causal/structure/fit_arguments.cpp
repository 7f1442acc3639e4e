// Parses and checks the arguments of operators that fit a causal graph.

#include "causal/structure/fit_arguments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "causal/graph/edge_constraints.h"
#include "causal/option_names.h"
#include "causal/tables/table_arguments.h"
#include "causal/tensors.h"
#include "support/require.h"

namespace nsimplex::causal {
namespace {

using at::Tensor;

// int64 [pairs, 2]
Tensor checked_pairs(const char* function, const char* argument, const Tensor& pairs) {
  const std::string place = c10::str("[", function, "] ", argument);
  Tensor checked = checked_tensor(place, pairs, at::kLong, 2);
  TORCH_CHECK_VALUE(checked.size(1) == 2, place, ": expected shape [pairs, 2], got ",
                    checked.sizes());
  return checked;
}

std::vector<CausalEdge> parse_edges(const char* function, const char* argument,
                                    const Tensor& edges) {
  const Tensor rows = checked_pairs(function, argument, edges);
  const int64_t* at = rows.const_data_ptr<int64_t>();
  std::vector<CausalEdge> result;
  for (int64_t k = 0; k < rows.size(0); ++k) result.push_back({at[2 * k], at[2 * k + 1]});
  return result;
}

}  // namespace

EdgeConstraints parse_constraints(const char* function, const Tensor& forbidden,
                                  const Tensor& required, at::IntArrayRef tiers) {
  return {parse_edges(function, "forbidden", forbidden),
          parse_edges(function, "required", required), tiers.vec()};
}

Tensor edge_table(const std::vector<CausalEdge>& edges) {
  Tensor result = at::empty({static_cast<int64_t>(edges.size()), 2}, at::kLong);
  int64_t* at = result.mutable_data_ptr<int64_t>();
  for (const CausalEdge& edge : edges) {
    *at++ = edge.cause;
    *at++ = edge.effect;
  }
  return result;
}

std::vector<std::vector<int64_t>> parse_targets(const char* function, const Tensor& pairs,
                                                int64_t rows) {
  const Tensor checked = checked_pairs(function, "targets", pairs);
  const int64_t* at = checked.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(rows));
  for (int64_t k = 0; k < checked.size(0); ++k) {
    const int64_t row = at[2 * k];
    TORCH_CHECK_VALUE(row >= 0 && row < rows, "[", function, "] targets: expected rows 0 to ",
                      rows - 1, ", got ", row);
    result[static_cast<size_t>(row)].push_back(at[2 * k + 1]);
  }
  return result;
}

CausalFitOptions parse_fit_options(const char* function, int64_t rows, std::string_view estimator,
                                   bool nonlinear, bool standardise,
                                   std::optional<double> threshold, std::optional<double> sparsity,
                                   int64_t rank, bool sample, int64_t seed, const Tensor& forbidden,
                                   const Tensor& required, at::IntArrayRef tiers,
                                   at::IntArrayRef groups, const std::optional<Tensor>& targets,
                                   bool soft, const std::vector<std::string>& kinds,
                                   std::string_view missing) {
  CausalFitOptions options;
  options.estimator =
      as_function(function, [&] { return parse_name<StructureEstimator>("estimator", estimator); });
  options.nonlinear = nonlinear;
  options.standardise = standardise;
  options.threshold = threshold;
  options.sparsity = sparsity;
  options.rank = rank;
  options.sample = sample;
  options.seed = seed;
  options.constraints = parse_constraints(function, forbidden, required, tiers);
  options.groups = groups.vec();
  if (targets) options.targets = parse_targets(function, *targets, rows);
  options.soft = soft;
  as_function(function, [&] {
    for (const std::string& kind : kinds) {
      options.kinds.push_back(parse_name<ColumnKind>("kinds", kind));
    }
    options.missing = parse_name<MissingValues>("missing", missing);
    return 0;
  });
  return options;
}

void check_estimator_options(const CausalFitOptions& options) {
  using enum StructureEstimator;
  const auto used_by = [&](bool given, const char* argument,
                           const std::vector<StructureEstimator>& users) {
    if (!given || std::ranges::find(users, options.estimator) != users.end()) return;
    std::string expected = "estimator ";
    for (size_t i = 0; i < users.size(); ++i) {
      if (i > 0) expected += i + 1 < users.size() ? ", " : " or ";
      expected += name_of(users[i]);
    }
    require_argument(false, argument, expected + " with it", name_of(options.estimator));
  };
  used_by(options.nonlinear, "nonlinear", {order, logdet});
  used_by(options.sparsity.has_value(), "sparsity",
          {logdet, paper, paper_lowrank, lowrank, notears, spectral});
  used_by(options.rank != CausalFitOptions().rank, "rank", {lowrank, paper_lowrank});
  used_by(options.sample, "sample", {paper, paper_lowrank});
}

void check_fit_options(const CausalFitOptions& options, int64_t rows, int64_t columns) {
  constexpr const char* kNotNegative = "a finite number of at least 0";
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  const double threshold = options.threshold.value_or(0), sparsity = options.sparsity.value_or(0);
  require_argument(not_negative(threshold), "threshold", kNotNegative, std::to_string(threshold));
  require_argument(not_negative(sparsity), "sparsity", kNotNegative, std::to_string(sparsity));
  require_at_least("rank", 1, options.rank);
  check_estimator_options(options);
  const bool linear_order = options.estimator == StructureEstimator::order && !options.nonlinear;
  const auto need = [](bool holds, const std::string& what) {
    if (!holds) throw InputError(what);
  };
  const std::string got = std::string(", got ")
                              .append(name_of(options.estimator))
                              .append(options.nonlinear ? " with nonlinear" : "");
  need(options.targets.empty() || linear_order,
       "targets: expected estimator order without nonlinear, which has interventions" + got);
  need(!options.soft || !options.targets.empty(),
       "soft: expected targets, the interventions that are soft");
  need(options.kinds.empty() || linear_order,
       "kinds: expected estimator order without nonlinear, which has suited regressions" + got);
  need(options.kinds.empty() || !options.soft, "soft: expected continuous columns alone");
  const bool gaps = options.missing == MissingValues::likelihood;
  need(gaps || options.missing == MissingValues::refuse,
       "missing: expected refuse or likelihood; other gaps are closed before a fit");
  need(!gaps || linear_order,
       "missing: expected estimator order without nonlinear for likelihood" + got);
  need(!gaps || options.kinds.empty(), "missing: expected continuous columns for likelihood");
  require(rows >= 2 && columns >= 2, "table: expected at least 2 rows and 2 columns, got ", rows,
          " x ", columns);
  require_room("table", {columns, columns});
  require_room("rank", {columns, options.rank});
  if (!options.groups.empty()) require_one_per_row("groups", options.groups.size(), rows);
  if (!options.targets.empty()) require_targets(options.targets, rows, columns);
  if (!options.kinds.empty()) require_one_per_column("kinds", options.kinds.size(), columns);
  const AllowedEdges checked(options.constraints, columns);
}

}  // namespace nsimplex::causal
